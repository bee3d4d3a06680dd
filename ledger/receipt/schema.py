"""The JSON Schema of a receipt, every kind in one document.

What it does: makes it from the records of ``model``, with the patterns of digests and times. What it does not do: check digests,
links or canonical form; ``ledger verify`` does. Rules kept: fields that are not listed are allowed everywhere, since unknown
fields survive, and so are kinds; what the schema refuses, ``ledger verify`` refuses too.
"""

from collections.abc import Iterator

from ledger.core.schema import Schema, document, record_schema
from ledger.receipt.model import BODIES, FORMAT, LINK_LISTS, LINKS, Receipt

IDENTIFIER = "https://receipt-ledger.invalid/schemas/receipt.schema.json"
DIGEST: Schema = {"pattern": "^sha256:[0-9a-f]{64}$"}
TIME: Schema = {"format": "date-time"}


def receipt_schema() -> Schema:
    """The schema of a receipt: the envelope, and for each kind the table of its name."""
    definitions: dict[str, Schema] = {}
    bodies = {str(kind): record_schema(cls, definitions, open_records=True) for kind, cls in BODIES.items()}
    envelope = document(Receipt, title="ledger receipt", identifier=IDENTIFIER, open_records=True, without=("extra", "body"))
    envelope["required"] = ["ledger", *envelope["required"]]
    envelope["properties"] = {**envelope["properties"], **bodies}
    envelope["properties"]["ledger"] = {"type": "integer", "minimum": 1, "maximum": FORMAT}
    envelope["properties"]["at"] |= TIME
    envelope["allOf"] = [
        {"if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]}, "then": {"required": [kind]}} for kind in bodies
    ]
    merged = {**envelope["$defs"], **definitions}
    for each in _digests(merged, {cls.__name__ for cls in BODIES.values()}):
        each |= DIGEST
    envelope["$defs"] = {name: merged[name] for name in sorted(merged)}
    return envelope


def _digests(definitions: dict[str, Schema], bodies: set[str]) -> Iterator[Schema]:
    """The schemas of all fields that hold a digest: of a blob, of the receipt before, of other receipts."""
    yield definitions["Descriptor"]["properties"]["digest"]
    yield definitions["Chain"]["properties"]["after"]
    for name in bodies:
        fields = definitions[name]["properties"]
        yield from (fields[link] for link in LINKS if link in fields)
        yield from (fields[link]["items"] for link in LINK_LISTS if link in fields)
