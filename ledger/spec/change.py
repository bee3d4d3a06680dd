"""Changes of an arm: what they are, how many, and what they make of an argv and an environment.

What it does: splits an argv into settings (a flag and its values), applies a change to it, and counts a change's parts. What it
does not do: interpolate. Rules kept: a setting takes the place of the base's setting of the same flag and is appended when
there is none; an argv without changes comes out word for word as it went in.
"""

import re
from collections.abc import Mapping, Sequence

from attrs import frozen

from ledger.spec.model import Change

_FLAG = re.compile(r"--?[A-Za-z][^=\s]*(?:=.*)?", re.DOTALL)


@frozen(kw_only=True)
class Setting:
    """A flag and the words behind it up to the next flag; ``flag`` is None for the words before the first one."""

    flag: str | None
    words: tuple[str, ...]

    @property
    def value(self) -> str:
        """The words without the flag, as one text; a ``--flag=value`` gives its value."""
        if self.flag is None:
            return " ".join(self.words)
        _, equals, value = self.words[0].partition("=")
        return " ".join(([value] if equals else []) + list(self.words[1:]))


def settings(argv: Sequence[str]) -> list[Setting]:
    """``argv`` cut at its flags; joined again it is the same argv. A negative number is a value, not a flag."""
    found: list[Setting] = []
    for word in argv:
        if _FLAG.fullmatch(word):
            found.append(Setting(flag=word.partition("=")[0], words=(word,)))
        elif found:
            found[-1] = Setting(flag=found[-1].flag, words=(*found[-1].words, word))
        else:
            found.append(Setting(flag=None, words=(word,)))
    return found


def apply_args(argv: Sequence[str], change: Change) -> tuple[str, ...]:
    """``argv`` with the change's settings in it and its dropped flags gone."""
    wanted = settings(change.args)
    replaced = {item.flag for item in wanted if item.flag} | set(change.drop_args)
    kept = settings(argv)
    made: list[Setting] = []
    placed: set[str | None] = set()
    for item in kept:
        if item.flag not in replaced or item.flag is None:
            made.append(item)
        elif item.flag not in placed:
            placed.add(item.flag)
            made += [new for new in wanted if new.flag == item.flag]
    made += [new for new in wanted if new.flag not in placed]
    return tuple(word for item in made for word in item.words)


def apply_env(env: Mapping[str, str], change: Change) -> dict[str, str]:
    """``env`` with the change's variables set and its dropped ones gone."""
    return {name: value for name, value in {**env, **change.env}.items() if name not in change.drop_env}


def count_changes(change: Change) -> list[str]:
    """The changes one by one, as people read them; a flag set and another dropped for it are two unless one negates the other."""
    set_flags = [item.flag or item.value for item in settings(change.args)]
    dropped = [flag for flag in change.drop_args if not any(_negates(flag, other) for other in set_flags)]
    made = [*change.env, *set_flags, *(f"no {name}" for name in (*change.drop_env, *dropped))]
    return made or ([change.about] if change.about else [])


def in_words(change: Change) -> str:
    """The change on one line: ``env A=1``, ``--x 2``, ``without --y``."""
    parts = [f"{name}={value}" for name, value in change.env.items()]
    parts += [" ".join(item.words) for item in settings(change.args)]
    parts += [f"without {name}" for name in (*change.drop_env, *change.drop_args)]
    return ", ".join(parts) or change.about or "nothing"


def _negates(one: str, other: str) -> bool:
    return one.replace("--no-", "--", 1) == other.replace("--no-", "--", 1)
