-- Whoever follows a call in progress reads what has changed since they read last: the changes of a call count up.
ALTER TABLE live_calls ADD COLUMN changes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE live_call_rows ADD COLUMN change INTEGER NOT NULL DEFAULT 0;

-- The times of the turns of a live conversation, by the end of the caller's speech.
CREATE TABLE live_call_turns (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  call_id TEXT NOT NULL REFERENCES live_calls (call_id),
  place INTEGER NOT NULL,
  content TEXT NOT NULL,
  change INTEGER NOT NULL,
  PRIMARY KEY (call_id, place)
) STRICT, WITHOUT ROWID;

-- How many changes a call had when it ended. NULL: it ended before they were counted.
ALTER TABLE call_transcripts ADD COLUMN changes INTEGER;
