-- One that was deleted: the sweep has removed its blob. Blobs of then were WAV files; recordings that are read came with 0018.
INSERT INTO recordings (id, workspace_id, call_id, state, due_at, size_bytes, sha256, duration_ms, peaks, created_at) VALUES
  ('rec_~01', 'ws_~01', 'call_~01', 'deleted', NULL, 960044,
   'cb41b38387d6fca01272be03380f63568fccbd724c299ae58e8d548d91b67a58', 60000, NULL, 1700000060000);
