"""Chat requests: the body that every instrument sends, and the tag that makes a prompt unlike any other.

What it does: builds bodies and tags from a seed. What it does not do: choose prompts. Rules kept: greedy (``temperature`` 0,
``top_p`` 1) with a seed; usage is always asked for; the allowance is ``max_tokens``, which every server knows; a field that
some servers refuse is sent only when asked for; the tag stands at the very front of the first message, since a prefix cache
answers whatever stands before it.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from ledger.core import units
from ledger.instruments.base import IDLE_S, LoadPlan, Request, Wave

Messages = list[dict[str, str]]

SET_HERE = ("model", "messages", "max_tokens", "stream", "stream_options", "temperature", "top_p", "seed", "ignore_eos")
THINKING = ("server", "off", "on")
# Fewer tokens than this may be the chat template's own words in front of the tag: no sign of a prompt that was seen before.
OWN_PREFIX_TOKENS = 16
CACHED_SHARE = 0.01
_SYSTEM = "You answer in plain words."
_WARM_PROMPTS = ("Name three kinds of bread.", "Say what a kettle is for.", "List four colours.", "Tell me what a bridge does.")


def tag(seed: str, request: str) -> str:
    """Eight hex digits for a request of a trial: equal for equal seeds, and no others alike in practice."""
    return hashlib.sha256(f"{seed}\n{request}".encode()).hexdigest()[:8]


def messages(first: str, prompt: str) -> Messages:
    """A system message that begins with the tag ``first``, and the user's prompt."""
    return [{"role": "system", "content": f"{first} {_SYSTEM}"}, {"role": "user", "content": prompt}]


def body(
    said: Sequence[Mapping[str, str]],
    *,
    model: str,
    max_tokens: int,
    seed: str,
    exact: bool = False,
    thinking: str = "server",
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The JSON body of a streamed greedy request; ``exact`` asks the server not to stop before ``max_tokens``."""
    made: dict[str, Any] = {
        **(more or {}),
        "model": model,
        "messages": [dict(message) for message in said],
        "max_tokens": max_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0,
        "top_p": 1,
        "seed": int(hashlib.sha256(seed.encode()).hexdigest()[:7], 16),
    }
    if exact:
        made["ignore_eos"] = True
    if thinking != "server":
        # A JSON boolean: the text "false" would turn it on.
        made["chat_template_kwargs"] = {**made.get("chat_template_kwargs", {}), "enable_thinking": thinking == "on"}
    return made


def warm_up(count: int, *, model: str, seed: str, max_tokens: int = 16) -> LoadPlan:
    """``count`` requests one after another, with prompts that no instrument sends."""
    waves = []
    for index in range(count):
        name = f"warmup/{index + 1}"
        said = messages(tag(seed, name), _WARM_PROMPTS[index % len(_WARM_PROMPTS)])
        sent = Request(id=name, body=body(said, model=model, max_tokens=max_tokens, seed=seed), max_tokens=max_tokens)
        waves.append(Wave(id=name, requests=(sent,), labels={"phase": "warmup"}))
    return LoadPlan(waves=tuple(waves))


def idle_timeout_s(parameters: Mapping[str, Any]) -> float:
    """How long a stream may be silent before it fails, in seconds: the parameter where it is given, else what any plan has."""
    given = parameters.get("idle_timeout")
    return units.parse(given, dimension="time").number if given is not None else IDLE_S


def cache_hit(cached: int | None, prompt: int | None) -> bool | None:
    """Whether the prefix cache answered part of a prompt; None where the server does not say."""
    if cached is None:
        return None
    return cached >= OWN_PREFIX_TOKENS and cached > CACHED_SHARE * (prompt or 0)
