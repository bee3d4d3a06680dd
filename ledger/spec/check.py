"""What one part of a spec or site says of another.

What it does: every check of a spec and of a site by itself: ids, references, cycles, one change for each arm, the rule. What it
does not do: say what a single value may be (``values``), join a spec with a site (``plan``), or know an instrument's parameters
(``run``). Rules kept: every mistake is told; a value that the reader has refused stands here as an empty one, and what is said
of it is not heard; of a document with a list that is too long nothing else is said, so that the time it takes is bounded.
"""

from collections.abc import Iterable, Mapping, Sequence

import attrs

from ledger.core import metrics
from ledger.core.errors import did_you_mean
from ledger.core.words import Role
from ledger.spec import values
from ledger.spec.bases import Line, cycles, lines
from ledger.spec.change import count_changes, settings
from ledger.spec.endpoint import check_endpoints
from ledger.spec.gates import check_gate
from ledger.spec.locate import Path
from ledger.spec.model import (
    ACTIONS,
    ENDPOINT,
    FORMAT,
    MAX_BOOTS,
    MAX_INCLUDES,
    MAX_ITEMS,
    ON_FAILURE,
    ORDERS,
    PRIVILEGES,
    SPEEDS,
    Action,
    Arm,
    Change,
    Container,
    FilePin,
    Lane,
    Manifest,
    Node,
    Rule,
    Site,
    Spec,
    StandIn,
    Tree,
)
from ledger.spec.restore import check_restore
from ledger.spec.values import Complain

LANE_FIELDS = ("id", "engine", "model", "model_revision", "quantization", "served_model", "image", "recipe", "recipe_revision")
VARIABLES = ("node.ip", "node.name", "head.ip", "rank", "port", "python", "site.name")
MAX_BASES = 100


def check_spec(spec: Spec, complain: Complain) -> None:
    """Every mistake that a spec has by itself."""
    _format(spec.ledger, complain)
    values.name(spec.name, ("name",), complain)
    values.filled(spec.question, ("question",), complain)
    values.filled(spec.site, ("site",), complain)
    values.without_nul(spec.site, ("site",), complain)
    values.at_most(spec.include, MAX_INCLUDES, "include", complain)
    for name in values.repeated(spec.include):
        complain(f"{name!r} stands twice", path=("include",), value=name)
    values.between(spec.warmup, 0, 10_000, ("warmup",), complain)
    values.one_of(spec.on_failure, ON_FAILURE, ("on_failure",), complain)
    values.one_of(spec.order, ORDERS, ("order",), complain)
    values.between(spec.order_seed, 0, 2**53 - 1, ("order_seed",), complain)
    for kind in ("lanes", "arms", "measures"):
        if not getattr(spec, kind):
            complain(f"no {kind}: a spec has at least one", path=(kind,))
    if _too_long(spec, ("lanes", "arms", "measures", "gates", "hygiene"), complain):
        return
    for lane in spec.lanes.values():
        _lane(lane, complain)
    for name, measure in spec.measures.items():
        values.name(name, ("measures", name), complain)
        values.filled(measure.uses, ("measures", name, "uses"), complain)
        values.between(measure.trials, 1, MAX_BOOTS, ("measures", name, "trials"), complain)
    _arms(spec, complain)
    values.unique([gate.id for gate in spec.gates], ("gates",), "id", complain)
    for index, gate in enumerate(spec.gates):
        check_gate(gate, ("gates", index), spec, complain)
    values.names_once(spec.hygiene, ("hygiene",), complain)
    if spec.rule is not None:
        _rule(spec.rule, [arm.id for arm in spec.arms], complain)
    if spec.restore is not None:
        check_restore(spec.restore, spec, complain)


def check_site(site: Site, complain: Complain) -> None:
    """Every mistake that a site has by itself."""
    _format(site.ledger, complain)
    values.name(site.name, ("name",), complain)
    values.filled(site.backend, ("backend",), complain)
    values.quantity_between(site.pause, "time", "0 s", "24 h", ("pause",), complain)
    if not site.nodes and site.backend != ENDPOINT:
        complain("no nodes: a site has at least one", path=("nodes",))
    if _too_long(site, ("nodes", "placement", "stand_ins", "endpoints", "scale", "actions", "forbid", "neighbours"), complain):
        return
    values.unique([node.name for node in site.nodes], ("nodes",), "name", complain)
    for index, node in enumerate(site.nodes):
        _node(node, ("nodes", index), complain)
    for lane, names in site.placement.items():
        _placed(names, [node.name for node in site.nodes], ("placement", lane), complain)
    for name, stand_in in site.stand_ins.items():
        values.name(name, ("stand_ins", name), complain)
        _stand_in(stand_in, ("stand_ins", name), complain)
    check_endpoints(site, complain)
    for name, action in site.actions.items():
        _action(action, ("actions", name), complain)
    for key in ("forbid", "elevate", "neighbours"):
        values.words(getattr(site, key), (key,), complain)
    for name, value in site.speed.items():
        if name not in SPEEDS:
            complain(f"unknown key {name!r}", path=("speed", name), hint=did_you_mean(name, SPEEDS))
        else:
            values.between(value, 0.001, 10**9, ("speed", name), complain)


def known_variables(lane: Lane | StandIn) -> set[str]:
    """The variables that the command, environment and changes of ``lane`` may name."""
    said = {f"lane.{name}" for name in LANE_FIELDS if getattr(lane, name, None)}
    return {*VARIABLES, *said, "lane.served_model", *(f"file.{name}" for name in lane.files)}


def _too_long(document: Spec | Site, kinds: Sequence[str], complain: Complain) -> bool:
    """Tell of every list that is longer than what is read, and say whether there is one."""
    for kind in kinds:
        values.at_most(getattr(document, kind), MAX_ITEMS, kind, complain)
    return any(len(getattr(document, kind)) > MAX_ITEMS for kind in kinds)


def _arms(spec: Spec, complain: Complain) -> None:
    by_id = {arm.id: arm for arm in spec.arms}
    values.unique([arm.id for arm in spec.arms], ("arms",), "id", complain)
    found = lines(spec.arms)
    for index, arm in enumerate(spec.arms):
        path: Path = ("arms", index)
        values.name(arm.id, (*path, "id"), complain)
        values.between(arm.boots, 1, MAX_BOOTS, (*path, "boots"), complain)
        _parent(arm, path, by_id, spec.lanes, complain)
        _one_change(arm, path, arm.id in found, complain)
        _change(arm.change, (*path, "change"), _variables_of(found.get(arm.id, ()), spec.lanes, arm.change), complain)
        if len(found.get(arm.id, ())) == MAX_BASES + 2:  # and not once more for each arm that rests on this one
            complain(f"more than {MAX_BASES} bases, one on the other", path=(*path, "base"), value=arm.base)
    indices = {arm.id: index for index, arm in reversed(list(enumerate(spec.arms)))}
    for ring in cycles(spec.arms):
        way = " -> ".join([*ring, ring[0]])
        complain("a cycle in 'base'", path=("arms", indices[ring[0]], "base"), value=way, hint="one arm of it needs a lane")
    total = sum(arm.boots for arm in spec.arms)
    if total > MAX_BOOTS and all(arm.boots <= MAX_BOOTS for arm in spec.arms):
        complain(f"{total} boots in all, and at most {MAX_BOOTS} are made", path=("arms",))


def _parent(arm: Arm, path: Path, by_id: Mapping[str, Arm], lanes: Mapping[str, Lane], complain: Complain) -> None:
    if arm.lane is not None and arm.base is not None:
        complain("an arm has a lane or a base, not both", path=path, value=arm.id)
    if arm.lane is None and arm.base is None:
        complain("an arm needs a lane or a base", path=path, value=arm.id, hint=did_you_mean("", [*by_id, *lanes]))
    if arm.lane is not None and arm.lane not in lanes:
        where = (*path, "lane")
        complain("unknown lane", path=where, value=arm.lane, hint=did_you_mean(arm.lane, lanes), rests_on=(("lanes",),))
    if arm.base is not None and arm.base not in by_id:
        complain("unknown arm", path=(*path, "base"), value=arm.base, hint=did_you_mean(arm.base, by_id))


def _one_change(arm: Arm, path: Path, has_line: bool, complain: Complain) -> None:
    changes = count_changes(arm.change)
    if len(changes) > 1 and not (arm.several or "").strip():
        complain(
            f"arm {arm.id!r} makes {len(changes)} changes, and an arm makes one",
            path=(*path, "change"),
            value=", ".join(changes),
            hint='split it, or say why they go together: several = "…"',
            rests_on=((*path, "several"),),
        )
    if not changes and has_line and arm.base is not None and arm.role is Role.CANDIDATE:
        complain(
            f"arm {arm.id!r} changes nothing against its base",
            path=path,
            hint='give it a change, or role = "control" if it is a warm reboot',
            rests_on=((*path, "role"),),
            inside=(*path, "change"),
        )


def _variables_of(line: Line, lanes: Mapping[str, Lane], change: Change) -> set[str]:
    """What a change may name: what its lane has, or anything at all where no lane is known."""
    lane = lanes.get(line[0].lane or "") if line else None
    return known_variables(lane) if lane is not None else set(change_variables(change))


def change_variables(change: Change) -> Iterable[str]:
    """The variables that a change names."""
    for text in (*change.args, *change.env.values()):
        yield from values.variables(text)


def _lane(lane: Lane, complain: Complain) -> None:
    path: Path = ("lanes", lane.id)
    values.name(lane.id, path, complain)
    values.filled(lane.engine, (*path, "engine"), complain)
    values.filled(lane.model, (*path, "model"), complain)
    values.between(lane.nodes, 1, MAX_ITEMS, (*path, "nodes"), complain)
    for index, tree in enumerate(lane.trees):
        _tree(tree, (*path, "trees", index), complain)
    values.unique([tree.name for tree in lane.trees], (*path, "trees"), "name", complain)
    _server(lane, path, complain)
    if lane.container is not None:
        _container(lane, lane.container, (*path, "container"), complain)


def _container(lane: Lane, container: Container, path: Path, complain: Complain) -> None:
    if not lane.image:
        complain("a container without an image", path=path, hint="say image = and image_id = in the lane")
    known = known_variables(lane)
    for item in attrs.fields(Container):
        value = getattr(container, item.name)
        for text in value.values() if isinstance(value, Mapping) else [value] if isinstance(value, str) else value or ():
            values.template(text, (*path, item.name), known, complain)


def _stand_in(stand_in: StandIn, path: Path, complain: Complain) -> None:
    for name in ("why", "engine", "model"):
        values.filled(getattr(stand_in, name), (*path, name), complain)
    if not stand_in.command:
        complain("a stand-in without a command", path=(*path, "command"))
    _server(stand_in, path, complain)
    for name, change in stand_in.arms.items():
        _change(change, (*path, "arms", name), known_variables(stand_in), complain)


def _server(lane: Lane | StandIn, path: Path, complain: Complain) -> None:
    values.between(lane.port, 0, 65_535, (*path, "port"), complain)
    values.quantity_between(lane.ready_within, "time", "1 ms", "24 h", (*path, "ready_within"), complain)
    known = known_variables(lane)
    if lane.command:
        values.filled(lane.command[0], (*path, "command", 0), complain)
    for index, word in enumerate(lane.command):
        values.template(word, (*path, "command", index), known, complain)
    _env(lane.env, path, known, complain)
    for name, version in lane.packages.items():
        values.package_name(name, (*path, "packages", name), complain)
        values.filled(version, (*path, "packages", name), complain)
    for name, pin in lane.files.items():
        values.name(name, (*path, "files", name), complain)
        _pin(pin, (*path, "files", name), complain)
    for name, manifest in lane.manifests.items():
        values.name(name, (*path, "manifests", name), complain)
        _manifest(manifest, (*path, "manifests", name), complain)
    values.words(lane.caches, (*path, "caches"), complain)


def _env(env: Mapping[str, str], path: Path, known: set[str], complain: Complain) -> None:
    for name, value in env.items():
        values.env_name(name, (*path, "env", name), complain)
        values.template(value, (*path, "env", name), known, complain)


def _pin(pin: FilePin, path: Path, complain: Complain) -> None:
    values.sha256(pin.sha256, (*path, "sha256"), complain)
    if pin.size is not None:
        values.between(pin.size, 0, 2**53 - 1, (*path, "size"), complain)
    inside = pin.package is not None and pin.file is not None
    if inside == (pin.path is not None) or (pin.package is None) != (pin.file is None):
        where = ((*path, "path"), (*path, "file"), (*path, "package"))
        complain("a file has a path, or a package and a file in it", path=path, rests_on=where)
    if pin.file is not None and (pin.file.startswith("/") or ".." in pin.file.split("/")):
        complain("a path that leaves its package", path=(*path, "file"), value=pin.file)
    for name in ("path", "package", "file"):
        text = getattr(pin, name)
        if text is not None:
            values.filled(text, (*path, name), complain)
            values.without_nul(text, (*path, name), complain)


def _manifest(manifest: Manifest, path: Path, complain: Complain) -> None:
    values.sha256(manifest.sha256, (*path, "sha256"), complain)
    for key in ("path", "root"):
        values.filled(getattr(manifest, key), (*path, key), complain)
        values.without_nul(getattr(manifest, key), (*path, key), complain)
    for key, least in (("count", 1), ("size", 0)):
        if (value := getattr(manifest, key)) is not None:
            values.between(value, least, 2**53 - 1, (*path, key), complain)


def _tree(tree: Tree, path: Path, complain: Complain) -> None:
    values.filled(tree.name, (*path, "name"), complain)
    if tree.path is not None and tree.commit is None:
        complain("a checkout without a commit", path=(*path, "path"), value=tree.path, hint="pin the commit that was built")
    for key in ("repo", "commit"):
        if (getattr(tree, key) or "").startswith("-"):
            complain("a text that git would take for an option", path=(*path, key), value=getattr(tree, key))
    for key in ("path", "version_file"):
        text = getattr(tree, key)
        if text is not None:
            values.filled(text, (*path, key), complain)
            values.without_nul(text, (*path, key), complain)


def _action(action: Action, path: Path, complain: Complain) -> None:
    values.name(action.id, path, complain)
    if action.id in ACTIONS:
        complain("an action of this name is built in", path=path, value=action.id, hint=f"built in: {', '.join(ACTIONS)}")
    if not action.argv:
        complain("an action without an argv", path=(*path, "argv"))
    values.words(action.argv[:1], (*path, "argv"), complain)
    for index, word in enumerate(action.argv[1:], start=1):
        values.without_nul(word, (*path, "argv", index), complain)
    values.one_of(action.privilege, PRIVILEGES, (*path, "privilege"), complain)


def _change(change: Change, path: Path, known: set[str], complain: Complain) -> None:
    if change.args and settings(change.args)[0].flag is None:
        hint = "a word alone would become a value of the flag before it"
        complain("the arguments of a change begin with a flag", path=(*path, "args", 0), value=change.args[0], hint=hint)
    for index, word in enumerate(change.args):
        values.template(word, (*path, "args", index), known, complain)
    _env(change.env, path, known, complain)
    for name in sorted(set(change.env) & set(change.drop_env)):
        complain("a variable that is set and dropped", path=(*path, "env", name), value=name)
    flags = {item.flag for item in settings(change.args)}
    for index, flag in enumerate(change.drop_args):
        if flag in flags:
            hint = "to set it is enough: it takes the place of the base's"
            complain("an argument that is set and dropped", path=(*path, "drop_args", index), value=flag, hint=hint)


def _node(node: Node, path: Path, complain: Complain) -> None:
    values.name(node.name, (*path, "name"), complain)
    values.filled(node.host, (*path, "host"), complain)
    values.address(node.ip, (*path, "ip"), complain)
    _env(node.env, path, set(VARIABLES), complain)


def _placed(names: Sequence[str], known: Sequence[str], path: Path, complain: Complain) -> None:
    if not names:
        complain("a lane on no node", path=path, hint="name its nodes, the head first")
    for index, name in enumerate(names):
        if name not in known:
            complain("unknown node", path=(*path, index), value=name, hint=did_you_mean(name, known))
    for name in values.repeated(names):
        complain("a node that stands twice", path=path, value=name)


def _rule(rule: Rule, arms: list[str], complain: Complain) -> None:
    if not rule.metrics:
        complain("a rule judges by at least one metric", path=("rule", "metrics"))
    for index, name in enumerate(rule.metrics):
        if metrics.describe(name).family is None:
            examples = [family.example for family in metrics.FAMILIES]
            complain("unknown metric", path=("rule", "metrics", index), value=name, hint=did_you_mean(name, examples))
    for name in values.repeated(rule.metrics):
        complain("a metric that stands twice", path=("rule", "metrics"), value=name)
    for key in ("better_than", "worse_than", "drift", "effect", "noise"):
        if getattr(rule, key) is not None:
            values.quantity_between(getattr(rule, key), "ratio", "0 %", "1000 %", ("rule", key), complain)
    values.quantity_between(rule.window, "time", "1 s", "8760 h", ("rule", "window"), complain)
    for name in values.repeated(rule.alike):
        complain("a condition that stands twice", path=("rule", "alike"), value=name)
    if rule.control is not None and rule.control not in arms:
        complain("unknown arm", path=("rule", "control"), value=rule.control, hint=did_you_mean(rule.control, arms))
    for arm, control in rule.controls.items():
        for name in dict.fromkeys((arm, control)):
            if name not in arms:
                complain("unknown arm", path=("rule", "controls", arm), value=name, hint=did_you_mean(name, arms))
        if arm == control:
            complain("an arm that is its own control", path=("rule", "controls", arm), value=arm)


def _format(version: int, complain: Complain) -> None:
    if version != FORMAT:
        complain(f"format version {version} is not known here", path=("ledger",), value=version, hint=f"write ledger = {FORMAT}")
