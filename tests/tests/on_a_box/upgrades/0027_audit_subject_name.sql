INSERT INTO audit_entries (id, workspace_id, actor, actor_name, operation, subject, subject_name, created_at) VALUES
  ('aud_~02', 'ws_~01', 'key_~01', 'first', 'delete_tool', 'tool_~09', 'look_down', 1700000000000);
