"""``ledger transcribe``: the worked example's post, figure by figure, as anybody asks for it; and files that are wrong."""

import json
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.cli.main import run
from ledger.query.ask import answer
from ledger.query.index import open_index
from ledger.query.ingest import Connection
from ledger.query.language import parse
from ledger.receipt.model import Attempt, Boot, Correction, Note, Serving, Trial
from ledger.store.ledger import Ledger
from ledger.store.verify import Checked, verify

ROOT = Path(__file__).resolve().parents[2]
POST = Path("specs/published/post-2026-10.toml")
TABLE = tomllib.loads((ROOT / POST).read_text())


@pytest.fixture
def told(ledger: Ledger) -> Ledger:
    """A ledger with the post transcribed into it."""
    shutil.copytree(ROOT / "specs", ledger.root / "specs")
    assert run(["-C", str(ledger.root), "transcribe", str(POST)]) == 0
    return ledger


@pytest.fixture
def index(told: Ledger) -> Iterator[Connection]:
    """Its index."""
    with open_index(told) as connection:
        yield connection


def rows(connection: Connection, question: str) -> list[Any]:
    return list(answer(connection, parse(question), show_struck=True).rows)


def ask(ledger: Ledger, capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    run(["-C", str(ledger.root), *arguments, "--json"])
    return json.loads(capsys.readouterr().out)


def test_every_figure_is_found_by_a_query(index: Connection) -> None:
    for figure in TABLE["figures"]:
        spec, _, arm = figure["boot"].partition(":")
        asked = f"{figure['metric']} of {arm} by arm, trial spec:{spec}"
        found = rows(index, asked)
        assert found, figure
        assert {row.evidence for row in found} == {"reported"}
        values = sorted(figure.get("values", [figure["value"]] if "value" in figure else []))
        low = values[0] if values else figure["low"]
        same = [row for row in found if row.unit == figure.get("unit", "tok/s")]
        if values:
            middle = (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2
            assert middle in [row.value for row in same], figure
        else:
            assert (low, figure["high"]) in [(row.low, row.high) for row in same if row.value is None], figure
        if figure["shots"] == 1 and values:
            assert any("single shot" in row.marks for row in same), figure
        if figure["shots"] == 0:
            assert any("shots not recorded" in row.marks for row in same), figure


def test_every_effect_is_found_by_a_query(index: Connection) -> None:
    for effect in TABLE["effects"]:
        found = rows(index, f"{effect['metric']} of {effect['arm']} / {effect['metric']} of {effect['against']}")
        wanted = [effect[key] for key in ("change", "low", "high") if key in effect]
        assert [row.value - 1 for row in found] == pytest.approx(wanted, abs=0.0006), effect
        assert {row.evidence for row in found} == {"reported"}


def test_every_correction_is_there_with_its_reason(told: Ledger) -> None:
    bodies = [told.read(item.digest).body for item in told.walk()]
    found = {(body.action, body.reason) for body in bodies if isinstance(body, Correction)}
    assert found == {(item["action"], item["reason"]) for item in TABLE["corrections"]}
    assert len([body for body in bodies if isinstance(body, Serving)]) == len(TABLE["serving"])
    notes = {body.text for body in bodies if isinstance(body, Note)}
    assert {item["text"] for item in TABLE["notes"]} <= notes
    assert {f"verdict, as published: {boot['verdict']}" for boot in TABLE["boots"] if "verdict" in boot} <= notes


@pytest.mark.parametrize(
    ("question", "then", "now"),
    [
        ("prefill@93335 of C / prefill@93335 of B", 1.10, 0.96),
        ("prefill@93335 of B / prefill@93335 of C", None, 1.04),
        ("needle_prefill@300000 of B-2026-10-18", 2648, None),
    ],
)
def test_a_question_has_the_answer_of_its_day(
    told: Ledger, capsys: pytest.CaptureFixture[str], question: str, then: float | None, now: float | None
) -> None:
    for words, wanted in ((f"{question} as-of:2026-10-19", then), (question, now)):
        found = [row["value"] for row in ask(told, capsys, "query", words)]
        assert found == ([pytest.approx(wanted, abs=0.005)] if wanted is not None else [])


def test_c6_by_arm_has_the_published_figures_with_their_evidence_and_marks(
    told: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {row["arm"]: row for row in ask(told, capsys, "query", "C6 by arm")}
    assert {arm: found[arm]["value"] for arm in ("A", "FINAL", "B-2026-10-18")} == {"A": 223, "FINAL": 286.6, "B-2026-10-18": 263}
    ranged = found["round2-all-boots"]
    assert (ranged["value"], ranged["low"], ranged["high"], ranged["n_boots"]) == (None, 250, 262, 0)
    assert "range over 6 boots" in ranged["marks"]
    assert {row["evidence"] for row in found.values()} == {"reported"}


def test_what_is_served_is_that_of_the_day(told: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    def serves(*when: str) -> dict[str, tuple[str, str | None]]:
        return {item["lane"]: (item["state"], item.get("arm")) for item in ask(told, capsys, "serving", *when)}

    assert serves() == {"A": ("stopped", None), "B": ("serving", "B1a"), "C": ("serving", "FINAL")}
    assert serves("--as-of", "2026-10-19") == {"A": ("serving", None), "B": ("stopped", None), "C": ("serving", None)}
    assert serves("--as-of", "2026-10-18") == {}


def test_two_engines_differ_in_one_thing_and_lane_a_in_two(told: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    reason = ask(told, capsys, "compare", "A", "vllm-ladder:FINAL")["reason"]
    assert reason.startswith("engine (and ")
    assert "quantization differ" in reason
    assert ask(told, capsys, "compare", "contention:B1a", "contention:FINAL")["reason"].startswith("engine (and ")


def test_it_is_verified_committed_and_not_recorded_twice(told: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    assert list(verify(told, Checked())) == []
    before = {item.digest for item in told.walk()}
    data = ask(told, capsys, "transcribe", str(POST))
    assert [edition["recorded"] for edition in data["editions"].values()] == [False, False]
    assert {item.digest for item in told.walk()} == before


def test_the_receipts_of_this_repository_are_those_that_anybody_makes(told: Ledger) -> None:
    shipped = {item.digest for item in Ledger.find(ROOT).walk()}
    assert {item.digest for item in told.walk()} <= shipped


def test_a_dry_run_writes_nothing(ledger: Ledger) -> None:
    assert run(["-C", str(ledger.root), "transcribe", str(ROOT / POST), "--dry-run"]) == 0
    assert list(ledger.walk()) == []


def test_without_the_specs_the_figures_are_recorded_all_the_same(ledger: Ledger) -> None:
    assert run(["-C", str(ledger.root), "transcribe", str(ROOT / POST)]) == 0
    boots = [body for item in ledger.walk() if isinstance(body := ledger.read(item.digest).body, Boot)]
    assert len(boots) == len(TABLE["boots"])
    assert {body.agreement.state for body in boots} == {"unverified"}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("value = 223\n", ""), "[figures[1]]: no value, no values and no range"),
        (("value = 223\n", "low = 223\n"), "a range has both low and high"),
        (("value = 223\n", "low = 3\nhigh = 2\n"), "low is above high"),
        (("value = 223\n", "value = 223\nvalues = [1]\n"), "a value or values, not both"),
        (("value = 223\n", 'value = "223"\n'), "expected a number"),
        (('boot = "october18:A"\n', 'boot = "october18:AA"\n'), "nothing of this name stands in the file"),
        (('targets = ["days"]', 'targets = ["dayz"]'), "nothing of this name stands in the file"),
        (('first = { at = "2026-10-19" }', 'first = { at = "yesterday" }'), "not a date, nor a time with its offset"),
        (('arm = "A"\nedition', 'arm = "../A"\nedition'), "no name"),
        (('state = "stopped"', 'state = "paused"'), "no such state"),
        (("ledger = 1", "ledger = 2"), "not a version of this format"),
        (('id = "incident"', 'id = "days"'), "stands twice"),
        (("change = -0.077\n", ""), "an effect has a change, or low and high"),
    ],
)
def test_a_wrong_file_is_told_with_its_place_and_records_nothing(
    ledger: Ledger, capsys: pytest.CaptureFixture[str], change: tuple[str, str], told: str
) -> None:
    text = (ROOT / POST).read_text()
    assert change[0] in text
    (ledger.root / "post.toml").write_text(text.replace(*change, 1))
    assert run(["-C", str(ledger.root), "transcribe", "post.toml"]) == 2
    err = capsys.readouterr().err
    assert told in err
    assert "post.toml:" in err
    assert list(ledger.walk()) == []


def test_attempts_and_trials_name_the_text_they_were_taken_from(told: Ledger) -> None:
    for item in told.walk():
        body = told.read(item.digest).body
        if isinstance(body, Attempt):
            assert told.read_blob(item.session, body.spec.text) == (ROOT / POST).read_bytes()
        if isinstance(body, Trial):
            assert body.samples


def test_sides_of_one_spec_each_are_divided_and_of_several_only_within_a_spec(
    told: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    (row,) = ask(told, capsys, "query", "C6 of FINAL / C6 of A")
    assert row["value"] == pytest.approx(286.6 / 223)
    assert any(mark.startswith("confounded: engine (and ") and "quantization" in mark for mark in row["marks"])
    (row,) = ask(told, capsys, "query", "prefill@93335 of FINAL / prefill@93335 of B1a")
    assert row["spec"] == "contention"
