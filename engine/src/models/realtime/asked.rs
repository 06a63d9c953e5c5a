//! What a session is asked for: answers, lines to read out, and the response that the server is making.
use serde_json::Value;

use super::on_server::Call;
use super::usage::Input;
use super::{AnswerSlot, wire};
use crate::base::limits::{
    MODEL_ARGUMENTS_BYTES_MAX, MODEL_CALLS_MAX, REALTIME_PAUSES_MS_MAX, REALTIME_RESPONSE_MS,
};
use crate::conversation::{CallFault, Message};
use crate::models::asking::{FailureCode, ModelFailure, Usage, Written};
use crate::speech::audio::Rate;
use crate::speech::exchange::{SpeechFailure, SpeechFault};
use crate::speech::synthesizer::LineId;

/// A question is asked so often.
pub(super) const ATTEMPTS_MAX: u32 = 2;

/// A question of the conversation.
pub(super) struct Question {
    pub(super) history: Vec<Message>,
    pub(super) is_early: bool,
    pub(super) written: Written,
    pub(super) answer: AnswerSlot,
    pub(super) attempts: u32,
}

/// A line that the model reads out.
pub(super) struct Line {
    pub(super) id: LineId,
    pub(super) text: String,
    pub(super) is_complete: bool,
    pub(super) attempts: u32,
}

/// The response that the server is making.
#[derive(Default)]
pub(super) struct Active {
    /// Its number here, and its id on the server, once that is known.
    pub(super) number: u64,
    pub(super) id: Option<String>,
    /// The line that it reads out; `None` for an answer.
    pub(super) line: Option<Line>,
    pub(super) is_cancelled: bool,
    /// Its items that were dealt with, if it was cancelled.
    pub(super) settled: Vec<String>,
    pub(super) calls: Vec<Call>,
    pub(super) arguments: Vec<String>,
    /// When it was asked for, and when the server last said something of it.
    pub(super) began_ms: i64,
    pub(super) last_ms: i64,
    /// What the server reads for it, and what it has made of that: without its own count, the price is estimated.
    pub(super) input: Input,
    pub(super) written_bytes: usize,
    pub(super) samples: usize,
    pub(super) audio_ms: i64,
}

impl Active {
    pub(super) fn new(number: u64, now_ms: i64) -> Self {
        Self { number, began_ms: now_ms, last_ms: now_ms, ..Self::default() }
    }

    /// When it is late: the server is silent, or says too little to be heard without a long pause.
    pub(super) fn due_ms(&self) -> i64 {
        (self.last_ms + REALTIME_RESPONSE_MS).min(self.began_ms + REALTIME_PAUSES_MS_MAX + self.audio_ms)
    }

    /// It has so many samples more: how many ms that is. What a piece has of a further ms counts with the next.
    pub(super) fn add_audio(&mut self, samples: usize, rate: Rate) -> i64 {
        self.samples += samples;
        let before_ms = std::mem::replace(&mut self.audio_ms, rate.ms_of(self.samples));
        self.audio_ms - before_ms
    }

    /// A function call among its items, complete.
    pub(super) fn call(&mut self, item: &Value) {
        let text = |path| wire::text(item, path).to_owned();
        let id = |path| wire::id(item, path).to_owned();
        let (name, call_id, arguments) = (text("/name"), id("/call_id"), text("/arguments"));
        let names: usize = self.calls.iter().map(|call| call.name.len()).sum();
        let bytes =
            names + name.len() + self.arguments.iter().map(String::len).sum::<usize>() + arguments.len();
        let fits = self.calls.len() < MODEL_CALLS_MAX && bytes <= MODEL_ARGUMENTS_BYTES_MAX;
        let is_known = self.calls.iter().any(|call| call.id == call_id);
        if wire::text(item, "/type") == "function_call" && !name.is_empty() && !is_known && fits {
            self.calls.push(Call { name, id: call_id, item: id("/id") });
            self.arguments.push(arguments);
        }
    }

    /// What it has written, function calls included.
    pub(super) fn output_bytes(&self) -> usize {
        self.written_bytes + self.arguments.iter().map(String::len).sum::<usize>()
    }
}

/// The failure of a question.
pub(super) fn of_model(failure: &SpeechFailure) -> ModelFailure {
    ModelFailure {
        code: if failure.is_temporary { FailureCode::Unavailable } else { FailureCode::Rejected },
        fault: match failure.fault {
            SpeechFault::Operator => CallFault::Operator,
            SpeechFault::Provider => CallFault::Provider,
        },
        message: failure.message.clone(),
        usage: Usage::default(),
        cost_microusd: 0,
        requests: 1,
    }
}
