"""Pinned container images: the id and the labels that a node's container runtime tells.

What it does: inspects the image on a node with the runtime that is there. What it does not do: pull or start it. Rules kept:
where no runtime answers the pin fails, with what was tried; an id is compared by the digits that the spec gives.
"""

from typing import Any

import orjson

from ledger.backends.reach import Reach
from ledger.core.errors import Problem
from ledger.core.text import one_line
from ledger.spec.model import Lane

RUNTIMES = ("podman", "docker")
SHORTEST_ID = 12


def check_image(lane: Lane, reach: Reach) -> list[Problem]:
    """Everything that is not as pinned of a lane's image on a node; nothing where neither id nor labels are pinned."""
    if lane.image is None or not (lane.image_id or lane.image_labels):
        return []
    told = f"node {reach.node}: image {lane.image}"
    found, tried = inspect(lane.image, reach)
    if found is None:
        what = f"{told} cannot be inspected ({'; '.join(tried)}), expected {_expected(lane)}"
        return [Problem(what=what, hint="pull it on every node, before anything boots")]
    return [
        Problem(what=f"{told}: {what}", hint="pull the pinned image, or pin what is really meant")
        for what in _differs(lane, found)
    ]


def inspect(image: str, reach: Reach) -> tuple[dict[str, Any] | None, list[str]]:
    """What the first runtime that knows the image says of it, and what the others said."""
    tried: list[str] = []
    for runtime in RUNTIMES:
        ran = reach.run([runtime, "image", "inspect", image])
        try:
            found = orjson.loads(ran.out) if ran.ok else []
        except orjson.JSONDecodeError:
            found = []
        if isinstance(found, list) and found and isinstance(found[0], dict):
            return found[0], tried
        tried.append(f"{runtime}: {one_line(ran.told) or 'no answer that is JSON'}")
    return None, tried


def _differs(lane: Lane, found: dict[str, Any]) -> list[str]:
    said = str(found.get("Id", "")).removeprefix("sha256:")
    pinned = (lane.image_id or "").removeprefix("sha256:")
    wrong = []
    if pinned and not said.startswith(pinned):
        wrong.append(f"id {said[: max(len(pinned), SHORTEST_ID)] or 'none'}, expected {pinned}")
    config = found.get("Config")
    labels = config.get("Labels") if isinstance(config, dict) else None
    have = labels if isinstance(labels, dict) else {}
    for name, wanted in lane.image_labels.items():
        if have.get(name) != wanted:
            wrong.append(f"label {name} is {have.get(name, 'not there')!r}, expected {wanted!r}")
    return wrong


def _expected(lane: Lane) -> str:
    labels = ", ".join(f"{name}={value}" for name, value in lane.image_labels.items())
    return ", ".join(word for word in (f"id {lane.image_id}" if lane.image_id else "", labels) if word)
