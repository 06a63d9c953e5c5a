//! Records a conversation: both channels on one clock, cut into segments while it runs. A pure state machine.
//!
//! The rate is the line's: nothing is gained by another one, and no audio is converted.
use super::audio::Rate;
use super::player::HeardFrame;

/// Bytes of a frame: one sample of each channel.
pub const FRAME_BYTES: u64 = 4;
/// How late audio may be known: a segment is cut this long after its end, so a crash loses no more than both.
const LATE_MS: i64 = 1_000;
/// Audio of the caller may arrive this much later than its predecessor's end. Short, because the silence of a longer delay
/// is taken back when the audio follows.
const JITTER_MS: i64 = 40;
/// Audio of the caller may arrive this much earlier than it was spoken.
const EARLY_MS: i64 = 100;
/// A gap begins with the latest audio, once more and fading out over this time: a hard edge would be heard as a click.
const FADE_MS: i64 = 40;
/// Audio further ahead of the last cut is not kept, so that memory is bounded.
const BUFFERED_MS_MAX: i64 = 60_000;

/// A part of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The rate.
    pub rate: Rate,
    /// Pairs of samples: the caller's and the assistant's.
    pub frames: Vec<[i16; 2]>,
    /// The caller's audio that was missing up to now, replaced by silence.
    pub missing_ms: i64,
}

impl Segment {
    /// The samples as they are stored: little-endian.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.frames.iter().flatten().flat_map(|sample| sample.to_le_bytes()).collect()
    }
}

/// Silence that stands for audio that did not arrive, in samples of the caller's channel.
#[derive(Debug, Clone, Copy)]
struct Gap {
    from: usize,
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
/// recorder.hear(1_020, &[7; 160]);
/// recorder.hear(1_040, &[7; 160]);
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
    gap: Option<Gap>,
    has_heard: bool,
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
            gap: None,
            has_heard: false,
            missing_samples: 0,
        }
    }

    /// The recording begins: offset 0 of the transcript. It is cut into segments of this duration.
    pub fn begin(&mut self, now_ms: i64, segment_ms: i64) {
        self.segment_ms = segment_ms.max(1);
        self.from_ms.get_or_insert(now_ms);
    }

    /// Takes audio of the caller that has just arrived.
    pub fn hear(&mut self, now_ms: i64, samples: &[i16]) {
        let Some(end) = self.place(now_ms) else { return };
        let start = end - samples.len() as i64;
        let late = start - self.caller.len() as i64;
        if late > self.samples(JITTER_MS) {
            let gap = Gap { from: self.caller.len(), samples: usize::try_from(late).unwrap_or(0) };
            if self.has_heard {
                self.fade_out(gap.samples);
                self.missing_samples += gap.samples;
                self.gap = Some(gap);
            }
            self.caller.resize(gap.from + gap.samples, 0);
        }
        self.has_heard = true;
        // What arrived before the recording began is not part of it.
        let skipped = if self.caller.is_empty() { usize::try_from(-start).unwrap_or(0) } else { 0 };
        self.caller.extend(samples.get(skipped..).unwrap_or_default());
        self.close_gap(end);
    }

    /// So many samples of the caller should have just arrived, and are lost.
    pub fn lose(&mut self, now_ms: i64, samples: usize) {
        self.hear(now_ms, &vec![0; samples]);
        self.missing_samples += samples;
    }

    /// Takes audio that was played, in order.
    pub fn played(&mut self, frame: &HeardFrame) {
        let Some(end) = self.place(frame.until_ms) else { return };
        let start = end - frame.samples.len() as i64;
        if start > self.assistant.len() as i64 {
            self.assistant.resize(usize::try_from(start).unwrap_or(0), 0);
        }
        let skipped = if self.assistant.is_empty() { usize::try_from(-start).unwrap_or(0) } else { 0 };
        self.assistant.extend(frame.samples.get(skipped..).unwrap_or_default());
    }

    /// The next segment that is complete at `now_ms`.
    pub fn take_segment(&mut self, now_ms: i64) -> Option<Segment> {
        let from_ms = self.from_ms?;
        (now_ms >= from_ms + self.segment_ms + LATE_MS).then(|| self.cut(from_ms, self.segment_ms))
    }

    /// The rest, up to the end of the conversation; call it until it returns nothing.
    pub fn finish(&mut self, ended_at_ms: i64) -> Option<Segment> {
        let from_ms = self.from_ms?;
        let left_ms = (ended_at_ms - from_ms).min(self.segment_ms);
        (left_ms > 0).then(|| self.cut(from_ms, left_ms))
    }

    /// The sample at a time, if it is recorded.
    fn place(&self, at_ms: i64) -> Option<i64> {
        let passed_ms = at_ms - self.from_ms?;
        (0 < passed_ms && passed_ms <= BUFFERED_MS_MAX).then(|| self.samples(passed_ms))
    }

    /// Adds the latest audio once more, fading out, but no more than `most` samples.
    fn fade_out(&mut self, most: usize) {
        let fade = usize::try_from(self.samples(FADE_MS)).unwrap_or(0).min(most).min(self.caller.len());
        let from = self.caller.len() - fade;
        for n in 0..fade {
            let sample = i64::from(self.caller.get(from + n).copied().unwrap_or(0));
            let faded = sample * (fade - n) as i64 / fade as i64;
            self.caller.push(i16::try_from(faded).unwrap_or(0));
        }
    }

    /// Delayed audio arrives faster than it is spoken: it takes the place of the silence that was put there for it.
    fn close_gap(&mut self, end: i64) {
        let ahead = usize::try_from(self.caller.len() as i64 - end).unwrap_or(0);
        if let Some(gap) = &mut self.gap {
            // The clock may have been set back, and the audio with it.
            let from = gap.from.min(self.caller.len());
            let closed = ahead.min(gap.samples).min(self.caller.len() - from);
            self.caller.drain(from..from + closed);
            gap.samples -= closed;
            self.missing_samples -= closed.min(self.missing_samples);
        }
        let latest = usize::try_from(end + self.samples(EARLY_MS)).unwrap_or(0);
        self.caller.truncate(latest);
    }

    fn cut(&mut self, from_ms: i64, ms: i64) -> Segment {
        let samples = usize::try_from(self.samples(ms)).unwrap_or(0);
        let take = |channel: &mut Vec<i16>| {
            let rest = channel.split_off(samples.min(channel.len()));
            let mut taken = std::mem::replace(channel, rest);
            taken.resize(samples, 0);
            taken
        };
        let (caller, assistant) = (take(&mut self.caller), take(&mut self.assistant));
        self.from_ms = Some(from_ms + ms);
        self.gap = self.gap.and_then(|gap| {
            let until = (gap.from + gap.samples).checked_sub(samples)?;
            let from = gap.from.saturating_sub(samples);
            Some(Gap { from, samples: until - from })
        });
        Segment {
            rate: self.rate,
            frames: caller.into_iter().zip(assistant).map(<[i16; 2]>::from).collect(),
            missing_ms: self.rate.ms_of(self.missing_samples),
        }
    }

    /// All rates have whole samples per millisecond.
    const fn samples(&self, ms: i64) -> i64 {
        ms * (self.rate.hz() / 1_000) as i64
    }
}

#[cfg(test)]
mod tests;
