"""Sessions: a chain without a gap from many threads, taken up after a kill, and never by two writers at once."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orjson
import pytest

from ledger.core.errors import NotFoundError, StoreError
from ledger.receipt.model import Chain, Note, Tool
from ledger.store.ledger import Ledger
from ledger.store.session import SessionWriter
from ledger.store.verify import Checked, verify
from tests.builder import Builder, StillClock

TOOL = Tool(name="ledger", version="0.1.0")


def note(text: str) -> Note:
    return Note(text=text, by="A Tester")


def resume(ledger: Ledger, session: str) -> SessionWriter:
    return SessionWriter.resume(ledger, session, clock=StillClock(), tool=TOOL)


def chain_of(ledger: Ledger) -> list[tuple[Chain, str]]:
    """The chain as it is on disk, with each receipt's digest, in order."""
    found = [(ledger.read(stored.digest).chain, stored.digest) for stored in ledger.walk()]
    return sorted(found, key=lambda item: item[0].n)


def assert_one_chain(ledger: Ledger, length: int) -> None:
    chain = chain_of(ledger)
    assert [item.n for item, _ in chain] == list(range(length))
    assert [item.after for item, _ in chain] == [None, *(digest for _, digest in chain)][:length]
    assert list(verify(ledger, Checked())) == []


def test_a_receipt_says_where_it_stands_and_its_name_is_its_digest(ledger: Ledger, build: Builder) -> None:
    first = build.writer.record(note("first"))
    second = build.writer.record(note("second"))
    assert build.writer.session == "18T1200-exp-0001"
    assert build.writer.folder == ledger.receipts / "2026" / "10" / "18T1200-exp-0001"
    receipt = ledger.read(second)
    assert (receipt.kind, receipt.session, receipt.chain) == ("note", build.writer.session, Chain(n=1, after=first))
    assert build.writer.count == 2
    sums = subprocess.run(
        ["sha256sum", *map(str, build.writer.folder.glob("*.json"))], capture_output=True, text=True, check=True
    )
    assert {line.split()[0] for line in sums.stdout.splitlines()} == {first[7:], second[7:]}


def test_a_blob_is_written_once_and_read_by_its_descriptor(ledger: Ledger, build: Builder) -> None:
    made = build.writer.blob(b"\x00raw\xff", "application/octet-stream")
    assert build.writer.blob(b"\x00raw\xff", "application/octet-stream") == made
    assert [path.name for path in build.writer.paths].count(made.digest[7:]) == 1
    assert ledger.read_blob(build.writer.session, made) == b"\x00raw\xff"


def test_threads_share_one_chain(ledger: Ledger, build: Builder) -> None:
    def work(number: int) -> None:
        build.writer.blob(b"%d" % (number % 7), "text/plain")
        build.writer.record(note(f"{number}"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(100)))
    assert_one_chain(ledger, 100)
    assert len(set(build.writer.paths)) == len(build.writer.paths) == 100 + 7 + 1


def test_a_refused_write_does_not_move_the_chain(ledger: Ledger, build: Builder) -> None:
    build.writer.record(note("first"))
    tmp = ledger.scratch
    moved = tmp.rename(tmp.with_name("moved"))
    tmp.write_text("a file in place of the folder")
    with pytest.raises(StoreError):
        build.writer.record(note("lost"))
    tmp.unlink()
    moved.rename(tmp)
    build.writer.record(note("second"))
    assert_one_chain(ledger, 2)


def test_a_session_of_the_same_name_is_refused_before_anything_is_written(ledger: Ledger, build: Builder) -> None:
    build.writer.record(note("first"))
    again = SessionWriter(ledger, build.spec, clock=StillClock(), token="0001", tool=TOOL)
    with pytest.raises(StoreError, match="a session of this name is there already"):
        again.record(note("fork"))
    assert_one_chain(ledger, 1)


@pytest.mark.parametrize(
    ("spec", "token"), [("..", "0001"), ("a/b", "0001"), ("", "0001"), ("a" * 65, "0001"), ("a", "x"), ("a", "")]
)
def test_a_name_that_would_not_be_found_again_is_refused(ledger: Ledger, spec: str, token: str) -> None:
    with pytest.raises(ValueError, match="not the name of a session"):
        SessionWriter(ledger, spec, clock=StillClock(), token=token, tool=TOOL)


# --- taking up a session ------------------------------------------------------------------------------------------------------


def test_a_session_is_taken_up_after_its_last_receipt(ledger: Ledger) -> None:
    build = Builder(ledger)
    for number in range(12):
        build.writer.record(note(f"{number}"))
    session = build.writer.session
    del build
    taken = resume(ledger, session)
    assert taken.count == 12
    assert taken.paths == []
    taken.record(note("12"))
    taken.blob(b"more", "text/plain")
    assert_one_chain(ledger, 13)
    assert len(taken.paths) == 2


def test_a_session_that_has_only_blobs_begins_its_chain(ledger: Ledger) -> None:
    build = Builder(ledger)
    session = build.writer.session
    del build
    resume(ledger, session).record(note("first"))
    assert_one_chain(ledger, 1)


def test_a_session_has_one_writer_at_a_time(ledger: Ledger, build: Builder) -> None:
    build.writer.record(note("first"))
    with pytest.raises(StoreError, match="another process is writing this session"):
        resume(ledger, build.writer.session)
    session = build.writer.session
    build.writer = SessionWriter(ledger, "other", clock=StillClock(), token="0002", tool=TOOL)
    first = resume(ledger, session)
    with pytest.raises(StoreError, match="another process"):
        resume(ledger, session)
    first.record(note("second"))
    assert_one_chain(ledger, 2)


HELD = """
import sys, time
from pathlib import Path
from ledger.receipt.model import Note
from ledger.store.ledger import Ledger
from tests.builder import Builder
build = Builder(Ledger.find(Path(sys.argv[1])))
build.writer.record(Note(text="first", by="A Tester"))
print(build.writer.session, flush=True)
time.sleep(60)
"""


def test_a_killed_writer_lets_go_of_its_session(ledger: Ledger) -> None:
    here = Path(__file__).resolve().parents[2]
    with subprocess.Popen([sys.executable, "-c", HELD, str(ledger.root)], cwd=here, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        session = process.stdout.readline().strip()
        with pytest.raises(StoreError, match="another process"):
            resume(ledger, session)
        process.kill()
    resume(ledger, session).record(note("second"))
    assert_one_chain(ledger, 2)


@pytest.mark.parametrize("session", ["18T1200-exp-9999", "..", "", "18T1200-exp-0001/blobs"])
def test_no_such_session(ledger: Ledger, build: Builder, session: str) -> None:
    build.writer.record(note("first"))
    with pytest.raises(NotFoundError, match="no such session"):
        resume(ledger, session)


@pytest.mark.parametrize("broken", ["gap", "bytes", "place"])
def test_a_broken_chain_is_not_continued(ledger: Ledger, broken: str) -> None:
    build = Builder(ledger)
    digests = [build.writer.record(note(f"{number}")) for number in range(3)]
    session, path = build.writer.session, ledger.path_of(digests[1])
    del build
    data = path.read_bytes()
    path.unlink()
    if broken == "bytes":
        path.write_bytes(data[:40])
    if broken == "place":
        wire = orjson.loads(data)
        wire["chain"]["n"] = 2**53 - 1
        path.write_bytes(orjson.dumps(wire))
    with pytest.raises(StoreError, match="ledger verify"):
        resume(ledger, session)
