"""Tables into records: every mistake with its path, and a record whatever the table holds."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.core.words import Role
from ledger.spec.locate import Path
from ledger.spec.model import Arm, Change, FilePin, GateSpec, Lane, Measure, Site, Spec
from ledger.spec.structure import structure

LANE = {"engine": "e", "model": "m"}


class Heard:
    """Keeps what is complained about."""

    def __init__(self) -> None:
        self.all: list[tuple[str, Path, str | None]] = []
        self.missing: list[Path] = []

    def __call__(self, what: str, *, path: Path, value: Any = None, hint: str | None = None, missing: Path | None = None) -> None:
        self.all.append((what, path, hint))
        self.missing += [missing] if missing else []


def read(cls: type, table: Mapping[str, Any], *, key: str | None = None) -> tuple[Any, Heard]:
    heard = Heard()
    return structure(cls, table, (), heard, key=key), heard


def test_a_table_becomes_its_record() -> None:
    table = {
        "id": "a",
        "base": "b",
        "role": "control",
        "change": {"env": {"A": "1"}, "args": ["--x", "1"]},
        "boots": 3,
    }
    arm, heard = read(Arm, table)
    assert arm == Arm(id="a", base="b", role=Role.CONTROL, change=Change(env={"A": "1"}, args=("--x", "1")), boots=3)
    assert heard.all == []


def test_the_key_of_a_table_and_the_rest_of_one_are_fields() -> None:
    measure, heard = read(Measure, {"uses": "i", "trials": 2, "levels": [1], "id": "x"}, key="decode")
    assert measure == Measure(id="decode", uses="i", trials=2, parameters={"levels": [1], "id": "x"})
    assert heard.all == []


def test_tables_in_tables_take_their_names() -> None:
    table = {**LANE, "files": {"w": {"sha256": "0", "path": "p"}}, "trees": [{"name": "t"}]}
    lane, heard = read(Lane, table, key="L")
    assert lane.files == {"w": FilePin(sha256="0", path="p")}
    assert (lane.id, lane.trees[0].name, heard.all) == ("L", "t", [])


@pytest.mark.parametrize(
    ("cls", "table", "what", "path"),
    [
        (Arm, {"id": 1}, "expected text, found a whole number", ("id",)),
        (Arm, {"id": "a", "boots": True}, "expected a whole number, found true or false", ("boots",)),
        (Arm, {"id": "a", "boots": 1.0}, "expected a whole number, found a number", ("boots",)),
        (Arm, {"id": "a", "role": "kontrol"}, "expected one of baseline, control, candidate, diagnostic", ("role",)),
        (Arm, {"id": "a", "role": ["control"]}, "expected one of baseline, control, candidate, diagnostic", ("role",)),
        (Arm, {"id": "a", "change": []}, "expected a table, found a list", ("change",)),
        (Arm, {"id": "a", "change": {"args": ["x", 1]}}, "expected text, found a whole number", ("change", "args", 1)),
        (Arm, {"id": "a", "change": {"env": {"A": 1}}}, "expected text, found a whole number", ("change", "env", "A")),
        (Arm, {"id": "a", "boot": 1}, "unknown key 'boot'", ("boot",)),
        (Arm, {}, "missing key 'id'", ()),
        (Lane, {**LANE, "files": {"w": {"path": "p"}}}, "missing key 'sha256'", ("files", "w")),
        (Lane, {**LANE, "files": {"w": 1}}, "expected a table, found a whole number", ("files", "w")),
        (Lane, {**LANE, "trees": {}}, "expected a list, found a table", ("trees",)),
        (Site, {"ledger": 1, "name": "s", "nodes": [], "speed": {"x": "1"}}, "expected a number, found text", ("speed", "x")),
    ],
)
def test_a_mistake_has_its_path(cls: type, table: Mapping[str, Any], what: str, path: Path) -> None:
    _, heard = read(cls, table)
    assert [(said, where) for said, where, _ in heard.all] == [(what, path)]


def test_a_whole_number_is_a_number() -> None:
    site, heard = read(Site, {"ledger": 1, "name": "s", "nodes": [], "speed": {"boot_s": 4}})
    assert (site.speed, type(site.speed["boot_s"]), heard.all) == ({"boot_s": 4.0}, float, [])


def test_a_misspelt_required_key_is_told_once_with_the_right_one() -> None:
    _, heard = read(GateSpec, {"id": "g", "text": "t", "reads": "r", "op": "<", "valu": "1"})
    assert heard.all == [("unknown key 'valu'", ("valu",), "did you mean 'value'?")]
    assert heard.missing == [("value",)]


def test_every_missing_key_is_told_with_what_it_is() -> None:
    _, heard = read(Spec, {})
    assert {what: hint for what, _, hint in heard.all} == {
        "missing key 'ledger'": "it is a whole number",
        "missing key 'name'": "it is text",
        "missing key 'question'": "it is text",
        "missing key 'lanes'": "it is a table",
        "missing key 'arms'": "it is a list",
        "missing key 'measures'": "it is a table",
    }


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["id", "env", "args", "w", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)
TOP = st.dictionaries(
    st.sampled_from(["ledger", "name", "lanes", "arms", "measures", "gates", "rule", "nodes", "scale", "x"]), JUNK
)


@given(st.sampled_from([Spec, Site]), TOP)
def test_any_table_gives_a_record_and_every_complaint_a_path_in_it(cls: type, table: Mapping[str, Any]) -> None:
    record, heard = read(cls, table)
    assert isinstance(record, cls)
    for _, path, _ in heard.all:
        at: Any = table
        for step in path:
            at = at[step]
