"""``openai/decode``: decode speed at several concurrencies over eight kinds of prompts.

What it does: plans one batch for each level and category, all its streams released by a barrier, and reduces them to ``C<n>``,
``per_stream@C<n>``, ``ttft@C<n>`` (each also by category), ``steady@C<n>`` and ``tokens_per_chunk@C<n>``. What it does not do:
measure prefill. Rules kept: every prompt of a trial is unlike all others from its first token; a batch in which any request
failed gives no figure, and neither does the mean that it belongs to, since categories differ in speed; a batch whose streams
started too far apart for its length gives none either.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ledger.core.errors import Problem, UsageError
from ledger.instruments import parameters as check
from ledger.instruments import rates
from ledger.instruments.base import Instrument, LoadPlan, ParameterProblem, Reading, Request, Tokenize, Transcript, Wave
from ledger.instruments.figures import Batch, absent, batches, count, marked, pooled, single
from ledger.instruments.openai import chat, prompts
from ledger.instruments.parameters import Parameter
from ledger.instruments.rates import Missing, Value
from ledger.instruments.stream import Reply
from ledger.receipt.model import Figure

MAX_LEVEL = 512
MAX_TOKENS = 65_536
# Starts further apart than this are marked; when that is also more than this share of the batch, it has no figure. The wall of
# a batch counts from its first start, so the share bounds what the spread can take off an aggregate; a busy client on a small
# machine wakes threads tens of ms apart, which is worth a mark and not worth losing the figure.
SPREAD_MS = 5.0
SPREAD_SHARE = 0.10
LAG_SHARE = 0.02
PACKED = 1.25
_PROMPT_TOKENS = 48

_CATEGORIES = tuple(prompts.load().prompts)
PARAMETERS: Mapping[str, Parameter] = {
    "levels": Parameter(
        default=[1, 2, 4, 6],
        check=check.list_of(check.whole(1, MAX_LEVEL)),
        about="how many streams decode together, one figure C<n> for each",
    ),
    "categories": Parameter(
        default=list(_CATEGORIES),
        check=check.list_of(check.one_of(_CATEGORIES)),
        about="the kinds of prompts; a figure is the mean over them",
    ),
    "max_tokens": Parameter(
        default=None,
        check=check.whole(2, MAX_TOKENS),
        about="a cap on every category's allowance",
    ),
    "fixed_length": Parameter(
        default=False,
        check=check.flag,
        about="send ignore_eos and refuse a reply that is not as long as its allowance; not every server knows the field",
    ),
    "thinking": Parameter(
        default="server",
        check=check.one_of(chat.THINKING),
        about="off or on sends chat_template_kwargs.enable_thinking; server sends nothing, which every server accepts",
    ),
    "idle_timeout": Parameter(
        default=None,
        check=check.duration,
        about='how long a stream may be silent before its request fails, "60 s"; without it half an hour, for long prefills',
    ),
    "body": Parameter(
        default=None,
        check=check.table_without(chat.SET_HERE),
        about="more fields of the request's body, as they are",
    ),
    "prompts": Parameter(
        default=prompts.load().digest,
        check=check.digest_text,
        about="the digest of the prompts, filled in; a spec that gives it pins them",
    ),
}


class DecodeInstrument(Instrument):
    """Decode speed by concurrency."""

    name = "openai/decode"
    version = 1

    def _check(self, parameters: Mapping[str, Any]) -> Sequence[ParameterProblem]:
        return check.problems(PARAMETERS, parameters)

    def _resolve(self, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        return check.filled(PARAMETERS, parameters)

    def _plan(self, parameters: Mapping[str, Any], *, model: str, seed: str, tokenize: Tokenize | None) -> LoadPlan:
        here = prompts.load().digest
        if parameters["prompts"] != here:
            what = f"{self.name}: these prompts are not in this version"
            raise UsageError(Problem(what=what, value=parameters["prompts"], hint=f"it has {here}"))
        waves = tuple(_wave(parameters, *at, model=model, seed=seed) for at in _cells(parameters))
        return LoadPlan(waves=waves, idle_timeout_s=chat.idle_timeout_s(parameters))

    def _reduce(self, parameters: Mapping[str, Any], plan: LoadPlan, transcript: Transcript) -> Reading:
        done = batches(plan, transcript)
        by_cell = {(batch.wave.labels.get("level"), batch.wave.labels.get("category")): batch for batch in done}
        figures: dict[str, Figure] = {}
        for level in parameters["levels"]:
            cells = {category: by_cell.get((str(level), category)) for category in parameters["categories"]}
            figures |= _level(level, cells, transcript.lag_p99_ms)
        replies = [reply for batch in done for reply in batch.replies if reply.ok]
        counts = count(done)
        return Reading(
            figures=figures,
            launched=counts.launched,
            ok=counts.ok,
            failed=counts.failed,
            cancelled=counts.cancelled,
            reasons=counts.reasons,
            conditions=_conditions(replies),
            marks=_marks(parameters, replies),
        )

    def _size(self, parameters: Mapping[str, Any]) -> tuple[int, int]:
        streams = sum(parameters["levels"])
        completion = streams * sum(_allowance(parameters, category) for category in parameters["categories"])
        return streams * len(parameters["categories"]) * _PROMPT_TOKENS, completion


def _cells(parameters: Mapping[str, Any]) -> list[tuple[int, str]]:
    return [(level, category) for level in parameters["levels"] for category in parameters["categories"]]


def _allowance(parameters: Mapping[str, Any], category: str) -> int:
    own = prompts.load().prompts[category].tokens
    return min(own, int(parameters.get("max_tokens", own)))


def _wave(parameters: Mapping[str, Any], level: int, category: str, *, model: str, seed: str) -> Wave:
    labels = {"level": str(level), "category": category}
    name = f"C{level}/{category}"
    tokens = _allowance(parameters, category)
    sent = []
    for stream in range(1, level + 1):
        request = f"{name}/{stream}"
        said = chat.messages(chat.tag(seed, request), prompts.load().prompts[category].text)
        body = chat.body(
            said,
            model=model,
            max_tokens=tokens,
            seed=seed,
            exact=parameters["fixed_length"],
            thinking=parameters["thinking"],
            more=parameters.get("body"),
        )
        sent.append(Request(id=request, body=body, max_tokens=tokens, labels=labels, exact=parameters["fixed_length"]))
    return Wave(id=name, requests=tuple(sent), labels=labels)


def _level(level: int, cells: Mapping[str, Batch | None], lag_ms: float | None) -> dict[str, Figure]:
    """Every figure of one level: the parts by category, then the means over the categories."""
    made: dict[str, Figure] = {}
    for family, reduced in _PARTS.items():
        head = f"C{level}" if family == "C" else f"{family}@C{level}"
        parts = {category: _part(f"{head}/{category}", batch, reduced, lag_ms) for category, batch in cells.items()}
        made[head] = _headline(head, parts)
        if family in _BY_CATEGORY:
            made |= {f"{head}/{category}": figure for category, figure in parts.items()}
    return made


def _headline(name: str, parts: Mapping[str, Figure]) -> Figure:
    values: dict[str, Value] = {
        category: Missing(figure.absent or "no value") if figure.value is None else figure.value
        for category, figure in parts.items()
    }
    seen = dict.fromkeys(mark for figure in parts.values() for mark in figure.marks)
    return marked(pooled(name, values, statistic="mean"), tuple(seen))


def _part(name: str, batch: Batch | None, reduced: Callable[[str, Batch], Figure], lag_ms: float | None) -> Figure:
    if batch is None:
        return absent(name, "not in the plan")
    if not batch.ok:
        return absent(name, batch.failure())
    spread = rates.start_spread_ms(batch.replies, [request.start_after_s for request in batch.wave.requests])
    wall = max(reply.t0_ns + (reply.t_last_output or 0) for reply in batch.replies) - min(r.t0_ns for r in batch.replies)
    if spread > SPREAD_MS and spread * 1e6 > SPREAD_SHARE * wall:
        return absent(name, f"the streams started {spread:.1f} ms apart")
    marks = [f"starts {spread:.1f} ms apart"] if spread > SPREAD_MS else []
    if any(reply.buffered for reply in batch.replies):
        marks.append("buffered stream")
    figure = marked(reduced(name, batch), marks)
    return marked(figure, _lag_mark(figure, batch, lag_ms))


def _lag_mark(figure: Figure, batch: Batch, lag_ms: float | None) -> tuple[str, ...]:
    """A mark where the client's own lateness is a noticeable share of the time that the figure rests on."""
    if lag_ms is None:
        return ()
    shortest = min(reply.t_last_output or 0 for reply in batch.replies) / 1e6
    if figure.unit == "s" and figure.low is not None:
        shortest = 1000 * figure.low
    return (f"client lag {lag_ms:.1f} ms",) if lag_ms > LAG_SHARE * shortest else ()


def _aggregate(name: str, batch: Batch) -> Figure:
    return single(name, rates.aggregate_tok_s(batch.replies))


def _steady(name: str, batch: Batch) -> Figure:
    return single(name, rates.steady_tok_s(batch.replies))


def _packing(name: str, batch: Batch) -> Figure:
    return single(name, rates.tokens_per_chunk(batch.replies))


def _per_stream(name: str, batch: Batch) -> Figure:
    return pooled(name, [rates.decode_tok_s(reply) for reply in batch.replies], statistic="mean")


def _ttft(name: str, batch: Batch) -> Figure:
    return pooled(name, [rates.ttft_s(reply) for reply in batch.replies], statistic="mean")


_PARTS: Mapping[str, Callable[[str, Batch], Figure]] = {
    "C": _aggregate,
    "per_stream": _per_stream,
    "ttft": _ttft,
    "steady": _steady,
    "tokens_per_chunk": _packing,
}
_BY_CATEGORY = frozenset({"C", "per_stream", "ttft"})


def _conditions(replies: Sequence[Reply]) -> dict[str, str]:
    hits = [chat.cache_hit(reply.cached_tokens, reply.prompt_tokens) for reply in replies]
    if not hits:
        return {}
    return {"prefix_cache": "hit" if True in hits else "unproven" if None in hits else "cold"}


def _marks(parameters: Mapping[str, Any], replies: Sequence[Reply]) -> tuple[str, ...]:
    marks = []
    if parameters["thinking"] == "off" and any(reply.t_first_reasoning is not None for reply in replies):
        marks.append("thinking though switched off")
    packed = rates.tokens_per_chunk(replies)
    if not isinstance(packed, Missing) and packed > PACKED:
        marks.append(f"{packed:.2f} tokens per chunk")
    return tuple(marks)
