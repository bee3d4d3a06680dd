"""A load plan and what came back for it, as one blob, and back.

What it does: writes plan and transcript as gzipped JSON Lines (the first line is the plan and the client, each further line
one request), byte for byte the same for the same records, and reads them again. What it does not do: keep blobs (``store``)
or reduce them. Rules kept: the bytes of every read survive, as text where they are UTF-8 and as base64 where not; the blob
alone is enough to make every figure again; reading is bounded, and a blob that is not a transcript is an error that says why.
"""

import base64
import binascii
import gzip
import zlib
from typing import Any, TypeVar

import cattrs
import orjson
from attrs import frozen
from cattrs.v import transform_error

from ledger.core.errors import LedgerError, Problem, shorten
from ledger.instruments.base import LoadPlan, Read, StreamRecord, Transcript

MEDIA_TYPE = "application/vnd.ledger.transcript.v1+jsonl+gzip"
FORMAT = 1
MAX_BYTES = 1024 * 1024 * 1024
_GZIP = zlib.MAX_WBITS | 16

T = TypeVar("T")


class TranscriptError(LedgerError):
    """Bytes that are not a transcript, or more of them than are read."""


@frozen(kw_only=True)
class _Head:
    """The first line."""

    transcript: int
    plan: LoadPlan
    client: str
    stamps: str
    lag_p99_ms: float | None = None
    start_spread_ms: float | None = None


def encode(plan: LoadPlan, transcript: Transcript) -> bytes:
    """The blob of ``transcript``, and of the ``plan`` that it answers."""
    head = _Head(
        transcript=FORMAT,
        plan=plan,
        client=transcript.client,
        stamps=transcript.stamps,
        lag_p99_ms=transcript.lag_p99_ms,
        start_spread_ms=transcript.start_spread_ms,
    )
    lines = [_CONVERTER.unstructure(item) for item in (head, *transcript.records)]
    text = b"".join(orjson.dumps(line, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE) for line in lines)
    return gzip.compress(text, compresslevel=6, mtime=0)


def decode(data: bytes, *, limit: int = MAX_BYTES) -> tuple[LoadPlan, Transcript]:
    """The plan and the transcript in a blob of at most ``limit`` bytes once unpacked.

    Raises:
        TranscriptError: not gzip, cut, too large, or a line that is not what it should be.
    """
    lines = _unpack(data, limit).splitlines()
    if not lines:
        raise TranscriptError("an empty transcript")
    head = _structure(lines[0], _Head, 1)
    if head.transcript != FORMAT:
        raise TranscriptError(f"a transcript of format {head.transcript}, and this version reads {FORMAT}")
    records = tuple(_structure(line, StreamRecord, number) for number, line in enumerate(lines[1:], start=2))
    return head.plan, Transcript(
        records=records,
        client=head.client,
        stamps=head.stamps,
        lag_p99_ms=head.lag_p99_ms,
        start_spread_ms=head.start_spread_ms,
    )


def plan_to_json(plan: LoadPlan) -> dict[str, Any]:
    """The plan as plain tables, lists, text and numbers."""
    plain: dict[str, Any] = _CONVERTER.unstructure(plan)
    return plain


def plan_from_json(value: Any) -> LoadPlan:
    """The plan that :func:`plan_to_json` wrote.

    Raises:
        TranscriptError: a value of another shape.
    """
    return _typed(value, LoadPlan, "plan")


def _unpack(data: bytes, limit: int) -> bytes:
    unpacker = zlib.decompressobj(_GZIP)
    try:
        text = unpacker.decompress(data, limit + 1)
    except zlib.error as error:
        raise TranscriptError(f"a transcript is gzip, and this is not: {error}") from error
    if len(text) > limit:
        raise TranscriptError(f"a transcript of more than {limit} bytes is not read")
    if not unpacker.eof or unpacker.unused_data:
        raise TranscriptError("a transcript that was cut, or has something behind its end")
    return text


def _structure(line: bytes, cls: type[T], number: int) -> T:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise TranscriptError(f"line {number} of a transcript is not JSON: {error}") from error
    return _typed(value, cls, f"line {number}")


def _typed(value: Any, cls: type[T], where: str) -> T:
    try:
        return _CONVERTER.structure(value, cls)
    except (cattrs.BaseValidationError, TypeError, ValueError, KeyError) as error:
        raise TranscriptError(Problem(what=f"{where}: {text}") for text in transform_error(error)) from error


def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(omit_if_default=True)
    for kind in (bool, int, str, float):
        converter.register_structure_hook(kind, _strict(kind))
    converter.register_structure_hook(Read, _read)
    converter.register_unstructure_hook(Read, _plain_read)
    return converter


def _strict(kind: type) -> Any:
    """A hook that takes a value of ``kind`` (a whole number for a float too) and converts nothing."""
    accepted: tuple[type, ...] = (int, float) if kind is float else (kind,)

    def hook(value: Any, _: Any) -> Any:
        if isinstance(value, bool) is not (kind is bool) or not isinstance(value, accepted):
            raise TypeError(f"expected {kind.__name__}, got {shorten(value)}")
        return kind(value)

    return hook


def _plain_read(read: Read) -> list[Any]:
    try:
        return [read.t_ns, read.data.decode("utf-8")]
    except UnicodeDecodeError:
        return [read.t_ns, {"base64": base64.b64encode(read.data).decode("ascii")}]


def _read(value: Any, _: Any) -> Read:
    match value:
        case [int(stamp), str(text)]:
            return Read(t_ns=stamp, data=text.encode("utf-8"))
        case [int(stamp), {"base64": str(packed)}]:
            return Read(t_ns=stamp, data=_bytes(packed))
    raise TypeError(f"expected a stamp and its bytes, got {shorten(value)}")


def _bytes(packed: str) -> bytes:
    try:
        return base64.b64decode(packed, validate=True)
    except binascii.Error as error:
        raise ValueError(f"not base64: {error}") from error


_CONVERTER = _converter()
