//! The statements that write a call. They join the batch of the change and update the roll-ups and the text index in
//! the same batch.
//!
//! Each list of statements may run twice: an existing call is not inserted again, an ended call does not end again. The
//! call's own row is therefore written after its sums.
pub(crate) mod erase;
mod new_call;
mod regroup;

use self::new_call::InsertCall;
use self::regroup::{AS_BEFORE, Kind, Regroup};
use crate::base::ids::{CallId, WorkspaceId};
use crate::base::time::Timestamp;
use crate::ports::statement::Statement;
use crate::sql;
use crate::storage::calls::call::{ended_reason, transcript, turns};
use crate::storage::calls::{Analysis, CallStatus, EndedCall, NewCall, search, waits};

/// Inserts a call.
pub fn insert(new: &NewCall) -> Vec<Statement> {
    record(new, None, None)
}

/// Inserts a call with its current state: the same as [`insert`], [`end`] and [`analyzed`] in sequence, with fewer
/// statements.
pub fn record(new: &NewCall, ended: Option<&EndedCall>, analysis: Option<&Analysis>) -> Vec<Statement> {
    let outcome = analysis.and_then(|analysis| analysis.outcome).or(ended.map(|ended| ended.outcome));
    let insert = InsertCall {
        new,
        outcome: outcome.map_or("", |outcome| outcome.as_str()),
        sentiment: analysis.map_or("", |analysis| analysis.sentiment.as_str()),
    };
    let mut statements = vec![insert.groups(), insert.sums(ended), insert.call(ended, analysis)];
    statements.extend(insert.metadata());
    if let Some(ended) = ended {
        let insert = insert_transcript(&new.id, transcript(ended), ended, "1");
        statements.push(insert.in_workspace(&new.workspace_id));
    }
    statements.push(search::insert(new, ended, analysis));
    statements.extend(search::index(&new.workspace_id, &new.id));
    statements
}

/// Marks a call that has not ended as ringing or answered. The status only moves forward.
pub fn advance(workspace_id: &WorkspaceId, id: &CallId, status: CallStatus, at: Timestamp) -> Vec<Statement> {
    let earlier = match status {
        CallStatus::Queued | CallStatus::Ended => return Vec::new(),
        CallStatus::Ringing => "'queued'",
        CallStatus::InProgress => "'queued', 'ringing'",
    };
    let answered_at = (status == CallStatus::InProgress).then_some(at);
    let update = sql!(
        format!(
            "UPDATE calls SET status = :status, answered_at = COALESCE(answered_at, :answered_at)
             WHERE workspace_id = :ws AND id = :call AND status IN ({earlier})"
        ),
        call = id,
        status = status.as_str(),
        answered_at = answered_at,
    );
    vec![update.in_workspace(workspace_id)]
}

/// Stores what the conversation of a call runs with, once it is known.
pub fn ran_with(call: &NewCall) -> Statement {
    let update = sql!(
        "UPDATE calls SET snapshot = :snapshot WHERE workspace_id = :ws AND id = :call",
        call = &call.id,
        snapshot = call.snapshot.clone(),
    );
    update.in_workspace(&call.workspace_id)
}

/// Stores the carrier's id of an accepted call.
pub fn carried(workspace_id: &WorkspaceId, id: &CallId, carrier_call_id: &str) -> Vec<Statement> {
    let update = sql!(
        "UPDATE calls SET carrier_call_id = :carrier_call WHERE workspace_id = :ws AND id = :call",
        call = id,
        carrier_call = carrier_call_id,
    );
    let mut statements =
        vec![update.in_workspace(workspace_id), search::carried(workspace_id, id, carrier_call_id)];
    statements.extend(search::index(workspace_id, id));
    statements
}

/// Ends a call; does nothing to a call that has ended. With an `analysis`, it is the same as [`end`] and [`analyzed`]
/// in sequence, with fewer statements.
pub fn end(
    workspace_id: &WorkspaceId,
    id: &CallId,
    ended: &EndedCall,
    analysis: Option<&Analysis>,
) -> Vec<Statement> {
    let outcome = analysis.and_then(|analysis| analysis.outcome).unwrap_or(ended.outcome);
    let sentiment = analysis.map(|analysis| analysis.sentiment.as_str());
    let regroup = Regroup {
        workspace_id,
        id,
        condition: "c.status <> 'ended'",
        outcome: Some(outcome.as_str()),
        outcome_else: "c.outcome",
        sentiment,
        spoken_with: None,
        duration_ms: Some(ended.duration_ms),
        cost_microusd: Some(ended.costs.total_microusd),
    };
    let content = transcript(ended);
    let bytes = content.len() as i64;
    let mut statements = regroup.statements();
    let insert = insert_transcript(id, content, ended, "status <> 'ended'");
    let update = sql!(
        format!(
            "UPDATE calls AS c SET group_id = {}, status = 'ended', answered_at = :answered_at, ended_at = :ended_at,
             duration_ms = :duration, outcome = :ended_outcome, ended_reason = :ended_reason, fault = :fault,
             cost_microusd = :cost, telephony_microusd = :telephony, stt_microusd = :stt, llm_microusd = :llm,
             tts_microusd = :tts, llm_input_tokens = :input_tokens, llm_output_tokens = :output_tokens,
             transcript_bytes = :bytes, analysis = :analysis, llm_uncounted_answers = :uncounted_answers, waits = :waits
             WHERE c.workspace_id = :ws AND c.id = :call AND c.status <> 'ended'",
            Kind::Own.of_call(":outcome", "COALESCE(:sentiment, g.sentiment)", AS_BEFORE)
        ),
        call = id,
        outcome = outcome.as_str(),
        sentiment = sentiment,
        answered_at = ended.answered_at,
        ended_at = ended.ended_at,
        duration = ended.duration_ms,
        ended_outcome = ended.outcome.as_str(),
        ended_reason = ended.ended_reason.and_then(ended_reason),
        fault = ended.fault.as_str(),
        cost = ended.costs.total_microusd,
        telephony = ended.costs.telephony_microusd,
        stt = ended.costs.stt_microusd,
        llm = ended.costs.llm_microusd,
        tts = ended.costs.tts_microusd,
        input_tokens = ended.usage.llm_input_tokens,
        output_tokens = ended.usage.llm_output_tokens,
        uncounted_answers = ended.usage.llm_uncounted_answers,
        bytes = bytes,
        waits = waits::stored(ended),
        analysis = analysis.map(|analysis| serde_json::json!(analysis).to_string()),
    );
    statements.push(search::end(workspace_id, id, ended, analysis));
    statements.extend([insert, update].map(|statement| statement.in_workspace(workspace_id)));
    statements.extend(search::index(workspace_id, id));
    statements
}

/// Stores what was said in a call (`content`), and how many changes whoever follows it was shown.
fn insert_transcript(id: &CallId, content: String, ended: &EndedCall, condition: &str) -> Statement {
    sql!(
        format!(
            "INSERT INTO call_transcripts (seq, workspace_id, content, turns, changes)
             SELECT seq, workspace_id, :transcript, :turns, (SELECT changes FROM live_calls WHERE call_id = calls.id)
             FROM calls WHERE workspace_id = :ws AND id = :call AND {condition} ON CONFLICT DO NOTHING"
        ),
        call = id,
        transcript = content,
        turns = turns(ended),
    )
}

/// Stores the carrier's price, reported after the call ended, and the call's new total.
pub fn repriced(
    workspace_id: &WorkspaceId,
    id: &CallId,
    telephony_microusd: i64,
    total_microusd: i64,
) -> Vec<Statement> {
    let regroup = Regroup {
        workspace_id,
        id,
        condition: "c.status = 'ended'",
        outcome: None,
        outcome_else: "g.outcome",
        sentiment: None,
        spoken_with: None,
        duration_ms: None,
        cost_microusd: Some(total_microusd),
    };
    let mut statements = regroup.statements();
    let update = sql!(
        "UPDATE calls SET telephony_microusd = :telephony, cost_microusd = :total
         WHERE workspace_id = :ws AND id = :call AND status = 'ended'",
        call = id,
        telephony = telephony_microusd,
        total = total_microusd,
    );
    statements.push(update.in_workspace(workspace_id));
    statements
}

/// Opens a call with the assistant's current configuration: `call` has its revision, its model and its voice.
pub fn spoken_by(call: &NewCall) -> Vec<Statement> {
    let regroup = Regroup {
        workspace_id: &call.workspace_id,
        id: &call.id,
        condition: "c.status <> 'ended'",
        outcome: Some(""),
        outcome_else: "g.outcome",
        sentiment: None,
        spoken_with: Some((&call.model, &call.voice)),
        duration_ms: None,
        cost_microusd: None,
    };
    let mut statements = regroup.statements();
    let update = sql!(
        format!(
            "UPDATE calls AS c SET group_id = {}, assistant_revision = :revision
             WHERE c.workspace_id = :ws AND c.id = :call AND c.status <> 'ended'",
            Kind::Own.of_call("''", "g.sentiment", (":model", ":voice"))
        ),
        call = &call.id,
        revision = call.assistant_revision,
        model = &call.model,
        voice = &call.voice,
    );
    statements.push(update.in_workspace(&call.workspace_id));
    statements
}

/// Stores the analysis of an ended call. A later analysis replaces an earlier one.
pub fn analyzed(workspace_id: &WorkspaceId, id: &CallId, analysis: &Analysis) -> Vec<Statement> {
    let outcome = analysis.outcome.map(|outcome| outcome.as_str());
    let regroup = Regroup {
        workspace_id,
        id,
        condition: "c.status = 'ended'",
        outcome,
        outcome_else: "c.outcome",
        sentiment: Some(analysis.sentiment.as_str()),
        spoken_with: None,
        duration_ms: None,
        cost_microusd: None,
    };
    let mut statements = regroup.statements();
    let update = sql!(
        format!(
            "UPDATE calls AS c SET group_id = {}, analysis = :analysis
             WHERE c.workspace_id = :ws AND c.id = :call AND c.status = 'ended'",
            Kind::Own.of_call("COALESCE(:outcome, c.outcome)", ":sentiment", AS_BEFORE)
        ),
        call = id,
        outcome = outcome,
        sentiment = analysis.sentiment.as_str(),
        analysis = serde_json::json!(analysis).to_string(),
    );
    statements.push(update.in_workspace(workspace_id));
    statements.push(search::analyzed(workspace_id, id, analysis));
    statements.extend(search::index(workspace_id, id));
    statements
}
