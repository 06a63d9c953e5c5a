-- Of an assistant whose calls were deleted.
INSERT INTO call_groups (id, workspace_id, assistant_id, source, model, voice, outcome, sentiment, is_left) VALUES
  (7, 'ws_~01', 'asst_~09', 'browser', 'builtin/rules', 'builtin/tone', 'completed', '', 1);
