//! Tool calls of a conversation. The intent is stored before the request is sent: only [`ToolCaller::commit`] returns a
//! call that can be sent.
use serde_json::Value;

use super::tool_request;
use crate::ports::statement::{Rows, Statement};
use crate::ports::{DatabaseError, HttpError};
use crate::services::Services;
use crate::simulation::tool_mocks::MockedResult;
use crate::storage::calls::NewCall;
use crate::storage::signing::SecretVersions;
use crate::storage::snapshots::{AssistantSnapshot, ToolSnapshot};

/// The result of a transfer in a test.
const NOBODY_CALLED: &str = "Transferred. Nobody was called, because this is not a telephone call.";

/// A tool call that the conversation requests.
pub(crate) struct ToolCall {
    /// The same in every retry.
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: Value,
    /// What answers in place of the tool.
    pub(crate) mocked: Option<MockedResult>,
}

/// The result of a call.
pub(crate) struct ToolAnswer {
    /// The id of the [`ToolCall`].
    pub(crate) id: String,
    /// The tool's response, or the reason of its failure.
    pub(crate) text: String,
    pub(crate) is_error: bool,
    /// Whether it came from the scenario, and no request was sent.
    pub(crate) mocked: bool,
    /// The time that such an answer takes. Nobody has waited for it yet.
    pub(crate) delay_ms: i64,
}

/// Calls the tools of one conversation.
#[derive(Clone, Copy)]
pub(crate) struct ToolCaller<'a> {
    services: &'a Services,
    assistant: &'a AssistantSnapshot,
    call: &'a NewCall,
}

/// The result of a commit: the calls that may be sent, and the other rows read.
pub(crate) struct Committed<'a> {
    pub(crate) calls: Vec<CommittedCall<'a>>,
    pub(crate) rows: Vec<Rows>,
}

/// A call whose intent is stored.
pub(crate) struct CommittedCall<'a> {
    caller: ToolCaller<'a>,
    call: ToolCall,
    /// `None`: the assistant has no such tool attached.
    tool: Option<(&'a ToolSnapshot, SecretVersions)>,
}

impl<'a> ToolCaller<'a> {
    /// For the conversation of this call.
    pub(crate) const fn new(
        services: &'a Services,
        assistant: &'a AssistantSnapshot,
        call: &'a NewCall,
    ) -> Self {
        Self { services, assistant, call }
    }

    /// The longest timeout of these calls.
    pub(crate) fn slowest_ms(&self, calls: &[ToolCall]) -> i64 {
        let tools = calls.iter().filter_map(|call| self.tool(&call.name));
        tools.map(ToolSnapshot::deadline_ms).max().unwrap_or(0)
    }

    /// Writes `statements`, which store the intent of these calls, in one batch. The batch also reads the current
    /// signing secrets and the rows of `reads`.
    pub(crate) async fn commit(
        &self,
        mut statements: Vec<Statement>,
        calls: Vec<ToolCall>,
        reads: impl IntoIterator<Item = Statement>,
    ) -> Result<Committed<'a>, DatabaseError> {
        let written = statements.len();
        let tools = calls.iter().filter_map(|call| self.tool(&call.name));
        statements.extend(tools.map(|tool| tool_request::secrets(tool, &self.call.workspace_id)));
        statements.extend(reads);
        let mut rows = self.services.ports().database.write(statements).await?.into_iter().skip(written);
        let mut committed = Vec::with_capacity(calls.len());
        for call in calls {
            let tool = match self.tool(&call.name) {
                Some(tool) => Some((tool, tool_request::read_secrets(tool, rows.next().as_ref())?)),
                None => None,
            };
            committed.push(CommittedCall { caller: *self, call, tool });
        }
        Ok(Committed { calls: committed, rows: rows.collect() })
    }

    /// The attached tool; `None` for the one that the service has itself.
    fn tool(&self, name: &str) -> Option<&'a ToolSnapshot> {
        if self.assistant.hands_over_with(name) {
            return None;
        }
        self.assistant.tools.iter().find(|tool| tool.name == name)
    }
}

impl CommittedCall<'_> {
    /// The name of the tool.
    pub(crate) fn name(&self) -> &str {
        &self.call.name
    }

    /// The call, for who makes it in another way.
    pub(crate) fn into_call(self) -> ToolCall {
        self.call
    }

    /// Sends the call. A failure becomes the tool's result.
    pub(crate) async fn make(self) -> ToolAnswer {
        let Self { caller, call: ToolCall { id, name, arguments, mocked }, tool } = self;
        if let (Some((tool, _)), Some(result)) = (&tool, mocked) {
            return answer_of(id, tool, result);
        }
        let answer = match tool {
            Some((tool, secrets)) => {
                tool_request::call(caller.services, tool, secrets, &id, &arguments, caller.call).await
            }
            // On the telephone, the driver does it (`live::drive`).
            None if caller.assistant.hands_over_with(&name) => Ok(NOBODY_CALLED.to_owned()),
            None => Err(format!("there is no tool named {name}")),
        };
        let is_error = answer.is_err();
        let text = answer.unwrap_or_else(|reason| reason);
        ToolAnswer { id, text, is_error, mocked: false, delay_ms: 0 }
    }
}

/// The answer of a scenario in place of the tool. One that takes longer than the tool may is a timeout, as it would be of
/// the endpoint.
fn answer_of(id: String, tool: &ToolSnapshot, result: MockedResult) -> ToolAnswer {
    let MockedResult { text, is_error, delay_ms } = result;
    if delay_ms > tool.deadline_ms() {
        let text = tool_request::reason(tool, &HttpError::Timeout);
        return ToolAnswer { id, text, is_error: true, mocked: true, delay_ms: tool.deadline_ms() };
    }
    ToolAnswer { id, text, is_error, mocked: true, delay_ms }
}
