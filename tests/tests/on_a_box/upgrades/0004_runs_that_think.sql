UPDATE workspaces SET monthly_spend_limit_microusd = 5000000, runs_at_once = 8;
INSERT INTO spending (workspace_id, month, microusd) VALUES ('ws_~01', '2023-11', 1200);
INSERT INTO personas (id, workspace_id, name, system_prompt, model, revision, created_at, updated_at) VALUES
  ('pers_~02', 'ws_~01', 'Ben', 'Angry.', 'builtin/rules', 1, 1700000000000, 1700000000000);
INSERT INTO scenarios (id, workspace_id, name, instructions, evaluations, judge_model, revision, created_at, updated_at) VALUES
  ('scen_~02', 'ws_~01', 'Bread', 'Ask for rye.', '[]', 'builtin/rules', 1, 1700000000000, 1700000000000);
INSERT INTO runs (id, workspace_id, simulation_id, batch_id, assistant_id, assistant_revision, assistant_snapshot, simulation_snapshot,
  mode, seed, status, passed, error, evaluations, transcript, created_at, started_at, completed_at, call_id, turns, last_line,
  cost_microusd, max_cost_microusd) VALUES
  ('run_~02', 'ws_~01', 'sim_~01', 'batch_~01', 'asst_~01', 3, 'aa', 'bb', 'chat', 8, 'completed', 0, NULL,
   '[{"kind":"transcript","role":"assistant","includes":"nine","passed":false,"reason":"No line says it."}]', '[]', 1700000000000,
   1700000000000, 1700000060000, 'call_~01', 1, 'Do you have sourdough?', 12, 500000),
  ('run_~03', 'ws_~01', 'sim_~01', 'batch_~01', 'asst_~01', 3, 'aa', 'bb', 'chat', 9, 'error', NULL,
   '{"code":"model_failed","message":"The model did not answer."}', '[]', '[]', 1700000000000, 1700000000000, 1700000060000, NULL, 0,
   NULL, 0, 1000000);
UPDATE calls SET simulation_run_id = 'run_~02' WHERE id = 'call_~01';
