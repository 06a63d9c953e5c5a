-- What fills in an assistant's texts, as a conversation started with it. A scenario has defaults for its runs.
ALTER TABLE calls ADD COLUMN variables TEXT NOT NULL DEFAULT '{}';
ALTER TABLE runs ADD COLUMN variables TEXT NOT NULL DEFAULT '{}';
ALTER TABLE scenarios ADD COLUMN variables TEXT NOT NULL DEFAULT '{}';

-- What clients want to know of something again.
ALTER TABLE calls ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
ALTER TABLE runs ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
ALTER TABLE assistants ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
ALTER TABLE assistant_revisions ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
ALTER TABLE tools ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
ALTER TABLE documents ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
ALTER TABLE webhooks ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
ALTER TABLE numbers ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
ALTER TABLE personas ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
ALTER TABLE scenarios ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
ALTER TABLE simulations ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';

-- The calls by their metadata, for filters. Written with the call, which keeps its metadata.
CREATE TABLE call_metadata (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  seq INTEGER NOT NULL REFERENCES calls (seq),
  PRIMARY KEY (workspace_id, name, value, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX call_metadata_by_call ON call_metadata (seq);

-- What a test token's conversation starts with: too much for the token. Gone when the token is used or has expired.
CREATE TABLE test_token_values (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  expires_at INTEGER NOT NULL,
  variables TEXT NOT NULL,
  metadata TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX test_token_values_by_expiry ON test_token_values (expires_at);
CREATE INDEX test_token_values_by_workspace ON test_token_values (workspace_id, expires_at);
