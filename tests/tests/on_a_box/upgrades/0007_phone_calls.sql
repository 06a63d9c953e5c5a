UPDATE workspaces SET calls_at_once = 5;
INSERT INTO call_groups (id, workspace_id, assistant_id, source, model, voice, outcome, sentiment) VALUES
  (3, 'ws_~01', 'asst_~01', 'inbound', 'builtin/rules', 'builtin/tone', 'completed', 'positive'),
  (4, 'ws_~01', '', 'inbound', '', '', 'completed', 'positive');
INSERT INTO calls (seq, id, workspace_id, group_id, assistant_revision, direction, status, from_number, to_number, provider,
  carrier_call_id, started_at, answered_at, ended_at, duration_ms, outcome, ended_reason, fault, analysis, cost_microusd,
  telephony_microusd, stt_microusd, llm_microusd, tts_microusd, llm_input_tokens, llm_output_tokens, transcript_bytes) VALUES
  (2, 'call_~02', 'ws_~01', 3, 3, 'inbound', 'ended', '+14155550123', '+14155550100', 'twilio', 'CA01', 1700000100000, 1700000101000,
   1700000131000, 30000, 'completed', 'user_hung_up', 'none',
   '{"summary":"They wanted a cake.","sentiment":"positive","outcome":null,"method":"rule"}', 8500, 8500, 0, 0, 0, 0, 0, 120);
INSERT INTO call_transcripts (seq, workspace_id, content) VALUES
  (2, 'ws_~01', '[{"index":0,"role":"user","text":"A cake, please.","start_ms":0,"end_ms":1560,"interrupted":false,"intended_text":null}]');
INSERT INTO call_search (rowid, workspace, words) VALUES
  (2, replace('ws_~01', '_', ''), 'call_~02 +14155550123 +14155550100 CA01 They wanted a cake. A cake, please.');
INSERT INTO phone_calls (call_id, workspace_id, assistant_id, provider, carrier_call_id, region_url, job_id, max_seconds, placed, media_at,
  talked_at, hang_up_at, said, is_over, version, created_at) VALUES
  ('call_~02', 'ws_~01', 'asst_~01', 'twilio', 'CA01', NULL, 'job_~02', 3600, 'incoming', 1700000101000, 1700000101000, NULL, '{}', 1, 4,
   1700000100000);
