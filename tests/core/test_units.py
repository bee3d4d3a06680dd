"""Quantities: every unit both ways, and every mistake with its way out."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.core.errors import LedgerError
from ledger.core.units import UNITS, Quantity, parse


@pytest.mark.parametrize(
    ("text", "number", "dimension"),
    [
        ("100 GiB", 100 * 2**30, "bytes"),
        ("100GB", 100e9, "bytes"),
        ("120 s", 120, "time"),
        ("2min", 120, "time"),
        ("1.5 h", 5400, "time"),
        ("2 %", 0.02, "ratio"),
        ("500 tok/s", 500, "rate"),
        ("-3 degC", -3, "temperature"),
        ("1e3 W", 1000, "power"),
        (".5 GHz", 5e8, "frequency"),
        ("7", 7, "count"),
        (7, 7, "count"),
        (2.5, 2.5, "count"),
        ("  12   ms ", 0.012, "time"),
    ],
)
def test_known_answers(text: str | float, number: float, dimension: str) -> None:
    found = parse(text)
    assert found.number == pytest.approx(number)
    assert found.dimension == dimension


@given(st.sampled_from(sorted(UNITS)), st.integers(-(10**6), 10**6))
def test_what_is_shown_is_read_again(unit: str, number: int) -> None:
    found = parse(f"{number} {unit}")
    again = parse(str(found))
    assert (again.dimension, again.unit) == (found.dimension, found.unit)
    assert again.number == pytest.approx(found.number, rel=1e-11)


@given(st.text(max_size=20) | st.from_regex(r"[-+]?[0-9.]{1,4}(e[0-9]{1,3})? ?[a-zA-Z%/]{0,3}", fullmatch=True))
def test_any_text_is_a_finite_quantity_or_a_mistake_that_shows_it(text: str) -> None:
    try:
        assert math.isfinite(parse(text).number)
    except LedgerError as error:
        told = error.problems[0].value
        assert told == text


@pytest.mark.parametrize("text", ["1e999", "1e308 TiB", "-1e999 s"])
def test_a_number_that_is_too_large_is_a_mistake(text: str) -> None:
    with pytest.raises(LedgerError, match="too large"):
        parse(text)


@pytest.mark.parametrize("text", ["nan", "inf", float("nan"), float("inf"), -math.inf, "", "s", "1 2 s", "1,5 s", "٣ s", "0x10"])
def test_what_is_no_number_is_a_mistake(text: str | float) -> None:
    with pytest.raises(LedgerError):
        parse(text)


def test_a_bool_is_no_quantity() -> None:
    with pytest.raises(LedgerError, match="expected a quantity; got True"):
        parse(True)


def test_a_bare_number_takes_the_default_unit() -> None:
    assert parse("3", default_unit="min").number == 180
    assert parse(3, default_unit="ms").number == pytest.approx(0.003)
    assert parse("3 s", default_unit="min").number == 3


@pytest.mark.parametrize(("unit", "meant"), [("Gib", "GiB"), ("MHZ", "MHz"), ("mins", "min"), ("toks/s", "tok/s")])
def test_an_unknown_unit_names_the_nearest(unit: str, meant: str) -> None:
    with pytest.raises(LedgerError, match=f"unknown unit '{unit}'.*did you mean '{meant}'"):
        parse(f"1 {unit}")


def test_another_dimension_names_the_units_that_fit() -> None:
    with pytest.raises(LedgerError, match=r"expected a time, not a bytes.*units: ns, us, ms, s, min, h"):
        parse("1 GiB", dimension="time")


def test_a_quantity_is_shown_in_the_unit_it_was_written_in() -> None:
    assert str(parse("2 %")) == "2 %"
    assert str(parse("100 GiB")) == "100 GiB"
    assert str(parse("7 %")) == "7 %"
    assert str(parse("1234567.5 B")) == "1234567.5 B"
    assert str(Quantity(number=7, dimension="count", unit="")) == "7"
