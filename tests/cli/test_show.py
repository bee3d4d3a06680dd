"""What ``ledger show`` prints of each kind of receipt: nothing that a figure rests on is left out."""

import gzip
import json
import os
import re
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from ledger.cli.main import run
from ledger.core import digest
from ledger.core.errors import ExitCode
from ledger.core.words import CorrectionKind
from ledger.receipt.model import Attempt, Correction, Figure, Foreign, Instrument, Note, Requests, Source, Trial
from ledger.store.ledger import Ledger
from ledger.store.session import SessionWriter
from tests.builder import Builder
from tests.golden.rebuild import bodies

Show = Callable[..., str]


@pytest.fixture
def show(ledger: Ledger, capsys: pytest.CaptureFixture[str]) -> Show:
    """What ``ledger show`` prints on stdout."""

    def call(*arguments: str) -> str:
        assert run(["-C", str(ledger.root), "show", *arguments]) == 0
        return capsys.readouterr().out

    return call


def line_of(shown: str, start: str) -> str:
    """The one line that begins so, with its spaces as one."""
    (found,) = [line for line in shown.splitlines() if line.strip().startswith(start)]
    return " ".join(found.split())


def trial_of(build: Builder, boot: str, figures: dict[str, Figure], marks: tuple[str, ...] = ()) -> str:
    body = Trial(
        subject=build.subject("a"),
        boot=boot,
        measure="decode",
        number=1,
        instrument=Instrument(name="openai/decode", version=1),
        figures=figures,
        requests=Requests(launched=3, ok=1, failed=1, cancelled=1, reasons={"timeout": 1}),
        marks=marks,
    )
    return build.writer.record(body)


def test_beside_every_figure_stand_n_spread_evidence_and_marks(build: Builder, show: Show) -> None:
    boot = build.boot("a", agreement="unverified")
    figures = {
        "C1": Figure(unit="tok/s", value=50.0, n=3, low=48.0, high=52.5, marks=("thermal",)),
        "C6": Figure(unit="tok/s", value=61.0, n=1, conditions={"prefix_cache": "hit"}),
        "ttft@C1": Figure(unit="s", absent="1 of 3 requests failed"),
    }
    shown = show(trial_of(build, boot, figures, marks=("outside-window",)))
    assert line_of(shown, "C1") == "C1 50 tok/s 3 48 … 52.5 measured n=1 boot, unverified, thermal, outside-window"
    assert line_of(shown, "C6") == "C6 61 tok/s 1 – measured n=1 boot, single shot, unverified, hit, outside-window"
    assert line_of(shown, "ttft@C1").startswith("ttft@C1 absent s – – measured")
    assert line_of(shown, "ttft@C1").endswith("1 of 3 requests failed")
    assert "3 requests, 1 ok, 1 failed, 1 cancelled" in shown
    assert "failures: timeout 1" in shown


def test_a_query_of_the_one_figure_prints_the_same_marks(
    ledger: Ledger, build: Builder, show: Show, capsys: pytest.CaptureFixture[str]
) -> None:
    boot = build.boot("a", agreement="differs")
    shown = show(trial_of(build, boot, {"C6": Figure(unit="tok/s", value=61.0, n=1, marks=("x",))}))
    assert run(["-C", str(ledger.root), "query", "C6 by arm", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert line_of(shown, "C6").endswith(f"measured {', '.join(row['marks'])}")


@pytest.mark.parametrize("struck", ["trial", "boot"])
def test_what_strikes_a_trial_or_its_boot_strikes_its_figures(build: Builder, show: Show, struck: str) -> None:
    boot, trial = build.arm("a", {"C6": 1.0})
    target = {"trial": trial, "boot": boot}[struck]
    by = build.writer.record(Correction(action=CorrectionKind.RETRACT, targets=(target,), reason="warm", by="A Tester"))
    shown = show(trial)
    assert line_of(shown, "C6") == "C6 ~~1~~ tok/s 8 – measured n=1 boot, retracted"
    assert f"retract by {by[7:17]}: warm" in line_of(shown, "struck:")
    assert ("its boot" in shown) == (struck == "boot")
    data = json.loads(show(trial, "--json"))
    assert data["corrections"] == [{"correction": by, "action": "retract", "reason": "warm", "of": target}]


def test_every_kind_says_all_that_it_holds(build: Builder, show: Show) -> None:
    expected = {
        "attempt": ["attempt 2, boot 3 of 12", "spec: round2, site: rack", "the first boot did not start"],
        "boot": ["outcome: ready", "config: differs", "resolved 4, observed 2", "not seen: env.OMP_NUM_THREADS", "listening"],
        "trial": ["10 requests, 7 ok, 2 failed, 1 cancelled", "C1 51.25 tok/s 3 50 … 52.5 measured n=1 boot"],
        "gate": ["gate: memory v1, before", "holds: fail", "value: 90 GiB, limit: 100 GiB"],
        "decision": ["verdict: keep", "outside a band of 1%", "C6 51.25 3 50 2 +2.5% ±1.0% measured"],
        "claim": ["says: 1.03", "the ledger said: 1.025 ratio, B1 over B0, measured", "by: A Tester"],
        "correction": ["action: supersede", "code: cache", "scope: claim:B1-is-faster", "reason: the cache was warm"],
        "serving": ["lane L: serving since 2026-10-18T12:00:00Z", "arm B1 on n0, n1, port 8002", "note: behind the balancer"],
        "note": ["text: the rack was moved", "東京"],
    }
    for kind, body in bodies().items():
        if not isinstance(body, Foreign):
            shown = " ".join(show(build.writer.record(body)).split())
            assert [text for text in expected[kind] if text not in shown] == []
            assert shown.startswith(f"{kind} ")
    assert set(expected) == set(bodies()) - {"omen"}


def test_many_links_are_cut_and_told(ledger: Ledger, build: Builder, show: Show) -> None:
    about = tuple(build.boot(f"arm-{number}") for number in range(12))
    note = build.writer.record(Note(text="x", by="A Tester", about=about))
    assert len(re.findall(r"about\[", show(note))) == 8
    assert len(re.findall(r"about\[", show(note, "--all"))) == 12


def record_blob(writer: SessionWriter, build: Builder, data: bytes) -> str:
    source = Source(name="x", text=writer.blob(data, "text/plain+gzip"))
    return writer.record(Attempt(subject=build.subject("a"), spec=source, site=source, number=1, position=1, of=1))


@pytest.mark.parametrize(
    ("packed", "plain"),
    [
        (gzip.compress(b"one") + gzip.compress(b"two"), b"onetwo"),
        (gzip.compress(b"one") + bytes(512), b"one"),
        (gzip.compress(b""), b""),
        (gzip.compress(bytes(range(256)) * 20_000), bytes(range(256)) * 20_000),
    ],
    ids=["two members", "padded", "empty", "larger than a piece"],
)
def test_gzip_is_unpacked_whole(
    ledger: Ledger, build: Builder, packed: bytes, plain: bytes, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    name = record_blob(build.writer, build, packed)
    assert run(["-C", str(ledger.root), "show", name, "--blob", "1"]) == 0
    assert capfdbinary.readouterr().out == plain


@pytest.mark.parametrize("packed", [b"not gzip", gzip.compress(os.urandom(90_000))[:-9], gzip.compress(b"x") + b"tail"])
def test_a_blob_that_is_not_what_its_type_says_is_told(
    ledger: Ledger, build: Builder, packed: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    name = record_blob(build.writer, build, packed)
    assert run(["-C", str(ledger.root), "show", name, "--blob", "1"]) == ExitCode.NOT_FOUND
    assert "gzip" in capfd.readouterr().err


def test_a_small_blob_that_unpacks_to_a_very_large_one_is_unpacked_in_pieces(
    ledger: Ledger, build: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    largest = 0
    real = zlib.decompressobj

    class Watched:
        """The real unpacker, watched for the largest piece that it gave."""

        def __init__(self, *arguments: int) -> None:
            self._inner = real(*arguments)

        def decompress(self, data: bytes, limit: int) -> bytes:
            nonlocal largest
            piece = self._inner.decompress(data, limit)
            largest = max(largest, len(piece))
            return piece

        def __getattr__(self, name: str) -> object:
            return getattr(self._inner, name)

    monkeypatch.setattr("ledger.cli.show.zlib.decompressobj", Watched)
    packed = gzip.compress(bytes(40 * 2**20))
    assert len(packed) < 50_000
    name = record_blob(build.writer, build, packed)
    with (tmp_path / "out").open("w") as file:
        monkeypatch.setattr("sys.stdout", file)
        assert run(["-C", str(ledger.root), "show", name, "--blob", "1"]) == 0
    assert (tmp_path / "out").stat().st_size == 40 * 2**20
    assert 0 < largest <= 2**20


def test_a_kind_of_a_newer_version_is_shown_by_its_envelope_and_whole_as_json(ledger: Ledger, build: Builder, show: Show) -> None:
    name = build.writer.record(Note(text="x", by="A Tester"))
    wire = json.loads(ledger.read_bytes(name))
    wire |= {"kind": "omen", "omen": {"of": [1, 2]}, "chain": {"n": 1, "after": name}}
    del wire["note"]
    data = json.dumps(wire, sort_keys=True, separators=(",", ":")).encode()
    newer = digest.hex_of(digest.of_bytes(data))
    (build.writer.folder / f"{newer}.json").write_bytes(data)
    assert "no words for" in show(newer)
    assert json.loads(show(newer, "--json"))["receipt"]["omen"] == {"of": [1, 2]}
