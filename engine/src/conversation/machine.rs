//! The state machine itself.
use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::text::{cut, folded};
use super::transcript::{TranscriptRole, TranscriptRow};
use super::{ConversationLimits, EndedReason, TEXT_BYTES_MAX, TOOL_NAME_BYTES_MAX};
use crate::models::{AssistantReply, AssistantTurn, Knowledge, Message, ToolSpec};

/// What a conversation starts from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationSetup {
    /// Names the conversation; tool-call ids are made of it (`{id}_t1`, `{id}_t2`, …).
    pub id: String,
    /// The assistant's business instructions.
    pub instructions: String,
    /// What the assistant opens with; empty: it waits for the user.
    pub first_message: String,
    /// Attached documents.
    pub knowledge: Vec<Knowledge>,
    /// Attached tools.
    pub tools: Vec<ToolSpec>,
    /// Handed to the model: same seed and same inputs, same conversation.
    pub seed: u64,
    /// What bounds it.
    #[serde(default)]
    pub limits: ConversationLimits,
}

/// One side of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Party {
    /// The person, or the simulated caller.
    User,
    /// The assistant.
    Assistant,
}

/// What happened outside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Input {
    /// The two are connected. Offsets in the transcript count from here.
    Start,
    /// The user said or wrote something. While the model thinks, it is asked anew with this line
    /// too; while a tool runs, the line waits for the result.
    UserText {
        /// The words.
        text: String,
        /// How long it took to say them, in ms; 0 for typed text.
        duration_ms: i64,
    },
    /// It was the user's turn and they said nothing in the time given.
    Silence,
    /// The model answered [`Output::AskModel`] of the same number.
    AssistantReply {
        /// The number asked with. An answer to an older question is ignored.
        request: u64,
        /// The answer.
        reply: AssistantReply,
    },
    /// The model could not answer [`Output::AskModel`] of the same number.
    ModelFailed {
        /// The number asked with.
        request: u64,
        /// Why, in words fit for the assistant's owner.
        reason: String,
    },
    /// The tool of [`Output::CallTool`] answered or failed.
    ToolResult {
        /// The id called with. A result for another call is ignored.
        id: String,
        /// The answer, or why there is none.
        text: String,
        /// True when `text` says why the tool failed.
        is_error: bool,
    },
    /// The assistant's last line has been spoken to its end. Optional; it sets the row's `end_ms`.
    Spoken,
    /// One side hung up.
    HangUp {
        /// Who.
        by: Party,
    },
    /// The service stops the conversation.
    Abort,
}

/// What the driver does next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Output {
    /// Say this to the user.
    Say {
        /// The words.
        text: String,
    },
    /// Ask the model about [`Conversation::assistant_turn`] as it is now, and hand in its answer
    /// with this number. An earlier question still under way may be dropped.
    AskModel {
        /// The number of this question.
        request: u64,
    },
    /// Call this tool and hand in its result with this id.
    CallTool {
        /// Unique in the conversation and the same after a restart, so it is fit to be the
        /// tool's idempotency key.
        id: String,
        /// One of the attached tools.
        name: String,
        /// A JSON object; not yet checked against the tool's schema.
        arguments: Value,
    },
    /// The conversation is over; nothing comes after this.
    Ended {
        /// Why.
        reason: EndedReason,
    },
}

/// Whose move it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitingFor {
    /// [`Input::Start`].
    Start,
    /// [`Input::UserText`] or [`Input::Silence`].
    User,
    /// [`Input::AssistantReply`] or [`Input::ModelFailed`].
    Model,
    /// [`Input::ToolResult`].
    Tool,
    /// Nothing: it is over.
    Nothing,
}

/// One conversation, seen from the assistant's side.
///
/// It has no clock and asks nobody by itself. The driver tells it what happened and when with
/// [`handle`](Self::handle), then drains [`poll`](Self::poll) and does what it says:
///
/// ```
/// use sidetone_engine::conversation::{Conversation, ConversationSetup, Input, Output, Party};
/// use sidetone_engine::models::rules::RulesAssistant;
///
/// # let setup = ConversationSetup {
/// #     id: "call_1".into(), instructions: String::new(), first_message: "Hello!".into(),
/// #     knowledge: vec![], tools: vec![], seed: 7, limits: Default::default(),
/// # };
/// let model = RulesAssistant::new(&setup.knowledge, &setup.tools);
/// let mut conversation = Conversation::new(setup);
/// let mut inputs = std::collections::VecDeque::from([
///     Input::Start,
///     Input::UserText { text: "Hi there".into(), duration_ms: 0 },
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
///                 text: "the tool's answer".into(),
///                 is_error: false,
///             }),
///             Output::Ended { .. } => {}
///         }
///     }
/// }
/// assert_eq!(said.len(), 2);
/// assert!(conversation.ended().is_some());
/// ```
///
/// Inputs that make no sense at the moment are ignored. Times that run backwards are read as
/// "now". The whole state serialises: a driver that stops between two inputs stores it, and after
/// loading it calls [`resume`](Self::resume) to be told again what is under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    setup: ConversationSetup,
    state: State,
    /// The driver's time at [`Input::Start`].
    started_ms: i64,
    /// Offset of the latest input from the start; never runs backwards.
    offset_ms: i64,
    requests: u64,
    turns: u32,
    tool_calls: u64,
    tool_calls_this_turn: u32,
    silences: u32,
    /// The assistant's last line, folded, and how often it came in a row.
    last_line: String,
    repeats: u32,
    /// What the user said while a tool ran: a result follows its call in the history.
    held: Vec<String>,
    /// The assistant's row that is still being spoken.
    speaking: Option<usize>,
    failure: Option<String>,
    history: Vec<Message>,
    transcript: Vec<TranscriptRow>,
    outputs: VecDeque<Output>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum State {
    New,
    Listening,
    Thinking,
    /// The call is the last row of the history.
    Calling,
    Ended {
        reason: EndedReason,
    },
}

impl Conversation {
    /// A conversation that waits for [`Input::Start`].
    #[must_use]
    pub const fn new(setup: ConversationSetup) -> Self {
        Self {
            setup,
            state: State::New,
            started_ms: 0,
            offset_ms: 0,
            requests: 0,
            turns: 0,
            tool_calls: 0,
            tool_calls_this_turn: 0,
            silences: 0,
            last_line: String::new(),
            repeats: 0,
            held: Vec::new(),
            speaking: None,
            failure: None,
            history: Vec::new(),
            transcript: Vec::new(),
            outputs: VecDeque::new(),
        }
    }

    /// Takes in what happened at `now_ms` (any clock, as long as it is always the same one).
    /// Drain [`poll`](Self::poll) afterwards.
    pub fn handle(&mut self, now_ms: i64, input: Input) {
        if self.ended().is_some() {
            return;
        }
        if self.state == State::New {
            self.started_ms = now_ms;
        }
        self.offset_ms = self.offset_ms.max(now_ms.saturating_sub(self.started_ms));
        match input {
            Input::Start => self.start(),
            Input::UserText { text, duration_ms } => self.user_text(text, duration_ms),
            Input::Silence => self.silence(),
            Input::AssistantReply { request, reply } => self.assistant_reply(request, reply),
            Input::ModelFailed { request, reason } => self.model_failed(request, reason),
            Input::ToolResult { id, text, is_error } => self.tool_result(&id, text, is_error),
            Input::Spoken => self.spoken(),
            Input::HangUp { by: Party::User } => self.end(EndedReason::UserHungUp),
            Input::HangUp { by: Party::Assistant } => self.end(EndedReason::AssistantEnded),
            Input::Abort => self.end(EndedReason::Aborted),
        }
    }

    /// The next thing to do, in order; `None` until the next [`handle`](Self::handle).
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Tells [`poll`](Self::poll) again what was under way: the model's question or the tool's
    /// call, with the same numbers. For a driver that loaded a stored state; what was said or
    /// ended is not repeated.
    pub fn resume(&mut self) {
        if !self.outputs.is_empty() {
            return;
        }
        match self.state {
            State::Thinking => self.outputs.push_back(Output::AskModel { request: self.requests }),
            State::Calling => self.outputs.extend(self.pending_call()),
            State::New | State::Listening | State::Ended { .. } => {}
        }
    }

    /// Whose move it is.
    #[must_use]
    pub const fn waiting_for(&self) -> WaitingFor {
        match self.state {
            State::New => WaitingFor::Start,
            State::Listening => WaitingFor::User,
            State::Thinking => WaitingFor::Model,
            State::Calling => WaitingFor::Tool,
            State::Ended { .. } => WaitingFor::Nothing,
        }
    }

    /// What the model is asked about now.
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

    /// Everything that happened so far, for people.
    #[must_use]
    pub fn transcript(&self) -> &[TranscriptRow] {
        &self.transcript
    }

    /// Everything that happened so far, for models.
    #[must_use]
    pub fn history(&self) -> &[Message] {
        &self.history
    }

    /// Why it ended, once it has.
    #[must_use]
    pub const fn ended(&self) -> Option<EndedReason> {
        match self.state {
            State::Ended { reason } => Some(reason),
            _ => None,
        }
    }

    /// What the driver said about the model's failure, after [`EndedReason::ModelFailed`].
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

    /// The latest time it has heard of, in ms from its start.
    #[must_use]
    pub const fn offset_ms(&self) -> i64 {
        self.offset_ms
    }

    fn start(&mut self) {
        if self.state != State::New {
            return;
        }
        self.state = State::Listening;
        let text = self.setup.first_message.clone();
        if !text.trim().is_empty() {
            self.say(text);
        }
    }

    fn user_text(&mut self, text: String, duration_ms: i64) {
        if self.state == State::New || text.trim().is_empty() {
            return;
        }
        let text = cut(text, TEXT_BYTES_MAX);
        let end_ms = self.offset_ms;
        let start_ms = end_ms.saturating_sub(duration_ms.max(0)).max(0);
        self.silences = 0;
        self.speaking = None;
        self.row(TranscriptRole::User, text.clone(), start_ms);
        self.turns = self.turns.saturating_add(1);
        if self.state == State::Calling {
            self.held.push(text);
        } else {
            self.history.push(Message::User { text });
        }
        if self.turns >= self.setup.limits.turns_max {
            return self.end(EndedReason::TurnLimit);
        }
        if self.state != State::Calling {
            self.tool_calls_this_turn = 0;
            self.ask_model();
        }
    }

    fn silence(&mut self) {
        if self.state != State::Listening {
            return;
        }
        self.silences = self.silences.saturating_add(1);
        if self.silences >= self.setup.limits.silences_max {
            self.end(EndedReason::Silence);
        }
    }

    fn assistant_reply(&mut self, request: u64, reply: AssistantReply) {
        if self.state != State::Thinking || request != self.requests {
            return;
        }
        match reply {
            AssistantReply::Say { text } if text.trim().is_empty() => self.state = State::Listening,
            AssistantReply::Say { text } => {
                self.state = State::Listening;
                self.say(text);
            }
            AssistantReply::CallTool { name, arguments } => self.call_tool(name, arguments),
        }
    }

    fn model_failed(&mut self, request: u64, reason: String) {
        if self.state != State::Thinking || request != self.requests {
            return;
        }
        self.failure = Some(cut(reason, TEXT_BYTES_MAX));
        self.end(EndedReason::ModelFailed);
    }

    fn say(&mut self, text: String) {
        let text = cut(text, TEXT_BYTES_MAX);
        self.speaking = Some(self.transcript.len());
        self.row(TranscriptRole::Assistant, text.clone(), self.offset_ms);
        self.history.push(Message::Assistant { text: text.clone() });
        self.turns = self.turns.saturating_add(1);
        let line = folded(&text);
        self.repeats = if line == self.last_line { self.repeats.saturating_add(1) } else { 1 };
        self.last_line = line;
        self.outputs.push_back(Output::Say { text });
        if self.turns >= self.setup.limits.turns_max {
            self.end(EndedReason::TurnLimit);
        } else if self.repeats >= self.setup.limits.repeats_max {
            self.end(EndedReason::AssistantRepeating);
        }
    }

    /// Calls the tool, or tells the model why not: a wrong call costs it one of its calls.
    fn call_tool(&mut self, name: String, arguments: Value) {
        let calls_max = self.setup.limits.tool_calls_per_turn_max;
        if self.tool_calls_this_turn > calls_max {
            return self.end(EndedReason::ToolLoop);
        }
        let refusal = if self.tool_calls_this_turn == calls_max {
            Some("No further tool call is possible in this turn: answer the user now.".to_owned())
        } else if !self.setup.tools.iter().any(|tool| tool.name == name) {
            Some(self.unknown_tool())
        } else if !arguments.is_object() {
            Some("The arguments must be a JSON object.".to_owned())
        } else {
            None
        };
        self.tool_calls_this_turn = self.tool_calls_this_turn.saturating_add(1);
        self.tool_calls = self.tool_calls.saturating_add(1);
        let id = format!("{}_t{}", self.setup.id, self.tool_calls);
        let name = cut(name, TOOL_NAME_BYTES_MAX);
        let text = cut(format!("{name}({arguments})"), TEXT_BYTES_MAX);
        self.history.push(Message::ToolCall {
            id: id.clone(),
            name: name.clone(),
            arguments: arguments.clone(),
        });
        let row = self.row(TranscriptRole::ToolCall, text, self.offset_ms);
        row.tool_name = Some(name);
        row.tool_call_id = Some(id.clone());
        row.arguments = Some(arguments);
        row.is_error = refusal.is_some().then_some(true);
        self.state = State::Calling;
        match refusal {
            Some(reason) => self.tool_result(&id, reason, true),
            None => self.outputs.extend(self.pending_call()),
        }
    }

    fn unknown_tool(&self) -> String {
        let names: Vec<_> = self.setup.tools.iter().map(|tool| tool.name.as_str()).collect();
        match names.as_slice() {
            [] => "There is no such tool: no tool is attached.".to_owned(),
            names => format!("There is no such tool. The tools are: {}.", names.join(", ")),
        }
    }

    fn tool_result(&mut self, id: &str, text: String, is_error: bool) {
        let Some(Output::CallTool { id: called, name, .. }) = self.pending_call() else {
            return;
        };
        if self.state != State::Calling || called != id {
            return;
        }
        let text = cut(text, TEXT_BYTES_MAX);
        self.history.push(Message::ToolResult {
            id: called.clone(),
            name: name.clone(),
            text: text.clone(),
            is_error,
        });
        let row = self.row(TranscriptRole::ToolResult, text, self.offset_ms);
        row.tool_name = Some(name);
        row.tool_call_id = Some(called);
        row.is_error = Some(is_error);
        if !self.held.is_empty() {
            self.tool_calls_this_turn = 0;
        }
        self.history.extend(self.held.drain(..).map(|text| Message::User { text }));
        self.ask_model();
    }

    fn spoken(&mut self) {
        let end_ms = self.offset_ms;
        if let Some(row) = self.speaking.take().and_then(|index| self.transcript.get_mut(index)) {
            row.end_ms = end_ms;
        }
    }

    fn ask_model(&mut self) {
        self.state = State::Thinking;
        self.requests = self.requests.saturating_add(1);
        self.outputs.push_back(Output::AskModel { request: self.requests });
    }

    fn end(&mut self, reason: EndedReason) {
        self.state = State::Ended { reason };
        self.outputs.push_back(Output::Ended { reason });
    }

    fn pending_call(&self) -> Option<Output> {
        match self.history.last() {
            Some(Message::ToolCall { id, name, arguments }) => {
                Some(Output::CallTool { id: id.clone(), name: name.clone(), arguments: arguments.clone() })
            }
            _ => None,
        }
    }

    /// Adds a row that ends now.
    fn row(&mut self, role: TranscriptRole, text: String, start_ms: i64) -> &mut TranscriptRow {
        let index = self.transcript.len();
        let row = TranscriptRow::new(index, role, text, start_ms, self.offset_ms);
        self.transcript.push_mut(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn the_assistant_opens_and_answers() {
        let mut talk = Talk::new(setup("Hello!"));
        assert_eq!(talk.drain(Input::Start), [say("Hello!")]);
        assert_eq!(talk.drain(user("Are you open?")), [ask(1)]);
        assert_eq!(talk.drain(reply(1, "Yes.")), [say("Yes.")]);
        assert_eq!(talk.conversation.waiting_for(), WaitingFor::User);
        assert_eq!(talk.drain(hang_up()), [ended(EndedReason::UserHungUp)]);
        assert_eq!(talk.texts(), ["Hello!", "Are you open?", "Yes."]);
        assert_eq!(talk.conversation.turns(), 3);
        assert_eq!(talk.conversation.history().len(), 3);
    }

    #[test]
    fn without_a_first_message_the_assistant_waits() {
        let mut talk = Talk::new(setup(" "));
        assert_eq!(talk.drain(Input::Start), []);
        assert_eq!(talk.conversation.waiting_for(), WaitingFor::User);
        assert!(talk.conversation.transcript().is_empty());
    }

    #[test]
    fn rows_carry_offsets_from_the_start() {
        let mut conversation = Conversation::new(setup("Hello!"));
        conversation.handle(10_000, Input::Start);
        conversation.handle(10_400, Input::Spoken);
        conversation.handle(12_000, Input::UserText { text: "Hi".into(), duration_ms: 600 });
        conversation.handle(11_000, reply(1, "Yes."));
        let times: Vec<_> = conversation.transcript().iter().map(|row| (row.start_ms, row.end_ms)).collect();
        assert_eq!(times, [(0, 400), (1_400, 2_000), (2_000, 2_000)]);
        assert_eq!(conversation.offset_ms(), 2_000);
    }

    #[test]
    fn a_tool_runs_between_question_and_answer() {
        let mut talk = Talk::started();
        talk.drain(user("Order 7?"));
        let call = Output::CallTool { id: "c_t1".into(), name: "order".into(), arguments: json!({"id": 7}) };
        assert_eq!(talk.drain(tool_call(1, "order", json!({"id": 7}))), [call]);
        assert_eq!(talk.drain(result("c_t9", "other")), []);
        assert_eq!(talk.drain(result("c_t1", "sent")), [ask(2)]);
        assert_eq!(talk.drain(result("c_t1", "again")), []);
        assert_eq!(talk.drain(reply(2, "It was sent.")), [say("It was sent.")]);
        let rows = talk.conversation.transcript();
        assert_eq!(rows[1].text, r#"order({"id":7})"#);
        assert_eq!(rows[1].arguments, Some(json!({"id": 7})));
        assert_eq!(rows[1].is_error, None);
        assert_eq!(rows[2].tool_call_id.as_deref(), Some("c_t1"));
        assert_eq!(rows[2].is_error, Some(false));
    }

    #[test]
    fn an_unknown_tool_is_an_error_the_model_can_read() {
        let mut talk = Talk::started();
        talk.drain(user("Order 7?"));
        assert_eq!(talk.drain(tool_call(1, "ordr", json!({}))), [ask(2)]);
        let rows = talk.conversation.transcript();
        assert_eq!(rows[1].is_error, Some(true));
        assert_eq!(rows[2].text, "There is no such tool. The tools are: order.");
        assert_eq!(talk.drain(tool_call(2, "order", json!([1]))), [ask(3)]);
        assert!(talk.texts().contains(&"The arguments must be a JSON object.".to_owned()));
    }

    #[test]
    fn endless_tool_calls_end_the_conversation() {
        let mut talk = Talk::started();
        talk.conversation.setup.limits.tool_calls_per_turn_max = 2;
        talk.drain(user("Order 7?"));
        for n in 1..=2 {
            talk.drain(tool_call(n, "order", json!({})));
            talk.drain(result(&format!("c_t{n}"), "sent"));
        }
        assert_eq!(talk.drain(tool_call(3, "order", json!({}))), [ask(4)]);
        assert!(talk.texts().last().unwrap().starts_with("No further tool call"));
        let last = talk.drain(tool_call(4, "order", json!({})));
        assert_eq!(last, [ended(EndedReason::ToolLoop)]);
    }

    #[test]
    fn every_line_of_the_user_gives_the_model_new_calls() {
        let mut talk = Talk::started();
        talk.conversation.setup.limits.tool_calls_per_turn_max = 1;
        for n in 0..3 {
            talk.drain(user("Order 7?"));
            let asked = talk.drain(tool_call(2 * n + 1, "order", json!({})));
            assert!(matches!(asked[..], [Output::CallTool { .. }]), "{asked:?}");
            talk.drain(result(&format!("c_t{}", n + 1), "sent"));
            talk.drain(reply(2 * n + 2, &format!("Sent {n}.")));
        }
        assert_eq!(talk.conversation.ended(), None);
    }

    #[test]
    fn a_second_line_makes_the_first_question_stale() {
        let mut talk = Talk::started();
        assert_eq!(talk.drain(user("Are you")), [ask(1)]);
        assert_eq!(talk.drain(user("open today?")), [ask(2)]);
        assert_eq!(talk.drain(reply(1, "Yes?")), []);
        assert_eq!(talk.drain(reply(2, "Yes.")), [say("Yes.")]);
        assert_eq!(talk.texts(), ["Are you", "open today?", "Yes."]);
    }

    #[test]
    fn a_line_during_a_tool_call_follows_its_result() {
        let mut talk = Talk::started();
        talk.drain(user("Order 7?"));
        talk.drain(tool_call(1, "order", json!({})));
        assert_eq!(talk.drain(user("Quick!")), []);
        assert_eq!(talk.drain(result("c_t1", "sent")), [ask(2)]);
        assert_eq!(talk.texts()[2], "Quick!");
        assert_eq!(talk.conversation.history().last(), Some(&Message::User { text: "Quick!".into() }));
    }

    #[test]
    fn the_line_that_reaches_the_limit_is_the_last() {
        let mut talk = Talk::started();
        talk.conversation.setup.limits.turns_max = 3;
        talk.drain(user("1"));
        talk.drain(reply(1, "2"));
        assert_eq!(talk.drain(user("3")), [ended(EndedReason::TurnLimit)]);
        let mut talk = Talk::started();
        talk.conversation.setup.limits.turns_max = 2;
        talk.drain(user("1"));
        assert_eq!(talk.drain(reply(1, "2")), [say("2"), ended(EndedReason::TurnLimit)]);
    }

    #[test]
    fn an_assistant_that_repeats_itself_is_stopped() {
        let mut talk = Talk::started();
        for n in 1..REPEATS {
            talk.drain(user("hello?"));
            assert_eq!(talk.drain(reply(n, "PARDON  me")).len(), 1);
        }
        talk.drain(user("hello?"));
        let last = talk.drain(reply(REPEATS, "Pardon me"));
        assert_eq!(last[1], ended(EndedReason::AssistantRepeating));
    }
    const REPEATS: u64 = crate::conversation::REPEATS_MAX as u64;

    #[test]
    fn a_silent_user_ends_it_and_a_word_starts_the_count_again() {
        let mut talk = Talk::started();
        assert_eq!(talk.drain(Input::Silence), []);
        assert_eq!(talk.drain(Input::Silence), []);
        talk.drain(user("here"));
        talk.drain(reply(1, "Good."));
        assert_eq!(talk.drain(Input::Silence), []);
        assert_eq!(talk.drain(Input::Silence), []);
        assert_eq!(talk.drain(Input::Silence), [ended(EndedReason::Silence)]);
    }

    #[test]
    fn a_failed_model_ends_it_with_the_reason_kept() {
        let mut talk = Talk::started();
        talk.drain(user("hi"));
        let failed = |request| Input::ModelFailed { request, reason: "timeout".into() };
        assert_eq!(talk.drain(failed(7)), []);
        assert_eq!(talk.drain(failed(1)), [ended(EndedReason::ModelFailed)]);
        assert_eq!(talk.conversation.failure(), Some("timeout"));
    }

    #[test]
    fn an_empty_answer_gives_the_turn_back() {
        let mut talk = Talk::started();
        talk.drain(user("hi"));
        assert_eq!(talk.drain(reply(1, "\n")), []);
        assert_eq!(talk.conversation.waiting_for(), WaitingFor::User);
        assert_eq!(talk.texts(), ["hi"]);
    }

    #[test]
    fn either_side_or_the_service_ends_it_at_any_time() {
        let end = |input| Talk::new(setup("")).drain(input);
        assert_eq!(end(hang_up()), [ended(EndedReason::UserHungUp)]);
        assert_eq!(end(Input::HangUp { by: Party::Assistant }), [ended(EndedReason::AssistantEnded)]);
        assert_eq!(end(Input::Abort), [ended(EndedReason::Aborted)]);
    }

    #[test]
    fn a_loaded_state_is_told_again_what_is_under_way() {
        let mut talk = Talk::started();
        talk.drain(user("Order 7?"));
        talk.reload();
        assert_eq!(talk.resumed(), [ask(1)]);
        let call = talk.drain(tool_call(1, "order", json!({"id": 7})));
        talk.reload();
        assert_eq!(talk.resumed(), call);
        assert_eq!(talk.drain(result("c_t1", "sent")), [ask(2)]);
        talk.drain(reply(2, "Sent."));
        assert_eq!(talk.resumed(), []);
    }

    #[test]
    fn a_huge_line_is_cut() {
        let mut talk = Talk::started();
        talk.drain(user(&"é".repeat(TEXT_BYTES_MAX)));
        assert!(talk.texts()[0].len() <= TEXT_BYTES_MAX);
        assert!(talk.texts()[0].ends_with('…'));
    }

    proptest! {
        #[test]
        fn any_inputs_leave_a_sound_state(
            first in prop_oneof![Just(""), Just("Hello!")],
            inputs in prop::collection::vec((any::<i64>(), input()), 0..60),
            reload_at in 0..60_usize,
        ) {
            let mut conversation = Conversation::new(setup(first));
            conversation.setup.limits.turns_max = 20;
            let mut twin: Option<Conversation> = None;
            let mut over = false;
            for (place, (now_ms, input)) in inputs.into_iter().enumerate() {
                if place == reload_at {
                    let stored = serde_json::to_string(&conversation).unwrap();
                    twin = Some(serde_json::from_str(&stored).unwrap());
                }
                conversation.handle(now_ms, input.clone());
                let outputs = drained(&mut conversation);
                prop_assert!(!over || outputs.is_empty(), "after the end: {outputs:?}");
                over |= matches!(outputs.last(), Some(Output::Ended { .. }));
                prop_assert_eq!(over, conversation.ended().is_some());
                if let Some(twin) = &mut twin {
                    twin.handle(now_ms, input);
                    prop_assert_eq!(&drained(twin), &outputs);
                    prop_assert_eq!(&*twin, &conversation);
                }
                prop_assert!(conversation.turns() <= 20);
            }
            for (place, row) in conversation.transcript().iter().enumerate() {
                prop_assert_eq!(row.index, place);
                prop_assert!(0 <= row.start_ms && row.start_ms <= row.end_ms);
                prop_assert!(row.end_ms <= conversation.offset_ms());
            }
            // Every result in the history follows its own call.
            for pair in conversation.history().windows(2) {
                if let Message::ToolResult { id, .. } = &pair[1] {
                    prop_assert!(matches!(&pair[0], Message::ToolCall { id: called, .. } if called == id));
                }
            }
        }
    }

    fn input() -> impl Strategy<Value = Input> {
        prop_oneof![
            2 => Just(Input::Start),
            6 => (".{0,3}", any::<i64>())
                .prop_map(|(text, duration_ms)| Input::UserText { text, duration_ms }),
            1 => Just(Input::Silence),
            6 => (0..8_u64, ".{0,3}").prop_map(|(request, text)| reply(request, &text)),
            6 => (0..8_u64, prop_oneof![Just("order"), Just("nope")])
                .prop_map(|(request, name)| tool_call(request, name, json!({}))),
            1 => (0..8_u64).prop_map(|request| tool_call(request, "order", json!(1))),
            1 => (0..8_u64).prop_map(|request| Input::ModelFailed { request, reason: "x".into() }),
            6 => (0..8_u64).prop_map(|n| result(&format!("c_t{n}"), "done")),
            2 => Just(Input::Spoken),
            1 => Just(hang_up()),
            1 => Just(Input::Abort),
        ]
    }

    struct Talk {
        conversation: Conversation,
        now_ms: i64,
    }

    impl Talk {
        fn new(setup: ConversationSetup) -> Self {
            Self { conversation: Conversation::new(setup), now_ms: 0 }
        }

        fn started() -> Self {
            let mut talk = Self::new(setup(""));
            talk.drain(Input::Start);
            talk
        }

        fn drain(&mut self, input: Input) -> Vec<Output> {
            self.now_ms += 10;
            self.conversation.handle(self.now_ms, input);
            drained(&mut self.conversation)
        }

        fn reload(&mut self) {
            let stored = serde_json::to_string(&self.conversation).unwrap();
            self.conversation = serde_json::from_str(&stored).unwrap();
        }

        fn resumed(&mut self) -> Vec<Output> {
            self.conversation.resume();
            drained(&mut self.conversation)
        }

        fn texts(&self) -> Vec<String> {
            self.conversation.transcript().iter().map(|row| row.text.clone()).collect()
        }
    }

    fn drained(conversation: &mut Conversation) -> Vec<Output> {
        std::iter::from_fn(|| conversation.poll()).collect()
    }

    fn setup(first_message: &str) -> ConversationSetup {
        ConversationSetup {
            id: "c".into(),
            instructions: "Be kind.".into(),
            first_message: first_message.into(),
            knowledge: Vec::new(),
            tools: vec![ToolSpec {
                name: "order".into(),
                description: String::new(),
                parameters: json!({"type": "object"}),
            }],
            seed: 1,
            limits: ConversationLimits::default(),
        }
    }

    fn user(text: &str) -> Input {
        Input::UserText { text: text.into(), duration_ms: 0 }
    }

    fn reply(request: u64, text: &str) -> Input {
        Input::AssistantReply { request, reply: AssistantReply::Say { text: text.into() } }
    }

    fn tool_call(request: u64, name: &str, arguments: Value) -> Input {
        let reply = AssistantReply::CallTool { name: name.into(), arguments };
        Input::AssistantReply { request, reply }
    }

    fn result(id: &str, text: &str) -> Input {
        Input::ToolResult { id: id.into(), text: text.into(), is_error: false }
    }

    fn hang_up() -> Input {
        Input::HangUp { by: Party::User }
    }

    fn say(text: &str) -> Output {
        Output::Say { text: text.into() }
    }

    fn ask(request: u64) -> Output {
        Output::AskModel { request }
    }

    fn ended(reason: EndedReason) -> Output {
        Output::Ended { reason }
    }
}
