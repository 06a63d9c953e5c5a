-- Of a workspace that came from another host: its secrets are not derived from ids alone, which somebody else chose.
ALTER TABLE workspaces ADD COLUMN secret_salt TEXT;
-- The secrets that signed when it moved, sealed: {"version": 3, "sealed": ["of this version", "of the one before"]}.
ALTER TABLE tools ADD COLUMN carried_secrets TEXT;
ALTER TABLE webhooks ADD COLUMN carried_secrets TEXT;
