"""What a spec asks of a site that the site cannot do, and what a person should know before it is run.

What it does: the checks and the remarks that need both files. What it does not do: check either of them by itself (``check``).
Rules kept: every mistake is told at once, in the file where it can be mended; an arm whose change does not reach what is
started is a mistake, for its figures would be those of its base under another name.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

import attrs

from ledger.core.errors import Collected, did_you_mean, nearest
from ledger.spec.bases import Line, lines
from ledger.spec.change import count_changes, in_words, not_there, sets_something
from ledger.spec.endpoint import target
from ledger.spec.load import Loaded
from ledger.spec.model import ACTIONS, ENDPOINT, MAX_ENTRIES, Change, Lane, Site, Spec, StandIn
from ledger.spec.order import control_of
from ledger.spec.readings import is_of_nodes
from ledger.spec.resolve import Resolved


def problems(spec: Loaded[Spec], site: Loaded[Site], arms: Mapping[str, Resolved], only: Collection[str]) -> Collected:
    """Everything that ``site`` cannot do of ``spec``, narrowed to the arms ``only`` where there are any."""
    found = Collected()
    for name in only:
        if name not in arms:
            found.add("unknown arm", value=name, hint=did_you_mean(name, arms))
    chosen = {each.id: arms[each.id] for arm in arms.values() if not only or arm.arm.id in only for each in arm.line}
    for name in dict.fromkeys(arm.declared.id for arm in chosen.values()):
        if site.value.backend == ENDPOINT:
            _endpoint(spec, site, spec.value.lanes[name], found)
        elif name not in site.value.stand_ins:
            _lane(spec, site, spec.value.lanes[name], found)
    for index, arm in enumerate(spec.value.arms):
        if arm.id in chosen and site.value.backend == ENDPOINT:
            _arm_of_endpoint(spec, site, chosen[arm.id], index, found)
        elif arm.id in chosen:
            _arm(spec, site, chosen[arm.id], index, arms, found)
    _scales(spec, site, found)
    _hygiene(spec, site, found)
    return found


def too_large(spec: Loaded[Spec], site: Loaded[Site]) -> Collected:
    """A plan of more than ``MAX_ENTRIES`` entries; looked for before any arm is resolved, since that takes as much."""
    found = Collected()
    total = sum(_entries(line, spec.value, site.value) for line in lines(spec.value.arms).values())
    if total > MAX_ENTRIES:
        what = f"{total} arguments, variables and pins over the ranks of all boots, and at most {MAX_ENTRIES} are planned"
        found.add(what, place=spec.place("arms"), hint="write several specs, or fewer boots")
    return found


def remarks(spec: Spec, site: Site, arms: Mapping[str, Resolved]) -> tuple[str, ...]:
    """What a person should read before the run; ``arms`` are those that are booted."""
    said = []
    stood_in = sorted({arm.declared.id for arm in arms.values() if arm.stand_in is not None})
    if stood_in:
        lanes = ", ".join(stood_in)
        said.append(
            f"site {site.name!r} stands in for lane {lanes}: figures are marked stand-in and never averaged with the lane's own"
        )
    idle = [name for name, arm in arms.items() if arm.stand_in is not None and arm.arm.base is not None and _idle(arm)]
    if idle:
        said.append(f"the stand-in starts {', '.join(idle)} as their base: their figures say nothing of the change")
    if spec.rule is not None and all(arm.boots == 1 for arm in spec.arms):
        said.append("one boot for each arm: no noise band is known, so no effect can be told from noise; see `boots`")
    said += _of_endpoints(spec, site, arms)
    said += _controls(spec, arms)
    for name in sorted(set(site.stand_ins) - set(spec.lanes)):
        if near := nearest(name, spec.lanes):
            said.append(f"site {site.name!r} stands in for lane {name!r}, which this spec does not have; is {near!r} meant?")
    return tuple(said)


def _of_endpoints(spec: Spec, site: Site, arms: Mapping[str, Resolved]) -> Iterator[str]:
    """What cannot be done or known where nothing is started."""
    targets = [found for arm in arms.values() if (found := target(site, arm.declared.id, arm.line))]
    if not targets:
        return
    unread = [gate.id for gate in spec.gates if is_of_nodes(gate.reads)]
    if unread:
        yield f"not known here, so that they hold for no endpoint and block a verdict: {_gates(unread)}"
    if spec.hygiene:
        yield f"not done here, since no node of an endpoint is reached: {', '.join(spec.hygiene)}"
    if any(arm.arm.boots > 1 for arm in arms.values()):
        yield "an endpoint is not started again: its rounds are visits to one start, and say nothing of the spread between boots"
    for host in sorted({each.host for each in targets if each.tells_its_key}):
        yield f"the API key goes to {host} over http, in clear text: take https, or a tunnel"


def _gates(names: Sequence[str]) -> str:
    return ("gate " if len(names) == 1 else "gates ") + ", ".join(names)


def _controls(spec: Spec, arms: Mapping[str, Resolved]) -> Iterator[str]:
    """What will keep the rule from a verdict: a control that is not booted, or that boots something else than the arm's base."""
    for arm in arms.values():
        control = control_of(arm.arm, spec.rule, spec.arms) if spec.rule is not None else None
        base = arm.arm.base
        if control is not None and control not in arms:
            yield f"{arm.arm.id} is judged against {control}, which this run does not boot; see `ledger decide`"
        elif control is not None and base is not None and base in arms and _started(arms[control]) != _started(arms[base]):
            yield f"{arm.arm.id} is judged against {control}, which boots something else than its base {base}: it gets no verdict"


def _started(arm: Resolved) -> tuple[Lane, tuple[str, ...], Mapping[str, str]]:
    return arm.lane, arm.argv, arm.env


def _entries(line: Line, spec: Spec, site: Site) -> int:
    """At least as many entries as the plan has for the last arm of ``line``, over its boots and their ranks."""
    declared = spec.lanes[line[0].lane or ""]
    stand_in = site.stand_ins.get(declared.id)
    size = _size(declared) + sum(_size(arm.change) for arm in line)
    if stand_in is None:
        return line[-1].boots * declared.nodes * size
    return line[-1].boots * (size + _size(stand_in) + sum(_size(stand_in.arms.get(arm.id, Change())) for arm in line))


def _size(record: Lane | StandIn | Change) -> int:
    """How many entries a record has in all its lists and tables, and one for itself."""
    lists = (getattr(record, item.name) for item in attrs.fields(type(record)))
    return 1 + sum(len(each) for each in lists if isinstance(each, tuple | Mapping))


def _lane(spec: Loaded[Spec], site: Loaded[Site], lane: Lane, found: Collected) -> None:
    place = spec.place("lanes", lane.id)
    if not lane.command and lane.container is None:
        hint = f"give it a command, or add [stand_ins.{lane.id}] to {site.file}"
        found.add(f"lane {lane.id!r} has no command, and site {site.value.name!r} has no stand-in for it", place=place, hint=hint)
    given = len(site.value.nodes_of(lane.id))
    if lane.nodes > given:
        what = f"lane {lane.id!r} needs {lane.nodes} nodes, and site {site.value.name!r} has {given}"
        what += " for it" if lane.id in site.value.placement else ""
        found.add(what, place=place, hint=f"add nodes to {site.file}, or a [stand_ins.{lane.id}]")


def _endpoint(spec: Loaded[Spec], site: Loaded[Site], lane: Lane, found: Collected) -> None:
    if lane.id not in site.value.endpoints:
        hint = f"add [endpoints.{lane.id}] to {site.file}, or name the arms to measure with --only"
        what = f"site {site.value.name!r} has no endpoint for lane {lane.id!r}"
        found.add(what, place=spec.place("lanes", lane.id), hint=hint)


def _arm_of_endpoint(spec: Loaded[Spec], site: Loaded[Site], arm: Resolved, index: int, found: Collected) -> None:
    endpoint = site.value.endpoints.get(arm.declared.id)
    if endpoint is not None and count_changes(arm.arm.change) and arm.arm.id not in endpoint.arms:
        hint = f"add it to [endpoints.{endpoint.id}.arms] of {site.file} with the URL of a server that runs so"
        what = "nothing is started at an endpoint, so that this arm needs a server of its own"
        found.add(what, place=spec.place("arms", index), value=arm.arm.id, hint=hint)


def _arm(
    spec: Loaded[Spec], site: Loaded[Site], arm: Resolved, index: int, arms: Mapping[str, Resolved], found: Collected
) -> None:
    if arm.stand_in is not None and count_changes(arm.arm.change) and arm.arm.id not in arm.stand_in.arms:
        _no_counterpart(spec, site, arm, arm.stand_in, index, found)
        return
    base = arms[arm.arm.base] if arm.arm.base is not None else None
    before_argv, before_env = (base.argv, base.env) if base else (arm.lane.command, arm.lane.env)
    stands_in = arm.stand_in is not None
    place = site.place("stand_ins", arm.declared.id, "arms", arm.arm.id) if stands_in else spec.place("arms", index, "change")
    missing = not_there(before_argv, before_env, arm.change)
    for name in missing:
        found.add("the change drops what is not there", place=place, value=name, hint="its base does not have it")
    if base is not None and not stands_in and not missing and _reaches_nothing(arm, base):
        what = f"arm {arm.arm.id!r} starts with the same command and environment as its base"
        found.add(what, place=place, value=in_words(arm.change), hint="the change sets what is set already")


def _reaches_nothing(arm: Resolved, base: Resolved) -> bool:
    """Whether an arm sets something and starts as its base all the same."""
    return sets_something(arm.change) and (arm.argv, arm.env) == (base.argv, base.env)


def _no_counterpart(
    spec: Loaded[Spec], site: Loaded[Site], arm: Resolved, stand_in: StandIn, index: int, found: Collected
) -> None:
    hint = f"add [stand_ins.{stand_in.id}.arms.{arm.arm.id}] to {site.file}: what the stand-in changes in its place"
    what = f"the stand-in for lane {stand_in.id!r} has no counterpart of this arm"
    found.add(what, place=spec.place("arms", index), value=arm.arm.id, hint=hint)


def _idle(arm: Resolved) -> bool:
    """Whether a stand-in's arm that should change something sets nothing."""
    return bool(count_changes(arm.arm.change)) and not sets_something(arm.change)


def _scales(spec: Loaded[Spec], site: Loaded[Site], found: Collected) -> None:
    if set(site.value.stand_ins) - set(spec.value.lanes):
        return  # a site for other specs too has scales for their measures as well
    for measure in site.value.scale:
        if measure not in spec.value.measures:
            hint = did_you_mean(measure, spec.value.measures)
            found.add("unknown measure", place=site.place("scale", measure), value=measure, hint=hint)


def _hygiene(spec: Loaded[Spec], site: Loaded[Site], found: Collected) -> None:
    known = [*ACTIONS, *site.value.actions]
    for index, name in enumerate(spec.value.hygiene):
        if name not in known:
            hint = did_you_mean(name, known)
            what = f"site {site.value.name!r} has no action of this name, and none is built in"
            found.add(what, place=spec.place("hygiene", index), value=name, hint=hint)
    for index, name in enumerate(site.value.forbid):
        if name not in known and name not in spec.value.hygiene:
            hint = did_you_mean(name, known)
            found.add("an unknown action is forbidden", place=site.place("forbid", index), value=name, hint=hint)
