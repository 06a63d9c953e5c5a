//! Tool calls by the model: recorded, then sent or rejected, and their results.
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Conversation, Output, State};
use crate::base::error::FieldProblem;
use crate::base::text::{truncate, truncate_with_note};
use crate::base::tool_parameters::ToolParameters;
use crate::conversation::transcript::TranscriptRole;
use crate::conversation::{
    EndedReason, Message, TEXT_BYTES_MAX, TOOL_NAME_BYTES_MAX, TOOL_RESULT_BYTES_MAX, TRANSFER_TOOL,
    ToolRequest, ToolSpec,
};

/// A call without a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct PendingToolCall {
    pub(super) id: String,
    name: String,
    arguments: Value,
    /// What it presses, if it is one of [`SEND_KEYS`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) presses: Option<String>,
    /// Whether it waits: a transfer comes after what is being said, and after the other tools of its turn.
    #[serde(default)]
    pub(super) is_held: bool,
}

impl PendingToolCall {
    pub(super) fn output(&self) -> Output {
        let id = self.id.clone();
        match self.presses.clone() {
            Some(keys) => Output::PressKeys { id, keys },
            None => Output::CallTool { id, name: self.name.clone(), arguments: self.arguments.clone() },
        }
    }
}

impl Conversation {
    /// Calls the tools. The model receives an error for a rejected call, which counts toward the limit as well.
    pub(super) fn call_tools(&mut self, text: String, calls: Vec<ToolRequest>) {
        if self.tool_calls_this_turn > self.setup.limits.tool_calls_per_turn_max {
            return self.end(EndedReason::ToolLoop);
        }
        if calls.is_empty() {
            self.state = State::Listening;
        }
        if !text.trim().is_empty() {
            self.say(text);
        }
        if self.ended().is_some() {
            return;
        }
        self.waiting_since_ms = self.offset_ms;
        let mut rejected = Vec::new();
        for request in calls {
            let rejection = self.rejection(&request);
            let is_transfer = self.is_transfer(&request.name);
            let mut call = self.record_call(request, rejection.is_some());
            if self.ended().is_some() {
                return;
            }
            self.state = State::Calling;
            match rejection {
                Some(reason) => rejected.push((call.id.clone(), reason)),
                None if is_transfer => call.is_held = true,
                None => self.outputs.push_back(call.output()),
            }
            self.pending.push(call);
        }
        // After all calls: model APIs require all calls of a turn before their results.
        for (id, reason) in rejected {
            self.tool_result(&id, reason, true, false);
        }
    }

    /// Sends a transfer that has waited, once nothing is being said and no other tool runs.
    pub(super) fn release_transfer(&mut self) {
        if self.state != State::Calling || self.is_being_spoken {
            return;
        }
        if let [call] = self.pending.as_mut_slice()
            && std::mem::take(&mut call.is_held)
        {
            self.outputs.push_back(call.output());
        }
    }

    /// Whether only the answer to a transfer is awaited.
    pub(super) fn is_transferring(&self) -> bool {
        matches!(self.pending.as_slice(), [call] if self.is_transfer(&call.name))
    }

    fn is_transfer(&self, tool: &str) -> bool {
        self.setup.has_transfers && tool == TRANSFER_TOOL
    }

    /// Why a call is rejected; `None` if it can be sent.
    fn rejection(&self, request: &ToolRequest) -> Option<String> {
        if self.tool_calls_this_turn >= self.setup.limits.tool_calls_per_turn_max {
            return Some("No further tool call is possible in this turn: answer the user now.".to_owned());
        }
        if self.is_transfer(&request.name) && self.pending.iter().any(|call| call.is_held) {
            return Some("The call is transferred once: another transfer comes first.".to_owned());
        }
        let Some(tool) = self.setup.tools.iter().find(|tool| tool.name == request.name) else {
            return Some(self.unknown_tool());
        };
        if !request.arguments.is_object() {
            return Some("The arguments must be a JSON object.".to_owned());
        }
        unfit_arguments(tool, &request.arguments)
    }

    fn record_call(&mut self, request: ToolRequest, is_rejected: bool) -> PendingToolCall {
        self.tool_calls_this_turn = self.tool_calls_this_turn.saturating_add(1);
        self.tool_calls = self.tool_calls.saturating_add(1);
        let ToolRequest { name, arguments } = request;
        let id = format!("{}_t{}", self.setup.id, self.tool_calls);
        let name = truncate(name, TOOL_NAME_BYTES_MAX);
        let text = truncate(format!("{name}({arguments})"), TEXT_BYTES_MAX);
        let mut row = self.row(TranscriptRole::ToolCall, text, self.offset_ms);
        row.tool_name = Some(name.clone());
        row.tool_call_id = Some(id.clone());
        row.arguments = Some(arguments.clone());
        row.is_error = is_rejected.then_some(true);
        if self.record(row) {
            let (id, name, arguments) = (id.clone(), name.clone(), arguments.clone());
            self.history.push(Message::ToolCall { id, name, arguments });
        }
        let presses = self.keys_of(&name, &arguments).filter(|_| !is_rejected);
        PendingToolCall { id, name, arguments, presses, is_held: false }
    }

    fn unknown_tool(&self) -> String {
        let names: Vec<_> = self.setup.tools.iter().map(|tool| tool.name.as_str()).collect();
        match names.as_slice() {
            [] => "There is no such tool: no tool is attached.".to_owned(),
            names => format!("There is no such tool. The tools are: {}.", names.join(", ")),
        }
    }

    pub(super) fn tool_result(&mut self, id: &str, text: String, is_error: bool, mocked: bool) {
        // No machine waits for an answer about a tool.
        let has_ended = self.ended().is_some();
        let is_over = has_ended || self.state == State::Mailbox;
        if self.state != State::Calling && !is_over {
            return;
        }
        // After the end, only keys and a transfer have a result: what happened on the line, whatever ended the conversation.
        let counts = |call: &PendingToolCall| {
            call.id == id && (!has_ended || call.presses.is_some() || self.is_transfer(&call.name))
        };
        let Some(place) = self.pending.iter().position(counts) else {
            return;
        };
        let PendingToolCall { id, name, .. } = self.pending.remove(place);
        let is_transferred = !is_error && self.is_transfer(&name);
        let text = truncate_with_note(text, TOOL_RESULT_BYTES_MAX);
        let mut row = self.row(TranscriptRole::ToolResult, text.clone(), self.offset_ms);
        row.tool_name = Some(name.clone());
        row.tool_call_id = Some(id.clone());
        row.is_error = Some(is_error);
        row.mocked = mocked;
        if !self.record(row) {
            return;
        }
        self.history.push(Message::ToolResult { id, name, text, is_error });
        if is_transferred && !is_over {
            return self.end(EndedReason::Transferred);
        }
        if !self.pending.is_empty() || is_over {
            return;
        }
        if !self.held.is_empty() {
            self.begin_turn();
        }
        self.history.extend(self.held.drain(..).map(|text| Message::User { text }));
        self.ask_model();
    }
}

/// Why the arguments do not fit the tool's `parameters`; `None` if they do.
fn unfit_arguments(tool: &ToolSpec, arguments: &Value) -> Option<String> {
    let checked = ToolParameters::parse_accepted(&tool.parameters.parse())
        .and_then(|schema| schema.check_arguments(arguments));
    let problem = |problem: &FieldProblem| format!("{} {}", problem.field, problem.message);
    let problems: Vec<String> = checked.err()?.iter().map(problem).collect();
    Some(format!("The arguments do not fit the tool's parameters: {}.", problems.join("; ")))
}
