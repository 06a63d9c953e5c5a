//! The socket of a conversation with audio, a carrier's or a browser's: connects a [`AudioLine`] to the socket and converts
//! messages with the [`Line`].
mod away;

use std::pin::pin;

use away::Presence;
use futures_util::future::{Either, select};

use crate::base::ids::CallId;
use crate::base::limits::{BROWSER_MARK_MS, PHONE_FINAL_PLAYBACK_MS, PHONE_START_MS, SPEECH_CLOSE_MS};
use crate::carriers::{MediaCodec, MediaEvent};
use crate::conversation::transcript::TranscriptRow;
use crate::conversation::{CallFault, EndedReason};
use crate::live::audio_line::{AudioLine, LineInput, LineOutput};
use crate::live::browser_line::BrowserLine;
use crate::live::line::{CarrierLine, Farewell, Line, LineRead};
use crate::live::peer::{Peer, PeerEvent};
use crate::live::speech_exchanges::SpeechExchanges;
use crate::ports::{BoxFuture, Clock, Gone, Received, Socket, SocketMessage};
use crate::simulation::live_caller::TurnState;
use crate::speech::exchange::SpeechFailure;
use crate::speech::recorder::Segment;
use crate::speech::turn_times::TurnTimes;
use crate::speech::voice::Voice;
use crate::storage::calls::Call;

/// Frames that are sent together: half a second of speech.
const SENT_AT_ONCE_MAX: usize = 25;

/// Messages that are read of a connection that takes nothing any more: ten seconds of audio.
const REST_MESSAGES_MAX: usize = 500;

/// A line and a voice before their socket is open.
pub struct LineMedia {
    line: Box<dyn Line>,
    peer: AudioLine,
}

impl LineMedia {
    /// With the carrier's codec, and a voice for its rate.
    pub fn new(codec: Box<dyn MediaCodec>, voice: Voice) -> Self {
        let line = Box::new(CarrierLine(codec));
        let rate = line.rate();
        Self { line, peer: AudioLine::new(rate, voice).steady() }
    }

    /// Of a browser.
    pub(in crate::live) fn browser(line: BrowserLine, voice: Voice) -> Self {
        let rate = line.rate();
        let voice = voice.with_marks_every(BROWSER_MARK_MS);
        Self { line: Box::new(line), peer: AudioLine::new(rate, voice).with_fault(CallFault::Caller) }
    }

    /// Of a line inside this process.
    pub(in crate::live) fn on_line(line: Box<dyn Line>, voice: Voice) -> Self {
        let rate = line.rate();
        Self { line, peer: AudioLine::new(rate, voice).with_fault(CallFault::Platform) }
    }

    /// The peer on this socket. `exchanges` reach the providers of the voice.
    pub(in crate::live) fn into_peer<'a>(
        self,
        socket: Box<dyn Socket + 'a>,
        clock: &'a dyn Clock,
        exchanges: SpeechExchanges<'a>,
    ) -> LineSocket<'a> {
        LineSocket {
            socket,
            clock,
            exchanges,
            line: self.line,
            peer: self.peer,
            presence: Presence::Here,
            is_to_close: false,
            is_back: false,
            turn_told: None,
            outbox: Vec::new(),
        }
    }
}

/// The peer of a conversation with audio: the state machine and its socket.
pub struct LineSocket<'a> {
    socket: Box<dyn Socket + 'a>,
    clock: &'a dyn Clock,
    exchanges: SpeechExchanges<'a>,
    line: Box<dyn Line>,
    peer: AudioLine,
    presence: Presence,
    /// Whether a connection that is over was not closed here.
    is_to_close: bool,
    /// Whether another connection has begun, and that was not told.
    is_back: bool,
    /// The last turn whose times the line was told, by the time of its transcript.
    turn_told: Option<i64>,
    /// Messages that were not sent yet: what the player has released is in the recording, so none of it may be lost.
    outbox: Vec<SocketMessage>,
}

impl LineSocket<'_> {
    fn handle(&mut self, input: LineInput) {
        self.handle_at(self.clock.now_ms(), input);
    }

    fn handle_at(&mut self, now_ms: i64, input: LineInput) {
        self.peer.handle(now_ms, input);
        self.transmit();
    }

    fn transmit(&mut self) {
        while let Some((service, transmit)) = self.peer.poll_transmit() {
            self.exchanges.perform(service, transmit);
        }
    }

    /// Puts outputs that are due into the outbox, as many as are sent at once.
    fn take_outputs(&mut self) {
        while self.outbox.len() < SENT_AT_ONCE_MAX
            && let Some(output) = self.peer.poll_output(self.clock.now_ms())
        {
            self.outbox.push(match output {
                LineOutput::Audio(frame) => self.line.audio(&frame),
                LineOutput::Mark(mark) => self.line.mark(mark),
                LineOutput::Clear => self.line.clear(),
            });
        }
    }

    /// Sends all outputs that are due.
    async fn flush(&mut self) -> Result<(), Gone> {
        self.leave_in_time().await;
        if self.is_gone() {
            self.outbox.clear();
            return Err(Gone);
        }
        loop {
            self.take_outputs();
            if self.outbox.is_empty() {
                return Ok(());
            }
            // A connection that takes nothing any more was lost when it stopped, not when the host gave up.
            let since_ms = self.clock.now_ms();
            if self.socket.send_all(std::mem::take(&mut self.outbox)).await.is_err() {
                self.read_rest(since_ms).await;
                return Err(Gone);
            }
        }
    }

    /// Reads what had arrived before the connection was closed: the other end may have said that it ends.
    async fn read_rest(&mut self, closed_at_ms: i64) {
        for _ in 0..REST_MESSAGES_MAX {
            if self.peer.ended().is_some() || self.presence.is_away() {
                return;
            }
            let received = match self.socket.receive(self.clock.now_ms()).await {
                Received::Nothing => Received::Gone,
                received => received,
            };
            self.take(closed_at_ms, received);
        }
        self.take(closed_at_ms, Received::Gone);
    }

    /// Passes on what was received at `now_ms`.
    fn take(&mut self, now_ms: i64, received: Received) {
        let LineRead { inputs, answer } = self.line.read(now_ms, received);
        self.outbox.extend(answer);
        for input in inputs {
            if let Some(input) = self.of_presence(now_ms, input) {
                self.handle_at(now_ms, input);
            }
        }
    }

    fn is_gone(&self) -> bool {
        self.presence.is_away() || matches!(self.peer.ended(), Some(PeerEvent::Gone | PeerEvent::Broke))
    }

    async fn send(&mut self, message: SocketMessage) -> Result<(), Gone> {
        self.outbox.push(message);
        self.flush().await
    }

    /// Tells the line the times of the latest turn, once its answer is heard.
    fn tell_turn(&mut self) {
        let Some(turn) = self.peer.last_turn().filter(|turn| turn.heard_first_ms.is_some()) else { return };
        if self.turn_told != turn.transcript_ms {
            self.turn_told = turn.transcript_ms;
            self.outbox.extend(self.line.turn(turn));
        }
    }

    /// Shows what the person says while they say it, on a line that can.
    fn tell_words(&mut self) {
        if let Some(text) = self.peer.take_words_so_far() {
            self.outbox.extend(self.line.words_so_far(text));
        }
    }

    /// Waits for one message from the carrier or a speech provider, until `until_ms` at most.
    async fn receive(&mut self, until_ms: i64) {
        let socket = match self.presence.has_socket() {
            true => self.socket.receive(until_ms),
            false => {
                let waiting = self.clock.sleep_until(until_ms);
                Box::pin(async move {
                    waiting.await;
                    Received::Nothing
                })
            }
        };
        let next = match select(socket, pin!(self.exchanges.next())).await {
            Either::Left((received, _)) => Ok(received),
            Either::Right((arrived, _)) => Err(arrived),
        };
        match next {
            Err((service, id, arrival)) => self.handle(LineInput::Arrived(service, id, arrival)),
            // Only now: after a long wait of our own, what had arrived meanwhile comes first.
            Ok(Received::Nothing) => self.handle(LineInput::Quiet),
            Ok(received) => self.take(self.clock.now_ms(), received),
        }
    }

    /// The next event; `None` if something must be sent first.
    async fn event(&mut self, until_ms: i64) -> Option<PeerEvent> {
        loop {
            self.keep_silent();
            self.handle(LineInput::Tick);
            if self.presence.is_due(self.clock.now_ms()) {
                return None;
            }
            if !self.is_gone() {
                self.take_outputs();
                self.tell_words();
                self.tell_turn();
                if !self.outbox.is_empty() {
                    return None;
                }
            }
            if let Some(event) = self.peer.poll_event() {
                return Some(event);
            }
            if std::mem::take(&mut self.is_back) {
                return Some(PeerEvent::Back);
            }
            if self.clock.now_ms() >= until_ms {
                return Some(PeerEvent::Nothing);
            }
            let due_ms = [self.peer.poll_timeout(), self.presence.poll_timeout()].into_iter().flatten();
            let until_ms = due_ms.fold(until_ms, i64::min);
            self.receive(until_ms).await;
        }
    }

    async fn next(&mut self, until_ms: i64) -> PeerEvent {
        loop {
            // The event says whether the connection is closed.
            let _ = self.flush().await;
            if let Some(event) = self.event(until_ms).await {
                return event;
            }
        }
    }

    async fn started(&mut self, call: &Call) -> Result<(), PeerEvent> {
        if let Some(message) = self.line.opened(call) {
            self.handle(LineInput::Media(MediaEvent::Started { carrier_call_id: None }));
            return self.send(message).await.map_err(|Gone| PeerEvent::Gone);
        }
        let until_ms = self.clock.now_ms() + PHONE_START_MS;
        loop {
            if let Some(end) = self.peer.ended() {
                return Err(end.clone());
            }
            if self.peer.is_started() {
                return Ok(());
            }
            if self.clock.now_ms() >= until_ms {
                return Err(PeerEvent::Nothing);
            }
            self.receive(until_ms).await;
            // The next look says whether the connection is closed.
            let _ = self.flush().await;
        }
    }

    async fn leave(&mut self, farewell: Farewell) {
        let _ = self.flush().await;
        for message in farewell.messages {
            // An error means that the other end has disconnected, so it is ignored.
            let _ = self.socket.send(message).await;
        }
        let until_ms = self.clock.now_ms() + farewell.wait_ms;
        while !self.is_gone() && self.clock.now_ms() < until_ms {
            match self.socket.receive(until_ms).await {
                Received::Gone => break,
                // Also a host that stops waits: closing would end a call that the carrier is connecting to somebody else.
                Received::Stopping => {
                    self.clock.sleep((until_ms - self.clock.now_ms()).max(0).unsigned_abs()).await;
                }
                _ => {}
            }
        }
        self.socket.close(farewell.code, farewell.reason).await;
    }

    /// Plays the remaining speech, but not beyond the lease.
    async fn play_remaining(&mut self) -> Vec<(i64, PeerEvent)> {
        let latest_ms = self.clock.now_ms() + PHONE_FINAL_PLAYBACK_MS;
        let mut played = Vec::new();
        let mut is_over = false;
        while !is_over && (self.peer.is_speaking() || self.peer.has_events()) {
            let now_ms = self.clock.now_ms();
            // Audio that is still to come, or waits for a pause to end, has no end yet.
            let until_ms = match self.peer.awaits_audio(now_ms) {
                true => latest_ms,
                false => self.peer.playback_ends_at_ms(now_ms).min(latest_ms),
            };
            if now_ms >= until_ms {
                break;
            }
            let event = self.next(until_ms).await;
            is_over = event.is_the_end();
            if event.clone().into_input().counts_after_the_end() {
                played.push((self.clock.now_ms(), event));
            }
        }
        let over_at_ms = self.peer.ended_at_ms().unwrap_or_else(|| self.clock.now_ms());
        let cut = PeerEvent::lines_cut(&self.peer.heard_permille(over_at_ms));
        played.extend(cut.into_iter().map(|event| (over_at_ms, event)));
        played
    }

    /// Waits for what the caller said last. Who is still connected is not kept waiting.
    async fn hear_out(&mut self, is_over: bool, ended_at_ms: i64) -> Vec<PeerEvent> {
        let waits = is_over || self.is_gone();
        self.peer.end(self.clock.now_ms(), ended_at_ms);
        self.transmit();
        let latest_ms = self.clock.now_ms() + if waits { SPEECH_CLOSE_MS } else { 0 };
        while let Some(due_ms) = self.peer.awaits_last_words() {
            let now_ms = self.clock.now_ms();
            if now_ms >= latest_ms {
                break;
            }
            let sleep = self.clock.sleep(due_ms.min(latest_ms).saturating_sub(now_ms).max(1).unsigned_abs());
            let arrived = match select(pin!(self.exchanges.next()), sleep).await {
                Either::Left((arrived, _)) => Some(arrived),
                Either::Right(_) => None,
            };
            self.peer.hear_out(self.clock.now_ms(), arrived);
            self.transmit();
        }
        self.peer.take_last_words(waits)
    }
}

impl Peer for LineSocket<'_> {
    fn open<'a>(&'a mut self, call: &'a Call) -> BoxFuture<'a, Result<(), PeerEvent>> {
        Box::pin(self.started(call))
    }

    fn send_due(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            // The next event says whether the connection is closed.
            let _ = self.flush().await;
        })
    }

    fn next_event(&mut self, until_ms: i64) -> BoxFuture<'_, Option<PeerEvent>> {
        Box::pin(self.event(until_ms))
    }

    fn send_row<'a>(&'a mut self, row: &'a TranscriptRow) -> BoxFuture<'a, Result<(), Gone>> {
        Box::pin(async move {
            // A line that was cut before it was complete: the browser sees what it would have been, and then what is left.
            if let Some(intended) = row.intended_text.as_ref().filter(|_| row.interrupted) {
                let whole = TranscriptRow { text: intended.clone(), interrupted: false, ..row.clone() };
                if let Some(message) = self.line.row(&whole) {
                    self.send(message).await?;
                }
            }
            if let Some(message) = self.line.row(row) {
                self.send(message).await?;
            }
            self.flush().await
        })
    }

    fn say<'a>(&'a mut self, text: &'a str, is_complete: bool) -> BoxFuture<'a, Result<bool, Gone>> {
        Box::pin(async move {
            let is_spoken = self.peer.speaks_more();
            let input = if is_complete { LineInput::Say } else { LineInput::SayPart };
            self.handle(input(text.to_owned()));
            self.flush().await.map(|()| is_spoken)
        })
    }

    fn press_keys(&mut self, id: String, keys: String) -> BoxFuture<'_, ()> {
        self.handle(LineInput::Press(id, keys));
        self.send_due()
    }

    fn hush(&mut self) -> BoxFuture<'_, ()> {
        self.handle(LineInput::Hush);
        self.send_due()
    }

    fn cut_row<'a>(&'a mut self, row: &'a TranscriptRow) -> BoxFuture<'a, Result<(), Gone>> {
        Box::pin(async move {
            match self.line.row(row) {
                Some(message) => self.send(message).await,
                None => Ok(()),
            }
        })
    }

    fn turn_state(&mut self, turn_state: TurnState) -> BoxFuture<'_, Result<(), Gone>> {
        let message = self.line.turn_state(turn_state);
        Box::pin(async move {
            match message {
                Some(message) => self.send(message).await,
                None => Ok(()),
            }
        })
    }

    fn heard_permille(&self, at_ms: i64) -> Vec<u32> {
        self.peer.heard_permille(at_ms)
    }

    fn speech_billed(&self) -> (i64, Vec<u64>) {
        self.peer.billed()
    }

    fn model_answered(&mut self) {
        self.handle(LineInput::Answered);
    }

    fn turns(&self) -> Vec<TurnTimes> {
        self.peer.turns()
    }

    fn take_speech_failures(&mut self) -> Vec<SpeechFailure> {
        self.peer.take_failures()
    }

    fn may_leave(&mut self, leave_at_ms: Option<i64>) {
        self.presence.may_leave(leave_at_ms);
    }

    fn stays(&mut self) {
        if std::mem::replace(&mut self.presence, Presence::Here).is_away() {
            self.handle(LineInput::Gone);
        }
    }

    fn reconnect(&mut self, socket: Box<dyn Socket>, codec: Box<dyn MediaCodec>) {
        self.come_back(socket, codec);
    }

    fn begin(&mut self, started_ms: i64, segment_ms: i64) {
        self.line.begin(started_ms);
        self.peer.begin_recording(started_ms, segment_ms);
    }

    fn take_segment(&mut self, now_ms: i64, is_over: bool) -> Option<Segment> {
        self.peer.take_segment(now_ms, is_over)
    }

    fn ended_at_ms(&self) -> Option<i64> {
        self.peer.ended_at_ms()
    }

    fn finish(&mut self) -> BoxFuture<'_, Vec<(i64, PeerEvent)>> {
        Box::pin(self.play_remaining())
    }

    fn last_words(&mut self, is_over: bool, ended_at_ms: i64) -> BoxFuture<'_, Vec<PeerEvent>> {
        Box::pin(self.hear_out(is_over, ended_at_ms))
    }

    fn end<'a>(&'a mut self, id: &'a CallId, reason: EndedReason, duration_ms: i64) -> BoxFuture<'a, ()> {
        let farewell = self.line.ended(id, reason, duration_ms);
        Box::pin(self.leave(farewell))
    }

    fn fail(&mut self) -> BoxFuture<'_, ()> {
        let farewell = self.line.failed();
        Box::pin(self.leave(farewell))
    }
}

#[cfg(test)]
mod tests;
