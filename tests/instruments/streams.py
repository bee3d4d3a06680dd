"""Builders of events, stream records and replies, for tests that need no socket."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import evolve

from ledger.instruments.base import Read, Reading, Request, StreamRecord, Transcript
from ledger.instruments.registry import get
from ledger.instruments.stream import Reply, decode

DONE = b"data: [DONE]\n\n"
MS = 1_000_000


def data(value: Any) -> bytes:
    """One event holding ``value`` as JSON, its characters as UTF-8."""
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def chunk(delta: dict[str, Any] | None = None, *, finish: str | None = None, **more: Any) -> bytes:
    """One chat completion chunk."""
    return data(
        {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more}
    )


def text(content: str, **more: Any) -> bytes:
    """A chunk with content."""
    return chunk({"content": content}, **more)


def usage(prompt: int, completion: int, *, cached: int | None = None) -> dict[str, Any]:
    """A usage block."""
    block: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": completion}
    if cached is not None:
        block["prompt_tokens_details"] = {"cached_tokens": cached}
    return block


def end(completion: int = 3, prompt: int = 20, *, finish: str = "stop", cached: int | None = None) -> bytes:
    """The finish chunk, the usage chunk without choices, and [DONE]."""
    return chunk(finish=finish) + data({"choices": [], "usage": usage(prompt, completion, cached=cached)}) + DONE


def request(max_tokens: int = 64, *, exact: bool = False, name: str = "r", **more: Any) -> Request:
    """A request that allows ``max_tokens``."""
    return Request(id=name, body={}, max_tokens=max_tokens, exact=exact, **more)


def record(
    *timed: tuple[float, bytes], name: str = "r", wave: str = "w", kind: str = "text/event-stream", **more: Any
) -> StreamRecord:
    """A record of reads at milliseconds after t0."""
    given: dict[str, Any] = {"t0_ns": 0, "status": 200, "headers": {"content-type": kind} if kind else {}, **more}
    reads = tuple(Read(t_ns=int(at * MS), data=piece) for at, piece in timed)
    return StreamRecord(request=name, wave=wave, reads=reads, **given)


def reply(*timed: tuple[float, bytes], asked: Request | None = None, **more: Any) -> Reply:
    """The decoded record of those reads."""
    return decode(record(*timed, **more), asked or request())


def good(
    tokens: int = 11,
    *,
    first_ms: float = 100,
    gap_ms: float = 20,
    prompt: int = 20,
    cached: int | None = None,
    **more: Any,
) -> StreamRecord:
    """A complete record of ``tokens`` one-token chunks."""
    timed = [(first_ms + gap_ms * index, text(f"w{index} ")) for index in range(tokens)]
    timed.append((first_ms + gap_ms * tokens, end(tokens, prompt, cached=cached)))
    return record(*timed, **more)


def reduced(
    name: str, parameters: Mapping[str, Any], answer: Callable[[Request], StreamRecord | None], *, seed: str = "s", **more: Any
) -> Reading:
    """What an instrument reads when each request of its plan is answered by ``answer``; None for no record at all."""
    instrument = get(name)
    plan = instrument.plan(parameters, model="m", seed=seed, tokenize=words_and_template)
    came = [
        evolve(found, request=each.id, wave=wave.id)
        for wave in plan.waves
        for each in wave.requests
        if (found := answer(each)) is not None
    ]
    return instrument.reduce(parameters, plan, Transcript(records=tuple(came), client="test", stamps="virtual", **more))


def words_and_template(messages: Sequence[Mapping[str, str]]) -> int:
    """A token count for tests: a token for each word, and four for each message."""
    return sum(4 + len(message["content"].split()) for message in messages)
