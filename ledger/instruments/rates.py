"""Rates and times of decoded replies: the definitions that figures print, as pure functions.

What it does: turns complete replies into tokens per second and seconds. What it does not do: decide which replies belong
together (the instruments) or pool over boots (``analysis``). Rules kept: a value that cannot be had is a :class:`Missing`
with its reason, never 0; durations are per stream or of a batch, from first start to last output, never from the order of
completion; a rate over a window shorter than ``MIN_WINDOW_S`` is noise and is refused; a value out of all bounds is refused.
"""

from collections.abc import Sequence
from itertools import pairwise

from attrs import frozen

from ledger.instruments.stream import Reply

NS = 1e9
MIN_WINDOW_S = 0.05
MAX_TOK_S = 1e6
MAX_SECONDS = 86_400.0


@frozen
class Missing:
    """Why there is no value."""

    why: str


Value = float | Missing


def ttft_s(reply: Reply) -> Value:
    """Seconds from the request to the first text."""
    if reply.t_first_output is None:
        return Missing("no text came")
    return _seconds(reply.t_first_output)


def e2e_s(reply: Reply) -> Value:
    """Seconds from the request to the last text; for a token without text of its own, to the event that ended the reply."""
    end = reply.t_last_output if reply.t_last_output is not None else reply.t_end
    return Missing("no text came") if end is None else _seconds(end)


def decode_tok_s(reply: Reply) -> Value:
    """Tokens after the first chunk over the time from first to last text, in tokens per second."""
    tokens = reply.completion_tokens
    if tokens is None:
        return Missing("no usage")
    if tokens < 2:
        return Missing(f"{tokens} token: a rate needs two")
    if reply.buffered:
        return Missing("buffered stream: the text came at once")
    window = _window(reply)
    if reply.chunks[0].read_index == reply.chunks[-1].read_index:
        return Missing("all text came in one read")
    if window < MIN_WINDOW_S:
        return Missing(f"{1000 * window:.1f} ms from first to last text: too short for a rate")
    return _rate(tokens - first_tokens(reply), window)


def tpot_ms(reply: Reply) -> Value:
    """Milliseconds for each token after the first chunk."""
    rate = decode_tok_s(reply)
    return rate if isinstance(rate, Missing) else 1000 / rate


def first_tokens(reply: Reply) -> int:
    """Tokens of the first chunk: as the server counted along, else 1."""
    return reply.first_tokens if reply.first_tokens else 1


def tokens_per_chunk(replies: Sequence[Reply]) -> Value:
    """Tokens over events with text; above 1 where a server packs several into one."""
    chunks = sum(len(reply.chunks) for reply in replies)
    tokens = _tokens(replies)
    if isinstance(tokens, Missing):
        return tokens
    return tokens / chunks if chunks else Missing("no text came")


def aggregate_tok_s(replies: Sequence[Reply]) -> Value:
    """Tokens of all streams over the time from the first start to the last text of any of them."""
    tokens = _tokens(replies)
    if isinstance(tokens, Missing):
        return tokens
    ends = [reply.t0_ns + reply.t_last_output for reply in replies if reply.t_last_output is not None]
    if len(ends) < len(replies):
        return Missing("no text came")
    wall = (max(ends) - min(reply.t0_ns for reply in replies)) / NS
    if wall < MIN_WINDOW_S:
        return Missing(f"the batch took {1000 * wall:.1f} ms: too short for a rate")
    return _rate(tokens, wall)


def steady_tok_s(replies: Sequence[Reply]) -> Value:
    """Tokens produced while every stream decodes, over that time; a chunk's tokens are spread evenly since the chunk before."""
    tokens = _tokens(replies)
    if isinstance(tokens, Missing):
        return tokens
    if any(len(reply.chunks) < 2 or reply.buffered for reply in replies):
        return Missing("a stream came at once")
    start = max(reply.t0_ns + reply.chunks[0].t_ns for reply in replies)
    end = min(reply.t0_ns + reply.chunks[-1].t_ns for reply in replies)
    if (end - start) / NS < MIN_WINDOW_S:
        return Missing("the streams hardly ever decoded all at once")
    return _rate(sum(_share(reply, start, end) for reply in replies), (end - start) / NS)


def start_spread_ms(replies: Sequence[Reply], offsets_s: Sequence[float]) -> float:
    """How far apart streams of one barrier started, in ms, their asked offsets taken off."""
    starts = [reply.t0_ns - offset * NS for reply, offset in zip(replies, offsets_s, strict=True)]
    return (max(starts) - min(starts)) / 1e6


def _share(reply: Reply, start: int, end: int) -> float:
    """Tokens of ``reply`` between two instants of the executor's clock."""
    tokens = (reply.completion_tokens or 0) - first_tokens(reply)
    per_chunk = tokens / (len(reply.chunks) - 1)
    share = 0.0
    for before, after in pairwise(reply.chunks):
        low, high = reply.t0_ns + before.t_ns, reply.t0_ns + after.t_ns
        if high == low:
            share += float(start < high <= end)
        else:
            share += max(0, min(high, end) - max(low, start)) / (high - low)
    return per_chunk * share


def _tokens(replies: Sequence[Reply]) -> int | Missing:
    counts = [reply.completion_tokens for reply in replies]
    without = counts.count(None)
    if without or not counts:
        return Missing(f"no usage in {without} of {len(counts)} replies")
    return sum(count for count in counts if count is not None)


def _window(reply: Reply) -> float:
    return (reply.chunks[-1].t_ns - reply.chunks[0].t_ns) / NS if reply.chunks else 0.0


def _rate(tokens: float, seconds: float) -> Value:
    rate = tokens / seconds
    if not 0 < rate <= MAX_TOK_S:
        return Missing(f"implausible: {rate:.4g} tok/s")
    return rate


def _seconds(ns: int) -> Value:
    seconds = ns / NS
    if not 0 < seconds <= MAX_SECONDS:
        return Missing(f"implausible: {seconds:.4g} s")
    return seconds
