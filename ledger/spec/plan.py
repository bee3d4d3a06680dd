"""The plan: every boot that a spec asks for on a site, in order, with what is launched and measured.

What it does: resolves bases, changes, stand-ins and scales into :class:`BootPlan` records, and renders a boot's launch once the
node's own values are known. What it does not do: touch a node, pick a port, or know an instrument. Rules kept: the plan is a
pure function of spec and site; what only the node knows (``${port}``, ``${python}``, ``${file.*}``) stays a placeholder until
the boot, so that equal plans have equal fingerprints.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import attrs
from attrs import field, frozen

from ledger.core.errors import Collected, SpecError, did_you_mean
from ledger.core.words import Evidence, FieldClass
from ledger.spec import factors
from ledger.spec.change import apply_args, apply_env, count_changes
from ledger.spec.interpolate import check, interpolate, interpolate_stable, names_or_none
from ledger.spec.load import Loaded
from ledger.spec.model import Arm, Change, FilePin, Lane, Measure, Node, Site, Spec, StandIn


@frozen(kw_only=True)
class RankPlan:
    """One process of a boot: its node, and argv and env as templates (volatile ``${…}`` and ``$$`` not yet replaced)."""

    rank: int
    node: Node
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(factory=dict)


@frozen(kw_only=True)
class RankLaunch:
    """One process of a boot as it is started: nothing is left to replace."""

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


def make_plan(spec: Loaded[Spec], site: Loaded[Site], *, only: Collection[str] = ()) -> Plan:
    """The plan of ``spec`` on ``site``; ``only`` narrows it to some arms.

    Raises:
        SpecError: with everything in the spec that this site cannot do.
    """
    _joint_problems(spec, site, only).raise_if_any(SpecError)
    chosen = [arm for arm in spec.value.arms if not only or arm.id in only]
    rounds = max(arm.boots for arm in chosen)
    order = [arm for made in range(rounds) for arm in chosen if arm.boots > made]
    boots = tuple(_boot(position, arm, spec.value, site.value) for position, arm in enumerate(order, start=1))
    return Plan(spec=spec.value, site=site.value, boots=boots, remarks=_remarks(spec.value, site.value, boots))


def launch(boot: BootPlan, values: Mapping[str, str]) -> tuple[RankLaunch, ...]:
    """The boot's ranks with nothing left to replace; ``values`` has ``port``, ``python`` and the ``file.*``."""
    head = boot.ranks[0].node
    rendered = []
    for rank in boot.ranks:
        scope = {**values, "node.ip": rank.node.ip, "node.name": rank.node.name, "head.ip": head.ip}
        argv = tuple(interpolate(word, scope) for word in rank.argv)
        env = {name: interpolate(value, scope) for name, value in rank.env.items()}
        rendered.append(RankLaunch(rank=rank.rank, node=rank.node, argv=argv, env=env))
    return tuple(rendered)


def lineage(arm: Arm, spec: Spec) -> list[Arm]:
    """The arm's bases from the first one down to the arm itself."""
    by_id = {other.id: other for other in spec.arms}
    chain = [arm]
    while chain[0].base is not None:
        chain.insert(0, by_id[chain[0].base])
    return chain


def _boot(position: int, arm: Arm, spec: Spec, site: Site) -> BootPlan:
    chain = lineage(arm, spec)
    declared = spec.lanes[chain[0].lane or ""]
    stand_in = site.stand_ins.get(declared.id)
    lane = _as_lane(stand_in) if stand_in else declared
    changes = [stand_in.arms.get(item.id, Change()) if stand_in else item.change for item in chain]
    ranks = tuple(_rank(rank, site.nodes[rank], lane, site, changes) for rank in range(lane.nodes))
    found = factors.split(_factors(lane, ranks, site, arm, stand_in))
    return BootPlan(
        position=position,
        arm=arm,
        declared=declared,
        lane=lane,
        evidence=Evidence.STAND_IN if stand_in else Evidence.MEASURED,
        ranks=ranks,
        measures=tuple(_scaled(measure, site, scale=stand_in is not None) for measure in spec.measures.values()),
        files=lane.files,
        packages=lane.packages,
        requested=_requested(declared, chain, stand_in, site),
        identity=found[FieldClass.IDENTITY],
        context=found[FieldClass.CONTEXT],
        provenance=found[FieldClass.PROVENANCE],
    )


def _rank(rank: int, node: Node, lane: Lane, site: Site, changes: Sequence[Change]) -> RankPlan:
    argv, env = lane.command, dict(lane.env)
    for change in changes:
        argv, env = apply_args(argv, change), apply_env(env, change)
    scope = _stable_scope(lane, site) | {"rank": str(rank)}
    return RankPlan(
        rank=rank,
        node=node,
        argv=tuple(interpolate_stable(word, scope) for word in argv),
        env={name: interpolate_stable(value, scope) for name, value in env.items()},
    )


def _stable_scope(lane: Lane, site: Site) -> dict[str, str]:
    texts = {item.name: getattr(lane, item.name) for item in attrs.fields(Lane)}
    scope = {f"lane.{name}": value for name, value in texts.items() if isinstance(value, str)}
    return scope | {"site.name": site.name, "lane.served_model": lane.served_model or lane.model}


def _as_lane(stand_in: StandIn) -> Lane:
    shared = {item.name for item in attrs.fields(Lane)} & {item.name for item in attrs.fields(StandIn)}
    return Lane(**{name: getattr(stand_in, name) for name in shared})


def _factors(lane: Lane, ranks: Sequence[RankPlan], site: Site, arm: Arm, stand_in: StandIn | None) -> dict[str, str]:
    found = factors.lane_factors(lane)
    for rank in ranks:
        prefix = f"rank.{rank.rank}." if rank.rank else ""
        launched = factors.launch_factors(rank.argv, rank.env)
        found |= {prefix + key: value for key, value in launched.items() if not prefix or found.get(key) != value}
    found |= factors.node_factors([rank.node for rank in ranks], site.backend)
    found |= {"site": site.name}
    if arm.change.about and not count_changes(Change(env=arm.change.env, args=arm.change.args)) and stand_in is None:
        found["change"] = arm.change.about
    return found | ({"stand_in.why": stand_in.why} if stand_in else {})


def _scaled(measure: Measure, site: Site, *, scale: bool) -> Measure:
    changed = site.scale.get(measure.id, {}) if scale else {}
    return attrs.evolve(measure, parameters={**measure.parameters, **changed}) if changed else measure


def _requested(declared: Lane, chain: Sequence[Arm], stand_in: StandIn | None, site: Site) -> dict[str, Any]:
    """What spec and site ask for, as plain data: the lane, the chain of arms, and the stand-in with its own changes."""
    asked: dict[str, Any] = {"lane": plain(declared), "arms": [plain(arm) for arm in chain], "site": site.name}
    if stand_in is not None:
        own = {item.id: plain(stand_in.arms[item.id]) for item in chain if item.id in stand_in.arms}
        asked["stand_in"] = {**plain(attrs.evolve(stand_in, arms={})), "changes": own}
    return asked


def plain(record: Any) -> dict[str, Any]:
    """An attrs record as tables, lists, text and numbers; fields that are absent or empty are left out."""
    return attrs.asdict(record, filter=lambda _, value: value not in (None, "", (), {}))


def _joint_problems(spec: Loaded[Spec], site: Loaded[Site], only: Collection[str]) -> Collected:
    found = Collected()
    arms = [arm.id for arm in spec.value.arms]
    for name in only:
        if name not in arms:
            found.add("unknown arm", value=name, hint=did_you_mean(name, arms))
    used = {lineage(arm, spec.value)[0].lane or "" for arm in spec.value.arms if not only or arm.id in only}
    for name in sorted(used):
        _lane_problems(spec, site, name, found)
    for measure in site.value.scale:
        if measure not in spec.value.measures and not _shared(site.value, spec.value):
            hint = did_you_mean(measure, spec.value.measures)
            found.add("unknown measure", place=site.place("scale", measure), value=measure, hint=hint)
    return found


def _shared(site: Site, spec: Spec) -> bool:
    """A site that stands in for lanes of other specs too has scales for their measures as well."""
    return bool(set(site.stand_ins) - set(spec.lanes))


def _lane_problems(spec: Loaded[Spec], site: Loaded[Site], name: str, found: Collected) -> None:
    lane, stand_in = spec.value.lanes[name], site.value.stand_ins.get(name)
    if stand_in is None:
        _unbootable(spec, site, lane, found)
        return
    if not stand_in.command:
        found.add("a stand-in without a command", place=site.place("stand_ins", name))
    for index, arm in enumerate(spec.value.arms):
        if lineage(arm, spec.value)[0].lane == name and count_changes(arm.change) and arm.id not in stand_in.arms:
            hint = f"add [stand_ins.{name}.arms.{arm.id}] to {site.file}: what the stand-in changes in its place"
            found.add(
                f"the stand-in for lane {name!r} has no counterpart of this arm",
                place=spec.place("arms", index),
                value=arm.id,
                hint=hint,
            )


def _unbootable(spec: Loaded[Spec], site: Loaded[Site], lane: Lane, found: Collected) -> None:
    place = spec.place("lanes", lane.id)
    if not lane.command:
        hint = f"give it a command, or add [stand_ins.{lane.id}] to {site.file}"
        found.add(f"lane {lane.id!r} has no command, and site {site.value.name!r} has no stand-in for it", place=place, hint=hint)
    if lane.nodes > len(site.value.nodes):
        what = f"lane {lane.id!r} needs {lane.nodes} nodes, and site {site.value.name!r} has {len(site.value.nodes)}"
        found.add(what, place=place, hint=f"add nodes to {site.file}, or a [stand_ins.{lane.id}]")
    known = {f"file.{name}" for name in lane.files}
    for index, arm in enumerate(spec.value.arms):
        if lineage(arm, spec.value)[0].lane == lane.id:
            for word in (*arm.change.args, *arm.change.env.values()):
                others = {name for name in names_or_none(word) if not name.startswith("file.")}
                for problem in check(word, others | known):
                    found.add(problem.what, place=spec.place("arms", index, "change"), value=problem.value, hint=problem.hint)


def _remarks(spec: Spec, site: Site, boots: Sequence[BootPlan]) -> tuple[str, ...]:
    said = []
    stood_in = sorted({boot.declared.id for boot in boots if boot.evidence is Evidence.STAND_IN})
    if stood_in:
        lanes = ", ".join(stood_in)
        said.append(
            f"site {site.name!r} stands in for lane {lanes}: figures are marked stand-in and never averaged with the lane's own"
        )
    if spec.rule is not None and all(arm.boots == 1 for arm in spec.arms):
        said.append("one boot for each arm: no noise band is known, so no effect can be told from noise; see `boots`")
    unused = sorted(set(site.stand_ins) - set(spec.lanes))
    if unused:
        said.append(f"site {site.name!r} also stands in for lane {', '.join(unused)}, which this spec does not have")
    return tuple(said)
