"""Which arm stays when a ladder has ended, and what proves it when it is booted again.

What it does: checks ``restore`` of a spec; finds the arm that the verdicts leave standing; makes the gates that compare its new
boot with its earlier one. What it does not do: boot it (``run``) or judge an arm. Rules kept: arms that were kept beside each
other are no one config, and none is made up from them; the gates that prove it are made here, so that a spec cannot weaken them
but by its two limits.
"""

from collections.abc import Collection, Mapping

from attrs import frozen

from ledger.core.errors import did_you_mean
from ledger.core.words import Verdict
from ledger.spec import readings, values
from ledger.spec.bases import lines
from ledger.spec.model import SAME_QUALITY, SAME_REPLIES, Arm, GateSpec, Restore, Spec
from ledger.spec.order import control_of
from ledger.spec.values import Complain

WHY_ADDED = "the config that stays is booted again, and its replies and items are compared with those of its earlier boot"


@frozen(kw_only=True)
class Chosen:
    """The arm that stays, or None, and why."""

    arm: str | None
    why: str


def check_restore(restore: Restore, spec: Spec, complain: Complain) -> None:
    """Every mistake of the table ``restore``."""
    for key in ("replies", "items"):
        name = getattr(restore, key)
        if name is not None and name not in spec.measures:
            hint = did_you_mean(name, spec.measures)
            complain("unknown measure", path=("restore", key), value=name, hint=hint, rests_on=(("measures",),))
    if restore.replies is None and restore.items is None:
        complain("nothing that proves it", path=("restore",), hint='name a measure: replies = "…", or items = "…", or both')
    values.between(restore.differs, 0, 10**6, ("restore", "differs"), complain)
    values.quantity_between(restore.drop, "ratio", "0 %", "100 %", ("restore", "drop"), complain)
    _which(restore, spec, complain)


def _which(restore: Restore, spec: Spec, complain: Complain) -> None:
    arms = [arm.id for arm in spec.arms]
    if restore.arm is not None:
        if restore.arm not in arms:
            complain("unknown arm", path=("restore", "arm"), value=restore.arm, hint=did_you_mean(restore.arm, arms))
        return
    hint = 'name the arm that stays: arm = "…"'
    if spec.rule is None:
        complain("no rule says which arm stays", path=("restore",), hint=f"{hint}, or write a [rule]")
        return
    lanes = dict.fromkeys(line[0].lane or "" for arm in _judged(spec) if (line := lines(spec.arms).get(arm.id)))
    if len(lanes) > 1:
        complain("the arms that are judged are of several lanes", path=("restore",), value=", ".join(lanes), hint=hint)


def may_stay(spec: Spec) -> tuple[str, ...]:
    """The arms that may be left standing: the one that is named, or every judged arm and the base that it begins from."""
    if spec.restore is None:
        return ()
    if spec.restore.arm is not None:
        return (spec.restore.arm,)
    found = lines(spec.arms)
    judged = _judged(spec)
    return tuple(dict.fromkeys([*(found[arm.id][0].id for arm in judged), *(arm.id for arm in judged)]))


def final_arm(spec: Spec, verdicts: Mapping[str, Verdict]) -> Chosen:
    """The arm that stays under ``verdicts``, by arm: the last that was kept on top of every other one that was."""
    assert spec.restore is not None
    if spec.restore.arm is not None:
        return Chosen(arm=spec.restore.arm, why="the spec names it")
    found = lines(spec.arms)
    kept = [arm.id for arm in spec.arms if verdicts.get(arm.id) is Verdict.KEEP]
    if not kept:
        return _base([found[name][0].id for name in verdicts if name in found], len(verdicts))
    whole = [name for name in kept if set(kept) <= {arm.id for arm in found[name]}]
    if whole:
        return Chosen(arm=whole[-1], why="kept" if len(kept) == 1 else f"kept, and it holds {_listed(kept, whole[-1])} too")
    why = f"{', '.join(kept)} were kept and none of them holds the others, so that no arm of the spec is what stays"
    return Chosen(arm=None, why=f"{why}; declare an arm that joins them, run it, or name one: restore.arm")


def gates_of(restore: Restore, arm: str) -> tuple[GateSpec, ...]:
    """The gates that compare a boot of ``arm`` with the one before it."""
    found = []
    if restore.replies is not None:
        text = "the replies are character for character those of the earlier boot"
        limit = str(restore.differs)
        found.append(_gate(SAME_REPLIES, text, "greedy.differs", limit, restore.replies, arm))
    if restore.items is not None:
        text = "the items that the earlier boot solved are solved again"
        found.append(_gate(SAME_QUALITY, text, "paired.drop", restore.drop, restore.items, arm))
    return tuple(found)


def measures_of(restore: Restore) -> frozenset[str]:
    """The measures that the boot is proven by."""
    return frozenset(name for name in (restore.replies, restore.items) if name is not None)


def reads_then(gate: GateSpec, measures: Collection[str]) -> bool:
    """Whether a gate of the spec can be read on a boot of ``measures`` alone, with no other arm to compare it with."""
    room = readings.room(gate.reads)
    if readings.is_of_nodes(gate.reads):
        return True
    if room in ("greedy", "paired"):
        return False
    return gate.of in measures or (room == "requests" and gate.of is None)


def _gate(name: str, text: str, reads: str, limit: str, measure: str, arm: str) -> GateSpec:
    return GateSpec(id=name, text=text, reads=reads, op="<=", value=limit, of=measure, against=arm, when="after")


def _judged(spec: Spec) -> list[Arm]:
    return [arm for arm in spec.arms if spec.rule is not None and control_of(arm, spec.rule, spec.arms) is not None]


def _base(roots: list[str], judged: int) -> Chosen:
    different = tuple(dict.fromkeys(roots))
    if not different:
        return Chosen(arm=None, why="no arm was judged, so that nothing says which one stays")
    if len(different) > 1:
        bases = ", ".join(different)
        return Chosen(arm=None, why=f"no arm was kept, and the arms begin from {bases}; name the one that stays: restore.arm")
    return Chosen(arm=different[0], why=f"none of {judged} judged arms was kept, so that their base stays")


def _listed(kept: list[str], but: str) -> str:
    return ", ".join(name for name in kept if name != but)
