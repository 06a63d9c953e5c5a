INSERT INTO used_test_tokens (id, workspace_id, expires_at, link_id, used_at) VALUES
  ('ttok_~03', 'ws_~01', 1700003600000, 'ttok_~04', 1700000000000);
