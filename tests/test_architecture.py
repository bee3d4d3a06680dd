"""The floor plan and the house rules, held against the code.

What it does: reads every module of ``ledger/`` as a syntax tree and holds it against the rules of
``docs/explanation/floor-plan.md``. What it does not do: import what it judges.
Rules kept: each rule is a pure function of a module's name and source that lists what breaks it, and each has a planted source
in ``test_house_rules`` that breaks it, so that no rule can stop working unseen.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
Rule = Callable[[str, str], list[str]]
Function = ast.FunctionDef | ast.AsyncFunctionDef

# The rooms from the ground up; rooms of one floor stand beside each other.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("core",),
    ("spec",),
    ("receipt",),
    ("store", "backends", "instruments"),
    ("analysis",),
    ("query", "run"),
    ("publish",),
    ("cli",),
)
# Rooms that import less than all the floors below them.
NARROWER: Mapping[str, frozenset[str]] = {
    "receipt": frozenset({"core"}),
    "analysis": frozenset({"core", "spec", "receipt"}),
}
APART = "engine"  # programs of their own, started by argv and never imported
OWNERS: Mapping[str, str] = {
    "duckdb": "ledger.query",
    "git": "ledger.store.git",
    "rich": "ledger.cli",
    "click": "ledger.cli",
    "lark": "ledger.query",
}
DYNAMIC = frozenset({"ledger.cli.main", "ledger.core.late"})  # the table `command -> "module:attribute"`, and what is late
STANDARD_ONLY = ("ledger.backends.warden", "ledger.backends.sampler")
OUTSIDE_WORLD = frozenset(
    {
        "asyncio",
        "http",
        "io",
        "os",
        "pathlib",
        "secrets",
        "shutil",
        "socket",
        "subprocess",
        "sys",
        "tempfile",
        "threading",
        "time",
    }
    | {"urllib"}
)
VAGUE = frozenset({"utils", "util", "helpers", "helper", "common", "misc", "tools", "stuff"})
YAML_READER = "ledger.spec.yaml_text"
MAX_LINES = 500


# --- what a source says -----------------------------------------------------------------------------------------------------


def imports(source: str) -> Iterator[tuple[str, tuple[str, ...], int]]:
    """Every import anywhere in ``source``: the module, the names taken from it (none for a plain import), the line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, (), node.lineno
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or ""), tuple(alias.name for alias in node.names), node.lineno


def own(source: str) -> Iterator[tuple[str, int]]:
    """The imports of this project, as full names down to what is taken: ``ledger.core.errors.Problem``."""
    for module, names, line in imports(source):
        if module == "ledger" or module.startswith("ledger."):
            yield from ((f"{module}.{name}", line) for name in names or ("",))


def room(name: str) -> str:
    """The room of a module or of an imported name; empty for the package itself and for its way in."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in {*ROOMS, APART} else ""


ROOMS = frozenset(name for floor in FLOORS for name in floor)


def permitted(name: str) -> frozenset[str]:
    """The rooms that a room may import besides itself."""
    below: set[str] = set()
    for floor in FLOORS:
        if name in floor:
            return NARROWER.get(name, frozenset(below))
        below |= set(floor)
    return ROOMS


def comments(source: str) -> Iterator[tuple[str, int]]:
    """The comments of ``source`` with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string, token.start[0]


def decorators(node: ast.ClassDef) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The last name of each decorator, with its constant keyword arguments."""
    for item in node.decorator_list:
        call = item if isinstance(item, ast.Call) else None
        target = call.func if call else item
        name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
        words = call.keywords if call else []
        yield name, {word.arg or "": word.value.value for word in words if isinstance(word.value, ast.Constant)}


# --- the rules --------------------------------------------------------------------------------------------------------------


def imports_downward(name: str, source: str) -> list[str]:
    """A room imports itself and the rooms it is permitted; the package's own version is for everyone above the ground floor."""
    here = room(name)
    if name == "ledger":
        return [f"{line}: the package itself imports {target}" for target, line in own(source)]
    if here in ("", APART):
        return []
    allowed = permitted(here) | {here, ""}
    return [f"{line}: {here} imports {target}" for target, line in own(source) if room(target) not in allowed]


def engine_stands_apart(name: str, source: str) -> list[str]:
    """``ledger.engine`` imports nothing of the project, and nothing imports it."""
    if room(name) == APART:
        return [f"{line}: engine imports {target}" for target, line in own(source)]
    return [f"{line}: imports {target}" for target, line in own(source) if room(target) == APART]


def packages_stay_home(name: str, source: str) -> list[str]:
    """duckdb, git, rich, click and lark are imported by their owners alone."""
    found = []
    for module, _, line in imports(source):
        owner = OWNERS.get(module.split(".")[0])
        if owner and name != owner and not name.startswith(owner + "."):
            found.append(f"{line}: {module} belongs to {owner}")
    return found


def git_is_one_module(name: str, source: str) -> list[str]:
    """The owner of GitPython is a module, not a package that could grow more of them."""
    return [f"{name} has become a package"] if name.startswith(OWNERS["git"] + ".") else []


def imports_at_the_top(name: str, source: str) -> list[str]:
    """No import inside a function, by statement or by call; ``cli.main`` and ``core.late`` alone import by name."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, Function):
            inner = [item for item in ast.walk(node) if isinstance(item, ast.Import | ast.ImportFrom)]
            found += [f"{item.lineno}: an import inside {node.name}" for item in inner]
        if isinstance(node, ast.Call) and name not in DYNAMIC:
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__"):
                found.append(f"{node.lineno}: {called}()")
    return found


def late_ones_are_declared(name: str, source: str) -> list[str]:
    """``x = Late("a.x")`` stands beside an import of ``a.x`` under TYPE_CHECKING, where types and the floor plan see it."""
    tree = ast.parse(source)
    declared = {
        f"{item.module}.{alias.name}"
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for item in node.body
        if isinstance(item, ast.ImportFrom)
        for alias in item.names
    }
    asked = [
        (node.lineno, ast.unparse(node.targets[0]), ast.unparse(node.value.args[0]).strip("'") if node.value.args else "")
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "Late"
    ]
    return [
        f"{line}: {target} = Late({wanted})"
        for line, target, wanted in asked
        if wanted not in declared or wanted.rpartition(".")[2] != target
    ]


def imports_are_absolute(name: str, source: str) -> list[str]:
    """No ``from . import``: a module's name stands in full wherever it is imported, and no ``*``."""
    return [
        f"{line}: from {module} import {', '.join(names)}"
        for module, names, line in imports(source)
        if module[0] == "." or "*" in names
    ]


def named_for_what_it_is(name: str, source: str) -> list[str]:
    """No module called utils, helpers, common or misc."""
    return [f"a module called {part}" for part in name.split(".") if part.strip("_") in VAGUE]


def has_a_docstring(name: str, source: str) -> list[str]:
    """Every module, public class, public function and public method says what it is."""
    tree = ast.parse(source)
    found = [] if ast.get_docstring(tree) else ["no module docstring"]
    return found + list(_undocumented(tree.body))


def _undocumented(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if not isinstance(node, ast.ClassDef | Function) or node.name.startswith("_"):
            continue
        if not ast.get_docstring(node):
            yield f"{node.lineno}: {node.name} has no docstring"
        if isinstance(node, ast.ClassDef):
            yield from _undocumented(node.body)


def is_short(name: str, source: str) -> list[str]:
    """No file above 500 lines."""
    lines = len(source.splitlines())
    return [f"{lines} lines"] if lines > MAX_LINES else []


def ignores_say_why(name: str, source: str) -> list[str]:
    """Every ``type: ignore`` and ``noqa`` names its codes and has its reason in the same comment."""
    good = re.compile(r"#\s*(?:type: ignore\[[\w, -]+\]\s*#|noqa: [A-Z]+[0-9]+(?:, ?[A-Z]+[0-9]+)*\s*-)\s*\w.*\w")
    found = []
    for comment, line in comments(source):
        if re.search(r"type:\s*ignore|\bnoqa\b", comment) and not good.search(comment):
            found.append(f"{line}: {comment}")
    return found


def records_are_frozen(name: str, source: str) -> list[str]:
    """Records are attrs ``frozen(kw_only=True)``; a value of one field may be given by place; what is mutable has behaviour."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            found += [f"{node.lineno}: {node.name}: {wrong}" for wrong in _record_mistakes(node)]
    return found


def _record_mistakes(node: ast.ClassDef) -> Iterator[str]:
    fields = [item for item in node.body if isinstance(item, ast.AnnAssign)]
    methods = [item for item in node.body if isinstance(item, Function)]
    for name, words in decorators(node):
        if name == "dataclass":
            yield "a dataclass"
        elif name == "frozen" and words.get("kw_only") is not True and len(fields) > 1:
            yield "frozen without kw_only=True"
        elif name in ("define", "mutable", "s", "attrs") and not methods:
            yield f"a record that is not frozen (@{name})"
    bases = {base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "") for base in node.bases}
    if bases & {"NamedTuple", "TypedDict"}:
        yield "a record that is no attrs class"


def judges_without_a_world(name: str, source: str) -> list[str]:
    """``analysis`` has no I/O and no clock: seeds and times are passed in."""
    if room(name) != "analysis":
        return []
    found = [f"{line}: imports {module}" for module, _, line in imports(source) if module.split(".")[0] in OUTSIDE_WORLD]
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    for call in calls:
        called = ast.unparse(call.func)
        unseeded = called in ("random.Random", "Random", "numpy.random.default_rng") and not call.args
        if called in ("open", "print", "input") or re.search(r"\b(?:now|utcnow|today)$", called) or unseeded:
            found.append(f"{call.lineno}: calls {called}()")
    return found


def executes_nothing(name: str, source: str) -> list[str]:
    """Nothing read from outside is ever run: no eval, exec, shell or pickle; of YAML one module, and its composer alone."""
    banned = {"pickle", "marshal", "shelve", "jinja2", *(() if name == YAML_READER else ("yaml",))}
    found = [f"{line}: {module}" for module, _, line in imports(source) if module in banned]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            shell = any(word.arg == "shell" and ast.unparse(word.value) != "False" for word in node.keywords)
            makes_objects = called.startswith("yaml.") and called != "yaml.compose"
            if called in ("eval", "exec", "compile", "os.system", "os.popen") or shell or makes_objects:
                found.append(f"{node.lineno}: {called}" + (" through a shell" if shell else ""))
    return found


def stands_on_the_standard_library(name: str, source: str) -> list[str]:
    """The warden is run with ``python -I -S``: it imports the standard library alone."""
    if name not in STANDARD_ONLY:
        return []
    return [f"{line}: {module}" for module, _, line in imports(source) if module.split(".")[0] not in sys.stdlib_module_names]


RULES: tuple[Rule, ...] = (
    imports_downward,
    engine_stands_apart,
    packages_stay_home,
    git_is_one_module,
    imports_at_the_top,
    late_ones_are_declared,
    imports_are_absolute,
    named_for_what_it_is,
    has_a_docstring,
    is_short,
    ignores_say_why,
    records_are_frozen,
    judges_without_a_world,
    executes_nothing,
    stands_on_the_standard_library,
)


def cycles(modules: Mapping[str, str]) -> list[list[str]]:
    """Every knot of modules that import each other, in-function imports counted."""
    graph = {name: {_module_of(target, modules) for target, _ in own(source)} - {name, ""} for name, source in modules.items()}
    reach = {name: _reachable(name, graph) for name in graph}
    knots = {frozenset(other for other in reach[name] if name in reach[other]) for name in graph if name in reach[name]}
    return sorted(sorted(knot) for knot in knots)


def _module_of(target: str, modules: Mapping[str, str]) -> str:
    """The longest module of the tree that an imported name is, or is in."""
    while target and target not in modules:
        target = target.rpartition(".")[0]
    return target


def _reachable(start: str, graph: Mapping[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    todo = list(graph[start])
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += graph[name]
    return seen


# --- the code ---------------------------------------------------------------------------------------------------------------


def sources(folder: str) -> dict[str, str]:
    """The modules below a folder of the repository, by dotted name."""
    found = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text(encoding="utf-8")
    return found


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_code_keeps(rule: Rule) -> None:
    broken = [f"{name}:{wrong}" for name, source in sources("ledger").items() for wrong in rule(name, source)]
    assert not broken, f"{rule.__doc__}\n" + "\n".join(broken)


@pytest.mark.parametrize("folder", ["tests", "benchmarks", "docs"])
def test_what_stands_around_the_code_keeps_the_plain_rules(folder: str) -> None:
    rules = (named_for_what_it_is, is_short, ignores_say_why, imports_are_absolute)
    broken = [f"{name}:{wrong}" for name, source in sources(folder).items() for rule in rules for wrong in rule(name, source)]
    assert not broken, "\n".join(broken)


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert cycles(sources("ledger")) == []


def test_every_folder_is_a_room_of_the_plan_and_every_rule_looks_at_something() -> None:
    names = sources("ledger")
    folders = {path.parent.name for path in (ROOT / "ledger").glob("*/__init__.py")}
    assert folders <= ROOMS | {APART}
    assert folders >= {"core", "spec", "receipt", "store", "backends", "instruments", "analysis", "run", "query", "cli", APART}
    assert {*DYNAMIC, *STANDARD_ONLY, OWNERS["git"]} <= set(names)
    assert sum(1 for source in names.values() for _ in own(source)) > 100


def test_the_page_draws_the_same_floors() -> None:
    page = (ROOT / "docs" / "explanation" / "floor-plan.md").read_text(encoding="utf-8")
    drawing = page.partition("```text\n")[2].partition("```")[0]
    floors = [tuple(name.strip() for name in re.split(r" {2,}", line)[0].split("|")) for line in drawing.splitlines()]
    assert [set(floor) for floor in floors] == [set(floor) for floor in reversed(FLOORS)]
