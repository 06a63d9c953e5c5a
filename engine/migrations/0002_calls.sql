-- The call log. Calls are history: they name assistants, runs and numbers, and reference none of them.

-- What calls are filtered by, kept once for all calls that agree on it. A call moves to another group
-- when its outcome or sentiment becomes known; until then they are ''. A group whose assistant, model and
-- voice are '' is a wide one: no call is in it, it only has the sums of all groups that agree in the rest.
CREATE TABLE call_groups (
  -- Of this database: a workspace that moves to another gets others, its calls' seq likewise.
  id INTEGER PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  assistant_id TEXT NOT NULL,
  source TEXT NOT NULL,
  model TEXT NOT NULL,
  voice TEXT NOT NULL,
  outcome TEXT NOT NULL,
  sentiment TEXT NOT NULL,
  UNIQUE (workspace_id, assistant_id, source, model, voice, outcome, sentiment)
) STRICT;

-- Narrow, so that what has to be scanned is small: transcripts have a table of their own. seq is the
-- order of arrival, the rowid of the text index, and what settles ties in every order.
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
) STRICT;
-- One for each order a list can have. They hold all that a list decides by, so that a page is found
-- without looking at a single row that is not on it; the first one also all that is summed up.
CREATE INDEX calls_by_started_at ON calls (workspace_id, started_at, seq, group_id, duration_ms, cost_microusd);
CREATE INDEX calls_by_ended_at ON calls (workspace_id, ended_at, seq, group_id, started_at);
CREATE INDEX calls_by_duration_ms ON calls (workspace_id, duration_ms, seq, group_id, started_at);
CREATE INDEX calls_by_cost ON calls (workspace_id, cost_microusd, seq, group_id, started_at);
-- For filters that few calls pass.
CREATE INDEX calls_by_group ON calls (group_id, started_at);
-- For what carriers report.
CREATE INDEX calls_by_carrier ON calls (provider, carrier_call_id) WHERE carrier_call_id IS NOT NULL;

CREATE TABLE call_transcripts (
  seq INTEGER PRIMARY KEY REFERENCES calls (seq),
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  content TEXT NOT NULL
) STRICT;

-- Sums over the calls of a group that started within a span: all time (0 ms), 64 and 8 days, a day, 3 hours.
-- A call counts in its group and in the wide one. They are written by the batch that writes the call, so
-- they are never behind. The group comes before the time: a filter's groups are looked up one by one, and
-- what is read does not grow with the groups of other calls.
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

-- The text index. The workspace is a word of its own in every entry: a search looks for it beside what
-- the user typed.
CREATE VIRTUAL TABLE call_search USING fts5 (
  workspace, words, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);
