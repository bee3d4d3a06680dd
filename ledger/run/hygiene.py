"""What is done to each node before a boot, so that boots begin alike.

What it does: runs the named actions in the spec's order on every node, with the counters before and after each, and says in a
condition how each went. What it does not do: decide whether a boot may follow (a gate can). Rules kept: an action is an argv
and never a shell string; what a spec can name is built in or defined by the site; what the site forbids is not done, and the
condition says so; a failed action is told and stops nothing.
"""

from collections.abc import Mapping, Sequence

import orjson
from attrs import field, frozen

from ledger.backends.reach import Reach
from ledger.run.evidence import NODE, SOURCE, Piece
from ledger.run.host import MEMINFO, parse_meminfo
from ledger.run.secrets import Concealer
from ledger.spec.model import Action, Site

MEDIA_TYPE = "application/vnd.ledger.hygiene.v1+jsonl"
BUILT_IN: Mapping[str, Action] = {
    "sync": Action(id="sync", argv=("sync",)),
    "compact_memory": Action(id="compact_memory", argv=("tee", "/proc/sys/vm/compact_memory"), stdin="1\n", privilege="root"),
    "drop_caches": Action(id="drop_caches", argv=("tee", "/proc/sys/vm/drop_caches"), stdin="3\n", privilege="root"),
}
COUNTERS = ("MemFree", "MemAvailable", "Buffers", "Cached", "Dirty", "SwapFree")
DONE, FORBIDDEN, NOT_DONE = "done", "forbidden", "not done: no node is reached"
LIMIT_S = 600.0


@frozen(kw_only=True)
class Hygiene:
    """How it went: ``conditions`` for the boot, and one piece of evidence for each node."""

    conditions: Mapping[str, str] = field(factory=dict)
    pieces: tuple[Piece, ...] = ()


def clean(names: Sequence[str], site: Site, nodes: Sequence[Reach], conceal: Concealer) -> Hygiene:
    """Do the actions ``names`` on every node; each action on all nodes before the next one."""
    if not names:
        return Hygiene(conditions={"hygiene": "none"})
    if not nodes:
        return Hygiene(conditions={f"hygiene.{name}": NOT_DONE for name in names})
    states: dict[str, str] = {}
    told: dict[str, list[Mapping[str, object]]] = {reach.node: [] for reach in nodes}
    for name in names:
        action = {**BUILT_IN, **site.actions}[name]
        for reach in nodes:
            state, record = _do(action, reach, site, conceal)
            told[reach.node].append(record)
            if states.get(name, DONE) == DONE:
                states[name] = state
    pieces = tuple(_piece(node, records) for node, records in told.items())
    return Hygiene(conditions={f"hygiene.{name}": state for name, state in states.items()}, pieces=pieces)


def _do(action: Action, reach: Reach, site: Site, conceal: Concealer) -> tuple[str, Mapping[str, object]]:
    """One action on one node: how it went in a word, and the record of it."""
    record: dict[str, object] = {"action": action.id, "privilege": action.privilege}
    if action.id in site.forbid:
        return FORBIDDEN, {**record, "state": FORBIDDEN}
    argv = (*site.elevate, *action.argv) if action.privilege == "root" else action.argv
    before = _counters(reach)
    ran = reach.run(argv, stdin=action.stdin.encode(), timeout_s=LIMIT_S, limit=64 * 1024)
    state = DONE if ran.ok else f"failed ({conceal.text(ran.told)})"
    record |= {
        "argv": list(conceal.argv(argv)),
        "stdin": conceal.text(action.stdin),
        "state": state,
        "out": conceal.text(ran.out.decode("utf-8", "replace")),
        "err": conceal.text(ran.err.decode("utf-8", "replace")),
        "before": before,
        "after": _counters(reach),
    }
    return state, {**record, "status": ran.status} if ran.status is not None else record


def _counters(reach: Reach) -> Mapping[str, float]:
    found = parse_meminfo(reach.read(MEMINFO).text)
    return {name: found[name] for name in COUNTERS if name in found}


def _piece(node: str, records: Sequence[Mapping[str, object]]) -> Piece:
    data = b"".join(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE) for record in records)
    return Piece(annotations={NODE: node, SOURCE: "hygiene"}, data=data, media_type=MEDIA_TYPE)
