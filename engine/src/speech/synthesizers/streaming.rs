//! What the protocols over a WebSocket have in common: lines one at a time, their deadlines, the connection.
use bytes::Bytes;

use super::failure::temporary;
use super::lines::{FIRST_AUDIO_MS, Lines, Pcm, STALL_MS, at_work_until_ms, pieces};
use super::socket_link::{LinkEvent, SocketLink};
use crate::base::setting::Secret;
use crate::ports::SocketMessage;
use crate::ports::sockets::Movable;
use crate::speech::exchange::{Arrival, ExchangeId, SocketRequest, SpeechFailure, Transmit};
use crate::speech::synthesizer::{LineId, Synthesizer, SynthesizerEvent};

/// One attempt at one line. Never used twice, so what arrives late for an earlier one is recognised.
pub(super) type ContextId = u64;

/// The messages of one provider, on one connection.
pub(super) trait Dialect: Movable {
    /// The provider's name in messages.
    const PROVIDER: &'static str;
    /// After this time a connection is replaced when no line is being spoken.
    const CONNECTION_MS_MAX: i64;
    /// The most text in a message.
    const TEXT_BYTES_MAX: usize;

    /// The key, which no message of a failure contains.
    fn key(&self) -> Option<&Secret>;

    /// The socket.
    fn request(&self) -> SocketRequest;

    /// A new connection is open: forget everything about the last one.
    fn opened(&mut self, now_ms: i64);

    /// Whether a new context can begin now.
    fn is_ready(&self) -> bool {
        true
    }

    /// Begins a context, when the one before has ended.
    fn begin(&mut self, context: ContextId, out: &mut Vec<SocketMessage>);

    /// Text of the context. `is_part_end`: the part is complete with it.
    fn speak(&mut self, now_ms: i64, text: &str, is_part_end: bool, out: &mut Vec<SocketMessage>);

    /// The context has no more text. `true`: all of it has been spoken already.
    fn finish(&mut self, now_ms: i64, out: &mut Vec<SocketMessage>) -> bool;

    /// The context is not needed any more.
    fn cancel(&mut self, now_ms: i64, out: &mut Vec<SocketMessage>);

    /// A message that ends the connection in good order.
    fn farewell(&self) -> Option<SocketMessage> {
        None
    }

    /// Time has passed. `Err`: the provider does not do what it must, and the connection should be replaced.
    fn tick(&mut self, _now_ms: i64, _out: &mut Vec<SocketMessage>) -> Result<(), Stuck> {
        Ok(())
    }

    /// When [`tick`](Self::tick) is due.
    fn timeout(&self) -> Option<i64> {
        None
    }

    /// Until when it keeps text back, so that no audio of it can come.
    fn keeps_back_until_ms(&self) -> Option<i64> {
        None
    }

    /// Reads a message.
    fn read(&mut self, message: &SocketMessage, heard: &mut Vec<Heard>);
}

/// The provider does not answer.
pub(super) struct Stuck;

/// What a message says.
#[derive(Debug)]
pub(super) enum Heard {
    /// Audio.
    Audio {
        /// Of this context.
        context: ContextId,
        /// 16-bit samples, little-endian; may end inside a sample.
        pcm: Bytes,
    },
    /// Words and their ends in ms.
    Words {
        /// Of this context.
        context: ContextId,
        /// The words.
        words: Vec<(String, f64)>,
        /// Whether the times count from the end of the audio so far, not from the beginning of the context's audio.
        is_relative: bool,
    },
    /// The first parts of the context have been spoken.
    Parts {
        /// Of this context.
        context: ContextId,
        /// How many.
        count: usize,
    },
    /// The context has ended.
    Done {
        /// This context.
        context: ContextId,
    },
    /// An error; of the connection where it names no context.
    Failed {
        /// Of this context.
        context: Option<ContextId>,
        /// What the provider said.
        failure: SpeechFailure,
    },
}

/// The line that is being spoken.
struct Active {
    line: LineId,
    context: ContextId,
    /// Whether the connection knows of the context.
    has_begun: bool,
    /// Parts that were sent.
    sent: usize,
    is_finish_sent: bool,
    has_audio: bool,
    /// Characters that were sent before any audio came. If none comes, the provider does not bill them.
    unvoiced_chars: u64,
    /// When something of it was last sent or arrived.
    stirred_ms: i64,
    pcm: Pcm,
}

/// A voice over a WebSocket.
pub(super) struct Streaming<D> {
    dialect: D,
    link: SocketLink,
    lines: Lines,
    active: Option<Active>,
    last_context: ContextId,
    billed_chars: u64,
    /// Whether a connection was asked for once.
    has_started: bool,
    is_closed: bool,
}

impl<D: Dialect> Streaming<D> {
    /// A voice without a connection.
    pub(super) fn new(dialect: D) -> Self {
        let link = SocketLink::new(D::PROVIDER, dialect.request());
        let lines = Lines::default().hiding(dialect.key());
        Self {
            dialect,
            link,
            lines,
            active: None,
            last_context: 0,
            billed_chars: 0,
            has_started: false,
            is_closed: false,
        }
    }

    /// Does what can be done: takes the next line, opens the connection, sends text.
    fn pump(&mut self, now_ms: i64) {
        while !self.is_closed {
            if let Some(active) = &self.active
                && self.lines.get(active.line).is_none()
            {
                self.active = None;
            }
            if self.active.is_none() {
                let Some(line) = self.lines.front().filter(|line| !line.parts.is_empty()) else { return };
                self.last_context += 1;
                self.active = Some(Active {
                    line: line.id,
                    context: self.last_context,
                    has_begun: false,
                    sent: 0,
                    is_finish_sent: false,
                    has_audio: false,
                    unvoiced_chars: 0,
                    stirred_ms: now_ms,
                    pcm: Pcm::default(),
                });
            }
            if self.link.open_since_ms().is_none() {
                self.has_started = true;
                self.link.connect(now_ms);
                return;
            }
            if !self.send(now_ms) {
                return;
            }
        }
    }

    /// Sends what the active line has. `true`: the line has ended.
    fn send(&mut self, now_ms: i64) -> bool {
        let Some(active) = &mut self.active else { return false };
        let Some(line) = self.lines.get(active.line) else { return true };
        let mut out = Vec::new();
        if !active.has_begun {
            if !self.dialect.is_ready() {
                return false;
            }
            active.has_begun = true;
            self.dialect.begin(active.context, &mut out);
        }
        while let Some(part) = line.part(active.sent) {
            active.sent += 1;
            active.stirred_ms = active.stirred_ms.max(if active.has_audio { now_ms } else { i64::MIN });
            let pieces = pieces(part, D::TEXT_BYTES_MAX);
            for (index, piece) in pieces.iter().enumerate() {
                let chars = piece.chars().count() as u64;
                self.billed_chars += chars;
                active.unvoiced_chars += if active.has_audio { 0 } else { chars };
                self.dialect.speak(now_ms, piece, index + 1 == pieces.len(), &mut out);
            }
        }
        let mut is_done = false;
        if line.is_finished && !active.is_finish_sent {
            active.is_finish_sent = true;
            if active.has_audio {
                active.stirred_ms = now_ms;
            }
            is_done = self.dialect.finish(now_ms, &mut out);
        }
        self.transmit(out);
        if is_done {
            self.complete();
        }
        is_done
    }

    fn transmit(&mut self, out: Vec<SocketMessage>) {
        for message in out {
            self.link.send(message);
        }
    }

    /// The active line has been spoken.
    fn complete(&mut self) {
        if let Some(active) = self.take_ended() {
            self.lines.complete(active.line, D::PROVIDER);
        }
    }

    /// The active line, which has ended at the provider.
    fn take_ended(&mut self) -> Option<Active> {
        self.bill_voiced();
        self.active.take()
    }

    /// The active line has ended at the provider: text of which it made no audio is not billed. Text of a line that we end is,
    /// for the provider was at work on it.
    fn bill_voiced(&mut self) {
        if let Some(active) = &mut self.active {
            self.billed_chars = self.billed_chars.saturating_sub(std::mem::take(&mut active.unvoiced_chars));
        }
    }

    /// Ends the active line at the provider. The caller has ended it here.
    fn abandon(&mut self, now_ms: i64) {
        if let Some(active) = self.active.take()
            && active.has_begun
        {
            let mut out = Vec::new();
            self.dialect.cancel(now_ms, &mut out);
            self.transmit(out);
        }
    }

    /// The active line has failed.
    fn fail(&mut self, now_ms: i64, failure: SpeechFailure) {
        self.bill_voiced();
        if let Some(active) = &self.active {
            self.lines.fail(active.line, failure);
        }
        self.abandon(now_ms);
    }

    fn heard(&mut self, now_ms: i64, heard: Heard) {
        let own = self.active.as_ref().filter(|active| active.has_begun).map(|active| active.context);
        match heard {
            Heard::Audio { context, pcm } if own == Some(context) => self.audio(now_ms, &pcm),
            Heard::Words { context, words, is_relative } if own == Some(context) => {
                if let Some(line) = self.active.as_ref().and_then(|active| self.lines.get(active.line)) {
                    let id = line.id;
                    let base_ms = if is_relative { line.audio_ms() as f64 } else { 0.0 };
                    let words: Vec<(String, f64)> =
                        words.into_iter().map(|(word, end_ms)| (word, base_ms + end_ms)).collect();
                    self.lines.words(id, &words);
                }
            }
            Heard::Parts { context, count } if own == Some(context) => {
                if let (Some(active), Some(index)) = (&self.active, count.checked_sub(1)) {
                    self.lines.part_end(active.line, index.min(active.sent.saturating_sub(1)));
                }
            }
            Heard::Done { context } if own == Some(context) => {
                if self.active.as_ref().is_some_and(|active| active.is_finish_sent) {
                    self.complete();
                } else {
                    self.fail(
                        now_ms,
                        temporary(format!("{} ended the line before its text did", D::PROVIDER)),
                    );
                }
            }
            Heard::Failed { context, failure } if context.is_some() && context == own => {
                self.fail(now_ms, failure);
            }
            Heard::Failed { context: None, failure } => {
                if failure.is_temporary {
                    self.fail(now_ms, failure);
                } else {
                    self.take_ended();
                    self.lines.fail_all(&failure);
                }
                // It is open to doubt what the connection is still good for.
                self.link.close();
            }
            _ => {}
        }
    }

    fn audio(&mut self, now_ms: i64, pcm: &[u8]) {
        let Some(active) = &mut self.active else { return };
        let samples = active.pcm.samples(pcm);
        if samples.is_empty() {
            return;
        }
        let is_first = !std::mem::replace(&mut active.has_audio, true);
        active.unvoiced_chars = 0;
        active.stirred_ms =
            if is_first { now_ms } else { at_work_until_ms(active.stirred_ms, now_ms, samples.len()) };
        self.link.worked();
        if !self.lines.audio(active.line, samples) {
            self.abandon(now_ms);
        }
    }

    fn linked(&mut self, now_ms: i64, event: LinkEvent) {
        if matches!(event, LinkEvent::Lost(_) | LinkEvent::Failed(_)) {
            self.bill_voiced();
        }
        match event {
            LinkEvent::Opened => self.dialect.opened(now_ms),
            LinkEvent::Message(message) => {
                let mut heard = Vec::new();
                self.dialect.read(&message, &mut heard);
                for heard in heard {
                    self.heard(now_ms, heard);
                }
            }
            LinkEvent::Lost(failure) => match &mut self.active {
                Some(active) if active.has_audio => {
                    let line = active.line;
                    self.active = None;
                    self.lines.fail(line, failure);
                }
                // Nothing of it has been heard: it is spoken from the beginning.
                Some(active) if active.has_begun => {
                    self.last_context += 1;
                    active.context = self.last_context;
                    (active.has_begun, active.sent, active.is_finish_sent) = (false, 0, false);
                    active.pcm = Pcm::default();
                }
                _ => {}
            },
            LinkEvent::Failed(failure) => {
                self.active = None;
                self.lines.fail_all(&failure);
            }
        }
    }

    /// When the active line has failed if nothing arrives.
    fn deadline(&self) -> Option<i64> {
        let active = self.active.as_ref()?;
        let since_ms =
            self.dialect.keeps_back_until_ms().map_or(active.stirred_ms, |at| at.max(active.stirred_ms));
        if !active.has_audio {
            return Some(since_ms.saturating_add(FIRST_AUDIO_MS));
        }
        active.is_finish_sent.then(|| since_ms.saturating_add(STALL_MS))
    }

    /// When the connection is old enough to be replaced.
    fn replacement(&self) -> Option<i64> {
        let since_ms = self.link.open_since_ms().filter(|_| self.active.is_none())?;
        Some(since_ms.saturating_add(D::CONNECTION_MS_MAX))
    }
}

impl<D: Dialect> Synthesizer for Streaming<D> {
    fn speak(&mut self, now_ms: i64, line: LineId, text: &str) {
        if self.is_closed {
            return;
        }
        self.lines.speak(line, text);
        self.settle(now_ms);
    }

    fn finish(&mut self, now_ms: i64, line: LineId) {
        if self.is_closed {
            return;
        }
        self.lines.finish(line);
        self.settle(now_ms);
    }

    fn cancel(&mut self, now_ms: i64, line: LineId) {
        self.lines.cancel(line);
        self.settle(now_ms);
    }

    fn close(&mut self, _now_ms: i64) {
        if let Some(message) = self.dialect.farewell() {
            self.link.send(message);
        }
        self.link.close();
        self.lines.clear();
        self.active = None;
        self.is_closed = true;
    }

    fn arrived(&mut self, now_ms: i64, id: ExchangeId, arrival: Arrival) {
        let is_busy = self.active.is_some();
        if let Some(event) = self.link.arrived(now_ms, id, arrival, is_busy) {
            self.linked(now_ms, event);
        }
        self.settle(now_ms);
    }

    fn tick(&mut self, now_ms: i64) {
        if self.is_closed {
            return;
        }
        if !self.has_started {
            self.has_started = true;
            self.link.connect(now_ms);
        }
        if let Some(event) = self.link.tick(now_ms) {
            self.linked(now_ms, event);
        }
        if self.link.open_since_ms().is_some() {
            let mut out = Vec::new();
            let kept_back = self.dialect.keeps_back_until_ms().is_some();
            let is_stuck = self.dialect.tick(now_ms, &mut out).is_err();
            if let Some(active) = self.active.as_mut()
                && kept_back
                && self.dialect.keeps_back_until_ms().is_none()
            {
                active.stirred_ms = now_ms;
            }
            self.transmit(out);
            if is_stuck || self.replacement().is_some_and(|due_ms| now_ms >= due_ms) {
                self.replace(now_ms);
            }
        }
        if self.deadline().is_some_and(|due_ms| now_ms >= due_ms) {
            self.overdue(now_ms);
        }
        self.settle(now_ms);
    }

    fn poll_transmit(&mut self) -> Option<Transmit> {
        self.link.poll_transmit()
    }

    fn poll_event(&mut self) -> Option<SynthesizerEvent> {
        self.lines.poll_event()
    }

    fn poll_timeout(&self) -> Option<i64> {
        if self.is_closed {
            return None;
        }
        if !self.has_started {
            return Some(0);
        }
        let dialect = self.link.open_since_ms().and(self.dialect.timeout());
        [self.link.timeout(), dialect, self.deadline(), self.replacement()].into_iter().flatten().min()
    }

    fn billed_chars(&self) -> Vec<u64> {
        vec![self.billed_chars]
    }
}

impl<D: Dialect> Streaming<D> {
    /// Ends a line at the provider that has ended here, and goes on.
    fn settle(&mut self, now_ms: i64) {
        if self.active.as_ref().is_some_and(|active| self.lines.get(active.line).is_none()) {
            self.abandon(now_ms);
        }
        self.pump(now_ms);
    }

    /// Replaces the connection; a line of which nothing was heard goes along.
    fn replace(&mut self, now_ms: i64) {
        self.linked(now_ms, LinkEvent::Lost(temporary(format!("{} did not answer", D::PROVIDER))));
        self.link.replace(now_ms);
    }

    /// The active line waited too long.
    fn overdue(&mut self, now_ms: i64) {
        let Some(active) = self.take_ended() else { return };
        let provider = D::PROVIDER;
        let message = if active.has_audio {
            format!("{provider} stopped in the middle of the line")
        } else {
            format!("{provider} made no audio within {} s", FIRST_AUDIO_MS / 1_000)
        };
        // The end may never be told.
        if active.is_finish_sent && self.lines.is_probably_spoken(active.line, None) {
            self.lines.complete(active.line, provider);
        } else {
            self.lines.fail(active.line, temporary(message));
        }
        // A connection on which nothing comes is not used for the next line. One that is being opened is left alone.
        if self.link.open_since_ms().is_some() {
            self.link.replace(now_ms);
        }
    }
}
