"""A stranger's spec of 1 MiB: what it may cost is bounded, and so is what is said of it."""

import pytest

from ledger.core.errors import Problem, SpecError
from ledger.spec.load import Loaded, read_site, read_spec
from ledger.spec.model import MAX_ENTRIES, MAX_ITEMS, Site, Spec
from ledger.spec.plan import make_plan
from tests.spec.conftest import SITE, SPEC, STAND_IN, ReadBoth, arm

SHOWN = 2_000
FLAGS = ", ".join(f'"--x{number}"' for number in range(100))


def told(read: object, *arguments: object) -> tuple[Problem, ...]:
    assert callable(read)
    with pytest.raises(SpecError) as caught:
        read(*arguments)
    return caught.value.problems


def spec_with(more: str) -> tuple[Problem, ...]:
    return told(read_spec, (SPEC + more).encode(), "spec.toml")


def site_with(more: str) -> tuple[Problem, ...]:
    return told(read_site, (SITE + more).encode(), "site.toml")


def many(table: str, *, times: int = MAX_ITEMS + 1) -> str:
    return "".join(f"\n{table.replace('#', str(number))}" for number in range(times))


@pytest.mark.parametrize(
    ("kind", "table"),
    [
        ("lanes", '[lanes.l#]\nengine = " "\nmodel = "m"\n'),
        ("arms", '[[arms]]\nid = "a#"\nbase = "nowhere"\n'),
        ("measures", '[measures.m#]\nuses = " "\n'),
        ("gates", '[[gates]]\nid = "g#"\ntext = " "\nreads = "x"\nop = "<"\nvalue = "1"\n'),
    ],
)
def test_nothing_else_is_said_of_a_spec_with_too_many(kind: str, table: str) -> None:
    (problem,) = spec_with(many(table))
    assert problem.what.startswith(f"{kind} has 10")
    assert problem.place is not None
    assert problem.place.path == kind
    assert len(spec_with(many(table, times=3))) > 1


@pytest.mark.parametrize(
    ("kind", "table"),
    [
        ("nodes", '[[nodes]]\nname = " "\n'),
        ("stand_ins", '[stand_ins.s#]\nwhy = " "\nengine = " "\nmodel = "m"\ncommand = []\n'),
        ("scale", "[scale.m#]\n"),
    ],
)
def test_nothing_else_is_said_of_a_site_with_too_many(kind: str, table: str) -> None:
    (problem,) = site_with(many(table))
    assert problem.what.startswith(f"{kind} has 100")


def test_a_chain_of_bases_is_not_followed_when_there_are_too_many_arms() -> None:
    chain = "".join(arm(f"c{number + 1}", base=f"c{number}" if number else "base") for number in range(20_000))
    (problem,) = spec_with(chain)
    assert problem.what == f"arms has 20001 entries, and at most {MAX_ITEMS} are read"


def planned(spec: Loaded[Spec], site: Loaded[Site]) -> Problem:
    (problem,) = told(make_plan, spec, site)
    return problem


def test_the_entries_of_a_plan_are_bounded_over_arms_and_bases(both: ReadBoth) -> None:
    chain = "".join(
        arm(f"c{number + 1}", f"args = [{FLAGS}]", base=f"c{number}" if number else "base", more='several = "s"')
        for number in range(90)
    )
    leaves = "".join(arm(f"l{number}", 'args = ["--y"]', base="c90") for number in range(200))
    problem = planned(*both(chain + leaves))
    assert f"at most {MAX_ENTRIES} are planned" in problem.what
    assert problem.place is not None
    assert problem.place.path == "arms"


def test_the_entries_of_a_plan_are_bounded_over_boots_and_ranks(both: ReadBoth) -> None:
    nodes = "".join(f'\n[[nodes]]\nname = "n{number}"\n' for number in range(200))
    replace = ('role = "control"', 'role = "control"\nboots = 900')
    assert len(make_plan(*both("", nodes, replace=replace)).boots) == 900
    lane = f'\n[lanes.wide]\nengine = "e"\nmodel = "m"\nnodes = 200\ncommand = ["x"]\nenv = {{ {variables(50)} }}\n'
    problem = planned(*both(f'{lane}\n[[arms]]\nid = "wide"\nlane = "wide"\nrole = "control"\nboots = 100\n', nodes))
    assert f"at most {MAX_ENTRIES} are planned" in problem.what


def variables(number: int) -> str:
    return ", ".join(f'V{each} = "1"' for each in range(number))


def test_the_entries_of_a_plan_are_bounded_for_stand_ins_too(both: ReadBoth) -> None:
    arms = "".join(arm(f"a{number}", 'args = ["--y"]') for number in range(900))
    own = "".join(f'a{number} = {{ args = ["--y"] }}\n' for number in range(900))
    wide = STAND_IN.replace('"--slots"', ", ".join(f'"w{number}"' for number in range(2_000)))
    assert len(make_plan(*both(arms, STAND_IN + own)).boots) == 901
    problem = planned(*both(arms, wide + own))
    assert f"at most {MAX_ENTRIES} are planned" in problem.what


@pytest.mark.parametrize(
    "more",
    [
        f"[{'k' * 300_000}]\n",
        f'["{"k e y " * 50_000}"]\n',
        f'[[arms]]\nid = "{"ab" * 100_000}"\nlane = "L"\n[[arms]]\nid = "b"\nbase = "{"ba" * 100_000}"\n',
        f'[[arms]]\nid = "{"a" * 200_000}"\nlane = "{"L" * 200_000}"\nrole = "{"r" * 200_000}"\n',
        f'[[arms]]\nid = "b"\nbase = "base"\nchange = {{ args = ["--x", "{"${v}" * 100_000}"] }}\n',
        f'[[arms]]\nid = "b"\nbase = "base"\nchange = {{ args = ["--x", "${{{"v" * 300_000}}}"] }}\n',
        f'[[arms]]\nid = "b"\nbase = "base"\nseveral = ""\nchange = {{ args = [{FLAGS}] }}\n',
        f'[lanes."{"l" * 200_000}"]\nengine = ""\nmodel = ""\n',
        f'[rule]\nmetrics = ["{"C" * 300_000}"]\ncontrol = "{"c" * 300_000}"\n',
    ],
)
def test_what_is_said_of_long_texts_is_short(more: str) -> None:
    problems = spec_with(more)
    assert problems
    assert all(len(str(problem)) < SHOWN for problem in problems)
    assert all(problem.place is not None and problem.place.line is not None for problem in problems)
