-- Whom an assistant can hand a call over to, as JSON.
ALTER TABLE assistants ADD COLUMN transfers TEXT NOT NULL DEFAULT '[]';
ALTER TABLE assistant_revisions ADD COLUMN transfers TEXT NOT NULL DEFAULT '[]';
-- The request that hands a telephone call over: `asking` while its answer is not known, `accepted`, `rejected`, `unknown`.
ALTER TABLE phone_calls ADD COLUMN transfer TEXT;
-- A tool of the assistant's owner must not have the name of the one that hands calls over.
ALTER TABLE batch_guard ADD COLUMN transfer_call_is_free INTEGER NOT NULL DEFAULT 1
  CONSTRAINT transfer_call_taken CHECK (transfer_call_is_free = 1);
