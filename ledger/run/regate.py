"""Old evidence under a gate's new version: which past boots would be refused now.

What it does: finds the gate receipts of a spec whose gates have a newer version, judges their kept evidence again, and gives
the new receipts. What it does not do: write them (its caller does), change an old receipt, or measure anew. Rules kept: the
latest verdict on a boot is the one that is made again; a gate whose limit changed without its version is a mistake; evidence
that does not hold what the new version reads is ``unknown``, which refuses as a failure does.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from attrs import field, frozen

from ledger.core.digest import Descriptor
from ledger.core.errors import LedgerError, Problem, UsageError
from ledger.core.words import Holds
from ledger.receipt.model import Attempt, Boot, Gate, Receipt, Trial
from ledger.run.evidence import NODE, Evidence, KeepBlob, Piece, keep
from ledger.run.gates import GateVerdict, blocks, gate_receipt, judge
from ledger.spec.model import GateSpec, Spec

ReadBlob = Callable[[str, Descriptor], bytes]
"""The bytes of a blob of a session."""


@frozen(kw_only=True)
class Regated:
    """One old verdict and the new one on the same evidence; ``blocked`` is what the new one says where it would refuse."""

    digest: str
    old: Gate
    verdict: GateVerdict
    blocked: str | None

    @property
    def newly_refused(self) -> bool:
        """Whether the boot passed then and would be refused now."""
        return self.blocked is not None and self.old.holds is Holds.PASS

    @property
    def newly_passed(self) -> bool:
        """Whether the boot did not pass then and would now."""
        return self.verdict.holds is Holds.PASS and self.old.holds is not Holds.PASS


@frozen(kw_only=True)
class _Past:
    """What the ledger holds of a spec: gate receipts with their sessions, boots by attempt and trials by boot."""

    gates: dict[str, tuple[str, Gate]] = field(factory=dict)
    boots: dict[str, Boot] = field(factory=dict)
    trials: dict[str, list[Trial]] = field(factory=dict)


def regate(spec: Spec, receipts: Iterable[tuple[str, Receipt]], read: ReadBlob) -> list[Regated]:
    """Judge again every verdict of an older version of ``spec``'s gates, in the order of the receipts.

    Raises:
        UsageError: a gate's limit differs from that of an old receipt of the same version.
    """
    past = _gather(spec.name, receipts)
    gates = {gate.id: gate for gate in spec.gates}
    latest = _latest(past, gates)
    _refuse_silent_changes(gates, latest)
    return [
        _again(digest, session, old, gates[old.gate], past, read)
        for digest, (session, old) in latest.items()
        if old.version < gates[old.gate].version
    ]


def new_receipt(regated: Regated, blob: KeepBlob) -> Gate:
    """The receipt of the new verdict, whose evidence is kept with it."""
    old = regated.old
    evidence = keep(regated.verdict.evidence, blob)
    return gate_receipt(regated.verdict, old.subject, old.attempt, old.boot, evidence, regates=regated.digest)


def _gather(spec: str, receipts: Iterable[tuple[str, Receipt]]) -> _Past:
    past = _Past()
    for digest, receipt in receipts:
        body = receipt.body
        if isinstance(body, Attempt | Boot | Gate | Trial) and body.subject.spec == spec:
            match body:
                case Gate():
                    past.gates[digest] = (receipt.session, body)
                case Boot():
                    past.boots[body.attempt] = body
                case Trial():
                    past.trials.setdefault(body.boot, []).append(body)
    return past


def _latest(past: _Past, gates: Mapping[str, GateSpec]) -> dict[str, tuple[str, Gate]]:
    """The verdict of the highest version on each attempt, of the gates that the spec still has."""
    found: dict[tuple[str, str], str] = {}
    for digest, (_, gate) in past.gates.items():
        key = (gate.attempt, gate.gate)
        if gate.gate in gates and (key not in found or gate.version >= past.gates[found[key]][1].version):
            found[key] = digest
    return {digest: past.gates[digest] for digest in found.values()}


def _refuse_silent_changes(gates: Mapping[str, GateSpec], latest: Mapping[str, tuple[str, Gate]]) -> None:
    changed = {
        old.gate: old.limit
        for _, old in latest.values()
        if old.version == (now := gates[old.gate]).version and old.limit != f"{now.op} {now.value}"
    }
    if changed:
        raise UsageError(
            Problem(
                what=f"gate {name!r} of version {gates[name].version} said {limit!r} when it was used, and says otherwise now",
                value=f"{gates[name].op} {gates[name].value}",
                hint=f"raise its version to {gates[name].version + 1}",
            )
            for name, limit in changed.items()
        )


def _again(digest: str, session: str, old: Gate, gate: GateSpec, past: _Past, read: ReadBlob) -> Regated:
    pieces: list[Piece] = []
    lost: dict[tuple[str, str], str] = {}
    for blob in old.evidence:
        try:
            pieces.append(Piece(annotations=blob.annotations, data=read(session, blob), media_type=blob.mediaType))
        except LedgerError as error:
            lost[blob.annotations.get(NODE, ""), blob.annotations.get("source", "")] = str(error)
    boot = past.boots.get(old.attempt)
    evidence = Evidence(
        nodes=_nodes(boot, pieces),
        pieces=tuple(pieces),
        unread=lost,
        trials=tuple(past.trials.get(old.boot or "", ())),
    )
    verdict = judge(gate, evidence)
    return Regated(digest=digest, old=old, verdict=verdict, blocked=blocks(verdict))


def _nodes(boot: Boot | None, pieces: Sequence[Piece]) -> tuple[str, ...]:
    """The nodes of the boot, as its factors name them; else those that the evidence names."""
    context = boot.factors.context if boot else {}
    ranks = sorted((name for name in context if name.startswith("node.")), key=lambda name: (len(name), name))
    named = dict.fromkeys([context[name] for name in ranks] or [piece.node for piece in pieces if piece.node])
    return tuple(named)
