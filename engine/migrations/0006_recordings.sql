-- Recordings: each row is one attempt to keep a call's recording, and names the blob it wrote
-- (`recordings/<workspace>/<call>.<id>.wav`). No two attempts share a blob, so a late writer harms nobody.
--
-- `state`: `writing`; `ready`, the one that is served; `deleted`, which stays, so that a deleted recording does
-- not come back; `abandoned`, an attempt that another one took the place of, or that never came to an end.
-- `due_at`: when the sweep looks at the row: to abandon an attempt, to remove a blob that nobody can reach.
-- `peaks`: the waveform, a byte a peak, in base64.
CREATE TABLE recordings (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  call_id TEXT NOT NULL REFERENCES calls (id),
  state TEXT NOT NULL,
  due_at INTEGER,
  size_bytes INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  duration_ms INTEGER NOT NULL,
  peaks TEXT,
  created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX recordings_one_a_call ON recordings (call_id) WHERE state <> 'abandoned';
CREATE INDEX recordings_due ON recordings (due_at) WHERE due_at IS NOT NULL;
