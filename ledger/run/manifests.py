"""Lists of files and their digests, in the format of ``sha256sum``.

What it does: reads such a list, and holds the files on a node against it. What it does not do: repair or download. Rules kept:
the list is itself pinned by its digest; a name that leaves its root is refused; each file that is missing or differs is told,
with what was expected and found; a file that could not be read differs.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

from attrs import frozen

from ledger.backends.reach import LocalReach, Reach
from ledger.core import digest
from ledger.core.errors import BackendError, Place, Problem
from ledger.run.hashes import HashCache
from ledger.spec.model import Manifest

MANIFEST = "manifest:"
MAX_BYTES = 64 * 2**20
MAX_FILES = 1_000_000
_LINE = re.compile(r"(?P<escaped>\\?)(?P<sha256>[0-9a-f]{64}) [ *](?P<name>.+)")
_ESCAPES = {"\\\\": "\\", "\\n": "\n", "\\r": "\r"}
Hashed = Callable[[int, int], None]


@frozen(kw_only=True)
class Listed:
    """One line of a list: the name relative to the root, and the digest in hexadecimal."""

    name: str
    sha256: str


@frozen(kw_only=True)
class Checked:
    """A list held against a node: how many files and bytes are there, and what differs, by name."""

    files: int
    size: int
    differs: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """As evidence: a line for the whole and one for each file that differs."""
        head = f"# {self.files} files, {self.size} bytes\n"
        return head + "".join(f"{name!r}: {why}\n" for name, why in self.differs)


def count_differing(text: str) -> float | None:
    """How many files differ, by the evidence that :attr:`Checked.text` is."""
    return float(sum(1 for line in text.splitlines() if not line.startswith("#"))) if text else None


def read_list(manifest: Manifest, root: Path) -> tuple[Listed, ...]:
    """The lines of a manifest's list below ``root``, the ledger's folder.

    Raises:
        BackendError: with everything that is wrong with the list.
    """
    path = root / manifest.path
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise BackendError(Problem(what=f"a manifest cannot be read: {error.strerror}", value=manifest.path)) from error
    found = digest.hex_of(digest.of_bytes(data))
    if len(data) > MAX_BYTES:
        raise BackendError(Problem(what=f"a manifest of more than {MAX_BYTES} bytes", value=manifest.path))
    if found != manifest.sha256:
        what = f"the manifest has sha256 {found}, expected {manifest.sha256}"
        raise BackendError(Problem(what=what, value=manifest.path, hint="restore the list, or pin what is really meant"))
    return parse(data.decode("utf-8", "surrogateescape"), manifest.path, count=manifest.count)


def parse(text: str, file: str, *, count: int | None = None) -> tuple[Listed, ...]:
    """The lines of a list; ``file`` is what messages call it.

    Raises:
        BackendError: with every line that is not of the format, and a count that is not the pinned one.
    """
    problems: list[Problem] = []
    listed: dict[str, Listed] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        item = _line(line.removesuffix("\r"))
        if isinstance(item, str) or item.name in listed or len(listed) == MAX_FILES:
            what = (
                item if isinstance(item, str) else "too many files" if item.name not in listed else "a second line of this file"
            )
            problems.append(Problem(what=what, place=Place(file=file, line=number), value=line[:100]))
        else:
            listed[item.name] = item
    if count is not None and count != len(listed):
        problems.append(Problem(what=f"the manifest names {len(listed)} files, expected {count}", place=Place(file=file)))
    if problems:
        raise BackendError(problems[:100])
    return tuple(listed.values())


def check(
    manifest: Manifest, listed: Sequence[Listed], reach: Reach, root: Path, cache: HashCache, hashed: Hashed = lambda *_: None
) -> Checked:
    """Hold every file of ``listed`` on a node against its digest. ``hashed`` hears bytes so far and in all."""
    folder = PurePosixPath(root / manifest.root if isinstance(reach, LocalReach) else manifest.root)
    paths = [str(folder / item.name) for item in listed]
    statuses = [reach.status(path) for path in paths]
    total, so_far = sum(status.size for status in statuses), 0
    differs = []
    for item, path, status in zip(listed, paths, statuses, strict=True):
        if status.missing is not None:
            differs.append((item.name, f"missing ({status.missing})"))
            continue
        before = so_far
        found = cache.sha256(reach, path, status, lambda done, before=before: hashed(before + done, total))  # type: ignore[misc]  # the default is how a loop's value is bound
        so_far += status.size
        hashed(so_far, total)
        if found.unread is not None:
            differs.append((item.name, f"cannot be read ({found.unread})"))
        elif found.text != item.sha256:
            differs.append((item.name, f"sha256 {found.text}, expected {item.sha256}"))
    cache.save()
    return Checked(files=len(listed), size=total, differs=tuple(differs))


def _line(line: str) -> Listed | str:
    """A line of the list, or why it is none."""
    match = _LINE.fullmatch(line)
    if match is None:
        return "not a line of sha256sum"
    name = match["name"]
    if match["escaped"]:
        name = re.sub(r"\\[\\nr]", lambda found: _ESCAPES[found.group()], name)
    if name.startswith("/") or ".." in name.split("/") or "\0" in name:
        return "a name that leaves the manifest's root"
    return Listed(name=name, sha256=match["sha256"])
