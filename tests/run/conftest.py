"""Specs for sessions on the small server: real processes, real sockets, no engine."""

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from ledger.store.ledger import Ledger

SERVER = Path(__file__).with_name("small_server.py")
SITE = """\
ledger = 1
name = "here"

[[nodes]]
name = "here"
"""

MakeSpec = Callable[..., Path]


@pytest.fixture
def make_spec(ledger: Ledger) -> MakeSpec:
    """Write a spec with one lane on the small server; ``arms`` and ``more`` are TOML, ``server`` its arguments."""

    def make(
        *, server: str = "", arms: str = "", more: str = "", ready: str = "10 s", env: str = "", levels: str = "[1, 2]"
    ) -> Path:
        words = ["${python}", str(SERVER), "--port", "${port}", "--tag", ledger.root.parent.name, *server.split()]
        command = ", ".join(f'"{word}"' for word in words)
        text = f"""\
ledger = 1
name = "small"
question = "Does it run?"
site = "site.toml"
warmup = 1

[lanes.L]
engine = "small"
model = "none"
ready_within = "{ready}"
command = [{command}]
env = {{ {env} }}

[[arms]]
id = "base"
lane = "L"
role = "control"
"""
        measures = f"""
[measures.decode]
uses = "openai/decode"
levels = {levels}
categories = ["code", "math"]
max_tokens = 8
"""
        path = ledger.root / "small.toml"
        path.write_text(text + textwrap.dedent(arms) + measures + textwrap.dedent(more))
        (ledger.root / "site.toml").write_text(SITE)
        return path

    return make
