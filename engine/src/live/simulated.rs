//! A conversation of a simulation run that is held for real: the driver, the peer and the speech of a live call, on a line
//! inside this process. At its other end is a simulated caller, whose lines the caller's model writes and a voice speaks.
mod callers_socket;
mod callers_voice;
mod line;

use std::sync::{Arc, Mutex, PoisonError};

use self::callers_socket::CallersSocket;
use self::callers_voice::CallersVoice;
use self::line::SimulatedLine;
use super::admission::Admission;
use super::asking::Model;
use super::lease::JobLease;
use super::line_socket::LineMedia;
use super::session::LiveSession;
use super::voice_of_call::speaker;
use crate::base::ids::RunId;
use crate::base::limits::{HELD_RUN_MS_MAX, PHONE_SILENCE_MS};
use crate::config::{Config, Talking};
use crate::conversation::{CallFault, EndedReason, FilledTexts};
use crate::models::{AssistantInUse, CallerModel};
use crate::services::Services;
use crate::simulation::callers_phone::RATE;
use crate::simulation::live_caller::LiveCaller;
use crate::simulation::tool_mocks::ToolMocks;
use crate::simulation::{Conditions, HeldConversation, HeldFailure, SimulationPart};
use crate::storage::calls::NewCall;
use crate::storage::cost::Cost;
use crate::storage::fault::Fault;
use crate::storage::snapshots::AssistantSnapshot;

/// The voice of the simulated caller: the service's default, or the assistant's own where that one is built in.
pub(crate) fn callers_voice<'a>(config: &'a Config, assistant: &'a AssistantSnapshot) -> &'a str {
    let voice = &config.default_voice;
    if config.speech.speaker(voice).is_some() { voice } else { &assistant.voice }
}

/// Whether the speech of such a conversation may cost money.
pub(crate) fn speech_may_cost(config: &Config, assistant: &AssistantSnapshot) -> bool {
    [assistant.voice.as_str(), callers_voice(config, assistant)]
        .into_iter()
        .any(|voice| config.speech.may_cost(voice))
}

/// What the two sides of a run have cost so far. Each has to know the other's part, because they share a limit.
#[derive(Debug, Default)]
pub(crate) struct RunCosts {
    assistant: Mutex<Cost>,
    caller: Mutex<Cost>,
}

impl RunCosts {
    pub(crate) fn assistant(&self) -> Cost {
        *self.assistant.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn caller(&self) -> Cost {
        *self.caller.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_assistant(&self, cost: Cost) {
        *self.assistant.lock().unwrap_or_else(PoisonError::into_inner) = cost;
    }

    fn change_caller(&self, change: impl FnOnce(&mut Cost)) {
        change(&mut self.caller.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn total(&self) -> Cost {
        let mut total = self.assistant();
        total.add(self.caller());
        total
    }
}

/// The run that a conversation is held for.
#[derive(Debug, Clone)]
pub(crate) struct RunOfSession {
    pub(crate) id: RunId,
    pub(crate) seed: u64,
    pub(crate) costs: Arc<RunCosts>,
    /// The answers of its scenario in place of tools.
    pub(crate) mocks: Arc<ToolMocks>,
}

/// The simulated caller.
#[derive(Clone, Copy)]
pub(crate) struct CallerOfRun<'a> {
    pub(crate) model_name: &'a str,
    pub(crate) model: &'a Model<CallerModel>,
    pub(crate) persona: &'a str,
    pub(crate) scenario: &'a str,
    pub(crate) conditions: Conditions,
    pub(crate) seed: u64,
}

/// What a conversation is held with.
pub(crate) struct Rehearsal<'a> {
    pub(crate) call: NewCall,
    /// On the run's job.
    pub(crate) lease: JobLease,
    pub(crate) assistant: Arc<AssistantInUse>,
    pub(crate) texts: FilledTexts,
    pub(crate) admission: Arc<Admission>,
    pub(crate) run: RunOfSession,
    pub(crate) caller: CallerOfRun<'a>,
    pub(crate) max_cost_microusd: i64,
}

impl Rehearsal<'_> {
    /// Holds the conversation, in real time. Its journal is open. Nothing is written at its end: the run does that.
    pub(crate) async fn hold(self, services: &Services) -> Result<HeldConversation, Fault> {
        let Self { call, lease, assistant, texts, admission, run, caller, max_cost_microusd } = self;
        let speech = &services.config().speech;
        let now_ms = services.ports().clock.now_ms();
        if let Err(why) = services.config().transcriber_of(Talking::from(&**assistant)) {
            return Ok(unavailable(now_ms, &why));
        }
        let voice = callers_voice(services.config(), &assistant).to_owned();
        let Some(synthesizer) = speaker(speech, &voice, &assistant.language, 1.0) else {
            return Ok(unavailable(now_ms, &format!("`{voice}` is no voice of a configured provider")));
        };
        let costs = run.costs.clone();
        let mut socket = CallersSocket::new(
            services,
            caller,
            LiveCaller::new(now_ms, caller.seed, caller.conditions),
            CallersVoice::new(voice, assistant.language.clone(), synthesizer),
            &costs,
            max_cost_microusd,
        );
        let mut session = LiveSession {
            services: services.clone(),
            call,
            lease,
            texts,
            assistant,
            max_duration_ms: HELD_RUN_MS_MAX,
            silence_ms: PHONE_SILENCE_MS,
            max_cost_microusd,
            on_phone: false,
            is_spoken: true,
            media: Mutex::default(),
            realtime: None,
            run: Some(run),
            admission,
        };
        let media = LineMedia::on_line(Box::new(SimulatedLine), session.make_voice(RATE));
        let mut held = session.hold(media, &mut socket).await?;
        if let Some(failure) = socket.take_failure(held.ended_reason) {
            held.failure = Some(failure);
            if held.ended_reason == EndedReason::Silence {
                held.fault = Some(CallFault::Provider);
            }
        }
        Ok(held)
    }
}

/// A conversation that could not begin, because the settings have changed since the run was queued.
fn unavailable(now_ms: i64, why: &str) -> HeldConversation {
    HeldConversation {
        transcript: Vec::new(),
        ended_reason: EndedReason::SpeechFailed,
        fault: Some(CallFault::Operator),
        turns: 0,
        duration_ms: 0,
        ended_at_ms: now_ms,
        turn_times: Vec::new(),
        failure: Some(HeldFailure {
            part: SimulationPart::Assistant,
            code: EndedReason::SpeechFailed.as_str().to_owned(),
            message: format!("The conversation could not be spoken: {why}."),
        }),
    }
}
