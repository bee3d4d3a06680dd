"""What a reply said, and where two replies part, however they were cut into events."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.instruments.wording import CHARACTERS, TOKENS, Parting, parting, unit_of, wording
from tests.instruments.streams import chunk, data, end, record, text, usage

WORDS = st.lists(st.sampled_from(["a", "b", "ab", " ", "é", "\n"]), min_size=1, max_size=12)


def said(*words: str, tokens: int | None = None, finish: str = "length") -> bytes:
    return b"".join(map(text, words)) + end(len(words) if tokens is None else tokens, finish=finish)


@given(one=WORDS, other=WORDS)
def test_replies_part_where_their_texts_do(one: list[str], other: list[str]) -> None:
    ours, theirs = "".join(one), "".join(other)
    found = parting(wording(record((1, said(*one)))), wording(record((1, said(*other)))), CHARACTERS)
    if ours == theirs:
        assert found is None
    else:
        assert found is not None
        at = found.position - 1
        assert ours[:at] == theirs[:at]
        assert ours[at : at + 1] != theirs[at : at + 1]


@given(words=WORDS, cuts=st.lists(st.integers(0, 400), max_size=6))
def test_neither_reads_nor_chunks_change_what_was_said(words: list[str], cuts: list[int]) -> None:
    whole = said(*words)
    edges = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    pieces = [(float(at), whole[start:stop]) for at, (start, stop) in enumerate(pairwise(edges))]
    assert wording(record(*pieces)) == wording(record((1, whole)))
    assert parting(wording(record((1, whole))), wording(record((1, said("".join(words)))))) is None


def test_a_position_counts_tokens_where_each_came_alone() -> None:
    one, other = (wording(record((1, said("The ", "cat", last)))) for last in (" sat", " ran"))
    assert parting(one, other) == Parting(position=3, unit=TOKENS)
    assert parting(one, other, CHARACTERS) == Parting(position=9, unit=CHARACTERS)


def test_a_reply_that_ends_earlier_parts_behind_its_end() -> None:
    assert parting(wording(record((1, said("a", "b")))), wording(record((1, said("a", "b", "c"))))) == Parting(
        position=3, unit=TOKENS
    )


@pytest.mark.parametrize(
    ("tokens", "finish", "unit"),
    [(3, "length", TOKENS), (4, "stop", TOKENS), (4, "length", CHARACTERS), (5, "stop", CHARACTERS), (2, "stop", CHARACTERS)],
)
def test_tokens_are_counted_only_by_the_servers_own_count(tokens: int, finish: str, unit: str) -> None:
    """The token that ends a reply has no text; packed or unseen tokens leave characters."""
    assert unit_of([wording(record((1, said("a", "b", "c", tokens=tokens, finish=finish))))]) == unit


def test_without_usage_positions_are_characters() -> None:
    assert wording(record((1, text("a") + chunk(finish="stop")))).tokens is None


def test_the_same_words_in_another_channel_differ() -> None:
    thought = chunk({"reasoning_content": "yes"}) + chunk(finish="length") + data({"choices": [], "usage": usage(9, 1)})
    assert parting(wording(record((1, said("yes")))), wording(record((1, thought)))) == Parting(position=1, unit=TOKENS)


def test_what_is_no_stream_says_nothing() -> None:
    assert wording(record((1, b"<html>nonsense\xff"), status=500)).characters == ()
