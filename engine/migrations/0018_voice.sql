-- How assistants hear and speak.

ALTER TABLE assistants ADD COLUMN transcriber TEXT NOT NULL DEFAULT '';
ALTER TABLE assistants ADD COLUMN language TEXT NOT NULL DEFAULT '';
ALTER TABLE assistants ADD COLUMN keyterms TEXT NOT NULL DEFAULT '[]';
ALTER TABLE assistants ADD COLUMN speech TEXT NOT NULL DEFAULT '{}';
ALTER TABLE assistants ADD COLUMN record INTEGER NOT NULL DEFAULT 1;

-- A recording that is written while its call runs consists of segments of the same duration (the last may be shorter)
-- without a head: `recordings/<workspace>/<call>.<id>.<n>.pcm`. `segments`: how many are complete, NULL for one WAV file;
-- another one may be half written. `segment_ms`: their duration. `rate_hz`: samples per second. `missing_ms`: audio of the
-- caller that never arrived.
ALTER TABLE recordings ADD COLUMN segments INTEGER;
ALTER TABLE recordings ADD COLUMN segment_ms INTEGER;
ALTER TABLE recordings ADD COLUMN rate_hz INTEGER;
ALTER TABLE recordings ADD COLUMN missing_ms INTEGER;

-- When the steps from each spoken turn of the caller to the assistant's answer were done, a list.
ALTER TABLE call_transcripts ADD COLUMN turns TEXT NOT NULL DEFAULT '[]';

-- The line of voice runs, and how their callers speak.
ALTER TABLE scenarios ADD COLUMN conditions TEXT NOT NULL DEFAULT '{}';
