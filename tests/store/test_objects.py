"""Files that are whole or not there: real disks that are full or read-only, links in the way, and killed writers."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ledger.core.errors import StoreError
from ledger.store import objects


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder that stands for a ledger's."""
    made = tmp_path / "root"
    made.mkdir()
    return made


def put(root: Path, name: str, data: bytes) -> bool:
    """Put below ``root``, with the scratch folder where a ledger has it."""
    return objects.put(root / name, data, root=root, scratch=root / ".ledger" / "tmp")


def left_in(root: Path) -> list[Path]:
    """Every file below ``root``."""
    return [path for path in root.rglob("*") if not path.is_dir()]


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 9000])
def test_what_is_put_is_read_and_nothing_else_is_left(root: Path, data: bytes) -> None:
    assert put(root, "a/b/c", data)
    assert objects.read(root / "a/b/c", len(data)) == data
    assert left_in(root) == [root / "a/b/c"]


def test_the_same_bytes_twice_are_fine_and_other_bytes_are_not(root: Path) -> None:
    assert put(root, "a", b"one")
    status = (root / "a").stat()
    assert not put(root, "a", b"one")
    for other in (b"two", b"longer", b""):
        with pytest.raises(StoreError, match="other bytes stand under this name"):
            put(root, "a", other)
    assert (root / "a").read_bytes() == b"one"
    assert (root / "a").stat().st_mtime_ns == status.st_mtime_ns
    assert left_in(root) == [root / "a"]


def test_many_writers_of_one_name_agree_that_one_was_first(root: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: put(root, "a/b", b"the same"), range(64)))
    assert sum(made) == 1
    assert left_in(root) == [root / "a/b"]


@pytest.mark.parametrize("place", ["link", "link/below", "real/link/below"])
def test_a_link_above_the_file_is_never_followed(root: Path, tmp_path: Path, place: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "real").mkdir()
    for name in ("link", "real/link"):
        (root / name).symlink_to(outside)
    with pytest.raises(StoreError, match="never followed"):
        put(root, f"{place}/file", b"x")
    assert list(outside.iterdir()) == []


def test_a_scratch_folder_that_is_a_link_is_never_followed(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / ".ledger").symlink_to(outside)
    with pytest.raises(StoreError, match="never followed"):
        put(root, "a", b"x")
    assert list(outside.iterdir()) == []


def test_a_link_in_place_of_the_file_is_neither_followed_nor_replaced(root: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    for text in (None, b"x"):
        if text is not None:
            target.write_bytes(text)
        (root / "a").unlink(missing_ok=True)
        (root / "a").symlink_to(target)
        with pytest.raises(StoreError):
            put(root, "a", b"x")
        with pytest.raises(StoreError, match="a link stands where a file should"):
            objects.read(root / "a", 10)
    assert (root / "a").is_symlink()


def test_what_is_no_regular_file_or_too_large_is_refused(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "folder").mkdir()
    (root / "large").write_bytes(b"x" * 11)
    for name, what in (("pipe", "not a regular file"), ("folder", "not a regular file"), ("large", "11 bytes, and at most 10")):
        with pytest.raises(StoreError, match=what):
            objects.read(root / name, 10)
    with pytest.raises(StoreError, match="no such file"):
        objects.read(root / "missing", 10)


def test_where_there_are_no_hard_links_it_is_moved_into_place(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert put(root, "a", b"x")
    assert not put(root, "a", b"x")
    with pytest.raises(StoreError, match="other bytes"):
        put(root, "a", b"y")
    assert left_in(root) == [root / "a"]


def in_namespace(mount: str, folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Run ``program`` where ``folder`` is mounted as ``mount`` says; skip where that is not allowed."""
    script = f'{mount} && exec "$@"'
    command = ["unshare", "-m", "sh", "-c", script, str(folder), sys.executable, "-c", program, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).resolve().parents[2])
    if os.geteuid() != 0 or done.stderr.startswith(("unshare:", "mount:")):
        pytest.skip(f"no mount namespace here: {done.stderr.strip()}")
    return done


FULL = """
import os, sys
from pathlib import Path
from ledger.core.errors import StoreError
from ledger.store import objects
root = Path(sys.argv[1])
put = lambda name, data: objects.put(root / name, data, root=root, scratch=root / ".ledger" / "tmp")
put("small", b"x")
try:
    put("receipts/large", bytes(4 << 20))
except StoreError as error:
    print(error)
print(sorted(path.name for path in root.rglob("*") if path.is_file()))
"""


def test_a_full_disk_is_told_and_leaves_nothing_half_written(root: Path) -> None:
    done = in_namespace('mount -t tmpfs -o size=1m tmpfs "$0"', root, FULL)
    assert "receipts/large" in done.stdout, done.stderr
    assert "the disk is full" in done.stdout
    assert done.stdout.splitlines()[-1] == "['small']"


def test_a_read_only_disk_is_told(root: Path) -> None:
    program = FULL.replace('put("small", b"x")', "")
    done = in_namespace('mount --bind "$0" "$0" && mount -o remount,ro,bind "$0"', root, program)
    assert "the file system is read-only" in done.stdout, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


KILLED = """
import os, signal, sys
from pathlib import Path
from ledger.store import objects
root = Path(sys.argv[1])
real = getattr(os, sys.argv[2])
def kill(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)
setattr(os, sys.argv[2], kill)
objects.put(root / "receipts" / "a", b"all of it", root=root, scratch=root / ".ledger" / "tmp")
"""


@pytest.mark.parametrize("step", ["fsync", "link"])
def test_a_killed_writer_leaves_no_name_and_what_it_left_is_swept(root: Path, step: str) -> None:
    scratch = root / ".ledger" / "tmp"
    scratch.mkdir(parents=True)
    (root / "receipts").mkdir()
    here = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", KILLED, str(root), step], cwd=here, check=False)
    assert done.returncode == -signal.SIGKILL
    assert [path.parent for path in left_in(root)] == [scratch]
    mine = scratch / f"{os.getpid()}.00.a.tmp"
    mine.touch()
    (scratch / "somebody.tmp").touch()
    assert objects.sweep(scratch) == 1
    assert set(left_in(root)) == {mine, scratch / "somebody.tmp"}
    assert objects.sweep(root / "nowhere") == 0


def test_a_replaced_file_has_the_permissions_of_the_old_one_and_leaves_nothing_beside_it(root: Path) -> None:
    path = root / "post.md"
    objects.replace(path, b"one")
    path.chmod(0o640)
    objects.replace(path, b"two")
    assert path.read_bytes() == b"two"
    assert path.stat().st_mode & 0o777 == 0o640
    assert left_in(root) == [path]


REPLACED = """
import sys
from pathlib import Path
from ledger.core.errors import StoreError
from ledger.store import objects
root = Path(sys.argv[1])
objects.replace(root / "post.md", b"old")
try:
    objects.replace(root / "post.md", bytes(4 << 20))
except StoreError as error:
    print(error)
print(sorted(path.name for path in root.rglob("*") if path.is_file()), (root / "post.md").read_bytes())
"""


def test_a_full_disk_leaves_the_old_file_as_it_was(root: Path) -> None:
    done = in_namespace('mount -t tmpfs -o size=1m tmpfs "$0"', root, REPLACED)
    assert "post.md" in done.stdout, done.stderr
    assert "the disk is full" in done.stdout
    assert done.stdout.splitlines()[-1] == "['post.md'] b'old'"
