"""The two sides of a diff, from the index.

What it does: finds what is compared (a boot, a trial, or an arm with all its boots of one configuration), its factors and its
boot-level figures, and the noise of its fingerprint over all boots that the ledger holds. What it does not do: compare
(``analysis``). Rules kept: figures that a prefix cache answered never stand beside cold ones; what is struck is no part of an
arm or of a noise band.
"""

from collections.abc import Mapping, Sequence

import duckdb
from attrs import evolve, field, frozen

from ledger.analysis.movement import Sample
from ledger.core.errors import NotFoundError, Problem
from ledger.core.words import Better
from ledger.receipt.model import Factors

_ALIKE = "LEFT JOIN same_config e ON e.fingerprint = b.fingerprint"
_CONFIG = "coalesce(e.taken_as, b.fingerprint)"


@frozen(kw_only=True)
class SideOf:
    """One side: the receipt that was named (an arm's latest boot), the boots it stands for, its factors and figures.

    ``config`` is its fingerprint, or the one that stands for all that corrections call the same.
    """

    digest: str
    kind: str
    boots: tuple[str, ...]
    label: str
    evidence: str
    fingerprint: str
    config: str
    agreement: str
    struck: str | None
    factors: Factors
    samples: Mapping[str, Sample]
    definitions: Mapping[str, str] = field(factory=dict)


def side(connection: duckdb.DuckDBPyConnection, digest: str) -> SideOf:
    """The side that a boot's or trial's digest means.

    Raises:
        NotFoundError: another kind of receipt, which has no configuration to compare.
    """
    row = connection.execute(
        "SELECT r.kind, r.spec, r.arm, r.evidence, coalesce(t.boot, r.digest), t.measure, s.action FROM receipt r "
        "LEFT JOIN trial t USING (id) LEFT JOIN struck s ON s.digest = r.digest WHERE r.digest = ?",
        [digest],
    ).fetchone()
    if row is None or row[0] not in ("boot", "trial"):
        what = f"a {row[0]} has no configuration to compare" if row else "no such receipt"
        raise NotFoundError(Problem(what=what, value=digest, hint="name a boot or a trial: ledger log"))
    kind, spec, arm, evidence, boot, measure, struck = row
    about = connection.execute(
        f"SELECT b.fingerprint, b.agreement, b.id, {_CONFIG} FROM boot b {_ALIKE} WHERE b.digest = ?", [boot]
    ).fetchone()
    if about is None:
        raise NotFoundError(Problem(what="the boot of this trial is not in the ledger", value=str(boot), hint="ledger verify"))
    trial = digest if kind == "trial" else None
    return SideOf(
        digest=digest,
        kind=kind,
        boots=(boot,),
        label=f"{spec}:{arm}" + (f"/{measure}" if measure else ""),
        evidence=evidence,
        fingerprint=about[0],
        config=about[3],
        agreement=about[1],
        struck=struck,
        factors=_factors(connection, about[2]),
        samples=_samples(connection, [boot], trial),
        definitions=_definitions(connection, [boot], trial),
    )


def arm_side(connection: duckdb.DuckDBPyConnection, name: str) -> SideOf | None:
    """The side that ``ARM`` or ``SPEC:ARM`` means: every boot that counts of its latest configuration; None for no such arm.

    Several specs with an arm of this name are told apart by the latest boot, as a receipt's name is.
    """
    spec, _, arm = name.rpartition(":")
    latest = connection.execute(
        f"SELECT r.digest, r.spec, {_CONFIG} FROM boot b JOIN receipt r USING (id) {_ALIKE} "
        "LEFT JOIN struck s ON s.digest = r.digest WHERE r.arm = ? AND (? = '' OR r.spec = ?) "
        "AND b.outcome = 'ready' AND s.digest IS NULL "
        "ORDER BY r.place DESC, r.n DESC LIMIT 1",
        [arm, spec, spec],
    ).fetchone()
    if latest is None:
        return None
    rows = connection.execute(
        f"SELECT r.digest, b.agreement FROM boot b JOIN receipt r USING (id) {_ALIKE} LEFT JOIN struck s ON s.digest = r.digest "
        f"WHERE r.arm = ? AND r.spec = ? AND {_CONFIG} = ? AND b.outcome = 'ready' AND s.digest IS NULL",
        [arm, latest[1], latest[2]],
    ).fetchall()
    boots = [str(row[0]) for row in rows]
    return evolve(
        side(connection, str(latest[0])),
        kind="arm",
        boots=tuple(boots),
        agreement=next((str(row[1]) for row in rows if row[1] != "agrees"), "agrees"),
        samples=_samples(connection, boots, None),
        definitions=_definitions(connection, boots, None),
    )


def receipts_of(connection: duckdb.DuckDBPyConnection, boots: Sequence[str]) -> list[str]:
    """The digests of the boots, and of their trials and gates that count, in order."""
    rows = connection.execute(
        "SELECT r.digest FROM receipt r LEFT JOIN trial t USING (id) LEFT JOIN gate g USING (id) "
        "LEFT JOIN struck s ON s.digest = r.digest WHERE s.digest IS NULL "
        "AND coalesce(t.boot, g.boot, r.digest) IN (SELECT unnest(?::VARCHAR[])) ORDER BY r.place, r.n",
        [list(boots)],
    ).fetchall()
    return [str(row[0]) for row in rows]


def noise(connection: duckdb.DuckDBPyConnection, configs: Sequence[str], evidence: str) -> dict[str, list[list[float]]]:
    """By metric, the boot-level values of each configuration over every boot that counts; one that is named twice counts once."""
    found: dict[str, list[list[float]]] = {}
    for config in dict.fromkeys(configs):
        rows = connection.execute(
            "SELECT metric, list(value) FROM (SELECT metric, boot, median(value) AS value FROM metrics JOIN boot b ON b.digest = "
            f"metrics.boot {_ALIKE} WHERE {_CONFIG} = ? AND metrics.evidence = ? AND struck_by IS NULL AND value IS NOT NULL "
            "AND coalesce(prefix_cache, '') <> 'hit' GROUP BY metric, boot) GROUP BY metric",
            [config, evidence],
        ).fetchall()
        for metric, values in rows:
            found.setdefault(str(metric), []).append([float(value) for value in values])
    return found


def _factors(connection: duckdb.DuckDBPyConnection, boot: int) -> Factors:
    rows = connection.execute("SELECT class, key, value FROM factor WHERE boot = ?", [boot]).fetchall()
    split: dict[str, dict[str, str]] = {"identity": {}, "context": {}, "provenance": {}}
    for kind, key, value in rows:
        split.setdefault(str(kind), {})[str(key)] = str(value)
    return Factors(identity=split["identity"], context=split["context"], provenance=split["provenance"])


def samples_of_boots(connection: duckdb.DuckDBPyConnection, boots: Sequence[str]) -> dict[str, Sample]:
    """The boot-level values of every metric of these boots."""
    return _samples(connection, boots, None)


def _samples(connection: duckdb.DuckDBPyConnection, boots: Sequence[str], trial: str | None) -> dict[str, Sample]:
    rows = connection.execute(
        "SELECT metric, any_value(unit), any_value(better), list(value ORDER BY boot) FROM (SELECT metric, boot, "
        "any_value(unit) AS unit, any_value(better) AS better, median(value) AS value FROM metrics "
        "WHERE boot IN (SELECT unnest(?::VARCHAR[])) AND (? IS NULL OR digest = ?) AND (struck_by IS NULL OR digest = ?) "
        "AND value IS NOT NULL AND coalesce(prefix_cache, '') <> 'hit' GROUP BY metric, boot) GROUP BY metric",
        [list(boots), trial, trial, trial],
    ).fetchall()
    return {
        str(metric): Sample(unit=str(unit or ""), better=Better(str(better)), values=tuple(map(float, values)))
        for metric, unit, better, values in rows
    }


def _definitions(connection: duckdb.DuckDBPyConnection, boots: Sequence[str], trial: str | None) -> dict[str, str]:
    rows = connection.execute(
        "SELECT measure, string_agg(DISTINCT instrument || ' v' || instrument_version, ' and ') FROM trials "
        "WHERE boot IN (SELECT unnest(?::VARCHAR[])) AND (? IS NULL OR digest = ?) GROUP BY measure",
        [list(boots), trial, trial],
    ).fetchall()
    return {str(measure): str(definition) for measure, definition in rows}
