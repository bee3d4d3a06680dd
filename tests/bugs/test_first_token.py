"""B36 to B59: the first token, usage and lengths."""

import pytest

from ledger.instruments import rates
from ledger.instruments.openai import chat, filler
from ledger.instruments.rates import Missing
from ledger.instruments.registry import get
from tests.bugs.conftest import Ask
from tests.instruments.byte_server import head
from tests.instruments.streams import (
    DONE,
    MS,
    chunk,
    data,
    end,
    good,
    record,
    reduced,
    reply,
    request,
    text,
    usage,
    words_and_template,
)

ROLE = chunk({"role": "assistant", "content": ""})
DECODE, PREFILL = "openai/decode", "openai/prefill"


def test_b36_b37_a_role_chunk_is_no_token() -> None:
    got = reply((5, ROLE), (200, text("a")), (220, text("b") + end(2)))
    assert rates.ttft_s(got) == pytest.approx(0.2)
    assert got.t_first_event == 5 * MS


def test_b36_over_a_socket(ask: Ask) -> None:
    got, transcript = ask(lambda _: [head(), ROLE, 0.2, text("a"), end(1)])
    assert got.t_first_event is not None
    assert got.t_first_output is not None
    assert got.t_first_output - got.t_first_event > 150 * MS
    assert transcript.records[0].headers_ns is not None


def test_b38_prefill_is_timed_by_text_not_by_the_role_chunk() -> None:
    def early(_: object) -> object:
        return record((30, chunk({"role": "assistant", "content": None})), (50, text("a")), (51, end(1, 100, cached=0)))

    reading = reduced(PREFILL, {"lengths": [100], "repeats": 1}, early)
    assert reading.figures["prefill@100"].value == pytest.approx(100 / 0.05)


def test_b39_finish_and_usage_chunks_are_no_output() -> None:
    got = reply((10, ROLE), (20, text("a")), (90, end(1)))
    assert [c.t_ns for c in got.chunks] == [20 * MS]
    assert got.t_end == 90 * MS


def test_b40_the_first_time_is_set_once() -> None:
    got = reply((10, text("a", usage=usage(5, 1))), (20, text("b", usage=usage(5, 2))), (30, end(2)))
    assert (got.t_first_content, got.t_first_output) == (10 * MS, 10 * MS)


@pytest.mark.parametrize("number", [41, 43])
def test_b41_b43_reasoning_is_output_and_both_times_are_given(number: int) -> None:
    thought = (50, chunk({"reasoning_content": "hm"}))
    both = reply(thought, (90, text("a")), (91, end(2)))
    assert (both.t_first_reasoning, both.t_first_content, both.t_first_output) == (50 * MS, 90 * MS, 50 * MS)
    alone = reply(thought, (91, end(1)))
    assert (alone.outcome, alone.t_first_output, alone.t_first_content) == ("ok", 50 * MS, None)


@pytest.mark.parametrize(
    "delta",
    [{"reasoning": "hm"}, {"reasoning_content": "hm"}, {"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}],
)
def test_b42_reasoning_under_any_name(delta: dict[str, object]) -> None:
    got = reply((50, chunk(delta)), (91, end(1)))
    assert (got.t_first_reasoning, got.chunks[0].size) == (50 * MS, 2)


def test_b44_two_names_with_the_same_text_count_once() -> None:
    twice = reply((1, chunk({"reasoning": "hm", "reasoning_content": "hm"}) + end(1)))
    once = reply((1, chunk({"reasoning": "hm"}) + end(1)))
    assert twice.chunks == once.chunks
    assert twice.text_digest == once.text_digest


def test_b45_tool_call_text_is_output() -> None:
    call = {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": ""}}]}
    more = {"tool_calls": [{"index": 0, "function": {"arguments": '{"a":1}'}}]}
    got = reply((10, ROLE), (40, chunk(call)), (60, chunk(more)), (70, end(5, finish="tool_calls")))
    assert (got.outcome, got.t_first_tool, got.t_first_output, got.t_last_output) == ("ok", 40 * MS, 40 * MS, 60 * MS)


@pytest.mark.parametrize("number", [46, 47])
def test_b46_b47_b49_without_usage_no_rate_is_made_up(number: int) -> None:
    silent = record(*((100 + 20 * i, text("a")) for i in range(11)), (330, chunk(finish="length") + DONE))
    reading = reduced(DECODE, {"levels": [1], "categories": ["math"]}, lambda _: silent)
    assert (reading.ok, reading.failed) == (1, 0)
    assert reading.figures["C1"].absent == "no usage in 1 of 1 replies"
    assert reading.figures["per_stream@C1"].value is None
    assert reading.figures["ttft@C1"].value == pytest.approx(0.1)


def test_b47_without_usage_an_exact_length_is_not_assumed() -> None:
    assert reply((1, text("a") + chunk(finish="length")), asked=request(1, exact=True)).outcome == "no usage"


def test_b48_a_usage_chunk_without_choices() -> None:
    assert reply((1, text("a") + chunk(finish="stop") + data({"choices": [], "usage": usage(9, 1)}))).prompt_tokens == 9


def test_b50_usage_on_every_chunk_is_the_last_not_the_sum() -> None:
    got = reply(*((i, text("a", usage=usage(9, i))) for i in range(1, 6)), (6, chunk(finish="stop", usage=usage(9, 5)) + DONE))
    assert (got.completion_tokens, got.prompt_tokens, got.first_tokens) == (5, 9, 1)


def test_b51_usage_on_the_last_content_chunk() -> None:
    got = reply((1, text("a")), (2, chunk({"content": "b"}, finish="stop", usage=usage(9, 2)) + DONE))
    assert (got.outcome, got.completion_tokens, got.t_last_output) == ("ok", 2, 2 * MS)


@pytest.mark.parametrize("number", [52, 53])
def test_b52_b53_tokens_are_the_servers_count_not_the_chunks(number: int) -> None:
    got = reply((1, text("several words at once")), (2, text("a")), (3, end(9)))
    assert got.completion_tokens == 9
    assert rates.tokens_per_chunk([got]) == 4.5


def test_b54_the_allowance_is_max_tokens_and_is_checked() -> None:
    plan = get(DECODE).plan({"levels": [1], "max_tokens": 8}, model="m", seed="s", tokenize=None)
    bodies = [each.body for wave in plan.waves for each in wave.requests]
    assert {body["max_tokens"] for body in bodies} == {8}
    assert all("max_completion_tokens" not in body for body in bodies)
    assert reply((1, text("a") + end(9)), asked=request(8)).outcome == "long"


@pytest.mark.parametrize("length", [64, 100, 501, 2000])
@pytest.mark.parametrize("tokens_a_word", [1, 2, 3])
def test_b55_b57_b58_prompts_have_the_asked_length_by_the_servers_count(length: int, tokens_a_word: int) -> None:
    """Words of two and three tokens too; the count is of all messages with their template."""

    def count(messages: object) -> int:
        words = [word for message in messages for word in message["content"].split()]
        return 12 + sum(1 if len(word) < 3 or not word.isalpha() else tokens_a_word for word in words)

    assert count(filler.fit(length, seed="s", tokenize=count)) == length


def test_b55_a_prompt_of_another_length_gives_no_figure() -> None:
    reading = reduced(PREFILL, {"lengths": [100], "repeats": 2}, lambda _: record((50, text("a")), (51, end(1, 98))))
    assert reading.ok == 2
    assert "had 98 tokens by the server's count, not 100" in (reading.figures["prefill@100"].absent or "")


def test_b56_a_server_that_counts_only_the_uncached_part() -> None:
    reading = reduced(PREFILL, {"lengths": [100], "repeats": 1}, lambda _: record((50, text("a")), (51, end(1, 36, cached=64))))
    figure = reading.figures["prefill@100"]
    assert (figure.value, dict(figure.conditions)) == (pytest.approx(2000), {"prefix_cache": "hit"})


def test_b59_usage_null_until_the_end() -> None:
    got = reply((1, text("a", usage=None)), (2, end(1)))
    assert (got.outcome, got.completion_tokens) == ("ok", 1)


def test_a_null_usage_at_the_end_does_not_erase_the_one_before() -> None:
    got = reply((1, text("a", usage=usage(9, 1))), (2, chunk(finish="stop", usage=None) + DONE))
    assert got.completion_tokens == 1


def test_a_one_token_reply_may_have_no_text_of_its_own() -> None:
    got = reply((10, ROLE), (40, end(1)), asked=request(1))
    assert (got.outcome, rates.e2e_s(got)) == ("ok", pytest.approx(0.04))
    assert isinstance(rates.ttft_s(got), Missing)


def test_every_request_is_greedy_seeded_streamed_and_asks_for_usage() -> None:
    for name in (DECODE, PREFILL):
        plan = get(name).plan({}, model="m", seed="s", tokenize=words_and_template)
        for body in (each.body for wave in plan.waves for each in wave.requests):
            assert (body["temperature"], body["top_p"], body["stream"]) == (0, 1, True)
            assert body["stream_options"] == {"include_usage": True}
            assert isinstance(body["seed"], int)
            assert not {"ignore_eos", "chat_template_kwargs"} & set(body)


@pytest.mark.parametrize(("thinking", "sent"), [("off", False), ("on", True)])
def test_b128_thinking_is_switched_by_a_boolean_and_checked_by_what_came(thinking: str, sent: bool) -> None:
    parameters = {"levels": [1], "categories": ["math"], "thinking": thinking}
    plan = get(DECODE).plan(parameters, model="m", seed="s", tokenize=None)
    assert plan.waves[0].requests[0].body["chat_template_kwargs"] == {"enable_thinking": sent}
    thought = record((100, chunk({"reasoning": "hm"})), (200, text("a")), (201, end(2)))
    marks = reduced(DECODE, parameters, lambda _: thought).marks
    assert ("thinking though switched off" in marks) == (thinking == "off")
    assert "thinking though switched off" not in reduced(DECODE, parameters, lambda _: good()).marks


def test_the_bodys_further_fields_are_sent() -> None:
    parameters = {"levels": [1], "thinking": "off", "body": {"top_k": 1, "chat_template_kwargs": {"a": 1}}}
    body = get(DECODE).plan(parameters, model="m", seed="s", tokenize=None).waves[0].requests[0].body
    assert body["top_k"] == 1
    assert body["chat_template_kwargs"] == {"a": 1, "enable_thinking": False}
    assert {problem.key for problem in get(DECODE).check({"body": {"max_tokens": 1}})} == {"body"}


def test_warm_up_sends_prompts_that_no_instrument_sends() -> None:
    """B79: a warm-up with the measured prompts makes them warm."""
    warm = chat.warm_up(5, model="m", seed="s")
    measured = get(DECODE).plan({}, model="m", seed="s", tokenize=None)
    said = [{str(each.body["messages"]) for wave in plan.waves for each in wave.requests} for plan in (warm, measured)]
    assert len(said[0]) == 5
    assert not said[0] & said[1]
    users = [{each.body["messages"][1]["content"] for wave in plan.waves for each in wave.requests} for plan in (warm, measured)]
    assert not users[0] & users[1]
