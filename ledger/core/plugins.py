"""Things found by name: the built-in ones, and those that other packages add through an entry point.

What it does: one way of finding a plugin, for every room that has some. What it does not do: load what nobody asked for. Rules
kept: a built-in name cannot be taken over by another package; an unknown name offers the nearest; what is found is of the asked
kind or an error.
"""

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Generic, TypeVar

from attrs import frozen

from ledger.core.errors import Problem, UsageError, did_you_mean

T = TypeVar("T")


@frozen(kw_only=True)
class Plugins(Generic[T]):
    """The plugins of one ``kind``, which the entry point ``group`` extends; ``called`` is the word for one of them."""

    kind: type[T]
    group: str
    called: str
    built_in: Mapping[str, type[T]]

    def names(self) -> list[str]:
        """Every name that could be asked for."""
        return sorted({*self.built_in, *(point.name for point in entry_points(group=self.group))})

    def get(self, name: str) -> T:
        """A new plugin called ``name``.

        Raises:
            UsageError: there is none (the nearest name is offered), it needs a package that is not there, or another package's
                is not of this kind.
        """
        if name in self.built_in:
            return self.built_in[name]()
        for point in entry_points(group=self.group, name=name):
            try:
                found = point.load()()
            except ModuleNotFoundError as error:
                what = f"the {self.called} {name!r} needs a package that is not installed"
                raise UsageError(Problem(what=what, value=error.name, hint=f"pip install {error.name}")) from error
            if isinstance(found, self.kind):
                return found
            raise UsageError(f"the entry point {self.group}:{name} gives something that is no {self.kind.__name__}")
        raise UsageError(Problem(what=f"unknown {self.called}", value=name, hint=did_you_mean(name, self.names())))
