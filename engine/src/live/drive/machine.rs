//! An answering machine that the carrier reports. The report waits in the leg until the conversation can take it.
use super::Drive;
use crate::conversation::{Greeting, Input};
use crate::live::telephony::leg::Leg;

/// A machine, and what is known of its greeting.
type Machine = Option<Greeting>;

/// Who has answered.
#[derive(Debug, Default)]
pub(super) struct Answerer {
    /// What the carrier has reported.
    reported: Option<Machine>,
    /// What the conversation knows of it.
    told: Option<Machine>,
}

impl Drive<'_> {
    /// Takes what the leg says of who has answered.
    pub(super) fn note_answerer(&mut self, leg: &Leg) {
        if self.session.meets_machines() {
            let facts = &leg.facts;
            self.answerer.reported = (facts.machine == Some(true)).then_some(facts.greeting);
        }
    }

    /// Tells the conversation of a machine. While the carrier is asked to transfer the call, what comes of that is first. Whether there
    /// was news.
    pub(super) fn meet_machine(&mut self) -> bool {
        let news = self.answerer.reported.filter(|_| self.answerer.reported != self.answerer.told);
        let Some(greeting) = news.filter(|_| self.transferring.is_none() && self.ringing.is_none()) else {
            return false;
        };
        self.answerer.told = news;
        self.forget_early();
        self.handle(Input::MachineAnswered { greeting });
        true
    }
}
