"""Whole sessions under gates, hygiene and conditions, on real processes."""

import os
from pathlib import Path

import orjson
import pytest

from ledger.cli.main import run
from ledger.core.words import Holds, Outcome
from ledger.receipt.model import Boot, Gate, Receipt
from ledger.store.ledger import Ledger
from ledger.store.verify import Checked, verify
from tests.run.conftest import MakeSpec

GREEDY = """
[[gates]]
id = "same-words"
text = "the replies are the control's"
when = "after"
reads = "greedy.differs"
of = "decode"
op = "=="
value = "0"
"""
OTHER = '[[arms]]\nid = "{name}"\nbase = "base"\nchange = {{ args = ["--says", "{says}"] }}\n'


def gate(reads: str, op: str, value: str, *, when: str, of: str = "") -> str:
    about = f'of = "{of}"\n' if of else ""
    return f'\n[[gates]]\nid = "g"\ntext = "t"\nreads = "{reads}"\nop = "{op}"\nvalue = "{value}"\nwhen = "{when}"\n{about}'


def receipts(ledger: Ledger) -> list[Receipt]:
    return [ledger.read(stored.digest) for stored in ledger.walk()]


def bodies(ledger: Ledger) -> tuple[list[Boot], dict[str, list[Gate]]]:
    found = [receipt.body for receipt in sorted(receipts(ledger), key=lambda receipt: receipt.chain.n)]
    gates: dict[str, list[Gate]] = {}
    for body in found:
        if isinstance(body, Gate):
            gates.setdefault(body.gate, []).append(body)
    return [body for body in found if isinstance(body, Boot)], gates


def ledger_run(ledger: Ledger, spec: Path) -> int:
    return run(["-C", str(ledger.root), "run", spec.name])


def top(spec: Path, text: str) -> Path:
    """The spec with more keys at its top."""
    spec.write_text(spec.read_text().replace("warmup = 1\n", f"warmup = 1\n{text}\n", 1))
    return spec


def test_hygiene_and_conditions_stand_in_the_boot(ledger: Ledger, make_spec: MakeSpec, tmp_path: Path) -> None:
    arms = '[[arms]]\nid = "again"\nbase = "base"\nrole = "control"\n'
    spec = top(make_spec(arms=arms), 'hygiene = ["sync", "drop_caches", "warm"]')
    cache = tmp_path / "cache"
    spec.write_text(spec.read_text().replace("[lanes.L]\n", f'[lanes.L]\ncaches = ["{cache}"]\n'))
    compile_something = f'argv = ["mkdir", "-p", "{cache}/a"]\n'
    site = ledger.root / "site.toml"
    site.write_text(
        site.read_text().replace("[[nodes]]", 'forbid = ["drop_caches"]\n[[nodes]]') + f"\n[actions.warm]\n{compile_something}"
    )
    assert ledger_run(ledger, spec) == 0
    (cache / "a" / "kernel.so").write_bytes(b"x")
    assert ledger_run(ledger, spec) == 0
    found, _ = bodies(ledger)
    states = [boot.conditions for boot in found]
    assert {state["hygiene.sync"] for state in states} == {"done"}
    assert {state["hygiene.drop_caches"] for state in states} == {"forbidden"}
    assert sorted(state["jit_cache"] for state in states) == ["cold", "cold", "warm", "warm"]
    assert sorted(state["boot_of_host"] for state in states) == ["1", "2", "3", "4"]
    assert {"load1", "mem_available_gib", "neighbours", "host_boot", "position"} <= set(states[0])
    assert sum("idle_min" in state for state in states) == 3
    by_session = [receipt for receipt in receipts(ledger) if isinstance(receipt.body, Boot)]
    told = ledger.read_blob(by_session[0].session, by_session[0].body.evidence[0])  # type: ignore[union-attr]  # a boot, by the line above
    assert [orjson.loads(line)["action"] for line in told.splitlines()] == ["sync", "drop_caches", "warm"]
    assert list(verify(ledger, Checked())) == []


def test_a_gate_before_refuses_the_boot_with_the_raw_evidence(ledger: Ledger, make_spec: MakeSpec) -> None:
    assert ledger_run(ledger, make_spec(more=gate("host.MemAvailable", ">=", "900 TiB", when="before"))) == 1
    (boot,), gates = bodies(ledger)
    assert boot.outcome is Outcome.REFUSED
    assert "gate 'g' fail" in str(boot.reason)
    (verdict,) = gates["g"]
    sources = {blob.annotations["source"]: blob for blob in verdict.evidence}
    session = receipts(ledger)[0].session
    assert b"HugePages_Total" in ledger.read_blob(session, sources["/proc/meminfo"]), "the whole of it"


@pytest.mark.parametrize(("limit", "holds", "code"), [("1 MiB", Holds.PASS, 0), ("900 TiB", Holds.FAIL, 1)])
def test_a_gate_during_reads_the_samples_of_the_trials(
    ledger: Ledger, make_spec: MakeSpec, limit: str, holds: Holds, code: int
) -> None:
    assert ledger_run(ledger, make_spec(more=gate("host.MemAvailable", ">=", limit, when="during"))) == code
    (boot,), gates = bodies(ledger)
    assert boot.outcome is Outcome.READY
    assert [(each.holds, each.when) for each in gates["g"]] == [(holds, "during")]
    assert gates["g"][0].evidence[0].annotations["source"] == "telemetry"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to write to the kernel's log")
def test_a_fault_in_the_kernels_log_within_the_boot_blocks(ledger: Ledger, make_spec: MakeSpec) -> None:
    word = f"Xid {os.getpid()} planted"
    if not os.access("/dev/kmsg", os.W_OK):
        pytest.skip("the kernel's log cannot be written")
    Path("/dev/kmsg").write_text(f"<3>{word} before the boot\n")
    spec = make_spec(
        server="--mode faults --after 3",
        env=f'FAULT = "{word} within"',
        more=gate("kernel.events", "==", "0", when="during", of=f"{word}*"),
    )
    assert ledger_run(ledger, spec) == 1
    _, gates = bodies(ledger)
    assert [(each.holds, each.value) for each in gates["g"]] == [(Holds.FAIL, "1")]


@pytest.mark.parametrize("rule", ["", '[rule]\nmetrics = ["C1"]\n'])
def test_greedy_replies_are_compared_with_the_controls(ledger: Ledger, make_spec: MakeSpec, rule: str) -> None:
    arms = OTHER.format(name="same", says="word") + OTHER.format(name="other", says="wort")
    assert ledger_run(ledger, make_spec(arms=arms, more=GREEDY + rule)) == 1
    _, gates = bodies(ledger)
    by_arm = {each.subject.arm: each for each in gates["same-words"]}
    assert set(by_arm) == {"same", "other"}, "the control itself is compared with nobody"
    assert (by_arm["same"].holds, by_arm["same"].value) == (Holds.PASS, "0")
    assert (by_arm["other"].holds, by_arm["other"].value) == (Holds.FAIL, "6")
    assert "the first that differs is" in str(by_arm["other"].reason)
    assert {blob.annotations["side"] for blob in by_arm["other"].evidence} == {"arm", "control"}


def test_without_a_boot_of_the_control_the_comparison_is_unknown(ledger: Ledger, make_spec: MakeSpec) -> None:
    spec = make_spec(arms=OTHER.format(name="other", says="wort"), more=GREEDY)
    assert run(["-C", str(ledger.root), "run", spec.name, "--only", "other"]) == 1
    _, gates = bodies(ledger)
    (verdict,) = gates["same-words"]
    assert (verdict.holds, verdict.reason) == (Holds.UNKNOWN, "the control gave no replies")


def test_a_process_that_must_not_run_is_found_and_the_server_itself_is_not(ledger: Ledger, make_spec: MakeSpec) -> None:
    spec = make_spec(more=gate("host.processes", "==", "0", when="after", of=f"small_server.py*--tag {ledger.root.parent.name}"))
    assert ledger_run(ledger, spec) == 0
    _, gates = bodies(ledger)
    assert gates["g"][0].value == "0"
