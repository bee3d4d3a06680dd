"""The quick check of a receipt's shape: yes is certain, and links and blobs are those that the model tells."""

from typing import Any

import attrs
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.core.digest import Descriptor
from ledger.receipt import codec, shape
from ledger.receipt.codec import ReceiptError
from ledger.receipt.model import Receipt, blobs, links
from tests.receipt.generated import RECEIPTS

JUNK: tuple[Any, ...] = ("text", 7, -1.5, True, [], [1], [[]], {}, {"a": 1}, {"a": {"b": 1}}, 0)


def named_by(receipt: Receipt) -> list[Descriptor]:
    """The blobs that the model tells, without the fields that it does not know."""
    return [attrs.evolve(item, extra={}) for item in blobs(receipt)]


def wire_of(receipt: Receipt) -> Any:
    return orjson.loads(codec.encode(receipt))


@given(RECEIPTS)
def test_every_receipt_that_is_written_fits(receipt: Receipt) -> None:
    assert shape.fits(wire_of(receipt))


@given(RECEIPTS)
def test_links_and_blobs_are_those_of_the_model(receipt: Receipt) -> None:
    wire = wire_of(receipt)
    assert shape.links(wire) == links(receipt)
    assert shape.blobs(wire) == named_by(receipt)


def places_in(value: Any) -> list[tuple[Any, Any]]:
    """Every (table or list, key) in a value."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    found = [(value, key) for key in keys]
    return found + [place for key in keys for place in places_in(value[key])]


@given(RECEIPTS, st.data())
def test_what_fits_is_taken_by_the_codec(receipt: Receipt, draw: st.DataObject) -> None:
    wire = wire_of(receipt)
    for _ in range(draw.draw(st.integers(1, 2))):
        places = places_in(wire)
        table, key = places[draw.draw(st.integers(0, len(places) - 1))]
        if isinstance(table, dict) and draw.draw(st.booleans()):
            del table[key]
        else:
            table[key] = draw.draw(st.sampled_from(JUNK))
        if not wire:
            break
    if shape.fits(wire):
        found = codec.from_wire(wire)
        assert shape.links(wire) == links(found)
        assert shape.blobs(wire) == named_by(found)
    else:
        # Not certain is allowed, but only where the codec refuses it or is asked for another version.
        with pytest.raises(ReceiptError):
            codec.from_wire(wire)


@pytest.mark.parametrize("value", [None, *JUNK, {"ledger": 1}, {"ledger": 1, "kind": "note"}, {"kind": "note", "note": {}}])
def test_what_is_no_receipt_does_not_fit(value: Any) -> None:
    assert not shape.fits(value)


@pytest.mark.parametrize("kind", ["chain", "tool", "kind", "at", "session", "ledger"])
def test_a_field_of_the_envelope_is_no_kind(kind: str) -> None:
    wire = {"ledger": 1, "kind": kind, "at": "x", "session": "x", "chain": {"n": 0}, "tool": {"name": "x", "version": "x"}}
    assert not shape.fits(wire)
    with pytest.raises(ReceiptError):
        codec.from_wire(wire)


@pytest.mark.parametrize("version", [True, 1.0, "1", 0, 2])
def test_another_version_does_not_fit(version: object) -> None:
    wire = {"kind": "x", "x": {}, "at": "x", "session": "x", "chain": {"n": 0}, "tool": {"name": "x", "version": "x"}}
    assert shape.fits(wire | {"ledger": 1})
    assert not shape.fits(wire | {"ledger": version})
