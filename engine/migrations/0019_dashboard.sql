-- The dashboard: people, their workspaces, their sessions. Secrets are stored as hashes only.

-- A person, known by who vouches for them: `email` (a code sent to the address), `operator` (the link of the first start),
-- or the URL of an OpenID issuer. An e-mail address is no key: it may change hands.
CREATE TABLE accounts (
  id TEXT PRIMARY KEY,
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  email TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX accounts_by_subject ON accounts (issuer, subject);

CREATE TABLE memberships (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  account_id TEXT NOT NULL REFERENCES accounts (id),
  role TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (workspace_id, account_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX memberships_by_account ON memberships (account_id, workspace_id);

CREATE TABLE sessions (
  id TEXT PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  client TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  seen_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_by_account ON sessions (account_id, id);
CREATE INDEX sessions_by_end ON sessions (expires_at);

-- What was sent to prove an address: a code for the browser that asked for it, a link for any. Kept for an hour after its
-- use, because it counts for the throttle.
CREATE TABLE sign_ins (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  email TEXT NOT NULL,
  source TEXT NOT NULL,
  visit_hash TEXT NOT NULL,
  code_hash TEXT NOT NULL,
  link_hash TEXT NOT NULL UNIQUE,
  next TEXT NOT NULL,
  tries INTEGER NOT NULL,
  used_at INTEGER,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX sign_ins_by_email ON sign_ins (email, created_at);
CREATE INDEX sign_ins_by_source ON sign_ins (source, created_at);
CREATE INDEX sign_ins_by_visit ON sign_ins (visit_hash, created_at);
CREATE INDEX sign_ins_by_age ON sign_ins (created_at);

-- A sign-in at an OpenID provider that has begun: one use, in the browser that began it.
CREATE TABLE oidc_sign_ins (
  state_hash TEXT PRIMARY KEY,
  visit_hash TEXT NOT NULL,
  source TEXT NOT NULL,
  issuer TEXT NOT NULL,
  nonce TEXT NOT NULL,
  verifier TEXT NOT NULL,
  next TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX oidc_sign_ins_by_source ON oidc_sign_ins (source, created_at);
CREATE INDEX oidc_sign_ins_by_age ON oidc_sign_ins (created_at);

CREATE TABLE invitations (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  email TEXT NOT NULL,
  role TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  invited_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX invitations_by_workspace ON invitations (workspace_id, id);
CREATE INDEX invitations_by_end ON invitations (expires_at);

-- Who changed what. `actor` is an API key or an account; `actor_name` is how it was called then.
CREATE TABLE audit_entries (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  actor TEXT NOT NULL,
  actor_name TEXT NOT NULL,
  operation TEXT NOT NULL,
  subject TEXT,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX audit_entries_by_workspace ON audit_entries (workspace_id, id);

-- A code, a link or an invitation signs in once.
ALTER TABLE batch_guard ADD COLUMN admins INTEGER NOT NULL DEFAULT 1 CONSTRAINT last_admin CHECK (admins = 1);
ALTER TABLE batch_guard ADD COLUMN proof INTEGER NOT NULL DEFAULT 1 CONSTRAINT proof_used CHECK (proof = 1);
