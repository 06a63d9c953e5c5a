-- Telephone calls: what is between the service and a carrier about each of them.
CREATE TABLE phone_calls (
  call_id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  assistant_id TEXT NOT NULL,
  provider TEXT NOT NULL,
  -- The carrier's own id; NULL until it has named one.
  carrier_call_id TEXT,
  -- Where the carrier wants requests about this call.
  region_url TEXT,
  -- The job that sees the call through.
  job_id TEXT NOT NULL,
  max_seconds INTEGER NOT NULL,
  -- 'incoming'; or of the request that places a call: 'asking', then 'accepted', 'rejected' or 'unknown'.
  placed TEXT NOT NULL,
  -- When the media socket was opened: its token is used.
  media_at INTEGER,
  -- When audio began to come over it.
  talked_at INTEGER,
  -- When somebody asked the service to hang up.
  hang_up_at INTEGER,
  -- What the carrier has said, as JSON.
  said TEXT NOT NULL,
  -- 1 once the call has ended.
  is_over INTEGER NOT NULL,
  -- Counts changes: whoever ends the call has seen the last one.
  version INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX phone_calls_by_carrier ON phone_calls (provider, carrier_call_id) WHERE carrier_call_id IS NOT NULL;
CREATE INDEX phone_calls_under_way ON phone_calls (workspace_id) WHERE is_over = 0;

-- How many telephone calls a workspace may have at once; further ones are refused.
ALTER TABLE workspaces ADD COLUMN calls_at_once INTEGER NOT NULL DEFAULT 100;
