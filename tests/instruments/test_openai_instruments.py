"""The two instruments: the contract, and what is their own."""

import tomllib
from importlib.resources import files

import pytest

from ledger.core import digest, plugins
from ledger.core.errors import UsageError
from ledger.core.metrics import describe, sort_key
from ledger.instruments import registry
from ledger.instruments.base import Instrument
from ledger.instruments.openai import prompts
from ledger.instruments.openai.decode import DecodeInstrument
from ledger.instruments.openai.prefill import PrefillInstrument
from tests.instruments.contract import InstrumentContract, transcript_of
from tests.instruments.streams import end, good, record, reduced, text, words_and_template

CATEGORIES = ["code", "json", "narrative", "prose", "math", "reasoning", "summary", "format"]


class TestDecodeContract(InstrumentContract):
    make = DecodeInstrument
    parameters = {"levels": [1, 3], "categories": ["code", "math"], "max_tokens": 12}  # noqa: RUF012 - read only


class TestDecodeFixedLengthContract(InstrumentContract):
    make = DecodeInstrument
    parameters = {"levels": [2], "categories": ["json"], "max_tokens": 12, "fixed_length": True}  # noqa: RUF012 - read only


class TestPrefillContract(InstrumentContract):
    make = PrefillInstrument
    parameters = {"lengths": [100, 256], "repeats": 2}  # noqa: RUF012 - read only


def test_the_eight_categories_are_ours_short_and_in_order() -> None:
    read = prompts.load()
    assert list(read.prompts) == CATEGORIES
    data = files("ledger.instruments.openai").joinpath("prompts.toml").read_bytes()
    assert read.digest == digest.of_bytes(data)
    assert read.version == tomllib.loads(data.decode())["version"]
    for prompt in read.prompts.values():
        assert 8 <= len(prompt.text.split()) <= 20
        assert 32 <= prompt.tokens <= 512


def test_a_level_has_a_batch_for_each_category() -> None:
    plan = DecodeInstrument().plan({}, model="m", seed="s", tokenize=None)
    assert [wave.id for wave in plan.waves] == [f"C{level}/{category}" for level in (1, 2, 4, 6) for category in CATEGORIES]
    assert [len(wave.requests) for wave in plan.waves] == [level for level in (1, 2, 4, 6) for _ in CATEGORIES]


def test_allowances_are_the_categorys_own_and_capped() -> None:
    own = {each.category: each.tokens for each in prompts.load().prompts.values()}
    for cap in (None, 100, 10_000):
        parameters = {"levels": [1]} | ({"max_tokens": cap} if cap else {})
        plan = DecodeInstrument().plan(parameters, model="m", seed="s", tokenize=None)
        for wave in plan.waves:
            assert wave.requests[0].max_tokens == min(own[wave.labels["category"]], cap or 10**9)
    assert DecodeInstrument().size({"levels": [1, 2]})[1] == 3 * sum(own.values())


def test_fixed_length_asks_for_it_and_requires_it() -> None:
    parameters = {"levels": [1], "categories": ["math"], "max_tokens": 11, "fixed_length": True}
    sent = DecodeInstrument().plan(parameters, model="m", seed="s", tokenize=None).waves[0].requests[0]
    assert (sent.exact, sent.body["ignore_eos"], sent.body["max_tokens"]) == (True, True, 11)
    assert reduced("openai/decode", parameters, lambda _: good(11)).failed == 0
    assert dict(reduced("openai/decode", parameters, lambda _: good(10)).reasons) == {"short": 1}


def test_prompts_of_another_version_can_be_reduced_and_not_planned() -> None:
    old = {"levels": [1], "categories": ["math"], "prompts": "sha256:" + "0" * 64}
    instrument = DecodeInstrument()
    plan = instrument.plan({"levels": [1], "categories": ["math"]}, model="m", seed="s", tokenize=None)
    assert instrument.reduce(old, plan, transcript_of(plan)).figures["C1"].value
    with pytest.raises(UsageError, match="not in this version"):
        instrument.plan(old, model="m", seed="s", tokenize=None)


def test_figures_of_decode() -> None:
    plan = DecodeInstrument().plan({"levels": [2], "categories": ["math", "json"]}, model="m", seed="s", tokenize=None)
    figures = DecodeInstrument().reduce({"levels": [2], "categories": ["math", "json"]}, plan, transcript_of(plan)).figures
    heads = ["C2", "per_stream@C2", "ttft@C2"]
    parts = [f"{head}/{category}" for head in heads for category in ("json", "math")]
    assert sorted(figures, key=sort_key) == sorted([*heads, *parts, "steady@C2", "tokens_per_chunk@C2"], key=sort_key)
    assert all(describe(name).family for name in figures)
    assert figures["C2"].value == pytest.approx(24 / 0.3)
    assert (figures["C2"].n, figures["C2"].statistic, figures["C2/math"].n) == (2, "mean", 1)
    assert (figures["ttft@C2/math"].n, figures["steady@C2"].value) == (2, pytest.approx(100))


def test_a_mean_over_categories_needs_them_all() -> None:
    parameters = {"levels": [1], "categories": ["math", "json"]}
    figures = reduced("openai/decode", parameters, lambda sent: record(status=500) if "json" in sent.id else good()).figures
    assert figures["C1"].absent == "1 of 1 requests failed: http 500 (json)"
    assert figures["C1/json"].absent == "1 of 1 requests failed: http 500"
    assert figures["C1/math"].value is not None


def test_figures_of_prefill() -> None:
    def at(rate: float) -> object:
        return record((1000 * 500 / rate, text("a")), (1000 * 500 / rate, end(1, 500, cached=0)))

    rates = {"prefill@500/1": 200.0, "prefill@500/2": 220.0, "prefill@500/3": 210.0}
    figure = reduced("openai/prefill", {"lengths": [500]}, lambda sent: at(rates[sent.id])).figures["prefill@500"]
    assert (round(figure.value or 0), round(figure.low or 0), round(figure.high or 0)) == (210, 200, 220)
    assert (figure.n, figure.statistic, figure.values) == (3, "median", pytest.approx((200, 220, 210)))


def test_prefill_prompts_are_exact_and_ask_for_one_token() -> None:
    plan = PrefillInstrument().plan({"lengths": [100, 999]}, model="m", seed="s", tokenize=words_and_template)
    for wave in plan.waves:
        (sent,) = wave.requests
        assert words_and_template(sent.body["messages"]) == sent.expect_prompt_tokens == int(wave.labels["length"])
        assert (sent.max_tokens, sent.body["max_tokens"]) == (1, 1)
    assert PrefillInstrument().size({"lengths": [100, 999], "repeats": 2}) == (2198, 4)


def test_the_registry_knows_ours_and_offers_the_nearest() -> None:
    assert {"openai/decode", "openai/prefill"} <= set(registry.names())
    assert isinstance(registry.get("openai/decode"), DecodeInstrument)
    with pytest.raises(UsageError, match="openai/prefill"):
        registry.get("openai/prefil")


class _Point:
    """An installed entry point."""

    name = "acme/probe"

    def __init__(self, loaded: object) -> None:
        self._loaded = loaded

    def load(self) -> object:
        return self._loaded


class Probe(PrefillInstrument):
    """An instrument of another package."""

    name = "acme/probe"


def test_another_package_adds_an_instrument(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "entry_points", lambda **_: [_Point(Probe)])
    assert "acme/probe" in registry.names()
    found: Instrument = registry.get("acme/probe")
    assert isinstance(found, Probe)
    monkeypatch.setattr(plugins, "entry_points", lambda **_: [_Point(dict)])
    with pytest.raises(UsageError, match="no Instrument"):
        registry.get("acme/probe")
