"""Every way in which a spec or site can be wrong: each file in ``wrong/`` is wrong in one.

The first line is ``# expect: PLACE | WORDS | …``: PLACE is a line of the file itself, or ``file:line`` in the site that it names.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ledger.cli.main import run

WRONG = Path(__file__).with_name("wrong")
FILES = sorted(path for path in WRONG.glob("*.toml") if not path.name.endswith(".site.toml"))


def told(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = run(["plan", str(path)])
    captured = capsys.readouterr()
    assert captured.out == ""
    return code, captured.err


def expectation(path: Path) -> tuple[str, list[str]]:
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("# expect: ")
    place, *words = first.removeprefix("# expect: ").split(" | ")
    return (f"{path.name}:{place}" if place.isdigit() else place), words


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_wrong_spec_is_told_with_its_place(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where, words = expectation(path)
    code, err = told(path, capsys)
    assert code == 2
    assert "Traceback" not in err
    assert "\x1b" not in err
    problems = [line for line in err.splitlines() if line.startswith("ledger: ")]
    assert len(problems) == 1, err
    assert f"{where} " in problems[0] or f"{where}: " in problems[0], err
    assert [word for word in words if word not in err] == [], err
    assert words


def test_there_are_at_least_fifty_ways() -> None:
    assert len(FILES) >= 50


def test_every_site_is_named_by_a_spec() -> None:
    named = {line.split('"')[1] for path in FILES for line in path.read_text().splitlines() if line.startswith("site = ")}
    assert {path.name for path in WRONG.glob("*.site.toml")} <= named


def test_all_mistakes_are_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "spec.toml"
    path.write_text(
        'ledger = 2\nnam = "x"\nquestion = 3\n[lanes.A]\nengin = "x"\n'
        '[[arms]]\nid = "a"\nlane = "B"\n[[arms]]\nid = "a"\nbase = "q"\n[measures.m]\nuses = "openai/decode"\nlevel = [1]\n'
    )
    code, err = told(path, capsys)
    assert code == 2
    for word in (
        "version 2",
        "'nam'",
        "expected text",
        "'engin'",
        "did you mean 'name'?",
        "did you mean 'engine'?",
        "missing key 'model'",
        "unknown lane",
        "a second 'a'",
        "unknown arm",
        "did you mean 'levels'?",
    ):
        assert word in err
    lines = [int(line.split(":")[2].split(" ")[0]) for line in err.splitlines() if line.startswith("ledger: ")]
    assert lines == sorted(lines)
    assert f"{len(lines)} problems" == err.splitlines()[-1]


def test_not_utf8(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "spec.toml"
    path.write_bytes(b'ledger = 1\nname = "caf\xe9"\n')
    code, err = told(path, capsys)
    assert (code, "spec.toml:2:" in err, "not UTF-8: byte 0xe9 at offset 22" in err) == (2, True, True)


def test_a_byte_order_mark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "spec.toml"
    path.write_bytes(b"\xef\xbb\xbfledger = 1\n")
    code, err = told(path, capsys)
    assert (code, "spec.toml:1: a byte order mark" in err) == (2, True)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xfe" + "ledger = 1".encode("utf-16-le"),
        b"\0" * 100,
        b"\x1f\x8b\x08\0",
        b"",
        b'ledger = 1\nname = "a\0b"\n',
        b'ledger = 1\nname = "a\x1b[31mb"\n',
        b"ledger = 1\rname = 2\r",
    ],
)
def test_bytes_that_are_no_spec(tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes) -> None:
    path = tmp_path / "spec.toml"
    path.write_bytes(data)
    code, err = told(path, capsys)
    assert code == 2
    assert "spec.toml:" in err
    assert "Traceback" not in err
    assert not {"\0", "\x1b", "\r"} & set(err)


def test_a_huge_file_is_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "spec.toml"
    with path.open("wb") as file:
        file.truncate(2**33)
    code, err = told(path, capsys)
    assert (code, "larger than 1048576 bytes" in err) == (2, True)


def test_a_huge_site_is_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "spec.toml"
    path.write_text((WRONG / "site-ip.toml").read_text())
    with (tmp_path / "ip.site.toml").open("wb") as file:
        file.truncate(2**33)
    code, err = told(path, capsys)
    assert (code, "ip.site.toml: larger than 1048576 bytes" in err) == (2, True)


DEEP = {
    "lists": "x = " + "[" * 5000 + "]" * 5000,
    "tables": "x = " + "{a = " * 3000 + "1" + "}" * 3000,
    "a header": "[" + ".".join("a" * 500_000) + "]",
    "a key": ".".join("a" * 500_000) + " = 1",
    "what never closes": "x = " + "[" * 500_000,
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP.keys())
def test_deep_nesting_is_an_error_and_no_crash(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    path = tmp_path / "spec.toml"
    path.write_text("\n" + text + "\n")
    code, err = told(path, capsys)
    assert code == 2
    assert "spec.toml:2: nested deeper than 64 levels" in err


def test_mistakes_beyond_number_are_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "spec.toml"
    path.write_text("".join(f"[lanes.l{number}]\n" for number in range(40_000)))
    code, err = told(path, capsys)
    assert code == 2
    assert "200 mistakes; the rest is not checked" in err
    assert len(err.splitlines()) < 500


@pytest.mark.parametrize("name", ["nowhere.toml", "."])
def test_what_is_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    code, err = told(tmp_path / name, capsys)
    assert code == 2
    assert "cannot read it" in err or "not a regular file" in err


def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    os.mkfifo(path)
    command = [sys.executable, "-m", "ledger", "plan", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "not a regular file" in done.stderr) == (2, True)


def test_a_site_behind_a_link_out_of_the_folder_is_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "secret").write_text("password\n")
    folder = tmp_path / "specs"
    folder.mkdir()
    (folder / "ip.site.toml").symlink_to(tmp_path / "secret")
    path = folder / "spec.toml"
    path.write_text((WRONG / "site-ip.toml").read_text())
    code, err = told(path, capsys)
    assert (code, "outside the folder of the spec" in err) == (2, True)
    assert "password" not in err
