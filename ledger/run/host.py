"""Readings of the machine under the runner, raw and parsed.

What it does: reads ``/proc`` and says what is there, with the raw text beside it as evidence. What it does not do: judge
(``gates``) or reach another node. Rule kept: what cannot be read is absent, never zero.
"""

import os
import platform
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

PROC = Path("/proc")
KIB = 1024


@frozen(kw_only=True)
class HostReading:
    """Counters by name in base units (bytes, load as a plain number), and the raw text that they were read from."""

    values: Mapping[str, float]
    raw: str


def read_host(proc: Path = PROC) -> HostReading:
    """``MemTotal``, ``MemAvailable``, ``MemFree``, ``SwapFree``, … in bytes and ``load1``, ``load5``, ``load15``."""
    meminfo = _text(proc / "meminfo")
    loadavg = _text(proc / "loadavg")
    values = parse_meminfo(meminfo) | parse_loadavg(loadavg)
    return HostReading(values=values, raw=f"# {proc}/meminfo\n{meminfo}# {proc}/loadavg\n{loadavg}")


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
