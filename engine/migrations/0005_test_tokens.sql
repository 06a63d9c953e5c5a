-- Browser conversations: the tokens that opened one, and what one under way has come to.

-- A token opens one conversation. Its id is taken down by the batch that opens it; of two at once one
-- is refused. Forgotten when the token would be refused for its age anyway.
CREATE TABLE used_test_tokens (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX used_test_tokens_by_expiry ON used_test_tokens (expires_at);

-- The transcript of a live conversation, row by row as it comes to be, and what its models have cost:
-- all that is left of it when its process dies. Gone when the call is over.
CREATE TABLE live_calls (
  call_id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  offset_ms INTEGER NOT NULL,
  spent TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE live_call_rows (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  call_id TEXT NOT NULL REFERENCES live_calls (call_id),
  place INTEGER NOT NULL,
  content TEXT NOT NULL,
  PRIMARY KEY (call_id, place)
) STRICT, WITHOUT ROWID;
