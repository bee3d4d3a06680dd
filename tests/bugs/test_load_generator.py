"""B88 to B105: the client itself, and the statistics of what it saw."""

import gc
import json
import math
import socket
import ssl
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.core import canonical
from ledger.core.errors import BackendError, UsageError
from ledger.instruments import probe
from ledger.instruments.base import LoadPlan, Request, StreamRecord, Wave
from ledger.instruments.delta import parse
from ledger.instruments.http import HttpClient
from ledger.instruments.lag import Ticker, collector_paused, percentile
from ledger.instruments.stream import decode
from ledger.receipt.model import Figure
from tests.bugs.conftest import asked, plan_of
from tests.instruments.byte_server import HANG, ByteServer, Got, head
from tests.instruments.streams import data, end, good, record, reduced, text

KEY = "sk-very-secret-0123456789"


@pytest.mark.parametrize("streams", [2, 150])
def test_b88_b94_as_many_are_in_flight_as_were_asked(streams: int) -> None:
    everybody = threading.Barrier(streams + 1, timeout=30)

    def script(_: Got) -> list[object]:
        everybody.wait()
        return [head(), text("a"), end(1)]

    with ByteServer(script) as server:
        opener = threading.Thread(target=everybody.wait)
        opener.start()
        transcript = HttpClient(server.url).execute(plan_of(*(asked(name=f"r{n}") for n in range(streams))))
        opener.join()
    assert server.most_in_flight == streams
    assert {decode(each, asked()).outcome for each in transcript.records} == {"ok"}
    assert transcript.start_spread_ms is not None


def test_b92_b93_headers_and_body_are_one_write_and_nagle_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple[bytes, int, int]] = []

    class Watched(socket.socket):
        def sendall(self, data: bytes, flags: int = 0) -> None:
            written.append((data[:4], len(data), self.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)))
            super().sendall(data, flags)

    big = Request(id="big", body={"messages": [{"role": "user", "content": "x" * 400_000}]}, max_tokens=1)
    with ByteServer(lambda _: [head(), text("a"), end(1)]) as server:
        monkeypatch.setattr("ledger.instruments.address.socket.socket", Watched)
        HttpClient(server.url).execute(plan_of(big))
        monkeypatch.undo()
    sent = [(size, no_delay) for start, size, no_delay in written if start == b"POST" or size > 10_000]
    assert sent == [(len(server.got[0].head) + 4 + len(server.got[0].body), 1)]


def test_b96_proxy_variables_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with ByteServer(lambda _: [head(), text("a"), end(1)]) as server:
        (got,) = HttpClient(server.url).execute(plan_of(asked())).records
        facts = probe.generate_once(server.url, "m", 5)
    assert (got.error, facts) == (None, None)
    assert server.got[0].line == "POST /v1/chat/completions HTTP/1.1"


def test_b97_a_name_is_resolved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_for: list[str] = []
    real = socket.getaddrinfo

    def counting(host: str, *args: object, **more: object) -> object:
        asked_for.append(host)
        return real(host, *args, **more)

    monkeypatch.setattr("ledger.instruments.address.socket.getaddrinfo", counting)
    with ByteServer(lambda _: [head(), text("a"), end(1)]) as server:
        records = HttpClient(f"http://localhost:{server.port}").execute(plan_of(*(asked(name=f"r{n}") for n in range(4)))).records
    assert asked_for == ["localhost"]
    assert [each.error for each in records] == [None] * 4


BAD_URLS = ("", "localhost:80", "ftp://x", "http://", "http://a b", "http://x:99999", "http://x/?q=1", "http://u:p@x", "http://é")


@pytest.mark.parametrize("bad", BAD_URLS)
def test_a_bad_url_is_a_usage_error(bad: str) -> None:
    with pytest.raises(UsageError):
        HttpClient(bad).execute(plan_of(asked()))


@pytest.mark.parametrize(("prefix", "path"), [("", "/v1"), ("/v1", "/v1"), ("/api/v1/", "/api/v1"), ("/gw", "/gw/v1")])
def test_a_base_url_may_hold_a_path(prefix: str, path: str) -> None:
    with ByteServer(lambda _: [head(), text("a"), end(1)]) as server:
        HttpClient(server.url + prefix).execute(plan_of(asked()))
    assert server.got[0].line == f"POST {path}/chat/completions HTTP/1.1"


def test_the_api_key_is_sent_and_is_in_no_record() -> None:
    """Even when the server sends it back, in a header, in the body, cut in two."""
    stream = data({"error": f"bad key {KEY}"})
    at = stream.index(KEY.encode()) + 5
    with ByteServer(lambda _: [head(X_Key=KEY, Set_Cookie="id=1"), stream[:at], 0.1, stream[at:]]) as server:
        transcript = HttpClient(server.url, api_key=KEY).execute(plan_of(asked()))
        told = probe.generate_once(server.url, "m", 5, api_key=KEY)
    (got,) = transcript.records
    assert server.got[0].header("Authorization") == f"Bearer {KEY}"
    assert KEY not in repr(transcript)
    assert KEY.encode() not in b"".join(read.data for read in got.reads)
    assert len(b"".join(read.data for read in got.reads)) == len(stream)
    assert "set-cookie" not in got.headers
    assert KEY not in str(told)


@pytest.mark.parametrize("key", ["a\r\nX: y", "a b", "é"])
def test_a_key_that_would_break_the_header_is_refused(key: str) -> None:
    with pytest.raises(UsageError):
        HttpClient("http://127.0.0.1:9", api_key=key).execute(plan_of(asked()))


def two_waves() -> LoadPlan:
    """Two waves of three, which never end by themselves."""
    waves = tuple(Wave(id=f"w{w}", requests=tuple(asked(name=f"w{w}/{n}") for n in range(3))) for w in range(2))
    return LoadPlan(waves=waves, idle_timeout_s=60.0)


def test_cancelling_ends_a_plan_soon_and_every_request_has_a_record() -> None:
    cancel = threading.Event()

    def script(_: Got) -> list[object]:
        threading.Timer(0.2, cancel.set).start()
        return [head(), text("a"), HANG]

    with ByteServer(script) as server:
        began = time.monotonic()
        transcript = HttpClient(server.url, cancel=cancel).execute(two_waves())
        assert time.monotonic() - began < 30
    assert [each.request for each in transcript.records] == ["w0/0", "w0/1", "w0/2", "w1/0", "w1/1", "w1/2"]
    assert {each.error for each in transcript.records} == {"cancelled"}
    assert server.connections == 3
    assert {decode(each, asked()).outcome for each in transcript.records} == {"cancelled"}


def test_a_plan_cancelled_before_it_starts_sends_nothing() -> None:
    cancel = threading.Event()
    cancel.set()
    with ByteServer(lambda _: [HANG]) as server:
        transcript = HttpClient(server.url, cancel=cancel).execute(two_waves())
    assert (len(transcript.records), server.connections) == (6, 0)


def test_no_thread_is_left_behind() -> None:
    before = threading.active_count()
    with ByteServer(lambda _: [head(), text("a"), end(1)]) as server:
        HttpClient(server.url).execute(plan_of(*(asked(name=f"r{n}") for n in range(8))))
    assert threading.active_count() == before


def test_progress_is_told_after_each_wave() -> None:
    told: list[tuple[str, int, int]] = []
    waves = tuple(Wave(id=f"w{n}", requests=(asked(name=f"r{n}"),)) for n in range(3))
    with ByteServer(lambda _: [head(), text("a"), end(1)]) as server:
        HttpClient(server.url).execute(LoadPlan(waves=waves), lambda *at: told.append(at))
    assert told == [("w0", 1, 3), ("w1", 2, 3), ("w2", 3, 3)]


def test_a_wave_waits_for_the_one_before() -> None:
    waves = tuple(Wave(id=f"w{n}", requests=tuple(asked(name=f"{n}/{i}") for i in range(2))) for n in range(3))
    with ByteServer(lambda _: [head(), text("a"), 0.05, end(1)]) as server:
        records = HttpClient(server.url).execute(LoadPlan(waves=waves)).records
    ends = {w: max(each.t0_ns + (each.end_ns or 0) for each in records if each.wave == w) for w in ("w0", "w1")}
    starts = {w: min(each.t0_ns for each in records if each.wave == w) for w in ("w1", "w2")}
    assert ends["w0"] < starts["w1"] < ends["w1"] < starts["w2"]


def test_offsets_from_the_barrier_are_kept_and_the_spread_leaves_them_out() -> None:
    late = Request(id="late", body={}, max_tokens=1, start_after_s=0.2)
    with ByteServer(lambda _: [head(), text("a"), end(1)]) as server:
        transcript = HttpClient(server.url).execute(plan_of(asked(name="now"), late))
    first, second = transcript.records
    assert second.t0_ns - first.t0_ns > 150_000_000
    assert transcript.start_spread_ms == pytest.approx(abs(second.t0_ns - first.t0_ns - 200_000_000) / 1e6)


def test_a_stream_that_cannot_connect_holds_nobody_back() -> None:
    with ByteServer(lambda _: [head(), text("a"), end(1)]) as server:
        url = server.url
    transcript = HttpClient(url).execute(plan_of(*(asked(name=f"r{n}") for n in range(3))))
    assert all((each.error or "").startswith("connect: ") for each in transcript.records)


def test_streams_that_started_too_far_apart_have_no_figure() -> None:
    parameters = {"levels": [2], "categories": ["math"]}

    def apart(ms: int) -> Figure:
        def answer(sent: Request) -> StreamRecord:
            return good(11, t0_ns=ms * 1_000_000 if sent.id.endswith("/2") else 0)

        return reduced("openai/decode", parameters, answer).figures["C2"]

    assert apart(4).marks == ()
    assert apart(6).marks == ("starts 6.0 ms apart",)
    assert apart(40).absent == "the streams started 40.0 ms apart"


def test_b91_a_late_client_marks_what_it_touches() -> None:
    parameters = {"levels": [1], "categories": ["math"]}
    figures = reduced("openai/decode", parameters, lambda _: good(11, first_ms=100), lag_p99_ms=4.0).figures
    assert figures["ttft@C1"].marks == ("client lag 4.0 ms",)
    assert figures["C1"].marks == ()


def test_tls() -> None:
    certificate = Path(__file__).parent / "localhost.pem"
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate)
    trusting = ssl.create_default_context(cafile=str(certificate))
    with ByteServer(lambda _: [head(), text("a"), 0.05, end(1)], tls=serving) as server:
        (good_one,) = HttpClient(server.url, tls=trusting).execute(plan_of(asked())).records
        (refused,) = HttpClient(server.url).execute(plan_of(asked())).records
        cancel = threading.Event()
        threading.Timer(0.3, cancel.set).start()
    with ByteServer(lambda _: [head(), text("a"), HANG], tls=serving) as server:
        (ended,) = HttpClient(server.url, tls=trusting, cancel=cancel).execute(plan_of(asked())).records
    assert decode(good_one, asked()).ok
    assert (refused.error or "").startswith("connect: ")
    assert "certificate" in (refused.error or "").lower()
    assert ended.error == "cancelled"


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_rests_and_is_as_before(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    try:
        frozen = gc.get_freeze_count()
        with collector_paused():
            assert not gc.isenabled()
            assert gc.get_freeze_count() > frozen
        assert gc.isenabled() is enabled
    finally:
        gc.enable()


def test_the_ticker_sees_a_client_that_is_late() -> None:
    with Ticker() as idle:
        time.sleep(0.1)
    assert idle.p99_ms() is None
    ticker = Ticker()
    ticker._late_ns = [0] * 98 + [50_000_000] * 2
    assert ticker.p99_ms() == pytest.approx(50)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=300), st.floats(0, 1))
def test_b100_b102_a_percentile_is_of_ordered_samples_and_within_them(samples: list[float], share: float) -> None:
    value = percentile(samples, share, enough=1)
    assert value is not None
    assert min(samples) <= value <= max(samples)
    assert value == percentile(sorted(samples, reverse=True), share, enough=1)


def test_b101_no_percentile_of_a_few() -> None:
    assert percentile([1, 2, 3], 0.99) is None
    assert percentile(range(99), 0.99) is None
    assert percentile(range(101), 0.99) == 99


def test_b101_n_and_every_value_are_beside_a_figure() -> None:
    figures = reduced("openai/decode", {"levels": [2], "categories": ["math", "json"]}, lambda _: good(11)).figures
    figure = figures["per_stream@C2/math"]
    assert (figure.n, len(figure.values or ()), figure.statistic) == (2, 2, "mean")
    assert figure.low == figure.high == figure.value


def test_b104_every_figure_has_a_unit() -> None:
    figures = reduced("openai/decode", {"levels": [1, 2], "categories": ["math", "json"]}, lambda _: good(11)).figures
    assert {figure.unit for figure in figures.values()} == {"tok/s", "s", "tokens"}


def test_b105_nan_is_read_tolerantly_and_never_kept() -> None:
    odd = b'data: {"choices":[{"delta":{"content":"a"},"logprobs":{"x":-Infinity,"y":NaN}}]}\n\n'
    assert parse(odd.removeprefix(b"data: ").strip()) is not None
    assert decode(record((1, odd), (2, end(1))), asked()).ok
    with pytest.raises(canonical.CanonicalError):
        canonical.encode({"value": math.nan})


def test_a_readiness_probe_is_a_completed_generation() -> None:
    with ByteServer(lambda _: [head(), text("a"), end(1)]) as server:
        assert probe.generate_once(server.url, "m", 5) is None
        body = server.got[0].json
    assert (body["max_tokens"], body["model"]) == (1, "m")
    busy = [head("503 Service Unavailable", "application/json"), b'{"error":{"message":"Loading model"}}']
    with ByteServer(lambda _: busy) as server:
        assert "Loading model" in (probe.generate_once(server.url, "m", 5) or "")
    with ByteServer(lambda _: [HANG]) as server:
        assert probe.generate_once(server.url, "m", 0.2) == "deadline: 0.2 s"


def answering(answers: dict[str, object]) -> object:
    """A script that answers paths with JSON, and everything else with 404."""

    def script(got: Got) -> list[bytes]:
        path = got.line.split()[1]
        if path not in answers:
            return [head("404 Not Found", "application/json"), b"{}"]
        answer = answers[path]
        made = answer(got) if callable(answer) else answer
        return [head(kind="application/json"), json.dumps(made).encode()]

    return script


def test_the_servers_own_tokenizer_is_found() -> None:
    said = ({"role": "user", "content": "one two"},)
    llama = {
        "/apply-template": {"prompt": "<s>one two"},
        "/tokenize": lambda got: {"tokens": list(range(len(got.json["content"])))},
    }
    vllm = {"/tokenize": lambda got: {"count": 7 * len(got.json["messages"]), "tokens": []}}
    for answers, count in ((llama, 10), (vllm, 7)):
        with ByteServer(answering(answers)) as server:
            found = probe.server_tokenizer(server.url, "m")
            assert found is not None
            assert found(said) == count
        with pytest.raises(BackendError):
            found(said)
    for answers in ({}, {"/tokenize": {"tokens": []}}, {"/tokenize": [], "/apply-template": "x"}):
        with ByteServer(answering(answers)) as server:
            assert probe.server_tokenizer(server.url) is None


def test_what_a_server_says_of_itself() -> None:
    answers = {
        "/v1/models": {"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 8192}, {"id": "n"}, {"id": None}, 3]},
        "/version": {"version": "0.33.0\x1b[31m"},
        "/props": {
            "total_slots": None,
            "model_path": "/a/b/m.gguf",
            "chat_template": "{{x}}",
            "default_generation_settings": [],
        },
    }
    with ByteServer(answering(answers)) as server:
        facts = probe.server_facts(server.url)
    assert facts["models"] == ["m", "n"]
    assert (facts["max_model_len"], facts["model_file"]) == (8192, "m.gguf")
    assert "\x1b" not in facts["version"]
    assert canonical.encode(facts)
    with ByteServer(answering({})) as server:
        assert probe.server_facts(server.url) == {}
