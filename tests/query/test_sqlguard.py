"""SQL from a person: bounded in memory that DuckDB does not count, in what it spills, in rows and in time."""

import resource
from pathlib import Path

import pytest

from ledger.query.index import open_index
from ledger.query.sqlguard import SqlError, Table, select
from ledger.store.ledger import Ledger
from tests.builder import Builder

MIB = 2**20
GREEDY = [
    "select length(repeat('x', 2000000000))",
    "select repeat('x', 1000000) from range(100000)",
    "select repeat('x', 50000) from range(100000)",
    "select list(a.range) from range(500000000) a",
    "select string_agg(repeat('x', 100000), '') from range(100000)",
]


def run(ledger: Ledger, statement: str, *, limit_s: float = 20.0, max_rows: int = 100_000) -> Table:
    with open_index(ledger) as connection:
        return select(connection, statement, limit_s=limit_s, max_rows=max_rows)


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not say how much memory a process has")
@pytest.mark.parametrize("statement", GREEDY)
def test_a_greedy_statement_is_stopped_and_the_next_one_has_its_memory(ledger: Ledger, build: Builder, statement: str) -> None:
    build.arm("a", {"C6": 1.0})
    limits, before = resource.getrlimit(resource.RLIMIT_AS), resident()
    with pytest.raises(SqlError, match="more memory than there is"):
        run(ledger, statement)
    assert resource.getrlimit(resource.RLIMIT_AS) == limits
    assert resident() - before < 1500 * MIB
    assert run(ledger, "select value from cells").rows == ((1.0,),)


def test_what_a_statement_spills_is_bounded_and_cannot_be_raised(ledger: Ledger) -> None:
    found = run(ledger, "select current_setting('max_temp_directory_size')")
    assert found.rows == (("953.6 MiB",),)
    with pytest.raises(SqlError, match="only a SELECT"):
        run(ledger, "set max_temp_directory_size = '900GB'")


def test_a_result_that_is_too_long_is_cut_and_says_so(ledger: Ledger) -> None:
    cut, whole = (run(ledger, "select * from range(10)", max_rows=limit) for limit in (9, 10))
    assert (len(cut.rows), cut.cut) == (9, True)
    assert (len(whole.rows), whole.cut) == (10, False)


@pytest.mark.parametrize(
    "statement",
    [
        "select count(*) from range(1000000) a, range(1000000) b, range(1000000) c where a.range + b.range = c.range",
        "with recursive t as (select 1 a union all select a + 1 from t) select count(*) from t",
        "select levenshtein(repeat('a', 300000), repeat('b', 300000))",
    ],
)
def test_a_statement_that_takes_too_long_is_stopped(ledger: Ledger, statement: str) -> None:
    with pytest.raises(SqlError, match=r"stopped after 0\.2 s"):
        run(ledger, statement, limit_s=0.2)
