"""``${name}``: what is replaced, what stays, and that nothing is ever replaced twice."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.spec.interpolate import (
    VOLATILE,
    InterpolationError,
    check,
    escape,
    interpolate,
    interpolate_stable,
    is_volatile,
    names,
    names_or_none,
)

PARTS = ["a", "$", "$$", "${", "}", "${port}", "${x}", "{", '"', "'", " ", "\n", "\0", "é"]
TEXT = st.lists(st.sampled_from(PARTS), max_size=6).map("".join) | st.text(max_size=12)
STABLE = ("lane.model", "site.name", "rank")
NAMES = st.sampled_from([*STABLE, *VOLATILE, "file.weights"])
SCOPES = st.fixed_dictionaries(dict.fromkeys([*STABLE, *VOLATILE, "file.weights"], TEXT))
# A template in pieces: text that stands for itself, and variables.
PIECES = st.lists(st.tuples(st.just("text"), TEXT) | st.tuples(st.just("name"), NAMES), max_size=6)


def template(pieces: list[tuple[str, str]]) -> str:
    return "".join(escape(text) if kind == "text" else f"${{{text}}}" for kind, text in pieces)


@given(PIECES, SCOPES)
def test_a_template_gives_its_pieces(pieces: list[tuple[str, str]], scope: Mapping[str, str]) -> None:
    assert interpolate(template(pieces), scope) == "".join(text if kind == "text" else scope[text] for kind, text in pieces)


@given(PIECES, SCOPES)
def test_in_two_steps_it_is_the_same_as_in_one(pieces: list[tuple[str, str]], scope: Mapping[str, str]) -> None:
    stable = interpolate_stable(template(pieces), {name: scope[name] for name in STABLE})
    assert [name for name in names(stable) if not is_volatile(name)] == []
    assert interpolate(stable, scope) == interpolate(template(pieces), scope)


def test_a_value_that_looks_like_a_variable_is_text() -> None:
    template = interpolate_stable("${lane.model} ${port} $$ ${file.w}", {"lane.model": "m$${port}"})
    assert names(template) == ["port", "file.w"]
    assert interpolate(template, {"port": "80", "file.w": "${port}"}) == "m$${port} 80 $ ${port}"


@given(PIECES)
def test_names_are_told_in_order(pieces: list[tuple[str, str]]) -> None:
    assert names(template(pieces)) == [text for kind, text in pieces if kind == "name"]


@given(TEXT)
def test_an_escaped_text_comes_back(text: str) -> None:
    assert interpolate(escape(text), {}) == text
    assert names(escape(text)) == []


@given(TEXT)
def test_any_text_has_an_answer(text: str) -> None:
    problems = check(text, ())
    if problems:
        with pytest.raises(InterpolationError):
            interpolate(text, {})
        assert all(problem.hint for problem in problems)
    else:
        assert "${" not in text.replace("$$", "")
        assert interpolate(text, {}) == text.replace("$$", "$")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": {"b": 1}}', '{"a": {"b": 1}}'),
        ("$$HOME", "$HOME"),
        ("$HOME", "$HOME"),
        ("a$", "a$"),
        ("$${x}", "${x}"),
        ("${x}$${x}", "1${x}"),
        ("$$${x}", "$1"),
        ("`x` $(x) %x% {{ x }} {x}", "`x` $(x) %x% {{ x }} {x}"),
    ],
)
def test_braces_and_dollars_stay_free(text: str, expected: str) -> None:
    assert interpolate(text, {"x": "1"}) == expected


@pytest.mark.parametrize("text", ["${", "${a", "x ${y z", "${a${b}}", "${a$"])
def test_an_open_variable_is_an_error(text: str) -> None:
    with pytest.raises(InterpolationError, match="not closed"):
        names(text)
    assert [problem.what for problem in check(text, ["a", "b"])] == ["a '${' that is not closed by '}'"]


def test_an_unknown_variable_names_the_nearest() -> None:
    with pytest.raises(InterpolationError, match=r"unknown variable \$\{prot\}.*did you mean 'port'"):
        interpolate("${prot}", {"port": "1"})
    assert len(check("${x}${x}${y}", ())) == 2


def test_names_or_none_takes_what_it_can() -> None:
    assert names_or_none("${a} ${ $${b} ${c}") == ["a", "c"]
