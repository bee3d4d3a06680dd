"""A result file as data, whatever shape its tool gave it.

What it does: reads JSON (also with log lines around it, several values in a row, or one a line), CSV and ZIP into plain values,
and notes what was odd. What it does not do: know a tool. Rules kept: NaN, infinity and numbers beyond a float become None and
are counted, never zero; a file that was cut is an error, or a note where what stands before the cut is whole; sizes are bounded
before anything is unpacked; nothing is written to disk and nothing in the file is executed.
"""

import csv
import io
import json
import math
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from ledger.core.errors import LedgerError, Problem, shorten

MAX_BYTES = 512 * 2**20
MAX_UNPACKED = 1024 * 2**20
MAX_MEMBERS = 100_000
CUT = "the file seems to be cut: its last line has no end"
_DECODER_ERRORS = (json.JSONDecodeError, RecursionError)


class ExtractError(LedgerError):
    """A file that is no result file, or not a whole one."""


@frozen(kw_only=True)
class Document:
    """A file's content: its JSON values in order, its CSV rows, the JSON members of a ZIP by name, the text around the JSON.

    ``notes`` are for people: what was odd about the file. ``is_cut`` says that it seems to end before its tool was done.
    """

    name: str
    values: tuple[Any, ...] = ()
    rows: tuple[Mapping[str, str], ...] = ()
    members: Mapping[str, Any] = field(factory=dict)
    text: str = ""
    notes: tuple[str, ...] = ()
    is_cut: bool = False

    @property
    def marks(self) -> tuple[str, ...]:
        """What a figure over all that the file holds is to be marked with."""
        return ("cut file",) if self.is_cut else ()

    @property
    def root(self) -> Any:
        """The one JSON value of the file, or None when there is none or more than one."""
        return self.values[0] if len(self.values) == 1 else None


def read_document(name: str, data: bytes) -> Document:
    """The document in ``data``; ``name`` is the file's own, for its ending and for messages.

    Raises:
        ExtractError: too large, cut, or in a form that holds no values.
    """
    if len(data) > MAX_BYTES:
        raise _refused(name, f"{len(data)} bytes, and at most {MAX_BYTES} are read")
    if not data.strip():
        raise _refused(name, "the file is empty")
    if data.startswith(b"PK\x03\x04"):
        return _zipped(name, data)
    text = data.decode("utf-8-sig", "replace")
    if name.endswith(".csv"):
        return _table(name, text)
    return _json(name, text)


class _Numbers:
    """Hooks for JSON numbers that no figure can have."""

    def __init__(self) -> None:
        self.odd = 0
        self._decoder = json.JSONDecoder(parse_constant=self.constant, parse_float=self.number)

    def constant(self, _: str) -> None:
        """NaN and the infinities."""
        self.odd += 1

    def number(self, text: str) -> float | None:
        """A float; None beyond its range."""
        value = float(text)
        if math.isfinite(value):
            return value
        self.odd += 1
        return None

    def decode(self, text: str, at: int = 0) -> tuple[Any, int]:
        """The value that begins here, and where it ends; of what is no value, no number counts."""
        before = self.odd
        try:
            return self._decoder.raw_decode(text, at)
        except _DECODER_ERRORS:
            self.odd = before
            raise

    def notes(self) -> tuple[str, ...]:
        """What is to be said of them."""
        return (f"{self.odd} numbers were NaN or infinite and are absent",) if self.odd else ()


def _json(name: str, text: str) -> Document:
    """Every JSON value that begins at the start of a line, and the text around them."""
    numbers = _Numbers()
    values: list[Any] = []
    around: list[str] = []
    notes: list[str] = []
    at = 0
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        begins = at + len(text[at:end]) - len(text[at:end].lstrip())
        if text[begins : begins + 1] not in ("{", "["):
            around.append(text[at:end])
            at = end
            continue
        try:
            value, at = _value(numbers, text, begins, end)
        except _DECODER_ERRORS as error:
            if not _is_cut(error):
                around.append(text[at:end])
                at = end
                continue
            if not values or "\n" in text[begins:].strip():
                raise _refused(name, "the JSON ends before it is complete: the file was cut") from error
            notes.append(f"the last of {len(values) + 1} lines is cut and is left out")
            break
        values.append(value)
    rest = "".join(around)
    if not values and not rest.strip():
        raise _refused(name, "no JSON in it")
    if len(values) > 1 and not notes and not text.endswith("\n"):
        notes.append(CUT)
    return Document(name=name, values=tuple(values), text=rest, notes=(*notes, *numbers.notes()), is_cut=bool(notes))


def _value(numbers: _Numbers, text: str, begins: int, end: int) -> tuple[Any, int]:
    """The value that begins here, and where it ends: on its line, or on a later one where the line alone is not all of it.

    The parser's error counts every line before its place, so that a log of many lines that begin like JSON would take for ever.
    """
    try:
        value, length = numbers.decode(text[begins:end])
        return value, begins + length
    except json.JSONDecodeError as error:
        if not _is_cut(error):
            raise
    return numbers.decode(text, begins)


def _is_cut(error: Exception) -> bool:
    """Whether the parser wanted more when the text was over. Such a message names the place where the open thing began."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    rest = error.doc[error.pos :].rstrip()
    opened = error.msg.startswith("Unterminated string")
    return opened or (len(rest) <= len("Infinity") and "\n" not in rest and "]" not in rest and "}" not in rest)


def _table(name: str, text: str) -> Document:
    """A CSV file with a header."""
    notes = () if text.endswith("\n") else (CUT,)
    try:
        reader = csv.DictReader(io.StringIO(text), strict=True)
        rows = list(reader)
    except csv.Error as error:
        raise _refused(name, f"not CSV: {error}") from error
    if not reader.fieldnames or not rows:
        raise _refused(name, "a header and no row")
    for row in rows:
        if None in row or None in row.values():
            raise _refused(name, f"line {reader.line_num} has not the columns of the header: the file was cut or is no CSV")
    return Document(name=name, rows=tuple(rows), notes=notes, is_cut=bool(notes))


def _zipped(name: str, data: bytes) -> Document:
    """The JSON members of a ZIP; others are left where they are."""
    numbers = _Numbers()
    members: dict[str, Any] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = [info for info in archive.infolist() if info.filename.endswith(".json")]
            if len(infos) > MAX_MEMBERS or sum(info.file_size for info in infos) > MAX_UNPACKED:
                raise _refused(name, f"it would unpack to more than {MAX_UNPACKED} bytes or {MAX_MEMBERS} files")
            for info in infos:
                with archive.open(info) as member:
                    unpacked = member.read(info.file_size + 1)
                if len(unpacked) != info.file_size:
                    raise _refused(name, f"the member {shorten(info.filename)} has not the size that it says")
                text = unpacked.decode("utf-8").strip()
                members[info.filename], end = numbers.decode(text)
                if end != len(text):
                    raise _refused(name, f"the member {shorten(info.filename)} is not JSON alone")
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        RuntimeError,
        UnicodeDecodeError,
        *_DECODER_ERRORS,
    ) as error:
        raise _refused(name, f"a ZIP that is damaged or cut: {error}") from error
    if not members:
        raise _refused(name, "a ZIP without a JSON file")
    return Document(name=name, members=members, notes=numbers.notes())


def _refused(name: str, what: str) -> ExtractError:
    return ExtractError(Problem(what=what, value=name, hint="ledger import --formats lists what can be read"))
