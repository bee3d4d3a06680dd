"""Server-sent events framed from timed reads.

What it does: cuts the bytes of a reply into events, each with the stamp of the read that completed it. What it does not do:
know JSON, tokens or HTTP. Rules kept: bytes stay bytes until an event is whole, so that no split of the stream can change a
text; a line ends at LF, CR or CRLF and nowhere else; nothing is stripped but the one space that the format allows after a
colon; the last event counts even without its blank line; an event beyond ``MAX_EVENT_BYTES`` ends the framing.
"""

import re
from collections.abc import Iterable

from attrs import Factory, define, field, frozen

from ledger.instruments.base import Read

MAX_EVENT_BYTES = 64 * 1024 * 1024
_LINE_END = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"


@frozen(kw_only=True)
class Event:
    """One event: its data (several ``data`` lines joined by LF), and its ``event`` name, ``message`` where none was given.

    ``t_ns`` and ``read_index`` are those of the read that completed it; events of one read share both. ``unterminated``
    says that the stream ended before the event's blank line.
    """

    t_ns: int
    read_index: int
    data: bytes
    name: str = "message"
    unterminated: bool = False


@frozen(kw_only=True)
class Framing:
    """All events of a stream; ``oversize`` says that one was larger than the bound, and that nothing after it was read."""

    events: tuple[Event, ...]
    oversize: bool = False


def frame(reads: Iterable[Read], *, limit: int = MAX_EVENT_BYTES) -> Framing:
    """The events in ``reads``, whatever the places at which the network cut them."""
    framer = _Framer(limit=limit)
    for index, read in enumerate(reads):
        framer.feed(index, read)
        if framer.oversize:
            break
    framer.finish()
    return Framing(events=tuple(framer.events), oversize=framer.oversize)


@define
class _Framer:
    """The state between two reads: the line that is not yet whole, and the fields of the event that is not."""

    limit: int
    events: list[Event] = Factory(list)
    oversize: bool = False
    _line: bytearray = field(factory=bytearray, init=False)
    _data: list[bytes] = field(factory=list, init=False)
    _held: int = field(default=0, init=False)
    _name: str = field(default="", init=False)
    _after_cr: bool = field(default=False, init=False)
    _at_start: bool = field(default=True, init=False)
    _at: tuple[int, int] = field(default=(0, 0), init=False)

    def feed(self, index: int, read: Read) -> None:
        data = read.data
        if self._after_cr and data:
            # A CR at the end of the read before was the line's end; the LF that makes it a CRLF belongs to it.
            data = data.removeprefix(b"\n")
            self._after_cr = False
        if not data:
            return
        self._at = (read.t_ns, index)
        self._after_cr = data.endswith(b"\r")
        *whole, rest = _LINE_END.split(data)
        for piece in whole:
            self._line += piece
            self._take(bytes(self._line))
            self._line.clear()
        self._line += rest
        self._bound(len(self._line))

    def finish(self) -> None:
        """What is left at the end of the stream is an event too, unless it was cut off for its size."""
        if self.oversize:
            return
        if self._line:
            self._take(bytes(self._line))
        self._dispatch(unterminated=True)

    def _take(self, line: bytes) -> None:
        self._bound(len(line))
        if self._at_start:
            line = line.removeprefix(_BOM)
            self._at_start = False
        if not line:
            self._dispatch(unterminated=False)
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._append(value)
        elif name == b"event":
            self._name = value.decode("utf-8", "replace")
        elif name == b"error":
            # Not of the format, but how some servers report one in a stream that has begun.
            self._name = "error"
            self._append(value)

    def _append(self, value: bytes) -> None:
        self._data.append(value)
        self._held += len(value)
        self.oversize = self.oversize or self._held > self.limit

    def _bound(self, line: int) -> None:
        self.oversize = self.oversize or line > self.limit + len(b"data: ")

    def _dispatch(self, *, unterminated: bool) -> None:
        data = b"\n".join(self._data)
        if data and not self.oversize:
            t_ns, index = self._at
            name = self._name or "message"
            self.events.append(Event(t_ns=t_ns, read_index=index, data=data, name=name, unterminated=unterminated))
        self._data.clear()
        self._held = 0
        self._name = ""
