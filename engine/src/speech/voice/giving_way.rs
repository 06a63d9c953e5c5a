//! Gives way to the person: pauses what is spoken while their voice may mean something, and goes on when it does not.
use super::{Ear, Voice, VoiceEvent};
use crate::base::limits::TRANSCRIPTION_MS_MAX;

/// A paused line goes on when this much time has passed after the voice without a word.
const RESUME_MS: i64 = 1_500;
/// A voice that goes on without a word for this long is no person who wants to speak: a television, a street.
const WORDLESS_PAUSE_MS: i64 = 4_000;
/// The same where words are known only after the voice has ended, or this long: then with a moment for the answer.
const WORDLESS_PAUSE_OF_FILES_MS: i64 = TRANSCRIPTION_MS_MAX + 2_000;
/// Who begins to speak within this much of a question's end answers it, with whatever word.
const ANSWERS_BEFORE_END_MS: i64 = 700;

/// The person's voice, as far as it concerns what is being spoken.
#[derive(Debug, Default)]
pub(super) struct PersonsVoice {
    is_present: bool,
    /// It had its pause, and no words.
    is_ignored: bool,
    /// It began at the end of a question.
    pub(super) is_answer: bool,
    /// When a paused line goes on.
    pub(super) resume_at_ms: Option<i64>,
}

impl Voice {
    pub(super) fn voice_began(&mut self, now_ms: i64) {
        self.person.is_present = true;
        self.person.is_ignored = false;
        self.person.is_answer |= self.is_at_end_of_question(now_ms);
        self.person.resume_at_ms = None;
        self.events.push_back(VoiceEvent::VoiceBegan);
        self.give_way(now_ms);
        self.bound_pause(now_ms);
    }

    pub(super) fn voice_ended(&mut self, now_ms: i64) {
        self.person.is_present = false;
        self.events.push_back(VoiceEvent::VoiceEnded);
        if self.player.is_paused() {
            self.person.resume_at_ms = Some(now_ms + RESUME_MS);
        }
    }

    /// Pauses what is spoken, or begins to be spoken, while the person speaks.
    pub(super) fn give_way(&mut self, now_ms: i64) {
        let must = self.person.is_present && !self.person.is_ignored;
        if must && self.is_speaking() && self.turn_taking.interruptible && !self.player.is_paused() {
            self.player.pause(now_ms);
            self.events.push_back(VoiceEvent::Paused);
            self.bound_pause(now_ms);
        }
    }

    fn bound_pause(&mut self, now_ms: i64) {
        if self.player.is_paused() {
            let has_words_meanwhile = match &self.ear {
                Ear::Speech(listener) => listener.has_words_meanwhile(),
                Ear::Tone(_) => true,
            };
            let pause_ms = if has_words_meanwhile { WORDLESS_PAUSE_MS } else { WORDLESS_PAUSE_OF_FILES_MS };
            self.person.resume_at_ms = Some(now_ms + pause_ms);
        }
    }

    /// Goes on with what is paused. A voice that is still there does not pause it again.
    pub(super) fn resume(&mut self, now_ms: i64) {
        self.person.resume_at_ms = None;
        self.person.is_ignored = self.person.is_present;
        if self.player.is_paused() {
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
