-- Its blob is the transcript that the test writes.
UPDATE call_transcripts SET content = '[]', turns = '[]', archive_bytes = 145,
  archive_sha256 = '4fc8cc0977a9b28202b8446dc5564adedecb9ff079a5912d70fe46af04c4b7a7' WHERE seq = 3;
UPDATE workspaces SET archived_until = 1700000250000;
INSERT INTO archives_to_remove (call_id, workspace_id, due_at) VALUES ('call_~90', 'ws_~01', 1700003600000);
