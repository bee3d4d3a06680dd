"""A stream record decoded: when the first and last tokens came, what the server counted, and whether the reply is whole.

What it does: frames the reads, reads each event, and folds them into one :class:`Reply`. What it does not do: compute a rate
(``rates``) or send anything. Rules kept: times are set by text alone, so that role, finish and usage events, comments and
``[DONE]`` stamp nothing; tokens come from the last usage block that is not null, on whatever event it stood; a reply counts
only if it is complete, and everything else is a failure with a reason.
"""

import hashlib
from collections.abc import Sequence
from itertools import pairwise

from attrs import Factory, define, evolve, frozen

from ledger.core.text import one_line
from ledger.instruments import delta, sse
from ledger.instruments.base import Request, StreamRecord
from ledger.instruments.delta import Delta, Usage

OK = "ok"
CANCELLED = "cancelled"
EVENT_STREAM = "text/event-stream"
_SHOWN = 300
# A reply is called buffered when one read holds this share of its text, after this share of its time went by in silence;
# shorter ones than this many tokens are not judged.
_BUFFERED_TEXT = 0.9
_BUFFERED_WAIT = 0.5
_BUFFERED_TOKENS = 4


@frozen(kw_only=True)
class Chunk:
    """One event with text: its stamp in ns after t0, the read that brought it, and how many characters it has."""

    t_ns: int
    read_index: int
    size: int


@frozen(kw_only=True)
class Reply:
    """One decoded reply. Times are ns after ``t0_ns``; None where nothing of the kind came.

    A failed reply has no times and no tokens, only its ``status``, ``outcome`` and ``detail``.

    ``outcome`` is ``ok``, ``cancelled`` or the reason of a failure, one of few so that they can be counted; ``detail`` has
    the server's or client's own words. ``t_end`` is the event that ended the reply (with a ``finish_reason``). ``first_tokens``
    is how many tokens the first chunk held, where the server counts along. ``text_digest`` covers content, reasoning and
    tool-call text, and does not depend on how they were cut into chunks.
    """

    request: str
    wave: str
    t0_ns: int
    outcome: str
    detail: str = ""
    status: int | None = None
    t_headers: int | None = None
    t_first_event: int | None = None
    t_first_content: int | None = None
    t_first_reasoning: int | None = None
    t_first_tool: int | None = None
    t_end: int | None = None
    chunks: tuple[Chunk, ...] = ()
    usage: Usage | None = None
    first_tokens: int | None = None
    cached_tokens: int | None = None
    finish_reason: str | None = None
    done: bool = False
    unterminated: bool = False
    buffered: bool = False
    text_digest: str = ""

    @property
    def ok(self) -> bool:
        """Whether the reply is complete and may enter figures."""
        return self.outcome == OK

    @property
    def t_first_output(self) -> int | None:
        """The first event with content, reasoning or tool-call text."""
        return self.chunks[0].t_ns if self.chunks else None

    @property
    def t_last_output(self) -> int | None:
        """The last event with text; usage, finish and ``[DONE]`` are not output."""
        return self.chunks[-1].t_ns if self.chunks else None

    @property
    def completion_tokens(self) -> int | None:
        """Tokens of the reply by the server's count."""
        return self.usage.completion_tokens if self.usage else None

    @property
    def prompt_tokens(self) -> int | None:
        """Tokens of the prompt by the server's count."""
        return self.usage.prompt_tokens if self.usage else None

    @property
    def chunk_gaps_ns(self) -> tuple[int, ...]:
        """Gaps between events with text; the wait for the first is not one. 0 where one read brought several."""
        return tuple(after.t_ns - before.t_ns for before, after in pairwise(self.chunks))


def decode(record: StreamRecord, request: Request) -> Reply:
    """What came back for ``request``, judged. Never raises for anything a server can send."""
    bare = Reply(
        request=record.request,
        wave=record.wave,
        t0_ns=record.t0_ns,
        outcome=OK,
        status=record.status,
        t_headers=record.headers_ns,
    )
    refused = _refused(record)
    if refused is not None:
        return evolve(bare, outcome=refused[0], detail=refused[1])
    fold = _Fold()
    framing = sse.frame(record.reads)
    for event in framing.events:
        fold.take(event)
    reply = fold.onto(bare)
    outcome, detail = _judge(record, request, reply, fold, oversize=framing.oversize)
    return reply if outcome == OK else evolve(bare, outcome=outcome, detail=one_line(detail, _SHOWN))


@define
class _Fold:
    """What the events so far have said."""

    chunks: list[Chunk] = Factory(list)
    channels: dict[str, list[str]] = Factory(lambda: {"content": [], "reasoning": [], "tool": []})
    first: dict[str, int] = Factory(dict)
    t_first_event: int | None = None
    t_end: int | None = None
    usage: Usage | None = None
    first_tokens: int | None = None
    cached: int | None = None
    finish_reason: str | None = None
    error: str | None = None
    malformed: str | None = None
    done: bool = False
    unterminated: bool = False

    def take(self, event: sse.Event) -> None:
        if self.done:
            return
        self.unterminated = event.unterminated
        if event.data == delta.DONE:
            self.done = True
            return
        if self.t_first_event is None:
            self.t_first_event = event.t_ns
        value = delta.parse(event.data)
        if value is not None:
            self._add(event, delta.read(value, name=event.name))
        elif event.name == "error":
            self.error = self.error or event.data[:_SHOWN].decode("utf-8", "replace")
        else:
            self.malformed = self.malformed or repr(event.data[:_SHOWN])

    def _add(self, event: sse.Event, said: Delta) -> None:
        if said.output:
            if not self.chunks and said.usage is not None:
                self.first_tokens = said.usage.completion_tokens
            self.chunks.append(Chunk(t_ns=event.t_ns, read_index=event.read_index, size=said.output))
            for channel, texts in self.channels.items():
                if text := getattr(said, channel):
                    self.first.setdefault(channel, event.t_ns)
                    texts.append(text)
        if said.finish_reason:
            self.finish_reason = said.finish_reason
            self.t_end = event.t_ns
        self.usage = said.usage or self.usage
        self.cached = said.cached_tokens if said.cached_tokens is not None else self.cached
        self.error = self.error or said.error

    def onto(self, reply: Reply) -> Reply:
        """``reply`` with all that was folded."""
        known = [count for count in (self.cached, self.usage.cached_tokens if self.usage else None) if count is not None]
        return evolve(
            reply,
            t_first_event=self.t_first_event,
            t_first_content=self.first.get("content"),
            t_first_reasoning=self.first.get("reasoning"),
            t_first_tool=self.first.get("tool"),
            t_end=self.t_end,
            chunks=tuple(self.chunks),
            usage=self.usage,
            first_tokens=self.first_tokens,
            cached_tokens=max(known, default=None),
            finish_reason=self.finish_reason,
            done=self.done,
            unterminated=self.unterminated,
            buffered=_buffered(self.chunks, self.usage),
            text_digest=_digest(self.channels),
        )


def _digest(channels: dict[str, list[str]]) -> str:
    joined = {name: "".join(texts) for name, texts in channels.items()}
    state = hashlib.sha256()
    for name, text in joined.items():
        raw = text.encode("utf-8", "surrogatepass")
        state.update(f"{name} {len(raw)}\n".encode() + raw)
    return "sha256:" + state.hexdigest()


def _buffered(chunks: Sequence[Chunk], usage: Usage | None) -> bool:
    """Whether something between the model and us held the text back and let it go at once."""
    tokens = usage.completion_tokens if usage else None
    if max(len(chunks), tokens or 0) < _BUFFERED_TOKENS or not chunks or chunks[-1].t_ns <= 0:
        return False
    by_read: dict[int, int] = {}
    for chunk in chunks:
        by_read[chunk.read_index] = by_read.get(chunk.read_index, 0) + chunk.size
    fullest = max(by_read, key=lambda index: by_read[index])
    if by_read[fullest] < _BUFFERED_TEXT * sum(by_read.values()):
        return False
    at = next(chunk.t_ns for chunk in chunks if chunk.read_index == fullest)
    before = max((chunk.t_ns for chunk in chunks if chunk.t_ns < at), default=0)
    return at - before >= _BUFFERED_WAIT * chunks[-1].t_ns


def _refused(record: StreamRecord) -> tuple[str, str] | None:
    """Why the reply is no event stream at all, with its first bytes; None when it may be one."""
    body = b"".join(read.data for read in record.reads[:64])
    start = one_line(body[:_SHOWN].decode("utf-8", "replace"), _SHOWN)
    if record.status is None:
        reason, detail = _ended(record)
        return (reason, detail) if record.error else ("no response", "")
    if not 200 <= record.status < 300:
        return f"http {record.status}", start
    encoding = record.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in {"", "identity"}:
        return f"content-encoding {one_line(encoding, 20)}", "identity was asked for"
    kind = record.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == EVENT_STREAM or (not kind and _looks_like_events(body)) or (record.error and not body):
        return None
    value = delta.parse(body)
    if value is not None and value.get("error"):
        return "error instead of a stream", one_line(delta.message_of(value["error"]), _SHOWN)
    return "not an event stream", f"{one_line(kind, 60) or 'no content-type'}: {start}"


def _looks_like_events(body: bytes) -> bool:
    return body.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n").startswith((b"data:", b"event:", b":", b"id:", b"retry:"))


def _ended(record: StreamRecord) -> tuple[str, str]:
    """The client's own word for what ended the stream, and the rest of the sentence."""
    reason, _, detail = (record.error or "").partition(": ")
    return reason, detail


def _judge(record: StreamRecord, request: Request, reply: Reply, fold: _Fold, *, oversize: bool) -> tuple[str, str]:
    """The outcome: the first rule of a complete reply that this one breaks."""
    if fold.error is not None:
        return "error in stream", fold.error
    if oversize:
        return "event too large", f"beyond {sse.MAX_EVENT_BYTES} bytes"
    if record.error and not (reply.done and reply.finish_reason):
        return _ended(record)
    if fold.malformed is not None:
        return "malformed event", fold.malformed
    if reply.finish_reason is None:
        return "no finish_reason", "the stream ended without one"
    return _judge_length(request, reply)


def _judge_length(request: Request, reply: Reply) -> tuple[str, str]:
    tokens = reply.completion_tokens
    if not _has_output(request, reply):
        return "no output", f"finish_reason {reply.finish_reason}, {tokens} tokens"
    if tokens is None:
        return ("no usage", "its exact length cannot be checked") if request.exact else (OK, "")
    if tokens > request.max_tokens:
        return "long", f"{tokens} tokens, at most {request.max_tokens} were asked for"
    if request.exact and tokens < request.max_tokens:
        return "short", f"{tokens} of {request.max_tokens} tokens"
    return OK, ""


def _has_output(request: Request, reply: Reply) -> bool:
    """Text, and tokens by the server's count. The one token of a one-token reply may be part of a character: no text yet."""
    if reply.completion_tokens == 0:
        return False
    return bool(reply.chunks) or (request.max_tokens == 1 and reply.completion_tokens == 1)
