"""Locks of nodes: all or none, named, and gone with their holder."""

import subprocess
import sys
from pathlib import Path

import pytest

from ledger.run.locks import BusyError, Holder, held

HOLDER = Holder(pid=1, host="rack", session="01T0612-a-0001", since="2026-12-01T06:12:00Z")
HOLD = """
import sys
from pathlib import Path
from ledger.run.locks import Holder, held
with held(Path(sys.argv[1]), ["spark-1"], Holder(pid=7, host="rack", session="01T0612-b-0002", since="now")):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_overlapping_sets_exclude_each_other_and_disjoint_ones_do_not(tmp_path: Path) -> None:
    with held(tmp_path, ["spark-1", "spark-2"], HOLDER), held(tmp_path, ["spark-3"], HOLDER):
        with (
            pytest.raises(BusyError, match="session 01T0612-a-0001, process 1 on rack") as error,
            held(tmp_path, ["spark-0", "spark-1", "spark-2"], HOLDER),
        ):
            pytest.fail("it was taken twice")
        assert len(error.value.problems) == 2
        with held(tmp_path, ["spark-0"], HOLDER):
            pass
    with held(tmp_path, ["spark-1", "spark-2"], HOLDER):
        pass


def test_this_machine_is_one_node_by_whatever_name(tmp_path: Path) -> None:
    with held(tmp_path, ["localhost"], HOLDER), pytest.raises(BusyError), held(tmp_path, ["RACK"], HOLDER):
        pytest.fail("it was taken twice")


def test_a_lock_goes_with_its_holder_however_it_ends(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    with pytest.raises(BusyError, match="01T0612-b-0002, process 7"), held(tmp_path, ["spark-1"], HOLDER):
        pytest.fail("it was taken twice")
    process.kill()
    process.communicate()
    with held(tmp_path, ["spark-1"], HOLDER):
        pass
