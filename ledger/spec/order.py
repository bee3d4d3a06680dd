"""In which order the arms of a spec are booted, and which boots of a control the rule needs beside those that were asked for.

What it does: lays the boots out in rounds, as written, bracketed, there and back, or shuffled, and adds boots of a control with
the reason for each. What it does not do: resolve an arm or judge. Rules kept: every arm once, then every arm again, so that
drift falls on all of them; the same spec gives the same order on every machine; a boot that nobody wrote down says why it is
there.
"""

import hashlib
from collections.abc import Mapping, Sequence

from attrs import frozen

from ledger.core.words import Role
from ledger.spec.model import Arm, Rule, Spec

WRITTEN, BRACKETED, ABBA, RANDOM = "written", "bracketed", "abba", "random"


@frozen(kw_only=True)
class Slot:
    """One boot to make: its arm, its round counted from 1, and why it was added where nobody asked for it."""

    arm: Arm
    round: int
    added: str | None = None


def slots(
    spec: Spec, chosen: Sequence[Arm], *, narrowed: bool = False, caches: Mapping[str, str] | None = None
) -> tuple[Slot, ...]:
    """The boots of ``chosen`` in the spec's order. Where the run is ``narrowed`` to some arms, none is added.

    ``caches`` gives the lane of each arm whose engine compiles into caches, which the first boot of that lane may find empty.
    """
    order = _laid_out(spec, chosen, narrowed=narrowed)
    return order if narrowed or spec.rule is None else _warmed(order, brackets(spec, chosen), caches or {})


def _laid_out(spec: Spec, chosen: Sequence[Arm], *, narrowed: bool) -> tuple[Slot, ...]:
    rounds = _rounds(chosen)
    if spec.order == ABBA:
        return _there_and_back(rounds, narrowed=narrowed)
    if spec.order == RANDOM:
        return tuple(slot for each in rounds for slot in sorted(each, key=lambda slot: _drawn(slot, spec.order_seed)))
    if spec.order == BRACKETED:
        return _bracketed(rounds, brackets(spec, chosen), narrowed=narrowed)
    return tuple(slot for each in rounds for slot in each)


def control_of(arm: Arm, rule: Rule, arms: Sequence[Arm]) -> str | None:
    """The arm that ``arm`` is judged against; None for a control, a baseline or a diagnostic."""
    if arm.role in (Role.CONTROL, Role.BASELINE, Role.DIAGNOSTIC):
        return None
    chosen = rule.controls.get(arm.id) or rule.control or arm.base
    return chosen if chosen != arm.id and any(each.id == chosen for each in arms) else None


def brackets(spec: Spec, chosen: Sequence[Arm]) -> tuple[Arm, ...]:
    """The controls that stand first and last: those that the rule judges against, or every arm whose role is control."""
    rule = spec.rule
    named = {control_of(arm, rule, spec.arms) for arm in chosen} if rule is not None else set()
    found = tuple(arm for arm in chosen if arm.id in named)
    return found or tuple(arm for arm in chosen if arm.role is Role.CONTROL)


def _rounds(chosen: Sequence[Arm]) -> list[list[Slot]]:
    most = max(arm.boots for arm in chosen)
    return [[Slot(arm=arm, round=made) for arm in chosen if arm.boots >= made] for made in range(1, most + 1)]


def _bracketed(rounds: Sequence[Sequence[Slot]], controls: Sequence[Arm], *, narrowed: bool) -> tuple[Slot, ...]:
    """Each round begins with its controls, and they stand once more at the end."""
    ids = {arm.id for arm in controls}
    inside = [sorted(each, key=lambda slot: slot.arm.id not in ids) for each in rounds]
    order = [slot for each in inside for slot in each]
    if narrowed or len(order) == len([slot for slot in order if slot.arm.id in ids]):
        return tuple(order)
    why = "order bracketed: the control stands last too, so that its drift over the session is seen"
    return (*order, *(Slot(arm=arm, round=len(rounds) + 1, added=why) for arm in controls))


def _there_and_back(rounds: Sequence[Sequence[Slot]], *, narrowed: bool) -> tuple[Slot, ...]:
    """Every second round runs backwards; a round that has no way back gets one."""
    order: list[Slot] = []
    for there, back in zip(rounds[::2], [*rounds[1::2], []], strict=False):
        wanted = {slot.arm.id for slot in back}
        why = "order abba: an arm is booted on the way there and on the way back"
        missing = [] if narrowed else [slot.arm for slot in there if slot.arm.id not in wanted]
        number = there[0].round + 1
        added = {arm.id: Slot(arm=arm, round=number, added=why) for arm in missing}
        returning = {**{slot.arm.id: slot for slot in back}, **added}
        order += [*there, *(returning[slot.arm.id] for slot in reversed(there) if slot.arm.id in returning)]
    return tuple(order)


def _warmed(order: Sequence[Slot], controls: Sequence[Arm], caches: Mapping[str, str]) -> tuple[Slot, ...]:
    """A control that is booted once, and before every other boot of its lane, is booted again: the arms will be warm."""
    found: list[Slot] = []
    ids = {arm.id for arm in controls}
    for slot in order:
        lane = caches.get(slot.arm.id)
        is_first = lane is not None and all(caches.get(each.arm.id) != lane for each in found)
        found.append(slot)
        if slot.arm.id in ids and is_first and sum(each.arm.id == slot.arm.id for each in order) == 1:
            why = f"its first boot may find the caches of lane {lane} empty, and the arms after it will not: a warm control"
            found.append(Slot(arm=slot.arm, round=slot.round + 1, added=why))
    return tuple(found)


def _drawn(slot: Slot, seed: int) -> bytes:
    """A place in the round that depends on the seed, the round and the arm alone, whatever made the numbers."""
    return hashlib.sha256(f"{seed}/{slot.round}/{slot.arm.id}".encode()).digest()
