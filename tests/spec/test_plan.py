"""The plan of a spec on a site: which boots, in which order, what each starts, and what the site cannot do."""

from pathlib import Path

import pytest

from ledger.core.errors import SpecError
from ledger.core.words import Evidence
from ledger.spec.interpolate import names
from ledger.spec.load import load_site, load_spec, read_site
from ledger.spec.plan import Plan, launch, lineage, make_plan
from tests.spec.conftest import STAND_IN, ReadBoth, arm

SPECS = Path(__file__).resolve().parents[2] / "specs"
SHIPPED = sorted(path for path in SPECS.glob("*.toml") if path.stem not in {"lanes", "keep"})


def whats(error: pytest.ExceptionInfo[SpecError]) -> list[str]:
    return [problem.what for problem in error.value.problems]


@pytest.mark.parametrize("path", SHIPPED, ids=[path.stem for path in SHIPPED])
def test_every_shipped_spec_has_a_plan_on_its_own_site(path: Path) -> None:
    spec = load_spec(path)
    plan = make_plan(spec, load_site(path.parent / spec.value.site))
    assert len(plan.boots) == sum(arm.boots for arm in spec.value.arms)
    assert [boot.position for boot in plan.boots] == list(range(1, len(plan.boots) + 1))
    values = {"port": "1", "python": "p", **{f"file.{name}": "f" for boot in plan.boots for name in boot.files}}
    assert all("${" not in " ".join(rank.argv) for boot in plan.boots for rank in launch(boot, values))


def test_replicates_go_round_by_round(both: ReadBoth) -> None:
    more = arm("a", 'args = ["--x"]', more="boots = 3") + arm("b", 'args = ["--y"]', more="boots = 2")
    plan = make_plan(*both(more))
    assert [boot.arm.id for boot in plan.boots] == ["base", "a", "b", "a", "b", "a"]


def test_a_control_that_cannot_give_a_verdict_is_told_before_the_run(both: ReadBoth) -> None:
    more = arm("a", 'args = ["--x"]') + arm("b", 'args = ["--y"]') + '[rule]\nmetrics = ["C1"]\n[rule.controls]\nb = "a"\n'
    said = make_plan(*both(more)).remarks
    assert any("b is judged against a, which boots something else than its base base" in each for each in said)
    assert not any("a is judged against" in each for each in said)
    (alone,) = (each for each in make_plan(*both(more), only=["a"]).remarks if "judged" in each)
    assert alone.startswith("a is judged against base, which this run does not boot")


def test_only_narrows_to_known_arms(both: ReadBoth) -> None:
    more = arm("slow", 'args = ["--x"]', more="boots = 2")
    assert [boot.arm.id for boot in make_plan(*both(more), only=["slow"]).boots] == ["slow"] * 2
    with pytest.raises(SpecError, match="did you mean 'slow'"):
        make_plan(*both(more), only=["slo", "slow"])


def test_the_stable_is_final_and_the_volatile_waits_for_the_node(both: ReadBoth) -> None:
    plan = make_plan(*both())
    (rank,) = plan.boots[0].ranks
    assert rank.argv == ("${python}", "--port", "${port}", "--name", "m", "--rank", "0", "--head", "${head.ip}")
    assert rank.env == {"A": "$$1", "B": "${node.name}"}
    (started,) = launch(plan.boots[0], {"python": "/py", "port": "80"})
    assert started.argv == ("/py", "--port", "80", "--name", "m", "--rank", "0", "--head", "127.0.0.1")
    assert started.env == {"A": "$1", "B": "here"}


def test_a_lane_on_two_nodes_has_two_ranks_with_one_head(both: ReadBoth) -> None:
    site = '[[nodes]]\nname = "there"\nip = "10.0.0.2"\n'
    plan = make_plan(*both(site=site, replace=('model = "m"', 'model = "m"\nnodes = 2')))
    boot = plan.boots[0]
    started = launch(boot, {"python": "p", "port": "1"})
    assert [(rank.node.name, rank.argv[6], rank.argv[8], rank.env["B"]) for rank in started] == [
        ("here", "0", "127.0.0.1", "here"),
        ("there", "1", "127.0.0.1", "there"),
    ]
    assert boot.identity["args.--rank"] == "0"
    assert boot.identity["rank.1.args.--rank"] == "1"
    assert "rank.1.args.--head" not in boot.identity
    assert boot.context["node.1"] == "there"


def test_equal_configs_have_equal_identity_and_a_changed_arm_differs_in_one_factor() -> None:
    spec = load_spec(SPECS / "smollm2.toml")
    plan = make_plan(spec, load_site(SPECS / "sites/laptop.toml"))
    first, changed, again = plan.boots[0], plan.boots[1], plan.boots[5]
    assert first.identity == again.identity
    assert {key for key in first.identity if first.identity[key] != changed.identity.get(key)} == {"args.--threads"}


def test_identity_does_not_rest_on_what_only_the_node_knows(both: ReadBoth) -> None:
    spec, here = both()
    _, there = both(site="")
    other = read_site(there.text.replace(b'name = "here"', b'name = "other"').replace(b"[[n", b"[speed]\nboot_s=9\n[[n"), "o")
    assert make_plan(spec, here).boots[0].identity == make_plan(spec, other).boots[0].identity


def test_changes_add_up_along_the_bases(both: ReadBoth) -> None:
    more = arm("a", 'args = ["--x", "1"]') + arm("b", 'env = { C = "2" }', base="a") + arm("c", 'drop_env = ["A"]', base="b")
    plan = make_plan(*both(more))
    boot = plan.boots[-1]
    assert boot.ranks[0].argv[-2:] == ("--x", "1")
    assert boot.ranks[0].env == {"B": "${node.name}", "C": "2"}
    assert [each.id for each in lineage(boot.arm, plan.spec)] == ["base", "a", "b", "c"]


def test_what_a_change_says_in_words_is_identity_for_all_that_rests_on_it(both: ReadBoth) -> None:
    more = arm("overlay", 'about = "an overlay"') + arm("more", 'args = ["--x"], about = "and a flag"', base="overlay")
    base, overlay, last = make_plan(*both(more)).boots
    assert ("change" in base.identity, overlay.identity["change"], last.identity["change"]) == (False, "an overlay", "an overlay")


def test_what_was_requested_is_plain_and_holds_nothing_empty(both: ReadBoth) -> None:
    boot = make_plan(*both(arm("a", 'args = ["--x"]'), STAND_IN + 'a = { args = ["--slots", "1"] }')).boots[1]
    assert set(boot.requested) == {"lane", "arms", "site", "stand_in"}
    assert boot.requested["arms"][1]["change"] == {"args": ("--x",)}  # type: ignore[index]  # plain data
    assert boot.requested["stand_in"]["changes"] == {"a": {"args": ("--slots", "1")}}  # type: ignore[index]  # plain data


def stood_in(both: ReadBoth, changes: str, site: str = "") -> Plan:
    return make_plan(*both(arm("a", 'args = ["--x", "1"]'), STAND_IN + changes + site))


def test_a_stand_in_is_started_with_its_own_change_and_says_so(both: ReadBoth) -> None:
    base, changed = stood_in(both, 'a = { args = ["--slots", "1"] }').boots
    assert {base.evidence, changed.evidence} == {Evidence.STAND_IN}
    assert (base.declared.engine, base.lane.engine) == ("e", "small")
    assert base.ranks[0].argv == ("small", "--slots", "6")
    assert changed.ranks[0].argv == ("small", "--slots", "1")
    assert base.provenance["stand_in.why"] == "no such engine here"


def test_a_stand_in_is_scaled_and_a_lane_is_not(both: ReadBoth) -> None:
    scale = "\n[scale.decode]\nlevels = [1]\n"
    assert stood_in(both, 'a = { args = ["--slots", "1"] }', scale).boots[0].measures[0].parameters == {"levels": [1]}
    assert make_plan(*both(site=scale)).boots[0].measures[0].parameters == {"levels": [1, 6]}


@pytest.mark.parametrize(
    ("changes", "remark"),
    [
        ('a = { args = ["--slots", "1"] }', "stands in for lane L: figures are marked stand-in"),
        ('a = { about = "nothing to do here" }', "the stand-in starts a as their base"),
    ],
)
def test_what_a_person_should_know_of_a_stand_in(both: ReadBoth, changes: str, remark: str) -> None:
    assert any(remark in said for said in stood_in(both, changes).remarks)


def test_one_boot_for_each_arm_is_remarked_when_a_rule_judges(both: ReadBoth) -> None:
    rule = '\n[rule]\nmetrics = ["C1"]\n'
    assert any("no noise band" in said for said in make_plan(*both(rule)).remarks)
    assert make_plan(*both()).remarks == ()
    assert make_plan(*both(rule, replace=('id = "base"', 'id = "base"\nboots = 2'))).remarks == ()


def test_a_stand_in_for_a_lane_of_nearly_that_name_is_remarked(both: ReadBoth) -> None:
    site = STAND_IN.replace("stand_ins.L", "stand_ins.l").replace("\n[stand_ins.l.arms]\n", "")
    assert make_plan(*both(site=site)).remarks == (
        "site 'here' stands in for lane 'l', which this spec does not have; is 'L' meant?",
    )


def test_an_arm_that_the_stand_in_does_not_have_is_told_with_the_way_out(both: ReadBoth) -> None:
    with pytest.raises(SpecError) as caught:
        stood_in(both, "")
    (problem,) = caught.value.problems
    assert "no counterpart of this arm" in problem.what
    assert str(problem.place) == "spec.toml:20 [arms[1]]"
    assert problem.hint is not None
    assert "[stand_ins.L.arms.a]" in problem.hint


def test_all_that_a_site_cannot_do_is_told_at_once(both: ReadBoth) -> None:
    more = '[lanes.M]\nengine = "e"\nmodel = "m"\nnodes = 3\n\n[[arms]]\nid = "m"\nlane = "M"\nrole = "control"\n'
    more += arm("drops", 'drop_args = ["--nope"], drop_env = ["A"]', more='several = "they go together"')
    more += arm("same", 'args = ["--port", "${port}"]')
    with pytest.raises(SpecError) as caught:
        make_plan(*both(more, "\n[scale.decod]\nlevels = [1]\n"))
    assert whats(caught) == [
        "lane 'M' has no command, and site 'here' has no stand-in for it",
        "lane 'M' needs 3 nodes, and site 'here' has 1",
        "the change drops what is not there",
        "arm 'same' starts with the same command and environment as its base",
        "unknown measure",
    ]
    assert all(problem.place is not None and problem.place.line for problem in caught.value.problems)


def test_arms_that_are_not_asked_for_need_no_node(both: ReadBoth) -> None:
    more = '[lanes.M]\nengine = "e"\nmodel = "m"\n\n[[arms]]\nid = "m"\nlane = "M"\nrole = "control"\n'
    assert len(make_plan(*both(more), only=["base"]).boots) == 1


def test_a_drop_in_a_stand_in_is_told_in_the_site(both: ReadBoth) -> None:
    with pytest.raises(SpecError) as caught:
        stood_in(both, 'a = { drop_args = ["--nope"] }')
    assert [str(problem.place) for problem in caught.value.problems] == ["site.toml:14 [stand_ins.L.arms.a]"]


def test_placeholders_that_are_left_are_those_that_only_a_node_knows() -> None:
    plan = make_plan(load_spec(SPECS / "round2.toml"), load_site(SPECS / "sites/laptop.toml"))
    left = {name for boot in plan.boots for rank in boot.ranks for word in rank.argv for name in names(word)}
    assert left == {"python", "file.weights", "node.ip", "port"}
