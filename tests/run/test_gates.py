"""Gates: what is read, compared and kept; what cannot be read is unknown, never a pass."""

import pytest

from ledger.core.words import Evidence, Holds, Role
from ledger.receipt.model import Figure, Instrument, Requests, Subject, Trial
from ledger.run.gates import OPERATORS, judge_after, judge_before
from ledger.run.host import HostReading, parse_loadavg, parse_meminfo, read_host
from ledger.spec.model import GateSpec

HOST = HostReading(values={"MemAvailable": 2.0 * 2**30, "load1": 0.5}, raw="raw text")


def gate(reads: str, op: str, value: str, when: str = "after") -> GateSpec:
    return GateSpec(id="g", text="a text", reads=reads, op=op, value=value, when=when)


def trial(number: int, *, failed: int = 0, c1: float | None = None) -> Trial:
    return Trial(
        subject=Subject(spec="s", lane="l", arm="a", role=Role.CONTROL, evidence=Evidence.MEASURED),
        boot="sha256:" + "0" * 64,
        measure="decode",
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
    verdict = judge_before(gate("host.MemAvailable", op, value), HOST)
    assert verdict.holds is holds
    assert verdict.evidence == "raw text"
    assert verdict.value is not None
    assert verdict.value.endswith(value.split()[1])


@pytest.mark.parametrize("reads", ["host.NoSuchCounter", "requests.failed", "C1"])
def test_what_cannot_be_read_before_a_boot_is_unknown(reads: str) -> None:
    verdict = judge_before(gate(reads, "==", "0"), HOST)
    assert verdict.holds is Holds.UNKNOWN
    assert verdict.value is None


def test_failed_requests_are_summed_over_the_trials() -> None:
    verdict = judge_after(gate("requests.failed", "==", "0"), [trial(1), trial(2, failed=3)], HOST)
    assert (verdict.holds, verdict.value) == (Holds.FAIL, "3")
    assert "failed 3" in verdict.evidence


def test_no_trial_at_all_is_unknown_not_zero_failures() -> None:
    assert judge_after(gate("requests.failed", "==", "0"), [], HOST).holds is Holds.UNKNOWN


@pytest.mark.parametrize(("op", "holds"), [(">=", Holds.FAIL), ("<=", Holds.PASS)])
def test_a_metric_gate_reads_the_worst_trial(op: str, holds: Holds) -> None:
    verdict = judge_after(gate("C1", op, "50 tok/s"), [trial(1, c1=50.0), trial(2, c1=40.0)], HOST)
    assert verdict.holds is holds


@pytest.mark.parametrize("op", sorted(OPERATORS))
def test_every_operator_says_no_to_something(op: str) -> None:
    seen = {judge_before(gate("host.load1", op, limit), HOST).holds for limit in ("0.1", "0.5", "0.9")}
    assert seen == {Holds.PASS, Holds.FAIL}


def test_meminfo_is_read_in_bytes_and_odd_lines_are_passed_over() -> None:
    text = "MemTotal:  100 kB\nMemAvailable:\t50 kB\nHugePages_Total:  0\nbroken\nX: y kB\n"
    assert parse_meminfo(text) == {"MemTotal": 102400.0, "MemAvailable": 51200.0}


@pytest.mark.parametrize("text", ["", "1 2", "a b c d"])
def test_an_odd_loadavg_is_absent_not_zero(text: str) -> None:
    assert parse_loadavg(text) == {}


def test_this_machine_is_read_with_its_raw_text() -> None:
    reading = read_host()
    assert reading.values["MemAvailable"] > 0
    assert "MemAvailable" in reading.raw
