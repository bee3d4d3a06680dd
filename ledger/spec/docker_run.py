"""``docker run`` as a lane, and a lane as ``docker run``.

What it does: reads a command line that people have into image, command, variables and :class:`Container`, and renders these as
argv again, options in the order of ``OPTIONS``. What it does not do: run it, expand anything, or know a daemon. Rules kept: an
option that is not known here is told, never dropped; what a shell would have replaced is refused, since its value is not here;
reading what was rendered gives the same lane.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
from attrs import frozen

from ledger.core.errors import Collected, SpecError, did_you_mean
from ledger.spec.interpolate import escape
from ledger.spec.model import Container

MAX_TEXT = 2**20
ONE, MANY, PAIRS, SWITCH = "one", "many", "pairs", "switch"


@frozen(kw_only=True)
class Option:
    """An option of ``docker run``: its names, how often it stands, and whether its value is a word of its own."""

    names: tuple[str, ...]
    kind: str
    apart: bool = False


# field of Container -> the option, in the order in which they are rendered
OPTIONS: Mapping[str, Option] = {
    "name": Option(names=("--name",), kind=ONE, apart=True),
    "restart": Option(names=("--restart",), kind=ONE),
    "network": Option(names=("--network", "--net"), kind=ONE),
    "ipc": Option(names=("--ipc",), kind=ONE),
    "pid": Option(names=("--pid",), kind=ONE),
    "hostname": Option(names=("--hostname", "-h"), kind=ONE),
    "user": Option(names=("--user", "-u"), kind=ONE),
    "workdir": Option(names=("--workdir", "-w"), kind=ONE),
    "entrypoint": Option(names=("--entrypoint",), kind=ONE),
    "runtime": Option(names=("--runtime",), kind=ONE),
    "gpus": Option(names=("--gpus",), kind=ONE),
    "devices": Option(names=("--device",), kind=MANY),
    "cap_add": Option(names=("--cap-add",), kind=MANY),
    "cap_drop": Option(names=("--cap-drop",), kind=MANY),
    "ulimits": Option(names=("--ulimit",), kind=PAIRS),
    "security_opt": Option(names=("--security-opt",), kind=MANY),
    "shm_size": Option(names=("--shm-size",), kind=ONE),
    "memory": Option(names=("--memory", "-m"), kind=ONE),
    "memory_swap": Option(names=("--memory-swap",), kind=ONE),
    "mounts": Option(names=("--mount",), kind=MANY),
    "device_cgroup_rules": Option(names=("--device-cgroup-rule",), kind=MANY),
    "cpuset_cpus": Option(names=("--cpuset-cpus",), kind=ONE),
    "privileged": Option(names=("--privileged",), kind=SWITCH),
    "init": Option(names=("--init",), kind=SWITCH),
    "group_add": Option(names=("--group-add",), kind=MANY),
    "labels": Option(names=("--label", "-l"), kind=PAIRS),
    "env": Option(names=("--env", "-e"), kind=PAIRS, apart=True),
    "volumes": Option(names=("--volume", "-v"), kind=MANY, apart=True),
}
BY_NAME = {name: key for key, option in OPTIONS.items() for name in option.names}
# What the runner does in its own way: it keeps containers detached, without a terminal, and removes them itself.
OURS = frozenset({"-d", "--detach", "--rm", "-i", "--interactive", "-t", "--tty", "-it", "-ti", "-dit"})
STARTS = (("docker", "run"), ("podman", "run"), ("docker", "container", "run"), ("podman", "container", "run"))


@frozen(kw_only=True)
class Launch:
    """A command line as read: no ``image`` and ``container`` where it starts a program of the node itself."""

    command: tuple[str, ...]
    env: Mapping[str, str]
    image: str | None = None
    container: Container | None = None

    def as_lane(self, *, engine: str, model: str) -> dict[str, Any]:
        """The lane's table, with every dollar escaped; a port and the model's name are taken from the command."""
        served, port = self._flag("--served-model-name"), self._flag("--port")
        lane: dict[str, Any] = {"engine": engine, "model": model}
        lane |= {"served_model": escape(served)} if served else {}
        lane |= {"port": int(port)} if port and port.isdigit() and int(port) < 65_536 else {}
        lane |= {"image": self.image} if self.image else {}
        lane |= {"command": [escape(word) for word in self.command]}
        lane |= {"env": {name: escape(value) for name, value in self.env.items()}} if self.env else {}
        return lane | ({"container": dict(_set(self.container))} if self.container is not None else {})

    def _flag(self, flag: str) -> str | None:
        pairs = zip(self.command, self.command[1:], strict=False)
        return next((value for word, value in pairs if word == flag), None)


def read(text: str) -> Launch:
    """A command line as a person pastes it.

    Raises:
        SpecError: with everything in it that is not understood.
    """
    found = Collected()
    if len(text) > MAX_TEXT:
        found.add(f"a command line of more than {MAX_TEXT} characters", value=len(text))
    elif (rest := _outside_quotes(text)) and (odd := re.search(r"[$`;|&<>()]", rest)):
        what = f"the shell would act on {odd.group()!r}, and what it would make of it is not known here"
        found.add(what, value=text[:60], hint="write what it stands for, or put it in single quotes where it is meant as it is")
    found.raise_if_any(SpecError)
    try:
        words = shlex.split(text.replace("\\\n", " "))
    except ValueError as error:
        found.add("no command line", value=text[:60], hint=str(error))
        words = []
    launch = from_words(words, found) if words else Launch(command=(), env={})
    if not launch.command and launch.image is None:
        found.add("a command line without a program", value=text[:60])
    found.raise_if_any(SpecError)
    return launch


def _outside_quotes(text: str) -> str:
    """What a shell would act on: nothing in single quotes, nothing behind a backslash; ``$`` and a backtick in double quotes."""
    return re.sub(r"""'[^']*'|\\.|"((?:\\.|[^"\\])*)\"""", _acted_on, text, flags=re.DOTALL)


def _acted_on(quoted: re.Match[str]) -> str:
    return re.sub(r"\\.|[^$`]", "", quoted[1] or "", flags=re.DOTALL)


def from_words(words: Sequence[str], found: Collected) -> Launch:
    """argv as a launch; what is not understood is added to ``found``."""
    start = next((start for start in STARTS if tuple(words[: len(start)]) == start), None)
    if start is None:
        return _plain(words)
    given: dict[str, list[str]] = {}
    rest = list(words[len(start) :])
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        if word == "--":
            break
        if word not in OURS:
            _option(word, rest, given, found)
    if not rest:
        found.add("a container without an image", value=shlex.join(words)[:60])
        return Launch(command=(), env={})
    env = dict(_pair("--env", text, found) for text in given.pop("env", []))
    return Launch(image=rest[0], command=tuple(rest[1:]), env=env, container=_container(given, found))


def _plain(words: Sequence[str]) -> Launch:
    """A program of the node itself, with the variables in front of it."""
    count = next((index for index, word in enumerate(words) if not re.match(r"[A-Za-z_]\w*=", word)), len(words))
    env = {name: value for name, _, value in (word.partition("=") for word in words[:count])}
    return Launch(command=tuple(words[count:]), env=env)


def _option(word: str, rest: list[str], given: dict[str, list[str]], found: Collected) -> None:
    name, equals, value = word.partition("=")
    if name not in BY_NAME and not name.startswith("--") and name[:2] in BY_NAME:
        name, equals, value = name[:2], "=", word[2:]  # -eX=1
    key = BY_NAME.get(name)
    if key is None:
        found.add("an option that is not read here", value=word, hint=did_you_mean(name, BY_NAME))
    elif OPTIONS[key].kind == SWITCH:
        given[key] = ["true"] if value != "false" else []
    elif equals or rest:
        value = value if equals else rest.pop(0)
        if OPTIONS[key].kind == ONE and given.get(key, [value]) != [value]:
            found.add(f"{name} stands twice", value=value)
        given[key] = [value] if OPTIONS[key].kind == ONE else [*given.get(key, []), value]
    else:
        found.add("an option without its value", value=word)


def _container(given: Mapping[str, Sequence[str]], found: Collected) -> Container:
    fields: dict[str, Any] = {}
    for key, values in given.items():
        kind = OPTIONS[key].kind
        escaped = [escape(value) for value in values]
        if kind == PAIRS:
            fields[key] = dict(_pair(OPTIONS[key].names[0], value, found) for value in escaped)
        else:
            fields[key] = bool(values) if kind == SWITCH else escaped[0] if kind == ONE else tuple(escaped)
    return Container(**fields)


def _pair(flag: str, text: str, found: Collected) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals and flag == "--env":
        found.add("a variable taken from the shell that runs it", value=f"{flag} {text}", hint=f"write {flag} {name}=VALUE")
    return name, value


def _set(container: Container) -> Iterator[tuple[str, Any]]:
    """The fields that say something, as TOML has them."""
    for key in OPTIONS:
        value = getattr(container, key, None)
        if value:
            yield key, list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value


def render(image: str, container: Container, argv: Sequence[str], env: Mapping[str, str]) -> tuple[str, ...]:
    """``docker run`` as argv, for a rank with nothing left to replace."""
    words = ["docker", "run", "-d"]
    for key, option in OPTIONS.items():
        value = env if key == "env" else getattr(container, key)
        for text in _texts(option, value):
            words += [option.names[0], text] if option.apart else [f"{option.names[0]}={text}" if text else option.names[0]]
    return (*words, image, *argv)


def _texts(option: Option, value: Any) -> list[str]:
    if option.kind == PAIRS:
        return [f"{name}={text}" for name, text in value.items()]
    if option.kind == SWITCH:
        return [""] if value else []
    return list(value) if option.kind == MANY else [value] if value is not None else []


def with_texts(container: Container, do: Callable[[str], str]) -> Container:
    """The container with every text replaced by what ``do`` makes of it; names of labels and limits stay."""

    def each(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: do(text) for name, text in value.items()}
        return tuple(map(do, value)) if isinstance(value, tuple) else do(value) if isinstance(value, str) else value

    return Container(**{item.name: each(getattr(container, item.name)) for item in attrs.fields(Container)})


def factors_of(container: Container) -> dict[str, str]:
    """What the container is started with, each under ``container.<option>``."""
    words = ((key, _texts(option, getattr(container, key))) for key, option in OPTIONS.items() if key != "env")
    return {f"container.{key}": shlex.join(texts) or "on" for key, texts in words if texts}
