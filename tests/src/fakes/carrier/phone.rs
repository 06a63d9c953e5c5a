//! The other end of one call, controlled by a test: rings, answers, speaks, presses keys, hangs up.
mod media;

use std::time::{Duration, Instant};

use super::clock_s;
use super::forgery::Forgery;
use super::line::{Closed, Line};
use super::server::{CarrierServer, TIMEOUT_MS};
use super::wire::{
    Answerer, Behaviour, CallEvent, CallbackRequest, Command, Detection, EndKind, Instruction, PhoneCall,
    Told,
};
use crate::reply::Reply;

/// How the service ended a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HungUp {
    /// Whether it sent a request to the carrier's API.
    pub by_command: bool,
    /// How the media socket ended, if there was one.
    pub closed: Option<Closed>,
}

/// The other end of one call.
pub struct Phone {
    server: CarrierServer,
    call: PhoneCall,
    instruction: Option<Result<Instruction, String>>,
    /// The service's response to the incoming call.
    announced: Option<Reply>,
    sent: Vec<CallbackRequest>,
    held: Option<Vec<CallbackRequest>>,
    told: u32,
    /// Transfers that were answered in another way than those that follow.
    earlier_transfers: usize,
    /// The call to the other number: its id, and where the service wants to be told of it.
    other: Option<(String, Told)>,
    line: Option<Line>,
    connected_at: Option<Instant>,
    /// Whether its end was reported.
    is_over: bool,
    pace: f64,
}

impl Phone {
    pub(super) fn new(server: CarrierServer, call: PhoneCall, instruction: Option<Instruction>) -> Self {
        Self {
            server,
            call,
            instruction: instruction.map(Ok),
            announced: None,
            sent: Vec::new(),
            held: None,
            told: 0,
            earlier_transfers: 0,
            other: None,
            line: None,
            connected_at: None,
            is_over: false,
            pace: 1.0,
        }
    }

    /// The call from the carrier's side.
    pub fn call(&self) -> &PhoneCall {
        &self.call
    }

    /// Reports to the address of another call from now on.
    pub fn report_for(&mut self, other: &Self) {
        self.call.status_url.clone_from(&other.call.status_url);
    }

    /// The carrier's call id.
    pub fn id(&self) -> &str {
        &self.call.carrier_call_id
    }

    /// Speaks and listens at this multiple of real time. Call this before the call is answered.
    #[must_use]
    pub fn at_pace(mut self, pace: f64) -> Self {
        self.pace = pace;
        self
    }

    // Events of the call.

    /// The call rings.
    #[track_caller]
    pub fn ring(&mut self) {
        self.tell(&CallEvent::Ringing);
        if self.opens_while_ringing() && self.connect_url().is_some() {
            self.open_socket();
        }
    }

    /// Answers: notifies the service, asks for instructions if the carrier does, and opens and starts the media socket.
    #[track_caller]
    pub fn answer(&mut self) {
        self.pick_up();
        if self.line.is_none() {
            self.open_socket();
        }
        self.begin();
    }

    /// Answers without the media socket.
    #[track_caller]
    pub fn pick_up(&mut self) {
        self.connected_at = Some(Instant::now());
        if !self.call.outbound {
            self.decide();
            self.tell(&CallEvent::Answered);
            return;
        }
        self.tell(&CallEvent::Answered);
        if self.instruction.is_none() {
            self.ask(&CallEvent::Asked);
        }
    }

    /// The person hangs up: closes the media socket properly and notifies the service.
    #[track_caller]
    pub fn hang_up(&mut self) {
        self.hear_out();
        self.close_media();
        self.over(EndKind::HungUp);
    }

    /// The line is busy.
    #[track_caller]
    pub fn busy(&mut self) {
        self.over(EndKind::Busy);
    }

    /// The call is not answered.
    #[track_caller]
    pub fn no_answer(&mut self) {
        self.over(EndKind::NoAnswer);
    }

    /// The person declines.
    #[track_caller]
    pub fn decline(&mut self) {
        self.over(EndKind::Declined);
    }

    /// The number cannot be reached.
    #[track_caller]
    pub fn fail(&mut self) {
        self.over(EndKind::Failed);
    }

    /// Ends the call: notifies the service, including the price if that is a separate callback.
    #[track_caller]
    pub fn over(&mut self, how: EndKind) {
        let seconds = self.seconds();
        if let Some(line) = self.line.take() {
            line.close();
            self.wait_for_close(&line);
        }
        self.server.end(&self.call);
        self.is_over = true;
        self.tell(&CallEvent::Ended { how, seconds });
        self.tell(&CallEvent::Priced { seconds });
    }

    /// Waits until the service ends the call, closes what is open and reports the end.
    #[track_caller]
    pub fn was_hung_up(&mut self) -> HungUp {
        let deadline = Instant::now() + Duration::from_millis(TIMEOUT_MS);
        loop {
            let by_command = self.server.hang_up_commanded(&self.call);
            let closed = self.line.as_ref().and_then(|line| line.look(|state| state.closed.clone()));
            if by_command || (closed.is_some() && self.closing_ends()) {
                self.settle_media();
                let closed = self.line.as_ref().and_then(|line| line.look(|state| state.closed.clone()));
                self.over(EndKind::HungUpByService);
                return HungUp { by_command, closed };
            }
            assert!(Instant::now() < deadline, "{} was not hung up; the media socket: {closed:?}", self.id());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until the service sends a hang-up command; the call continues until the test ends it.
    #[track_caller]
    pub fn was_commanded_to_end(&self) {
        self.server.command(&self.call, "a command to end", |command| {
            matches!(command, Command::HangUp { .. }).then_some(())
        });
    }

    // Transfers.

    /// How the carrier answers transfers of this call from now on.
    pub fn transfers_are(&mut self, behaviour: Behaviour) {
        self.earlier_transfers = self.transfers();
        self.server.transfers_are(&self.call, behaviour);
    }

    /// Waits until the service transfers the call (after [`Phone::transfers_are`]), and fetches the instructions if it named a
    /// URL. The media go on.
    #[track_caller]
    pub fn is_transferred(&mut self) -> Instruction {
        let instruction = self.server.transfer_after(&self.call, self.earlier_transfers);
        let mut instruction = instruction.unwrap_or_else(|url| {
            self.ask(&CallEvent::Transferring { url });
            self.instruction.clone().expect("the service has answered").expect("valid instructions")
        });
        if let Instruction::Dial { told, .. } = &mut instruction {
            let (id, _) = super::numbers::ids(self.server.provider());
            self.other = told.take().map(|told| (id, told));
        }
        instruction
    }

    /// Whether the carrier tells what comes of a transfer.
    pub fn tells_of_transfer(&self) -> bool {
        self.other.is_some()
    }

    /// The other number answers, which the carrier reports if the service wants to know.
    #[track_caller]
    pub fn other_answers(&mut self) {
        if let Some((other_call_id, Told { status_url, .. })) = self.other.clone() {
            self.tell(&CallEvent::OtherAnswered { url: status_url, other_call_id });
        }
    }

    /// The call to the other number ends, and with it this one, if it `is_over`: the carrier asks how to go on.
    #[track_caller]
    pub fn other_ends(&mut self, how: EndKind, is_over: bool) -> Instruction {
        let (other_call_id, Told { back_url, .. }) = self.other.clone().expect("a transfer that is told of");
        self.ask(&CallEvent::OtherEnded { url: back_url, other_call_id, how, is_over });
        if self.server.provider() == "telnyx" {
            self.instruction = Some(Ok(self.is_called_back().unwrap_or(Instruction::HangUp)));
        }
        self.instruction.clone().expect("the service has answered").expect("valid instructions")
    }

    /// The carrier asks nothing: waits for the command that connects this call again; `None` if there is none.
    #[track_caller]
    fn is_called_back(&self) -> Option<Instruction> {
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.reconnects().len() < self.transfers() && Instant::now() < deadline {
            if self.is_over || self.is_commanded_to_end() {
                return None;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        if let Some(line) = &self.line {
            let closed = line.wait(Duration::from_secs(3), |state| state.closed.clone());
            assert!(closed.is_some(), "{}: a second stream while the first one is open: 422", self.id());
        }
        self.reconnects().pop().filter(|_| !self.is_over)
    }

    fn reconnects(&self) -> Vec<Instruction> {
        let commands = self.server.commands(self.id()).into_iter();
        commands
            .filter_map(|command| match command {
                Command::Reconnect { instruction, .. } => Some(instruction),
                _ => None,
            })
            .collect()
    }

    /// The carrier connects the caller to the media socket again.
    #[track_caller]
    pub fn comes_back(&mut self) {
        self.open_socket();
        self.begin();
    }

    /// The same; the carrier then closes the media, if it does.
    #[track_caller]
    pub fn was_transferred(&mut self) -> Instruction {
        let instruction = self.is_transferred();
        if self.closing_ends() {
            self.close_media();
        }
        self.earlier_transfers = self.transfers();
        instruction
    }

    /// The number of transfers that the service has asked for.
    pub fn transfers(&self) -> usize {
        let commands = self.server.commands(self.id()).into_iter();
        commands.filter(|command| matches!(command, Command::Transfer { .. })).count()
    }

    /// Whether the service has asked to end the call.
    pub fn is_commanded_to_end(&self) -> bool {
        self.server.hang_up_commanded(&self.call)
    }

    /// Reports an event of the call to the other number, at the address of this one.
    #[track_caller]
    pub fn tell_of_other_end(&mut self, event: &CallEvent) {
        let (carrier_call_id, other_id) = super::numbers::ids(self.server.provider());
        let other = PhoneCall { carrier_call_id, other_id, outbound: true, ..self.call.clone() };
        let public = self.server.public();
        if let Some(callback) = self.server.wire().callback(&public, &other, event, self.told, clock_s()) {
            self.deliver(&callback);
        }
    }

    // Detection of machines.

    /// Reports who has answered, if the service wants to know and the carrier says this.
    #[track_caller]
    pub fn detects(&mut self, answerer: Answerer) {
        self.tell(&CallEvent::Detected(answerer));
    }

    /// Reports who has answered a call that the service does not know.
    #[track_caller]
    pub fn detects_for_nobody(&mut self, answerer: Answerer) {
        let known = self.call.clone();
        (self.call.carrier_call_id, self.call.other_id) = super::numbers::ids(self.server.provider());
        let plain = |url: &str| url.split('?').next().unwrap_or_default().to_owned();
        self.call.status_url = plain(&known.status_url);
        self.call.detection =
            known.detection.clone().map(|detection| Detection { url: plain(&detection.url), ..detection });
        self.detects(answerer);
        self.call = known;
    }

    // Instructions of the service.

    /// Reports the incoming call and reads the instruction. Repeats an already sent callback, like a carrier that got no
    /// response. The last response counts.
    #[track_caller]
    pub fn announce(&mut self) {
        self.ask(&CallEvent::Incoming);
    }

    /// The service's response to the incoming call.
    #[track_caller]
    pub fn announced(&self) -> &Reply {
        self.announced.as_ref().expect("the incoming call was reported")
    }

    /// Whether the service declines the incoming call, by its response or by a command.
    #[track_caller]
    pub fn was_refused(&mut self) -> bool {
        self.decide();
        let refused = self.instruction.as_ref().is_some_and(|wanted| *wanted == Ok(Instruction::HangUp));
        if refused {
            self.server.end(&self.call);
        }
        refused
    }

    /// The media socket's URL from the service.
    #[track_caller]
    pub fn media_url(&self) -> &str {
        self.connect_url().unwrap_or_else(|| panic!("no media socket: {:?}", self.instruction))
    }

    // Callbacks in any order, repeated or forged.

    /// Holds callbacks back from now on.
    pub fn hold(&mut self) {
        self.held.get_or_insert_default();
    }

    /// Sends held callbacks in this order, counted from 0, and drops the others. Later callbacks are no longer held.
    #[track_caller]
    pub fn release_in(&mut self, order: &[usize]) {
        let held = self.held.take().unwrap_or_default();
        for nth in order {
            let callback = held.get(*nth).unwrap_or_else(|| panic!("{} callbacks are held", held.len()));
            self.deliver(callback);
        }
    }

    /// Number of held callbacks.
    pub fn held(&self) -> usize {
        self.held.as_ref().map_or(0, Vec::len)
    }

    /// A held callback; `nth` counts from 0.
    #[track_caller]
    pub fn held_callback(&self, nth: usize) -> &CallbackRequest {
        &self.held.as_ref().expect("callbacks are held")[nth]
    }

    /// Number of sent callbacks.
    pub fn sent(&self) -> usize {
        self.sent.len()
    }

    /// A sent callback; `nth` counts from 0.
    #[track_caller]
    pub fn sent_callback(&self, nth: usize) -> &CallbackRequest {
        &self.sent[nth]
    }

    /// Sends any request to the service; returns its response.
    pub fn send(&self, request: &CallbackRequest) -> Reply {
        self.server.send(request).expect("the service answers")
    }

    /// Repeats a callback byte by byte; `nth` counts the sent ones from 0.
    #[track_caller]
    pub fn status_again(&mut self, nth: usize) {
        let callback = self.sent[nth].clone();
        self.deliver(&callback);
    }

    /// Repeats a callback to a service that may be down or reject it; returns the response's status, or the error.
    pub fn try_again(&mut self, nth: usize) -> std::io::Result<u16> {
        self.server.send(&self.sent[nth]).map(|reply| reply.status)
    }

    /// Reports an event to the service, if the carrier has a callback for it.
    #[track_caller]
    pub fn tell(&mut self, event: &CallEvent) {
        let Some(callback) = self.callback(event, 0) else { return };
        match &mut self.held {
            Some(held) => held.push(callback),
            None => drop(self.deliver(&callback)),
        }
    }

    /// Reports an event to a service that may be down or reject it; returns the response's status, or the error. `None` if the
    /// carrier has no callback for it.
    pub fn try_to_tell(&mut self, event: &CallEvent) -> Option<std::io::Result<u16>> {
        let callback = self.callback(event, 0)?;
        let reply = self.server.send(&callback);
        self.sent.push(callback);
        Some(reply.map(|reply| reply.status))
    }

    /// Requests instructions from a service that may be down or reject it ([`CallEvent::Incoming`], [`CallEvent::Asked`]); returns
    /// the response's status, or the error. The last response counts.
    #[track_caller]
    pub fn try_to_ask(&mut self, event: &CallEvent) -> std::io::Result<u16> {
        let callback = self.callback(event, 0).unwrap_or_else(|| panic!("the carrier sends {event:?}"));
        let reply = self.server.send(&callback);
        self.sent.push(callback);
        let reply = reply?;
        let content_type =
            reply.headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
        // An event needs no document: then the one that it is about goes on.
        let goes_on = matches!(event, CallEvent::OtherEnded { .. }) && reply.body.is_empty();
        self.instruction = Some(match goes_on {
            true => Ok(Instruction::HangUp),
            false => self.server.wire().instruction(reply.status, content_type, &reply.body),
        });
        let status = reply.status;
        self.announced = Some(reply);
        self.follow();
        Ok(status)
    }

    /// Whether the service connects this call to a media socket.
    #[track_caller]
    pub fn is_wanted(&mut self) -> bool {
        self.decide();
        self.connect_url().is_some()
    }

    /// Sends a forged callback and returns the response's status; `None` if the carrier's signature does not cover this forgery.
    #[track_caller]
    pub fn forge(&mut self, how: Forgery, event: &CallEvent) -> Option<u16> {
        let genuine = self.callback(event, how.age_s())?;
        let forged = how.apply(self.server.provider(), genuine)?;
        Some(self.server.send(&forged).expect("the service answers a forged callback").status)
    }

    // Helpers.

    #[track_caller]
    fn ask(&mut self, event: &CallEvent) {
        self.try_to_ask(event).unwrap_or_else(|error| panic!("{event:?}: {error}"));
    }

    /// Waits for the command that the service's response announced.
    #[track_caller]
    fn decide(&mut self) {
        if self.instruction == Some(Ok(Instruction::Wait)) {
            let decided = self.server.command(&self.call, "the decision", |command| match command {
                Command::Answer { instruction, .. } => Some(instruction.clone()),
                Command::Refuse { .. } | Command::HangUp { .. } => Some(Instruction::HangUp),
                Command::Place { .. } | Command::Transfer { .. } | Command::Reconnect { .. } => None,
            });
            self.instruction = Some(Ok(decided));
            self.follow();
        }
    }

    /// Sends callbacks to the URL from the document from now on.
    fn follow(&mut self) {
        if let Some(Ok(Instruction::Connect { status_url: Some(url), .. })) = &self.instruction {
            self.call.status_url.clone_from(url);
        }
    }

    fn connect_url(&self) -> Option<&str> {
        match &self.instruction {
            Some(Ok(Instruction::Connect { media_url, .. })) => Some(media_url),
            _ => None,
        }
    }

    fn callback(&mut self, event: &CallEvent, age_s: i64) -> Option<CallbackRequest> {
        let now_s = clock_s() - age_s;
        let public = self.server.public();
        let callback = self.server.wire().callback(&public, &self.call, event, self.told, now_s)?;
        self.told += 1;
        Some(callback)
    }

    /// Sends a callback, which must succeed.
    #[track_caller]
    pub fn deliver(&mut self, callback: &CallbackRequest) -> Reply {
        let reply = self.server.send(callback).unwrap_or_else(|error| panic!("{}: {error}", callback.url));
        assert!((200..300).contains(&reply.status), "{callback:?} is answered with {reply:?}");
        self.sent.push(callback.clone());
        reply
    }

    /// Waits for the end of the media after a command; the service may close the socket itself.
    fn settle_media(&self) {
        const MOMENT_MS: u64 = 500;
        if let Some(line) = &self.line {
            line.wait(Duration::from_millis(MOMENT_MS), |state| state.closed.clone());
        }
    }

    #[track_caller]
    fn wait_for_close(&self, line: &Line) {
        let closed = line.wait(Duration::from_millis(TIMEOUT_MS), |state| state.closed.clone());
        assert!(closed.is_some(), "{}: the media socket does not end", self.id());
        let problems = line.look(|state| state.problems.clone());
        assert!(problems.is_empty(), "{}: {problems:#?}", self.id());
    }

    fn seconds(&self) -> u32 {
        self.connected_at.map_or(0, |since| since.elapsed().as_secs_f64().ceil() as u32)
    }

    /// Whether the call ends when the service closes its socket. At Telnyx the two are independent.
    fn closing_ends(&self) -> bool {
        self.server.provider() != "telnyx"
    }

    /// Telnyx opens the socket of an outgoing call while it rings; the start message follows the answer.
    fn opens_while_ringing(&self) -> bool {
        self.server.provider() == "telnyx" && self.line.is_none()
    }
}
