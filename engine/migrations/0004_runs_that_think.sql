-- Runs on any model: who speaks with which, what it may cost, how far it is.
ALTER TABLE personas ADD COLUMN model TEXT;
ALTER TABLE scenarios ADD COLUMN judge_model TEXT;
ALTER TABLE runs ADD COLUMN call_id TEXT;
ALTER TABLE runs ADD COLUMN turns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN last_line TEXT;
ALTER TABLE runs ADD COLUMN cost_microusd INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN max_cost_microusd INTEGER NOT NULL DEFAULT 1000000;

-- What a conversation under way has been told, in order: whoever takes it over tells it the same
-- again and goes on. A tool call stands here before its request goes out. Gone when it is over.
CREATE TABLE conversation_journal (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  conversation_id TEXT NOT NULL,
  place INTEGER NOT NULL,
  entry TEXT NOT NULL,
  PRIMARY KEY (conversation_id, place)
) STRICT, WITHOUT ROWID;

-- What a workspace allows itself.
ALTER TABLE workspaces ADD COLUMN monthly_spend_limit_microusd INTEGER;
ALTER TABLE workspaces ADD COLUMN runs_at_once INTEGER NOT NULL DEFAULT 64;

-- What models cost a workspace, by month (`2026-11`, UTC).
CREATE TABLE spending (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  month TEXT NOT NULL,
  microusd INTEGER NOT NULL,
  PRIMARY KEY (workspace_id, month)
) STRICT, WITHOUT ROWID;
