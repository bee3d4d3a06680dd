"""The process that really serves, below the one that was started.

What it does: finds, on a rank's node, the processes below the rank that listen for connections, and reads their argv and
variables. What it does not do: compare (``agreement``). Rules kept: a launcher that starts another process is looked through,
since what it was given says nothing of what it passed on; where nothing that listens is found or read, that is said.
"""

from collections.abc import Mapping, Sequence

from attrs import field, frozen

from ledger.backends.reach import Reach

LIST = ("ps", "-eo", "pid=,ppid=")
LISTENS = "0A"
MOST = 64


@frozen(kw_only=True)
class Served:
    """What was read of one process that listens below a rank; ``unseen`` is why nothing was, and then there is no argv."""

    rank: int
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(factory=dict)
    unseen: str | None = None


def serving(rank: int, pid: int, names: Sequence[str], reach: Reach) -> list[Served]:
    """Every process below ``pid`` that listens; none where ``pid`` itself does. ``names`` are the variables asked for."""
    below = _below(pid, reach)
    listening = _listening(pid, reach)
    if not below or not listening or _sockets(pid, reach) & listening:
        return []
    found = [each for each in below[:MOST] if _sockets(each, reach) & listening]
    if not found:
        return [Served(rank=rank, unseen="none of the processes below it could be seen to listen")]
    return [_read(rank, each, names, reach) for each in found]


def _below(pid: int, reach: Reach) -> list[int]:
    """Every process below ``pid``, the nearest first."""
    children: dict[int, list[int]] = {}
    for line in reach.run(LIST).out.decode("utf-8", "replace").splitlines():
        words = line.split()
        if len(words) == 2 and all(word.isdigit() for word in words):
            children.setdefault(int(words[1]), []).append(int(words[0]))
    found: list[int] = []
    todo = [pid]
    while todo:
        at_hand = [child for each in todo for child in children.get(each, []) if child not in found]
        found += at_hand
        todo = at_hand
    return found


def _listening(pid: int, reach: Reach) -> set[str]:
    """The inodes of every TCP socket that listens where ``pid`` is."""
    found = set()
    for table in ("tcp", "tcp6"):
        for line in reach.read(f"/proc/{pid}/net/{table}").text.splitlines()[1:]:
            words = line.split()
            if len(words) > 9 and words[3] == LISTENS:
                found.add(words[9])
    return found


def _sockets(pid: int, reach: Reach) -> set[str]:
    ran = reach.run(["find", f"/proc/{pid}/fd", "-lname", "socket:*", "-printf", "%l\n"])
    return {line.removeprefix("socket:[").removesuffix("]") for line in ran.out.decode("utf-8", "replace").splitlines()}


def _read(rank: int, pid: int, names: Sequence[str], reach: Reach) -> Served:
    argv, environ = reach.read(f"/proc/{pid}/cmdline"), reach.read(f"/proc/{pid}/environ")
    why = argv.unread or environ.unread
    if why is not None or not argv.data:
        return Served(rank=rank, unseen=f"the process that serves: {why or 'it has ended'}")
    pairs = (item.partition(b"=") for item in environ.data.split(b"\0"))
    env = {_text(name): _text(value) for name, _, value in pairs}
    return Served(
        rank=rank,
        argv=tuple(_text(word) for word in argv.data.removesuffix(b"\0").split(b"\0")),
        env={name: env[name] for name in names if name in env},
    )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
