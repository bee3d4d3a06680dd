"""The endpoint backend: nothing is started, stopped or reached."""

from pathlib import Path

import pytest

from ledger.backends import registry
from ledger.backends.base import Backend, RankLaunch
from ledger.backends.endpoint import EndpointBackend, EndpointRunning
from ledger.core.errors import BackendError
from ledger.spec.model import Container
from tests.backends.contract import own_children


@pytest.fixture
def backend() -> Backend:
    return registry.get("endpoint")


def launch(tmp_path: Path, *argv: str, container: Container | None = None) -> RankLaunch:
    return RankLaunch(rank=0, node="cloud", host="llm.example.org", argv=argv, log=tmp_path / "0.log", container=container)


def test_it_is_observed_as_not_known_and_left_as_it_was(backend: Backend, tmp_path: Path) -> None:
    before = own_children()
    with backend.start([launch(tmp_path)]) as running:
        assert isinstance(running, EndpointRunning)
        (seen,) = running.observe()
        assert (seen.argv, dict(seen.env), "not known here" in (seen.unseen or "")) == (None, {}, True)
        running.stop()
        running.stop()
        assert running.exits() == []
    assert own_children() == before
    assert list(tmp_path.iterdir()) == []


def test_a_command_or_a_container_is_refused(backend: Backend, tmp_path: Path) -> None:
    for wrong in (launch(tmp_path, "serve"), launch(tmp_path, container=Container())):
        with pytest.raises(BackendError) as caught:
            backend.start([wrong])
        assert caught.value.problems[0].hint or "container" in str(caught.value)


def test_a_node_and_a_port_are_refused_with_one_reason(backend: Backend) -> None:
    with pytest.raises(BackendError) as caught:
        backend.reach("cloud", "llm.example.org")
    assert "not known here" in str(caught.value)
    with pytest.raises(BackendError):
        EndpointBackend().free_port("127.0.0.1")
