"""What the program has imported by the time it is done with its arguments.

What it does: runs commands in a process of their own and looks at what heavy packages it holds at the end. What it does not do:
time anything. Rules kept: the probe itself is seen to see what a command does import.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("duckdb", "git", "rich", "lark", "cattrs")
PROBE = """
import sys
from ledger.cli.main import run
code = run(sys.argv[1:])
sys.stderr.write("LOADED " + " ".join(name for name in {heavy!r} if name in sys.modules) + "\\n")
sys.exit(code)
"""


def loaded(*arguments: str) -> set[str]:
    """The heavy packages that ``ledger`` has imported by the time it is done with ``arguments``."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(heavy=HEAVY), *arguments], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip(), "nothing was printed"
    return set(done.stderr.rpartition("LOADED ")[2].split())


@pytest.mark.parametrize("option", ["--help", "--version", "-h", "-V"])
def test_the_way_in_is_light(option: str) -> None:
    assert loaded(option) == set()


def test_the_probe_sees_what_a_command_imports() -> None:
    assert {"git", "rich"} <= loaded("run", "--help")


def test_a_query_over_a_current_index_loads_no_decoder() -> None:
    loaded("query", "C6 by arm")  # brings the index up to date
    assert {"duckdb", "rich"} <= (seen := loaded("query", "C6 by arm"))
    assert "cattrs" not in seen
