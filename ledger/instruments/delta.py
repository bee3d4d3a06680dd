"""What one event of an OpenAI-style stream says: text by channel, usage, how it ended, an error.

What it does: reads the JSON of an event, whatever names its server uses for the same thing. What it does not do: stamp or add
up (``stream``). Rules kept: a value of the wrong type is as good as none; text that a server sends under two names is taken
once; ``null`` and empty are nothing; the usage block may stand on any event.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from attrs import frozen

DONE = b"[DONE]"
ERROR_FINISHES = frozenset({"error", "abort"})


@frozen(kw_only=True)
class Usage:
    """The server's own counts: tokens of the prompt, of the reply, and of the prompt that its prefix cache answered."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


@frozen(kw_only=True)
class Delta:
    """What one event adds. ``error`` is the server's own message; ``cached_tokens`` is a count given outside ``usage``."""

    content: str = ""
    reasoning: str = ""
    tool: str = ""
    finish_reason: str | None = None
    usage: Usage | None = None
    cached_tokens: int | None = None
    error: str | None = None

    @property
    def output(self) -> int:
        """Characters of text in all channels; 0 for role, finish and usage events."""
        return len(self.content) + len(self.reasoning) + len(self.tool)


def parse(data: bytes) -> Mapping[str, Any] | None:
    """The JSON object in ``data``, or None when there is none.

    The standard reader is behind the strict one for servers that write NaN or half a surrogate pair.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        try:
            value = json.loads(data.decode("utf-8"))
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def read(value: Mapping[str, Any], *, name: str = "message") -> Delta:
    """What the object of one event says; ``name`` is the event's own name."""
    error = value.get("error")
    if error or name == "error":
        return Delta(error=message_of(error if error else value))
    choice = _first(value.get("choices"))
    delta = _table(choice.get("delta"))
    finish = _text(choice.get("finish_reason")) or None
    return Delta(
        content=_parts(delta.get("content")) or _text(choice.get("text")),
        reasoning=_reasoning(delta),
        tool=_tools(delta),
        finish_reason=finish,
        usage=_usage(value.get("usage")),
        cached_tokens=_count(_table(value.get("timings")).get("cache_n")),
        error=f"finish_reason {finish}" if finish in ERROR_FINISHES else None,
    )


def message_of(error: Any) -> str:
    """The message in an error of any shape, at most 300 characters."""
    if isinstance(error, dict):
        error = error.get("message") or error.get("detail") or error
    text = error if isinstance(error, str) else json.dumps(error, default=str)
    return text[:300]


def _reasoning(delta: Mapping[str, Any]) -> str:
    """The first of the three names that has text: some servers send the same text under two."""
    details = delta.get("reasoning_details")
    parts = details if isinstance(details, list) else []
    return (
        _text(delta.get("reasoning_content"))
        or _text(delta.get("reasoning"))
        or "".join(_text(_table(part).get("text")) for part in parts)
    )


def _tools(delta: Mapping[str, Any]) -> str:
    calls = delta.get("tool_calls")
    functions = [_table(_table(call).get("function")) for call in calls] if isinstance(calls, list) else []
    functions.append(_table(delta.get("function_call")))
    return "".join(_text(function.get("name")) + _text(function.get("arguments")) for function in functions)


def _usage(value: Any) -> Usage | None:
    if not isinstance(value, dict):
        return None
    return Usage(
        prompt_tokens=_count(value.get("prompt_tokens")),
        completion_tokens=_count(value.get("completion_tokens")),
        cached_tokens=_count(_table(value.get("prompt_tokens_details")).get("cached_tokens")),
        reasoning_tokens=_count(_table(value.get("completion_tokens_details")).get("reasoning_tokens")),
    )


def _parts(value: Any) -> str:
    """Content as text, or as a list of parts that hold text."""
    if isinstance(value, list):
        return "".join(_text(_table(part).get("text")) for part in value)
    return _text(value)


def _first(value: Any) -> Mapping[str, Any]:
    return _table(value[0]) if isinstance(value, Sequence) and not isinstance(value, str) and value else {}


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
