"""The boots of an arm as judging needs them: configuration, time, nodes, conditions and boot-level figures.

What it does: reads the boots of an arm's latest configuration, of one session or of all. What it does not do: judge, or choose a
control. Rules kept: what is struck does not count; the order is that of sessions and chains; boots of another evidence than the
latest one are no part of it.
"""

from collections.abc import Sequence

from attrs import frozen

from ledger.analysis.control import BootFacts
from ledger.core.errors import NotFoundError, Problem
from ledger.query.ingest import Connection

_CONFIG = "coalesce(e.taken_as, b.fingerprint)"

_NODES = "SELECT key, value FROM factor WHERE boot = ? AND key LIKE 'node.%' ORDER BY key"


@frozen(kw_only=True)
class Stood:
    """The ready boots of an arm that count, in order, all of one configuration and evidence; none where there is no such arm."""

    boots: tuple[BootFacts, ...] = ()
    evidence: str = ""

    @property
    def config(self) -> str | None:
        """The configuration of the boots; None where there is none."""
        return self.boots[-1].config if self.boots else None


@frozen(kw_only=True)
class Session:
    """A session by its name, and the digest of its first attempt."""

    name: str
    attempt: str


def stood(connection: Connection, spec: str, arm: str, session: str | None = None) -> Stood:
    """The boots of ``arm`` in ``spec``, in one session where that is named."""
    rows = connection.execute(
        f"SELECT r.digest, {_CONFIG}, r.evidence, epoch(r.time), coalesce(b.seconds, 0) + coalesce(t.seconds, 0), b.id "
        "FROM boot b JOIN receipt r USING (id) LEFT JOIN same_config e ON e.fingerprint = b.fingerprint "
        "LEFT JOIN (SELECT boot, sum(seconds) AS seconds FROM trial GROUP BY boot) t ON t.boot = r.digest "
        "LEFT JOIN last_strike s ON s.digest = r.digest WHERE r.spec = ? AND r.arm = ? AND b.outcome = 'ready' "
        "AND s.digest IS NULL AND (? IS NULL OR r.session = ?) ORDER BY r.place, r.n",
        [spec, arm, session, session],
    ).fetchall()
    alike = [row for row in rows if row[1:3] == rows[-1][1:3]]
    facts = tuple(
        BootFacts(
            digest=str(digest),
            config=str(config),
            at=at,
            nodes=tuple(_pairs(connection, _NODES, number).values()),
            conditions=_pairs(connection, "SELECT key, value FROM condition WHERE receipt = ?", number),
            values=_values(connection, str(digest)),
            seconds=float(seconds),
        )
        for digest, config, _, at, seconds, number in alike
    )
    return Stood(boots=facts, evidence=str(rows[-1][2]) if rows else "")


def session_of(connection: Connection, name: str) -> Session | None:
    """The session of this name, or the only one whose name ends in it; None where there is none.

    Raises:
        NotFoundError: several sessions end in it.
    """
    rows = connection.execute(
        "SELECT r.session, min_by(r.digest, r.n) FROM receipt r JOIN attempt USING (id) "
        "WHERE r.session = ? OR ends_with(r.session, ?) GROUP BY r.session ORDER BY r.session = ? DESC, r.session",
        [name, name, name],
    ).fetchall()
    if len(rows) > 1 and rows[0][0] != name:
        hint = ", ".join(str(row[0]) for row in rows[:3])
        raise NotFoundError(Problem(what=f"{len(rows)} sessions end in this", value=name, hint=f"one of them is meant: {hint}"))
    return Session(name=str(rows[0][0]), attempt=str(rows[0][1])) if rows else None


def noise_of(
    connection: Connection, configs: Sequence[str], evidence: str, state: str | None = None
) -> dict[str, list[list[float]]]:
    """By metric, the boot-level values of each configuration over every boot that counts, from all sessions.

    Boots whose caches are known to have been in another ``state`` (``jit_cache``) than this one are no replicates of it.
    """
    found: dict[str, list[list[float]]] = {}
    for config in dict.fromkeys(configs):
        rows = connection.execute(
            "SELECT metric, list(value ORDER BY boot) FROM (SELECT m.metric, m.boot, median(m.value) AS value FROM metrics m "
            "JOIN boot b ON b.digest = m.boot LEFT JOIN same_config e ON e.fingerprint = b.fingerprint "
            "LEFT JOIN condition c ON c.receipt = b.id AND c.key = 'jit_cache' "
            f"WHERE {_CONFIG} = ? AND m.evidence = ? AND m.struck_by IS NULL AND m.value IS NOT NULL "
            "AND coalesce(m.prefix_cache, '') <> 'hit' AND (? IS NULL OR coalesce(c.value, 'unknown') IN (?, 'unknown')) "
            "GROUP BY m.metric, m.boot) GROUP BY metric",
            [config, evidence, state, state],
        ).fetchall()
        for metric, values in rows:
            found.setdefault(str(metric), []).append([float(value) for value in values])
    return found


def _pairs(connection: Connection, statement: str, number: int) -> dict[str, str]:
    return {str(key): str(value) for key, value in connection.execute(statement, [number]).fetchall()}


def _values(connection: Connection, boot: str) -> dict[str, float]:
    rows = connection.execute(
        "SELECT metric, median(value) FROM metrics WHERE boot = ? AND struck_by IS NULL AND value IS NOT NULL "
        "AND coalesce(prefix_cache, '') <> 'hit' GROUP BY metric",
        [boot],
    ).fetchall()
    return {str(metric): float(value) for metric, value in rows}
