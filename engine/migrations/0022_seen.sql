-- When a key was last used, to the hour, and when a carrier last announced a call to a number: null for never.
ALTER TABLE api_keys ADD COLUMN last_used_at INTEGER;
ALTER TABLE numbers ADD COLUMN last_callback_at INTEGER;
CREATE INDEX invitations_by_email ON invitations (email);
