"""Factors: what a boot is flattened to, and which class each key has."""

from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.core.words import FieldClass
from ledger.spec import factors
from ledger.spec.model import FilePin, Lane, Node, Tree

PREFIXES = tuple(name for name in factors.CLASSES if name.endswith("."))
KEYS = st.text("abnode.host-_#1", min_size=1, max_size=12) | st.sampled_from([*factors.CLASSES, "node.0", "host.cpu"])


@given(KEYS)
def test_a_key_that_no_row_names_is_identity(key: str) -> None:
    named = key in factors.CLASSES or key.startswith(PREFIXES)
    assert named or factors.classify(key) is FieldClass.IDENTITY


@given(st.dictionaries(KEYS, st.text(max_size=3)))
def test_every_factor_is_in_one_class(found: dict[str, str]) -> None:
    split = factors.split(found)
    assert {key: value for each in split.values() for key, value in each.items()} == found
    assert sum(map(len, split.values())) == len(found)
    assert all(list(each) == sorted(each) for each in split.values())


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("something.new", FieldClass.IDENTITY),
        ("args.--port", FieldClass.CONTEXT),
        ("args.--port-range", FieldClass.IDENTITY),
        ("node.3", FieldClass.CONTEXT),
        ("nodes", FieldClass.IDENTITY),
        ("site", FieldClass.PROVENANCE),
        ("site.x", FieldClass.IDENTITY),
        ("file.weights", FieldClass.IDENTITY),
        ("env.OMP_NUM_THREADS", FieldClass.IDENTITY),
    ],
)
def test_the_class_of_a_key(key: str, kind: FieldClass) -> None:
    assert factors.classify(key) is kind


def test_a_switch_and_its_negation_are_one_factor_and_repeats_are_counted() -> None:
    found = factors.launch_factors(["p", "q", "--x", "--no-y", "--m", "1", "--m", "2"], {"E": "v"})
    assert found == {
        "argv.0": "p",
        "argv.1": "q",
        "args.--x": "on",
        "args.--y": "off",
        "args.--m": "1",
        "args.--m#2": "2",
        "env.E": "v",
    }


WORDS = ("b", "c", "b c", "", "'", "'b c'", "b'c", '{"a": 1}', "-1")


def settings() -> Iterator[tuple[str, tuple[str, ...]]]:
    """A flag with each list of at most two words behind it."""
    for flag in ("--x", "--no-x"):
        yield from ((flag, words) for times in range(3) for words in product(WORDS, repeat=times))


def meant(flag: str, words: tuple[str, ...]) -> tuple[str, tuple[str, ...] | str]:
    """What a setting says: words, or for a bare flag that a switch is on or off."""
    return (flag, words) if words else ("--x", "off" if flag == "--no-x" else "on")


def test_other_arguments_are_another_identity() -> None:
    found: dict[str, set[object]] = {}
    for one, other in product(settings(), [*settings()][:3]):
        argv = [word for flag, words in (one, other) for word in (flag, *words)]
        found.setdefault(str(factors.launch_factors(argv, {})), set()).add((meant(*one), meant(*other)))
    assert len(found) > 500
    assert [each for each in found.values() if len(each) > 1] == []


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (["--x", "1", "2"], "1 2"),
        (["--x", "1 2"], "'1 2'"),
        (["--x=1 2"], "'1 2'"),
        (["--x", '{"a":1}'], '{"a":1}'),
        (["--x", "${file.weights}"], "${file.weights}"),
        (["--x", ""], "''"),
        (["--x="], "''"),
        (["--x"], "on"),
    ],
)
def test_the_value_of_an_argument(words: list[str], value: str) -> None:
    assert factors.launch_factors(words, {}) == {"args.--x": value}


def test_everything_that_a_lane_pins_is_a_factor() -> None:
    tree = Tree(name="t", commit="c0", declares="1.0", version="2.0", patched=True)
    pins = {"w": FilePin(sha256="0" * 64, path="w")}
    lane = Lane(id="L", engine="e", model="m", quantization="q", packages={"p": "1"}, files=pins, trees=(tree,), nodes=2)
    assert factors.lane_factors(lane) == {
        "engine": "e",
        "model": "m",
        "quantization": "q",
        "nodes": "2",
        "tree.t": "c0 declares 1.0 2.0 patched",
        "package.p": "1",
        "file.w": "0" * 64,
    }


def test_nodes_are_named_by_rank() -> None:
    found = factors.node_factors([Node(name="a"), Node(name="b")], "process")
    assert found == {"backend": "process", "node.0": "a", "node.1": "b"}
