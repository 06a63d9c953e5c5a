//! What has changed in a call or run since a client looked last.
use serde::Serialize;
use serde_json::value::RawValue;

use super::{Event, Found, Seen, Subject};
use crate::base::error::Error;
use crate::base::ids::{CallId, RunId};
use crate::base::limits::FOLLOWED_AT_ONCE;
use crate::operations::context::Context;
use crate::operations::operation::Output;
use crate::operations::runs::get;
use crate::ports::statement::{Row, Rows, Statement};
use crate::sql;
use crate::storage::calls::{self, Call, CallStatus};
use crate::storage::fault::Fault;
use crate::storage::runs::{Run, RunDetail, RunStatus};

/// The ids below that of the first change belong to the statuses before the end, in their order.
const CHANGE_ZERO: i64 = 3;

/// A row of the transcript, as it stands now.
const TRANSCRIPT: &str = "transcript";
/// The times of a turn, by its `end_of_speech_ms`.
const TURN: &str = "turn";
/// The call or run without its transcript.
const STATUS: &str = "status";
/// The call or run as it is read after its end.
const ENDED: &str = "ended";

pub(super) async fn since(context: &mut Context, subject: &Subject, seen: &Seen) -> Result<Found, Fault> {
    match subject {
        Subject::Call(id) => of_call(context, id, seen).await,
        Subject::Run(id) => of_run(context, id, seen).await,
    }
}

/// The id that a client says it has; 0 if what it follows is in progress and has not got so far: it is the id of another one.
/// What has ended is compared as it is read.
pub(super) async fn known(context: &mut Context, subject: &Subject, after: i64) -> Result<i64, Fault> {
    if after <= 0 {
        return Ok(after);
    }
    let (select, followed): (_, &str) = match subject {
        Subject::Call(id) => {
            let so_far = format!("{CHANGE_ZERO} + {}", changes_of("c.id"));
            let select = format!(
                "SELECT 1 AS is_behind FROM calls AS c WHERE c.workspace_id = :ws AND c.id = :followed AND c.status <> 'ended'
                 AND :after > CASE c.status WHEN 'queued' THEN 1 WHEN 'ringing' THEN 2 ELSE {so_far} END"
            );
            (select, id)
        }
        Subject::Run(id) => {
            // A run in progress is the second status.
            let so_far = format!(
                "MAX(2, {} + {CHANGE_ZERO} - (NOT {}))",
                changes_of("r.call_id"),
                changes_of("r.call_id")
            );
            let select = format!(
                "SELECT 1 AS is_behind FROM runs AS r WHERE r.workspace_id = :ws AND r.id = :followed
                 AND r.status IN ('queued', 'running') AND :after > CASE r.status WHEN 'queued' THEN 1 ELSE {so_far} END"
            );
            (select, id)
        }
    };
    let [behind] = context.read_each([sql!(select, followed = followed, after = after)]).await?;
    Ok(if behind.first().is_some() { 0 } else { after })
}

/// How many changes the journal of the call with this id has.
fn changes_of(call: &str) -> String {
    format!("COALESCE((SELECT changes FROM live_calls WHERE workspace_id = :ws AND call_id = {call}), 0)")
}

/// The call of the run that is followed.
const CALL_OF_RUN: &str = "(SELECT call_id FROM runs WHERE workspace_id = :ws AND id = :followed)";

async fn of_call(context: &mut Context, id: &CallId, seen: &Seen) -> Result<Found, Fault> {
    let reads =
        [calls::select_without_transcript(id), calls::select_ended(id), journal(":followed", id, seen.after)];
    let [call, mut ended, changes] = context.read_each(reads).await?;
    context.unarchive(&mut ended).await?;
    let base_url = &context.services.config().base_url;
    if let Some(row) = ended.first() {
        return after_end(Some(row), json(&Call::read(row, base_url)?)?, seen);
    }
    let row = call.first().ok_or_else(|| Error::not_found("call"))?;
    let id_of_status = match row.word("status")? {
        CallStatus::Queued => 1,
        CallStatus::Ringing => 2,
        CallStatus::InProgress | CallStatus::Ended => 3,
    };
    in_progress(id_of_status, json(&Call::read(row, base_url)?)?, &changes, seen)
}

async fn of_run(context: &mut Context, id: &RunId, seen: &Seen) -> Result<Found, Fault> {
    let reads = [get::select(id), calls::select_ended_of_run(id), journal(CALL_OF_RUN, id, seen.after)];
    let [run, mut ended, changes] = context.read_each(reads).await?;
    context.unarchive(&mut ended).await?;
    let row = run.first().ok_or_else(|| Error::not_found("run"))?;
    let run = Run::read(row)?;
    let id_of_status = match run.status {
        RunStatus::Queued => 1,
        RunStatus::Running => 2,
        RunStatus::Completed | RunStatus::Error => {
            let base_url = &context.services.config().base_url;
            let call = ended.first().map(|row| Call::read(row, base_url)).transpose()?;
            return after_end(ended.first(), json(&RunDetail::read(row, call)?)?, seen);
        }
    };
    in_progress(id_of_status, json(&run)?, &changes, seen)
}

fn json(value: &impl Serialize) -> Result<String, Fault> {
    Ok(Output::ok(value)?.body.unwrap_or_default())
}

/// The changes after the event `after` in the journal of the call that the expression `call` finds. Nothing of the journal
/// is read if there is none.
fn journal(call: &str, followed: &str, after: i64) -> Statement {
    let part = |kind: &str, table: &str| {
        format!(
            "SELECT '{kind}' AS kind, e.content AS content, e.change AS change FROM live_calls AS l
             CROSS JOIN {table} AS e ON e.workspace_id = l.workspace_id AND e.call_id = l.call_id
             WHERE l.workspace_id = :ws AND l.call_id = {call} AND l.changes > :after AND e.change > :after"
        )
    };
    let (rows, turns) = (part(TRANSCRIPT, "live_call_rows"), part(TURN, "live_call_turns"));
    sql!(
        format!("{rows} UNION ALL {turns} ORDER BY change LIMIT {FOLLOWED_AT_ONCE}"),
        followed = followed,
        after = after - CHANGE_ZERO
    )
}

fn in_progress(id_of_status: i64, status: String, changes: &Rows, seen: &Seen) -> Result<Found, Fault> {
    let mut events = Vec::new();
    if id_of_status > seen.after {
        events.push(Event { id: id_of_status, kind: STATUS, data: status });
    }
    for row in changes.iter() {
        let kind = if row.str("kind")? == TURN { TURN } else { TRANSCRIPT };
        events.push(Event { id: CHANGE_ZERO + row.integer("change")?, kind, data: row.text("content")? });
    }
    Ok(Found { events, is_over: false, has_more: changes.values.len() >= FOLLOWED_AT_ONCE })
}

/// What the client has not seen of the rows and turns as they are stored at the end, and the `ended` call or run.
fn after_end(call: Option<Row<'_>>, ended: String, seen: &Seen) -> Result<Found, Fault> {
    let mut stored: Vec<(&str, Box<RawValue>)> = Vec::new();
    let mut id = CHANGE_ZERO;
    let has_call = call.is_some();
    if let Some(call) = call {
        id += call.optional_integer("changes")?.unwrap_or(0);
        for (kind, column) in [(TRANSCRIPT, "transcript"), (TURN, "turns")] {
            let contents: Vec<Box<RawValue>> = call.json(column)?;
            stored.extend(contents.into_iter().map(|content| (kind, content)));
        }
    }
    let last = id + stored.len() as i64 + 1;
    // An id beyond the last one is that of another call; of one that was deleted, everything has been seen.
    let after = if has_call && seen.after > last { 0 } else { seen.after };
    let mut found = Found { is_over: true, ..Found::default() };
    for (kind, content) in stored {
        id += 1;
        let data = content.get().to_owned();
        if id > after && !seen.has(&data) {
            found.events.push(Event { id, kind, data });
        }
    }
    if last > after {
        found.events.push(Event { id: last, kind: ENDED, data: ended });
    }
    Ok(found)
}
