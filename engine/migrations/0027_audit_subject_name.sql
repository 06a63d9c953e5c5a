-- How the subject of a change was called then. What was deleted or renamed keeps the name in the log.
ALTER TABLE audit_entries ADD COLUMN subject_name TEXT;
UPDATE audit_entries SET subject_name = COALESCE(
  (SELECT name FROM assistants WHERE id = subject),
  (SELECT name FROM tools WHERE id = subject),
  (SELECT name FROM documents WHERE id = subject),
  (SELECT name FROM api_keys WHERE id = subject),
  (SELECT name FROM personas WHERE id = subject),
  (SELECT name FROM scenarios WHERE id = subject),
  (SELECT name FROM simulations WHERE id = subject),
  (SELECT url FROM webhooks WHERE id = subject),
  (SELECT email FROM invitations WHERE id = subject),
  (SELECT email FROM accounts WHERE id = subject)
);
