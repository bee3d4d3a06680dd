"""Every house rule can fail: planted sources that break it, and good ones beside them that keep it."""

import pytest

from tests.test_architecture import (
    RULES,
    Rule,
    cycles,
    engine_stands_apart,
    executes_nothing,
    git_is_one_module,
    has_a_docstring,
    ignores_say_why,
    imports_are_absolute,
    imports_at_the_top,
    imports_downward,
    is_short,
    judges_without_a_world,
    late_ones_are_declared,
    named_for_what_it_is,
    packages_stay_home,
    records_are_frozen,
    stands_on_the_standard_library,
)

DOC = '"""Says what it is."""\n'
BREAKS: tuple[tuple[Rule, str, str], ...] = (
    (imports_downward, "ledger.core.errors", "from ledger.spec.model import Spec"),
    (imports_downward, "ledger.receipt.codec", "from ledger.spec import model"),
    (imports_downward, "ledger.store.git", "import ledger.backends.base"),
    (imports_downward, "ledger.query.ask", "from ledger.run.session import Summary"),
    (imports_downward, "ledger.analysis.rule", "from ledger.instruments.base import Reading"),
    (imports_downward, "ledger.spec.plan", "from ledger import cli"),
    (imports_downward, "ledger.run.boot", "def f():\n    from ledger.cli.main import cli"),
    (imports_downward, "ledger", "from ledger.core import errors"),
    (engine_stands_apart, "ledger.engine.llama_server", "from ledger.core import errors"),
    (engine_stands_apart, "ledger.run.boot", "from ledger.engine import llama_server"),
    (packages_stay_home, "ledger.run.boot", "import duckdb"),
    (packages_stay_home, "ledger.store.ledger", "from git import Repo"),
    (packages_stay_home, "ledger.store.git_objects", "import git.exc"),
    (packages_stay_home, "ledger.query.ask", "from rich.table import Table"),
    (packages_stay_home, "ledger.run.session", "import click"),
    (packages_stay_home, "ledger.spec.load", "from lark import Lark"),
    (git_is_one_module, "ledger.store.git.commit", ""),
    (imports_at_the_top, "ledger.run.boot", "def f():\n    import json"),
    (imports_at_the_top, "ledger.run.boot", "class A:\n    async def f(self):\n        from json import loads"),
    (imports_at_the_top, "ledger.run.boot", "duckdb = importlib.import_module('duckdb')"),
    (imports_at_the_top, "ledger.run.boot", "duckdb = __import__('duckdb')"),
    (late_ones_are_declared, "ledger.run.boot", "codec = Late('ledger.receipt.codec')"),
    (
        late_ones_are_declared,
        "ledger.run.boot",
        "if TYPE_CHECKING:\n    from ledger.receipt import codec\nelse:\n    codec = Late('ledger.receipt.model')",
    ),
    (imports_are_absolute, "ledger.run.boot", "from . import session"),
    (imports_are_absolute, "ledger.run.boot", "from ledger.core.words import *"),
    (named_for_what_it_is, "ledger.core.utils", ""),
    (named_for_what_it_is, "ledger.misc.text", ""),
    (has_a_docstring, "ledger.run.boot", "x = 1"),
    (has_a_docstring, "ledger.run.boot", DOC + "def f(): pass"),
    (has_a_docstring, "ledger.run.boot", DOC + "class A: pass"),
    (has_a_docstring, "ledger.run.boot", DOC + "class A:\n    " + DOC + "    def f(self): pass"),
    (is_short, "ledger.run.boot", "x = 1\n" * 501),
    (ignores_say_why, "ledger.run.boot", "x = f()  # type" + ": ignore"),
    (ignores_say_why, "ledger.run.boot", "x = f()  # type" + ": ignore[arg-type]"),
    (ignores_say_why, "ledger.run.boot", "x = f()  # no" + "qa: E501"),
    (ignores_say_why, "ledger.run.boot", "x = f()  # no" + "qa"),
    (records_are_frozen, "ledger.run.boot", "@frozen\nclass A:\n    x: int\n    y: int"),
    (records_are_frozen, "ledger.run.boot", "@attrs.frozen(kw_only=False)\nclass A:\n    x: int\n    y: int"),
    (records_are_frozen, "ledger.run.boot", "@define(kw_only=True)\nclass A:\n    x: int"),
    (records_are_frozen, "ledger.run.boot", "@dataclass(frozen=True)\nclass A:\n    x: int"),
    (records_are_frozen, "ledger.run.boot", "class A(typing.NamedTuple):\n    x: int"),
    (judges_without_a_world, "ledger.analysis.rule", "import time"),
    (judges_without_a_world, "ledger.analysis.rule", "from pathlib import Path"),
    (judges_without_a_world, "ledger.analysis.rule", "when = datetime.now()"),
    (judges_without_a_world, "ledger.analysis.rule", "draw = random.Random()"),
    (executes_nothing, "ledger.run.boot", "x = eval(text)"),
    (executes_nothing, "ledger.run.boot", "subprocess.run(text, shell=True)"),
    (executes_nothing, "ledger.store.objects", "import pickle"),
    (executes_nothing, "ledger.spec.compose", "import yaml"),
    (executes_nothing, "ledger.spec.yaml_text", "import yaml\nx = yaml.load(text, Loader=yaml.Loader)"),
    (stands_on_the_standard_library, "ledger.backends.warden", "from attrs import frozen"),
)
KEEPS: tuple[tuple[Rule, str, str], ...] = (
    (
        imports_downward,
        "ledger.run.boot",
        "from ledger.analysis.rule import judge\nfrom ledger.store.session import SessionWriter",
    ),
    (imports_downward, "ledger.cli.main", "from ledger import __version__"),
    (packages_stay_home, "ledger.store.git", "from git import Repo"),
    (packages_stay_home, "ledger.run.boot", "from ledger.store.git import commit_paths"),
    (imports_at_the_top, "ledger.cli.main", "def f():\n    return import_module('ledger.cli.run')"),
    (
        late_ones_are_declared,
        "ledger.run.boot",
        "if TYPE_CHECKING:\n    from ledger.receipt import codec\nelse:\n    codec = Late('ledger.receipt.codec')",
    ),
    (ignores_say_why, "ledger.run.boot", "x = f()  # type" + ": ignore[misc]  # the stub is wrong about f"),
    (ignores_say_why, "ledger.run.boot", "x = f()  # no" + "qa: PTH208, E501 - a million names"),
    (records_are_frozen, "ledger.run.boot", "@frozen(kw_only=True)\nclass A:\n    x: int\n    y: int"),
    (records_are_frozen, "ledger.run.boot", "@frozen\nclass Missing:\n    why: str"),
    (records_are_frozen, "ledger.run.boot", "@define\nclass Live:\n    x: int\n    def stop(self): ..."),
    (judges_without_a_world, "ledger.run.boot", "import time"),
    (judges_without_a_world, "ledger.analysis.rule", "draw = random.Random(seed)"),
)


@pytest.mark.parametrize(("rule", "name", "source"), BREAKS, ids=lambda value: getattr(value, "__name__", None))
def test_a_planted_source_breaks_its_rule(rule: Rule, name: str, source: str) -> None:
    assert rule(name, source)


@pytest.mark.parametrize(("rule", "name", "source"), KEEPS, ids=lambda value: getattr(value, "__name__", None))
def test_a_good_source_keeps_it(rule: Rule, name: str, source: str) -> None:
    assert rule(name, source) == []


def test_every_rule_has_a_planted_source() -> None:
    assert {rule for rule, _, _ in BREAKS} == set(RULES)


def test_a_planted_circle_is_found_through_a_function_and_a_third_module() -> None:
    planted = {
        "ledger.a": "from ledger.b import f",
        "ledger.b": "def f():\n    from ledger import c",
        "ledger.c": "import ledger.a",
        "ledger.d": "from ledger.a import f",
    }
    assert cycles(planted) == [["ledger.a", "ledger.b", "ledger.c"]]
