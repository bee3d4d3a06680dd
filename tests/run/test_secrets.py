"""Secrets never reach a receipt, equal ones still compare, and this machine's folders are named, not spelled out."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.core.errors import StoreError
from ledger.instruments.base import Read, StreamRecord, Transcript
from ledger.run.masking import masked
from ledger.run.secrets import PREFIX, Concealer, load_key, places, secrets_in

HIDE = Concealer(key=b"k" * 32, places={})
SHAPES = [
    "hf_abcdefghijklmnopqrstuvwxyz012345",
    "sk-proj-abcdefghijklmnop0123",
    "ghp_abcdefghijklmnopqrstuvwxyz0123",
    "AKIAIOSFODNN7EXAMPLE",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.c2lnbmF0dXJlLXRleHQ",
]


@pytest.mark.parametrize("name", ["HF_TOKEN", "OPENAI_API_KEY", "db-password", "AWS_SECRET", "MY_APIKEY", "SSH_PRIVATE_KEY"])
def test_a_variable_named_like_a_secret_is_concealed(name: str) -> None:
    shown = HIDE.env({name: "plain words", "OTHER": "kept"})
    assert shown[name].startswith(PREFIX)
    assert shown["OTHER"] == "kept"


@pytest.mark.parametrize("name", ["TOKENIZER", "MAX_TOKENS", "NCCL_ALGO", "VLLM_PLUGINS", "AUTHOR", "KEYS_PER_PAGE"])
def test_a_variable_that_only_looks_alike_is_kept(name: str) -> None:
    assert HIDE.env({name: "4096"}) == {name: "4096"}


@pytest.mark.parametrize("secret", SHAPES)
def test_a_value_shaped_like_a_secret_is_concealed_wherever_it_stands(secret: str) -> None:
    assert secret not in HIDE.text(f"before {secret} after")
    assert secret not in str(HIDE.argv(["serve", f"--header=Bearer {secret}"]))
    assert secret not in str(HIDE.tree({"a": [{"b": secret}]}))


def test_the_value_behind_a_secret_flag_is_concealed_in_both_spellings() -> None:
    shown = HIDE.argv(["serve", "--api-key", "hunter2", "--api-key=hunter2", "--port", "80"])
    assert "hunter2" not in " ".join(shown)
    assert shown[2] == shown[3].removeprefix("--api-key=")
    assert shown[-2:] == ("--port", "80")


def test_a_password_in_a_url_is_concealed_and_the_rest_kept() -> None:
    shown = HIDE.text("http://user:hunter2@proxy:3128/x")
    assert shown.startswith("http://user:secret:")
    assert shown.endswith("@proxy:3128/x")


def test_keys_named_like_secrets_are_concealed_in_a_tree() -> None:
    shown = HIDE.tree({"env": {"API_KEY": "hunter2"}, "command": ["x", "--token", "hunter2"], "n": 3})
    assert "hunter2" not in str(shown)
    assert shown["n"] == 3


@given(st.text(min_size=1), st.text(min_size=1))
def test_equal_secrets_compare_equal_and_others_do_not(one: str, two: str) -> None:
    assert (HIDE.value(one) == HIDE.value(two)) == (one == two)


def test_another_clone_cannot_test_a_guess() -> None:
    assert Concealer(key=b"x" * 32, places={}).value("hunter2") != HIDE.value("hunter2")


def test_the_key_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    first = load_key(tmp_path / "state")
    assert load_key(tmp_path / "state") == first
    assert len(first) == 32
    assert (tmp_path / "state" / "secret.key").stat().st_mode & 0o777 == 0o600


def test_folders_of_this_machine_are_named_longest_first() -> None:
    named = places(Path("/srv/x/ledger"), "/srv/x/ledger/.venv", "/home/someone")
    hide = Concealer(key=b"k" * 32, places=named)
    assert hide.argv(["/srv/x/ledger/.venv/bin/python", "/srv/x/ledger/m.gguf"]) == ("${venv}/bin/python", "${root}/m.gguf")
    assert hide.text("/home/someone/models") == "${home}/models"


def test_a_root_folder_is_never_named() -> None:
    assert "/" not in places(Path("/"), "/usr", "/")


KNOWING = Concealer(
    key=b"k" * 32, places={}, known=secrets_in({"DB_PASSWORD": "tr0ub4dor&3", "OTHER": "visible text", "MY_TOKEN": "short"})
)


def test_the_values_of_secret_named_variables_are_known_wherever_they_stand() -> None:
    assert KNOWING.known == ("tr0ub4dor&3",)
    assert "tr0ub4dor" not in KNOWING.text("connect with tr0ub4dor&3 please")
    assert "tr0ub4dor" not in str(KNOWING.argv(["serve", "--dsn=tr0ub4dor&3"]))
    assert KNOWING.text("visible text") == "visible text"


@pytest.mark.parametrize(
    "text",
    [
        "GET /v1/models?api_key=hunter2hunter2&x=1",
        "GET /?x=1&access_token=hunter2hunter2",
        "Authorization: Bearer hunter2hunter2",
        "proxy-authorization: basic hunter2hunter2",
    ],
)
def test_what_a_query_or_a_header_carries_is_concealed(text: str) -> None:
    shown = HIDE.text(text)
    assert "hunter2" not in shown
    assert shown.startswith(text.partition("hunter2")[0])


@pytest.mark.parametrize("text", ["?max_tokens=12", "&tokens=4096", "?author=me", "a bearer of bad news"])
def test_what_only_looks_like_it_is_kept(text: str) -> None:
    assert HIDE.text(text) == text


def transcript(data: bytes, cuts: list[int], headers: dict[str, str] | None = None) -> Transcript:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    reads = tuple(Read(t_ns=index, data=data[low:high]) for index, (low, high) in enumerate(itertools.pairwise(edges)))
    return Transcript(
        records=(StreamRecord(request="r", wave="w", t0_ns=1, headers=headers or {}, reads=reads),), client="c", stamps="s"
    )


@given(st.binary(max_size=40), st.binary(max_size=40), st.lists(st.integers(0, 200), max_size=6))
def test_a_secret_over_any_reads_is_masked_in_place(before: bytes, after: bytes, cuts: list[int]) -> None:
    data = before + b"tr0ub4dor&3" + after
    given_ = transcript(data, cuts)
    (record,) = masked(given_, KNOWING).records
    whole = b"".join(read.data for read in record.reads)
    assert b"tr0ub4dor&3" not in whole
    assert len(whole) == len(data)
    assert [(read.t_ns, len(read.data)) for read in record.reads] == [
        (read.t_ns, len(read.data)) for read in given_.records[0].reads
    ]


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=4))
def test_reads_without_a_secret_are_as_they_were(data: bytes, cuts: list[int]) -> None:
    assert masked(transcript(data, cuts), HIDE) == transcript(data, cuts)


def test_headers_that_carry_secrets_are_concealed() -> None:
    headers = {"set-cookie": "session=zzz", "x-api-key": "hunter2", "x-request-id": "7", "location": "/?token=hunter2hunter2"}
    (record,) = masked(transcript(b"", [], headers), HIDE).records
    assert "zzz" not in str(record)
    assert "hunter2" not in str(record)
    assert record.headers["x-request-id"] == "7"


def test_a_key_that_was_cut_is_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state/secret.key").write_bytes(b"")
    with pytest.raises(StoreError) as caught:
        load_key(tmp_path / "state")
    assert "a key of 0 bytes" in str(caught.value)
    assert "remove it" in str(caught.value)
