"""``openai/prefill``: how fast a server reads a prompt of an exact length that it has not seen before.

What it does: plans one-token requests of each length, one after another, each prompt unlike all others from its first token;
reduces them to ``prefill@<tokens>``, the median of the repeats. What it does not do: count tokens itself; ``tokenize`` is the
server's own count, and the reply's usage must agree with it. Rules kept: a repeat that the prefix cache answered never mixes
with cold ones; where the server does not say what was cached, a repeat much faster than its slowest sibling is taken for a hit;
where it does say, such a spread is only marked.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from ledger.instruments import parameters as check
from ledger.instruments import rates
from ledger.instruments.base import Instrument, LoadPlan, ParameterProblem, Reading, Request, Tokenize, Transcript, Wave
from ledger.instruments.figures import absent, batches, count, marked, pooled
from ledger.instruments.openai import chat, filler
from ledger.instruments.parameters import Parameter
from ledger.instruments.rates import Missing
from ledger.instruments.stream import Reply
from ledger.receipt.model import Figure

SIBLING_RATIO = 1.5
LAG_SHARE = 0.02
PARAMETERS: Mapping[str, Parameter] = {
    "lengths": Parameter(
        default=[500, 2000, 6000],
        check=check.list_of(check.whole(filler.SHORTEST, 4_000_000)),
        about="prompt lengths in tokens, chat template included, by the server's own count",
    ),
    "repeats": Parameter(default=3, check=check.whole(1, 100), about="prompts of each length, all different"),
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
    "body": Parameter(default=None, check=check.table_without(chat.SET_HERE), about="more fields of the request's body"),
}


class PrefillInstrument(Instrument):
    """Prefill speed by prompt length."""

    name = "openai/prefill"
    version = 1

    def _check(self, parameters: Mapping[str, Any]) -> Sequence[ParameterProblem]:
        return check.problems(PARAMETERS, parameters)

    def _resolve(self, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        return check.filled(PARAMETERS, parameters)

    def _plan(self, parameters: Mapping[str, Any], *, model: str, seed: str, tokenize: Tokenize | None) -> LoadPlan:
        waves = []
        for length in parameters["lengths"]:
            for repeat in range(1, parameters["repeats"] + 1):
                name = f"prefill@{length}/{repeat}"
                said = filler.fit(length, seed=f"{seed}\n{name}", tokenize=tokenize)
                waves.append(_wave(parameters, name, length, said, model=model, seed=seed))
        return LoadPlan(waves=tuple(waves), idle_timeout_s=chat.idle_timeout_s(parameters))

    def _reduce(self, parameters: Mapping[str, Any], plan: LoadPlan, transcript: Transcript) -> Reading:
        done = batches(plan, transcript)
        rungs = {}
        for length in parameters["lengths"]:
            found = [batch for batch in done if batch.wave.labels.get("length") == str(length)]
            replies = [reply for batch in found for reply in batch.replies]
            rungs[f"prefill@{length}"] = _rung(length, replies, transcript.lag_p99_ms)
        counts = count(done)
        return Reading(
            figures={name: rung.figure for name, rung in rungs.items()},
            launched=counts.launched,
            ok=counts.ok,
            failed=counts.failed,
            cancelled=counts.cancelled,
            reasons=counts.reasons,
            conditions=_worst({rung.state for rung in rungs.values()}),
        )

    def _size(self, parameters: Mapping[str, Any]) -> tuple[int, int]:
        repeats = parameters["repeats"]
        return repeats * sum(parameters["lengths"]), repeats * len(parameters["lengths"])


def _wave(parameters: Mapping[str, Any], name: str, length: int, said: chat.Messages, *, model: str, seed: str) -> Wave:
    labels = {"length": str(length)}
    sent = Request(
        id=name,
        body=chat.body(said, model=model, max_tokens=1, seed=seed, thinking=parameters["thinking"], more=parameters.get("body")),
        max_tokens=1,
        labels=labels,
        expect_prompt_tokens=length,
    )
    return Wave(id=name, requests=(sent,), labels=labels)


@frozen(kw_only=True)
class _Sample:
    """One repeat: its rate, and whether the prefix cache answered it (None where the server does not say)."""

    rate: float
    hit: bool | None


@frozen(kw_only=True)
class _Rung:
    """The figure of one length, and the worst state of its repeats: ``hit``, ``unproven``, ``cold``, or None without any."""

    figure: Figure
    state: str | None = None


def _rung(length: int, replies: Sequence[Reply], lag_ms: float | None) -> _Rung:
    name = f"prefill@{length}"
    taken = [_sample(length, reply) for reply in replies]
    samples = [each for each in taken if isinstance(each, _Sample)]
    bad = Counter(each.why for each in taken if isinstance(each, Missing))
    left_out = tuple(f"{number} of {len(taken)} repeats left out: {why}" for why, number in bad.items())
    if not samples:
        return _Rung(figure=absent(name, "; ".join(left_out) or "not in the plan"))
    rung = _pool(name, samples)
    late = lag_ms is not None and lag_ms > LAG_SHARE * 1000 * length / max(sample.rate for sample in samples)
    marks = (*left_out, f"client lag {lag_ms:.1f} ms") if late else left_out
    return evolve(rung, figure=marked(rung.figure, marks))


def _sample(length: int, reply: Reply) -> _Sample | Missing:
    if not reply.ok:
        return Missing(reply.outcome)
    seconds = rates.e2e_s(reply)
    if isinstance(seconds, Missing):
        return seconds
    if reply.prompt_tokens is None:
        return Missing("no usage")
    # Some servers count only what the cache did not answer.
    if length not in (reply.prompt_tokens, reply.prompt_tokens + (reply.cached_tokens or 0)):
        return Missing(f"the prompt had {reply.prompt_tokens} tokens by the server's count, not {length}")
    rate = length / seconds
    if not 0 < rate <= rates.MAX_TOK_S:
        return Missing(f"implausible: {rate:.4g} tok/s")
    return _Sample(rate=rate, hit=chat.cache_hit(reply.cached_tokens, length))


def _pool(name: str, samples: Sequence[_Sample]) -> _Rung:
    """Cold repeats alone where there are some, else the hits, said to be hits."""
    slowest = min(sample.rate for sample in samples)
    hits = [sample.rate > SIBLING_RATIO * slowest if sample.hit is None else sample.hit for sample in samples]
    cold = [sample.rate for sample, hit in zip(samples, hits, strict=True) if not hit]
    proven = "cold" if all(sample.hit is not None for sample in samples) else "unproven"
    figure = pooled(name, cold or [sample.rate for sample in samples], statistic="median")
    marks = []
    if cold and any(hits):
        marks.append(f"{sum(hits)} of {len(samples)} repeats left out: prefix cache")
    if cold and max(cold) > SIBLING_RATIO * min(cold):
        marks.append(f"repeats differ by {max(cold) / min(cold):.1f}x")
    conditions = {"prefix_cache": proven if cold else "hit"}
    return _Rung(figure=marked(evolve(figure, conditions=conditions), marks), state="hit" if any(hits) else proven)


def _worst(states: Collection[str | None]) -> dict[str, str]:
    """The trial's own state: a hit anywhere is a hit."""
    found = next((state for state in ("hit", "unproven", "cold") if state in states), None)
    return {"prefix_cache": found} if found else {}
