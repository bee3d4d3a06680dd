"""The small ledger that the examples of the documentation run on.

What it does: makes a git repository with one session of ``docs/example/threads.toml``, the same bytes every time: five boots of
three arms, their trials, gates and decisions, recorded and committed through the code that a run uses. What it does not do:
measure. Rule kept: its figures are made up, so every receipt in it says ``rehearsed``.

usage: python docs/example_ledger.py FOLDER
"""

import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from attrs import field, frozen

from ledger.analysis.rule import Limits, Sides, judge
from ledger.core.metrics import describe
from ledger.core.words import Evidence, Holds, Outcome
from ledger.receipt.codec import fingerprint
from ledger.receipt.model import (
    Agreement,
    Attempt,
    Boot,
    Decision,
    Factors,
    Figure,
    Gate,
    Instrument,
    RankConfig,
    Requests,
    Source,
    Subject,
    Tool,
    Trial,
)
from ledger.spec.load import Loaded, load_site, load_spec
from ledger.spec.model import Site, Spec
from ledger.spec.plan import BootPlan, make_plan
from ledger.store.git import commit_paths
from ledger.store.ledger import Ledger
from ledger.store.session import SessionWriter
from ledger.store.start import start

SPECS = Path(__file__).resolve().parent / "example"
BEGAN = datetime(2026, 10, 19, 6, 12, tzinfo=UTC)
TOKEN = "3f2a"
CONTROL = "control"
# arm -> for each of its boots, what was "measured" on it
FIGURES: Mapping[str, Sequence[Mapping[str, float]]] = {
    "control": (
        {"C1": 31.2, "C6": 34.8, "prefill@500": 118.0},
        {"C1": 31.5, "C6": 35.3, "prefill@500": 119.5},
    ),
    "threads-2": (
        {"C1": 41.9, "C6": 47.1, "prefill@500": 201.0},
        {"C1": 42.6, "C6": 46.2, "prefill@500": 204.0},
    ),
    "ubatch-64": ({"C1": 31.3, "C6": 34.9, "prefill@500": 96.4},),
}
MEASURES: Mapping[str, tuple[str, ...]] = {"decode": ("C1", "C6"), "prefill": ("prefill@500",)}
REQUESTS: Mapping[str, int] = {"decode": 56, "prefill": 3}


class _Ticking:
    """A clock of which every look is ten seconds later than the one before."""

    def __init__(self) -> None:
        self._at = BEGAN

    def now(self) -> datetime:
        self._at += timedelta(seconds=10)
        return self._at

    def monotonic_ns(self) -> int:
        return int(self._at.timestamp() * 1e9)

    def sleep(self, seconds: float) -> None:
        self._at += timedelta(seconds=seconds)


@frozen(kw_only=True)
class _Made:
    """A boot that was recorded: its place, its digest and those of what hangs on it."""

    arm: str
    number: int
    digest: str
    inputs: list[str] = field(factory=list)

    @property
    def values(self) -> Mapping[str, float]:
        return FIGURES[self.arm][self.number - 1]


def build(root: Path) -> Ledger:
    """Make the ledger in ``root``, which must not exist."""
    root.mkdir(parents=True)
    for command in (
        ["init", "-q", "-b", "main"],
        ["config", "user.name", "A Reader"],
        ["config", "user.email", "reader@example.org"],
        # Whatever the person who runs the tests has set for all repositories.
        ["config", "commit.gpgsign", "false"],
        ["config", "core.hooksPath", "/dev/null"],
    ):
        _git(root, command)
    ledger, _ = start(root)
    _git(root, ["add", "-A"])
    _git(root, ["commit", "-q", "-m", "start a ledger"])
    spec, site = load_spec(SPECS / "threads.toml"), load_site(SPECS / "sites" / "here.toml")
    writer = SessionWriter(ledger, spec.value.name, clock=_Ticking(), token=TOKEN, tool=Tool(name="ledger", version="example"))
    _record(writer, spec, site)
    commit_paths(ledger, writer.paths, f"receipts: {spec.value.name}, session {writer.session}")
    return ledger


def _git(root: Path, words: Sequence[str]) -> None:
    subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True)


def _record(writer: SessionWriter, spec: Loaded[Spec], site: Loaded[Site]) -> None:
    sources = (
        Source(name=spec.value.name, text=writer.blob(spec.text, "application/toml")),
        Source(name=site.value.name, text=writer.blob(site.text, "application/toml")),
    )
    made: list[_Made] = []
    for plan in make_plan(spec, site).boots:
        number = 1 + sum(item.arm == plan.arm.id for item in made)
        made.append(_boot(writer, plan, number, sources))
    for arm in FIGURES:
        if arm != CONTROL:
            _decide(writer, spec.value, arm, made)


def _subject(arm: str, spec: Spec) -> Subject:
    role = next(item.role for item in spec.arms if item.id == arm)
    return Subject(spec=spec.name, lane="smol", arm=arm, role=role, evidence=Evidence.REHEARSED)


def _boot(writer: SessionWriter, plan: BootPlan, number: int, sources: tuple[Source, Source]) -> _Made:
    arm = plan.arm.id
    subject = Subject(spec="threads", lane="smol", arm=arm, role=plan.arm.role, evidence=Evidence.REHEARSED)
    attempt = writer.record(
        Attempt(subject=subject, spec=sources[0], site=sources[1], number=number, position=plan.position, of=5)
    )
    factors = Factors(
        identity=plan.identity,
        context={**plan.context, "host.kernel": "Linux 6.1"},
        provenance=plan.provenance,
    )
    digest = writer.record(
        Boot(
            subject=subject,
            attempt=attempt,
            outcome=Outcome.READY,
            fingerprint=fingerprint(plan.identity),
            factors=factors,
            requested=plan.requested,
            resolved=tuple(RankConfig(rank=rank.rank, node=rank.node.name, argv=rank.argv) for rank in plan.ranks),
            observed={"ranks": [{"rank": rank.rank, "argv": list(rank.argv)} for rank in plan.ranks]},
            agreement=Agreement(state="agrees"),
            conditions={"position": str(plan.position)},
            seconds=2.5,
            logs=(writer.blob(f"{arm}, boot {number}: listening\n".encode(), "text/plain"),),
        )
    )
    found = _Made(arm=arm, number=number, digest=digest)
    found.inputs.extend([digest, *(_trial(writer, subject, found, name) for name in MEASURES)])
    found.inputs.append(_gate(writer, subject, attempt, digest))
    return found


def _trial(writer: SessionWriter, subject: Subject, boot: _Made, measure: str) -> str:
    sent = REQUESTS[measure]
    raw = f"made up for the documentation: {boot.arm}, boot {boot.number}, {measure}\n"
    return writer.record(
        Trial(
            subject=subject,
            boot=boot.digest,
            measure=measure,
            number=1,
            instrument=Instrument(name=f"openai/{measure}", version=1),
            figures={name: _figure(name, boot.values[name]) for name in MEASURES[measure]},
            requests=Requests(launched=sent, ok=sent),
            samples=(writer.blob(raw.encode(), "text/plain"),),
            conditions={"prefix_cache": "cold"},
            seconds=20.0,
        )
    )


def _figure(name: str, value: float) -> Figure:
    metric = describe(name)
    statistic, count = ("median", 3) if name.startswith("prefill") else ("mean", 8)
    return Figure(
        unit=metric.unit,
        better=metric.better,
        value=value,
        n=count,
        statistic=statistic,
        low=round(value * 0.98, 2),
        high=round(value * 1.02, 2),
    )


def _gate(writer: SessionWriter, subject: Subject, attempt: str, boot: str) -> str:
    return writer.record(
        Gate(
            subject=subject,
            gate="no-failures",
            version=1,
            when="after",
            holds=Holds.PASS,
            text="no request of any trial failed",
            attempt=attempt,
            boot=boot,
            value="0",
            limit="== 0",
        )
    )


def _decide(writer: SessionWriter, spec: Spec, arm: str, made: Sequence[_Made]) -> None:
    assert spec.rule is not None
    both = [item for item in made if item.arm in (arm, CONTROL)]
    values = {
        name: {metric: [item.values[metric] for item in both if item.arm == name] for metric in spec.rule.metrics}
        for name in (arm, CONTROL)
    }
    assert all(statistics.fmean(found) for side in values.values() for found in side.values())
    limits = Limits(metrics=spec.rule.metrics, better_than=0.02, worse_than=0.02)
    said = judge(limits, Sides(arm=values[arm], control=values[CONTROL]))
    writer.record(
        Decision(
            subject=_subject(arm, spec),
            verdict=said.verdict,
            reasons=said.reasons,
            inputs=tuple(digest for item in both for digest in item.inputs),
            control=CONTROL,
            rule={"metrics": list(spec.rule.metrics), "better_than": spec.rule.better_than, "worse_than": spec.rule.worse_than},
            effects=said.effects,
        )
    )


if __name__ == "__main__":
    build(Path(sys.argv[1]))
