"""YAML as places and text: the one module that reads YAML, and it makes no object of it.

What it does: reads one bounded document into a tree of :class:`Text`, :class:`Items` and :class:`Pairs`, each with its line. What
it does not do: construct what a tag names, or decide what a scalar means (``no`` stays the text ``no``). Rules kept: PyYAML's
composer alone, with the safe loader; a key that stands twice is refused; anchors are followed, but never into themselves, and
what they expand to is bounded; a tag of the document's own is refused.
"""

from collections.abc import Mapping
from typing import Any

import yaml
from attrs import field, frozen

from ledger.core.errors import Collected, Place, SpecError

MAX_BYTES = 256 * 1024
MAX_NODES = 50_000
MAX_DEPTH = 50
STANDARD = "tag:yaml.org,2002:"
MERGE, NULL = f"{STANDARD}merge", f"{STANDARD}null"
# What the composer makes of plain text by itself; any other tag was written down, to have an object made.
PLAIN = frozenset(
    STANDARD + kind for kind in ("map", "seq", "str", "null", "bool", "int", "float", "timestamp", "value", "merge")
)


@frozen(kw_only=True)
class Text:
    """A scalar as it is written, without quotes; ``value`` is None for an empty one."""

    line: int
    value: str | None


@frozen(kw_only=True)
class Items:
    """A sequence."""

    line: int
    values: "tuple[Tree, ...]" = ()


@frozen(kw_only=True)
class Pairs:
    """A mapping; ``lines`` says where each key stands."""

    line: int
    values: "Mapping[str, Tree]" = field(factory=dict)
    lines: Mapping[str, int] = field(factory=dict)


Tree = Text | Items | Pairs


def read(text: str, file: str) -> Tree:
    """The one document in ``text``; ``file`` is what messages call it.

    Raises:
        SpecError: with everything that is wrong, each at its line.
    """
    found = Collected()
    reader = _Reader(file, found)
    tree: Tree = Pairs(line=1)
    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        found.add(f"more than {MAX_BYTES} bytes", place=Place(file=file))
    else:
        try:
            node = yaml.compose(text, Loader=yaml.SafeLoader)
            tree = reader.tree(node, ()) if node is not None else tree
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else None
            found.add(f"no YAML: {error.problem or error.context}", place=Place(file=file, line=line))
        except yaml.YAMLError as error:
            found.add(f"no YAML: {error}", place=Place(file=file))
        except RecursionError:
            found.add("nested too deeply", place=Place(file=file))
    found.raise_if_any(SpecError)
    return tree


class _Reader:
    """Turns PyYAML's nodes into a tree; what an anchor stands for is counted each time that it is used."""

    def __init__(self, file: str, found: Collected) -> None:
        self._file, self._found, self._count = file, found, 0

    def tree(self, node: Any, above: tuple[int, ...]) -> Tree:
        line = node.start_mark.line + 1
        self._count += 1
        if id(node) in above or len(above) > MAX_DEPTH or self._count > MAX_NODES:
            what = "an anchor inside of itself" if id(node) in above else "nested too deeply, or anchors that expand too far"
            self._tell(what, line)
            raise SpecError(self._found.problems)
        if node.tag not in PLAIN:
            self._tell("a tag, which would name an object to make", line, node.tag)
        inside = (*above, id(node))
        if isinstance(node, yaml.MappingNode):
            return self._pairs(node, line, inside)
        if isinstance(node, yaml.SequenceNode):
            return Items(line=line, values=tuple(self.tree(each, inside) for each in node.value))
        return Text(line=line, value=None if node.tag == NULL else node.value)

    def _pairs(self, node: Any, line: int, above: tuple[int, ...]) -> Pairs:
        """The mapping with what ``<<`` merges behind its own keys."""
        values: dict[str, Tree] = {}
        lines: dict[str, int] = {}
        merged: list[Pairs] = []
        for key, value in node.value:
            at = key.start_mark.line + 1
            if key.tag == MERGE:
                merged += self._merged(self.tree(value, above), at)
            elif not isinstance(key, yaml.ScalarNode):
                self._tell("a key that is no text", at)
            elif key.value in values:
                self._tell(f"a second {key.value!r}", at)
            else:
                values[key.value], lines[key.value] = self.tree(value, above), at
        for each in merged:
            for name, value in each.values.items():
                if name not in values:
                    values[name], lines[name] = value, each.lines[name]
        return Pairs(line=line, values=values, lines=lines)

    def _merged(self, tree: Tree, line: int) -> list[Pairs]:
        each = tree.values if isinstance(tree, Items) else (tree,)
        if not all(isinstance(one, Pairs) for one in each):
            self._tell("a merge of what is no mapping", line)
        return [one for one in each if isinstance(one, Pairs)]

    def _tell(self, what: str, line: int, value: object = None) -> None:
        self._found.add(what, place=Place(file=self._file, line=line), value=value)
