"""How a running session looks: a live view on a terminal, plain lines elsewhere.

What it does: turns the runner's events into lines on stderr; on a terminal the last line shows what runs, how far it is, how
long it has taken and about how long is left. What it does not do: touch stdout, or measure. Rules kept: a line that was printed
stays; without a terminal nothing is overwritten and nothing depends on width or colour.
"""

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from ledger.cli.screen import err
from ledger.core.metrics import describe, sort_key
from ledger.core.text import one_line, visible
from ledger.core.words import Outcome, Verdict
from ledger.receipt.model import Figure
from ledger.run.watch import BootEnded, BootStarted, Decided, Event, Phase, Restored, SessionEnded, SessionStarted, TrialEnded

Now = Callable[[], float]
STYLES = {Verdict.KEEP: "green", Verdict.REVERT: "red", Verdict.INCONCLUSIVE: "yellow", Verdict.BLOCKED: "magenta"}

HEADLINES = ("C", "prefill")


class LiveView:
    """A watcher that shows a session on stderr; a context manager."""

    def __init__(self, *, estimate_s: float | None, now: Now = time.monotonic) -> None:
        self._now = now
        self._estimate = estimate_s
        self._started = now()
        self._boots = 0
        self._position = 0
        self._arm = ""
        self._terminal = err.is_terminal and not err.is_dumb_terminal
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[left]}", markup=False),
            TimeElapsedColumn(),
            console=err,
            transient=True,
            disable=not self._terminal,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        self._task = self._progress.add_task("starting", total=None, left="")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._progress.stop()

    def __call__(self, event: Event) -> None:
        """Show one event."""
        match event:
            case SessionStarted():
                self._boots = event.boots
                about = f", about {minutes(self._estimate)}" if self._estimate else ""
                self._line(f"session {event.session}: {event.boots} boots{about}")
            case BootStarted():
                self._position, self._arm = event.position, event.arm
                self._line(
                    f"[{event.position}/{event.of}] {event.arm} (lane {event.lane}, {event.role}, {event.evidence})", "bold"
                )
            case Phase():
                self._phase(event)
            case BootEnded():
                self._boot_ended(event)
            case TrialEnded():
                self._trial_ended(event)
            case Decided():
                against = f" against {event.control}" if event.control else ""
                self._line(f"rule: {event.arm}{against}: {event.verdict}", STYLES[event.verdict])
                for reason in event.reasons:
                    self._line(f"      {reason}")
            case Restored():
                self._restored(event)
            case SessionEnded():
                self._ended(event)

    def _phase(self, event: Phase) -> None:
        if self._task is None:
            return
        what = f"{self._arm}: {event.name}"
        done = self._position - 1 + (event.done / event.of if event.of else 0) * 0.9
        self._progress.update(
            self._task, description=one_line(what, 48), completed=done, total=self._boots or None, left=self._left(done)
        )

    def _left(self, done: float) -> str:
        """About how long is left: from the pace so far once a boot is done, from the estimate before."""
        elapsed = self._now() - self._started
        if done >= 1 and self._boots:
            return f"about {minutes(elapsed / done * (self._boots - done))} left"
        return f"about {minutes(max(0.0, self._estimate - elapsed))} left" if self._estimate else ""

    def _boot_ended(self, event: BootEnded) -> None:
        took = f" after {event.seconds:.1f} s" if event.seconds is not None else ""
        if event.outcome is Outcome.READY:
            self._line(f"      ready{took}; config {event.agreement}")
        else:
            self._line(f"      {event.outcome}{took}: {one_line(event.reason or '', 300)}", "red")

    def _trial_ended(self, event: TrialEnded) -> None:
        shown = headline(event.figures)
        failed = f"; {event.failed} of {event.launched} requests failed" if event.failed else ""
        marks = f"  [{', '.join(event.marks)}]" if event.marks else ""
        self._line(f"      {event.measure}: {shown}{failed}{marks}", "yellow" if event.failed else "")

    def _restored(self, event: Restored) -> None:
        if event.arm is None:
            self._line(f"restore: nothing was booted again: {event.why}", "yellow")
            return
        said = "not proven" if event.unproven else "proven: it is what was measured"
        self._line(f"restore: {event.arm} stays ({event.why}), {said}", "red" if event.unproven else "green")
        for reason in event.unproven:
            self._line(f"      {reason}")

    def _ended(self, event: SessionEnded) -> None:
        for remark in event.remarks:
            self._line(remark, "yellow")
        commit = f"commit {event.commit[:10]}" if event.commit else "nothing to commit"
        self._line(f"{event.receipts} receipts, {commit}, {minutes(self._now() - self._started)}")

    def _line(self, text: str, style: str = "") -> None:
        self._progress.console.print(Text(visible(text), style=style))


def headline(figures: Mapping[str, Figure]) -> str:
    """The figures that people look for first (``C<n>``, ``prefill@<n>``), or all but the parts where there are none."""
    whole = sorted((name for name in figures if "/" not in name), key=sort_key)
    first = [name for name in whole if (family := describe(name).family) is not None and family.name in HEADLINES]
    return ", ".join(f"{name} {value_of(figures[name])}" for name in first or whole)


def value_of(figure: Figure) -> str:
    """A figure as people read it: four significant digits and its unit, or why there is none."""
    return f"{figure.value:.4g} {figure.unit}" if figure.value is not None else f"absent ({figure.absent})"


def minutes(seconds: float) -> str:
    """``45 s`` or ``3 min 20 s``."""
    whole = round(seconds)
    return f"{whole} s" if whole < 90 else f"{whole // 60} min {whole % 60:02} s"
