"""Secrets in raw samples.

What it does: takes known and secret-shaped values out of what a server sent back, before it becomes a blob. What it does not
do: touch a plan (no request body holds a secret), or text (``secrets``). Rules kept: the mask is as long as what it covers and
stands in the same reads, so that framing, lengths and stamps stay as they were; a value that is spread over reads is found all
the same.
"""

import re
from collections.abc import Iterable, Sequence

from attrs import evolve

from ledger.instruments.base import Read, StreamRecord, Transcript
from ledger.run.secrets import NAMED, SHAPED, Concealer

MASK = b"*"
SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "set-cookie", "cookie"})
_SHAPED = re.compile(SHAPED.pattern.encode(), re.ASCII)


def masked(transcript: Transcript, conceal: Concealer) -> Transcript:
    """The transcript without the secrets that ``conceal`` knows of."""
    return evolve(transcript, records=tuple(_record(record, conceal) for record in transcript.records))


def _record(record: StreamRecord, conceal: Concealer) -> StreamRecord:
    headers = {name: _header(name, value, conceal) for name, value in record.headers.items()}
    error = conceal.text(record.error) if record.error is not None else None
    return evolve(record, headers=headers, error=error, reads=_reads(record.reads, conceal))


def _header(name: str, value: str, conceal: Concealer) -> str:
    if name in SECRET_HEADERS or NAMED.search(name):
        return conceal.value(value)
    return conceal.text(value)


def _reads(reads: Sequence[Read], conceal: Concealer) -> tuple[Read, ...]:
    whole = b"".join(read.data for read in reads)
    spans = list(_spans(whole, conceal))
    if not spans:
        return tuple(reads)
    covered = bytearray(whole)
    for start, end in spans:
        covered[start:end] = MASK * (end - start)
    found, at = [], 0
    for read in reads:
        found.append(evolve(read, data=bytes(covered[at : at + len(read.data)])))
        at += len(read.data)
    return tuple(found)


def _spans(whole: bytes, conceal: Concealer) -> Iterable[tuple[int, int]]:
    for secret in conceal.known:
        plain = re.escape(secret.encode("utf-8", "surrogateescape"))
        yield from (match.span() for match in re.finditer(plain, whole))
    yield from (match.span() for match in _SHAPED.finditer(whole))
