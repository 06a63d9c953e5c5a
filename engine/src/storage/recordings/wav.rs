//! Parses a recording: checks its format and computes its waveform.
use std::io::Cursor;

use hound::{SampleFormat, WavReader};

use crate::base::limits::{RECORDING_BYTES_MAX, RECORDING_RATE_HZ_MAX, RECORDING_RATE_HZ_MIN};
use crate::storage::recordings::CHANNELS;
use crate::storage::recordings::waveform::{self, Peaks};

/// The properties of a WAV file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    /// The duration of the file.
    pub duration_ms: i64,
    /// Its waveform.
    pub peaks: Peaks,
}

/// Parses a whole file. `Err` says why it is not a recording that we store.
pub fn measure(file: &[u8]) -> Result<Measured, String> {
    if file.len() > RECORDING_BYTES_MAX {
        return Err(format!("{} bytes are more than {RECORDING_BYTES_MAX}", file.len()));
    }
    let reader = WavReader::new(Cursor::new(file)).map_err(|error| error.to_string())?;
    let spec = reader.spec();
    let right = usize::from(spec.channels) == CHANNELS.len()
        && spec.bits_per_sample == 16
        && spec.sample_format == SampleFormat::Int
        && (RECORDING_RATE_HZ_MIN..=RECORDING_RATE_HZ_MAX).contains(&spec.sample_rate);
    if !right {
        return Err(format!("it is not 16-bit stereo PCM of a common rate: {spec:?}"));
    }
    let frames = i64::from(reader.duration());
    let mut peaks = waveform::Builder::new(spec.sample_rate);
    let mut samples = reader.into_samples::<i16>();
    while let Some(caller) = samples.next() {
        let assistant = samples.next().ok_or("it ends within a frame")?;
        let frame = (caller, assistant);
        let (Ok(caller), Ok(assistant)) = frame else {
            return Err("it is shorter than its head says".to_owned());
        };
        peaks.push([caller, assistant]);
    }
    Ok(Measured { duration_ms: frames * 1000 / i64::from(spec.sample_rate), peaks: peaks.finish() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hound::{WavSpec, WavWriter};

    fn file(spec: WavSpec, frames: u32) -> Vec<u8> {
        let mut file = Cursor::new(Vec::new());
        let mut writer = WavWriter::new(&mut file, spec).unwrap();
        for n in 0..frames * u32::from(spec.channels) {
            writer.write_sample(if n % 2 == 0 { i16::MAX } else { 0 }).unwrap();
        }
        writer.finalize().unwrap();
        file.into_inner()
    }

    const SPEC: WavSpec =
        WavSpec { channels: 2, sample_rate: 8_000, bits_per_sample: 16, sample_format: SampleFormat::Int };

    #[test]
    fn parses_a_recording() {
        let measured = measure(&file(SPEC, 12_000)).unwrap();
        assert_eq!(measured.duration_ms, 1_500);
        assert_eq!(measured.peaks.channels(), [vec![1.0; 15], vec![0.0; 15]]);
        assert_eq!(measure(&file(SPEC, 0)).unwrap().peaks.channels(), [Vec::<f64>::new(), vec![]]);
    }

    #[test]
    fn other_files_are_rejected() {
        for wrong in [
            WavSpec { channels: 1, ..SPEC },
            WavSpec { channels: 3, ..SPEC },
            WavSpec { sample_rate: 1, ..SPEC },
            WavSpec { sample_rate: 192_000, ..SPEC },
            WavSpec { bits_per_sample: 24, ..SPEC },
        ] {
            assert!(measure(&file(wrong, 8)).is_err(), "{wrong:?}");
        }
        let whole = file(SPEC, 100);
        for bytes in 0..whole.len() {
            assert!(measure(&whole[..bytes]).is_err(), "cut off after {bytes} bytes");
        }
        assert!(measure(b"ID3 and so on, no WAV at all").is_err());
    }
}
