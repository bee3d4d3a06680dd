"""Specs and sites from bytes: what is kept, where it stands, and that whatever is wrong is told and never raised as a defect."""

import copy
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.core.errors import SpecError
from ledger.spec.document import MAX_BYTES
from ledger.spec.load import load_site, load_spec, read_site, read_spec
from ledger.spec.model import Site, Spec
from ledger.spec.plan import make_plan
from ledger.spec.values import Complain
from tests.spec.conftest import SITE, SPEC
from tests.spec.documents import paths

SPECS = Path(__file__).resolve().parents[2] / "specs"
INCLUDED = {"lanes", "keep"}
SHIPPED = sorted(path for path in SPECS.glob("*.toml") if path.stem not in INCLUDED)
SITES = sorted(SPECS.glob("sites/*.toml"))


@pytest.mark.parametrize("path", SHIPPED, ids=[path.stem for path in SHIPPED])
def test_a_shipped_spec_is_kept_word_for_word(path: Path) -> None:
    found = load_spec(path)
    assert found.text == b"".join((SPECS / name).read_bytes() for name in (path.name, *found.value.include))
    assert found.value.name == path.stem


@pytest.mark.parametrize("path", SITES, ids=[path.stem for path in SITES])
def test_a_shipped_site_is_read(path: Path) -> None:
    site = load_site(path).value
    assert site.nodes or site.endpoints


def test_a_place_is_a_file_a_line_and_a_path() -> None:
    found = read_spec(SPEC.encode(), "specs/x.toml")
    assert str(found.place("arms", 0, "id")) == "specs/x.toml:12 [arms[0].id]"
    assert str(found.place("lanes", "L", "port")) == "specs/x.toml:5 [lanes.L.port]"
    assert str(found.place("rule")) == "specs/x.toml [rule]"


def test_lines_may_end_as_on_windows() -> None:
    text = SPEC.replace("\n", "\r\n").encode()
    assert read_spec(text, "s").value == read_spec(SPEC.encode(), "s").value
    with pytest.raises(SpecError) as caught:
        read_spec(text.replace(b'lane = "L"', b'lane = "M"'), "s")
    assert [problem.place.line for problem in caught.value.problems if problem.place] == [13]


def test_as_much_as_may_be_is_read_and_no_more(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    text = SPEC.encode() + b"#"
    path.write_bytes(text.ljust(MAX_BYTES, b"x"))
    assert load_spec(path).value.name == "exp"
    path.write_bytes(text.ljust(MAX_BYTES + 1, b"x"))
    with pytest.raises(SpecError, match="larger than"):
        load_spec(path)


def test_one_more_check_is_told_with_the_others() -> None:
    def also(spec: Spec, complain: Complain) -> None:
        complain("of another kind", path=("measures", "decode", "levels"), value=spec.measures["decode"].parameters["levels"])
        complain("never heard", path=("name",))

    with pytest.raises(SpecError) as caught:
        read_spec(SPEC.replace('"exp"', "7").replace('"L"', '"M"').encode(), "s", also=also)
    assert [problem.what for problem in caught.value.problems] == [
        "expected text, found a whole number",
        "unknown lane",
        "of another kind",
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('name = "exp"', "name = 7"),
        ('engine = "e"', "engine = []"),
        ("[[arms]]", "[arms]"),
        ("[lanes.L]", "[[lanes]]"),
        ('id = "base"', "id = 1"),
        ('role = "control"', "role = 1"),
        ('id = "base"', 'change = { args = "x" }\nid = "base"'),
        ("[measures.decode]", "[[measures]]"),
    ],
)
def test_what_rests_on_a_refused_value_is_not_told_again(old: str, new: str) -> None:
    assert old in SPEC
    with pytest.raises(SpecError) as caught:
        read_spec(SPEC.replace(old, new).encode(), "s")
    assert len(caught.value.problems) == 1, str(caught.value)


TEXTS = ["", " ", "x", "\0", "${", "${port}", "${lane.image}", "5 s", "-1", "../x"]
NUMBERS = [0, -1, 2**63 - 1, 0.5, float("nan"), True]
TABLES = [[], ["x"], ["--x", "1"], [1], [[]], {}, {"x": "y"}, {"x": {}}, {"args": ["--x"]}, {"id": "base", "base": "base"}]
JUNK = st.sampled_from([None, *TEXTS, *NUMBERS, *TABLES])


def changed(table: dict[str, Any], draw: Callable[[st.SearchStrategy[Any]], Any]) -> dict[str, Any]:
    """``table`` with one value anywhere in it replaced, dropped, or joined by an unknown one."""
    table = copy.deepcopy(table)
    *way, last = draw(st.sampled_from(sorted(paths(table), key=str)))
    at: Any = table
    for step in way:
        at = at[step]
    value = draw(JUNK)
    if value is None:
        del at[last]
    elif isinstance(at, dict) and draw(st.booleans()):
        at[draw(st.sampled_from(["x", "id", "args", "port", "lane", "base", "when"]))] = value
    else:
        at[last] = value
    return table


@settings(max_examples=300)
@given(st.data())
def test_a_spec_that_is_changed_anywhere_is_planned_or_told(data: st.DataObject) -> None:
    table = changed(tomllib.loads(load_spec(SPECS / "round2.toml").text.decode()), data.draw)
    text = tomli_w.dumps(table)
    with (SPECS / "sites/laptop.toml").open("rb") as file:
        site = read_site(file.read(), "site.toml")
    planned_or_told(text, lambda: make_plan(read_spec(text.encode(), "spec.toml"), site))


@settings(max_examples=300)
@given(st.data())
def test_a_site_that_is_changed_anywhere_is_planned_or_told(data: st.DataObject) -> None:
    table = changed(tomllib.loads((SPECS / "sites/laptop.toml").read_text()), data.draw)
    text = tomli_w.dumps(table)
    spec = load_spec(SPECS / "round2.toml")
    planned_or_told(text, lambda: make_plan(spec, read_site(text.encode(), "site.toml")))


def planned_or_told(text: str, plan: Callable[[], object]) -> None:
    try:
        plan()
    except SpecError as error:
        for problem in error.problems:
            assert problem.what
            assert problem.place is not None, problem
            assert problem.place.line is None or problem.place.line >= 1


def test_a_site_is_read_as_a_spec_is() -> None:
    found = read_site(SITE.encode(), "site.toml")
    assert isinstance(found.value, Site)
    assert str(found.place("nodes", 0)) == "site.toml:4 [nodes[0]]"
