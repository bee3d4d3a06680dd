"""An extractor that a TOML file describes: JMESPath over JSON, columns of a CSV, named groups of a regular expression.

What it does: reads the table, and finds each figure that it names in a file. What it does not do: recognise files; it is asked
for by name. Rules kept: what a table names and a file has not is absent with the reason; a table's mistakes are told all at
once.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import jmespath
from attrs import frozen
from jmespath.exceptions import JMESPathError

from ledger.core.errors import Place, Problem, UsageError, did_you_mean
from ledger.core.words import Better
from ledger.instruments.extract.base import Extracted, Extraction, Extractor, counted, number, samples, single
from ledger.instruments.extract.document import Document
from ledger.instruments.pattern import Pattern, PatternError, compiled
from ledger.receipt.model import Figure

MAX_TEXT = 4 * 2**20
_TOP = frozenset({"tool", "version", "figures"})
_KEYS = frozenset({"path", "column", "pattern", "unit", "better", "definition"})
_SOURCES = ("path", "column", "pattern")


@frozen(kw_only=True)
class Rule:
    """Where one figure stands: a JMESPath, a column, or a pattern whose group ``value`` is the number."""

    name: str
    unit: str
    better: Better
    definition: str
    path: Any = None
    column: str | None = None
    pattern: Pattern | None = None

    def find(self, document: Document) -> Figure:
        """The figure: of one number, or the median of several."""
        found = self._values(document)
        if not found:
            return Figure(unit=self.unit, better=self.better, absent=f"nothing at {self._place()}")
        return samples(found, self.unit, self.better) if len(found) > 1 else single(found[0], self.unit, self.better)

    def _values(self, document: Document) -> Sequence[Any]:
        if self.path is not None:
            value = document.root if document.root is not None else list(document.values)
            try:
                found = self.path.search(value)
            except JMESPathError:
                return ()
            return [each for item in (found if isinstance(found, list) else [found]) if (each := number(item)) is not None]
        if self.column is not None:
            return [each for row in document.rows if (each := number(row.get(self.column))) is not None]
        if self.pattern is None:
            return []
        matches = (match for line in document.text[:MAX_TEXT].splitlines() for match in self.pattern.matches(line))
        return [each for match in matches if (each := number(match["value"])) is not None]

    def _place(self) -> str:
        return self.column or (self.pattern.text if self.pattern else self.path.expression)


class Declared(Extractor):
    """The extractor of one table."""

    def __init__(self, tool: str, version: str | None, rules: Sequence[Rule]) -> None:
        self.name = tool
        self._version = version
        self._rules = tuple(rules)
        self.definitions = {rule.name: rule.definition for rule in rules if rule.definition}

    def _recognises(self, document: Document) -> bool:
        return False

    def _extract(self, document: Document) -> Extraction:
        figures = {f"{self.name}.{rule.name}": rule.find(document) for rule in self._rules}
        found = sum(figure.value is not None for figure in figures.values())
        trial = Extracted(measure=self.name, figures=figures, requests=counted(ok=1 if found else 0, failed=0 if found else 1))
        return Extraction(tool=self.name, version=self._version, trials=(trial,))


def read_declared(data: bytes, file: str) -> Declared:
    """The extractor that the TOML in ``data`` describes.

    Raises:
        UsageError: with every mistake in it.
    """
    try:
        table = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(Problem(what=f"not TOML: {error}", place=Place(file=file))) from error
    problems: list[Problem] = [_unknown(file, key, key, _TOP) for key in table if key not in _TOP]
    if not isinstance(table.get("tool"), str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,40}", table["tool"]):
        problems.append(_problem(file, "tool", "a name of letters, digits, - and _"))
    figures = table.get("figures")
    if not isinstance(figures, Mapping) or not figures:
        problems.append(_problem(file, "figures", "a table for each figure"))
        figures = {}
    rules = [rule for name, item in figures.items() if (rule := _rule(file, name, item, problems)) is not None]
    if problems:
        raise UsageError(problems)
    return Declared(table["tool"], table.get("version"), rules)


def _rule(file: str, name: str, item: Any, problems: list[Problem]) -> Rule | None:
    where = f"figures.{name}"
    if not isinstance(item, Mapping):
        problems.append(_problem(file, where, "a table"))
        return None
    before = len(problems)
    problems += (_unknown(file, f"{where}.{key}", key, _KEYS) for key in item if key not in _KEYS)
    problems += (_problem(file, f"{where}.{key}", "text") for key in item if not isinstance(item[key], str))
    if sum(key in item for key in _SOURCES) != 1:
        problems.append(_problem(file, where, "exactly one of path, column and pattern"))
    if "unit" not in item:
        problems.append(_problem(file, f"{where}.unit", "a unit"))
    if item.get("better", "neither") not in list(Better):
        problems.append(_problem(file, f"{where}.better", f"one of {', '.join(Better)}"))
    if len(problems) > before:
        return None
    path, pattern = _compiled(file, where, item, problems)
    if len(problems) > before:
        return None
    return Rule(
        name=name,
        unit=item["unit"],
        better=Better(item.get("better", "neither")),
        definition=item.get("definition", ""),
        path=path,
        column=item.get("column"),
        pattern=pattern,
    )


def _compiled(file: str, where: str, item: Mapping[str, str], problems: list[Problem]) -> tuple[Any, Pattern | None]:
    path = pattern = None
    try:
        path = jmespath.compile(item["path"]) if "path" in item else None
    except JMESPathError as error:
        problems.append(_problem(file, f"{where}.path", f"a JMESPath: {error}"))
    try:
        pattern = compiled(item["pattern"]) if "pattern" in item else None
    except PatternError as error:
        problems.append(_problem(file, f"{where}.pattern", error.problems[0].what))
    if pattern is not None and "value" not in pattern.groups:
        problems.append(_problem(file, f"{where}.pattern", "a group (?P<value>…) around the number"))
    return path, pattern


def _problem(file: str, key: str, wanted: str) -> Problem:
    return Problem(what=f"{key}: expected {wanted}", place=Place(file=file))


def _unknown(file: str, where: str, key: str, known: frozenset[str]) -> Problem:
    return Problem(what="unknown key", value=where, place=Place(file=file), hint=did_you_mean(key, sorted(known)))
