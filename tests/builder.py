"""Small real ledgers for tests: real git repositories with real receipts, made without a server.

What it does: starts a ledger in a temporary repository and records boots and trials with chosen values. What it does not do:
measure. Rule kept: everything goes through the session writer of the store, so that what is built verifies.
"""

import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from attrs import evolve

from ledger.core.words import Better, Evidence, Outcome, Role
from ledger.receipt.codec import fingerprint
from ledger.receipt.model import (
    Agreement,
    Attempt,
    Boot,
    Factors,
    Figure,
    Instrument,
    Requests,
    Source,
    Subject,
    Tool,
    Trial,
)
from ledger.store.ledger import Ledger
from ledger.store.session import SessionWriter
from ledger.store.start import start

BEGINNING = datetime(2026, 10, 18, 12, 0, 0, tzinfo=UTC)
UNITS = {"C": "tok/s", "per_stream": "tok/s", "ttft": "s", "prefill": "tok/s"}


class StillClock:
    """A clock that moves a second whenever it is read."""

    def __init__(self, now: datetime = BEGINNING) -> None:
        self.time = now

    def now(self) -> datetime:
        """The time, a second after the last one."""
        self.time += timedelta(seconds=1)
        return self.time

    def monotonic_ns(self) -> int:
        """The same clock in nanoseconds."""
        return int(self.now().timestamp() * 1e9)

    def sleep(self, seconds: float) -> None:
        """Move on."""
        self.time += timedelta(seconds=seconds)


def git(folder: Path, *arguments: str) -> str:
    """Run git and return what it prints."""
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def new_repository(folder: Path) -> Path:
    """An empty git repository with a user of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "A Tester")
    git(folder, "config", "user.email", "tester@example.invalid")
    return folder


def new_ledger(folder: Path) -> Ledger:
    """A started ledger in a new repository, its own files committed."""
    ledger, _ = start(new_repository(folder))
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "start")
    return ledger


class Builder:
    """Records boots and trials of one session with chosen figures."""

    def __init__(self, ledger: Ledger, *, spec: str = "exp", token: str = "0001", when: datetime = BEGINNING) -> None:
        self.spec = spec
        self.writer = SessionWriter(ledger, spec, clock=StillClock(when), token=token, tool=Tool(name="ledger", version="0.1.0"))
        self.source = Source(name=spec, text=self.writer.blob(b"ledger = 1\n", "application/toml"))

    def subject(self, arm: str, lane: str = "L", evidence: Evidence = Evidence.MEASURED) -> Subject:
        """The subject of an arm."""
        return Subject(spec=self.spec, lane=lane, arm=arm, role=Role.CANDIDATE, evidence=evidence)

    def boot(
        self,
        arm: str,
        *,
        lane: str = "L",
        evidence: Evidence = Evidence.MEASURED,
        identity: Mapping[str, str] | None = None,
        context: Mapping[str, str] | None = None,
        agreement: str = "agrees",
        outcome: Outcome = Outcome.READY,
        seconds: float | None = None,
    ) -> str:
        """Record an attempt and a boot; the boot's digest."""
        subject = self.subject(arm, lane, evidence)
        attempt = self.writer.record(Attempt(subject=subject, spec=self.source, site=self.source, number=1, position=1, of=1))
        factors = Factors(identity={"engine": "e", "arm": arm} if identity is None else identity, context=context or {})
        return self.writer.record(
            Boot(
                subject=subject,
                attempt=attempt,
                outcome=outcome,
                fingerprint=fingerprint(factors.identity),
                factors=factors,
                requested={},
                resolved=(),
                observed={},
                agreement=Agreement(state=agreement),
                seconds=seconds,
            )
        )

    def trial(
        self,
        boot: str,
        arm: str,
        values: Mapping[str, float],
        *,
        lane: str = "L",
        evidence: Evidence = Evidence.MEASURED,
        measure: str = "decode",
        number: int = 1,
        n: int | None = 8,
        conditions: Mapping[str, str] | None = None,
        marks: Sequence[str] = (),
        version: int = 1,
        samples: Mapping[str, Sequence[float]] | None = None,
    ) -> str:
        """Record a trial with these figures; its digest. Those in ``samples`` keep them, as a median of so many."""
        figures = {
            name: figure(name, value, n=n, conditions=conditions or {}, marks=tuple(marks)) for name, value in values.items()
        }
        for name, kept in (samples or {}).items():
            figures[name] = evolve(figures[name], n=len(kept), statistic="median", values=tuple(kept))
        return self.writer.record(
            Trial(
                subject=self.subject(arm, lane, evidence),
                boot=boot,
                measure=measure,
                number=number,
                instrument=Instrument(name=f"openai/{measure}", version=version),
                figures=figures,
                requests=Requests(launched=8, ok=8),
            )
        )

    def arm(self, arm: str, values: Mapping[str, float], **more: str) -> tuple[str, str]:
        """A boot and a trial of it; both digests."""
        lane = more.get("lane", "L")
        evidence = Evidence(more.get("evidence", Evidence.MEASURED))
        boot = self.boot(arm, lane=lane, evidence=evidence)
        return boot, self.trial(boot, arm, values, lane=lane, evidence=evidence)


def figure(
    name: str, value: float, *, n: int | None = 8, conditions: Mapping[str, str] | None = None, marks: tuple[str, ...] = ()
) -> Figure:
    """A figure of a metric of a known family."""
    family = name.partition("@")[0].rstrip("0123456789") if "@" not in name else name.partition("@")[0]
    better = Better.LOWER if family == "ttft" else Better.HIGHER
    return Figure(unit=UNITS.get(family, ""), better=better, value=value, n=n, conditions=conditions or {}, marks=marks)
