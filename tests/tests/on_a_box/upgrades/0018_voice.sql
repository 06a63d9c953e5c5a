INSERT INTO assistants (id, workspace_id, name, instructions, first_message, model, voice, pipeline_mode, revision, created_at, updated_at,
  transcriber, language, keyterms, speech, record) VALUES
  ('asst_~02', 'ws_~01', 'Oven', 'Be brief.', '', 'builtin/rules', 'builtin/tone', 'cascading', 1, 1700000000000, 1700000000000,
   'builtin/tone', 'en', '["sourdough"]', '{"interruptible":false,"speed":1.25}', 0);
UPDATE scenarios SET conditions = '{"packet_loss":2,"jitter_ms":40,"noise_db":null,"talk_over":0,"slow_talker":true}'
  WHERE id = 'scen_~02';
INSERT INTO calls (seq, id, workspace_id, group_id, assistant_revision, direction, status, started_at, answered_at, ended_at, duration_ms,
  outcome, ended_reason, fault, cost_microusd, telephony_microusd, stt_microusd, llm_microusd, tts_microusd, llm_input_tokens,
  llm_output_tokens, transcript_bytes, recording_ms) VALUES
  (4, 'call_~04', 'ws_~01', 5, 3, 'inbound', 'ended', 1700000300000, 1700000300000, 1700000301000, 1000, 'completed', 'user_hung_up',
   'none', 0, 0, 0, 0, 0, 0, 0, 120, 1000);
INSERT INTO call_transcripts (seq, workspace_id, content, turns) VALUES
  (4, 'ws_~01', '[{"index":0,"role":"user","text":"Is it fresh?","start_ms":0,"end_ms":400,"interrupted":false,"intended_text":null}]',
   '[{"end_of_speech_ms":400,"transcript_ms":420,"model_first_ms":450,"speech_first_ms":500,"heard_first_ms":540}]');
INSERT INTO call_words (seq, workspace_id, heads, carrier, summary, said) VALUES
  (4, 'ws_~01', 'call ' || substr('call_~04', 6), NULL, NULL, '["Is it fresh"]');
INSERT INTO call_index (rowid, about, said)
  SELECT seq, mark || replace(heads, ' ', ' ' || mark), mark || replace(json_extract(said, '$[0]'), ' ', ' ' || mark)
  FROM call_words, (SELECT substr('ws_~01', -8) || '.' AS mark) WHERE seq = 4;
-- Its blob is the segment that the test writes.
INSERT INTO recordings (id, workspace_id, call_id, state, due_at, size_bytes, sha256, duration_ms, peaks, created_at, segments, segment_ms,
  rate_hz, missing_ms) VALUES
  ('rec_~04', 'ws_~01', 'call_~04', 'ready', NULL, 32044,
   'f244f8fcb7e7ac264cf81640762529d64607752fc91a34bb4b0452dfbfa7ae04', 1000, 'AAAAAAAAAAAAAAAAAAAAAAAAAAA=', 1700000301000, 1, 5000,
   8000, 20);
