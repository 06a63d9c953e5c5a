UPDATE webhooks SET secret_version = 2, old_secret_until = 1700086400000;
UPDATE tools SET secret_version = 2, old_secret_until = 1700086400000;
INSERT INTO events (id, workspace_id, type, body, created_at) VALUES
  ('evt_~01', 'ws_~01', 'call.ended',
   '{"id":"evt_~01","type":"call.ended","created_at":"2023-11-14T22:14:20.000Z","workspace_id":"ws_~01","data":{"call":{"id":"call_~01","status":"ended"}}}',
   1700000060000),
  ('evt_~02', 'ws_~01', 'webhook.test',
   '{"id":"evt_~02","type":"webhook.test","created_at":"2023-11-14T22:14:20.000Z","workspace_id":"ws_~01","data":{"webhook":{"id":"hook_~01"}}}',
   1700000060000);
-- The last attempt of the third is far from due, so the test sends nothing.
INSERT INTO deliveries (id, workspace_id, webhook_id, event_id, type, body_bytes, status, attempts, failures, due_at, last_status,
  last_error, last_response, created_at, delivered_at) VALUES
  ('dlv_~01', 'ws_~01', 'hook_~01', 'evt_~01', 'call.ended', 220, 'delivered', 1, 0, NULL, 200, NULL, 'ok', 1700000060000, 1700000061000),
  ('dlv_~02', 'ws_~01', 'hook_~01', 'evt_~02', 'webhook.test', 208, 'failed', 8, 8, NULL, 500, 'the status was 500', 'no', 1700000060000,
   NULL),
  ('dlv_~03', 'ws_~01', 'hook_~01', 'evt_~01', 'call.ended', 220, 'pending', 1, 1, 4102444800000, NULL, 'timeout', NULL, 1700000060000,
   NULL);
INSERT INTO jobs (id, workspace_id, kind, subject_id, due_at, lease, attempts, created_at) VALUES
  ('job_~01', 'ws_~01', 'webhook_delivery', 'hook_~01', 4102444800000, NULL, 1, 1700000060000);
