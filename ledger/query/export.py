"""The views as files, for programs on other machines.

What it does: writes each documented view to a folder, as Parquet partitioned by month, CSV or JSON Lines. What it does not do:
read such files again. Rules kept: an existing folder is never written into; a view without a time is one file.
"""

from collections.abc import Sequence
from pathlib import Path

import duckdb

from ledger.core.errors import Place, Problem, StoreError
from ledger.query.sqlguard import views

FORMATS = {
    "parquet": "FORMAT parquet, COMPRESSION zstd",
    "csv": "FORMAT csv, HEADER",
    "jsonl": "FORMAT json",
}


def export(connection: duckdb.DuckDBPyConnection, folder: Path, style: str) -> Sequence[str]:
    """Write every view below ``folder``, which must not be there yet; returns the names of the views.

    Raises:
        StoreError: the folder is there, or the disk refuses.
    """
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        hint = "name a folder that is not there yet"
        raise StoreError(
            Problem(what=(error.strerror or str(error)).lower(), place=Place(file=str(folder)), hint=hint)
        ) from error
    written = []
    for name, columns in views(connection):
        timed = "time" in columns.split(", ")
        _copy(connection, name, folder, style, by_month=timed and style == "parquet")
        written.append(name)
    return written


def _copy(connection: duckdb.DuckDBPyConnection, name: str, folder: Path, style: str, *, by_month: bool) -> None:
    target = str(folder / name) if by_month else str(folder / f"{name}.{style}")
    source = f"SELECT *, strftime(time, '%Y-%m') AS month FROM {name}" if by_month else f"SELECT * FROM {name}"
    options = FORMATS[style] + (", PARTITION_BY (month)" if by_month else "")
    quoted = target.replace("'", "''")
    try:
        connection.execute(f"COPY ({source}) TO '{quoted}' ({options})")
    except duckdb.IOException as error:
        raise StoreError(Problem(what=str(error).splitlines()[0], place=Place(file=target))) from error
