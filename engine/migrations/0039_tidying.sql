-- A run's events go with the run. Those of calls are found by the call.
CREATE INDEX event_log_by_subject ON event_log (workspace_id, subject_id) WHERE call_id IS NOT subject_id;

-- A group that the deletion of calls has left without any: the sweep deletes it. Of an assistant that is not stored, each
-- change is another one, with groups of its own.
ALTER TABLE call_groups ADD COLUMN is_left INTEGER NOT NULL DEFAULT 0;
CREATE INDEX call_groups_left ON call_groups (id) WHERE is_left = 1;
UPDATE call_groups SET is_left = 1 WHERE assistant_id <> '' AND NOT EXISTS (SELECT 1 FROM calls WHERE calls.group_id = call_groups.id);

-- The test link that a conversation was opened with, if it may start again. It has one conversation at a time: a further one
-- takes it, and the earlier one ends.
ALTER TABLE live_calls ADD COLUMN link_id TEXT;
ALTER TABLE live_calls ADD COLUMN is_replaced INTEGER NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX live_calls_by_link ON live_calls (workspace_id, link_id) WHERE link_id IS NOT NULL;
