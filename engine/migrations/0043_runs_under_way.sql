-- Whether a batch goes on, without reading its runs that have ended.
CREATE INDEX runs_under_way ON runs (workspace_id, batch_id) WHERE status IN ('queued', 'running');
