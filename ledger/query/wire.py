"""The types of a receipt's JSON, as the index reads it.

What it does: names the fields that the index takes from a receipt and their DuckDB types, so that nothing is guessed from the
data. What it does not do: hold every field of the format; what is not here is left in the receipt. Rule kept: a field that is
added here needs a new ``VERSION``, since older indexes lack it.
"""

VERSION = "9"

_SUBJECT = "STRUCT(spec VARCHAR, lane VARCHAR, arm VARCHAR, role VARCHAR, evidence VARCHAR)"
_TEXTS = "MAP(VARCHAR, VARCHAR)"
_FIGURE = (
    'STRUCT("value" DOUBLE, unit VARCHAR, better VARCHAR, n BIGINT, statistic VARCHAR, low DOUBLE, high DOUBLE, absent VARCHAR, '
    f"conditions {_TEXTS}, marks VARCHAR[])"
)

RECEIPT = f"""STRUCT(
  kind VARCHAR, "at" VARCHAR, session VARCHAR, chain STRUCT(n BIGINT, "after" VARCHAR),
  tool STRUCT("name" VARCHAR, version VARCHAR),
  attempt STRUCT(subject {_SUBJECT}, "number" BIGINT, position BIGINT, "of" BIGINT, reason VARCHAR,
    spec STRUCT("name" VARCHAR, "text" STRUCT(digest VARCHAR)), site STRUCT("name" VARCHAR)),
  boot STRUCT(subject {_SUBJECT}, attempt VARCHAR, outcome VARCHAR, fingerprint VARCHAR, agreement STRUCT(state VARCHAR),
    seconds DOUBLE, reason VARCHAR, factors STRUCT("identity" {_TEXTS}, context {_TEXTS}, provenance {_TEXTS}),
    conditions {_TEXTS}),
  trial STRUCT(subject {_SUBJECT}, boot VARCHAR, measure VARCHAR, "number" BIGINT,
    instrument STRUCT("name" VARCHAR, version BIGINT, parameters JSON),
    requests STRUCT(launched BIGINT, ok BIGINT, failed BIGINT), conditions {_TEXTS}, seconds DOUBLE, marks VARCHAR[],
    figures MAP(VARCHAR, {_FIGURE})),
  gate STRUCT(subject {_SUBJECT}, gate VARCHAR, version BIGINT, "when" VARCHAR, holds VARCHAR, "text" VARCHAR, "value" VARCHAR,
    "limit" VARCHAR, attempt VARCHAR, boot VARCHAR),
  decision STRUCT(subject {_SUBJECT}, verdict VARCHAR, control VARCHAR, reasons VARCHAR[], inputs VARCHAR[]),
  correction STRUCT(action VARCHAR, code VARCHAR, reason VARCHAR, "by" VARCHAR, "scope" VARCHAR, targets VARCHAR[],
    replacements VARCHAR[]),
  claim STRUCT("name" VARCHAR, expression VARCHAR, says VARCHAR, decimals BIGINT, "value" DOUBLE, unit VARCHAR,
    orientation VARCHAR, figure_evidence VARCHAR, inputs VARCHAR[], "by" VARCHAR),
  serving STRUCT(lane VARCHAR, state VARCHAR, since VARCHAR, "by" VARCHAR, known_as VARCHAR, arm VARCHAR, nodes VARCHAR[],
    port BIGINT, note VARCHAR),
  note STRUCT("text" VARCHAR, "by" VARCHAR, about VARCHAR[])
)"""

COLUMNS = {"id": "BIGINT", "digest": "VARCHAR", "folder": "VARCHAR", "r": RECEIPT}
SUBJECT = "coalesce(r.attempt.subject, r.boot.subject, r.trial.subject, r.gate.subject, r.decision.subject)"
