"""Every fenced example of the documentation: TOML is read, Python is run, commands print what the page shows."""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from docs.examples import Block, Step, agrees, blocks, has_commands, pages, rewrite, run, stage, stage_for, steps
from ledger.core.errors import LedgerError
from ledger.spec.load import read_site, read_spec

PAGES = {str(page.relative_to(Path(__file__).parents[2])): page for page in pages()}
LANGUAGES = {"console", "python", "sh", "text", "toml"}


def fenced(page: Path, language: str) -> list[Block]:
    """The blocks of one language on a page."""
    return [block for block in blocks(page.read_text(encoding="utf-8")) if block.language == language]


def with_blocks(language: str) -> list[str]:
    """The pages that have a block of a language."""
    return [name for name, page in PAGES.items() if fenced(page, language)]


def read_toml(text: str) -> None:
    """Read a TOML block: whole specs and sites as such, anything else as TOML."""
    table = tomllib.loads(text)
    if "lanes" in table and table.get("ledger") == 1:
        read_spec(text.encode(), "example")
    elif "nodes" in table and table.get("ledger") == 1:
        read_site(text.encode(), "example")


def test_there_are_examples_of_every_kind() -> None:
    assert {"docs/how-to/write-a-spec.md"} <= set(with_blocks("toml"))
    assert {"docs/how-to/add-an-instrument.md"} <= set(with_blocks("python"))
    assert {"docs/how-to/correct-a-figure.md", "docs/how-to/verify-a-ledger.md"} <= set(with_blocks("console"))


@pytest.mark.parametrize("name", PAGES)
def test_every_block_says_what_it_is(name: str) -> None:
    found = list(blocks(PAGES[name].read_text(encoding="utf-8")))
    assert [(block.line, block.language) for block in found if block.language not in LANGUAGES] == []
    assert PAGES[name].read_text(encoding="utf-8").count("```") == 2 * len(found)


@pytest.mark.parametrize("name", with_blocks("toml"))
def test_toml(name: str) -> None:
    for block in fenced(PAGES[name], "toml"):
        try:
            read_toml(block.text)
        except (tomllib.TOMLDecodeError, LedgerError) as error:
            pytest.fail(f"{name}:{block.line}: {error}")


@pytest.mark.parametrize("name", with_blocks("python"))
def test_python(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {"__name__": "example"}
    for block in fenced(PAGES[name], "python"):
        source = "\n" * (block.line - 1) + block.text
        exec(compile(source, str(PAGES[name]), "exec"), scope)


@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if has_commands(page)])
def test_commands_print_what_the_page_shows(name: str, tmp_path: Path) -> None:
    folder = stage_for(PAGES[name], tmp_path)
    for block in fenced(PAGES[name], "console"):
        found = steps(block)
        assert found, f"{name}:{block.line}: no command"
        for step in found:
            printed = run(step.command, folder)
            assert agrees(step.shown, printed), f"{name}:{block.line}: $ {step.command}{printed}\npython -m docs.examples {name}"


def test_the_example_ledger_is_the_same_every_time(tmp_path: Path) -> None:
    names = [
        {path.relative_to(tmp_path / side) for path in stage(tmp_path / side).rglob("receipts/**/*") if path.is_file()}
        for side in ("a", "b")
    ]
    assert names[0] == names[1]
    assert len(names[0]) > 40


def test_what_differs_is_seen_and_rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo one\ntwo\n$ echo three && false\n$ echo s\\\nix\n```\n", encoding="utf-8")
    assert not agrees("two\n", run("echo one", tmp_path))
    assert rewrite(page)
    assert page.read_text(encoding="utf-8") == (
        "```console\n$ echo one\none\n$ echo three && false\nthree\n(exit code 1)\n$ echo s\\\nix\nsix\n```\n"
    )
    assert not rewrite(page)


def test_an_ellipsis_stands_for_any_text_and_nothing_else_does() -> None:
    assert agrees("a … c\n", "a b\nb c\n")
    assert not agrees("a … c\n", "a b d\n")
    assert not agrees("a.c\n", "abc\n")


def test_commands_and_what_they_print_are_told_apart() -> None:
    (block,) = blocks("text\n\n```console\n$ one \\\n  two\nout\n$ three\n```\n")
    assert steps(block) == [Step(command="one \\\n  two\n", shown="out\n"), Step(command="three\n", shown="")]
    assert block.line == 4


HELLO = "docs/how-to/add-an-instrument.md"


def test_the_instrument_of_the_how_to_is_found_through_its_entry_point(tmp_path: Path) -> None:
    """Install the page's own package, as an installer would, and plan a spec that uses it."""
    code, *_ = fenced(PAGES[HELLO], "python")
    project, measure = (tomllib.loads(block.text) for block in fenced(PAGES[HELLO], "toml"))
    ((name, target),) = project["project"]["entry-points"]["ledger.instruments"].items()
    site = tmp_path / "site"
    info = site / "quick_instruments-1.0.dist-info"
    info.mkdir(parents=True)
    (site / f"{target.partition(':')[0]}.py").write_text(code.text, encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: quick-instruments\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[ledger.instruments]\n{name} = {target}\n", encoding="utf-8")
    folder = stage(tmp_path)
    spec = (folder / "specs" / "threads.toml").read_text(encoding="utf-8")
    assert measure["measures"]["hello"]["uses"] == name
    (folder / "specs" / "hello.toml").write_text(f'{spec}\n[measures.hello]\nuses = "{name}"\nrepeats = 10\n', encoding="utf-8")
    plan = [sys.executable, "-m", "ledger", "plan", "specs/hello.toml"]
    environment = {"PYTHONPATH": f"{site}:{Path(__file__).parents[2]}", "PATH": "/usr/bin:/bin", "COLUMNS": "200"}
    done = subprocess.run(plan, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"measure hello: {name}, repeats 10" in done.stdout
    without = subprocess.run(plan, cwd=folder, env=environment | {"PYTHONPATH": ""}, capture_output=True, text=True, check=False)
    assert without.returncode == 2
    assert "unknown instrument" in without.stderr
