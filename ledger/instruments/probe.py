"""Small questions to a server, outside of any measurement.

What it does: reads a JSON document, makes one completed one-token generation, finds the server's own token counter, and asks it
what it is. What it does not do: measure. Rules kept: answers are bounded before they are parsed; nothing is redirected, and no
proxy is used; a server without a counter or without facts is not an error, since many have none.
"""

import ssl
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException, HTTPResponse
from typing import Any

import orjson

from ledger.core import digest
from ledger.core.errors import BackendError, LedgerError
from ledger.core.text import one_line
from ledger.instruments.address import Server, locate
from ledger.instruments.base import LoadPlan, Request, Tokenize, Wave
from ledger.instruments.exchange import Exchange, Limits, Lines, wire, without
from ledger.instruments.openai import chat
from ledger.instruments.stream import decode

MAX_ANSWER_BYTES = 64 * 1024 * 1024
_PROBE = ({"role": "user", "content": "Hello"},)


def read_json(
    base_url: str, path: str, *, timeout_s: float = 5.0, api_key: str | None = None, tls: ssl.SSLContext | None = None
) -> Any:
    """The JSON document at ``path`` (``/props``, ``/v1/models``, ``/version``).

    Raises:
        BackendError: no answer within ``timeout_s``, another status than 2xx, or no JSON.
    """
    return _ask(locate(base_url, tls=tls), "GET", path, None, timeout_s, api_key)


def post_json(
    base_url: str,
    path: str,
    value: Mapping[str, Any],
    *,
    timeout_s: float = 30.0,
    api_key: str | None = None,
    tls: ssl.SSLContext | None = None,
) -> Any:
    """The JSON answer to ``value``.

    Raises:
        BackendError: as :func:`read_json`.
    """
    return _ask(locate(base_url, tls=tls), "POST", path, value, timeout_s, api_key)


def generate_once(
    base_url: str, model: str, timeout_s: float, *, api_key: str | None = None, tls: ssl.SSLContext | None = None
) -> str | None:
    """Make one streamed one-token generation: None when it was completed, and the server is ready, else why it was not.

    Raises:
        UsageError: a URL or API key that cannot be used.
        BackendError: the host has no address.
    """
    server = locate(base_url, tls=tls)
    request = Request(id="ready", body=chat.body(_PROBE, model=model, max_tokens=1, seed="ready"), max_tokens=1)
    exchange = Exchange(
        server=server,
        request=request,
        wave=Wave(id="ready", requests=(request,)),
        bytes_out=wire(server, LoadPlan(waves=()).path, orjson.dumps(request.body), api_key),
        limits=Limits(connect_s=timeout_s, idle_s=timeout_s, deadline_s=timeout_s),
        lines=Lines(),
        gate=lambda: None,
    )
    reply = decode(without(exchange.run(), api_key), request)
    return None if reply.ok else f"{reply.outcome}: {reply.detail}" if reply.detail else reply.outcome


def server_facts(
    base_url: str, *, timeout_s: float = 5.0, api_key: str | None = None, tls: ssl.SSLContext | None = None
) -> dict[str, Any]:
    """What the server says of itself, as short plain values: version or build, model ids, context, slots, chat template.

    Empty where it says nothing. A template is given by its digest, a model file by its name without its folder.
    """
    found = {}
    for path, picked in _FACTS.items():
        try:
            answer = read_json(base_url, path, timeout_s=timeout_s, api_key=api_key, tls=tls)
        except BackendError:
            continue
        for name, way in picked.items():
            value = way(_At(answer))
            if isinstance(value, str | int | float | list) and value not in ("", []):
                found[name] = value
    return found


class _At:
    """A place in an answer of unknown shape: ``at["a"][0]`` never fails, ``value`` is None where nothing is there."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __getitem__(self, key: str | int) -> "_At":
        value = self.value
        if isinstance(value, dict) and isinstance(key, str):
            return _At(value.get(key))
        if isinstance(value, list) and isinstance(key, int) and key < len(value):
            return _At(value[key])
        return _At(None)

    @property
    def scalar(self) -> str | int | float | None:
        """The value where it is short text or a number that JSON can carry exactly."""
        value = self.value
        if isinstance(value, str):
            return one_line(value, 200)
        return value if isinstance(value, int | float) and abs(value) < 2**53 else None


def _model_ids(answer: _At) -> list[str]:
    data = answer["data"].value
    ids = [_At(entry)["id"].scalar for entry in data] if isinstance(data, list) else []
    return [name for name in ids[:64] if isinstance(name, str)]


def _file_name(place: _At) -> str | None:
    return one_line(place.value.replace("\\", "/").rsplit("/", 1)[-1]) if isinstance(place.value, str) else None


def _digest_of(place: _At) -> str | None:
    return digest.of_bytes(place.value.encode("utf-8", "surrogatepass")) if isinstance(place.value, str) else None


_FACTS: Mapping[str, Mapping[str, Callable[[_At], Any]]] = {
    "/get_server_info": {
        "version": lambda at: at["version"].scalar,
        "model_file": lambda at: _file_name(at["model_path"]),
        "tp_size": lambda at: at["tp_size"].scalar,
        "dtype": lambda at: at["dtype"].scalar,
        "quantization": lambda at: at["quantization"].scalar,
        "kv_cache_dtype": lambda at: at["kv_cache_dtype"].scalar,
        "context_length": lambda at: at["context_length"].scalar,
        "mem_fraction_static": lambda at: at["mem_fraction_static"].scalar,
        "chunked_prefill_size": lambda at: at["chunked_prefill_size"].scalar,
        "max_running_requests": lambda at: at["max_running_requests"].scalar,
        "max_total_num_tokens": lambda at: at["max_total_num_tokens"].scalar,
        "speculative_algorithm": lambda at: at["speculative_algorithm"].scalar,
        "disable_radix_cache": lambda at: at["disable_radix_cache"].scalar,
    },
    "/version": {"version": lambda at: at["version"].scalar},
    "/v1/models": {
        "models": _model_ids,
        "owner": lambda at: at["data"][0]["owned_by"].scalar,
        "max_model_len": lambda at: at["data"][0]["max_model_len"].scalar,
        "parameters": lambda at: at["data"][0]["meta"]["n_params"].scalar,
        "context_trained": lambda at: at["data"][0]["meta"]["n_ctx_train"].scalar,
    },
    "/props": {
        "build": lambda at: at["build_info"].scalar,
        "slots": lambda at: at["total_slots"].scalar,
        "context_per_slot": lambda at: at["default_generation_settings"]["n_ctx"].scalar,
        "quantization": lambda at: at["model_ftype"].scalar,
        "model_file": lambda at: _file_name(at["model_path"]),
        "chat_template": lambda at: _digest_of(at["chat_template"]),
    },
}


def server_tokenizer(
    base_url: str,
    model: str | None = None,
    *,
    timeout_s: float = 30.0,
    api_key: str | None = None,
    tls: ssl.SSLContext | None = None,
) -> Tokenize | None:
    """A counter of chat tokens by the server itself: llama.cpp's or vLLM's, or None when it has neither.

    The counter raises :class:`BackendError` when the server stops answering.
    """
    server = locate(base_url, tls=tls)

    def templated(messages: Sequence[Mapping[str, str]]) -> int:
        said = _ask(server, "POST", "/apply-template", {"messages": list(messages)}, timeout_s, api_key)
        asked = {"content": said["prompt"], "add_special": True, "parse_special": True}
        return len(_ask(server, "POST", "/tokenize", asked, timeout_s, api_key)["tokens"])

    def counted(messages: Sequence[Mapping[str, str]]) -> int:
        asked = {"messages": list(messages), "add_generation_prompt": True, **({"model": model} if model else {})}
        return int(_ask(server, "POST", "/tokenize", asked, timeout_s, api_key)["count"])

    for way in (templated, counted):
        if _works(way):
            return _guarded(way)
    return None


def _works(way: Tokenize) -> bool:
    try:
        return way(_PROBE) > 0
    except (LedgerError, KeyError, TypeError, ValueError):
        return False


def _guarded(way: Tokenize) -> Tokenize:
    def count(messages: Sequence[Mapping[str, str]]) -> int:
        try:
            return way(messages)
        except (KeyError, TypeError, ValueError) as error:
            raise BackendError(f"the server's token count is not what it was: {type(error).__name__}") from error

    return count


def _ask(server: Server, method: str, path: str, value: Any, timeout_s: float, api_key: str | None) -> Any:
    where = f"{method} {path}"
    try:
        status, data = _talk(server, method, path, value, timeout_s, api_key)
    except (OSError, HTTPException, ValueError) as error:
        raise BackendError(f"{where}: {one_line(str(error) or type(error).__name__)}") from error
    if not 200 <= status < 300:
        raise BackendError(f"{where}: http {status}: {_start(data, api_key)}")
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise BackendError(f"{where}: not JSON: {_start(data, api_key)}") from error


def _talk(server: Server, method: str, path: str, value: Any, timeout_s: float, api_key: str | None) -> tuple[int, bytes]:
    payload = b"" if value is None else orjson.dumps(value)
    with server.connect(timeout_s, lambda sock: None) as sock:
        sock.sendall(wire(server, path, payload, api_key, method=method))
        response = HTTPResponse(sock, method=method)
        response.begin()
        data = response.read(MAX_ANSWER_BYTES + 1)
    if len(data) > MAX_ANSWER_BYTES:
        raise ValueError(f"an answer of more than {MAX_ANSWER_BYTES} bytes")
    return response.status, data


def _start(data: bytes, api_key: str | None) -> str:
    text = data[:300].decode("utf-8", "replace")
    return one_line(text.replace(api_key, "*" * len(api_key)) if api_key else text, 300)
