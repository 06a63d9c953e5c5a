-- Whether an assistant's model can press keys in outbound telephone calls.
ALTER TABLE assistants ADD COLUMN keys INTEGER NOT NULL DEFAULT 0;
ALTER TABLE assistant_revisions ADD COLUMN keys INTEGER NOT NULL DEFAULT 0;
-- A tool of the assistant's owner must not have the name of the one that presses them.
ALTER TABLE batch_guard ADD COLUMN send_keys_is_free INTEGER NOT NULL DEFAULT 1
  CONSTRAINT send_keys_taken CHECK (send_keys_is_free = 1);
