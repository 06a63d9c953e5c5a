-- Workspaces that move between hosts, or have. `lock`: 1 nothing new begins, 2 nothing is written but by the move.
CREATE TABLE moves (
  workspace_id TEXT PRIMARY KEY REFERENCES workspaces (id),
  -- exp_… or imp_…; mov_… between two databases of one host
  id TEXT NOT NULL UNIQUE,
  state TEXT NOT NULL,
  lock INTEGER NOT NULL,
  -- The step and the SHA-256 of the tables that the rows are of.
  schema TEXT NOT NULL,
  -- Of an export its own key, sealed with the server's secret; of an import the SHA-256 of it, then itself, sealed.
  file_key TEXT NOT NULL,
  -- The export that an import is of; the import that an export was handed over to.
  other_id TEXT,
  moved_to TEXT,
  -- How far the step is that is under way, as JSON.
  progress TEXT NOT NULL DEFAULT '{}',
  began_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The jobs of workspaces that are locked: nothing claims, counts or releases them.
CREATE TABLE jobs_away (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  subject_id TEXT NOT NULL,
  due_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (workspace_id, id)
) STRICT, WITHOUT ROWID;

-- A page names something of another workspace.
ALTER TABLE batch_guard ADD COLUMN own INTEGER NOT NULL DEFAULT 1 CONSTRAINT names_a_stranger CHECK (own = 1);
