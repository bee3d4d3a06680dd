"""Greedy agreement of real boots of llama.cpp: the same configuration, and one with a coarser KV cache."""

import pytest

from ledger.core.words import Holds
from ledger.instruments import transcript
from ledger.instruments.base import Reading
from ledger.instruments.http import HttpClient
from ledger.instruments.openai.agree import AgreeInstrument
from ledger.run.evidence import ARM, CONTROL, Evidence, Piece
from ledger.run.gates import GateVerdict, judge
from ledger.spec.model import GateSpec
from tests.instruments.conftest import MODEL, boot

pytestmark = pytest.mark.engine

ASKED = {"count": 4, "repeats": 2, "max_tokens": 32}
COARSE = ("-fa", "on", "-ctk", "q4_0", "-ctv", "q4_0")
Said = tuple[Reading, bytes]


def ask(url: str, session: str, **more: object) -> Said:
    """A trial, and the blob that is kept of it."""
    instrument, asked = AgreeInstrument(), {**ASKED, **more}
    plan = instrument.plan(asked, model=MODEL, seed=f"{session}/agree/1", tokenize=None)
    came = HttpClient(url).execute(plan)
    return instrument.reduce(asked, plan, came), transcript.encode(plan, came)


def booted(session: str, *flags: str) -> Said:
    server, url = boot("-np", "1", "-c", "2048", *flags)
    try:
        return ask(url, session)
    finally:
        server.terminate()
        server.wait(20)


@pytest.fixture(scope="module")
def kept() -> Said:
    """The replies of the boot that the others are compared with."""
    return booted("one")


def compare(control: Said, arm: Said, reads: str, op: str, value: str) -> GateVerdict:
    gate = GateSpec(id="g", text="t", reads=f"greedy.{reads}", op=op, value=value, of="agree", when="after")
    pieces = [
        Piece(
            annotations={"source": "replies", "side": side, "measure": "agree/1"}, data=said[1], media_type=transcript.MEDIA_TYPE
        )
        for side, said in ((CONTROL, control), (ARM, arm))
    ]
    return judge(gate, Evidence(nodes=("here",), pieces=tuple(pieces)))


def test_two_boots_of_one_configuration_agree_or_give_their_floor(kept: Said) -> None:
    again = booted("two")
    for reading, _ in (kept, again):
        assert (reading.ok, reading.failed) == (8, 0)
        assert reading.figures["self_agreement"].n == 4
        assert reading.conditions["repeats_from_cache"] in ("all", "some", "none")
    verdict = compare(kept, again, "differs", "==", "0")
    shaky = any(reading.figures["self_agreement"].value != 1 for reading, _ in (kept, again))
    assert verdict.holds is (Holds.UNKNOWN if shaky else Holds.PASS), verdict.reason
    assert "agrees with itself on" in str(verdict.reason)


def test_a_coarser_kv_cache_differs_at_a_token(kept: Said) -> None:
    coarse = booted("three", *COARSE)
    verdict = compare(kept, coarse, "differs", "==", "0")
    assert verdict.holds is Holds.FAIL, verdict.reason
    assert "in tokens first at" in str(verdict.reason)
    first = compare(kept, coarse, "first_difference", "<=", "32")
    assert first.holds is Holds.PASS
    assert 1 <= float(str(first.value)) <= 32


def test_with_the_cache_off_no_reply_rests_on_it(engine: str) -> None:
    reading, _ = ask(engine, "four", count=2, max_tokens=8, cache="off")
    assert (reading.conditions, reading.marks) == ({"repeats_from_cache": "none"}, ())
    reading, _ = ask(engine, "five", count=2, max_tokens=8, repeats=3)
    assert reading.conditions["repeats_from_cache"] in ("all", "some")
