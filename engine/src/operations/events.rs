//! `GET /events`: what happened in the workspace, newest first.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::error::Code;
use crate::base::ids::{self, EventId, WorkspaceId, prefix};
use crate::base::time::Timestamp;
use crate::operations::context::Context;
use crate::operations::date_range::DateRange;
use crate::operations::listing::{self, List, Part};
use crate::operations::operation::{Input, Operation, Output};
use crate::ports::statement::{Row, Value};
use crate::storage::column::Column;
use crate::storage::events::EventKind;
use crate::storage::fault::Fault;

/// `GET /events`
pub const LIST: Operation = Operation::get("list_events", "/events", run!(list))
    .docs(
        "List events",
        "Lists what happened in the workspace, newest first, whether a webhook was told or not. `data` has the id of the call, \
        run or webhook: read it for its current state. Events are kept for 30 days, and go with the call or run that they \
        tell about.",
    )
    .query::<Query>()
    .returns::<Vec<Event>>()
    .errors(&[Code::InvalidParameter]);

/// Which events.
#[derive(Deserialize, JsonSchema)]
struct Query {
    /// Filter by type.
    #[serde(rename = "type")]
    kind: Option<EventKind>,
    /// Only events of this time or later: a day (`2026-01-31`, UTC) or a time (`2026-01-31T09:00:00Z`).
    date_from: Option<String>,
    /// Only events of this time or earlier: a day, including all of it, or a time.
    date_to: Option<String>,
    #[serde(flatten)]
    part: Part,
}

/// An event, without what webhooks are sent of its subject.
#[derive(Serialize, JsonSchema)]
struct Event {
    /// `evt_…`: the same as in deliveries to webhooks.
    id: EventId,
    /// The type of the event.
    #[serde(rename = "type")]
    kind: EventKind,
    /// When it happened.
    created_at: Timestamp,
    /// The workspace.
    workspace_id: WorkspaceId,
    /// What it happened to, under the same name as in deliveries.
    data: EventData,
}

/// The subject of an event: one of these.
#[derive(Default, Serialize, JsonSchema)]
struct EventData {
    /// Of `call.…` and `recording.ready`.
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<EventSubject>,
    /// Of `simulation.run.…`.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<EventSubject>,
    /// Of `webhook.test`.
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook: Option<EventSubject>,
}

/// What an event happened to.
#[derive(Serialize, JsonSchema)]
struct EventSubject {
    /// Its id.
    id: String,
}

const COLUMNS: &str = "event_log.id AS id, workspace_id, type, subject_id, created_at";

impl Event {
    fn read(row: Row<'_>) -> Result<Self, Fault> {
        let kind = EventKind::read(row, "type")?;
        let subject = Some(EventSubject { id: row.text("subject_id")? });
        let data = match kind.subject() {
            "call" => EventData { call: subject, ..EventData::default() },
            "run" => EventData { run: subject, ..EventData::default() },
            _ => EventData { webhook: subject, ..EventData::default() },
        };
        let (id, workspace_id) = (row.id("id")?, row.id("workspace_id")?);
        Ok(Self { id, kind, created_at: row.timestamp("created_at")?, workspace_id, data })
    }
}

/// An id is made right after the time that its event has, so ids tell where a range begins and, with a margin, where it
/// ends.
const MARGIN_MS: i64 = 60 * 60 * 1000;
/// Later than all events: a ULID has 48 bits of time.
const NEVER_MS: i64 = 1 << 47;

macro_rules! of_kind {
    () => {
        " AND type = :kind"
    };
}
macro_rules! in_range {
    () => {
        " AND created_at >= :from_ms AND created_at < :until_ms AND id >= :from_id"
    };
}
macro_rules! first_part {
    () => {
        " AND id < :until_id"
    };
}

async fn list(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let Query { kind, date_from, date_to, part } = input.query()?;
    let DateRange { from_ms, until_ms } = DateRange::read(date_from.as_deref(), date_to.as_deref())?;
    let has_range = from_ms.is_some() || until_ms.is_some();
    // A later part begins at its cursor: a second bound could make SQLite walk there from the end of the range.
    let is_first = part.after.is_none();
    let filter = match (kind.is_some(), has_range, is_first) {
        (false, false, _) => "",
        (true, false, _) => of_kind!(),
        (false, true, false) => in_range!(),
        (false, true, true) => concat!(in_range!(), first_part!()),
        (true, true, false) => concat!(of_kind!(), in_range!()),
        (true, true, true) => concat!(of_kind!(), in_range!(), first_part!()),
    };
    let mut values: Vec<(&'static str, Value)> = Vec::new();
    values.extend(kind.map(|kind| ("kind", kind.as_str().into())));
    if has_range {
        let (from_ms, until_ms) = (from_ms.unwrap_or(0), until_ms.unwrap_or(NEVER_MS));
        let bound = |ms: i64| Value::from(ids::lower_bound(prefix::EVENT, ms));
        values.extend([
            ("from_ms", from_ms.into()),
            ("until_ms", until_ms.into()),
            ("from_id", bound(from_ms)),
        ]);
        if is_first {
            values.push(("until_id", bound(until_ms + MARGIN_MS)));
        }
    }
    let key = listing::Key::newest::<EventId>();
    let (table, columns, bytes, read) = ("event_log", COLUMNS, "0", Event::read);
    listing::run(context, part, List { table, columns, bytes, key, filter, values, read }).await
}
