//! The end of a conversation: ends the call, then notifies the peer.
use futures_util::stream::FuturesUnordered;

use super::Drive;
use crate::base::limits::LEASED_ATTEMPTS_MAX;
use crate::base::time::Timestamp;
use crate::conversation::EndedReason;
use crate::live::call_journal::CallProgress;
use crate::live::end_call::{CallJob, EndOfCall, LineEnd, end_call, ended};
use crate::live::peer::{Peer, PeerEvent};
use crate::live::telephony::leg::{Leg, Placing};
use crate::ports::BoxFuture;
use crate::speech::turn_times::TurnTimes;
use crate::storage::batch::Batch;
use crate::storage::events::{self, Subscribers};
use crate::storage::fault::Fault;
use crate::storage::recordings;

impl Drive<'_> {
    /// Ends the call in one batch, then notifies the peer.
    pub(super) async fn end(&mut self, peer: &mut dyn Peer) -> Result<(), Fault> {
        let (reason, turns) = self.wind_up(peer).await;
        for _ in 0..LEASED_ATTEMPTS_MAX {
            match self.write_end(reason, turns.clone()).await {
                Ok(()) => {
                    self.home.has_written();
                    let duration_ms = self.conversation.offset_ms();
                    peer.end(&self.session.call.id, reason, duration_ms).await;
                    return Ok(());
                }
                // The carrier has reported something meanwhile, a segment of the recording was counted, or another process
                // holds the lease. In the last case another attempt is useless, and rare.
                Err(Fault::Stale) => {}
                Err(fault) => return Err(fault),
            }
        }
        Err(Fault::Stale)
    }

    /// Plays the last lines and stores the rest of the recording. Returns why the conversation ended, and the times of
    /// its turns.
    pub(super) fn wind_up<'b>(
        &'b mut self,
        peer: &'b mut dyn Peer,
    ) -> BoxFuture<'b, (EndedReason, Vec<TurnTimes>)> {
        // As in `converse`.
        Box::pin(self.play_out(peer))
    }

    async fn play_out(&mut self, peer: &mut dyn Peer) -> (EndedReason, Vec<TurnTimes>) {
        self.await_transfer(peer).await;
        self.leave_ringing().await;
        // Pending model requests and tool calls are aborted.
        self.forget_question();
        self.forget_early();
        self.calling = FuturesUnordered::new();
        let reason = self.line_taken.or(self.conversation.ended()).unwrap_or(EndedReason::Aborted);
        self.finish_lines(peer, reason).await;
        self.take_segments(peer, true);
        self.recording.finish().await;
        self.note_cut_recording();
        (reason, self.turns(peer))
    }

    /// Plays the last lines to their end, unless nobody can hear or pay them, and records how much of them was heard.
    async fn finish_lines(&mut self, peer: &mut dyn Peer, reason: EndedReason) {
        // The carrier's limit of time leaves room for them, a browser's has none.
        let is_late = reason == EndedReason::DurationLimit && !self.session.on_phone;
        let is_cut = self.is_connection_over
            || is_late
            || matches!(
                reason,
                EndedReason::UserHungUp
                    | EndedReason::HungUpByRequest
                    | EndedReason::MediaLost
                    | EndedReason::Aborted
                    // Others talk on the line.
                    | EndedReason::Transferred
                    // What is spoken costs more.
                    | EndedReason::CostLimit
            );
        let events = if is_cut {
            let ended_at_ms = self.conversation.now_ms();
            let cut = PeerEvent::lines_cut(&peer.heard_permille(ended_at_ms));
            cut.into_iter().map(|event| (ended_at_ms, event)).collect()
        } else {
            peer.finish().await
        };
        for (at_ms, event) in events {
            self.pass_on(at_ms, event);
        }
        let ended_at_ms = self.conversation.now_ms();
        let is_gone =
            self.is_connection_over && matches!(reason, EndedReason::UserHungUp | EndedReason::MediaLost);
        for event in peer.last_words(is_gone, ended_at_ms).await {
            // A transcriber that has failed for good is no news.
            if reason != EndedReason::SpeechFailed || !matches!(event, PeerEvent::Note(_)) {
                self.pass_on(ended_at_ms, event);
            }
        }
        for failure in peer.take_speech_failures() {
            self.note(failure.message);
        }
        self.send_rows(peer).await;
        self.count_speech(peer);
    }

    async fn write_end(&mut self, reason: EndedReason, turns: Vec<TurnTimes>) -> Result<(), Fault> {
        let session = self.session;
        let (services, call) = (&session.services, &session.call);
        let now = Timestamp::from_ms(self.now_ms());
        let ended_at = Timestamp::from_ms(self.conversation.now_ms());
        let progress = CallProgress {
            offset_ms: self.conversation.offset_ms(),
            spent: self.spent,
            transcript: self.conversation.transcript().to_vec(),
            turns,
        };
        let reads = [
            events::subscribers(&call.workspace_id),
            Leg::select(&call.workspace_id, &call.id),
            recordings::in_progress(&call.workspace_id, &call.id),
        ];
        let [subscribers, leg, recording] = services.read(reads).await?;
        let mut leg = Leg::first(Some(&leg))?;
        // It may have become known since that nobody has taken the call.
        let is_untaken = leg.as_ref().is_some_and(|leg| leg.transfer == Some(Placing::Rejected));
        let reason = match reason {
            EndedReason::Transferred if is_untaken => {
                self.conversation.ended().filter(|own| *own != reason).unwrap_or(EndedReason::MediaLost)
            }
            reason => reason,
        };
        let answered_at = self.answered_at.map_or(call.started_at, Timestamp::from_ms);
        let mut batch = leg.as_mut().map_or_else(Batch::default, Leg::rings_no_more);
        let end = EndOfCall {
            call,
            leg: leg.as_ref(),
            ended: ended::after_conversation(progress, reason, self.fault, answered_at, ended_at),
            analysis: None,
            recorded_ms: recording.first().map(|row| row.integer("duration_ms")).transpose()?,
            subscribers: &Subscribers::read(&subscribers)?,
            job: CallJob::Conversation(&session.lease),
            line_end: LineEnd::HangUpByJob,
            now,
        };
        batch.extend(self.inputs_to_store());
        end_call(services, &mut batch, end)?;
        batch.write(services).await?;
        Ok(())
    }
}
