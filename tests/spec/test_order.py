"""Orders: what each does with rounds, which boots it adds and why, and that nothing but the seed moves a random one."""

from collections import Counter

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.core.words import Role
from ledger.spec.model import ORDERS, Arm, Rule, Spec
from ledger.spec.order import slots

CONTROL = Arm(id="C", lane="L", role=Role.CONTROL)
A, B = (Arm(id=name, base="C") for name in "AB")


def spec(order: str, *arms: Arm, seed: int = 0, rule: Rule | None = None) -> Spec:
    return Spec(ledger=1, name="s", question="q", lanes={}, arms=arms, measures={}, order=order, order_seed=seed, rule=rule)


def laid_out(order: str, *arms: Arm, seed: int = 0, rule: Rule | None = None, narrowed: bool = False) -> str:
    return "".join(slot.arm.id for slot in slots(spec(order, *arms, seed=seed, rule=rule), arms, narrowed=narrowed))


def boots(arm: Arm, number: int) -> Arm:
    return attrs.evolve(arm, boots=number)


@pytest.mark.parametrize(
    ("order", "once", "twice"),
    [("written", "ACB", "ACBACB"), ("bracketed", "CABC", "CABCABC"), ("abba", "ACBBCA", "ACBBCA")],
)
def test_each_order_lays_out_its_rounds(order: str, once: str, twice: str) -> None:
    assert laid_out(order, A, CONTROL, B) == once
    assert laid_out(order, *(boots(arm, 2) for arm in (A, CONTROL, B))) == twice


def test_three_rounds_there_and_back_get_a_fourth() -> None:
    assert laid_out("abba", boots(CONTROL, 3), boots(A, 3)) == "CAACCAAC"


def test_an_added_boot_says_why_and_none_is_added_to_a_narrowed_run() -> None:
    last = slots(spec("bracketed", CONTROL, A), (CONTROL, A))[-1]
    assert last.arm is CONTROL
    assert "drift" in (last.added or "")
    assert laid_out("bracketed", CONTROL, A, narrowed=True) == "CA"
    assert laid_out("abba", CONTROL, A, narrowed=True) == "CA"


def test_the_control_of_the_rule_brackets_whatever_its_role() -> None:
    rule = Rule(metrics=("C1",), controls={"B": "A"})
    assert laid_out("bracketed", CONTROL, A, B, rule=rule) == "CABCA"


def test_a_control_alone_needs_no_bracket() -> None:
    assert laid_out("bracketed", CONTROL) == "C"


def test_a_seed_fixes_a_random_order_for_ever() -> None:
    arms = tuple(boots(Arm(id=name, lane="L"), 2) for name in "CDEFGH")
    assert laid_out("random", *arms, seed=7) == laid_out("random", *reversed(arms), seed=7) == "FCEHGDGEDFHC"
    assert len({laid_out("random", *arms, seed=seed) for seed in range(20)}) == 20


def test_a_control_that_would_be_the_first_on_empty_caches_is_booted_again() -> None:
    rule = Rule(metrics=("C1",), control="C")
    caches = dict.fromkeys("CAB", "L")
    made = slots(spec("written", CONTROL, A, B, rule=rule), (CONTROL, A, B), caches=caches)
    assert "".join(slot.arm.id for slot in made) == "CCAB"
    assert "lane L empty" in (made[1].added or "")


@pytest.mark.parametrize(
    ("order", "arms", "caches"),
    [
        ("written", (CONTROL, A), ""),
        ("written", (A, CONTROL), "AC"),
        ("written", (boots(CONTROL, 2), A), "AC"),
        ("bracketed", (CONTROL, A), "AC"),
    ],
)
def test_a_control_that_is_warm_anyway_is_not(order: str, arms: tuple[Arm, ...], caches: str) -> None:
    rule = Rule(metrics=("C1",), control="C")
    named = spec(order, *arms, rule=rule)
    assert slots(named, arms, caches=dict.fromkeys(caches, "L")) == slots(named, arms)


@given(st.sampled_from(ORDERS), st.lists(st.integers(1, 4), min_size=1, max_size=6), st.integers(0, 99))
def test_what_was_asked_for_is_booted_in_rounds_and_the_rest_is_marked(order: str, wanted: list[int], seed: int) -> None:
    arms = tuple(
        Arm(id=f"a{index}", lane="L", boots=number, role=Role.CONTROL if index == 0 else Role.CANDIDATE)
        for index, number in enumerate(wanted)
    )
    found = slots(spec(order, *arms, seed=seed), arms)
    asked = Counter(slot.arm.id for slot in found if slot.added is None)
    assert asked == {arm.id: arm.boots for arm in arms}
    assert [slot.round for slot in found] == sorted(slot.round for slot in found)
    assert max(Counter((slot.arm.id, slot.round) for slot in found).values()) == 1
