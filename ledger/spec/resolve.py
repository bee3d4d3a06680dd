"""What each arm starts on a site: its lane or the stand-in for it, with the changes of all its bases applied.

What it does: resolves every arm of a spec on a site. What it does not do: interpolate, or say whether the site can do it
(``joint``). Rules kept: a stand-in takes its own changes and never the lane's; each arm is resolved once, from its base.
"""

from collections.abc import Mapping

import attrs
from attrs import frozen

from ledger.spec.bases import Line, lines
from ledger.spec.change import apply_args, apply_env
from ledger.spec.model import Arm, Change, Lane, Site, Spec, StandIn


@frozen(kw_only=True)
class Resolved:
    """An arm on a site: ``line`` is its bases and itself, ``lane`` what really starts, ``declared`` the spec's lane.

    ``change`` is what is applied to the base's ``argv`` and ``env`` to give these, which are templates.
    """

    arm: Arm
    line: Line
    declared: Lane
    lane: Lane
    stand_in: StandIn | None
    change: Change
    argv: tuple[str, ...]
    env: Mapping[str, str]


def resolve(spec: Spec, site: Site) -> dict[str, Resolved]:
    """Every arm of ``spec`` by id. ``spec`` has been checked."""
    found: dict[str, Resolved] = {}
    for line in lines(spec.arms).values():
        for arm in line:
            if arm.id not in found:
                found[arm.id] = _resolved(arm, found, spec, site, line[: line.index(arm) + 1])
    return found


def _resolved(arm: Arm, found: Mapping[str, Resolved], spec: Spec, site: Site, line: Line) -> Resolved:
    declared = spec.lanes[line[0].lane or ""]
    stand_in = site.stand_ins.get(declared.id)
    lane = as_lane(stand_in) if stand_in else declared
    change = stand_in.arms.get(arm.id, Change()) if stand_in else arm.change
    base = found[arm.base] if arm.base is not None else None
    return Resolved(
        arm=arm,
        line=line,
        declared=declared,
        lane=lane,
        stand_in=stand_in,
        change=change,
        argv=apply_args(base.argv if base else lane.command, change),
        env=apply_env(base.env if base else lane.env, change),
    )


def as_lane(stand_in: StandIn) -> Lane:
    """The lane that a stand-in is: every field that both have."""
    shared = {item.name for item in attrs.fields(Lane)} & {item.name for item in attrs.fields(StandIn)}
    return Lane(**{name: getattr(stand_in, name) for name in shared})
