"""Claims, stale decisions, histories and scoped corrections, through the real entry point."""

import json

import pytest

from ledger.cli.main import run
from ledger.core.words import CorrectionKind, Verdict
from ledger.receipt.model import Claim, Correction, Decision
from ledger.store.ledger import Ledger
from tests.builder import Builder, git

SPEC = """\
ledger = 1
name = "exp"
question = "?"
[lanes.L]
engine = "e"
model = "m"
[[arms]]
id = "a"
lane = "L"
role = "control"
[[arms]]
id = "b"
base = "a"
change = { about = "b" }
[measures.decode]
uses = "openai/decode"
[rule]
metrics = ["C6"]
"""


@pytest.fixture
def shell(ledger: Ledger, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]  # a function of this fixture
    """Run a command in the ledger with --json; returns its exit code and the document."""

    def call(*arguments: str) -> tuple[int, object]:
        code = run(["-C", str(ledger.root), *arguments, "--json"])
        out = capsys.readouterr().out
        return code, json.loads(out) if out else None

    return call


@pytest.fixture
def made(build: Builder, ledger: Ledger) -> dict[str, str]:
    _, a1 = build.arm("a", {"C6": 100.0})
    _, a2 = build.arm("a", {"C6": 102.0})
    _, b1 = build.arm("b", {"C6": 120.0})
    decision = build.writer.record(
        Decision(
            subject=build.subject("b"),
            verdict=Verdict.KEEP,
            reasons=("r",),
            inputs=(a1, a2, b1),
            control="a",
            rule={"metrics": ["C6"]},
        )
    )
    (ledger.root / "exp.toml").write_text(SPEC)
    return {"a1": a1, "a2": a2, "b1": b1, "decision": decision}


RATIO = "C6 of b / C6 of a"


def states(shell) -> list[str]:  # type: ignore[no-untyped-def]  # the fixture above
    return [item["state"] for item in shell("claims")[1]]


def test_a_claim_is_recorded_with_what_it_rests_on_and_committed(shell, made, ledger: Ledger) -> None:  # type: ignore[no-untyped-def]  # fixtures above
    code, found = shell("claim", RATIO, "--says", "1.19", "--name", "b over a", "--by", "Somebody")
    assert (code, found["holds"]) == (0, True)
    body = ledger.read(found["claim"]).body
    assert isinstance(body, Claim)
    assert set(body.inputs) == {made["a1"], made["a2"], made["b1"]}
    assert (body.orientation, body.decimals, body.by) == ("ratio: C6 of b over C6 of a", 2, "Somebody")
    assert git(ledger.root, "log", "-1", "--format=%s").startswith("receipts: claim 1.19")
    assert states(shell) == ["holds"]
    assert run(["-C", str(ledger.root), "verify"]) == 0


def test_a_claim_that_does_not_hold_is_not_recorded_unless_anyway(shell, made) -> None:  # type: ignore[no-untyped-def]  # fixtures above
    assert shell("claim", RATIO, "--says", "1.3")[1]["claim"] is None
    assert shell("claims")[1] == []
    assert shell("claim", RATIO, "--says", "0.84", "--anyway")[0] == 1
    assert states(shell) == ["false"]


def test_a_claim_needs_one_answer(shell, made) -> None:  # type: ignore[no-untyped-def]  # fixtures above
    assert shell("claim", "C6 by arm", "--says", "1")[0] == 2
    assert shell("claim", "C6 of nobody", "--says", "1")[0] == 2


def test_a_claim_goes_stale_false_and_back(shell, made) -> None:  # type: ignore[no-untyped-def]  # fixtures above
    shell("claim", "C6 of a", "--says", "101", "--name", "stays")
    shell("claim", RATIO, "--says", "1.19", "--name", "moves")
    assert shell("correct", made["a2"], "--retract", "--reason", "r", "--yes")[0] == 0
    assert states(shell) == ["false", "false"]
    code, found = shell("stale")
    assert (code, {item["kind"] for item in found}) == (1, {"claim", "decision"})
    assert any(item["again"] == f"ledger claim '{RATIO}' --says 1.19 --name moves" for item in found)
    assert shell("correct", made["a2"], "--reinstate", "--reason", "r", "--yes")[0] == 0
    assert states(shell) == ["holds", "holds"]
    assert shell("stale") == (0, [])


def test_a_blast_radius_says_what_would_turn_over(shell, made) -> None:  # type: ignore[no-untyped-def]  # fixtures above
    shell("claim", RATIO, "--says", "1.19", "--name", "x")
    shell("claim", "C6 of b", "--says", "120", "--name", "untouched")
    touched = shell("correct", made["b1"], "--retract", "--reason", "r", "--dry-run")[1]["dependents"]
    assert {(item["kind"], item["name"], item["then"]) for item in touched} == {
        ("decision", "b", "inconclusive"),
        ("claim", "x", "no figure"),
        ("claim", "untouched", "no figure"),
    }
    touched = shell("correct", made["a2"], "--retract", "--reason", "r", "--dry-run")[1]["dependents"]
    assert {(item["kind"], item["name"], item["then"]) for item in touched} == {
        ("decision", "b", "keep"),
        ("claim", "x", "false: 1.20"),
    }


def test_a_number_that_stays_although_an_input_is_gone_is_stale(shell, made, build: Builder) -> None:  # type: ignore[no-untyped-def]  # fixtures above
    _, again = build.arm("a", {"C6": 102.0})
    shell("claim", "C6 of a", "--says", "102")
    shell("correct", made["a2"], "--supersede-with", again, "--reason", "r", "--yes")
    assert states(shell) == ["stale"] or states(shell) == ["false"]


def test_a_decision_made_again_is_no_longer_stale(shell, made) -> None:  # type: ignore[no-untyped-def]  # fixtures above
    shell("correct", made["a2"], "--retract", "--reason", "r", "--yes")
    assert [item["again"] for item in shell("stale")[1]] == ["ledger decide specs/exp.toml"]
    code, decisions = shell("decide", "exp.toml")
    assert code == 0
    assert [(item["arm"], item["control"], item["verdict"]) for item in decisions] == [("b", "a", "keep")]
    assert shell("stale") == (0, [])
    assert shell("verify")[0] == 0


def test_decide_dry_runs_and_needs_a_rule(shell, made, ledger: Ledger) -> None:  # type: ignore[no-untyped-def]  # fixtures above
    before = len(list(ledger.walk()))
    assert shell("decide", "exp.toml", "--dry-run")[0] == 0
    assert len(list(ledger.walk())) == before
    (ledger.root / "none.toml").write_text(SPEC.partition("[rule]")[0])
    assert shell("decide", "none.toml")[0] == 2


def test_a_history_tells_every_value_and_why(shell, made) -> None:  # type: ignore[no-untyped-def]  # fixtures above
    shell("correct", made["a1"], "--retract", "--reason", "cold control", "--yes")
    code, found = shell("history", "C6 of a")
    assert code == 0
    assert [(item["value"], item["n_boots"], item["why"]) for item in found] == [
        (100.0, 1, "measured"),
        (101.0, 2, "measured"),
        (102.0, 1, "retract: cold control"),
    ]
    assert shell("history", RATIO)[0] == 2


def test_a_correction_for_one_use_strikes_nothing_else(shell, made) -> None:  # type: ignore[no-untyped-def]  # fixtures above
    shell("claim", RATIO, "--says", "1.19", "--name", "x")
    shell("claim", RATIO, "--says", "1.19", "--name", "y")
    assert shell("correct", made["a1"], "--retract", "--for", "claim:x", "--reason", "r", "--yes")[0] == 0
    assert {item["name"]: item["state"] for item in shell("claims")[1]} == {"x": "stale", "y": "holds"}
    assert shell("query", "C6 of a")[1][0]["n_boots"] == 2
    assert shell("diff", "a", "b")[1]["verdict"] == "clean"
    assert shell("correct", "a~0", "--retract", "--for", "comparison", "--reason", "cold control", "--yes")[0] == 0
    code, found = shell("diff", "a", "b")
    assert (code, found["verdict"]) == (1, "refused")
    assert "cold control" in found["reason"]
    assert shell("correct", "a~0", "--retract", "--for", "fun", "--reason", "r", "--yes")[0] == 2


def test_two_corrections_to_different_ends_are_a_conflict_until_a_third_settles_it(shell, made, build: Builder) -> None:  # type: ignore[no-untyped-def]  # fixtures above
    for other in ("a2", "b1"):
        build.writer.record(
            Correction(action=CorrectionKind.SUPERSEDE, targets=(made["a1"],), replacements=(made[other],), reason="r", by="x")
        )
    code, found = shell("corrections")
    assert (code, [item["receipt"] for item in found["conflicts"]]) == (1, [made["a1"]])
    code, found = shell("verify")
    assert (code, [item["code"] for item in found["findings"]]) == (1, ["conflict"])
    first = shell("corrections")[1]["corrections"][0]["correction"]
    assert shell("correct", first, "--retract", "--reason", "settled", "--yes")[0] == 0
    assert shell("corrections")[0] == 0
    assert shell("verify")[0] == 0
    assert [item["in_force"] for item in shell("corrections")[1]["corrections"]].count(False) == 1
