-- What conversations ran with, by the hash of what counts of it. The parts are rows of `snapshots`.
CREATE TABLE named_snapshots (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  hash TEXT NOT NULL,
  assistant TEXT NOT NULL,
  simulation TEXT,
  mode TEXT,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (workspace_id, hash)
) STRICT;
CREATE INDEX named_snapshots_by_assistant ON named_snapshots (workspace_id, assistant);
CREATE INDEX named_snapshots_by_simulation ON named_snapshots (workspace_id, simulation);

-- Earlier runs and calls have none.
ALTER TABLE runs ADD COLUMN snapshot TEXT;
ALTER TABLE calls ADD COLUMN snapshot TEXT;
CREATE INDEX runs_by_snapshot ON runs (workspace_id, snapshot) WHERE snapshot IS NOT NULL;
CREATE INDEX calls_by_snapshot ON calls (workspace_id, snapshot) WHERE snapshot IS NOT NULL;
