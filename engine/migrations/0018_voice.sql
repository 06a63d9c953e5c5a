-- How assistants hear and speak.

ALTER TABLE assistants ADD COLUMN transcriber TEXT NOT NULL DEFAULT '';
ALTER TABLE assistants ADD COLUMN language TEXT NOT NULL DEFAULT '';
ALTER TABLE assistants ADD COLUMN keyterms TEXT NOT NULL DEFAULT '[]';
ALTER TABLE assistants ADD COLUMN speech TEXT NOT NULL DEFAULT '{}';

-- When the steps from each spoken turn of the caller to the assistant's answer were done, a list.
ALTER TABLE call_transcripts ADD COLUMN turns TEXT NOT NULL DEFAULT '[]';
