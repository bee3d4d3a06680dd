-- The index: tables that are filled from receipts, and the documented views over them (docs/reference/views.md).
-- A receipt's `id` is its row here and nowhere else; its name is its digest.

CREATE TABLE meta (key VARCHAR PRIMARY KEY, value VARCHAR);
CREATE TABLE folders (folder VARCHAR, stamp BIGINT);
CREATE TABLE bad (path VARCHAR, reason VARCHAR);
-- Where a receipt stands besides the folder that it was read from.
CREATE TABLE copy (folder VARCHAR, digest VARCHAR);

CREATE TABLE receipt (
  id BIGINT, digest VARCHAR, kind VARCHAR, time TIMESTAMP, folder VARCHAR, session VARCHAR, n BIGINT, after_digest VARCHAR,
  spec VARCHAR, lane VARCHAR, arm VARCHAR, role VARCHAR, evidence VARCHAR, tool VARCHAR, tool_version VARCHAR,
  -- The session's place among all: its month, its first moment (two sessions of a minute have names in any order), its name.
  place VARCHAR
);
CREATE TABLE attempt (id BIGINT, number BIGINT, position BIGINT, planned BIGINT, reason VARCHAR, spec_text VARCHAR, site VARCHAR);
CREATE TABLE boot (
  id BIGINT, digest VARCHAR, attempt VARCHAR, outcome VARCHAR, fingerprint VARCHAR, agreement VARCHAR, seconds DOUBLE, reason VARCHAR
);
CREATE TABLE factor (boot BIGINT, class VARCHAR, key VARCHAR, value VARCHAR);
CREATE TABLE condition (receipt BIGINT, key VARCHAR, value VARCHAR);
CREATE TABLE trial (
  id BIGINT, boot VARCHAR, measure VARCHAR, number BIGINT, instrument VARCHAR, instrument_version BIGINT, parameters VARCHAR,
  launched BIGINT, ok BIGINT, failed BIGINT, prefix_cache VARCHAR, seconds DOUBLE, marks VARCHAR[]
);
CREATE TABLE figure (
  receipt BIGINT, metric VARCHAR, value DOUBLE, unit VARCHAR, better VARCHAR, n BIGINT, statistic VARCHAR, low DOUBLE,
  high DOUBLE, absent VARCHAR, prefix_cache VARCHAR, marks VARCHAR[]
);
CREATE TABLE gate (
  id BIGINT, gate VARCHAR, version BIGINT, checked VARCHAR, holds VARCHAR, text VARCHAR, value VARCHAR, bound VARCHAR,
  attempt VARCHAR, boot VARCHAR
);
CREATE TABLE decision (id BIGINT, verdict VARCHAR, control VARCHAR, reasons VARCHAR[]);
CREATE TABLE correction (id BIGINT, action VARCHAR, code VARCHAR, reason VARCHAR, author VARCHAR, scope VARCHAR);
CREATE TABLE claim (
  id BIGINT, name VARCHAR, expression VARCHAR, says VARCHAR, decimals BIGINT, value DOUBLE, unit VARCHAR, orientation VARCHAR,
  evidence VARCHAR, author VARCHAR
);
CREATE TABLE serves (
  id BIGINT, lane VARCHAR, state VARCHAR, since TIMESTAMP, arm VARCHAR, nodes VARCHAR[], port BIGINT, note VARCHAR, author VARCHAR,
  evidence VARCHAR
);
CREATE TABLE link (source VARCHAR, role VARCHAR, target VARCHAR);

-- What the corrections in force do; filled anew at every change.
-- Which receipts are struck, and by which correction.
CREATE TABLE struck (digest VARCHAR, by_digest VARCHAR, action VARCHAR, replacement VARCHAR, reason VARCHAR);
-- Each struck receipt once, with the latest of its corrections, so that no view shows a receipt twice.
CREATE TABLE last_strike (digest VARCHAR, by_digest VARCHAR, action VARCHAR);
-- Fingerprints that corrections in force call the same configuration, with the one that stands for all of them.
CREATE TABLE same_config (fingerprint VARCHAR, taken_as VARCHAR);

CREATE VIEW receipts AS
  SELECT r.digest, r.kind, r.time, r.session, r.n, r.after_digest, r.spec, r.lane, r.arm, r.role, r.evidence, r.tool,
         r.tool_version, s.action AS struck_by, s.by_digest AS struck_by_digest
  FROM receipt r LEFT JOIN last_strike s ON s.digest = r.digest;
CREATE VIEW attempts AS
  SELECT r.digest, r.time, r.session, r.spec, r.lane, r.arm, r.role, r.evidence, a.number, a.position, a.planned, a.site,
         b.digest AS boot, coalesce(b.outcome, 'no boot') AS outcome, b.reason
  FROM attempt a JOIN receipt r USING (id) LEFT JOIN boot b ON b.attempt = r.digest;
CREATE VIEW boots AS
  SELECT r.digest, r.time, r.session, r.spec, r.lane, r.arm, r.role, r.evidence, b.attempt, b.outcome, b.fingerprint, b.agreement,
         b.seconds, b.reason, s.action AS struck_by
  FROM boot b JOIN receipt r USING (id) LEFT JOIN last_strike s ON s.digest = r.digest;
CREATE VIEW trials AS
  SELECT r.digest, r.time, r.session, r.spec, r.lane, r.arm, r.role, r.evidence, t.boot, t.measure, t.number, t.instrument,
         t.instrument_version, t.parameters, t.launched, t.ok, t.failed, t.prefix_cache, t.seconds, t.marks, b.fingerprint, b.agreement,
         coalesce(s.action, sb.action) AS struck_by
  FROM trial t JOIN receipt r USING (id) LEFT JOIN boot b ON b.digest = t.boot LEFT JOIN last_strike s ON s.digest = r.digest
  LEFT JOIN last_strike sb ON sb.digest = t.boot;
CREATE VIEW metrics AS
  SELECT r.digest, r.kind, r.time, r.session, r.spec, r.lane, r.arm, r.role, r.evidence,
         CASE WHEN r.kind = 'boot' THEN r.digest ELSE t.boot END AS boot, t.measure, t.number AS trial, t.instrument,
         t.instrument_version, f.metric, f.value, f.unit, f.better, f.n, f.statistic, f.low, f.high, f.absent,
         coalesce(f.prefix_cache, t.prefix_cache) AS prefix_cache, f.marks, coalesce(s.action, sb.action) AS struck_by
  FROM figure f JOIN receipt r ON r.id = f.receipt LEFT JOIN trial t ON t.id = f.receipt
  LEFT JOIN last_strike s ON s.digest = r.digest LEFT JOIN last_strike sb ON sb.digest = t.boot;
CREATE VIEW gates AS
  SELECT r.digest, r.time, r.session, r.spec, r.lane, r.arm, g.gate, g.version, g.checked, g.holds, g.text, g.value, g.bound,
         g.attempt, g.boot
  FROM gate g JOIN receipt r USING (id);
CREATE VIEW decisions AS
  SELECT r.digest, r.time, r.session, r.spec, r.lane, r.arm, r.evidence, d.verdict, d.control, d.reasons, s.action AS struck_by
  FROM decision d JOIN receipt r USING (id) LEFT JOIN last_strike s ON s.digest = r.digest;
CREATE VIEW corrections AS
  SELECT r.digest, r.time, r.session, c.action, c.code, c.reason, c.author, c.scope, l.target,
         s.action IS NOT NULL AS undone
  FROM correction c JOIN receipt r USING (id) LEFT JOIN link l ON l.source = r.digest AND l.role = 'targets'
  LEFT JOIN last_strike s ON s.digest = r.digest;
CREATE VIEW claims AS
  SELECT r.digest, r.time, r.session, c.name, c.expression, c.says, c.value, c.unit, c.orientation, c.evidence, c.author,
         s.action AS struck_by
  FROM claim c JOIN receipt r USING (id) LEFT JOIN last_strike s ON s.digest = r.digest;
CREATE VIEW serving AS
  SELECT r.digest, r.time, r.session, v.lane, v.state, v.since, v.arm, v.nodes, v.port, v.note, v.author, v.evidence,
         s.action AS struck_by
  FROM serves v JOIN receipt r USING (id) LEFT JOIN last_strike s ON s.digest = r.digest;
CREATE VIEW config AS
  SELECT r.digest AS boot, r.spec, r.lane, r.arm, f.class, f.key, f.value FROM factor f JOIN receipt r ON r.id = f.boot;
CREATE VIEW lineage AS SELECT source, role, target FROM link;
-- Current figures, one row for each boot (the median over its trials): what a cell of a query is pooled from.
CREATE VIEW cells AS
  SELECT spec, lane, arm, role, evidence, session, boot, measure, metric, unit, better, prefix_cache, median(value) AS value,
         count(*) AS trials
  FROM metrics WHERE value IS NOT NULL AND struck_by IS NULL
  GROUP BY ALL;
