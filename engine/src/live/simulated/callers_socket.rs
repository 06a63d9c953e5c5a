//! The caller's end of the line: a [`Socket`] inside this process. It performs what [`LiveCaller`] decides: asks the caller's
//! model, has the lines synthesized, and keeps the time of a telephone.
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use futures_util::FutureExt;
use futures_util::future::{Either, select};

use super::callers_voice::CallersVoice;
use super::line::{ToCaller, ToService, as_audio, as_message};
use super::{CallerOfRun, RunCosts};
use crate::base::limits::LIVE_COST_MICROUSD_MAX;
use crate::conversation::{CallFault, EndedReason};
use crate::live::asking::{Asked, CostLimit};
use crate::live::speech_exchanges::SpeechExchanges;
use crate::models::{CallerReply, CallerTurn, FailureCode};
use crate::ports::{BoxFuture, Clock, Gone, Received, Socket, SocketMessage};
use crate::services::Services;
use crate::simulation::live_caller::{CallerOutput, LiveCaller};
use crate::simulation::{HeldFailure, SimulationPart};
use crate::speech::exchange::{Arrival, ExchangeId, SpeechFailure, SpeechFault, SpeechService};
use crate::speech::player::PlayerOutput;
use crate::storage::cost::Cost;

/// The caller with everything it needs.
pub(super) struct CallersSocket<'a> {
    services: &'a Services,
    clock: &'a dyn Clock,
    setup: CallerOfRun<'a>,
    caller: LiveCaller,
    voice: CallersVoice,
    exchanges: SpeechExchanges<'a>,
    asking: Option<BoxFuture<'a, Asked<CallerReply>>>,
    costs: &'a RunCosts,
    limit: CostLimit,
    /// Messages to the service.
    sent: VecDeque<SocketMessage>,
    failure: Option<HeldFailure>,
    /// Why the caller cannot speak.
    mute: Option<SpeechFailure>,
    /// Whether the caller's model was still being asked when the conversation ended.
    was_asking: bool,
    /// Nothing is said or answered any more.
    is_closed: bool,
}

/// What the socket waited for.
enum Happened {
    Replied(Asked<CallerReply>),
    Arrived(ExchangeId, Arrival),
    TimePassed,
}

impl<'a> CallersSocket<'a> {
    pub(super) fn new(
        services: &'a Services,
        setup: CallerOfRun<'a>,
        caller: LiveCaller,
        voice: CallersVoice,
        costs: &'a RunCosts,
        max_cost_microusd: i64,
    ) -> Self {
        Self {
            services,
            clock: &*services.ports().clock,
            setup,
            caller,
            voice,
            exchanges: SpeechExchanges::new(services.ports()),
            asking: None,
            costs,
            limit: CostLimit { microusd: max_cost_microusd },
            sent: VecDeque::new(),
            failure: None,
            mute: None,
            was_asking: false,
            is_closed: false,
        }
    }

    /// Why the caller could not go on, once the conversation has ended for this reason.
    pub(super) fn take_failure(&mut self, reason: EndedReason) -> Option<HeldFailure> {
        // It was not the caller who had nothing to say.
        let was_late = self.was_asking && reason == EndedReason::Silence;
        self.failure.take().or_else(|| {
            was_late.then(|| HeldFailure {
                part: SimulationPart::Caller,
                code: FailureCode::Timeout.as_str().to_owned(),
                message: "The caller's model failed: it did not answer before the assistant gave up waiting."
                    .to_owned(),
            })
        })
    }

    fn is_gone(&self) -> bool {
        self.is_closed || self.caller.has_hung_up()
    }

    async fn next(&mut self, until_ms: i64) -> Received {
        loop {
            let now_ms = self.clock.now_ms();
            if !self.is_gone() {
                self.voice.tick(now_ms);
                self.caller.tick(now_ms);
                self.settle(now_ms);
            }
            if let Some(message) = self.sent.pop_front() {
                return Received::Message(message);
            }
            if self.is_gone() {
                return Received::Gone;
            }
            if now_ms >= until_ms {
                return Received::Nothing;
            }
            let happened = self.wait(until_ms - now_ms, now_ms).await;
            let now_ms = self.clock.now_ms();
            match happened {
                Happened::TimePassed => {}
                Happened::Arrived(id, arrival) => self.voice.arrived(now_ms, id, arrival),
                Happened::Replied(asked) => self.replied(now_ms, asked),
            }
        }
    }

    async fn wait(&mut self, longest_ms: i64, now_ms: i64) -> Happened {
        let due_ms = self.voice.poll_timeout().unwrap_or(i64::MAX).min(self.caller.poll_timeout());
        let pause_ms = due_ms.saturating_sub(now_ms).clamp(1, longest_ms.max(1));
        let (asking, exchanges, clock) = (&mut self.asking, &mut self.exchanges, self.clock);
        let replied = poll_fn(|context| match asking {
            Some(answer) => answer.poll_unpin(context),
            None => Poll::Pending,
        });
        let arrived = pin!(exchanges.next());
        let paused = pin!(pause(clock, pause_ms.unsigned_abs()));
        let happened = match select(replied, select(arrived, paused)).await {
            Either::Left((asked, _)) => Happened::Replied(asked),
            Either::Right((Either::Left(((_, id, arrival), _)), _)) => Happened::Arrived(id, arrival),
            Either::Right((Either::Right(_), _)) => Happened::TimePassed,
        };
        if matches!(happened, Happened::Replied(_)) {
            self.asking = None;
        }
        happened
    }

    /// Does what the caller and its voice want, until they want nothing more.
    fn settle(&mut self, now_ms: i64) {
        if let Some(failure) = self.voice.hand_over(&mut self.caller) {
            self.mute.get_or_insert(failure);
        }
        // Lines are synthesized ahead of time. Until the caller's turn, the assistant's own voice may fail as well.
        if let Some(failure) = self.mute.take_if(|_| self.caller.is_free()) {
            self.speech_failed(&failure);
        }
        while let Some(output) = self.caller.poll() {
            match output {
                CallerOutput::Ask => self.ask(),
                CallerOutput::Speak(piece, text) => {
                    if !self.voice.speak(now_ms, piece, &text) {
                        self.caller.audio_ended(piece);
                    }
                }
                CallerOutput::Audio(samples) => self.sent.push_back(as_audio(&samples)),
                CallerOutput::Lost(samples) => self.sent.push_back(as_message(&ToService::Lost { samples })),
                CallerOutput::Played(mark) => self.sent.push_back(as_message(&ToService::Played { mark })),
                CallerOutput::NotUnderstood(text) => {
                    let text = format!("Not understood: the caller said “{text}”");
                    self.sent.push_back(as_message(&ToService::Note { text }));
                }
                CallerOutput::GiveUp => self.stop(EndedReason::Silence, EndedReason::Silence.fault()),
            }
        }
        while let Some(transmit) = self.voice.poll_transmit() {
            self.exchanges.perform(SpeechService::Synthesizer, transmit);
        }
        let speech = &self.services.config().speech;
        let spoken = speech.speech_microusd(self.voice.name(), &self.voice.billed_chars());
        self.costs.change_caller(|cost| cost.set_speech(0, spoken));
    }

    fn ask(&mut self) {
        let (services, setup) = (self.services, self.setup);
        let spent = self.costs.total();
        if !self.limit.allows(setup.model_name, spent) {
            return self.stop(EndedReason::CostLimit, EndedReason::CostLimit.fault());
        }
        let allowance = self.limit.allowance(spent, LIVE_COST_MICROUSD_MAX);
        let history = self.caller.history();
        self.asking = Some(Box::pin(async move {
            let CallerOfRun { persona, scenario, seed, model, .. } = setup;
            let turn = CallerTurn { persona, scenario, history: &history, seed };
            match model {
                Ok(model) => model.reply(services.ports(), &turn, allowance).await.into(),
                Err(failure) => Asked::from(Err(failure.clone())),
            }
        }));
    }

    fn replied(&mut self, now_ms: i64, asked: Asked<CallerReply>) {
        self.costs.change_caller(|cost| cost.add(asked.cost));
        match asked.answer {
            Ok(reply) => self.caller.replied(now_ms, reply),
            Err(failure) if failure.code == FailureCode::CostLimit => {
                self.stop(EndedReason::CostLimit, EndedReason::CostLimit.fault());
            }
            Err(failure) => {
                self.failure = Some(HeldFailure {
                    part: SimulationPart::Caller,
                    code: failure.code.as_str().to_owned(),
                    message: format!("The caller's model failed: {}", failure.message),
                });
                self.stop(EndedReason::ModelFailed, failure.fault);
            }
        }
    }

    fn speech_failed(&mut self, failure: &SpeechFailure) {
        self.failure = Some(HeldFailure {
            part: SimulationPart::Caller,
            code: EndedReason::SpeechFailed.as_str().to_owned(),
            message: format!("The caller's voice failed: {}", failure.message),
        });
        let fault = match failure.fault {
            SpeechFault::Operator => CallFault::Operator,
            SpeechFault::Provider => CallFault::Provider,
        };
        self.stop(EndedReason::SpeechFailed, fault);
    }

    /// Ends the conversation, and says why.
    fn stop(&mut self, reason: EndedReason, fault: CallFault) {
        self.sent.push_back(as_message(&ToService::Stop { reason, fault }));
    }

    /// Takes a message of the service.
    fn take(&mut self, message: &SocketMessage) {
        let now_ms = self.clock.now_ms();
        let SocketMessage::Text(text) = message else {
            return self.caller.hear(now_ms, &PlayerOutput::Audio(Vec::new()));
        };
        match serde_json::from_str(text) {
            Ok(ToCaller::Mark { mark }) => self.caller.hear(now_ms, &PlayerOutput::Mark(mark)),
            Ok(ToCaller::Clear) => self.caller.hear(now_ms, &PlayerOutput::Clear),
            Ok(ToCaller::Row { row }) => self.caller.row(now_ms, &row),
            Ok(ToCaller::TurnState { turn_state }) => self.caller.turn_state(now_ms, turn_state),
            Ok(ToCaller::Opened) | Err(_) => {}
        }
    }
}

impl Socket for CallersSocket<'_> {
    fn receive(&mut self, until_ms: i64) -> BoxFuture<'_, Received> {
        Box::pin(self.next(until_ms))
    }

    fn send(&mut self, message: SocketMessage) -> BoxFuture<'_, Result<(), Gone>> {
        if !self.is_gone() {
            self.take(&message);
        }
        // Who has heard that the goodbye was understood hangs up at once.
        let sent = if self.is_gone() { Err(Gone) } else { Ok(()) };
        Box::pin(std::future::ready(sent))
    }

    fn close(&mut self, _: u16, _: &'static str) -> BoxFuture<'_, ()> {
        self.is_closed = true;
        self.was_asking = self.asking.take().is_some();
        if self.was_asking
            && let Ok(model) = self.setup.model
        {
            let CallerOfRun { persona, scenario, seed, .. } = self.setup;
            let history = self.caller.history();
            let dropped = model.dropped(&CallerTurn { persona, scenario, history: &history, seed });
            self.costs.change_caller(|cost| cost.add(Cost::of(&Ok(dropped))));
        }
        self.voice.close(self.clock.now_ms());
        Box::pin(std::future::ready(()))
    }
}

/// Waits, and lets others go on even if the clock does not wait.
async fn pause(clock: &dyn Clock, ms: u64) {
    let mut pause = clock.sleep(ms);
    let mut has_yielded = false;
    poll_fn(|context| match pause.poll_unpin(context) {
        Poll::Ready(()) if has_yielded => Poll::Ready(()),
        Poll::Ready(()) => {
            (has_yielded, pause) = (true, Box::pin(std::future::ready(())));
            context.waker().wake_by_ref();
            Poll::Pending
        }
        Poll::Pending => {
            has_yielded = true;
            Poll::Pending
        }
    })
    .await;
}
