"""Canonical JSON bytes (RFC 8785) and their strict reading.

What it does: :func:`encode` gives the one byte string of a value; :func:`decode` reads bytes without surprises. What it does
not do: know any record. Rules kept: NaN, infinity, null, lone surrogates and integers beyond 2**53 are refused, never
rounded; the bytes are those of the ``rfc8785`` package for every value. The fast path through ``orjson`` is taken only where
the two cannot differ, and ``tests/core/test_canonical.py`` compares them over generated values.
"""

import re
from typing import Any

import orjson
import rfc8785

from ledger.core.errors import LedgerError

MAX_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 64

# Numbers that orjson spells otherwise than RFC 8785 (1.0, -0.0, exponents, small fractions), integers that may pass 2**53,
# and nulls (orjson writes NaN as null). A number or null follows one of `:,[`, or stands alone.
_DIFFERS = re.compile(rb"(?:^|[:,\[])(?:-0|-?[0-9]+\.0(?![0-9])|-?[0-9]+(?:\.[0-9]+)?e|-?0\.0000|-?[0-9]{16}|null)|[^\x00-\x7f]")


class CanonicalError(LedgerError):
    """A value without canonical bytes, or bytes that are not acceptable JSON."""


def encode(value: Any) -> bytes:
    """The RFC 8785 bytes of ``value`` (dicts, lists, tuples, str, int, float, bool).

    Raises:
        CanonicalError: NaN, infinity, None, integers beyond ±(2**53 - 1), lone surrogates, or an unknown type.
    """
    try:
        fast = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except (TypeError, ValueError, RecursionError) as error:
        raise CanonicalError(f"this value has no canonical JSON: {error}") from error
    if not _DIFFERS.search(fast):
        return fast
    _refuse_null(value, "$", 0)
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, ValueError, RecursionError) as error:
        raise CanonicalError(f"this value has no canonical JSON: {error}") from error


def decode(data: bytes, *, limit: int = MAX_BYTES) -> Any:
    """The value of JSON ``data``: at most ``limit`` bytes, nested at most ``MAX_DEPTH`` deep.

    Duplicate keys are not seen here: compare with :func:`encode`, which :func:`is_canonical` does.

    Raises:
        CanonicalError: too large, too deep, or not JSON.
    """
    if len(data) > limit:
        raise CanonicalError(f"{len(data)} bytes, and at most {limit} are read")
    if _depth_bound(data) > MAX_DEPTH:
        raise CanonicalError(f"nested deeper than {MAX_DEPTH}")
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise CanonicalError(f"not JSON: {error}") from error


def is_canonical(data: bytes) -> bool:
    """Whether ``data`` is exactly the canonical form of the value it holds."""
    try:
        return encode(decode(data)) == data
    except CanonicalError:
        return False


def _refuse_null(value: Any, path: str, depth: int) -> None:
    if value is None:
        raise CanonicalError(f"null at {path}: an absent field is left out, never null")
    if depth > MAX_DEPTH:
        raise CanonicalError(f"nested deeper than {MAX_DEPTH} at {path}")
    if isinstance(value, dict):
        for key, item in value.items():
            _refuse_null(item, f"{path}.{key}", depth + 1)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _refuse_null(item, f"{path}[{index}]", depth + 1)


_OUTSIDE = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', re.DOTALL)


def _depth_bound(data: bytes) -> int:
    """The deepest nesting of brackets outside strings; cheap when there are few brackets."""
    if data.count(b"{") + data.count(b"[") <= MAX_DEPTH:
        return 0
    depth = deepest = 0
    for match in _OUTSIDE.finditer(data):
        first = match.group()[:1]
        if first in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif first in b"]}":
            depth -= 1
    return deepest
