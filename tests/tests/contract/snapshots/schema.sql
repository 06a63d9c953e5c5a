CREATE UNIQUE INDEX accounts_by_subject ON accounts (issuer, subject);
CREATE INDEX api_keys_by_workspace ON api_keys (workspace_id, id);
CREATE INDEX api_keys_in_use ON api_keys (workspace_id, id) WHERE revoked_at IS NULL;
CREATE INDEX archives_to_remove_due ON archives_to_remove (due_at);
CREATE INDEX assistant_documents_by_document ON assistant_documents (document_id);
CREATE INDEX assistant_tools_by_tool ON assistant_tools (tool_id);
CREATE INDEX assistants_by_workspace ON assistants (workspace_id, id);
CREATE INDEX audit_entries_by_workspace ON audit_entries (workspace_id, id);
CREATE INDEX audit_entries_of_invitations ON audit_entries (workspace_id, id) WHERE operation = 'invite_person';
CREATE INDEX call_groups_left ON call_groups (id) WHERE is_left = 1;
CREATE INDEX call_metadata_by_call ON call_metadata (seq);
CREATE INDEX calls_by_carrier ON calls (provider, carrier_call_id) WHERE carrier_call_id IS NOT NULL;
CREATE INDEX calls_by_cost ON calls (workspace_id, cost_microusd, seq, group_id, started_at);
CREATE INDEX calls_by_duration_ms ON calls (workspace_id, duration_ms, seq, group_id, started_at);
CREATE INDEX calls_by_ended_at ON calls (workspace_id, ended_at, seq, group_id, started_at);
CREATE INDEX calls_by_group ON calls (group_id, started_at);
CREATE INDEX calls_by_snapshot ON calls (workspace_id, snapshot) WHERE snapshot IS NOT NULL;
CREATE INDEX calls_by_started_at ON calls (workspace_id, started_at, seq, group_id, duration_ms, cost_microusd);
CREATE INDEX carrier_tokens_by_expiry ON carrier_tokens (expires_at);
CREATE INDEX deliveries_by_due ON deliveries (webhook_id, due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_by_event ON deliveries (event_id);
CREATE INDEX deliveries_by_status ON deliveries (workspace_id, webhook_id, status, id);
CREATE INDEX deliveries_by_webhook ON deliveries (workspace_id, webhook_id, id);
CREATE UNIQUE INDEX documents_by_name ON documents (workspace_id, name);
CREATE INDEX documents_by_workspace ON documents (workspace_id, id);
CREATE INDEX event_log_by_call ON event_log (workspace_id, call_id);
CREATE INDEX event_log_by_subject ON event_log (workspace_id, subject_id) WHERE call_id IS NOT subject_id;
CREATE INDEX event_log_by_type ON event_log (workspace_id, type, id);
CREATE INDEX event_log_by_workspace ON event_log (workspace_id, id);
CREATE INDEX events_by_call ON events (workspace_id, call_id) WHERE call_id <> '';
CREATE INDEX events_of_unknown_calls ON events (workspace_id, id) WHERE call_id IS NULL;
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);
CREATE INDEX idempotency_keys_by_batch ON idempotency_keys (workspace_id, json_extract(body, '$.batch_id'));
CREATE INDEX idempotency_keys_by_id ON idempotency_keys (workspace_id, json_extract(body, '$.id'));
CREATE INDEX idempotency_keys_large ON idempotency_keys (workspace_id) WHERE OCTET_LENGTH(body) > 131072;
CREATE INDEX invitations_by_email ON invitations (email);
CREATE INDEX invitations_by_end ON invitations (expires_at);
CREATE INDEX invitations_by_workspace ON invitations (workspace_id, id);
CREATE INDEX jobs_by_kind ON jobs (kind, due_at);
CREATE INDEX jobs_by_kind_and_workspace ON jobs (kind, workspace_id, due_at, id);
CREATE INDEX jobs_by_lease ON jobs (lease);
CREATE INDEX jobs_by_subject ON jobs (subject_id);
CREATE INDEX jobs_leased ON jobs (kind, workspace_id, due_at) WHERE lease IS NOT NULL;
CREATE UNIQUE INDEX jobs_one_a_webhook ON jobs (subject_id) WHERE kind = 'webhook_delivery';
CREATE UNIQUE INDEX live_calls_by_link ON live_calls (workspace_id, link_id) WHERE link_id IS NOT NULL;
CREATE INDEX memberships_by_account ON memberships (account_id, workspace_id);
CREATE INDEX named_snapshots_by_assistant ON named_snapshots (workspace_id, assistant);
CREATE INDEX named_snapshots_by_simulation ON named_snapshots (workspace_id, simulation);
CREATE INDEX numbers_by_assistant ON numbers (assistant_id);
CREATE INDEX numbers_by_workspace ON numbers (workspace_id, number);
CREATE INDEX oidc_sign_ins_by_age ON oidc_sign_ins (created_at);
CREATE INDEX oidc_sign_ins_by_source ON oidc_sign_ins (source, created_at);
CREATE INDEX personas_by_workspace ON personas (workspace_id, id);
CREATE UNIQUE INDEX phone_calls_by_carrier ON phone_calls (provider, carrier_call_id) WHERE carrier_call_id IS NOT NULL;
CREATE INDEX phone_calls_handed_over ON phone_calls (workspace_id) WHERE line_until IS NOT NULL;
CREATE INDEX phone_calls_to_delete ON phone_calls (delete_at) WHERE delete_at IS NOT NULL;
CREATE INDEX phone_calls_under_way ON phone_calls (workspace_id) WHERE is_over = 0;
CREATE INDEX recordings_by_age ON recordings (workspace_id, created_at, id) WHERE state = 'ready';
CREATE INDEX recordings_due ON recordings (due_at) WHERE due_at IS NOT NULL;
CREATE UNIQUE INDEX recordings_one_a_call ON recordings (call_id) WHERE state <> 'abandoned';
CREATE INDEX runs_by_assistant ON runs (workspace_id, assistant_id, id);
CREATE INDEX runs_by_assistant_snapshot ON runs (workspace_id, assistant_snapshot);
CREATE INDEX runs_by_batch ON runs (workspace_id, batch_id, id);
CREATE INDEX runs_by_passed ON runs (workspace_id, passed, id);
CREATE INDEX runs_by_simulation ON runs (workspace_id, simulation_id, id);
CREATE INDEX runs_by_simulation_snapshot ON runs (workspace_id, simulation_snapshot);
CREATE INDEX runs_by_snapshot ON runs (workspace_id, snapshot) WHERE snapshot IS NOT NULL;
CREATE INDEX runs_by_status ON runs (workspace_id, status, id);
CREATE INDEX runs_by_workspace ON runs (workspace_id, id);
CREATE INDEX runs_under_way ON runs (workspace_id, batch_id) WHERE status IN ('queued', 'running');
CREATE INDEX scenarios_by_workspace ON scenarios (workspace_id, id);
CREATE INDEX sessions_by_account ON sessions (account_id, id);
CREATE INDEX sessions_by_end ON sessions (expires_at);
CREATE INDEX sign_ins_by_age ON sign_ins (created_at);
CREATE INDEX sign_ins_by_email ON sign_ins (email, created_at);
CREATE INDEX sign_ins_by_source ON sign_ins (source, created_at);
CREATE INDEX sign_ins_by_visit ON sign_ins (visit_hash, created_at);
CREATE INDEX simulations_by_assistant ON simulations (assistant_id, id);
CREATE INDEX simulations_by_persona ON simulations (persona_id);
CREATE INDEX simulations_by_scenario ON simulations (scenario_id);
CREATE INDEX simulations_by_workspace ON simulations (workspace_id, id);
CREATE INDEX test_token_values_by_expiry ON test_token_values (expires_at);
CREATE INDEX test_token_values_by_workspace ON test_token_values (workspace_id, expires_at);
CREATE UNIQUE INDEX tools_by_name ON tools (workspace_id, name);
CREATE INDEX tools_by_workspace ON tools (workspace_id, id);
CREATE INDEX used_test_tokens_by_expiry ON used_test_tokens (expires_at);
CREATE INDEX used_test_tokens_by_link ON used_test_tokens (link_id, used_at) WHERE link_id IS NOT NULL;
CREATE INDEX webhooks_by_workspace ON webhooks (workspace_id, id);
CREATE TABLE accounts (
  id TEXT PRIMARY KEY,
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  email TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  name TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  hint TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  revoked_at INTEGER
, last_used_at INTEGER) STRICT;
CREATE TABLE archives_to_remove (
  call_id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  due_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE assistant_documents (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  assistant_id TEXT NOT NULL REFERENCES assistants (id),
  document_id TEXT NOT NULL REFERENCES documents (id),
  position INTEGER NOT NULL,
  PRIMARY KEY (assistant_id, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE assistant_revisions (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  instructions TEXT NOT NULL,
  first_message TEXT NOT NULL,
  model TEXT NOT NULL,
  voice TEXT NOT NULL,
  pipeline_mode TEXT NOT NULL,
  transcriber TEXT NOT NULL,
  language TEXT NOT NULL,
  keyterms TEXT NOT NULL,
  speech TEXT NOT NULL,
  record INTEGER NOT NULL,
  tool_ids TEXT NOT NULL,
  knowledge_ids TEXT NOT NULL,
  revision INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL, keys INTEGER NOT NULL DEFAULT 0, transfers TEXT NOT NULL DEFAULT '[]', voicemail TEXT, metadata TEXT NOT NULL DEFAULT '{}',
  PRIMARY KEY (workspace_id, id, revision)
) STRICT;
CREATE TABLE assistant_tools (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  assistant_id TEXT NOT NULL REFERENCES assistants (id),
  tool_id TEXT NOT NULL REFERENCES tools (id),
  position INTEGER NOT NULL,
  PRIMARY KEY (assistant_id, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE assistants (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  name TEXT NOT NULL,
  instructions TEXT NOT NULL,
  first_message TEXT NOT NULL,
  model TEXT NOT NULL,
  voice TEXT NOT NULL,
  pipeline_mode TEXT NOT NULL,
  revision INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
, transcriber TEXT NOT NULL DEFAULT '', language TEXT NOT NULL DEFAULT '', keyterms TEXT NOT NULL DEFAULT '[]', speech TEXT NOT NULL DEFAULT '{}', record INTEGER NOT NULL DEFAULT 1, keys INTEGER NOT NULL DEFAULT 0, transfers TEXT NOT NULL DEFAULT '[]', voicemail TEXT, metadata TEXT NOT NULL DEFAULT '{}') STRICT;
CREATE TABLE audit_entries (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  actor TEXT NOT NULL,
  actor_name TEXT NOT NULL,
  operation TEXT NOT NULL,
  subject TEXT,
  created_at INTEGER NOT NULL
, subject_name TEXT) STRICT;
CREATE TABLE batch_guard (
  ok INTEGER NOT NULL DEFAULT 1 CONSTRAINT stale CHECK (ok = 1),
  key_ok INTEGER NOT NULL DEFAULT 1 CONSTRAINT unknown_key CHECK (key_ok = 1),
  knowledge_fits INTEGER NOT NULL DEFAULT 1 CONSTRAINT knowledge_limit CHECK (knowledge_fits = 1)
, room INTEGER NOT NULL DEFAULT 1 CONSTRAINT limit_reached CHECK (room = 1), admins INTEGER NOT NULL DEFAULT 1 CONSTRAINT last_admin CHECK (admins = 1), proof INTEGER NOT NULL DEFAULT 1 CONSTRAINT proof_used CHECK (proof = 1), send_keys_is_free INTEGER NOT NULL DEFAULT 1
  CONSTRAINT send_keys_taken CHECK (send_keys_is_free = 1), transfer_call_is_free INTEGER NOT NULL DEFAULT 1
  CONSTRAINT transfer_call_taken CHECK (transfer_call_is_free = 1), own INTEGER NOT NULL DEFAULT 1 CONSTRAINT names_a_stranger CHECK (own = 1)) STRICT;
CREATE TABLE call_groups (
  -- Of this database: a workspace that moves to another gets others, its calls' seq likewise.
  id INTEGER PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  assistant_id TEXT NOT NULL,
  source TEXT NOT NULL,
  model TEXT NOT NULL,
  voice TEXT NOT NULL,
  outcome TEXT NOT NULL,
  sentiment TEXT NOT NULL, is_left INTEGER NOT NULL DEFAULT 0,
  UNIQUE (workspace_id, assistant_id, source, model, voice, outcome, sentiment)
) STRICT;
CREATE VIRTUAL TABLE call_index USING fts5 (
  about, said, said2, said3, said4,
  content = '', contentless_delete = 1, tokenize = "unicode61 remove_diacritics 2 tokenchars '.'"
);
CREATE TABLE 'call_index_config'(k PRIMARY KEY, v) WITHOUT ROWID;
CREATE TABLE 'call_index_data'(id INTEGER PRIMARY KEY, block BLOB);
CREATE TABLE 'call_index_docsize'(id INTEGER PRIMARY KEY, sz BLOB, origin INTEGER);
CREATE TABLE 'call_index_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;
CREATE TABLE call_inputs (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  call_id TEXT NOT NULL,
  place INTEGER NOT NULL,
  piece INTEGER NOT NULL,
  entries TEXT NOT NULL,
  PRIMARY KEY (call_id, place, piece)
) STRICT, WITHOUT ROWID;
CREATE TABLE call_metadata (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  seq INTEGER NOT NULL REFERENCES calls (seq),
  PRIMARY KEY (workspace_id, name, value, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE call_rollups (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  group_id INTEGER NOT NULL REFERENCES call_groups (id),
  span_ms INTEGER NOT NULL,
  starts_at INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  duration_ms INTEGER NOT NULL,
  cost_microusd INTEGER NOT NULL,
  PRIMARY KEY (workspace_id, group_id, span_ms, starts_at)
) STRICT, WITHOUT ROWID;
CREATE VIRTUAL TABLE call_search USING fts5 (
  workspace, words, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);
CREATE TABLE 'call_search_config'(k PRIMARY KEY, v) WITHOUT ROWID;
CREATE TABLE 'call_search_data'(id INTEGER PRIMARY KEY, block BLOB);
CREATE TABLE 'call_search_docsize'(id INTEGER PRIMARY KEY, sz BLOB, origin INTEGER);
CREATE TABLE 'call_search_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;
CREATE TABLE call_transcripts (
  seq INTEGER PRIMARY KEY REFERENCES calls (seq),
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  content TEXT NOT NULL
, turns TEXT NOT NULL DEFAULT '[]', changes INTEGER, archive_bytes INTEGER, archive_sha256 TEXT) STRICT;
CREATE TABLE call_words (
  seq INTEGER PRIMARY KEY REFERENCES calls (seq),
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  heads TEXT NOT NULL,
  carrier TEXT,
  summary TEXT,
  said TEXT
) STRICT;
CREATE TABLE calls (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  group_id INTEGER NOT NULL REFERENCES call_groups (id),
  assistant_revision INTEGER NOT NULL,
  direction TEXT NOT NULL,
  status TEXT NOT NULL,
  from_number TEXT,
  to_number TEXT,
  user_number TEXT,
  provider TEXT,
  carrier_call_id TEXT,
  started_at INTEGER NOT NULL,
  answered_at INTEGER,
  ended_at INTEGER,
  duration_ms INTEGER,
  -- As the call ended. An analysis may know better, then the group does.
  outcome TEXT,
  ended_reason TEXT,
  fault TEXT,
  analysis TEXT,
  cost_microusd INTEGER NOT NULL,
  telephony_microusd INTEGER NOT NULL,
  stt_microusd INTEGER NOT NULL,
  llm_microusd INTEGER NOT NULL,
  tts_microusd INTEGER NOT NULL,
  llm_input_tokens INTEGER NOT NULL,
  llm_output_tokens INTEGER NOT NULL,
  recording_ms INTEGER,
  transcript_bytes INTEGER NOT NULL,
  simulation_run_id TEXT
, llm_uncounted_answers INTEGER NOT NULL DEFAULT 0, waits TEXT, variables TEXT NOT NULL DEFAULT '{}', metadata TEXT NOT NULL DEFAULT '{}', snapshot TEXT) STRICT;
CREATE TABLE carrier_tokens (
  provider TEXT NOT NULL,
  -- The carrier's id of the token.
  id TEXT NOT NULL,
  -- SHA-256 of method, URL and body.
  request TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (provider, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE conversation_journal (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  conversation_id TEXT NOT NULL,
  place INTEGER NOT NULL,
  entry TEXT NOT NULL,
  PRIMARY KEY (conversation_id, place)
) STRICT, WITHOUT ROWID;
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
CREATE TABLE documents (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  name TEXT NOT NULL,
  content TEXT NOT NULL,
  source TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
, metadata TEXT NOT NULL DEFAULT '{}') STRICT;
CREATE TABLE event_log (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  type TEXT NOT NULL,
  -- The call, run or webhook that it tells about.
  subject_id TEXT NOT NULL,
  -- The call that it tells about, also of a run: it goes with the call.
  call_id TEXT,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE events (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  type TEXT NOT NULL,
  body TEXT NOT NULL,
  created_at INTEGER NOT NULL
, call_id TEXT) STRICT;
CREATE TABLE idempotency_keys (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  status INTEGER NOT NULL,
  body TEXT,
  etag INTEGER,
  reveal TEXT,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (workspace_id, key)
) STRICT, WITHOUT ROWID;
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
CREATE TABLE jobs (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  kind TEXT NOT NULL,
  subject_id TEXT NOT NULL,
  due_at INTEGER NOT NULL,
  lease TEXT,
  attempts INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE jobs_away (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  subject_id TEXT NOT NULL,
  due_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (workspace_id, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE live_call_rows (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  call_id TEXT NOT NULL REFERENCES live_calls (call_id),
  place INTEGER NOT NULL,
  content TEXT NOT NULL, change INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (call_id, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE live_call_turns (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  call_id TEXT NOT NULL REFERENCES live_calls (call_id),
  place INTEGER NOT NULL,
  content TEXT NOT NULL,
  change INTEGER NOT NULL,
  PRIMARY KEY (call_id, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE live_calls (
  call_id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  offset_ms INTEGER NOT NULL,
  spent TEXT NOT NULL
, changes INTEGER NOT NULL DEFAULT 0, link_id TEXT, is_replaced INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
CREATE TABLE memberships (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  account_id TEXT NOT NULL REFERENCES accounts (id),
  role TEXT NOT NULL,
  created_at INTEGER NOT NULL, used_at INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (workspace_id, account_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE migrations (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP) STRICT;
CREATE TABLE moves (
  workspace_id TEXT PRIMARY KEY REFERENCES workspaces (id),
  -- exp_… or imp_…; mov_… between two databases of one host
  id TEXT NOT NULL UNIQUE,
  state TEXT NOT NULL,
  lock INTEGER NOT NULL,
  -- The step and the SHA-256 of the tables that the rows are of.
  schema TEXT NOT NULL,
  -- Of an export its own key, sealed with the server's secret; of an import the SHA-256 of it, then itself, sealed.
  file_key TEXT NOT NULL,
  -- The export that an import is of; the import that an export was handed over to.
  other_id TEXT,
  moved_to TEXT,
  -- How far the step is that is under way, as JSON.
  progress TEXT NOT NULL DEFAULT '{}',
  began_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE named_snapshots (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  hash TEXT NOT NULL,
  assistant TEXT NOT NULL,
  simulation TEXT,
  mode TEXT,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (workspace_id, hash)
) STRICT;
CREATE TABLE numbers (
  number TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  assistant_id TEXT NOT NULL REFERENCES assistants (id),
  provider TEXT NOT NULL,
  region TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
, last_callback_at INTEGER, metadata TEXT NOT NULL DEFAULT '{}') STRICT;
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
CREATE TABLE personas (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  name TEXT NOT NULL,
  system_prompt TEXT NOT NULL,
  revision INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
, model TEXT, metadata TEXT NOT NULL DEFAULT '{}') STRICT;
CREATE TABLE phone_calls (
  call_id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  assistant_id TEXT NOT NULL,
  provider TEXT NOT NULL,
  -- The carrier's own id; NULL until it has named one.
  carrier_call_id TEXT,
  -- Where the carrier wants requests about this call.
  region_url TEXT,
  -- The job that sees the call through.
  job_id TEXT NOT NULL,
  max_seconds INTEGER NOT NULL,
  -- 'incoming'; or of the request that places a call: 'asking', then 'accepted', 'rejected' or 'unknown'.
  placed TEXT NOT NULL,
  -- When the media socket was opened: its token is used.
  media_at INTEGER,
  -- When audio began to come over it.
  talked_at INTEGER,
  -- When somebody asked the service to hang up.
  hang_up_at INTEGER,
  -- What the carrier has said, as JSON.
  said TEXT NOT NULL,
  -- 1 once the call has ended.
  is_over INTEGER NOT NULL,
  -- Counts changes: whoever ends the call has seen the last one.
  version INTEGER NOT NULL,
  created_at INTEGER NOT NULL
, delete_at INTEGER, transfer TEXT, line_until INTEGER, line_microusd INTEGER) STRICT, WITHOUT ROWID;
CREATE TABLE "recordings" (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  call_id TEXT NOT NULL,
  state TEXT NOT NULL,
  due_at INTEGER,
  size_bytes INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  duration_ms INTEGER NOT NULL,
  peaks TEXT,
  created_at INTEGER NOT NULL
, segments INTEGER, segment_ms INTEGER, rate_hz INTEGER, missing_ms INTEGER) STRICT;
CREATE TABLE runs (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  simulation_id TEXT NOT NULL,
  batch_id TEXT,
  assistant_id TEXT NOT NULL,
  assistant_revision INTEGER NOT NULL,
  assistant_snapshot TEXT NOT NULL,
  simulation_snapshot TEXT NOT NULL,
  mode TEXT NOT NULL,
  seed INTEGER NOT NULL,
  status TEXT NOT NULL,
  passed INTEGER,
  error TEXT,
  evaluations TEXT NOT NULL,
  transcript TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  completed_at INTEGER
, call_id TEXT, turns INTEGER NOT NULL DEFAULT 0, last_line TEXT, cost_microusd INTEGER NOT NULL DEFAULT 0, max_cost_microusd INTEGER NOT NULL DEFAULT 1000000, failed_evaluation TEXT, variables TEXT NOT NULL DEFAULT '{}', metadata TEXT NOT NULL DEFAULT '{}', tools TEXT NOT NULL DEFAULT 'live', snapshot TEXT, mocks_unused TEXT NOT NULL DEFAULT '[]') STRICT;
CREATE TABLE scenarios (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  name TEXT NOT NULL,
  instructions TEXT NOT NULL,
  evaluations TEXT NOT NULL,
  revision INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
, judge_model TEXT, conditions TEXT NOT NULL DEFAULT '{}', judge_votes INTEGER NOT NULL DEFAULT 1, variables TEXT NOT NULL DEFAULT '{}', metadata TEXT NOT NULL DEFAULT '{}', tool_mocks TEXT NOT NULL DEFAULT '{}') STRICT;
CREATE TABLE search_erasures (
  workspace_id TEXT PRIMARY KEY REFERENCES workspaces (id),
  merging INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE search_upgrade (below INTEGER NOT NULL) STRICT;
CREATE TABLE service_facts (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;
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
CREATE TABLE simulations (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  assistant_id TEXT NOT NULL REFERENCES assistants (id),
  persona_id TEXT NOT NULL REFERENCES personas (id),
  scenario_id TEXT NOT NULL REFERENCES scenarios (id),
  name TEXT NOT NULL,
  revision INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
, metadata TEXT NOT NULL DEFAULT '{}') STRICT;
CREATE TABLE snapshots (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  id TEXT NOT NULL,
  content TEXT NOT NULL,
  PRIMARY KEY (workspace_id, id)
) STRICT;
CREATE TABLE spending (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  month TEXT NOT NULL,
  microusd INTEGER NOT NULL,
  PRIMARY KEY (workspace_id, month)
) STRICT, WITHOUT ROWID;
CREATE TABLE spending_reservations (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  call_id TEXT NOT NULL,
  -- Carrier and models together.
  microusd INTEGER NOT NULL,
  -- The part for the models.
  models_microusd INTEGER NOT NULL,
  PRIMARY KEY (workspace_id, call_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE test_token_values (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  expires_at INTEGER NOT NULL,
  variables TEXT NOT NULL,
  metadata TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE tools (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  name TEXT NOT NULL,
  url TEXT NOT NULL,
  method TEXT NOT NULL,
  description TEXT NOT NULL,
  parameters TEXT NOT NULL,
  timeout_ms INTEGER NOT NULL,
  secret_version INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
, old_secret_until INTEGER, metadata TEXT NOT NULL DEFAULT '{}', carried_secrets TEXT) STRICT;
CREATE TABLE used_test_tokens (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  expires_at INTEGER NOT NULL
, link_id TEXT, used_at INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
CREATE TABLE webhooks (
  id TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  url TEXT NOT NULL,
  events TEXT NOT NULL,
  enabled INTEGER NOT NULL,
  secret_version INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
, old_secret_until INTEGER, metadata TEXT NOT NULL DEFAULT '{}', carried_secrets TEXT) STRICT;
CREATE TABLE workspaces (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL
, monthly_spend_limit_microusd INTEGER, runs_at_once INTEGER NOT NULL DEFAULT 64, calls_at_once INTEGER NOT NULL DEFAULT 100, call_retention_days INTEGER, recording_retention_days INTEGER, snapshot_bytes INTEGER NOT NULL DEFAULT 0, archived_until INTEGER NOT NULL DEFAULT 0, secret_salt TEXT) STRICT;
