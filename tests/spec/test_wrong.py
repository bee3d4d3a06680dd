"""Every way in which a spec can be wrong: each file in ``wrong/`` holds one, and says in its first line what must be told.

The first line is ``# expect: PLACE | WORDS | …`` with a line of the file itself, ``file:line`` of a site, or nothing where the
mistake has no line of its own.
"""

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


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_wrong_spec_is_told_with_its_place(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, *words = [part.strip() for part in path.read_text().splitlines()[0].removeprefix("# expect:").split(" | ")]
    code, err = told(path, capsys)
    assert code == 2
    assert "Traceback" not in err
    assert "\x1b" not in err
    for word in words:
        assert word in err
    where = f"{path.name}:{place}" if place.isdigit() else place
    assert where in err
    if place:
        lines = [line for line in err.splitlines() if where in line]
        assert lines, err


def test_there_are_at_least_fifty_ways() -> None:
    assert len(FILES) >= 50


def test_all_mistakes_are_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "spec.toml"
    path.write_text(
        'ledger = 2\nnam = "x"\nquestion = 3\n[lanes.A]\nengin = "x"\n'
        '[[arms]]\nid = "a"\nlane = "B"\n[[arms]]\nid = "a"\nbase = "q"\n'
    )
    code, err = told(path, capsys)
    assert code == 2
    for word in (
        "version 2",
        "'nam'",
        "expected text",
        "'engin'",
        "missing key 'engine'",
        "unknown lane",
        "a second 'a'",
        "unknown arm",
    ):
        assert word in err
    assert "problems" in err.splitlines()[-1]


def test_not_utf8(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "spec.toml"
    path.write_bytes(b'ledger = 1\nname = "caf\xe9"\n')
    code, err = told(path, capsys)
    assert (code, "spec.toml:2" in err, "not UTF-8: byte 0xe9" in err) == (2, True, True)


@pytest.mark.parametrize("data", [b"\xff\xfe" + "ledger = 1".encode("utf-16-le"), b"\0" * 100, b"\x1f\x8b\x08\0", b""])
def test_bytes_that_are_no_spec(tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes) -> None:
    path = tmp_path / "spec.toml"
    path.write_bytes(data)
    code, err = told(path, capsys)
    assert code == 2
    assert "spec.toml" in err
    assert "Traceback" not in err


def test_a_huge_file_is_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "spec.toml"
    with path.open("wb") as file:
        file.truncate(2**33)
    code, err = told(path, capsys)
    assert (code, "larger than 1048576 bytes" in err) == (2, True)


@pytest.mark.parametrize(
    "text", ["x = " + "[" * 5000 + "]" * 5000, "x = " + "{a = " * 3000 + "1" + "}" * 3000, "[" + ".".join("a" * 5000) + "]"]
)
def test_deep_nesting_is_an_error_and_no_crash(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    path = tmp_path / "spec.toml"
    path.write_text(text + "\n")
    code, err = told(path, capsys)
    assert code == 2
    assert "Traceback" not in err


@pytest.mark.parametrize("name", ["nowhere.toml", "."])
def test_what_is_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    code, err = told(tmp_path / name, capsys)
    assert code == 2
    assert "cannot read it" in err or "not a regular file" in err
