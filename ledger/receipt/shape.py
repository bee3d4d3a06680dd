"""Whether a receipt's JSON surely fits the model, without building it.

What it does: tells in microseconds that :func:`ledger.receipt.codec.from_wire` would take a value, and reads links and blobs
straight from it; ``verify`` asks this of every receipt. What it does not do: say what is wrong (``codec`` does), or judge an old
version. Rules kept: the checks come from the model's own classes; yes is certain and no is a maybe, so that a no costs time and
never a receipt.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import attrs

from ledger.core.digest import Descriptor
from ledger.receipt.model import BLOB_LISTS, BODIES, FORMAT, LINK_LISTS, LINKS, SOURCES, Receipt

Check = Callable[[Any], bool]

_PLAIN: Mapping[Any, frozenset[type]] = {
    str: frozenset({str}),
    int: frozenset({int}),
    float: frozenset({float, int}),
    bool: frozenset({bool}),
}


def fits(wire: Any) -> bool:
    """Whether ``wire`` is surely a receipt of the current version; False means: ask the codec."""
    if type(wire) is not dict or wire.get("ledger") != FORMAT or not _envelope(wire):
        return False
    kind = wire["kind"]
    body = wire.get(kind)
    return type(body) is dict and kind not in _TAKEN and _BODIES.get(kind, _anything)(body)


def links(wire: Mapping[str, Any]) -> dict[str, str]:
    """The digests of other receipts that a fitting ``wire`` names, by role; as :func:`ledger.receipt.model.links`."""
    kind = wire["kind"]
    body = wire[kind]
    after = wire["chain"].get("after")
    found: dict[str, str] = {"chain.after": after} if after else {}
    for name in _named(kind, LINKS):
        if name in body:
            found[name] = body[name]
    for name in _named(kind, LINK_LISTS):
        for index, digest in enumerate(body.get(name, ())):
            found[f"{name}[{index}]"] = digest
    return found


def blobs(wire: Mapping[str, Any]) -> list[Descriptor]:
    """Every blob that a fitting ``wire`` names; as :func:`ledger.receipt.model.blobs`, but for unknown fields."""
    kind = wire["kind"]
    body = wire[kind]
    listed = [body[name]["text"] for name in _named(kind, SOURCES)]
    for name in _named(kind, BLOB_LISTS):
        listed += body.get(name, ())
    return [Descriptor(mediaType=item["mediaType"], digest=item["digest"], size=item["size"]) for item in listed]


def _anything(_: Any) -> bool:
    return True


def _check(hint: Any) -> Check:
    """The check of a field's type. Types that the model does not use are a defect of this program."""
    if hint is Any:
        return _anything
    if hint in _PLAIN:
        return _one_of_types(_PLAIN[hint])
    origin, args = get_origin(hint), get_args(hint)
    if origin is UnionType and len(args) == 2 and args[1] is type(None):
        return _check(args[0])
    if origin is tuple:
        return _all_of(list, list, _check(args[0]))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _all_of(dict, dict.values, _check(args[1]))
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _word(frozenset(word.value for word in hint))
    if attrs.has(hint):
        return _record(hint)
    raise TypeError(f"a field of type {hint!r} has no check")


def _one_of_types(types: frozenset[type]) -> Check:
    return lambda value: type(value) in types


def _word(words: frozenset[str]) -> Check:
    return lambda value: type(value) is str and value in words


def _all_of(kind: type, items: Callable[[Any], Any], check: Check) -> Check:
    if check is _anything:
        return lambda value: type(value) is kind
    return lambda value: type(value) is kind and all(map(check, items(value)))


def _record(cls: type, without: tuple[str, ...] = ()) -> Check:
    hints = get_type_hints(cls)
    fields = [item for item in attrs.fields(cls) if item.name not in ("extra", *without)]
    required = frozenset(item.name for item in fields if item.default is attrs.NOTHING)
    plain = {item.name: _PLAIN[kind] for item in fields if (kind := _plain_type(hints[item.name])) is not None}
    checks = {item.name: _check(hints[item.name]) for item in fields if item.name not in plain}

    def check(value: Any) -> bool:
        if type(value) is not dict or not required <= value.keys():
            return False
        for name, item in value.items():
            if name in plain:
                if type(item) not in plain[name]:
                    return False
            elif name in checks and not checks[name](item):
                return False
        return True

    return check


def _plain_type(hint: Any) -> Any:
    """The plain type of a field, optional or not; None for any other field."""
    args = get_args(hint)
    inner = args[0] if get_origin(hint) is UnionType and args[1:] == (type(None),) else hint
    return inner if inner in _PLAIN else None


def _named(kind: str, names: tuple[str, ...]) -> tuple[str, ...]:
    return _NAMES.get((kind, names), ())


_BODIES: Mapping[str, Check] = {str(kind): _record(cls) for kind, cls in BODIES.items()}
# What stands in the envelope can be no kind.
_TAKEN = frozenset(attrs.fields_dict(Receipt)) - {"body", "extra"}
_envelope = _record(Receipt, without=("body",))
_NAMES: Mapping[tuple[str, tuple[str, ...]], tuple[str, ...]] = {
    (str(kind), names): tuple(name for name in names if name in attrs.fields_dict(cls))
    for kind, cls in BODIES.items()
    for names in (LINKS, LINK_LISTS, SOURCES, BLOB_LISTS)
}
