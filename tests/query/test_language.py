"""The query language: what it reads, and that an error points at the word."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.query.language import Ask, QueryError, Range, Word, parse


def words(items: tuple[Word | Range, ...]) -> list[str]:
    return [item.text if isinstance(item, Word) else item.word.text for item in items]


def test_a_whole_question_is_read() -> None:
    found = parse("C6, C1/summary of C,B by arm across evidence lane:C arm:B*,X n>=3 not:unverified as-of:2026-10-19")
    assert words(found.side.metrics) == ["C6", "C1/summary"]
    assert words(found.side.of) == ["C", "B"]
    assert words(found.by) == ["arm"]
    assert found.across == Word(text="evidence", at=36)
    assert {key: words(value) for key, value in found.filters.items()} == {
        "lane": ["C"],
        "arm": ["B*", "X"],
        "not": ["unverified"],
    }
    assert found.counts == ((">=", 3),)
    assert found.as_of is not None
    assert found.as_of.text == "2026-10-19"


@pytest.mark.parametrize(
    ("text", "head", "low", "high"),
    [
        ("C1..C6", "C", 1, 6),
        ("prefill@500..2000", "prefill@", 500, 2000),
        ("per_stream@C1..C6", "per_stream@C", 1, 6),
        ("C1..6", "C", 1, 6),
    ],
)
def test_ranges(text: str, head: str, low: int, high: int) -> None:
    (found,) = parse(f"{text} by lane").side.metrics
    assert isinstance(found, Range)
    assert (found.head, found.low, found.high) == (head, low, high)


def test_a_slash_in_a_name_is_a_part_and_one_between_spaces_a_ratio() -> None:
    assert parse("C1/code by arm").over is None
    ratio = parse("C6 of C / C6 of B")
    assert ratio.over is not None
    assert (words(ratio.side.of), words(ratio.over.of)) == (["C"], ["B"])


def test_a_value_with_spaces_is_quoted() -> None:
    assert words(parse('C6 arm:"a b"').filters["arm"]) == ["a b"]


WRONG = [
    ("C6 by armm", 6, "armm", "did you mean 'arm'"),
    ("C6 by arm across x", 17, "x", "known: arm"),
    ("C6 by", 5, "", "for example"),
    ("by arm", 0, "by", "for example"),
    ("C6 lan:C", 3, "lan", "did you mean 'lane'"),
    ("C6 lane:", 7, ":", "known"),
    ("C6..C1", 0, "C6..C1", "C1..C6"),
    ("C1..prefill@6", 0, "C1..prefill@6", "C1..C6"),
    ("C6 by arm across arm across lane", 28, "lane", "list the others behind 'by'"),
    ("C6 as-of:2026-10-19 as-of:HEAD", 20, "as-of:HEAD", "one moment"),
    ("C6 / ", 5, "", "for example"),
    ("C6 of", 5, "", "for example"),
]


@pytest.mark.parametrize(("text", "at", "word", "hint"), WRONG)
def test_an_error_points_at_the_word_and_offers_a_way_out(text: str, at: int, word: str, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)
    (problem,) = caught.value.problems
    _, shown, caret = problem.what.split("\n")
    assert shown.strip() == text.strip()
    assert caret.index("^") - 4 == at
    assert caret.count("^") == max(1, len(word))
    assert hint in str(problem)


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_an_empty_question_shows_examples(text: str) -> None:
    with pytest.raises(QueryError, match="C6 by arm"):
        parse(text)


def test_a_question_is_bounded() -> None:
    with pytest.raises(QueryError, match="at most 2000"):
        parse("C6 " * 1000)


@given(st.text(max_size=60))
def test_any_text_is_a_question_or_an_error(text: str) -> None:
    with suppress(QueryError):
        found = parse(text)
        assert isinstance(found, Ask)
        assert found.side.metrics
