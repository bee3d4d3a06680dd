"""Metrics: names are parsed whole, units and directions are the family's, and people's order holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.core.metrics import FAMILIES, Family, describe, sort_key
from ledger.core.words import Better


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_example_of_a_family_is_of_that_family_alone(family: Family) -> None:
    assert [other.name for other in FAMILIES if other.pattern.fullmatch(family.example)] == [family.name]
    found = describe(family.example)
    assert (found.family, found.unit, found.better) == (family, family.unit, family.better)
    assert family.definition[0].islower()
    assert not family.definition.endswith(".")


@pytest.mark.parametrize(
    ("name", "family", "unit", "better"),
    [
        ("C1", "C", "tok/s", Better.HIGHER),
        ("C64/code", "C", "tok/s", Better.HIGHER),
        ("per_stream@C6/summary", "per_stream", "tok/s", Better.HIGHER),
        ("ttft@C1", "ttft", "s", Better.LOWER),
        ("prefill@2000", "prefill", "tok/s", Better.HIGHER),
        ("boot_seconds", "boot_seconds", "s", Better.LOWER),
        ("tokens_per_chunk@C6", "tokens_per_chunk", "tokens", Better.NEITHER),
    ],
)
def test_known_names(name: str, family: str, unit: str, better: Better) -> None:
    found = describe(name, unit="ignored")
    assert found.family is not None
    assert (found.family.name, found.unit, found.better) == (family, unit, better)


@pytest.mark.parametrize(
    "name", ["C", "C0", "C06", "c6", "C6/", "C6/Code", "ttft", "ttft@6", "prefill@0", "prefill@2000/x", "C6\n", " C6"]
)
def test_a_name_that_is_nearly_known_has_no_direction(name: str) -> None:
    found = describe(name, unit="pt")
    assert (found.family, found.unit, found.better) == (None, "pt", Better.NEITHER)


def test_names_are_ordered_as_people_do() -> None:
    names = ["C10", "C2", "C2/code", "ttft@C1", "C1", "C2/a", "prefill@10000", "prefill@2000", "ttft@C1/x"]
    assert sorted(names, key=sort_key) == [
        "C1",
        "C2",
        "C2/a",
        "C2/code",
        "C10",
        "prefill@2000",
        "prefill@10000",
        "ttft@C1",
        "ttft@C1/x",
    ]


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_numbers_in_names_are_ordered_as_numbers(one: int, other: int) -> None:
    assert (sort_key(f"C{one}") < sort_key(f"C{other}")) == (one < other)


@given(st.permutations(["", "C", "C1", "C1/a", "C01", "1", "C²", "C٣", "²", "C" + "9" * 5000, "C1x", "x1", "/", "@"]))
def test_any_names_can_be_ordered_and_always_alike(names: list[str]) -> None:
    keys = sorted(map(sort_key, names))
    assert keys == sorted(map(sort_key, sorted(names)))
    assert keys.index(sort_key("C1")) < keys.index(sort_key("C" + "9" * 5000))
