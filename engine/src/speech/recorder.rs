//! Records a conversation: both channels on one clock, cut into segments while it runs. A pure state machine.
//!
//! The rate is the line's: nothing is gained by another one, and no audio is converted.
use std::ops::Range;

use super::audio::Rate;
use super::player::HeardFrame;

/// Bytes of a frame: one sample of each channel.
pub const FRAME_BYTES: u64 = 4;
/// How late audio may be known: a segment is cut this long after its end, so a crash loses no more than both.
const LATE_MS: i64 = 1_000;
/// What is missing begins with the latest audio, once more and fading out over this time: a hard edge would be heard as a
/// click.
const FADE_MS: i64 = 40;
/// Older gaps stay.
const GAPS_MAX: usize = 8;
/// Audio further ahead of the last cut is not kept, so that memory is bounded.
const BUFFERED_MS_MAX: i64 = 60_000;

/// A part of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The rate.
    pub rate: Rate,
    /// Pairs of samples: the caller's and the assistant's.
    pub frames: Vec<[i16; 2]>,
    /// The caller's audio that was missing up to now, concealed by a fade to silence.
    pub missing_ms: i64,
}

impl Segment {
    /// The samples as they are stored: little-endian.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.frames.iter().flatten().flat_map(|sample| sample.to_le_bytes()).collect()
    }
}

/// What stands for audio that did not arrive, in samples of the caller's channel.
#[derive(Debug, Clone, Copy)]
struct Gap {
    from: usize,
    samples: usize,
    /// What of it is in segments that were cut: the first of the delayed audio belongs there, too late.
    cut: usize,
}

/// What is put in the place of missing audio, from the last audio that arrived on.
#[derive(Debug, Clone, Copy)]
struct Concealment {
    /// How many samples fade out.
    fade: usize,
    /// How many are there already.
    samples: usize,
}

/// A recording that is being made.
///
/// ```
/// use sidetone_engine::speech::audio::Rate;
/// use sidetone_engine::speech::player::HeardFrame;
/// use sidetone_engine::speech::recorder::Recorder;
///
/// let mut recorder = Recorder::new(Rate::Khz8);
/// recorder.begin(1_000, 5_000);
/// recorder.hear(1_020 * 8, &[7; 160]);
/// recorder.hear(1_040 * 8, &[7; 160]);
/// recorder.played(&HeardFrame { until_ms: 1_020, samples: vec![9; 160] });
/// let end = recorder.finish(1_040).unwrap();
/// assert_eq!(end.frames.len(), 320);
/// assert_eq!((end.frames[0], end.frames[319]), ([7, 9], [7, 0]));
/// ```
#[derive(Debug)]
pub struct Recorder {
    rate: Rate,
    /// Duration of a segment; the last one may be shorter.
    segment_ms: i64,
    /// The time of the first sample that was not cut yet.
    from_ms: Option<i64>,
    caller: Vec<i16>,
    assistant: Vec<i16>,
    /// What delayed audio may still take the place of, the latest last.
    gaps: Vec<Gap>,
    concealment: Option<Concealment>,
    /// The caller's audio that is missing at the end of the segments that were cut.
    cut: usize,
    has_heard: bool,
    /// Nothing was cut yet.
    is_first_segment: bool,
    missing_samples: usize,
}

impl Recorder {
    /// A recording at the line's rate, that has not begun.
    #[must_use]
    pub const fn new(rate: Rate) -> Self {
        Self {
            rate,
            segment_ms: 0,
            from_ms: None,
            caller: Vec::new(),
            assistant: Vec::new(),
            gaps: Vec::new(),
            concealment: None,
            cut: 0,
            has_heard: false,
            is_first_segment: true,
            missing_samples: 0,
        }
    }

    /// The recording begins: offset 0 of the transcript. It is cut into segments of this duration.
    pub fn begin(&mut self, now_ms: i64, segment_ms: i64) {
        self.segment_ms = segment_ms.max(1);
        self.from_ms.get_or_insert(now_ms);
    }

    /// Takes audio of the caller that ended at `until`, by the [`ArrivalClock`](super::arrival_clock::ArrivalClock).
    pub fn hear(&mut self, until: i64, samples: &[i16]) {
        let Some(place) = self.reach(until, samples.len()) else { return };
        self.concealment = None;
        self.caller.extend(samples.get(place).unwrap_or_default());
    }

    /// So many samples of the caller, which would have ended at `until`, are lost.
    pub fn lose(&mut self, until: i64, samples: usize) {
        let Some(place) = self.reach(until, samples) else { return };
        self.conceal(place.len());
        self.missing_samples += samples;
    }

    /// Takes audio that was played, in order.
    pub fn played(&mut self, frame: &HeardFrame) {
        let Some(end) = self.place(self.rate.samples_in(frame.until_ms)) else { return };
        let start = end - frame.samples.len() as i64;
        if start > self.assistant.len() as i64 {
            self.assistant.resize(usize::try_from(start).unwrap_or(0), 0);
        }
        let skipped = if self.assistant.is_empty() { usize::try_from(-start).unwrap_or(0) } else { 0 };
        self.assistant.extend(frame.samples.get(skipped..).unwrap_or_default());
    }

    /// The next segment that is complete at `now_ms`. Of audio that is played from `awaited_ms` on it is not known yet
    /// whether it was: its marks are late.
    pub fn take_segment(&mut self, now_ms: i64, awaited_ms: Option<i64>) -> Option<Segment> {
        let from_ms = self.from_ms?;
        let until_ms = from_ms + self.segment_ms;
        let is_known = awaited_ms.is_none_or(|at_ms| at_ms >= until_ms);
        if !is_known || now_ms < until_ms + LATE_MS {
            return None;
        }
        // Nothing that comes later is part of it.
        let samples = usize::try_from(self.rate.samples_in(self.segment_ms)).unwrap_or(0);
        if self.has_heard {
            let missing = samples.saturating_sub(self.caller.len());
            self.missing_samples += missing;
            self.cut += missing;
        }
        Some(self.cut(from_ms, self.segment_ms))
    }

    /// The rest, up to the end of the conversation; call it until it returns nothing.
    pub fn finish(&mut self, ended_at_ms: i64) -> Option<Segment> {
        let from_ms = self.from_ms?;
        let left_ms = (ended_at_ms - from_ms).min(self.segment_ms);
        (left_ms > 0).then(|| self.cut(from_ms, left_ms))
    }

    /// The place of a time, if it is recorded.
    fn place(&self, at: i64) -> Option<i64> {
        let passed = at - self.rate.samples_in(self.from_ms?);
        (0 < passed && passed <= self.rate.samples_in(BUFFERED_MS_MAX)).then_some(passed)
    }

    /// Makes the caller's channel end where so many samples begin that end at `until`. Returns which of them belong to it.
    fn reach(&mut self, until: i64, samples: usize) -> Option<Range<usize>> {
        let end = self.place(until)?;
        let start = end - samples as i64;
        let late = usize::try_from(start - self.caller.len() as i64).unwrap_or(0);
        if self.has_heard && late + self.cut > 0 {
            if self.gaps.len() == GAPS_MAX {
                self.gaps.remove(0);
            }
            self.gaps.push(Gap {
                from: self.caller.len(),
                samples: late,
                cut: std::mem::take(&mut self.cut),
            });
            self.conceal(late);
            self.missing_samples += late;
        } else {
            self.caller.resize(self.caller.len() + late, 0);
        }
        let early = usize::try_from(self.caller.len() as i64 - start.max(0)).unwrap_or(0);
        let surplus = early - self.close_gap(early);
        self.has_heard = true;
        // What arrived before the recording began is not part of it.
        let skipped = if self.caller.is_empty() { usize::try_from(-start).unwrap_or(0) } else { 0 };
        Some(skipped.min(samples)..samples.saturating_sub(surplus).max(skipped.min(samples)))
    }

    /// Puts something in the place of so many samples that are missing. What follows on it goes on with the same fade.
    fn conceal(&mut self, samples: usize) {
        let longest = usize::try_from(self.rate.samples_in(FADE_MS)).unwrap_or(0);
        let fade = longest.min(self.caller.len());
        let Concealment { fade, samples: before } =
            self.concealment.unwrap_or(Concealment { fade, samples: 0 });
        self.concealment = Some(Concealment { fade, samples: before + samples });
        for n in before..fade.min(before + samples) {
            let again = self.caller.len().checked_sub(fade).and_then(|at| self.caller.get(at));
            let faded = i64::from(again.copied().unwrap_or(0)) * (fade - n) as i64 / fade as i64;
            self.caller.push(i16::try_from(faded).unwrap_or(0));
        }
        let silent = samples - fade.saturating_sub(before).min(samples);
        self.caller.resize(self.caller.len() + silent, 0);
    }

    /// Delayed audio takes the place of what was put there for it. The first of a recording takes the place of silence, and
    /// of what was spoken before it began. Returns how much there was of that.
    fn close_gap(&mut self, early: usize) -> usize {
        let mut left = early;
        let mut take_out = |caller: &mut Vec<i16>, from: usize, most: usize| {
            // The clock may have been set back, and the audio with it.
            let from = from.min(caller.len());
            let part = left.min(most).min(caller.len() - from);
            caller.drain(from..from + part);
            left -= part;
            part
        };
        for gap in self.gaps.iter_mut().rev() {
            let closed = take_out(&mut self.caller, gap.from, gap.samples);
            gap.samples -= closed;
            self.missing_samples -= closed.min(self.missing_samples);
            gap.cut -= take_out(&mut self.caller, gap.from, gap.cut);
        }
        if self.is_first_segment {
            take_out(&mut self.caller, 0, usize::MAX);
        }
        self.gaps.retain(|gap| gap.samples + gap.cut > 0);
        early - left
    }

    fn cut(&mut self, from_ms: i64, ms: i64) -> Segment {
        let samples = usize::try_from(self.rate.samples_in(ms)).unwrap_or(0);
        // The channels keep their memory for the next segment.
        let take = |channel: &mut Vec<i16>| {
            let mut taken: Vec<i16> = channel.drain(..samples.min(channel.len())).collect();
            taken.resize(samples, 0);
            taken
        };
        let (caller, assistant) = (take(&mut self.caller), take(&mut self.assistant));
        self.from_ms = Some(from_ms + ms);
        self.is_first_segment = false;
        self.gaps.retain_mut(|gap| {
            let until = gap.from + gap.samples;
            let cut = samples.saturating_sub(gap.from).min(gap.samples);
            gap.from = gap.from.saturating_sub(samples);
            gap.samples -= cut;
            gap.cut += cut;
            until >= samples
        });
        Segment {
            rate: self.rate,
            frames: caller.into_iter().zip(assistant).map(<[i16; 2]>::from).collect(),
            missing_ms: self.rate.ms_of(self.missing_samples),
        }
    }
}

#[cfg(test)]
mod tests;
