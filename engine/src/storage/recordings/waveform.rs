//! Waveforms: the loudest sample of each tenth of a second, for drawing a recording without reading it.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::Serialize;

use crate::base::ids::CallId;
use crate::base::limits::WAVEFORM_PEAKS_PER_SECOND;
use crate::ports::DatabaseError;
use crate::storage::recordings::CHANNELS;

/// A recording's waveform.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Waveform {
    /// The call.
    pub call_id: CallId,
    /// The duration of the recording.
    pub duration_ms: i64,
    /// The channels, in the recording's order.
    pub channels: Vec<Channel>,
    /// Peaks per second of each channel; the last peak may cover a shorter time.
    pub peaks_per_second: u32,
    /// How much of the caller's audio was lost on the way and is silent here. 0 if that is not known.
    pub missing_ms: i64,
}

/// One channel of a waveform.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "WaveformChannel")]
pub struct Channel {
    /// The speaker: `caller` or `assistant`.
    pub name: &'static str,
    /// The peak level of each interval, from 0 (silence) to 1.
    pub peaks: Vec<f64>,
}

impl Waveform {
    /// As the API returns it.
    pub fn new(call_id: CallId, duration_ms: i64, missing_ms: i64, peaks: &Peaks) -> Self {
        let channels = CHANNELS.into_iter().zip(peaks.channels());
        let channels = channels.map(|(name, peaks)| Channel { name, peaks }).collect();
        Self { call_id, duration_ms, channels, peaks_per_second: WAVEFORM_PEAKS_PER_SECOND, missing_ms }
    }
}

/// Peaks in the stored form: one byte each, channel after channel. The column may have several of them, separated by
/// commas: those of consecutive segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peaks(Vec<u8>);

impl Peaks {
    /// Encodes them for the column.
    pub fn to_text(&self) -> String {
        STANDARD.encode(&self.0)
    }

    /// Decodes the column.
    pub fn from_text(text: &str) -> Result<Self, DatabaseError> {
        let mut channels = [Vec::new(), Vec::new()];
        for segment in text.split(',') {
            let bytes = STANDARD.decode(segment);
            let bytes = bytes.map_err(|error| DatabaseError::Shape(format!("peaks: {error}")))?;
            let (caller, assistant) = bytes.split_at(bytes.len() / 2);
            let [callers, assistants] = &mut channels;
            callers.extend_from_slice(caller);
            assistants.extend_from_slice(assistant);
        }
        Ok(Self(channels.concat()))
    }

    /// The peaks of each channel, from 0 to 1.
    pub fn channels(&self) -> [Vec<f64>; 2] {
        let (caller, assistant) = self.0.split_at(self.0.len() / 2);
        // Three digits are enough for the precision of a byte.
        let level = |peak: &u8| f64::from(u32::from(*peak) * 1000 / 255) / 1000.0;
        [caller, assistant].map(|peaks| peaks.iter().map(level).collect())
    }
}

/// Computes a waveform frame by frame, so that a writer can compute it while it writes the recording.
#[derive(Debug, Clone)]
pub struct Builder {
    frames_per_peak: u32,
    /// Of the incomplete interval.
    frames: u32,
    loudest: [u16; 2],
    peaks: [Vec<u8>; 2],
}

impl Builder {
    /// For a recording with this many frames per second.
    pub fn new(rate_hz: u32) -> Self {
        let frames_per_peak = (rate_hz / WAVEFORM_PEAKS_PER_SECOND).max(1);
        Self { frames_per_peak, frames: 0, loudest: [0; 2], peaks: [Vec::new(), Vec::new()] }
    }

    /// Adds a frame: one sample per channel.
    pub fn push(&mut self, frame: [i16; 2]) {
        for (loudest, sample) in self.loudest.iter_mut().zip(frame) {
            *loudest = (*loudest).max(sample.unsigned_abs());
        }
        self.frames += 1;
        if self.frames == self.frames_per_peak {
            self.close();
        }
    }

    /// The complete waveform.
    pub fn finish(mut self) -> Peaks {
        if self.frames > 0 {
            self.close();
        }
        Peaks(self.peaks.concat())
    }

    fn close(&mut self) {
        for (peaks, loudest) in self.peaks.iter_mut().zip(self.loudest) {
            // −32,768 is one louder than any positive sample.
            let loudest = u32::from(loudest.min(i16::MAX.unsigned_abs()));
            peaks.push((loudest * 255 / u32::from(i16::MAX.unsigned_abs())) as u8);
        }
        self.frames = 0;
        self.loudest = [0; 2];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::Id;
    use serde_json::json;

    fn peaks(rate_hz: u32, frames: impl IntoIterator<Item = [i16; 2]>) -> Peaks {
        let mut builder = Builder::new(rate_hz);
        frames.into_iter().for_each(|frame| builder.push(frame));
        builder.finish()
    }

    #[test]
    fn a_peak_is_the_loudest_sample_of_its_interval() {
        let silence = vec![[0, 0]; 800];
        let mut loud = silence.clone();
        (loud[17], loud[799]) = ([-32_768, 3], [0, 16_384]);
        let made = peaks(8_000, [silence, loud, vec![[0, 32_767]]].concat());
        assert_eq!(made.channels(), [vec![0.0, 1.0, 0.0], vec![0.0, 0.498, 1.0]]);
    }

    #[test]
    fn an_empty_recording_has_no_peaks_and_one_frame_has_one() {
        assert_eq!(peaks(8_000, []).channels(), [Vec::<f64>::new(), vec![]]);
        assert_eq!(peaks(48_000, [[1, -1]]).channels(), [vec![0.0], vec![0.0]]);
    }

    #[test]
    fn stored_peaks_are_read_unchanged() {
        let made = peaks(8_000, (0..80_000).map(|n| [(n % 32_768) as i16, -((n % 977) as i16)]));
        assert_eq!(Peaks::from_text(&made.to_text()).unwrap(), made);
        assert!(Peaks::from_text("no base64!").is_err());
        let waveform = json!(Waveform::new(CallId::from_stored("call_1"), 10_000, 0, &made));
        assert_eq!(waveform["channels"][0]["name"], "caller");
        assert_eq!(waveform["channels"][1]["peaks"].as_array().unwrap().len(), 100);
        assert_eq!(waveform["peaks_per_second"], 10);
    }
}
