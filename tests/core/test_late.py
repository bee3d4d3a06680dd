"""Modules that are imported when something of them is first asked for."""

import subprocess
import sys

import pytest

from ledger.core.late import Late

PROBE = """
import sys
from ledger.core.late import Late
tables = Late("wave")
assert "wave" not in sys.modules
sys.stdout.write(tables.Error.__name__)
assert "wave" in sys.modules
"""


def test_nothing_is_imported_before_the_first_access() -> None:
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    assert done.stdout == "Error"


def test_what_is_put_in_the_place_of_a_function_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    late = Late("ledger.core.canonical")
    assert late.encode({"a": 1}) == b'{"a":1}\\n' or late.encode({"a": 1}) == b'{"a":1}'
    monkeypatch.setattr("ledger.core.canonical.encode", lambda value: b"planted")
    assert late.encode({"a": 1}) == b"planted"


def test_what_a_module_has_not_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        _ = Late("ledger.core.canonical").nothing
