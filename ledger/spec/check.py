"""What one part of a spec or site says of another, and what a single value may be.

What it does: ids, references, cycles, one change for each arm, units, ranges, words, variables. What it does not do: join a
spec with a site (``plan``) or know an instrument's parameters (``run``). Rules kept: every mistake is told; a value that the
reader has already refused stands here as an empty one and is passed over.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from ledger.core import metrics, units
from ledger.core.errors import LedgerError, did_you_mean
from ledger.core.words import Role
from ledger.spec import interpolate
from ledger.spec.change import count_changes
from ledger.spec.locate import Path
from ledger.spec.model import FORMAT, Arm, Change, FilePin, GateSpec, Lane, Rule, Site, Spec, StandIn

Complain = Callable[..., None]

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
SHA256 = re.compile(r"[0-9a-f]{64}")
OPERATORS = ("<", "<=", "==", "!=", ">=", ">")
WHEN = ("before", "after")
ON_FAIL = ("block", "mark")
LANE_FIELDS = ("id", "engine", "model", "model_revision", "quantization", "served_model", "image", "recipe", "recipe_revision")
VARIABLES = ("node.ip", "node.name", "head.ip", "rank", "port", "python", "site.name")
REQUEST_COUNTS = ("requests.failed", "requests.ok", "requests.launched")
MAX_BOOTS = 1000


def check_spec(spec: Spec, complain: Complain) -> None:
    """Every mistake that a spec has by itself."""
    _format(spec.ledger, complain)
    _id(spec.name, ("name",), complain)
    _filled(spec.question, ("question",), complain)
    _range(spec.warmup, 0, 10_000, ("warmup",), complain)
    for kind, table in (("lanes", spec.lanes), ("measures", spec.measures)):
        if not table:
            complain(f"no {kind}: a spec has at least one", path=(kind,))
        for name in table:
            _id(name, (kind, name), complain)
    for lane in spec.lanes.values():
        _lane(lane, complain)
    for name, measure in spec.measures.items():
        _filled(measure.uses, ("measures", name, "uses"), complain)
        _range(measure.trials, 1, MAX_BOOTS, ("measures", name, "trials"), complain)
    _arms(spec, complain)
    _unique([gate.id for gate in spec.gates], "gates", complain)
    for index, gate in enumerate(spec.gates):
        _gate(gate, ("gates", index), complain)
    if spec.rule is not None:
        _rule(spec.rule, [arm.id for arm in spec.arms], complain)


def check_site(site: Site, complain: Complain) -> None:
    """Every mistake that a site has by itself."""
    _format(site.ledger, complain)
    _id(site.name, ("name",), complain)
    _filled(site.backend, ("backend",), complain)
    if not site.nodes:
        complain("no nodes: a site has at least one", path=("nodes",))
    _unique([node.name for node in site.nodes], "nodes", complain, key="name")
    for name, stand_in in site.stand_ins.items():
        _id(name, ("stand_ins", name), complain)
        _stand_in(stand_in, ("stand_ins", name), complain)
    for name, value in site.speed.items():
        known = ("boot_s", "prefill_tok_s", "decode_tok_s")
        if name not in known:
            complain(f"unknown key {name!r}", path=("speed", name), hint=did_you_mean(name, known))
        elif not value > 0:
            complain("expected a number above zero", path=("speed", name), value=value)


def _arms(spec: Spec, complain: Complain) -> None:
    if not spec.arms:
        complain("no arms: a spec has at least one", path=("arms",))
    by_id = {arm.id: arm for arm in spec.arms}
    _unique([arm.id for arm in spec.arms], "arms", complain)
    for index, arm in enumerate(spec.arms):
        path: Path = ("arms", index)
        _id(arm.id, (*path, "id"), complain)
        _range(arm.boots, 1, MAX_BOOTS, (*path, "boots"), complain)
        _parent(arm, path, by_id, spec.lanes, complain)
        _changes(arm, path, complain)
        _texts(arm.change, (*path, "change"), _known(()) | _files_named(arm.change), complain)
    for index in _cycles(spec.arms):
        loop = _loop(spec.arms[index], by_id)
        complain("a cycle in 'base'", path=("arms", index, "base"), value=" -> ".join(loop), hint="one arm of it needs a lane")


def _parent(arm: Arm, path: Path, by_id: Mapping[str, Arm], lanes: Mapping[str, Lane], complain: Complain) -> None:
    if (arm.lane is None) == (arm.base is None):
        what = "an arm has a lane or a base, not both" if arm.lane else "an arm needs a lane or a base"
        complain(what, path=path, value=arm.id, hint=did_you_mean(arm.base or "", [*by_id, *lanes]) if not arm.lane else None)
    if arm.lane and arm.lane not in lanes:
        complain("unknown lane", path=(*path, "lane"), value=arm.lane, hint=did_you_mean(arm.lane, lanes))
    if arm.base and arm.base not in by_id:
        complain("unknown arm", path=(*path, "base"), value=arm.base, hint=did_you_mean(arm.base, by_id))


def _changes(arm: Arm, path: Path, complain: Complain) -> None:
    changes = count_changes(arm.change)
    if len(changes) > 1 and not arm.several:
        complain(
            f"arm {arm.id!r} makes {len(changes)} changes, and an arm makes one",
            path=(*path, "change"),
            value=", ".join(changes),
            hint='split it, or say why they go together: several = "…"',
        )
    if not changes and arm.base is not None and arm.role is Role.CANDIDATE:
        complain(
            f"arm {arm.id!r} changes nothing against its base",
            path=path,
            hint='give it a change, or role = "control" if it is a warm reboot',
        )


def _cycles(arms: tuple[Arm, ...]) -> Iterable[int]:
    """The index of the first arm of each cycle."""
    by_id = {arm.id: arm for arm in arms}
    told: set[str] = set()
    for index, arm in enumerate(arms):
        loop = _loop(arm, by_id)
        if loop and loop[0] == arm.id and not told & set(loop):
            told |= set(loop)
            yield index


def _loop(arm: Arm, by_id: Mapping[str, Arm]) -> list[str]:
    """The ids from ``arm`` back to itself, or nothing when its bases end."""
    path = [arm.id]
    while (base := by_id.get(by_id[path[-1]].base or "")) is not None:
        path.append(base.id)
        if base.id in path[:-1]:
            return path[path.index(base.id) :] if base.id == arm.id else []
    return []


def _lane(lane: Lane, complain: Complain) -> None:
    path: Path = ("lanes", lane.id)
    _filled(lane.engine, (*path, "engine"), complain)
    _filled(lane.model, (*path, "model"), complain)
    _range(lane.nodes, 1, 100_000, (*path, "nodes"), complain)
    _server(lane, path, complain)


def _stand_in(stand_in: StandIn, path: Path, complain: Complain) -> None:
    for name in ("why", "engine", "model"):
        _filled(getattr(stand_in, name), (*path, name), complain)
    _server(stand_in, path, complain)
    for name, change in stand_in.arms.items():
        _texts(change, (*path, "arms", name), _known(stand_in.files), complain)


def _server(lane: Lane | StandIn, path: Path, complain: Complain) -> None:
    _range(lane.port, 0, 65_535, (*path, "port"), complain)
    _quantity(lane.ready_within, "time", (*path, "ready_within"), complain)
    known = _known(lane.files)
    for index, word in enumerate(lane.command):
        _variables(word, (*path, "command", index), known, complain)
    for name, value in lane.env.items():
        _env_name(name, (*path, "env", name), complain)
        _variables(value, (*path, "env", name), known, complain)
    for name, pin in lane.files.items():
        _pin(pin, (*path, "files", name), complain)


def _pin(pin: FilePin, path: Path, complain: Complain) -> None:
    if not SHA256.fullmatch(pin.sha256) and pin.sha256:
        complain("expected 64 hexadecimal digits, lower case", path=(*path, "sha256"), value=pin.sha256)
    inside = pin.package is not None and pin.file is not None
    if inside == (pin.path is not None) or (pin.package is None) != (pin.file is None):
        complain("a file has a path, or a package and a file in it", path=path)
    for name in ("path", "file"):
        value = getattr(pin, name)
        if value is not None and name == "file" and (value.startswith("/") or ".." in value.split("/")):
            complain("a path that leaves its package", path=(*path, name), value=value)


def _texts(change: Change, path: Path, known: set[str], complain: Complain) -> None:
    for index, word in enumerate(change.args):
        _variables(word, (*path, "args", index), known, complain)
    for name, value in change.env.items():
        _env_name(name, (*path, "env", name), complain)
        _variables(value, (*path, "env", name), known, complain)
    both = set(change.env) & set(change.drop_env)
    for name in sorted(both):
        complain("a variable that is set and dropped", path=(*path, "env", name), value=name)


def _gate(gate: GateSpec, path: Path, complain: Complain) -> None:
    _id(gate.id, (*path, "id"), complain)
    _filled(gate.text, (*path, "text"), complain)
    _one_of(gate.op, OPERATORS, (*path, "op"), complain)
    _one_of(gate.when, WHEN, (*path, "when"), complain)
    _one_of(gate.on_fail, ON_FAIL, (*path, "on_fail"), complain)
    _range(gate.version, 1, 1_000_000, (*path, "version"), complain)
    _quantity(gate.value, None, (*path, "value"), complain)
    if not _can_be_read(gate.reads) and gate.reads:
        examples = [*REQUEST_COUNTS, "host.MemAvailable", *(family.example for family in metrics.FAMILIES)]
        complain("unknown reading", path=(*path, "reads"), value=gate.reads, hint=did_you_mean(gate.reads, examples))
    elif gate.when == "before" and gate.reads and not gate.reads.startswith("host."):
        complain("only the host can be read before a boot", path=(*path, "reads"), value=gate.reads, hint='when = "after"')


def _can_be_read(reads: str) -> bool:
    return reads in REQUEST_COUNTS or reads.startswith("host.") or metrics.describe(reads).family is not None


def _rule(rule: Rule, arms: list[str], complain: Complain) -> None:
    if not rule.metrics:
        complain("a rule judges by at least one metric", path=("rule", "metrics"))
    for index, name in enumerate(rule.metrics):
        if metrics.describe(name).family is None and name:
            examples = [family.example for family in metrics.FAMILIES]
            complain("unknown metric", path=("rule", "metrics", index), value=name, hint=did_you_mean(name, examples))
    for key in ("better_than", "worse_than"):
        _quantity(getattr(rule, key), "ratio", ("rule", key), complain)
    if rule.control and rule.control not in arms:
        complain("unknown arm", path=("rule", "control"), value=rule.control, hint=did_you_mean(rule.control, arms))
    for arm, control in rule.controls.items():
        for name in {arm, control} - set(arms):
            complain("unknown arm", path=("rule", "controls", arm), value=name, hint=did_you_mean(name, arms))


def _known(files: Iterable[str]) -> set[str]:
    return {*VARIABLES, *(f"lane.{name}" for name in LANE_FIELDS), *(f"file.{name}" for name in files)}


def _variables(text: str, path: Path, known: set[str], complain: Complain) -> None:
    if "\0" in text:
        complain("a NUL character, which no argument or variable can hold", path=path, value=text)
    for problem in interpolate.check(text, known):
        complain(problem.what, path=path, value=problem.value, hint=problem.hint)


def _files_named(change: Change) -> set[str]:
    """The files that a change names: which of them its lane has is not known before the plan joins the two."""
    texts = (*change.args, *change.env.values())
    return {name for text in texts for name in interpolate.names_or_none(text) if name.startswith("file.")}


def _format(version: int, complain: Complain) -> None:
    if version != FORMAT:
        complain(f"format version {version} is not known here", path=("ledger",), value=version, hint=f"write ledger = {FORMAT}")


def _id(text: str, path: Path, complain: Complain) -> None:
    if text and not ID.fullmatch(text):
        hint = "a name has letters, digits, '.', '_' and '-', begins with a letter or digit, and has at most 64 of them"
        complain("not a name", path=path, value=text, hint=hint)


def _env_name(name: str, path: Path, complain: Complain) -> None:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        complain("not the name of a variable", path=path, value=name)


def _filled(text: str, path: Path, complain: Complain) -> None:
    if text != "" and not text.strip():
        complain("an empty text", path=path, value=text)


def _range(value: int, low: int, high: int, path: Path, complain: Complain) -> None:
    if not low <= value <= high:
        complain(f"expected a number from {low} to {high}", path=path, value=value)


def _one_of(word: str, words: tuple[str, ...], path: Path, complain: Complain) -> None:
    if word and word not in words:
        complain(f"expected one of {', '.join(words)}", path=path, value=word, hint=did_you_mean(word, words))


def _quantity(text: str, dimension: str | None, path: Path, complain: Complain) -> None:
    if not text:
        return
    try:
        units.parse(text, dimension=dimension, default_unit="ratio" if dimension == "ratio" else "")
    except LedgerError as error:
        for problem in error.problems:
            complain(problem.what, path=path, value=problem.value, hint=problem.hint)


def _unique(names: list[str], table: str, complain: Complain, *, key: str = "id") -> None:
    for name, times in Counter(filter(None, names)).items():
        if times > 1:
            index = len(names) - 1 - names[::-1].index(name)
            first = names.index(name)
            complain(f"a second {name!r}", path=(table, index, key), value=name, hint=f"the first is {table}[{first}]")
