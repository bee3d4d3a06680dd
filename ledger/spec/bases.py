"""Which arm rests on which: the line of bases of every arm, and the circles that have none.

What it does: follows ``base`` from each arm to the arm that names a lane. What it does not do: apply a change. Rule kept: linear
in the arms and their bases, on any input; an arm whose bases do not end has no line.
"""

from collections.abc import Mapping, Sequence

from ledger.spec.model import Arm

Line = tuple[Arm, ...]


def lines(arms: Sequence[Arm]) -> dict[str, Line]:
    """For each arm id its bases from the first one down to the arm itself; none for an arm with an unknown base or in a cycle."""
    by_id = _by_id(arms)
    found: dict[str, Line] = {}
    for arm in by_id.values():
        waiting = _way_up(arm, by_id, found)
        if waiting is None:
            continue
        for each in reversed(waiting):
            found[each.id] = (*(found[each.base] if each.base is not None else ()), each)
    return found


def cycles(arms: Sequence[Arm]) -> list[list[str]]:
    """The ids of each cycle in the order of its bases, from the member that is declared first."""
    by_id = _by_id(arms)
    seen: set[str] = set()
    found = []
    for start in by_id:
        path: dict[str, None] = {}
        at: str | None = start
        while at is not None and at in by_id and at not in seen and at not in path:
            path[at] = None
            at = by_id[at].base
        if at is not None and at in path:
            found.append(_from(at, list(path), list(by_id)))
        seen |= set(path)
    return found


def _by_id(arms: Sequence[Arm]) -> Mapping[str, Arm]:
    """The arms by id; of two with one id the first, since the second is a mistake of its own."""
    by_id: dict[str, Arm] = {}
    for arm in arms:
        by_id.setdefault(arm.id, arm)
    return by_id


def _way_up(arm: Arm, by_id: Mapping[str, Arm], found: Mapping[str, Line]) -> list[Arm] | None:
    """The arms from ``arm`` up to one whose base is found or that has none; None when there is no such way."""
    waiting: dict[str, Arm] = {}
    at = arm
    while at.id not in found:
        if at.id in waiting:
            return None
        waiting[at.id] = at
        if at.base is None:
            break
        if at.base not in by_id:
            return None
        at = by_id[at.base]
    return list(waiting.values())


def _from(entry: str, path: Sequence[str], order: Sequence[str]) -> list[str]:
    """The cycle that ``path`` enters at ``entry``, turned so that its first declared member leads."""
    ring = path[path.index(entry) :]
    places = {name: place for place, name in enumerate(order)}
    lead = min(range(len(ring)), key=lambda index: places[ring[index]])
    return [*ring[lead:], *ring[:lead]]
