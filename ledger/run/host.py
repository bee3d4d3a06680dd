"""Readings of a node: counters, sensors, disks and processes, raw and parsed.

What it does: reads them through a :class:`Reach` as evidence, and parses the raw text into values. What it does not do: judge
(``gates``). Rules kept: what cannot be read is absent with its reason, never zero; values are made from the text that is kept;
of the processes only those that somebody asked for are kept, since command lines are private.
"""

import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from attrs import frozen

from ledger.backends.reach import Reach
from ledger.run.evidence import Evidence, Piece, text_piece
from ledger.run.secrets import Concealer
from ledger.spec.gates import matches

PROC = Path("/proc")
KIB = 1024
MEMINFO, LOADAVG, SENSORS = "/proc/meminfo", "/proc/loadavg", "sensors"
DISK, PROCESSES = "df:", "processes:"
# The kernel's own temperature sensors, one `path:millidegrees` a line.
FIND_SENSORS = (
    *("find", "-L", "/sys/class/thermal", "/sys/class/hwmon", "-maxdepth", "2"),
    *("(", "-name", "temp", "-o", "-name", "temp*_input", ")", "-exec", "grep", "-H", "", "{}", "+"),
)
LIST_PROCESSES = ("ps", "-eo", "pid=,ppid=,args=")
_SENSOR = re.compile(r"(?P<path>[^:\n]+):(?P<value>-?\d+)")


@frozen(kw_only=True)
class Wanted:
    """What is read of a node beside memory, load and sensors: paths whose disks, and patterns whose processes, count."""

    disks: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()


def read_node(reach: Reach, wanted: Wanted, conceal: Concealer, *, own: Sequence[int] = (), folder: str = ".") -> Evidence:
    """Everything that is wanted of a node; ``own`` are processes that, with all below them, do not count.

    ``folder`` is what a disk called ``.`` is the disk of.
    """
    pieces: list[Piece] = []
    unread: dict[tuple[str, str], str] = {}

    def add(source: str, text: str | None, why: str) -> None:
        if text is None:
            unread[reach.node, source] = why
        else:
            pieces.append(text_piece(reach.node, source, text))

    for source in (MEMINFO, LOADAVG):
        content = reach.read(source)
        add(source, content.text if content.unread is None else None, content.unread or "")
    sensors = reach.run(FIND_SENSORS)
    add(SENSORS, sensors.out.decode("utf-8", "replace") or None, "the kernel shows no temperature sensor")
    for path in wanted.disks:
        ran = reach.run(["df", "-kP", "--", folder if path == "." else path])
        add(DISK + path, conceal.text(ran.out.decode("utf-8", "replace")) if ran.ok else None, ran.told)
    if wanted.patterns:
        ran = reach.run(LIST_PROCESSES)
        found = _processes(ran.out.decode("utf-8", "replace"), own)
        for pattern in wanted.patterns:
            add(PROCESSES + pattern, _matching(found, pattern, conceal) if ran.ok else None, ran.told)
    return Evidence(nodes=(reach.node,), pieces=tuple(pieces), unread=unread)


def counters(texts: Mapping[str, str]) -> dict[str, float]:
    """The values in a node's raw texts by source: counters in bytes, loads, ``temperature`` in °C."""
    memory = parse_meminfo(texts.get(MEMINFO, ""))
    if {"SwapTotal", "SwapFree"} <= set(memory):
        memory["SwapUsed"] = memory["SwapTotal"] - memory["SwapFree"]
    heat = parse_sensors(texts.get(SENSORS, ""))
    return memory | parse_loadavg(texts.get(LOADAVG, "")) | ({"temperature": heat} if heat is not None else {})


def parse_meminfo(text: str) -> dict[str, float]:
    """``{"MemAvailable": bytes, …}`` of a ``/proc/meminfo``; lines of another shape are passed over."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if len(words) == 2 and words[0].isdigit() and words[1] == "kB":
            found[name] = float(int(words[0]) * KIB)
    return found


def parse_loadavg(text: str) -> dict[str, float]:
    """``load1``, ``load5``, ``load15`` of a ``/proc/loadavg``."""
    words = text.split()[:3]
    try:
        return dict(zip(("load1", "load5", "load15"), map(float, words), strict=True))
    except ValueError:
        return {}


def parse_sensors(text: str) -> float | None:
    """The hottest of ``path:millidegrees`` lines in °C; a sensor outside -50 to 200 °C is broken and passed over."""
    values = [int(match["value"]) / 1000 for line in text.splitlines() if (match := _SENSOR.fullmatch(line.strip()))]
    return max((value for value in values if -50 <= value <= 200), default=None)


def parse_disk(text: str) -> float | None:
    """Free bytes in the output of ``df -kP``."""
    lines = text.splitlines()
    words = lines[1].split() if len(lines) == 2 else []
    # The name of a file system may hold blanks; the numbers stand before the share and the mount point.
    share = next((index for index, word in enumerate(words) if re.fullmatch(r"\d+%|-", word) and index >= 4), None)
    return float(int(words[share - 1]) * KIB) if share is not None and words[share - 1].isdigit() else None


def count_processes(text: str) -> int:
    """How many processes a kept list holds."""
    return sum(1 for line in text.splitlines() if line and not line.startswith("#"))


def context() -> dict[str, str]:
    """What this machine is, as context factors: processor, cores, kernel, memory."""
    memory = parse_meminfo(_text(PROC / "meminfo")).get("MemTotal")
    facts = {
        "host.cpu": _cpu_model(),
        "host.cores": str(os.cpu_count() or ""),
        "host.kernel": platform.release(),
        "host.memory_gib": f"{memory / 2**30:.0f}" if memory else "",
    }
    return {name: value for name, value in facts.items() if value}


def _processes(text: str, own: Sequence[int]) -> dict[int, str]:
    """Command lines by process id, without those of ``own`` and everything below them."""
    parents: dict[int, int] = {}
    lines: dict[int, str] = {}
    for line in text.splitlines():
        words = line.split(None, 2)
        if len(words) == 3 and words[0].isdigit() and words[1].isdigit():
            parents[int(words[0])], lines[int(words[0])] = int(words[1]), words[2]
    return {pid: args for pid, args in lines.items() if not any(each in own for each in _line_of(pid, parents))}


def _line_of(pid: int, parents: Mapping[int, int]) -> Iterable[int]:
    seen: set[int] = set()
    while pid not in seen:
        seen.add(pid)
        yield pid
        pid = parents.get(pid, pid)


def _matching(found: Mapping[int, str], pattern: str, conceal: Concealer) -> str:
    kept = [f"{pid} {' '.join(conceal.argv(args.split()))}\n" for pid, args in found.items() if matches(pattern, args)]
    return f"# {len(found)} processes that are not of this run, of which these match {pattern}\n" + "".join(kept)


def _cpu_model() -> str:
    for line in _text(PROC / "cpuinfo").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
