"""A service of a Compose file as a lane.

What it does: reads one service into the :class:`Launch` that a ``docker run`` gives too. What it does not do: read another file,
the environment or a daemon, or start anything. Rules kept: what would change how the container runs and cannot be said of a lane
is refused with its line; what the runner does in its own way is a remark; ``${NAME}`` takes a value that was given or its
default.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import field, frozen

from ledger.core.errors import Collected, Place, SpecError, did_you_mean
from ledger.spec.docker_run import Launch
from ledger.spec.interpolate import escape
from ledger.spec.model import Container
from ledger.spec.yaml_text import Items, Pairs, Text, Tree, read

# key of a service -> field of Container, by what stands there
TEXTS: Mapping[str, str] = {
    "container_name": "name",
    "restart": "restart",
    "network_mode": "network",
    "ipc": "ipc",
    "pid": "pid",
    "hostname": "hostname",
    "user": "user",
    "working_dir": "workdir",
    "runtime": "runtime",
    "shm_size": "shm_size",
    "mem_limit": "memory",
    "memswap_limit": "memory_swap",
    "cpuset": "cpuset_cpus",
}
LISTS = ("devices", "cap_add", "cap_drop", "security_opt", "device_cgroup_rules", "group_add")
SWITCHES = ("privileged", "init")
# What the runner does in its own way, so that a lane has no word for it.
OURS = (
    "build",
    "depends_on",
    "expose",
    "healthcheck",
    "logging",
    "profiles",
    "pull_policy",
    "stdin_open",
    "stop_grace_period",
    "tty",
)
OTHERS = ("image", "command", "entrypoint", "environment", "ulimits", "labels", "volumes", "gpus", "deploy", "ports")
KNOWN = (*TEXTS, *LISTS, *SWITCHES, *OURS, *OTHERS)
YES, NO = ("true", "yes", "on"), ("false", "no", "off")
_VARIABLE = re.compile(
    r"\$(?:(?P<dollar>\$)|(?P<plain>[A-Za-z_]\w*)|\{(?P<name>[A-Za-z_]\w*)(?:(?P<op>:?[-?+])(?P<word>[^${}]*))?\}|(?P<odd>))"
)


@frozen(kw_only=True)
class Service:
    """A service as read: its launch, and what of it a lane does not have."""

    launch: Launch
    remarks: tuple[str, ...] = ()


def read_service(text: str, file: str, *, name: str | None = None, given: Mapping[str, str] = {}) -> Service:
    """The service ``name`` of a Compose file, or the only one; ``given`` are values for its variables.

    Raises:
        SpecError: with everything that is not understood, each at its line.
    """
    reading = _Reading(file=file, given=given)
    document = read(text, file)
    services = document.values.get("services") if isinstance(document, Pairs) else None
    if not isinstance(services, Pairs) or not services.values:
        reading.tell("no services: this is no Compose file", 1)
        reading.found.raise_if_any(SpecError)
    assert isinstance(services, Pairs)
    if isinstance(document, Pairs) and "include" in document.values:
        reading.tell("other files are not read", document.lines["include"], "include", "give `docker compose config`'s output")
    chosen = reading.choose(services, name)
    launch = reading.launch(chosen)
    reading.found.raise_if_any(SpecError)
    return Service(launch=launch, remarks=tuple(reading.remarks))


@frozen(kw_only=True)
class _Reading:
    """One reading of a file: what is wrong with it and what is left out are collected."""

    file: str
    given: Mapping[str, str]
    found: Collected = field(factory=Collected)
    remarks: list[str] = field(factory=list)

    def tell(self, what: str, line: int, value: object = None, hint: str | None = None) -> None:
        """One more mistake."""
        self.found.add(what, place=Place(file=self.file, line=line), value=value, hint=hint)

    def choose(self, services: Pairs, name: str | None) -> Pairs:
        """The service that is asked for."""
        names = list(services.values)
        if name is None and len(names) > 1:
            self.tell("several services, and a lane is one", services.line, ", ".join(names), "name it: --service NAME")
        elif name is not None and name not in names:
            self.tell("no such service", services.line, name, did_you_mean(name, names))
        self.found.raise_if_any(SpecError)
        chosen = services.values[name or names[0]]
        if not isinstance(chosen, Pairs):
            self.tell("a service that is no mapping", chosen.line, name or names[0])
            self.found.raise_if_any(SpecError)
        assert isinstance(chosen, Pairs)
        return chosen

    def launch(self, service: Pairs) -> Launch:
        """The service as what ``docker run`` would be told."""
        fields: dict[str, Any] = {}
        for key, value in service.values.items():
            self._key(key, value, service.lines[key], fields)
        self._ports(service, fields)
        entry, command = self._words(service, "entrypoint"), self._words(service, "command")
        fields |= {"entrypoint": escape(entry[0])} if entry else {}
        image = service.values.get("image")
        if image is None:
            self.tell("a service without an image", service.line, hint="build it, and say image: NAME:TAG")
        return Launch(
            image=self._text(image) if image is not None else "",
            command=(*entry[1:], *command),
            env=self._table(service, "environment", needs_value=True),
            container=Container(**fields),
        )

    def _key(self, key: str, value: Tree, line: int, fields: dict[str, Any]) -> None:
        if key in OURS:
            self.remarks.append(f"{self.file}:{line}: {key} is not taken over: the runner does this in its own way")
        elif key in TEXTS:
            fields[TEXTS[key]] = escape(self._text(value))
        elif key in LISTS:
            fields[key] = tuple(escape(self._text(item)) for item in self._list(value))
        elif key in SWITCHES:
            fields[key] = self._switch(value)
        elif key in ("ulimits", "labels", "volumes", "gpus", "deploy"):
            fields |= {
                "ulimits": self._ulimits,
                "labels": self._labels,
                "volumes": self._volumes,
                "gpus": self._gpus,
                "deploy": self._deploy,
            }[key](value)
        elif key not in OTHERS and not key.startswith("x-"):
            self.tell("a key that a lane has no word for", line, key, did_you_mean(key, KNOWN))

    def _text(self, tree: Tree) -> str:
        """A scalar with its variables replaced."""
        if isinstance(tree, Text) and tree.value is not None:
            return self._replaced(tree.value, tree.line)
        self.tell("expected a text", tree.line)
        return ""

    def _replaced(self, text: str, line: int) -> str:
        def value(match: re.Match[str]) -> str:
            name = match["plain"] or match["name"]
            if match["dollar"]:
                return "$"
            if name is None:
                self.tell("a '$' that begins no variable", line, text, "a dollar is written $$")
                return ""
            return self._value(name, match["op"] or "", match["word"] or "", line)

        return _VARIABLE.sub(value, text)

    def _value(self, name: str, op: str, word: str, line: int) -> str:
        """What stands for a variable, by the operators of Compose; with a colon an empty value is none."""
        value = self.given.get(name)
        there = value is not None and (value != "" or ":" not in op)
        if op.endswith("+"):
            return word if there else ""
        if there and value is not None:
            return value
        if op.endswith("-"):
            return word
        self.tell(
            f"the value of {name} is not in the file" + (f": {word}" if word else ""), line, hint=f"give it: --var {name}=VALUE"
        )
        return ""

    def _list(self, tree: Tree) -> tuple[Tree, ...]:
        if isinstance(tree, Items):
            return tree.values
        self.tell("expected a list", tree.line)
        return ()

    def _switch(self, tree: Tree) -> bool:
        text = self._text(tree).lower()
        if text not in (*YES, *NO):
            self.tell("expected true or false", tree.line, text)
        return text in YES

    def _words(self, service: Pairs, key: str) -> tuple[str, ...]:
        """A command as argv; a text is split as Compose does, by a shell's quotes and nothing more."""
        tree = service.values.get(key)
        if tree is None or (isinstance(tree, Text) and tree.value is None):
            return ()
        if isinstance(tree, Items):
            return tuple(self._text(item) for item in tree.values)
        try:
            return tuple(shlex.split(self._text(tree)))
        except ValueError as error:
            self.tell(f"no command line: {error}", tree.line)
            return ()

    def _table(self, service: Pairs, key: str, *, needs_value: bool) -> dict[str, str]:
        """A table, or a list of ``NAME=VALUE``."""
        tree = service.values.get(key)
        return dict(self._entries(tree, needs_value=needs_value)) if tree is not None else {}

    def _entries(self, tree: Tree, *, needs_value: bool) -> Iterator[tuple[str, str]]:
        if isinstance(tree, Pairs):
            for name, value in tree.values.items():
                if needs_value and isinstance(value, Text) and value.value is None:
                    self._from_outside(name, tree.lines[name])
                else:
                    yield name, "" if isinstance(value, Text) and value.value is None else self._text(value)
            return
        for item in self._list(tree):
            name, equals, text = self._text(item).partition("=")
            if needs_value and not equals:
                self._from_outside(name, item.line)
            yield name, text

    def _from_outside(self, name: str, line: int) -> None:
        self.tell("a variable taken from the shell that runs it", line, name, f"write {name}: VALUE")

    def _labels(self, tree: Tree) -> dict[str, Any]:
        return {"labels": {name: escape(text) for name, text in self._entries(tree, needs_value=False)}}

    def _ulimits(self, tree: Tree) -> dict[str, Any]:
        found: dict[str, str] = {}
        for name, value in tree.values.items() if isinstance(tree, Pairs) else ():
            if isinstance(value, Pairs) and set(value.values) == {"soft", "hard"}:
                found[name] = f"{self._text(value.values['soft'])}:{self._text(value.values['hard'])}"
            else:
                found[name] = self._text(value)
        if not isinstance(tree, Pairs):
            self.tell("expected a mapping", tree.line)
        return {"ulimits": found}

    def _volumes(self, tree: Tree) -> dict[str, Any]:
        volumes, mounts = [], []
        for item in self._list(tree):
            if isinstance(item, Pairs):
                mounts.append(escape(self._mount(item)))
            else:
                volumes.append(escape(self._volume(self._text(item), item.line)))
        return {"volumes": tuple(volumes), "mounts": tuple(mounts)}

    def _volume(self, text: str, line: int) -> str:
        if not text.startswith("/"):
            hint = "write the whole path: a named volume has the project's name in front, and a relative one the file's folder"
            self.tell("a volume whose source is not in the file", line, text, hint)
        return text

    def _mount(self, item: Pairs) -> str:
        known = ("type", "source", "target", "read_only")
        for key in item.values:
            if key not in known:
                self.tell("a key of a mount that is not read here", item.lines[key], key, did_you_mean(key, known))
        said = {key: self._text(item.values[key]) for key in ("type", "source", "target") if key in item.values}
        if said.get("type") != "bind":
            self.tell("a mount that is no bind mount", item.line, said.get("type"), "bind a folder: type: bind")
        words = [f"{key}={self._volume(value, item.line) if key == 'source' else value}" for key, value in said.items()]
        return ",".join(
            [*words, *(["readonly"] if "read_only" in item.values and self._switch(item.values["read_only"]) else [])]
        )

    def _gpus(self, tree: Tree) -> dict[str, Any]:
        return {"gpus": self._text(tree)} if isinstance(tree, Text) else self._devices(tree)

    def _devices(self, tree: Tree) -> dict[str, Any]:
        """One request for GPUs: all, a count, or ids."""
        items = self._list(tree)
        if len(items) != 1 or not isinstance(items[0], Pairs):
            self.tell("expected one request for devices", tree.line)
            return {}
        (asked,) = items
        assert isinstance(asked, Pairs)
        for key in asked.values:
            if key not in ("driver", "count", "device_ids", "capabilities"):
                self.tell("a key of a device request that is not read here", asked.lines[key], key)
        wanted = (
            [self._text(each) for each in self._list(asked.values["capabilities"])] if "capabilities" in asked.values else ["gpu"]
        )
        driver = self._text(asked.values["driver"]) if "driver" in asked.values else "nvidia"
        if wanted != ["gpu"] or driver != "nvidia":
            self.tell("a request for devices that are no GPUs of NVIDIA", asked.line, f"{driver}: {', '.join(wanted)}")
        if "device_ids" in asked.values:
            return {"gpus": "device=" + ",".join(self._text(each) for each in self._list(asked.values["device_ids"]))}
        return {"gpus": self._text(asked.values["count"]) if "count" in asked.values else "all"}

    def _deploy(self, tree: Tree) -> dict[str, Any]:
        """Of ``deploy`` the limit of memory and the request for GPUs; everything else is told."""
        places: Mapping[str, Callable[[Tree], dict[str, Any]]] = {
            "resources.limits.memory": lambda value: {"memory": escape(self._text(value))},
            "resources.reservations.devices": self._devices,
        }
        fields: dict[str, Any] = {}
        for path, value, line in _leaves(tree, "", set(places)):
            if path in places:
                fields |= places[path](value)
            else:
                self.tell("a key that a lane has no word for", line, f"deploy.{path}")
        return fields

    def _ports(self, service: Pairs, fields: Mapping[str, Any]) -> None:
        if "ports" in service.values and fields.get("network") != "host":
            hint = "set network_mode: host, and have the server listen on the lane's port"
            self.tell("the runner publishes no ports", service.lines["ports"], "ports", hint)


def _leaves(tree: Tree, path: str, stop: set[str]) -> Iterator[tuple[str, Tree, int]]:
    """Every value below a mapping that is none itself, and those of ``stop``."""
    if not isinstance(tree, Pairs) or path in stop:
        yield path, tree, tree.line
        return
    for name, value in tree.values.items():
        yield from _leaves(value, f"{path}.{name}".removeprefix("."), stop)
