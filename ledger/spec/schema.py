"""The JSON Schemas of a spec and of a site, for editors and for other programs.

What it does: makes them from the records of ``model``. What it does not do: check references, cycles or units; ``ledger plan``
does. Rule kept: a document that the schema accepts may still be wrong, and one that it refuses is wrong.
"""

from ledger.core.schema import Schema, document
from ledger.spec.model import Site, Spec

BASE = "https://receipt-ledger.invalid/schemas"


def spec_schema() -> Schema:
    """The schema of a spec file."""
    return document(Spec, title="ledger spec", identifier=f"{BASE}/spec.schema.json", open_records=False)


def site_schema() -> Schema:
    """The schema of a site file."""
    return document(Site, title="ledger site", identifier=f"{BASE}/site.schema.json", open_records=False)
