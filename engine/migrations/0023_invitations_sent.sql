-- How many invitations a workspace sent lately is counted by each new one: without reading its other changes.
CREATE INDEX audit_entries_of_invitations ON audit_entries (workspace_id, id) WHERE operation = 'invite_person';
