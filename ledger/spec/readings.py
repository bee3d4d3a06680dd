"""What a gate can read: each reading with its dimension, the times at which it can be taken, and what it needs beside a limit.

What it does: finds the reading that a name means, and says the dimension of its limit. What it does not do: take one (``run``),
or check a gate (``check``). Rule kept: a name that nothing here answers to can not be read, and a gate on it is a mistake.
"""

from collections.abc import Iterable

from attrs import frozen

from ledger.core import metrics, units

BEFORE, DURING, AFTER = "before", "during", "after"
OF_NODES = ("host", "manifest", "kernel")


@frozen(kw_only=True)
class Readable:
    """Something a gate can read. ``of`` says in words what the gate's ``of`` names, where it needs or allows one."""

    example: str
    dimension: str
    when: tuple[str, ...]
    about: str
    of: str | None = None
    needs_of: bool = False
    against: bool = False


def _host(name: str, dimension: str, about: str, *, during: bool = False) -> Readable:
    when = (BEFORE, DURING, AFTER) if during else (BEFORE, AFTER)
    return Readable(example=f"host.{name}", dimension=dimension, when=when, about=about)


def _paired(name: str, dimension: str, about: str) -> Readable:
    of = "the measure whose items are paired; else every one that gives items"
    return Readable(example=f"paired.{name}", dimension=dimension, when=(AFTER,), about=about, of=of, against=True)


def _requests(name: str, about: str) -> Readable:
    return Readable(example=f"requests.{name}", dimension="count", when=(AFTER,), about=about, of="one measure; else all")


# Every reading but the counters of /proc/meminfo and the metrics, which have no list of their own.
READINGS: tuple[Readable, ...] = (
    _host("MemAvailable", "bytes", "a counter of `/proc/meminfo`, by its name there", during=True),
    _host("MemFree", "bytes", "as above", during=True),
    _host("SwapUsed", "bytes", "swap in use: `SwapTotal` less `SwapFree`", during=True),
    _host("load1", "count", "the load average of one minute; also `load5` and `load15`", during=True),
    _host("load5", "count", "of five minutes"),
    _host("load15", "count", "of fifteen minutes"),
    _host("temperature", "temperature", "the hottest sensor of the node", during=True),
    Readable(
        example="host.disk_free",
        dimension="bytes",
        when=(BEFORE, AFTER),
        about="free space of a file system",
        of="a path on it; else the ledger's folder",
    ),
    Readable(
        example="host.processes",
        dimension="count",
        when=(BEFORE, AFTER),
        about="processes whose command line matches, the boot's own and this program not counted",
        of="a pattern",
        needs_of=True,
    ),
    Readable(
        example="manifest.differs",
        dimension="count",
        when=(BEFORE, AFTER),
        about="files of a manifest that are missing or not as pinned",
        of="the manifest's name in the lane",
        needs_of=True,
    ),
    Readable(
        example="kernel.events",
        dimension="count",
        when=(DURING,),
        about="lines of the kernel's log that match, on each node between the boot's start and its end",
        of="a pattern",
        needs_of=True,
    ),
    _requests("failed", "failed requests, over all trials of the boot"),
    _requests("ok", "requests that completed"),
    _requests("launched", "requests that were sent"),
    _paired("broke", "count", "items that the control solves and the arm does not"),
    _paired("fixed", "count", "items that the arm solves and the control does not"),
    _paired("drop", "ratio", "items broke less items fixed, over all paired items"),
    _paired("p", "ratio", "exact two-sided McNemar p of broke and fixed"),
    _paired("mid_p", "ratio", "its mid-p variant, less conservative where few items differ"),
    _paired("smallest_drop", "ratio", "the smallest drop that this many items would show in eight of ten runs at p < 0.05"),
    Readable(
        example="greedy.differs",
        dimension="count",
        when=(AFTER,),
        about="replies that are not character for character those of the control to the same requests",
        of="the measure whose replies are compared",
        needs_of=True,
        against=True,
    ),
)
_BY_NAME = {item.example: item for item in READINGS}


def find(name: str) -> Readable | None:
    """What ``name`` reads: one of ``READINGS``, a counter of ``/proc/meminfo``, or a metric; None when nothing does."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    counter = name.removeprefix("host.")
    if counter != name:
        known = counter[:1].isupper() and counter.replace("_", "").replace("(", "").replace(")", "").isalnum()
        return _host(counter, "bytes", "a counter of `/proc/meminfo`") if known else None
    family = metrics.describe(name).family
    if family is None:
        return None
    dimension = units.UNITS[family.unit][0]
    return Readable(example=name, dimension=dimension, when=(AFTER,), about=family.definition, of="one measure; else all")


def room(reads: str) -> str:
    """What a reading is of: ``host``, ``requests``, ``greedy``; of a metric, its name."""
    return reads.partition(".")[0]


def is_of_nodes(reads: str) -> bool:
    """Whether the nodes are read, rather than the trials of a boot."""
    return room(reads) in OF_NODES


def examples() -> Iterable[str]:
    """Names that can be read, to find the nearest one to a wrong one."""
    return [*_BY_NAME, *(family.example for family in metrics.FAMILIES)]
