"""Canonical JSON bytes (RFC 8785) and their strict reading.

What it does: :func:`encode` gives the one byte string of a value; :func:`decode` reads bytes without surprises. What it does
not do: know any record. Rules kept: NaN, infinity, null, lone surrogates and whole numbers beyond 2**53 - 1 are refused, never
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
MAX_WHOLE = 2**53 - 1

_FAST = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
# JSON is read with its alphabet made small: every mark between values as a colon, digits from 1 on as 1, false as true, null as
# an exponent, and neither signs nor other letters. Quotes stay, so that what is in a string does not look like a number.
_SMALL = bytes.maketrans(b"[]},123456789fn", b"::::111111111te")
_LEFT_OUT = bytes(set(range(256)) - set(b'.0123456789:,[]}"tfen'))
# What orjson may spell otherwise than RFC 8785 is, in that alphabet: 1.0 and -0.0; small fractions; and with no digits
# left, exponents, and null for NaN. Whole numbers from 2**53 on it refuses itself.
_WHOLE_FLOAT, _SMALL_FRACTION, _EXPONENT_OR_NULL = b".0:", b":0.0000", b":e:"
# RFC 8785 sorts keys by UTF-16 code units and orjson by code points: the same order until a character beyond U+FFFF.
_BEYOND_BMP = re.compile(rb"[\xf0-\xf4]")
_ONE_KIND = bytes.maketrans(b"[]", b"{}")
_NOT_MARKS = bytes(set(range(256)) - set(b'[]{}"'))
# RFC 8785 spells whole floats from here on with an exponent, which is read back as a float.
_SPELLED_WITH_EXPONENT = 1e21


class CanonicalError(LedgerError):
    """A value without canonical bytes, or bytes that are not acceptable JSON."""


def encode(value: Any) -> bytes:
    """The RFC 8785 bytes of ``value`` (dicts, lists, tuples, str, int, float, bool).

    Raises:
        CanonicalError: NaN, infinity, None, whole numbers beyond ±(2**53 - 1), lone surrogates, an unknown type, or a
            value nested deeper than ``MAX_DEPTH``, which :func:`decode` would not read.
    """
    try:
        fast = orjson.dumps(value, option=_FAST)
    except (TypeError, ValueError, RecursionError) as error:
        raise CanonicalError(f"this value has no canonical JSON: {error}") from error
    if _is_too_deep(fast):  # for then it could be written and not be read
        raise CanonicalError(f"nested deeper than {MAX_DEPTH}")
    if not _may_differ(fast):
        return fast
    _refuse(value, "$")
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
    if _is_too_deep(data):
        raise CanonicalError(f"nested deeper than {MAX_DEPTH}")
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise CanonicalError(f"not JSON: {error}") from error


def is_canonical(data: bytes) -> bool:
    """Whether ``data`` is exactly the canonical form of the value it holds."""
    try:
        return spells(decode(data), data)
    except CanonicalError:
        return False


def spells(value: Any, data: bytes) -> bool:
    """Whether ``data`` is the canonical form of ``value``, which :func:`decode` read from it."""
    try:
        # What was read is not nested too deep, so bytes of the fast path need no other look.
        return (orjson.dumps(value, option=_FAST) == data and not _may_differ(data)) or encode(value) == data
    except (CanonicalError, TypeError):
        return False


def _may_differ(data: bytes) -> bool:
    """Whether RFC 8785 may have other bytes for the value that orjson wrote as ``data``; no only when it cannot."""
    if not data.isascii() and _BEYOND_BMP.search(data):
        return True
    # Nearly always there is nothing, not even in a string, and taking the strings out costs as much as this look.
    return _is_suspect(data) and _is_suspect(_outside_strings(data))


def _is_suspect(data: bytes) -> bool:
    """Whether somewhere in JSON ``data``, in a string or not, is what looks like something that orjson spells otherwise."""
    small = b":%b:" % data.translate(_SMALL, _LEFT_OUT)
    if _WHOLE_FLOAT in small or _SMALL_FRACTION in small:
        return True
    return _EXPONENT_OR_NULL in small.translate(None, b"01.")


def _refuse(value: Any, path: str) -> None:
    if value is None:
        raise CanonicalError(f"null at {path}: an absent field is left out, never null")
    if isinstance(value, float) and value.is_integer() and MAX_WHOLE < abs(value) < _SPELLED_WITH_EXPONENT:
        raise CanonicalError(f"{value} at {path}: a whole number beyond 2**53 - 1 is written as text")
    if isinstance(value, dict):
        for key, item in value.items():
            _refuse(item, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _refuse(item, f"{path}[{index}]")


def _outside_strings(data: bytes) -> bytes:
    """JSON ``data`` with its strings empty."""
    return b'""'.join(_unescaped(data).split(b'"')[::2])


def _unescaped(data: bytes) -> bytes:
    """``data`` with every quote gone that does not open or close a string."""
    return data.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in data else data


def _is_too_deep(data: bytes) -> bool:
    """Whether brackets outside strings are nested deeper than ``MAX_DEPTH``; what is not well-formed is left to the parser."""
    # What opens in the first half and what closes in the second one bound the depth, wherever it is greatest.
    half = len(data) // 2
    if data.count(b"{", 0, half) + data.count(b"[", 0, half) <= MAX_DEPTH >= data.count(b"}", half) + data.count(b"]", half):
        return False
    marks = _unescaped(data).translate(_ONE_KIND, _NOT_MARKS)
    levels = marks.replace(b'""', b"")
    if b'"' in levels:  # which is so exactly when a string has a bracket in it
        levels = b"".join(marks.split(b'"')[::2])
    for _ in range(MAX_DEPTH):
        inner = len(levels)
        levels = levels.replace(b"{}", b"")
        if len(levels) == inner:
            return False
    return bool(levels)
