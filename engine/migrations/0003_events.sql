-- Events, their deliveries to webhooks, and the second secret that signs after a rotation.

-- Until when the secret before `secret_version` signs too; NULL when it does not.
ALTER TABLE webhooks ADD COLUMN old_secret_until INTEGER;
ALTER TABLE tools ADD COLUMN old_secret_until INTEGER;

-- What happened, as the bytes that are sent. Only there when a webhook wanted it; the ids hold the time.
CREATE TABLE events (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  type TEXT NOT NULL,
  body TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

-- One event on its way to one webhook. History: it outlives the webhook it names, so it does not
-- reference it. `due_at` is when the next attempt may be made, and is there while it is pending only.
-- `attempts` counts all of them, `failures` those since the schedule began.
CREATE TABLE deliveries (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  webhook_id TEXT NOT NULL,
  event_id TEXT NOT NULL,
  type TEXT NOT NULL,
  body_bytes INTEGER NOT NULL,
  status TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  failures INTEGER NOT NULL,
  due_at INTEGER,
  last_status INTEGER,
  last_error TEXT,
  last_response TEXT,
  created_at INTEGER NOT NULL,
  delivered_at INTEGER
) STRICT;
CREATE INDEX deliveries_by_webhook ON deliveries (workspace_id, webhook_id, id);
CREATE INDEX deliveries_by_status ON deliveries (workspace_id, webhook_id, status, id);
CREATE INDEX deliveries_by_due ON deliveries (webhook_id, due_at, id) WHERE due_at IS NOT NULL;

-- A webhook has one job, however many deliveries wait.
CREATE UNIQUE INDEX jobs_one_a_webhook ON jobs (subject_id) WHERE kind = 'webhook_delivery';
-- Jobs are claimed by kind, so that those of one kind are never in the way of another's.
DROP INDEX jobs_by_due;
DROP INDEX jobs_by_workspace;
CREATE INDEX jobs_by_kind ON jobs (kind, due_at);
CREATE INDEX jobs_by_kind_and_workspace ON jobs (kind, workspace_id, due_at, id);
