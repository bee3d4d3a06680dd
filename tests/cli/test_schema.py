"""``ledger schema``: what is committed is what the records say; it accepts what is right and refuses what is wrong."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ledger.cli.main import run
from ledger.core.errors import ExitCode
from tests.spec.conftest import SITE, SPEC

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("spec", "site", "receipt")
SPECS = sorted(path for path in (ROOT / "specs").glob("*.toml") if path.stem not in {"lanes", "keep"})
SITES = sorted(ROOT.glob("specs/sites/*.toml"))
WRONG = sorted((ROOT / "tests/spec/wrong").glob("*.toml"))
RECEIPTS = [*sorted((ROOT / "tests/golden/receipts").glob("*.json")), *sorted((ROOT / "receipts").rglob("*.json"))]
DIGEST = "sha256:" + "0" * 64
RECEIPT = {
    "ledger": 1,
    "kind": "note",
    "at": "2026-12-01T00:00:00Z",
    "session": "s",
    "chain": {"n": 0},
    "tool": {"name": "ledger", "version": "1"},
    "note": {"text": "t", "by": "b"},
}


def validator(name: str) -> jsonschema.Draft202012Validator:
    schema = json.loads((ROOT / f"schemas/{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


CHECKS = {name: validator(name) for name in NAMES}


def errors(name: str, value: Any) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in CHECKS[name].iter_errors(value)]


def test_what_is_committed_is_what_the_records_say(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-C", str(ROOT), "schema", "--check"]) == ExitCode.YES, capsys.readouterr().out


def test_the_same_bytes_are_written_every_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-C", str(tmp_path), "schema", "a/b"]) == ExitCode.YES
    assert sorted(path.name for path in (tmp_path / "a/b").iterdir()) == sorted(f"{name}.schema.json" for name in NAMES)
    for name in NAMES:
        assert (tmp_path / f"a/b/{name}.schema.json").read_bytes() == (ROOT / f"schemas/{name}.schema.json").read_bytes()
    capsys.readouterr()
    assert run(["-C", str(tmp_path), "schema", "a/b", "--json"]) == ExitCode.YES
    assert json.loads(capsys.readouterr().out) == {"written": []}


def test_a_check_names_the_files_that_differ_and_writes_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["-C", str(tmp_path), "schema"])
    changed = tmp_path / "schemas/site.schema.json"
    changed.write_bytes(changed.read_bytes() + b"\n")
    (tmp_path / "schemas/spec.schema.json").unlink()
    capsys.readouterr()
    before = changed.read_bytes()
    assert run(["-C", str(tmp_path), "schema", "--check"]) == ExitCode.NO
    assert capsys.readouterr().out.splitlines() == ["spec.schema.json differs", "site.schema.json differs"]
    assert (changed.read_bytes(), (tmp_path / "schemas/spec.schema.json").exists()) == (before, False)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "schemas").write_text("a file")
    assert run(["-C", str(tmp_path), "schema"]) == ExitCode.STORE
    assert "cannot write the schemas" in capsys.readouterr().err


@pytest.mark.parametrize("path", SPECS, ids=[path.stem for path in SPECS])
def test_a_shipped_spec_is_accepted_and_names_its_schema(path: Path) -> None:
    assert errors("spec", tomllib.loads(path.read_text())) == []
    schema = path.read_text().splitlines()[0].removeprefix("#:schema ")
    assert (path.parent / schema).resolve() == ROOT / "schemas/spec.schema.json"


@pytest.mark.parametrize("path", SITES, ids=[path.stem for path in SITES])
def test_a_shipped_site_is_accepted_and_names_its_schema(path: Path) -> None:
    assert errors("site", tomllib.loads(path.read_text())) == []
    schema = path.read_text().splitlines()[0].removeprefix("#:schema ")
    assert (path.parent / schema).resolve() == ROOT / "schemas/site.schema.json"


@pytest.mark.parametrize("path", RECEIPTS, ids=[path.stem[:12] for path in RECEIPTS])
def test_a_receipt_is_accepted(path: Path) -> None:
    assert errors("receipt", json.loads(path.read_bytes())) == []


def test_most_of_what_is_wrong_by_itself_is_refused() -> None:
    refused = {path.name for path in WRONG if refuses(path)}
    # What is left is wrong in its syntax, by what it says elsewhere, or by a unit: the schema need not know.
    assert {
        "missing-name.toml",
        "unknown-top-key.toml",
        "unknown-role.toml",
        "unknown-gate-op.toml",
        "bad-sha256.toml",
        "no-boots.toml",
        "a-port-too-high.toml",
        "an-empty-name.toml",
        "command-is-text.toml",
        "boots-is-true.toml",
        "bad-variable-name.toml",
        "no-arms-at-all.toml",
        "a-package-with-a-path.toml",
        "node-key.site.toml",
        "no-nodes.site.toml",
        "without-why.site.toml",
    } <= refused
    assert len(refused) > 60


def refuses(path: Path) -> bool:
    """Whether the schema refuses the file; what is no TOML, or has numbers that Python cannot print, is not asked about."""
    try:
        table = tomllib.loads(path.read_text())
        return not CHECKS["site" if path.name.endswith(".site.toml") else "spec"].is_valid(table)
    except ValueError:
        return False


def test_a_site_that_is_right_is_accepted_beside_wrong_specs() -> None:
    assert not refuses(ROOT / "tests/spec/wrong/ok.site.toml")
    assert errors("spec", tomllib.loads(SPEC)) == errors("site", tomllib.loads(SITE)) == []


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"kind": 1}, "$.kind"),
        ({"ledger": 2}, "$.ledger"),
        ({"chain": {}}, "$.chain"),
        ({"chain": {"n": 1, "after": "0" * 64}}, "$.chain.after"),
        ({"note": {"text": "t"}}, "$.note"),
        ({"note": {"text": "t", "by": "b", "about": ["x"]}}, "$.note.about[0]"),
        ({"kind": "trial"}, "$"),
        ({"tool": {"name": "ledger"}}, "$.tool"),
    ],
)
def test_a_receipt_that_is_wrong_is_refused(change: Mapping[str, Any], path: str) -> None:
    assert errors("receipt", RECEIPT) == []
    assert [error.json_path for error in CHECKS["receipt"].iter_errors({**RECEIPT, **change})] == [path]


@pytest.mark.parametrize(
    "change",
    [
        {"new": 1},
        {"kind": "weather", "weather": {"sky": "blue"}},
        {"note": {"text": "t", "by": "b", "new": {"er": 1}}},
        {"chain": {"n": 1, "after": DIGEST, "new": []}},
    ],
)
def test_what_a_newer_version_writes_is_accepted(change: Mapping[str, Any]) -> None:
    assert errors("receipt", {**RECEIPT, **change}) == []


def test_a_receipt_of_every_kind_is_described() -> None:
    kinds = {condition["if"]["properties"]["kind"]["const"] for condition in CHECKS["receipt"].schema["allOf"]}
    assert {"attempt", "boot", "trial", "gate", "decision", "correction", "claim", "note"} <= kinds
