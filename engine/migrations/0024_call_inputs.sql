-- The inputs of live conversations with their times, from which a conversation can be replayed: written with the journal,
-- kept with the call.
CREATE TABLE call_inputs (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  call_id TEXT NOT NULL,
  place INTEGER NOT NULL,
  piece INTEGER NOT NULL,
  entries TEXT NOT NULL,
  PRIMARY KEY (call_id, place, piece)
) STRICT, WITHOUT ROWID;
