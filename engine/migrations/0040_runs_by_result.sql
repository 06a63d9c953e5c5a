-- For the runs that failed, of all that a workspace has.
CREATE INDEX runs_by_passed ON runs (workspace_id, passed, id);
