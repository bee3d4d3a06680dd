"""The HTTP client: executes a load plan with one thread for each stream.

What it does: sends every wave of a plan to a server, its streams released by a barrier, and gives back the transcript. What it
does not do: parse, judge or retry. Rules kept: bodies are bytes before the first stream starts; connections are fresh, and opened
before the barrier; the garbage collector rests meanwhile; the client's own lateness and the widest barrier spread are in the
transcript; every request of the plan has one record, also when the plan was cancelled.
"""

import ssl
import threading
import time
from collections.abc import Callable

import orjson
from attrs import define, field, frozen

from ledger.instruments.address import Server, locate
from ledger.instruments.base import LoadPlan, StreamRecord, Transcript, Wave
from ledger.instruments.exchange import Exchange, Limits, Lines, NeverSentError, wire, without
from ledger.instruments.lag import Ticker, collector_paused
from ledger.instruments.stream import CANCELLED

NAME = "http.client"
STAMPS = "thread"
_POLL_S = 0.05

WaveDone = Callable[[str, int, int], None]
"""Called after each wave with its id, its number counted from 1, and how many there are."""


class HttpClient:
    """The client of one server.

    Setting ``cancel`` ends a running plan soon, with ``cancelled`` records. The API key goes into each request's
    ``Authorization`` header and into no record. ``tls`` takes the place of the default context of an https server.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        cancel: threading.Event | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._base_url = base_url
        self._api_key = api_key
        self._cancel = cancel or threading.Event()
        self._tls = tls

    def execute(self, plan: LoadPlan, wave_done: WaveDone | None = None) -> Transcript:
        """Run every wave of ``plan``, in order.

        Raises:
            UsageError: a URL, path or API key that cannot be used.
            BackendError: the host has no address.
        """
        server = locate(self._base_url, tls=self._tls)
        prepared = [_prepare(server, plan.path, wave, self._api_key) for wave in plan.waves]
        run = _Run(server=server, limits=Limits.of(plan), cancel=self._cancel)
        with collector_paused(), Ticker() as ticker:
            for number, wave in enumerate(prepared, start=1):
                run.wave(wave)
                if wave_done is not None:
                    wave_done(wave.wave.id, number, len(prepared))
        return Transcript(
            records=tuple(without(record, self._api_key) for record in run.records),
            client=NAME,
            stamps=STAMPS,
            lag_p99_ms=ticker.p99_ms(),
            start_spread_ms=run.spread_ms,
        )


@frozen(kw_only=True)
class _Prepared:
    """A wave, and each request's bytes."""

    wave: Wave
    wires: tuple[bytes, ...] = field(repr=False)


def _prepare(server: Server, path: str, wave: Wave, api_key: str | None) -> _Prepared:
    return _Prepared(wave=wave, wires=tuple(wire(server, path, orjson.dumps(r.body), api_key) for r in wave.requests))


@define(kw_only=True)
class _Run:
    """A plan being executed."""

    server: Server
    limits: Limits
    cancel: threading.Event
    lines: Lines = field(factory=Lines)
    records: list[StreamRecord] = field(factory=list)
    spread_ms: float | None = None

    def wave(self, prepared: _Prepared) -> None:
        """Run one wave to its end and keep its records."""
        if self.cancel.is_set():
            self.lines.stop()
            self.records += [_never(prepared.wave, request.id) for request in prepared.wave.requests]
            return
        start = _Start(len(prepared.wires), self.lines)
        streams = [
            _Stream(
                Exchange(
                    server=self.server,
                    request=request,
                    wave=prepared.wave,
                    bytes_out=data,
                    limits=self.limits,
                    lines=self.lines,
                    gate=start.gate(request.start_after_s),
                ),
                start,
            )
            for request, data in zip(prepared.wave.requests, prepared.wires, strict=True)
        ]
        self._join(streams, start)
        made = [stream.result() for stream in streams]
        self.records += made
        self.lines.forget()
        self._note_spread(prepared.wave, made)

    def _join(self, streams: list["_Stream"], start: "_Start") -> None:
        """Start all and wait for all; whatever interrupts the wait ends the streams first."""
        started: list[_Stream] = []
        try:
            for stream in streams:
                stream.start()
                started.append(stream)
            while any(stream.is_alive() for stream in started):
                next(stream for stream in started if stream.is_alive()).join(_POLL_S)
                if self.cancel.is_set():
                    self._end(start)
        except BaseException:
            for stream in started:
                while stream.is_alive():
                    self._end(start)
                    stream.join(_POLL_S)
            raise

    def _end(self, start: "_Start") -> None:
        self.lines.stop()
        start.abort()

    def _note_spread(self, wave: Wave, made: list[StreamRecord]) -> None:
        offsets = [request.start_after_s * 1e9 for request in wave.requests]
        starts = [r.t0_ns - offset for r, offset in zip(made, offsets, strict=True) if r.error is None or r.reads]
        if len(starts) > 1:
            self.spread_ms = max(self.spread_ms or 0.0, (max(starts) - min(starts)) / 1e6)


class _Start:
    """The barrier of a wave, and the moment it opened."""

    def __init__(self, parties: int, lines: Lines) -> None:
        self._barrier = threading.Barrier(parties, action=self._open)
        self._lines = lines
        self._opened = 0

    def gate(self, after_s: float) -> Callable[[], None]:
        """What one stream waits at: the barrier, then its own offset."""

        def wait() -> None:
            try:
                self._barrier.wait()
            except threading.BrokenBarrierError as error:
                raise NeverSentError from error
            left = after_s - (time.perf_counter_ns() - self._opened) / 1e9 if after_s else 0
            if (left > 0 and self._lines.stopped.wait(left)) or self._lines.stopped.is_set():
                raise NeverSentError

        return wait

    def abort(self) -> None:
        """Let nobody wait any longer."""
        self._barrier.abort()

    def _open(self) -> None:
        self._opened = time.perf_counter_ns()


class _Stream(threading.Thread):
    """The thread of one request; a defect in it is raised again by :meth:`result`."""

    def __init__(self, exchange: Exchange, start: _Start) -> None:
        super().__init__(name=f"ledger-{exchange.request.id}", daemon=True)
        self._exchange = exchange
        self._start_gate = start
        self._record: StreamRecord | None = None
        self._defect: BaseException | None = None

    def run(self) -> None:
        """Make the request."""
        try:
            self._record = self._exchange.run()
        except BaseException as error:
            self._defect = error
            self._start_gate.abort()

    def result(self) -> StreamRecord:
        """The record, or the exception that prevented one."""
        if self._record is None:
            raise self._defect or RuntimeError("a stream ended without a record")
        return self._record


def _never(wave: Wave, request: str) -> StreamRecord:
    return StreamRecord(request=request, wave=wave.id, t0_ns=time.perf_counter_ns(), error=CANCELLED)
