"""``openai/agree``: greedy replies to a fixed set of prompts, each asked more than once, to be compared with another boot's.

What it does: asks the same prompts in every session and on every arm, and reduces the replies to how far a boot agrees with
itself (``self_agreement``, and where replies to one prompt part, if they do). What it does not do: compare two boots; the gates
``greedy.*`` do, from the kept replies of both. Rules kept: nothing that differs between two runs stands in a request but the
salt that keeps a cache apart, where that is asked for; a prompt with a failed reply is not judged; whether the later replies
rested on the prefix cache is a condition of the trial.
"""

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from attrs import evolve, frozen

from ledger.core import digest
from ledger.core.errors import Problem, UsageError
from ledger.instruments import parameters as check
from ledger.instruments.base import Instrument, LoadPlan, ParameterProblem, Reading, Request, Tokenize, Transcript, Wave
from ledger.instruments.figures import absent, batches, count, marked, pooled, single
from ledger.instruments.openai import chat
from ledger.instruments.parameters import Parameter
from ledger.instruments.rates import Missing
from ledger.instruments.stream import Reply
from ledger.instruments.wording import TOKENS, Wording, parting, unit_of, wording
from ledger.receipt.model import Figure

SEED = "openai/agree"
SERVER, OFF = "server", "off"
POSITIONS = {TOKENS: "self_differs_at_token", "characters": "self_differs_at_character"}
_PROMPT_TOKENS = 48


@frozen(kw_only=True)
class PromptSet:
    """The prompts by name, in the file's order, and the digest of the file."""

    digest: str
    prompts: Mapping[str, str]


@cache
def load() -> PromptSet:
    """The prompts of this version of the package."""
    data = files("ledger.instruments.openai").joinpath("agree.toml").read_bytes()
    return PromptSet(digest=digest.of_bytes(data), prompts=tomllib.loads(data.decode("utf-8"))["prompts"])


PARAMETERS: Mapping[str, Parameter] = {
    "count": Parameter(
        default=len(load().prompts),
        check=check.whole(1, len(load().prompts)),
        about="how many of the prompts are asked, the first ones of the set",
    ),
    "repeats": Parameter(
        default=2,
        check=check.whole(2, 20),
        about="how often each prompt is asked; all are asked once before any is asked again",
    ),
    "together": Parameter(
        default=1,
        check=check.whole(1, 512),
        about="how many prompts are asked at a time; many servers reply otherwise in another batch",
    ),
    "max_tokens": Parameter(
        default=128,
        check=check.whole(2, 65_536),
        about="the allowance of each reply; the longer, the more a small difference shows",
    ),
    "cache": Parameter(
        default=SERVER,
        check=check.one_of((SERVER, OFF)),
        about=(
            "off asks that the prefix cache answer nothing, by the fields cache_prompt and cache_salt, which not every server "
            "accepts; server sends neither"
        ),
    ),
    "thinking": Parameter(
        default="server",
        check=check.one_of(chat.THINKING),
        about="off or on sends chat_template_kwargs.enable_thinking; server sends nothing, which every server accepts",
    ),
    "idle_timeout": Parameter(
        default=None,
        check=check.duration,
        about='how long a stream may be silent before its request fails, "60 s"; without it half an hour',
    ),
    "body": Parameter(
        default=None,
        check=check.table_without((*chat.SET_HERE, chat.CACHE_PROMPT, chat.CACHE_SALT)),
        about="more fields of the request's body, as they are",
    ),
    "prompts": Parameter(
        default=load().digest,
        check=check.digest_text,
        about="the digest of the prompts, filled in; a spec that gives it pins them",
    ),
}


class AgreeInstrument(Instrument):
    """Greedy agreement: of a boot with itself, and the replies that others are compared with."""

    name = "openai/agree"
    version = 1

    def _check(self, parameters: Mapping[str, Any]) -> Sequence[ParameterProblem]:
        return check.problems(PARAMETERS, parameters)

    def _resolve(self, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        return check.filled(PARAMETERS, parameters)

    def _plan(self, parameters: Mapping[str, Any], *, model: str, seed: str, tokenize: Tokenize | None) -> LoadPlan:
        here = load().digest
        if parameters["prompts"] != here:
            what = f"{self.name}: these prompts are not in this version"
            raise UsageError(Problem(what=what, value=parameters["prompts"], hint=f"it has {here}"))
        waves = []
        for repeat in range(1, parameters["repeats"] + 1):
            sent = [_request(parameters, name, repeat, model=model, seed=seed) for name in _names(parameters)]
            for start in range(0, len(sent), parameters["together"]):
                asked = tuple(sent[start : start + parameters["together"]])
                waves.append(Wave(id=f"agree/{repeat}/{start + 1}", requests=asked, labels={"repeat": str(repeat)}))
        return LoadPlan(waves=tuple(waves), idle_timeout_s=chat.idle_timeout_s(parameters))

    def _reduce(self, parameters: Mapping[str, Any], plan: LoadPlan, transcript: Transcript) -> Reading:
        done = batches(plan, transcript)
        replies = [reply for batch in done for reply in batch.replies]
        by_name = _by_prompt(plan, replies, transcript)
        counts = count(done)
        again = [reply for batch in done if batch.wave.labels.get("repeat") != "1" for reply in batch.replies if reply.ok]
        state = _cached(again)
        return Reading(
            figures=_figures(by_name, parameters["repeats"]),
            launched=counts.launched,
            ok=counts.ok,
            failed=counts.failed,
            cancelled=counts.cancelled,
            reasons=counts.reasons,
            conditions={"repeats_from_cache": state} if state else {},
            marks=("repeats from the prefix cache though switched off",)
            if parameters["cache"] == OFF and state in ("all", "some")
            else (),
        )

    def _size(self, parameters: Mapping[str, Any]) -> tuple[int, int]:
        asked = parameters["repeats"] * parameters["count"]
        return asked * _PROMPT_TOKENS, asked * parameters["max_tokens"]


def _names(parameters: Mapping[str, Any]) -> list[str]:
    return list(load().prompts)[: parameters["count"]]


def _request(parameters: Mapping[str, Any], name: str, repeat: int, *, model: str, seed: str) -> Request:
    request = f"agree/{name}/{repeat}"
    apart = {chat.CACHE_PROMPT: False, chat.CACHE_SALT: chat.tag(seed, request)} if parameters["cache"] == OFF else {}
    body = chat.body(
        [{"role": "user", "content": load().prompts[name]}],
        model=model,
        max_tokens=parameters["max_tokens"],
        seed=SEED,
        thinking=parameters["thinking"],
        more={**parameters.get("body", {}), **apart},
    )
    return Request(id=request, body=body, max_tokens=parameters["max_tokens"], labels={"prompt": name, "repeat": str(repeat)})


def _by_prompt(plan: LoadPlan, replies: Sequence[Reply], transcript: Transcript) -> dict[str, list[Wording | Missing]]:
    """What was said to each prompt, in the order of the asking."""
    names = {request.id: request.labels["prompt"] for wave in plan.waves for request in wave.requests}
    records = {record.request: record for record in transcript.records}
    found: dict[str, list[Wording | Missing]] = {}
    for reply in replies:
        said = wording(records[reply.request]) if reply.ok else Missing(reply.outcome)
        found.setdefault(names[reply.request], []).append(said)
    return found


def _figures(by_name: Mapping[str, Sequence[Wording | Missing]], repeats: int) -> dict[str, Figure]:
    whole = {name: [each for each in said if isinstance(each, Wording)] for name, said in by_name.items()}
    judged = {name: said for name, said in whole.items() if len(said) == repeats}
    if not judged:
        return {"self_agreement": absent("self_agreement", "no prompt has all its replies")}
    unlike = {name: said for name, said in judged.items() if any(parting(said[0], each) for each in said[1:])}
    share = single("self_agreement", 1 - len(unlike) / len(judged))
    left_out = len(by_name) - len(judged)
    marks = [f"{left_out} of {len(by_name)} prompts not judged: a request failed"] if left_out else []
    agreement = marked(evolve(share, n=len(judged), statistic="mean"), marks)
    return {"self_agreement": agreement, **_positions(list(unlike.values()))}


def _positions(unlike: Sequence[Sequence[Wording]]) -> dict[str, Figure]:
    """Where the replies to a prompt part first, over the prompts where they do."""
    if not unlike:
        return {}
    unit = unit_of([each for said in unlike for each in said])
    first = [min(found.position for each in said[1:] if (found := parting(said[0], each, unit))) for said in unlike]
    return {POSITIONS[unit]: pooled(POSITIONS[unit], [float(each) for each in first], statistic="median")}


def _cached(replies: Sequence[Reply]) -> str | None:
    """Whether the repeats rested on the prefix cache: all, some or none of them, or the server does not say; None without any."""
    seen = Counter(chat.cache_hit(reply.cached_tokens, reply.prompt_tokens) for reply in replies)
    if not seen:
        return None
    if seen[None] == seen.total():
        return "not told"
    return "none" if not seen[True] else "all" if seen[True] == seen.total() else "some"
