"""What is done to nodes and read of them: hygiene, conditions, kernel logs and samples, on this machine."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.backends.process import environment
from ledger.backends.reach import LocalReach
from ledger.backends.sampler import Accelerators, thinned
from ledger.instruments.base import LoadPlan, Wave
from ledger.receipt.model import Figure
from ledger.run import host, kernel
from ledger.run.conditions import HostBook, cache_condition, host_conditions, load_conditions
from ledger.run.evidence import Evidence
from ledger.run.hygiene import clean
from ledger.run.secrets import Concealer
from ledger.run.telemetry import Telemetry, figures_of, parts_of, samples_of
from ledger.run.trial import with_first_touch
from ledger.spec.model import Action, Node, Site

HERE = LocalReach("here", environment)
HIDE = Concealer(key=b"k" * 32, places={})
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to write to the kernel's log")


def site(**more: object) -> Site:
    return Site(ledger=1, name="s", nodes=(Node(name="here"),), **more)  # type: ignore[arg-type]  # fields by name


# --- hygiene ----------------------------------------------------------------------------------------------------------------


def action(name: str, *argv: str, privilege: str = "none", stdin: str = "") -> Action:
    return Action(id=name, argv=argv, privilege=privilege, stdin=stdin)


def test_actions_are_done_in_order_and_each_is_recorded() -> None:
    own = action("say", sys.executable, "-c", "import sys; print(sys.stdin.read(), '$HOME; ls')", stdin="given")
    done = clean(["sync", "say"], site(actions={"say": own}), [HERE], HIDE)
    assert done.conditions == {"hygiene.sync": "done", "hygiene.say": "done"}
    sync, say = map(orjson.loads, done.pieces[0].data.splitlines())
    assert (sync["argv"], sync["status"], sync["privilege"]) == (["sync"], 0, "none")
    assert say["out"] == "given $HOME; ls\n", "an argv, and no shell"
    assert say["before"]["MemAvailable"] > 0
    assert say["after"]["MemAvailable"] > 0


def test_what_the_site_forbids_is_not_done_and_said(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    own = action("touch", "touch", str(mark))
    done = clean(["touch"], site(actions={"touch": own}, forbid=("touch",)), [HERE], HIDE)
    assert done.conditions == {"hygiene.touch": "forbidden"}
    assert not mark.exists()


def test_a_failed_action_is_told_and_stops_nothing() -> None:
    actions = {"fails": action("fails", sys.executable, "-c", "import sys; sys.exit('no room')"), "ok": action("ok", "true")}
    done = clean(["fails", "ok"], site(actions=actions), [HERE], HIDE)
    assert done.conditions == {"hygiene.fails": "failed (exit status 1: no room)", "hygiene.ok": "done"}


def test_only_what_needs_root_is_elevated(tmp_path: Path) -> None:
    elevate = (sys.executable, "-c", "import sys; print('elevated', sys.argv[1:])")
    actions = {"root": action("root", "true", privilege="root"), "none": action("none", "echo", "plain")}
    done = clean(["root", "none"], site(actions=actions, elevate=elevate), [HERE], HIDE)
    outs = [orjson.loads(line)["out"] for line in done.pieces[0].data.splitlines()]
    assert outs == ["elevated ['true']\n", "plain\n"]


def test_an_action_without_its_program_fails_with_the_reason() -> None:
    done = clean(["x"], site(actions={"x": action("x", "no-such-program")}), [HERE], HIDE)
    assert "cannot run no-such-program" in done.conditions["hygiene.x"]
    assert clean([], site(), [HERE], HIDE).conditions == {"hygiene": "none"}


# --- conditions -------------------------------------------------------------------------------------------------------------


def test_a_cache_is_cold_until_something_was_compiled_into_it(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    assert cache_condition([str(folder)], [HERE]) == {"jit_cache": "cold"}
    (folder / "empty").mkdir(parents=True)
    assert cache_condition([str(folder)], [HERE]) == {"jit_cache": "cold"}
    (folder / "empty" / "kernel.so").write_bytes(b"x")
    assert cache_condition([str(folder)], [HERE]) == {"jit_cache": "warm"}
    assert cache_condition([str(folder), str(tmp_path / "other")], [HERE]) == {"jit_cache": "cold"}
    assert cache_condition([], [HERE]) == {}


def test_boots_of_a_host_are_counted_and_its_rest_is_timed(tmp_path: Path) -> None:
    first = host_conditions([HERE], HostBook(tmp_path / "hosts.json"), 1000.0)
    assert first["boot_of_host"] == "1"
    assert "idle_min" not in first
    HostBook(tmp_path / "hosts.json").end(HERE.key, 1060.0)
    second = host_conditions([HERE], HostBook(tmp_path / "hosts.json"), 1060.0 + 90)
    assert (second["boot_of_host"], second["idle_min"]) == ("2", "1.5")
    assert second["host_boot"] == first["host_boot"] == Path("/proc/sys/kernel/random/boot_id").read_text()[:8]


def test_another_boot_of_the_host_begins_anew(tmp_path: Path) -> None:
    book = HostBook(tmp_path / "hosts.json")
    assert book.begin("n", "one") == (1, None)
    book.end("n", 5.0)
    assert book.begin("n", "one") == (2, 5.0)
    assert book.begin("n", "two") == (1, None)


@pytest.mark.parametrize("damage", [b"{", b"[1]", b'{"n": 1}', b'{"n": {"x": 1}}'])
def test_a_damaged_book_costs_its_numbers_alone(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "hosts.json").write_bytes(damage)
    assert HostBook(tmp_path / "hosts.json").begin("n", "one") == (1, None)


def test_neighbours_are_the_processes_of_others(tmp_path: Path) -> None:
    program = ("-c", "import sys; print('up', flush=True); sys.stdin.read()", "neighbour-under-test")
    held = HERE.hold((sys.executable, *program))
    try:
        wanted = host.Wanted(patterns=("neighbour-under-test", "no-such-neighbour"))
        strangers = _until(lambda: host.read_node(HERE, wanted, HIDE), lambda found: "sys.stdin.read()" in _texts(found))
        assert load_conditions(strangers, wanted.patterns)["neighbours"] == "1 neighbour-under-test"
        mine = host.read_node(HERE, wanted, HIDE, own=(os.getpid(),))
        assert load_conditions(mine, wanted.patterns)["neighbours"] == "none"
    finally:
        held.stop()
    assert load_conditions(Evidence(nodes=("here",)), ("x",)) == {"neighbours": "unknown"}


def _texts(found: Evidence) -> str:
    return "".join(piece.text for piece in found.pieces if piece.source.startswith(host.PROCESSES))


def _until(read: Callable[[], Evidence], holds: Callable[[Evidence], bool]) -> Evidence:
    limit = time.monotonic() + 20
    while not holds(found := read()) and time.monotonic() < limit:
        time.sleep(0.05)
    return found


def test_a_secret_on_a_command_line_is_not_kept() -> None:
    held = HERE.hold((sys.executable, "-c", "import sys; sys.stdin.read()", "secretive-neighbour", "--api-key", "hunter2"))
    try:
        wanted = host.Wanted(patterns=("secretive-neighbour",))
        found = _until(lambda: host.read_node(HERE, wanted, HIDE), lambda found: "--api-key" in _texts(found))
        assert "--api-key secret:hmac" in _texts(found)
        assert "hunter2" not in _texts(found)
    finally:
        held.stop()


def test_the_first_run_of_a_length_is_marked_once_in_a_boot() -> None:
    plan = LoadPlan(waves=tuple(Wave(id=f"prefill@500/{run}", requests=(), labels={"length": "500"}) for run in (1, 2, 3)))
    figures = {"prefill@500": Figure(unit="tok/s", value=1.0), "prefill@5500": Figure(unit="tok/s", value=1.0)}
    touched: set[str] = set()
    first = with_first_touch(figures, plan, touched)
    assert first["prefill@500"].conditions == {"first_touch": "run 1 of 3"}
    assert first["prefill@5500"].conditions == {}
    assert with_first_touch(figures, plan, touched) == figures


# --- the kernel's log -------------------------------------------------------------------------------------------------------


@ROOT
def test_what_the_kernel_says_within_the_boot_is_counted_and_nothing_before() -> None:
    word = f"ledger-test-{os.getpid()}"
    _tell_kernel(f"{word} before")
    mark = kernel.mark(HERE)
    assert mark.unread is None
    _tell_kernel(f"{word} within")
    found = kernel.since(HERE, mark, HIDE).of(kernel.SOURCE)["here"].text
    assert kernel.count(found, lambda line: word in line) == 1
    assert f"{word} within" in found


def _tell_kernel(text: str) -> None:
    try:
        Path("/dev/kmsg").write_text(f"<6>{text}\n")
    except OSError as error:
        pytest.skip(f"the kernel's log cannot be written: {error.strerror}")


class Logs(LocalReach):
    """A node whose dmesg gives chosen texts, one after the other, and which has no other log."""

    def __init__(self, *texts: str) -> None:
        super().__init__("here", environment)
        self._texts = list(texts)

    def _run(self, argv, **more):  # type: ignore[no-untyped-def]  # as the method that it replaces
        if argv[0] != "dmesg" or not self._texts:
            return super()._run(("no-such-program",), **more)
        return super()._run(("printf", "%s", self._texts.pop(0)), **more)


def test_an_unreadable_log_is_told_with_all_that_was_tried() -> None:
    mark = kernel.mark(Logs())
    for tool in ("dmesg", "journalctl", "dd"):
        assert f"{tool}: cannot run" in str(mark.unread)
    assert kernel.since(HERE, mark, HIDE).unread == {("here", kernel.SOURCE): mark.unread}


def test_a_log_that_lost_its_beginning_is_no_clean_log() -> None:
    logs = Logs("[1.0] a\n[2.0] b\n", "[3.0] c\n")
    found = kernel.since(logs, kernel.mark(logs), HIDE)
    assert "lost lines" in found.unread["here", kernel.SOURCE]
    emptied = Logs("[1.0] a\n", "")
    assert kernel.since(emptied, kernel.mark(emptied), HIDE).unread


@given(
    st.lists(st.sampled_from(["1.0", "2.0", "3.0"]), min_size=1, max_size=5),
    st.lists(st.sampled_from(["3.0", "4.0"]), max_size=4),
)
def test_just_the_lines_that_came_after_are_given(before: list[str], after: list[str]) -> None:
    old = [f"[{at}] old {index}" for index, at in enumerate(sorted(before))]
    new = [f"[{at}] new {index}" for index, at in enumerate(sorted(after))]
    logs = Logs("\n".join(old) + "\n", "\n".join([*old, *new]) + "\n")
    text = kernel.since(logs, kernel.mark(logs), HIDE).of(kernel.SOURCE)["here"].text
    assert text.splitlines()[1:] == new


# --- samples ----------------------------------------------------------------------------------------------------------------


def test_samples_belong_to_the_parts_of_a_trial() -> None:
    telemetry = Telemetry([HERE, LocalReach("the same machine", environment)], period_s=0.02)
    try:
        telemetry.begin()
        for part in ("C1/code", "C1/math", "C2/code"):
            time.sleep(0.05)
            telemetry.part(part)
        taken = telemetry.end("decode", 1)
    finally:
        telemetry.stop()
    (piece,) = taken.pieces
    samples = samples_of(piece)
    assert [name for name, _ in parts_of(samples)] == ["C1", "C1", "C2", "end"]
    assert len(samples) >= 5
    figures = figures_of(taken)
    assert {"mem_available_floor", "mem_available_floor@C1", "mem_available_floor@C2"} <= set(figures)
    assert figures["mem_available_floor"].value == round(min(each["MemAvailable"] for each in samples) / 2**30, 3)
    assert figures["mem_available_floor"].n == len(samples)


def test_a_node_without_the_sampler_has_no_figure_and_says_why() -> None:
    gone = LocalReach("gone", environment)
    gone.python, gone.key = "no-such-python", "gone"
    telemetry = Telemetry([gone, HERE])
    telemetry.begin()
    taken = telemetry.end("m", 1)
    telemetry.stop()
    assert list(taken.unread) == [("gone", "telemetry")]
    assert figures_of(taken)["mem_available_floor"].marks == ("no samples of gone",)
    silent = Telemetry([gone])
    silent.begin()
    assert figures_of(silent.end("m", 1)) == {}


@given(st.lists(st.integers(0, 100), max_size=30), st.sets(st.integers(0, 29)))
def test_thinned_samples_keep_the_floor_and_every_mark(memory: list[int], marked: set[int]) -> None:
    samples = [{"MemAvailable": value, **({"mark": index} if index in marked else {})} for index, value in enumerate(memory)]
    kept = thinned(samples)
    assert min((each["MemAvailable"] for each in kept), default=0) == min(memory, default=0)
    assert [each["mark"] for each in kept if "mark" in each] == sorted(index for index in marked if index < len(memory))
    if not marked:
        assert len(kept) == -(-len(memory) // 2)


NVML = """
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **h) { *h = (void *)(0x7f0000000000ul + i); return 0; }
int nvmlDeviceGetTemperature(void *h, unsigned sensor, unsigned *t)
{ *t = 61 + ((unsigned long)h & 1); return sensor; }
int nvmlDeviceGetPowerUsage(void *h, unsigned *mw)
{ *mw = 40500; return (unsigned long)h & 1 ? 3 : 0; }
int nvmlDeviceGetClockInfo(void *h, unsigned type, unsigned *mhz)
{ *mhz = 2400 - 100 * ((unsigned long)h & 1); return type != 1; }
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler, to make a driver's library")
def test_accelerators_are_asked_through_their_drivers_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nvml.c").write_text(NVML)
    library = tmp_path / "libnvidia-ml.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "nvml.c")], check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    telemetry = Telemetry([HERE])
    telemetry.begin()
    taken = telemetry.end("m", 1)
    telemetry.stop()
    last = samples_of(taken.pieces[0])[-1]
    assert (last["temperature"], last["power"], last["accelerator_clock"]) == (62, 40.5, 2300), "one of two tells no power"
    assert figures_of(taken)["accelerator_clock_floor"].value == 2300


def test_a_library_that_is_no_drivers_is_passed_over(tmp_path: Path) -> None:
    assert Accelerators(str(tmp_path / "none.so")).handles == []
    assert Accelerators("libc.so.6").handles == []


def test_no_sampler_outlives_its_runner() -> None:
    program = (
        "import sys, time\nfrom ledger.backends.reach import LocalReach\nfrom ledger.run.telemetry import Telemetry\n"
        "telemetry = Telemetry([LocalReach('here')])\ntelemetry.begin()\n"
        "print(telemetry._held['here']._process.pid, flush=True)\ntime.sleep(60)"
    )
    runner = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert runner.stdout is not None
    pid = int(runner.stdout.readline())
    runner.kill()
    runner.wait()
    limit = time.monotonic() + 20
    while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes() and time.monotonic() < limit:
        time.sleep(0.05)
    assert not Path(f"/proc/{pid}/cmdline").exists() or not Path(f"/proc/{pid}/cmdline").read_bytes()
