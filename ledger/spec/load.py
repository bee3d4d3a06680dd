"""Specs and sites from files: bounded, located, all mistakes at once.

What it does: reads a TOML file, builds its records and runs every check on them. What it does not do: look at another file
(``plan`` joins spec and site). Rules kept: at most 1 MiB of UTF-8 in a regular file is read; every mistake is told with its
file, line, path, value and way out; the text is kept word for word for the receipt.
"""

import stat
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path as File
from typing import Any, Generic, TypeVar

from attrs import frozen

from ledger.core.errors import Collected, Place, Problem, SpecError
from ledger.spec import check
from ledger.spec.locate import Path, Spot, locate, nearest_spot, spell, syntax_spot
from ledger.spec.model import Site, Spec
from ledger.spec.structure import structure

MAX_BYTES = 2**20
T = TypeVar("T")


@frozen(kw_only=True)
class Loaded(Generic[T]):
    """A spec or site with its text word for word, and the way from a path in it to a place in its file."""

    value: T
    file: str
    text: bytes
    places: Mapping[Path, Spot]

    def place(self, *path: str | int) -> Place:
        """Where ``path`` stands, or the nearest table around it."""
        spot = nearest_spot(self.places, path)
        return Place(file=self.file, line=spot.line if spot else None, path=spell(path))


def load_spec(path: File) -> Loaded[Spec]:
    """The spec in ``path``.

    Raises:
        SpecError: with every mistake in the file.
    """
    return read_spec(read_bounded(path), str(path))


def load_site(path: File) -> Loaded[Site]:
    """The site in ``path``.

    Raises:
        SpecError: with every mistake in the file.
    """
    return read_site(read_bounded(path), str(path))


def read_spec(text: bytes, file: str) -> Loaded[Spec]:
    """The spec in ``text``; ``file`` is what messages call it."""
    return _read(Spec, check.check_spec, text, file)


def read_site(text: bytes, file: str) -> Loaded[Site]:
    """The site in ``text``; ``file`` is what messages call it."""
    return _read(Site, check.check_site, text, file)


def read_bounded(path: File) -> bytes:
    """The bytes of a regular file of at most ``MAX_BYTES``.

    Raises:
        SpecError: no such file, not a regular one, too large, or not readable.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise SpecError(Problem(what="not a regular file", place=Place(file=str(path))))
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SpecError(Problem(what=f"cannot read it: {error.strerror}", place=Place(file=str(path)))) from error
    if len(data) > MAX_BYTES:
        what = f"larger than {MAX_BYTES} bytes"
        raise SpecError(Problem(what=what, place=Place(file=str(path)), hint="a spec is written by hand; data goes elsewhere"))
    return data


def _read(cls: type[T], checks: Callable[[T, check.Complain], None], data: bytes, file: str) -> Loaded[T]:
    text = _decode(data, file)
    table, places = _parse(text, file)
    found = Collected()

    def complain(what: str, *, path: Path, value: Any = None, hint: str | None = None) -> None:
        spot = nearest_spot(places, path)
        found.add(what, place=Place(file=file, line=spot.line if spot else 1, path=spell(path)), value=value, hint=hint)

    value = structure(cls, table, (), complain)
    checks(value, complain)
    _sort(found)
    found.raise_if_any(SpecError)
    return Loaded(value=value, file=file, text=data, places=places)


def _decode(data: bytes, file: str) -> str:
    try:
        # TOML calls CRLF a newline; tomllib does the same to the document that it reads from a file.
        return data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = f"not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}"
        raise SpecError(Problem(what=what, place=Place(file=file, line=line), hint="TOML is UTF-8; save the file so")) from error


def _parse(text: str, file: str) -> tuple[dict[str, Any], Mapping[Path, Spot]]:
    try:
        return tomllib.loads(text), locate(text)
    except tomllib.TOMLDecodeError as error:
        spot = syntax_spot(str(error), text)
        place = Place(file=file, line=spot.line)
        raise SpecError(Problem(what=f"not TOML: {error}", place=place, value=_line(text, spot.line))) from error
    except RecursionError as error:
        raise SpecError(Problem(what="nested too deeply", place=Place(file=file))) from error


def _line(text: str, number: int) -> str:
    lines = text.splitlines()
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""


def _sort(found: Collected) -> None:
    found.problems.sort(key=lambda problem: (problem.place.line or 0) if problem.place else 0)
