-- What an assistant does when a machine answers its outbound call, as JSON; null: nothing is detected.
ALTER TABLE assistants ADD COLUMN voicemail TEXT;
ALTER TABLE assistant_revisions ADD COLUMN voicemail TEXT;
