"""Gates: what is read, compared and kept; what cannot be read is unknown, never a pass."""

import gzip

import orjson
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from ledger.core.words import Evidence as FigureEvidence
from ledger.core.words import Holds, Role
from ledger.instruments.items import MEDIA_TYPE as ITEMS
from ledger.instruments.items import Item
from ledger.instruments.items import encode as encode_items
from ledger.receipt.model import Figure, Instrument, Requests, Subject, Trial
from ledger.run import host, kernel
from ledger.run.evidence import Evidence, Piece, joined, text_piece
from ledger.run.gates import OPERATORS, blocks, judge
from ledger.run.telemetry import TELEMETRY
from ledger.spec.model import GateSpec

MEMINFO = "MemTotal: 4194304 kB\nMemAvailable: 2097152 kB\nSwapTotal: 100 kB\nSwapFree: 60 kB\n"


def node(name: str = "a", *, meminfo: str = MEMINFO, load: str = "0.50 0.4 0.3 1/2 3\n", heat: str = "") -> Evidence:
    pieces = [text_piece(name, host.MEMINFO, meminfo), text_piece(name, host.LOADAVG, load)]
    pieces += [text_piece(name, host.SENSORS, heat)] if heat else []
    return Evidence(nodes=(name,), pieces=tuple(pieces))


def gate(reads: str, op: str, value: str, when: str = "before", of: str | None = None, on_fail: str = "block") -> GateSpec:
    return GateSpec(id="g", text="a text", reads=reads, op=op, value=value, when=when, of=of, on_fail=on_fail)


def trial(number: int, *, failed: int = 0, c1: float | None = None, measure: str = "decode") -> Trial:
    return Trial(
        subject=Subject(spec="s", lane="l", arm="a", role=Role.CONTROL, evidence=FigureEvidence.MEASURED),
        boot="sha256:" + "0" * 64,
        measure=measure,
        number=number,
        instrument=Instrument(name="openai/decode", version=1),
        figures={"C1": Figure(unit="tok/s", value=c1)} if c1 is not None else {},
        requests=Requests(launched=4, ok=4 - failed, failed=failed),
    )


@pytest.mark.parametrize(
    ("op", "value", "holds"),
    [
        (">=", "1 GiB", Holds.PASS),
        (">=", "2 GiB", Holds.PASS),
        (">", "2 GiB", Holds.FAIL),
        ("<", "3 GB", Holds.PASS),
        (">=", "100 GiB", Holds.FAIL),
    ],
)
def test_memory_is_compared_in_the_units_of_the_spec(op: str, value: str, holds: Holds) -> None:
    verdict = judge(gate("host.MemAvailable", op, value), node())
    assert verdict.holds is holds
    assert verdict.value is not None
    assert verdict.value.endswith(value.split()[1])
    assert [piece.text for piece in verdict.evidence if piece.source == host.MEMINFO] == [MEMINFO], "the whole of it is kept"


@pytest.mark.parametrize("reads", ["host.NoSuchCounter", "requests.failed", "C1", "host.temperature", "host.disk_free"])
def test_what_cannot_be_read_is_unknown_with_its_reason(reads: str) -> None:
    verdict = judge(gate(reads, "==", "0"), node())
    assert (verdict.holds, verdict.value) == (Holds.UNKNOWN, None)
    assert verdict.reason


def test_the_worst_node_decides() -> None:
    small = node("b", meminfo="MemAvailable: 1024 kB\n")
    verdict = judge(gate("host.MemAvailable", ">=", "1 GiB"), joined([node(), small]))
    assert (verdict.holds, verdict.value) == (Holds.FAIL, "0.0009765625 GiB")
    assert verdict.reason == "the worst of 2: b"
    assert {piece.node for piece in verdict.evidence} == {"a", "b"}


def test_one_node_that_cannot_be_read_is_no_pass_and_no_excuse() -> None:
    silent = Evidence(nodes=("b",), unread={("b", host.MEMINFO): "no route"})
    both = joined([node(), silent])
    verdict = judge(gate("host.MemAvailable", ">=", "1 GiB"), both)
    assert verdict.holds is Holds.UNKNOWN
    assert "b: no counter MemAvailable; no route" in str(verdict.reason)
    assert judge(gate("host.MemAvailable", ">=", "9 GiB"), both).holds is Holds.FAIL


def test_derived_counters() -> None:
    heat = "/sys/class/thermal/thermal_zone0/temp:45000\n/sys/class/hwmon/hwmon0/temp1_input:71500\nx:-273000\ny: broken\n"
    hot = node(heat=heat)
    assert judge(gate("host.temperature", "<", "80 degC"), hot).value == "71.5 degC"
    assert judge(gate("host.SwapUsed", "<=", "40 KiB"), hot).value == "40 KiB"


@pytest.mark.parametrize(
    ("text", "free"),
    [
        ("Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/vda 100 40 60 40% /\n", 60 * 1024.0),
        ("Filesystem 1024-blocks Used Available Capacity Mounted on\nmy disk 100 40 60 40% /a b\n", 60 * 1024.0),
        ("Filesystem 1024-blocks Used Available Capacity Mounted on\nproc 0 0 0 - /proc\n", 0.0),
        ("df: no such file\n", None),
        ("", None),
    ],
)
def test_free_space_is_read_from_df(text: str, free: float | None) -> None:
    assert host.parse_disk(text) == free


def test_processes_that_match_are_counted_and_another_pattern_is_not_guessed() -> None:
    kept = text_piece("a", "processes:vllm", "# 3 processes, of which these match vllm\n12 vllm serve\n13 vllm worker\n")
    evidence = Evidence(nodes=("a",), pieces=(kept,))
    assert judge(gate("host.processes", "==", "0", of="vllm"), evidence).value == "2"
    assert judge(gate("host.processes", "==", "0", of="sglang"), evidence).holds is Holds.UNKNOWN


@pytest.mark.parametrize(("pattern", "count"), [("Xid", "2"), ("Xid*79", "1"), ("oom-kill|Xid*79", "2"), ("xid", "0")])
def test_kernel_events_are_counted_by_pattern(pattern: str, count: str) -> None:
    log = "# dmesg: 4 of 9 lines\n[2.0] NVRM: Xid (PCI:0): 79, gone\n[2.1] NVRM: Xid: 13\n[2.2] oom-kill: vllm\n[3.0] quiet\n"
    evidence = Evidence(nodes=("a",), pieces=(text_piece("a", kernel.SOURCE, log),))
    verdict = judge(gate("kernel.events", "==", "0", "during", of=pattern), evidence)
    assert verdict.value == count
    assert verdict.holds is (Holds.PASS if count == "0" else Holds.FAIL)


def test_a_kernel_log_that_nobody_could_read_is_unknown() -> None:
    evidence = Evidence(nodes=("a",), unread={("a", kernel.SOURCE): "dmesg: not permitted"})
    verdict = judge(gate("kernel.events", "==", "0", "during", of="Xid"), evidence)
    assert (verdict.holds, verdict.reason) == (Holds.UNKNOWN, "a: dmesg: not permitted")


def samples(name: str, *values: dict[str, float]) -> Piece:
    data = b"".join(orjson.dumps({"t": index, **value}) + b"\n" for index, value in enumerate(values))
    return Piece(annotations={"node": name, "source": TELEMETRY, "measure": "m/1"}, data=gzip.compress(data))


def test_during_reads_the_worst_sample_of_all_nodes() -> None:
    pieces = (
        samples("a", {"MemAvailable": 4.0 * 2**30}, {"MemAvailable": 2.0 * 2**30}),
        samples("b", {"MemAvailable": 3.0 * 2**30}),
    )
    evidence = Evidence(nodes=("a", "b"), pieces=pieces)
    verdict = judge(gate("host.MemAvailable", ">=", "3 GiB", "during"), evidence)
    assert (verdict.holds, verdict.value) == (Holds.FAIL, "2 GiB")
    assert judge(gate("host.MemAvailable", ">=", "2 GiB", "during"), evidence).holds is Holds.PASS
    assert judge(gate("host.temperature", "<", "80 degC", "during"), evidence).holds is Holds.UNKNOWN


def test_failed_requests_are_summed_over_the_trials_or_one_measure() -> None:
    evidence = Evidence(trials=(trial(1), trial(2, failed=3), trial(1, failed=1, measure="prefill")))
    verdict = judge(gate("requests.failed", "==", "0", "after"), evidence)
    assert (verdict.holds, verdict.value) == (Holds.FAIL, "4")
    assert "failed 3" in verdict.evidence[0].text
    assert judge(gate("requests.failed", "==", "0", "after", of="prefill"), evidence).value == "1"


def test_no_trial_at_all_is_unknown_not_zero_failures() -> None:
    assert judge(gate("requests.failed", "==", "0", "after"), Evidence()).holds is Holds.UNKNOWN


@pytest.mark.parametrize(("op", "holds"), [(">=", Holds.FAIL), ("<=", Holds.PASS)])
def test_a_metric_gate_reads_the_worst_trial(op: str, holds: Holds) -> None:
    evidence = Evidence(trials=(trial(1, c1=50.0), trial(2, c1=40.0), trial(3)))
    assert judge(gate("C1", op, "50 tok/s", "after"), evidence).holds is holds


def test_a_figure_that_is_absent_is_unknown() -> None:
    absent = evolve(trial(1), figures={"C1": Figure(unit="tok/s", absent="every request failed")})
    evidence = Evidence(trials=(absent,))
    assert "every request failed" in str(judge(gate("C1", ">=", "1 tok/s", "after"), evidence).reason)


def sides(control: dict[str, bool], arm: dict[str, bool]) -> Evidence:
    return Evidence(
        pieces=tuple(
            Piece(
                annotations={"source": "items", "side": side, "measure": "tasks/1"},
                data=encode_items(Item(id=name, solved=solved) for name, solved in found.items()),
                media_type=ITEMS,
            )
            for side, found in (("control", control), ("arm", arm))
        )
    )


def test_paired_quality_counts_what_broke_and_says_how_little_was_looked_at() -> None:
    control = {f"t{index}": True for index in range(75)}
    arm = {**control, **{f"t{index}": False for index in range(7)}, "new": True}
    evidence = sides(control, arm)
    broke = judge(gate("paired.broke", "<=", "2", "after"), evidence)
    assert (broke.holds, broke.value) == (Holds.FAIL, "7")
    for words in (
        "75 items paired, 7 broke, 0 fixed",
        "exact p 0.0156",
        "mid-p 0.00781",
        "power at a drop of 5%",
        "1 on one side",
    ):
        assert words in str(broke.reason)
    assert judge(gate("paired.p", ">=", "0.05", "after"), evidence).holds is Holds.FAIL
    assert judge(gate("paired.mid_p", "<", "0.01", "after"), evidence).holds is Holds.PASS
    assert judge(gate("paired.drop", "<=", "10 %", "after"), evidence).value is not None
    assert len(broke.evidence) == 2


@pytest.mark.parametrize(
    ("control", "arm", "why"), [({}, {"a": True}, "control"), ({"a": True}, {}, "arm"), ({"a": True}, {"b": True}, "no item")]
)
def test_nothing_to_pair_is_unknown(control: dict[str, bool], arm: dict[str, bool], why: str) -> None:
    verdict = judge(gate("paired.broke", "==", "0", "after"), sides(control, arm))
    assert verdict.holds is Holds.UNKNOWN
    assert why in str(verdict.reason)


def test_damaged_items_are_unknown_with_their_reason() -> None:
    broken = Piece(
        annotations={"source": "items", "side": "control", "measure": "tasks/1"}, data=b'{"id": 1}\n', media_type=ITEMS
    )
    verdict = judge(gate("paired.broke", "==", "0", "after"), Evidence(pieces=(broken,)))
    assert verdict.holds is Holds.UNKNOWN
    assert "line 1 of the items" in str(verdict.reason)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5), st.floats(-1e6, 1e6), st.sampled_from(sorted(OPERATORS)))
def test_a_gate_holds_just_where_every_node_does(values: list[float], limit: float, op: str) -> None:
    nodes = [node(str(index), load=f"{value!r} 0 0 1/1 1\n") for index, value in enumerate(values)]
    verdict = judge(gate("host.load1", op, f"{limit!r}"), joined(nodes))
    assert (verdict.holds is Holds.PASS) == all(OPERATORS[op](value, limit) for value in values)


def test_what_a_gate_blocks_is_said_and_a_mark_blocks_nothing() -> None:
    failed = judge(gate("host.MemAvailable", ">=", "9 GiB"), node())
    assert blocks(failed) == "gate 'g' fail: a text (host.MemAvailable >= 9 GiB, read 2 GiB)"
    assert blocks(judge(gate("host.MemAvailable", ">=", "9 GiB", on_fail="mark"), node())) is None
    assert blocks(judge(gate("host.Nothing", ">=", "9 GiB"), node())) is not None
    assert blocks(judge(gate("host.MemAvailable", ">=", "1 GiB"), node())) is None


def test_meminfo_is_read_in_bytes_and_odd_lines_are_passed_over() -> None:
    text = "MemTotal:  100 kB\nMemAvailable:\t50 kB\nHugePages_Total:  0\nbroken\nX: y kB\n"
    assert host.parse_meminfo(text) == {"MemTotal": 102400.0, "MemAvailable": 51200.0}


@pytest.mark.parametrize("text", ["", "1 2", "a b c d"])
def test_an_odd_loadavg_is_absent_not_zero(text: str) -> None:
    assert host.parse_loadavg(text) == {}
