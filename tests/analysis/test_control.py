"""Which control qualifies: each way it may not, what is then named as the mend, and what no order or shift of time changes."""

from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.analysis.control import BootFacts, Bounds, Pairing, pair, span

HOUR = 3600.0
BOUNDS = Bounds(age_s=12 * HOUR, drift=0.1, alike=("jit_cache",))
ARM = BootFacts(
    digest="sha256:" + "a" * 64,
    config="arm",
    at=10 * HOUR,
    nodes=("n0",),
    conditions={"jit_cache": "warm", "host_boot": "h1"},
    values={"C1": 100.0},
    seconds=60.0,
)
CONTROL = attrs.evolve(ARM, digest="sha256:" + "c" * 64, config="base", at=9 * HOUR, seconds=120.0)


def paired(arm: Sequence[BootFacts], control: Sequence[BootFacts], base: str | None = "base", now: float = 11 * HOUR) -> Pairing:
    return pair(arm, control, names=("B1", "C0"), base=base, bounds=BOUNDS, now=now)


def state(cache: str, host: str = "h1") -> dict[str, str]:
    return {"jit_cache": cache, "host_boot": host}


def test_a_warm_control_of_the_same_window_qualifies() -> None:
    found = paired([ARM], [CONTROL])
    assert (found.arm, found.control) == ((ARM.digest,), (CONTROL.digest,))
    assert (found.refused, found.left_out, found.remarks, found.mend) == ((), (), (), None)


@pytest.mark.parametrize(
    ("change", "words", "mend"),
    [
        ({"conditions": state("cold")}, "its jit_cache was cold and the arm's warm", "one warm reboot of C0, about 2 min"),
        ({"config": "other"}, "not that of the arm's base", "name a control that boots what the arm's base boots"),
        ({"nodes": ("n1",)}, "it ran on n1 and the arm on n0", "one warm reboot of C0, about 2 min"),
        (
            {"conditions": state("warm", "h0")},
            "a node was restarted between it and the arm",
            "one warm reboot of C0 and one of B1 in one window, about 3 min",
        ),
        ({"at": -3 * HOUR}, "it lies 13 h from the arm, and at most 12 h", "one warm reboot of C0, about 2 min"),
    ],
)
def test_each_way_not_to_qualify_is_told_with_its_mend(change: dict[str, object], words: str, mend: str) -> None:
    found = paired([ARM], [attrs.evolve(CONTROL, **change)])
    assert (found.arm, found.control) == ((), ())
    assert words in " ".join(found.refused)
    assert (found.mend or "").startswith(mend)


def test_an_arm_whose_window_has_closed_is_booted_again_too() -> None:
    cold = attrs.evolve(CONTROL, conditions=state("cold"))
    assert paired([ARM], [cold], now=40 * HOUR).mend == "one warm reboot of C0 and one of B1 in one window, about 3 min"


def test_a_control_that_drifts_is_no_control() -> None:
    later = attrs.evolve(CONTROL, digest="sha256:" + "d" * 64, values={"C1": 112.0})
    found = paired([ARM], [CONTROL, later])
    assert "drifted by 11.3% in C1" in " ".join(found.refused)
    assert found.mend == "one warm reboot of C0 and one of B1 in one window, about 3 min"
    assert not paired([ARM], [CONTROL, attrs.evolve(later, values={"C1": 109.0})]).refused


def test_what_one_boot_did_not_qualify_for_another_may() -> None:
    cold = attrs.evolve(CONTROL, digest="sha256:" + "d" * 64, conditions=state("cold"), values={"C1": 30.0})
    found = paired([ARM], [cold, CONTROL])
    assert found.control == (CONTROL.digest,)
    assert "was cold" in found.left_out[0]
    assert found.refused == ()


def test_a_cold_boot_of_the_arm_is_left_out_and_told() -> None:
    cold = attrs.evolve(ARM, digest="sha256:" + "e" * 64, conditions=state("cold"))
    found = paired([cold, ARM], [CONTROL])
    assert found.arm == (ARM.digest,)
    assert "not in the state of its latest boot" in found.left_out[0]


def test_an_arm_boot_outside_every_window_is_left_out_and_told() -> None:
    old = attrs.evolve(ARM, digest="sha256:" + "e" * 64, at=-20 * HOUR)
    found = paired([old, ARM], [CONTROL])
    assert found.arm == (ARM.digest,)
    assert "no control in its window" in found.left_out[0]


@pytest.mark.parametrize("cache", ["unknown", None])
def test_what_is_not_known_refuses_nothing_and_is_told(cache: str | None) -> None:
    conditions = {"jit_cache": cache} if cache else {}
    found = paired([ARM], [attrs.evolve(CONTROL, conditions=conditions, at=None)], base=None)
    assert found.control == (CONTROL.digest,)
    assert "not compared: jit_cache, host_boot" in found.remarks[0]
    assert "no boot of the arm's base" in found.remarks[1]


def test_without_boots_there_is_nothing_to_pair() -> None:
    assert paired([], [CONTROL]) == paired([ARM], []) == Pairing()


BOOTS = st.lists(
    st.tuples(
        st.floats(0, 48 * HOUR), st.sampled_from(["cold", "warm", "unknown"]), st.sampled_from(["h1", "h2"]), st.floats(95, 105)
    ),
    min_size=1,
    max_size=5,
)


def boots(rows: list[tuple[float, str, str, float]], config: str) -> list[BootFacts]:
    return [
        BootFacts(digest=f"sha256:{config}{index:060}", config=config, at=at, conditions=state(cache, host), values={"C1": value})
        for index, (at, cache, host, value) in enumerate(rows)
    ]


@given(BOOTS, BOOTS, st.floats(-1e6, 1e6).map(round))
def test_every_boot_is_counted_or_told_and_only_distances_in_time_matter(
    arm: list[tuple[float, str, str, float]], control: list[tuple[float, str, str, float]], shift: int
) -> None:
    ours, theirs = boots(arm, "armm"), boots(control, "base")
    ours, theirs = ([attrs.evolve(boot, at=float(round(boot.at or 0))) for boot in side] for side in (ours, theirs))
    found = paired(ours, theirs, now=48 * HOUR)
    assert (found.mend is None) == bool(found.control) == bool(found.arm)
    if found.control:
        assert len(found.left_out) + len(found.arm) + len(found.control) == len(ours) + len(theirs)
    moved = [[attrs.evolve(boot, at=(boot.at or 0.0) + shift) for boot in side] for side in (ours, theirs)]
    assert paired(*moved, now=48 * HOUR + shift) == found


@given(BOOTS, BOOTS)
def test_a_wider_window_takes_no_control_away(
    arm: list[tuple[float, str, str, float]], control: list[tuple[float, str, str, float]]
) -> None:
    ours, theirs = boots(arm, "armm"), boots(control, "base")
    sizes = []
    for age in (1 * HOUR, 6 * HOUR, 24 * HOUR):
        bounds = attrs.evolve(BOUNDS, age_s=age, drift=1.0)
        found = pair(ours, theirs, names=("B1", "C0"), base="base", bounds=bounds, now=0.0)
        sizes.append(set(found.control))
    assert sizes[0] <= sizes[1] <= sizes[2]


@pytest.mark.parametrize(("seconds", "words"), [(0.2, "1 s"), (40, "40 s"), (120, "2 min"), (12 * HOUR, "12 h")])
def test_a_length_of_time_in_words(seconds: float, words: str) -> None:
    assert span(seconds) == words
