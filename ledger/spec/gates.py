"""What a gate of a spec may say.

What it does: checks one gate against the table of readings, and matches the patterns that gates hold. What it does not do: take
a reading. Rules kept: every mistake is told; a pattern is plain text with ``*`` and ``|``, matched in linear time, so that no
spec can make a run hang on a line of a log.
"""

from ledger.core.errors import did_you_mean
from ledger.spec import readings, values
from ledger.spec.locate import Path
from ledger.spec.model import ON_FAIL, OPERATORS, OWN_GATES, WHEN, GateSpec, Spec
from ledger.spec.readings import Readable
from ledger.spec.values import Complain

MAX_PATTERN = 1000


def check_gate(gate: GateSpec, path: Path, spec: Spec, complain: Complain) -> None:
    """Every mistake of one gate of ``spec``."""
    values.name(gate.id, (*path, "id"), complain)
    if gate.id in OWN_GATES:
        complain("a gate of this name is made by every run that needs it", path=(*path, "id"), value=gate.id, hint="rename it")
    values.filled(gate.text, (*path, "text"), complain)
    values.one_of(gate.op, OPERATORS, (*path, "op"), complain)
    values.one_of(gate.when, WHEN, (*path, "when"), complain)
    values.one_of(gate.on_fail, ON_FAIL, (*path, "on_fail"), complain)
    values.between(gate.version, 1, 1_000_000, (*path, "version"), complain)
    found = readings.find(gate.reads)
    values.quantity(gate.value, (*path, "value"), complain, dimension=found.dimension if found else None)
    if found is None:
        hint = did_you_mean(gate.reads, readings.examples())
        complain("unknown reading", path=(*path, "reads"), value=gate.reads, hint=hint)
        return
    if gate.when not in found.when and gate.when in WHEN:
        hint = "when = " + " or ".join(f'"{each}"' for each in found.when)
        complain(f"this cannot be read {gate.when} a boot", path=(*path, "reads"), value=gate.reads, hint=hint)
    _of(gate, found, path, spec, complain)
    _against(gate, found, path, spec, complain)


def matches(pattern: str, line: str) -> bool:
    """Whether ``line`` holds one of the alternatives of ``pattern`` (``Xid*79|oom-kill``); ``*`` stands for anything."""
    return any(_holds(alternative, line) for alternative in pattern.split("|"))


def _holds(alternative: str, line: str) -> bool:
    at = 0
    for piece in alternative.split("*"):
        found = line.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def _of(gate: GateSpec, found: Readable, path: Path, spec: Spec, complain: Complain) -> None:
    where = (*path, "of")
    if gate.of is None:
        if found.needs_of:
            complain(f"{gate.reads} needs 'of'", path=path, value=gate.id, hint=f"of is {found.of}")
        return
    if found.of is None:
        complain(f"{gate.reads} takes no 'of'", path=where, value=gate.of)
    elif found.of == "a pattern":
        _pattern(gate.of, where, complain)
    elif gate.reads == "manifest.differs":
        known = {name for lane in spec.lanes.values() for name in lane.manifests}
        if gate.of not in known:
            complain("unknown manifest", path=where, value=gate.of, hint=did_you_mean(gate.of, known), rests_on=(("lanes",),))
    elif "measure" in found.of and gate.of not in spec.measures:
        hint = did_you_mean(gate.of, spec.measures)
        complain("unknown measure", path=where, value=gate.of, hint=hint, rests_on=(("measures",),))
    else:
        values.filled(gate.of, where, complain)
        values.without_nul(gate.of, where, complain)


def _pattern(text: str, path: Path, complain: Complain) -> None:
    if len(text) > MAX_PATTERN:
        complain(f"a pattern of more than {MAX_PATTERN} characters", path=path, value=text)
    if any(not alternative.strip("* ") for alternative in text.split("|")):
        complain("a pattern that matches every line", path=path, value=text, hint="words, with * between them and | for or")


def _against(gate: GateSpec, found: Readable, path: Path, spec: Spec, complain: Complain) -> None:
    if gate.against is None:
        return
    where = (*path, "against")
    arms = [arm.id for arm in spec.arms]
    if not found.against:
        complain(f"{gate.reads} is compared with no other arm", path=where, value=gate.against)
    elif gate.against not in arms:
        complain("unknown arm", path=where, value=gate.against, hint=did_you_mean(gate.against, arms), rests_on=(("arms",),))
