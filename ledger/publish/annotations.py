"""Findings about pages in the forms that people and CI systems read.

What it does: turns findings into lines, JSON, commands of a GitHub workflow, or a GitLab code quality report. What it does not
do: print them. Rules kept: text of a page cannot end a workflow command or begin another; a finding keeps its fingerprint while
its words stay the same, wherever its line moves.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from ledger.core.text import one_line
from ledger.publish.check import Finding

Found = Sequence[tuple[str, Finding]]
MAX_MESSAGE = 1000


def as_text(found: Found) -> list[object]:
    """``file:line:column: kind: what``, the way out behind it."""
    return [
        f"{file}:{item.line}:{item.column}: {item.kind}: {_message(item)}" + (f"\n  {item.hint}" if item.hint else "")
        for file, item in found
    ]


def as_json(found: Found) -> list[object]:
    """One object for each finding."""
    return [
        {"file": file, "line": item.line, "column": item.column, "kind": str(item.kind), "what": item.what, "hint": item.hint}
        for file, item in found
    ]


def as_github(found: Found) -> list[object]:
    """Workflow commands that annotate the lines."""
    return [
        f"::error file={_property(file)},line={item.line},col={item.column},"
        f"title=ledger check%3A {item.kind}::{_data(_message(item))}"
        for file, item in found
    ]


def as_gitlab(found: Found) -> list[object]:
    """A code quality report. Equal findings of a page are told apart by their count."""
    seen: Counter[str] = Counter()
    report: list[object] = []
    for file, item in found:
        words = f"{file}\0{item.kind}\0{item.what}"
        seen[words] += 1
        report.append(
            {
                "description": _message(item),
                "check_name": f"ledger/{item.kind}",
                "fingerprint": hashlib.sha256(f"{words}\0{seen[words]}".encode()).hexdigest(),
                "severity": "major",
                "location": {"path": file, "lines": {"begin": item.line}},
            }
        )
    return report


FORMATS: Mapping[str, Callable[[Found], list[object]]] = {
    "text": as_text,
    "json": as_json,
    "github": as_github,
    "gitlab": as_gitlab,
}


def annotated(style: str, found: Found) -> list[object]:
    """The findings in one of the ``FORMATS``: lines, or objects for JSON."""
    return FORMATS[style](found)


def _message(item: Finding) -> str:
    return one_line(item.what, MAX_MESSAGE)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
