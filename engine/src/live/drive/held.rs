//! The conversation of a simulation run: held like any other, but its end is the run's, and its progress and costs are, too.
use super::Drive;
use crate::conversation::WaitingFor;
use crate::live::asking::CostLimit;
use crate::live::peer::Peer;
use crate::ports::statement::Statement;
use crate::simulation::live_caller::TurnState;
use crate::simulation::{HeldConversation, HeldFailure, SimulationPart};
use crate::storage::fault::Fault;
use crate::storage::runs;

impl Drive<'_> {
    /// Holds the conversation and returns what is known of it. The rest of its inputs is written; its journal stays.
    pub(in crate::live) async fn hold(mut self, peer: &mut dyn Peer) -> Result<HeldConversation, Fault> {
        let held = self.converse_and_tell(peer).await;
        if held.is_err() {
            peer.fail().await;
        }
        held
    }

    async fn converse_and_tell(&mut self, peer: &mut dyn Peer) -> Result<HeldConversation, Fault> {
        self.converse(peer).await?;
        let (ended_reason, turn_times) = self.wind_up(peer).await;
        self.share_costs();
        let statements = self.session.lease.extend(self.now_ms()).into_iter().chain(self.inputs_to_store());
        self.session.services.ports().database.write(statements.collect()).await?;
        let duration_ms = self.conversation.offset_ms();
        peer.end(&self.session.call.id, ended_reason, duration_ms).await;
        Ok(HeldConversation {
            transcript: self.conversation.transcript().to_vec(),
            ended_reason,
            fault: self.fault,
            turns: self.conversation.turns(),
            duration_ms,
            ended_at_ms: self.conversation.now_ms(),
            turn_times,
            failure: self.failure.take(),
        })
    }

    /// The limit of this conversation's costs; those of a simulated caller come from the same.
    pub(super) fn cost_limit(&self) -> CostLimit {
        let beside = self.session.run.as_ref().map_or(0, |run| run.costs.caller().microusd);
        CostLimit { microusd: self.session.max_cost_microusd.saturating_sub(beside) }
    }

    /// Tells the run what the assistant has cost.
    fn share_costs(&self) {
        if let Some(run) = &self.session.run {
            run.costs.set_assistant(self.spent);
        }
    }

    /// Stores how far the run is.
    pub(super) fn progress_of_run(&self) -> Option<Statement> {
        let run = self.session.run.as_ref()?;
        self.share_costs();
        let cost_microusd = self.spent.microusd.saturating_add(run.costs.caller().microusd);
        let (turns, rows) = (self.conversation.turns(), self.conversation.transcript());
        Some(runs::progress(&self.session.call.workspace_id, &run.id, turns, rows, cost_microusd))
    }

    /// The assistant's part cannot go on.
    pub(super) fn failed(&mut self, code: &str, message: String) {
        self.failure = Some(HeldFailure { part: SimulationPart::Assistant, code: code.to_owned(), message });
    }

    /// Tells the peer whose turn it is, if that has changed.
    pub(super) async fn tell_turn_state(&mut self, peer: &mut dyn Peer) {
        let turn_state = TurnState {
            is_callers: self.conversation.waiting_for() == WaitingFor::User,
            is_assistant_speaking: self.conversation.speaking().is_some(),
        };
        if turn_state != self.turn_state {
            self.turn_state = turn_state;
            // If the connection is closed, the next event says so.
            let _ = peer.turn_state(turn_state).await;
        }
    }
}
