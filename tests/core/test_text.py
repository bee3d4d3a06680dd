"""Text from outside reaches a screen without a control, whatever it holds."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.core.text import one_line, visible

ANY_TEXT = st.text(st.characters(), max_size=60)
UNSAFE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def unsafe(text: str) -> set[str]:
    """The characters of ``text`` that can steer a terminal or hide."""
    return {char for char in text if unicodedata.category(char) in UNSAFE}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("50\r99", "50\\x0d99"),
        ("a\x00b\x08c\x7f", "a\\x00b\\x08c\\x7f"),
        ("user\u202egnp.exe", "user\\u202egnp.exe"),
        ("\u2066\u2067\u2068\u2069\u202a\u202b\u202c\u202d", "\\u2066\\u2067\\u2068\\u2069\\u202a\\u202b\\u202c\\u202d"),
        ("\u200e\u200f\u061c", "\\u200e\\u200f\\u061c"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("line\u2028par\u2029", "line\\u2028par\\u2029"),
        ("\ud800", "\\ud800"),
        ("\ue000", "\\ue000"),
        ("\U000e0041", "\\U000e0041"),
        ("naïve → 東京 😀", "naïve → 東京 😀"),
        ("a\tb\nc", "a\tb\nc"),
    ],
)
def test_known_answers(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(ANY_TEXT)
def test_nothing_unsafe_is_left(text: str) -> None:
    assert unsafe(visible(text)) <= {"\n", "\t"}
    assert not unsafe(visible(text, keep=frozenset()))


@given(ANY_TEXT)
def test_it_is_done_once(text: str) -> None:
    assert visible(visible(text)) == visible(text)


@given(st.text(st.characters(exclude_categories=sorted(UNSAFE)), max_size=60))
def test_harmless_text_is_left_alone(text: str) -> None:
    assert visible(text) == text


@given(ANY_TEXT, st.integers(1, 40))
def test_one_line_is_one_line_of_at_most_its_limit(text: str, limit: int) -> None:
    shown = one_line(text, limit)
    assert len(shown) <= limit
    assert len(shown.splitlines()) <= 1
    assert not unsafe(shown)


def test_what_is_cut_says_so() -> None:
    assert one_line("abcdef", 4) == "abc…"
    assert one_line("abcd", 4) == "abcd"
    assert one_line("a\nb\tc") == "a\\x0ab\\x09c"
