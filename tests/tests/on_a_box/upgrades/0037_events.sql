INSERT INTO event_log (id, workspace_id, type, subject_id, call_id, created_at) VALUES
  ('evt_~04', 'ws_~01', 'call.ended', 'call_~04', 'call_~04', 1700000301000),
  ('evt_~05', 'ws_~01', 'simulation.run.completed', 'run_~02', 'call_~01', 1700000302000);
