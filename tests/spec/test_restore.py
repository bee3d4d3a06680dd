"""Which arm stays when a ladder has ended, and the boot of the plan that proves it."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.core.words import Verdict
from ledger.spec.bases import lines
from ledger.spec.load import read_spec
from ledger.spec.model import Spec
from ledger.spec.plan import make_plan
from ledger.spec.restore import final_arm, may_stay
from tests.spec.conftest import ReadBoth

TOP = """
ledger = 1
name = "ladder"
question = "Which one stays?"

[lanes.L]
engine = "e"
model = "m"
command = ["serve"]

[measures.decode]
uses = "openai/decode"

[rule]
metrics = ["C1"]

[restore]
replies = "decode"
"""
ARM = '\n[[arms]]\nid = "{name}"\n{parent}\nrole = "{role}"\n'
CHANGE = 'change = {{ args = ["--{name}"] }}\n'
KEEP, REVERT, BLOCKED = Verdict.KEEP, Verdict.REVERT, Verdict.BLOCKED


def ladder(bases: Mapping[str, str | None], restore: str = "") -> Spec:
    """A spec whose arms rest on each other as ``bases`` says; an arm without a base names the lane."""
    text = TOP + restore
    for name, base in bases.items():
        parent = f'base = "{base}"' if base else 'lane = "L"'
        text += ARM.format(name=name, parent=parent, role="candidate" if base else "baseline")
        text += CHANGE.format(name=name) if base else ""
    return read_spec(text.encode(), "spec.toml").value


CHAIN = {"C0": None, "C1": "C0", "C2": "C1", "C3": "C2"}
FLAT = {"C0": None, "C1": "C0", "C2": "C0"}


@pytest.mark.parametrize(
    ("bases", "verdicts", "arm", "why"),
    [
        (CHAIN, {"C1": KEEP, "C2": KEEP, "C3": REVERT}, "C2", "kept, and it holds C1 too"),
        (CHAIN, {"C1": KEEP, "C2": REVERT, "C3": REVERT}, "C1", "kept"),
        (CHAIN, {"C1": REVERT, "C2": REVERT, "C3": BLOCKED}, "C0", "none of 3 judged arms was kept"),
        (FLAT, {"C1": KEEP, "C2": REVERT}, "C1", "kept"),
        (FLAT, {"C1": KEEP, "C2": KEEP}, None, "C1, C2 were kept and none of them holds the others"),
        (FLAT, {}, None, "no arm was judged"),
        ({"A": None, "B": None, "A1": "A", "B1": "B"}, {"A1": REVERT, "B1": REVERT}, None, "the arms begin from A, B"),
    ],
)
def test_the_arm_that_stays(bases: dict[str, str | None], verdicts: dict[str, Verdict], arm: str | None, why: str) -> None:
    found = final_arm(ladder(bases), verdicts)
    assert found.arm == arm
    assert why in found.why


def test_the_arm_that_the_spec_names_stays_whatever_the_verdicts() -> None:
    spec = ladder(FLAT, 'arm = "C0"\n')
    assert final_arm(spec, {"C1": KEEP, "C2": KEEP}).arm == "C0"
    assert may_stay(spec) == ("C0",)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6), st.data())
def test_what_stays_holds_every_kept_arm_and_is_planned(parents: list[int], data: st.DataObject) -> None:
    names = ["C0", *(f"C{number}" for number in range(1, len(parents) + 1))]
    bases = {name: names[parents[at - 1] % at] if at else None for at, name in enumerate(names)}
    spec = ladder(bases)
    verdicts = {name: data.draw(st.sampled_from(Verdict)) for name in names[1:]}
    found = final_arm(spec, verdicts)
    kept = {name for name, verdict in verdicts.items() if verdict is KEEP}
    held = {arm.id for arm in lines(spec.arms)[found.arm]} if found.arm else set()
    assert found.arm is None or found.arm in may_stay(spec)
    assert kept <= held if found.arm else len(kept) > 1


def test_a_plan_counts_the_boot_and_gives_it_the_gates_that_it_can_read(both: ReadBoth) -> None:
    gates = "".join(
        f'\n[[gates]]\nid = "{name}"\ntext = "t"\nreads = "{reads}"\nop = ">="\nvalue = "{value}"\nwhen = "{when}"\n{of}'
        for name, reads, value, when, of in (
            ("room", "host.MemFree", "1 B", "before", ""),
            ("speed", "C1", "1 tok/s", "after", ""),
            ("speed-of-decode", "C1", "1 tok/s", "after", 'of = "decode"\n'),
            ("answered", "requests.ok", "1", "after", ""),
            ("same", "greedy.differs", "0", "after", 'of = "decode"\n'),
        )
    )
    more = '\n[measures.long]\nuses = "openai/prefill"\n\n[rule]\nmetrics = ["C1"]\n\n[restore]\nreplies = "decode"\n'
    arm = '\n[[arms]]\nid = "other"\nbase = "base"\nchange = { args = ["--x"] }\n'
    spec, site = both(arm + gates + more)
    made = make_plan(spec, site)
    assert made.count == len(made.boots) + 1
    assert set(made.restores) == {"base", "other"}
    for name, boot in made.restores.items():
        assert (boot.arm.id, boot.position, boot.restores) == (name, made.count, True)
        assert [measure.id for measure in boot.measures] == ["decode"]
        assert [gate.id for gate in boot.gates] == ["room", "speed-of-decode", "answered", "restored-replies"]
    narrowed = make_plan(spec, site, only=["base"])
    assert not narrowed.restores
    assert any("does not restore" in remark for remark in narrowed.remarks)
