"""The JSON Schema of a receipt, every kind in one document.

What it does: makes it from the records of ``model``. What it does not do: check digests, links or canonical form; ``ledger
verify`` does. Rule kept: fields that are not listed are allowed everywhere, since unknown fields survive.
"""

from ledger.core.schema import Schema, document, record_schema
from ledger.receipt.model import BODIES, Receipt

IDENTIFIER = "https://receipt-ledger.invalid/schemas/receipt.schema.json"


def receipt_schema() -> Schema:
    """The schema of a receipt: the envelope, and for each kind the table of its name."""
    definitions: dict[str, Schema] = {}
    bodies = {str(kind): record_schema(cls, definitions, open_records=True) for kind, cls in BODIES.items()}
    envelope = document(Receipt, title="ledger receipt", identifier=IDENTIFIER, open_records=True, without=("extra", "body"))
    envelope["required"] = ["ledger", *envelope["required"]]
    envelope["properties"] = {**envelope["properties"], **bodies}
    envelope["allOf"] = [
        {"if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]}, "then": {"required": [kind]}} for kind in bodies
    ]
    merged = {**envelope["$defs"], **definitions}
    envelope["$defs"] = {name: merged[name] for name in sorted(merged)}
    return envelope
