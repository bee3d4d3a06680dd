"""Where each value of a TOML document stands.

What it does: maps every path of a document to its line and column, and finds the line of a syntax error. What it does not do:
validate; of a document that ``tomllib`` refuses it says no more than that it is none, or nothing of use. Rules kept: one pass,
linear in the text, that ends on any text; nothing deeper than ``MAX_DEPTH`` is entered, so that it may run before ``tomllib``,
whose time and memory grow with the square of the depth; the path of an element is its keys and indices,
``("arms", 2, "change", "args", 0)``.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence

from attrs import frozen

Path = tuple[str | int, ...]

MAX_DEPTH = 64
MAX_KEY = 80

_SPACE = re.compile(r"[ \t]*")
_GAP = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BASIC = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_LITERAL = re.compile(r"'[^']*'")
_LONG_BASIC = re.compile(r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}', re.DOTALL)
_LONG_LITERAL = re.compile(r"'''(?:[^']|'{1,2}(?!'))*'{3,5}", re.DOTALL)
_SCALAR = re.compile(r"[^,\]}#\r\n]+")
_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|([btnfr"\\e]))')
_ESCAPED = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\", "e": "\x1b"}
_AT_LINE = re.compile(r"at line (\d+), column (\d+)")
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")


@frozen(kw_only=True)
class Spot:
    """A line and a column, both counted from 1."""

    line: int
    column: int


class NotTomlError(ValueError):
    """A text that cannot be scanned; ``tomllib`` refuses it too, and says why."""


class TooDeepError(Exception):
    """A document that is nested deeper than ``MAX_DEPTH``; ``spot`` is where it gets there."""

    def __init__(self, spot: Spot) -> None:
        super().__init__(f"nested deeper than {MAX_DEPTH} levels")
        self.spot = spot


def locate(text: str) -> Mapping[Path, Spot]:
    """The spot of every key and array element of a valid document; a dotted key has one for each of its parts.

    Raises:
        TooDeepError: nested deeper than ``MAX_DEPTH``.
        NotTomlError: not a document that ``tomllib`` accepts.
    """
    try:
        return _Scanner(text).run()
    except (ValueError, IndexError) as error:
        raise NotTomlError(str(error)) from error


def nearest_spot(places: Mapping[Path, Spot], path: Path) -> Spot | None:
    """The spot of ``path``, or of the nearest table around it when it is not there itself (a missing key)."""
    for end in range(len(path), 0, -1):
        if path[:end] in places:
            return places[path[:end]]
    return None


def syntax_spot(message: str, text: str) -> Spot:
    """The spot that an error message of ``tomllib`` names; the last line for one at the end of the document."""
    match = _AT_LINE.search(message)
    if match:
        return Spot(line=int(match[1]), column=int(match[2]))
    return Spot(line=text.rstrip("\n").count("\n") + 1, column=1)


def spell(path: Path) -> str:
    """The path as a person writes it: ``arms[2].change.env.X``, with quotes around keys that need them; long keys are cut."""
    parts = [f"[{item}]" if isinstance(item, int) else f".{_key(item)}" for item in path]
    return "".join(parts).removeprefix(".")


def _key(key: str) -> str:
    shown = key if len(key) <= MAX_KEY else f"{key[: MAX_KEY - 1]}…"
    return shown if _PLAIN.fullmatch(shown) else '"' + shown.replace("\\", "\\\\").replace('"', '\\"') + '"'


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._found: dict[Path, Spot] = {}
        self._counts: dict[Path, int] = {}

    def run(self) -> dict[Path, Spot]:
        table: Path = ()
        self._skip(_GAP)
        while self._at < len(self._text):
            if self._text.startswith("[[", self._at):
                table = self._array_header()
            elif self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip(_GAP)
        return self._found

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self._text, self._at)
        self._at = match.end() if match else self._at

    def _note(self, path: Path, at: int) -> None:
        if len(path) > MAX_DEPTH:
            raise TooDeepError(self._spot(at))
        self._found.setdefault(path, self._spot(at))

    def _spot(self, at: int) -> Spot:
        line = bisect_right(self._starts, at)
        return Spot(line=line, column=at - self._starts[line - 1] + 1)

    def _header(self) -> Path:
        self._at += 1
        path = self._enter(self._dotted())
        self._at = self._text.index("]", self._at) + 1
        return path

    def _array_header(self) -> Path:
        self._at += 2
        keys = self._dotted()
        parent = self._enter(keys[:-1])
        key, at = keys[-1]
        path = (*parent, key)
        self._note(path, at)
        index = self._counts.get(path, -1) + 1
        self._counts[path] = index
        self._at = self._text.index("]]", self._at) + 2
        self._note((*path, index), at)
        return (*path, index)

    def _enter(self, keys: Sequence[tuple[str, int]]) -> Path:
        """Walk down from the root; a step into an array of tables goes into its last element."""
        path: Path = ()
        for key, at in keys:
            path = (*path, key)
            self._note(path, at)
            if path in self._counts:
                path = (*path, self._counts[path])
        return path

    def _dotted(self) -> list[tuple[str, int]]:
        keys: list[tuple[str, int]] = []
        while True:
            self._skip(_SPACE)
            at = self._at
            if len(keys) > MAX_DEPTH:
                raise TooDeepError(self._spot(at))
            keys.append((self._one_key(), at))
            self._skip(_SPACE)
            if not self._text.startswith(".", self._at):
                return keys
            self._at += 1

    def _one_key(self) -> str:
        first = self._text[self._at]
        if first == "'":
            return self._take(_LITERAL)[1:-1]
        if first == '"':
            return _ESCAPE.sub(_unescape, self._take(_BASIC)[1:-1])
        return self._take(_BARE_KEY)

    def _pair(self, table: Path) -> None:
        path = table
        for key, at in self._dotted():
            path = (*path, key)
            self._note(path, at)
        self._at = self._text.index("=", self._at) + 1
        self._skip(_SPACE)
        self._value(path)

    def _value(self, path: Path) -> None:
        text, at = self._text, self._at
        if text.startswith('"""', at):
            self._take(_LONG_BASIC)
        elif text.startswith("'''", at):
            self._take(_LONG_LITERAL)
        elif text.startswith('"', at):
            self._take(_BASIC)
        elif text.startswith("'", at):
            self._take(_LITERAL)
        elif text.startswith("[", at):
            self._array(path)
        elif text.startswith("{", at):
            self._inline(path)
        else:
            self._take(_SCALAR)

    def _array(self, path: Path) -> None:
        self._at += 1
        self._skip(_GAP)
        index = 0
        while self._text[self._at] != "]":
            self._note((*path, index), self._at)
            self._value((*path, index))
            index += 1
            self._separator()
        self._at += 1

    def _inline(self, path: Path) -> None:
        self._at += 1
        self._skip(_GAP)
        while self._text[self._at] != "}":
            self._pair(path)
            self._separator()
        self._at += 1

    def _separator(self) -> None:
        self._skip(_GAP)
        if self._text.startswith(",", self._at):
            self._at += 1
            self._skip(_GAP)

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        if match is None:
            raise ValueError(f"not a TOML document that tomllib accepts: at character {self._at}")
        self._at = match.end()
        return match.group()


def _unescape(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    return chr(int(code, 16)) if code else _ESCAPED[match[4]]
