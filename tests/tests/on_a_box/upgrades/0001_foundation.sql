INSERT INTO workspaces (id, name, created_at) VALUES ('ws_~01', 'Bakery', 1700000000000);
INSERT INTO api_keys (id, workspace_id, name, hash, hint, created_at, revoked_at) VALUES
  ('key_~02', 'ws_~01', 'revoked', 'b0', 'sidetone_…wxyz', 1700000000000, 1700000060000);
INSERT INTO idempotency_keys (workspace_id, key, fingerprint, status, body, etag, reveal, created_at) VALUES
  ('ws_~01', 'one', 'f0', 201, '{"id":"asst_~01"}', 3, NULL, 1700000000000);
INSERT INTO assistants (id, workspace_id, name, instructions, first_message, model, voice, pipeline_mode, revision, created_at,
  updated_at) VALUES
  ('asst_~01', 'ws_~01', 'Desk', 'Be kind.', 'Blue Door, hello.', 'builtin/rules', 'builtin/tone', 'cascading', 3, 1700000000000,
   1700000000000);
INSERT INTO tools (id, workspace_id, name, url, method, description, parameters, timeout_ms, secret_version, revision, created_at,
  updated_at) VALUES
  ('tool_~01', 'ws_~01', 'look_up', 'https://tools.example/', 'POST', 'Looks up.', '{"type":"object","properties":{}}', 5000, 1, 1,
   1700000000000, 1700000000000);
INSERT INTO documents (id, workspace_id, name, content, source, size_bytes, revision, created_at, updated_at) VALUES
  ('doc_~01', 'ws_~01', 'Hours', 'We open at nine.', 'text', 16, 1, 1700000000000, 1700000000000);
INSERT INTO assistant_tools (workspace_id, assistant_id, tool_id, position) VALUES ('ws_~01', 'asst_~01', 'tool_~01', 0);
INSERT INTO assistant_documents (workspace_id, assistant_id, document_id, position) VALUES ('ws_~01', 'asst_~01', 'doc_~01', 0);
INSERT INTO numbers (number, workspace_id, assistant_id, provider, created_at, updated_at) VALUES
  ('+14155550100', 'ws_~01', 'asst_~01', 'twilio', 1700000000000, 1700000000000);
INSERT INTO webhooks (id, workspace_id, url, events, enabled, secret_version, revision, created_at, updated_at) VALUES
  ('hook_~01', 'ws_~01', 'https://hooks.example/', '["call.ended"]', 1, 1, 1, 1700000000000, 1700000000000);
INSERT INTO personas (id, workspace_id, name, system_prompt, revision, created_at, updated_at) VALUES
  ('pers_~01', 'ws_~01', 'Ada', 'Brief.', 1, 1700000000000, 1700000000000);
INSERT INTO scenarios (id, workspace_id, name, instructions, evaluations, revision, created_at, updated_at) VALUES
  ('scen_~01', 'ws_~01', 'Hours', 'Ask when they open.', '[{"kind":"transcript","role":"assistant","includes":"nine"}]', 1,
   1700000000000, 1700000000000);
INSERT INTO simulations (id, workspace_id, assistant_id, persona_id, scenario_id, name, revision, created_at, updated_at) VALUES
  ('sim_~01', 'ws_~01', 'asst_~01', 'pers_~01', 'scen_~01', 'Hours', 1, 1700000000000, 1700000000000);
INSERT INTO snapshots (workspace_id, id, content) VALUES
  ('ws_~01', 'aa', '{"id":"asst_~01","name":"Desk","revision":3}'), ('ws_~01', 'bb', '{"name":"Hours"}');
INSERT INTO runs (id, workspace_id, simulation_id, assistant_id, assistant_revision, assistant_snapshot, simulation_snapshot, mode,
  seed, status, passed, evaluations, transcript, created_at, started_at, completed_at) VALUES
  ('run_~01', 'ws_~01', 'sim_~01', 'asst_~01', 3, 'aa', 'bb', 'chat', 7, 'completed', 1, '[]',
   '[{"role":"assistant","text":"Blue Door, hello."}]', 1700000000000, 1700000000000, 1700000001000);
