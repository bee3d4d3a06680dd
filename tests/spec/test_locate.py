"""Where each value of a TOML document stands, and that any text at all has an answer."""

import tomllib
from collections.abc import Mapping
from typing import Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.spec.locate import MAX_DEPTH, NotTomlError, TooDeepError, locate, nearest_spot, spell, syntax_spot
from tests.spec.documents import TABLES, Path, documents, paths


@settings(max_examples=200)
@given(documents())
def test_every_path_stands_on_its_line(document: tuple[str, Mapping[Path, int]]) -> None:
    text, lines = document
    assert {path: spot.line for path, spot in locate(text).items()} == lines
    assert paths(tomllib.loads(text)) == set(lines)


@given(TABLES)
def test_every_path_that_another_writer_makes_has_a_place(table: Mapping[str, Any]) -> None:
    text = tomli_w.dumps(table)
    assert set(locate(text)) == paths(tomllib.loads(text))


PIECES = [
    "a",
    "b",
    "=",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    ".",
    ",",
    "\n",
    "#",
    " ",
    '"',
    "'",
    '"""',
    "'''",
    "1",
    "\\",
    "\r",
    "\0",
    "é",
]


@settings(max_examples=500)
@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join) | st.text(max_size=20))
def test_any_text_ends_and_what_it_refuses_tomllib_refuses_too(text: str) -> None:
    try:
        found = set(locate(text))
    except NotTomlError:
        with pytest.raises(tomllib.TOMLDecodeError):
            tomllib.loads(text)
        return
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    assert found == paths(table)


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
def test_places_in_a_document_as_people_write_it(path: Path, line: int) -> None:
    text = 'a = 1 # b = 2\n"c d".e = [ # first\n  "x]", """\nlong " text""", { f = [1, 2], \'g.h\' = \'\' }, # not the end\n]\n\n'
    text += "[[t]]\nk = 1\n[t.sub]\nk = 2\n[[t]]\n[[t.list]]\nk = 3\n[[t.list]]\nk = 4\n"
    tomllib.loads(text)
    assert locate(text)[path].line == line


def test_a_column_is_counted_from_one() -> None:
    spot = locate("a = 1\nbc = [ 2,  3 ]\n")["bc", 1]
    assert (spot.line, spot.column) == (2, 12)


def test_a_missing_key_stands_where_its_table_stands() -> None:
    found = locate("[a]\nb = 1\n[a.c]\n")
    spot = nearest_spot(found, ("a", "c", "missing"))
    assert spot is not None
    assert spot.line == 3
    assert nearest_spot(found, ("other",)) is None


@pytest.mark.parametrize(
    "text", ["x = " + "[" * 64 + "1" + "]" * 64, ".".join("a" * 65) + " = 1", "[" + ".".join("a" * 65) + "]"]
)
def test_one_level_too_deep_is_refused_and_told_where(text: str) -> None:
    tomllib.loads(text)
    with pytest.raises(TooDeepError) as caught:
        locate("\n\n" + text)
    assert caught.value.spot.line == 3


def test_as_deep_as_may_be_is_read() -> None:
    text = "x = " + "[" * (MAX_DEPTH - 1) + "1" + "]" * (MAX_DEPTH - 1)
    assert max(len(path) for path in locate(text)) == MAX_DEPTH


@pytest.mark.parametrize(
    ("path", "spelled"),
    [
        (("arms", 2, "env", "A B"), 'arms[2].env."A B"'),
        (("a", 'q"\\'), 'a."q\\"\\\\"'),
        (("", "a"), '"".a'),
        ((), ""),
    ],
)
def test_a_path_is_spelled_as_a_person_writes_it(path: Path, spelled: str) -> None:
    assert spell(path) == spelled


@pytest.mark.parametrize(
    ("text", "line"), [("a = 1\nb = ?\n", 2), ("a = [\n1,\n", 2), ("a = '''\n\n", 1), ('a = "\x0b\u2028\n', 1)]
)
def test_the_line_of_a_syntax_error(text: str, line: int) -> None:
    with pytest.raises(tomllib.TOMLDecodeError) as caught:
        tomllib.loads(text)
    assert syntax_spot(str(caught.value), text).line == line
