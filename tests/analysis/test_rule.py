"""The KEEP rule: what it keeps, what it cannot judge, and that noise is not an effect."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.analysis.rule import Judgement, Limits, Sides, judge
from ledger.core.words import Verdict

LIMITS = Limits(metrics=("C1", "C6", "prefill@500"), better_than=0.02, worse_than=0.02)
BASE = {"C1": [100.0], "C6": [300.0], "prefill@500": [6000.0]}


def said(blocked: tuple[str, ...] = (), **arm: Sequence[float]) -> Judgement:
    values = {**BASE, **{name.replace("_", "@"): list(value) for name, value in arm.items()}}
    return judge(LIMITS, Sides(arm=values, control=BASE, blocked=blocked))


@pytest.mark.parametrize(
    ("arm", "verdict"),
    [
        ({}, Verdict.REVERT),
        ({"C1": [103.0]}, Verdict.KEEP),
        ({"C1": [101.9]}, Verdict.REVERT),
        ({"C1": [103.0], "C6": [293.0]}, Verdict.REVERT),
        ({"C1": [103.0], "C6": [295.0]}, Verdict.KEEP),
        ({"prefill_500": [6130.0]}, Verdict.KEEP),
        ({"C1": [97.0]}, Verdict.REVERT),
        ({"C1": []}, Verdict.INCONCLUSIVE),
        ({"C1": [], "C6": [200.0]}, Verdict.REVERT),
    ],
)
def test_one_better_and_none_worse_is_kept(arm: dict[str, list[float]], verdict: Verdict) -> None:
    assert said(**arm).verdict is verdict


def test_a_blocked_arm_gets_no_verdict_and_says_why() -> None:
    found = said(blocked=("gate 'memory' fail",), C1=[150.0])
    assert (found.verdict, found.reasons) == (Verdict.BLOCKED, ("gate 'memory' fail",))


def test_an_effect_inside_the_noise_band_is_not_an_effect() -> None:
    noisy = judge(LIMITS, Sides(arm={**BASE, "C1": [90.0, 120.0]}, control={**BASE, "C1": [95.0, 105.0]}))
    assert noisy.verdict is Verdict.REVERT
    assert any("inside the noise band" in reason for reason in noisy.reasons)


def test_one_boot_a_side_is_said() -> None:
    assert any("one boot a side" in reason for reason in said(C1=[103.0]).reasons)


def test_a_metric_that_is_missing_is_named() -> None:
    assert any("C1 was not measured on both sides" in reason for reason in said(C1=[]).reasons)


def test_a_lower_time_is_better() -> None:
    limits = Limits(metrics=("ttft@C1",), better_than=0.02, worse_than=0.02)
    faster = judge(limits, Sides(arm={"ttft@C1": [0.9]}, control={"ttft@C1": [1.0]}))
    slower = judge(limits, Sides(arm={"ttft@C1": [1.1]}, control={"ttft@C1": [1.0]}))
    assert (faster.verdict, slower.verdict) == (Verdict.KEEP, Verdict.REVERT)


@given(st.floats(min_value=50, max_value=200), st.floats(min_value=50, max_value=200))
def test_no_arm_is_kept_that_is_worse_in_anything(c1: float, c6: float) -> None:
    found = said(C1=[c1], C6=[c6 * 3])
    if c1 < 98 or c6 < 98:
        assert found.verdict is Verdict.REVERT
    assert {effect.metric for effect in found.effects} == set(LIMITS.metrics)
