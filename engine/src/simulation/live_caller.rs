//! The caller of a voice run that is held for real: listens and speaks on a telephone line in real time. A pure state
//! machine; its driver asks the model, and has the lines synthesized.
use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::callers_phone::{CallersPhone, PAUSE_MS, REACTION_MS, SILENCE, pieces_of};
use super::conditions::{Conditions, SeededConditions};
use super::pace::spoken_ms;
use crate::conversation::transcript::{TranscriptRole, TranscriptRow};
use crate::conversation::{Message, SILENCES_MAX};
use crate::models::CallerReply;
use crate::speech::audio::FRAME_MS;
use crate::speech::player::PlayerOutput;

/// A line counts as not understood when so much time has passed after it without a row of the caller's.
const UNHEARD_MS: i64 = 10_000;
/// After a goodbye, the caller hangs up after this time at the latest.
const GOODBYE_MS: i64 = 3_000;
/// A line of which a part was understood while it was spoken is followed by the rest within this time.
const REST_MS: i64 = 1_500;
/// A driver that comes late gets at most so many frames at once; the rest of the time is silence on a stalled line.
const FRAMES_AT_ONCE_MAX: i64 = 100;

/// Identifies a piece of a line that is synthesized; counts up.
pub(crate) type PieceId = u64;

/// What the driver must do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallerOutput {
    /// Ask the caller's model about [`LiveCaller::history`]; pass its answer to [`LiveCaller::replied`].
    Ask,
    /// Synthesize this text; pass its audio to [`LiveCaller::add_audio`], then call [`LiveCaller::audio_ended`].
    Speak(PieceId, String),
    /// The line carries this audio of the caller's, in whole frames.
    Audio(Vec<i16>),
    /// So many samples of the caller's were lost on the line after that.
    Lost(usize),
    /// The telephone has played everything up to this mark.
    Played(u64),
    /// The assistant did not understand this line.
    NotUnderstood(String),
    /// The caller says nothing any more: nothing of several lines was understood.
    GiveUp,
}

/// Whose turn it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnState {
    /// Whether the assistant waits for the caller.
    pub is_callers: bool,
    /// Whether a line of the assistant's is still being played.
    pub is_assistant_speaking: bool,
}

#[derive(Debug)]
enum Doing {
    Listening,
    /// The model is asked.
    Thinking,
    /// It is known what to say, and the moment has not come.
    Ready(Line),
    Speaking(Line),
    /// Waits for the line to be understood.
    Waiting {
        line: Line,
        since_ms: i64,
    },
    HungUp,
}

/// A line of the caller's.
#[derive(Debug)]
struct Line {
    text: String,
    hangs_up: bool,
    pieces: VecDeque<PieceId>,
    /// Until when the caller pauses between two pieces.
    pauses_until_ms: i64,
    /// How many lines of the caller's were understood before it.
    understood_before: usize,
}

/// Audio of a piece.
#[derive(Debug, Default)]
struct Piece {
    samples: VecDeque<i16>,
    is_complete: bool,
}

/// The caller. After each call, drain [`poll`](Self::poll), then wait no longer than [`poll_timeout`](Self::poll_timeout).
pub(crate) struct LiveCaller {
    line: SeededConditions,
    phone: CallersPhone,
    began_ms: i64,
    /// Frames of the caller's that were sent.
    frames: i64,
    rows: Vec<(usize, Message)>,
    turn_state: TurnState,
    /// Since when the caller may speak.
    silent_since_ms: Option<i64>,
    /// When the assistant's audio last began.
    assistant_began_ms: i64,
    doing: Doing,
    /// How many rows there were when the model was asked last.
    answered: Option<usize>,
    pieces: BTreeMap<PieceId, Piece>,
    last_piece: PieceId,
    /// Lines in a row that were not understood.
    unheard: u32,
    outputs: VecDeque<CallerOutput>,
}

impl LiveCaller {
    /// A caller whose line opens at `now_ms`.
    pub(crate) fn new(now_ms: i64, seed: u64, conditions: Conditions) -> Self {
        Self {
            line: SeededConditions { seed, conditions },
            phone: CallersPhone::default(),
            began_ms: now_ms,
            frames: 0,
            rows: Vec::new(),
            turn_state: TurnState::default(),
            silent_since_ms: None,
            assistant_began_ms: now_ms,
            doing: Doing::Listening,
            answered: None,
            pieces: BTreeMap::new(),
            last_piece: 0,
            unheard: 0,
            outputs: VecDeque::new(),
        }
    }

    /// The assistant's audio, as the service sends it.
    pub(crate) fn hear(&mut self, now_ms: i64, output: &PlayerOutput) {
        if matches!(output, PlayerOutput::Audio(_)) && self.phone.is_quiet(now_ms) {
            self.assistant_began_ms = now_ms;
        }
        self.phone.take(now_ms, output);
    }

    /// A row of the transcript is complete, or was cut.
    pub(crate) fn row(&mut self, now_ms: i64, row: &TranscriptRow) {
        let text = row.text.clone();
        let message = match row.role {
            TranscriptRole::User => Message::User { text },
            TranscriptRole::Assistant => Message::Assistant { text },
            _ => return,
        };
        let is_callers = row.role == TranscriptRole::User;
        match self.rows.iter_mut().find(|(index, _)| *index == row.index) {
            Some((_, known)) => *known = message,
            None => self.rows.push((row.index, message)),
        }
        if is_callers {
            self.unheard = 0;
            // The assistant thinks now; it says itself when it does not.
            self.turn_state.is_callers = false;
            if let Doing::Waiting { line, .. } = &self.doing {
                self.doing = if line.hangs_up { Doing::HungUp } else { Doing::Listening };
            }
        }
        self.proceed(now_ms);
    }

    /// Whose turn it is now.
    pub(crate) fn turn_state(&mut self, now_ms: i64, turn_state: TurnState) {
        let was_free = self.is_free();
        self.turn_state = turn_state;
        match (was_free, self.is_free()) {
            (false, true) => self.silent_since_ms = Some(now_ms),
            (_, false) => self.silent_since_ms = None,
            (true, true) => {}
        }
        self.proceed(now_ms);
    }

    /// The model's answer to [`CallerOutput::Ask`].
    pub(crate) fn replied(&mut self, now_ms: i64, reply: CallerReply) {
        if !matches!(self.doing, Doing::Thinking) {
            return;
        }
        let CallerReply { text, hang_up } = reply;
        let mut pieces = VecDeque::new();
        if !text.trim().is_empty() {
            for piece in pieces_of(text.trim(), self.line.conditions.slow_talker) {
                self.last_piece += 1;
                pieces.push_back(self.last_piece);
                self.pieces.insert(self.last_piece, Piece::default());
                self.outputs.push_back(CallerOutput::Speak(self.last_piece, piece));
            }
        } else if !hang_up {
            // Says nothing this time.
            self.doing = Doing::Listening;
            return;
        }
        let understood_before = self.understood();
        let line = Line { text, hangs_up: hang_up, pieces, pauses_until_ms: 0, understood_before };
        self.doing = Doing::Ready(line);
        self.proceed(now_ms);
    }

    /// Audio of a piece at the rate of a [telephone line](super::callers_phone::RATE).
    pub(crate) fn add_audio(&mut self, piece: PieceId, samples: &[i16]) {
        if let Some(piece) = self.pieces.get_mut(&piece) {
            piece.samples.extend(samples);
        }
    }

    /// All audio of a piece is there.
    pub(crate) fn audio_ended(&mut self, piece: PieceId) {
        if let Some(piece) = self.pieces.get_mut(&piece) {
            piece.is_complete = true;
        }
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self, now_ms: i64) {
        while let Some(mark) = self.phone.played(now_ms) {
            self.outputs.push_back(CallerOutput::Played(mark));
        }
        self.proceed(now_ms);
        self.send_frames(now_ms);
    }

    /// The next output.
    pub(crate) fn poll(&mut self) -> Option<CallerOutput> {
        self.outputs.pop_front()
    }

    /// When [`tick`](Self::tick) is due: at the next frame at the latest.
    pub(crate) fn poll_timeout(&self) -> i64 {
        let frame_ms = self.began_ms + (self.frames + 1) * FRAME_MS;
        self.phone.next_mark_ms().map_or(frame_ms, |mark_ms| mark_ms.min(frame_ms))
    }

    /// Whether the caller has hung up.
    pub(crate) const fn has_hung_up(&self) -> bool {
        matches!(self.doing, Doing::HungUp)
    }

    /// The conversation as far as it was understood and heard.
    pub(crate) fn history(&self) -> Vec<Message> {
        self.rows.iter().map(|(_, message)| message.clone()).collect()
    }

    /// Whether the caller may speak without interrupting.
    pub(crate) const fn is_free(&self) -> bool {
        self.turn_state.is_callers && !self.turn_state.is_assistant_speaking
    }

    fn understood(&self) -> usize {
        self.rows.iter().filter(|(_, message)| matches!(message, Message::User { .. })).count()
    }

    fn proceed(&mut self, now_ms: i64) {
        match std::mem::replace(&mut self.doing, Doing::Listening) {
            // What to say is decided while the assistant's last line is still being played.
            Doing::Listening if self.turn_state.is_callers && self.answered != Some(self.rows.len()) => {
                self.answered = Some(self.rows.len());
                self.doing = Doing::Thinking;
                self.outputs.push_back(CallerOutput::Ask);
            }
            Doing::Ready(line) if self.is_moment(now_ms, &line) => {
                let says_nothing = line.pieces.is_empty();
                self.doing = if says_nothing { Doing::HungUp } else { Doing::Speaking(line) };
            }
            Doing::Waiting { line, since_ms } => self.wait(now_ms, since_ms, line),
            other => self.doing = other,
        }
    }

    /// Whether the caller begins to speak: over the assistant's line, or after it.
    fn is_moment(&self, now_ms: i64, line: &Line) -> bool {
        let has_audio = line.pieces.front().is_none_or(|piece| {
            self.pieces.get(piece).is_none_or(|piece| piece.is_complete || !piece.samples.is_empty())
        });
        has_audio
            && match self.silent_since_ms {
                Some(since_ms) => now_ms >= since_ms + REACTION_MS,
                None => self.turn_state.is_assistant_speaking && self.talks_over(now_ms),
            }
    }

    fn talks_over(&self, now_ms: i64) -> bool {
        let said = |(_, message): &&(usize, Message)| matches!(message, Message::Assistant { .. });
        let lines = self.rows.iter().filter(said).count() as u64;
        let Some((_, Message::Assistant { text })) = self.rows.iter().rfind(said) else { return false };
        self.line
            .talks_over(lines)
            .is_some_and(|permille| now_ms >= self.assistant_began_ms + spoken_ms(text) * permille / 1_000)
    }

    fn wait(&mut self, now_ms: i64, since_ms: i64, line: Line) {
        let waited_ms = now_ms - since_ms;
        let was_understood = self.understood() > line.understood_before;
        self.doing = if line.hangs_up && waited_ms >= GOODBYE_MS {
            Doing::HungUp
        } else if was_understood && !line.hangs_up && waited_ms >= REST_MS {
            Doing::Listening
        } else if !was_understood && waited_ms >= UNHEARD_MS && self.is_free() {
            self.unheard += 1;
            self.outputs.push_back(CallerOutput::NotUnderstood(line.text));
            // Says it again, or something else.
            self.answered = None;
            if self.unheard >= SILENCES_MAX {
                self.outputs.push_back(CallerOutput::GiveUp);
                self.answered = Some(self.rows.len());
            }
            Doing::Listening
        } else {
            Doing::Waiting { line, since_ms }
        };
    }

    /// Sends the frames that are due: in one piece, unless some are lost.
    fn send_frames(&mut self, now_ms: i64) {
        let due = (now_ms - self.began_ms) / FRAME_MS - self.frames;
        self.frames += (due - FRAMES_AT_ONCE_MAX).max(0);
        let first = self.outputs.len();
        for _ in 0..due.min(FRAMES_AT_ONCE_MAX) {
            let at_ms = self.frames * FRAME_MS;
            self.frames += 1;
            let spoken = self.next_frame(self.began_ms + at_ms);
            let frame = spoken.as_deref().unwrap_or(&SILENCE);
            let is_lost = self.line.loses(at_ms);
            let is_first = self.outputs.len() == first;
            match (self.outputs.back_mut().filter(|_| !is_first), is_lost) {
                (Some(CallerOutput::Lost(samples)), true) => *samples += frame.len(),
                (Some(CallerOutput::Audio(samples)), false) => {
                    samples.extend(self.line.carried(at_ms, frame))
                }
                (_, true) => self.outputs.push_back(CallerOutput::Lost(frame.len())),
                (_, false) => self.outputs.push_back(CallerOutput::Audio(self.line.carried(at_ms, frame))),
            }
        }
    }

    /// The next frame of what the caller says; `None` for silence.
    fn next_frame(&mut self, at_ms: i64) -> Option<Vec<i16>> {
        let Doing::Speaking(line) = &mut self.doing else { return None };
        if at_ms < line.pauses_until_ms {
            return None;
        }
        let id = *line.pieces.front()?;
        let piece = self.pieces.get_mut(&id)?;
        let whole = SILENCE.len();
        let frame = (piece.is_complete || piece.samples.len() >= whole).then(|| {
            let mut frame: Vec<i16> = piece.samples.drain(..whole.min(piece.samples.len())).collect();
            frame.resize(whole, 0);
            frame
        });
        if piece.is_complete && piece.samples.is_empty() {
            self.pieces.remove(&id);
            line.pieces.pop_front();
            line.pauses_until_ms = at_ms + FRAME_MS + PAUSE_MS;
            if line.pieces.is_empty()
                && let Doing::Speaking(line) = std::mem::replace(&mut self.doing, Doing::Listening)
            {
                self.doing = Doing::Waiting { line, since_ms: at_ms + FRAME_MS };
            }
        }
        frame
    }
}

#[cfg(test)]
mod tests;
