"""The words of a reply, one by one, and where two replies part.

What it does: reads what a stream record said, in the order in which it came, as characters and, where the server shows them, as
tokens; finds the first position at which two replies differ. What it does not do: judge whether a reply is whole (``stream``).
Rules kept: two replies are the same when every character and its channel is, however they were cut into events; a position is
counted in tokens only where each token was seen on its own by the server's own count, and in characters elsewhere.
"""

from collections.abc import Sequence
from itertools import zip_longest

from attrs import frozen

from ledger.instruments import delta, sse
from ledger.instruments.base import StreamRecord
from ledger.instruments.delta import Delta

TOKENS, CHARACTERS = "tokens", "characters"
Said = tuple[str, str]
"""A channel (``content``, ``reasoning``, ``tool``) and some text in it."""


@frozen(kw_only=True)
class Wording:
    """What a reply said. ``tokens`` is None where the events of its stream were not one for each token."""

    characters: tuple[Said, ...]
    tokens: tuple[Said, ...] | None = None


@frozen(kw_only=True)
class Parting:
    """Where two replies part: the position of the first difference, counted from 1, and what was counted."""

    position: int
    unit: str


def wording(record: StreamRecord) -> Wording:
    """What came back in ``record``. Never raises for anything a server can send."""
    said: list[Said] = []
    count = finish = None
    for event in sse.frame(record.reads).events:
        if event.data == delta.DONE:
            break
        value = delta.parse(event.data)
        if value is not None:
            read = delta.read(value, name=event.name)
            said += _said(read)
            finish = read.finish_reason or finish
            count = read.usage.completion_tokens if read.usage else count
    return Wording(
        characters=tuple((channel, each) for channel, text in said for each in text),
        tokens=tuple(said) if _is_one_each(len(said), count, finish) else None,
    )


def parting(one: Wording, other: Wording, unit: str | None = None) -> Parting | None:
    """Where two replies part, in ``unit`` or else in tokens where both have them; None where they say the same."""
    if one.characters == other.characters:
        return None
    if unit != CHARACTERS and one.tokens is not None and other.tokens is not None:
        return Parting(position=_first(one.tokens, other.tokens), unit=TOKENS)
    return Parting(position=_first(one.characters, other.characters), unit=CHARACTERS)


def unit_of(wordings: Sequence[Wording]) -> str:
    """What positions in all of these can be counted in."""
    return TOKENS if all(each.tokens is not None for each in wordings) else CHARACTERS


def length(said: Wording, unit: str) -> int:
    """How many positions a reply has."""
    return len(said.tokens if unit == TOKENS and said.tokens is not None else said.characters)


def _said(read: Delta) -> list[Said]:
    return [(channel, text) for channel in ("reasoning", "content", "tool") if (text := getattr(read, channel))]


def _is_one_each(events: int, tokens: int | None, finish: str | None) -> bool:
    """Whether there was one event for each token; the token that ends a reply has no text, and most servers count it."""
    return tokens is not None and (events == tokens or (finish == "stop" and events == tokens - 1))


def _first(one: Sequence[Said], other: Sequence[Said]) -> int:
    return next(at for at, (mine, theirs) in enumerate(zip_longest(one, other), start=1) if mine != theirs)
