//! Handing a telephone call over to a person. The conversation asks for it once nothing is being said; until the carrier has
//! answered, nothing else ends the call: some carriers close the line before they answer. Where the carrier says what comes of
//! it, the conversation waits without a line while the other side rings, and goes on with a caller whom nobody has taken.
use super::{Done, Drive};
use crate::base::limits::{
    PHONE_BREAK_LOOK_MS, PHONE_BREAK_REPORT_MS, PHONE_TRANSFER_BACK_MS, PHONE_TRANSFER_BACK_TRY_MS,
    PHONE_TRANSFER_CLOSE_MS, PHONE_TRANSFER_RING_MS,
};
use crate::conversation::{EndedReason, Input};
use crate::live::peer::Peer;
use crate::live::telephony::callbacks::is_refused_for_good;
use crate::live::telephony::client;
use crate::live::telephony::leg::{Leg, Placing};
use crate::live::telephony::returned::{self, told};
use crate::live::telephony::transfer::{Transferred, transfer};
use crate::live::tool_calls::{CommittedCall, ToolCall};
use crate::ports::BoxFuture;
use crate::storage::fault::Fault;

/// A request to the carrier under way.
pub(super) type Transferring<'a> = BoxFuture<'a, (String, Result<Transferred, Fault>)>;

/// The other side rings.
pub(super) struct Ringing {
    /// The tool call, which has no result yet.
    id: String,
    /// Until then the carrier says what comes of it, or connects the caller again.
    pub(super) until_ms: i64,
    /// Whether nobody has taken the call.
    is_untaken: bool,
}

impl<'a> Drive<'a> {
    /// Sends calls whose intent is stored.
    pub(super) fn make(&mut self, calls: Vec<CommittedCall<'a>>, peer: &mut dyn Peer) {
        for call in calls {
            let hands_over = self.session.on_phone && self.session.assistant.hands_over_with(call.name());
            match hands_over {
                true => {
                    if self.session.carrier().is_some_and(|carrier| carrier.tells_of_transfer()) {
                        peer.may_leave(None);
                        self.home.await_visit(Some(self.returns + 1));
                    }
                    let call = call.into_call();
                    self.handed_to = call.arguments["name"].as_str().unwrap_or_default().to_owned();
                    self.transferring = Some(self.hand_over(call));
                }
                false => {
                    let clock = &self.session.services.ports().clock;
                    self.calling.push(Box::pin(async move {
                        let answer = call.make().await;
                        if answer.delay_ms > 0 {
                            clock.sleep(answer.delay_ms.unsigned_abs()).await;
                        }
                        Done::Tool(answer)
                    }));
                }
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
    pub(super) async fn await_transfer(&mut self, peer: &mut dyn Peer) {
        let Some(transferring) = self.transferring.take() else { return };
        let (id, transferred) = transferring.await;
        match transferred {
            Ok(transferred) => self.transferred(id, transferred, peer),
            // The carrier may have been asked.
            Err(_) => self.line_taken = Some(EndedReason::CarrierFailed),
        }
    }

    /// Waits for the carrier's answer, if it is being asked. Whether the call ends with it.
    pub(super) async fn ended_by_transfer(&mut self, peer: &mut dyn Peer) -> Result<bool, Fault> {
        let Some(transferring) = self.transferring.take() else { return Ok(false) };
        let (id, transferred) = transferring.await;
        self.transferred(id, transferred?, peer);
        Ok(self.conversation.ended().is_some())
    }

    /// The carrier has answered.
    pub(super) fn transferred(&mut self, id: String, transferred: Transferred, peer: &mut dyn Peer) {
        match transferred {
            Transferred::Rings => {
                // Where our line stays open, so does its socket, and another one could not be opened beside it.
                let stays_open =
                    self.session.carrier().is_some_and(|carrier| carrier.keeps_transferred_line());
                let close_ms = if stays_open { 0 } else { PHONE_TRANSFER_CLOSE_MS };
                peer.may_leave(Some(self.now_ms() + close_ms));
                let until_ms = self.now_ms() + PHONE_TRANSFER_RING_MS;
                self.ringing = Some(Ringing { id, until_ms, is_untaken: false });
                self.line_taken = Some(EndedReason::Transferred);
                // What came of it may be known already. If the conversation has ended, that is read as it is left.
                self.save_at_ms = self.now_ms();
                return;
            }
            Transferred::Rejected(_) | Transferred::NotAsked(_) => {
                self.home.await_visit(None);
                peer.stays();
            }
            Transferred::Accepted | Transferred::Unknown => {}
        }
        self.conclude(id, transferred);
    }

    /// Tells the conversation what came of the request.
    fn conclude(&mut self, id: String, transferred: Transferred) {
        let (text, is_error) = match &transferred {
            Transferred::Accepted | Transferred::Rings => ("Transferred.".to_owned(), false),
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
        self.inputs.handle(
            &mut self.conversation,
            at_ms,
            Input::ToolResult { id, text, is_error, mocked: false },
        );
        self.line_taken = match transferred {
            Transferred::Accepted | Transferred::Rings => Some(EndedReason::Transferred),
            Transferred::Rejected(_) | Transferred::NotAsked(_) => None,
            Transferred::Unknown => {
                self.handle(Input::Stop { reason: EndedReason::CarrierFailed });
                Some(EndedReason::CarrierFailed)
            }
        };
    }

    /// What the leg says of a call that rings elsewhere. Whether the conversation has ended with it.
    pub(super) fn look_at_transfer(&mut self, leg: &Leg) -> bool {
        let now_ms = self.now_ms();
        let Some(ringing) = &mut self.ringing else { return false };
        if leg.rings() {
            // Who was connected may have hung up.
            if leg.facts.end.is_some() {
                (self.ringing, self.line_taken) = (None, None);
            }
            return false;
        }
        if leg.transfer == Some(Placing::Accepted) {
            let id = std::mem::take(&mut ringing.id);
            self.ringing = None;
            self.conclude(id, Transferred::Accepted);
            return true;
        }
        self.line_taken = None;
        if leg.facts.end.is_some() {
            self.ringing = None;
        } else if !ringing.is_untaken {
            ringing.is_untaken = true;
            ringing.until_ms = now_ms + PHONE_TRANSFER_BACK_MS;
            self.call_back(leg);
        }
        false
    }

    /// Has the carrier connect the caller again, where it does not ask how to go on. Our socket is closed by then.
    fn call_back(&mut self, leg: &Leg) {
        let (session, leg, visit) = (self.session, leg.clone(), leg.facts.returns);
        let clock = session.services.ports().clock.clone();
        let until_ms = clock.now_ms() + PHONE_TRANSFER_BACK_MS;
        // It was signed for the first socket, too.
        let command = move |number| {
            let carrier = session.carrier()?;
            returned::command(&session.services, carrier, &leg, number).ok().flatten()
        };
        if command(0).is_none() {
            return;
        }
        self.calling.push(Box::pin(async move {
            let mut number = 0;
            while let Some(outgoing) = command(number).filter(|_| clock.now_ms() < until_ms) {
                let sent = client::send_within(&session.services, outgoing, PHONE_TRANSFER_BACK_TRY_MS).await;
                match sent {
                    Ok(reply) if reply.status < 300 => return Done::CalledBack { visit, is_done: true },
                    Ok(reply) if session.carrier().is_some_and(|carrier| carrier.hung_up(&reply).is_ok()) => {
                        return Done::CalledBack { visit, is_done: false };
                    }
                    // The same command again would be one command to the carrier.
                    Ok(reply) if is_refused_for_good(reply.status) => number += 1,
                    Ok(_) | Err(_) => {}
                }
                clock.sleep(PHONE_BREAK_LOOK_MS).await;
            }
            Done::CalledBack { visit, is_done: false }
        }));
    }

    /// The carrier has answered that command. If it does not connect the caller, they may have hung up: its report says so.
    pub(super) fn called_back(&mut self, visit: u32, is_done: bool) {
        let now_ms = self.now_ms();
        let Some(ringing) = self.ringing.as_mut().filter(|ringing| ringing.is_untaken) else { return };
        if visit != self.returns + 1 {
            return;
        }
        ringing.until_ms = match is_done {
            true => now_ms + PHONE_TRANSFER_BACK_MS,
            false => ringing.until_ms.min(now_ms + PHONE_BREAK_REPORT_MS),
        };
    }

    /// Ends a wait that is over. Whether it is.
    pub(super) async fn give_up_ringing(&mut self) -> Result<bool, Fault> {
        let now_ms = self.now_ms();
        let is_over = |ringing: &Ringing| now_ms >= ringing.until_ms;
        if !self.ringing.as_ref().is_some_and(is_over) {
            return Ok(false);
        }
        // It may have become known since the last look.
        let call = &self.session.call;
        let leg = Leg::load(&self.session.services, &call.workspace_id, &call.id).await?;
        self.apply_leg(Some(leg));
        let Some(ringing) = self.ringing.take_if(|ringing| is_over(ringing)) else { return Ok(true) };
        match ringing.is_untaken {
            // Nobody knows better.
            false => self.conclude(ringing.id, Transferred::Accepted),
            true => {
                self.is_connection_over = true;
                self.handle(Input::Stop { reason: EndedReason::MediaLost });
            }
        }
        Ok(true)
    }

    /// The conversation has ended, for whatever reason, while the other side rings: what comes of it, nobody here learns, unless
    /// it has become known since the last look.
    pub(super) async fn leave_ringing(&mut self) {
        let Some(Ringing { id, is_untaken: false, .. }) = self.ringing.take() else { return };
        let call = &self.session.call;
        match Leg::load(&self.session.services, &call.workspace_id, &call.id).await {
            Ok(leg) if leg.transfer == Some(Placing::Rejected) => {
                self.conclude(id, Transferred::Rejected("nobody has taken it".to_owned()));
            }
            Ok(_) | Err(_) => self.conclude(id, Transferred::Accepted),
        }
    }

    /// The caller is connected again.
    pub(super) fn reconnect(&mut self, peer: &mut dyn Peer) {
        let (Some(socket), Some(carrier)) = (self.home.take_socket(), self.session.carrier()) else { return };
        peer.reconnect(Box::new(socket), carrier.media_codec());
        self.line_taken = None;
        self.save_at_ms = self.now_ms();
    }

    /// The caller can be heard again. The model learns why.
    pub(super) async fn is_back(&mut self) -> Result<(), Fault> {
        let Some(Ringing { id, .. }) = self.ringing.take() else {
            // Before the carrier has answered that it transfers the call.
            self.is_back_early = self.transferring.is_some();
            return Ok(());
        };
        self.is_back_early = false;
        let call = &self.session.call;
        let leg = Leg::load(&self.session.services, &call.workspace_id, &call.id).await?;
        self.returns = leg.facts.returns;
        self.line_taken = None;
        let text = told(&self.handed_to, leg.facts.untaken);
        self.handle(Input::ToolResult { id, text, is_error: true, mocked: false });
        Ok(())
    }
}
