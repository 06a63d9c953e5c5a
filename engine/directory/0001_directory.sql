-- Which database has what, where there are several (shards). Of keys and numbers the shards are the truth: what this database
-- does not know is looked up there.

-- The place of each workspace.
CREATE TABLE workspaces (
  id TEXT PRIMARY KEY,
  state TEXT NOT NULL CHECK (state IN ('at', 'moving', 'settling')),
  -- Where its truth is, by the name of the binding.
  shard TEXT NOT NULL,
  -- moving: the shard that is being filled; settling: the one that is being emptied.
  other_shard TEXT,
  CHECK ((state = 'at') = (other_shard IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX workspaces_by_shard ON workspaces (shard);

-- The workspace of each API key that was seen.
CREATE TABLE keys (
  -- SHA-256 of the key.
  hash TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id)
) STRICT, WITHOUT ROWID;

-- Where the workspace of a bootstrap key is created: decided once, before it exists.
CREATE TABLE bootstraps (
  hash TEXT PRIMARY KEY,
  shard TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The workspace that has a telephone number, or is about to bind it.
CREATE TABLE numbers (
  number TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  -- When it was claimed, while a request is about to bind it. Else 0, or the negative of that: its binding is what counts.
  claimed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- As in the shards: which request a carrier's token came with first, before it is known which workspace it is about.
CREATE TABLE carrier_tokens (
  provider TEXT NOT NULL,
  id TEXT NOT NULL,
  request TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (provider, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX carrier_tokens_by_expiry ON carrier_tokens (expires_at);
