INSERT INTO call_inputs (workspace_id, call_id, place, piece, entries) VALUES ('ws_~01', 'call_~04', 0, 0, '[]');
