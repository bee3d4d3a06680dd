"""A spec and the files that it includes, as one text.

What it does: puts what ``include`` names behind the spec's own text, and says of each line of the whole from which file it is.
What it does not do: merge tables; TOML itself refuses a lane that stands in two files. Rules kept: the whole is what a receipt
keeps, so that it is read again without the files; an included file holds tables alone, since a key before the first of them
would fall into the spec's last one; nothing outside of the spec's own folder is followed; an included file includes nothing.
"""

import os
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path as File
from typing import Any, TypeGuard

import attrs
from attrs import frozen

from ledger.core.errors import Collected, Place, Problem, SpecError
from ledger.spec.document import MAX_BYTES, parse, read_bounded
from ledger.spec.locate import Spot, nearest_spot, spell
from ledger.spec.model import MAX_INCLUDES

KEY = "include"


@frozen(kw_only=True)
class Part:
    """Lines of a whole that come from one file: ``first`` is the line of the whole at which its line 1 stands."""

    first: int
    file: str


@frozen(kw_only=True)
class Whole:
    """A document with what it includes: its bytes, and the files that its lines come from, in their order."""

    data: bytes
    parts: tuple[Part, ...]

    def place(self, spot: Spot | None, path: str = "") -> Place:
        """The file and line of a spot of the whole."""
        return origin(self.parts, Place(file=self.parts[0].file, line=spot.line if spot else None, path=path))


def origin(parts: Sequence[Part], place: Place) -> Place:
    """``place``, which counts its lines in the whole, in the file that the line comes from."""
    if place.line is None:
        return place
    part = parts[bisect_right([part.first for part in parts], place.line) - 1]
    return attrs.evolve(place, file=part.file, line=place.line - part.first + 1)


def alone(data: bytes, file: str) -> Whole:
    """A document that includes nothing, or whose includes are in it already."""
    return Whole(data=data, parts=(Part(first=1, file=file),))


def with_included(data: bytes, path: File) -> Whole:
    """The spec in ``data``, read from ``path``, with every file that it includes behind it.

    Raises:
        SpecError: one of the files is not TOML, an included one cannot be read, or is none that can be included.
    """
    table, places = parse(data, str(path))
    named = table.get(KEY)
    if not _is_list_of_text(named):
        return alone(data, str(path))  # what is wrong with it is told with the other mistakes
    found = Collected()
    texts, parts = [_ended(data)], [Part(first=1, file=str(path))]
    for index, name in enumerate(named[: MAX_INCLUDES + 1]):
        if wrong := _wrong(path.parent, name, index):
            spot = nearest_spot(places, (KEY, index))
            place = Place(file=str(path), line=spot.line if spot else None, path=spell((KEY, index)))
            found.add(wrong[0], place=place, value=name, hint=wrong[1])
            continue
        parts.append(Part(first=sum(text.count(b"\n") for text in texts) + 1, file=str(path.parent / name)))
        texts.append(_ended(_tables(path.parent / name)))
    whole = b"".join(texts)
    if len(whole) > MAX_BYTES:
        found.add(f"larger than {MAX_BYTES} bytes with what it includes", place=Place(file=str(path)))
    if found.problems:
        raise SpecError(found.problems)
    return Whole(data=whole, parts=tuple(parts))


def _is_list_of_text(named: Any) -> TypeGuard[list[str]]:
    return isinstance(named, list) and bool(named) and all(isinstance(name, str) for name in named)


def _wrong(folder: File, name: str, index: int) -> tuple[str, str] | None:
    """Why a file cannot be included, and the way out."""
    if index >= MAX_INCLUDES:
        return f"more than {MAX_INCLUDES} files", "put what belongs together into one file"
    if "\0" in name:
        return "no name of a file", "a name cannot hold a NUL"
    if not File(os.path.realpath(folder / name)).is_relative_to(os.path.realpath(folder)):
        return "a file outside the folder of the spec", "a spec includes files of its own folder and those below it"
    if not (folder / name).is_file():
        return "no such file", "the name is relative to the folder of the spec"
    return None


def _tables(file: File) -> bytes:
    """The text of a file that holds tables alone.

    Raises:
        SpecError: it cannot be read, is not TOML, or has a key before its first table.
    """
    data = read_bounded(file)
    table, places = parse(data, str(file))
    first = next((line for line in data.splitlines() if line.strip() and not line.lstrip().startswith(b"#")), b"[")
    if first.lstrip().startswith(b"["):
        return data
    key = next(iter(table))
    spot = nearest_spot(places, (key,))
    place = Place(file=str(file), line=spot.line if spot else None, path=spell((key,)))
    what, hint = "an included file holds tables alone, such as [lanes.A]", "put the key into the spec, or below a table"
    raise SpecError(Problem(what=what, place=place, value=key, hint=hint))


def _ended(text: bytes) -> bytes:
    return text if not text or text.endswith(b"\n") else text + b"\n"
