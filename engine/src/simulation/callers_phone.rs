//! What both kinds of voice runs know of the caller: when the caller speaks, in which pieces, and the telephone that plays the
//! assistant's audio in real time.
use std::collections::VecDeque;

use crate::speech::audio::{FRAME_MS, Rate};
use crate::speech::player::PlayerOutput;

/// The rate of a telephone line.
pub(crate) const RATE: Rate = Rate::Khz8;
/// How long the caller waits before answering.
pub(super) const REACTION_MS: i64 = 300;
/// A slow talker pauses after this many words.
const WORDS_AT_ONCE: usize = 4;
/// How long a slow talker pauses.
pub(super) const PAUSE_MS: i64 = 400;

pub(super) static SILENCE: [i16; RATE.frame_samples()] = [0; RATE.frame_samples()];

/// A line of the caller's in the pieces between which the caller pauses.
pub(super) fn pieces_of(text: &str, is_slow: bool) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match is_slow {
        true => words.chunks(WORDS_AT_ONCE).map(|words| words.join(" ")).collect(),
        false => vec![text.to_owned()],
    }
}

/// The caller's telephone: plays in real time what it gets, and returns marks.
#[derive(Debug, Default)]
pub(super) struct CallersPhone {
    played_until_ms: i64,
    marks: VecDeque<(i64, u64)>,
}

impl CallersPhone {
    /// Takes what the service sends.
    pub(super) fn take(&mut self, now_ms: i64, output: &PlayerOutput) {
        match output {
            PlayerOutput::Audio(_) => self.played_until_ms = self.played_until_ms.max(now_ms) + FRAME_MS,
            PlayerOutput::Mark(mark) => self.marks.push_back((self.played_until_ms, *mark)),
            PlayerOutput::Clear => {
                self.played_until_ms = now_ms;
                self.marks.clear();
            }
        }
    }

    /// The next mark that was played by now.
    pub(super) fn played(&mut self, now_ms: i64) -> Option<u64> {
        self.marks.pop_front_if(|(at_ms, _)| *at_ms <= now_ms).map(|(_, mark)| mark)
    }

    /// When the next mark will be played.
    pub(super) fn next_mark_ms(&self) -> Option<i64> {
        self.marks.front().map(|(at_ms, _)| *at_ms)
    }

    /// Whether everything was played.
    pub(super) const fn is_quiet(&self, now_ms: i64) -> bool {
        self.played_until_ms <= now_ms
    }
}
