-- The request that a carrier's token came with first; with another request it is refused. No row has a workspace: which
-- one a request is about is known only after it is found to be genuine. Forgotten when the token is refused for its age.
CREATE TABLE carrier_tokens (
  provider TEXT NOT NULL,
  -- The carrier's id of the token.
  id TEXT NOT NULL,
  -- SHA-256 of method, URL and body.
  request TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (provider, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX carrier_tokens_by_expiry ON carrier_tokens (expires_at);
