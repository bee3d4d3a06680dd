"""Which class each field of a boot has: the one place that decides it.

What it does: flattens a lane as it will start into ``key = value`` factors and puts each into its class. What it does not do:
compare (``analysis``). Rules kept: a key that no row of ``CLASSES`` names is identity, so that nothing that may decide a boot's
behaviour is left out of its fingerprint; values that only the node knows stay placeholders.
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from ledger.core.words import FieldClass
from ledger.spec.change import Setting, settings
from ledger.spec.model import Lane, Node, Tree

# key or prefix -> (class, why). The longest match decides; what none matches is identity.
CLASSES: Mapping[str, tuple[FieldClass, str]] = {
    "backend": (FieldClass.CONTEXT, "the same server started another way should give the same figures, and may not"),
    "node.": (FieldClass.CONTEXT, "another machine of the same kind should, and may not"),
    "host.": (FieldClass.CONTEXT, "processor, kernel and memory of the machine"),
    "container.name": (FieldClass.PROVENANCE, "the container's name"),
    "container.labels": (FieldClass.PROVENANCE, "remarks for people and other programs"),
    "args.--host": (FieldClass.CONTEXT, "where the server listens"),
    "args.--port": (FieldClass.CONTEXT, "where the server listens"),
    "site": (FieldClass.PROVENANCE, "the site file's name says who ran it, not what ran"),
    "stand_in.why": (FieldClass.PROVENANCE, "a remark"),
    "recipe": (FieldClass.PROVENANCE, "where the launch was taken from; the launch itself is identity"),
    "recipe_revision": (FieldClass.PROVENANCE, "as recipe"),
    "args.--alias": (FieldClass.PROVENANCE, "the name in the API"),
    "args.--served-model-name": (FieldClass.PROVENANCE, "the name in the API"),
    "declared.": (FieldClass.PROVENANCE, "a pin of a lane that was not started here, so that it was held against nothing"),
    "server.max_total_num_tokens": (FieldClass.CONTEXT, "follows the memory that was free when the server started"),
    "title": (FieldClass.PROVENANCE, "a remark"),
}

NOT_KNOWN_HERE, UNVERIFIED = "not known here", "unverified"
DECLARED = ("engine", "model", "model_revision", "quantization")


def classify(key: str) -> FieldClass:
    """The class of a factor's key."""
    best = max((name for name in CLASSES if _matches(name, key)), key=len, default=None)
    return CLASSES[best][0] if best is not None else FieldClass.IDENTITY


def split(factors: Mapping[str, str]) -> dict[FieldClass, dict[str, str]]:
    """The factors by class, each class in key order."""
    found: dict[FieldClass, dict[str, str]] = {kind: {} for kind in FieldClass}
    for key in sorted(factors):
        found[classify(key)][key] = factors[key]
    return found


def lane_factors(lane: Lane) -> dict[str, str]:
    """What the lane says of itself: engine, model, image, trees, pinned packages and files."""
    named = {
        "engine": lane.engine,
        "model": lane.model,
        "model_revision": lane.model_revision,
        "quantization": lane.quantization,
        "image": lane.image,
        "image_id": lane.image_id,
        "recipe": lane.recipe,
        "recipe_revision": lane.recipe_revision,
        "nodes": str(lane.nodes),
    }
    found = {key: value for key, value in named.items() if value}
    found |= {f"tree.{tree.name}": _tree(tree) for tree in lane.trees}
    found |= {f"package.{name}": version for name, version in lane.packages.items()}
    found |= {f"file.{name}": pin.sha256 for name, pin in lane.files.items()}
    found |= {f"manifest.{name}": pin.sha256 for name, pin in lane.manifests.items()}
    found |= {f"image_label.{name}": value for name, value in lane.image_labels.items()}
    return found


def declared_factors(lane: Lane) -> dict[str, str]:
    """What a lane says of a server that is up: engine and model by their names; pins, held against nothing, as remarks."""
    found = lane_factors(lane)
    return {key if key in DECLARED else f"declared.{key}": value for key, value in found.items()}


def reported_factors(facts: Mapping[str, Any]) -> dict[str, str]:
    """What a server says of itself as factors; that it says nothing is one too."""
    said = {
        f"server.{name}": ", ".join(map(str, value)) if isinstance(value, list) else str(value) for name, value in facts.items()
    }
    return said or {"server": UNVERIFIED}


def launch_factors(argv: Sequence[str], env: Mapping[str, str]) -> dict[str, str]:
    """The launch of a rank: arguments by flag (repeated flags counted), words before the first flag by place, variables."""
    found = {f"env.{name}": value for name, value in env.items()}
    times: dict[str, int] = {}
    for setting in settings(argv):
        if setting.flag is None:
            found |= {f"argv.{index}": word for index, word in enumerate(setting.words)}
            continue
        flag, value = _switch(setting.flag, _spelled(setting))
        times[flag] = times.get(flag, 0) + 1
        suffix = f"#{times[flag]}" if times[flag] > 1 else ""
        found[f"args.{flag}{suffix}"] = value
    return found


def _spelled(setting: Setting) -> str:
    """The words behind a flag as one text that no other words give, so that other arguments are another identity."""
    _, equals, value = setting.words[0].partition("=")
    words = ([value] if equals else []) + list(setting.words[1:])
    return " ".join(shlex.quote(word) if not word or " " in word or word.startswith("'") else word for word in words)


def _switch(flag: str, value: str) -> tuple[str, str]:
    """A bare flag is a switch: ``--x`` is ``on`` and ``--no-x`` is the same switch, ``off``."""
    if value:
        return flag, value
    return (f"--{flag.removeprefix('--no-')}", "off") if flag.startswith("--no-") else (flag, "on")


def node_factors(nodes: Sequence[Node], backend: str) -> dict[str, str]:
    """Where it runs: the backend, and the node of each rank by name."""
    return {"backend": backend} | {f"node.{rank}": node.name for rank, node in enumerate(nodes)}


def _tree(tree: Tree) -> str:
    words = [tree.commit or "", f"declares {tree.declares}" if tree.declares else "", tree.version or ""]
    return " ".join([word for word in words if word] + (["patched"] if tree.patched else []))


def _matches(name: str, key: str) -> bool:
    return key.startswith(name) if name.endswith(".") else key == name
