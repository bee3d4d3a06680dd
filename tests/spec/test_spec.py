"""The spec room: places, variables, changes, factors and the plan."""

import string
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from ledger.core.errors import SpecError
from ledger.core.words import Evidence, FieldClass
from ledger.spec import factors
from ledger.spec.change import apply_args, apply_env, count_changes, in_words, settings
from ledger.spec.interpolate import InterpolationError, escape, interpolate, interpolate_stable, names
from ledger.spec.load import Loaded, load_site, load_spec, read_site, read_spec
from ledger.spec.locate import locate, nearest_spot, spell
from ledger.spec.model import Change, Site, Spec
from ledger.spec.plan import launch, make_plan

SPECS = Path(__file__).resolve().parents[2] / "specs"
SHIPPED = sorted(SPECS.glob("*.toml"))


def paths(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if at:
        yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from paths(item, (*at, key))


KEYS = st.text(string.ascii_letters + string.digits + "-_. é\"'\\#[]=\n", min_size=1, max_size=6)
LEAVES = st.one_of(st.integers(-5, 5), st.booleans(), st.text("ab\"'\\#]}[{,=\n\té ", max_size=8), st.floats(allow_nan=False))
TREES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=12)


@given(st.dictionaries(KEYS, TREES, max_size=4))
def test_every_path_that_tomllib_finds_has_a_place(document: Mapping[str, Any]) -> None:
    text = tomli_w.dumps(document)
    found = locate(text)
    assert set(found) == set(paths(tomllib.loads(text)))
    lines = text.count("\n") + 1
    assert all(1 <= spot.line <= lines for spot in found.values())


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("a",), 1),
        (("c d", "e"), 2),
        (("c d", "e", 0), 3),
        (("c d", "e", 1), 3),
        (("c d", "e", 2, "f", 1), 4),
        (("t", 0, "k"), 8),
        (("t", 0, "sub", "k"), 10),
        (("t", 1), 11),
        (("t", 1, "list", 0, "k"), 13),
        (("t", 1, "list", 1, "k"), 15),
    ],
)
def test_places_in_a_document_as_people_write_it(path: tuple[str | int, ...], line: int) -> None:
    text = 'a = 1 # b = 2\n"c d".e = [ # first\n  "x]", """\nlong " text""", { f = [1, 2], \'g.h\' = \'\' }, # not the end\n]\n\n'
    text += "[[t]]\nk = 1\n[t.sub]\nk = 2\n[[t]]\n[[t.list]]\nk = 3\n[[t.list]]\nk = 4\n"
    tomllib.loads(text)
    assert locate(text)[path].line == line


def test_a_missing_key_stands_where_its_table_stands() -> None:
    found = locate("[a]\nb = 1\n[a.c]\n")
    spot = nearest_spot(found, ("a", "c", "missing"))
    assert spot is not None
    assert spot.line == 3
    assert spell(("arms", 2, "env", "A B")) == 'arms[2].env."A B"'


@given(st.text())
def test_an_escaped_text_comes_back(text: str) -> None:
    assert interpolate(escape(text), {}) == text


@given(st.text(), st.text())
def test_a_value_is_never_expanded_again(value: str, other: str) -> None:
    assert interpolate("${x}${y}", {"x": value, "y": other}) == value + other


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": {"b": 1}}', '{"a": {"b": 1}}'),
        ("$$HOME", "$HOME"),
        ("$HOME", "$HOME"),
        ("a$", "a$"),
        ("$${x}", "${x}"),
        ("${x}$${x}", "1${x}"),
        ("$$${x}", "$1"),
    ],
)
def test_braces_and_dollars_stay_free(text: str, expected: str) -> None:
    assert interpolate(text, {"x": "1"}) == expected


def test_volatile_variables_stay_for_the_node_and_the_rest_is_final() -> None:
    scope = {"lane.model": "m$${port}", "port": "80"}
    template = interpolate_stable("${lane.model} ${port} $$ ${file.w}", scope)
    assert names(template) == ["port", "file.w"]
    assert interpolate(template, {"port": "80", "file.w": "W"}) == "m$${port} 80 $ W"


@pytest.mark.parametrize("text", ["${", "${a", "x ${y z"])
def test_an_open_variable_is_an_error(text: str) -> None:
    with pytest.raises(InterpolationError, match="not closed"):
        names(text)


ARGV = st.lists(st.text("ab-=1 ", min_size=1, max_size=5), max_size=8)


@given(ARGV)
def test_settings_joined_are_the_argv_again(argv: list[str]) -> None:
    assert [word for item in settings(argv) for word in item.words] == argv
    assert apply_args(argv, Change()) == tuple(argv)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (Change(args=("--b", "9")), "run --a 1 --b 9 -c"),
        (Change(args=("--d",)), "run --a 1 --b 2 -c --d"),
        (Change(args=("--b=9",)), "run --a 1 --b=9 -c"),
        (Change(drop_args=("--a", "-c")), "run --b 2"),
        (Change(args=("--a", "x", "y")), "run --a x y --b 2 -c"),
        (Change(args=("--a", "-1")), "run --a -1 --b 2 -c"),
    ],
)
def test_a_change_takes_the_place_of_the_same_flag(change: Change, expected: str) -> None:
    assert " ".join(apply_args(["run", "--a", "1", "--b", "2", "-c"], change)) == expected


@pytest.mark.parametrize(
    ("change", "count"),
    [
        (Change(), 0),
        (Change(about="rails"), 1),
        (Change(env={"A": "1"}), 1),
        (Change(env={"A": "1"}, args=("--x",)), 2),
        (Change(args=("--cache",), drop_args=("--no-cache",)), 1),
        (Change(args=("--cache",), drop_args=("--other",)), 2),
        (Change(drop_env=("A", "B")), 2),
    ],
)
def test_changes_are_counted(change: Change, count: int) -> None:
    assert len(count_changes(change)) == count
    assert in_words(change)


def test_variables_are_set_and_dropped() -> None:
    assert apply_env({"A": "1", "B": "2"}, Change(env={"C": "3", "A": "9"}, drop_env=("B",))) == {"A": "9", "C": "3"}


def test_an_unknown_key_is_identity() -> None:
    assert factors.classify("something.new") is FieldClass.IDENTITY
    assert factors.classify("args.--port") is FieldClass.CONTEXT
    assert factors.classify("args.--port-range") is FieldClass.IDENTITY
    assert factors.classify("node.3") is FieldClass.CONTEXT


def test_a_switch_and_its_negation_are_one_factor_and_repeats_are_counted() -> None:
    found = factors.launch_factors(["p", "--x", "--no-y", "--m", "1", "--m", "2"], {"E": "v"})
    assert found == {"argv.0": "p", "args.--x": "on", "args.--y": "off", "args.--m": "1", "args.--m#2": "2", "env.E": "v"}


@pytest.mark.parametrize("path", SHIPPED, ids=[path.stem for path in SHIPPED])
def test_every_shipped_spec_has_a_plan_on_its_own_site(path: Path) -> None:
    spec = load_spec(path)
    plan = make_plan(spec, load_site(path.parent / spec.value.site))
    assert len(plan.boots) == sum(arm.boots for arm in spec.value.arms)
    assert [boot.position for boot in plan.boots] == list(range(1, len(plan.boots) + 1))
    values = {"port": "1", "python": "p", **{f"file.{name}": "f" for boot in plan.boots for name in boot.files}}
    assert all("${" not in " ".join(rank.argv) for boot in plan.boots for rank in launch(boot, values))


def both(more: str = "", site: str = "") -> tuple[Loaded[Spec], Loaded[Site]]:
    text = (SPECS / "smollm2.toml").read_text() + more
    return read_spec(text.encode(), "s.toml"), read_site(((SPECS / "sites/laptop.toml").read_text() + site).encode(), "site.toml")


def test_replicates_go_round_by_round() -> None:
    plan = make_plan(*both())
    arms = [boot.arm.id for boot in plan.boots]
    assert arms == arms[:5] * 2
    assert len(set(arms[:5])) == 5


def test_equal_configs_have_equal_identity_and_a_changed_arm_differs_in_one_factor() -> None:
    plan = make_plan(*both())
    first, changed, again = plan.boots[0], plan.boots[1], plan.boots[5]
    assert first.identity == again.identity
    assert {key for key in first.identity if first.identity[key] != changed.identity.get(key)} == {"args.--threads"}


def test_a_stand_in_is_scaled_and_says_so_and_a_lane_is_not() -> None:
    spec = load_spec(SPECS / "round2.toml")
    plan = make_plan(spec, load_site(SPECS / "sites/laptop.toml"))
    assert {boot.evidence for boot in plan.boots} == {Evidence.STAND_IN}
    assert plan.boots[0].measures[0].parameters["levels"] == [1, 2, 6]
    assert make_plan(*both()).boots[0].measures[0].parameters["levels"] == [1, 2, 4, 6]
    assert any("stands in for lane A, B, C" in remark for remark in plan.remarks)


def test_an_arm_that_the_stand_in_does_not_have_is_told_with_the_way_out() -> None:
    spec = load_spec(SPECS / "round2.toml")
    site = (SPECS / "sites/laptop.toml").read_text().replace("B1a = {", "B1x = {")
    with pytest.raises(SpecError) as caught:
        make_plan(spec, read_site(site.encode(), "site.toml"))
    assert "no counterpart of this arm" in str(caught.value)
    assert "[stand_ins.B.arms.B1a]" in str(caught.value)


def test_only_takes_known_arms() -> None:
    assert [boot.arm.id for boot in make_plan(*both(), only=["no-flash"]).boots] == ["no-flash"] * 2
    with pytest.raises(SpecError, match="did you mean 'no-flash'"):
        make_plan(*both(), only=["no-flsh"])
