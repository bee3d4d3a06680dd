"""Canonical bytes: the fast path says what the reference says, and what has no canonical form is refused."""

import json
import math
from typing import Any

import orjson
import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from ledger.core import canonical
from ledger.core.canonical import MAX_DEPTH, MAX_WHOLE, CanonicalError

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
WHOLE = st.integers(-MAX_WHOLE, MAX_WHOLE)
FRACTIONS = st.floats(allow_nan=False, allow_infinity=False)
# Where the two writers spell numbers differently: exponents, the edge of whole numbers, and small fractions.
EDGES = st.sampled_from(
    [0.0, -0.0, 1.0, -1.0, 1e-5, 9.99e-5, 1e-6, 1e-7, 1e15, 1e16, 1e17, 1e20, 1e21, 1e22, 5e-324, 1.7976931348623157e308, 0.1]
)
SCALARS = st.one_of(st.booleans(), WHOLE, FRACTIONS, EDGES, WORDS)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4), max_leaves=12
)


def has_large_whole_float(value: Any) -> bool:
    """Whether a float in ``value`` is a whole number that the ledger wants as text, though RFC 8785 allows it."""
    if isinstance(value, dict):
        return any(map(has_large_whole_float, value.values()))
    if isinstance(value, list):
        return any(map(has_large_whole_float, value))
    return isinstance(value, float) and value.is_integer() and MAX_WHOLE < abs(value) < 1e21


@given(VALUES)
@example({"a\ud7ff": 1, "\U00010000": 2, "\ue000": 3})
@example({'"': 1.0, '\\"': [-0.0], "1e5": "1e5"})
@example(["0.00001", 0.00001, "null", '\\"null'])
def test_bytes_are_those_of_the_reference(value: Any) -> None:
    if has_large_whole_float(value):
        with pytest.raises(CanonicalError, match="written as text"):
            canonical.encode(value)
        return
    assert canonical.encode(value) == rfc8785.dumps(value)


@given(FRACTIONS | EDGES)
def test_a_lone_number_is_the_reference_s(number: float) -> None:
    if not has_large_whole_float(number):
        assert canonical.encode(number) == rfc8785.dumps(number)


@pytest.mark.parametrize(
    "value",
    [
        {"value": 0.1 + 0.2, "ttft": 1 / 60, "rate": 40.00000000000001, "low": -120.00001, "few": 1e-4, "n": MAX_WHOLE},
        {"after": "sha256:" + "5e3" * 21 + "0", "at": "2026-12-01T00:00:00Z", "ns": "1764547200000000000", "on": [True, False]},
        {"version": "1.0", "text": '1.0, null, 1e5, "0.00001", [1.0]', "where": 'C:\\x"', "more": [1e3 + 0.5, -7, 0]},
    ],
)
def test_ordinary_figures_and_words_take_the_fast_path(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = rfc8785.dumps(value)
    monkeypatch.setattr(rfc8785, "dumps", None)
    assert canonical.encode(value) == expected


@given(st.dictionaries(st.text(st.sampled_from('"\\{}[],:0.en é\U0001f600\uffff'), max_size=6), st.just(1.5), max_size=4))
def test_keys_of_marks_do_not_fool_the_fast_path(value: dict[str, float]) -> None:
    assert canonical.encode(value) == rfc8785.dumps(value)


@given(VALUES)
@example(1e-6)
@example([1e21, {"\ue000": 1, "\U00010000": 2}])
def test_what_is_written_is_read_again(value: Any) -> None:
    if has_large_whole_float(value):
        return
    data = canonical.encode(value)
    assert canonical.decode(data) == value
    assert canonical.is_canonical(data)


@given(VALUES)
def test_another_spelling_is_not_canonical(value: Any) -> None:
    if not has_large_whole_float(value):
        data = canonical.encode(value)
        assert not canonical.is_canonical(data + b"\n")
        assert not canonical.is_canonical(b" " + data)


def test_tuples_are_lists() -> None:
    assert canonical.encode({"a": (1, (2.5,))}) == b'{"a":[1,[2.5]]}'


@pytest.mark.parametrize("depth", [0, 1, 5])
@pytest.mark.parametrize(
    "bad", [None, math.nan, math.inf, -math.inf, 2**53, -(2**53), 2**64, 2**200, 2.0**53, "\ud800", "a\udfffb"]
)
def test_what_has_no_canonical_form_is_refused_at_every_depth(bad: Any, depth: int) -> None:
    value = bad
    for _ in range(depth):
        value = {"inner": [value]}
    with pytest.raises(CanonicalError):
        canonical.encode(value)


@pytest.mark.parametrize("bad", [{"\ud800": 1}, {1: 2}, {None: 1}, {1, 2}, b"bytes", object(), 1j])
def test_what_is_no_json_is_refused(bad: Any) -> None:
    with pytest.raises(CanonicalError):
        canonical.encode(bad)


@pytest.mark.parametrize("number", [MAX_WHOLE, -MAX_WHOLE, MAX_WHOLE - 1, 10**15])
def test_whole_numbers_up_to_the_limit_are_kept(number: int) -> None:
    assert canonical.decode(canonical.encode([number])) == [number]


def test_a_refusal_says_where() -> None:
    with pytest.raises(CanonicalError, match=r"null at \$\.a\[1\]\.b"):
        canonical.encode({"a": [1, {"b": None}]})


def test_a_cycle_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(CanonicalError):
        canonical.encode(value)


def nested(depth: int, text: str = "") -> bytes:
    """A list ``depth`` deep around a string."""
    return b"[" * depth + json.dumps(text).encode() + b"]" * depth


@pytest.mark.parametrize("text", ["", "[[[[", "]]]]", '"[', "\\", '\\"[{', "[]" * 200])
def test_depth_is_bounded_and_strings_do_not_count(text: str) -> None:
    assert canonical.decode(nested(MAX_DEPTH, text)) is not None
    with pytest.raises(CanonicalError, match="nested deeper"):
        canonical.decode(nested(MAX_DEPTH + 1, text))


def test_what_is_written_can_be_read() -> None:
    value: Any = 1
    for _ in range(MAX_DEPTH):
        value = [value]
    assert canonical.decode(canonical.encode(value)) == value
    with pytest.raises(CanonicalError, match="nested deeper"):
        canonical.encode([value])


def test_a_hundred_thousand_brackets_are_refused_and_do_not_crash() -> None:
    for data in (b"[" * 100_000, b'{"a":' * 100_000, b"[{" * 50_000 + b"}]" * 50_000, b'["' + b"[" * 100_000):
        with pytest.raises(CanonicalError):
            canonical.decode(data)


@given(st.lists(st.sampled_from(["[", "]", "{", "}", '"', "\\", "a"]), min_size=60, max_size=300).map("".join))
def test_depth_is_told_as_by_counting_one_by_one(text: str) -> None:
    string = json.dumps(text)
    data = b"[" * 40 + b"[" * (len(text) % 30) + string.encode() + b"]" * (len(text) % 30) + b"]" * 40
    if 40 + len(text) % 30 > MAX_DEPTH:
        with pytest.raises(CanonicalError, match="nested deeper"):
            canonical.decode(data)
    else:
        assert canonical.decode(data) == orjson.loads(data)


@pytest.mark.parametrize("before", [0, 1, 40, 200])
@pytest.mark.parametrize("after", [0, 1, 40, 200])
def test_depth_is_bounded_wherever_it_stands(before: int, after: int) -> None:
    for depth, is_read in ((MAX_DEPTH - 1, True), (MAX_DEPTH, False)):
        data = b"[" + b"{}," * before + b"[" * depth + b"]" * depth + b",{}" * after + b"]"
        if is_read:
            assert canonical.decode(data) == orjson.loads(data)
        else:
            with pytest.raises(CanonicalError, match="nested deeper"):
                canonical.decode(data)


def test_size_is_bounded_before_parsing() -> None:
    assert canonical.decode(b"[1,2]", limit=5) == [1, 2]
    with pytest.raises(CanonicalError, match="6 bytes, and at most 5"):
        canonical.decode(b"[1,23]", limit=5)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"nul", b'{"a":1,}', b"NaN", b"Infinity", b'"\\ud800"', b'"\xff"', b"\xef\xbb\xbf1", b"01"]
)
def test_bytes_that_are_not_json_are_refused(data: bytes) -> None:
    with pytest.raises(CanonicalError):
        canonical.decode(data)


@pytest.mark.parametrize(
    "data",
    [
        b'{"b":1,"a":2}',
        b'{"a":1,"a":1}',
        b'{"a": 1}',
        b"1.0",
        b"1e2",
        b"-0",
        b"1E400",
        b'"\\u0041"',
        b'"\\/"',
        b"null",
        b"[null]",
        b"9007199254740992",
        b'{"\xee\x80\x80":1,"\xf0\x90\x80\x80":2}',
    ],
)
def test_json_that_is_not_canonical(data: bytes) -> None:
    assert not canonical.is_canonical(data)


def test_keys_beyond_the_first_plane_are_sorted_by_utf16() -> None:
    # U+10000 is the surrogate pair D800 DC00 and stands before U+E000, though its code point is larger.
    assert canonical.encode({"\ue000": 1, "\U00010000": 2}) == '{"\U00010000":2,"\ue000":1}'.encode()


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        canonical.decode(data)
    except CanonicalError:
        assert not canonical.is_canonical(data)
