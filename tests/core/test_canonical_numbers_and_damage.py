"""Canonical bytes at their edges: every float by its bits, the RFC's own examples, exact depth, and bytes that were damaged."""

import dataclasses
import json
import math
import struct
from collections.abc import Callable
from datetime import datetime
from typing import Any

import orjson
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from ledger.core.canonical import MAX_DEPTH, MAX_WHOLE, CanonicalError, decode, encode, is_canonical

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SCALARS = st.booleans() | st.integers(-MAX_WHOLE, MAX_WHOLE) | st.floats(-1e9, 1e9) | TEXT
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5))
WRAPS: tuple[Callable[[Any], Any], ...] = (
    lambda x: x,
    lambda x: [x],
    lambda x: {"a": x},
    lambda x: [0, x, {"a": [x], "1.0,": x}],
)
# Numbers that the two writers spell, or once spelled, differently.
SPELLED = [0.0, -0.0, 1.0, 0.1, 1e-4, 9e-5, 1e-5, 1e-6, 9.9e-7, 1e-7, 5e-324, 2.2250738585072014e-308, 1e15, 123456789012345.6]
SPELLED += [999999999999999.9, 4503599627370497.5, 1e21, 1.5e300, 1.7976931348623157e308, 333333333.3333333, 1e23, -1e-7, -1e21]


@pytest.mark.parametrize("number", SPELLED, ids=repr)
@pytest.mark.parametrize("wrap", WRAPS)
def test_a_number_is_spelled_as_the_rfc_says_wherever_it_stands(number: float, wrap: Callable[[Any], Any]) -> None:
    assert encode(wrap(number)) == rfc8785.dumps(wrap(number))
    assert is_canonical(encode(wrap(number)))


@given(st.integers(0, 2**64 - 1))
def test_every_float_by_its_bits_is_spelled_or_refused(bits: int) -> None:
    (number,) = struct.unpack("<d", bits.to_bytes(8, "little"))
    if not math.isfinite(number) or (number.is_integer() and MAX_WHOLE < abs(number) < 1e21):
        with pytest.raises(CanonicalError):
            encode([number])
        return
    assert encode([number]) == rfc8785.dumps([number])
    assert float(decode(encode([number]))[0]) == number


def test_the_examples_of_the_rfc() -> None:
    value = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": '\u20ac$\u000f\nA\'B"\\\\"/',
        "literals": [True, False],
    }
    assert encode(value) == (
        b'{"literals":[true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        b'"string":"\xe2\x82\xac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )
    keys = {"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\u0080": 6, "\u00f6": 7}
    assert list(json.loads(encode(keys)).values()) == [2, 4, 6, 7, 1, 5, 3]


@dataclasses.dataclass
class Plain:
    """A class of a kind that orjson would write unasked."""

    field: int = 1


@pytest.mark.parametrize("value", [Plain(), datetime(2026, 1, 1), None, math.nan, 2**53], ids=repr)
@pytest.mark.parametrize("beside", [0, 1.0, "\U0001f600"])
def test_what_has_no_form_is_refused_on_the_fast_and_on_the_slow_path(value: Any, beside: Any) -> None:
    with pytest.raises(CanonicalError):
        encode([beside, value])


@given(VALUES, st.data())
def test_a_flipped_bit_or_a_cut_never_crashes_it_nor_passes_for_the_value(value: Any, draw: st.DataObject) -> None:
    data = bytearray(encode(value))
    if draw.draw(st.booleans()):
        data = data[: draw.draw(st.integers(0, len(data) - 1))]
    else:
        data[draw.draw(st.integers(0, len(data) - 1))] ^= 1 << draw.draw(st.integers(0, 7))
    if is_canonical(bytes(data)):
        assert encode(decode(bytes(data))) == bytes(data) != encode(value)


@given(st.text(alphabet='{}[]",:\\0129.-e+ntfu \n').map(str.encode))
def test_bytes_of_json_s_own_marks_are_read_as_the_parser_reads_them(data: bytes) -> None:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        with pytest.raises(CanonicalError):
            decode(data)
        return
    assert decode(data) == value


@given(st.integers(1, 3 * MAX_DEPTH), st.sampled_from(["[", "{", "[{", "{[[", "[[[{"]), TEXT | st.text(alphabet='[]{}"\\,'))
def test_depth_is_exact_whatever_the_brackets_and_strings(depth: int, kinds: str, text: str) -> None:
    turn = [kinds[index % len(kinds)] for index in range(depth)]
    data = b"".join(b"[" if kind == "[" else b'{"a":' for kind in turn) + orjson.dumps(text)
    data += b"".join(b"]" if kind == "[" else b"}" for kind in reversed(turn))
    wide = b"[" + b",".join([b"[]", b"{}"] * MAX_DEPTH) + b"," + data + b"]"
    for item, deep in ((data, depth), (wide, depth + 1)):
        if deep <= MAX_DEPTH:
            assert decode(item) == orjson.loads(item)
        else:
            with pytest.raises(CanonicalError, match="nested deeper"):
                decode(item)


@pytest.mark.parametrize(
    "data",
    [b"1e400", b"[1e400]", b"{}x", b"{'a':1}", b"[1,]", b"]" * 100_000, b"[" * 500 + b'"', b"[{" * 5000 + b"]}" * 5000],
    ids=lambda data: data[:10].decode(),
)
def test_what_is_not_json_is_refused(data: bytes) -> None:
    with pytest.raises(CanonicalError):
        decode(data)
