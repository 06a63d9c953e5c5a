-- When somebody last signed out of a workspace: the next sign-in opens it again.
ALTER TABLE memberships ADD COLUMN used_at INTEGER NOT NULL DEFAULT 0;
