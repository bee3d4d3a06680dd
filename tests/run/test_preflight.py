"""Pins: every failed one is told, with what was expected, what was found and the way out."""

import hashlib
from importlib.metadata import version
from pathlib import Path

from ledger.core.words import Evidence
from ledger.run.preflight import HashCache, check_pins
from ledger.spec.model import Arm, FilePin, Lane
from ledger.spec.plan import BootPlan

DATA = b"weights"
SHA = hashlib.sha256(DATA).hexdigest()


def boot(files: dict[str, FilePin], packages: dict[str, str] | None = None) -> BootPlan:
    lane = Lane(id="l", engine="e", model="m")
    return BootPlan(
        position=1,
        arm=Arm(id="a", lane="l"),
        declared=lane,
        lane=lane,
        evidence=Evidence.MEASURED,
        ranks=(),
        measures=(),
        files=files,
        packages=packages or {},
    )


def cache(tmp_path: Path) -> HashCache:
    return HashCache(tmp_path / "state" / "hashes.json")


def test_a_pin_that_holds_gives_its_path(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(DATA)
    found = check_pins(boot({"m": FilePin(path="m.gguf", sha256=SHA, size=len(DATA))}), tmp_path, cache(tmp_path))
    assert found.problems == ()
    assert found.values["file.m"] == str(tmp_path / "m.gguf")


def test_every_failed_pin_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "bad.gguf").write_bytes(DATA + b"!")
    (tmp_path / "short.gguf").write_bytes(DATA)
    files = {
        "bad": FilePin(path="bad.gguf", sha256=SHA),
        "short": FilePin(path="short.gguf", sha256=SHA, size=99),
        "gone": FilePin(path="gone.gguf", sha256=SHA),
        "foreign": FilePin(package="no-such-package", file="x", sha256=SHA),
        "inside": FilePin(package="attrs", file="no/such/file", sha256=SHA),
    }
    packages = {"attrs": "0.0.1", "no-such-package": "1.0"}
    problems = check_pins(boot(files, packages), tmp_path, cache(tmp_path)).problems
    text = "\n".join(map(str, problems))
    assert len(problems) == 7
    assert hashlib.sha256(DATA + b"!").hexdigest() in text
    assert "7 bytes, expected 99" in text
    assert "pip install --no-deps no-such-package" in text
    assert version("attrs") in text


def test_a_changed_file_is_hashed_again_and_an_unchanged_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(DATA)
    first = cache(tmp_path).digest_of(path)
    (tmp_path / "state" / "hashes.json").write_bytes(
        (tmp_path / "state" / "hashes.json").read_bytes().replace(SHA.encode(), b"f" * 64)
    )
    assert cache(tmp_path).digest_of(path) == "sha256:" + "f" * 64, "an unchanged file is taken from the cache"
    path.write_bytes(DATA * 2)
    assert cache(tmp_path).digest_of(path) == "sha256:" + hashlib.sha256(DATA * 2).hexdigest()
    assert first == "sha256:" + SHA


def test_a_damaged_cache_costs_time_alone(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "hashes.json").write_bytes(b"{")
    path = tmp_path / "m.gguf"
    path.write_bytes(DATA)
    assert cache(tmp_path).digest_of(path) == "sha256:" + SHA
