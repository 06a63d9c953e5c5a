//! The playback to the person: audio is queued, marks are confirmed after playback, and discarded audio is never played.
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A carrier's playback buffer.
#[derive(Debug)]
pub struct Speaker {
    rate_hz: u32,
    samples_per_s: f64,
    queue: VecDeque<Item>,
    heard: Vec<i16>,
    cleared: Vec<Cleared>,
    /// The time up to which playback has been simulated.
    at: Instant,
    /// The fraction of a sample that is due.
    rest: f64,
}

/// The service discarded unplayed audio.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleared {
    /// Samples played before.
    pub heard_samples: usize,
    /// Samples discarded.
    pub dropped_samples: usize,
    /// Marks that were outstanding.
    pub marks: Vec<String>,
}

#[derive(Debug)]
enum Item {
    Audio(VecDeque<i16>),
    Mark(String),
}

impl Speaker {
    /// Plays at `pace` times real time.
    pub fn new(rate_hz: u32, pace: f64, now: Instant) -> Self {
        let samples_per_s = f64::from(rate_hz) * pace;
        let (queue, heard, cleared) = (VecDeque::new(), Vec::new(), Vec::new());
        Self { rate_hz, samples_per_s, queue, heard, cleared, at: now, rest: 0.0 }
    }

    /// Queues audio.
    pub fn audio(&mut self, samples: Vec<i16>, now: Instant) {
        self.start(now);
        self.queue.push_back(Item::Audio(samples.into()));
    }

    /// Queues a mark.
    pub fn mark(&mut self, name: String, now: Instant) {
        self.start(now);
        self.queue.push_back(Item::Mark(name));
    }

    /// Discards unplayed audio and returns the outstanding marks.
    pub fn clear(&mut self) -> Vec<String> {
        let (mut marks, mut dropped_samples) = (Vec::new(), 0);
        for item in self.queue.drain(..) {
            match item {
                Item::Audio(samples) => dropped_samples += samples.len(),
                Item::Mark(name) => marks.push(name),
            }
        }
        let heard_samples = self.heard.len();
        self.cleared.push(Cleared { heard_samples, dropped_samples, marks: marks.clone() });
        marks
    }

    /// Plays up to now and returns the marks that were passed.
    pub fn play(&mut self, now: Instant) -> Vec<String> {
        let due = now.saturating_duration_since(self.at).as_secs_f64() * self.samples_per_s + self.rest;
        self.at = now;
        let mut samples = due as usize;
        self.rest = due - samples as f64;
        let mut passed = Vec::new();
        while let Some(item) = self.queue.front_mut() {
            match item {
                Item::Mark(_) => {
                    if let Some(Item::Mark(name)) = self.queue.pop_front() {
                        passed.push(name);
                    }
                }
                Item::Audio(audio) => {
                    let played = audio.len().min(samples);
                    self.heard.extend(audio.drain(..played));
                    samples -= played;
                    if !audio.is_empty() {
                        return passed;
                    }
                    self.queue.pop_front();
                }
            }
        }
        passed
    }

    /// The played audio, without pauses.
    pub fn heard(&self) -> &[i16] {
        &self.heard
    }

    /// The discards so far.
    pub fn cleared(&self) -> &[Cleared] {
        &self.cleared
    }

    /// Whether the queue is empty.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Duration of the queued audio in real time.
    pub fn waiting(&self) -> Duration {
        let length = |item: &Item| if let Item::Audio(audio) = item { audio.len() } else { 0 };
        let samples: usize = self.queue.iter().map(length).sum();
        Duration::from_secs_f64(samples as f64 / f64::from(self.rate_hz))
    }

    /// Skips time during which the queue was empty.
    fn start(&mut self, now: Instant) {
        if self.queue.is_empty() {
            (self.at, self.rest) = (now, 0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(start: Instant, ms: u64) -> Instant {
        start + Duration::from_millis(ms)
    }

    #[test]
    fn a_mark_is_confirmed_when_the_audio_before_it_was_played() {
        let start = Instant::now();
        let mut speaker = Speaker::new(8_000, 1.0, start);
        speaker.mark("early".to_owned(), start);
        speaker.audio(vec![1; 320], start);
        speaker.mark("late".to_owned(), start);
        assert_eq!(speaker.play(start), ["early"]);
        assert!(speaker.play(after(start, 39)).is_empty());
        assert_eq!(speaker.heard().len(), 312);
        assert_eq!(speaker.play(after(start, 40)), ["late"]);
        assert_eq!(speaker.heard().len(), 320);
        assert!(speaker.is_idle());
    }

    #[test]
    fn time_without_audio_is_not_caught_up() {
        let start = Instant::now();
        let mut speaker = Speaker::new(8_000, 1.0, start);
        speaker.audio(vec![1; 160], after(start, 1_000));
        speaker.play(after(start, 1_010));
        assert_eq!(speaker.heard().len(), 80);
        assert_eq!(speaker.waiting(), Duration::from_millis(10));
    }

    #[test]
    fn cleared_audio_is_never_heard() {
        let start = Instant::now();
        let mut speaker = Speaker::new(8_000, 2.0, start);
        speaker.audio(vec![1; 320], start);
        speaker.mark("m".to_owned(), start);
        speaker.play(after(start, 10));
        assert_eq!(speaker.clear(), ["m"]);
        speaker.play(after(start, 100));
        assert_eq!(speaker.heard().len(), 160, "twice as fast");
        let marks = vec!["m".to_owned()];
        assert_eq!(speaker.cleared(), [Cleared { heard_samples: 160, dropped_samples: 160, marks }]);
    }
}
