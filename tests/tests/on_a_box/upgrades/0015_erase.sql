UPDATE workspaces SET call_retention_days = 3650, recording_retention_days = 3650;
INSERT INTO events (id, workspace_id, type, body, call_id, created_at) VALUES
  ('evt_~03', 'ws_~01', 'recording.ready',
   '{"id":"evt_~03","type":"recording.ready","created_at":"2023-11-14T22:14:20.000Z","workspace_id":"ws_~01","data":{"call":{"id":"call_~02","status":"ended"}}}',
   'call_~02', 1700000060000);
-- The leg of a call that was deleted.
INSERT INTO phone_calls (call_id, workspace_id, assistant_id, provider, carrier_call_id, region_url, job_id, max_seconds, placed, media_at,
  talked_at, hang_up_at, said, is_over, version, created_at, delete_at) VALUES
  ('call_~90', 'ws_~01', 'asst_~01', 'twilio', 'CA90', NULL, 'job_~90', 3600, 'accepted', NULL, NULL, NULL, '{}', 1, 2, 1700000100000,
   1700086400000);
INSERT INTO search_erasures (workspace_id, merging) VALUES ('ws_~01', 0);
