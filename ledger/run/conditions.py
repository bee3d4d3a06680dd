"""What the nodes were like as a boot began: states that move figures without being config.

What it does: finds whether compile caches were empty, which boot of the host's this is, how long it stood idle, and who else is
running there. What it does not do: change anything on a node, or judge. Rules kept: what could not be found out is left out or
says ``unknown``; the numbers count what this clone has booted, and are kept in its state folder, whose loss costs them alone.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import orjson
from attrs import frozen

from ledger.backends.reach import Reach
from ledger.core.errors import StoreError
from ledger.run.evidence import Evidence
from ledger.run.host import PROCESSES, count_processes, counters
from ledger.store import objects

BOOT_ID = "/proc/sys/kernel/random/boot_id"
COLD, WARM, UNKNOWN = "cold", "warm", "unknown"
MOST_NAMED = 8


@frozen(kw_only=True)
class _Seen:
    """What this clone knows of a machine: its boot id, how many boots since, and when the last one ended (Unix seconds)."""

    host_boot: str
    boots: int = 0
    ended: float | None = None


class HostBook:
    """The machines that this clone has booted on, in one JSON file of the state folder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: dict[str, _Seen] = {}
        try:
            for key, value in orjson.loads(path.read_bytes()).items():
                self._seen[key] = _Seen(**value)
        except (OSError, ValueError, TypeError, AttributeError):
            self._seen = {}

    def begin(self, key: str, host_boot: str) -> tuple[int, float | None]:
        """Count one more boot on a machine; its number since the host started, and when the one before it ended."""
        known = self._seen.get(key)
        if known is None or known.host_boot != host_boot:
            known = _Seen(host_boot=host_boot)
        self._seen[key] = _Seen(host_boot=host_boot, boots=known.boots + 1, ended=known.ended)
        self._write()
        return known.boots + 1, known.ended

    def end(self, key: str, at: float) -> None:
        """Note that a boot on a machine ended."""
        if (known := self._seen.get(key)) is not None:
            self._seen[key] = _Seen(host_boot=known.host_boot, boots=known.boots, ended=at)
            self._write()

    def _write(self) -> None:
        plain = {key: {"host_boot": item.host_boot, "boots": item.boots, "ended": item.ended} for key, item in self._seen.items()}
        # Its loss costs numbers; a disk that is full is told by the next receipt, with a place that matters.
        with suppress(StoreError, OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            objects.replace(self._path, orjson.dumps(plain))


def host_conditions(nodes: Sequence[Reach], book: HostBook, now: float) -> dict[str, str]:
    """``host_boot``, ``boot_of_host`` and ``idle_min``; counts this boot in the book."""
    ids, numbers, idle = [], [], []
    for reach in nodes:
        host_boot = reach.read(BOOT_ID, limit=64).text.strip()
        if not host_boot:
            return {"host_boot": UNKNOWN}
        number, ended = book.begin(reach.key, host_boot)
        ids.append(host_boot[:8])
        numbers.append(number)
        if ended is not None and now >= ended:
            idle.append((now - ended) / 60)
    found = {"host_boot": " ".join(dict.fromkeys(ids)), "boot_of_host": str(min(numbers))} if ids else {}
    return found | ({"idle_min": f"{max(idle):.1f}"} if idle else {})


def cache_condition(folders: Sequence[str], nodes: Sequence[Reach]) -> dict[str, str]:
    """``jit_cache``: cold where a folder holds no file on a node, warm where all do; nothing where no folder is named."""
    if not folders:
        return {}
    states = [_cache_state(folder, reach) for folder in folders for reach in nodes]
    return {"jit_cache": next((state for state in (COLD, UNKNOWN) if state in states), WARM if states else UNKNOWN)}


def load_conditions(evidence: Evidence, neighbours: Sequence[str]) -> dict[str, str]:
    """``load1`` and ``mem_available_gib`` of the busiest and the fullest node, and ``neighbours``."""
    values = [counters({piece.source: piece.text for piece in evidence.pieces if piece.node == node}) for node in evidence.nodes]
    loads = [each["load1"] for each in values if "load1" in each]
    memory = [each["MemAvailable"] for each in values if "MemAvailable" in each]
    found = {"load1": f"{max(loads):.2f}"} if loads else {}
    found |= {"mem_available_gib": f"{min(memory) / 2**30:.1f}"} if memory else {}
    return found | _neighbours(evidence, neighbours)


def _cache_state(folder: str, reach: Reach) -> str:
    ran = reach.run(["find", "-L", folder, "-type", "f", "-print", "-quit"])
    if ran.out.strip():
        return WARM
    gone = b"No such file" in ran.err
    return COLD if ran.ok or gone else UNKNOWN


def _neighbours(evidence: Evidence, words: Sequence[str]) -> dict[str, str]:
    if not words:
        return {}
    found: dict[str, int] = {}
    for word in words:
        for piece in evidence.of(PROCESSES + word).values():
            found[word] = found.get(word, 0) + count_processes(piece.text)
    if not found:
        return {"neighbours": UNKNOWN}
    named: Mapping[str, int] = {word: number for word, number in found.items() if number}
    shown = ", ".join(f"{number} {word}" for word, number in list(named.items())[:MOST_NAMED])
    return {"neighbours": shown or "none"}
