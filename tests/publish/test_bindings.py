"""Bindings of a page: found, filled in, checked, with a planted correction."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.cli.main import run
from ledger.publish import values
from ledger.publish.fill import filled
from ledger.publish.page import read_page
from ledger.publish.values import Filled
from ledger.query.ask import Answer, answer
from ledger.query.ingest import Connection
from ledger.query.language import Ask
from ledger.query.moment import Revision
from ledger.store.ledger import Ledger
from tests.builder import Builder

PAGE = """\
---
title: A does 97 tok/s
---
# Round one

a did <!--= C6 of a | .1f --><!--/--> tok/s, and b over a is
then <!--= C6 of b / C6 of a | .2f --><!--/-->, which is <!--= C6 of b / C6 of a | faster tie=2% note --><!--/-->.
The prompt was <!--! a length that we chose -->12 s<!--/--> long. `<!--= C6 of nobody -->`

<!--= table: C6 by arm -->
<!--/-->

<!--= notes -->
<!--/-->
"""


@pytest.fixture
def page(ledger: Ledger, build: Builder) -> Path:
    build.arm("a", {"C6": 100.0})
    build.arm("a", {"C6": 104.0})
    build.arm("b", {"C6": 120.0})
    path = ledger.root / "post.md"
    path.write_text(PAGE)
    return path


def call(page: Path, command: str, *options: str) -> int:
    return run(["-C", str(page.parent), command, str(page), *options])


def findings(page: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    capsys.readouterr()
    code = call(page, "check", "--json")
    found: list[dict[str, object]] = json.loads(capsys.readouterr().out)
    assert code == (1 if found else 0)
    return found


def test_a_page_is_filled_in_and_then_checks_clean(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert {item["kind"] for item in findings(page, capsys)} == {"differs", "unbound"}
    assert call(page, "render") == 0
    first = page.read_bytes()
    text = first.decode()
    assert "<!--= C6 of a | .1f -->102.0<!--/--> tok/s" in text
    assert ">1.18 (n=1 boot)<!--/-->, which is" in text
    assert ">18% faster<!--/-->." in text
    assert "- C6 of b / C6 of a: n=1 boot" in text
    assert "| b | C6 | 120 | tok/s | 1 | – | measured | n=1 boot |" in text
    assert call(page, "render") == 0
    assert page.read_bytes() == first
    assert [(item["kind"], item["line"]) for item in findings(page, capsys)] == [("unbound", 2)]
    page.write_text(text.replace("97 tok/s", "102 tok/s"))
    assert findings(page, capsys) == []


def test_a_planted_correction_is_named_at_each_place(
    page: Path, ledger: Ledger, build: Builder, capsys: pytest.CaptureFixture[str]
) -> None:
    page.write_text(PAGE.replace("97 tok/s", "none"))
    _, again = build.arm("a", {"C6": 250.0})
    assert call(page, "render") == 0
    assert findings(page, capsys) == []
    assert run(["-C", str(ledger.root), "correct", again, "--retract", "--reason", "the cache was warm", "--yes"]) == 0
    found = findings(page, capsys)
    where = [(item["line"], item["kind"]) for item in found]
    assert where == [
        (6, "differs"),
        (7, "differs"),
        (7, "differs"),
        (14, "differs"),
    ]
    assert all("retract: the cache was warm" in str(item["what"]) for item in found)
    capsys.readouterr()
    assert call(page, "check", "--format", "github") == 1
    assert capsys.readouterr().out.startswith(f"::error file={page},line=6,col=7,title=ledger check%3A differs::")
    assert call(page, "render") == 0
    assert findings(page, capsys) == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("no figure at all\n", "no-binding"),
        ("<!--= C6 of a | .1f -->102.0\n", "syntax"),
        ("x <!--= C6 of a | sideways -->102.0<!--/-->\n", "question"),
        ("x <!--= C6 of nobody -->102.0<!--/-->\n", "question"),
        ("x <!--= C6 by arm -->102.0<!--/-->\n", "question"),
        ("x <!--= claim: none -->1<!--/-->\n", "question"),
        ("x <!--= C6 of b / C6 of a | .2f note -->1.18<!--/-->\n", "no-notes"),
        ("a over b is <!--= C6 of b / C6 of a | .2f -->1.18 (n=1 boot)<!--/-->\n", "orientation"),
        ("slower than a: <!--= C6 of b / C6 of a | .2f -->1.18 (n=1 boot)<!--/-->\n", "orientation"),
        ("b is <!--= C6 of b / C6 of a | faster -->18% slower (n=1 boot)<!--/-->\n", "orientation"),
        ("x <!--= C6 of a | .1f -->102.0<!--/--> ![17 tok/s](a.svg)\n", "unbound"),
        ("x <!--= C6 of b | .1f -->120.0<!--/-->\n", "differs"),
    ],
)
def test_what_is_not_so_is_found(page: Path, capsys: pytest.CaptureFixture[str], text: str, kind: str) -> None:
    page.write_text(text)
    assert kind in {item["kind"] for item in findings(page, capsys)}


def test_a_figure_that_was_corrected_away_is_told_with_its_reason(
    page: Path, ledger: Ledger, build: Builder, capsys: pytest.CaptureFixture[str]
) -> None:
    _, only = build.arm("c", {"C6": 90.0})
    page.write_text("x <!--= C6 of c | .1f -->90.0 (n=1 boot)<!--/-->\n")
    assert findings(page, capsys) == []
    assert run(["-C", str(ledger.root), "correct", only, "--retract", "--reason", "a wrong image", "--yes"]) == 0
    (found,) = findings(page, capsys)
    assert (found["kind"], found["line"]) == ("question", 1)
    assert "no figure answers this" in str(found["what"])
    assert "retract: a wrong image" in str(found["what"])
    text = page.read_text()
    assert call(page, "render") == 1
    assert page.read_text() == text, "what cannot be answered is left as it was"


@pytest.mark.parametrize(
    "text",
    [
        "<!--= as-of: {then} -->\nx <!--= C6 of c spec:exp -->",
        "---\nledger-as-of: {then}\n---\nx <!--= C6 of c spec:exp -->",
        "x <!--= C6 of c as-of:{then} spec:exp -->",
    ],
)
def test_a_page_about_a_day_says_what_was_true_then_and_that_it_is_not_any_more(
    page: Path, ledger: Ledger, build: Builder, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    _, only = build.arm("c", {"C6": 90.0})
    then = "2026-10-19"
    assert run(["-C", str(ledger.root), "correct", only, "--retract", "--reason", "a wrong image", "--yes"]) == 0
    page.write_text(text.format(then=then) + "<!--/-->\n")
    assert call(page, "render") == 0
    assert "90 (n=1 boot" in page.read_text()
    assert "superseded since" in page.read_text()
    assert findings(page, capsys) == []


def test_a_claim_on_a_page_is_a_finding_until_it_is_claimed_again(
    page: Path, ledger: Ledger, build: Builder, capsys: pytest.CaptureFixture[str]
) -> None:
    _, again = build.arm("b", {"C6": 160.0})
    claim = ["-C", str(ledger.root), "claim", "C6 of b / C6 of a", "--name", "b-over-a", "--by", "me", "--says"]
    assert run([*claim, "1.37"]) == 0
    page.write_text("x <!--= claim: b-over-a | .2f --><!--/-->\n")
    assert call(page, "render") == 0
    assert findings(page, capsys) == []
    assert run(["-C", str(ledger.root), "correct", again, "--retract", "--reason", "a warm cache", "--yes"]) == 0
    kinds = {item["kind"] for item in findings(page, capsys)}
    assert kinds == {"differs", "claim"}
    assert call(page, "render") == 0
    (found,) = findings(page, capsys)
    assert found["kind"] == "claim"
    assert "is false: retract: a warm cache" in str(found["what"])


def test_a_finding_keeps_its_fingerprint_when_its_line_moves(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def fingerprints() -> list[str]:
        capsys.readouterr()
        assert call(page, "check", "--format", "gitlab") == 1
        return sorted(item["fingerprint"] for item in json.loads(capsys.readouterr().out))

    page.write_text("x <!--= C6 of a | .1f -->7<!--/-->\n\ny <!--= C6 of b | .1f -->8<!--/--> <!--= C6 of b | .1f -->8<!--/-->\n")
    first = fingerprints()
    assert len(set(first)) == 3
    page.write_text("9 s\n\n" + page.read_text())
    assert set(first) < set(fingerprints())


def test_a_question_is_put_once_however_often_it_stands_on_a_page(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(connection: Connection, ask: Ask, *, revision: Revision | None = None) -> Answer:
        asked.append(ask.text)
        return answer(connection, ask, revision=revision)

    monkeypatch.setattr(values, "answer", counted)
    page.write_text("<!--= C6 of a | .1f --><!--/--> and <!--= C6 of a | ,.0f --><!--/--> and <!--= C6 of b --><!--/-->\n")
    assert call(page, "render") == 0
    assert asked == ["C6 of a", "C6 of b"]


PIECES = st.one_of(
    st.text(max_size=30).filter(lambda text: "<!--" not in text),
    st.sampled_from(["\r\n", "\n\n", "```\n", "`", "~~~\n", "    ", "<!--", "-->", "<!--/-->", "<!--= C6 of a -->", "> ", "- "]),
)


@given(st.lists(PIECES, max_size=30))
def test_filling_in_loses_nothing_outside_of_bindings(pieces: list[str]) -> None:
    page = read_page("".join(pieces))
    once = filled(page, [Filled(binding=item, text="286.6") for item in page.bindings])
    outside, at = [], 0
    for item in page.bindings:
        outside.append(page.text[at : item.start])
        at = item.end
    assert once == "286.6".join([*outside, page.text[at:]])
