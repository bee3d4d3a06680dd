"""TOML tables into records, driven by the records' own field types.

What it does: builds any attrs record of ``model`` from a table, and collects every unknown key, missing key and wrong type with
its path. What it does not do: know one record from another, or check one value against another (``check``). Rules kept: it
never stops at the first mistake; an empty value takes the place of what is wrong or missing, so that the rest can be checked; a
boolean is no number, and nothing is converted but a whole number to a float.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import attrs

from ledger.core.errors import did_you_mean, nearest, shorten
from ledger.spec.locate import Path
from ledger.spec.values import Complain

T = TypeVar("T")

NAMES: Mapping[type, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    dict: "a table",
    list: "a list",
}
_EMPTY: Mapping[Any, Any] = {str: "", int: 0, float: 0.0, bool: False}


def structure(cls: type[T], table: Mapping[str, Any], path: Path, complain: Complain, *, key: str | None = None) -> T:
    """A ``cls`` from ``table``; ``key`` is the table's own name where a field takes it.

    ``complain(what, path=…, value=…, hint=…, missing=…)`` hears every mistake; ``missing`` is the path of a key that is not there
    and ``path`` then what stands nearest to it. A required key that is misspelt is told once.
    """
    hints = get_type_hints(cls)
    fields = {item.name: item for item in attrs.fields(cls)}  # type: ignore[arg-type]  # every record of `model` is an attrs class
    reads = {name: item.metadata.get("reads") for name, item in fields.items()}
    taken = [name for name in fields if not reads[name]]
    rest = next((name for name in fields if reads[name] == "rest"), None)
    unknown = [name for name in table if name not in taken]
    missing = [name for name in taken if name not in table and fields[name].default is attrs.NOTHING]
    if rest is None:
        missing = _tell_unknown(unknown, taken, missing, path, complain)
    for name in missing:
        complain(f"missing key {name!r}", path=path, hint=_expects(hints[name]), missing=(*path, name))
    values: dict[str, Any] = {name: key for name in fields if reads[name] == "key"}
    for name in taken:
        if name in table:
            values[name] = _value(hints[name], table[name], (*path, name), complain)
        elif fields[name].default is attrs.NOTHING:
            values[name] = _empty(hints[name])
    return cls(**values, **({rest: {name: table[name] for name in unknown}} if rest is not None else {}))


def _tell_unknown(unknown: list[str], taken: list[str], missing: list[str], path: Path, complain: Complain) -> list[str]:
    """Tell of every unknown key; the missing keys that none of them was meant to be."""
    left = list(missing)
    for name in unknown:
        meant = nearest(name, taken)
        hint = did_you_mean(name, taken)
        if meant in left:
            left.remove(meant)
            complain(f"unknown key {name!r}", path=(*path, name), hint=hint, missing=(*path, meant))
        else:
            complain(f"unknown key {name!r}", path=(*path, name), hint=hint)
    return left


def _value(hint: Any, value: Any, path: Path, complain: Complain) -> Any:
    if get_origin(hint) is UnionType:
        return _value(next(item for item in get_args(hint) if item is not NoneType), value, path, complain)
    if hint is Any:
        return value
    if get_origin(hint) is tuple:
        return _list(get_args(hint)[0], value, path, complain)
    if isinstance(get_origin(hint), type) and issubclass(get_origin(hint), Mapping):
        return _mapping(get_args(hint)[1], value, path, complain)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _word(hint, value, path, complain)
    if attrs.has(hint):
        if not isinstance(value, dict):
            return structure(hint, _refused(dict, value, path, complain), path, _silent)
        return structure(hint, value, path, complain)
    return _plain(hint, value, path, complain)


def _list(hint: Any, value: Any, path: Path, complain: Complain) -> tuple[Any, ...]:
    if not isinstance(value, list):
        return tuple(_refused(list, value, path, complain))
    return tuple(_value(hint, item, (*path, index), complain) for index, item in enumerate(value))


def _mapping(hint: Any, value: Any, path: Path, complain: Complain) -> dict[str, Any]:
    if not isinstance(value, dict):
        return dict(_refused(dict, value, path, complain))
    if not attrs.has(hint):
        return {name: _value(hint, item, (*path, name), complain) for name, item in value.items()}
    return {
        name: structure(hint, item, (*path, name), complain, key=name)
        if isinstance(item, dict)
        else structure(hint, _refused(dict, item, (*path, name), complain), path, _silent, key=name)
        for name, item in value.items()
    }


def _word(hint: type[StrEnum], value: Any, path: Path, complain: Complain) -> StrEnum:
    words = [item.value for item in hint]
    if value in words:
        return hint(value)
    complain(f"expected one of {', '.join(words)}", path=path, value=value, hint=did_you_mean(str(value), words))
    return hint(words[0])


def _plain(hint: type, value: Any, path: Path, complain: Complain) -> Any:
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not hint:
        return _refused(hint, value, path, complain)
    return value


def _refused(hint: type, value: Any, path: Path, complain: Complain) -> Any:
    way_out = f'write it in quotes: "{value}"' if hint is str and isinstance(value, int | float) else None
    complain(f"expected {NAMES[hint]}, found {_what(value)}", path=path, value=shorten(value), hint=way_out)
    return hint()


def _what(value: Any) -> str:
    return NAMES.get(type(value), f"a {type(value).__name__}")


def _empty(hint: Any) -> Any:
    if get_origin(hint) is tuple:
        return ()
    if hint in _EMPTY:
        return _EMPTY[hint]
    return {}


def _expects(hint: Any) -> str:
    if hint in NAMES:
        return f"it is {NAMES[hint]}"
    return "it is a list" if get_origin(hint) is tuple else "it is a table"


def _silent(*_: Any, **__: Any) -> None:
    """Hears nothing: what stands in for a refused value needs no second complaint."""
