"""The environment of a rank as a process on its node will see it.

What it does: starts a small process on the node with the rendered variables, as a rank would be, and reads back what it sees.
What it does not do: read a live rank (``agreement``). Rule kept: every variable that is missing, changed or glued to its
neighbour is told before anything boots, by name; the value of one that is named like a secret is not.
"""

from collections.abc import Mapping

from ledger.backends.reach import Reach
from ledger.core.errors import Problem, shorten
from ledger.core.text import one_line
from ledger.run.secrets import NAMED, SHAPED

PROBE = ("env", "-0")


def check_env(rank: int, env: Mapping[str, str], reach: Reach) -> list[Problem]:
    """Every variable of a rank that a process on the node does not see as it was rendered."""
    if not env:
        return []
    ran = reach.run(PROBE, env=env)
    told = f"node {reach.node}: rank {rank}"
    if not ran.ok:
        return [Problem(what=f"{told}: its environment cannot be read back: {one_line(ran.told)}")]
    pairs = (item.partition(b"=") for item in ran.out.split(b"\0") if item)
    seen = {name.decode("utf-8", "surrogateescape"): value.decode("utf-8", "surrogateescape") for name, _, value in pairs}
    return [
        Problem(
            what=f"{told}: {name} is {_shown(name, seen.get(name))} to a process there, expected {_shown(name, value)}",
            hint="what starts the process drops, changes or glues variables: look at its env files and wrappers",
        )
        for name, value in env.items()
        if seen.get(name) != value
    ]


def _shown(name: str, value: str | None) -> str:
    if value is None:
        return "not set"
    return "a secret value" if NAMED.search(name) or SHAPED.search(value) else repr(shorten(value))
