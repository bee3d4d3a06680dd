"""The codec kind by kind: nothing is lost, nothing wrong passes, and every wrong field is named by its place."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.core import canonical, digest
from ledger.core.words import VOCABULARIES
from ledger.receipt import codec
from ledger.receipt.codec import ReceiptError
from ledger.receipt.model import BODIES, Chain, Foreign, Note, Receipt, Tool
from tests.receipt.generated import RECEIPTS, TEXT, receipts_of

GOLDEN = Path(__file__).parents[1] / "golden" / "receipts"
WIRES = {path.stem.removeprefix("v1-"): canonical.decode(path.read_bytes()) for path in sorted(GOLDEN.glob("v1-*.json"))}
ENVELOPE = frozenset(attrs.fields_dict(Receipt)) - {"body", "extra"}
NEW_KINDS = TEXT.filter(lambda word: word not in ENVELOPE and word not in BODIES)
WRONG: tuple[Any, ...] = ("\x1b[31mtext", 7, 2.5, True, ["a"], {"a": "b"}, None)


def note(**more: Any) -> Receipt:
    """A small receipt."""
    body = Note(text="a remark", by="A Tester")
    chain, tool = Chain(n=0), Tool(name="ledger", version="0.1.0")
    return Receipt(kind="note", at="2026-10-18T12:00:00Z", session="18T1200-exp-0001", chain=chain, tool=tool, body=body, **more)


# --- there and back -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", BODIES)
def test_every_kind_comes_back_with_all_its_unknown_fields(kind: str) -> None:
    @settings(max_examples=40)
    @given(receipts_of(kind))
    def check(receipt: Receipt) -> None:
        data = codec.encode(receipt)
        assert codec.decode(data) == receipt
        assert codec.encode(codec.decode(data)) == data

    check()


@given(NEW_KINDS.flatmap(receipts_of))
def test_an_unknown_kind_survives_byte_for_byte(receipt: Receipt) -> None:
    data = codec.encode(receipt)
    again = codec.decode(data)
    assert isinstance(again.body, Foreign)
    assert again == receipt
    assert codec.encode(again) == data


@given(RECEIPTS)
def test_nothing_absent_is_written(receipt: Receipt) -> None:
    body = codec.to_wire(receipt)[receipt.kind]
    for item in attrs.fields(type(receipt.body)):
        if item.name != "extra" and item.default is not attrs.NOTHING:
            value = getattr(receipt.body, item.name)
            assert (item.name in body) == (value not in (None, (), {}) and value != item.default)


def test_the_body_stands_under_the_name_of_its_kind() -> None:
    wire = codec.to_wire(note())
    assert wire["note"] == {"text": "a remark", "by": "A Tester"}
    assert wire["chain"] == {"n": 0}
    assert set(wire) == {"ledger", "kind", "at", "session", "chain", "tool", "note"}


def test_a_known_field_wins_over_an_unknown_one_of_its_name() -> None:
    assert codec.to_wire(note(extra={"kind": "trial", "at": 3}))["kind"] == "note"


def test_whole_floats_are_written_as_whole_numbers_and_read_as_floats() -> None:
    wire = copy.deepcopy(WIRES["trial"])
    wire["trial"]["seconds"] = 3
    body: Any = codec.from_wire(wire).body
    assert isinstance(body.seconds, float)
    assert codec.to_wire(codec.from_wire(wire))["trial"]["seconds"] == 3


# --- what is wrong, and where ---------------------------------------------------------------------------------------------------


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of every value inside ``value``."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def replaced(wire: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """A copy of ``wire`` with another value at ``path``."""
    made = copy.deepcopy(wire)
    holder = made
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return made


@pytest.mark.parametrize("kind", BODIES)
def test_a_value_of_a_wrong_type_is_taken_as_it_is_or_names_its_field(kind: str) -> None:
    wire = WIRES[kind]
    refused = set()
    for path in places(wire):
        for bad in WRONG:
            try:
                again = codec.to_wire(codec.from_wire(replaced(wire, path, bad)))
            except ReceiptError as error:
                refused.add(path)
                told = [str(problem) for problem in error.problems]
                last = path[-1]
                shown = f"[{last!r}]" if isinstance(last, int) else str(last)
                assert any(shown in text for text in told) or path in {("ledger",), ("kind",), (kind,)}, (path, bad, told)
                assert all(text.isprintable() for text in told)
            else:
                assert bad is None or again == replaced(wire, path, bad)
    assert {(name,) for name in (*ENVELOPE, kind)} <= refused
    assert {(kind, name) for name in wire[kind]} <= refused


@pytest.mark.parametrize("kind", BODIES)
def test_a_missing_field_is_named(kind: str) -> None:
    wire = WIRES[kind]
    for part, cls in ((kind, BODIES[kind]), ("chain", Chain), ("tool", Tool)):
        for item in attrs.fields(cls):
            if item.default is attrs.NOTHING:
                short = copy.deepcopy(wire)
                del short[part][item.name]
                with pytest.raises(ReceiptError, match=rf"^missing @ {part}\.{item.name}$"):
                    codec.from_wire(short)
    for name in ("at", "session", "chain", "tool"):
        with pytest.raises(ReceiptError, match=f"^missing @ {name}$"):
            codec.from_wire({key: value for key, value in wire.items() if key != name})


def test_all_that_is_wrong_is_told_at_once() -> None:
    wire = copy.deepcopy(WIRES["trial"])
    wire["at"], wire["chain"] = 3, {"n": "0"}
    wire["trial"]["subject"] |= {"role": "boss", "arm": 1}
    del wire["trial"]["requests"]["ok"]
    with pytest.raises(ReceiptError) as caught:
        codec.from_wire(wire)
    assert sorted(str(problem) for problem in caught.value.problems) == [
        "expected a whole number, got 0 @ chain.n",
        "expected one of baseline, control, candidate, diagnostic, got boss @ trial.subject.role",
        "expected text, got 1 @ trial.subject.arm",
        "expected text, got 3 @ at",
        "missing @ trial.requests.ok",
    ]


@pytest.mark.parametrize("bad", ["abc", {"a": 1}, "", {}])
def test_text_and_tables_are_no_lists(bad: Any) -> None:
    for path in (("trial", "marks"), ("trial", "samples")):
        with pytest.raises(ReceiptError, match=f"expected a list.* @ {path[0]}.{path[1]}$"):
            codec.from_wire(replaced(WIRES["trial"], path, bad))


@pytest.mark.parametrize(
    ("kind", "path", "name"),
    [
        ("trial", ("subject", "role"), "Role"),
        ("trial", ("subject", "evidence"), "Evidence"),
        ("trial", ("figures", "C1", "better"), "Better"),
        ("boot", ("outcome",), "Outcome"),
        ("gate", ("holds",), "Holds"),
        ("decision", ("verdict",), "Verdict"),
        ("correction", ("action",), "CorrectionKind"),
        ("claim", ("figure_evidence",), "Evidence"),
    ],
)
def test_a_word_outside_its_vocabulary_is_refused_and_all_inside_are_kept(kind: str, path: tuple[str, ...], name: str) -> None:
    (words,) = [item for item in VOCABULARIES if item.__name__ == name]
    for word in words:
        wire = replaced(WIRES[kind], (kind, *path), str(word))
        again = codec.to_wire(codec.from_wire(wire))
        # The default word is left out.
        assert again in (wire, copy.deepcopy(WIRES[kind])) or str(word) == "neither"
    for bad in ("", "Measured", "KEEP", "keep ", "none", "\x1b[2J"):
        with pytest.raises(ReceiptError, match=rf"expected one of {next(iter(words))}, .* @ {kind}\..*{path[-1]}$"):
            codec.from_wire(replaced(WIRES[kind], (kind, *path), bad))


@pytest.mark.parametrize("version", [0, 2, -1, "1", True, 1.5, None, [1], {}])
def test_another_format_is_refused(version: Any) -> None:
    with pytest.raises(ReceiptError, match=r"format version .* is not known here"):
        codec.from_wire({**WIRES["note"], "ledger": version})


@pytest.mark.parametrize("kind", sorted(ENVELOPE))
def test_a_kind_may_not_be_called_as_a_part_of_the_envelope(kind: str) -> None:
    with pytest.raises(ReceiptError, match="'kind'"):
        codec.from_wire({**WIRES["note"], "kind": kind, kind: {}})


@given(RECEIPTS, st.data())
def test_a_cut_receipt_is_refused(receipt: Receipt, data: st.DataObject) -> None:
    good = codec.encode(receipt)
    with pytest.raises(ReceiptError):
        codec.decode(good[: data.draw(st.integers(0, len(good) - 1))])


@given(NEW_KINDS, st.dictionaries(st.text(max_size=4), st.none() | st.integers() | st.text(max_size=4), max_size=4))
def test_any_json_is_a_receipt_or_not_one(kind: str, wire: dict[str, Any]) -> None:
    with pytest.raises(ReceiptError):
        codec.from_wire({"kind": kind, **wire, "chain": 1})


# --- fingerprints ---------------------------------------------------------------------------------------------------------------


@given(
    st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), st.sampled_from(["", "1", "x"]), max_size=4)
)
def test_a_fingerprint_knows_every_factor_and_no_order(identity: dict[str, str]) -> None:
    made = codec.fingerprint(identity)
    assert digest.is_digest(made)
    assert codec.fingerprint(dict(reversed(identity.items()))) == made
    for name in identity:
        assert codec.fingerprint({**identity, name: "other"}) != made
        assert codec.fingerprint({key: value for key, value in identity.items() if key != name}) != made
