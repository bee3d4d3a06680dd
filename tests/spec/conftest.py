"""Small specs and sites, read as from files."""

from collections.abc import Callable

import pytest

from ledger.spec.load import Loaded, read_site, read_spec
from ledger.spec.model import Site, Spec

SPEC = """\
ledger = 1
name = "exp"
question = "Which is faster?"

[lanes.L]
engine = "e"
model = "m"
command = ["${python}", "--port", "${port}", "--name", "${lane.served_model}", "--rank", "${rank}", "--head", "${head.ip}"]
env = { A = "$$1", B = "${node.name}" }

[[arms]]
id = "base"
lane = "L"
role = "control"

[measures.decode]
uses = "openai/decode"
levels = [1, 6]
"""
SITE = """\
ledger = 1
name = "here"

[[nodes]]
name = "here"
"""
STAND_IN = """
[stand_ins.L]
why = "no such engine here"
engine = "small"
model = "tiny"
command = ["small", "--slots", "6"]

[stand_ins.L.arms]
"""

ReadBoth = Callable[..., tuple[Loaded[Spec], Loaded[Site]]]


@pytest.fixture
def both() -> ReadBoth:
    """A small spec and a site, each with more TOML behind it, and with one text in the spec replaced."""

    def read(more: str = "", site: str = "", *, replace: tuple[str, str] = ("", "")) -> tuple[Loaded[Spec], Loaded[Site]]:
        assert replace[0] in SPEC
        text = (SPEC.replace(*replace) if replace[0] else SPEC) + more
        return read_spec(text.encode(), "spec.toml"), read_site((SITE + site).encode(), "site.toml")

    return read


def arm(name: str, change: str = "", *, base: str = "base", more: str = "") -> str:
    """One more arm in TOML."""
    return f'\n[[arms]]\nid = "{name}"\nbase = "{base}"\n{more}\n' + (f"change = {{ {change} }}\n" if change else "")
