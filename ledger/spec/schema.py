"""The JSON Schemas of a spec and of a site, for editors and for other programs.

What it does: makes them from the records of ``model``. What it does not do: check references, cycles or units; ``ledger plan``
does. Rules kept: a document that the schema accepts may still be wrong, and one that it refuses is wrong; what an included file
may hold is not asked of the spec that includes it.
"""

from ledger.core.schema import Schema, document
from ledger.spec.model import ENDPOINT, Site, Spec

# What a spec must have and may have from a file that it includes.
SHARED = ("lanes", "arms", "measures")
BASE = "https://receipt-ledger.invalid/schemas"


def spec_schema() -> Schema:
    """The schema of a spec file."""
    made = document(Spec, title="ledger spec", identifier=f"{BASE}/spec.schema.json", open_records=False)
    rule = made["$defs"]["Rule"]
    whole = {"required": list(SHARED), "properties": {"rule": {"required": rule.pop("required")}}}
    required = [name for name in made["required"] if name not in SHARED]
    return made | {"required": required, "anyOf": [{"required": ["include"]}, whole]}


def site_schema() -> Schema:
    """The schema of a site file: one with nodes, or one with servers that are up."""
    made = document(Site, title="ledger site", identifier=f"{BASE}/site.schema.json", open_records=False)
    starts = {"nodes": {"minItems": 1}, "backend": {"not": {"const": ENDPOINT}}}
    is_up = {"endpoints": {"minProperties": 1}, "backend": {"const": ENDPOINT}}
    return made | {"anyOf": [{"required": ["nodes"], "properties": starts}, {"required": list(is_up), "properties": is_up}]}
