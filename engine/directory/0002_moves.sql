-- The move between two shards, while a workspace is `moving` or `settling`: one that was given up decides nothing any more.
ALTER TABLE workspaces ADD COLUMN move_id TEXT;
