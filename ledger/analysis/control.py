"""Whether a control qualifies: the same configuration as the base, as warm as the arm, and inside the arm's window.

What it does: says which boots of an arm and of its control may be judged against each other, why others may not, and the
cheapest run that would mend it. What it does not do: judge the figures (``rule``), or find the boots. Rules kept: a
condition that is not known on one side refuses nothing and is told; a boot that is left out is named with its reason.
"""

import statistics
from collections.abc import Mapping, Sequence

from attrs import field, frozen

from ledger.core.digest import short

UNKNOWN = "unknown"
HOST_BOOT = "host_boot"


@frozen(kw_only=True)
class BootFacts:
    """A boot as far as its window is concerned.

    ``config`` is its fingerprint, or the one that stands for all that corrections call the same. ``at`` is when it was recorded,
    in Unix seconds, and ``seconds`` is about how long the boot and its trials took.
    """

    digest: str
    config: str
    at: float | None = None
    nodes: tuple[str, ...] = ()
    conditions: Mapping[str, str] = field(factory=dict)
    values: Mapping[str, float] = field(factory=dict)
    seconds: float = 0.0


@frozen(kw_only=True)
class Bounds:
    """What the rule asks of a control: at most ``age_s`` seconds from the arm, ``alike`` conditions, at most a ``drift``."""

    age_s: float
    drift: float
    alike: tuple[str, ...] = ()


@frozen(kw_only=True)
class Pairing:
    """The boots that may be judged against each other.

    ``refused`` holds why there is no verdict, ``left_out`` why single boots do not count, ``remarks`` what is not known, and
    ``mend`` the cheapest run after which there would be a verdict.
    """

    arm: tuple[str, ...] = ()
    control: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    mend: str | None = None


def pair(
    arm: Sequence[BootFacts],
    control: Sequence[BootFacts],
    *,
    names: tuple[str, str],
    base: str | None,
    bounds: Bounds,
    now: float,
) -> Pairing:
    """Which boots of the arm and the control qualify; both in the order of their making.

    ``names`` are those of the arm and of its control, ``base`` is the configuration of the arm's base, None where it is not
    known, and ``now`` is the time, in Unix seconds, from which a mend would start.
    """
    if not arm or not control:
        return Pairing()
    alike = [boot for boot in arm if not _unlike(boot, arm[-1], bounds)]
    against = {boot.digest: [_why_not(boot, each, base, bounds) for each in alike] for boot in control}
    fits = [boot for boot in control if [] in against[boot.digest]]
    left_out = [*_cold_of(arm, alike, names[0]), *_told(control, against, names[1])]
    drifted = _drift(fits, bounds, names[1])
    if not fits or drifted:
        mend = _mend(alike, control, names, bounds, now, base=base, drifted=bool(drifted))
        return Pairing(refused=(*left_out, *drifted), mend=mend)
    kept = [each for each in alike if any(not _why_not(boot, each, base, bounds) for boot in fits)]
    lonely = [f"boot {short(each.digest)} of {names[0]} has no control in its window" for each in alike if each not in kept]
    return Pairing(
        arm=tuple(boot.digest for boot in kept),
        control=tuple(boot.digest for boot in fits),
        left_out=(*left_out, *lonely),
        remarks=_not_known(kept[-1], fits[-1], base, bounds),
    )


def _why_not(control: BootFacts, arm: BootFacts, base: str | None, bounds: Bounds) -> list[str]:
    said = [f"its {name} was {theirs} and the arm's {ours}" for name, theirs, ours in _unlike(control, arm, bounds)]
    if base is not None and control.config != base:
        said.append("its configuration is not that of the arm's base")
    if control.nodes != arm.nodes:
        said.append(f"it ran on {', '.join(control.nodes)} and the arm on {', '.join(arm.nodes)}")
    if _known(control, HOST_BOOT, arm) and control.conditions[HOST_BOOT] != arm.conditions[HOST_BOOT]:
        said.append("a node was restarted between it and the arm")
    if control.at is not None and arm.at is not None and abs(control.at - arm.at) > bounds.age_s:
        said.append(f"it lies {span(abs(control.at - arm.at))} from the arm, and at most {span(bounds.age_s)} are allowed")
    return said


def _unlike(boot: BootFacts, other: BootFacts, bounds: Bounds) -> list[tuple[str, str, str]]:
    names = [name for name in bounds.alike if _known(boot, name, other)]
    both = [(name, boot.conditions[name], other.conditions[name]) for name in names]
    return [each for each in both if each[1] != each[2]]


def _known(boot: BootFacts, name: str, other: BootFacts) -> bool:
    return all(each.conditions.get(name, UNKNOWN) != UNKNOWN for each in (boot, other))


def _cold_of(arm: Sequence[BootFacts], alike: Sequence[BootFacts], name: str) -> list[str]:
    return [f"boot {short(boot.digest)} of {name} is not in the state of its latest boot" for boot in arm if boot not in alike]


def _told(control: Sequence[BootFacts], against: Mapping[str, Sequence[Sequence[str]]], name: str) -> list[str]:
    """Each control boot that qualifies for no boot of the arm, with what speaks against it beside the arm's latest."""
    refused = [boot for boot in control if [] not in against[boot.digest]]
    return [f"boot {short(boot.digest)} of control {name}: {'; '.join(against[boot.digest][-1])}" for boot in refused]


def _drift(control: Sequence[BootFacts], bounds: Bounds, name: str) -> list[str]:
    metrics = sorted({metric for boot in control for metric in boot.values})
    found = []
    for metric in metrics:
        values = [boot.values[metric] for boot in control if metric in boot.values]
        middle = statistics.median(values)
        if middle and (drift := (max(values) - min(values)) / abs(middle)) > bounds.drift:
            found.append(f"control {name} drifted by {drift:.1%} in {metric} over its own boots, more than {bounds.drift:.1%}")
    return found


def _not_known(arm: BootFacts, control: BootFacts, base: str | None, bounds: Bounds) -> tuple[str, ...]:
    names = [name for name in (*bounds.alike, HOST_BOOT) if not _known(control, name, arm)]
    said = [f"not recorded on both sides, so not compared: {', '.join(names)}"] if names else []
    return (*said, *(["no boot of the arm's base is known to compare the control with"] if base is None else []))


def _mend(
    arm: Sequence[BootFacts],
    control: Sequence[BootFacts],
    names: tuple[str, str],
    bounds: Bounds,
    now: float,
    *,
    base: str | None,
    drifted: bool,
) -> str:
    """One reboot of the control where the arm's window is still open, else one of each."""
    if base is not None and control[-1].config != base:
        return f"name a control that boots what the arm's base boots; {names[1]} does not"
    last = arm[-1]
    restarted = _known(control[-1], HOST_BOOT, last) and control[-1].conditions[HOST_BOOT] != last.conditions[HOST_BOOT]
    is_open = last.at is not None and now - last.at <= bounds.age_s and not restarted and not drifted
    state = " ".join(last.conditions[name] for name in bounds.alike if last.conditions.get(name, UNKNOWN) != UNKNOWN)
    word = f"{state} reboot" if state else "reboot"
    again = f"one {word} of {names[1]}"
    if is_open:
        return f"{again}, about {span(control[-1].seconds)}"
    return f"{again} and one of {names[0]} in one window, about {span(control[-1].seconds + last.seconds)}"


def span(seconds: float) -> str:
    """A length of time in words: ``40 s``, ``2 min``, ``12 h``."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{round(seconds / 3600)} h"
