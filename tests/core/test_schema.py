"""JSON Schemas from records: each kind of field, required ones, limits, and records in records."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import jsonschema
import pytest
from attrs import field, frozen

from ledger.core.schema import document, keyed, limited, whole


class Colour(StrEnum):
    """A closed list."""

    RED = "red"
    BLUE = "blue"


@frozen(kw_only=True)
class Leaf:
    """A small record, with ``code`` in its text."""

    name: str = field(metadata=whole("[a-z]+"))
    size: int = field(default=1, metadata=limited(minimum=1, maximum=9))


@frozen(kw_only=True)
class Open:
    """A record that takes any key of its table."""

    id: str = field(metadata={"reads": "key"})
    rest: Mapping[str, Any] = field(factory=dict, metadata={"reads": "rest"})


@frozen(kw_only=True)
class Tree:
    """A record of every kind of field."""

    text: str
    number: float = 0.5
    maybe: int | None = None
    flag: bool = False
    colour: Colour = Colour.RED
    leaf: Leaf | None = None
    leaves: tuple[Leaf, ...] = ()
    table: Mapping[str, Leaf] = field(factory=dict, metadata=keyed("[A-Z]+", maxProperties=2))
    opens: Mapping[str, Open] = field(factory=dict)
    anything: Mapping[str, Any] = field(factory=dict)
    below: tuple["Tree", ...] = ()
    either: str | int = ""


SCHEMA = document(Tree, title="tree", identifier="https://example.invalid/tree.json")
CHECK = jsonschema.Draft202012Validator(SCHEMA)


def test_it_is_a_schema_of_2020_12() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert SCHEMA["$id"] == "https://example.invalid/tree.json"


def test_docstrings_are_descriptions() -> None:
    assert SCHEMA["description"] == "A record of every kind of field."
    assert SCHEMA["$defs"]["Leaf"]["description"] == "A small record, with code in its text."


def test_what_has_no_default_is_required_and_defaults_are_told() -> None:
    assert SCHEMA["required"] == ["text"]
    assert SCHEMA["$defs"]["Leaf"]["required"] == ["name"]
    assert SCHEMA["properties"]["number"] == {"type": "number", "default": 0.5}
    assert SCHEMA["properties"]["colour"] == {"type": "string", "enum": ["red", "blue"], "default": "red"}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"number": 1, "maybe": 3, "flag": True, "colour": "blue", "either": 1},
        {"leaf": {"name": "a", "size": 9}, "leaves": [{"name": "b"}], "table": {"A": {"name": "c"}}},
        {"opens": {"x": {"anything": [1, {"at": "all"}]}}, "anything": {"a": [None]}},
        {"below": [{"text": "", "below": [{"text": ""}]}]},
    ],
)
def test_what_a_record_can_be_is_accepted(more: Mapping[str, Any]) -> None:
    assert [error.message for error in CHECK.iter_errors({"text": "t", **more})] == []


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({"text": 1}, "$.text"),
        ({"maybe": 1.5}, "$.maybe"),
        ({"flag": 1}, "$.flag"),
        ({"colour": "green"}, "$.colour"),
        ({"unknown": 1}, "$"),
        ({"leaf": {}}, "$.leaf"),
        ({"leaf": {"name": "A"}}, "$.leaf.name"),
        ({"leaf": {"name": "a!"}}, "$.leaf.name"),
        ({"leaves": [{"name": "a", "size": 10}]}, "$.leaves[0].size"),
        ({"leaves": {}}, "$.leaves"),
        ({"table": {"a": {"name": "a"}}}, "$.table"),
        ({"table": {name: {"name": "a"} for name in "ABC"}}, "$.table"),
        ({"below": [{"text": "", "below": [{}]}]}, "$.below[0].below[0]"),
        ({"either": []}, "$.either"),
    ],
)
def test_what_a_record_cannot_be_is_refused_at_its_place(more: Mapping[str, Any], path: str) -> None:
    assert [error.json_path for error in CHECK.iter_errors({"text": "t", **more})] == [path]


def test_open_records_take_fields_that_are_not_listed() -> None:
    schema = document(Tree, title="tree", identifier="i", open_records=True)
    found = jsonschema.Draft202012Validator(schema).iter_errors({"text": "t", "new": 1, "leaf": {"name": "a", "new": {}}})
    assert list(found) == []


def test_a_field_without_a_schema_is_a_defect() -> None:
    @frozen(kw_only=True)
    class Odd:
        """Holds a set."""

        odd: set[int]

    with pytest.raises(TypeError, match="has no schema"):
        document(Odd, title="odd", identifier="i")
