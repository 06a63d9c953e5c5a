//! The state machine of a conversation.
mod filler;
mod keys;
mod mailbox;
mod messages;
mod record;
mod setup;
mod speech;
mod timing;
mod tools;
mod writing;

use std::collections::VecDeque;

use mailbox::Mailbox;
pub use messages::{Input, Output, Party, WaitingFor};
use serde::{Deserialize, Serialize};
pub use setup::ConversationSetup;
use speech::LineUnderWay;
use tools::PendingToolCall;
use writing::LineBeingWritten;

use super::transcript::{TranscriptRole, TranscriptRow};
use super::{EndedReason, NOTES_MAX, TEXT_BYTES_MAX};
use crate::base::text::truncate;
use crate::conversation::{AssistantReply, AssistantTurn, Message};

/// One conversation, seen from the assistant's side.
///
/// It has no clock and performs no I/O. The driver passes each input with its time to [`handle`](Self::handle), drains
/// [`poll`](Self::poll), executes the outputs, and waits for the next input, at most until
/// [`poll_timeout`](Self::poll_timeout). The same inputs at the same times produce the same outputs and the same
/// transcript, so a conversation can be replayed from its inputs alone.
///
/// ```
/// use sidetone_engine::conversation::Conversation;
/// use sidetone_engine::conversation::ConversationSetup;
/// use sidetone_engine::conversation::Input;
/// use sidetone_engine::conversation::Output;
/// use sidetone_engine::conversation::Party;
/// use sidetone_engine::models::rules::RulesAssistant;
///
/// # let setup = ConversationSetup {
/// #     id: "call_1".into(), instructions: String::new(), first_message: "Hello!".into(),
/// #     knowledge: vec![].into(), tools: vec![].into(), has_transfers: false, seed: 7, limits: Default::default(), is_spoken: false,
/// #     apology: String::new(), still_there: String::new(), not_understood: String::new(), keys: false, filler: String::new(),
/// #     opening_note: String::new(), voicemail: None,
/// # };
/// let model = RulesAssistant::new(&setup.knowledge, &setup.tools);
/// let mut conversation = Conversation::new(setup);
/// let mut inputs = std::collections::VecDeque::from([
///     Input::Start,
///     Input::UserText { text: "Hi there".into(), duration_ms: 0, silence_ms: 0 },
///     Input::HangUp { by: Party::User },
/// ]);
/// let mut said = Vec::new();
/// let mut now_ms = 0;
/// while let Some(input) = inputs.pop_front() {
///     now_ms += 100;
///     conversation.handle(now_ms, input);
///     while let Some(output) = conversation.poll() {
///         match output {
///             Output::Say { text } => said.push(text),
///             Output::AskModel { request } => {
///                 let reply = model.reply(&conversation.assistant_turn());
///                 inputs.push_front(Input::AssistantReply { request, reply });
///             }
///             Output::CallTool { id, .. } => inputs.push_front(Input::ToolResult {
///                 id,
///                 text: "the tool's response".into(),
///                 is_error: false,
///                 mocked: false,
///             }),
///             Output::PressKeys { .. } | Output::Hush | Output::Ended { .. } => {}
///         }
///     }
/// }
/// assert_eq!(said.len(), 2);
/// assert!(conversation.ended().is_some());
/// ```
///
/// Inputs that do not apply to the current state are ignored. A time before the latest one counts as the latest one,
/// except for an end that was found late: it takes back the time that passed since, but no row.
/// The whole state serialises: a driver can store it between two inputs, and calls [`resume`](Self::resume) after
/// loading it to repeat the open requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    setup: ConversationSetup,
    state: State,
    /// The driver's time at [`Input::Start`].
    started_ms: i64,
    /// Offset of the latest input from the start; never decreases.
    offset_ms: i64,
    /// Offset of the latest activity, from which silence counts.
    #[serde(default)]
    quiet_since_ms: i64,
    requests: u64,
    turns: u32,
    tool_calls: u64,
    tool_calls_this_turn: u32,
    silences: u32,
    /// The assistant's last line, case-folded, and how often it was said in a row.
    last_line: String,
    repeats: u32,
    /// Tool calls without a result, in the order of the requests.
    pending: Vec<PendingToolCall>,
    /// Lines of the user during a tool call. They join the history after the result, which must follow its call.
    held: Vec<String>,
    /// From when the user has waited for tools without a sound from either side, and whether the filler was said in
    /// this turn.
    #[serde(default)]
    waiting_since_ms: i64,
    #[serde(default)]
    has_filled: bool,
    /// Whether the rest of a line was said again in this turn.
    #[serde(default)]
    has_said_rest: bool,
    /// Since when the lines being spoken are paused, if they are.
    #[serde(default)]
    paused_at_ms: Option<i64>,
    /// The lines that the assistant is speaking, in their order: spoken ones that are still being played, or the written
    /// ones since the user's last line, which the client may speak.
    speaking: VecDeque<LineUnderWay>,
    /// Whether audio of the assistant is being played.
    #[serde(default)]
    is_being_spoken: bool,
    /// Whether the user's voice is heard.
    #[serde(default)]
    is_user_speaking: bool,
    /// The line that the model is still writing, if it is said meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    being_written: Option<LineBeingWritten>,
    /// What is known of the machine that has answered, if one has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mailbox: Option<Mailbox>,
    failure: Option<String>,
    history: Vec<Message>,
    transcript: Vec<TranscriptRow>,
    /// An upper bound of the transcript's size as JSON, in bytes.
    #[serde(default)]
    transcript_bytes: usize,
    outputs: VecDeque<Output>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum State {
    New,
    Listening,
    Thinking,
    Calling,
    /// A machine has answered.
    Mailbox,
    Ended {
        reason: EndedReason,
    },
}

impl Conversation {
    /// A new conversation, which waits for [`Input::Start`].
    #[must_use]
    pub const fn new(setup: ConversationSetup) -> Self {
        Self {
            setup,
            state: State::New,
            started_ms: 0,
            offset_ms: 0,
            quiet_since_ms: 0,
            requests: 0,
            turns: 0,
            tool_calls: 0,
            tool_calls_this_turn: 0,
            silences: 0,
            last_line: String::new(),
            repeats: 0,
            pending: Vec::new(),
            held: Vec::new(),
            waiting_since_ms: 0,
            paused_at_ms: None,
            has_filled: false,
            has_said_rest: false,
            speaking: VecDeque::new(),
            is_being_spoken: false,
            is_user_speaking: false,
            being_written: None,
            mailbox: None,
            failure: None,
            history: Vec::new(),
            transcript: Vec::new(),
            transcript_bytes: 0,
            outputs: VecDeque::new(),
        }
    }

    /// Handles an input at `now_ms`, on any clock that is the same for all inputs. Drain [`poll`](Self::poll)
    /// afterwards.
    pub fn handle(&mut self, now_ms: i64, input: Input) {
        if self.ended().is_some() && !input.counts_after_the_end() {
            return;
        }
        // A machine may be known before: the start counts from there.
        if self.state == State::New && self.mailbox.is_none() {
            self.started_ms = now_ms;
        }
        let offset_ms = now_ms.saturating_sub(self.started_ms);
        self.offset_ms = match input.may_be_found_late() {
            true => offset_ms.max(self.last_row_ms()),
            false => offset_ms.max(self.offset_ms),
        };
        if input.is_activity() {
            self.note_activity();
            self.waiting_since_ms = self.offset_ms;
        }
        match input {
            Input::Start => self.start(),
            Input::UserText { text, duration_ms, silence_ms } => {
                self.user_text(text, duration_ms, silence_ms)
            }
            Input::UserGoodbye { text, duration_ms } => self.user_goodbye(text, duration_ms),
            Input::Silence => self.count_silence(),
            Input::AssistantText { request, text } => self.assistant_text(request, &text),
            Input::AssistantReply { request, reply } => self.assistant_reply(request, reply),
            Input::ModelFailed { request, reason } => self.model_failed(request, reason),
            Input::ToolResult { id, text, is_error, mocked } => self.tool_result(&id, text, is_error, mocked),
            Input::Keys { keys, duration_ms, silence_ms } => self.keys(keys, duration_ms, silence_ms),
            Input::KeysPressed { id, pressed } => self.keys_pressed(&id, pressed),
            Input::Interrupted { heard_permille } => self.interrupted(heard_permille),
            Input::BrokeOff { heard_permille } => self.broke_off(heard_permille),
            Input::Heard { row, chars } => self.heard(row, chars),
            Input::Noise => {}
            Input::NotUnderstood => self.ask_again(),
            Input::VoiceBegan => self.is_user_speaking = true,
            Input::VoiceEnded => self.is_user_speaking = false,
            Input::Note { text } => self.note(text),
            Input::MachineAnswered { greeting } => self.machine_answered(greeting),
            Input::Tick => self.time_passed(),
            Input::LineBegan { at_ms } => self.line_began(at_ms),
            Input::Paused => self.paused_at_ms = self.paused_at_ms.or(Some(self.offset_ms)),
            Input::Resumed => self.paused_at_ms = None,
            Input::Spoken { until_ms } => self.spoken(until_ms),
            Input::HangUp { by: Party::User } => self.end(EndedReason::UserHungUp),
            Input::HangUp { by: Party::Assistant } => self.end(EndedReason::AssistantEnded),
            Input::CostLimit => self.end(EndedReason::CostLimit),
            Input::Stop { reason } => self.end(reason),
        }
        if self.offset_ms >= self.setup.limits.duration_ms_max && self.ended().is_none() {
            self.end(EndedReason::DurationLimit);
        }
        self.release_transfer();
        self.serve_machine();
    }

    /// The next output; `None` until the next [`handle`](Self::handle).
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Repeats the open requests with the same ids, for a driver that loaded a stored state. Lines and the end are not
    /// repeated.
    pub fn resume(&mut self) {
        if !self.outputs.is_empty() {
            return;
        }
        match self.state {
            State::Thinking => self.outputs.push_back(Output::AskModel { request: self.requests }),
            State::Calling => {
                let sent = self.pending.iter().filter(|call| !call.is_held);
                self.outputs.extend(sent.map(PendingToolCall::output));
            }
            State::New | State::Listening | State::Mailbox | State::Ended { .. } => {}
        }
    }

    /// The input that the conversation waits for.
    #[must_use]
    pub const fn waiting_for(&self) -> WaitingFor {
        match self.state {
            State::New => WaitingFor::Start,
            State::Listening => WaitingFor::User,
            State::Thinking => WaitingFor::Model,
            State::Calling => WaitingFor::Tool,
            State::Mailbox => WaitingFor::Machine,
            State::Ended { .. } => WaitingFor::Nothing,
        }
    }

    /// The current input for the model.
    #[must_use]
    pub fn assistant_turn(&self) -> AssistantTurn<'_> {
        AssistantTurn {
            instructions: &self.setup.instructions,
            knowledge: &self.setup.knowledge,
            tools: &self.setup.tools,
            history: &self.history,
            seed: self.setup.seed,
        }
    }

    /// The transcript so far, for people.
    #[must_use]
    pub fn transcript(&self) -> &[TranscriptRow] {
        &self.transcript
    }

    /// The names of the assistant's tools.
    pub fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.setup.tools.iter().map(|tool| tool.name.as_str())
    }

    /// An upper bound of the transcript's size as JSON, in bytes.
    #[must_use]
    pub const fn transcript_bytes(&self) -> usize {
        self.transcript_bytes
    }

    /// The conversation so far, for models.
    #[must_use]
    pub fn history(&self) -> &[Message] {
        &self.history
    }

    /// Why the conversation ended; `None` before its end.
    #[must_use]
    pub const fn ended(&self) -> Option<EndedReason> {
        match self.state {
            State::Ended { reason } => Some(reason),
            _ => None,
        }
    }

    /// The driver's reason for the model's failure, after [`EndedReason::ModelFailed`].
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Lines spoken by both sides.
    #[must_use]
    pub const fn turns(&self) -> u32 {
        self.turns
    }

    /// The number of the latest [`Output::AskModel`].
    #[must_use]
    pub const fn request(&self) -> u64 {
        self.requests
    }

    /// Whether the tool call with this id waits for its result.
    #[must_use]
    pub fn is_calling(&self, id: &str) -> bool {
        self.state == State::Calling && self.pending.iter().any(|call| call.id == id)
    }

    /// The time of the latest input, in ms from the start.
    #[must_use]
    pub const fn offset_ms(&self) -> i64 {
        self.offset_ms
    }

    /// The time of the latest input, on the clock of [`handle`](Self::handle); after the end, the time of the end.
    #[must_use]
    pub const fn now_ms(&self) -> i64 {
        self.started_ms.saturating_add(self.offset_ms)
    }

    fn start(&mut self) {
        if self.state != State::New {
            return;
        }
        let has_met_machine = self.mailbox.is_some();
        match has_met_machine {
            true => self.meet_machine(),
            false => self.state = State::Listening,
        }
        if !self.setup.opening_note.is_empty() {
            self.note(self.setup.opening_note.clone());
        }
        if has_met_machine {
            return;
        }
        let text = self.setup.first_message.clone();
        if !text.trim().is_empty() {
            self.say(text);
        }
    }

    fn user_text(&mut self, text: String, duration_ms: i64, silence_ms: i64) {
        if self.state == State::New
            || text.trim().is_empty()
            || !self.record_user_line(text, duration_ms, silence_ms)
        {
            return;
        }
        self.request_reply();
    }

    /// What the user said was lost: they are asked to say it again, instead of waiting for an answer.
    fn ask_again(&mut self) {
        let request = self.setup.not_understood.clone();
        if self.state == State::Listening && !self.is_being_spoken && !request.trim().is_empty() {
            self.silences = 0;
            self.say(request);
        }
    }

    fn keys(&mut self, keys: String, duration_ms: i64, silence_ms: i64) {
        let keys = truncate(keys, TEXT_BYTES_MAX);
        if self.state == State::New || keys.is_empty() {
            return;
        }
        self.line_answered();
        let row = self.past_row(TranscriptRole::Dtmf, keys.clone(), duration_ms, silence_ms);
        if self.record(row) {
            self.add_user_message(format!("(pressed {keys} on the telephone's keys)"));
            self.request_reply();
        }
    }

    fn note(&mut self, text: String) {
        let notes = self.transcript.iter().filter(|row| row.role == TranscriptRole::System).count();
        let row = self.row(TranscriptRole::System, truncate(text, TEXT_BYTES_MAX), self.offset_ms);
        // A note is no reason to end a conversation.
        if self.state != State::New && notes < NOTES_MAX && self.fits(&row) {
            self.record(row);
        }
    }

    /// Asks the model for a reply, unless the line was the last one or reached the turn limit.
    fn request_reply(&mut self) {
        if self.ended().is_some() || self.state == State::Mailbox {
            return;
        }
        if self.turns >= self.setup.limits.turns_max {
            return self.end(EndedReason::TurnLimit);
        }
        // An answer that is being said is completed first.
        if self.state != State::Calling && self.being_written.is_none() {
            self.begin_turn();
            self.ask_model();
        }
    }

    /// What is limited per turn counts from here.
    const fn begin_turn(&mut self) {
        self.tool_calls_this_turn = 0;
        self.has_filled = false;
        self.has_said_rest = false;
    }

    fn user_goodbye(&mut self, text: String, duration_ms: i64) {
        if self.state == State::New || text.trim().is_empty() || self.record_user_line(text, duration_ms, 0) {
            self.end(EndedReason::UserHungUp);
        }
    }

    /// Records a line of the user. Returns false if it exceeds the transcript's limit.
    fn record_user_line(&mut self, text: String, duration_ms: i64, silence_ms: i64) -> bool {
        let text = truncate(text, TEXT_BYTES_MAX);
        self.line_answered();
        let row = self.past_row(TranscriptRole::User, text.clone(), duration_ms, silence_ms);
        if !self.record(row) {
            return false;
        }
        self.add_user_message(text);
        true
    }

    /// A row of what the user said or pressed: it took this long, and ended this long ago.
    fn past_row(
        &self,
        role: TranscriptRole,
        text: String,
        duration_ms: i64,
        silence_ms: i64,
    ) -> TranscriptRow {
        let end_ms = self.offset_ms.saturating_sub(silence_ms.max(0)).max(0);
        let start_ms = end_ms.saturating_sub(duration_ms.max(0)).max(0);
        TranscriptRow { end_ms, ..self.row(role, text, start_ms) }
    }

    /// Adds a line of the user to the model's history.
    fn add_user_message(&mut self, text: String) {
        self.silences = 0;
        self.turns = self.turns.saturating_add(1);
        if self.state == State::Calling || self.being_written.is_some() {
            self.held.push(text);
        } else {
            self.history.push(Message::User { text });
        }
    }

    fn assistant_reply(&mut self, request: u64, reply: AssistantReply) {
        if self.state != State::Thinking || request != self.requests {
            return;
        }
        if let Some(line) = self.being_written {
            return self.answer_written(line, reply);
        }
        match reply {
            AssistantReply::Say { text } if text.trim().is_empty() => self.state = State::Listening,
            AssistantReply::Say { text } => {
                self.state = State::Listening;
                self.say(text);
            }
            AssistantReply::CallTools { text, calls } => self.call_tools(text, calls),
            AssistantReply::Goodbye { text } => {
                if !text.trim().is_empty() {
                    self.say(text);
                }
                if self.ended().is_none() {
                    self.end(EndedReason::AssistantEnded);
                }
            }
        }
    }

    fn model_failed(&mut self, request: u64, reason: String) {
        if self.state != State::Thinking || request != self.requests {
            return;
        }
        if let Some(line) = self.being_written {
            return self.answer_broke_off(line, &reason);
        }
        self.failure = Some(truncate(reason, TEXT_BYTES_MAX));
        let apology = self.setup.apology.clone();
        if !apology.trim().is_empty() && !self.speak(apology) {
            // It exceeds the transcript's limit, which is not the reason of this end.
            self.outputs.retain(|output| !matches!(output, Output::Ended { .. }));
        }
        self.end(EndedReason::ModelFailed);
    }

    fn ask_model(&mut self) {
        self.state = State::Thinking;
        self.requests = self.requests.saturating_add(1);
        self.outputs.push_back(Output::AskModel { request: self.requests });
    }

    fn end(&mut self, reason: EndedReason) {
        self.being_written = None;
        self.state = State::Ended { reason };
        self.outputs.push_back(Output::Ended { reason });
    }
}

#[cfg(test)]
mod mailbox_tests;
#[cfg(test)]
mod replay_tests;
#[cfg(test)]
mod speech_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod transfer_tests;
#[cfg(test)]
mod writing_tests;
