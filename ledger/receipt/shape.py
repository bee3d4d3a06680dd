"""Whether a receipt's bytes surely fit the model, without building it.

What it does: tells in microseconds that :func:`ledger.receipt.codec.from_wire` would take what bytes hold, with what a session's
check reads of them; ``verify`` and the index ask this of every receipt. What it does not do: say what is wrong (``codec`` does),
judge an old version or a kind that this version does not know, or see whether the bytes are canonical. Rules kept: the types by
which msgspec reads are made from the model's own classes; yes is certain of bytes that ``canonical.decode`` takes, and no is a
maybe, so that a no costs time and never a receipt.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import attrs
import msgspec
from attrs import frozen
from msgspec import UNSET, UnsetType

from ledger.core.digest import Descriptor
from ledger.receipt.model import BLOB_LISTS, BODIES, FORMAT, LINK_LISTS, LINKS, SOURCES, Receipt

_PLAIN = frozenset({str, int, float, bool})


@frozen(kw_only=True)
class Outline:
    """What a fitting receipt says of itself: its envelope, and the links and blobs that it names, as the model lists them.

    Fields that the model does not know are left out of the blobs. ``identity`` and ``fingerprint`` are a boot's.
    """

    kind: str
    at: str
    session: str
    n: int
    after: str | None
    links: Mapping[str, str]
    blobs: tuple[Descriptor, ...]
    identity: Mapping[str, str] | None = None
    fingerprint: str | None = None


def fits(data: bytes) -> bool:
    """Whether these are surely the bytes of a receipt of the current version; False means: ask the codec."""
    return _read(data) is not None


def outline(data: bytes) -> Outline | None:
    """The outline of a receipt of the current version; None means: ask the codec."""
    found = _read(data)
    if found is None:
        return None
    wire, body = found
    kind = wire.kind
    is_boot = kind == "boot"
    return Outline(
        kind=kind,
        at=wire.at,
        session=wire.session,
        n=wire.chain.n,
        after=wire.chain.after or None,
        links=_links(_NAMES[kind], body, wire.chain.after),
        blobs=_blobs(_NAMES[kind], body),
        identity=(body.factors.identity or {}) if is_boot else None,
        fingerprint=body.fingerprint if is_boot else None,
    )


def _read(data: bytes) -> tuple[Any, Any] | None:
    """The receipt and its body, as structs."""
    try:
        wire = _DECODER.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    body = getattr(wire, wire.kind) if wire.kind in _NAMES else UNSET
    return None if body is UNSET else (wire, body)


@frozen(kw_only=True)
class _Names:
    """Which of the model's fields that name receipts or blobs a kind has."""

    links: tuple[str, ...]
    link_lists: tuple[str, ...]
    sources: tuple[str, ...]
    blob_lists: tuple[str, ...]


def _links(names: _Names, body: Any, after: Any) -> dict[str, str]:
    found = {"chain.after": after} if after else {}
    for name in names.links:
        if (digest := getattr(body, name)) is not UNSET:
            found[name] = digest
    for name in names.link_lists:
        for index, digest in enumerate(getattr(body, name) or ()):
            found[f"{name}[{index}]"] = digest
    return found


def _blobs(names: _Names, body: Any) -> tuple[Descriptor, ...]:
    listed = [getattr(body, name).text for name in names.sources]
    for name in names.blob_lists:
        listed += getattr(body, name) or ()
    return tuple([_descriptor(item) for item in listed])


def _descriptor(item: Any) -> Descriptor:
    return Descriptor(mediaType=item.mediaType, digest=item.digest, size=item.size, annotations=item.annotations or {})


def _type(hint: Any) -> Any:
    """What msgspec reads a field of this type as. Types that the model does not use are a defect of this program."""
    if hint is Any:
        return msgspec.Raw
    if hint in _PLAIN:
        return hint
    origin, args = get_origin(hint), get_args(hint)
    if origin is UnionType and len(args) == 2 and args[1] is type(None):
        return _type(args[0])
    if origin is tuple:
        return list[_type(args[0])]  # type: ignore[misc]  # made at run time, for msgspec alone
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return dict[str, _type(args[1])]  # type: ignore[misc]  # as above
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return Literal[tuple(word.value for word in hint)]
    if attrs.has(hint):
        return _struct(hint)
    raise TypeError(f"a field of type {hint!r} has no check")


def _struct(cls: type) -> type[msgspec.Struct]:
    """The struct of a record; a field with a default may be absent, and one that is unknown is passed over."""
    hints = get_type_hints(cls)
    fields: list[Any] = []
    for item in attrs.fields(cls):
        if item.name != "extra":
            kind = _type(hints[item.name])
            required = item.default is attrs.NOTHING
            fields.append((item.name, kind) if required else (item.name, kind | UnsetType, UNSET))
    return msgspec.defstruct(cls.__name__, fields, kw_only=True, gc=False)


def _envelope() -> type[msgspec.Struct]:
    """The struct of a whole receipt: the envelope, and a body under each kind."""
    hints = get_type_hints(Receipt)
    fields: list[Any] = [(name, _type(hints[name])) for name in ("kind", "at", "session", "chain", "tool")]
    bodies = [(str(kind), _struct(cls) | UnsetType, UNSET) for kind, cls in BODIES.items()]
    return msgspec.defstruct("Receipt", [("ledger", Literal[FORMAT]), *fields, *bodies], kw_only=True, gc=False)


def _names(cls: type) -> _Names:
    known = attrs.fields_dict(cls)
    return _Names(
        **{
            field: tuple(name for name in names if name in known)
            for field, names in (("links", LINKS), ("link_lists", LINK_LISTS), ("sources", SOURCES), ("blob_lists", BLOB_LISTS))
        }
    )


_DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_envelope())
_NAMES: Mapping[str, _Names] = {str(kind): _names(cls) for kind, cls in BODIES.items()}
