//! Handing a telephone call over to a person. The conversation asks for it once nothing is being said; until the carrier has
//! answered, nothing else ends the call: some carriers close the line before they answer.
use super::{Done, Drive};
use crate::conversation::{EndedReason, Input};
use crate::live::telephony::transfer::{Transferred, transfer};
use crate::live::tool_calls::{CommittedCall, ToolCall};
use crate::ports::BoxFuture;
use crate::storage::fault::Fault;

/// A request to the carrier under way.
pub(super) type Transferring<'a> = BoxFuture<'a, (String, Result<Transferred, Fault>)>;

impl<'a> Drive<'a> {
    /// Sends calls whose intent is stored.
    pub(super) fn make(&mut self, calls: Vec<CommittedCall<'a>>) {
        for call in calls {
            let hands_over = self.session.on_phone && self.session.assistant.hands_over_with(call.name());
            match hands_over {
                true => self.transferring = Some(self.hand_over(call.into_call())),
                false => self.calling.push(Box::pin(async move { Done::Tool(call.make().await) })),
            }
        }
    }

    fn hand_over(&self, call: ToolCall) -> Transferring<'a> {
        let session = self.session;
        Box::pin(async move {
            let ToolCall { id, arguments, .. } = call;
            let name = arguments["name"].as_str().unwrap_or_default();
            let transferred = match session.assistant.transfers.iter().find(|one| one.name == name) {
                Some(one) => {
                    transfer(&session.services, &session.call, &session.lease, &id, &one.number).await
                }
                // The schema has refused any other name.
                None => Ok(Transferred::NotAsked("nobody is called that")),
            };
            (id, transferred)
        })
    }

    /// Waits for the carrier's answer, if it is being asked while the conversation has ended for another reason, or failed.
    pub(super) async fn await_transfer(&mut self) {
        let Some(transferring) = self.transferring.take() else { return };
        let (id, transferred) = transferring.await;
        match transferred {
            Ok(transferred) => self.transferred(id, transferred),
            // What is stored says that the carrier was asked.
            Err(_) => self.line_taken = Some(EndedReason::CarrierFailed),
        }
    }

    /// Waits for the carrier's answer, if it is being asked. Whether the call ends with it.
    pub(super) async fn ended_by_transfer(&mut self) -> Result<bool, Fault> {
        let Some(transferring) = self.transferring.take() else { return Ok(false) };
        let (id, transferred) = transferring.await;
        self.transferred(id, transferred?);
        Ok(self.conversation.ended().is_some())
    }

    /// The carrier has answered.
    pub(super) fn transferred(&mut self, id: String, transferred: Transferred) {
        let (text, is_error) = match &transferred {
            Transferred::Accepted => ("Transferred.".to_owned(), false),
            Transferred::Rejected(why) => (format!("The carrier did not transfer the call: {why}"), true),
            Transferred::NotAsked(why) => (format!("The call was not transferred: {why}"), true),
            Transferred::Unknown => {
                let text = "The carrier did not say whether it transfers the call: it is not asked again, and the call ends here.";
                (text.to_owned(), true)
            }
        };
        let at_ms = match self.conversation.ended() {
            Some(_) => self.conversation.now_ms(),
            None => self.now_ms(),
        };
        self.inputs.handle(&mut self.conversation, at_ms, Input::ToolResult { id, text, is_error });
        self.line_taken = match transferred {
            Transferred::Accepted => Some(EndedReason::Transferred),
            Transferred::Rejected(_) | Transferred::NotAsked(_) => None,
            Transferred::Unknown => {
                self.handle(Input::Stop { reason: EndedReason::CarrierFailed });
                Some(EndedReason::CarrierFailed)
            }
        };
    }
}
