"""Servers that are up: measured with a key that is told nowhere, asked what they are, and left as they were."""

import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ledger.cli.main import run
from ledger.receipt.model import Boot, Receipt, Trial
from ledger.store.ledger import Ledger
from tests.run.conftest import MakeSpec
from tests.run.keyed_server import KEY, serving

SITE = """ledger = 1
name = "cloud"
backend = "endpoint"
[endpoints.L]
url = "{url}"
api_key_env = "RACK_FIVE"
"""
GATE = """
[[gates]]
id = "room"
text = "there is room"
reads = "host.MemAvailable"
op = ">="
value = "1 MiB"
"""


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RACK_FIVE", KEY)


def measure(ledger: Ledger, make_spec: MakeSpec, url: str, *more: str, site: str = "", **said: Any) -> int:
    spec = make_spec(**{"levels": "[1]", "ready": "2 s", **said})
    (ledger.root / "site.toml").write_text(SITE.format(url=url) + site)
    return run(["-C", str(ledger.root), "run", str(spec), *more])


def receipts(ledger: Ledger) -> list[Receipt]:
    found = [ledger.read(stored.digest) for stored in ledger.walk()]
    return sorted(found, key=lambda receipt: (receipt.session, receipt.chain.n))


def boots(ledger: Ledger) -> list[Boot]:
    return [each.body for each in receipts(ledger) if isinstance(each.body, Boot)]


def files_with(text: bytes, folder: Path) -> list[Path]:
    """Every file below ``folder`` that holds ``text``: git's objects and blobs that are compressed are looked into."""
    return [path for path in folder.rglob("*") if path.is_file() and any(text in each for each in readings(path))]


def readings(path: Path) -> Iterator[bytes]:
    data = path.read_bytes()
    yield data
    for read in (zlib.decompress, gzip.decompress):
        with suppress(zlib.error, gzip.BadGzipFile, EOFError):
            yield read(data)


def test_a_server_that_is_up_is_measured_and_its_key_is_told_nowhere(
    ledger: Ledger, make_spec: MakeSpec, capfd: pytest.CaptureFixture[str]
) -> None:
    with serving() as (url, server):
        assert measure(ledger, make_spec, url) == 0
        assert {sent for _, sent in server.heard} == {f"Bearer {KEY}"}
        assert run(["-C", str(ledger.root), "plan", str(ledger.root / "small.toml"), "--commands"]) == 0
        for words in (
            ["query", "C1 by arm"],
            ["show", "base"],
            ["plan", str(ledger.root / "small.toml"), "--json"],
            ["reproduce", "base"],
        ):
            assert run(["-C", str(ledger.root), *words]) == 0
    said = capfd.readouterr()
    assert KEY not in said.out + said.err
    assert f"it is measured at {url}" in said.out
    assert files_with(KEY.encode(), ledger.root) == []
    assert files_with(b"RACK_FIVE", ledger.root), "the site is kept word for word"
    (trial,) = [each.body for each in receipts(ledger) if isinstance(each.body, Trial)]
    assert trial.requests.failed == 0
    assert files_with(b"*" * len(KEY), ledger.root), "what the server said is kept, with the key overwritten"


def test_its_identity_is_what_it_says_of_itself(ledger: Ledger, make_spec: MakeSpec) -> None:
    with serving() as (url, _):
        assert measure(ledger, make_spec, url) == 0
    (boot,) = boots(ledger)
    said = boot.factors.identity
    assert (said["server.models"], said["server.build"], said["server.slots"]) == ("none", "b1", "4")
    assert (said["engine"], said["launch"]) == ("small", "not known here")
    assert boot.agreement.state == "agrees"
    assert boot.factors.context == {"backend": "endpoint", "node.0": "cloud", "host": "not known here"}
    assert (boot.resolved, boot.seconds, boot.logs) == ((), None, ())
    assert "not known here" in boot.observed["ranks"][0]["unseen"]


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ({"models": None, "facts": {}}, "unverified"),
        ({"models": None}, "unverified"),
        ({"models": ("another",)}, "differs"),
    ],
)
def test_what_it_does_not_say_is_unverified(ledger: Ledger, make_spec: MakeSpec, said: dict[str, Any], state: str) -> None:
    with serving(**said) as (url, _):
        assert measure(ledger, make_spec, url) == 0
    (boot,) = boots(ledger)
    assert boot.agreement.state == state
    assert ("server" in boot.factors.identity) is (said.get("facts") == {})


def test_a_redirect_is_not_followed_with_the_key(ledger: Ledger, make_spec: MakeSpec) -> None:
    with serving() as (elsewhere, other), serving(redirect=elsewhere) as (url, _):
        assert measure(ledger, make_spec, url) == 1
        assert other.heard == []
    (boot,) = boots(ledger)
    assert (boot.outcome, boot.reason) == ("failed", "http 307")


def test_a_wrong_key_is_told_at_once_and_without_the_key(
    ledger: Ledger, make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RACK_FIVE", "another-key-entirely")
    with serving() as (url, server):
        assert measure(ledger, make_spec, url, ready="600 s") == 1
        assert len(server.heard) == 1
    (boot,) = boots(ledger)
    assert "http 401" in (boot.reason or "")
    assert "another-key-entirely" not in "".join(capfd.readouterr())
    assert files_with(b"another-key-entirely", ledger.root) == []


@pytest.mark.parametrize(
    ("value", "told"),
    [(None, "RACK_FIVE holds no API key"), ("short", "fewer than 8"), ("with a blank in it", "cannot carry")],
)
def test_a_key_that_cannot_be_used_is_told_before_anything_is_recorded(
    ledger: Ledger,
    make_spec: MakeSpec,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    value: str | None,
    told: str,
) -> None:
    monkeypatch.delenv("RACK_FIVE") if value is None else monkeypatch.setenv("RACK_FIVE", value)
    assert measure(ledger, make_spec, "http://127.0.0.1:9") != 0
    error = capfd.readouterr().err
    assert told in error
    assert value is None or value not in error
    assert receipts(ledger) == []


def test_what_needs_a_node_is_not_known_here(ledger: Ledger, make_spec: MakeSpec, capfd: pytest.CaptureFixture[str]) -> None:
    with serving() as (url, _):
        assert measure(ledger, make_spec, url, "--json", more=GATE) == 1
    said = json.loads(capfd.readouterr().out)
    assert "gate 'room' unknown" in said["boots"][0]["blocked"][0]
    assert "not known here" in said["boots"][0]["blocked"][0]
    assert len(said["boots"][0]["trials"]) == 1


def test_a_server_that_becomes_another_ends_the_boot(
    ledger: Ledger, make_spec: MakeSpec, capfd: pytest.CaptureFixture[str]
) -> None:
    with serving() as (url, server):
        facts = server.facts
        begun = [0]

        def deploy(self: Any) -> bool:
            if self.path == "/props":
                begun[0] += 1
                facts["build_info"] = "b1" if begun[0] <= 2 else "b2"
            return True

        server._let_in = deploy  # type: ignore[method-assign]  # one server, of this test alone
        assert measure(ledger, make_spec, url, "--json") == 1
    said = json.loads(capfd.readouterr().out)
    assert "build was b1 and is b2" in said["boots"][0]["blocked"][0]


def test_a_server_that_goes_away_is_told(ledger: Ledger, make_spec: MakeSpec, capfd: pytest.CaptureFixture[str]) -> None:
    with serving(refuse_from=12) as (url, _):
        assert measure(ledger, make_spec, url, "--json") == 1
    assert "the server answers no more" in json.loads(capfd.readouterr().out)["boots"][0]["blocked"][0]


def test_an_arm_with_a_change_is_measured_where_it_runs(
    ledger: Ledger, make_spec: MakeSpec, capfd: pytest.CaptureFixture[str]
) -> None:
    arms = '[[arms]]\nid = "two"\nbase = "base"\nchange = { args = ["--after", "9"] }\n'
    with serving() as (url, one), serving() as (other, two):
        assert measure(ledger, make_spec, url, arms=arms) == 2
        error = capfd.readouterr().err
        assert "this arm needs a server of its own" in error
        assert "[endpoints.L.arms]" in error
        assert measure(ledger, make_spec, url, arms=arms, site=f'arms = {{ two = "{other}" }}\n') == 0
        assert one.heard
        assert two.heard
    first, second = boots(ledger)
    assert second.factors.identity["change"] == "--after 9"
    assert first.fingerprint != second.fingerprint
