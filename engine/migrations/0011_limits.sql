-- What a workspace has is limited; see `checks::room`.

ALTER TABLE batch_guard ADD COLUMN room INTEGER NOT NULL DEFAULT 1 CONSTRAINT limit_reached CHECK (room = 1);

-- Keys are listed and counted without those that are revoked, of which there may be many.
CREATE INDEX api_keys_in_use ON api_keys (workspace_id, id) WHERE revoked_at IS NULL;
