"""Golden receipts: what was ever written is read, and what is written today is what was written then."""

from pathlib import Path

import attrs
import pytest

from ledger.core import canonical
from ledger.core.words import Kind
from ledger.receipt import codec, shape
from ledger.receipt.model import BODIES, FORMAT, Foreign
from tests.golden.rebuild import FOLDER, golden

FILES = sorted(FOLDER.glob("v*.json"))
REBUILT = golden()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_golden_receipt_is_read(path: Path) -> None:
    receipt = codec.decode(path.read_bytes())
    assert path.name.endswith(f"-{receipt.kind}.json")
    assert receipt.ledger == FORMAT
    assert isinstance(receipt.body, BODIES.get(receipt.kind, Foreign))


@pytest.mark.parametrize("name", REBUILT)
def test_this_version_writes_the_golden_bytes(name: str) -> None:
    assert (FOLDER / name).read_bytes() == REBUILT[name], "python tests/golden/rebuild.py, if the format was meant to change"


def test_there_is_one_of_each_kind_of_every_version_and_one_of_a_newer_kind() -> None:
    kinds = [*Kind, "omen"]
    assert {path.name for path in FILES} == {f"v{version}-{kind}.json" for version in range(1, FORMAT + 1) for kind in kinds}


@pytest.mark.parametrize("kind", BODIES)
def test_a_golden_receipt_fills_every_field_of_its_kind(kind: str) -> None:
    receipt = codec.decode(REBUILT[f"v{FORMAT}-{kind}.json"])
    for item in attrs.fields(type(receipt.body)):
        if item.name != "extra" and item.default is not attrs.NOTHING:
            assert getattr(receipt.body, item.name) not in (None, (), {}), item.name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_written_again_a_golden_receipt_of_this_version_is_the_same(path: Path) -> None:
    data = path.read_bytes()
    assert canonical.is_canonical(data)
    if path.name.startswith(f"v{FORMAT}-"):
        assert codec.encode(codec.decode(data)) == data
        assert shape.outline(data) is not None or codec.decode(data).kind not in BODIES
