"""What a site says of many nodes: placement, each node's variables, and the pause."""

from pathlib import Path

import pytest

from ledger.core.errors import SpecError
from ledger.spec.load import load_site, load_spec
from ledger.spec.plan import BootPlan, launch, make_plan

SPEC = """
ledger = 1
name = "many"
question = "does it run?"
[lanes.C]
engine = "e"
model = "m"
nodes = 2
command = ["serve", "--node-rank", "${rank}", "--master-addr", "${head.ip}", "--host", "${node.ip}"]
env = { IF = "eth0", SAME = "1" }
[[arms]]
id = "C"
lane = "C"
role = "baseline"
[measures.d]
uses = "openai/decode"
"""
SITE = """
ledger = 1
name = "rack"
backend = "ssh"
pause = "5 s"
[[nodes]]
name = "n1"
host = "n1"
ip = "10.0.0.1"
[[nodes]]
name = "n2"
host = "n2"
ip = "10.0.0.2"
env = { IF = "eth2-${node.name}" }
[[nodes]]
name = "n3"
host = "n3"
ip = "10.0.0.3"
"""


def plan(tmp_path: Path, site: str) -> BootPlan:
    (tmp_path / "spec.toml").write_text(SPEC)
    (tmp_path / "site.toml").write_text(SITE + site)
    return make_plan(load_spec(tmp_path / "spec.toml"), load_site(tmp_path / "site.toml")).boots[0]


def test_ranks_take_their_node_its_address_and_its_variables(tmp_path: Path) -> None:
    boot = plan(tmp_path, '[placement]\nC = ["n3", "n2"]\n')
    head, worker = launch(boot, {})
    assert head.argv[1:] == ("--node-rank", "0", "--master-addr", "10.0.0.3", "--host", "10.0.0.3")
    assert worker.argv[1:] == ("--node-rank", "1", "--master-addr", "10.0.0.3", "--host", "10.0.0.2")
    assert (head.env, worker.env) == ({"IF": "eth0", "SAME": "1"}, {"IF": "eth2-n2", "SAME": "1"})
    assert boot.pause_s == 5.0


def test_without_a_placement_a_lane_takes_the_nodes_in_their_order(tmp_path: Path) -> None:
    assert [rank.node.name for rank in plan(tmp_path, "").ranks] == ["n1", "n2"]


@pytest.mark.parametrize(
    ("site", "told"),
    [
        ('[placement]\nC = ["n3", "n4"]\n', "unknown node"),
        ('[placement]\nC = ["n3", "n3"]\n', "a node that stands twice"),
        ("[placement]\nC = []\n", "a lane on no node"),
        ('[placement]\nC = ["n1"]\n', "needs 2 nodes, and site 'rack' has 1 for it"),
    ],
)
def test_a_wrong_placement_is_told(tmp_path: Path, site: str, told: str) -> None:
    with pytest.raises(SpecError) as caught:
        plan(tmp_path, site)
    assert told in str(caught.value)
