-- What happened, whether a webhook wanted it or not: what `GET /events` lists. Narrow, because `events` has the bodies that are
-- sent, of up to 1.8 MB each, and only those that a webhook wanted. It fills up from here on.
CREATE TABLE event_log (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  type TEXT NOT NULL,
  -- The call, run or webhook that it tells about.
  subject_id TEXT NOT NULL,
  -- The call that it tells about, also of a run: it goes with the call.
  call_id TEXT,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX event_log_by_workspace ON event_log (workspace_id, id);
CREATE INDEX event_log_by_type ON event_log (workspace_id, type, id);
CREATE INDEX event_log_by_call ON event_log (workspace_id, call_id);
