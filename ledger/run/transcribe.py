"""A publication as receipts of the evidence ``reported``.

What it does: records what one edition of a publication says: for each configuration an attempt and a boot, for each figure a
trial, and its claims, notes, serving states and corrections. What it does not do: read files, or believe: nothing of it was
measured here. Rules kept: the same file beside the same specs gives the same receipts, byte for byte, so that anybody can make
them again; a figure keeps its shots, range, date and conditions; what the publication does not say is marked and never filled
in; an effect that is stated without its figures is a claim.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from attrs import define, field, frozen

from ledger.analysis.claims import decimals_of
from ledger.core import metrics
from ledger.core.clock import Clock, stamp
from ledger.core.words import Evidence, FieldClass, Outcome, Role
from ledger.receipt.codec import fingerprint
from ledger.receipt.model import (
    Agreement,
    Attempt,
    Boot,
    Claim,
    Correction,
    Factors,
    Figure,
    Instrument,
    Note,
    Requests,
    Serving,
    Source,
    Subject,
    Trial,
)
from ledger.run.agreement import UNVERIFIED
from ledger.run.publication import (
    Publication,
    ReportedBoot,
    ReportedClaim,
    ReportedCorrection,
    ReportedEffect,
    ReportedFigure,
    ReportedNote,
    ReportedServing,
    moment_of,
)
from ledger.run.records import Recorder
from ledger.spec import factors
from ledger.spec.model import Node, Site, Spec
from ledger.spec.resolve import Resolved, resolve

INSTRUMENT, VERSION = "published", 1
MEASURE = "reported"
MEDIA_TYPE = "application/toml"
NOT_READ_BACK = "reported by a publication: nothing was read back from a server"
# Conditions that should be the same on both sides of a comparison.
CONTEXT = ("hygiene",)
NO_SHOTS = "shots not recorded"


@frozen(kw_only=True)
class EditionClock(Clock):
    """The clock of an edition: it stands at the moment of its publication, so that its receipts are always the same."""

    at: datetime

    def now(self) -> datetime:
        """When the edition was published."""
        return self.at

    def monotonic_ns(self) -> int:
        """No time passes."""
        return 0

    def sleep(self, seconds: float) -> None:
        """Nothing is waited for."""


@define(kw_only=True)
class Transcriber:
    """Records a publication, edition after edition; what later ones name of earlier ones is remembered.

    ``specs`` are the specs that its boots name, where the ledger has them.
    """

    publication: Publication
    text: bytes
    specs: Mapping[str, Spec]
    _boots: dict[str, str] = field(factory=dict)
    _subjects: dict[str, Subject] = field(factory=dict)
    _named: dict[str, str] = field(factory=dict)
    _figures: dict[str, list[str]] = field(factory=dict)

    def edition(self, name: str, recorder: Recorder) -> None:
        """Record everything of one edition."""
        told = Source(name=self.publication.name, text=recorder.blob(self.text, MEDIA_TYPE))
        boots = [boot for boot in self.publication.boots if boot.edition == name]
        for number, boot in enumerate(boots, start=1):
            self._boot(boot, recorder, told, number, len(boots))
        here = {boot.name for boot in boots}
        for figure in self.publication.figures:
            if figure.boot in here:
                self._figure(figure, recorder, told)
        for claim in self.publication.claims:
            if claim.edition == name:
                self._named[claim.id] = recorder.record(self._claim(claim))
        for effect in self.publication.effects:
            if effect.edition == name:
                self._effect(effect, recorder)
        for note in self.publication.notes:
            if note.edition == name:
                self._named[note.id] = recorder.record(self._note(note))
        for state in self.publication.serving:
            if state.edition == name:
                recorder.record(self._serving(state))
        for correction in self.publication.corrections:
            if correction.edition == name:
                recorder.record(self._correction(correction))

    def _boot(self, boot: ReportedBoot, recorder: Recorder, told: Source, number: int, of: int) -> None:
        role = self._role(boot)
        subject = Subject(spec=boot.spec, lane=boot.lane, arm=boot.arm, role=role, evidence=Evidence.REPORTED)
        attempt = recorder.record(Attempt(subject=subject, spec=told, site=told, number=1, position=number, of=of))
        conditions = _texts(boot.conditions)
        known = factors.split(self._known(boot))
        identity, provenance = known[FieldClass.IDENTITY], known[FieldClass.PROVENANCE]
        context = {f"node.{rank}": node for rank, node in enumerate(boot.nodes)} | ({"date": boot.date} if boot.date else {})
        digest = recorder.record(
            Boot(
                subject=subject,
                attempt=attempt,
                outcome=Outcome.READY,
                fingerprint=fingerprint(identity),
                factors=Factors(
                    identity=identity,
                    context={**known[FieldClass.CONTEXT], **context, **_named(CONTEXT, conditions)},
                    provenance={**provenance, "source": self.publication.title, "boots": str(boot.boots)},
                ),
                requested={},
                resolved=(),
                observed={},
                agreement=Agreement(state=UNVERIFIED, unseen=(NOT_READ_BACK,)),
                conditions=conditions,
            )
        )
        self._boots[boot.name], self._subjects[boot.name] = digest, subject
        for text in (boot.note, f"verdict, as published: {boot.verdict}" if boot.verdict else None):
            if text:
                recorder.record(Note(text=text, by=self.publication.by, about=(digest,)))

    def _role(self, boot: ReportedBoot) -> Role:
        arms = {arm.id: arm for arm in self.specs[boot.spec].arms} if boot.spec in self.specs else {}
        return arms[boot.arm].role if boot.arm in arms else boot.role

    def _known(self, boot: ReportedBoot) -> dict[str, str]:
        """What is known of a configuration: the spec's arm, else that of the boot that it was like, else its lane."""
        wanted = next(each for each in self.publication.boots if each.name == boot.like) if boot.like else boot
        spec = self.specs.get(wanted.spec)
        found: dict[str, str] = {}
        if spec is not None:
            found = _arm_factors(spec, wanted.arm) or _lane_factors(spec, wanted)
        return {**found, **boot.identity}

    def _figure(self, figure: ReportedFigure, recorder: Recorder, told: Source) -> None:
        subject = self._subjects[figure.boot]
        of = self._figures.setdefault(figure.boot, [])
        boot = next(each for each in self.publication.boots if each.name == figure.boot)
        digest = recorder.record(
            Trial(
                subject=subject,
                boot=self._boots[figure.boot],
                measure=MEASURE,
                number=len(of) + 1,
                instrument=Instrument(name=INSTRUMENT, version=VERSION),
                figures={figure.metric: _figure(figure, boot)},
                requests=Requests(launched=0, ok=0),
                samples=(told.text,),
            )
        )
        of.append(digest)
        if figure.id is not None:
            self._named[figure.id] = digest

    def _claim(self, claim: ReportedClaim) -> Claim:
        above, over, below = claim.expression.partition(" / ")
        return Claim(
            name=claim.id,
            expression=claim.expression,
            says=claim.says,
            decimals=decimals_of(claim.says),
            value=float(claim.says.replace(",", "")),
            unit="ratio" if over else metrics.describe(claim.expression.split(" ", 1)[0]).unit,
            orientation=f"ratio: {above.strip()} over {below.strip()}" if over else "value",
            figure_evidence=Evidence.REPORTED,
            inputs=(),
            by=self.publication.by,
        )

    def _effect(self, effect: ReportedEffect, recorder: Recorder) -> None:
        """A claim about the ratio; two for the ends of a range."""
        ends = {"": effect.change, " at least": effect.low, " at most": effect.high}
        for end, change in ends.items():
            if change is not None:
                name = f"{effect.metric} of {effect.arm} over {effect.against}{end}"
                expression = f"{effect.metric} of {effect.arm} / {effect.metric} of {effect.against}"
                said = ReportedClaim(id=name, edition=effect.edition, expression=expression, says=f"{1 + change:.3f}")
                digest = recorder.record(self._claim(said))
                if effect.note and end == "":
                    recorder.record(Note(text=effect.note, by=self.publication.by, about=(digest,)))

    def _note(self, note: ReportedNote) -> Note:
        return Note(text=note.text, by=self.publication.by, about=tuple(self._boots[name] for name in note.about))

    def _serving(self, state: ReportedServing) -> Serving:
        since = moment_of(state.since)
        assert since is not None  # checked when the file was read
        return Serving(
            lane=state.lane,
            state=state.state,
            since=stamp(since),
            by=self.publication.by,
            known_as=Evidence.REPORTED,
            arm=state.arm,
            nodes=state.nodes,
            port=state.port,
            note=state.note,
        )

    def _correction(self, correction: ReportedCorrection) -> Correction:
        return Correction(
            action=correction.action,
            targets=tuple(self._named[name] for name in correction.targets),
            replacements=tuple(self._named[name] for name in correction.replacements),
            reason=correction.reason,
            code=correction.code,
            by=self.publication.by,
        )


def _figure(figure: ReportedFigure, boot: ReportedBoot) -> Figure:
    known = metrics.describe(figure.metric)
    marks = [*([] if figure.shots else [NO_SHOTS]), *([f"range over {boot.boots} boots"] if boot.boots > 1 else [])]
    marks += [figure.note] if figure.note else []
    where = {key: value for key, value in (("node", figure.node), ("date", figure.date)) if value}
    values = figure.values
    value, low, high = figure.value, figure.low, figure.high
    if values:
        value, low, high = _pooled(values, figure.statistic or "median"), min(values), max(values)
    elif value is None and boot.boots == 1:
        marks.append("a range alone")
    return Figure(
        unit=figure.unit,
        better=known.better,
        value=value,
        n=figure.shots or None,
        statistic=figure.statistic or ("median" if values else None),
        low=low,
        high=high,
        values=values or None,
        conditions={**where, **_texts(figure.conditions)},
        marks=tuple(marks),
    )


def _pooled(values: tuple[float, ...], statistic: str) -> float:
    ordered = sorted(values)
    if statistic == "mean":
        return sum(ordered) / len(ordered)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _arm_factors(spec: Spec, arm: str) -> dict[str, str]:
    """The factors of an arm as its spec declares it, on no site; empty for an arm that the spec has not."""
    found = resolve(spec, Site(ledger=spec.ledger, name="published", nodes=(Node(name="published"),))).get(arm)
    if found is None:
        return {}
    return {**factors.lane_factors(found.lane), **factors.launch_factors(found.argv, found.env), **_told(found)}


def _told(arm: Resolved) -> dict[str, str]:
    about = [each.change.about for each in arm.line if each.change.about]
    return {"change": "; ".join(about)} if about else {}


def _lane_factors(spec: Spec, boot: ReportedBoot) -> dict[str, str]:
    return factors.lane_factors(spec.lanes[boot.lane]) if boot.lane in spec.lanes else {}


def _named(names: Sequence[str], values: Mapping[str, str]) -> dict[str, str]:
    return {name: values[name] for name in names if name in values}


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Values of TOML as the texts that conditions are."""
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in values.items()}
