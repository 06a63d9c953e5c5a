INSERT INTO snapshots (workspace_id, id, content) VALUES
  ('ws_~01', '964fb2978d1e6d5301274f7d46f5c5e62a479e6f3ac124e6bfcdd95a528dc489',
   '{"first_message":"Blue Door, hello.","id":"asst_~01","instructions":"Be kind.","knowledge":[],"model":"builtin/rules","name":"Desk","pipeline_mode":"cascading","revision":3,"tools":[],"voice":"builtin/tone"}'),
  ('ws_~01', '0fc3623198434973ad842c940f15cbefa36fae0dc96e5257cf2a551de7bbcc0d',
   '{"evaluations":[],"name":"Hours","persona":"Brief.","scenario":"Ask when they open."}');
INSERT INTO named_snapshots (workspace_id, hash, assistant, simulation, mode, created_at) VALUES
  ('ws_~01', '7be874227d2fb1ce0c6a3825f14c08d6f07bb65c34e05a8832b247d6738e65c1',
   '964fb2978d1e6d5301274f7d46f5c5e62a479e6f3ac124e6bfcdd95a528dc489',
   '0fc3623198434973ad842c940f15cbefa36fae0dc96e5257cf2a551de7bbcc0d', 'chat', 1700000000000);
UPDATE runs SET snapshot = '7be874227d2fb1ce0c6a3825f14c08d6f07bb65c34e05a8832b247d6738e65c1',
  assistant_snapshot = '964fb2978d1e6d5301274f7d46f5c5e62a479e6f3ac124e6bfcdd95a528dc489',
  simulation_snapshot = '0fc3623198434973ad842c940f15cbefa36fae0dc96e5257cf2a551de7bbcc0d' WHERE id = 'run_~03';
