"""The plan: every boot that a spec asks for on a site, in order, with what is launched and measured.

What it does: resolves bases, changes, stand-ins and scales into :class:`BootPlan` records. What it does not do: touch a node,
pick a port, or know an instrument. Rules kept: the plan is a pure function of spec and site; what only the node knows
(``${port}``, ``${python}``, ``${file.*}``) stays a placeholder until the boot, so that equal plans have equal fingerprints.
"""

from collections.abc import Mapping

from attrs import field, frozen

from ledger.core.words import Evidence
from ledger.spec.model import Arm, FilePin, Lane, Measure, Node, Site, Spec


@frozen(kw_only=True)
class RankPlan:
    """One process of a boot: its node, and argv and env as templates (``${…}`` not yet replaced, ``$$`` not yet unescaped)."""

    rank: int
    node: Node
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(factory=dict)


@frozen(kw_only=True)
class BootPlan:
    """One boot to make. ``lane`` is what really starts (the stand-in where there is one); ``declared`` is the spec's lane.

    ``position`` counts from 1. ``requested`` is the spec's side and the site's side as plain data, for the receipt.
    ``identity``, ``context`` and ``provenance`` are the factors known before the boot.
    """

    position: int
    arm: Arm
    declared: Lane
    lane: Lane
    evidence: Evidence
    ranks: tuple[RankPlan, ...]
    measures: tuple[Measure, ...]
    files: Mapping[str, FilePin] = field(factory=dict)
    packages: Mapping[str, str] = field(factory=dict)
    requested: Mapping[str, object] = field(factory=dict)
    identity: Mapping[str, str] = field(factory=dict)
    context: Mapping[str, str] = field(factory=dict)
    provenance: Mapping[str, str] = field(factory=dict)


@frozen(kw_only=True)
class Plan:
    """All boots of a session, in order, and remarks that a person should read before it starts."""

    spec: Spec
    site: Site
    boots: tuple[BootPlan, ...]
    remarks: tuple[str, ...] = ()
