use super::packet::{self, HEAD, Header, PACKET_BYTES_MAX};
use super::preamble::{Found, Preamble, Search};
use super::spectrum::{STEP, STEP_MS, STEPS_PER_SYMBOL, STEPS_PER_WINDOW, Spectrum};
use crate::speech::audio::{FRAME_MS, Rate};

/// An utterance ends early after this many steps without tones: 400 ms, the longest delay of a line that is tolerated.
const QUIET_STEPS: u64 = 200;
/// An utterance ends early this many steps after its last preamble, whatever follows: three of the longest packets, so that
/// one may be lost and the line may be late.
const PACKET_STEPS: u64 = 3 * STEPS_PER_SYMBOL * (Preamble::SYMBOLS + PACKET_BYTES_MAX) as u64;
/// From the start of a preamble to the end of the window of its last symbol.
const PREAMBLE_STEPS: u64 = STEPS_PER_SYMBOL * (Preamble::SYMBOLS as u64 - 1) + WINDOW_STEPS;
/// From the start of a symbol to the end of its window, which is centred in the symbol.
const WINDOW_STEPS: u64 = STEPS_PER_WINDOW as u64 + (STEPS_PER_SYMBOL - STEPS_PER_WINDOW as u64) / 2;
/// Steps for which a window stays tonal after the tones have ended.
const TONAL_STEPS: u64 = 3;

/// An event of [`ToneDecoder`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToneHeard {
    /// An utterance started about 80 ms ago.
    Began,
    /// The utterance ended.
    Said {
        /// The text, with `…` for lost packets.
        text: String,
        /// Duration in whole frames.
        duration_ms: i64,
    },
    /// The utterance ended early, or no packet of it could be decoded.
    Garbled {
        /// Duration in whole frames, up to the last tones.
        duration_ms: i64,
    },
}

/// The transcriber of `builtin/tone`: decodes the audio of [`super::ToneEncoder`]. It accepts unlimited audio in bounded
/// memory: the last 16 ms, one packet, and the text of one utterance.
#[derive(Debug, Clone)]
pub struct ToneDecoder {
    decimator: Decimator,
    samples: [i16; STEP],
    sample_count: usize,
    spectrum: Spectrum,
    search: Search,
    /// Number of processed steps.
    step: u64,
    packet: Option<Packet>,
    utterance: Option<Utterance>,
}

/// A packet during reception.
#[derive(Debug, Clone)]
struct Packet {
    preamble: Preamble,
    /// The step at which its preamble started.
    began: u64,
    /// The step at which the window of its next symbol ends.
    next: u64,
    bytes: Vec<u8>,
    header: Option<Header>,
}

/// An utterance during reception.
#[derive(Debug, Clone)]
struct Utterance {
    /// The step at which it started.
    began: u64,
    /// The last step known to have tones; excludes the last [`PREAMBLE_STEPS`], which may belong to another utterance.
    last_tone: u64,
    /// Which of the last 64 steps were tonal; the lowest bit is the last step.
    tonal: u64,
    /// The step of the last preamble.
    preamble_heard: u64,
    /// The tag of its packets and what marks those after the first, once known.
    tag: Option<(u8, u32)>,
    /// The number of the next packet.
    next: u16,
    /// The decoded text.
    text: String,
    is_understood: bool,
}

impl ToneDecoder {
    /// A decoder for audio at this rate.
    #[must_use]
    pub const fn new(rate: Rate) -> Self {
        Self {
            decimator: Decimator::new(rate),
            samples: [0; STEP],
            sample_count: 0,
            spectrum: Spectrum::new(),
            search: Search::new(),
            step: 0,
            packet: None,
            utterance: None,
        }
    }

    /// Processes audio of any length and returns the events in it, in order.
    pub fn hear(&mut self, samples: &[i16]) -> Vec<ToneHeard> {
        let mut heard = Vec::new();
        for sample in samples {
            let Some(sample) = self.decimator.push(*sample) else { continue };
            if let Some(place) = self.samples.get_mut(self.sample_count) {
                *place = sample;
            }
            self.sample_count += 1;
            if self.sample_count == STEP {
                self.sample_count = 0;
                self.step += 1;
                self.spectrum.push(&self.samples);
                self.evaluate(&mut heard);
            }
        }
        heard
    }

    /// Evaluates the current step.
    fn evaluate(&mut self, heard: &mut Vec<ToneHeard>) {
        match self.search.step(self.step, &self.spectrum) {
            Some(Found::Certain(preamble)) => self.preamble_begins(preamble, heard),
            Some(Found::Placed(preamble, at)) => self.packet_begins(preamble, at),
            None => {}
        }
        if self.packet.as_ref().is_some_and(|packet| packet.next == self.step) {
            self.read_symbol(heard);
        }
        self.watch(heard);
    }

    /// A preamble is detected, which ends whatever was being received.
    fn preamble_begins(&mut self, preamble: Preamble, heard: &mut Vec<ToneHeard>) {
        self.packet = None;
        let began = self.step.saturating_sub(PREAMBLE_STEPS);
        if preamble == Preamble::Opening {
            self.abort(heard);
        }
        match &mut self.utterance {
            Some(utterance) => utterance.preamble_heard = self.step,
            None => self.begin(began, heard),
        }
    }

    /// A preamble is aligned: starts receiving its packet.
    fn packet_begins(&mut self, preamble: Preamble, at: u64) {
        let began = at.saturating_sub(PREAMBLE_STEPS);
        if let Some(utterance) = &mut self.utterance
            && utterance.tag.is_none()
            && utterance.began.abs_diff(began) < STEPS_PER_SYMBOL
        {
            utterance.began = began;
        }
        let bytes = Vec::with_capacity(PACKET_BYTES_MAX);
        self.packet = Some(Packet { preamble, began, next: at + STEPS_PER_SYMBOL, bytes, header: None });
    }

    /// Decodes the next symbol of the packet.
    fn read_symbol(&mut self, heard: &mut Vec<ToneHeard>) {
        let Some(packet) = &mut self.packet else { return };
        packet.bytes.push(self.spectrum.byte());
        packet.next += STEPS_PER_SYMBOL;
        if packet.bytes.len() == HEAD {
            packet.header = Header::parse(&packet.bytes)
                .filter(|header| (header.number == 0) == (packet.preamble == Preamble::Opening));
            if packet.header.is_none() {
                self.packet = None;
                return;
            }
        }
        if packet.header.is_some_and(|header| header.packet_bytes() == packet.bytes.len())
            && let Some(packet) = self.packet.take()
        {
            self.read_packet(&packet, heard);
        }
    }

    /// Processes a complete packet.
    fn read_packet(&mut self, packet: &Packet, heard: &mut Vec<ToneHeard>) {
        let Some(header) = packet.header else { return };
        let text = packet::text(&packet.bytes);
        let is_of_another = |utterance: &Utterance| utterance.tag.is_some_and(|(tag, _)| tag != header.tag);
        if self.utterance.as_ref().is_some_and(is_of_another) {
            if text.is_none() {
                return;
            }
            // The start of another utterance was missed.
            self.abort(heard);
            self.begin(packet.began, heard);
        }
        let Some(utterance) = &mut self.utterance else { return };
        // With the same tag and another mark, the packet is damaged or another speaker's: for this utterance it is lost.
        if let Some((text, mark)) = text
            && utterance.tag.is_none_or(|(_, known)| known == mark)
        {
            // Tones last until the end of the symbol, beyond its window.
            utterance.last_tone = self.step + STEPS_PER_SYMBOL - WINDOW_STEPS;
            utterance.tag = Some((header.tag, mark));
            utterance.take(header.number, text);
        }
        if header.is_last {
            self.end(header.number, heard);
        }
    }

    /// Detects the early end of the utterance.
    fn watch(&mut self, heard: &mut Vec<ToneHeard>) {
        let Some(utterance) = &mut self.utterance else { return };
        utterance.tonal = utterance.tonal << 1 | u64::from(self.spectrum.is_tonal());
        if utterance.tonal >> PREAMBLE_STEPS & 1 == 1 {
            utterance.tones_at(self.step.saturating_sub(PREAMBLE_STEPS));
        }
        let is_quiet = utterance.tonal == 0 && self.step.saturating_sub(utterance.last_tone) > QUIET_STEPS;
        if is_quiet || self.step - utterance.preamble_heard > PACKET_STEPS {
            self.packet = None;
            self.abort(heard);
        }
    }

    fn begin(&mut self, began: u64, heard: &mut Vec<ToneHeard>) {
        self.utterance = Some(Utterance {
            began,
            last_tone: self.step,
            tonal: 0,
            preamble_heard: self.step,
            tag: None,
            next: 0,
            text: String::new(),
            is_understood: false,
        });
        heard.push(ToneHeard::Began);
    }

    /// Ends the utterance with the packet of this number.
    fn end(&mut self, last: u16, heard: &mut Vec<ToneHeard>) {
        let Some(mut utterance) = self.utterance.take() else { return };
        utterance.skip_to(last + 1);
        if utterance.tonal != 0 {
            utterance.tones_at(self.step.saturating_sub(u64::from(utterance.tonal.trailing_zeros())));
        }
        let duration_ms = utterance.duration_ms();
        heard.push(if utterance.is_understood {
            ToneHeard::Said { text: utterance.text, duration_ms }
        } else {
            ToneHeard::Garbled { duration_ms }
        });
    }

    /// Ends the current utterance, if any, before its last packet.
    fn abort(&mut self, heard: &mut Vec<ToneHeard>) {
        if let Some(utterance) = self.utterance.take() {
            heard.push(ToneHeard::Garbled { duration_ms: utterance.duration_ms() });
        }
    }
}

impl Utterance {
    /// Adds a decoded packet. A repeated packet (lines repeat frames) has no effect.
    fn take(&mut self, number: u16, text: &str) {
        if number >= self.next {
            self.skip_to(number);
            self.next = number + 1;
            self.text.push_str(text);
            self.is_understood = true;
        }
    }

    /// Marks the packets before this one as lost, unless they were decoded.
    fn skip_to(&mut self, number: u16) {
        if number > self.next {
            self.next = number;
            self.text.push('…');
        }
    }

    /// Records that the window ending at this step was tonal.
    fn tones_at(&mut self, step: u64) {
        self.last_tone = self.last_tone.max(step.saturating_sub(TONAL_STEPS));
    }

    /// Duration in whole frames: steps are inexact, and lines lose and repeat frames.
    fn duration_ms(&self) -> i64 {
        let duration_ms = self.last_tone.saturating_sub(self.began) as i64 * STEP_MS;
        (duration_ms + FRAME_MS / 2) / FRAME_MS * FRAME_MS
    }
}

/// Converts audio to 8 kHz: each sample is the mean of its input samples, a sufficient filter for tones below 2.7 kHz.
#[derive(Debug, Clone)]
struct Decimator {
    factor: i32,
    count: i32,
    sum: i32,
}

impl Decimator {
    const fn new(rate: Rate) -> Self {
        Self { factor: (rate.hz() / Rate::Khz8.hz()) as i32, count: 0, sum: 0 }
    }

    fn push(&mut self, sample: i16) -> Option<i16> {
        self.sum += i32::from(sample);
        self.count += 1;
        if self.count < self.factor {
            return None;
        }
        let mean = (self.sum / self.factor) as i16;
        (self.count, self.sum) = (0, 0);
        Some(mean)
    }
}
