"""Lines of bases and the cycles that have none, against a walk that takes no shortcut."""

from hypothesis import given
from hypothesis import strategies as st

from ledger.spec.bases import cycles, lines
from ledger.spec.model import Arm

IDS = [f"a{number}" for number in range(8)]
BASES = st.dictionaries(st.sampled_from(IDS), st.none() | st.sampled_from([*IDS, "nowhere"]), max_size=8)


def arms(bases: dict[str, str | None]) -> list[Arm]:
    return [Arm(id=name, lane=None if base else "L", base=base) for name, base in bases.items()]


def walk(name: str, bases: dict[str, str | None]) -> list[str] | None:
    """The ids from the first base down to ``name``; None when they do not end."""
    way = [name]
    while (base := bases[way[0]]) is not None:
        if base not in bases or base in way:
            return None
        way.insert(0, base)
    return way


@given(BASES)
def test_a_line_is_the_walk_from_base_to_base(bases: dict[str, str | None]) -> None:
    found = {name: [arm.id for arm in line] for name, line in lines(arms(bases)).items()}
    assert found == {name: way for name in bases if (way := walk(name, bases)) is not None}


@given(BASES)
def test_a_cycle_comes_back_to_itself_and_is_told_once(bases: dict[str, str | None]) -> None:
    found = cycles(arms(bases))
    order = list(bases)
    for ring in found:
        assert [bases[name] for name in ring] == [*ring[1:], ring[0]]
        assert order.index(ring[0]) == min(order.index(name) for name in ring)
    in_one = [name for ring in found for name in ring]
    assert len(in_one) == len(set(in_one))
    no_line = set(bases) - set(lines(arms(bases)))
    lost = {name for name in bases if ends_nowhere(name, bases)}
    assert (no_line - lost == set()) == (not found)


def ends_nowhere(name: str, bases: dict[str, str | None]) -> bool:
    """Whether the walk from ``name`` reaches an arm that is not there."""
    seen: set[str] = set()
    at: str | None = name
    while at in bases and at not in seen:
        seen.add(at)
        at = bases[at]
    return at is not None and at not in bases


def test_a_thousand_bases_are_walked_once_each() -> None:
    chain = arms({f"a{number}": f"a{number - 1}" if number else None for number in reversed(range(1000))})
    found = lines(chain)
    assert len(found["a999"]) == 1000
    ring = arms({f"a{number}": f"a{(number + 1) % 1000}" for number in range(1000)})
    assert (lines(ring), len(cycles(ring)[0])) == ({}, 1000)


def test_of_two_arms_with_one_id_the_first_counts() -> None:
    first, second = Arm(id="a", lane="L"), Arm(id="a", base="a")
    assert lines([first, second]) == {"a": (first,)}
