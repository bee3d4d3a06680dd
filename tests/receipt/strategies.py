"""Generated receipts of every kind, made from the model's own classes.

What it does: reads the fields of a record and draws a value for each, unknown fields at every level among them. What it does
not do: draw receipts that hang together; links are any digest. Rule kept: a field of a type that is not known here is an error,
so that a new type in the model cannot go untested.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import attrs
from hypothesis import strategies as st

from ledger.core.canonical import MAX_WHOLE
from ledger.receipt.model import BODIES, Chain, Foreign, Receipt, Tool

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
WHOLE = st.integers(-MAX_WHOLE, MAX_WHOLE)
FLOATS = st.floats(-1e15, 1e15, allow_nan=False)
JSON = st.recursive(
    st.booleans() | WHOLE | FLOATS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
PLAIN: Mapping[Any, st.SearchStrategy[Any]] = {str: TEXT, int: WHOLE, float: FLOATS, bool: st.booleans(), Any: JSON}
ENVELOPE = frozenset(attrs.fields_dict(Receipt)) - {"body", "extra"}
NEW_KINDS = TEXT.filter(lambda word: word not in ENVELOPE and word not in BODIES)


def unknown_fields(known: frozenset[str]) -> st.SearchStrategy[dict[str, Any]]:
    """Fields that a class with these ``known`` ones does not know; a field called ``extra`` is one of them."""
    return st.dictionaries((TEXT | st.just("extra")).filter(lambda name: name not in known), JSON, max_size=2)


def records(cls: type) -> st.SearchStrategy[Any]:
    """Records of this class, with unknown fields."""
    hints = get_type_hints(cls)
    fields = {name: _values(hints[name]) for name in attrs.fields_dict(cls) if name != "extra"}
    return st.builds(cls, **fields, extra=unknown_fields(frozenset(fields)))


def _values(hint: Any) -> st.SearchStrategy[Any]:
    if hint in PLAIN:
        return PLAIN[hint]
    origin, args = get_origin(hint), get_args(hint)
    if origin is UnionType and args[1:] == (NoneType,):
        return st.none() | _values(args[0])
    if origin is tuple:
        return st.lists(_values(args[0]), max_size=2).map(tuple)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return st.dictionaries(TEXT, _values(args[1]), max_size=2)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return st.sampled_from(sorted(hint))
    if attrs.has(hint):
        return st.deferred(lambda: records(hint))
    raise TypeError(f"no values are known for a field of type {hint!r}")


def _receipt(kind: str, body: st.SearchStrategy[Any]) -> st.SearchStrategy[Receipt]:
    envelope = {"at": TEXT, "session": TEXT, "chain": records(Chain), "tool": records(Tool)}
    return st.builds(Receipt, kind=st.just(kind), body=body, extra=unknown_fields(ENVELOPE | {kind}), **envelope)


KNOWN_RECEIPTS: Mapping[str, st.SearchStrategy[Receipt]] = {
    str(kind): _receipt(str(kind), records(cls)) for kind, cls in BODIES.items()
}
FOREIGN_RECEIPTS = NEW_KINDS.flatmap(lambda kind: _receipt(kind, records(Foreign)))
RECEIPTS = st.one_of(*KNOWN_RECEIPTS.values(), FOREIGN_RECEIPTS)
