"""B77 to B84: prompts that were seen before."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.instruments.base import Request, StreamRecord
from ledger.instruments.openai import chat, filler
from ledger.instruments.registry import get, names
from tests.instruments.streams import end, record, reduced, text, words_and_template

PREFILL = "openai/prefill"


def prompts(name: str, seed: str) -> list[str]:
    """Every prompt of a default plan, as the one text that a prefix cache sees."""
    plan = get(name).plan({}, model="m", seed=seed, tokenize=words_and_template)
    return ["\n".join(said["content"] for said in each.body["messages"]) for wave in plan.waves for each in wave.requests]


def shared(first: str, second: str) -> int:
    """Characters that two prompts have in common at the front."""
    return next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second)))


@pytest.mark.parametrize("name", sorted({"openai/decode", PREFILL} & set(names())))
@given(seed=st.text(max_size=20))
def test_b77_b81_b84_no_two_prompts_of_a_trial_begin_alike(name: str, seed: str) -> None:
    ordered = sorted(prompts(name, seed))
    assert len(set(ordered)) == len(ordered)
    assert max(shared(a, b) for a, b in pairwise(ordered)) < 8


@pytest.mark.parametrize("name", ["openai/decode", PREFILL])
def test_b77_other_seeds_are_other_prompts_and_equal_seeds_equal_ones(name: str) -> None:
    assert prompts(name, "one") == prompts(name, "one")
    assert not set(prompts(name, "one")) & set(prompts(name, "two"))


def test_b80_prompts_are_counted_without_a_request() -> None:
    """The count is a function handed in; nothing that could fill the cache is sent while planning."""
    seen: list[int] = []

    def count(messages: Sequence[object]) -> int:
        seen.append(len(messages))
        return words_and_template(messages)

    filler.fit(300, seed="s", tokenize=count)
    assert 0 < len(seen) < 30


def timed(length: int, rates: Sequence[float], cached: Sequence[int | None]) -> dict[str, StreamRecord]:
    """One-token replies at those rates, by request."""
    return {
        f"prefill@{length}/{n}": record((1000 * length / rate, text("a")), (1000 * length / rate + 1, end(1, length, cached=hit)))
        for n, (rate, hit) in enumerate(zip(rates, cached, strict=True), start=1)
    }


def rung(rates: Sequence[float], cached: Sequence[int | None], length: int = 2000) -> tuple[object, ...]:
    """Value, n, state and marks of a rung, and the trial's own state."""
    answers = timed(length, rates, cached)

    def answer(sent: Request) -> StreamRecord:
        return answers[sent.id]

    reading = reduced(PREFILL, {"lengths": [length], "repeats": len(rates)}, answer)
    figure = reading.figures[f"prefill@{length}"]
    value = None if figure.value is None else round(figure.value)
    return value, figure.n, figure.conditions.get("prefix_cache"), figure.marks, reading.conditions.get("prefix_cache")


def test_b78_cold_by_the_servers_own_count() -> None:
    assert rung([200, 210, 220], [0, 3, 0]) == (210, 3, "cold", (), "cold")


def test_b78_a_hit_by_the_servers_own_count_is_left_out_and_told() -> None:
    left = ("1 of 3 repeats left out: prefix cache",)
    assert rung([200, 210, 9000], [0, 0, 1999]) == (205, 2, "cold", left, "hit")


def test_b78_only_hits_are_a_figure_of_hits() -> None:
    assert rung([9000, 9100, 9200], [1999, 1999, 1999]) == (9100, 3, "hit", (), "hit")


def test_b83_a_repeat_much_faster_than_its_sibling_is_a_hit_where_the_server_says_nothing() -> None:
    left = ("1 of 2 repeats left out: prefix cache",)
    assert rung([3654, 12542], [None, None]) == (3654, 1, "unproven", left, "hit")
    assert rung([200, 210, 220], [None, None, None]) == (210, 3, "unproven", (), "unproven")


def test_b83_where_the_server_says_cold_a_spread_is_marked_not_judged() -> None:
    assert rung([100, 210, 220], [0, 0, 0]) == (210, 3, "cold", ("repeats differ by 2.2x",), "cold")


@pytest.mark.parametrize(
    ("cached", "prompt", "hit"),
    [(None, 500, None), (0, 500, False), (15, 40, False), (16, 40, True), (16, 2000, False), (21, 2000, True)],
)
def test_b78_the_threshold_is_one_percent_beyond_the_templates_own_words(
    cached: int | None, prompt: int, hit: bool | None
) -> None:
    assert chat.cache_hit(cached, prompt) is hit


def test_llama_cpp_tells_it_in_timings() -> None:
    told = record((10, text("a")), (11, end(1, 500).replace(b'"choices": [], ', b'"choices": [], "timings": {"cache_n": 499}, ')))
    reading = reduced(PREFILL, {"lengths": [500], "repeats": 1}, lambda _: told)
    assert reading.conditions == {"prefix_cache": "hit"}


def test_a_failed_repeat_fails_alone_and_is_told() -> None:
    answers = timed(500, [200, 220, 300], [0, 0, 0]) | {"prefill@500/3": record(status=500)}
    reading = reduced(PREFILL, {"lengths": [500]}, lambda sent: answers[sent.id])
    figure = reading.figures["prefill@500"]
    assert (figure.value, figure.n, figure.marks) == (pytest.approx(210), 2, ("1 of 3 repeats left out: http 500",))
    assert (reading.ok, reading.failed) == (2, 1)


def test_a_decode_trial_says_whether_its_prompts_were_seen() -> None:
    parameters = {"levels": [1], "categories": ["math"]}
    for cached, state in ((0, "cold"), (30, "hit"), (None, "unproven")):
        got = record((100, text("a")), (200, text("b")), (201, end(2, 40, cached=cached)))
        assert reduced("openai/decode", parameters, lambda _, got=got: got).conditions == {"prefix_cache": state}
