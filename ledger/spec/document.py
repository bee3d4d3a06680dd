"""A TOML document from a file: bounded, decoded, parsed, with the place of everything in it.

What it does: reads at most 1 MiB of a regular file, and turns its bytes into a table and the places of its values. What it does
not do: know what the table means (``structure``, ``check``). Rules kept: depth is bounded before ``tomllib`` runs, numbers
before anything shows them; what is refused is told with its line.
"""

import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path as File
from typing import Any

from ledger.core.errors import Place, Problem, SpecError
from ledger.spec.locate import NotTomlError, Path, Spot, TooDeepError, locate, nearest_spot, spell, syntax_spot

MAX_BYTES = 2**20
BYTE_ORDER_MARK = "\ufeff"
_WHERE = re.compile(r" \(at [^()]*\)$")  # the place is told in front


def read_bounded(path: File) -> bytes:
    """The bytes of a regular file of at most ``MAX_BYTES``.

    Raises:
        SpecError: no such file, not a regular one, too large, or not readable.
    """
    try:
        # Without O_NONBLOCK the opening of a FIFO that nobody writes to would never come back.
        with open(path, "rb", opener=_open_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise SpecError(Problem(what="not a regular file", place=Place(file=str(path))))
            data = file.read(MAX_BYTES + 1)
    except IsADirectoryError as error:
        raise SpecError(Problem(what="not a regular file", place=Place(file=str(path)))) from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        what = f"cannot read it: {error.strerror if isinstance(error, OSError) else error}"
        raise SpecError(Problem(what=what, place=Place(file=str(path)))) from error
    if len(data) > MAX_BYTES:
        what = f"larger than {MAX_BYTES} bytes"
        raise SpecError(Problem(what=what, place=Place(file=str(path)), hint="a spec is written by hand; data goes elsewhere"))
    return data


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def parse(data: bytes, file: str) -> tuple[dict[str, Any], Mapping[Path, Spot]]:
    """The table in ``data`` and the place of each of its values; ``file`` is what messages call it.

    Raises:
        SpecError: not UTF-8, not TOML, nested too deeply, or with a whole number that TOML cannot hold.
    """
    table, places = _parse(_decode(data, file), file)
    # TOML's whole numbers have 64 bits; tomllib takes longer ones, too long to be shown in a message.
    for path in _too_large(table, ()):
        spot = nearest_spot(places, path)
        place = Place(file=file, line=spot.line if spot else 1, path=spell(path))
        raise SpecError(Problem(what="a whole number beyond 64 bits", place=place))
    return table, places


def _decode(data: bytes, file: str) -> str:
    try:
        # TOML calls CRLF a newline; tomllib does the same to the document that it reads from a file.
        text = data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = f"not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}"
        raise SpecError(Problem(what=what, place=Place(file=file, line=line), hint="TOML is UTF-8; save the file so")) from error
    if text.startswith(BYTE_ORDER_MARK):
        what = "a byte order mark, which TOML does not have"
        raise SpecError(Problem(what=what, place=Place(file=file, line=1), hint="save the file as UTF-8 without it"))
    return text


def _parse(text: str, file: str) -> tuple[dict[str, Any], Mapping[Path, Spot]]:
    try:
        places = locate(text)
    except TooDeepError as error:
        raise SpecError(Problem(what=str(error), place=Place(file=file, line=error.spot.line))) from error
    except NotTomlError:
        places = {}
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        spot = syntax_spot(str(error), text)
        place = Place(file=file, line=spot.line)
        what = f"not TOML: {_WHERE.sub('', str(error))}"
        raise SpecError(Problem(what=what, place=place, value=_line(text, spot.line))) from error
    except ValueError as error:  # more decimal digits than Python turns into a whole number
        place = Place(file=file, line=_line_of_digits(text))
        raise SpecError(Problem(what="a whole number beyond 64 bits", place=place)) from error
    return table, places


def _line(text: str, number: int) -> str:
    lines = text.split("\n")
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""


def _line_of_digits(text: str) -> int:
    longest = max(re.finditer(r"[0-9][0-9_]*", text), key=lambda match: len(match.group()))
    return text.count("\n", 0, longest.start()) + 1


def _too_large(value: Any, path: Path) -> Iterator[Path]:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _too_large(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _too_large(item, (*path, index))
