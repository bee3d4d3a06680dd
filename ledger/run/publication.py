"""What a publication reports, as a TOML file says it: configurations, figures, effects, claims, what served, corrections.

What it does: the records of such a file, and every mistake in it at once with its place. What it does not do: record anything
(``transcribe``). Rules kept: a figure has one value, several values or a range, and never none; whatever is named stands in the
file; an edition says when its figures were published, which is the moment from which they were known.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time
from pathlib import Path as File
from typing import Any

from attrs import field, frozen

from ledger.core.errors import Collected, Place, SpecError, did_you_mean
from ledger.core.words import CorrectionKind, Role
from ledger.spec.document import parse, read_bounded
from ledger.spec.locate import Path, nearest_spot, spell
from ledger.spec.model import NAME
from ledger.spec.structure import structure

FORMAT = 1
STATES = ("serving", "stopped")
STATISTICS = ("median", "mean")
KEY: Mapping[str, str] = {"reads": "key"}


@frozen(kw_only=True)
class Edition:
    """A publication, or a correction of it: ``at`` is a date or a time with its offset."""

    id: str = field(metadata=KEY)
    at: str


@frozen(kw_only=True)
class ReportedBoot:
    """A configuration that figures are of. ``boots`` above 1 is a group of boots that only a range is given for.

    ``like`` is another one (``spec:arm``) that had the same configuration; else the spec's arm says what it was, and
    ``identity`` what else is known.
    """

    spec: str
    lane: str
    arm: str
    edition: str
    role: Role = Role.DIAGNOSTIC
    date: str = ""
    nodes: tuple[str, ...] = ()
    boots: int = 1
    like: str | None = None
    identity: Mapping[str, str] = field(factory=dict)
    conditions: Mapping[str, Any] = field(factory=dict)
    verdict: str | None = None
    note: str | None = None

    @property
    def name(self) -> str:
        """How the file names it: ``spec:arm``."""
        return f"{self.spec}:{self.arm}"


@frozen(kw_only=True)
class ReportedFigure:
    """A figure of the configuration ``boot``; ``shots`` is the number of runs behind it, 0 where that is not recorded."""

    boot: str
    metric: str
    id: str | None = None
    value: float | None = None
    values: tuple[float, ...] = ()
    low: float | None = None
    high: float | None = None
    unit: str = "tok/s"
    shots: int = 0
    statistic: str | None = None
    node: str | None = None
    date: str | None = None
    conditions: Mapping[str, Any] = field(factory=dict)
    note: str | None = None


@frozen(kw_only=True)
class ReportedEffect:
    """A change of ``arm`` against another one: 0.02 is 2 % up; ``low`` and ``high`` in its place are a range."""

    spec: str
    arm: str
    against: str
    metric: str
    edition: str
    change: float | None = None
    low: float | None = None
    high: float | None = None
    note: str | None = None


@frozen(kw_only=True)
class ReportedClaim:
    """A statement in the language of queries, and the number that is said."""

    id: str
    edition: str
    expression: str
    says: str


@frozen(kw_only=True)
class ReportedNote:
    """A remark, about configurations or about nothing in particular."""

    id: str
    edition: str
    text: str
    about: tuple[str, ...] = ()


@frozen(kw_only=True)
class ReportedServing:
    """What a lane did from ``since`` on: ``serving`` (which arm, where) or ``stopped``."""

    lane: str
    since: str
    edition: str
    state: str
    arm: str | None = None
    nodes: tuple[str, ...] = ()
    port: int | None = None
    note: str | None = None


@frozen(kw_only=True)
class ReportedCorrection:
    """A correction; ``targets`` and ``replacements`` are ids of figures, claims and notes."""

    edition: str
    action: CorrectionKind
    targets: tuple[str, ...]
    reason: str
    replacements: tuple[str, ...] = ()
    code: str = "other"


@frozen(kw_only=True)
class Publication:
    """A whole publication. ``by`` is who says what it says."""

    ledger: int
    name: str
    title: str
    by: str
    editions: Mapping[str, Edition]
    boots: tuple[ReportedBoot, ...]
    figures: tuple[ReportedFigure, ...] = ()
    effects: tuple[ReportedEffect, ...] = ()
    claims: tuple[ReportedClaim, ...] = ()
    notes: tuple[ReportedNote, ...] = ()
    serving: tuple[ReportedServing, ...] = ()
    corrections: tuple[ReportedCorrection, ...] = ()
    not_recorded: tuple[str, ...] = ()


def read_publication(path: File) -> tuple[Publication, bytes]:
    """The publication in ``path``, and its text word for word.

    Raises:
        SpecError: with every mistake in it.
    """
    text = read_bounded(path)
    table, places = parse(text, str(path))
    found = Collected()

    def complain(what: str, *, path: Path, value: Any = None, hint: str | None = None, missing: Path | None = None) -> None:
        spot = nearest_spot(places, path)
        found.add(what, place=Place(file=str(file), line=spot.line if spot else 1, path=spell(path)), value=value, hint=hint)

    file = path
    publication = structure(Publication, table, (), complain)
    if not found.problems:  # what is said of a value that was refused helps nobody
        for wrong in _mistakes(publication):
            complain(wrong.what, path=wrong.path, value=wrong.value, hint=wrong.hint)
    found.raise_if_any(SpecError)
    return publication, text


def moment_of(text: str) -> datetime | None:
    """A date, as its first moment in UTC, or a time with its offset; None when it is neither."""
    try:
        if len(text) == len("2026-10-19"):
            return datetime.combine(date.fromisoformat(text), time.min, tzinfo=UTC)
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    return when.astimezone(UTC) if when.tzinfo else None


@frozen(kw_only=True)
class _Wrong:
    what: str
    path: Path
    value: Any = None
    hint: str | None = None


def _mistakes(item: Publication) -> Iterator[_Wrong]:
    if item.ledger != FORMAT:
        yield _Wrong(what="not a version of this format", path=("ledger",), value=item.ledger, hint=f"it is {FORMAT}")
    for name, edition in item.editions.items():
        if moment_of(edition.at) is None:
            yield _Wrong(
                what="not a date, nor a time with its offset",
                path=("editions", name, "at"),
                value=edition.at,
                hint='as in "2026-10-19"',
            )
    boots = [boot.name for boot in item.boots]
    ids = [figure.id for figure in item.figures if figure.id is not None]
    ids += [claim.id for claim in item.claims] + [note.id for note in item.notes]
    for index, boot in enumerate(item.boots):
        for key in ("spec", "lane", "arm"):
            if not re.fullmatch(NAME, getattr(boot, key)):
                yield _Wrong(
                    what="no name",
                    path=("boots", index, key),
                    value=getattr(boot, key),
                    hint="letters, digits, '.', '_' and '-', 64 at most",
                )
    for kind, names in (("boots", boots), ("figures", ids)):
        for name in (name for name, times in Counter(names).items() if times > 1):
            yield _Wrong(what=f"{name!r} stands twice", path=(kind,), value=name)
    for index, figure in enumerate(item.figures):
        yield from _figure(figure, ("figures", index))
    for index, effect in enumerate(item.effects):
        if (effect.change is None) == (effect.low is None or effect.high is None):
            yield _Wrong(what="an effect has a change, or low and high", path=("effects", index))
    for index, state in enumerate(item.serving):
        if state.state not in STATES:
            yield _Wrong(
                what="no such state", path=("serving", index, "state"), value=state.state, hint=did_you_mean(state.state, STATES)
            )
        if moment_of(state.since) is None:
            yield _Wrong(what="not a date, nor a time with its offset", path=("serving", index, "since"), value=state.since)
    yield from _unknown(item, boots, ids)


def _figure(figure: ReportedFigure, path: Path) -> Iterator[_Wrong]:
    ranged = figure.low is not None and figure.high is not None
    if (figure.low is None) != (figure.high is None):
        yield _Wrong(what="a range has both low and high", path=path, value=figure.metric)
    if figure.value is not None and figure.values:
        yield _Wrong(what="a value or values, not both", path=path, value=figure.metric)
    if figure.value is None and not figure.values and not ranged:
        yield _Wrong(what="no value, no values and no range", path=path, value=figure.metric)
    if figure.low is not None and figure.high is not None and figure.low > figure.high:
        yield _Wrong(what="low is above high", path=(*path, "low"), value=figure.low)
    if figure.shots < 0:
        yield _Wrong(what="fewer than no shots", path=(*path, "shots"), value=figure.shots)
    if figure.statistic is not None and figure.statistic not in STATISTICS:
        yield _Wrong(
            what="no such statistic",
            path=(*path, "statistic"),
            value=figure.statistic,
            hint=did_you_mean(figure.statistic, STATISTICS),
        )


def _unknown(item: Publication, boots: list[str], ids: list[str]) -> Iterator[_Wrong]:
    """Names that nothing in the file has."""
    named: list[tuple[Path, str, list[str]]] = []
    for kind in ("boots", "effects", "claims", "notes", "serving", "corrections"):
        named += [((kind, index, "edition"), each.edition, list(item.editions)) for index, each in enumerate(getattr(item, kind))]
    named += [(("boots", index, "like"), each.like, boots) for index, each in enumerate(item.boots) if each.like]
    named += [(("figures", index, "boot"), each.boot, boots) for index, each in enumerate(item.figures)]
    for index, effect in enumerate(item.effects):
        named += [(("effects", index, key), f"{effect.spec}:{getattr(effect, key)}", boots) for key in ("arm", "against")]
    for index, note in enumerate(item.notes):
        named += [(("notes", index, "about", at), name, boots) for at, name in enumerate(note.about)]
    for index, correction in enumerate(item.corrections):
        for key in ("targets", "replacements"):
            named += [(("corrections", index, key, at), name, ids) for at, name in enumerate(getattr(correction, key))]
    for path, name, known in named:
        if name not in known:
            yield _Wrong(what="nothing of this name stands in the file", path=path, value=name, hint=did_you_mean(name, known))
