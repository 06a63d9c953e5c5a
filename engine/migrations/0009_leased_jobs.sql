-- How many jobs of a kind each workspace has under lease: read by every claim, which shares the places fairly.
CREATE INDEX jobs_leased ON jobs (kind, workspace_id, due_at) WHERE lease IS NOT NULL;
