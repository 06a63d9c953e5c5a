//! What is written while a conversation goes on: its rows, turns and inputs, its costs, and how much of a line was heard.
use super::Drive;
use crate::base::limits::{LIVE_LEASE_EXTEND_MS, PHONE_HEARD_MS};
use crate::conversation::transcript::TranscriptRow;
use crate::live::peer::Peer;
use crate::live::telephony::leg::Leg;
use crate::live::tool_calls::{CommittedCall, ToolCall};
use crate::live::{call_inputs, call_journal};
use crate::ports::statement::Statement;
use crate::speech::turn_times::TurnTimes;
use crate::storage::fault::Fault;
use crate::storage::recordings;

impl<'a> Drive<'a> {
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
        let has_rows = saved_rows < self.conversation.transcript().len();
        if !has_rows && calls.is_empty() && now_ms < self.extend_lease_at_ms {
            if now_ms >= self.check_leg_at_ms {
                self.check_leg().await?;
            }
            if now_ms >= self.save_heard_at_ms {
                self.save_heard(now_ms, heard).await?;
            }
            return Ok(Vec::new());
        }
        let call = &session.call;
        let rows = &self.rows_so_far(saved_rows, now_ms, heard);
        self.save_heard_at_ms = now_ms + PHONE_HEARD_MS;
        let mut statements = session.lease.extend(now_ms).to_vec();
        let offset_ms = self.conversation.offset_ms();
        let new_turns: Vec<TurnTimes> =
            turns.iter().filter(|turn| !self.saved_turns.contains(turn)).copied().collect();
        let (workspace_id, id) = (&call.workspace_id, &call.id);
        statements.extend(call_journal::save(workspace_id, id, offset_ms, self.spent, rows, &new_turns));
        statements.extend(self.inputs_to_store());
        statements.extend(self.progress_of_run());
        let leg = session.on_phone.then(|| Leg::select(&call.workspace_id, &call.id));
        let committed = self.tools.commit(statements, calls, leg).await?;
        self.inputs.stored();
        self.saved_rows = self.conversation.transcript().len();
        self.saved_turns = turns;
        // A crash loses no more than this of what was spoken, recorded and spent.
        let segment_ms = recordings::segment_ms(&session.services);
        let pause_ms =
            if session.is_spoken { segment_ms.min(LIVE_LEASE_EXTEND_MS) } else { LIVE_LEASE_EXTEND_MS };
        self.extend_lease_at_ms = now_ms + pause_ms;
        self.apply_leg(Leg::first(committed.rows.first())?);
        Ok(committed.calls)
    }

    /// Writes how much of the lines being spoken was heard.
    async fn save_heard(&mut self, now_ms: i64, heard: &[u32]) -> Result<(), Fault> {
        let Some(speaking) = self.conversation.speaking().filter(|_| self.conversation.ended().is_none())
        else {
            return Ok(());
        };
        let call = &self.session.call;
        let rows = self.rows_so_far(speaking, now_ms, heard);
        let statements = call_journal::save_rows(&call.workspace_id, &call.id, &rows);
        self.session.services.ports().database.write(statements).await?;
        self.save_heard_at_ms = now_ms + PHONE_HEARD_MS;
        Ok(())
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
