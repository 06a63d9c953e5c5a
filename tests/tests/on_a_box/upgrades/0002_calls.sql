-- The second is a wide one.
INSERT INTO call_groups (id, workspace_id, assistant_id, source, model, voice, outcome, sentiment) VALUES
  (1, 'ws_~01', 'asst_~01', 'simulation', 'builtin/rules', 'builtin/tone', 'completed', ''),
  (2, 'ws_~01', '', 'simulation', '', '', 'completed', '');
INSERT INTO calls (seq, id, workspace_id, group_id, assistant_revision, direction, status, started_at, answered_at, ended_at, duration_ms,
  outcome, ended_reason, fault, cost_microusd, telephony_microusd, stt_microusd, llm_microusd, tts_microusd, llm_input_tokens,
  llm_output_tokens, transcript_bytes) VALUES
  (1, 'call_~01', 'ws_~01', 1, 3, 'inbound', 'ended', 1700000000000, 1700000000000, 1700000060000, 60000, 'completed', 'user_hung_up',
   'none', 12, 0, 0, 12, 0, 10, 5, 120);
INSERT INTO call_transcripts (seq, workspace_id, content) VALUES
  (1, 'ws_~01', '[{"index":0,"role":"user","text":"Do you have sourdough?","start_ms":0,"end_ms":1560,"interrupted":false,"intended_text":null}]');
INSERT INTO call_search (rowid, workspace, words) VALUES (1, replace('ws_~01', '_', ''), 'call_~01 Do you have sourdough?');
