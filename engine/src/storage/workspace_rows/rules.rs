//! What rows from another host have to keep to, beside what their columns hold: whoever wrote them may have made them up, and
//! the sweep, the job queues and carriers' callbacks read the rows of all workspaces together. What one workspace alone reads
//! can be wrong: it harms nobody else.
//!
//! Nothing is under way in such a workspace: a call of somebody else that is made up as one that goes on, at the operator's
//! carrier, could be hung up.
use std::slice::from_ref;

use serde::de::IgnoredAny;

use super::page::Page;
use super::special;
use super::strangers::OWNED;
use super::tables::{Column, Kind, Table};
use super::write::Wrong;
use crate::base::ids::is_ulid;
use crate::base::ids::prefix::{
    ASSISTANT, BATCH, CALL, DELIVERY, DOCUMENT, EVENT, JOB, PERSONA, RUN, SCENARIO, SIMULATION, TEST_TOKEN,
    TOOL, WEBHOOK, WORKSPACE,
};
use crate::base::limits::{
    CALLS_AT_ONCE_MAX, DOCUMENT_BYTES_MAX, DOCUMENTS_PER_ASSISTANT_MAX, INTEGER_MAX, JUDGE_VOTES_MAX,
    METADATA_BYTES_MAX, NAME_CHARS_MAX, RETENTION_DAYS_MAX, RUNS_AT_ONCE_MAX, TOOL_DESCRIPTION_CHARS_MAX,
    TOOL_TIMEOUT_MS_MAX, TOOL_TIMEOUT_MS_MIN, TOOLS_PER_ASSISTANT_MAX,
};
use crate::base::targets::URL_BYTES_MAX;
use crate::base::text::is_line;
use crate::base::tool_parameters::TOOL_PARAMETERS_BYTES_MAX;
use crate::carriers::CarrierName;
use crate::ports::statement::Value;
use crate::storage::calls::{CallStatus, search};
use crate::storage::jobs::JobKind;
use crate::storage::recordings::State;
use crate::storage::runs::RunStatus;

/// What a value has to be, unless it is NULL in a column that may be.
#[derive(Debug, Clone, Copy)]
pub enum Rule {
    /// An id with one of these prefixes: it names a blob, or a row.
    Id(&'static [&'static str]),
    /// The same, or an empty text.
    IdOrEmpty(&'static [&'static str]),
    /// JSON.
    Json,
    /// JSON of at most so many bytes.
    JsonUpTo(usize),
    /// A JSON list of at most so many texts.
    TextsUpTo(usize),
    /// A text of at most so many bytes.
    UpTo(usize),
    /// Words of the text index.
    Words,
    /// A JSON list of such.
    WordLists,
    /// A word for which this holds.
    Word(fn(&str) -> bool),
    /// A name: it is shown in a line.
    Name,
    /// A number from the first to the last of these.
    Between(i64, i64),
    /// A time at which something is to be done.
    Due,
    /// NULL.
    Null,
    /// Not an id of ours, for this reason.
    NoId(&'static str),
}

use Rule::{
    Between, Due, Id, IdOrEmpty, Json, JsonUpTo, Name, NoId, Null, TextsUpTo, UpTo, Word, WordLists, Words,
};

/// Tables with rows only while something is under way.
pub const EMPTY: &[&str] = &[
    "conversation_journal",
    "jobs",
    "live_call_rows",
    "live_call_turns",
    "live_calls",
    "spending_reservations",
];

/// Columns of more than one table.
const BY_NAME: &[(&str, Rule)] = &[
    ("assistant_id", Id(&[ASSISTANT])),
    ("batch_id", Id(&[BATCH])),
    ("call_id", Id(&[CALL])),
    ("carrier_call_id", NoId("the carrier's")),
    ("conversation_id", Id(&[CALL, RUN])),
    ("cost_microusd", Between(-CALL_MICROUSD_MAX, CALL_MICROUSD_MAX)),
    ("document_id", Id(&[DOCUMENT])),
    ("event_id", Id(&[EVENT])),
    ("job_id", Id(&[JOB])),
    ("link_id", Id(&[TEST_TOKEN])),
    ("metadata", JsonUpTo(ESCAPED * METADATA_BYTES_MAX)),
    ("name", UpTo(SMALL_BYTES_MAX)),
    ("persona_id", Id(&[PERSONA])),
    ("scenario_id", Id(&[SCENARIO])),
    ("simulation_id", Id(&[SIMULATION])),
    ("simulation_run_id", Id(&[RUN])),
    ("subject_id", Id(&[CALL, RUN, WEBHOOK])),
    ("tool_id", Id(&[TOOL])),
    ("variables", Json),
    ("webhook_id", Id(&[WEBHOOK])),
    ("workspace_id", Id(&[WORKSPACE])),
];

/// Columns of one table; they precede [`BY_NAME`].
const BY_TABLE: &[(&str, &[(&str, Rule)])] = &[
    // Lists read many rows of this and the next tables at once.
    ("api_keys", &[("hint", UpTo(SMALL_BYTES_MAX))]),
    // Whoever starts a conversation reads all that is attached, however often it is the same.
    ("assistant_documents", &[("position", Between(0, DOCUMENTS_PER_ASSISTANT_MAX as i64 - 1))]),
    (
        "assistant_revisions",
        &[
            ("id", Id(&[ASSISTANT])),
            ("keyterms", Json),
            ("knowledge_ids", TextsUpTo(DOCUMENTS_PER_ASSISTANT_MAX)),
            ("speech", Json),
            ("tool_ids", TextsUpTo(TOOLS_PER_ASSISTANT_MAX)),
            ("transfers", Json),
            ("voicemail", Json),
        ],
    ),
    ("assistant_tools", &[("position", Between(0, TOOLS_PER_ASSISTANT_MAX as i64 - 1))]),
    ("assistants", &[("keyterms", Json), ("speech", Json), ("transfers", Json), ("voicemail", Json)]),
    (
        "audit_entries",
        &[
            ("actor", UpTo(SMALL_BYTES_MAX)),
            ("actor_name", UpTo(SMALL_BYTES_MAX)),
            ("operation", UpTo(SMALL_BYTES_MAX)),
            ("subject", UpTo(SMALL_BYTES_MAX)),
            ("subject_name", UpTo(SMALL_BYTES_MAX)),
        ],
    ),
    // Sums of several assistants.
    ("call_groups", &[("assistant_id", IdOrEmpty(&[ASSISTANT]))]),
    // Retention subtracts from them what calls have.
    (
        "call_rollups",
        &[
            ("calls", Between(0, SUM_MAX)),
            ("cost_microusd", Between(-SUM_MAX, SUM_MAX)),
            ("duration_ms", Between(-SUM_MAX, SUM_MAX)),
        ],
    ),
    (
        "call_transcripts",
        &[("archive_bytes", Between(0, BLOB_BYTES_MAX)), ("content", Json), ("turns", Json)],
    ),
    // Each word of the index begins with its workspace, and only words that these are get that.
    ("call_words", &[("carrier", Words), ("heads", Words), ("said", WordLists), ("summary", Words)]),
    (
        "calls",
        &[
            ("analysis", Json),
            // Retention adds them up.
            ("duration_ms", Between(-CALL_MS_MAX, CALL_MS_MAX)),
            ("llm_microusd", Between(-CALL_MICROUSD_MAX, CALL_MICROUSD_MAX)),
            ("status", Word(|word| CallStatus::parse(word) == Some(CallStatus::Ended))),
            ("stt_microusd", Between(-CALL_MICROUSD_MAX, CALL_MICROUSD_MAX)),
            ("telephony_microusd", Between(-CALL_MICROUSD_MAX, CALL_MICROUSD_MAX)),
            ("transcript_bytes", Between(0, BLOB_BYTES_MAX)),
            ("tts_microusd", Between(-CALL_MICROUSD_MAX, CALL_MICROUSD_MAX)),
            ("waits", Json),
        ],
    ),
    (
        "deliveries",
        &[
            // The sweep adds them up.
            ("body_bytes", Between(0, BLOB_BYTES_MAX)),
            ("due_at", Due),
            ("id", Id(&[DELIVERY])),
        ],
    ),
    ("documents", &[("content", UpTo(DOCUMENT_BYTES_MAX)), ("source", UpTo(SMALL_BYTES_MAX))]),
    ("event_log", &[("type", UpTo(SMALL_BYTES_MAX))]),
    ("events", &[("body", Json), ("call_id", IdOrEmpty(&[CALL]))]),
    ("idempotency_keys", &[("body", Json), ("reveal", Json)]),
    // Nothing else is left to do where nothing is under way.
    (
        "jobs_away",
        &[
            ("due_at", Due),
            ("id", Id(&[JOB])),
            (
                "kind",
                Word(|word| {
                    matches!(JobKind::parse(word), Some(JobKind::SimulationRun | JobKind::WebhookDelivery))
                }),
            ),
            ("subject_id", Id(&[RUN, WEBHOOK])),
        ],
    ),
    (
        "numbers",
        &[
            ("number", UpTo(SMALL_BYTES_MAX)),
            ("provider", Word(|word| CarrierName::parse(word).is_some())),
            ("region", UpTo(SMALL_BYTES_MAX)),
        ],
    ),
    (
        "phone_calls",
        &[
            ("is_over", Between(1, 1)),
            ("line_microusd", Null),
            ("line_until", Null),
            ("provider", Word(|word| CarrierName::parse(word).is_some())),
            ("said", Json),
            ("transfer", Json),
        ],
    ),
    (
        "recordings",
        &[
            ("duration_ms", Between(0, RECORDING_MS_MAX)),
            ("missing_ms", Between(0, RECORDING_MS_MAX)),
            ("rate_hz", Between(8_000, 48_000)),
            ("segment_ms", Between(1, 600_000)),
            // Whoever removes a recording removes so many blobs. A segment has 5 s or more.
            ("segments", Between(0, 10_000)),
            (
                "state",
                Word(|word| {
                    word == "abandoned" || matches!(State::parse(word), Some(State::Deleted | State::Ready))
                }),
            ),
        ],
    ),
    (
        "runs",
        &[
            ("assistant_id", IdOrEmpty(&[ASSISTANT])),
            ("assistant_snapshot", NoId("a hash")),
            ("error", Json),
            ("evaluations", Json),
            ("mocks_unused", Json),
            ("simulation_id", IdOrEmpty(&[SIMULATION])),
            (
                "status",
                Word(|word| RunStatus::parse(word).is_some_and(|status| status != RunStatus::Running)),
            ),
            ("transcript", Json),
        ],
    ),
    (
        "scenarios",
        &[
            ("conditions", Json),
            ("evaluations", Json),
            // The operator's model is asked so often.
            ("judge_votes", Between(1, JUDGE_VOTES_MAX)),
            ("tool_mocks", Json),
        ],
    ),
    ("snapshots", &[("content", Json), ("id", NoId("a hash"))]),
    // The operator's figures add up those of all workspaces.
    ("spending", &[("microusd", Between(0, SUM_MAX))]),
    (
        "tools",
        &[
            ("description", UpTo(LONG_BYTES_MAX)),
            ("parameters", JsonUpTo(ESCAPED * TOOL_PARAMETERS_BYTES_MAX)),
            ("timeout_ms", Between(TOOL_TIMEOUT_MS_MIN as i64, TOOL_TIMEOUT_MS_MAX as i64)),
            ("url", UpTo(URL_BYTES_MAX)),
        ],
    ),
    ("webhooks", &[("events", Json)]),
    (
        "workspaces",
        &[
            // Whose calls were archived the longest ago has the next turn.
            ("archived_until", Between(0, INTEGER_MAX)),
            ("call_retention_days", Between(1, RETENTION_DAYS_MAX as i64)),
            ("calls_at_once", Between(1, CALLS_AT_ONCE_MAX as i64)),
            ("name", Name),
            ("recording_retention_days", Between(1, RETENTION_DAYS_MAX as i64)),
            ("runs_at_once", Between(1, RUNS_AT_ONCE_MAX as i64)),
            // Less than nothing would be room without end.
            ("snapshot_bytes", Between(0, INTEGER_MAX)),
        ],
    ),
];

/// Columns, beside those with the rule of an id, whose ids something follows later: it looks for them in other tables, or makes
/// secrets of them. The others may name anything: whoever talks to an assistant must not decide whether its workspace can move.
const FOLLOWED: &[(&str, &str)] = &[
    ("assistant_revisions", "knowledge_ids"),
    ("assistant_revisions", "tool_ids"),
    ("audit_entries", "actor"),
    ("audit_entries", "subject"),
    ("idempotency_keys", "reveal"),
    ("phone_calls", "transfer"),
    ("snapshots", "content"),
];

/// Columns that hold NULL of what is under way, or of earlier versions.
const KNOWN: &[(&str, &str)] = &[
    ("calls", "ended_at"),
    // The sweep looks into the bodies of the others.
    ("events", "call_id"),
];

/// The largest text of a row that lists take for a small one: an address of a webhook, which is the name of it in the audit log, is
/// the longest.
const SMALL_BYTES_MAX: usize = 4_096;
/// The description of a tool, in characters of up to four bytes.
const LONG_BYTES_MAX: usize = 4 * TOOL_DESCRIPTION_CHARS_MAX as usize;
/// A byte of a text is up to six in JSON (`\u0001`), beside the quotes.
const ESCAPED: usize = 8;
/// The largest row, and the largest blob of a transcript.
const BLOB_BYTES_MAX: i64 = 8 * 1024 * 1024;
/// A year. Sums of calls have room for many millions of such. A clock that was set back makes it negative.
const CALL_MS_MAX: i64 = 366 * 24 * 3_600_000;
/// 100,000 USD.
const CALL_MICROUSD_MAX: i64 = 100_000_000_000;
/// A year, so that it matters little which of two hosts has the wrong time.
const DUE_IN_MS_MAX: i64 = 366 * 24 * 3_600_000;
/// What calls cost or last in all.
const SUM_MAX: i64 = 1_000_000_000_000_000;
/// A week.
const RECORDING_MS_MAX: i64 = 7 * 24 * 3_600_000;

/// The rule for a column; `None`: any value that the column holds harms nobody else.
pub fn rule_of(table: &str, column: &Column) -> Option<Rule> {
    if special::is_of_the_host(table, column.name) {
        return Some(Null);
    }
    let of_table = BY_TABLE.iter().find(|(name, _)| *name == table).map_or(&[][..], |(_, rules)| rules);
    let named =
        |rules: &[(&str, Rule)]| rules.iter().find(|(name, _)| *name == column.name).map(|(_, rule)| *rule);
    named(of_table).or_else(|| named(BY_NAME)).or_else(|| {
        let is_key = column.name == "id" && column.kind == Kind::Text;
        is_key
            .then(|| OWNED.iter().find(|(_, owner)| *owner == table))
            .flatten()
            .map(|(prefix, _)| Id(from_ref(prefix)))
    })
}

/// Whether something follows the ids in a column.
pub fn is_followed(table: &Table, column: &Column) -> bool {
    table.reference(column.name).is_some()
        || matches!(rule_of(table.name, column), Some(Id(_) | IdOrEmpty(_)))
        || FOLLOWED.contains(&(table.name, column.name))
}

impl Page {
    /// Checks rows of a workspace from another host, in which nothing is under way. [`Page::insert`] checks the rest.
    pub fn check(&self, table: &'static Table, now_ms: i64) -> Result<(), Wrong> {
        if EMPTY.contains(&table.name) && !self.rows.is_empty() {
            return Err(Wrong { row: 1, column: None, what: "is of what is under way" });
        }
        let rules: Vec<(&Column, Option<Rule>)> =
            table.carried().map(|column| (column, rule_of(table.name, column))).collect();
        for (n, row) in (1..).zip(&self.rows) {
            let mut found = rules.iter().zip(row).filter_map(|((column, rule), value)| {
                let what = match (value, rule) {
                    (Value::Null, _) if KNOWN.contains(&(table.name, column.name)) => Some("is missing"),
                    (_, Some(rule)) => rule.problem(value, now_ms),
                    _ => None,
                };
                what.map(|what| (column.name, what))
            });
            let problem = found.next().or_else(|| together(table, row));
            if let Some((column, what)) = problem {
                return Err(Wrong { row: n, column: Some(column), what });
            }
        }
        Ok(())
    }
}

impl Rule {
    fn problem(self, value: &Value, now_ms: i64) -> Option<&'static str> {
        match (self, value) {
            (_, Value::Null) | (NoId(_), _) => None,
            (Due, _) => Between(0, now_ms.saturating_add(DUE_IN_MS_MAX)).problem(value, now_ms),
            (IdOrEmpty(_), Value::Text(text)) if text.is_empty() => None,
            (Id(prefixes) | IdOrEmpty(prefixes), Value::Text(text) | Value::Asker(text)) => {
                let ulid = text.split_once('_').filter(|(prefix, _)| prefixes.contains(prefix));
                (!ulid.is_some_and(|(_, ulid)| is_ulid(ulid))).then_some("is not such an id")
            }
            (Json, Value::Text(text)) => {
                serde_json::from_str::<IgnoredAny>(text).is_err().then_some("is not JSON")
            }
            (JsonUpTo(most), _) => UpTo(most).problem(value, now_ms).or_else(|| Json.problem(value, now_ms)),
            (TextsUpTo(most), Value::Text(text)) => {
                texts(text).is_none_or(|texts| texts.len() > most).then_some("is no list of so many texts")
            }
            (UpTo(most), Value::Text(text)) => (text.len() > most).then_some("is longer than it can be"),
            (Words, Value::Text(text)) => (!search::are_words(text)).then_some("is no list of words"),
            (WordLists, Value::Text(text)) => {
                let has_others = |lists: Vec<String>| lists.iter().any(|list| !search::are_words(list));
                texts(text).is_none_or(has_others).then_some("is no list of words")
            }
            (Word(is_known), Value::Text(text)) => (!is_known(text)).then_some("is not such a word"),
            (Name, Value::Text(text)) => (!is_line(text, NAME_CHARS_MAX)).then_some("is no name"),
            (Between(first, last), Value::Number(number)) => {
                (!(first as f64..=last as f64).contains(number)).then_some("is not such a number")
            }
            (Null, _) => Some("is not NULL"),
            _ => Some("is of another kind"),
        }
    }
}

/// A JSON list of texts.
fn texts(text: &str) -> Option<Vec<String>> {
    serde_json::from_str(text).ok()
}

/// What values of a row must not be together.
fn together(table: &Table, row: &[Value]) -> Option<(&'static str, &'static str)> {
    let value =
        |name: &str| table.carried().zip(row).find(|(column, _)| column.name == name).map(|(_, value)| value);
    match table.name {
        "recordings" => {
            let is_ready = value("state") == Some(&Value::Text(State::Ready.as_str().to_owned()));
            let is_due = value("due_at") != Some(&Value::Null);
            match (is_ready, is_due) {
                // It would be due in every round of the sweep, before all others.
                (true, true) => Some(("due_at", "is set of what is kept")),
                (false, false) => None,
                // Nobody knows which blobs to remove with it.
                _ => (value("segments") == Some(&Value::Null)).then_some(("segments", "is missing")),
            }
        }
        // What an assistant may know in all is counted by it.
        "documents" => match (value("content"), value("size_bytes")) {
            (Some(Value::Text(content)), Some(Value::Number(bytes))) if content.len() as f64 != *bytes => {
                Some(("size_bytes", "is not the size of the content"))
            }
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::workspace_rows::TABLES;

    const NOW_MS: i64 = 1_767_225_600_000;

    fn rules() -> impl Iterator<Item = (&'static Table, &'static Column, Rule)> {
        TABLES.iter().flat_map(|table| {
            table.carried().filter_map(move |column| Some((table, column, rule_of(table.name, column)?)))
        })
    }

    #[test]
    fn every_column_that_names_a_thing_has_a_rule() {
        for table in TABLES {
            let names = table.carried().filter(|column| {
                column.kind == Kind::Text && (column.name == "id" || column.name.ends_with("_id"))
            });
            for column in names {
                let rule = rule_of(table.name, column);
                let is_named = matches!(rule, Some(Id(_) | IdOrEmpty(_) | NoId(_)));
                assert!(is_named, "{}.{}: an id of what? {rule:?}", table.name, column.name);
            }
        }
    }

    #[test]
    fn every_rule_is_of_a_column() {
        for (name, _) in BY_NAME {
            assert!(rules().any(|(_, column, _)| column.name == *name), "{name}");
        }
        for (name, columns) in BY_TABLE {
            let table = Table::named(name).unwrap();
            for (column, _) in *columns {
                assert!(table.carried().any(|one| one.name == *column), "{name}.{column}");
            }
        }
        for (name, column) in KNOWN {
            assert!(Table::named(name).unwrap().carried().any(|one| one.name == *column), "{name}.{column}");
        }
        for (name, column) in FOLLOWED {
            let is_new = |one: &&Column| one.name == *column && rule_of(name, one).is_none_or(is_no_id);
            assert!(Table::named(name).unwrap().carried().any(|one| is_new(&one)), "{name}.{column}");
        }
        for name in EMPTY {
            assert!(Table::named(name).is_some(), "{name}");
        }
    }

    fn is_no_id(rule: Rule) -> bool {
        !matches!(rule, Id(_) | IdOrEmpty(_))
    }

    /// A new column is followed, or stands here.
    #[test]
    fn every_text_is_followed_or_it_is_known_why_not() {
        const NOT: &[(&str, &[&str])] = &[
            (
                "somebody has written or said it, and it is shown or given to a model",
                &[
                    "assistant_revisions.voicemail",
                    "assistants.voicemail",
                    "call_inputs.entries",
                    "call_metadata.value",
                    "call_transcripts.content",
                    "call_transcripts.turns",
                    "call_words.carrier",
                    "call_words.heads",
                    "call_words.said",
                    "call_words.summary",
                    "calls.analysis",
                    "conditions",
                    "deliveries.last_error",
                    "deliveries.last_response",
                    "documents.content",
                    "documents.source",
                    "evaluations",
                    "first_message",
                    "instructions",
                    "keyterms",
                    "metadata",
                    "name",
                    "personas.system_prompt",
                    "phone_calls.said",
                    "runs.error",
                    "runs.failed_evaluation",
                    "runs.last_line",
                    "runs.mocks_unused",
                    "runs.transcript",
                    "scenarios.tool_mocks",
                    "speech",
                    "tools.description",
                    "tools.parameters",
                    "transfers",
                    "url",
                    "variables",
                    "webhooks.events",
                ],
            ),
            ("it is sent as it is: the event's call is in `call_id`", &["events.body"]),
            ("it is told again as it is", &["idempotency_keys.body"]),
            (
                "it is a name of what happened, told to the workspace's own people",
                &["audit_entries.actor_name", "audit_entries.operation", "audit_entries.subject_name"],
            ),
            (
                "it is a word, a number or a time",
                &[
                    "call_groups.outcome",
                    "call_groups.sentiment",
                    "call_groups.source",
                    "calls.direction",
                    "calls.ended_reason",
                    "calls.fault",
                    "calls.outcome",
                    "calls.waits",
                    "from_number",
                    "jobs_away.kind",
                    "language",
                    "mode",
                    "numbers.number",
                    "phone_calls.placed",
                    "pipeline_mode",
                    "provider",
                    "recordings.peaks",
                    "recordings.state",
                    "runs.tools",
                    "spending.month",
                    "status",
                    "to_number",
                    "tools.method",
                    "type",
                    "user_number",
                ],
            ),
            (
                "it is the operator's, a carrier's or a model's",
                &[
                    "carrier_call_id",
                    "judge_model",
                    "model",
                    "numbers.region",
                    "phone_calls.region_url",
                    "transcriber",
                    "voice",
                ],
            ),
            (
                "it is a hash, a secret or a client's key",
                &[
                    "api_keys.hint",
                    "archive_sha256",
                    "carried_secrets",
                    "fingerprint",
                    "hash",
                    "idempotency_keys.key",
                    "named_snapshots.assistant",
                    "named_snapshots.simulation",
                    "recordings.sha256",
                    "runs.assistant_snapshot",
                    "runs.simulation_snapshot",
                    "secret_salt",
                    "snapshot",
                    "snapshots.id",
                ],
            ),
        ];
        let not: Vec<&str> = NOT.iter().flat_map(|(_, columns)| *columns).copied().collect();
        let mut met: Vec<&str> = Vec::new();
        for table in TABLES.iter().filter(|table| !EMPTY.contains(&table.name)) {
            for column in table.carried().filter(|column| column.kind == Kind::Text) {
                let full = format!("{}.{}", table.name, column.name);
                let known = not.iter().find(|one| **one == column.name || **one == full);
                assert_ne!(is_followed(table, column), known.is_some(), "{full}");
                met.extend(known);
            }
        }
        for one in not {
            assert!(met.contains(&one), "{one}");
        }
    }

    #[test]
    fn every_rule_refuses_something() {
        let text = |text: &str| Value::Text(text.to_owned());
        for (table, column, rule) in rules().filter(|(table, _, _)| !EMPTY.contains(&table.name)) {
            let wrong = match rule {
                Id(_) => vec![text(""), text("call"), text("../x"), text("door_01kas3v8hq4x7m2n5p6r9t0w1z")],
                IdOrEmpty(_) => vec![text("call_01"), text("door_01kas3v8hq4x7m2n5p6r9t0w1z")],
                Json | JsonUpTo(_) => vec![text(""), text("{"), text("[1] x")],
                TextsUpTo(most) => {
                    vec![text("[1]"), text("{}"), text(&serde_json::json!(vec!["x"; most + 1]).to_string())]
                }
                UpTo(most) => vec![text(&"x".repeat(most + 1))],
                Words => vec![text("a,b"), text("a  b"), text(" a"), text("a\nb"), text("\u{301}a")],
                WordLists => vec![text("{}"), text("[1]"), text(r#"["a", "b,c"]"#)],
                Word(_) => vec![text(""), text("nonsense")],
                Name => {
                    let long = "x".repeat(NAME_CHARS_MAX as usize + 1);
                    vec![text("a\nnext: b"), text("\u{202e}"), text("\u{1b}[2J"), text(&long)]
                }
                Between(first, last) => {
                    vec![Value::Number(first as f64 - 1.0), Value::Number(last as f64 + 1.0)]
                }
                Due => vec![Value::Number(-1.0), Value::Number((NOW_MS + DUE_IN_MS_MAX) as f64 + 1.0)],
                Null => vec![Value::Number(1.0)],
                NoId(_) => Vec::new(),
            };
            for value in wrong {
                let row = table
                    .carried()
                    .map(|one| if one.name == column.name { value.clone() } else { fitting(table, one) });
                let page = Page { table: table.name.to_owned(), rows: vec![row.collect()], next: None };
                let refused = page.check(table, NOW_MS).unwrap_err();
                assert_eq!(refused.column, Some(column.name), "{}: {value:?}", table.name);
            }
        }
    }

    #[test]
    fn what_fits_every_rule_passes() {
        for table in TABLES.iter().filter(|table| !EMPTY.contains(&table.name)) {
            let row: Vec<Value> = table.carried().map(|column| fitting(table, column)).collect();
            let page = Page { table: table.name.to_owned(), rows: vec![row], next: None };
            assert_eq!(page.check(table, NOW_MS), Ok(()), "{}", table.name);
        }
    }

    /// A value for which the rule of a column holds.
    fn fitting(table: &Table, column: &Column) -> Value {
        match rule_of(table.name, column) {
            Some(Id(prefixes)) => Value::Text(format!("{}_01kas3v8hq4x7m2n5p6r9t0w1z", prefixes[0])),
            Some(IdOrEmpty(_)) => Value::Text(String::new()),
            Some(Json | JsonUpTo(_)) => Value::Text("{}".to_owned()),
            Some(TextsUpTo(_) | WordLists) => Value::Text(r#"["a", "b"]"#.to_owned()),
            Some(UpTo(_) | Words) => Value::Text("a b".to_owned()),
            _ if column.name == "size_bytes" => Value::Number(3.0),
            Some(Word(is_known)) => {
                let words = ["ended", "twilio", "ready", "completed", "simulation_run"];
                Value::Text((*words.iter().find(|word| is_known(word)).unwrap()).to_owned())
            }
            Some(Name) => Value::Text("Acme".to_owned()),
            Some(Between(first, _)) => Value::Number(first as f64),
            Some(Due) => Value::Number((NOW_MS + DUE_IN_MS_MAX) as f64),
            _ if KNOWN.contains(&(table.name, column.name)) => Value::Number(1.0),
            Some(Null | NoId(_)) | None => Value::Null,
        }
    }
}
