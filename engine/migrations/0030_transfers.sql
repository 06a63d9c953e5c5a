-- Whom an assistant can hand a call over to, as JSON.
ALTER TABLE assistants ADD COLUMN transfers TEXT NOT NULL DEFAULT '[]';
ALTER TABLE assistant_revisions ADD COLUMN transfers TEXT NOT NULL DEFAULT '[]';
-- The request that hands a telephone call over: `asking` while its answer is not known, `accepted`, `rejected`, `unknown`.
ALTER TABLE phone_calls ADD COLUMN transfer TEXT;
