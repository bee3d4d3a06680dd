"""Figures of other tools, as receipts: an attempt and a boot that stand for where they were measured, and a trial for each run.

What it does: records what an extractor gave. What it does not do: read files, or say that two files came from two boots. Rules
kept: everything is ``imported`` evidence; the boot is unverified, since nothing of it was read back; the tool's definitions,
its command and its warnings are in the trial; the file itself is a blob of it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field, frozen

from ledger.core.digest import Descriptor
from ledger.core.words import Outcome
from ledger.instruments.extract.base import Extracted, Extraction, Extractor
from ledger.receipt.codec import fingerprint
from ledger.receipt.model import Agreement, Attempt, Boot, Factors, Instrument, Source, Subject, Trial
from ledger.run.agreement import UNVERIFIED
from ledger.run.records import Recorder
from ledger.run.secrets import Concealer

NOT_READ_BACK = "imported from a file: nothing was read back from a server"


@frozen(kw_only=True)
class Taken:
    """A file that was read: its name, the extractor, what it gave, and the blob that keeps it."""

    file: str
    extractor: Extractor
    extraction: Extraction
    blob: Descriptor


@frozen(kw_only=True)
class Origin:
    """Where the figures of some files were measured, as the importer says: one boot.

    ``told`` is the statement itself, in the place of a spec and a site. ``identity`` is what is known of the server.
    """

    subject: Subject
    told: Source
    identity: Mapping[str, str] = field(factory=dict)
    conditions: Mapping[str, str] = field(factory=dict)


def record_boot(recorder: Recorder, origin: Origin, taken: Sequence[Taken], conceal: Concealer, *, number: int, of: int) -> str:
    """Record the attempt and the boot that ``taken`` came from; the boot's digest."""
    attempt = Attempt(subject=origin.subject, spec=origin.told, site=origin.told, number=number, position=number, of=of)
    factors = _factors(origin, taken, conceal)
    return recorder.record(
        Boot(
            subject=origin.subject,
            attempt=recorder.record(attempt),
            outcome=Outcome.READY,
            fingerprint=fingerprint(factors.identity),
            factors=factors,
            requested={},
            resolved=(),
            observed={},
            agreement=Agreement(state=UNVERIFIED, unseen=(NOT_READ_BACK,)),
            conditions=origin.conditions,
        )
    )


def record_trials(
    recorder: Recorder, boot: str, origin: Origin, taken: Sequence[Taken], conceal: Concealer
) -> list[tuple[str, Trial]]:
    """Record a trial for each run in the files; each with its digest."""
    numbers: Counter[str] = Counter()
    made: list[tuple[str, Trial]] = []
    for item in taken:
        for run in item.extraction.trials:
            numbers[run.measure] += 1
            trial = _trial(boot, origin, item, run, numbers[run.measure], conceal)
            made.append((recorder.record(trial), trial))
    return made


def _trial(boot: str, origin: Origin, item: Taken, run: Extracted, number: int, conceal: Concealer) -> Trial:
    extraction = item.extraction
    warned = (f"{extraction.tool} warned",) if extraction.warnings else ()
    return Trial(
        subject=origin.subject,
        boot=boot,
        measure=run.measure,
        number=number,
        instrument=Instrument(
            name=item.extractor.name, version=item.extractor.definition_version, parameters=_parameters(item, run, conceal)
        ),
        figures=run.figures,
        requests=run.requests,
        samples=(item.blob,),
        conditions={**origin.conditions, **run.conditions},
        marks=(*run.marks, *warned),
        seconds=run.seconds,
    )


def _parameters(item: Taken, run: Extracted, conceal: Concealer) -> dict[str, Any]:
    """What the file says of the run, and the tool's own words for its figures."""
    told = {
        "tool": item.extraction.tool,
        "tool_version": item.extraction.version,
        "file": item.file,
        "command": item.extraction.command,
        "warnings": list(item.extraction.warnings),
        "definitions": dict(item.extraction.definitions),
    }
    shown: dict[str, Any] = conceal.tree({**run.parameters, **{key: value for key, value in told.items() if value}})
    return shown


def _factors(origin: Origin, taken: Sequence[Taken], conceal: Concealer) -> Factors:
    models = {item.extraction.model for item in taken if item.extraction.model}
    model = {"model": models.pop()} if len(models) == 1 else {}
    tools = {_tool(item.extraction) for item in taken}
    files = {f"file.{index}": f"{item.file} {item.blob.digest}" for index, item in enumerate(taken)}
    named = {"lane": origin.subject.lane, "arm": origin.subject.arm}
    return Factors(
        identity=conceal.tree({**named, **model, **origin.identity}),
        context=conceal.tree({"measured_with": ", ".join(sorted(tools))}),
        provenance=conceal.tree(files),
    )


def _tool(extraction: Extraction) -> str:
    return f"{extraction.tool} {extraction.version}" if extraction.version else extraction.tool
