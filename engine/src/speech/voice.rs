//! The audio of one conversation: what the person says, what the assistant speaks, and who gives way. A pure state machine
//! for every kind of line: telephone, browser, simulation.
mod given_texts;
mod giving_way;
mod hearing;
mod keys;
mod last_words;
mod lines_heard;
mod saying;
mod trying_again;
mod words_so_far;

use std::collections::VecDeque;

use given_texts::GivenTexts;
use giving_way::PersonsVoice;
use keys::PressedKeys;
use saying::OpenLine;

use self::words_so_far::WordsSoFar;
use super::arrival_clock::ArrivalClock;
use super::audio::Rate;
use super::exchange::{Arrival, ExchangeId, SpeechFailure, SpeechService, Transmit};
use super::listener::Listener;
use super::player::{HeardFrame, LineProgress, Player, PlayerOutput};
use super::resample::Resampler;
use super::spoken_line::SpokenLine;
use super::synthesizer::{LineId, Synthesizer, SynthesizerEvent};
use super::tone::{ToneDecoder, ToneHeard};
use super::turn_times::TurnClock;

/// How the person is understood.
pub enum Ear {
    /// The tone code.
    Tone(Box<ToneDecoder>),
    /// Speech.
    Speech(Box<Listener>),
}

/// How the assistant speaks.
pub enum Mouth {
    /// The tone code.
    Tone,
    /// Speech.
    Speech(Box<dyn Synthesizer>),
}

/// How the assistant takes turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnTaking {
    /// Whether it can be interrupted.
    pub interruptible: bool,
    /// How many words interrupt it.
    pub interruption_words_min: usize,
    /// The language (BCP 47); empty if unknown.
    pub language: String,
}

impl Default for TurnTaking {
    fn default() -> Self {
        Self { interruptible: true, interruption_words_min: 1, language: String::new() }
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum VoiceEvent {
    /// The person said something.
    Said {
        /// The text.
        text: String,
        /// How long it took.
        duration_ms: i64,
        /// How long ago it ended.
        silence_ms: i64,
    },
    /// The person has probably said this and ended the turn.
    ProbablySaid(String),
    /// The person goes on after [`VoiceEvent::ProbablySaid`].
    WentOn,
    /// The lines being spoken are cut; this much of each was heard, in thousandths.
    Cut(Vec<u32>),
    /// The first of the lines being spoken ended in the middle, because its voice failed. The lines after it are spoken.
    BrokeOff {
        /// The part of it that was heard, in thousandths.
        heard_permille: u32,
    },
    /// The playback of the first of the lines being spoken began.
    LineBegan {
        /// When.
        at_ms: i64,
    },
    /// The person's voice began, whatever it says.
    VoiceBegan,
    /// It ended.
    VoiceEnded,
    /// The playback of the lines being spoken is paused: the person may be talking over them, or their audio is still to come.
    Paused,
    /// It goes on.
    Resumed,
    /// The first of the lines being spoken was played completely.
    Spoken {
        /// When its last audio was heard, if that is known.
        until_ms: Option<i64>,
    },
    /// Keys of [`Voice::press_keys`] were played, or the call is over.
    KeysPressed {
        /// The id of the request.
        id: String,
        /// How many of the characters were played: all of them, unless the call is over.
        pressed: usize,
    },
    /// Sounds without meaning.
    Noise,
    /// The person said something, and the transcriber lost it.
    NotUnderstood,
    /// Speech could not be recognised, or synthesized.
    Failed(SpeechFailure),
}

/// Joins an ear, a mouth and the player between them. After each call, drain [`poll_output`](Self::poll_output),
/// [`poll_transmit`](Self::poll_transmit) and [`poll_event`](Self::poll_event), then wait no longer than
/// [`poll_timeout`](Self::poll_timeout) and call [`tick`](Self::tick).
pub struct Voice {
    rate: Rate,
    /// When the person's audio was spoken.
    arrivals: ArrivalClock,
    ear: Ear,
    mouth: Mouth,
    turn_taking: TurnTaking,
    player: Player,
    /// The lines being spoken, in their order.
    lines: VecDeque<SpokenLine>,
    last_line: LineId,
    given: GivenTexts,
    /// The last line, while its text is not complete.
    open_line: Option<OpenLine>,
    keys: PressedKeys,
    /// The latest line whose playback was reported to have begun.
    line_begun: LineId,
    /// Converts the audio of the line being synthesized.
    resampler: Option<(LineId, Resampler)>,
    person: PersonsVoice,
    /// Whether the first line has nothing to play before its end.
    is_starved: bool,
    /// Lines in a row whose synthesis failed before a sound was made.
    unvoiced_lines: u32,
    /// What was spoken lately, which may come back as echo.
    spoken_text: String,
    turn_clock: TurnClock,
    /// The words of a turn that has not ended, for those who show them.
    words_so_far: WordsSoFar,
    events: VecDeque<VoiceEvent>,
}

impl Voice {
    /// A line of this rate, on which nothing was said. With `is_recorded`, take what was heard with
    /// [`take_heard`](Self::take_heard).
    #[must_use]
    pub fn new(rate: Rate, ear: Ear, mouth: Mouth, turn_taking: TurnTaking, is_recorded: bool) -> Self {
        Self {
            rate,
            arrivals: ArrivalClock::new(rate),
            ear,
            mouth,
            turn_taking,
            player: Player::new(rate, is_recorded),
            lines: VecDeque::new(),
            last_line: 0,
            given: GivenTexts::default(),
            open_line: None,
            keys: PressedKeys::default(),
            line_begun: 0,
            resampler: None,
            person: PersonsVoice::default(),
            is_starved: false,
            unvoiced_lines: 0,
            spoken_text: String::new(),
            turn_clock: TurnClock::default(),
            words_so_far: WordsSoFar::default(),
            events: VecDeque::new(),
        }
    }

    /// The same for a line that returns a mark after each piece of this length.
    #[must_use]
    pub const fn with_marks_every(mut self, ms: i64) -> Self {
        self.player.mark_every(ms);
        self
    }

    /// The tone code in both directions.
    #[must_use]
    pub fn tone(rate: Rate, turn_taking: TurnTaking, is_recorded: bool) -> Self {
        Self::new(rate, Ear::Tone(Box::new(ToneDecoder::new(rate))), Mouth::Tone, turn_taking, is_recorded)
    }

    /// Whether what was heard is kept for [`take_heard`](Self::take_heard).
    #[must_use]
    pub const fn is_recorded(&self) -> bool {
        self.player.is_recorded()
    }

    /// Takes audio of the person. Returns when the last of it was spoken, in samples: see [`ArrivalClock`].
    pub fn hear(&mut self, now_ms: i64, samples: &[i16]) -> i64 {
        let until = self.arrivals.arrived(now_ms, samples.len());
        match &mut self.ear {
            Ear::Tone(decoder) => {
                for heard in decoder.hear(samples) {
                    match heard {
                        ToneHeard::Began => self.interrupt_if_allowed(now_ms),
                        ToneHeard::Said { text, duration_ms } => {
                            self.turn_clock.turn_ended(now_ms, now_ms);
                            self.events.push_back(VoiceEvent::Said { text, duration_ms, silence_ms: 0 });
                        }
                        ToneHeard::Garbled { .. } => self.events.push_back(VoiceEvent::Noise),
                    }
                }
            }
            Ear::Speech(listener) => {
                listener.hear(now_ms, until / self.rate.samples_in(1), samples);
            }
        }
        self.note_playback(now_ms);
        self.understand(now_ms);
        until
    }

    /// The person pressed a key, which interrupts the assistant as speech does.
    pub fn key_pressed(&mut self, now_ms: i64) {
        self.interrupt_if_allowed(now_ms);
    }

    /// Stops speaking: nobody listens. What is said later is said to its end, whatever is heard meanwhile.
    pub fn hush(&mut self, now_ms: i64) {
        self.turn_taking.interruptible = false;
        self.interrupt(now_ms);
    }

    /// The line has returned a mark.
    pub fn played(&mut self, now_ms: i64, mark: u64) {
        self.player.played(now_ms, mark);
        self.synthesized(now_ms);
    }

    /// Something arrived on an exchange.
    pub fn arrived(&mut self, now_ms: i64, service: SpeechService, id: ExchangeId, arrival: Arrival) {
        match (service, &mut self.ear, &mut self.mouth) {
            (SpeechService::Transcriber, Ear::Speech(listener), _) => listener.arrived(now_ms, id, arrival),
            (SpeechService::Synthesizer, _, Mouth::Speech(synthesizer)) => {
                synthesizer.arrived(now_ms, id, arrival)
            }
            _ => {}
        }
        self.synthesized(now_ms);
        self.understand(now_ms);
    }

    /// Time has passed.
    pub fn tick(&mut self, now_ms: i64) {
        if let Ear::Speech(listener) = &mut self.ear {
            listener.tick(now_ms);
        }
        if let Mouth::Speech(synthesizer) = &mut self.mouth {
            synthesizer.tick(now_ms);
        }
        self.player.tick(now_ms);
        if self.person.resume_at_ms.is_some_and(|at_ms| now_ms >= at_ms) {
            self.resume(now_ms);
        }
        self.synthesized(now_ms);
        self.understand(now_ms);
        self.report_spoken(now_ms);
    }

    /// The call ends.
    pub fn close(&mut self, now_ms: i64) {
        if let Ear::Speech(listener) = &mut self.ear {
            listener.close(now_ms);
        }
        if let Mouth::Speech(synthesizer) = &mut self.mouth {
            synthesizer.close(now_ms);
        }
    }

    /// The next output to the line.
    pub fn poll_output(&mut self, now_ms: i64) -> Option<PlayerOutput> {
        self.player.poll_output(now_ms)
    }

    /// The next thing to transmit to a provider.
    pub fn poll_transmit(&mut self) -> Option<(SpeechService, Transmit)> {
        if let Ear::Speech(listener) = &mut self.ear
            && let Some(transmit) = listener.poll_transmit()
        {
            return Some((SpeechService::Transcriber, transmit));
        }
        match &mut self.mouth {
            Mouth::Speech(synthesizer) => {
                synthesizer.poll_transmit().map(|transmit| (SpeechService::Synthesizer, transmit))
            }
            Mouth::Tone => None,
        }
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<VoiceEvent> {
        self.events.pop_front()
    }

    /// Whether an event waits.
    #[must_use]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// When [`tick`](Self::tick) and [`poll_output`](Self::poll_output) are due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<i64> {
        let ear = match &self.ear {
            Ear::Speech(listener) => listener.poll_timeout(),
            Ear::Tone(_) => None,
        };
        let mouth = match &self.mouth {
            Mouth::Speech(synthesizer) => synthesizer.poll_timeout(),
            Mouth::Tone => None,
        };
        let again_at_ms = self.given.held_until_ms();
        [ear, mouth, self.player.poll_timeout(), self.person.resume_at_ms, again_at_ms]
            .into_iter()
            .flatten()
            .min()
    }

    /// Whether the assistant's speech is being played, or waits.
    #[must_use]
    pub fn is_speaking(&self) -> bool {
        !self.lines.is_empty()
    }

    /// How much of each line being spoken was heard by `at_ms`, in thousandths.
    #[must_use]
    pub fn heard_permille(&self, at_ms: i64) -> Vec<u32> {
        permille_of(&self.lines, &self.player.progress(at_ms))
    }

    /// Whether audio of the lines being spoken is still to come, or playback is paused.
    pub fn awaits_audio(&mut self, now_ms: i64) -> bool {
        self.is_speaking() && (self.player.is_paused() || self.player.left_ms(now_ms).is_none())
    }

    /// When all speech will have been played, if the line plays in real time.
    #[must_use]
    pub fn ends_at_ms(&self, now_ms: i64) -> i64 {
        self.player.ends_at_ms(now_ms)
    }

    /// Audio of the assistant that was heard since the last call.
    pub fn take_heard(&mut self, now_ms: i64) -> impl Iterator<Item = HeardFrame> + '_ {
        self.player.take_heard(now_ms)
    }

    /// From when on it is not known whether the assistant's audio was heard.
    #[must_use]
    pub fn awaited_ms(&self) -> Option<i64> {
        self.player.awaited_ms()
    }

    /// What the providers bill so far: audio transcribed in ms, and characters spoken, as
    /// [`billed_chars`](Synthesizer::billed_chars).
    #[must_use]
    pub fn billed(&self) -> (i64, Vec<u64>) {
        let heard_ms = match &self.ear {
            Ear::Speech(listener) => listener.billed_ms(),
            Ear::Tone(_) => 0,
        };
        let spoken_chars = match &self.mouth {
            Mouth::Speech(synthesizer) => synthesizer.billed_chars(),
            Mouth::Tone => Vec::new(),
        };
        (heard_ms, spoken_chars)
    }

    fn interrupt_if_allowed(&mut self, now_ms: i64) {
        if self.turn_taking.interruptible {
            self.interrupt(now_ms);
        }
    }

    /// Cuts what the assistant says.
    fn interrupt(&mut self, now_ms: i64) {
        self.person.resume_at_ms = None;
        self.note_playback(now_ms);
        let progress = self.player.cut(now_ms);
        if self.lines.is_empty() {
            return;
        }
        if let Some(open) = &mut self.open_line {
            open.is_cut = true;
        }
        self.is_starved = false;
        let heard = permille_of(&self.lines, &progress);
        for line in std::mem::take(&mut self.lines) {
            self.given.drop_line(line.id);
            if let Mouth::Speech(synthesizer) = &mut self.mouth {
                let heard_ms = progress.iter().find(|one| one.line == line.id).map_or(0, |one| one.heard_ms);
                synthesizer.heard(line.id, heard_ms);
                synthesizer.cancel(now_ms, line.id);
            }
        }
        self.events.push_back(VoiceEvent::Cut(heard));
    }

    /// Takes what the synthesizer made, after it was given what may be spoken.
    fn synthesized(&mut self, now_ms: i64) {
        self.give_texts(now_ms);
        while let Mouth::Speech(synthesizer) = &mut self.mouth
            && let Some(event) = synthesizer.poll_event()
        {
            match event {
                SynthesizerEvent::Audio { line, samples } => {
                    self.turn_clock.audio_arrived(line, now_ms);
                    let rate = synthesizer.rate();
                    self.audio(line, rate, &samples);
                }
                SynthesizerEvent::Words { line, words } => self.with_line(line, |line| line.add_words(words)),
                SynthesizerEvent::PartEnd { line, text_end } => {
                    self.with_line(line, |line| line.text_ends(text_end));
                }
                SynthesizerEvent::VoiceFailed { failure, .. } => {
                    // Another voice speaks: nobody is left without one, even if this one never recovers.
                    let failure = SpeechFailure { is_temporary: true, ..failure };
                    self.events.push_back(VoiceEvent::Failed(failure));
                }
                SynthesizerEvent::Done { line } => {
                    self.audio_ended(line);
                    self.with_line(line, SpokenLine::complete);
                }
                SynthesizerEvent::Failed { line, failure } => {
                    self.given.drop_line(line);
                    let failure = match self.try_again(now_ms, line, &failure) {
                        true => failure,
                        false => self.line_failed(line, failure),
                    };
                    self.events.push_back(VoiceEvent::Failed(failure));
                }
            }
        }
        self.give_way(now_ms);
        self.report_spoken(now_ms);
        self.note_starved(now_ms);
    }

    fn audio(&mut self, line: LineId, rate: Rate, samples: &[i16]) {
        if !self.lines.iter().any(|known| known.id == line) {
            return;
        }
        let is_new = self.resampler.as_ref().is_none_or(|(id, _)| *id != line);
        if is_new {
            self.resampler = Some((line, Resampler::new(rate.hz(), self.rate.hz())));
            self.player.begin_line(line);
        }
        if let Some((_, resampler)) = &mut self.resampler {
            let samples = resampler.push(samples);
            self.player.add_audio(line, &samples);
        }
        self.unvoiced_lines = 0;
        self.with_line(line, |line| line.add_samples(samples.len(), rate));
    }

    /// All audio of a line has arrived.
    fn audio_ended(&mut self, line: LineId) {
        match self.resampler.take() {
            // A rest of some ms, long after the sound ended, is none.
            Some((id, _)) if id == line && self.is_starved => self.player.drop_partial(),
            Some((id, mut resampler)) if id == line => {
                let rest = resampler.flush();
                self.player.add_audio(line, &rest);
            }
            // A line without audio.
            other => {
                self.resampler = other;
                self.player.begin_line(line);
            }
        }
        self.player.finish_line(line);
    }

    fn with_line(&mut self, id: LineId, change: impl FnOnce(&mut SpokenLine)) {
        if let Some(line) = self.lines.iter_mut().find(|line| line.id == id) {
            change(line);
        }
    }
}

/// How much of each line was heard, in thousandths.
fn permille_of(lines: &VecDeque<SpokenLine>, progress: &[LineProgress]) -> Vec<u32> {
    let of = |line: &SpokenLine| progress.iter().find(|one| one.line == line.id).copied();
    lines.iter().map(|line| line.heard_permille(of(line))).collect()
}

#[cfg(test)]
mod giving_way_tests;
#[cfg(test)]
mod tests;
