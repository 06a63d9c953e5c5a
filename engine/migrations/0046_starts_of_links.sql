-- When the conversations of a test link that may start again began: how many, and how fast, is limited.
ALTER TABLE used_test_tokens ADD COLUMN link_id TEXT;
ALTER TABLE used_test_tokens ADD COLUMN used_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX used_test_tokens_by_link ON used_test_tokens (link_id, used_at) WHERE link_id IS NOT NULL;
