"""What an instrument is: parameters to a load plan, stream records to figures.

What it does: defines the records that pass between an instrument and whatever executes its plan, and the abstract
:class:`Instrument`. What it does not do: send anything. Rules kept: an instrument is pure, has no clock and no I/O; the same
plan and reduction serve the HTTP client, a recorded run and a lane model in virtual time; tokens come from ``usage``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import field, frozen

from ledger.core.errors import Problem, UsageError
from ledger.receipt.model import Figure

# Silence that a stream may have where nothing else is asked: the prefill of a very long prompt takes minutes.
IDLE_S = 1800.0
Tokenize = Callable[[Sequence[Mapping[str, str]]], int]
"""Counts the tokens of chat ``messages`` with the server's own tokenizer and chat template."""


@frozen(kw_only=True)
class Request:
    """One request: an id unique in the trial, its JSON body, and labels that the reduction reads (``category``, ``level``).

    ``max_tokens`` is the allowance; with ``exact`` the reply must have just as many. ``expect_prompt_tokens`` is the length
    asked for, where the instrument asks for one. ``start_after_s`` is an offset from the wave's barrier.
    """

    id: str
    body: Mapping[str, Any]
    max_tokens: int
    labels: Mapping[str, str] = field(factory=dict)
    exact: bool = False
    expect_prompt_tokens: int | None = None
    start_after_s: float = 0.0


@frozen(kw_only=True)
class Wave:
    """Requests released together by a barrier; the next wave starts when all have ended."""

    id: str
    requests: tuple[Request, ...]
    labels: Mapping[str, str] = field(factory=dict)


@frozen(kw_only=True)
class LoadPlan:
    """Waves in order. ``path`` is the endpoint below the server's address; times are limits for each request."""

    waves: tuple[Wave, ...]
    path: str = "/v1/chat/completions"
    connect_timeout_s: float = 10.0
    idle_timeout_s: float = IDLE_S
    deadline_s: float | None = None


@frozen(kw_only=True)
class Read:
    """Bytes as one read returned them, and the stamp taken right after it, in ns after the request's t0."""

    t_ns: int
    data: bytes


@frozen(kw_only=True)
class StreamRecord:
    """What came back for one request, raw: the status, headers, and each read with its stamp.

    ``t0_ns``, just before the request was written, is on the executor's monotonic clock; ``headers_ns``, ``end_ns`` and the
    stamps of ``reads`` count from it. ``connect_ns`` is how long connecting took, before it. Header names are lower case.
    ``error`` is what ended the stream when it was not its end, a reason that can be counted and, behind ``: ``, its details
    (``connect: …``, ``idle timeout after 30 s``, ``deadline: 60 s``, ``cut in mid-stream: …``, ``cancelled``).
    """

    request: str
    wave: str
    t0_ns: int
    connect_ns: int = 0
    headers_ns: int | None = None
    end_ns: int | None = None
    status: int | None = None
    headers: Mapping[str, str] = field(factory=dict)
    reads: tuple[Read, ...] = ()
    error: str | None = None


@frozen(kw_only=True)
class Transcript:
    """A load plan executed: every stream record, and facts about the executor.

    ``client`` names it, ``stamps`` says how reads were stamped (``thread``, ``kernel``, ``virtual``); ``lag_p99_ms`` is the
    client's own lateness and ``start_spread_ms`` the widest barrier spread of a wave.
    """

    records: tuple[StreamRecord, ...]
    client: str
    stamps: str
    lag_p99_ms: float | None = None
    start_spread_ms: float | None = None


@frozen(kw_only=True)
class Reading:
    """What a reduction gives: figures by metric name, request counts, failures by reason, conditions and marks."""

    figures: Mapping[str, Figure]
    launched: int
    ok: int
    failed: int
    cancelled: int = 0
    reasons: Mapping[str, int] = field(factory=dict)
    conditions: Mapping[str, str] = field(factory=dict)
    marks: tuple[str, ...] = ()


@frozen(kw_only=True)
class ParameterProblem:
    """A parameter that an instrument does not take, or a value it cannot use; ``key`` names it."""

    key: str
    what: str
    value: str | None = None
    hint: str | None = None


class Instrument(ABC):
    """A measurement: public methods check and delegate, subclasses fill the private hooks."""

    name: str
    version: int

    def check(self, parameters: Mapping[str, Any]) -> tuple[ParameterProblem, ...]:
        """Every mistake in ``parameters``; empty when they can be planned. Never raises."""
        return tuple(self._check(parameters))

    def resolve(self, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        """The parameters with every default filled in, as the receipt keeps them.

        Raises:
            UsageError: with every problem that :meth:`check` finds.
        """
        problems = self.check(parameters)
        if problems:
            raise UsageError(Problem(what=f"{self.name}: {p.key}: {p.what}", value=p.value, hint=p.hint) for p in problems)
        return self._resolve(parameters)

    def plan(self, parameters: Mapping[str, Any], *, model: str, seed: str, tokenize: Tokenize | None) -> LoadPlan:
        """The load plan for resolved ``parameters``.

        ``seed`` makes prompts unique to a trial and equal for equal seeds. ``tokenize`` is asked only by instruments that
        need exact lengths.
        """
        return self._plan(self.resolve(parameters), model=model, seed=seed, tokenize=tokenize)

    def reduce(self, parameters: Mapping[str, Any], plan: LoadPlan, transcript: Transcript) -> Reading:
        """Figures from what came back. A failed request is counted and enters no figure."""
        return self._reduce(self.resolve(parameters), plan, transcript)

    def size(self, parameters: Mapping[str, Any]) -> tuple[int, int]:
        """A rough (prompt tokens, completion tokens) over the whole trial, for the estimate of a plan."""
        return self._size(self.resolve(parameters))

    @abstractmethod
    def _check(self, parameters: Mapping[str, Any]) -> Sequence[ParameterProblem]: ...

    @abstractmethod
    def _resolve(self, parameters: Mapping[str, Any]) -> Mapping[str, Any]: ...

    @abstractmethod
    def _plan(self, parameters: Mapping[str, Any], *, model: str, seed: str, tokenize: Tokenize | None) -> LoadPlan: ...

    @abstractmethod
    def _reduce(self, parameters: Mapping[str, Any], plan: LoadPlan, transcript: Transcript) -> Reading: ...

    @abstractmethod
    def _size(self, parameters: Mapping[str, Any]) -> tuple[int, int]: ...
