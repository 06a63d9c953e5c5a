-- What a call under way may still cost: written as it starts, deleted as it ends. It counts towards the workspace's
-- monthly limit like what is spent. A run reserves for its call.
CREATE TABLE spending_reservations (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  call_id TEXT NOT NULL,
  -- Carrier and models together.
  microusd INTEGER NOT NULL,
  -- The part for the models.
  models_microusd INTEGER NOT NULL,
  PRIMARY KEY (workspace_id, call_id)
) STRICT, WITHOUT ROWID;
