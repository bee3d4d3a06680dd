-- From the staged receipts (table `incoming`: id, digest, folder, r) into the tables. Statements run in order.
-- A receipt that is here already, or twice in what comes in, is a copy: it is one receipt wherever it stands.
CREATE OR REPLACE TEMP TABLE copied AS
  SELECT id, folder, digest FROM incoming
  WHERE digest IN (SELECT digest FROM receipt)
     OR id NOT IN (SELECT min(id) FROM incoming GROUP BY digest);
INSERT INTO copy SELECT folder, digest FROM copied;
DELETE FROM incoming WHERE id IN (SELECT id FROM copied);
DROP TABLE copied;
INSERT INTO receipt
  SELECT id, digest, r.kind, try_cast(replace(r."at", 'Z', '') AS TIMESTAMP), folder, r.session, r.chain.n, r.chain."after",
         subject.spec, subject.lane, subject.arm, subject.role, subject.evidence, r.tool.name, r.tool.version, NULL
  FROM incoming;
UPDATE receipt SET place = f.place FROM (
  SELECT folder, folder[:7] || ' ' || coalesce(strftime(min(time), '%Y-%m-%dT%H:%M:%S'), '') || ' ' || folder AS place FROM receipt
  WHERE folder IN (SELECT DISTINCT folder FROM incoming) GROUP BY folder
) f WHERE receipt.folder = f.folder;
INSERT INTO attempt
  SELECT id, r.attempt.number, r.attempt.position, r.attempt."of", r.attempt.reason, r.attempt.spec.text.digest, r.attempt.site.name
  FROM incoming WHERE r.kind = 'attempt';
INSERT INTO boot
  SELECT id, digest, r.boot.attempt, r.boot.outcome, r.boot.fingerprint, r.boot.agreement.state, r.boot.seconds, r.boot.reason
  FROM incoming WHERE r.kind = 'boot';
INSERT INTO factor
  SELECT id, 'identity', e.key, e.value FROM (
    SELECT id, unnest(map_entries(r.boot.factors.identity)) AS e FROM incoming WHERE r.kind = 'boot');
INSERT INTO factor
  SELECT id, 'context', e.key, e.value FROM (
    SELECT id, unnest(map_entries(r.boot.factors.context)) AS e FROM incoming WHERE r.kind = 'boot');
INSERT INTO factor
  SELECT id, 'provenance', e.key, e.value FROM (
    SELECT id, unnest(map_entries(r.boot.factors.provenance)) AS e FROM incoming WHERE r.kind = 'boot');
INSERT INTO condition
  SELECT id, e.key, e.value FROM (
    SELECT id, unnest(map_entries(coalesce(r.boot.conditions, r.trial.conditions))) AS e FROM incoming);
INSERT INTO trial
  SELECT id, r.trial.boot, r.trial.measure, r.trial.number, r.trial.instrument.name, r.trial.instrument.version,
         CAST(r.trial.instrument.parameters AS VARCHAR), r.trial.requests.launched, r.trial.requests.ok, coalesce(r.trial.requests.failed, 0),
         r.trial.conditions['prefix_cache'], r.trial.seconds, coalesce(r.trial.marks, [])
  FROM incoming WHERE r.kind = 'trial';
INSERT INTO figure
  SELECT id, e.key, e.value.value, e.value.unit, coalesce(e.value.better, 'neither'), e.value.n, e.value.statistic, e.value.low,
         e.value.high, e.value.absent, e.value.conditions['prefix_cache'], coalesce(e.value.marks, [])
  FROM (SELECT id, unnest(map_entries(r.trial.figures)) AS e FROM incoming WHERE r.kind = 'trial');
INSERT INTO figure
  SELECT id, 'boot_seconds', r.boot.seconds, 's', 'lower', NULL, NULL, NULL, NULL, NULL, NULL, []
  FROM incoming WHERE r.kind = 'boot' AND r.boot.outcome = 'ready' AND r.boot.seconds IS NOT NULL;
INSERT INTO gate
  SELECT id, r.gate.gate, r.gate.version, r.gate."when", r.gate.holds, r.gate.text, r.gate.value, r.gate."limit", r.gate.attempt,
         r.gate.boot
  FROM incoming WHERE r.kind = 'gate';
INSERT INTO decision
  SELECT id, r.decision.verdict, r.decision.control, coalesce(r.decision.reasons, []) FROM incoming WHERE r.kind = 'decision';
INSERT INTO correction
  SELECT id, r.correction.action, coalesce(r.correction.code, 'other'), r.correction.reason, r.correction.by, r.correction.scope
  FROM incoming WHERE r.kind = 'correction';
INSERT INTO claim
  SELECT id, r.claim."name", r.claim.expression, r.claim.says, r.claim.decimals, r.claim."value", r.claim.unit, r.claim.orientation,
         r.claim.figure_evidence, r.claim."by"
  FROM incoming WHERE r.kind = 'claim';
INSERT INTO serves
  SELECT id, r.serving.lane, r.serving.state, try_cast(replace(r.serving.since, 'Z', '') AS TIMESTAMP), r.serving.arm,
         coalesce(r.serving.nodes, []), r.serving.port, r.serving.note, r.serving."by", r.serving.known_as
  FROM incoming WHERE r.kind = 'serving';
INSERT INTO link SELECT digest, 'chain.after', r.chain."after" FROM incoming WHERE r.chain."after" IS NOT NULL;
INSERT INTO link
  SELECT digest, 'attempt', coalesce(r.boot.attempt, r.gate.attempt) FROM incoming
  WHERE coalesce(r.boot.attempt, r.gate.attempt) IS NOT NULL;
INSERT INTO link
  SELECT digest, 'boot', coalesce(r.trial.boot, r.gate.boot) FROM incoming WHERE coalesce(r.trial.boot, r.gate.boot) IS NOT NULL;
INSERT INTO link
  SELECT digest, 'inputs', unnest(coalesce(r.decision.inputs, r.claim.inputs)) FROM incoming WHERE r.kind IN ('decision', 'claim');
INSERT INTO link
  SELECT digest, 'targets', unnest(r.correction.targets) FROM incoming WHERE r.kind = 'correction';
INSERT INTO link
  SELECT digest, 'replacements', unnest(r.correction.replacements) FROM incoming WHERE r.kind = 'correction';
INSERT INTO link SELECT digest, 'about', unnest(r.note.about) FROM incoming WHERE r.kind = 'note';
