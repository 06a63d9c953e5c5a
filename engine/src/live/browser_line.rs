//! A browser that sends its microphone and plays the assistant's voice: binary messages are audio, text messages are JSON
//! ([`super::message`]).
use bytes::Bytes;

use crate::base::ids::CallId;
use crate::carriers::MediaEvent;
use crate::conversation::EndedReason;
use crate::conversation::transcript::{TranscriptRole, TranscriptRow};
use crate::live::audio_line::LineInput;
use crate::live::client_rules::{ClientRules, Refusal, as_message};
use crate::live::line::{Farewell, Line, LineRead};
use crate::live::message::{self, AudioFormat, ClientMessage, Introduction, ServerMessage};
use crate::ports::{Received, SocketMessage};
use crate::speech::audio::Rate;
use crate::speech::turn_times::TurnTimes;
use crate::storage::calls::Call;

/// The rate of both directions.
pub(super) const RATE: Rate = Rate::Khz16;

/// The client with a test token that asked for audio.
pub(super) struct BrowserLine {
    rules: ClientRules,
    introduction: Introduction,
    started_ms: i64,
}

impl BrowserLine {
    /// The line of a socket that opens at `now_ms`.
    pub(super) fn new(now_ms: i64, introduction: Introduction) -> Self {
        Self { rules: ClientRules::new(now_ms), introduction, started_ms: now_ms }
    }

    fn text(&mut self, now_ms: i64, text: &str) -> LineRead {
        let message = match self.rules.read(now_ms, text) {
            Ok(message) => message,
            Err(refusal) => return refused(refusal),
        };
        LineRead::of(match message {
            ClientMessage::UserText(text) => LineInput::Typed(text),
            ClientMessage::Played(mark) => LineInput::Media(MediaEvent::Played(mark.to_string())),
            ClientMessage::HangUp => LineInput::Media(MediaEvent::Stopped),
            ClientMessage::Heard { .. } => {
                let message =
                    "`heard` is for clients that speak the lines themselves. Send `played` for each `mark`.";
                return refused(self.rules.refuse("invalid_message", message.to_owned()));
            }
        })
    }

    fn sound(&mut self, bytes: &Bytes) -> LineRead {
        let (samples, rest) = bytes.as_chunks::<2>();
        if samples.is_empty() || !rest.is_empty() {
            let message = "Audio is a whole number of 16-bit samples, at least one.";
            return refused(self.rules.refuse("invalid_message", message.to_owned()));
        }
        let samples = samples.iter().map(|sample| i16::from_le_bytes(*sample)).collect();
        LineRead::of(LineInput::Media(MediaEvent::Audio(samples)))
    }
}

fn refused(refusal: Refusal) -> LineRead {
    let inputs = refusal.end.map(LineInput::End).into_iter().collect();
    LineRead { inputs, answer: Some(refusal.answer) }
}

impl Line for BrowserLine {
    fn rate(&self) -> Rate {
        RATE
    }

    fn read(&mut self, now_ms: i64, received: Received) -> LineRead {
        match received {
            Received::Message(SocketMessage::Text(text)) => self.text(now_ms, &text),
            Received::Message(SocketMessage::Binary(bytes)) => self.sound(&bytes),
            Received::TooLarge => refused(self.rules.too_large()),
            Received::Control => self.rules.control(now_ms).map(refused).unwrap_or_default(),
            Received::Nothing => LineRead::default(),
            Received::Stopping => LineRead::of(LineInput::End(self.rules.stopping())),
            Received::Gone => LineRead::of(LineInput::Gone),
        }
    }

    fn audio(&mut self, frame: &[i16]) -> SocketMessage {
        SocketMessage::Binary(frame.iter().flat_map(|sample| sample.to_le_bytes()).collect())
    }

    fn mark(&mut self, mark: u64) -> SocketMessage {
        as_message(&ServerMessage::Mark { mark })
    }

    fn clear(&mut self) -> SocketMessage {
        as_message(&ServerMessage::Clear)
    }

    fn opened(&mut self, call: &Call) -> Option<SocketMessage> {
        Some(as_message(&self.introduction.call_started(call, Some(AudioFormat::of(RATE)))))
    }

    fn begin(&mut self, started_ms: i64) {
        self.started_ms = started_ms;
    }

    fn row(&mut self, row: &TranscriptRow) -> Option<SocketMessage> {
        let message = match row.role {
            TranscriptRole::User => Some(ServerMessage::UserText { index: row.index, text: &row.text }),
            TranscriptRole::Assistant if row.interrupted => {
                Some(ServerMessage::LineCut { index: row.index, heard: &row.text })
            }
            _ => message::of_row(row),
        };
        message.as_ref().map(as_message)
    }

    fn words_so_far(&mut self, text: &str) -> Option<SocketMessage> {
        Some(as_message(&ServerMessage::UserWords { text }))
    }

    fn turn(&mut self, turn: TurnTimes) -> Option<SocketMessage> {
        let latency_ms = turn.heard_first_ms?.saturating_sub(turn.end_of_speech_ms?).max(0);
        Some(as_message(&ServerMessage::Turn { latency_ms, times: turn.since(self.started_ms) }))
    }

    fn ended(&mut self, call_id: &CallId, reason: EndedReason, duration_ms: i64) -> Farewell {
        self.rules.ended(call_id, reason, duration_ms)
    }

    fn failed(&mut self) -> Farewell {
        self.rules.failed()
    }
}
