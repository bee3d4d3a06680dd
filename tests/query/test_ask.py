"""Answers: pooling by boot, rows kept apart by evidence and cache, marks, corrections, and a slow reference."""

import shutil
import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.core.words import CorrectionKind, Evidence
from ledger.query import ask as asking
from ledger.query.ask import Answer, answer
from ledger.query.index import open_index
from ledger.query.language import QueryError, parse
from ledger.receipt.model import Correction, Figure, Trial
from ledger.store.ledger import Ledger
from tests.builder import BEGINNING, Builder, new_ledger
from tests.query import reference


def ask(ledger: Ledger, question: str, *, show_struck: bool = False) -> Answer:
    with open_index(ledger) as connection:
        return answer(connection, parse(question), show_struck=show_struck)


def values(found: Answer) -> dict[str, float]:
    return {"/".join((*row.dims.values(), row.metric)): row.value for row in found.rows}


def test_a_boot_counts_once_however_many_trials_it_has(ledger: Ledger, build: Builder) -> None:
    one, two = build.boot("a"), build.boot("a")
    for value in (10.0, 11.0, 12.0):
        build.trial(one, "a", {"C6": value})
    build.trial(two, "a", {"C6": 21.0})
    (row,) = ask(ledger, "C6 by arm").rows
    assert (row.value, row.low, row.high, row.n_boots, row.unit) == (16.0, 11.0, 21.0, 2, "tok/s")


def test_evidence_is_never_averaged_together(ledger: Ledger, build: Builder) -> None:
    build.arm("a", {"C6": 10.0})
    build.arm("a", {"C6": 500.0}, evidence="stand-in")
    found = ask(ledger, "C6 by arm")
    assert [(row.evidence, row.value) for row in found.rows] == [("measured", 10.0), ("stand-in", 500.0)]
    assert "stand-in" in found.rows[1].marks


def test_what_the_prefix_cache_answered_stands_apart(ledger: Ledger, build: Builder) -> None:
    boot = build.boot("a")
    build.trial(boot, "a", {"prefill@500": 100.0}, measure="prefill", conditions={"prefix_cache": "cold"})
    build.trial(boot, "a", {"prefill@500": 9000.0}, measure="prefill", conditions={"prefix_cache": "hit"}, number=2)
    found = ask(ledger, "prefill@500 by arm")
    assert sorted((row.value, "hit" in row.marks) for row in found.rows) == [(100.0, False), (9000.0, True)]
    assert len(ask(ledger, "prefill@500 by arm not:hit").rows) == 1


def test_marks_are_on_every_row_that_earns_them(ledger: Ledger, build: Builder) -> None:
    boot = build.boot("a", agreement="differs")
    build.trial(boot, "a", {"C6": 1.0}, n=1, marks=("starts 9.0 ms apart",))
    build.trial(build.boot("b", identity={"x": "1"}), "b", {"C6": 1.0})
    build.trial(build.boot("b", identity={"x": "2"}), "b", {"C6": 1.0})
    build.trial(build.boot("c"), "c", {"C6": 1.0}, version=1)
    build.trial(build.boot("c"), "c", {"C6": 1.0}, version=2)
    first, second, third = ask(ledger, "C6 by arm").rows
    assert first.marks == ("n=1 boot", "single shot", "unverified", "starts 9.0 ms apart")
    assert second.marks == ("mixed config (2)",)
    assert third.marks == ("mixed definition (2)",)


def test_two_specs_with_the_same_arm_do_not_mix(ledger: Ledger) -> None:
    Builder(ledger, spec="one", token="0001").arm("a", {"C6": 1.0})
    Builder(ledger, spec="two", token="0002").arm("a", {"C6": 9.0})
    found = ask(ledger, "C6 by arm")
    assert found.dims == ("spec", "arm")
    assert values(found) == {"one/a/C6": 1.0, "two/a/C6": 9.0}
    assert values(ask(ledger, "C6 by arm spec:two")) == {"a/C6": 9.0}


@pytest.fixture
def many(ledger: Ledger, build: Builder) -> Ledger:
    for lane, arm, factor in (("B", "B0", 1.0), ("B", "B1", 2.0), ("C", "C0", 4.0)):
        build.arm(arm, {"C1": 10 * factor, "C2": 20 * factor, "C10": 100 * factor, "ttft@C1": 0.5, "C1/code": 7.0}, lane=lane)
    return ledger


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("C1 by arm", {"B0/C1": 10.0, "B1/C1": 20.0, "C0/C1": 40.0}),
        ("C1 by lane", {"B/C1": 15.0, "C/C1": 40.0}),
        ("C1..C2 of C", {"C0/C1": 40.0, "C0/C2": 80.0}),
        ("C1..C10 of B0", {"B0/C1": 10.0, "B0/C2": 20.0, "B0/C10": 100.0}),
        ("C* of B0", {"B0/C1": 10.0, "B0/C1/code": 7.0, "B0/C2": 20.0, "B0/C10": 100.0}),
        ("C1/code arm:C0", {"C0/C1/code": 7.0}),
        ("C1 arm:B*", {"B0/C1": 10.0, "B1/C1": 20.0}),
        ("C1 by lane n>=2", {"B/C1": 15.0}),
        ("C1 by lane n<2", {"C/C1": 40.0}),
        ("C1 of C / C1 of B0", {"C1": 4.0}),
        ("C2 / C1 by arm", {"B0/C2 / C1": 2.0, "B1/C2 / C1": 2.0, "C0/C2 / C1": 2.0}),
        ("C1 by role", {"candidate/C1": 20.0}),
        ("C1 of B0 date:2026-10-18", {"B0/C1": 10.0}),
    ],
)
def test_what_the_language_says_is_what_is_answered(many: Ledger, question: str, expected: dict[str, float]) -> None:
    assert values(ask(many, question)) == expected


def test_rows_are_in_reading_order(many: Ledger) -> None:
    assert [row.metric for row in ask(many, "C10, C2, C1 of B0").rows] == ["C1", "C2", "C10"]


@pytest.mark.parametrize(
    ("question", "hint"),
    [
        ("C3 by arm", "did you mean 'C"),
        ("prefil@500 by arm", "known: "),
        ("C1 of Z", "known: B, B0, B1, C, C0"),
        ("C1 lane:c", "did you mean 'C'"),
        ("C1 evidence:measurd", "did you mean 'measured'"),
        ("C1, C1O by arm", "did you mean 'C1"),
        ("C1, ttft@C9 by arm", "did you mean 'ttft@C1'"),
        ("C1 of B0,B9", "did you mean 'B"),
        ("C1 arm:B0,B9", "did you mean 'B"),
        ("C1 not:unverifed", "did you mean 'unverified'"),
        ("C1 measure:decod", "did you mean 'decode'"),
        ("C1 role:candidat", "did you mean 'candidate'"),
        ("C1 date:2026-10-81", "did you mean '2026-10-18'"),
        ("C1 boot:123456789abc", "no boot begins with these digits"),
        ("C1 / C9 of B9", "did you mean"),
        ("C1 as-of:yesterday", "write a date"),
    ],
)
def test_an_unknown_name_offers_the_nearest(many: Ledger, question: str, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        ask(many, question)
    assert hint in str(caught.value)


@pytest.mark.parametrize("question", ["X* by arm", "C1 of Z*", "C1 arm:Z*", "C50..C60 by arm"])
def test_a_wildcard_or_a_range_of_a_known_family_may_match_nothing(many: Ledger, question: str) -> None:
    assert ask(many, question).rows == ()


@pytest.mark.parametrize(
    ("word", "arms"),
    [
        ("unverified", "bcdefg"),
        ("n=1", "b"),
        ("single-shot", "abdefg"),
        ('"single shot"', "abdefg"),
        ("hit", "abcefg"),
        ("unproven", "abcdfg"),
        ("mixed", "acdefg"),
        ("stand-in", "abcdeg"),
        ("warm", "abcdef"),
        ("superseded", "abcdefg"),
    ],
)
def test_not_takes_away_what_carries_the_mark(ledger: Ledger, build: Builder, word: str, arms: str) -> None:
    build.trial(build.boot("a", agreement="differs"), "a", {"C6": 1.0})
    build.trial(build.boot("b", identity={"x": "1"}), "b", {"C6": 1.0})
    build.trial(build.boot("b", identity={"x": "2"}), "b", {"C6": 1.0})
    build.trial(build.boot("c"), "c", {"C6": 1.0}, n=1)
    build.trial(build.boot("d"), "d", {"C6": 1.0}, conditions={"prefix_cache": "hit"})
    build.trial(build.boot("e"), "e", {"C6": 1.0}, conditions={"prefix_cache": "unproven"})
    build.trial(build.boot("f", evidence=Evidence.STAND_IN), "f", {"C6": 1.0}, evidence=Evidence.STAND_IN)
    build.trial(build.boot("g"), "g", {"C6": 1.0}, marks=("warm",))
    assert "".join(row.dims["arm"] for row in ask(ledger, f"C6 by arm not:{word}").rows) == arms


@pytest.mark.parametrize("question", ["C* by arm", "C1..C10, ttft@C1 by lane", "*, C1 by arm", "C* of C / C* of B0"])
def test_a_wide_question_is_answered_in_portions_as_it_is_at_once(
    many: Ledger, question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ask(many, question)
    assert len(whole.rows) >= 4
    for size in (1, 4):
        monkeypatch.setattr(asking, "PORTION", size)
        assert ask(many, question) == whole


def test_an_absent_figure_is_told_with_its_reason(ledger: Ledger, build: Builder) -> None:
    boot, trial = build.arm("a", {"C1": 1.0})
    body = ledger.read(trial).body
    assert isinstance(body, Trial)
    build.writer.record(evolve(body, boot=boot, number=2, figures={"C6": Figure(unit="tok/s", absent="1 of 6 failed")}))
    found = ask(ledger, "C1, C6 by arm")
    assert values(found) == {"a/C1": 1.0}
    (missing,) = found.missing
    assert (missing.metric, missing.reason, missing.trials, dict(missing.dims)) == ("C6", "1 of 6 failed", 1, {"arm": "a"})


def correct(build: Builder, action: CorrectionKind, *targets: str, to: str | None = None) -> str:
    return build.writer.record(
        Correction(action=action, targets=targets, replacements=(to,) if to else (), reason="because", by="A Tester")
    )


def test_a_superseded_figure_is_left_out_counted_and_shown_when_asked(ledger: Ledger, build: Builder) -> None:
    _, old = build.arm("a", {"C6": 1.0})
    _, new = build.arm("a", {"C6": 2.0})
    correct(build, CorrectionKind.SUPERSEDE, old, to=new)
    found = ask(ledger, "C6 by arm")
    assert (values(found), found.left_out) == ({"a/C6": 2.0}, 1)
    shown = ask(ledger, "C6 by arm", show_struck=True)
    assert [(row.value, row.struck) for row in shown.rows] == [(2.0, None), (1.0, "supersede")]


def test_a_retracted_boot_takes_its_trials_along_and_a_reinstatement_brings_them_back(ledger: Ledger, build: Builder) -> None:
    boot, _ = build.arm("a", {"C6": 1.0})
    done = correct(build, CorrectionKind.RETRACT, boot)
    assert ask(ledger, "C6 by arm").rows == ()
    correct(build, CorrectionKind.REINSTATE, done)
    assert values(ask(ledger, "C6 by arm")) == {"a/C6": 1.0}


def test_as_of_a_day_before_the_correction_shows_what_was_true(ledger: Ledger) -> None:
    first = Builder(ledger, token="0001", when=BEGINNING)
    _, old = first.arm("a", {"C6": 1.0})
    later = Builder(ledger, token="0002", when=BEGINNING + timedelta(days=2))
    _, new = later.arm("a", {"C6": 2.0})
    correct(later, CorrectionKind.SUPERSEDE, old, to=new)
    assert values(ask(ledger, "C6 by arm")) == {"a/C6": 2.0}
    assert values(ask(ledger, "C6 by arm as-of:2026-10-19")) == {"a/C6": 1.0}
    assert values(ask(ledger, "C6 by arm as-of:2026-10-18T12:00:30Z")) == {"a/C6": 1.0}
    assert values(ask(ledger, "C6 by arm as-of:2026-10-20")) == {"a/C6": 2.0}


STEP = st.tuples(
    st.sampled_from(["a", "b"]),
    st.sampled_from([Evidence.MEASURED, Evidence.STAND_IN]),
    st.lists(st.integers(1, 99), min_size=1, max_size=3),
    st.sampled_from(["cold", "hit"]),
    st.sampled_from([None, CorrectionKind.RETRACT, CorrectionKind.CONCERN, CorrectionKind.REINSTATE]),
    st.integers(0, 10_000),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEP, min_size=1, max_size=8), st.integers(0, 60))
def test_the_answer_is_the_slow_references_now_and_on_any_day(steps: list[tuple], seconds: int) -> None:  # type: ignore[type-arg]  # hypothesis' tuples
    folder = Path(tempfile.mkdtemp())
    try:
        ledger = new_ledger(folder / "repo")
        build = Builder(ledger)
        made: list[str] = []
        for arm, evidence, figures, cache, action, pick in steps:
            boot = build.boot(arm, evidence=evidence)
            made.append(boot)
            for number, value in enumerate(figures, start=1):
                found = build.trial(
                    boot, arm, {"C6": float(value)}, evidence=evidence, number=number, conditions={"prefix_cache": cache}
                )
                made.append(found)
            if action is not None:
                made.append(correct(build, action, made[pick % len(made)]))
        until = (BEGINNING + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
        for moment, question in ((None, "C6 by arm"), (until, f"C6 by arm as-of:{until}")):
            rows = ask(ledger, question).rows
            seen = {
                (row.spec, row.dims["arm"], row.evidence, "hit" in row.marks): (row.value, row.low, row.high, row.n_boots)
                for row in rows
            }
            wanted = {
                key: (cell.value, cell.low, cell.high, cell.n) for key, cell in reference.by_arm(ledger, "C6", moment).items()
            }
            assert seen == wanted
    finally:
        shutil.rmtree(folder)
