"""Whether the live server runs what was resolved: a dropped override is never silent."""

from ledger.backends.base import Observed
from ledger.receipt.model import RankConfig
from ledger.run.agreement import AGREES, DIFFERS, UNVERIFIED, agree, conceal, observed_tree
from ledger.run.secrets import Concealer
from ledger.run.serving import Served

RANK = RankConfig(rank=0, node="n", argv=("serve", "--x", "1"), env={"A": "1", "HF_TOKEN": "hunter2"})
HIDE = Concealer(key=b"k" * 32, places={})


def seen(argv: tuple[str, ...] | None = RANK.argv, env: dict[str, str] | None = None, unseen: str | None = None) -> Observed:
    return Observed(rank=0, argv=argv, env=dict(RANK.env) if env is None else env, unseen=unseen)


def test_the_same_argv_and_env_agree() -> None:
    assert agree([RANK], [seen()]).state == AGREES


def test_a_dropped_variable_is_a_difference_that_names_it() -> None:
    found = agree([RANK], [seen(env={"HF_TOKEN": "hunter2"})])
    assert found.state == DIFFERS
    assert [(item.field, item.resolved, item.observed) for item in found.differences] == [("rank 0 env.A", "1", None)]


def test_two_variables_glued_together_are_a_difference() -> None:
    found = agree([RANK], [seen(env={"A": "1B=2", "HF_TOKEN": "hunter2"})])
    assert found.differences[0].observed == "1B=2"


def test_a_changed_or_missing_word_is_named_by_its_place() -> None:
    assert agree([RANK], [seen(argv=("serve", "--x", "2"))]).differences[0].field == "rank 0 argv[2]"
    assert agree([RANK], [seen(argv=("serve", "--x"))]).differences[0].observed is None


def test_what_was_not_read_back_is_unverified_not_agreed() -> None:
    assert agree([RANK], []).state == UNVERIFIED
    assert agree([RANK], [seen(argv=None, unseen="process 7 has ended")]).unseen == ("rank 0: process 7 has ended",)


def test_no_secret_is_left_in_what_is_recorded() -> None:
    found = conceal(agree([RANK], [seen(env={"A": "1", "HF_TOKEN": "other"})]), HIDE)
    assert found.state == DIFFERS
    assert "hunter2" not in str(found)
    assert "hunter2" not in str(observed_tree([seen()], {"api_key": "hunter2"}, HIDE))


def served(argv: tuple[str, ...] = ("python", "-m", "serve", "--x=1"), env: dict[str, str] | None = None) -> Served:
    return Served(rank=0, argv=argv, env=dict(RANK.env) if env is None else env)


def test_a_process_below_that_has_all_of_it_agrees() -> None:
    assert agree([RANK], [seen()], [served()]).state == AGREES
    assert agree([RANK], [seen()], [served(argv=("serve", "--y", "--x", "1"))]).state == AGREES


def test_a_variable_that_does_not_reach_the_process_that_serves_is_a_difference() -> None:
    found = agree([RANK], [seen()], [served(env={"HF_TOKEN": "hunter2"})])
    assert found.state == DIFFERS
    assert [item.field for item in found.differences] == ["rank 0 (the process that serves) env.A"]


def test_an_argument_that_it_does_not_show_is_unverified() -> None:
    found = agree([RANK], [seen()], [served(argv=("serve", "--x", "2"))])
    assert (found.state, found.unseen) == (UNVERIFIED, ("rank 0: the process that serves does not show --x 1",))
    lost = agree([RANK], [seen()], [Served(rank=0, unseen="it could not be read")])
    assert (lost.state, lost.unseen) == (UNVERIFIED, ("rank 0: it could not be read",))


def test_what_serves_is_recorded_without_its_secrets() -> None:
    tree = observed_tree([seen()], {}, HIDE, [served(argv=("serve", "--api-key", "hunter2"))])
    assert tree["serving"][0]["argv"][:2] == ["serve", "--api-key"]
    assert "hunter2" not in str(tree)
