"""The query language: text to an :class:`Ask`.

What it does: parses bare words (``C6 of C by arm across evidence lane:C n>=3``) with a real grammar, and points at the word that
is wrong. What it does not do: know what is in a ledger (``ask`` offers the nearest names), or make SQL. Rules kept: nothing in
a question is executed; every error carries the question, a caret under the word, and the way out.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from attrs import field, frozen
from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput

from ledger.core.errors import Problem, UsageError, did_you_mean

MAX_LENGTH = 2000
DIMENSIONS = ("arm", "lane", "boot", "session", "spec", "role", "measure", "evidence", "date", "trial")
FILTERS = ("arm", "lane", "spec", "role", "measure", "evidence", "session", "boot", "date", "not", "as-of")
EXAMPLES = '"C6 by arm", "C1..C6 by lane", "prefill@2000 by arm, boot", "C6 of C / C6 of B"'
_RANGE = re.compile(r"(?P<head>[A-Za-z_@]*)(?P<low>[0-9]+)\.\.(?P<tail>[A-Za-z_@]*)(?P<high>[0-9]+)")
_COUNT = re.compile(r"n\s*(?P<op>>=|<=|>|<|=)\s*(?P<number>[0-9]+)")


class QueryError(UsageError):
    """A question that cannot be understood, or names what is not there."""


@frozen(kw_only=True)
class Word:
    """A word of the question and where it begins, counted from 0."""

    text: str
    at: int


@frozen(kw_only=True)
class Range:
    """Metrics of one family between two numbers, both included: ``C1..C6``, ``prefill@500..2000``."""

    word: Word
    head: str
    low: int
    high: int


@frozen(kw_only=True)
class Side:
    """Metrics (names, wildcards, ranges) and the lanes or arms they are asked of."""

    metrics: tuple[Word | Range, ...]
    of: tuple[Word, ...] = ()


@frozen(kw_only=True)
class Ask:
    """A question. ``filters`` maps a key to the words it may equal; ``counts`` are conditions on the number of boots."""

    text: str
    side: Side
    over: Side | None = None
    by: tuple[Word, ...] = ()
    across: Word | None = None
    filters: Mapping[str, tuple[Word, ...]] = field(factory=dict)
    counts: tuple[tuple[str, int], ...] = ()
    as_of: Word | None = None


def parse(text: str) -> Ask:
    """The question in ``text``.

    Raises:
        QueryError: with a caret under the word that is wrong.
    """
    if len(text) > MAX_LENGTH:
        raise QueryError(f"a question of {len(text)} characters, and at most {MAX_LENGTH} are read")
    if not text.strip():
        raise QueryError("an empty question", hint=f"for example {EXAMPLES}")
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        raise _unexpected(text, error) from error
    return _Reader(text).ask(tree)


def wrong(text: str, word: Word, what: str, hint: str | None = None) -> QueryError:
    """An error about one word of a question: the question itself, a caret under the word, and the way out."""
    caret = " " * word.at + "^" * max(1, len(word.text))
    return QueryError(Problem(what=f"{what}: {word.text!r}\n    {text}\n    {caret}", hint=hint))


@cache
def _parser() -> Lark:
    grammar = files("ledger.query").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, start="ask", parser="lalr", lexer="contextual", propagate_positions=False, maybe_placeholders=False)


def _unexpected(text: str, error: UnexpectedInput) -> QueryError:
    at = getattr(error, "pos_in_stream", None)
    if isinstance(error, UnexpectedEOF) or at is None or at >= len(text.rstrip()) or getattr(error, "token", "x") == "":
        return wrong(text, Word(text="", at=len(text)), "the question ends too early", hint=f"for example {EXAMPLES}")
    match = re.compile(r"\S+").match(text, at)
    word = Word(text=match.group() if match else text[at], at=at)
    if isinstance(error, UnexpectedCharacters) and ":" in word.text:
        key = word.text.partition(":")[0]
        return wrong(text, word, "a filter needs a value", hint=did_you_mean(key, FILTERS))
    return wrong(text, word, "unexpected here", hint=f"for example {EXAMPLES}")


class _Reader:
    """Walks the parse tree."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._filters: dict[str, tuple[Word, ...]] = {}
        self._counts: list[tuple[str, int]] = []
        self._by: tuple[Word, ...] = ()
        self._across: Word | None = None
        self._as_of: Word | None = None

    def ask(self, tree: Tree[Token]) -> Ask:
        sides = [self._side(item) for item in _trees(tree, "side")]
        for item in _trees(tree):
            self._clause(item)
        return Ask(
            text=self._text,
            side=sides[0],
            over=sides[1] if len(sides) > 1 else None,
            by=self._by,
            across=self._across,
            filters=self._filters,
            counts=tuple(self._counts),
            as_of=self._as_of,
        )

    def _side(self, tree: Tree[Token]) -> Side:
        metrics = [self._metric(token) for part in _trees(tree, "metrics") for item in _trees(part) for token in _tokens(item)]
        of = [_word(token) for part in _trees(tree, "names") for token in _tokens(part)]
        return Side(metrics=tuple(metrics), of=tuple(of))

    def _metric(self, token: Token) -> Word | Range:
        word = _word(token)
        match = _RANGE.fullmatch(word.text)
        if match is None:
            return word
        low, high = int(match["low"]), int(match["high"])
        if not match["head"].endswith(match["tail"]):
            raise wrong(self._text, word, "a range within two families", hint=f"{match['head']}{low}..{match['head']}{high}")
        if low > high:
            raise wrong(
                self._text, word, "a range that ends before it begins", hint=f"{match['head']}{high}..{match['head']}{low}"
            )
        return Range(word=word, head=match["head"], low=low, high=high)

    def _clause(self, tree: Tree[Token]) -> None:
        words = [_word(token) for token in _tokens(tree)]
        match tree.data:
            case "by":
                self._by += tuple(self._dimension(word) for word in words)
            case "across":
                if self._across is not None:
                    raise wrong(
                        self._text, words[0], "a second 'across'", hint="one dimension goes across; list the others behind 'by'"
                    )
                self._across = self._dimension(words[0])
            case "filter":
                self._filter(words[0])
            case "count":
                match_ = _COUNT.fullmatch(words[0].text)
                assert match_ is not None
                self._counts.append((match_["op"], int(match_["number"])))

    def _dimension(self, word: Word) -> Word:
        if word.text.lower() not in DIMENSIONS:
            raise wrong(self._text, word, "unknown dimension", hint=did_you_mean(word.text, DIMENSIONS))
        return Word(text=word.text.lower(), at=word.at)

    def _filter(self, word: Word) -> None:
        key, _, value = word.text.partition(":")
        if key not in FILTERS:
            raise wrong(self._text, Word(text=key, at=word.at), "unknown filter", hint=did_you_mean(key, FILTERS))
        at = word.at + len(key) + 1
        parts = [value[1:-1]] if value.startswith('"') else value.split(",")
        values = tuple(Word(text=part, at=at) for part in parts)
        if key == "as-of":
            if self._as_of is not None:
                raise wrong(self._text, word, "a second 'as-of'", hint="a question is about one moment")
            self._as_of = values[0]
        else:
            self._filters[key] = (*self._filters.get(key, ()), *values)


def _trees(tree: Tree[Token], name: str | None = None) -> Iterator[Tree[Token]]:
    for child in tree.children:
        if isinstance(child, Tree) and name in (None, child.data):
            yield child


def _tokens(tree: Tree[Token]) -> Iterator[Token]:
    for child in tree.children:
        if isinstance(child, Token):
            yield child


def _word(token: Token) -> Word:
    return Word(text=str(token), at=token.start_pos or 0)
