//! Whether the person is heard at all: counts what they said and the transcriber lost.
//!
//! A person tries to be heard, and waits for an answer. So a try is all that they say up to a pause in which an answer is
//! due, or until it is known that the try was lost: what comes after is the next one.
use std::collections::VecDeque;

use crate::speech::exchange::{SpeechFailure, SpeechFault};

/// After so many lost tries in a row, nobody hears the person: speech has failed for good. As many as lines of the assistant
/// without a sound.
const LOST_MAX: u32 = 2;
/// Speech without a result for so long is lost to whoever waits for an answer, even if the transcriber is still being asked.
/// A request has time to fail, and the one that repeats it to be answered.
pub(super) const LATE_MS: i64 = 12_000;
/// Less sound may be a cough.
const SPEECH_MS_MIN: i64 = super::WANTS_TO_SPEAK_MS;

/// An utterance without a result.
#[derive(Debug)]
struct Utterance {
    /// The person's try that it belongs to; 0 for a sound that is none.
    nth_try: u64,
    ended_ms: i64,
}

/// The person's tries to be heard.
#[derive(Debug, Default)]
pub(super) struct Unheard {
    waiting: VecDeque<Utterance>,
    tries: u64,
    began_ms: i64,
    ended_ms: Option<i64>,
    /// The latest try that was lost.
    lost_try: u64,
    /// Lost tries in a row.
    lost: u32,
}

impl Unheard {
    /// The person speaks again. A pause of `answer_ms` before it was long enough for an answer.
    pub(super) fn began(&mut self, began_ms: i64, answer_ms: i64) {
        let is_after_pause = self.ended_ms.is_none_or(|ended_ms| began_ms - ended_ms > answer_ms);
        if is_after_pause || self.lost_try == self.tries {
            self.tries += 1;
        }
        self.began_ms = began_ms;
    }

    /// They stopped. `is_awaited`: a result of the transcriber is still to come.
    pub(super) fn ended(&mut self, ended_ms: i64, is_awaited: bool) {
        let is_speech = is_awaited && ended_ms - self.began_ms >= SPEECH_MS_MIN;
        self.waiting.push_back(Utterance { nth_try: if is_speech { self.tries } else { 0 }, ended_ms });
        self.ended_ms = Some(ended_ms);
    }

    /// The oldest utterance has its result; with `all`, so have the others.
    pub(super) fn understood(&mut self, all: bool) {
        self.take(all);
        self.lost = 0;
    }

    /// The oldest utterance was lost; with `all`, so were the others. Returns the failure, which is for good after several
    /// tries, and whether it was speech.
    pub(super) fn lost(&mut self, failure: SpeechFailure, all: bool) -> (SpeechFailure, bool) {
        let nth_try = self.take(all);
        let is_too_often = self.counts(nth_try) && failure.is_temporary;
        (if is_too_often { for_good(&failure) } else { failure }, nth_try > 0)
    }

    /// All that was said so far is understood well enough, even without its results.
    pub(super) fn told(&mut self) {
        self.waiting.iter_mut().for_each(|utterance| utterance.nth_try = 0);
        self.lost = 0;
    }

    /// Time has passed. Returns a failure if a try was lost because no result came in time; for good after several.
    pub(super) fn tick(&mut self, now_ms: i64) -> Option<SpeechFailure> {
        let late = self.first_in_time().filter(|first| now_ms >= first.ended_ms + LATE_MS)?.nth_try;
        let failure = SpeechFailure {
            message: format!("The transcriber did not answer within {} s", LATE_MS / 1_000),
            fault: SpeechFault::Provider,
            is_temporary: true,
        };
        Some(if self.counts(late) { for_good(&failure) } else { failure })
    }

    /// When [`tick`](Self::tick) is due.
    pub(super) fn due(&self) -> Option<i64> {
        self.first_in_time().map(|first| first.ended_ms + LATE_MS)
    }

    /// The oldest utterance of a try that is not lost.
    fn first_in_time(&self) -> Option<&Utterance> {
        self.waiting.iter().find(|utterance| utterance.nth_try > self.lost_try)
    }

    /// The latest try among the utterances that have ended with the oldest one.
    fn take(&mut self, all: bool) -> u64 {
        let count = if all { self.waiting.len() } else { self.waiting.len().min(1) };
        self.waiting.drain(..count).map(|utterance| utterance.nth_try).max().unwrap_or(0)
    }

    /// Counts a lost try, once, with all that was said before the person is asked to say it again. Returns whether there are
    /// too many.
    fn counts(&mut self, nth_try: u64) -> bool {
        if nth_try <= self.lost_try {
            return false;
        }
        self.lost_try = self.tries;
        self.lost += 1;
        self.lost >= LOST_MAX
    }
}

/// The failure after which a call ends, with what its operator can do.
fn for_good(failure: &SpeechFailure) -> SpeechFailure {
    let advice = "Nothing of what the caller said could be understood, twice in a row: check the transcriber's provider and \
                  its address, or choose another transcriber";
    SpeechFailure {
        message: format!("{}. {advice}", failure.message),
        is_temporary: false,
        ..failure.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER_MS: i64 = 3_000;

    fn failure() -> SpeechFailure {
        SpeechFailure { message: "It failed".into(), fault: SpeechFault::Provider, is_temporary: true }
    }

    fn lose(unheard: &mut Unheard, failure: SpeechFailure, all: bool) -> SpeechFailure {
        unheard.lost(failure, all).0
    }

    /// Somebody speaks from then to then.
    fn speaks(unheard: &mut Unheard, from_ms: i64, to_ms: i64) {
        unheard.began(from_ms, ANSWER_MS);
        unheard.ended(to_ms, true);
    }

    #[test]
    fn the_second_lost_try_in_a_row_is_the_last() {
        let mut unheard = Unheard::default();
        speaks(&mut unheard, 0, 1_000);
        assert!(lose(&mut unheard, failure(), false).is_temporary);
        speaks(&mut unheard, 2_000, 3_000);
        unheard.understood(false);
        speaks(&mut unheard, 10_000, 11_000);
        assert!(lose(&mut unheard, failure(), false).is_temporary, "the transcriber had recovered");
        speaks(&mut unheard, 12_000, 13_000);
        let last = lose(&mut unheard, failure(), false);
        assert!(!last.is_temporary && last.message.contains("choose another transcriber"), "{last:?}");
    }

    #[test]
    fn a_sentence_with_pauses_is_one_try() {
        let mut unheard = Unheard::default();
        for from_ms in [0, 1_500, 3_000] {
            speaks(&mut unheard, from_ms, from_ms + 1_000);
        }
        for _ in 0..3 {
            assert!(lose(&mut unheard, failure(), false).is_temporary);
        }
        speaks(&mut unheard, 5_000, 6_000);
        assert!(
            !lose(&mut unheard, failure(), false).is_temporary,
            "it began after the first was known to be lost"
        );
    }

    #[test]
    fn coughs_and_speech_that_was_understood_already_do_not_count() {
        let mut unheard = Unheard::default();
        for at_ms in [0, 10_000, 20_000] {
            speaks(&mut unheard, at_ms, at_ms + 150);
            let (failure, was_speech) = unheard.lost(failure(), false);
            assert!(failure.is_temporary && !was_speech);
            unheard.began(at_ms + 5_000, ANSWER_MS);
            unheard.ended(at_ms + 6_000, false);
        }
        assert_eq!((unheard.due(), unheard.tick(i64::MAX)), (None, None));
    }

    #[test]
    fn a_transcriber_that_hangs_has_lost_what_was_said() {
        let mut unheard = Unheard::default();
        speaks(&mut unheard, 0, 1_000);
        speaks(&mut unheard, 6_000, 7_000);
        assert_eq!(unheard.due(), Some(1_000 + LATE_MS));
        assert!(unheard.tick(1_000 + LATE_MS).unwrap().is_temporary, "once may be chance");
        assert_eq!(unheard.due(), None, "the person is asked again only now");
        assert!(lose(&mut unheard, failure(), true).is_temporary, "counted once");
        speaks(&mut unheard, 16_000, 17_000);
        let failed = unheard.tick(17_000 + LATE_MS).unwrap();
        assert!(!failed.is_temporary && failed.fault == SpeechFault::Provider, "{failed:?}");
        assert!(failed.message.starts_with("The transcriber did not answer within 12 s. "), "{failed:?}");
    }

    #[test]
    fn a_late_result_is_one() {
        let mut unheard = Unheard::default();
        for at_ms in [0, 20_000, 40_000] {
            speaks(&mut unheard, at_ms, at_ms + 1_000);
            assert!(unheard.tick(at_ms + 1_000 + LATE_MS).unwrap().is_temporary);
            unheard.understood(false);
        }
        speaks(&mut unheard, 60_000, 61_000);
        assert!(unheard.tick(61_000 + LATE_MS).unwrap().is_temporary);
        assert!(lose(&mut unheard, failure(), true).is_temporary, "counted once");
    }
}
