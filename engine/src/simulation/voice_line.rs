//! The line of a voice run: both sides speak and listen through the audio path of a telephone call, on virtual time.
use serde::{Deserialize, Serialize};

use super::callers_phone::{CallersPhone, PAUSE_MS, REACTION_MS, pieces_of};
pub(super) use super::callers_phone::{RATE, SILENCE};
use super::conditions::{Conditions, SeededConditions};
use crate::conversation::Party;
use crate::speech::audio::FRAME_MS;
use crate::speech::tone::ToneEncoder;
use crate::speech::turn_times::TurnTimes;
use crate::speech::voice::{TurnTaking, Voice, VoiceEvent};

/// How long the assistant listens after the caller's last audio.
const LISTENS_MS: i64 = 500;
/// No exchange takes longer after its last audio.
const EXCHANGE_REST_MS: i64 = 30_000;

/// How a voice run sounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoiceSetup {
    /// The conditions of the line.
    #[serde(default)]
    pub conditions: Conditions,
    /// Whether the caller can interrupt the assistant.
    pub is_interruptible: bool,
}

/// Something that was spoken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Utterance {
    pub(super) speaker: Party,
    pub(super) from_ms: i64,
    /// When it ended, or was cut.
    pub(super) until_ms: i64,
    pub(super) text: String,
}

/// A line of the assistant's that has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OpenLine {
    pub(super) text: String,
    pub(super) from_ms: i64,
    /// When the caller begins to talk over it, if at all.
    pub(super) talked_over_ms: Option<i64>,
}

/// How the assistant's line ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineEnd {
    pub(super) at_ms: i64,
    pub(super) heard_permille: u32,
}

/// What the assistant understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Understood {
    pub(super) text: String,
    pub(super) duration_ms: i64,
    /// When the caller stopped speaking.
    pub(super) until_ms: i64,
    /// When the text was known.
    pub(super) at_ms: i64,
}

/// What happened on the line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Exchange {
    pub(super) line_end: Option<LineEnd>,
    pub(super) understood: Option<Understood>,
    pub(super) over_ms: i64,
}

/// The line. It keeps what was spoken, not how it sounded: audio is the same whenever it is computed, so the state is as
/// small as the transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoiceLine {
    pub(super) line: SeededConditions,
    is_interruptible: bool,
    pub(super) utterances: Vec<Utterance>,
    turns: Vec<TurnTimes>,
    lines: u64,
}

impl VoiceLine {
    pub(super) const fn new(setup: VoiceSetup, seed: u64) -> Self {
        Self {
            line: SeededConditions { seed, conditions: setup.conditions },
            is_interruptible: setup.is_interruptible,
            utterances: Vec::new(),
            turns: Vec::new(),
            lines: 0,
        }
    }

    /// The times of the caller's turns.
    #[must_use]
    pub fn turns(&self) -> &[TurnTimes] {
        &self.turns
    }

    /// A line of the assistant's begins.
    pub(super) fn open(&mut self, from_ms: i64, text: String) -> OpenLine {
        self.lines += 1;
        if let Some(turn) = self.turns.last_mut().filter(|turn| turn.model_first_ms.is_some()) {
            turn.speech_first_ms.get_or_insert(from_ms);
            turn.heard_first_ms.get_or_insert(from_ms);
        }
        let duration_ms = ToneEncoder::duration_ms(&text);
        let talked_over_ms = self
            .line
            .talks_over(self.lines)
            .map(|permille| from_ms + duration_ms * permille / 1_000 / FRAME_MS * FRAME_MS);
        OpenLine { text, from_ms, talked_over_ms }
    }

    /// The model has answered.
    pub(super) fn answered(&mut self, now_ms: i64) {
        if let Some(turn) = self.turns.last_mut() {
            turn.model_first_ms.get_or_insert(now_ms);
        }
    }

    /// The assistant's line is spoken to its end.
    pub(super) fn finish(&mut self, line: OpenLine) -> LineEnd {
        let from_ms = line.from_ms;
        let exchange = self.exchange(from_ms, Some(line), &Speech::default());
        exchange.line_end.unwrap_or(LineEnd { at_ms: exchange.over_ms, heard_permille: 0 })
    }

    /// The caller speaks: after the assistant's line, or over it.
    pub(super) fn say(&mut self, now_ms: i64, line: Option<OpenLine>, text: &str) -> Exchange {
        let from_ms = line.as_ref().and_then(|line| line.talked_over_ms).unwrap_or(now_ms + REACTION_MS);
        let speech = Speech::of(text, from_ms, self.line.conditions.slow_talker);
        let begins_ms = line.as_ref().map_or(from_ms, |line| line.from_ms);
        let exchange = self.exchange(begins_ms, line, &speech);
        self.utterances.extend(speech.utterances());
        if let Some(understood) = &exchange.understood {
            self.turns.push(TurnTimes {
                end_of_speech_ms: Some(understood.until_ms),
                transcript_ms: Some(understood.at_ms),
                ..TurnTimes::default()
            });
        }
        exchange
    }

    fn exchange(&mut self, begins_ms: i64, line: Option<OpenLine>, speech: &Speech) -> Exchange {
        let turn_taking = TurnTaking { interruptible: self.is_interruptible, ..TurnTaking::default() };
        let mut voice = Voice::tone(RATE, turn_taking, false);
        let mut phone = CallersPhone::default();
        let mut exchange = Exchange::default();
        let mut now_ms = begins_ms;
        if let Some(line) = &line {
            voice.say(now_ms, &line.text);
        }
        let spoken_ms = line.as_ref().map_or(0, |line| ToneEncoder::duration_ms(&line.text));
        let heard_until_ms =
            if speech.pieces.is_empty() { begins_ms } else { speech.until_ms() + LISTENS_MS };
        let latest_ms = heard_until_ms.max(begins_ms + spoken_ms) + EXCHANGE_REST_MS;
        loop {
            while let Some(output) = voice.poll_output(now_ms) {
                phone.take(now_ms, &output);
            }
            while let Some(event) = voice.poll_event() {
                exchange.note(now_ms, event);
            }
            let is_over = now_ms >= heard_until_ms && (!voice.is_speaking() || line.is_none());
            if is_over || now_ms >= latest_ms {
                break;
            }
            let at_ms = now_ms;
            now_ms += FRAME_MS;
            while let Some(mark) = phone.played(now_ms) {
                voice.played(now_ms, mark);
            }
            if at_ms >= speech.begins_ms() && at_ms < heard_until_ms {
                voice.hear(now_ms, &self.line.carried(at_ms, speech.frame(at_ms)));
            }
            voice.tick(now_ms);
        }
        exchange.over_ms = now_ms;
        if let Some(line) = line {
            let until_ms = exchange.line_end.map_or(now_ms, |end| end.at_ms);
            let OpenLine { text, from_ms, .. } = line;
            self.utterances.push(Utterance { speaker: Party::Assistant, from_ms, until_ms, text });
        }
        exchange
    }
}

impl Exchange {
    fn note(&mut self, now_ms: i64, event: VoiceEvent) {
        match event {
            VoiceEvent::Said { text, duration_ms, silence_ms } => {
                let until_ms = now_ms - silence_ms;
                let known = self.understood.get_or_insert_with(|| Understood {
                    text: String::new(),
                    duration_ms,
                    until_ms,
                    at_ms: now_ms,
                });
                if !known.text.is_empty() {
                    known.text.push(' ');
                    known.duration_ms += until_ms - known.until_ms;
                }
                known.text.push_str(&text);
                (known.until_ms, known.at_ms) = (until_ms, now_ms);
            }
            VoiceEvent::Cut(heard) => {
                let heard_permille = heard.first().copied().unwrap_or(0);
                self.line_end.get_or_insert(LineEnd { at_ms: now_ms, heard_permille });
            }
            VoiceEvent::Spoken { .. } => {
                self.line_end.get_or_insert(LineEnd { at_ms: now_ms, heard_permille: 1_000 });
            }
            // Tones are understood at once, so nothing pauses, and they do not fail. No keys are pressed.
            VoiceEvent::KeysPressed { .. }
            | VoiceEvent::BrokeOff { .. }
            | VoiceEvent::VoiceBegan
            | VoiceEvent::VoiceEnded
            | VoiceEvent::Paused
            | VoiceEvent::Resumed
            | VoiceEvent::LineBegan { .. }
            | VoiceEvent::Noise
            | VoiceEvent::NotUnderstood
            | VoiceEvent::ProbablySaid(_)
            | VoiceEvent::WentOn
            | VoiceEvent::Failed(_) => {}
        }
    }
}

/// What the caller says, as audio.
#[derive(Debug, Default)]
struct Speech {
    pieces: Vec<Piece>,
}

#[derive(Debug)]
struct Piece {
    from_ms: i64,
    text: String,
    samples: Vec<i16>,
}

impl Piece {
    fn until_ms(&self) -> i64 {
        self.from_ms + RATE.ms_of(self.samples.len())
    }
}

impl Speech {
    fn of(text: &str, mut from_ms: i64, is_slow: bool) -> Self {
        let mut pieces = Vec::new();
        for text in pieces_of(text, is_slow) {
            let piece = Piece { from_ms, samples: ToneEncoder::speak(&text, RATE), text };
            from_ms = piece.until_ms() + PAUSE_MS;
            pieces.push(piece);
        }
        Self { pieces }
    }

    fn begins_ms(&self) -> i64 {
        self.pieces.first().map_or(i64::MAX, |piece| piece.from_ms)
    }

    fn until_ms(&self) -> i64 {
        self.pieces.last().map_or(0, Piece::until_ms)
    }

    fn frame(&self, at_ms: i64) -> &[i16] {
        let after = self.pieces.partition_point(|piece| piece.from_ms <= at_ms);
        let piece = after.checked_sub(1).and_then(|place| self.pieces.get(place));
        piece.and_then(|piece| frame_of(&piece.samples, at_ms - piece.from_ms)).unwrap_or(&SILENCE)
    }

    fn utterances(self) -> impl Iterator<Item = Utterance> {
        self.pieces.into_iter().map(|piece| Utterance {
            speaker: Party::User,
            from_ms: piece.from_ms,
            until_ms: piece.until_ms(),
            text: piece.text,
        })
    }
}

/// The frame at an offset; `None` after the last.
pub(super) fn frame_of(samples: &[i16], offset_ms: i64) -> Option<&[i16]> {
    samples.chunks_exact(RATE.frame_samples()).nth(usize::try_from(offset_ms / FRAME_MS).ok()?)
}

#[cfg(test)]
mod tests;
