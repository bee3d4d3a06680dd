"""Configurations that a correction says are the same: pooled, compared and bounded by one noise, until it is undone."""

from datetime import timedelta

import pytest

from ledger.analysis.compare import Comparability, compare
from ledger.core.words import CorrectionKind
from ledger.query.alike import why_alike
from ledger.query.ask import Answer, answer
from ledger.query.index import open_index
from ledger.query.ingest import Connection
from ledger.query.language import parse
from ledger.query.sides import arm_side, noise
from ledger.receipt.model import Correction
from ledger.store.ledger import Ledger
from tests.builder import BEGINNING, Builder


def boot(build: Builder, image: str, value: float) -> str:
    made = build.boot("a", identity={"image": image})
    build.trial(made, "a", {"C6": value})
    return made


def same(build: Builder, left: str, right: str, reason: str = "a rebuild of the same source") -> str:
    return build.writer.record(
        Correction(action=CorrectionKind.EQUIVALENT, targets=(left,), replacements=(right,), reason=reason, by="A Tester")
    )


def ask(connection: Connection, question: str) -> Answer:
    return answer(connection, parse(question))


def test_equivalent_configurations_are_not_mixed_and_differ_again_when_it_is_undone(ledger: Ledger, build: Builder) -> None:
    one, two = boot(build, "i1", 10.0), boot(build, "i2", 20.0)
    with open_index(ledger) as connection:
        assert ask(connection, "C6 by arm").rows[0].marks == ("mixed config (2)",)
        assert ask(connection, "C6 by arm not:mixed").rows == ()
        assert why_alike(connection, [one], [two]) is None
    made = same(build, one, two)
    with open_index(ledger) as connection:
        assert ask(connection, "C6 by arm").rows[0].marks == ()
        assert len(ask(connection, "C6 by arm not:mixed").rows) == 1
        assert why_alike(connection, [one], [two]) == "a rebuild of the same source"
        assert why_alike(connection, [one], [one]) is None
    build.writer.record(Correction(action=CorrectionKind.RETRACT, targets=(made,), reason="it was not", by="A Tester"))
    with open_index(ledger) as connection:
        assert ask(connection, "C6 by arm").rows[0].marks == ("mixed config (2)",)
        assert why_alike(connection, [one], [two]) is None


def test_an_arm_and_its_noise_take_in_every_boot_of_one_configuration(ledger: Ledger, build: Builder) -> None:
    boots = [boot(build, image, value) for image, value in (("i1", 10.0), ("i2", 11.0), ("i3", 12.0), ("i4", 99.0))]
    same(build, boots[0], boots[1])
    same(build, boots[1], boots[2], "the same wheel")
    with open_index(ledger) as connection:
        latest = arm_side(connection, "a")
        assert latest is not None
        assert latest.boots == (boots[3],)
        assert noise(connection, [latest.config], "measured") == {"C6": [[99.0]]}
        assert why_alike(connection, boots[:1], boots[2:3]) == "a rebuild of the same source; the same wheel"
    boots.append(boot(build, "i1", 13.0))
    with open_index(ledger) as connection:
        latest = arm_side(connection, "a")
        assert latest is not None
        assert sorted(latest.boots) == sorted([*boots[:3], boots[4]])
        found = noise(connection, [latest.config, latest.config], "measured")
        assert [sorted(values) for values in found["C6"]] == [[10.0, 11.0, 12.0, 13.0]]


def test_a_comparison_takes_equivalent_sides_for_the_same(ledger: Ledger, build: Builder) -> None:
    for arm, image in (("x", "i1"), ("y", "i2")):
        made = build.boot(arm, identity={"image": image})
        build.trial(made, arm, {"C6": 10.0})
        same(build, made, build.boot(arm, identity={"image": "i3"}))
    with open_index(ledger) as connection:
        left, right = arm_side(connection, "x"), arm_side(connection, "y")
        assert left is not None
        assert right is not None
        alike = why_alike(connection, left.boots, right.boots)
        found = compare(left.factors, right.factors, equivalent=alike)
        assert found.verdict is Comparability.SAME
        assert ask(connection, "C6 of x / C6 of y").rows[0].marks == ("n=1 boot",)


def test_as_of_a_day_before_an_equivalence_the_configurations_differ(ledger: Ledger) -> None:
    first = Builder(ledger, token="0001", when=BEGINNING)
    one, two = boot(first, "i1", 10.0), boot(first, "i2", 20.0)
    same(Builder(ledger, token="0002", when=BEGINNING + timedelta(days=2)), one, two)
    with open_index(ledger) as connection:
        assert ask(connection, "C6 by arm").rows[0].marks == ()
        assert ask(connection, "C6 by arm as-of:2026-10-19").rows[0].marks == ("mixed config (2)",)


@pytest.mark.parametrize("view", ["metrics", "cells", "trials"])
def test_the_trials_of_a_struck_boot_do_not_count_in_the_views_either(ledger: Ledger, build: Builder, view: str) -> None:
    gone, _ = boot(build, "i1", 10.0), boot(build, "i1", 20.0)
    build.writer.record(Correction(action=CorrectionKind.RETRACT, targets=(gone,), reason="cold", by="A Tester"))
    where = "" if view == "cells" else "WHERE struck_by IS NULL"
    with open_index(ledger) as connection:
        rows = connection.execute(f"SELECT DISTINCT boot FROM {view} {where}").fetchall()
        latest = arm_side(connection, "a")
        assert latest is not None
        assert noise(connection, [latest.config], "measured") == {"C6": [[20.0]]}
    assert len(rows) == 1
    assert rows[0][0] != gone
