"""Raw evidence: what was read, where, word for word.

What it does: the record of one thing that was read on a node, and the way between it and a blob with its annotations. What it
does not do: read or judge. Rules kept: evidence is what a verdict is made from, live and again later, so that a verdict can be
made anew from the blobs alone; text passes the concealer before it is kept, and it is judged as it is kept.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from attrs import evolve, field, frozen

from ledger.core.digest import Descriptor
from ledger.receipt.model import Trial

TEXT = "text/plain"
NODE, SOURCE, SIDE, MEASURE = "node", "source", "side", "measure"
KeepBlob = Callable[[bytes, str], Descriptor]


@frozen(kw_only=True)
class Piece:
    """Bytes as they were read, with ``annotations`` that say where: ``node``, ``source`` (``/proc/meminfo``, ``df:/data``)."""

    annotations: Mapping[str, str]
    data: bytes
    media_type: str = TEXT

    @property
    def text(self) -> str:
        """The bytes as text."""
        return self.data.decode("utf-8", "replace")

    @property
    def node(self) -> str:
        """The node on which it was read; empty for what was not read on one."""
        return self.annotations.get(NODE, "")

    @property
    def source(self) -> str:
        """What was read."""
        return self.annotations.get(SOURCE, "")


@frozen(kw_only=True)
class Evidence:
    """All that a boot's gates can be judged from: pieces, what could not be read, and the trials.

    ``unread`` maps (node, source) to the reason. ``nodes`` are the boot's own, in the order of the ranks.
    """

    nodes: tuple[str, ...] = ()
    pieces: tuple[Piece, ...] = ()
    unread: Mapping[tuple[str, str], str] = field(factory=dict)
    trials: tuple[Trial, ...] = ()

    def of(self, source: str) -> dict[str, Piece]:
        """The pieces of one source by node."""
        return {piece.node: piece for piece in self.pieces if piece.source == source}

    def why_not(self, node: str, source: str) -> str:
        """Why there is no piece of a source of a node."""
        return self.unread.get((node, source), f"{source} is not in the evidence")


def text_piece(node: str, source: str, text: str) -> Piece:
    """A piece of text that was read on a node."""
    return Piece(annotations={NODE: node, SOURCE: source}, data=text.encode("utf-8", "replace"))


def joined(parts: Iterable[Evidence]) -> Evidence:
    """Evidence of several nodes or moments as one; what is told later about a node and source stands."""
    parts = list(parts)
    return Evidence(
        nodes=tuple(dict.fromkeys(node for part in parts for node in part.nodes)),
        pieces=tuple({tuple(sorted(each.annotations.items())): each for part in parts for each in part.pieces}.values()),
        unread={key: reason for part in parts for key, reason in part.unread.items()},
        trials=tuple(trial for part in parts for trial in part.trials),
    )


def keep(pieces: Sequence[Piece], blob: KeepBlob) -> tuple[Descriptor, ...]:
    """Write each piece as a blob; the descriptors carry the annotations."""
    return tuple(evolve(blob(piece.data, piece.media_type), annotations=dict(piece.annotations)) for piece in pieces)
