"""Real ssh hosts for tests: an sshd on the loopback, and a rack of network namespaces with one sshd each.

Programs of OpenSSH and, for the rack, root are needed; a machine without them skips with the reason.
"""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import frozen

SSHD = shutil.which("sshd") or shutil.which("/usr/sbin/sshd")
NET = "10.231.9"
needs_sshd = pytest.mark.skipif(SSHD is None, reason="needs sshd (apt-get install openssh-server)")
needs_rack = pytest.mark.skipif(
    SSHD is None or os.geteuid() != 0 or shutil.which("ip") is None,
    reason="needs sshd, iproute2 and root, for network namespaces",
)
# How the client is called: as the user's own ssh, with a configuration of the test.
CLIENT = """Host {name}
  HostName {address}
  Port {port}
  User {user}
  IdentityFile {folder}/id
  IdentitiesOnly yes
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
"""
SERVER = """Port {port}
ListenAddress {address}
HostKey {folder}/hostkey
AuthorizedKeysFile {folder}/id.pub
PidFile {folder}/{name}.pid
UsePAM no
PasswordAuthentication no
StrictModes no
PermitRootLogin yes
"""


@frozen(kw_only=True)
class Host:
    """One sshd: its name for ``ssh``, and the words that go before it (its namespace)."""

    name: str
    address: str
    folder: Path
    before: tuple[str, ...] = ()
    port: int = 22

    def up(self) -> None:
        """Start the sshd."""
        config = self.folder / f"{self.name}.conf"
        config.write_text(SERVER.format(port=self.port, address=self.address, folder=self.folder, name=self.name))
        assert SSHD is not None
        subprocess.run([*self.before, SSHD, "-f", str(config), "-E", str(self.folder / f"{self.name}.log")], check=True)

    def down(self) -> None:
        """End the sshd, but no connection that it made."""
        pid = self.folder / f"{self.name}.pid"
        if pid.exists():
            subprocess.run(["kill", pid.read_text().strip()], check=False)


def keys(folder: Path, hosts: Sequence[Host]) -> tuple[str, ...]:
    """Make the keys and the client's configuration; the ssh client's words."""
    Path("/run/sshd").mkdir(exist_ok=True)
    for name in ("hostkey", "id"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    user = os.environ.get("USER") or "root"
    config = "".join(CLIENT.format(name=h.name, address=h.address, port=h.port, user=user, folder=folder) for h in hosts)
    (folder / "config").write_text(config)
    return ("ssh", "-F", str(folder / "config"))


@frozen(kw_only=True)
class Rack:
    """Several ssh hosts and the client's words that reach them."""

    ssh: tuple[str, ...]
    hosts: tuple[Host, ...]

    def cut(self, number: int) -> None:
        """Take the host off the net."""
        subprocess.run(["ip", "link", "set", _veth(number), "down"], check=True)

    def mend(self, number: int) -> None:
        """Put it on the net again."""
        subprocess.run(["ip", "link", "set", _veth(number), "up"], check=True)


def _veth(number: int) -> str:
    return f"lgv{os.getpid() % 10000}-{number}"


def free_port() -> int:
    """A port of the loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def loopback(folder: Path, port: int) -> Iterator[tuple[str, ...]]:
    """One sshd at the loopback, called ``localhost``; gives the client's words."""
    host = Host(name="localhost", address="127.0.0.1", folder=folder, port=port)
    ssh = keys(folder, [host])
    host.up()
    try:
        yield ssh
    finally:
        host.down()


@contextmanager
def rack(folder: Path, size: int) -> Iterator[Rack]:
    """``size`` hosts ``node0``…, each a network namespace with an address and an sshd."""
    own = os.getpid() % 10000
    bridge = f"lgbr{own}"
    spaces = [f"lgns{own}-{number}" for number in range(size)]
    hosts = tuple(
        Host(name=f"node{number}", address=f"{NET}.{10 + number}", folder=folder, before=("ip", "netns", "exec", space))
        for number, space in enumerate(spaces)
    )
    ssh = keys(folder, hosts)
    try:
        _ip(f"link add {bridge} type bridge", f"addr add {NET}.1/24 dev {bridge}", f"link set {bridge} up")
        for number, (space, host) in enumerate(zip(spaces, hosts, strict=True)):
            _ip(f"netns add {space}", f"link add {_veth(number)} type veth peer name eth0 netns {space}")
            _ip(f"link set {_veth(number)} master {bridge} up", f"-n {space} addr add {host.address}/24 dev eth0")
            _ip(f"-n {space} link set eth0 up", f"-n {space} link set lo up")
            host.up()
        yield Rack(ssh=ssh, hosts=hosts)
    finally:
        for space, host in zip(spaces, hosts, strict=True):
            host.down()
            subprocess.run(["ip", "netns", "del", space], check=False)
        subprocess.run(["ip", "link", "del", bridge], check=False)


def _ip(*commands: str) -> None:
    for command in commands:
        subprocess.run(["ip", *command.split()], check=True)
