-- Transcripts of old calls as blobs (`transcripts/<workspace>/<call>.json`).

-- NULL: the transcript is in the row. 0: its blob is being written, or was by a process that died. Else the size of its
-- blob, and the row has empty lists instead.
ALTER TABLE call_transcripts ADD COLUMN archive_bytes INTEGER;
ALTER TABLE call_transcripts ADD COLUMN archive_sha256 TEXT;

-- Calls that ended before this time have been looked at.
ALTER TABLE workspaces ADD COLUMN archived_until INTEGER NOT NULL DEFAULT 0;

-- Blobs of deleted calls. The sweep removes each at `due_at`, when nobody can be writing it any more.
CREATE TABLE archives_to_remove (
  call_id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  due_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX archives_to_remove_due ON archives_to_remove (due_at);
