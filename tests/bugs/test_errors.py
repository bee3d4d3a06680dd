"""B22 to B35: errors that others counted as success."""

import time

import pytest

from ledger.instruments.base import StreamRecord
from ledger.instruments.delta import Usage, read
from ledger.instruments.http import HttpClient
from tests.bugs.conftest import Ask, asked, plan_of
from tests.instruments.byte_server import HANG, RESET, ByteServer, head
from tests.instruments.streams import DONE, chunk, data, end, good, record, reduced, reply, text, usage

ONE = {"levels": [1], "categories": ["math"]}
DECODE = "openai/decode"


@pytest.mark.parametrize(
    "failing",
    [
        data({"error": {"message": "out of memory", "code": 500}}),
        data({"error": "out of memory"}),
        b'event: error\ndata: {"message": "out of memory"}\n\n',
        b"event: error\ndata: out of memory\n\n",
        b'error: {"message": "out of memory"}\n\n',
    ],
)
def test_b22_an_error_inside_a_stream_fails_it(failing: bytes) -> None:
    got = reply((1, text("a")), (2, failing), (3, end(1)))
    assert (got.outcome, got.detail) == ("error in stream", "out of memory")


@pytest.mark.parametrize("finish", ["error", "abort"])
def test_b22_a_finish_reason_that_is_an_error(finish: str) -> None:
    assert reply((1, text("a") + end(1, finish=finish))).outcome == "error in stream"


def test_b23_a_failed_request_has_no_tokens_and_no_times() -> None:
    got = reply((1, text("a")), (2, data({"error": "x"})), (3, end(64)))
    assert got.completion_tokens is None
    assert (got.t_first_output, got.t_last_output, got.chunks, got.t_end) == (None, None, (), None)


def test_b24_a_reply_shorter_than_asked_is_out(ask: Ask) -> None:
    got, _ = ask(lambda _: [head(), text("a") * 10, end(10, finish="length")], asked(64, exact=True))
    assert (got.outcome, got.detail) == ("short", "10 of 64 tokens")


def test_b25_b35_a_failed_request_gives_no_figure_though_the_run_ends_well() -> None:
    reading = reduced(DECODE, ONE, lambda _: record((1, text("a")), (2, b"event: error\ndata: {}\n\n")))
    assert (reading.launched, reading.failed, dict(reading.reasons)) == (1, 1, {"error in stream": 1})
    assert all(figure.value is None and figure.absent for figure in reading.figures.values())


@pytest.mark.parametrize("tokens", [0, 3])
def test_b26_success_without_any_text_is_a_failure(tokens: int) -> None:
    assert reply((1, chunk({"role": "assistant", "content": ""})), (2, end(tokens))).outcome == "no output"


def test_b26_text_with_a_count_of_zero_is_a_failure() -> None:
    assert reply((1, text("a") + end(0))).outcome == "no output"


def test_b27_b28_when_all_failed_nothing_is_zero() -> None:
    reading = reduced(DECODE, ONE, lambda _: record(status=503))
    assert {figure.value for figure in reading.figures.values()} == {None}
    assert reading.figures["C1"].absent == "1 of 1 requests failed: http 503"


def test_b29_every_request_is_counted_once() -> None:
    answers = {
        "C4/math/1": record(error="cancelled", status=None),
        "C4/math/2": record(status=429),
        "C4/math/3": record((1, text("a")), (2, end(1))),
    }
    reading = reduced(DECODE, {"levels": [4], "categories": ["math"]}, lambda sent: answers.get(sent.id))
    assert reading.launched == reading.ok + reading.failed + reading.cancelled == 4
    assert dict(reading.reasons) == {"http 429": 1, "no record": 1}


@pytest.mark.parametrize("last", [b"", DONE])
def test_b30_a_stream_that_never_finished_is_failed(last: bytes) -> None:
    assert reply((1, text("a")), (2, last)).outcome == "no finish_reason"


def test_b30_a_reset_in_mid_stream(ask: Ask) -> None:
    got, transcript = ask(lambda _: [head(), text("a"), 0.1, RESET])
    assert got.outcome in {"connection lost", "no finish_reason"}
    assert transcript.records[0].reads or transcript.records[0].error


@pytest.mark.parametrize("more", [{"Transfer_Encoding": "chunked"}, {"Content_Length": "9999"}])
def test_b30_a_body_that_ends_too_soon(ask: Ask, more: dict[str, str]) -> None:
    whole = text("a") + end(1)[:-20]
    got, _ = ask(lambda _: [head(**more), f"{len(whole) + 500:x}\r\n".encode() * ("Transfer_Encoding" in more) + whole])
    assert got.outcome == "cut in mid-stream"


def test_b30_a_complete_reply_is_good_even_when_the_connection_then_breaks() -> None:
    assert reply((1, text("a") + end(1)), error="connection lost: reset").ok
    assert reply((1, text("a") + end(1).removesuffix(DONE)), error="connection lost: reset").outcome == "connection lost"


def test_b30_a_clean_end_without_done_is_complete() -> None:
    assert reply((1, text("a") + end(1).removesuffix(DONE))).ok


@pytest.mark.parametrize("other", [record(status=500), record(error="deadline: 1 s"), good(5, first_ms=1e9)])
def test_b31_failed_requests_enter_no_mean(other: StreamRecord) -> None:
    parameters = {"levels": [2], "categories": ["math"], "fixed_length": True, "max_tokens": 11}
    reading = reduced(DECODE, parameters, lambda sent: good(11) if sent.id.endswith("/1") else other)
    assert (reading.ok, reading.failed) == (1, 1)
    assert all(figure.value is None for figure in reading.figures.values())


@pytest.mark.parametrize("status", ["429 Too Many Requests", "500 Internal Server Error", "302 Found"])
def test_b32_no_retry_and_no_redirect(status: str) -> None:
    with ByteServer(
        lambda _: [head(status, "application/json", Location="/elsewhere", Retry_After="0"), b'{"error":"busy"}']
    ) as server:
        (got,) = HttpClient(server.url).execute(plan_of(asked())).records
    assert got.status == int(status[:3])
    assert server.connections == 1
    assert reply(status=got.status).outcome == f"http {status[:3]}"


def test_b33_a_slow_prefill_is_waited_for_and_silence_is_not() -> None:
    with ByteServer(lambda _: [head(), 1.0, text("a"), end(1)]) as server:
        (waited,) = HttpClient(server.url).execute(plan_of(asked(), idle_timeout_s=20.0, connect_timeout_s=0.5)).records
    with ByteServer(lambda _: [head(), text("a"), HANG]) as server:
        (silent,) = HttpClient(server.url).execute(plan_of(asked(), idle_timeout_s=0.3)).records
        (late,) = HttpClient(server.url).execute(plan_of(asked(), deadline_s=0.3)).records
    assert waited.error is None
    assert silent.error == "idle timeout after 0.3 s"
    assert late.end_ns is not None
    assert late.end_ns < 9_000_000_000
    assert late.error == "deadline: 0.3 s"
    assert reply((1, text("a")), error=late.error).outcome == "deadline"


def test_b33_a_deadline_holds_against_a_server_that_trickles() -> None:
    with ByteServer(lambda _: [head(), *([text("a"), 0.05] * 400), end(1)]) as server:
        (got,) = HttpClient(server.url).execute(plan_of(asked(), deadline_s=0.5)).records
    assert got.error == "deadline: 0.5 s"
    assert got.reads


def test_b34_each_request_has_a_connection_of_its_own() -> None:
    with ByteServer(lambda _: [head(), text("a"), end(1)]) as server:
        plan = plan_of(*(asked(name=f"r{number}") for number in range(5)))
        transcript = HttpClient(server.url).execute(plan)
    assert server.connections == 5
    assert all(each.error is None and each.connect_ns > 0 for each in transcript.records)


def test_a_connection_kept_open_after_done_does_not_hold_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ledger.instruments.exchange.DONE_GRACE_S", 0.2)
    with ByteServer(lambda _: [head(), text("a"), end(1), HANG]) as server:
        began = time.monotonic()
        (got,) = HttpClient(server.url).execute(plan_of(asked(), idle_timeout_s=1800.0)).records
        assert time.monotonic() - began < 60
    assert reply(*[(1, read.data) for read in got.reads], error=got.error).ok


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 abc\r\n\r\n", b"\x16\x03\x01 nonsense\r\n\r\n"])
def test_a_server_that_does_not_speak_http(ask: Ask, answer: bytes) -> None:
    got, _ = ask(lambda _: [answer])
    assert got.outcome in {"no response", "connection lost"}


def test_nobody_listens() -> None:
    with ByteServer(lambda _: []) as server:
        url = server.url
    (got,) = HttpClient(url).execute(plan_of(asked())).records
    assert got.error is not None
    assert got.error.startswith("connect: ")
    assert reply(error=got.error, status=None).outcome == "connect"


@pytest.mark.parametrize("value", [b"5", b"[]", b"nope", b'{"choices"'])
def test_an_event_that_is_no_json_object_fails(value: bytes) -> None:
    assert reply((1, text("a") + b"data: " + value + b"\n\n" + end(1))).outcome == "malformed event"


@pytest.mark.parametrize(
    "odd",
    [
        {"choices": None},
        {"choices": {}},
        {"choices": [None]},
        {"choices": [{"delta": None}]},
        {"choices": [{"delta": {"content": 5, "tool_calls": 3}}]},
        {"choices": [{"delta": {"tool_calls": [None, {"function": None}]}}]},
        {"usage": 3},
        {"usage": usage(-1, True)},
        {"error": None},
        {},
    ],
)
def test_odd_shapes_are_as_good_as_nothing(odd: dict[str, object]) -> None:
    got = reply((1, data(odd)), (2, text("a") + end(1)))
    assert (got.outcome, got.t_first_output) == ("ok", 2_000_000)


@pytest.mark.parametrize("count", [-1, True, 1.0, "3", None])
def test_a_count_that_is_no_count_is_none(count: object) -> None:
    said = read({"usage": {"prompt_tokens": count, "completion_tokens": 1}, "timings": {"cache_n": count}})
    assert (said.usage, said.cached_tokens) == (Usage(completion_tokens=1), None)


def test_a_good_stream_is_good() -> None:
    reading = reduced(DECODE, ONE, lambda _: good(11))
    assert (reading.ok, reading.failed) == (1, 0)
    assert reading.figures["C1"].value == pytest.approx(11 / 0.3)
    assert reading.figures["per_stream@C1"].value == pytest.approx(10 / 0.2)
    assert reading.figures["ttft@C1"].value == pytest.approx(0.1)


def test_what_a_server_says_is_made_safe_and_short() -> None:
    got = reply((1, data({"error": "\x1b[31mred" + "x" * 5000})))
    assert "\x1b" not in got.detail
    assert len(got.detail) <= 300
