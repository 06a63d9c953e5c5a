INSERT INTO used_test_tokens (id, workspace_id, expires_at) VALUES ('ttok_~01', 'ws_~01', 1700003600000);
