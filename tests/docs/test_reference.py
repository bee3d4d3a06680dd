"""The reference says what the code says: generated pages are as generated, tables of keys and fields match the records."""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import attrs
import click
import pytest

from docs.build_reference import MADE, PAGES
from ledger.cli.main import COMMANDS, cli
from ledger.core import metrics, words
from ledger.core.digest import Descriptor
from ledger.core.errors import ExitCode
from ledger.receipt import model as receipt
from ledger.spec import factors, readings
from ledger.spec import model as spec

Cells = tuple[str, ...]
_RECORD = re.compile(r"<!-- record: (\w+) -->\n+((?:\|.*\n)+)")
PLAIN: Mapping[Any, str] = {str: "text", int: "whole number", float: "number", bool: "true or false", Any: "any value"}


# Records that the page of another document describes.
ELSEWHERE: dict[type, str] = {}


def table(text: str) -> list[Cells]:
    """The rows of a Markdown table below its header; a ``|`` in a cell is escaped."""
    rows = [re.split(r"(?<!\\)\|", line.strip().strip("|")) for line in text.strip().splitlines()]
    return [tuple(cell.strip() for cell in row) for row in rows[2:]]


def described(page: str) -> dict[str, list[Cells]]:
    """The tables of a page, by the record that the comment above each names."""
    return {match[1]: table(match[2]) for match in _RECORD.finditer((PAGES / page).read_text(encoding="utf-8"))}


def spelled(hint: Any) -> str:
    """A type as the reference spells it."""
    if get_origin(hint) is UnionType:
        return spelled(next(item for item in get_args(hint) if item is not NoneType))
    if get_origin(hint) is tuple:
        return f"list of {spelled(get_args(hint)[0])}"
    if isinstance(get_origin(hint), type) and issubclass(get_origin(hint), Mapping):
        return f"table of {spelled(get_args(hint)[1])}"
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return ", ".join(f"`{item.value}`" for item in hint)
    return PLAIN.get(hint) or f"[{hint.__name__}]({ELSEWHERE.get(hint, '')}#{hint.__name__.lower()})"


def default(item: "attrs.Attribute[Any]") -> str:
    """What holds without the key."""
    value = item.default
    if value is attrs.NOTHING:
        return "required"
    if callable(factory := getattr(value, "factory", None)):
        value = factory()
    if value is None:
        return "absent"
    if value in ("", (), {}) or attrs.has(type(value)):
        return "empty"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def expected(cls: type, *, skip: frozenset[str] = frozenset()) -> list[Cells]:
    """The first three cells of each row that describes ``cls``."""
    hints = get_type_hints(cls)
    rows: list[Cells] = []
    for item in attrs.fields(cls):
        reads = item.metadata.get("reads")
        if item.name in skip:
            continue
        if reads == "key":
            rows.append((f"`{item.name}`", "text", "the table's key"))
        elif reads == "rest":
            rows.append(("*other keys*", spelled(get_args(hints[item.name])[1]), "empty"))
        else:
            rows.append((f"`{item.name}`", spelled(hints[item.name]), default(item)))
    return rows


def records(*roots: type) -> dict[str, type]:
    """The roots and every record that is reached from their fields."""
    found: dict[str, type] = {}
    todo = list(roots)
    while todo:
        cls = todo.pop()
        if cls.__name__ not in found:
            found[cls.__name__] = cls
            todo += [kind for hint in get_type_hints(cls).values() for kind in _within(hint)]
    return found


def _within(hint: Any) -> Iterator[type]:
    for part in (hint, *get_args(hint)):
        if isinstance(part, type) and attrs.has(part):
            yield part
        elif part is not hint:
            yield from _within(part)


def check_page(page: str, wanted: Mapping[str, type], skip: frozenset[str] = frozenset()) -> None:
    """Every record has a table on the page, and every table the record's fields, types and defaults, in order."""
    found = described(page)
    assert set(found) == set(wanted)
    for name, cls in wanted.items():
        assert [row[:3] for row in found[name]] == expected(cls, skip=skip), f"{page}: {name}"
        assert all(len(row) == 4 and row[3] for row in found[name]), f"{page}: {name}: a field without a meaning"


@pytest.mark.parametrize("name", sorted(MADE))
def test_made_pages_are_as_they_would_be_made(name: str) -> None:
    assert (PAGES / name).read_text(encoding="utf-8") == MADE[name](), "python -m docs.build_reference"


def test_every_command_and_option_is_on_the_page_of_commands() -> None:
    text = (PAGES / "commands.md").read_text(encoding="utf-8")
    context = click.Context(cli)
    for name in COMMANDS:
        section = text.partition(f"\n## ledger {name}\n")[2].partition("\n## ")[0]
        command = cli.get_command(context, name)
        assert command is not None
        options = [word for item in command.params if isinstance(item, click.Option) for word in item.opts]
        assert options
        assert [word for word in options if f"`{word}" not in section and f", {word}" not in section] == []


def test_every_family_of_metrics_is_on_the_page_of_metrics() -> None:
    text = (PAGES / "metrics.md").read_text(encoding="utf-8")
    assert len(metrics.FAMILIES) >= 7
    for family in metrics.FAMILIES:
        assert f"| `{family.name}` | `{family.example}` | {family.unit} |" in text
        assert family.pattern.fullmatch(family.example)


def test_the_page_of_gates_has_every_reading() -> None:
    text = (PAGES / "gates.md").read_text(encoding="utf-8").partition("<!-- readings -->\n\n")[2]
    rows = table(text.partition("\n\n")[0])
    assert rows == [
        (f"`{item.example}`", item.dimension, ", ".join(item.when), item.of or "", item.about) for item in readings.READINGS
    ]


def test_the_spec_page_has_every_key() -> None:
    check_page("spec.md", records(spec.Spec))


def test_the_site_page_has_every_key() -> None:
    shared = records(spec.Spec)
    ELSEWHERE.update(dict.fromkeys(shared.values(), "spec.md"))
    try:
        check_page("site.md", {name: cls for name, cls in records(spec.Site).items() if name not in shared})
    finally:
        ELSEWHERE.clear()


def test_the_receipts_page_has_every_field() -> None:
    bodies = set(receipt.BODIES.values())
    wanted = records(receipt.Chain, receipt.Tool, Descriptor, *bodies)
    check_page("receipts.md", wanted, skip=frozenset({"extra"}))


def test_the_receipts_page_has_the_envelope_and_every_kind() -> None:
    text = (PAGES / "receipts.md").read_text(encoding="utf-8")
    for item in attrs.fields(receipt.Receipt):
        assert f"`{item.name}`" in text
    for kind in words.Kind:
        assert f"`{kind}`" in text


def test_the_receipts_page_has_the_class_of_every_key() -> None:
    text = (PAGES / "receipts.md").read_text(encoding="utf-8")
    rows = table(text.partition("<!-- classes -->\n\n")[2].partition("\n\n")[0])
    assert {row[0].strip("`"): row[1] for row in rows} == {key: kind.value for key, (kind, _) in factors.CLASSES.items()}


def test_the_page_of_exit_codes_has_every_code() -> None:
    rows = table((PAGES / "exit-codes.md").read_text(encoding="utf-8").partition("\n|")[2].partition("\n\n")[0])
    assert {int(row[0]): row[1].strip("`") for row in rows if row[1].strip("`") in ExitCode.__members__} == {
        code.value: code.name for code in ExitCode
    }


GLOSSARY = {
    *("spec", "site", "lane", "arm", "boot", "window", "measure", "trial", "gate", "receipt", "fingerprint", "condition"),
    *("correction", "claim", "evidence", "session", "attempt", "mark", "rule", "noise band", "stand-in"),
}


def test_the_glossary_has_every_word_once_and_every_value_of_the_vocabularies() -> None:
    text = (PAGES / "glossary.md").read_text(encoding="utf-8")
    headings = re.findall(r"^### (.+)$", text, re.MULTILINE)
    assert len(headings) == len(set(headings))
    assert set(headings) >= GLOSSARY
    vocabularies = (words.Evidence, words.Role, words.FieldClass, words.Outcome, words.Holds, words.Verdict, words.CorrectionKind)
    assert [item.value for kind in vocabularies for item in kind if f"`{item.value}`" not in text] == []


def test_the_checks_see_a_missing_field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (PAGES / "site.md").read_text(encoding="utf-8")
    (tmp_path / "site.md").write_text(re.sub(r"\| `backend`.*\n", "", text), encoding="utf-8")
    monkeypatch.setitem(globals(), "PAGES", tmp_path)
    with pytest.raises(AssertionError):
        test_the_site_page_has_every_key()
