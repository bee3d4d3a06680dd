"""Framing: the same events whatever the splits, line ends and noise."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.instruments.base import Read
from ledger.instruments.sse import Event, frame

ENDS = (b"\n", b"\r", b"\r\n")
# Everything but the two characters that end a line, the odd separators among them.
LINES = st.text(
    st.characters(exclude_characters="\r\n", exclude_categories=("Cs",)) | st.sampled_from("\u2028\u2029\x85\x0b\x0c é😀:"),
    max_size=12,
)


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """A stream of events, comments and unknown fields under one kind of line end, the last event perhaps cut short."""
    ending = draw(st.sampled_from(ENDS))
    lines: list[str] = []
    for _ in range(draw(st.integers(0, 4))):
        lines += draw(st.lists(LINES.map(lambda text: f": {text}"), max_size=1))
        lines += draw(st.lists(st.sampled_from(["event: error", "event: message", "id: 7", "retry: 3", "data"]), max_size=2))
        space = draw(st.sampled_from(["", " ", "  "]))
        lines += [f"data:{space}{line}" for line in draw(st.lists(LINES, max_size=3))]
        lines.append("")
    whole = ending.join(line.encode() for line in lines)
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + whole + draw(st.sampled_from([b"", ending, ending + ending]))


def cut(whole: bytes, places: list[int]) -> list[Read]:
    """Reads of ``whole`` cut at ``places``, each with its own stamp."""
    edges = [0, *sorted({place % (len(whole) + 1) for place in places}), len(whole)]
    return [Read(t_ns=100 * index, data=whole[low:high]) for index, (low, high) in enumerate(pairwise(edges))]


def said(events: tuple[Event, ...]) -> list[tuple[str, bytes]]:
    """Names and data alone."""
    return [(event.name, event.data) for event in events]


def by_the_book(whole: bytes) -> list[tuple[str, bytes]]:
    """The events as the format's text tells to read them, from the whole stream at once."""
    found, name, lines = [], "", []
    for line in [*re.split("\r\n|\r|\n", whole.decode().removeprefix("\ufeff")), ""]:
        if line == "":
            if "\n".join(lines):
                found.append((name or "message", "\n".join(lines).encode()))
            name, lines = "", []
        elif line.startswith(("data:", "event:")):
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "data":
                lines.append(value)
            else:
                name = value
        elif line == "data":
            lines.append("")
    return found


@given(streams())
def test_whole_stream_reads_as_the_format_says(whole: bytes) -> None:
    assert said(frame([Read(t_ns=0, data=whole)]).events) == by_the_book(whole)


@given(streams(), st.lists(st.integers(0, 500), max_size=8))
def test_no_split_changes_an_event(whole: bytes, places: list[int]) -> None:
    assert said(frame(cut(whole, places)).events) == said(frame([Read(t_ns=0, data=whole)]).events)


@given(streams())
def test_every_single_split_and_one_byte_reads(whole: bytes) -> None:
    expected = said(frame([Read(t_ns=0, data=whole)]).events)
    for place in range(len(whole) + 1):
        assert said(frame(cut(whole, [place])).events) == expected
    assert said(frame([Read(t_ns=i, data=whole[i : i + 1]) for i in range(len(whole))]).events) == expected


@given(streams(), st.lists(st.integers(0, 500), max_size=8))
def test_the_stamp_is_of_the_read_that_completed_the_event(whole: bytes, places: list[int]) -> None:
    reads = cut(whole, places)
    for number, event in enumerate(frame(reads).events):
        assert event.t_ns == reads[event.read_index].t_ns
        if event.unterminated:
            continue
        with_it = [e for e in frame(reads[: event.read_index + 1]).events if not e.unterminated]
        before = [e for e in frame(reads[: event.read_index]).events if not e.unterminated]
        assert len(before) <= number < len(with_it)


@given(streams(), st.lists(st.integers(0, 500), max_size=8), st.integers(1, 20))
def test_the_bound_does_not_depend_on_the_splits(whole: bytes, places: list[int], limit: int) -> None:
    at_once = frame([Read(t_ns=0, data=whole)], limit=limit)
    pieces = frame(cut(whole, places), limit=limit)
    assert pieces.oversize == at_once.oversize
    assert said(pieces.events) == said(at_once.events)
    assert all(len(event.data) <= limit + 3 for event in at_once.events)


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_any_bytes_are_framed_without_an_error(pieces: list[bytes]) -> None:
    frame([Read(t_ns=0, data=piece) for piece in pieces])


def test_several_data_lines_are_joined_and_one_space_goes() -> None:
    assert said(frame([Read(t_ns=0, data=b"data:  a\ndata:b\n\n")]).events) == [("message", b" a\nb")]


@pytest.mark.parametrize("cut_at", range(len(b"data: a\r\n\r\ndata: b\r\n\r\n")))
def test_a_crlf_cut_in_two_is_one_line_end(cut_at: int) -> None:
    whole = b"data: a\r\n\r\ndata: b\r\n\r\n"
    framing = frame([Read(t_ns=1, data=whole[:cut_at]), Read(t_ns=2, data=whole[cut_at:])])
    assert said(framing.events) == [("message", b"a"), ("message", b"b")]
    assert not any(event.unterminated for event in framing.events)


def test_an_error_field_is_an_error_event() -> None:
    assert said(frame([Read(t_ns=0, data=b'error: {"code":500}\n\n')]).events) == [("error", b'{"code":500}')]
