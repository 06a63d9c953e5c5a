//! The audio in the body of a response: plain samples, or a WAV file whatever was asked for.
use super::RATE;
use super::lines::Pcm;
use crate::speech::resample::{RATES_HZ, Resampler};

/// So many bytes tell what a body is.
const SNIFF_BYTES: usize = 16;
/// The most bytes before the samples of a WAV file.
const WAV_HEAD_BYTES_MAX: usize = 64 * 1024;

/// Reads a body.
pub(super) struct Container {
    state: State,
    /// Whether the head of the response says that the body is MP3. Some servers say so of everything.
    is_called_mp3: bool,
    pcm: Pcm,
    resampler: Option<Resampler>,
}

#[derive(Debug)]
enum State {
    /// Not known yet; the body so far.
    Start(Vec<u8>),
    /// A WAV file; its head so far.
    WavHead(Vec<u8>),
    /// Samples, so many bytes of them at most.
    Samples(u64),
}

impl Container {
    /// A body with this content type. `Err`: it is no audio that can be read.
    pub(super) fn new(content_type: Option<&str>) -> Result<Self, String> {
        let whole = content_type.unwrap_or_default().to_ascii_lowercase();
        let mut fields = whole.split(';').map(str::trim);
        let name = fields.next().unwrap_or_default();
        let is_text = name.starts_with("text/") || name.ends_with("json") || name.ends_with("xml");
        let coded =
            ["audio/ogg", "audio/opus", "audio/aac", "audio/flac", "audio/x-flac", "audio/webm", "audio/mp4"];
        if is_text || coded.contains(&name) {
            return Err(format!("{name} instead of audio samples"));
        }
        let rate = fields.find_map(|field| field.strip_prefix("rate="));
        let resampler = match rate.map(|rate| rate.trim_matches('"').parse::<u32>()) {
            Some(Ok(hz)) => Some(resampler(hz)?),
            _ => None,
        };
        let is_called_mp3 = ["audio/mpeg", "audio/mp3"].contains(&name);
        Ok(Self { state: State::Start(Vec::new()), is_called_mp3, pcm: Pcm::default(), resampler })
    }

    /// The samples in the next piece of the body.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<Vec<i16>, String> {
        match &mut self.state {
            State::Start(body) => {
                body.extend_from_slice(bytes);
                let body = std::mem::take(body);
                self.start(body, false)
            }
            State::WavHead(head) => {
                head.extend_from_slice(bytes);
                let head = std::mem::take(head);
                self.wav_head(head)
            }
            State::Samples(left) => {
                let here = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= here as u64;
                let samples = self.pcm.samples(bytes.get(..here).unwrap_or_default());
                Ok(match &mut self.resampler {
                    Some(resampler) => resampler.push(&samples),
                    None => samples,
                })
            }
        }
    }

    /// The last samples, at the end of the body.
    pub(super) fn finish(&mut self) -> Result<Vec<i16>, String> {
        let mut samples = match &mut self.state {
            State::Start(body) if !body.is_empty() => {
                let body = std::mem::take(body);
                self.start(body, true)?
            }
            _ => Vec::new(),
        };
        if matches!(self.state, State::WavHead(_)) {
            return Err("a WAV file without samples".to_owned());
        }
        if let Some(resampler) = &mut self.resampler {
            samples.extend(resampler.flush());
        }
        Ok(samples)
    }

    fn start(&mut self, body: Vec<u8>, is_end: bool) -> Result<Vec<i16>, String> {
        let head = body.get(..body.len().min(SNIFF_BYTES)).unwrap_or_default();
        if head.len() < SNIFF_BYTES && !is_end {
            self.state = State::Start(body);
            return Ok(Vec::new());
        }
        if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WAVE".as_slice()) {
            return self.wav_head(body);
        }
        for (magic, name) in [("ID3", "MP3"), ("OggS", "Ogg"), ("fLaC", "FLAC"), ("RIFX", "big-endian WAV")] {
            if head.starts_with(magic.as_bytes()) {
                return Err(format!("{name} instead of audio samples"));
            }
        }
        if head.len() >= 4 && head.iter().all(|byte| (0x20..0x7F).contains(byte) || b"\t\r\n".contains(byte))
        {
            return Err("text instead of audio samples".to_owned());
        }
        match mp3_frame_bytes(head) {
            Some(_) if self.is_called_mp3 => return Err("MP3 instead of audio samples".to_owned()),
            // A loud first sample can look like a frame, but not with the next frame in the right place.
            Some(bytes) => match body.get(bytes..bytes + 4) {
                Some(next) if mp3_frame_bytes(next).is_some() && next.get(1) == head.get(1) => {
                    return Err("MP3 instead of audio samples".to_owned());
                }
                None if !is_end => {
                    self.state = State::Start(body);
                    return Ok(Vec::new());
                }
                _ => {}
            },
            None => {}
        }
        self.state = State::Samples(u64::MAX);
        self.read(&body)
    }

    /// Looks for the samples of a WAV file.
    fn wav_head(&mut self, head: Vec<u8>) -> Result<Vec<i16>, String> {
        let mut at = 12;
        let mut format = None;
        while let (Some(name), Some(size)) = (head.get(at..at + 4), u32_at(&head, at + 4)) {
            let content = at + 8;
            if name == b"data" {
                let (channels, hz, bits) = format.ok_or("a WAV file without a format")?;
                if channels != 1 || bits != 16 {
                    return Err(format!(
                        "WAV with {channels} channels of {bits} bits; it must be mono with 16 bits"
                    ));
                }
                self.resampler = Some(resampler(hz)?);
                // A file that is made while it is sent does not know its size.
                let is_known = size != 0 && size < 0x7FFF_0000;
                self.state = State::Samples(if is_known { u64::from(size) } else { u64::MAX });
                return self.read(head.get(content..).unwrap_or_default());
            }
            if name == b"fmt " {
                let Some(fmt) = head.get(content..content + 16) else { break };
                let (kind, channels) = (u16_at(fmt, 0), u16_at(fmt, 2));
                // 0xFFFE: the kind follows further on; what else it can be does not have 16 bits.
                if !matches!(kind, Some(1 | 0xFFFE)) {
                    return Err("compressed WAV instead of audio samples".to_owned());
                }
                format =
                    channels.zip(u32_at(fmt, 4)).zip(u16_at(fmt, 14)).map(|((c, hz), bits)| (c, hz, bits));
            }
            at = content.saturating_add(size as usize).saturating_add(size as usize % 2);
            if at > WAV_HEAD_BYTES_MAX {
                return Err("a WAV file without samples".to_owned());
            }
        }
        if head.len() > WAV_HEAD_BYTES_MAX {
            return Err("a WAV file without samples".to_owned());
        }
        self.state = State::WavHead(head);
        Ok(Vec::new())
    }
}

fn resampler(hz: u32) -> Result<Resampler, String> {
    match RATES_HZ.contains(&hz) {
        true => Ok(Resampler::new(hz, RATE.hz())),
        false => Err(format!("audio of {hz} samples per second, which cannot be converted")),
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

/// The length of the MPEG audio frame (layer III) whose header this is.
fn mp3_frame_bytes(header: &[u8]) -> Option<usize> {
    let [sync, kind, rates, ..] = *header else { return None };
    // Eleven bits of synchronisation, the version, layer III.
    if sync != 0xFF || kind & 0xE6 != 0xE2 {
        return None;
    }
    let version = (kind >> 3) & 3;
    let (bitrate, rate) = (usize::from(rates >> 4), usize::from((rates >> 2) & 3));
    let kbps = match version {
        3 => [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0],
        _ => [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0],
    };
    let (kbps, hz) = (*kbps.get(bitrate)?, *[44_100, 48_000, 32_000].get(rate)?);
    let (factor, hz) = match version {
        3 => (144_000, hz),
        2 => (72_000, hz / 2),
        0 => (72_000, hz / 4),
        _ => return None,
    };
    (kbps > 0).then(|| factor * kbps / hz + usize::from((rates >> 1) & 1))
}

#[cfg(test)]
mod tests;
