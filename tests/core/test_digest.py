"""Digests: known answers, one spelling, and nothing else passes for one."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.core import canonical, digest

EMPTY = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
ABC = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_known_answers() -> None:
    assert digest.of_bytes(b"") == EMPTY
    assert digest.of_bytes(b"abc") == ABC


@given(st.binary(max_size=200))
def test_the_hex_is_that_of_hashlib(data: bytes) -> None:
    assert digest.of_bytes(data) == "sha256:" + hashlib.sha256(data).hexdigest()
    assert digest.is_digest(digest.of_bytes(data))


@pytest.mark.parametrize("size", [0, 1, digest.CHUNK - 1, digest.CHUNK, digest.CHUNK + 1])
def test_a_file_has_the_digest_of_its_bytes(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    data = bytes(index * 7 % 251 for index in range(97)) * (size // 97 + 1)
    path.write_bytes(data[:size])
    assert digest.of_file(path) == digest.of_bytes(data[:size])


def test_a_value_has_the_digest_of_its_canonical_bytes_whatever_its_order() -> None:
    assert digest.of_value({"b": 1, "a": 2.0}) == digest.of_bytes(b'{"a":2,"b":1}')
    assert digest.of_value({"a": 2, "b": 1.0}) == digest.of_value({"b": 1, "a": 2})


def test_a_value_without_canonical_form_has_no_digest() -> None:
    with pytest.raises(canonical.CanonicalError):
        digest.of_value({"a": None})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sha256:",
        EMPTY[:-1],
        EMPTY + "0",
        EMPTY.upper(),
        EMPTY.replace("sha256", "sha512"),
        EMPTY[7:],
        EMPTY + "\n",
        " " + EMPTY,
    ],
)
def test_what_is_nearly_a_digest_is_none(text: str) -> None:
    assert not digest.is_digest(text)


def test_hex_and_short_are_of_the_same_digest() -> None:
    assert digest.hex_of(ABC) == ABC[7:]
    assert digest.hex_of(ABC[7:]) == ABC[7:]
    assert digest.short(ABC) == "ba7816bf8f"
    assert digest.short(ABC, 4) == "ba78"


def test_a_descriptor_says_type_digest_and_size() -> None:
    found = digest.describe(b"abc", "text/plain")
    assert (found.mediaType, found.digest, found.size) == ("text/plain", ABC, 3)
