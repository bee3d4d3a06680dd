"""The metrics everyone names: their families, units, directions and definitions.

What it does: parses a metric's name (``C6``, ``per_stream@C6``, ``ttft@C1/summary``, ``prefill@2000``) and says what it
means. What it does not do: compute one (``instruments``) or pool them (``analysis``). Rules kept: a name says what was
measured, never how well; an unknown name is a metric of its own, without a direction.
"""

import re
from functools import lru_cache

from attrs import frozen

from ledger.core.words import Better


@frozen(kw_only=True)
class Family:
    """A family of metrics: how its names look, its unit, which way is better, and its one-sentence definition."""

    name: str
    pattern: re.Pattern[str]
    example: str
    unit: str
    better: Better
    definition: str


def _family(name: str, pattern: str, example: str, unit: str, better: Better, definition: str) -> Family:
    return Family(
        name=name,
        pattern=re.compile(pattern),
        example=example,
        unit=unit,
        better=better,
        definition=definition,
    )


_LEVEL = r"C(?P<level>[1-9][0-9]*)"
_DURING = r"(?:@(?P<during>[A-Za-z][A-Za-z0-9_@.-]*))?"
_PART = r"(?:/(?P<part>[a-z][a-z0-9_-]*))?"

FAMILIES: tuple[Family, ...] = (
    _family(
        "C",
        rf"{_LEVEL}{_PART}",
        "C6",
        "tok/s",
        Better.HIGHER,
        "aggregate decode throughput at a concurrency: for each prompt category the completion tokens of all streams over the "
        "wall time of the batch (first request start to last output), then the mean over the categories",
    ),
    _family(
        "per_stream",
        rf"per_stream@{_LEVEL}{_PART}",
        "per_stream@C6",
        "tok/s",
        Better.HIGHER,
        "decode rate of one stream, (tokens - 1) / (last output - first output), the mean over the streams of a category, then "
        "the mean over the categories",
    ),
    _family(
        "steady",
        rf"steady@{_LEVEL}",
        "steady@C6",
        "tok/s",
        Better.HIGHER,
        "tokens produced while all streams of a batch decode, over that time, a chunk's tokens spread evenly since the chunk "
        "before it; the mean over the categories",
    ),
    _family(
        "tokens_per_chunk",
        rf"tokens_per_chunk@{_LEVEL}",
        "tokens_per_chunk@C6",
        "tokens",
        Better.NEITHER,
        "completion tokens over the events with text that brought them; above 1 where a server packs several into one",
    ),
    _family(
        "ttft",
        rf"ttft@{_LEVEL}{_PART}",
        "ttft@C1",
        "s",
        Better.LOWER,
        "time to first token: request start to the first event with content, reasoning or tool-call text, the mean over the "
        "streams of a category, then the mean over the categories",
    ),
    _family(
        "prefill",
        r"prefill@(?P<tokens>[1-9][0-9]*)",
        "prefill@2000",
        "tok/s",
        Better.HIGHER,
        "prompt tokens over the time to the end of a one-token reply, for a unique prompt of exactly that many tokens by the "
        "server's own count; the median of the repeats",
    ),
    _family(
        "mem_available_floor",
        rf"mem_available_floor{_DURING}",
        "mem_available_floor@prefill@2000",
        "GiB",
        Better.HIGHER,
        "the lowest MemAvailable of any node while a trial ran, or while the part of it ran that stands behind the @",
    ),
    _family(
        "temperature_peak",
        r"temperature_peak",
        "temperature_peak",
        "degC",
        Better.LOWER,
        "the hottest sensor of any node while a trial ran, accelerators included",
    ),
    _family(
        "power_mean",
        r"power_mean",
        "power_mean",
        "W",
        Better.LOWER,
        "the mean power of all nodes together while a trial ran, by the sensors of the kernel and of the accelerators",
    ),
    _family(
        "clock_floor",
        r"clock_floor",
        "clock_floor",
        "MHz",
        Better.HIGHER,
        "the lowest processor clock of any node while a trial ran, each sample the mean over its processors",
    ),
    _family(
        "accelerator_clock_floor",
        r"accelerator_clock_floor",
        "accelerator_clock_floor",
        "MHz",
        Better.HIGHER,
        "the lowest clock of any accelerator of any node while a trial ran, idle moments included",
    ),
    _family(
        "network_bytes",
        r"network_bytes",
        "network_bytes",
        "MiB",
        Better.NEITHER,
        "bytes received and sent by all nodes while a trial ran, loopback left out",
    ),
    _family(
        "boot_seconds",
        r"boot_seconds",
        "boot_seconds",
        "s",
        Better.LOWER,
        "launch to readiness: the first completed one-token generation",
    ),
)


@frozen(kw_only=True)
class Metric:
    """A metric's name with what is known of it; ``family`` is None for a name of no known family."""

    name: str
    unit: str
    better: Better
    family: Family | None = None


@lru_cache(maxsize=4096)
def describe(name: str, *, unit: str = "") -> Metric:
    """What is known of the metric called ``name``; ``unit`` is used where no family gives one."""
    for family in FAMILIES:
        if family.pattern.fullmatch(name):
            return Metric(name=name, unit=family.unit, better=family.better, family=family)
    return Metric(name=name, unit=unit, better=Better.NEITHER)


_NUMBERS = re.compile(r"([0-9]+)")


def sort_key(name: str) -> tuple[object, ...]:
    """Orders names as people do: C2 before C10, headline before its parts."""
    head, _, part = name.partition("/")
    pieces = _NUMBERS.split(head)
    return (*(_number_key(piece) if index % 2 else (1, piece) for index, piece in enumerate(pieces)), (2, part))


def _number_key(digits: str) -> tuple[object, ...]:
    """Orders digits by the number they write, however many there are."""
    shown = digits.lstrip("0")
    return (0, len(shown), shown)
