"""``openai/agree``: the same prompts for everyone, a boot's agreement with itself, and what its cache did."""

from collections.abc import Callable

import pytest

from ledger.core.errors import UsageError
from ledger.instruments.base import LoadPlan, Reading, Request, StreamRecord, Transcript
from ledger.instruments.openai.agree import AgreeInstrument, load
from tests.instruments.streams import end, record, text

AGREE = AgreeInstrument()
SMALL = {"count": 4, "repeats": 3, "max_tokens": 8}
Answer = Callable[[Request], list[str]]


def run(answer: Answer, *, packed: bool = False, cached: int | None = 0, **parameters: object) -> Reading:
    """A trial whose replies are the words that ``answer`` gives; ``packed`` ones come in one event."""
    asked = {**SMALL, **parameters}
    plan = AGREE.plan(asked, model="m", seed="s", tokenize=None)
    came = [_came(sent, wave.id, answer(sent), packed, cached) for wave in plan.waves for sent in wave.requests]
    return AGREE.reduce(asked, plan, Transcript(records=tuple(came), client="test", stamps="virtual"))


def _came(sent: Request, wave: str, words: list[str], packed: bool, cached: int | None) -> StreamRecord:
    said = text("".join(words)) if packed else b"".join(map(text, words))
    return record((1, said), (2, end(len(words), 100, finish="length", cached=cached)), name=sent.id, wave=wave)


def flaky(sent: Request) -> list[str]:
    """The second prompt gets another third word when it is asked again, and the third another first one."""
    words = ["a", "b", "c", "d"]
    if sent.labels["repeat"] == "3" and sent.labels["prompt"] == list(load().prompts)[1]:
        words[2] = "x"
    if sent.labels["repeat"] == "2" and sent.labels["prompt"] == list(load().prompts)[2]:
        words[0] = "xx"
    return words


def bodies(plan: LoadPlan) -> list[object]:
    return [request.body for wave in plan.waves for request in wave.requests]


def test_every_session_arm_and_repeat_asks_the_same() -> None:
    one, other = (AGREE.plan(SMALL, model="m", seed=seed, tokenize=None) for seed in ("s1/agree/1", "s2/agree/2"))
    assert bodies(one) == bodies(other)
    first, again, third = (bodies(one)[start : start + 4] for start in (0, 4, 8))
    assert first == again == third
    assert all(body["temperature"] == 0 for body in first)  # type: ignore[index]  # a body is a table


def test_with_the_cache_off_only_the_salt_differs() -> None:
    sent = bodies(AGREE.plan({**SMALL, "cache": "off"}, model="m", seed="s", tokenize=None))
    salts = [body.pop("cache_salt") for body in sent]  # type: ignore[attr-defined]  # a body is a table
    assert len(set(salts)) == len(salts) == 12
    assert sent[:4] == sent[4:8]
    assert all(body["cache_prompt"] is False for body in sent)  # type: ignore[index]  # as above


@pytest.mark.parametrize(
    ("packed", "name", "low", "middle"), [(False, "self_differs_at_token", 1, 2), (True, "self_differs_at_character", 1, 2)]
)
def test_a_boot_that_does_not_agree_with_itself_says_where(packed: bool, name: str, low: float, middle: float) -> None:
    reading = run(flaky, packed=packed)
    share, position = reading.figures["self_agreement"], reading.figures[name]
    assert (share.value, share.n) == (0.5, 4)
    assert (position.value, position.low, position.n) == (middle, low, 2)
    assert set(reading.figures) == {"self_agreement", name}


def test_prompts_asked_together_are_one_wave() -> None:
    plan = AGREE.plan({**SMALL, "together": 3}, model="m", seed="s", tokenize=None)
    assert [len(wave.requests) for wave in plan.waves] == [3, 1] * 3


@pytest.mark.parametrize(("cached", "state"), [(0, "none"), (90, "all"), (None, "not told")])
def test_what_the_prefix_cache_did_is_a_condition(cached: int | None, state: str) -> None:
    reading = run(lambda sent: ["a", "b"], cached=cached)
    assert reading.conditions == {"repeats_from_cache": state}
    assert reading.marks == ()
    off = run(lambda sent: ["a", "b"], cached=cached, cache="off")
    assert bool(off.marks) is (state == "all")


def test_other_prompts_are_refused() -> None:
    with pytest.raises(UsageError, match="not in this version"):
        AGREE.plan({"prompts": "sha256:" + "0" * 64}, model="m", seed="s", tokenize=None)
