"""Specs that include: what they read as, where a mistake is said to stand, and files that cannot be included."""

from pathlib import Path

import pytest

from ledger.core.errors import SpecError
from ledger.spec.load import load_spec, read_spec

SPEC = """\
ledger = 1
name = "one"
question = "Is it faster?"
include = ["lanes.toml", "shared/measures.toml"]

[[arms]]
id = "A"
lane = "A"
"""
LANES = '# shared\n\n[lanes.A]\nengine = "e"\nmodel = "m"\ncommand = ["x"]\n'
MEASURES = '[measures.decode]\nuses = "openai/decode"\nlevels = [1]'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A spec, and what it includes, in a folder below."""
    inside = tmp_path / "specs"
    (inside / "shared").mkdir(parents=True)
    (inside / "one.toml").write_text(SPEC)
    (inside / "lanes.toml").write_text(LANES)
    (inside / "shared" / "measures.toml").write_text(MEASURES)
    return inside


def problems(path: Path) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load_spec(path)
    return [str(problem).replace(f"{path.parent}/", "") for problem in caught.value.problems]


def test_what_is_included_is_part_of_the_spec_and_of_the_text_that_is_kept(folder: Path) -> None:
    loaded = load_spec(folder / "one.toml")
    assert loaded.value.lanes["A"].engine == "e"
    assert loaded.value.measures["decode"].uses == "openai/decode"
    assert loaded.text == f"{SPEC}{LANES}{MEASURES}\n".encode()


def test_the_kept_text_is_read_again_without_the_files(folder: Path) -> None:
    loaded = load_spec(folder / "one.toml")
    assert read_spec(loaded.text, "the receipt").value == loaded.value


def test_a_place_is_in_the_file_that_it_comes_from(folder: Path) -> None:
    loaded = load_spec(folder / "one.toml")
    assert str(loaded.place("lanes", "A", "model")) == f"{folder / 'lanes.toml'}:5 [lanes.A.model]"
    assert str(loaded.place("measures", "decode")) == f"{folder / 'shared/measures.toml'}:1 [measures.decode]"
    assert str(loaded.place("arms", 0, "id")) == f"{folder / 'one.toml'}:7 [arms[0].id]"


def test_mistakes_of_every_file_are_told_at_once_each_in_its_own(folder: Path) -> None:
    (folder / "one.toml").write_text(SPEC.replace('lane = "A"', 'lane = "B"'))
    (folder / "lanes.toml").write_text(LANES.replace("engine", "engien"))
    told = "\n".join(problems(folder / "one.toml"))
    assert "one.toml:8 [arms[0].lane]" in told
    assert "lanes.toml:4 [lanes.A.engien]" in told


def test_a_lane_that_stands_in_two_files_is_refused_where_the_second_stands(folder: Path) -> None:
    (folder / "one.toml").write_text(f"{SPEC}\n{LANES}")
    assert problems(folder / "one.toml")[0].startswith("lanes.toml:3: not TOML: Cannot declare ('lanes', 'A') twice")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("../outside.toml", "a file outside the folder of the spec"),
        ("link.toml", "a file outside the folder of the spec"),
        ("none.toml", "no such file"),
        ("shared", "no such file"),
        ("a\\u0000b", "no name of a file"),
        ("key.toml", "an included file holds tables alone"),
        ("syntax.toml", "syntax.toml:1: not TOML"),
        ("bom.toml", "a byte order mark"),
    ],
)
def test_a_file_that_cannot_be_included(folder: Path, name: str, told: str) -> None:
    (folder.parent / "outside.toml").write_text(LANES)
    (folder / "link.toml").symlink_to("../outside.toml")
    (folder / "key.toml").write_text(f"port = 1\n{LANES}")
    (folder / "syntax.toml").write_text("[lanes\n")
    (folder / "bom.toml").write_text("\ufeff[lanes.B]\n")
    (folder / "one.toml").write_text(SPEC.replace("lanes.toml", name))
    assert told in "\n".join(problems(folder / "one.toml"))


def test_an_included_file_includes_nothing(folder: Path) -> None:
    (folder / "lanes.toml").write_text(f'include = ["shared/measures.toml"]\n{LANES}')
    assert "lanes.toml:1 [include]: an included file holds tables alone" in problems(folder / "one.toml")[0]


def test_the_same_file_twice_and_too_many_files(folder: Path) -> None:
    (folder / "one.toml").write_text(SPEC.replace('"shared/measures.toml"', '"lanes.toml"'))
    assert "twice" in problems(folder / "one.toml")[0]
    many = ", ".join(f'"{number}.toml"' for number in range(21))
    (folder / "one.toml").write_text(SPEC.replace('"lanes.toml", "shared/measures.toml"', many))
    assert "more than 20 files" in "\n".join(problems(folder / "one.toml"))
