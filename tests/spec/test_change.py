"""Changes of an arm: settings, what they make of an argv and an environment, and how many they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.spec.change import apply_args, apply_env, count_changes, in_words, not_there, sets_something, settings
from ledger.spec.model import Change

ARGV = st.lists(
    st.text("ab-=1 \n", min_size=1, max_size=5) | st.sampled_from(["--a", "--b", "--no-a", "-c", "--a=1"]), max_size=8
)
FLAGS = ("--a", "--b", "--c", "-d")
SETTING = st.tuples(st.sampled_from(FLAGS), st.lists(st.sampled_from(["1", "-1", "x y", ""]), max_size=2))
SETTINGS = st.lists(SETTING, max_size=5).map(lambda found: tuple(word for flag, words in found for word in (flag, *words)))
CHANGES = st.builds(Change, args=SETTINGS, drop_args=st.lists(st.sampled_from(FLAGS), max_size=2).map(tuple))


@given(ARGV)
def test_settings_joined_are_the_argv_again(argv: list[str]) -> None:
    found = settings(argv)
    assert [word for item in found for word in item.words] == argv
    assert apply_args(argv, Change()) == tuple(argv)
    assert [item.flag for item in found[1:] if item.flag is None] == []


@given(ARGV, CHANGES)
def test_a_change_made_again_moves_nothing(argv: list[str], change: Change) -> None:
    # Repeats of one flag come together at the place of the first when they are set again; from then on all stays.
    again = apply_args(apply_args(argv, change), change)
    assert apply_args(again, change) == again


@given(ARGV, CHANGES)
def test_what_a_change_does_not_name_stays_as_it_is(argv: list[str], change: Change) -> None:
    named = {item.flag for item in settings(change.args)} | set(change.drop_args)
    before = [item for item in settings(argv) if item.flag not in named]
    after = [item for item in settings(apply_args(argv, change)) if item.flag not in named]
    assert after == before


@given(ARGV, CHANGES)
def test_what_a_change_names_is_as_it_says(argv: list[str], change: Change) -> None:
    after = settings(apply_args(argv, change))
    for flag in FLAGS:
        wanted = [item for item in settings(change.args) if item.flag == flag]
        if wanted or flag in change.drop_args:
            assert [item for item in after if item.flag == flag] == wanted


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (Change(args=("--b", "9")), "run --a 1 --b 9 -c"),
        (Change(args=("--d",)), "run --a 1 --b 2 -c --d"),
        (Change(args=("--b=9",)), "run --a 1 --b=9 -c"),
        (Change(drop_args=("--a", "-c")), "run --b 2"),
        (Change(args=("--a", "x", "y")), "run --a x y --b 2 -c"),
        (Change(args=("--a", "-1")), "run --a -1 --b 2 -c"),
        (Change(args=("--e", "1", "--d", "2", "--e", "3")), "run --a 1 --b 2 -c --e 1 --d 2 --e 3"),
    ],
)
def test_a_change_takes_the_place_of_the_same_flag(change: Change, expected: str) -> None:
    assert " ".join(apply_args(["run", "--a", "1", "--b", "2", "-c"], change)) == expected


@pytest.mark.parametrize(
    ("words", "flag", "value"),
    [
        (["--a", "1", "2"], "--a", "1 2"),
        (["--a=1", "2"], "--a", "1 2"),
        (["--a"], "--a", ""),
        (["-c", "-1"], "-c", "-1"),
        (['--j={"a": "=\n"}'], "--j", '{"a": "=\n"}'),
        (["run", "fast"], None, "run fast"),
        (["-1"], None, "-1"),
        (["--"], None, "--"),
    ],
)
def test_a_flag_and_its_value(words: list[str], flag: str | None, value: str) -> None:
    (found,) = settings(words)
    assert (found.flag, found.value) == (flag, value)


@pytest.mark.parametrize(
    ("change", "count"),
    [
        (Change(), 0),
        (Change(about="rails"), 1),
        (Change(env={"A": "1"}), 1),
        (Change(env={"A": "1"}, about="rails"), 1),
        (Change(env={"A": "1"}, args=("--x",)), 2),
        (Change(args=("--cache",), drop_args=("--no-cache",)), 1),
        (Change(args=("--no-cache",), drop_args=("--cache",)), 1),
        (Change(args=("--cache",), drop_args=("--other",)), 2),
        (Change(drop_env=("A", "B")), 2),
        (Change(env={"A": "1"}, drop_env=("A",)), 1),
    ],
)
def test_changes_are_counted(change: Change, count: int) -> None:
    assert len(count_changes(change)) == count


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (Change(), "nothing"),
        (Change(about="rails"), "rails"),
        (Change(env={"A": "1"}, args=("--x", "2"), about="rails"), "A=1, --x 2"),
        (Change(drop_env=("A",), drop_args=("--y",)), "without A, without --y"),
    ],
)
def test_a_change_in_words(change: Change, words: str) -> None:
    assert in_words(change) == words


def test_variables_are_set_and_dropped() -> None:
    assert apply_env({"A": "1", "B": "2"}, Change(env={"C": "3", "A": "9"}, drop_env=("B",))) == {"A": "9", "C": "3"}


def test_what_is_dropped_and_not_there() -> None:
    change = Change(drop_args=("--a", "--z"), drop_env=("A", "Z"))
    assert not_there(["run", "--a=1"], {"A": "1"}, change) == ["--z", "Z"]


@pytest.mark.parametrize(
    ("change", "sets"),
    [(Change(), False), (Change(about="rails"), False), (Change(drop_env=("A",)), True), (Change(args=("--x",)), True)],
)
def test_a_change_may_be_told_in_words_alone(change: Change, sets: bool) -> None:
    assert sets_something(change) is sets
