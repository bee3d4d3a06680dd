"""The journal: what a crash leaves of it is read, and what is not whole does not count."""

import os
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from ledger.core.errors import StoreError
from ledger.run.journal import Journal, Opening, unfinished

OPENING = Opening(
    session="01T0612-round2-3f2a",
    at="2026-12-01T06:12:00Z",
    spec_file="/a/spec.toml",
    spec="ledger = 1\n# ünïcode\n",
    site_file="/a/site.toml",
    site="",
    plan="sha256:0",
    only=("B1",),
)


def written(folder: Path) -> Path:
    journal = Journal.begin(folder, OPENING)
    journal.note("attempt", position=1, arm="B1", number=1)
    journal.note("trial", position=1, measure="decode", number=2)
    journal.close()
    (path,) = folder.glob("*.journal")
    return path


@given(cut=st.integers(min_value=0, max_value=2_000), tail=st.binary(max_size=40))
def test_whatever_a_crash_leaves_the_whole_lines_before_it_are_read(
    tmp_path_factory: pytest.TempPathFactory, cut: int, tail: bytes
) -> None:
    folder = tmp_path_factory.mktemp("journal")
    path = written(folder)
    data = path.read_bytes()
    cut = min(cut, len(data))
    path.write_bytes(data[:cut] + tail)
    whole = data[:cut].count(b"\n")
    found = unfinished(folder)
    if whole == 0:
        assert found == [] or found[0].opening == OPENING
        return
    assert found[0].opening == OPENING
    steps = [{"step": "attempt", "position": 1, "arm": "B1", "number": 1}]
    steps.append({"step": "trial", "position": 1, "measure": "decode", "number": 2})
    assert list(found[0].steps[: whole - 1]) == steps[: whole - 1]
    journal = Journal.reopen(found[0])
    journal.note("gates")
    journal.close()
    again = unfinished(folder)[0]
    assert again.steps == (*found[0].steps, {"step": "gates"})


def test_a_journal_is_held_by_one_and_seen_to_be(tmp_path: Path) -> None:
    journal = Journal.begin(tmp_path, OPENING)
    (past,) = unfinished(tmp_path)
    assert past.is_running
    with pytest.raises(StoreError, match="running in another process"):
        Journal.reopen(past)
    journal.close()
    (past,) = unfinished(tmp_path)
    assert not past.is_running
    Journal.reopen(past).close()


def test_the_end_removes_it_and_nobody_else_may_read_it(tmp_path: Path) -> None:
    journal = Journal.begin(tmp_path, OPENING)
    (path,) = tmp_path.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    journal.end()
    journal.close()
    assert unfinished(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_the_journal_of_another_version_is_refused(tmp_path: Path) -> None:
    journal = Journal.begin(tmp_path, evolve(OPENING, session="01T0612-x-0001"))
    journal.close()
    (path,) = tmp_path.iterdir()
    journal = Journal(path, os.open(path, os.O_RDWR | os.O_TRUNC))
    journal.note("begin")
    journal.close()
    with pytest.raises(StoreError, match="another version"):
        unfinished(tmp_path)
