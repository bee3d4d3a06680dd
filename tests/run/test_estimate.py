"""The estimate of a plan: the sum of what its boots take at the site's speeds, or none at all."""

from pathlib import Path

import pytest

from ledger.run.estimate import boot_seconds, estimate
from ledger.run.session import find_instruments
from ledger.spec.load import load_site, load_spec, read_site, read_spec
from ledger.spec.plan import Plan, make_plan

SPECS = Path(__file__).resolve().parents[2] / "specs"
SPEC = (SPECS / "smollm2.toml").read_text()
SITE = (SPECS / "sites/laptop.toml").read_text()
SPEEDS = ("boot_s = 4", "prefill_tok_s = 120", "decode_tok_s = 40")


def planned(spec: str = SPEC, site: str = SITE) -> Plan:
    return make_plan(read_spec(spec.encode(), "spec.toml"), read_site(site.encode(), "site.toml"))


def seconds(plan: Plan) -> float:
    found = estimate(plan, find_instruments(plan))
    assert found is not None
    return found


def test_a_plan_takes_as_long_as_its_boots() -> None:
    plan = planned()
    each = [boot_seconds(boot, find_instruments(plan), plan.site.speed) for boot in plan.boots]
    assert seconds(plan) == pytest.approx(sum(each))  # type: ignore[arg-type]  # none is None: the site gives all speeds
    assert len(each) == 10


def test_a_boot_is_its_start_and_the_tokens_of_its_trials() -> None:
    plan = planned()
    instruments = find_instruments(plan)
    tokens = [instruments[measure.uses].size(measure.parameters) for measure in plan.boots[0].measures]
    prompt, completion = (sum(each) for each in zip(*tokens, strict=True))
    assert prompt > 3 * 500
    assert completion > 32
    assert boot_seconds(plan.boots[0], instruments, plan.site.speed) == pytest.approx(4 + prompt / 120 + completion / 40)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("boots = 2", "boots = 3"),
        ("max_tokens = 32", "max_tokens = 64"),
        ("levels = [1, 2, 4, 6]", "levels = [1, 2, 4, 6, 8]"),
        ("lengths = [500]", "lengths = [500, 1000]"),
        ("repeats = 3", "repeats = 4"),
        ("repeats = 3", "repeats = 3\ntrials = 2"),
    ],
)
def test_more_work_takes_longer(old: str, new: str) -> None:
    assert old in SPEC
    assert seconds(planned(SPEC.replace(old, new))) > seconds(planned())


def test_a_second_trial_takes_as_long_as_the_first() -> None:
    once, twice = planned(), planned(SPEC.replace("\n\n[measures.prefill]", "\ntrials = 2\n\n[measures.prefill]"))
    measure = once.boots[0].measures[0]
    prompt, completion = find_instruments(once)[measure.uses].size(measure.parameters)
    assert seconds(twice) - seconds(once) == pytest.approx(10 * (prompt / 120 + completion / 40))


@pytest.mark.parametrize("line", SPEEDS)
def test_without_every_speed_there_is_no_estimate(line: str) -> None:
    plan = planned(site=SITE.replace(line, ""))
    assert estimate(plan, find_instruments(plan)) is None
    assert boot_seconds(plan.boots[0], find_instruments(plan), plan.site.speed) is None


@pytest.mark.parametrize(("line", "slower"), zip(SPEEDS, ("boot_s = 8", "prefill_tok_s = 60", "decode_tok_s = 20"), strict=True))
def test_a_slower_machine_takes_longer(line: str, slower: str) -> None:
    assert seconds(planned(site=SITE.replace(line, slower))) > seconds(planned())


def test_what_stands_in_is_estimated_as_it_is_scaled() -> None:
    spec, site = load_spec(SPECS / "round2.toml"), load_site(SPECS / "sites/laptop.toml")
    full = read_site(SITE.replace("lengths = [256]", "lengths = [2000, 93335]").encode(), "site.toml")
    assert seconds(make_plan(spec, site)) < 600 < seconds(make_plan(spec, full))
