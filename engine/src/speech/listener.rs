//! What the person on a line says: joins voice activity, a transcriber, and the decision when a turn ends.
mod closing;
mod gaps;
mod late;
mod stalled;
mod unheard;
mod words;

use std::collections::VecDeque;

use super::arrival_clock::STARTS_MS;
use super::audio::Rate;
use super::end_of_turn::{Patience, TurnSoFar, turn_ends_at_ms};
use super::exchange::{Arrival, ExchangeId, SpeechFailure, Transmit};
use super::resample::Resampler;
use super::transcriber::{Transcriber, TranscriberEvent};
use super::voice_activity::{VoiceActivity, VoiceEvent};
use gaps::Gaps;
use late::LateUtterance;
use unheard::Unheard;
use words::{count_words, join, untold};

/// This much voice is somebody who wants to speak; less may be a cough.
pub const WANTS_TO_SPEAK_MS: i64 = 200;
/// After this much silence, and with a transcript, the turn has probably ended.
const PROBABLY_ENDED_MS: i64 = 250;

/// What was heard, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// Somebody speaks, whatever it is.
    VoiceBegan,
    /// Nobody speaks any more.
    VoiceEnded,
    /// The words of the turn so far; never empty.
    Words(String),
    /// The turn had no words: a cough, noise, music.
    NoWords,
    /// The turn has no words because the transcriber lost what was said.
    NotUnderstood,
    /// The turn has probably ended, with these words.
    ProbablySaid(String),
    /// The person went on after [`Heard::ProbablySaid`].
    WentOn,
    /// The turn has ended.
    Said {
        /// Its words; never empty.
        text: String,
        /// From the first voice to the last.
        duration_ms: i64,
        /// When the last voice was.
        until_ms: i64,
    },
    /// Words that belong to a turn that is over: its transcriber told them late.
    SaidLate {
        /// The words that were not told with it; never empty.
        text: String,
        /// When the last voice of the turn was.
        until_ms: i64,
    },
    /// Speech was lost; for good if the failure is not temporary.
    Failed(SpeechFailure),
}

/// A turn of the person that has not ended.
#[derive(Debug)]
struct Turn {
    began_ms: i64,
    voiced_until_ms: i64,
    /// Whether the person is speaking at present.
    is_voiced: bool,
    /// Whether [`Heard::VoiceBegan`] was reported for the present voice.
    is_announced: bool,
    /// The words that are final.
    words: String,
    /// The words after them that are not.
    partial: String,
    /// Whether [`Heard::ProbablySaid`] was reported and not taken back.
    is_probably_over: bool,
    /// When its first speech ended.
    first_ended_ms: Option<i64>,
    /// When the transcriber last told words of it.
    told_ms: Option<i64>,
    /// Whether the transcriber lost something that the person said in it.
    has_lost: bool,
    /// Whether its words are awaited no more.
    is_given_up: bool,
}

impl Turn {
    const fn new(began_ms: i64) -> Self {
        Self {
            began_ms,
            voiced_until_ms: began_ms,
            is_voiced: false,
            is_announced: false,
            words: String::new(),
            partial: String::new(),
            is_probably_over: false,
            first_ended_ms: None,
            told_ms: None,
            has_lost: false,
            is_given_up: false,
        }
    }

    fn text(&self) -> String {
        let mut text = self.words.clone();
        join(&mut text, &self.partial);
        text
    }

    /// What was heard, now that it is over.
    fn over(self) -> Heard {
        let (text, until_ms) = (self.text(), self.voiced_until_ms);
        match text.is_empty() {
            true if self.has_lost => Heard::NotUnderstood,
            true => Heard::NoWords,
            false => Heard::Said { text, duration_ms: until_ms - self.began_ms, until_ms },
        }
    }
}

/// Listens to one person. After each call, drain [`poll_transmit`](Self::poll_transmit) and [`poll_heard`](Self::poll_heard),
/// then wait no longer than [`poll_timeout`](Self::poll_timeout) and call [`tick`](Self::tick).
pub struct Listener {
    rate: Rate,
    activity: VoiceActivity,
    transcriber: Box<dyn Transcriber>,
    resampler: Resampler,
    patience: Patience,
    language: String,
    /// Samples received so far, and when the last of them was spoken.
    samples: u64,
    spoken_until_ms: i64,
    gaps: Gaps,
    /// When the first audio came.
    opened_ms: Option<i64>,
    turn: Option<Turn>,
    /// Utterances without a result. Those of turns that are over come first.
    pending: usize,
    /// Those of turns that are over.
    late: VecDeque<LateUtterance>,
    /// What was said in turns that are over here, and not for the provider, which detects turns: it tells these words again.
    told: Option<String>,
    /// How much voice there had been when the provider ended a turn in the middle of it.
    ended_in_voice_ms: Option<i64>,
    /// When the last voice of the latest turn that is over was.
    last_until_ms: i64,
    unheard: Unheard,
    /// The call has ended: nothing but results ends the turn.
    is_closed: bool,
    heard: VecDeque<Heard>,
}

impl Listener {
    /// Listens to audio of this rate, in this language (BCP 47; empty if unknown).
    #[must_use]
    pub fn new(rate: Rate, transcriber: Box<dyn Transcriber>, patience: Patience, language: &str) -> Self {
        Self {
            rate,
            activity: VoiceActivity::new(rate),
            resampler: Resampler::new(rate.hz(), transcriber.rate().hz()),
            transcriber,
            patience,
            language: language.to_owned(),
            samples: 0,
            spoken_until_ms: 0,
            gaps: Gaps::default(),
            opened_ms: None,
            turn: None,
            pending: 0,
            late: VecDeque::new(),
            told: None,
            ended_in_voice_ms: None,
            last_until_ms: 0,
            unheard: Unheard::default(),
            is_closed: false,
            heard: VecDeque::new(),
        }
    }

    /// Takes the next audio of the person, of which the last was spoken at `until_ms`.
    pub fn hear(&mut self, now_ms: i64, until_ms: i64, samples: &[i16]) {
        let is_first = self.opened_ms.is_none();
        let opens = now_ms - *self.opened_ms.get_or_insert(now_ms) <= STARTS_MS;
        self.samples += samples.len() as u64;
        let awaited_ms = self.spoken_until_ms + self.rate.ms_of(samples.len());
        let before_ms = std::mem::replace(&mut self.spoken_until_ms, until_ms);
        if !is_first {
            let turn = self.turn.as_mut();
            let times = turn.map(|turn| [&mut turn.began_ms, &mut turn.voiced_until_ms]);
            self.gaps.late(before_ms, until_ms - awaited_ms, opens, times.into_iter().flatten());
        }
        let events = self.activity.hear(samples);
        match self.resampler.passes_through() {
            true => self.transcriber.hear(now_ms, samples),
            false => self.transcriber.hear(now_ms, &self.resampler.push(samples)),
        }
        for event in events {
            match event {
                VoiceEvent::SpeechBegan { at } => self.speech_began(now_ms, at),
                VoiceEvent::SpeechEnded { at } => self.speech_ended(now_ms, at),
            }
        }
        let voiced_ms = self.activity.voiced_ms();
        let voiced_until_ms = self.activity.voiced_until().map(|at| self.end_of(at));
        // The provider was wrong: the person goes on.
        if self.ended_in_voice_ms.is_some_and(|before_ms| voiced_ms - before_ms >= WANTS_TO_SPEAK_MS) {
            self.ended_in_voice_ms = None;
            let began_ms = self.gaps.before(until_ms, WANTS_TO_SPEAK_MS);
            let turn = self.turn.get_or_insert_with(|| Turn::new(began_ms));
            turn.is_voiced = true;
        }
        if let Some(turn) = self.turn.as_mut().filter(|turn| turn.is_voiced) {
            turn.voiced_until_ms = voiced_until_ms.unwrap_or(turn.voiced_until_ms);
            if voiced_ms >= WANTS_TO_SPEAK_MS && !turn.is_announced {
                turn.is_announced = true;
                self.heard.push_back(Heard::VoiceBegan);
            }
        }
        self.understand(now_ms);
    }

    /// Something arrived from the transcriber's provider.
    pub fn arrived(&mut self, now_ms: i64, id: ExchangeId, arrival: Arrival) {
        self.transcriber.arrived(now_ms, id, arrival);
        self.understand(now_ms);
    }

    /// Time has passed.
    pub fn tick(&mut self, now_ms: i64) {
        self.hear_what_is_missing(now_ms);
        self.transcriber.tick(now_ms);
        self.understand(now_ms);
    }

    /// The next thing to transmit.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transcriber.poll_transmit()
    }

    /// What was heard next.
    pub fn poll_heard(&mut self) -> Option<Heard> {
        self.heard.pop_front()
    }

    /// When [`tick`](Self::tick) is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<i64> {
        let own = [
            self.turn_ends_at_ms(),
            self.probably_ends_at_ms(),
            self.stalls_at_ms(),
            self.gives_up_at_ms(),
            self.unheard.due(),
        ];
        self.transcriber.poll_timeout().into_iter().chain(own.into_iter().flatten()).min()
    }

    /// Whether [`Heard::Words`] come while the person speaks.
    #[must_use]
    pub fn has_words_meanwhile(&self) -> bool {
        self.transcriber.has_words_meanwhile()
    }

    /// How long after the end of speech its words are awaited, in ms.
    #[must_use]
    pub fn final_wait_ms(&self) -> i64 {
        self.transcriber.final_wait_ms()
    }

    /// Audio that the provider bills so far, in ms.
    #[must_use]
    pub fn billed_ms(&self) -> i64 {
        self.transcriber.billed_ms()
    }

    fn speech_began(&mut self, now_ms: i64, at: u64) {
        self.transcriber.speech_began(now_ms);
        self.ended_in_voice_ms = None;
        let began_ms = self.time_of(at);
        self.unheard.began(began_ms, self.patience.max_ms);
        let turn = self.turn.get_or_insert_with(|| Turn::new(began_ms));
        turn.is_voiced = true;
        turn.is_announced = false;
        if std::mem::take(&mut turn.is_probably_over) {
            self.heard.push_back(Heard::WentOn);
        }
    }

    fn speech_ended(&mut self, now_ms: i64, at: u64) {
        self.transcriber.speech_ended(now_ms);
        self.ended_in_voice_ms = None;
        self.pending += 1;
        let ended_ms = self.end_of(at);
        // A provider that detects turns may have ended it before.
        self.unheard.ended(ended_ms, self.turn.is_some());
        if let Some(turn) = &mut self.turn {
            turn.is_voiced = false;
            turn.voiced_until_ms = ended_ms;
            if ended_ms - turn.began_ms >= WANTS_TO_SPEAK_MS {
                turn.first_ended_ms.get_or_insert(ended_ms);
            }
            if turn.is_announced {
                self.heard.push_back(Heard::VoiceEnded);
            }
        }
    }

    /// Takes the transcriber's events, and then decides whether the turn is over.
    fn understand(&mut self, now_ms: i64) {
        while let Some(event) = self.transcriber.poll_event() {
            match event {
                TranscriberEvent::Partial(text) => self.partial(now_ms, &text),
                TranscriberEvent::Final(text) => {
                    self.unheard.understood(false);
                    self.finalised(now_ms, &text);
                }
                TranscriberEvent::Late { told, text } => self.told_late(&told, &text),
                TranscriberEvent::LikelyEnd(text) => {
                    let text = untold(self.told.as_ref(), &text);
                    self.probably_over(text);
                }
                TranscriberEvent::Resumed => self.went_on(),
                TranscriberEvent::TurnEnded(text) => self.turn_ended(now_ms, &text),
                TranscriberEvent::Failed(failure) => self.lost(now_ms, failure),
            }
        }
        self.heard.extend(self.unheard.tick(now_ms).map(Heard::Failed));
        if self.gives_up_at_ms().is_some_and(|at_ms| now_ms >= at_ms)
            && let Some(turn) = &mut self.turn
        {
            (turn.has_lost, turn.is_given_up) = (true, true);
        }
        if self.probably_ends_at_ms().is_some_and(|at_ms| now_ms >= at_ms)
            && let Some(text) = self.turn.as_ref().map(Turn::text)
        {
            self.probably_over(&text);
        }
        if self.turn_ends_at_ms().is_some_and(|at_ms| now_ms >= at_ms)
            && let Some(turn) = self.turn.take()
        {
            if self.transcriber.detects_turns() {
                self.pending = 0;
                // Its final words were kept from a turn that was lost: they do not come again.
                if !turn.partial.is_empty() {
                    join(self.told.get_or_insert_default(), &turn.partial);
                }
            } else {
                self.await_late_results(&turn);
            }
            self.last_until_ms = turn.voiced_until_ms;
            if !turn.text().is_empty() {
                self.unheard.told();
            }
            self.heard.push_back(turn.over());
        }
    }

    fn partial(&mut self, now_ms: i64, text: &str) {
        let is_late = !self.late.is_empty();
        if let Some(turn) = self.turn.as_mut().filter(|_| !is_late) {
            turn.told_ms = Some(now_ms);
            turn.partial = untold(self.told.as_ref(), text).trim().to_owned();
            let text = turn.text();
            if !text.is_empty() {
                self.heard.push_back(Heard::Words(text));
            }
        }
    }

    fn finalised(&mut self, now_ms: i64, text: &str) {
        self.pending = self.pending.saturating_sub(1);
        if let Some(late) = self.late.pop_front() {
            return self.finalised_late(&late, text);
        }
        if let Some(turn) = &mut self.turn {
            turn.told_ms = Some(now_ms);
            turn.partial.clear();
            join(&mut turn.words, text);
            if !text.trim().is_empty() {
                self.heard.push_back(Heard::Words(turn.text()));
            }
        }
    }

    /// The oldest utterance without a result was lost; where the provider detects turns, all of them. What was understood
    /// of it before is kept.
    fn lost(&mut self, now_ms: i64, failure: SpeechFailure) {
        let has_lost_all = self.transcriber.detects_turns();
        if has_lost_all {
            self.pending = self.pending.min(1);
            self.late.truncate(self.pending);
            self.told = None;
        }
        let is_late = !self.late.is_empty();
        let kept = self.turn.as_mut().filter(|_| !is_late).map(|turn| std::mem::take(&mut turn.partial));
        let kept = kept.unwrap_or_default();
        self.finalised(now_ms, &kept);
        let failure = match kept.is_empty() {
            true => {
                let (failure, was_speech) = self.unheard.lost(failure, has_lost_all);
                if let Some(turn) = self.turn.as_mut().filter(|_| !is_late) {
                    turn.has_lost |= was_speech;
                }
                failure
            }
            false => {
                self.unheard.understood(has_lost_all);
                failure
            }
        };
        self.heard.push_back(Heard::Failed(failure));
    }

    fn probably_over(&mut self, text: &str) {
        let text = text.trim();
        if let Some(turn) = self.turn.as_mut().filter(|_| !text.is_empty()) {
            turn.is_probably_over = true;
            self.heard.push_back(Heard::ProbablySaid(text.to_owned()));
        }
    }

    fn went_on(&mut self) {
        if let Some(turn) = &mut self.turn
            && std::mem::take(&mut turn.is_probably_over)
        {
            self.heard.push_back(Heard::WentOn);
        }
    }

    /// The provider has decided that the turn is over, with the results of all its utterances.
    fn turn_ended(&mut self, now_ms: i64, text: &str) {
        self.unheard.understood(true);
        self.pending = 0;
        self.late.clear();
        self.ended_in_voice_ms = self.activity.is_speech().then(|| self.activity.voiced_ms());
        let told = self.told.take();
        // Nothing was said since: it is the same, perhaps corrected.
        if self.turn.is_none() && told.as_ref().is_some_and(|told| count_words(told) >= count_words(text)) {
            return;
        }
        let text = untold(told.as_ref(), text);
        if self.turn.as_ref().is_some_and(|turn| turn.is_voiced && turn.is_announced) {
            self.heard.push_back(Heard::VoiceEnded);
        }
        let (began_ms, until_ms) =
            self.turn.take().map_or((now_ms, now_ms), |turn| (turn.began_ms, turn.voiced_until_ms));
        self.heard.push_back(match text.trim() {
            "" => Heard::NoWords,
            text => Heard::Said { text: text.to_owned(), duration_ms: until_ms - began_ms, until_ms },
        });
    }

    /// When the turn ends. Not before there are words, while a result is to come.
    fn turn_ends_at_ms(&self) -> Option<i64> {
        let turn = self.turn.as_ref().filter(|turn| !turn.is_voiced && !self.is_closed)?;
        let is_pending = self.pending > self.late.len();
        let text = turn.text();
        if is_pending && text.is_empty() {
            return turn.is_given_up.then_some(turn.voiced_until_ms);
        }
        // A provider that detects turns decides; this is then only a backstop.
        let awaits_result = is_pending || self.transcriber.detects_turns();
        let so_far = TurnSoFar {
            voiced_until_ms: turn.voiced_until_ms,
            text: &text,
            final_wait_ms: awaits_result
                .then(|| self.transcriber.final_wait_ms().max(self.wait_while_told_ms(turn))),
            language: &self.language,
        };
        Some(turn_ends_at_ms(self.patience, &so_far))
    }

    /// When the turn has probably ended, if that is not reported yet.
    fn probably_ends_at_ms(&self) -> Option<i64> {
        let turn =
            self.turn.as_ref().filter(|turn| !turn.is_voiced && !turn.is_probably_over && !self.is_closed)?;
        let is_complete = self.pending == self.late.len() && !turn.words.is_empty();
        (is_complete && !self.transcriber.detects_turns()).then_some(turn.voiced_until_ms + PROBABLY_ENDED_MS)
    }

    /// The time of the end of what was heard: a gap that follows is none of it.
    fn end_of(&self, at: u64) -> i64 {
        self.gaps.before(self.spoken_until_ms, self.since(at) + 1) + 1
    }

    /// The time of a position in the audio.
    fn time_of(&self, at: u64) -> i64 {
        self.gaps.before(self.spoken_until_ms, self.since(at))
    }

    /// How much audio was heard after a position, in ms.
    fn since(&self, at: u64) -> i64 {
        let since = self.samples.saturating_sub(at).saturating_mul(1_000) / u64::from(self.rate.hz());
        i64::try_from(since).unwrap_or(0)
    }
}

#[cfg(test)]
pub mod scripted;
#[cfg(test)]
mod tests;
