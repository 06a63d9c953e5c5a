//! Gives way to the person: pauses what is spoken while their voice may mean something, and goes on when it does not.
use super::{Ear, Voice, VoiceEvent};
use crate::base::limits::TRANSCRIPTION_MS_MAX;

/// A paused line goes on when this much time has passed after the voice without a word.
const RESUME_MS: i64 = 1_500;
/// A pause without a word ends after this long, even if the voice goes on: that is background noise.
const WORDLESS_PAUSE_MS: i64 = 4_000;
/// The same where words are known only after the voice has ended, or after [`TRANSCRIPTION_MS_MAX`].
const WORDLESS_PAUSE_OF_FILES_MS: i64 = TRANSCRIPTION_MS_MAX + 2_000;
/// So many pauses without a word are noise that comes and goes: it pauses what is being spoken no more.
const WORDLESS_PAUSES_MAX: u32 = 3;
/// Speech that begins this close to the end of a question is an answer, whatever its words.
const ANSWERS_BEFORE_END_MS: i64 = 700;

/// The person's voice, as far as it concerns what is being spoken.
#[derive(Debug, Default)]
pub(super) struct PersonsVoice {
    is_present: bool,
    /// It began at the end of a question.
    pub(super) is_answer: bool,
    /// When a paused line goes on.
    pub(super) resume_at_ms: Option<i64>,
    /// When it goes on at the latest.
    pause_ends_at_ms: i64,
    /// Pauses without a word, of the lines being spoken.
    wordless_pauses: u32,
}

impl Voice {
    pub(super) fn voice_began(&mut self, now_ms: i64) {
        self.person.is_present = true;
        self.person.is_answer |= self.is_at_end_of_question(now_ms);
        self.events.push_back(VoiceEvent::VoiceBegan);
        self.give_way(now_ms);
    }

    pub(super) fn voice_ended(&mut self, now_ms: i64) {
        self.person.is_present = false;
        self.events.push_back(VoiceEvent::VoiceEnded);
        if self.player.is_paused() {
            let (_, resume_ms) = self.wordless_waits();
            self.person.resume_at_ms = Some(self.person.pause_ends_at_ms.min(now_ms + resume_ms));
        }
    }

    /// Pauses what is spoken, or begins to be spoken, while the person speaks.
    pub(super) fn give_way(&mut self, now_ms: i64) {
        if !self.is_speaking() {
            self.person.wordless_pauses = 0;
        }
        let is_heeded = self.person.is_present && self.person.wordless_pauses < WORDLESS_PAUSES_MAX;
        if is_heeded && self.is_speaking() && self.turn_taking.interruptible && !self.player.is_paused() {
            let (pause_ms, _) = self.wordless_waits();
            self.player.pause(now_ms);
            self.events.push_back(VoiceEvent::Paused);
            self.person.pause_ends_at_ms = now_ms + pause_ms;
        }
        if self.person.is_present && self.player.is_paused() {
            self.person.resume_at_ms = Some(self.person.pause_ends_at_ms);
        }
    }

    /// The longest pause without a word, and how long words are awaited after the voice.
    fn wordless_waits(&self) -> (i64, i64) {
        match &self.ear {
            Ear::Speech(listener) if !listener.has_words_meanwhile() => {
                (WORDLESS_PAUSE_OF_FILES_MS, RESUME_MS.max(listener.final_wait_ms()))
            }
            Ear::Speech(_) | Ear::Tone(_) => (WORDLESS_PAUSE_MS, RESUME_MS),
        }
    }

    /// Words that are no turn: the line goes on, and the next voice pauses it again.
    pub(super) fn resume_after_words(&mut self, now_ms: i64) {
        self.resume(now_ms);
        self.person.wordless_pauses = 0;
    }

    /// Goes on with what is paused. A voice that is still there pauses it no more.
    pub(super) fn resume(&mut self, now_ms: i64) {
        self.person.resume_at_ms = None;
        if self.player.is_paused() {
            let pauses =
                if self.person.is_present { WORDLESS_PAUSES_MAX } else { self.person.wordless_pauses + 1 };
            self.person.wordless_pauses = pauses;
            self.events.push_back(VoiceEvent::Resumed);
        }
        self.player.resume(now_ms);
    }

    /// Whether all that is being spoken is over in a moment, and ends with a question.
    fn is_at_end_of_question(&mut self, now_ms: i64) -> bool {
        self.open_line.is_none()
            && self.spoken_text.trim_end().ends_with(['?', '？', '؟'])
            && self.player.left_ms(now_ms).is_some_and(|left_ms| left_ms <= ANSWERS_BEFORE_END_MS)
    }
}
