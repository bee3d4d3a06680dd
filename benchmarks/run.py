"""Every promise of speed, measured in one run beside its floors, and printed as medians and ratios.

What it does: makes a ledger of the asked size from a seed, measures the whole programs and the operations that users wait for,
and the floors (plain files, git, sha256sum, DuckDB) in the same minutes on the same machine. What it does not do: assert; a busy
machine is slow and says nothing of the code. Rule kept: a figure is the median of its repeats, with its lowest and highest.

usage: python benchmarks/run.py FOLDER [RECEIPTS] [--packed] [--repeats N]    FOLDER is made, and kept for the next run
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import synthetic
from attrs import frozen

from ledger.core.clock import SystemClock
from ledger.query import index
from ledger.receipt.model import Note, Tool
from ledger.store.git import commit_paths
from ledger.store.ledger import Ledger
from ledger.store.session import SessionWriter
from ledger.store.verify import Checked, verify

NEW = 1000
BINDINGS = 500
# The rows that others stand beside, by what they are a floor of.
FLOORS = {
    "question": "  floor: DuckDB open + query",
    "record": "  floor: write and fsync",
    "commit": "  floor: git add, git commit",
    "verify": "  floor: sha256sum",
}
PLAIN = 'query "C6 by arm" --json'
# Peers, measured once on two cores by their own documented ways on 2026-12-01, and not in this run: none is a dependency.
PEERS = (
    ('"C6 by arm" over 10,000 results', "MLflow (sqlite) 29 s, MLflow (files) 78 s; DVC at 500: 2 to 21 s"),
    ("record one result", "MLflow 44 to 122 ms, Sacred 54 ms, asv 2 ms"),
    ("verify 100,000", "git fsck 9 s"),
)


@frozen(kw_only=True)
class Line:
    """A row: what was measured, the seconds of each repeat, the row that is its floor, and the peak memory of a process."""

    what: str
    seconds: list[float]
    floor: str = ""
    peak_mib: float | None = None


def timed(work: Callable[[], object], repeats: int) -> list[float]:
    """The seconds of each repeat of ``work``."""
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return found


def program(root: Path, *arguments: str) -> tuple[float, float]:
    """Seconds and peak MiB of a whole ``ledger`` process."""
    command = [sys.executable, "-m", "ledger", "-C", str(root), *arguments]
    began = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(child.pid, 0)
    return time.perf_counter() - began, usage.ru_maxrss / 1024


def whole(what: str, root: Path, repeats: int, *arguments: str, floor: str = "") -> Line:
    """A line about a whole process."""
    runs = [program(root, *arguments) for _ in range(repeats)]
    return Line(what=what, seconds=[seconds for seconds, _ in runs], floor=floor, peak_mib=max(peak for _, peak in runs))


def git(root: Path, *arguments: str) -> None:
    """Run git quietly."""
    subprocess.run(["git", *arguments], cwd=root, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def prepare(root: Path, count: int, corrected: int, packed: bool) -> Ledger:
    """A committed ledger of ``count`` receipts; one that is there is taken as it is."""
    if not (root / ".git").exists():
        synthetic.write(root, count, corrected=corrected, packed=packed)
        git(root, "init", "-q", "-b", "main")
        git(root, "config", "user.email", "bench@localhost")
        git(root, "config", "user.name", "bench")
        (root / ".gitignore").write_text(".ledger/\n")
        git(root, "add", "-A")
        git(root, "commit", "-qm", "ledger")
    return Ledger(root=root)


def rebuild(ledger: Ledger) -> Line:
    """A full build of the index, in a process of its own."""
    (ledger.state / index.FILE).unlink(missing_ok=True)
    return whole("rebuild of the index", ledger.root, 1, "query", "C6 by arm", "--json")


def catch_up(ledger: Ledger, repeats: int) -> Line:
    """A query after ``NEW`` receipts were added, less the plain query; the receipts are taken away again."""
    plain = statistics.median(program(ledger.root, "query", "C6 by arm", "--json")[0] for _ in range(3))
    seconds = []
    for repeat in range(repeats):
        added = add(ledger, f"{repeat:04x}")
        seconds.append(max(0.0, program(ledger.root, "query", "C6 by arm", "--json")[0] - plain))
        for path in added:
            path.unlink()
        added[0].parent.rmdir()
        program(ledger.root, "query", "C6 by arm", "--json")
    return Line(what=f"catch-up after {NEW} new", seconds=seconds, floor=FLOORS["question"])


def add(ledger: Ledger, token: str) -> list[Path]:
    """``NEW`` more receipts in a session of their own, written plainly."""
    folder = ledger.receipts / "2030" / "01" / f"01T0000-more-{token}"
    folder.mkdir(parents=True)
    paths = []
    for _, name, data in synthetic.receipts(NEW, seed=int(token, 16) + 99):
        path = folder / f"{name}.json"
        path.write_bytes(data)
        paths.append(path)
    return paths


def record(ledger: Ledger, repeats: int) -> Iterator[Line]:
    """One receipt, durably; and the floor: the same bytes written and synced under a plain name."""
    writer = SessionWriter(ledger, "bench", clock=SystemClock(), token="beef", tool=Tool(name="bench", version="1"))
    seconds = timed(lambda: writer.record(Note(text="x" * 3500, by="bench")), 50 * repeats)
    yield Line(what="record one receipt", seconds=seconds, floor=FLOORS["record"])
    scratch = ledger.state / "plain"

    def floor() -> None:
        with scratch.open("wb") as file:
            file.write(b"x" * 4000)
            file.flush()
            os.fsync(file.fileno())

    yield Line(what=FLOORS["record"], seconds=timed(floor, 50 * repeats))
    for path in writer.paths:
        path.unlink()
    writer.folder.rmdir()


def commit(ledger: Ledger) -> Iterator[Line]:
    """A commit of ``NEW`` receipts, by us and by ``git add`` and ``git commit``; both are undone."""
    for what, work in (
        (f"commit {NEW} receipts", lambda paths: commit_paths(ledger, paths, "bench")),
        (
            FLOORS["commit"],
            lambda paths: (git(ledger.root, "add", str(paths[0].parent)), git(ledger.root, "commit", "-qm", "x")),
        ),
    ):
        paths = add(ledger, "c0de")
        yield Line(what=what, seconds=timed(lambda paths=paths, work=work: work(paths), 1), floor=FLOORS["commit"])
        git(ledger.root, "reset", "-q", "--hard", "HEAD~1")


def check(ledger: Ledger, repeats: int) -> Iterator[Line]:
    """``ledger verify`` as a whole process, the part that reads receipts, and the floor: sha256sum over the files."""
    yield whole("ledger verify", ledger.root, repeats, "verify", floor=FLOORS["verify"])
    yield Line(what="  its reading of receipts", seconds=timed(lambda: list(verify(ledger, Checked())), repeats))
    command = f"find {ledger.receipts} -name '*.json*' -print0 | xargs -0 sha256sum > /dev/null"
    yield Line(what=FLOORS["verify"], seconds=timed(lambda: subprocess.run(command, shell=True, check=True), repeats))
    if next(ledger.receipts.glob("*/*/*.jsonl.gz"), None) is None:
        yield packing(ledger)


def packing(ledger: Ledger) -> Line:
    """``ledger pack`` of the whole ledger as a whole process; the commit is undone."""
    line = whole("ledger pack", ledger.root, 1, "pack")
    git(ledger.root, "reset", "-q", "--hard", "HEAD~1")
    return line


def questions(ledger: Ledger, repeats: int) -> Iterator[Line]:
    """The query as users run it, as-of a day, and the floors of start-up and of DuckDB."""
    yield whole('query "C6 by arm"', ledger.root, 3 * repeats, "query", "C6 by arm", floor=FLOORS["question"])
    yield whole(PLAIN, ledger.root, 3 * repeats, "query", "C6 by arm", "--json", floor=FLOORS["question"])
    yield whole("the same as of a day", ledger.root, 3 * repeats, "query", "C6 by arm as-of:2024-06-01", "--json", floor=PLAIN)
    yield whole("ledger --help", ledger.root, 3 * repeats, "--help")

    def floor() -> None:
        with duckdb.connect(str(ledger.state / index.FILE), read_only=True) as connection:
            connection.execute("SELECT arm, median(value) FROM cells WHERE metric = 'C6' GROUP BY arm").fetchall()

    yield Line(what=FLOORS["question"], seconds=timed(floor, 3 * repeats))


def page(ledger: Ledger, repeats: int) -> Line:
    """A page of ``BINDINGS`` figures and ratios, half of them asked for twice, checked against the ledger by a whole process."""
    metrics = ("C1", "C2", "C6", "ttft@C1", "ttft@C6", "prefill@500")
    plain = [f"{metric} of {arm}" for metric in metrics for arm in synthetic.ARMS]
    ratios = [f"{metric} of {arm} / {metric} of control" for metric in metrics for arm in synthetic.ARMS if arm != "control"]
    asked = [*plain, *ratios]
    path = ledger.state / "page.md"
    path.write_text("".join(f"x <!--= {asked[number % len(asked)]} | .2f --><!--/-->\n" for number in range(BINDINGS)))
    program(ledger.root, "render", str(path))
    return whole(f"check a page of {BINDINGS} bindings", ledger.root, repeats, "check", str(path), floor=PLAIN)


def show(lines: list[Line], count: int) -> None:
    """The table, in Markdown; a ratio is of medians, of a row over the one that is its floor."""
    medians = {line.what: statistics.median(line.seconds) for line in lines}
    print(f"\n{count:,} receipts, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, load {os.getloadavg()[0]:.1f}\n")
    print("| work | median | lowest … highest | n | ratio | peak memory |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for line in lines:
        low, high = min(line.seconds), max(line.seconds)
        peak = f"{line.peak_mib:.0f} MiB" if line.peak_mib else ""
        floor = medians.get(line.floor) if line.floor != line.what else None
        ratio = f"{medians[line.what] / floor:.1f} × {line.floor.strip().removeprefix('floor: ')}" if floor else ""
        spread = f"{spell(low)} … {spell(high)}"
        print(f"| {line.what} | {spell(medians[line.what])} | {spread} | {len(line.seconds)} | {ratio} | {peak} |")
    print("\npeers, measured elsewhere and not in this run:")
    for what, told in PEERS:
        print(f"- {what}: {told}")


def spell(seconds: float) -> str:
    """Seconds as people read them."""
    return f"{seconds * 1000:.2f} ms" if seconds < 0.1 else f"{seconds:.2f} s"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("receipts", type=int, nargs="?", default=10_000)
    parser.add_argument("--corrections", type=int, default=0, help="how many of the trials are corrected")
    parser.add_argument("--packed", action="store_true", help="a ledger in packs")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    ledger = prepare(options.folder, options.receipts, options.corrections, options.packed)
    ledger.state.mkdir(exist_ok=True)
    lines = [
        rebuild(ledger),
        *questions(ledger, options.repeats),
        page(ledger, options.repeats),
        catch_up(ledger, options.repeats),
    ]
    lines += [*record(ledger, options.repeats), *commit(ledger), *check(ledger, options.repeats)]
    show(lines, options.receipts)
    print(f"\npeak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
