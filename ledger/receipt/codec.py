"""Receipts to bytes and back.

What it does: maps the model onto the wire (cattrs) and the wire onto canonical bytes (``core.canonical``). What it does not do:
touch files. Rules kept: ``None`` and empty defaults are left out; unknown fields are kept in ``extra``; bytes that are not a
receipt raise :class:`ReceiptError` that names the field; an old version is upcast here on read and never rewritten.

A receipt's body stands beside its envelope under the name of its kind: ``{"kind": "boot", "boot": {…}, "at": …}``.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, TypeVar, get_origin

import attrs
import cattrs
from cattrs.cols import list_structure_factory
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override
from cattrs.v import transform_error

from ledger.core import canonical, digest
from ledger.core.digest import Descriptor
from ledger.core.errors import LedgerError, Problem, shorten
from ledger.core.words import VOCABULARIES
from ledger.receipt.model import BODIES, FORMAT, Chain, Foreign, Receipt, Record, Tool
from ledger.receipt.upcast import upcast

T = TypeVar("T", Record, Descriptor)


class ReceiptError(LedgerError):
    """Bytes that are not a receipt of any version."""


def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(omit_if_default=True, forbid_extra_keys=False, prefer_attrib_converters=False)
    converter.register_structure_hook(float, _number)
    converter.register_structure_hook(int, _integer)
    converter.register_structure_hook(str, _text)
    # One by one: a vocabulary is text too, and the hook for text would let any text pass for one of its words.
    for words in VOCABULARIES:
        converter.register_structure_hook(words, _word_of(words))
    converter.register_structure_hook_factory(_is_list, lambda cls: _list_of(converter, cls))
    converter.register_unstructure_hook_factory(_is_word, lambda _: str)
    converter.register_unstructure_hook(float, _plain_number)
    converter.register_structure_hook_factory(_is_record, lambda cls: _structure_record(converter, cls))
    converter.register_unstructure_hook_factory(_is_record, lambda cls: _unstructure_record(converter, cls))
    return converter


def _is_list(cls: Any) -> bool:
    return get_origin(cls) is tuple


def _list_of(converter: cattrs.Converter, cls: Any) -> Callable[[Any, Any], tuple[Any, ...]]:
    inner = list_structure_factory(cls, converter)

    def structure(value: Any, _: Any) -> tuple[Any, ...]:
        # Text and tables can be iterated over as well, and would pass for lists of their characters and keys.
        if not isinstance(value, list):
            raise TypeError(f"expected a list, got {shorten(value)}")
        return tuple(inner(value, cls))

    return structure


def _is_word(cls: Any) -> bool:
    return isinstance(cls, type) and issubclass(cls, StrEnum)


def _word_of(cls: type[StrEnum]) -> Callable[[Any, Any], StrEnum]:
    words = {word.value: word for word in cls}

    def word(value: Any, _: Any) -> StrEnum:
        if not isinstance(value, str) or value not in words:
            raise ValueError(f"expected one of {', '.join(words)}, got {shorten(value)}")
        return words[value]

    return word


def _is_record(cls: Any) -> bool:
    return isinstance(cls, type) and issubclass(cls, Record | Descriptor)


def _structure_record(converter: cattrs.Converter, cls: type[T]) -> Callable[[Any, Any], T]:
    known = {item.name for item in attrs.fields(cls)} - {"extra"}
    inner = make_dict_structure_fn(cls, converter, extra=override(omit=True))

    def structure(value: Any, _: Any) -> T:
        if not isinstance(value, dict):
            raise TypeError(f"expected a table, got {shorten(value)}")
        record = inner(value, cls)
        unknown = {key: item for key, item in value.items() if key not in known}
        return attrs.evolve(record, extra=unknown) if unknown else record

    return structure


def _unstructure_record(converter: cattrs.Converter, cls: type[T]) -> Callable[[T], dict[str, Any]]:
    inner = make_dict_unstructure_fn(cls, converter, _cattrs_omit_if_default=True, extra=override(omit=True))

    def unstructure(record: T) -> dict[str, Any]:
        return {**record.extra, **inner(record)}

    return unstructure


def _number(value: Any, _: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"expected a number, got {shorten(value)}")
    return float(value)


def _integer(value: Any, _: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"expected a whole number, got {shorten(value)}")
    return value


def _text(value: Any, _: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, got {shorten(value)}")
    return value


def _plain_number(value: float) -> float | int:
    """Whole floats are written as integers, as RFC 8785 spells them; this keeps them on the fast path."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


_CONVERTER = _converter()
_ENVELOPE: Mapping[str, Any] = {"at": str, "session": str, "chain": Chain, "tool": Tool}
# What stands in an envelope can be no kind: its body would take the other's place.
_TAKEN = frozenset({"ledger", "kind", *_ENVELOPE})


def to_wire(receipt: Receipt) -> dict[str, Any]:
    """The receipt as plain dicts, lists, text and numbers."""
    wire: dict[str, Any] = {**receipt.extra, **_envelope(receipt)}
    wire[str(receipt.kind)] = _CONVERTER.unstructure(receipt.body, type(receipt.body))
    return wire


def _envelope(receipt: Receipt) -> dict[str, Any]:
    return {
        "ledger": receipt.ledger,
        "kind": str(receipt.kind),  # a word of the vocabulary is text, but not the plain text that JSON's keys are
        "at": receipt.at,
        "session": receipt.session,
        "chain": _CONVERTER.unstructure(receipt.chain),
        "tool": _CONVERTER.unstructure(receipt.tool),
    }


def from_wire(wire: Any) -> Receipt:
    """The receipt of a parsed JSON value, of any version ever written.

    Raises:
        ReceiptError: with one problem for each field that is wrong.
    """
    if not isinstance(wire, Mapping):
        raise ReceiptError(f"a receipt is a JSON object, got {shorten(wire)}")
    current = upcast(wire)
    kind = current.get("kind")
    version = current.get("ledger")
    if not isinstance(kind, str) or kind in _TAKEN or not isinstance(current.get(kind), dict):
        raise ReceiptError("a receipt has a 'kind' and a table of that name")
    if version != FORMAT or not isinstance(version, int) or isinstance(version, bool):
        raise ReceiptError(f"format version {shorten(version)} is not known here; this ledger reads 1 to {FORMAT}")
    return _structure(current, kind)


def _structure(wire: Mapping[str, Any], kind: str) -> Receipt:
    problems: list[Problem] = []
    parts = {name: _part(wire, name, cls, problems) for name, cls in _ENVELOPE.items()}
    body = _part(wire, kind, BODIES.get(kind, Foreign), problems)
    if problems:
        raise ReceiptError(problems)
    rest = {key: value for key, value in wire.items() if key not in _TAKEN and key != kind}
    return Receipt(kind=kind, body=body, extra=rest, **parts)


def _part(wire: Mapping[str, Any], name: str, cls: Any, problems: list[Problem]) -> Any:
    """One part of a receipt; None, and a problem for each of its fields that is wrong."""
    try:
        return _CONVERTER.structure(wire[name], cls)
    except KeyError:
        problems.append(Problem(what=f"missing @ {name}"))
    except (cattrs.BaseValidationError, TypeError) as error:
        problems += [Problem(what=text) for text in transform_error(error, name, _reason)]
    return None


def _reason(error: BaseException, _: type | None) -> str:
    """Why a field is wrong. The hooks above say it themselves; what is left are the mapper's own."""
    if isinstance(error, KeyError):
        return "missing"
    return "expected a table" if isinstance(error, AttributeError) else str(error)


def encode(receipt: Receipt) -> bytes:
    """The canonical bytes of a receipt: the content of its file."""
    return canonical.encode(to_wire(receipt))


def decode(data: bytes) -> Receipt:
    """The receipt in ``data``.

    Raises:
        ReceiptError: not JSON, or not a receipt.
    """
    try:
        return from_wire(canonical.decode(data))
    except canonical.CanonicalError as error:
        raise ReceiptError(error.problems) from error


def digest_of(receipt: Receipt) -> str:
    """The name of a receipt: the digest of its bytes."""
    return digest.of_bytes(encode(receipt))


def fingerprint(identity: Mapping[str, str]) -> str:
    """The fingerprint of a boot: the digest of its identity factors. Equal fingerprints are replicates."""
    return digest.of_value(dict(identity))
