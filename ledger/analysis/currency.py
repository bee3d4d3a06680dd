"""Which receipts still count, given the corrections.

What it does: from the corrections that existed at some moment, says which receipts are struck, by which correction, which are
only set apart, and which are said to have the same configuration. What it does not do: find receipts or times. Rules kept: a
correction that is itself undone has no effect; a correction is undone by a reinstatement of it, or by being superseded or
retracted, that is in force; two that strike one target to different ends are a conflict, which is told and not settled here.
"""

from collections.abc import Iterable, Mapping

from attrs import frozen

from ledger.core.words import CorrectionKind

STRIKES = frozenset({CorrectionKind.SUPERSEDE, CorrectionKind.RETRACT})
UNDOES = STRIKES | {CorrectionKind.REINSTATE}
SETS_APART = CorrectionKind.CONCERN


@frozen(kw_only=True)
class CorrectionFact:
    """A correction as far as currency is concerned."""

    digest: str
    action: str
    targets: tuple[str, ...]
    replacements: tuple[str, ...] = ()
    reason: str = ""
    scope: str | None = None


@frozen(kw_only=True)
class Standing:
    """What a correction in force does to one receipt. ``counts`` is False where the receipt is shown but not averaged in."""

    digest: str
    by: str
    action: str
    replacement: str | None
    reason: str


@frozen(kw_only=True)
class Equivalence:
    """Two receipts whose configurations a correction in force says are the same for identity, and why."""

    left: str
    right: str
    reason: str


@frozen(kw_only=True)
class Conflict:
    """Two or more corrections in force that strike one receipt to different ends."""

    digest: str
    corrections: tuple[str, ...]


def in_force(corrections: Iterable[CorrectionFact]) -> list[CorrectionFact]:
    """The corrections that no other correction in force undoes, in the order given."""
    given = list(corrections)
    undoers: dict[str, list[CorrectionFact]] = {}
    for item in given:
        if item.action in UNDOES:
            for target in item.targets:
                undoers.setdefault(target, []).append(item)
    force = _settle(given, undoers)
    return [item for item in given if force[item.digest]]


def _settle(given: Iterable[CorrectionFact], undoers: Mapping[str, list[CorrectionFact]]) -> dict[str, bool]:
    """In force by digest. A digest cannot name what comes after it, so undoing has no cycle; a forged one counts as undone."""
    force: dict[str, bool] = {}
    for start in given:
        stack = [start.digest]
        open_: set[str] = set()
        while stack:
            digest = stack[-1]
            if digest in force:
                stack.pop()
                continue
            open_.add(digest)
            waiting = [item.digest for item in undoers.get(digest, ()) if item.digest not in force]
            if waiting and not open_.issuperset(waiting):
                stack += [name for name in waiting if name not in open_]
                continue
            force[digest] = not any(force.get(item.digest, True) for item in undoers.get(digest, ()))
            stack.pop()
    return force


def standings(corrections: Iterable[CorrectionFact]) -> list[Standing]:
    """What the corrections in force do, one row for each target that they strike or set apart for every use."""
    return [
        Standing(
            digest=target,
            by=item.digest,
            action=item.action,
            replacement=item.replacements[0] if item.replacements else None,
            reason=item.reason,
        )
        for item in in_force(corrections)
        if (item.action in STRIKES or item.action == SETS_APART) and item.scope is None
        for target in item.targets
    ]


def conflicts(corrections: Iterable[CorrectionFact]) -> list[Conflict]:
    """The targets that corrections in force strike to different ends."""
    ends: dict[str, dict[tuple[str, tuple[str, ...]], list[str]]] = {}
    for item in in_force(corrections):
        if item.action in STRIKES and item.scope is None:
            for target in item.targets:
                ends.setdefault(target, {}).setdefault((item.action, tuple(sorted(item.replacements))), []).append(item.digest)
    return [
        Conflict(digest=target, corrections=tuple(sorted(name for names in found.values() for name in names)))
        for target, found in ends.items()
        if len(found) > 1
    ]


def equivalences(corrections: Iterable[CorrectionFact]) -> list[Equivalence]:
    """What the corrections in force say is the same configuration, for every use."""
    return [
        Equivalence(left=target, right=other, reason=item.reason)
        for item in in_force(corrections)
        if item.action == CorrectionKind.EQUIVALENT and item.scope is None
        for target in item.targets
        for other in item.replacements
    ]


def taken_as_one(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Each name of ``pairs`` with the first of all that are the same, directly or by way of others."""
    leader: dict[str, str] = {}

    def lead(name: str) -> str:
        while leader.setdefault(name, name) != name:
            name = leader[name]
        return name

    for left, right in pairs:
        first, second = sorted((lead(left), lead(right)))
        leader[second] = first
    return {name: lead(name) for name in leader}
