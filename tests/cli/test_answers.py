"""What the commands that answer show: formats, names, corrections and the SQL guard, through the real entry point."""

import csv
import io
import json
import subprocess
import sys

import pytest

from ledger.cli.main import run
from ledger.store.ledger import Ledger
from tests.builder import Builder, git


@pytest.fixture
def shell(ledger: Ledger, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]  # a function of this fixture
    """Run a command in the ledger; returns its exit code, stdout and stderr."""

    def call(*arguments: str) -> tuple[int, str, str]:
        code = run(["-C", str(ledger.root), *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def two(build: Builder) -> dict[str, str]:
    old_boot, old = build.arm("a", {"C6": 10.0, "C6/code": 9.0})
    new_boot, new = build.arm("a", {"C6": 20.0, "C6/code": 19.0})
    build.arm("b", {"C6": 30.0})
    return {"old": old, "new": new, "old_boot": old_boot, "new_boot": new_boot}


def test_the_formats_hold_the_same_rows(shell, two) -> None:  # type: ignore[no-untyped-def]  # fixtures above
    code, out, _ = shell("query", "C6 by arm", "--format", "json")
    rows = json.loads(out)
    assert code == 0
    assert [(row["arm"], row["value"], row["n_boots"], row["spread"], row["evidence"]) for row in rows] == [
        ("a", 15.0, 2, 10.0, "measured"),
        ("b", 30.0, 1, None, "measured"),
    ]
    _, text, _ = shell("query", "C6 by arm", "--format", "csv")
    assert [(row["arm"], float(row["value"])) for row in csv.DictReader(io.StringIO(text))] == [("a", 15.0), ("b", 30.0)]
    _, markdown, _ = shell("query", "C6 by arm", "--format", "markdown")
    assert "| b | C6 | 30 | tok/s | 1 | – | measured | n=1 boot |" in markdown
    _, table, _ = shell("query", "C6 by arm")
    assert "10 … 20" in table


def test_a_cell_that_a_spreadsheet_would_run_is_text(ledger: Ledger, shell) -> None:  # type: ignore[no-untyped-def]  # fixtures above
    Builder(ledger, token="0009").arm("=1+1", {"C6": 1.0})
    _, text, _ = shell("query", "C6 by arm", "--format", "csv")
    assert "'=1+1" in text


def test_the_sql_is_shown_with_its_parameters(shell, two) -> None:  # type: ignore[no-untyped-def]  # fixtures above
    code, out, _ = shell("query", "C6 by arm lane:L", "--sql")
    assert code == 0
    assert "median(value)" in out
    assert "'C6'" in out
    assert "'L'" in out


def test_no_row_is_exit_1(shell, two) -> None:  # type: ignore[no-untyped-def]  # fixtures above
    assert shell("query", "C6 by arm n>=5")[0] == 1


@pytest.mark.parametrize(
    ("name", "which"),
    [("a/decode", "new"), ("a/decode~1", "old"), ("exp:a/decode", "new"), ("a", "new_boot"), ("a~1", "old_boot")],
)
def test_receipts_are_named_by_words(shell, two, name: str, which: str) -> None:  # type: ignore[no-untyped-def]  # fixtures above
    assert json.loads(shell("show", name, "--json")[1])["digest"] == two[which]


def test_receipts_are_named_by_digits(shell, two) -> None:  # type: ignore[no-untyped-def]  # fixtures above
    digits = two["old"].removeprefix("sha256:")
    for name in (digits, digits[:12], two["old"]):
        assert json.loads(shell("show", name, "--json")[1])["digest"] == two["old"]
    code, _, err = shell("show", "a/decod")
    assert (code, "did you mean 'a/decode'" in err) == (4, True)
    assert shell("show", "ffff")[0] == 4


def test_raw_is_the_file(two, ledger: Ledger) -> None:  # type: ignore[no-untyped-def]  # fixtures above
    command = [sys.executable, "-m", "ledger", "-C", str(ledger.root), "show", two["old"], "--raw"]
    assert subprocess.run(command, capture_output=True, check=True).stdout == ledger.path_of(two["old"]).read_bytes()


def test_a_correction_is_shown_written_and_committed(shell, two, ledger: Ledger) -> None:  # type: ignore[no-untyped-def]  # fixtures above
    words = ("correct", "a/decode~1", "--supersede-with", "a/decode", "--reason", "the host was not prepared")
    code, out, err = shell(*words)
    assert (code, "--yes" in err) == (2, True)
    assert "2 → 1" in out
    before = git(ledger.root, "rev-parse", "HEAD")
    assert shell(*words, "--dry-run")[0] == 0
    assert git(ledger.root, "rev-parse", "HEAD") == before
    code, out, _ = shell(*words, "--yes", "--by", "Somebody")
    assert (code, "recorded" in out) == (0, True)
    assert json.loads(shell("query", "C6 by arm arm:a", "--json")[1])[0]["value"] == 20.0
    _, out, _ = shell("query", "C6 by arm arm:a", "--all")
    assert "~~10~~" in out
    assert "superseded" in out
    _, out, _ = shell("show", two["old"])
    assert "struck: supersede" in out
    assert "the host was not prepared" in out
    assert ledger.path_of(two["old"]).exists()
    assert git(ledger.root, "show", "--stat", "--format=%s").startswith("receipts: supersede")


def test_a_reinstatement_undoes_it_and_needs_something_to_undo(shell, two) -> None:  # type: ignore[no-untyped-def]  # fixtures above
    assert shell("correct", "a/decode", "--reinstate", "--reason", "r", "--yes")[0] == 2
    assert shell("correct", "a/decode", "--retract", "--reason", "r", "--yes")[0] == 0
    assert json.loads(shell("query", "C6 by arm arm:a", "--json")[1])[0]["value"] == 10.0
    assert shell("correct", two["new"], "--reinstate", "--reason", "r", "--yes")[0] == 0
    assert json.loads(shell("query", "C6 by arm arm:a", "--json")[1])[0]["value"] == 15.0


@pytest.mark.parametrize("flags", [[], ["--retract", "--amend"], ["--supersede-with", "a/decode"]])
def test_a_correction_says_one_thing(shell, two, flags: list[str]) -> None:  # type: ignore[no-untyped-def]  # fixtures above
    assert shell("correct", "a/decode", *flags, "--reason", "r", "--yes")[0] == 2


def test_a_diff_of_arms_pools_their_boots_and_one_of_receipts_does_not(shell, two) -> None:  # type: ignore[no-untyped-def]  # fixtures above
    code, out, _ = shell("diff", "a", "b", "--json")
    found = json.loads(out)
    assert (code, found["verdict"]) == (0, "clean")
    assert [(row["metric"], row["a"], row["n_a"], row["b"], row["n_b"]) for row in found["metrics"]] == [("C6", 15.0, 2, 30.0, 1)]
    found = json.loads(shell("diff", "a/decode~1", "b/decode", "--json")[1])
    assert [(row["a"], row["n_a"]) for row in found["metrics"]] == [(10.0, 1)]
    code, out, _ = shell("diff", "a", "b")
    assert "clean: arm alone differs" in out


def test_a_diff_of_another_evidence_is_refused(ledger: Ledger, build: Builder, shell) -> None:  # type: ignore[no-untyped-def]  # fixtures above
    build.arm("a", {"C6": 1.0})
    build.arm("b", {"C6": 1.0}, evidence="stand-in")
    code, out, _ = shell("diff", "a", "b")
    assert (code, "refused: the evidence differs" in out) == (1, True)


SECRET = "/etc/passwd"
REFUSED = [
    "copy (select 1) to 'x.csv'",
    "attach 'x.db'",
    "install httpfs",
    "load json",
    "pragma version",
    "drop table receipt",
    "insert into receipt select * from receipt",
    "select 1; select 2",
    "set memory_limit = '10GB'",
    "export database 'x'",
    "call pragma_version()",
    "create table t as select 1",
    "explain analyze select 1",
    f"select * from read_csv('{SECRET}')",
    f"select * from read_text('{SECRET}')",
    f"select * from read_blob('{SECRET}')",
    f"select * from glob('{SECRET}')",
    f"select * from '{SECRET}'",
    "select * from 'https://example.invalid/x.csv'",
    "select getenv('HOME')",
    "selec 1",
    "",
]


@pytest.mark.parametrize("statement", REFUSED)
def test_sql_that_reaches_out_or_writes_is_refused(shell, two, statement: str) -> None:  # type: ignore[no-untyped-def]  # fixtures above
    code, out, err = shell("sql", statement)
    assert code == 2
    assert "root:" not in out
    assert "Traceback" not in err
    assert "this is a defect" not in err


def test_sql_that_runs_for_ever_is_stopped(shell, two) -> None:  # type: ignore[no-untyped-def]  # fixtures above
    endless = "select count(*) from range(1000000) a, range(1000000) b, range(1000000) c where a.range + b.range = c.range"
    code, _, err = shell("sql", endless, "--timeout", "0.5")
    assert (code, "stopped after 0.5 s" in err) == (2, True)


def test_sql_that_eats_memory_is_bounded(shell, two) -> None:  # type: ignore[no-untyped-def]  # fixtures above
    assert shell("sql", "select list(a.range) from range(500000000) a", "--timeout", "20")[0] == 2


def test_sql_answers_over_the_views(shell, two) -> None:  # type: ignore[no-untyped-def]  # fixtures above
    code, out, _ = shell(
        "sql", "select arm, median(value) as v from cells where metric = 'C6' group by arm order by arm", "--json"
    )
    assert (code, json.loads(out)) == (0, [{"arm": "a", "v": 15.0}, {"arm": "b", "v": 30.0}])
    assert "cells" in shell("sql", "--views")[1]


def test_verify_names_the_file_with_the_changed_byte(shell, two, ledger: Ledger) -> None:  # type: ignore[no-untyped-def]  # fixtures above
    assert shell("verify")[0] == 0
    path = ledger.path_of(two["old"])
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    code, out, _ = shell("verify")
    assert code == 1
    assert path.name in out
