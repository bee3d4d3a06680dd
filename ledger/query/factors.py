"""The factors of boots, from the index.

What it does: reads them, for one boot or as what several have in common. What it does not do: compare (``analysis``). Rule kept:
where boots that are pooled differ in a factor, its value names all of theirs, so that no comparison takes them for one.
"""

from collections.abc import Sequence

import duckdb

from ledger.receipt.model import Factors


def factors_of(connection: duckdb.DuckDBPyConnection, boots: Sequence[str]) -> Factors:
    """The factors of these boots; a factor in which they differ has all its values, joined by `` | ``."""
    rows = connection.execute(
        "SELECT f.class, f.key, string_agg(DISTINCT f.value, ' | ' ORDER BY f.value), count(DISTINCT f.boot) "
        "FROM factor f JOIN receipt r ON r.id = f.boot WHERE r.digest IN (SELECT unnest(?::VARCHAR[])) GROUP BY f.class, f.key",
        [list(boots)],
    ).fetchall()
    split: dict[str, dict[str, str]] = {"identity": {}, "context": {}, "provenance": {}}
    for kind, key, value, times in rows:
        some = "" if times == len(boots) else " | (none)"
        split.setdefault(str(kind), {})[str(key)] = f"{value}{some}"
    return Factors(identity=split["identity"], context=split["context"], provenance=split["provenance"])
