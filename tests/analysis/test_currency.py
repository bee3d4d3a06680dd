"""Which receipts still count: every kind of correction, corrections of corrections, conflicts, and a slow reference."""

from hypothesis import given
from hypothesis import strategies as st

from ledger.analysis.currency import UNDOES, CorrectionFact, conflicts, equivalences, in_force, standings, taken_as_one


def fact(digest: str, action: str, *targets: str, to: str | None = None, scope: str | None = None) -> CorrectionFact:
    return CorrectionFact(
        digest=digest, action=action, targets=targets, replacements=(to,) if to else (), reason="r", scope=scope
    )


def struck(*facts: CorrectionFact) -> dict[str, str]:
    return {item.digest: item.action for item in standings(facts)}


def test_what_each_kind_does() -> None:
    found = struck(
        fact("c1", "supersede", "a", to="b"),
        fact("c2", "retract", "c"),
        fact("c3", "concern", "d"),
        fact("c4", "amend", "e"),
        fact("c5", "equivalent", "f", to="g"),
    )
    assert found == {"a": "supersede", "c": "retract", "d": "concern"}


def test_a_reinstated_receipt_counts_again_and_a_reinstatement_can_be_undone() -> None:
    first, second, third = fact("c1", "retract", "a"), fact("c2", "reinstate", "c1"), fact("c3", "retract", "c2")
    assert struck(first) == {"a": "retract"}
    assert struck(first, second) == {}
    assert struck(first, second, third)["a"] == "retract"


def test_a_superseded_correction_has_no_effect() -> None:
    assert struck(fact("c1", "retract", "a"), fact("c2", "supersede", "c1", to="c9")) == {"c1": "supersede"}


def test_a_correction_for_one_use_alone_strikes_nothing() -> None:
    assert struck(fact("c1", "retract", "a", scope="claim:x")) == {}


def test_the_replacement_is_told() -> None:
    (found,) = standings([fact("c1", "supersede", "a", to="b")])
    assert (found.by, found.replacement) == ("c1", "b")


def test_two_ends_for_one_target_are_a_conflict_and_a_third_settles_it() -> None:
    left, right = fact("c1", "supersede", "a", to="b"), fact("c2", "supersede", "a", to="c")
    (found,) = conflicts([left, right])
    assert (found.digest, found.corrections) == ("a", ("c1", "c2"))
    assert conflicts([left, right, fact("c3", "retract", "c1")]) == []


def test_the_same_end_twice_is_no_conflict() -> None:
    assert conflicts([fact("c1", "retract", "a"), fact("c2", "retract", "a")]) == []


def test_an_equivalence_holds_until_it_is_undone_and_for_every_use_or_not_at_all() -> None:
    same = fact("c1", "equivalent", "a", to="b")
    (found,) = equivalences([same, fact("c2", "equivalent", "c", to="d", scope="claim:x"), fact("c3", "retract", "a")])
    assert (found.left, found.right, found.reason) == ("a", "b", "r")
    assert equivalences([same, fact("c4", "retract", "c1")]) == []


PAIRS = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("abcdefgh")), max_size=12)


@given(PAIRS)
def test_what_is_taken_as_one_is_the_closure_of_the_pairs(pairs: list[tuple[str, str]]) -> None:
    """The slow reference: sets that grow until nothing more can be joined."""
    groups = [{name} for pair in pairs for name in pair]
    for left, right in pairs * len(pairs):
        joined = {name for group in groups if left in group or right in group for name in group} | {left, right}
        groups = [group for group in groups if not group & joined] + [joined]
    assert taken_as_one(pairs) == {name: min(group) for group in groups for name in group}


def test_a_forged_cycle_ends() -> None:
    assert in_force([fact("c1", "retract", "c2"), fact("c2", "retract", "c1")]) is not None


@st.composite
def graphs(draw: st.DrawFn) -> list[CorrectionFact]:
    """Corrections of receipts and of earlier corrections, as digests allow: nothing names what comes after it."""
    found: list[CorrectionFact] = []
    for number in range(draw(st.integers(0, 14))):
        known = ["r0", "r1", "r2", *(item.digest for item in found)]
        action = draw(st.sampled_from(["supersede", "retract", "reinstate", "amend", "concern", "equivalent"]))
        found.append(fact(f"c{number}", action, draw(st.sampled_from(known)), to="x" if action == "supersede" else None))
    return draw(st.permutations(found))


def force_by_definition(corrections: list[CorrectionFact]) -> set[str]:
    """The slow reference: settle the newest first, since only a later one can undo an earlier one."""
    force: dict[str, bool] = {}
    for item in sorted(corrections, key=lambda fact: -int(fact.digest[1:])):
        undoers = [other for other in corrections if other.action in UNDOES and item.digest in other.targets]
        force[item.digest] = not any(force[other.digest] for other in undoers)
    return {digest for digest, holds in force.items() if holds}


@given(graphs())
def test_in_force_is_what_the_definition_says(corrections: list[CorrectionFact]) -> None:
    assert {item.digest for item in in_force(corrections)} == force_by_definition(corrections)
