"""An arm beside its control: items paired by id, and greedy replies to equal requests.

What it does: gathers the blobs of both sides as evidence, and reads broke, fixed and McNemar's p, or the number of replies that
differ. What it does not do: choose the control, or judge. Rules kept: nothing is paired that is not the same task or request;
what one side alone has is counted and told; without a control's boot there is no reading, rather than a good one.
"""

from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

from ledger.analysis import mcnemar
from ledger.core.digest import Descriptor
from ledger.core.errors import LedgerError
from ledger.instruments import items, transcript
from ledger.instruments.base import Request
from ledger.instruments.stream import decode
from ledger.receipt.model import Trial
from ledger.run.evidence import MEASURE, SIDE, SOURCE, Evidence, Piece
from ledger.run.samples import Sample, Taken

ARM, CONTROL = "arm", "control"
ITEMS, REPLIES = "items", "replies"
MEDIA_TYPES: Mapping[str, str] = {ITEMS: items.MEDIA_TYPE, REPLIES: transcript.MEDIA_TYPE}
POWER_AT = 0.05
ReadBlob = Callable[[Descriptor], bytes]


def gather(source: str, side: str, trials: Sequence[Trial], read: ReadBlob, measure: str | None = None) -> tuple[Piece, ...]:
    """The blobs of one side's trials that hold ``items`` or ``replies``, as evidence."""
    return tuple(
        Piece(
            annotations={SOURCE: source, SIDE: side, MEASURE: f"{trial.measure}/{trial.number}"},
            data=read(blob),
            media_type=blob.mediaType,
        )
        for trial in trials
        for blob in trial.samples
        if blob.mediaType == MEDIA_TYPES[source] and measure in (None, trial.measure)
    )


def paired(name: str, measure: str | None, evidence: Evidence) -> Taken:
    """``broke``, ``fixed``, ``drop``, ``p``, ``mid_p`` or ``smallest_drop`` of the items of both sides."""
    pieces = _pieces(ITEMS, measure, evidence)
    try:
        control, arm = (_items(pieces, side) for side in (CONTROL, ARM))
    except LedgerError as error:
        return Taken(reason=str(error), pieces=pieces)
    if not control or not arm:
        return Taken(reason=f"the {'control' if not control else 'arm'} gave no items", pieces=pieces)
    found = mcnemar.pair(control, arm)
    if not found.items:
        return Taken(reason="no item is on both sides", pieces=pieces)
    values: Mapping[str, float | None] = {
        "broke": float(found.broke),
        "fixed": float(found.fixed),
        "drop": found.drop,
        "p": mcnemar.exact_p(found.broke, found.fixed),
        "mid_p": mcnemar.mid_p(found.broke, found.fixed),
        "smallest_drop": mcnemar.smallest_drop(found.items),
    }
    sample = Sample(value=values.get(name), why="so few items that no drop would be seen")
    return Taken(samples=(sample,), pieces=pieces, reason=in_words(found))


def in_words(found: mcnemar.Paired) -> str:
    """What stands beside a p: broke, fixed, both p, the smallest drop and the power at five points."""
    least = mcnemar.smallest_drop(found.items)
    said = [
        f"{found.items} items paired, {found.broke} broke, {found.fixed} fixed",
        f"exact p {mcnemar.exact_p(found.broke, found.fixed):.3g}, mid-p {mcnemar.mid_p(found.broke, found.fixed):.3g}",
        f"smallest visible drop {least:.1%}" if least is not None else "no drop would be visible",
        f"power at a drop of {POWER_AT:.0%}: {mcnemar.power(found.items, POWER_AT):.0%}",
    ]
    return ", ".join([*said, *([f"{found.left_out} on one side alone left out"] if found.left_out else [])])


def greedy(measure: str | None, evidence: Evidence) -> Taken:
    """How many replies differ from the control's to the same request."""
    pieces = _pieces(REPLIES, measure, evidence)
    try:
        control, arm = (_replies(pieces, side) for side in (CONTROL, ARM))
    except LedgerError as error:
        return Taken(reason=str(error), pieces=pieces)
    if not control or not arm:
        return Taken(reason=f"the {'control' if not control else 'arm'} gave no replies", pieces=pieces)
    same = [name for name in control if name in arm and _alike(control[name].request, arm[name].request)]
    if not same:
        return Taken(reason="no request was put to both sides", pieces=pieces)
    if sampled := [name for name in same if control[name].request.body.get("temperature", 1) != 0]:
        return Taken(reason=f"{len(sampled)} of {len(same)} requests are not greedy: temperature is not 0", pieces=pieces)
    failed = [name for name in same if not (control[name].ok and arm[name].ok)]
    if failed:
        return Taken(reason=f"{len(failed)} of {len(same)} requests failed on one side: {failed[0]}", pieces=pieces)
    other = [name for name in same if control[name].digest != arm[name].digest]
    left_out = len(control.keys() | arm.keys()) - len(same)
    said = [f"{len(same)} replies compared", *([f"the first that differs is {other[0]}"] if other else [])]
    said += [f"{left_out} on one side alone left out"] if left_out else []
    return Taken(samples=(Sample(value=float(len(other))),), pieces=pieces, reason=", ".join(said))


@frozen(kw_only=True)
class _Replied:
    request: Request
    ok: bool
    digest: str


def _pieces(source: str, measure: str | None, evidence: Evidence) -> tuple[Piece, ...]:
    return tuple(
        piece
        for piece in evidence.pieces
        if piece.source == source and measure in (None, piece.annotations.get(MEASURE, "").rpartition("/")[0])
    )


def _items(pieces: Sequence[Piece], side: str) -> dict[str, bool]:
    """Item to whether it was solved, the trial's name in front; an id is the same task in the same measure and trial."""
    return {
        f"{piece.annotations[MEASURE]} {item.id}": item.solved
        for piece in pieces
        if piece.annotations.get(SIDE) == side
        for item in items.decode(piece.data)
    }


def _replies(pieces: Sequence[Piece], side: str) -> dict[str, _Replied]:
    found = {}
    for piece in pieces:
        if piece.annotations.get(SIDE) == side:
            plan, taken = transcript.decode(piece.data)
            asked = {request.id: request for wave in plan.waves for request in wave.requests}
            for record in taken.records:
                reply = decode(record, asked[record.request])
                name = f"{piece.annotations[MEASURE]} {record.request}"
                found[name] = _Replied(request=asked[record.request], ok=reply.ok, digest=reply.text_digest)
    return found


def _alike(one: Request, other: Request) -> bool:
    """Whether two requests ask the same; the model's name in the API may differ."""
    return {**one.body, "model": ""} == {**other.body, "model": ""}
