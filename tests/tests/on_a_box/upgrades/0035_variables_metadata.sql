UPDATE calls SET variables = '{"name":"Ada"}', metadata = '{"order":"17"}' WHERE id = 'call_~04';
INSERT INTO call_metadata (workspace_id, name, value, seq) VALUES ('ws_~01', 'order', '17', 4);
UPDATE runs SET variables = '{"name":"Ben"}', metadata = '{"ticket":"9"}' WHERE id = 'run_~03';
UPDATE scenarios SET variables = '{"name":"Cy"}' WHERE id = 'scen_~02';
UPDATE assistants SET metadata = '{"team":"ovens"}';
UPDATE tools SET metadata = '{"team":"ovens"}';
UPDATE documents SET metadata = '{"team":"ovens"}';
UPDATE webhooks SET metadata = '{"team":"ovens"}';
UPDATE numbers SET metadata = '{"team":"ovens"}';
UPDATE personas SET metadata = '{"team":"ovens"}';
UPDATE scenarios SET metadata = '{"team":"ovens"}';
UPDATE simulations SET metadata = '{"team":"ovens"}';
UPDATE assistant_revisions SET metadata = '{"team":"ovens"}';
INSERT INTO test_token_values (id, workspace_id, expires_at, variables, metadata) VALUES
  ('ttok_~02', 'ws_~01', 1700003600000, '{"name":"Ada"}', '{"order":"18"}');
