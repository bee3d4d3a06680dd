"""Greedy replies of two boots: what differs, where, and what cannot be judged since a server does not agree with itself."""

from collections.abc import Callable, Sequence

import pytest
from attrs import evolve

from ledger.core.words import Holds
from ledger.instruments import transcript
from ledger.instruments.base import LoadPlan, Request, Transcript
from ledger.instruments.openai.agree import AgreeInstrument, load
from ledger.run.evidence import ARM, CONTROL, Evidence, Piece
from ledger.run.gates import GateVerdict, judge
from ledger.spec.model import GateSpec
from tests.instruments.streams import end, record, text

NAMES = list(load().prompts)
Answer = Callable[[Request], Sequence[str]]
Change = Callable[[LoadPlan], LoadPlan]
UNSURE = (("differs", "==", "0"), ("agreement", "==", "1"), ("first_difference", ">", "3"), ("differs", "<", "1"))


def same(sent: Request) -> Sequence[str]:
    return ["a", "b", "c"]


def other(*prompts: int, at: int = 2, repeat: str = "") -> Answer:
    """Replies that are not ``same`` for these prompts, at the position ``at``; only in one ``repeat`` where that is given."""
    chosen = {NAMES[number] for number in prompts}

    def answer(sent: Request) -> Sequence[str]:
        words = ["a", "b", "c"]
        if sent.labels["prompt"] in chosen and repeat in ("", sent.labels["repeat"]):
            words[at - 1] = "x"
        return words

    return answer


def as_planned(plan: LoadPlan) -> LoadPlan:
    return plan


def piece(
    side: str, answer: Answer, *, packed: bool = False, status: int = 200, change: Change = as_planned, **parameters: object
) -> Piece:
    """What one side said to four prompts, each asked twice."""
    asked = {"count": 4, "repeats": 2, "max_tokens": 8, **parameters}
    plan = change(AgreeInstrument().plan(asked, model=side, seed=side, tokenize=None))
    came = []
    for wave in plan.waves:
        for sent in wave.requests:
            words = answer(sent)
            said = text("".join(words)) if packed else b"".join(map(text, words))
            timed = [(1, said), (2, end(len(words), 20, finish="length"))]
            came.append(record(*timed, name=sent.id, wave=wave.id, status=status))
    data = transcript.encode(plan, Transcript(records=tuple(came), client="test", stamps="virtual"))
    annotations = {"source": "replies", "side": side, "measure": "agree/1"}
    return Piece(annotations=annotations, data=data, media_type=transcript.MEDIA_TYPE)


def read(reads: str, op: str, value: str, *pieces: Piece) -> GateVerdict:
    gate = GateSpec(id="g", text="t", reads=f"greedy.{reads}", op=op, value=value, of="agree", when="after")
    return judge(gate, Evidence(nodes=("a",), pieces=pieces))


def test_boots_that_say_the_same_agree_to_the_end() -> None:
    both = piece(CONTROL, same), piece(ARM, same)
    assert (read("differs", "==", "0", *both).holds, read("agreement", ">=", "100 %", *both).holds) == (Holds.PASS, Holds.PASS)
    assert read("first_difference", ">", "3", *both).value == "4"
    floor = read("floor", ">=", "1", *both)
    assert (floor.holds, floor.value) == (Holds.PASS, "1 ratio")
    assert "the control agrees with itself on 4 of 4, the arm agrees with itself on 4 of 4" in str(floor.reason)


def test_what_differs_is_counted_with_its_positions() -> None:
    def answer(sent: Request) -> Sequence[str]:
        return other(2, at=1)(sent) if sent.labels["prompt"] == NAMES[2] else other(0, 1, at=3)(sent)

    both = piece(CONTROL, same), piece(ARM, answer)
    verdict = read("differs", "==", "0", *both)
    assert (verdict.holds, verdict.value) == (Holds.FAIL, "3")
    assert f"3 differ, in tokens first at 1 (agree/1 agree/{NAMES[2]}/1), median 3" in str(verdict.reason)
    assert read("agreement", ">=", "0.5", *both).value == "0.25 ratio"
    assert read("first_difference", ">=", "2", *both).value == "1"
    assert read("median_difference", ">=", "2", *both).value == "3"


def test_packed_replies_part_at_a_character() -> None:
    verdict = read("differs", "==", "0", piece(CONTROL, same, packed=True), piece(ARM, other(1)))
    assert "1 differ, in characters first at 2" in str(verdict.reason)


@pytest.mark.parametrize("shaky", [CONTROL, ARM])
def test_a_server_that_does_not_agree_with_itself_is_neither_passed_nor_failed(shaky: str) -> None:
    stable = ARM if shaky == CONTROL else CONTROL
    both = piece(shaky, other(3, repeat="2")), piece(stable, same)
    for reads, op, value in (
        ("differs", "==", "0"),
        ("agreement", "==", "1"),
        ("first_difference", ">", "3"),
        ("differs", "<", "1"),
    ):
        verdict = read(reads, op, value, *both)
        assert verdict.holds is Holds.UNKNOWN, reads
        assert "1 cannot be judged: a server that does not agree with itself cannot be shown to differ" in str(verdict.reason)
    assert (read("differs", "<=", "1", *both).holds, read("agreement", ">=", "0.7", *both).holds) == (Holds.PASS, Holds.PASS)
    assert read("floor", ">=", "0.9", *both).holds is Holds.FAIL


def test_a_difference_that_both_sides_hold_to_fails_whatever_else_is_open() -> None:
    def answer(sent: Request) -> Sequence[str]:
        return other(0)(sent) if sent.labels["prompt"] == NAMES[0] else other(3, repeat="2")(sent)

    both = piece(CONTROL, same), piece(ARM, answer)
    assert read("differs", "==", "0", *both).holds is Holds.FAIL
    assert read("agreement", ">=", "0.9", *both).holds is Holds.FAIL


def test_when_nothing_is_settled_there_is_no_share() -> None:
    verdict = read("agreement", ">=", "0", piece(CONTROL, other(0, 1, 2, 3, repeat="1")), piece(ARM, same))
    assert (verdict.holds, verdict.value) == (Holds.UNKNOWN, None)
    assert "no prompt has one reply on each side" in str(verdict.reason)


def test_the_prompts_must_be_the_same_on_both_sides() -> None:
    verdict = read("differs", "==", "0", piece(CONTROL, same), piece(ARM, same, count=3))
    assert (verdict.holds, verdict.reason) == (Holds.UNKNOWN, "the requests are not the same: 1 of 4 were put to one side alone")
    assert "no request was put to both" in str(
        read("differs", "==", "0", piece(CONTROL, same), piece(ARM, same, max_tokens=9)).reason
    )


def test_failed_and_sampled_requests_leave_it_unknown() -> None:
    failed = read("differs", "==", "0", piece(CONTROL, same), piece(ARM, same, status=500))
    assert (failed.holds, "8 of 16 requests failed" in str(failed.reason)) == (Holds.UNKNOWN, True)
    sampled = [piece(side, same, change=warm) for side in (CONTROL, ARM)]
    assert "16 of 16 requests are not greedy" in str(read("differs", "==", "0", *sampled).reason)


def warm(plan: LoadPlan) -> LoadPlan:
    """The plan with a temperature."""
    waves = [
        evolve(wave, requests=tuple(evolve(sent, body={**sent.body, "temperature": 0.7}) for sent in wave.requests))
        for wave in plan.waves
    ]
    return evolve(plan, waves=tuple(waves))


def test_replies_asked_once_have_no_floor() -> None:
    def once(plan: LoadPlan) -> LoadPlan:
        return evolve(plan, waves=plan.waves[:4])

    both = piece(CONTROL, same, change=once), piece(ARM, other(0), change=once)
    verdict = read("floor", ">=", "0.5", *both)
    assert (verdict.holds, verdict.value) == (Holds.UNKNOWN, None)
    assert read("differs", "==", "1", *both).holds is Holds.PASS


def test_damaged_evidence_is_a_reason() -> None:
    verdict = read("differs", "==", "0", evolve(piece(CONTROL, same), data=b"no transcript"), piece(ARM, same))
    assert verdict.holds is Holds.UNKNOWN
    assert verdict.reason
