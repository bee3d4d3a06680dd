"""Why a figure changed: between two moments by sessions and corrections, and between two arms by the factors a boot isolates."""

import json
from datetime import timedelta

import pytest

from ledger.cli.main import run
from ledger.core.words import CorrectionKind
from ledger.query.ask import answer
from ledger.query.explain import explain
from ledger.query.index import open_index
from ledger.query.language import QueryError, parse
from ledger.receipt.model import Correction
from ledger.store.git import commit_paths
from ledger.store.ledger import Ledger
from ledger.store.revision import receipts_at
from tests.builder import BEGINNING, Builder, git


@pytest.fixture
def story(ledger: Ledger) -> Ledger:
    """The worked example in small: 1.10 on the first day; B run again properly and the single shot superseded on the second."""
    first = Builder(ledger, token="0001", when=BEGINNING)
    first.arm("C", {"prefill@500": 110.0}, lane="C")
    _, single = first.arm("B", {"prefill@500": 100.0}, lane="B")
    commit_paths(ledger, first.writer.paths, "day one")
    git(ledger.root, "tag", "day-one")
    second = Builder(ledger, token="0002", when=BEGINNING + timedelta(days=1))
    _, again = second.arm("B", {"prefill@500": 115.0}, lane="B")
    second.writer.record(
        Correction(action=CorrectionKind.SUPERSEDE, targets=(single,), replacements=(again,), reason="a single shot", by="x")
    )
    commit_paths(ledger, second.writer.paths, "day two")
    return ledger


RATIO = "prefill@500 of C / prefill@500 of B"


def ratio(ledger: Ledger, when: str) -> float:
    with open_index(ledger) as connection:
        found = answer(connection, parse(f"{RATIO} as-of:{when}"), revision=lambda name: receipts_at(ledger, name))
    (row,) = found.rows
    return row.value


def test_as_of_takes_a_date_a_time_and_a_revision(story: Ledger) -> None:
    for when in ("2026-10-18", "2026-10-18T23:00:00Z", "day-one", "HEAD~1"):
        assert ratio(story, when) == pytest.approx(1.10)
    for when in ("2026-10-19", "HEAD", "main"):
        assert ratio(story, when) == pytest.approx(110 / 115)


def test_an_unknown_revision_points_at_the_word(story: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    with open_index(story) as connection, pytest.raises(QueryError, match="write a date"):
        answer(connection, parse("prefill@500 as-of:no-such-branch"), revision=lambda name: receipts_at(story, name))
    assert run(["-C", str(story.root), "query", "prefill@500 as-of:--help"]) == 2
    assert "git revision" in capsys.readouterr().err


def test_a_change_between_two_days_is_taken_apart(story: Ledger) -> None:
    with open_index(story) as connection:
        found = explain(connection, parse(RATIO), "2026-10-18", "HEAD", lambda name: receipts_at(story, name))
    done = found.attribution
    assert (done.before, done.after) == (pytest.approx(1.10), pytest.approx(110 / 115))
    words = {found.changes[share.name].words: share for share in done.shares}
    (session,) = [share for text, share in words.items() if "new trials of session" in text]
    (correction,) = [share for text, share in words.items() if "a single shot" in text]
    assert session.alone == pytest.approx(110 / 107.5 - 1.10)
    assert correction.alone is None
    assert session.mean + correction.mean == pytest.approx(done.after - done.before)


def test_the_command_tells_it(story: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-C", str(story.root), "diff", "day-one", "HEAD", "--of", RATIO, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["changes"]) == 2
    assert run(["-C", str(story.root), "diff", "day-one", "HEAD", "--of", RATIO]) == 0
    assert "1.1 → 0.9565" in capsys.readouterr().out
    assert run(["-C", str(story.root), "diff", "day-one", "HEAD", "--of", "C99 of Z"]) == 2


def test_what_is_isolated_and_what_is_not_is_told(ledger: Ledger, build: Builder, capsys: pytest.CaptureFixture[str]) -> None:
    for arm, engine, quantization, value in (("a", "e", "8", 100.0), ("b", "f", "4", 150.0), ("c", "f", "8", 120.0)):
        build.trial(build.boot(arm, identity={"engine": engine, "quantization": quantization}), arm, {"C6": value})
    run(["-C", str(ledger.root), "diff", "a", "b", "--json"])
    found = {item["key"]: item for item in json.loads(capsys.readouterr().out)["isolated"]}
    assert found["engine"]["moved"] == {"C6": {"a": 100.0, "alone": 120.0}}
    assert found["quantization"]["boots"] == []
    run(["-C", str(ledger.root), "diff", "a", "b"])
    out = capsys.readouterr().out
    assert "isolated: engine e → f alone: C6 +20.0% (1 boots)" in out
    assert "not isolated: quantization 8 → 4" in out


def test_compare_names_the_factors_and_a_ratio_carries_them(
    ledger: Ledger, build: Builder, capsys: pytest.CaptureFixture[str]
) -> None:
    for arm, engine, quantization in (("A", "TensorFold", "EXL3"), ("B", "SGLang", "native"), ("C", "vLLM", "native")):
        build.trial(build.boot(arm, identity={"engine": engine, "quantization": quantization}), arm, {"C6": 100.0})
    assert run(["-C", str(ledger.root), "compare", "A", "C"]) == 1
    assert "confounded: engine, quantization differ" in capsys.readouterr().out
    assert run(["-C", str(ledger.root), "compare", "B", "C"]) == 0
    assert "clean: engine alone differs" in capsys.readouterr().out
    run(["-C", str(ledger.root), "query", "C6 of C / C6 of A", "--json"])
    assert any("confounded: engine, quantization" in mark for mark in json.loads(capsys.readouterr().out)[0]["marks"])
    run(["-C", str(ledger.root), "query", "C6 of C / C6 of B", "--json"])
    assert json.loads(capsys.readouterr().out)[0]["marks"] == ["n=1 boot"]


def test_how_it_was_counted_is_told_apart_from_what_differs(
    ledger: Ledger, build: Builder, capsys: pytest.CaptureFixture[str]
) -> None:
    """The worked example's kind of change: a single shot beside the median of three."""
    build.trial(build.boot("a"), "a", {"prefill@500": 100.0})
    build.trial(build.boot("b"), "b", {"prefill@500": 110.0}, samples={"prefill@500": (108.0, 110.0, 112.0)})
    run(["-C", str(ledger.root), "diff", "a", "b", "--json"])
    (item,) = json.loads(capsys.readouterr().out)["counting"]
    assert (item["a"]["shots"], item["b"]["shots"], item["b"]["statistic"]) == (1, 3, "median")
    assert {part["name"]: part["mean"] for part in item["parts"]} == {"shots": pytest.approx(2.0), "the rest": pytest.approx(8.0)}
    run(["-C", str(ledger.root), "diff", "a", "b"])
    out = " ".join(capsys.readouterr().out.split())
    assert "counted otherwise: prefill@500 100 → 110: 3 shots in place of 1 +2; the rest +8" in out
    run(["-C", str(ledger.root), "diff", "b", "b", "--json"])
    assert json.loads(capsys.readouterr().out)["counting"] == []
