"""The blob of a trial: what goes in comes out, and nothing else is taken for one."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.instruments import transcript
from ledger.instruments.base import LoadPlan, Read, Request, StreamRecord, Transcript, Wave
from ledger.instruments.transcript import TranscriptError
from tests.instruments.contract import transcript_of
from tests.instruments.streams import good

WORDS = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
TIMES = st.integers(0, 2**62)
SECONDS = st.floats(0, 1e6, allow_nan=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | SECONDS | WORDS, lambda inner: st.lists(inner, max_size=3)
)
REQUESTS = st.builds(
    Request,
    id=WORDS,
    body=st.dictionaries(WORDS, JSON, max_size=3),
    max_tokens=st.integers(1, 9999),
    labels=st.dictionaries(WORDS, WORDS, max_size=2),
    exact=st.booleans(),
    expect_prompt_tokens=st.none() | st.integers(1, 9999),
    start_after_s=SECONDS,
)
WAVES = st.builds(
    Wave, id=WORDS, requests=st.lists(REQUESTS, max_size=3).map(tuple), labels=st.dictionaries(WORDS, WORDS, max_size=2)
)
PLANS = st.builds(
    LoadPlan, waves=st.lists(WAVES, max_size=3).map(tuple), path=WORDS, idle_timeout_s=SECONDS, deadline_s=st.none() | SECONDS
)
# Text, cut characters, and bytes that are no text at all.
DATA = st.binary(max_size=12) | WORDS.map(str.encode) | st.sampled_from([b"\xf0\x9f", b"\x98\x80", b"\r\n", b""])
RECORDS = st.builds(
    StreamRecord,
    request=WORDS,
    wave=WORDS,
    t0_ns=TIMES,
    connect_ns=TIMES,
    headers_ns=st.none() | TIMES,
    end_ns=st.none() | TIMES,
    status=st.none() | st.integers(100, 599),
    headers=st.dictionaries(WORDS, WORDS, max_size=2),
    reads=st.lists(st.builds(Read, t_ns=TIMES, data=DATA), max_size=4).map(tuple),
    error=st.none() | WORDS,
)
TRANSCRIPTS = st.builds(
    Transcript,
    records=st.lists(RECORDS, max_size=3).map(tuple),
    client=WORDS,
    stamps=WORDS,
    lag_p99_ms=st.none() | SECONDS,
    start_spread_ms=st.none() | SECONDS,
)
PLAN = LoadPlan(waves=(Wave(id="w", requests=(Request(id="r", body={"a": [1]}, max_tokens=64),)),))


@given(PLANS, TRANSCRIPTS)
def test_what_goes_in_comes_out(plan: LoadPlan, kept: Transcript) -> None:
    assert transcript.decode(transcript.encode(plan, kept)) == (plan, kept)


@given(PLANS)
def test_a_plan_survives_json(plan: LoadPlan) -> None:
    assert transcript.plan_from_json(json.loads(json.dumps(transcript.plan_to_json(plan)))) == plan


def test_equal_records_have_equal_bytes() -> None:
    assert transcript.encode(PLAN, transcript_of(PLAN)) == transcript.encode(PLAN, transcript_of(PLAN))


def test_it_is_gzipped_json_lines_that_people_can_read() -> None:
    blob = transcript.encode(PLAN, Transcript(records=(good(2),), client="c", stamps="thread"))
    head, line = [json.loads(line) for line in gzip.decompress(blob).splitlines()]
    assert (head["transcript"], head["client"]) == (1, "c")
    assert head["plan"]["waves"][0]["requests"][0]["body"] == {"a": [1]}
    assert line["reads"][0][1].startswith("data: ")


@given(st.binary(max_size=60))
def test_any_bytes_are_an_error_that_says_why(data: bytes) -> None:
    for blob in (data, gzip.compress(data)):
        with pytest.raises(TranscriptError):
            transcript.decode(blob)


@given(st.data())
def test_a_blob_that_was_cut_is_an_error(data: st.DataObject) -> None:
    blob = transcript.encode(PLAN, transcript_of(PLAN))
    with pytest.raises(TranscriptError):
        transcript.decode(blob[: data.draw(st.integers(0, len(blob) - 1))])
    with pytest.raises(TranscriptError):
        transcript.decode(blob + b"x")


def test_unpacking_is_bounded() -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    assert len(bomb) < 100_000
    with pytest.raises(TranscriptError, match="more than 1000000 bytes"):
        transcript.decode(bomb, limit=1_000_000)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("t0_ns", "1"),
        ("t0_ns", True),
        ("request", 5),
        ("reads", [[1]]),
        ("reads", [[1, {"base64": "!"}]]),
        ("reads", 3),
        ("status", 1.5),
    ],
)
def test_a_field_of_the_wrong_type_is_named(field: str, value: object) -> None:
    head, line = gzip.decompress(transcript.encode(PLAN, Transcript(records=(good(1),), client="c", stamps="t"))).splitlines()
    wrong = json.dumps({**json.loads(line), field: value}).encode()
    with pytest.raises(TranscriptError, match=field) as caught:
        transcript.decode(gzip.compress(head + b"\n" + wrong))
    assert "line 2" in str(caught.value)


def test_another_format_is_refused() -> None:
    head = {"transcript": 2, "plan": {"waves": []}, "client": "c", "stamps": "t"}
    with pytest.raises(TranscriptError, match="format 2"):
        transcript.decode(gzip.compress(json.dumps(head).encode()))
