"""Changes of an arm: what they are, how many, and what they make of an argv and an environment.

What it does: splits an argv into settings (a flag and its values), applies a change to it, and counts a change's parts. What it
does not do: interpolate. Rules kept: a setting takes the place of the base's setting of the same flag and is appended when
there is none; an argv without changes comes out word for word as it went in.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

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
    starts = [index for index, word in enumerate(argv) if _FLAG.fullmatch(word)]
    first = starts[0] if starts else len(argv)
    found = [Setting(flag=None, words=tuple(argv[:first]))] if first else []
    for start, end in pairwise([*starts, len(argv)]):
        found.append(Setting(flag=argv[start].partition("=")[0], words=tuple(argv[start:end])))
    return found


def apply_args(argv: Sequence[str], change: Change) -> tuple[str, ...]:
    """``argv`` with the change's settings in it and its dropped flags gone."""
    wanted = settings(change.args)
    waiting: dict[str | None, list[Setting]] = {}
    for item in wanted:
        waiting.setdefault(item.flag, []).append(item)
    gone = {*waiting, *change.drop_args}
    made: list[Setting] = []
    for item in settings(argv):
        if item.flag is None or item.flag not in gone:
            made.append(item)
        else:
            made += waiting.pop(item.flag, [])
    made += [item for item in wanted if item.flag in waiting]
    return tuple(word for item in made for word in item.words)


def not_there(argv: Sequence[str], env: Mapping[str, str], change: Change) -> list[str]:
    """The flags and variables that ``change`` drops and that ``argv`` and ``env`` do not have."""
    flags = {item.flag for item in settings(argv)}
    return [flag for flag in change.drop_args if flag not in flags] + [name for name in change.drop_env if name not in env]


def apply_env(env: Mapping[str, str], change: Change) -> dict[str, str]:
    """``env`` with the change's variables set and its dropped ones gone."""
    return {name: value for name, value in {**env, **change.env}.items() if name not in change.drop_env}


def sets_something(change: Change) -> bool:
    """Whether the change reaches an argv or an environment, or is told in words alone."""
    return bool(change.args or change.env or change.drop_args or change.drop_env)


def count_changes(change: Change) -> list[str]:
    """The changes one by one, as people read them; a flag set and another dropped for it are two unless one negates the other."""
    set_flags = [item.flag or item.value for item in settings(change.args)]
    switches = {_switch(flag) for flag in set_flags}
    dropped = [flag for flag in change.drop_args if _switch(flag) not in switches]
    unset = [name for name in change.drop_env if name not in change.env]
    made = [*change.env, *set_flags, *(f"no {name}" for name in (*unset, *dropped))]
    return made or ([change.about] if change.about else [])


def in_words(change: Change) -> str:
    """The change on one line: ``A=1``, ``--x 2``, ``without --y``; what it is about where it sets nothing."""
    parts = [f"{name}={value}" for name, value in change.env.items()]
    parts += [" ".join(item.words) for item in settings(change.args)]
    parts += [f"without {name}" for name in (*change.drop_env, *change.drop_args)]
    return ", ".join(parts) or change.about or "nothing"


def _switch(flag: str) -> str:
    """What a flag and its negation have in common."""
    return flag.replace("--no-", "--", 1)
