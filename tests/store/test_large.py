"""Large blobs: kept, sent and fetched whole, from a folder and from a real S3 server, and never where nobody agreed to."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from ledger.cli.main import run
from ledger.core.digest import Descriptor
from ledger.core.errors import LedgerError, NotFoundError, StoreError, UsageError
from ledger.receipt.model import Attempt, Source
from ledger.store import large, objects
from ledger.store.blobstore import open_store
from ledger.store.git import commit_paths
from ledger.store.ledger import Ledger
from ledger.store.verify import Checked, verify
from tests.builder import Builder, git, new_ledger

LARGE = b"raw samples " * 500
LIMIT = 1000


def name_store(ledger: Ledger, store: str, above: int = LIMIT) -> None:
    (ledger.root / "ledger.toml").write_text(f'ledger = 1\n[blobs]\nstore = "{store}"\nabove = {above}\n')


def record(ledger: Ledger, data: bytes = LARGE, token: str = "0001") -> Descriptor:
    """A committed receipt that names a blob of these bytes."""
    build = Builder(ledger, token=token)
    blob = build.writer.blob(data, "application/octet-stream")
    source = Source(name="exp", text=blob)
    build.writer.record(Attempt(subject=build.subject("a"), spec=source, site=source, number=1, position=1, of=1))
    commit_paths(ledger, build.writer.paths, "a receipt")
    return blob


def clone_of(ledger: Ledger, folder: Path) -> Ledger:
    git(ledger.root, "add", "ledger.toml")
    git(ledger.root, "commit", "-qm", "name a store", "--allow-empty")
    git(folder, "clone", "-q", str(ledger.root), "clone")
    return Ledger(root=folder / "clone")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return new_ledger(tmp_path / "repo")


@pytest.fixture
def store(ledger: Ledger, tmp_path: Path) -> Path:
    """A folder outside of the ledger that its user agreed to."""
    folder = tmp_path / "store"
    name_store(ledger, str(folder))
    large.allow(ledger)
    return folder


def stored(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


# --- keeping and sending -------------------------------------------------------------------------------------------------------


def test_a_large_blob_is_outside_of_git_and_a_small_one_in_it(ledger: Ledger, store: Path) -> None:
    blob, small = record(ledger), record(ledger, b"small", "0002")
    inside = [path.name for path in ledger.receipts.rglob("blobs/*")]
    assert small.digest[7:] in inside
    assert blob.digest[7:] not in inside
    assert not stored(store), "nothing is sent while something may be measured"
    assert large.send(ledger) == large.Sent(blobs=1, bytes=len(LARGE))
    (path,) = stored(store)
    assert path.relative_to(store).as_posix() == f"sha256/{blob.digest[7:9]}/{blob.digest[7:]}"
    assert path.read_bytes() == LARGE
    assert large.send(ledger) == large.Sent()
    assert list(verify(ledger, Checked())) == []


def test_a_ledger_without_a_store_keeps_all_in_git(ledger: Ledger) -> None:
    blob = record(ledger)
    assert blob.digest[7:] in [path.name for path in ledger.receipts.rglob("blobs/*")]


def test_a_blob_that_waits_is_read_and_verified_like_any_other(ledger: Ledger, store: Path) -> None:
    blob = record(ledger)
    session = next(ledger.walk()).session
    assert ledger.read_blob(session, blob) == LARGE
    (waiting,) = large.waiting(ledger)
    waiting.write_bytes(LARGE[:-1] + b"!")
    assert [item.code for item in verify(ledger, Checked())] == ["blob"]
    with pytest.raises(StoreError):
        ledger.read_blob(session, blob)
    assert "not those of the name" in str(large.send(ledger).problem)
    assert not stored(store)


def test_a_store_that_is_gone_leaves_the_blob_here(ledger: Ledger, tmp_path: Path) -> None:
    name_store(ledger, str(tmp_path / "not" / "mounted"))
    large.allow(ledger)
    record(ledger)
    sent = large.send(ledger)
    assert (sent.blobs, sent.left) == (0, 1)
    assert "no such place" in str(sent.problem)
    assert len(large.waiting(ledger)) == 1
    (tmp_path / "not").mkdir()
    assert large.send(ledger).blobs == 1


def test_a_full_store_leaves_nothing_half_written(ledger: Ledger, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(ledger)

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(objects.os, "fsync", full)  # the one fault here that a test cannot make without a disk of its own
    sent = large.send(ledger)
    monkeypatch.undo()
    assert "full" in str(sent.problem)
    assert not stored(store)
    assert large.send(ledger).blobs == 1


def test_two_who_send_at_once_both_end_well(ledger: Ledger, store: Path) -> None:
    for number in range(20):
        record(ledger, LARGE + bytes([number]), f"{number:04x}")
    command = [sys.executable, "-m", "ledger", "-C", str(ledger.root), "blobs", "push"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    ended = [process.communicate() for process in both]
    assert large.send(ledger).left == 0, ended
    assert len(stored(store)) == 20
    assert not large.waiting(ledger)


# --- fetching ------------------------------------------------------------------------------------------------------------------


def test_a_clone_fetches_what_it_needs(ledger: Ledger, store: Path, tmp_path: Path) -> None:
    blob = record(ledger)
    large.send(ledger)
    clone = clone_of(ledger, tmp_path)
    checked = Checked()
    assert list(verify(clone, checked)) == []
    assert checked.away == 1
    with pytest.raises(UsageError, match="agreed"):
        large.fetch(clone, blob)
    large.allow(clone)
    checked = Checked()
    assert list(verify(clone, checked, fetch=True)) == []
    assert checked.away == 0
    assert clone.read_blob(next(clone.walk()).session, blob) == LARGE


def test_other_bytes_in_the_store_never_get_the_name(ledger: Ledger, store: Path, tmp_path: Path) -> None:
    blob = record(ledger)
    large.send(ledger)
    clone = clone_of(ledger, tmp_path)
    large.allow(clone)
    (path,) = stored(store)
    for wrong in (LARGE[:-1] + b"!", LARGE + b"more", LARGE[:-5], b""):
        path.write_bytes(wrong)
        with pytest.raises(StoreError, match="other bytes"):
            large.fetch(clone, blob)
        assert clone.large_blob(blob.digest) is None
        assert [item.code for item in verify(clone, Checked(), fetch=True)] == ["blob-missing"]
    assert not list(clone.scratch.glob("*"))
    path.unlink()
    with pytest.raises(NotFoundError):
        large.fetch(clone, blob)


def test_a_descriptor_that_is_a_path_leads_nowhere(ledger: Ledger, store: Path) -> None:
    for name in ("sha256:../../../etc/passwd", "../x", "sha256:" + "A" * 64):
        assert ledger.large_blob(name) is None
        with pytest.raises(StoreError):
            large.fetch(ledger, Descriptor(mediaType="x", digest=name, size=5))


# --- agreement -----------------------------------------------------------------------------------------------------------------


def test_an_address_of_a_repository_is_used_only_after_somebody_here_agreed(ledger: Ledger, tmp_path: Path) -> None:
    name_store(ledger, str(tmp_path / "store"))
    record(ledger)
    sent = large.send(ledger)
    assert "agreed" in str(sent.problem)
    assert "ledger blobs allow" in str(sent.problem)
    assert not (tmp_path / "store").exists()
    large.allow(ledger)
    assert large.send(ledger).blobs == 1
    record(ledger, LARGE + b"2", "0002")
    name_store(ledger, str(tmp_path / "elsewhere"))  # somebody changes the address, for example in a branch
    assert "agreed" in str(large.send(ledger).problem)
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_inside_the_ledger_needs_no_agreement(ledger: Ledger) -> None:
    name_store(ledger, "blobs")
    record(ledger)
    assert large.send(ledger).blobs == 1
    (ledger.root / "out").symlink_to("/tmp")
    name_store(ledger, "out/blobs")
    record(ledger, LARGE + b"2", "0002")
    assert large.send(ledger).left == 1


def test_an_unknown_kind_of_store_offers_the_nearest(ledger: Ledger) -> None:
    with pytest.raises(UsageError, match="did you mean 's3'"):
        open_store("s4://bucket", ledger.root)


# --- the command ---------------------------------------------------------------------------------------------------------------


def test_the_command_counts_sends_and_fetches(
    ledger: Ledger, store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blob = record(ledger)
    at = ["-C", str(ledger.root), "blobs"]

    def places(directory: Path = ledger.root) -> dict[str, int]:
        capsys.readouterr()
        assert run(["-C", str(directory), "blobs", "--json"]) == 0
        return {item["where"]: item["blobs"] for item in orjson.loads(capsys.readouterr().out)["places"]}

    assert places()["here, to be sent"] == 1
    assert run([*at, "push"]) == 0
    assert places()["here and in the store"] == 1
    clone = clone_of(ledger, tmp_path)
    assert places(clone.root)["not here, to be fetched"] == 1
    assert run(["-C", str(clone.root), "blobs", "fetch"]) == 2
    assert "ledger blobs allow" in capsys.readouterr().err
    assert run(["-C", str(clone.root), "blobs", "allow"]) == 0
    assert run(["-C", str(clone.root), "blobs", "fetch", "ffff"]) == 4
    assert run(["-C", str(clone.root), "blobs", "fetch", blob.digest[7:20]]) == 0
    assert places(clone.root)["here and in the store"] == 1
    assert run([*at]) == 0


def test_show_fetches_a_blob_on_demand(
    ledger: Ledger, store: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    record(ledger)
    large.send(ledger)
    clone = clone_of(ledger, tmp_path)
    large.allow(clone)
    (receipt,) = clone.walk()
    assert run(["-C", str(clone.root), "show", receipt.digest, "--blob", "1"]) == 0
    assert capfdbinary.readouterr().out == LARGE


# --- a real S3 server ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The address of an S3 server on loopback; its process ends with the module."""
    pytest.importorskip("moto", reason="the S3 server of the tests, in the extra `test`, is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", f"from moto.server import main; main(['-H', '127.0.0.1', '-p', '{port}'])"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            if server.poll() is not None:
                pytest.fail("the S3 server ended")
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


@pytest.fixture
def bucket(s3: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The URL of a new bucket of the server, with credentials in the environment."""
    name = f"b{abs(hash(request.node.name)) % 10**8}"
    values = {"AWS_ENDPOINT_URL": s3, "AWS_ALLOW_HTTP": "true", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    for key, value in {**values, "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(key, value)
    import boto3  # noqa: PLC0415 - of the extra `test`, which may be missing: the fixture above skips then

    boto3.client("s3", endpoint_url=s3).create_bucket(Bucket=name)
    return f"s3://{name}/ledger"


def test_blobs_go_to_a_bucket_and_come_back(ledger: Ledger, bucket: str, tmp_path: Path) -> None:
    name_store(ledger, bucket)
    large.allow(ledger)
    data = os.urandom(3 * 2**20)
    blob = record(ledger, data)
    sent = large.send(ledger)
    assert (sent.problem, sent.blobs, sent.bytes) == (None, 1, len(data))
    clone = clone_of(ledger, tmp_path)
    large.allow(clone)
    assert large.fetch(clone, blob).read_bytes() == data
    with pytest.raises(NotFoundError):
        large.fetch(clone, Descriptor(mediaType="x", digest="sha256:" + "0" * 64, size=5000))


def test_a_bucket_that_is_not_there_is_told_with_a_way_out(ledger: Ledger, bucket: str) -> None:
    name_store(ledger, "s3://another-bucket/x")
    large.allow(ledger)
    record(ledger)
    sent = large.send(ledger)
    assert sent.left == 1
    assert "ledger blobs push" in str(sent.problem)


def test_a_server_that_is_down_is_told(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("obstore")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for key, value in {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ALLOW_HTTP": "true"}.items():
        monkeypatch.setenv(key, value)
    for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(key, "us-east-1")
    name_store(ledger, "s3://bucket/x")
    large.allow(ledger)
    record(ledger)
    assert "does not answer" in str(large.send(ledger).problem)
    assert isinstance(large.send(ledger).problem, str)
    with pytest.raises(LedgerError):
        large.fetch(ledger, Descriptor(mediaType="x", digest="sha256:" + "0" * 64, size=5000))
