"""Backends by name: the built-in ones, and those of the entry point ``ledger.backends``.

What it does: finds one by the name that a site says. What it does not do: start anything. Rules kept: those of
:mod:`ledger.core.plugins`.
"""

from ledger.backends.base import Backend
from ledger.backends.endpoint import EndpointBackend
from ledger.backends.process import ProcessBackend
from ledger.backends.ssh import SshBackend
from ledger.core.plugins import Plugins

BACKENDS: Plugins[Backend] = Plugins(
    kind=Backend,  # type: ignore[type-abstract]  # only asked whether something is one
    group="ledger.backends",
    called="backend",
    built_in={each.name: each for each in (ProcessBackend, SshBackend, EndpointBackend)},
)
names = BACKENDS.names
get = BACKENDS.get
