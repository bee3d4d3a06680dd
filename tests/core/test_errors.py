"""Mistakes as values: what they say, where, and the way out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.core.errors import (
    MAX_CHOICES,
    MAX_WORD,
    BackendError,
    Collected,
    ExitCode,
    LedgerError,
    NoLedgerError,
    NotFoundError,
    Place,
    Problem,
    SpecError,
    StoreError,
    UsageError,
    did_you_mean,
    nearest,
    shorten,
)


def test_a_problem_says_where_what_which_and_the_way_out() -> None:
    place = Place(file="specs/a.toml", line=3, path="lanes.L.port")
    problem = Problem(what="expected a port", place=place, value="'http'", hint="a number from 1 to 65535")
    assert str(problem) == "specs/a.toml:3 [lanes.L.port]: expected a port; got 'http'; a number from 1 to 65535"


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        (Place(file="a"), "a"),
        (Place(file="a", line=1), "a:1"),
        (Place(file="a", path="x.y"), "a [x.y]"),
    ],
)
def test_a_place_says_what_is_known(place: Place, shown: str) -> None:
    assert str(place) == shown


def test_an_empty_value_is_shown_too() -> None:
    assert str(Problem(what="expected a name", value="")) == "expected a name; got "


def test_an_error_holds_one_problem_or_many() -> None:
    assert LedgerError("no", hint="try").problems == (Problem(what="no", hint="try"),)
    both = (Problem(what="one"), Problem(what="two"))
    assert LedgerError(iter(both)).problems == both
    assert str(LedgerError(both)) == "one\ntwo"
    assert LedgerError(both[0]).problems == both[:1]


@pytest.mark.parametrize(
    ("kind", "code"),
    [(UsageError, 2), (SpecError, 2), (NoLedgerError, 3), (NotFoundError, 4), (StoreError, 5), (BackendError, 6)],
)
def test_each_error_has_its_exit_code(kind: type[LedgerError], code: int) -> None:
    assert kind("no").exit_code == code
    assert isinstance(kind("no"), LedgerError)


def test_exit_codes_are_all_different() -> None:
    assert len({int(code) for code in ExitCode}) == len(ExitCode.__members__)


def test_problems_are_collected_and_raised_at_once() -> None:
    seen = Collected()
    seen.raise_if_any()
    seen.add("one", value=3)
    seen.add("two", place=Place(file="f"), hint="way out")
    with pytest.raises(SpecError) as caught:
        seen.raise_if_any()
    assert [str(problem) for problem in caught.value.problems] == ["one; got 3", "f: two; way out"]
    with pytest.raises(StoreError):
        seen.raise_if_any(StoreError)


@given(st.one_of(st.text(), st.binary(), st.lists(st.text()), st.none(), st.floats()), st.integers(1, 100))
def test_a_shortened_value_is_one_printable_line(value: object, limit: int) -> None:
    shown = shorten(value, limit)
    assert len(shown) <= limit
    assert shown.isprintable()


def test_a_huge_value_is_shortened() -> None:
    assert shorten("x" * 10**6) == "x" * 79 + "…"
    assert shorten([1, "a"]) == "[1, 'a']"


@pytest.mark.parametrize(
    ("word", "known", "found"),
    [
        ("basline", ["baseline", "control"], "baseline"),
        ("BASELINE", ["baseline", "control"], "baseline"),
        ("Lane-A", ["lane-a", "lane-b"], "lane-a"),
        ("zzz", ["baseline", "control"], None),
        ("x", [], None),
    ],
)
def test_the_nearest_word(word: str, known: list[str], found: str | None) -> None:
    assert nearest(word, known) == found


def test_the_way_out_for_an_unknown_word() -> None:
    assert did_you_mean("basline", ["baseline"]) == "did you mean 'baseline'?"
    assert did_you_mean("zzz", ["b", "a", "a"]) == "known: a, b"
    assert did_you_mean("zzz", []) == "nothing of this kind is known here"
    assert did_you_mean("zzz", [f"w{index:02}" for index in range(13)]).endswith("w11, …")


def test_words_that_are_too_long_or_too_many_are_not_looked_through() -> None:
    long = "ab" * MAX_WORD
    assert nearest(long, [long]) is None
    assert nearest("basline", [long, "baseline"]) == "baseline"
    crowd = [f"word{number}" for number in range(MAX_CHOICES)]
    assert nearest("basline", [*crowd, "baseline"]) == "baseline"
    assert nearest("vaseline", [*crowd, "baseline"]) is None
    assert nearest("word0", ["baseline", *crowd]) == "word0"
