"""Receipts to bytes and back: nothing is lost, nothing is guessed, and no bytes crash it."""

from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import orjson
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from ledger.core import canonical, digest
from ledger.core.words import Evidence, Role
from ledger.receipt import codec
from ledger.receipt.codec import ReceiptError
from ledger.receipt.model import BODIES, Chain, Figure, Note, Receipt, Record, Subject, Tool
from tests.receipt.generated import KINDS, RECEIPTS

NOTE = Receipt(
    kind="note",
    at="2026-12-01T06:12:00Z",
    session="01T0612-round2-3f2a",
    chain=Chain(n=0),
    tool=Tool(name="ledger", version="0.1.0"),
    body=Note(text="seen", by="A Tester"),
)
BYTES = (
    b'{"at":"2026-12-01T06:12:00Z","chain":{"n":0},"kind":"note","ledger":1,"note":{"by":"A Tester","text":"seen"},'
    b'"session":"01T0612-round2-3f2a","tool":{"name":"ledger","version":"0.1.0"}}'
)


def test_the_bytes_of_a_receipt_are_these() -> None:
    assert codec.encode(NOTE) == BYTES
    assert codec.decode(BYTES) == NOTE
    assert codec.digest_of(NOTE) == digest.of_bytes(BYTES)


@given(RECEIPTS)
def test_a_receipt_is_read_as_it_was_written(receipt: Receipt) -> None:
    data = codec.encode(receipt)
    assert data == rfc8785.dumps(codec.to_wire(receipt))
    assert canonical.is_canonical(data)
    assert codec.decode(data) == receipt
    assert codec.encode(codec.decode(data)) == data


def records_in(value: Any) -> Iterator[Record]:
    """Every record in a record."""
    if isinstance(value, Record):
        yield value
    if attrs.has(type(value)):
        for item in attrs.fields(type(value)):
            yield from records_in(getattr(value, item.name))
    elif isinstance(value, Mapping):
        for key in sorted(value):
            yield from records_in(value[key])
    elif isinstance(value, tuple | list):
        for item in value:
            yield from records_in(item)


@given(RECEIPTS)
def test_unknown_fields_survive_at_every_level(receipt: Receipt) -> None:
    again = codec.decode(codec.encode(receipt))
    assert [item.extra for item in records_in(again)] == [item.extra for item in records_in(receipt)]


def tables_in(wire: Any) -> Iterator[dict[str, Any]]:
    """Every JSON object in a value."""
    if isinstance(wire, dict):
        yield wire
        for item in wire.values():
            yield from tables_in(item)
    elif isinstance(wire, list):
        for item in wire:
            yield from tables_in(item)


@given(RECEIPTS)
def test_nothing_absent_is_written_as_null(receipt: Receipt) -> None:
    wire = orjson.loads(codec.encode(receipt))
    assert all(value is not None for table in tables_in(wire) for value in table.values())


def test_a_figure_without_a_value_is_a_state_with_a_reason() -> None:
    wire = codec._CONVERTER.unstructure(Figure(unit="tok/s", absent="every request failed"))
    assert wire == {"unit": "tok/s", "absent": "every request failed"}


def test_whole_figures_are_written_as_the_rfc_writes_them() -> None:
    wire = codec._CONVERTER.unstructure(Figure(unit="s", value=3.0, low=-0.0, high=2.5))
    assert canonical.encode(wire) == b'{"high":2.5,"low":0,"unit":"s","value":3}'


# --- what is refused ---------------------------------------------------------------------------------------------------------


def changed(**fields: Any) -> bytes:
    """The note with top-level fields changed, or left out where they are None."""
    wire = orjson.loads(BYTES) | fields
    return orjson.dumps({key: value for key, value in wire.items() if value is not None})


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "not JSON"),
        (b"null", "a receipt is a JSON object"),
        (b"[]", "a receipt is a JSON object"),
        (b"{}", "'kind' and a table of that name"),
        (changed(kind="boot"), "'kind' and a table of that name"),
        (changed(kind=["note"]), "'kind' and a table of that name"),
        (changed(note="text"), "'kind' and a table of that name"),
        (changed(ledger=2), "format version 2 is not known here"),
        (changed(ledger="1"), "format version 1 is not known here"),
        (changed(ledger=None), "format version None is not known here"),
        (changed(at=5), "expected text, got 5"),
        (changed(session=None), "session"),
        (changed(chain={"n": 1.5}), "expected a whole number, got 1.5"),
        (changed(chain={"n": True}), "expected a whole number, got True"),
        (changed(chain={}), "n"),
        (changed(chain=[0]), "expected a table"),
        (changed(tool={"name": "ledger"}), "version"),
        (changed(note={"text": "x"}), "by"),
        (changed(note={"text": 1, "by": 2}), r"text.*note\.text|note\.text"),
        (changed(note={"text": "x", "by": "y", "about": ["a", 7]}), r"about\[1\]"),
        (changed(note={"text": "x", "by": "y", "about": {"a": 1}}), "about|text"),
    ],
)
def test_what_is_no_receipt_is_refused_with_the_field(data: bytes, what: str) -> None:
    with pytest.raises(ReceiptError, match=what):
        codec.decode(data)


@pytest.mark.parametrize("word", ["", "Measured", "guessed", "measured "])
def test_a_word_outside_its_vocabulary_is_refused_with_the_vocabulary(word: str) -> None:
    subject = {"spec": "s", "lane": "l", "arm": "a", "role": "candidate", "evidence": word}
    with pytest.raises(Exception, match="While structuring Subject") as caught:
        codec._CONVERTER.structure(subject, Subject)
    (error,) = caught.value.exceptions  # type: ignore[attr-defined]  # cattrs raises a group
    assert all(item.value in str(error) for item in Evidence)
    good = codec._CONVERTER.structure(subject | {"evidence": "stand-in"}, Subject)
    assert good == Subject(spec="s", lane="l", arm="a", role=Role.CANDIDATE, evidence=Evidence.STAND_IN)


def test_a_kind_of_a_newer_version_is_kept_whole() -> None:
    data = canonical.encode(orjson.loads(BYTES) | {"kind": "omen", "omen": {"of": [1, {"a": 2}]}, "note": {"by": 1}})
    receipt = codec.decode(data)
    assert receipt.kind == "omen"
    assert receipt.body.extra == {"of": [1, {"a": 2}]}
    assert receipt.extra == {"note": {"by": 1}}
    assert codec.encode(receipt) == data


@given(RECEIPTS, st.data())
def test_damaged_bytes_are_a_receipt_or_an_error_and_never_crash(receipt: Receipt, draw: st.DataObject) -> None:
    data = bytearray(codec.encode(receipt))
    for _ in range(draw.draw(st.integers(1, 3))):
        where = draw.draw(st.integers(0, len(data) - 1))
        match draw.draw(st.sampled_from(["flip", "cut", "drop", "twice"])):
            case "flip":
                data[where] ^= 1 << draw.draw(st.integers(0, 7))
            case "cut":
                data = data[: where + 1]
            case "drop":
                data = data[:where] + data[where + 1 :] or data
            case "twice":
                data = data[:where] + data[where:] + data[where:]
    try:
        found = codec.decode(bytes(data))
    except ReceiptError:
        return
    assert codec.from_wire(codec.to_wire(found)) == found


@given(RECEIPTS, st.data())
def test_a_field_of_another_type_is_a_receipt_or_an_error(receipt: Receipt, draw: st.DataObject) -> None:
    wire = orjson.loads(codec.encode(receipt))
    tables = [table for table in tables_in(wire) if table]
    table = draw.draw(st.sampled_from(range(len(tables))))
    key = draw.draw(st.sampled_from(sorted(tables[table])))
    tables[table][key] = draw.draw(st.sampled_from(["text", 7, -1.5, True, [], [[1]], {}, {"a": {"b": 1}}, 2**53 - 1]))
    try:
        found = codec.from_wire(wire)
    except ReceiptError:
        return
    assert codec.from_wire(codec.to_wire(found)) == found


def test_a_fingerprint_is_the_digest_of_the_identity_in_any_order() -> None:
    made = codec.fingerprint({"b": "2", "a": "1"})
    assert made == codec.fingerprint({"a": "1", "b": "2"}) == digest.of_bytes(b'{"a":"1","b":"2"}')
    assert made != codec.fingerprint({"a": "1", "b": "3"})


def test_every_kind_is_generated() -> None:
    assert set(KINDS) > set(map(str, BODIES))
