INSERT INTO call_groups (id, workspace_id, assistant_id, source, model, voice, outcome, sentiment) VALUES
  (5, 'ws_~01', 'asst_~01', 'browser', 'builtin/rules', 'builtin/tone', 'completed', 'neutral'),
  (6, 'ws_~01', '', 'browser', '', '', 'completed', 'neutral');
INSERT INTO calls (seq, id, workspace_id, group_id, assistant_revision, direction, status, started_at, answered_at, ended_at, duration_ms,
  outcome, ended_reason, fault, cost_microusd, telephony_microusd, stt_microusd, llm_microusd, tts_microusd, llm_input_tokens,
  llm_output_tokens, transcript_bytes) VALUES
  (3, 'call_~03', 'ws_~01', 5, 3, 'inbound', 'ended', 1700000200000, 1700000200000, 1700000210000, 10000, 'completed', 'user_hung_up',
   'none', 0, 0, 0, 0, 0, 0, 0, 120);
INSERT INTO call_transcripts (seq, workspace_id, content) VALUES
  (3, 'ws_~01', '[{"index":0,"role":"user","text":"Two baguettes.","start_ms":0,"end_ms":1560,"interrupted":false,"intended_text":null}]');
INSERT INTO call_words (seq, workspace_id, heads, carrier, summary, said) VALUES
  (3, 'ws_~01', 'call ' || substr('call_~03', 6), NULL, NULL, '["Two baguettes"]');
INSERT INTO call_index (rowid, about, said)
  SELECT seq, mark || replace(heads, ' ', ' ' || mark), mark || replace(json_extract(said, '$[0]'), ' ', ' ' || mark)
  FROM call_words, (SELECT substr('ws_~01', -8) || '.' AS mark) WHERE seq = 3;
