//! The other end of one call, as a scenario plays it: it rings, is answered, speaks, presses keys, hangs up.
mod media;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::forgery::Forgery;
use super::line::{Closed, Line};
use super::server::{CarrierServer, PATIENCE_MS};
use super::wire::{CallEvent, CallbackRequest, Command, EndKind, Instruction, PhoneCall};
use crate::reply::Reply;

/// How one service ends a call, as the carrier notices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HungUp {
    /// By a request to the carrier's API.
    pub by_command: bool,
    /// What became of the media socket, where there was one.
    pub closed: Option<Closed>,
}

/// The other end of one call.
pub struct Phone {
    server: CarrierServer,
    call: PhoneCall,
    instruction: Option<Result<Instruction, String>>,
    /// What the service said to being told of an incoming call.
    announced: Option<Reply>,
    sent: Vec<CallbackRequest>,
    held: Option<Vec<CallbackRequest>>,
    told: u32,
    line: Option<Line>,
    connected_at: Option<Instant>,
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
            line: None,
            connected_at: None,
            pace: 1.0,
        }
    }

    /// The call as the carrier has it.
    pub fn call(&self) -> &PhoneCall {
        &self.call
    }

    /// The carrier's id of it.
    pub fn id(&self) -> &str {
        &self.call.carrier_call_id
    }

    /// Speaks and listens so many times as fast as a telephone: to be said before the call is answered.
    #[must_use]
    pub fn at_pace(mut self, pace: f64) -> Self {
        self.pace = pace;
        self
    }

    // What happens to the call.

    /// It rings.
    #[track_caller]
    pub fn ring(&mut self) {
        self.tell(&CallEvent::Ringing);
        if self.opens_while_ringing() && self.connect_url().is_some() {
            self.open_socket();
        }
    }

    /// Somebody answers: the service is told, asked where the carrier asks, and the media socket is opened and begun.
    #[track_caller]
    pub fn answer(&mut self) {
        self.pick_up();
        if self.line.is_none() {
            self.open_socket();
        }
        self.begin();
    }

    /// The same without the media socket.
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

    /// The person hangs up: the media socket closes properly, and the service is told.
    #[track_caller]
    pub fn hang_up(&mut self) {
        self.close_media();
        self.over(EndKind::HungUp);
    }

    /// The line is busy.
    #[track_caller]
    pub fn busy(&mut self) {
        self.over(EndKind::Busy);
    }

    /// Nobody answers.
    #[track_caller]
    pub fn no_answer(&mut self) {
        self.over(EndKind::NoAnswer);
    }

    /// Whoever is called declines.
    #[track_caller]
    pub fn decline(&mut self) {
        self.over(EndKind::Declined);
    }

    /// No way leads to the number.
    #[track_caller]
    pub fn fail(&mut self) {
        self.over(EndKind::Failed);
    }

    /// It is over, however: the service is told, and of its price where that is said apart.
    #[track_caller]
    pub fn over(&mut self, how: EndKind) {
        let seconds = self.seconds();
        if let Some(line) = self.line.take() {
            line.close();
            self.wait_for_close(&line);
        }
        self.server.end(&self.call);
        self.tell(&CallEvent::Ended { how, seconds });
        self.tell(&CallEvent::Priced { seconds });
    }

    /// Waits until the service ends the call, closes what is open and tells it that it is over.
    #[track_caller]
    pub fn was_hung_up(&mut self) -> HungUp {
        let deadline = Instant::now() + Duration::from_millis(PATIENCE_MS);
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

    /// Waits until the service commands the carrier to end the call, which goes on until a scenario ends it.
    #[track_caller]
    pub fn was_commanded_to_end(&self) {
        self.server.command(&self.call, "a command to end", |command| {
            matches!(command, Command::HangUp { .. }).then_some(())
        });
    }

    // What the service wants.

    /// Tells the service of the incoming call and takes what it wants: once more when it was told before, as carriers
    /// do that have got no answer. The last answer counts.
    #[track_caller]
    pub fn announce(&mut self) {
        self.ask(&CallEvent::Incoming);
    }

    /// What the service said to being told of the incoming call.
    #[track_caller]
    pub fn announced(&self) -> &Reply {
        self.announced.as_ref().expect("the service was told of an incoming call")
    }

    /// Whether the service declines the incoming call, by its answer or by a command.
    #[track_caller]
    pub fn was_refused(&mut self) -> bool {
        self.decide();
        let refused = self.instruction.as_ref().is_some_and(|wanted| *wanted == Ok(Instruction::HangUp));
        if refused {
            self.server.end(&self.call);
        }
        refused
    }

    /// The media socket's URL as the service gave it.
    #[track_caller]
    pub fn media_url(&self) -> &str {
        self.connect_url().unwrap_or_else(|| panic!("no media socket: {:?}", self.instruction))
    }

    // Callbacks, in every order and state of disrepair.

    /// Keeps callbacks back from now on.
    pub fn hold(&mut self) {
        self.held.get_or_insert_default();
    }

    /// Sends what was kept back in this order, counted from 0; what is not named is lost. Nothing is kept back any more.
    #[track_caller]
    pub fn release_in(&mut self, order: &[usize]) {
        let held = self.held.take().unwrap_or_default();
        for nth in order {
            let callback = held.get(*nth).unwrap_or_else(|| panic!("{} callbacks are held", held.len()));
            self.deliver(callback);
        }
    }

    /// How many are kept back.
    pub fn held(&self) -> usize {
        self.held.as_ref().map_or(0, Vec::len)
    }

    /// How many were sent.
    pub fn sent(&self) -> usize {
        self.sent.len()
    }

    /// Sends a callback a second time, to the byte; `nth` counts those that were sent from 0.
    #[track_caller]
    pub fn status_again(&mut self, nth: usize) {
        let callback = self.sent[nth].clone();
        self.deliver(&callback);
    }

    /// The same to a service that may be down or refuse: the status of its answer, or what broke. So carriers try again.
    pub fn try_again(&mut self, nth: usize) -> std::io::Result<u16> {
        self.server.send(&self.sent[nth]).map(|reply| reply.status)
    }

    /// Tells the service what happened. Nothing is sent where the carrier sends nothing then.
    #[track_caller]
    pub fn tell(&mut self, event: &CallEvent) {
        let Some(callback) = self.callback(event, 0) else { return };
        match &mut self.held {
            Some(held) => held.push(callback),
            None => drop(self.deliver(&callback)),
        }
    }

    /// Tells the service, which may be down or refuse: the status of its answer, or what broke. `None` where the
    /// carrier sends nothing.
    pub fn try_to_tell(&mut self, event: &CallEvent) -> Option<std::io::Result<u16>> {
        let callback = self.callback(event, 0)?;
        let reply = self.server.send(&callback);
        self.sent.push(callback);
        Some(reply.map(|reply| reply.status))
    }

    /// Asks a service that may be down or refuse what it wants with the call ([`CallEvent::Incoming`],
    /// [`CallEvent::Asked`]): the status of its answer, or what broke. The last answer counts.
    #[track_caller]
    pub fn try_to_ask(&mut self, event: &CallEvent) -> std::io::Result<u16> {
        let callback = self.callback(event, 0).unwrap_or_else(|| panic!("a carrier sends {event:?}"));
        let reply = self.server.send(&callback);
        self.sent.push(callback);
        let reply = reply?;
        let content_type =
            reply.headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
        self.instruction = Some(self.server.wire().instruction(reply.status, content_type, &reply.body));
        let status = reply.status;
        self.announced = Some(reply);
        self.follow();
        Ok(status)
    }

    /// Whether the service has said to connect this call to a media socket.
    #[track_caller]
    pub fn is_wanted(&mut self) -> bool {
        self.decide();
        self.connect_url().is_some()
    }

    /// Sends a forged callback and says what it is answered with; `None` where this carrier cannot tell this forgery.
    #[track_caller]
    pub fn forge(&mut self, how: Forgery, event: &CallEvent) -> Option<u16> {
        let genuine = self.callback(event, how.age_s())?;
        let forged = how.apply(self.server.provider(), genuine)?;
        Some(self.server.send(&forged).expect("the service answers a forged callback").status)
    }

    // Below, what those are made of.

    #[track_caller]
    fn ask(&mut self, event: &CallEvent) {
        self.try_to_ask(event).unwrap_or_else(|error| panic!("{event:?}: {error}"));
    }

    /// Waits for the command, where the service's answer was that one follows.
    #[track_caller]
    fn decide(&mut self) {
        if self.instruction == Some(Ok(Instruction::Wait)) {
            let decided = self.server.command(&self.call, "the decision", |command| match command {
                Command::Answer { instruction, .. } => Some(instruction.clone()),
                Command::Refuse { .. } | Command::HangUp { .. } => Some(Instruction::HangUp),
                Command::Place { .. } => None,
            });
            self.instruction = Some(Ok(decided));
            self.follow();
        }
    }

    /// Callbacks go from now on where the document says.
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
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
        let now_s = i64::try_from(since.as_secs()).expect("a time") - age_s;
        let public = self.server.public();
        let callback = self.server.wire().callback(&public, &self.call, event, self.told, now_s)?;
        self.told += 1;
        Some(callback)
    }

    /// Sends any callback of the carrier's making; it must be taken.
    #[track_caller]
    pub fn deliver(&mut self, callback: &CallbackRequest) -> Reply {
        let reply = self.server.send(callback).unwrap_or_else(|error| panic!("{}: {error}", callback.url));
        assert!((200..300).contains(&reply.status), "{callback:?} is answered with {reply:?}");
        self.sent.push(callback.clone());
        reply
    }

    /// Lets the media end after a command, as the carrier does: what the service closes by itself counts as that.
    fn settle_media(&self) {
        const MOMENT_MS: u64 = 500;
        if let Some(line) = &self.line {
            line.wait(Duration::from_millis(MOMENT_MS), |state| state.closed.clone());
        }
    }

    #[track_caller]
    fn wait_for_close(&self, line: &Line) {
        let closed = line.wait(Duration::from_millis(PATIENCE_MS), |state| state.closed.clone());
        assert!(closed.is_some(), "{}: the media socket does not end", self.id());
        let problems = line.look(|state| state.problems.clone());
        assert!(problems.is_empty(), "{}: {problems:#?}", self.id());
    }

    fn seconds(&self) -> u32 {
        self.connected_at.map_or(0, |since| since.elapsed().as_secs_f64().ceil() as u32)
    }

    /// Whether the call is over when the service closes its socket: at Telnyx the two have nothing to do with each
    /// other.
    fn closing_ends(&self) -> bool {
        self.server.provider() != "telnyx"
    }

    /// Telnyx opens the socket of a placed call while it rings; the start message comes when it is answered.
    fn opens_while_ringing(&self) -> bool {
        self.server.provider() == "telnyx" && self.line.is_none()
    }
}
