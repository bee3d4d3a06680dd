"""A Markdown page as the bindings in it.

What it does: finds the openings (``<!--= question | format -->``), what stands between them and ``<!--/-->``, the moment of the
page, and what a person says is no figure of this ledger. What it does not do: ask the ledger, or read a file. Rules kept: what
CommonMark takes for code is no binding; text outside a binding is never touched; every mistake has its place.
"""

import re
from collections.abc import Iterator
from functools import cached_property

from attrs import field, frozen
from markdown_it import MarkdownIt

AS_OF = "as-of"
CLOSE = "<!--/-->"
# A comment, a span of code, or a fence that a block of HTML would hide from the rules of blocks: whichever begins first counts.
_PIECE = re.compile(r"<!--(?P<comment>.*?)-->|(?<![`\\])(?P<ticks>`+)(?!`)(?:(?!\n[ \t]*\n).)+?(?<!`)(?P=ticks)(?!`)", re.DOTALL)
_FRONT = re.compile(r"\A---[ \t]*\r?\n(?P<body>.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_FRONT_AS_OF = re.compile(r"^ledger-as-of:[ \t]*[\"']?(?P<when>[^\s\"'#]+)", re.MULTILINE)
_QUOTED = re.compile(r'"(?P<text>[^"]+)"\s+(?P<reason>\S.*)', re.DOTALL)


@frozen(kw_only=True)
class Binding:
    """A question in a page: what is asked and how it is written, and from where to where its text stands.

    ``kind`` is ``value``, ``table``, ``claim`` or ``notes``. Offsets count characters of the page; ``at`` is that of the opening.
    """

    kind: str
    question: str
    style: str
    at: int
    start: int
    end: int


@frozen(kw_only=True)
class NotOurs:
    """A text that a person says is no figure of this ledger, with the reason; everywhere on the page where ``start`` is -1."""

    text: str
    reason: str
    start: int = -1
    end: int = -1


@frozen(kw_only=True)
class Mistake:
    """What is wrong with the page's own comments, and where."""

    at: int
    what: str


@frozen(kw_only=True)
class Page:
    """A page and what was found in it."""

    text: str
    bindings: tuple[Binding, ...]
    not_ours: tuple[NotOurs, ...]
    code: tuple[tuple[int, int], ...]
    as_of: str | None
    mistakes: tuple[Mistake, ...] = field(factory=tuple)

    @cached_property
    def front(self) -> int:
        """Where the front matter ends; 0 without any."""
        match = _FRONT.match(self.text)
        return match.end() if match else 0

    def place(self, at: int) -> tuple[int, int]:
        """Line and column of an offset, both counted from 1."""
        return self.text.count("\n", 0, at) + 1, at - self.text.rfind("\n", 0, at)


def read_page(text: str) -> Page:
    """The page in ``text``; what is wrong with it is in ``mistakes``."""
    blocks = list(_code_blocks(text))
    comments, spans = _comments(text, blocks)
    reader = _Reader(text)
    for start, end, body in comments:
        reader.comment(start, end, body)
    reader.finish()
    front = _FRONT.match(text)
    dated = _FRONT_AS_OF.search(front["body"]) if front else None
    return Page(
        text=text,
        bindings=tuple(reader.bindings),
        not_ours=tuple(reader.not_ours),
        code=tuple(sorted([*blocks, *spans])),
        as_of=reader.as_of or (dated["when"] if dated else None),
        mistakes=tuple(reader.mistakes),
    )


def _code_blocks(text: str) -> Iterator[tuple[int, int]]:
    """From where to where CommonMark sees fenced and indented code."""
    lines = [0]
    for line in re.split(r"(?<=\n)", text.replace("\r\n", " \n").replace("\r", "\n")):
        lines.append(lines[-1] + len(line))
    for token in MarkdownIt("commonmark").parse(text):
        if token.type in ("fence", "code_block") and token.map:
            yield lines[token.map[0]], lines[min(token.map[1], len(lines) - 1)]


def _comments(text: str, blocks: list[tuple[int, int]]) -> tuple[list[tuple[int, int, str]], list[tuple[int, int]]]:
    """The comments outside of code, and the spans of code; what begins in a block of code is passed over."""
    comments, spans, at = [], [], 0
    waiting = sorted(blocks)
    while match := _PIECE.search(text, at):
        while waiting and waiting[0][1] <= match.start():
            waiting.pop(0)
        if waiting and waiting[0][0] <= match.start():
            at = waiting[0][1]
        elif match["comment"] is None:
            spans.append(match.span())
            at = match.end()
        else:
            comments.append((*match.span(), match["comment"]))
            at = match.end()
    return comments, spans


class _Reader:
    """Pairs openings with their ends."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._open: tuple[int, int, str] | None = None
        self.bindings: list[Binding] = []
        self.not_ours: list[NotOurs] = []
        self.mistakes: list[Mistake] = []
        self.as_of: str | None = None

    def comment(self, start: int, end: int, body: str) -> None:
        """One comment of the page."""
        if body.strip() == "/":
            self._close(start, start)
        elif body.startswith(("=", "!")):
            if body.startswith("=") and body[1:].strip().startswith(f"{AS_OF}:"):
                self._dated(start, body[1:].strip()[len(AS_OF) + 1 :].strip())
            elif body.startswith("!") and (match := _QUOTED.fullmatch(body[1:].strip())):
                self.not_ours.append(NotOurs(text=match["text"], reason=match["reason"]))
            else:
                self.finish()
                self._open = (start, end, body)

    def finish(self) -> None:
        """What was opened and is not closed by now is a mistake."""
        if self._open is not None:
            self.mistakes.append(Mistake(at=self._open[0], what=f"this is not closed by {CLOSE}"))
            self._open = None

    def _dated(self, at: int, when: str) -> None:
        if self.as_of is not None:
            self.mistakes.append(Mistake(at=at, what="a second moment; a page is about one"))
        self.as_of = when

    def _close(self, at: int, end: int) -> None:
        if self._open is None:
            self.mistakes.append(Mistake(at=at, what="nothing is open that this could close"))
            return
        opened, start, body = self._open
        self._open = None
        if body.startswith("!"):
            reason = body[1:].strip()
            if not reason:
                self.mistakes.append(Mistake(at=opened, what="it does not say why this is no figure of this ledger"))
            self.not_ours.append(NotOurs(text=self._text[start:end], reason=reason, start=start, end=end))
            return
        words, _, style = body[1:].partition(" | ")
        kind, colon, rest = words.strip().partition(":")
        named = kind in ("table", "claim") and bool(colon)
        question = rest if named else words
        shape = kind if named else "notes" if words.strip() == "notes" else "value"
        binding = Binding(kind=shape, question=" ".join(question.split()), style=style.strip(), at=opened, start=start, end=end)
        self.bindings.append(binding)
