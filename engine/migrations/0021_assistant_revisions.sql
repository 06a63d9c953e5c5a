-- Earlier revisions of assistants, as they were read; the current one is in `assistants`.
CREATE TABLE assistant_revisions (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  instructions TEXT NOT NULL,
  first_message TEXT NOT NULL,
  model TEXT NOT NULL,
  voice TEXT NOT NULL,
  pipeline_mode TEXT NOT NULL,
  transcriber TEXT NOT NULL,
  language TEXT NOT NULL,
  keyterms TEXT NOT NULL,
  speech TEXT NOT NULL,
  record INTEGER NOT NULL,
  tool_ids TEXT NOT NULL,
  knowledge_ids TEXT NOT NULL,
  revision INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (workspace_id, id, revision)
) STRICT;
