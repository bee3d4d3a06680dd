"""B01 to B21: bytes and frames. Each test is named by its number in the list of reported bugs."""

import itertools

import pytest

from ledger.instruments.exchange import MAX_STREAM_BYTES
from ledger.instruments.http import HttpClient
from ledger.instruments.stream import decode
from tests.bugs.conftest import Ask, asked, plan_of
from tests.instruments import streams
from tests.instruments.byte_server import ByteServer, Got, chunked, head
from tests.instruments.streams import end, record, reply, request, text

TRICKY = "é😀 \u2028\u2029\x85\x0b\x0c ok"
WHOLE = text(TRICKY) + text("  two spaces ") + end(2)


def splits(whole: bytes) -> list[tuple[tuple[float, bytes], ...]]:
    """``whole`` in two reads, cut at every place."""
    return [((1, whole[:at]), (2, whole[at:])) for at in range(len(whole) + 1)]


def test_b01_a_character_cut_by_a_read_is_no_error() -> None:
    assert {reply(*cut).outcome for cut in splits(WHOLE)} == {"ok"}


def test_b02_no_split_changes_the_text() -> None:
    assert len({reply(*cut).text_digest for cut in splits(WHOLE)}) == 1
    assert reply((1, WHOLE)).text_digest != reply((1, text("e") + end(2))).text_digest


def test_b03_one_byte_a_read() -> None:
    pieces = [(float(i), WHOLE[i : i + 1]) for i in range(len(WHOLE))]
    assert reply(*pieces).text_digest == reply((1, WHOLE)).text_digest


def test_b04_no_charset_is_still_utf8(ask: Ask) -> None:
    got, _ = ask(lambda _: [head(), WHOLE])
    assert got.ok
    assert got.text_digest == reply((1, WHOLE)).text_digest


def test_b05_other_separators_do_not_end_a_line(ask: Ask) -> None:
    got, _ = ask(lambda _: [head(), text("x\u2028y\u2029z\x85"), end(1)])
    assert (got.outcome, len(got.chunks)) == ("ok", 1)
    assert got.chunks[0].size == len("x\u2028y\u2029z\x85")


def test_b06_every_event_of_one_read_counts() -> None:
    assert len(reply((1, text("a") * 50 + end(50))).chunks) == 50


def test_b07_events_of_one_read_share_a_stamp_and_gap_zero_is_valid() -> None:
    got = reply((1, text("a") + text("b")), (2, text("c") + end(3)))
    assert got.chunk_gaps_ns == (0, streams.MS)
    assert [chunk.read_index for chunk in got.chunks] == [0, 0, 1]


def test_b08_one_event_over_many_writes(ask: Ask) -> None:
    whole = text("é😀") + end(1)
    got, _ = ask(lambda _: [head(), *(whole[i : i + 1] for i in range(len(whole)))])
    assert (got.outcome, got.completion_tokens) == ("ok", 1)


def test_b09_the_last_event_without_its_blank_line_counts() -> None:
    cut = (text("a") + end(1)).removesuffix(b"\n\n")
    got = reply((1, cut))
    assert (got.outcome, got.done, got.unterminated) == ("ok", True, True)
    assert reply((1, text("a") + end(1))).unterminated is False


@pytest.mark.parametrize("number", [10, 11])
def test_b10_b11_no_space_after_the_colon(number: int) -> None:
    got = reply((1, (text("a") + end(1)).replace(b"data: ", b"data:")))
    assert (got.outcome, got.completion_tokens) == ("ok", 1)


def test_b12_comments_are_ignored_and_stamp_nothing() -> None:
    got = reply((1, b": ping\n\n"), (5, b":\n\n"), (90, text("a") + end(1)))
    assert got.ok
    assert got.t_first_event == got.t_first_output == 90 * streams.MS


def test_b13_several_data_lines_are_one_event() -> None:
    folded = text("a").replace(b', "choices"', b',\ndata: "choices"')
    assert folded.count(b"data:") == 2
    assert reply((1, folded + end(1))).ok


@pytest.mark.parametrize("ending", [b"\n", b"\r", b"\r\n"])
def test_b14_all_three_line_ends_at_every_split(ending: bytes) -> None:
    whole = (text("a") + text("b") + end(2)).replace(b"\n", ending)
    got = {(r.outcome, len(r.chunks), r.unterminated) for r in (reply(*cut) for cut in splits(whole))}
    assert got == {("ok", 2, False)}


def test_b15_a_space_at_the_edge_of_a_read_stays() -> None:
    whole = text(" a b ") + end(1)
    at_spaces = [at for at in range(len(whole)) if whole[at : at + 1] == b" "]
    assert {reply((1, whole[: at + 1]), (2, whole[at + 1 :])).text_digest for at in at_spaces} == {reply((1, whole)).text_digest}


def test_b16_an_event_of_a_mebibyte(ask: Ask) -> None:
    big = text("x" * (1 << 20))
    got, _ = ask(lambda _: [head(), big, end(1)])
    assert (got.outcome, got.chunks[0].size) == ("ok", 1 << 20)
    assert MAX_STREAM_BYTES > 64 * 1024 * 1024


def test_b17_b18_a_read_returns_what_is_there() -> None:
    """The first token is stamped before the second is sent; a read that waits until it is full would be stamped after."""
    for frames in (
        [text("a"), 0.4, text("b"), end(2)],
        [chunked(text("a")), 0.4, chunked(text("b")), chunked(end(2)), b"0\r\n\r\n"],
    ):
        more = {"Transfer_Encoding": "chunked"} if frames[-1] == b"0\r\n\r\n" else {}
        with ByteServer(lambda _, frames=frames, more=more: [head(**more), *frames]) as server:
            (got,) = HttpClient(server.url).execute(plan_of(asked())).records
        second_sent = server.sent_ns[2]
        assert got.t0_ns + got.reads[0].t_ns < second_sent
        assert decode(got, asked()).ok


def test_b19_another_content_encoding_is_refused(ask: Ask) -> None:
    asked_for: list[str | None] = []

    def script(came: Got) -> list[bytes]:
        asked_for.append(came.header("Accept-Encoding"))
        return [head(Content_Encoding="gzip"), b"\x1f\x8b" + b"\0" * 20]

    got, _ = ask(script)
    assert got.outcome == "content-encoding gzip"
    assert asked_for == ["identity"]


@pytest.mark.parametrize(
    ("kind", "body", "outcome", "shown"),
    [
        ("text/html", b"<html>Bad Gateway</html>", "not an event stream", "Bad Gateway"),
        ("application/json", b'{"error": {"message": "no such model"}}', "error instead of a stream", "no such model"),
        ("application/json", b'{"choices": [{"message": {"content": "hi"}}]}', "not an event stream", "choices"),
        (None, b"hello", "not an event stream", "no content-type"),
    ],
)
def test_b20_what_is_no_event_stream_is_an_error(ask: Ask, kind: str | None, body: bytes, outcome: str, shown: str) -> None:
    got, _ = ask(lambda _: [head(kind=kind), body])
    assert got.outcome == outcome
    assert shown in got.detail
    assert len(got.detail) <= 300


def test_b20_a_stream_without_a_content_type_is_read() -> None:
    assert reply((1, text("a") + end(1)), kind="").ok


def test_b21_a_burst_after_a_wait_is_called_buffered() -> None:
    burst = reply((1, text("a")), (500, text("b") * 20 + end(21)))
    steady = decode(streams.good(21), request())
    assert (burst.ok, burst.buffered, steady.buffered) == (True, True, False)


def test_b21_much_text_at_once_without_a_wait_is_not_buffered() -> None:
    assert not reply((500, text("a")), (510, text("b") * 20 + end(21))).buffered


def test_events_after_done_are_not_read() -> None:
    assert reply((1, text("a") + end(1) + text("b"))).completion_tokens == 1
    assert len(reply((1, text("a") + end(1) + text("b"))).chunks) == 1


def test_an_event_beyond_the_bound_fails_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ledger.instruments.sse.frame.__kwdefaults__", {"limit": 1000})
    assert reply((1, text("x" * 2000) + end(1))).outcome == "event too large"


def test_bytes_that_are_no_utf8_fail_the_request() -> None:
    assert reply((1, b'data: {"choices":[{"delta":{"content":"\xff"}}]}\n\n' + end(1))).outcome == "malformed event"


def test_records_of_all_splits_are_equal_in_all_but_times() -> None:
    seen = set()
    for first, second in itertools.combinations(range(0, len(WHOLE), 7), 2):
        got = decode(record((1, WHOLE[:first]), (2, WHOLE[first:second]), (3, WHOLE[second:])), request())
        seen.add((got.outcome, got.text_digest, got.usage, got.finish_reason, got.done, tuple(c.size for c in got.chunks)))
    assert len(seen) == 1
