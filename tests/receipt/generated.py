"""Receipts made from the model's own types: a strategy for every kind, with unknown fields at every level."""

from collections.abc import Mapping
from enum import StrEnum
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import attrs
from hypothesis import strategies as st

from ledger.core.canonical import MAX_WHOLE
from ledger.receipt.model import BODIES, Chain, Foreign, Receipt, Tool

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
WHOLE = st.integers(-MAX_WHOLE, MAX_WHOLE)
NUMBERS = st.floats(-1e15, 1e15) | WHOLE.map(float)
PLAIN = st.recursive(
    st.booleans() | WHOLE | TEXT | st.floats(-1e9, 1e9),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
# The names of unknown fields begin so, so that none is a known field of any record; on the wire ``extra`` is an unknown one too.
UNKNOWN = st.dictionaries(TEXT.map("x-{}".format) | st.just("extra"), PLAIN, max_size=2)


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a field's type."""
    plain = {str: TEXT, int: WHOLE, float: NUMBERS, bool: st.booleans(), Any: PLAIN}
    if hint in plain:
        return plain[hint]
    origin, args = get_origin(hint), get_args(hint)
    if origin is UnionType:
        return st.none() | values_of(args[0])
    if origin is tuple:
        return st.lists(values_of(args[0]), max_size=2).map(tuple)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return st.dictionaries(TEXT, values_of(args[1]), max_size=2)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return st.sampled_from(list(hint))
    return records_of(hint)


def records_of(cls: type) -> st.SearchStrategy[Any]:
    """Records of a class, with unknown fields where it keeps them."""
    hints = get_type_hints(cls)
    fields = {item.name: values_of(hints[item.name]) for item in attrs.fields(cls) if item.name != "extra"}
    return st.fixed_dictionaries({**fields, "extra": UNKNOWN}).map(lambda values: cls(**values))


FOREIGN = st.dictionaries(TEXT, PLAIN, max_size=3).map(lambda values: Foreign(extra=values))


def _receipt(kind: str, body: Any, chain: Chain, tool: Tool, texts: tuple[str, str], extra: Mapping[str, Any]) -> Receipt:
    return Receipt(kind=kind, at=texts[0], session=texts[1], chain=chain, tool=tool, body=body, extra=extra)


def receipts_of(kind: str) -> st.SearchStrategy[Receipt]:
    """Receipts of one kind; of any other word, receipts with a body that this version does not know."""
    body = records_of(BODIES[kind]) if kind in BODIES else FOREIGN
    return st.builds(_receipt, st.just(kind), body, records_of(Chain), records_of(Tool), st.tuples(TEXT, TEXT), UNKNOWN)


KINDS = [*map(str, BODIES), "omen"]
RECEIPTS = st.sampled_from(KINDS).flatmap(receipts_of)
