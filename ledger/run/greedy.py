"""An arm's greedy replies beside its control's, prompt by prompt, each side's agreement with itself first.

What it does: groups the replies of both sides by what was asked, and reads how many prompts were answered otherwise, the share
that was answered alike, where the replies part, and how far each side agrees with itself. What it does not do: choose the
control, or judge. Rules kept: only equal sets of greedy requests are compared; a prompt that a side answers in two ways cannot
show that the other side differs, so that it stands in the bounds of a reading and never in the reading itself; positions are
counted in tokens where all replies that part have them, else in characters, and the reading says which.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence

import orjson
from attrs import frozen

from ledger.core.errors import LedgerError
from ledger.instruments import transcript
from ledger.instruments.base import Request
from ledger.instruments.openai.chat import CACHE_SALT
from ledger.instruments.stream import decode
from ledger.instruments.wording import Wording, length, parting, unit_of, wording
from ledger.run.evidence import ARM, CONTROL, MEASURE, SIDE, Piece
from ledger.run.samples import Sample, Taken

# What may differ between two requests that ask the same: the model's name in the API, and what keeps a cache apart.
APART = ("model", CACHE_SALT)


@frozen(kw_only=True)
class _Reply:
    """A reply by the request's name, and what was asked; ``said`` is None where it failed."""

    name: str
    asked: bytes
    is_greedy: bool
    said: Wording | None


@frozen(kw_only=True)
class _Prompt:
    """A prompt by the name of its first request, with what both sides said to it."""

    name: str
    control: tuple[Wording, ...]
    arm: tuple[Wording, ...]

    @property
    def is_settled(self) -> bool:
        """Whether each side says one thing."""
        return _agrees(self.control) and _agrees(self.arm)

    @property
    def differs(self) -> bool:
        """Whether the first replies are not the same."""
        return parting(self.control[0], self.arm[0]) is not None


@frozen(kw_only=True)
class _Compared:
    """All prompts of both sides; a prompt that is not settled cannot be judged."""

    prompts: tuple[_Prompt, ...]

    @property
    def settled(self) -> list[_Prompt]:
        return [prompt for prompt in self.prompts if prompt.is_settled]

    @property
    def open(self) -> int:
        """How many prompts cannot be judged."""
        return len(self.prompts) - len(self.settled)

    @property
    def other(self) -> list[_Prompt]:
        """The settled prompts that were answered otherwise."""
        return [prompt for prompt in self.settled if prompt.differs]

    @property
    def unit(self) -> str:
        """What positions are counted in."""
        apart = [prompt for prompt in self.prompts if prompt.differs or not prompt.is_settled]
        return unit_of([said for prompt in apart or self.prompts for said in (*prompt.control, *prompt.arm)])

    def positions(self) -> list[int]:
        """Where the replies part, over the settled prompts where they do."""
        found = (parting(prompt.control[0], prompt.arm[0], self.unit) for prompt in self.other)
        return [each.position for each in found if each is not None]

    def end(self) -> int:
        """The position behind the longest reply: no difference was seen up to there."""
        return 1 + max(length(said, self.unit) for prompt in self.prompts for said in (*prompt.control, *prompt.arm))

    def floor(self, side: str) -> tuple[int, int] | None:
        """Of how many prompts that a side was asked twice it says one thing, and how many those are; None without any."""
        asked = [said for prompt in self.prompts if len(said := getattr(prompt, side)) > 1]
        return (sum(map(_agrees, asked)), len(asked)) if asked else None


def greedy(name: str, pieces: Sequence[Piece]) -> Taken:
    """The reading ``name``: ``differs``, ``agreement``, ``first_difference``, ``median_difference`` or ``floor``."""
    try:
        control, arm = (_replies(pieces, side) for side in (CONTROL, ARM))
    except LedgerError as error:
        return Taken(reason=str(error), pieces=tuple(pieces))
    why = _incomparable(control, arm)
    if why is not None:
        return Taken(reason=why, pieces=tuple(pieces))
    found = _compared(control, arm)
    return Taken(samples=(_SAMPLES[name](found),), pieces=tuple(pieces), reason=_in_words(found, len(control), len(arm)))


def _incomparable(control: Sequence[_Reply], arm: Sequence[_Reply]) -> str | None:
    """Why the replies of both sides cannot be compared."""
    if not control or not arm:
        return f"the {'control' if not control else 'arm'} gave no replies"
    ours, theirs = ({reply.asked for reply in side} for side in (arm, control))
    if ours.isdisjoint(theirs):
        return "no request was put to both sides"
    if ours != theirs:
        return f"the requests are not the same: {len(ours ^ theirs)} of {len(ours | theirs)} were put to one side alone"
    everything = [*control, *arm]
    if sampled := [reply for reply in everything if not reply.is_greedy]:
        return f"{len(sampled)} of {len(everything)} requests are not greedy: temperature is not 0"
    if failed := [reply for reply in everything if reply.said is None]:
        return f"{len(failed)} of {len(everything)} requests failed: {failed[0].name}"
    return None


def _compared(control: Sequence[_Reply], arm: Sequence[_Reply]) -> _Compared:
    names = {reply.asked: reply.name for reply in reversed(control)}
    asked = list(dict.fromkeys(reply.asked for reply in control))
    theirs, ours = (_by_prompt(side) for side in (control, arm))
    return _Compared(prompts=tuple(_Prompt(name=names[key], control=tuple(theirs[key]), arm=tuple(ours[key])) for key in asked))


def _by_prompt(replies: Sequence[_Reply]) -> Mapping[bytes, Sequence[Wording]]:
    found: dict[bytes, list[Wording]] = {}
    for reply in replies:
        if reply.said is not None:
            found.setdefault(reply.asked, []).append(reply.said)
    return found


def _agrees(said: Sequence[Wording]) -> bool:
    return all(parting(said[0], each) is None for each in said[1:])


def _differs(found: _Compared) -> Sample:
    least = float(len(found.other))
    return Sample(value=least, low=least, high=least + found.open)


def _agreement(found: _Compared) -> Sample:
    every, same = len(found.prompts), len(found.settled) - len(found.other)
    if not found.settled:
        return Sample(why="no prompt has one reply on each side")
    return Sample(value=same / len(found.settled), low=same / every, high=(same + found.open) / every)


def _position(pool: Callable[[Sequence[int]], float]) -> Callable[[_Compared], Sample]:
    """A reading of where the replies part; the position behind the longest reply where none does."""

    def read(found: _Compared) -> Sample:
        value = float(pool(found.positions() or [found.end()]))
        return Sample(value=value, low=1.0 if found.open else value, high=float(found.end()) if found.open else value)

    return read


def _floor(found: _Compared) -> Sample:
    known = [each for side in (CONTROL, ARM) if (each := found.floor(side)) is not None]
    if len(known) < 2:
        return Sample(why="a side was asked each prompt once, so that its agreement with itself is not known")
    return Sample(value=min(same / asked for same, asked in known))


_SAMPLES: Mapping[str, Callable[[_Compared], Sample]] = {
    "differs": _differs,
    "agreement": _agreement,
    "first_difference": _position(min),
    "median_difference": _position(statistics.median),
    "floor": _floor,
}


def _in_words(found: _Compared, control: int, arm: int) -> str:
    """What stands beside every reading."""
    said = [f"{len(found.prompts)} prompts compared, {control} replies of the control and {arm} of the arm"]
    said += [f"own floor: {', '.join(f'the {side} {_floor_in_words(found, side)}' for side in (CONTROL, ARM))}"]
    if positions := found.positions():
        first = next(prompt.name for prompt, at in zip(found.other, positions, strict=True) if at == min(positions))
        middle = statistics.median(positions)
        said += [f"{len(positions)} differ, in {found.unit} first at {min(positions)} ({first}), median {middle:g}"]
    if found.open:
        said += [f"{found.open} cannot be judged: a server that does not agree with itself cannot be shown to differ"]
    return "; ".join(said)


def _floor_in_words(found: _Compared, side: str) -> str:
    floor = found.floor(side)
    return f"agrees with itself on {floor[0]} of {floor[1]}" if floor else "was asked once"


def _replies(pieces: Sequence[Piece], side: str) -> list[_Reply]:
    found = []
    for piece in pieces:
        if piece.annotations.get(SIDE) == side:
            plan, taken = transcript.decode(piece.data)
            asked = {request.id: request for wave in plan.waves for request in wave.requests}
            for record in taken.records:
                request = asked[record.request]
                found.append(
                    _Reply(
                        name=f"{piece.annotations[MEASURE]} {record.request}",
                        asked=_asked(request),
                        is_greedy=request.body.get("temperature", 1) == 0,
                        said=wording(record) if decode(record, request).ok else None,
                    )
                )
    return found


def _asked(request: Request) -> bytes:
    """What a request asks, as bytes that are equal for equal questions."""
    told = {name: value for name, value in request.body.items() if name not in APART}
    return orjson.dumps(told, option=orjson.OPT_SORT_KEYS)
