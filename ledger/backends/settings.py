"""A lane's container settings as the Docker Engine API takes them.

What it does: turns the words of ``docker run`` into the arguments of the Docker SDK. What it does not do: speak to an engine.
Rules kept: what the engine would not be told is refused, never left out; a restart policy other than ``no`` is refused, since a
rank that ends, ends the boot.
"""

from collections.abc import Mapping
from typing import Any

from docker.types import DeviceRequest, Mount, Ulimit

from ledger.core.errors import BackendError, Problem
from ledger.spec.model import Container

# fields whose words the engine takes as they are: field of Container -> argument
PLAIN: Mapping[str, str] = {
    "network": "network_mode",
    "ipc": "ipc_mode",
    "pid": "pid_mode",
    "hostname": "hostname",
    "user": "user",
    "workdir": "working_dir",
    "entrypoint": "entrypoint",
    "runtime": "runtime",
    "shm_size": "shm_size",
    "memory": "mem_limit",
    "memory_swap": "memswap_limit",
    "cpuset_cpus": "cpuset_cpus",
}
LISTS: Mapping[str, str] = {
    "devices": "devices",
    "cap_add": "cap_add",
    "cap_drop": "cap_drop",
    "security_opt": "security_opt",
    "device_cgroup_rules": "device_cgroup_rules",
    "group_add": "group_add",
    "volumes": "volumes",
}
MOUNT_KEYS: Mapping[str, str] = {"src": "source", "dst": "target", "destination": "target", "ro": "readonly"}


def engine_settings(container: Container) -> dict[str, Any]:
    """The arguments of ``containers.create``.

    Raises:
        BackendError: a word that cannot be said to the engine.
    """
    found: dict[str, Any] = {PLAIN[key]: value for key in PLAIN if (value := getattr(container, key)) is not None}
    found |= {LISTS[key]: list(value) for key in LISTS if (value := getattr(container, key))}
    found |= {"privileged": True} if container.privileged else {}
    found |= {"init": True} if container.init else {}
    found |= {"ulimits": [_ulimit(name, text) for name, text in container.ulimits.items()]} if container.ulimits else {}
    found |= {"mounts": [_mount(text) for text in container.mounts]} if container.mounts else {}
    found |= {"device_requests": [_gpus(container.gpus)]} if container.gpus else {}
    if container.restart not in (None, "no"):
        hint = 'a rank that ends, ends the boot: restart = "no"'
        raise BackendError(
            Problem(what="a restart policy under which a rank would come back", value=container.restart, hint=hint)
        )
    return found


def _ulimit(name: str, text: str) -> Ulimit:
    soft, _, hard = text.partition(":")
    try:
        return Ulimit(name=name, soft=int(soft), hard=int(hard or soft))
    except ValueError as error:
        raise BackendError(Problem(what=f"the limit {name} is no number", value=text, hint='as in "-1:-1"')) from error


def _mount(text: str) -> Mount:
    """``type=bind,source=…,target=…`` and the options of a bind mount."""
    pairs = [word.partition("=") for word in text.split(",")]
    said = {MOUNT_KEYS.get(name, name): value if equals else "true" for name, equals, value in pairs}
    kind, read_only = said.pop("type", "volume"), said.pop("readonly", "false")
    source, target, propagation = said.pop("source", None), said.pop("target", None), said.pop("bind-propagation", None)
    if said or target is None or read_only not in ("true", "false", "1", "0"):
        unknown = ", ".join(said) or ("no target" if target is None else f"readonly={read_only}")
        raise BackendError(Problem(what=f"a mount that is not understood: {unknown}", value=text))
    return Mount(target=target, source=source, type=kind, read_only=read_only in ("true", "1"), propagation=propagation)


def _gpus(text: str) -> DeviceRequest:
    """``all``, a count, or ``device=0,1``, as the client of Docker sends it."""
    if text.startswith("device="):
        return DeviceRequest(device_ids=text.removeprefix("device=").strip('"').split(","), capabilities=[["gpu"]])
    if text != "all" and not text.isdigit():
        raise BackendError(Problem(what="no such choice of GPUs", value=text, hint='"all", a count, or "device=0,1"'))
    return DeviceRequest(count=-1 if text == "all" else int(text), capabilities=[["gpu"]])
