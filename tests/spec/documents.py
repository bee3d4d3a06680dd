"""TOML documents as people write them, each with the line on which every path of it stands.

What it does: writes a table in many of the spellings that TOML has, and notes the line of each path while it writes. What it does
not do: read TOML; that is what it is compared with.
"""

import string
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

Path = tuple[str | int, ...]

KEYS = st.text(string.ascii_letters + string.digits + "-_. é\"'\\#[]=", min_size=1, max_size=5)
LEAVES = st.one_of(st.integers(-5, 5), st.booleans(), st.floats(allow_nan=False), st.text("ab\"'\\#]}[{,=\né ", max_size=8))
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=10,
)
TABLES = st.dictionaries(KEYS, TREES, max_size=4)
_BARE = set(string.ascii_letters + string.digits + "-_")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}


class Writer:
    """Writes one document; ``lines`` holds where each path came to stand first."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self.text = ""
        self.lines: dict[Path, int] = {}

    def table(self, table: Mapping[str, Any], path: Path, keys: tuple[str, ...], *, header: str = "") -> None:
        """A table under its header: first its pairs, then the tables below it with headers of their own."""
        below = {key: value for key, value in table.items() if self._has_header(value)}
        if header or (keys and (len(below) < len(table) or not below or self._maybe())):
            self._header(path, keys, header or "[]")
        for key, value in table.items():
            if key not in below:
                self._pair(path, key, value)
        for key, value in below.items():
            if isinstance(value, dict):
                self.table(value, (*path, key), (*keys, key))
            else:
                for index, item in enumerate(value):
                    self.table(item, (*path, key, index), (*keys, key), header="[[]]")

    def _has_header(self, value: Any) -> bool:
        tables = isinstance(value, dict) or (isinstance(value, list) and value and all(isinstance(item, dict) for item in value))
        return bool(tables) and self._maybe()

    def _header(self, path: Path, keys: tuple[str, ...], brackets: str) -> None:
        half = len(brackets) // 2
        self._gap()
        self._note_all(path)
        self.text += brackets[:half] + ".".join(map(self._key, keys)) + brackets[half:]
        self._end()

    def _pair(self, path: Path, key: str, value: Any, *, inline: bool = False) -> None:
        if isinstance(value, dict) and value and self._maybe():
            spelled, at = self._key(key), (*path, key)
            for index, (inner, item) in enumerate(value.items()):
                if index and inline:
                    self.text += ", "
                self._dotted(spelled, at, inner, item, inline)
            return
        self._note_all((*path, key))
        self.text += f"{self._key(key)}{self._space()}={self._space()}"
        self._value(value, (*path, key))
        if not inline:
            self._end()

    def _dotted(self, prefix: str, path: Path, key: str, value: Any, inline: bool) -> None:
        self._note_all((*path, key))
        self.text += f"{prefix}{self._space()}.{self._space()}{self._key(key)} = "
        self._value(value, (*path, key))
        if not inline:
            self._end()

    def _value(self, value: Any, path: Path) -> None:
        if isinstance(value, dict):
            self.text += "{ "
            for index, (key, item) in enumerate(value.items()):
                self.text += ", " if index else ""
                self._pair(path, key, item, inline=True)
            self.text += " }"
        elif isinstance(value, list):
            self._list(value, path)
        elif isinstance(value, str):
            self.text += self._string(value)
        else:
            self.text += str(value).lower() if isinstance(value, bool) else repr(value)

    def _list(self, value: list[Any], path: Path) -> None:
        self.text += "["
        for index, item in enumerate(value):
            self.text += self._filler()
            self._note_all((*path, index))
            self._value(item, (*path, index))
            self.text += self._filler() + ("," if index < len(value) - 1 or self._maybe() else "")
        self.text += self._filler() + "]"

    def _string(self, value: str) -> str:
        kinds = ['"', '"""']
        if "'" not in value:
            kinds += ["'''"] + (["'"] if "\n" not in value else [])
        kind = self._draw(st.sampled_from(kinds))
        escaped = "".join(_ESCAPES.get(c, c) for c in value)
        if kind == '"""':
            return f'"""\n{escaped}\\\n  """'
        return f'"{escaped}"' if kind == '"' else f"{kind}{'' if kind == chr(39) else chr(10)}{value}{kind}"

    def _key(self, key: str) -> str:
        kinds = ['"'] + (["bare"] if set(key) <= _BARE else []) + (["'"] if "'" not in key else [])
        kind = self._draw(st.sampled_from(kinds))
        escaped = "".join(_ESCAPES.get(c, c) for c in key)
        return key if kind == "bare" else f"'{key}'" if kind == "'" else f'"{escaped}"'

    def _note_all(self, path: Path) -> None:
        for end in range(1, len(path) + 1):
            self.lines.setdefault(path[:end], self.text.count("\n") + 1)

    def _end(self) -> None:
        self.text += self._draw(st.sampled_from(["\n", "  # x = [\n", "\t\n\n"]))

    def _gap(self) -> None:
        self.text += self._draw(st.sampled_from(["", "\n", "# [not] = 'a table'\n"]))

    def _filler(self) -> str:
        return self._draw(st.sampled_from(["", " ", "\n", " # ], \n\n"]))

    def _space(self) -> str:
        return self._draw(st.sampled_from(["", " ", "\t"]))

    def _maybe(self) -> bool:
        return self._draw(st.booleans())


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, dict[Path, int]]:
    """A document and the line of each of its paths."""
    writer = Writer(draw)
    writer.table(draw(TABLES), (), ())
    return writer.text, writer.lines


def paths(value: Any, at: Path = ()) -> set[Path]:
    """Every path in a parsed document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return ({at} if at else set()).union(*(paths(item, (*at, key)) for key, item in items))
