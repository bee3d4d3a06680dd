"""Specs and sites from files: every mistake at once, each with its place.

What it does: builds the records of a document, with what it includes, and runs every check on them. What it does not do: join
spec and site (``plan``). Rules kept: every mistake is told with its file, line, path, value and way out, the first ``MAX_TOLD``
of them; what rests on a value that was refused is not told a second time; the text is kept word for word for the receipt.
"""

from collections.abc import Callable, Mapping
from pathlib import Path as File
from typing import Any, Generic, TypeVar

import attrs
from attrs import field, frozen

from ledger.core.errors import Collected, Place, Problem, SpecError, shorten
from ledger.spec import check
from ledger.spec.document import parse, read_bounded
from ledger.spec.include import Part, Whole, alone, origin, with_included
from ledger.spec.locate import Path, Spot, nearest_spot, spell
from ledger.spec.model import Site, Spec
from ledger.spec.structure import structure
from ledger.spec.values import Complain

MAX_TOLD = 200
MAX_CHARACTERS = 400
T = TypeVar("T")
Check = Callable[[T, Complain], None]


@frozen(kw_only=True)
class Loaded(Generic[T]):
    """A spec or site with its text word for word, what it includes behind it, and the way from a path in it to a place."""

    value: T
    file: str
    text: bytes
    places: Mapping[Path, Spot]
    parts: tuple[Part, ...]

    def place(self, *path: str | int) -> Place:
        """Where ``path`` stands, or the nearest table around it."""
        return Whole(data=self.text, parts=self.parts).place(nearest_spot(self.places, path), spell(path))


def load_spec(path: File, *, also: Check[Spec] | None = None) -> Loaded[Spec]:
    """The spec in ``path``; ``also`` is one more check, whose complaints are told with the others.

    Raises:
        SpecError: with every mistake in the file.
    """
    return _read_spec(with_included(read_bounded(path), path), also)


def load_site(path: File, *, also: Check[Site] | None = None) -> Loaded[Site]:
    """The site in ``path``; ``also`` as for :func:`load_spec`.

    Raises:
        SpecError: with every mistake in the file.
    """
    return read_site(read_bounded(path), str(path), also=also)


def read_spec(text: bytes, file: str, *, also: Check[Spec] | None = None) -> Loaded[Spec]:
    """The spec in ``text``, which holds what it includes; ``file`` is what messages call it."""
    return _read_spec(alone(text, file), also)


def read_site(text: bytes, file: str, *, also: Check[Site] | None = None) -> Loaded[Site]:
    """The site in ``text``; ``file`` is what messages call it."""
    return _read(Site, [check.check_site, *([also] if also else [])], alone(text, file))


def _read_spec(whole: Whole, also: Check[Spec] | None) -> Loaded[Spec]:
    return _read(Spec, [check.check_spec, *([also] if also else [])], whole)


@frozen(kw_only=True)
class _Listener:
    """Hears every complaint about one file and places it; what rests on a value that was refused is passed over."""

    whole: Whole
    places: Mapping[Path, Spot]
    found: Collected = field(factory=Collected)
    refused: set[Path] = field(factory=set)

    def structural(
        self, what: str, *, path: Path, value: Any = None, hint: str | None = None, missing: Path | None = None
    ) -> None:
        """A complaint of ``structure``: the path has no value after it."""
        self.refused.add(missing or path)
        self._add(what, path, value, hint)

    def about_value(
        self,
        what: str,
        *,
        path: Path,
        value: Any = None,
        hint: str | None = None,
        rests_on: tuple[Path, ...] = (),
        inside: Path | None = None,
    ) -> None:
        """A complaint of a check; ``rests_on`` are other paths, and ``inside`` a whole table, whose values it looked at."""
        broken = inside is not None and any(each[: len(inside)] == inside for each in self.refused)
        if not broken and not any(self._was_refused(each) for each in (path, *rests_on)):
            self._add(what, path, value, hint)

    def raise_if_any(self) -> None:
        """Raise what was heard, in the order of the file."""
        told = sorted(self.found.problems, key=lambda problem: (problem.place.line or 0) if problem.place else 0)
        told = [_moved(problem, self.whole) for problem in told]
        if len(told) >= MAX_TOLD:
            told.append(Problem(what=f"{MAX_TOLD} mistakes; the rest is not checked", place=self.whole.place(None)))
        if told:
            raise SpecError(told)

    def _was_refused(self, path: Path) -> bool:
        return any(path[:end] in self.refused for end in range(1, len(path) + 1))

    def _add(self, what: str, path: Path, value: Any, hint: str | None) -> None:
        spot = nearest_spot(self.places, path)
        place = Place(file=self.whole.parts[0].file, line=spot.line if spot else 1, path=spell(path))
        said = None if hint is None else shorten(hint, MAX_CHARACTERS)
        self.found.add(shorten(what, MAX_CHARACTERS), place=place, value=value, hint=said)
        if len(self.found.problems) == MAX_TOLD:
            self.raise_if_any()


def _read(cls: type[T], checks: list[Check[T]], whole: Whole) -> Loaded[T]:
    file = whole.parts[0].file
    try:
        table, places = parse(whole.data, file)
    except SpecError as error:
        raise SpecError(_moved(problem, whole) for problem in error.problems) from error
    listener = _Listener(whole=whole, places=places)
    value = structure(cls, table, (), listener.structural)
    for each in checks:
        each(value, listener.about_value)
    listener.raise_if_any()
    return Loaded(value=value, file=file, text=whole.data, places=places, parts=whole.parts)


def _moved(problem: Problem, whole: Whole) -> Problem:
    """A problem whose line is one of the whole, at the file that the line comes from."""
    return attrs.evolve(problem, place=origin(whole.parts, problem.place)) if problem.place else problem
