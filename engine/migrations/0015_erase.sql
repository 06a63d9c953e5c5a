-- Deleting calls: at a request, or after the days that a workspace keeps them.
ALTER TABLE workspaces ADD COLUMN call_retention_days INTEGER;
ALTER TABLE workspaces ADD COLUMN recording_retention_days INTEGER;

-- Which call an event tells about: it goes with the call. '' when it is about none; NULL until the sweep has read it from
-- the body of an event that an earlier version stored. All bodies at once would take too long.
ALTER TABLE events ADD COLUMN call_id TEXT;
CREATE INDEX events_by_call ON events (workspace_id, call_id) WHERE call_id <> '';
CREATE INDEX events_of_unknown_calls ON events (workspace_id, id) WHERE call_id IS NULL;
CREATE INDEX deliveries_by_event ON deliveries (event_id);

-- As before, but a row may outlive its call: it names the blob that has to be removed.
CREATE TABLE recordings_that_outlive_calls (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  call_id TEXT NOT NULL,
  state TEXT NOT NULL,
  due_at INTEGER,
  size_bytes INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  duration_ms INTEGER NOT NULL,
  peaks TEXT,
  created_at INTEGER NOT NULL
) STRICT;
INSERT INTO recordings_that_outlive_calls (id, workspace_id, call_id, state, due_at, size_bytes, sha256, duration_ms, peaks, created_at)
  SELECT id, workspace_id, call_id, state, due_at, size_bytes, sha256, duration_ms, peaks, created_at FROM recordings;
DROP TABLE recordings;
ALTER TABLE recordings_that_outlive_calls RENAME TO recordings;
CREATE UNIQUE INDEX recordings_one_a_call ON recordings (call_id) WHERE state <> 'abandoned';
CREATE INDEX recordings_due ON recordings (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX recordings_by_age ON recordings (workspace_id, created_at, id) WHERE state = 'ready';

-- When the leg of a deleted call goes: until then its carrier may report a price. `said` has what was counted.
ALTER TABLE phone_calls ADD COLUMN delete_at INTEGER;
CREATE INDEX phone_calls_to_delete ON phone_calls (delete_at) WHERE delete_at IS NOT NULL;

-- A stored response that is a call goes with the call.
CREATE INDEX idempotency_keys_by_id ON idempotency_keys (workspace_id, json_extract(body, '$.id'));

-- Workspaces whose deleted calls' words may still be in segments of the text index: a deletion only marks them there,
-- and merging the segments removes them. `merging` is 1 once a merge has begun that covers all of them.
CREATE TABLE search_erasures (
  workspace_id TEXT PRIMARY KEY REFERENCES workspaces (id),
  merging INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
