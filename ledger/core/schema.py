"""JSON Schemas of records, made from the records themselves.

What it does: turns an attrs class with typed fields into a JSON Schema (2020-12). What it does not do: know a record's meaning;
descriptions are the classes' own docstrings, limits what a field's metadata says (:func:`limited`). Rules kept: the schema is a
pure function of the classes, so that the committed files can be compared byte for byte; the order is the fields' own.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import attrs

Schema = dict[str, Any]
LIMITS = "schema"

_PLAIN: Mapping[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    Any: {},
    object: {},
}


def limited(**keywords: Any) -> Mapping[str, Any]:
    """Metadata of a field: keywords of JSON Schema that narrow what its type allows."""
    return {LIMITS: {name: list(value) if isinstance(value, tuple) else value for name, value in keywords.items()}}


def whole(pattern: str, **keywords: Any) -> Mapping[str, Any]:
    """Metadata of a text: the whole of it matches ``pattern``, in the part that Python's and ECMA's expressions share."""
    return limited(pattern=f"^(?:{pattern})$", **keywords)


def keyed(pattern: str, **keywords: Any) -> Mapping[str, Any]:
    """Metadata of a table: the whole of each key matches ``pattern``."""
    return limited(propertyNames={"pattern": f"^(?:{pattern})$"}, **keywords)


def document(
    root: type, *, title: str, identifier: str, open_records: bool = False, without: Collection[str] = ("extra",)
) -> Schema:
    """The schema of ``root`` with the records below it in ``$defs``; ``open_records`` allows fields that are not listed."""
    definitions: dict[str, Schema] = {}
    body = _record(root, definitions, open_records, without)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": identifier,
        "title": title,
        **body,
        "$defs": {name: definitions[name] for name in sorted(definitions)},
    }


def record_schema(cls: type, definitions: dict[str, Schema], *, open_records: bool) -> Schema:
    """A reference to ``cls``, whose schema is put into ``definitions``."""
    return _type(cls, definitions, open_records)


def _record(cls: type, definitions: dict[str, Schema], open_records: bool, without: Collection[str] = ("extra",)) -> Schema:
    hints = get_type_hints(cls)
    properties: dict[str, Schema] = {}
    required: list[str] = []
    rest = False
    for item in attrs.fields(cls):
        reads = item.metadata.get("reads")
        if reads == "key" or item.name in without:
            continue
        if reads == "rest":
            rest = True
            continue
        made = _type(hints[item.name], definitions, open_records)
        properties[item.name] = _with_default({**made, **item.metadata.get(LIMITS, {})}, item.default)
        if item.default is attrs.NOTHING:
            required.append(item.name)
    schema: Schema = {"type": "object", "description": _about(cls), "properties": properties}
    if required:
        schema["required"] = required
    return schema | ({} if rest or open_records else {"additionalProperties": False})


def _type(hint: Any, definitions: dict[str, Schema], open_records: bool) -> Schema:
    if hint in _PLAIN:
        return dict(_PLAIN[hint])
    origin, args = get_origin(hint), get_args(hint)
    if origin is UnionType:
        kept = [item for item in args if item is not NoneType]
        made = [_type(item, definitions, open_records) for item in kept]
        return made[0] if len(made) == 1 else {"anyOf": made}
    if origin is tuple:
        return {"type": "array", "items": _type(args[0], definitions, open_records)}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _type(args[1], definitions, open_records)}
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return {"type": "string", "enum": [item.value for item in hint]}
    if attrs.has(hint):
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = {}
            definitions[hint.__name__] = _record(hint, definitions, open_records)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    raise TypeError(f"a field of type {hint!r} has no schema")


def _with_default(schema: Schema, default: Any) -> Schema:
    plain = isinstance(default, str | int | float | bool) and not isinstance(default, StrEnum)
    if isinstance(default, StrEnum):
        return {**schema, "default": default.value}
    return {**schema, "default": default} if plain and "$ref" not in schema else schema


def _about(cls: type) -> str:
    return " ".join((cls.__doc__ or "").split()).replace("``", "")
