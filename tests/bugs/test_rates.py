"""B60 to B76: rates, gaps and totals."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.core.metrics import FAMILIES, describe
from ledger.instruments import rates
from ledger.instruments.rates import Missing
from ledger.instruments.stream import Reply, decode
from tests.instruments.streams import MS, end, good, record, reduced, reply, request, text, usage

DECODE = "openai/decode"


def test_b60_b61_the_wait_for_the_first_token_is_no_gap() -> None:
    got = decode(good(4, first_ms=500, gap_ms=20), request())
    assert got.chunk_gaps_ns == (20 * MS,) * 3


@pytest.mark.parametrize("number", [62, 63])
def test_b62_b63_rates_come_from_tokens_where_chunks_hold_several(number: int) -> None:
    """Ten chunks of three tokens: thirty tokens, not ten."""
    packed = reply(*((100 + 50 * i, text("a b c ")) for i in range(10)), (560, end(30)))
    assert rates.decode_tok_s(packed) == pytest.approx(29 / 0.45)
    assert rates.tokens_per_chunk([packed]) == 3
    reading = reduced(
        DECODE,
        {"levels": [1], "categories": ["math"]},
        lambda _: record(*((100 + 50 * i, text("a")) for i in range(10)), (560, end(30))),
    )
    assert "3.00 tokens per chunk" in reading.marks


def test_b62_the_first_chunks_tokens_are_taken_off_where_they_are_known() -> None:
    counted = reply(*((100 + 50 * i, text("a", usage=usage(5, 3 * i + 3))) for i in range(10)), (560, end(30)))
    assert rates.decode_tok_s(counted) == pytest.approx(27 / 0.45)


def test_b64_definitions_are_printed_and_hold_on_a_known_stream() -> None:
    got = decode(good(11, first_ms=100, gap_ms=20), request())
    assert rates.ttft_s(got) == pytest.approx(0.1)
    assert rates.e2e_s(got) == pytest.approx(0.3)
    assert rates.decode_tok_s(got) == pytest.approx(50)
    assert rates.tpot_ms(got) == pytest.approx(20)
    assert {"C", "per_stream", "ttft", "prefill", "steady", "tokens_per_chunk"} <= {family.name for family in FAMILIES}
    assert all(len(family.definition) > 20 for family in FAMILIES)


@pytest.mark.parametrize("tokens", [1, 2])
def test_b65_one_token_has_no_rate(tokens: int) -> None:
    rate = rates.decode_tok_s(decode(good(tokens, gap_ms=100), request()))
    assert rate == (Missing("1 token: a rate needs two") if tokens == 1 else pytest.approx(10))


@pytest.mark.parametrize("number", [66, 69])
def test_b66_b69_a_window_that_is_too_short_has_no_rate(number: int) -> None:
    burst = reply((200, text("a")), (200.1, text("b")), (200.5, text("c") * 4), (201, end(6)))
    assert isinstance(rates.decode_tok_s(burst), Missing)
    assert isinstance(rates.tpot_ms(burst), Missing)
    assert isinstance(rates.steady_tok_s([burst, burst]), Missing)
    assert isinstance(rates.aggregate_tok_s([reply((1, text("a")), (2, text("b") + end(2)))]), Missing)


@pytest.mark.parametrize("number", [67, 76])
def test_b67_b76_what_cannot_be_is_refused(number: int) -> None:
    assert isinstance(rates.ttft_s(reply((1e12, text("a") + end(1)))), Missing)
    assert isinstance(rates.ttft_s(reply((-5, text("a") + end(1)))), Missing)
    assert isinstance(
        rates.aggregate_tok_s([reply((100, text("a")), (200, text("b") + end(10**9)), asked=request(10**9))]), Missing
    )


def test_b68_first_tokens_are_not_divided_by_the_batch() -> None:
    reading = reduced(DECODE, {"levels": [4], "categories": ["math"]}, lambda _: good(first_ms=100))
    assert reading.figures["ttft@C4"].value == pytest.approx(0.1)


@pytest.mark.parametrize("number", [70, 103])
def test_b70_b103_every_family_has_its_unit_and_direction(number: int) -> None:
    assert [
        (describe(name).unit, describe(name).better.value) for name in ("C6", "ttft@C6", "prefill@500", "tokens_per_chunk@C2")
    ] == [
        ("tok/s", "higher"),
        ("s", "lower"),
        ("tok/s", "higher"),
        ("tokens", "neither"),
    ]


def test_b71_the_end_is_the_last_text() -> None:
    got = reply((100, text("a")), (200, text("b")), (900, end(2)))
    assert rates.e2e_s(got) == pytest.approx(0.2)
    assert rates.aggregate_tok_s([got]) == pytest.approx(2 / 0.2)


def test_b72_b73_totals_are_sum_over_wall_and_streams_are_a_mean() -> None:
    def answer(sent):
        return good(11, gap_ms=20) if sent.id.endswith("/1") else good(11, gap_ms=60)

    figures = reduced(DECODE, {"levels": [2], "categories": ["math"]}, answer).figures
    assert figures["C2/math"].value == pytest.approx(22 / 0.7)
    assert figures["per_stream@C2/math"].value == pytest.approx((10 / 0.2 + 10 / 0.6) / 2)
    assert (figures["per_stream@C2/math"].n, figures["per_stream@C2/math"].low) == (2, pytest.approx(10 / 0.6))


@given(st.permutations(range(4)))
def test_b74_the_batch_is_from_first_start_to_last_end_in_any_order(order: list[int]) -> None:
    starts, gaps = (0, 2, 1, 3), (30, 5, 60, 10)
    streams = [decode(good(11, gap_ms=gaps[i], t0_ns=starts[i] * MS), request()) for i in order]
    assert rates.aggregate_tok_s(streams) == pytest.approx(44 / 0.701)


def test_steady_is_the_time_in_which_all_decode() -> None:
    early, late = good(11, first_ms=100, gap_ms=20), good(11, first_ms=200, gap_ms=20)
    both = [decode(each, request()) for each in (early, late)]
    assert rates.steady_tok_s(both) == pytest.approx(100)
    assert rates.steady_tok_s([both[0]]) == rates.decode_tok_s(both[0])


def test_steady_takes_a_chunks_share_at_the_edge() -> None:
    coarse = reply(*((100 * i, text("a")) for i in range(1, 6)), (501, end(5)))
    fine = decode(good(5, first_ms=150, gap_ms=50), request())
    window = 0.35 - 0.15
    assert rates.steady_tok_s([coarse, fine]) == pytest.approx((2.0 + 4) / window)


def test_a_buffered_stream_has_no_rate_and_says_so() -> None:
    held = record((500, text("a") * 30), (501, end(30)))
    figures = reduced(DECODE, {"levels": [1], "categories": ["math"]}, lambda _: held).figures
    assert figures["per_stream@C1"].absent == "buffered stream: the text came at once"
    assert figures["ttft@C1"].marks == ("buffered stream",)
    assert figures["C1"].value == pytest.approx(60)


@given(
    st.integers(1, 5), st.lists(st.tuples(st.integers(0, 400), st.integers(1, 3)), min_size=1, max_size=12), st.integers(0, 2000)
)
def test_no_reply_gives_a_rate_that_is_not_a_finite_positive_number(
    streams: int, steps: list[tuple[int, int]], tokens: int
) -> None:
    at, timed = 1.0, []
    for gap, size in steps:
        at += gap
        timed.append((at, text("x" * size)))
    got: list[Reply] = [reply(*timed, (at, end(tokens)), asked=request(5000))] * streams
    if not got[0].ok:
        return
    for value in (
        rates.decode_tok_s(got[0]),
        rates.tpot_ms(got[0]),
        rates.ttft_s(got[0]),
        rates.aggregate_tok_s(got),
        rates.steady_tok_s(got),
    ):
        assert isinstance(value, Missing) or (math.isfinite(value) and value > 0)
