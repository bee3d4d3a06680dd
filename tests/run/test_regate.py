"""Old evidence under a new version: which boots would be refused, as new receipts that name the old ones."""

import json
from pathlib import Path

import pytest

from ledger.cli.main import run
from ledger.core.words import Holds
from ledger.receipt.model import Gate
from ledger.store.ledger import Ledger
from ledger.store.verify import Checked, verify
from tests.run.conftest import MakeSpec

GATES = """
[[gates]]
id = "memory"
text = "there is room"
reads = "host.MemAvailable"
op = ">="
value = "1 MiB"

[[gates]]
id = "served"
text = "requests were served"
when = "after"
reads = "requests.ok"
op = ">="
value = "1"

[[gates]]
id = "floor"
text = "memory stays free"
when = "during"
reads = "host.MemAvailable"
op = ">="
value = "1 MiB"
"""


def gates(ledger: Ledger) -> list[tuple[str, Gate]]:
    found = [(stored.digest, ledger.read(stored.digest).body) for stored in ledger.walk()]
    return [(digest, body) for digest, body in found if isinstance(body, Gate)]


@pytest.fixture
def ran(ledger: Ledger, make_spec: MakeSpec, capsys: pytest.CaptureFixture[str]) -> Path:
    """A spec with gates that was run once, and passed."""
    path = make_spec(more=GATES)
    assert run(["-C", str(ledger.root), "run", path.name]) == 0
    capsys.readouterr()
    return path


def regate(ledger: Ledger, spec: Path, *words: str) -> int:
    return run(["-C", str(ledger.root), "regate", spec.name, *words])


def raised(spec: Path, old: str, new: str) -> None:
    """The spec with one gate changed, and its version raised."""
    text = spec.read_text()
    assert old in text
    spec.write_text(text.replace(old, new, 1))


def test_a_stricter_version_refuses_a_past_boot(ledger: Ledger, ran: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = gates(ledger)
    raised(ran, 'op = ">="\nvalue = "1 MiB"', 'op = ">="\nversion = 2\nvalue = "900 TiB"')
    assert regate(ledger, ran, "--dry-run") == 1
    assert "would be refused" in capsys.readouterr().out
    assert gates(ledger) == before
    assert regate(ledger, ran) == 1
    new = [(digest, gate) for digest, gate in gates(ledger) if digest not in dict(before)]
    assert [(gate.gate, gate.version, gate.holds) for _, gate in new] == [("memory", 2, Holds.FAIL)]
    assert [gate.gate for digest, gate in before if digest == new[0][1].regates] == ["memory"]
    assert list(verify(ledger, Checked())) == []
    capsys.readouterr()
    assert regate(ledger, ran, "--json") == 0, "what was judged again is of the new version"
    assert json.loads(capsys.readouterr().out) == []


def test_another_counter_is_read_from_the_same_evidence(ledger: Ledger, ran: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raised(
        ran,
        'reads = "host.MemAvailable"\nop = ">="\nvalue = "1 MiB"',
        'reads = "host.MemTotal"\nop = ">="\nversion = 2\nvalue = "2 MiB"',
    )
    assert regate(ledger, ran, "--json", "--dry-run") == 0
    (made,) = json.loads(capsys.readouterr().out)
    assert (made["was"]["holds"], made["is"]["holds"]) == ("pass", "pass")
    assert made["is"]["value"] != made["was"]["value"]


def test_what_the_evidence_does_not_hold_is_unknown_and_refuses(
    ledger: Ledger, ran: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raised(ran, 'reads = "host.MemAvailable"\nop', 'reads = "host.processes"\nof = "vllm"\nversion = 2\nop')
    raised(ran, 'value = "1 MiB"', 'value = "0"')
    assert regate(ledger, ran, "--json", "--dry-run") == 1
    (made,) = json.loads(capsys.readouterr().out)
    assert made["is"]["holds"] == "unknown"
    assert "not in the evidence" in made["reason"]


def test_trials_and_samples_are_read_again_too(ledger: Ledger, ran: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raised(ran, 'reads = "requests.ok"\nop = ">="\nvalue = "1"', 'reads = "requests.ok"\nop = ">="\nversion = 2\nvalue = "9999"')
    raised(ran, 'when = "during"', 'when = "during"\nversion = 3')
    raised(
        ran,
        'when = "during"\nversion = 3\nreads = "host.MemAvailable"\nop = ">="\nvalue = "1 MiB"',
        'when = "during"\nversion = 3\nreads = "host.MemAvailable"\nop = ">="\nvalue = "900 TiB"',
    )
    assert regate(ledger, ran, "--json") == 1
    made = {item["gate"]: item["is"] for item in json.loads(capsys.readouterr().out)}
    assert {name: item["holds"] for name, item in made.items()} == {"served": "fail", "floor": "fail"}
    assert list(verify(ledger, Checked())) == []


def test_a_limit_that_changed_without_its_version_is_told(ledger: Ledger, ran: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raised(ran, 'value = "1 MiB"', 'value = "2 MiB"')
    assert regate(ledger, ran) == 2
    assert "raise its version to 2" in capsys.readouterr().err


def test_a_receipt_that_was_damaged_is_named_and_the_others_are_judged(
    ledger: Ledger, ran: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raised(ran, 'op = ">="\nvalue = "1 MiB"', 'op = ">="\nversion = 2\nvalue = "900 TiB"')
    (trial, *_) = [each for each in ledger.walk() if ledger.read(each.digest).kind == "trial"]
    trial.path.write_bytes(trial.path.read_bytes()[:-9])
    assert regate(ledger, ran, "--dry-run") == 1
    said = capsys.readouterr()
    assert "would be refused" in said.out
    assert f"left out: {trial.path}: the bytes are not those of the name" in said.err
    assert run(["-C", str(ledger.root), "show", trial.digest.removeprefix("sha256:")[:12]]) == 4
    assert f"{trial.path.name}: this file is no receipt" in capsys.readouterr().err
