"""``ledger spec``: a command line as a lane."""

import io
import json
import tomllib
from pathlib import Path

import pytest

from ledger.cli.main import run

LAUNCH = Path(__file__).resolve().parents[1] / "golden" / "launch"


def test_a_docker_run_in_a_file_is_a_lane(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["spec", "from-docker-run", f"@{LAUNCH / 'vllm.txt'}", "--lane", "C", "--engine", "vLLM"]) == 0
    lane = tomllib.loads(capsys.readouterr().out)["lanes"]["C"]
    assert (lane["engine"], lane["model"], lane["port"]) == ("vLLM", "deepseek-v4.1-flash-spark-vllm", 8002)
    assert lane["container"]["memory"] == "112g"
    assert lane["env"]["NCCL_PROTO"] == "^LL128"


def test_json_and_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("docker run ghcr.io/x/engine:1 serve"))
    assert run(["spec", "from-docker-run", "-", "--model", "m", "--json"]) == 0
    lane = {"engine": "engine", "model": "m", "image": "ghcr.io/x/engine:1", "command": ["serve"], "container": {}}
    assert json.loads(capsys.readouterr().out) == {"lanes": {"A": lane}}


@pytest.mark.parametrize("text", ["docker run --nope x", "@/nowhere", "docker run image:1 serve"])
def test_what_cannot_be_a_lane_is_a_usage_error(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["spec", "from-docker-run", text]) == 2
    assert capsys.readouterr().err


def test_a_service_of_a_compose_file_is_a_lane(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "compose.yaml"
    file.write_text("services:\n  llm:\n    image: x/vllm:1\n    tty: true\n    command: serve --port ${PORT}\n")
    assert run(["spec", "from-compose", str(file), "--model", "m", "--var", "PORT=8002"]) == 0
    said = capsys.readouterr()
    lane = tomllib.loads(said.out)["lanes"]["A"]
    assert (lane["engine"], lane["image"], lane["command"], lane["port"]) == (
        "vllm",
        "x/vllm:1",
        ["serve", "--port", "8002"],
        8002,
    )
    assert "compose.yaml:4: tty is not taken over" in said.err
    for words in (["--var", "PORT"], ["--service", "other", "--var", "PORT=1"], []):
        assert run(["spec", "from-compose", str(file), "--model", "m", *words]) == 2
    assert run(["spec", "from-docker-run", "docker run x", "--service", "a"]) == 2
