"""Regular expressions that a spec or a table brings along, over text of which a server or a program is the author.

What it does: compiles a pattern and finds its matches. What it does not do: lookaround and backreferences, which RE2 leaves out.
Rules kept: both the pattern and the text may be a stranger's, so a search takes time in proportion to the text, whatever the
pattern is; memory is bounded; a pattern that cannot be used says why.
"""

from collections.abc import Iterator, Mapping

import re2
from attrs import field, frozen

from ledger.core.errors import LedgerError

MAX_PATTERN = 500
MAX_MEMORY = 8 * 2**20


class PatternError(LedgerError):
    """Text that is not a pattern."""


@frozen(kw_only=True)
class Pattern:
    """A compiled pattern; ``text`` is what was written."""

    text: str
    _compiled: "re2._Regexp" = field(eq=False, repr=False, alias="compiled")

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of its groups."""
        return tuple(self._compiled.groupindex)

    def found_in(self, text: str) -> bool:
        """Whether it matches anywhere in ``text``."""
        return self._compiled.search(text) is not None

    def covers(self, text: str) -> bool:
        """Whether it matches the whole of ``text``."""
        return self._compiled.fullmatch(text) is not None

    def matches(self, text: str) -> Iterator[Mapping[str, str | None]]:
        """The named groups of each match in ``text``, in order; one that took no part is None."""
        for match in self._compiled.finditer(text):
            yield match.groupdict()


def compiled(text: str) -> Pattern:
    """The pattern that ``text`` is.

    Raises:
        PatternError: longer than ``MAX_PATTERN``, or not in the syntax of RE2.
    """
    if len(text) > MAX_PATTERN:
        raise PatternError(f"a pattern of at most {MAX_PATTERN} characters")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    try:
        return Pattern(text=text, compiled=re2.compile(text, options))
    except re2.error as error:
        raise PatternError(f"a regular expression as RE2 has them: {_words(error)}") from error


def _words(error: Exception) -> str:
    (told,) = error.args
    return told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)
