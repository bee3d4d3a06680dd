"""What gates may hold: patterns that are matched in linear time, readings, and the gates of the how-to."""

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.core import metrics, units
from ledger.spec import readings
from ledger.spec.gates import matches
from ledger.spec.load import read_spec
from tests.spec.conftest import SPEC, ReadBoth

HOW_TO = Path(__file__).resolve().parents[2] / "docs/how-to/prepare-a-host.md"


def as_regex(pattern: str) -> str:
    """The pattern as the regular expression that it means."""
    return "|".join(".*".join(map(re.escape, alternative.split("*"))) for alternative in pattern.split("|"))


@given(st.text("ab*|.(", max_size=8), st.text("ab.(", max_size=12))
def test_a_pattern_means_what_its_regular_expression_means(pattern: str, line: str) -> None:
    assert matches(pattern, line) == bool(re.search(as_regex(pattern), line, re.DOTALL))


def test_a_pattern_that_would_hang_a_regular_expression_is_quick() -> None:
    assert not matches("*".join("a" * 300) + "b", "a" * 20_000)


@pytest.mark.parametrize("name", ["host.", "host.mem", "host.load2", "kernel", "paired.q", "requests", "", "host.Mem/../x"])
def test_what_nothing_reads_is_not_found(name: str) -> None:
    assert readings.find(name) is None


@pytest.mark.parametrize("name", [item.example for item in readings.READINGS] + [family.example for family in metrics.FAMILIES])
def test_every_reading_has_a_dimension_with_units(name: str) -> None:
    found = readings.find(name)
    assert found is not None
    assert found.when
    assert found.dimension in {dimension for dimension, _ in units.UNITS.values()}


def test_the_gates_and_keys_of_the_how_to_are_right(both: ReadBoth) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", HOW_TO.read_text(encoding="utf-8"), re.DOTALL)
    hygiene, elevate, action, gates, caches, manifest = blocks
    spec = read_spec((hygiene + SPEC.replace('model = "m"\n', f'model = "m"\n{caches}') + gates).encode(), "spec.toml").value
    assert [gate.id for gate in spec.gates] == ["memory", "alone", "no-faults", "floor"]
    _, site = both("", action)
    assert site.value.actions["lock-clocks"].privilege == "root"
    assert tomllib.loads(elevate)["elevate"] == ["sudo", "-n"]
    text = SPEC + manifest.replace("lanes.C.", "lanes.L.")
    assert read_spec(text.encode(), "spec.toml").value.lanes["L"].manifests["weights"].count == 163
