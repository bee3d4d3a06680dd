"""What must be made again: decisions and claims that rest on receipts which no longer count.

What it does: follows the inputs of decisions and claims, over other receipts too, to whatever is struck. What it does not do:
make them again; it says with which command. Rules kept: a decision that was made again since, on inputs that count, is not
listed.
"""

import shlex

import duckdb
from attrs import frozen

_STALE = """
WITH RECURSIVE gone AS (
  SELECT digest, action || ': ' || reason AS why FROM struck
  UNION
  SELECT r.digest, s.action || ': ' || s.reason FROM struck s JOIN trial t ON t.boot = s.digest JOIN receipt r USING (id)
), rests AS (
  SELECT l.source AS digest, g.why FROM link l JOIN gone g ON g.digest = l.target WHERE l.role = 'inputs'
  UNION
  SELECT l.source, r.why FROM link l JOIN rests r ON r.digest = l.target WHERE l.role = 'inputs'
)
SELECT r.digest, r.kind, coalesce(r.spec, ''), coalesce(r.arm, c.name), coalesce(d.verdict, c.says), coalesce(c.expression, ''),
       string_agg(DISTINCT rests.why, '; ')
FROM rests JOIN receipt r USING (digest) LEFT JOIN decision d USING (id) LEFT JOIN claim c USING (id)
LEFT JOIN struck s ON s.digest = r.digest
WHERE r.kind IN ('decision', 'claim') AND s.digest IS NULL AND NOT EXISTS (
  SELECT 1 FROM receipt n LEFT JOIN claim nc USING (id) WHERE n.kind = r.kind AND n.digest NOT IN (SELECT digest FROM rests)
    AND (n.place, n.n) > (r.place, r.n)
    AND coalesce(n.spec || '/' || n.arm, nc.name) = coalesce(r.spec || '/' || r.arm, c.name))
GROUP BY ALL ORDER BY any_value(r.place), any_value(r.n)
"""


@frozen(kw_only=True)
class Stale:
    """A decision or claim that rests on what was struck: what it said, why it is stale, and the command that makes it again."""

    digest: str
    kind: str
    name: str
    said: str
    why: str
    again: str


def stale(connection: duckdb.DuckDBPyConnection) -> list[Stale]:
    """Everything that must be made again, in the order in which it was made."""
    return [
        Stale(digest=digest, kind=kind, name=name, said=said, why=why, again=_again(kind, spec, name, expression, said))
        for digest, kind, spec, name, said, expression, why in connection.execute(_STALE).fetchall()
    ]


def _again(kind: str, spec: str, name: str, expression: str, said: str) -> str:
    if kind == "claim":
        return shlex.join(["ledger", "claim", expression, "--says", said, "--name", name])
    return shlex.join(["ledger", "decide", f"specs/{spec}.toml"])
