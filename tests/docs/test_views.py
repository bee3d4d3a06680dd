"""The page of the views names every view and column that there is, and no other."""

import re
from pathlib import Path

from ledger.query.index import open_index
from ledger.query.sqlguard import views
from ledger.store.ledger import Ledger

PAGE = Path(__file__).parents[2] / "docs/reference/views.md"
ROW = re.compile(r"^\| `(?P<view>\w+)` \| [^|]+ \| (?P<columns>[^|]+) \|$", re.MULTILINE)


def test_every_view_and_column_is_on_the_page(ledger: Ledger) -> None:
    shown = {row["view"]: re.findall(r"`(\w+)`", row["columns"]) for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))}
    with open_index(ledger) as connection:
        real = {name: columns.split(", ") for name, columns in views(connection)}
    assert shown == real
