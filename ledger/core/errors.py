"""What can go wrong, as values a person can act on, and the exit codes of the program.

What it does: a :class:`Problem` says what, where, which value and what to do; a :class:`LedgerError` carries one or many of
them and the exit code. What it does not do: print (``cli``) or decide how long a message may be. Rules kept: a user's mistake
is always a ``LedgerError``; any other exception that reaches the top is a defect of this program.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from enum import IntEnum

from attrs import field, frozen

MAX_WORD = 100
MAX_CHOICES = 300


class ExitCode(IntEnum):
    """Exit codes of every command; documented in ``docs/reference/exit-codes.md``."""

    YES = 0
    NO = 1
    USAGE = 2
    NO_LEDGER = 3
    NOT_FOUND = 4
    STORE = 5
    BACKEND = 6
    DEFECT = 70
    INTERRUPTED = 130


@frozen(kw_only=True)
class Place:
    """Where something stands: a file, a line counted from 1, and the TOML or JSON path inside it."""

    file: str
    line: int | None = None
    path: str = ""

    def __str__(self) -> str:
        at = f"{self.file}:{self.line}" if self.line else self.file
        return f"{at} [{self.path}]" if self.path else at


@frozen(kw_only=True)
class Problem:
    """One mistake: what it is, where it is, the offending value as text, and the way out."""

    what: str
    place: Place | None = None
    value: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        parts = [f"{self.place}: {self.what}" if self.place else self.what]
        if self.value is not None:
            parts.append(f"got {self.value}")
        if self.hint:
            parts.append(self.hint)
        return "; ".join(parts)


class LedgerError(Exception):
    """A user's mistake or an outside failure, with all its problems at once."""

    exit_code: ExitCode = ExitCode.USAGE

    def __init__(self, problems: Problem | str | Iterable[Problem], *, hint: str | None = None) -> None:
        if isinstance(problems, str):
            problems = Problem(what=problems, hint=hint)
        self.problems: tuple[Problem, ...] = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class UsageError(LedgerError):
    """A wrong argument, query or spec."""


class SpecError(UsageError):
    """A spec or site that does not say what can be done."""


class NoLedgerError(LedgerError):
    """There is no ledger, or no git repository, where one is needed."""

    exit_code = ExitCode.NO_LEDGER


class NotFoundError(LedgerError):
    """A name that matches no receipt, or more than one."""

    exit_code = ExitCode.NOT_FOUND


class StoreError(LedgerError):
    """The ledger could not be written or read: disk, permissions, git."""

    exit_code = ExitCode.STORE


class AgainError(StoreError):
    """Something derived was damaged and has been removed, before anything was shown or written: the same command works again."""


class BackendError(LedgerError):
    """A node, process or server could not be reached, started or stopped."""

    exit_code = ExitCode.BACKEND


@frozen(kw_only=True)
class Collected:
    """A list of problems that grows while a document is read, so that all are shown at once."""

    problems: list[Problem] = field(factory=list)

    def add(self, what: str, *, place: Place | None = None, value: object = None, hint: str | None = None) -> None:
        """Note one more problem; ``value`` is shown as Python-like text, cut at 80 characters, and empty text as ``""``."""
        shown = None if value is None else shorten(value) or '""'
        self.problems.append(Problem(what=what, place=place, value=shown, hint=hint))

    def raise_if_any(self, kind: type[LedgerError] = SpecError) -> None:
        """Raise ``kind`` with every problem noted so far, if there is one."""
        if self.problems:
            raise kind(self.problems)


def shorten(value: object, limit: int = 80) -> str:
    """The value as one line of at most ``limit`` characters."""
    text = value if isinstance(value, str) else repr(value)
    text = text if text.isprintable() else repr(text)[1:-1]
    return text if len(text) <= limit else text[: limit - 1] + "…"


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is nearest to ``word``, or None when none is near.

    Words longer than ``MAX_WORD`` are not looked at. Of more than ``MAX_CHOICES`` known words those count that begin as
    ``word`` does, and no more than that many of them, since both may come from a stranger's file.
    """
    if len(word) > MAX_WORD:
        return None
    choices = [choice for choice in known if len(choice) <= MAX_WORD]
    if len(choices) > MAX_CHOICES:
        choices = [choice for choice in choices if choice[:1].casefold() == word[:1].casefold()][:MAX_CHOICES]
    folded = {choice.casefold(): choice for choice in choices}
    match = get_close_matches(word.casefold(), folded, n=1, cutoff=0.5)
    return folded[match[0]] if match else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A way out for an unknown word: the nearest known one, else the known ones themselves."""
    choices = sorted(set(known))
    near = nearest(word, choices)
    if near:
        return f"did you mean {near!r}?"
    if not choices:
        return "nothing of this kind is known here"
    listed = ", ".join(choices[:12]) + (", …" if len(choices) > 12 else "")
    return f"known: {listed}"
