-- The size of what is kept of the configurations that runs and calls ran with: the sum over `snapshots`.
ALTER TABLE workspaces ADD COLUMN snapshot_bytes INTEGER NOT NULL DEFAULT 0;
UPDATE workspaces SET snapshot_bytes = COALESCE(
  (SELECT SUM(OCTET_LENGTH(content)) FROM snapshots WHERE snapshots.workspace_id = workspaces.id), 0);
