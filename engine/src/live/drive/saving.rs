//! What is written while a conversation goes on: its rows, turns and inputs, its costs, and how much of a line was heard.
use super::Drive;
use crate::base::limits::{
    LIVE_LEASE_EXTEND_MS, LIVE_LOOK_MS, SPOKEN_ROW_SAVE_MS, SPOKEN_SAVE_MS, WATCHED_HEARD_MS,
};
use crate::conversation::transcript::TranscriptRow;
use crate::conversation::{EndedReason, Input};
use crate::live::peer::Peer;
use crate::live::session::LiveSession;
use crate::live::telephony::leg::Leg;
use crate::live::tool_calls::{CommittedCall, ToolCall};
use crate::live::{call_inputs, call_journal};
use crate::ports::Told;
use crate::ports::statement::{Rows, Statement};
use crate::speech::turn_times::TurnTimes;
use crate::storage::fault::Fault;

impl<'a> Drive<'a> {
    /// Whether the journal has to be written now. A line that is typed is complete, and stored at once; one that is spoken
    /// within a moment, in which its answer may begin: then one write stores both.
    pub(super) fn is_save_due(&mut self) -> bool {
        let now_ms = self.now_ms();
        let rows = self.conversation.transcript().len();
        if rows > self.planned_rows {
            self.planned_rows = rows;
            self.save_at_ms = self.save_at_ms.min(now_ms + SPOKEN_ROW_SAVE_MS);
        }
        (!self.session.is_spoken && self.has_unsaved_rows()) || now_ms >= self.save_due_ms()
    }

    /// When the journal is written next if nothing requires it earlier. Whoever follows the call reads the journal.
    pub(super) fn save_due_ms(&self) -> i64 {
        let pause_ms = match self.home.is_watched() {
            true if self.has_unsaved_rows() => LIVE_LOOK_MS,
            true if self.conversation.speaking().is_some() => WATCHED_HEARD_MS,
            _ => return self.save_at_ms,
        };
        self.save_at_ms.min(self.saved_at_ms + pause_ms)
    }

    /// Plans a write, which also reads the leg.
    pub(super) fn told(&mut self, told: Told) {
        let at_ms = match told {
            // What is on its way over the socket comes first: a carrier reports the end over another connection.
            Told::Look => self.now_ms() + LIVE_LOOK_MS,
            Told::Watched if self.has_unsaved_rows() || self.conversation.speaking().is_some() => {
                self.saved_at_ms + LIVE_LOOK_MS
            }
            // The socket itself is taken elsewhere.
            Told::Watched | Told::Visited => return,
        };
        self.save_at_ms = self.save_at_ms.min(at_ms);
    }

    fn has_unsaved_rows(&self) -> bool {
        self.saved_rows < self.conversation.transcript().len()
    }

    /// Writes new transcript rows and extends the lease. A tool call is stored before its request is sent; the same
    /// batch reads the carrier's reports. Lines being spoken are written as far as they were `heard`, in thousandths.
    pub(super) async fn save(
        &mut self,
        calls: Vec<ToolCall>,
        heard: &[u32],
        turns: Vec<TurnTimes>,
    ) -> Result<Vec<CommittedCall<'a>>, Fault> {
        let now_ms = self.now_ms();
        let session = self.session;
        let saved_rows = self.saved_rows.min(self.conversation.transcript().len());
        // Of a line being spoken, more was heard.
        let from = self.conversation.speaking().map_or(saved_rows, |row| row.min(saved_rows));
        let call = &session.call;
        let rows = &self.rows_so_far(from, now_ms, heard);
        let mut statements = session.lease.extend(now_ms).to_vec();
        let offset_ms = self.conversation.offset_ms();
        let new_turns: Vec<TurnTimes> =
            turns.iter().filter(|turn| !self.saved_turns.contains(turn)).copied().collect();
        let (workspace_id, id) = (&call.workspace_id, &call.id);
        statements.extend(call_journal::save(workspace_id, id, offset_ms, self.spent, rows, &new_turns));
        statements.extend(self.inputs_to_store());
        statements.extend(self.progress_of_run());
        statements.extend(self.recording.take_uncounted());
        // What others have written about the call: of a telephone call the leg, of a conversation in a browser its end.
        let look = match session.on_phone {
            true => Some(Leg::select(workspace_id, id)),
            false if session.run.is_none() => Some(call_journal::replaced(workspace_id, id)),
            false => None,
        };
        let committed = self.tools.commit(statements, calls, look).await?;
        self.home.has_written();
        self.inputs.stored();
        self.saved_rows = self.conversation.transcript().len();
        self.saved_turns = turns;
        self.saved_at_ms = now_ms;
        self.save_at_ms = now_ms + save_pause_ms(session);
        match session.on_phone {
            true => self.apply_leg(Leg::first(committed.rows.first())?),
            false => self.apply_replaced(committed.rows.first()),
        }
        Ok(committed.calls)
    }

    /// Ends a conversation whose person has begun another one with the same link.
    fn apply_replaced(&mut self, replaced: Option<&Rows>) {
        if replaced.is_none_or(Rows::is_empty) || self.conversation.ended().is_some() {
            return;
        }
        self.note("The link was started again, which ended this conversation".to_owned());
        self.handle(Input::Stop { reason: EndedReason::UserHungUp });
    }

    /// The rows from `from`. Those of lines being spoken have what was heard, and say that they are in progress.
    fn rows_so_far(&self, from: usize, now_ms: i64, heard: &[u32]) -> Vec<TranscriptRow> {
        let mut rows = self.conversation.rows_as_heard(from, now_ms, heard);
        for (row, whole) in rows.iter_mut().zip(&self.conversation.transcript()[from..]) {
            if row.interrupted && !whole.interrupted {
                (row.interrupted, row.in_progress) = (false, true);
            }
        }
        rows
    }

    /// Adds the inputs since the last write to their log.
    pub(super) fn inputs_to_store(&self) -> Vec<Statement> {
        let call = &self.session.call;
        call_inputs::add(&call.workspace_id, &call.id, self.inputs.pending())
    }

    /// The times of the latest turns, from the start of the conversation.
    pub(super) fn turns(&self, peer: &dyn Peer) -> Vec<TurnTimes> {
        let started_ms = self.started_ms();
        peer.turns().into_iter().map(|turn| turn.since(started_ms)).collect()
    }

    /// When the conversation started, on the service's clock.
    pub(super) fn started_ms(&self) -> i64 {
        self.conversation.now_ms() - self.conversation.offset_ms()
    }
}

/// How long a conversation goes on without a write. A crash loses no more than this of a line being spoken, and of what was
/// spent.
const fn save_pause_ms(session: &LiveSession) -> i64 {
    if session.is_spoken { SPOKEN_SAVE_MS } else { LIVE_LEASE_EXTEND_MS }
}
