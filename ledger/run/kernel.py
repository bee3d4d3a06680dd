"""The kernel's log of a node, between two moments.

What it does: notes where the log ends, and later gives the lines that came after. What it does not do: judge lines. Rules kept:
``dmesg``, then ``journalctl -k``, then ``/dev/kmsg``, the first that gives lines; a log that nothing gives, or that has lost
the place, is unread with what was tried, for no line that was seen is not the same as no event.
"""

import re
from collections.abc import Callable, Sequence

from attrs import frozen

from ledger.backends.reach import Reach
from ledger.run.evidence import Evidence, text_piece
from ledger.run.secrets import Concealer

SOURCE = "kernel log"
LIMIT = 16 * 2**20
_BRACKETED = re.compile(r"\[\s*(\d+\.\d+)\]")
_RECORD = re.compile(r"\d+,\d+,(\d+),")


def _seconds_in_brackets(line: str) -> float | None:
    match = _BRACKETED.match(line)
    return float(match[1]) if match else None


def _microseconds_of_record(line: str) -> float | None:
    match = _RECORD.match(line)
    return int(match[1]) / 1e6 if match else None


# Each way to read the log, and the clock of its lines. dd ends with an error where the log has no more lines for now.
WAYS: Sequence[tuple[tuple[str, ...], Callable[[str], float | None], bool]] = (
    (("dmesg",), _seconds_in_brackets, False),
    (("journalctl", "-k", "-b", "-q", "--no-pager", "-o", "short-monotonic"), _seconds_in_brackets, False),
    (("dd", "if=/dev/kmsg", "iflag=nonblock", "bs=8192", "status=none"), _microseconds_of_record, True),
)


@frozen(kw_only=True)
class Mark:
    """Where the log of a node ended: the way that it was read, the time of its last line and how many lines have it.

    ``unread`` says why there is no such place.
    """

    way: int = 0
    last: float = -1.0
    of_last: int = 0
    unread: str | None = None


def mark(reach: Reach) -> Mark:
    """Note where the log of a node ends now."""
    tried = []
    for way, (argv, _, _) in enumerate(WAYS):
        lines, why = _read(reach, way)
        if lines:
            last = lines[-1][0]
            return Mark(way=way, last=last, of_last=sum(1 for at, _ in lines if at == last))
        tried.append(f"{argv[0]}: {why or 'no line'}")
    return Mark(unread=f"the kernel's log cannot be read ({'; '.join(tried)})")


def since(reach: Reach, begin: Mark, conceal: Concealer) -> Evidence:
    """The lines after ``begin``, as evidence."""

    def unread(why: str) -> Evidence:
        return Evidence(nodes=(reach.node,), unread={(reach.node, SOURCE): why})

    if begin.unread is not None:
        return unread(begin.unread)
    lines, why = _read(reach, begin.way)
    if not lines:
        return unread(why or "the kernel's log is empty, and was not before")
    if lines[0][0] > begin.last:
        return unread("the kernel's log has lost lines: what it held when the boot began is gone")
    at_last = [text for at, text in lines if at == begin.last][begin.of_last :]
    after = at_last + [text for at, text in lines if at > begin.last]
    head = f"# {WAYS[begin.way][0][0]}: {len(after)} of {len(lines)} lines came after {begin.last:.6f} s\n"
    piece = text_piece(reach.node, SOURCE, head + "".join(f"{conceal.text(line)}\n" for line in after))
    return Evidence(nodes=(reach.node,), pieces=(piece,))


def count(text: str, holds: Callable[[str], bool]) -> int:
    """How many lines of a kept log hold."""
    return sum(1 for line in text.splitlines() if not line.startswith("#") and holds(line))


def _read(reach: Reach, way: int) -> tuple[list[tuple[float, str]], str]:
    """The lines of the log with their times, and why there are none; a line without a time belongs to the one before it."""
    argv, clock, ends_with_error = WAYS[way]
    ran = reach.run(argv, limit=LIMIT)
    if ran.cut:
        return [], f"more than {LIMIT} bytes"
    if not ran.ok and not (ends_with_error and ran.out):
        return [], ran.told
    found: list[tuple[float, str]] = []
    for line in ran.out.decode("utf-8", "replace").splitlines():
        at = clock(line)
        if at is not None:
            found.append((at, line))
        elif found:
            found.append((found[-1][0], line))
    # Lines of several processors may stand slightly out of order.
    return sorted(found, key=lambda item: item[0]), ""
