"""Pins: every failed one is told, with its node, what was expected, what was found and the way out."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.backends.process import environment
from ledger.backends.reach import Held, LocalReach, Ran, Reach
from ledger.core.errors import BackendError, Problem
from ledger.core.words import Evidence
from ledger.run.hashes import HashCache
from ledger.run.manifests import parse
from ledger.run.preflight import Checks, Preflight, check_pins
from ledger.run.watch import Event, Phase
from ledger.spec.model import Arm, FilePin, Lane, Manifest, Node, Tree
from ledger.spec.plan import BootPlan, RankPlan

DATA = b"weights"
SHA = hashlib.sha256(DATA).hexdigest()


def lane(**more: Any) -> Lane:
    return Lane(id="l", engine="e", model="m", **more)


def boot(of: Lane, *, env: Mapping[str, str] | None = None, nodes: tuple[str, ...] = ("here",)) -> BootPlan:
    ranks = tuple(RankPlan(rank=index, node=Node(name=name), argv=("x",), env=env or {}) for index, name in enumerate(nodes))
    return BootPlan(
        position=1,
        arm=Arm(id="a", lane="l"),
        declared=of,
        lane=of,
        evidence=Evidence.MEASURED,
        ranks=ranks,
        measures=(),
        files=of.files,
        packages=of.packages,
    )


class Wrapped(Reach):
    """A node whose programs are started by a wrapper of its own, as a launcher or a job system does."""

    def __init__(self, node: str, wrap: "Wrap", key: str = "far") -> None:
        super().__init__(node, key, python=sys.executable)
        self._local = LocalReach(node, environment)
        self._wrap = wrap

    def _run(self, argv: tuple[str, ...], *, stdin: bytes, env: dict[str, str], timeout_s: float, limit: int) -> Ran:
        return self._local.run(argv, stdin=stdin, env=self._wrap(env), timeout_s=timeout_s, limit=limit)

    def _hold(self, argv: tuple[str, ...]) -> Held:
        return self._local.hold(argv)


Wrap = Any


def check(plan: BootPlan, root: Path, reach: Any = None, *, rehash: bool = False, events: list[Event] | None = None) -> Preflight:
    heard = events if events is not None else []
    hashes = HashCache(root / "state" / "hashes.json", rehash=rehash)
    reach = reach or (lambda node, host: LocalReach(node, environment))
    return check_pins(plan, Checks(root=root, reach=reach, hashes=hashes, watch=heard.append))


def told(found: Preflight) -> str:
    return "\n".join(map(str, found.problems))


def test_a_pin_that_holds_gives_its_path(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(DATA)
    found = check(boot(lane(files={"m": FilePin(path="m.gguf", sha256=SHA, size=len(DATA))})), tmp_path)
    assert found.problems == ()
    assert found.values["file.m"] == str(tmp_path / "m.gguf")


def test_every_failed_pin_is_told_at_once_with_its_node(tmp_path: Path) -> None:
    (tmp_path / "bad.gguf").write_bytes(DATA + b"!")
    (tmp_path / "short.gguf").write_bytes(DATA)
    files = {
        "bad": FilePin(path="bad.gguf", sha256=SHA),
        "short": FilePin(path="short.gguf", sha256=SHA, size=99),
        "gone": FilePin(path="gone.gguf", sha256=SHA),
        "foreign": FilePin(package="no-such-package", file="x", sha256=SHA),
        "inside": FilePin(package="attrs", file="no/such/file", sha256=SHA),
    }
    packages = {"attrs": "0.0.1", "no-such-package": "1.0"}
    found = check(boot(lane(files=files, packages=packages)), tmp_path)
    text = told(found)
    assert len(found.problems) == 7
    assert all(problem.what.startswith("node here: ") for problem in found.problems)
    assert hashlib.sha256(DATA + b"!").hexdigest() in text
    assert "7 bytes, expected 99" in text
    assert "pip install --no-deps no-such-package" in text
    assert version("attrs") in text


def test_pins_are_checked_on_every_node_and_each_that_fails_is_named(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(DATA + b"!")
    nodes = {"one": Wrapped("one", dict, "1"), "two": Wrapped("two", dict, "2")}
    pinned = lane(files={"m": FilePin(path=str(path), sha256=SHA)}, packages={"attrs": version("attrs"), "none-such": "1"})
    found = check(boot(pinned, nodes=("one", "two")), tmp_path, lambda node, host: nodes[node])
    assert [problem.what.split(":")[0] for problem in found.problems] == ["node one", "node one", "node two", "node two"]


def test_a_node_that_is_not_reached_is_told(tmp_path: Path) -> None:
    def nobody(node: str, host: str) -> Reach:
        raise BackendError(f"no route to {node}")

    assert "no route to here" in told(check(boot(lane()), tmp_path, nobody))


def cached(tmp_path: Path) -> Path:
    return tmp_path / "state" / "hashes.json"


def test_a_changed_file_is_hashed_again_and_an_unchanged_one_only_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(DATA)
    plan = boot(lane(files={"m": FilePin(path="m.gguf", sha256=SHA)}))
    assert check(plan, tmp_path).problems == ()
    cached(tmp_path).write_bytes(cached(tmp_path).read_bytes().replace(SHA.encode(), b"f" * 64))
    assert "f" * 64 in told(check(plan, tmp_path)), "an unchanged file is taken from the cache"
    assert check(plan, tmp_path, rehash=True).problems == (), "asked for, it is hashed anew"
    path.write_bytes(DATA * 2)
    assert hashlib.sha256(DATA * 2).hexdigest() in told(check(plan, tmp_path))


@pytest.mark.parametrize("damage", [b"{", b"[]", b""])
def test_a_damaged_cache_costs_time_alone(tmp_path: Path, damage: bytes) -> None:
    cached(tmp_path).parent.mkdir()
    cached(tmp_path).write_bytes(damage)
    (tmp_path / "m.gguf").write_bytes(DATA)
    assert check(boot(lane(files={"m": FilePin(path="m.gguf", sha256=SHA)})), tmp_path).problems == ()


# --- manifests --------------------------------------------------------------------------------------------------------------


def weights(tmp_path: Path, *names: str, **more: Any) -> Manifest:
    """A manifest of new files below ``weights/``, as ``sha256sum`` itself writes it."""
    folder = tmp_path / "weights"
    folder.mkdir()
    for name in names:
        (folder / name).write_bytes(name.encode() * 100)
    text = subprocess.run(["sha256sum", "--", *names], cwd=folder, capture_output=True, check=True).stdout
    (tmp_path / "weights.sha256").write_bytes(text)
    return Manifest(path="weights.sha256", sha256=hashlib.sha256(text).hexdigest(), root="weights", **more)


def test_a_manifest_that_sha256sum_wrote_holds_with_its_count_and_bytes(tmp_path: Path) -> None:
    manifest = weights(tmp_path, "a", "with space", "back\\slash", "new\nline", count=4, size=2900)
    events: list[Event] = []
    assert check(boot(lane(manifests={"w": manifest})), tmp_path, events=events).problems == ()
    progress = [event for event in events if isinstance(event, Phase) and event.name == "hash w on here"]
    assert (progress[-1].done, progress[-1].of) == (2900, 2900)


def test_every_file_that_differs_is_told(tmp_path: Path) -> None:
    manifest = weights(tmp_path, "same", "changed", "gone", size=1)
    (tmp_path / "weights/changed").write_bytes(b"x")
    (tmp_path / "weights/gone").unlink()
    text = told(check(boot(lane(manifests={"w": manifest})), tmp_path))
    assert "changed: sha256 " + hashlib.sha256(b"x").hexdigest() in text
    assert "gone: missing" in text
    assert "same" not in text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sha256": "0" * 64}, "the manifest has sha256"),
        ({"count": 9}, "names 1 files, expected 9"),
        ({"size": 9}, "100 bytes in all, expected 9"),
        ({"path": "none.sha256"}, "cannot be read"),
    ],
)
def test_a_manifest_that_is_not_as_pinned_is_told(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    made = weights(tmp_path, "a")
    manifest = Manifest(**{"path": made.path, "sha256": made.sha256, "root": made.root, **change})
    assert words in told(check(boot(lane(manifests={"w": manifest})), tmp_path))


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a/../../x", "a\0b"])
def test_a_name_that_leaves_its_root_is_refused(name: str) -> None:
    with pytest.raises(BackendError, match="leaves the manifest's root"):
        parse(f"{SHA}  {name}\n", "list")


@given(st.text(max_size=80))
def test_any_text_is_a_list_or_is_told_line_by_line(text: str) -> None:
    problems: tuple[Problem, ...] = ()
    try:
        assert len(parse(text, "list")) <= text.count("\n") + 1
    except BackendError as error:
        problems = error.problems
    assert all(problem.place and problem.place.line for problem in problems)


# --- trees ------------------------------------------------------------------------------------------------------------------


def git(folder: Path, *words: str) -> str:
    argv = ["git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@example.org", *words]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout of two commits, both in its bare remote; the first declares 0.3.0, and so does the second."""
    tree = tmp_path / "tree"
    tree.mkdir()
    git(tree, "init", "-q", "-b", "main")
    (tree / "pyproject.toml").write_text('[project]\nname = "sparknet"\nversion = "0.3.0"\n')
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "release")
    (tree / "more.py").write_text("x = 1\n")
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "past the release")
    git(tmp_path, "clone", "-q", "--bare", "tree", "remote.git")
    git(tree, "remote", "add", "origin", str(tmp_path / "remote.git"))
    return tree


def tree_told(root: Path, folder: Path, **more: Any) -> str:
    tree = Tree(**{"name": "sparknet", "path": str(folder), "commit": git(folder, "rev-parse", "--short", "HEAD"), **more})
    return told(check(boot(lane(trees=(tree,))), root))


def test_a_checkout_as_pinned_holds(tmp_path: Path, checkout: Path) -> None:
    assert tree_told(tmp_path, checkout, declares="0.3.0") == ""
    assert tree_told(tmp_path, checkout, repo=str(tmp_path / "remote.git")) == ""


def test_a_commit_below_the_tip_can_be_had_too(tmp_path: Path, checkout: Path) -> None:
    git(tmp_path / "remote.git", "config", "uploadpack.allowReachableSHA1InWant", "true")
    git(checkout, "checkout", "-q", "HEAD~1")
    assert tree_told(tmp_path, checkout) == ""


def test_a_remote_that_goes_away_after_the_first_check_refuses_no_boot(tmp_path: Path, checkout: Path) -> None:
    tree = Tree(name="sparknet", path=str(checkout), commit=git(checkout, "rev-parse", "HEAD"))
    hashes = HashCache(tmp_path / "hashes.json")
    checks = Checks(root=tmp_path, reach=lambda node, host: LocalReach(node, environment), hashes=hashes, watch=[].append)
    assert check_pins(boot(lane(trees=(tree,))), checks).problems == ()
    (tmp_path / "remote.git").rename(tmp_path / "away.git")
    assert check_pins(boot(lane(trees=(tree,))), checks).problems == ()
    assert "cannot be had" in told(check(boot(lane(trees=(tree,))), tmp_path)), "another run asks again"


def test_a_version_that_the_commit_does_not_declare(tmp_path: Path, checkout: Path) -> None:
    short = git(checkout, "rev-parse", "--short", "HEAD")
    assert f"declares 0.3.0, at {short}; expected: declares 0.3.1, at {short}" in tree_told(tmp_path, checkout, declares="0.3.1")
    assert "declares no version" in tree_told(tmp_path, checkout, declares="1", version_file="more.py")


def test_a_commit_that_was_never_pushed(tmp_path: Path, checkout: Path) -> None:
    (checkout / "more.py").write_text("x = 2\n")
    git(checkout, "commit", "-qam", "mine alone")
    text = tree_told(tmp_path, checkout)
    assert "cannot be had from its remote" in text
    assert "node here: tree sparknet" in text


def test_what_is_changed_elsewhere_or_not_there(tmp_path: Path, checkout: Path) -> None:
    (checkout / "more.py").write_text("patched\n")
    (checkout / "new.py").write_text("untracked\n")
    assert "2 files are not as committed" in tree_told(tmp_path, checkout)
    first = git(checkout, "rev-parse", "HEAD~1")
    assert f"is checked out, expected {first}" in tree_told(tmp_path, checkout, commit=first)
    assert "the commit 1234567 is not there" in tree_told(tmp_path, checkout, commit="1234567")
    assert "no checkout at" in told(check(boot(lane(trees=(Tree(name="t", path=str(tmp_path / "no"), commit="1"),))), tmp_path))


def test_a_shorthand_names_a_remote_of_the_checkout(tmp_path: Path, checkout: Path) -> None:
    (tmp_path / "local-lab").mkdir()
    git(tmp_path, "clone", "-q", "--bare", "tree", "local-lab/sparknet.git")
    assert "no remote is known" in tree_told(tmp_path, checkout, repo="local-lab/sparknet")
    git(checkout, "remote", "add", "lab", str(tmp_path / "local-lab/sparknet.git"))
    assert tree_told(tmp_path, checkout, repo="local-lab/sparknet") == ""


# --- images -----------------------------------------------------------------------------------------------------------------


def runtime(folder: Path, name: str, answer: object) -> None:
    """A container runtime of that name that knows one image."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!{sys.executable}\nimport sys\nif sys.argv[1:] != ['image', 'inspect', 'vllm:r6x']: sys.exit(1)\n")
    with program.open("a") as file:
        file.write(f"print({json.dumps(answer)!r})\n")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("pins", "words"),
    [
        ({"image_id": "sha256:c1c93733e852"}, ""),
        ({"image_id": "c1c93733e852", "image_labels": {"commit": "19f2c20"}}, ""),
        ({"image_id": "sha256:aaaaaaaaaaaa"}, "id c1c93733e852, expected aaaaaaaaaaaa"),
        ({"image_labels": {"commit": "0000000", "none": "x"}}, "label commit is '19f2c20', expected '0000000'"),
    ],
)
def test_an_image_is_held_against_its_id_and_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pins: dict[str, Any], words: str
) -> None:
    runtime(tmp_path / "bin", "podman", [{"Id": "c1c93733e8521111", "Config": {"Labels": {"commit": "19f2c20"}}}])
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    text = told(check(boot(lane(image="vllm:r6x", **pins)), tmp_path))
    assert words in text if words else text == ""


def test_without_a_runtime_the_pin_fails_with_what_was_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    text = told(check(boot(lane(image="vllm:r6x", image_id="c1c93733e852")), tmp_path))
    assert "podman: cannot run podman" in text
    assert "docker: cannot run docker" in text
    assert "expected id c1c93733e852" in text


# --- the environment --------------------------------------------------------------------------------------------------------

ODD = {"A": "1", "EMPTY": "", "LINES": "a\nb\n", "QUOTES": "'\" $HOME `x`", "JSON": '{"a": [1]}', "B": "2"}


def test_the_environment_is_read_back_as_it_was_rendered(tmp_path: Path) -> None:
    assert check(boot(lane(), env=ODD), tmp_path).problems == ()


def test_a_launcher_that_drops_a_variable_is_found_before_anything_boots(tmp_path: Path) -> None:
    def drops(env: Mapping[str, str]) -> dict[str, str]:
        return {name: value for name, value in env.items() if name != "A"}

    text = told(check(boot(lane(), env=ODD), tmp_path, lambda node, host: Wrapped(node, drops)))
    assert "node here: rank 0: A is not set to a process there, expected '1'" in text


def test_an_env_file_without_its_last_newline_cannot_glue_two_variables(tmp_path: Path) -> None:
    """A launcher that appends its variables to an env file of the site's, whose last line has no newline."""
    (tmp_path / "site.env").write_text("NCCL_DEBUG=WARN")

    def appends(env: Mapping[str, str]) -> dict[str, str]:
        text = (tmp_path / "site.env").read_text() + "".join(f"{name}={value}\n" for name, value in env.items())
        return dict(line.split("=", 1) for line in text.splitlines())

    env = {"VLLM_USE_V1": "1", "OTHER": "2"}
    glued = told(check(boot(lane(), env=env), tmp_path, lambda node, host: Wrapped(node, appends)))
    assert "VLLM_USE_V1 is not set to a process there, expected '1'" in glued
    (tmp_path / "site.env").write_text("NCCL_DEBUG=WARN\n")
    assert check(boot(lane(), env=env), tmp_path, lambda node, host: Wrapped(node, appends)).problems == ()


def test_a_secret_is_not_told(tmp_path: Path) -> None:
    env = {"HF_TOKEN": "not-a-real-token", "KEYED": "sk-aaaaaaaaaaaaaaaaaaaaaaaa"}
    text = told(check(boot(lane(), env=env), tmp_path, lambda node, host: Wrapped(node, lambda _: {})))
    assert "HF_TOKEN is not set" in text
    assert "not-a-real-token" not in text
    assert "sk-aaaa" not in text
