//! The transcriber.
use super::packet::{self, HEAD, Header, MOST_BYTES};
use super::preamble::{Found, Preamble, Search};
use super::spectrum::{STEP, STEP_MS, STEPS_A_SYMBOL, STEPS_A_WINDOW, Spectrum};
use crate::speech::audio::{FRAME_MS, Rate};

/// After so many steps in which no tones were heard, an utterance has broken off: 400 ms, which a line that is late
/// may be silent for.
const QUIET_STEPS: u64 = 200;
/// After so many steps since its last preamble, it has broken off whatever is heard: three of the longest packets,
/// of which one may be lost and the line be late.
const PACKET_STEPS: u64 = 3 * STEPS_A_SYMBOL * (Preamble::SYMBOLS + MOST_BYTES) as u64;
/// From the begin of a preamble to the end of the window of its last symbol.
const PREAMBLE_STEPS: u64 = STEPS_A_SYMBOL * (Preamble::SYMBOLS as u64 - 1) + WINDOW_STEPS;
/// From the begin of a symbol to the end of its window, which lies in the middle of it.
const WINDOW_STEPS: u64 = STEPS_A_WINDOW as u64 + (STEPS_A_SYMBOL - STEPS_A_WINDOW as u64) / 2;
/// How many steps a window goes on to be tonal for after the tones have ended.
const TONAL_STEPS: u64 = 3;

/// What [`ToneDecoder`] makes out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToneHeard {
    /// An utterance has begun, about 80 ms ago.
    Began,
    /// The utterance has ended.
    Said {
        /// What was said, with a `…` for what was lost on the way.
        text: String,
        /// How long it was, in whole frames.
        duration_ms: i64,
    },
    /// The utterance broke off, or nothing of it could be understood.
    Garbled {
        /// How long it was, to where it was last heard, in whole frames.
        duration_ms: i64,
    },
}

/// The transcriber of `builtin/tone`: reads from audio what [`super::ToneEncoder`] said. It takes any audio for ever
/// and keeps little of it: the last 16 ms, one packet, and the text of one utterance.
#[derive(Debug, Clone)]
pub struct ToneDecoder {
    decimator: Decimator,
    samples: [i16; STEP],
    sample_count: usize,
    spectrum: Spectrum,
    search: Search,
    /// Steps that have been heard.
    step: u64,
    packet: Option<Packet>,
    utterance: Option<Utterance>,
}

/// A packet that is being read.
#[derive(Debug, Clone)]
struct Packet {
    preamble: Preamble,
    /// When its preamble began.
    began: u64,
    /// The step with which the window of its next symbol ends.
    next: u64,
    bytes: Vec<u8>,
    header: Option<Header>,
}

/// An utterance that is being heard.
#[derive(Debug, Clone)]
struct Utterance {
    /// The step with which it began.
    began: u64,
    /// The step up to which tones were heard, as far as it is known: not those of the last [`PREAMBLE_STEPS`],
    /// which may be another utterance's.
    toned: u64,
    /// Which of the last 64 steps were tonal; the last is the lowest bit.
    tonal: u64,
    /// The step at which a preamble was last heard.
    preamble_heard: u64,
    /// The tag of its packets, once one is known.
    tag: Option<u8>,
    /// The number of the packet that comes next.
    next: u16,
    /// What has been understood.
    text: String,
    is_understood: bool,
}

impl ToneDecoder {
    /// An ear for audio at this rate.
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

    /// Hears more, of any length: what has been made out with it, in order.
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
                self.look(&mut heard);
            }
        }
        heard
    }

    /// What the step that has just been heard tells.
    fn look(&mut self, heard: &mut Vec<ToneHeard>) {
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

    /// A preamble is certain. Whatever was being read has ended before it.
    fn preamble_begins(&mut self, preamble: Preamble, heard: &mut Vec<ToneHeard>) {
        self.packet = None;
        let began = self.step.saturating_sub(PREAMBLE_STEPS);
        if preamble == Preamble::Opening {
            self.break_off(heard);
        }
        match &mut self.utterance {
            Some(utterance) => utterance.preamble_heard = self.step,
            None => self.begin(began, heard),
        }
    }

    /// A preamble has been placed: its packet is read from here.
    fn packet_begins(&mut self, preamble: Preamble, at: u64) {
        let began = at.saturating_sub(PREAMBLE_STEPS);
        if let Some(utterance) = &mut self.utterance
            && utterance.tag.is_none()
            && utterance.began.abs_diff(began) < STEPS_A_SYMBOL
        {
            utterance.began = began;
        }
        let bytes = Vec::with_capacity(MOST_BYTES);
        self.packet = Some(Packet { preamble, began, next: at + STEPS_A_SYMBOL, bytes, header: None });
    }

    /// A symbol of the packet has been heard.
    fn read_symbol(&mut self, heard: &mut Vec<ToneHeard>) {
        let Some(packet) = &mut self.packet else { return };
        packet.bytes.push(self.spectrum.byte());
        packet.next += STEPS_A_SYMBOL;
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

    /// All of a packet has been heard.
    fn read_packet(&mut self, packet: &Packet, heard: &mut Vec<ToneHeard>) {
        let Some(header) = packet.header else { return };
        let text = packet::text(&packet.bytes);
        let is_of_another = |utterance: &Utterance| utterance.tag.is_some_and(|tag| tag != header.tag);
        if self.utterance.as_ref().is_some_and(is_of_another) {
            if text.is_none() {
                return;
            }
            // The begin of another utterance has been missed.
            self.break_off(heard);
            self.begin(packet.began, heard);
        }
        let Some(utterance) = &mut self.utterance else { return };
        if let Some(text) = text {
            // Tones end with the symbol, of which the window lies in the middle.
            utterance.toned = self.step + STEPS_A_SYMBOL - WINDOW_STEPS;
            utterance.tag = Some(header.tag);
            utterance.take(header.number, text);
        }
        if header.is_last {
            self.end(header.number, heard);
        }
    }

    /// Whether the utterance goes on.
    fn watch(&mut self, heard: &mut Vec<ToneHeard>) {
        let Some(utterance) = &mut self.utterance else { return };
        utterance.tonal = utterance.tonal << 1 | u64::from(self.spectrum.is_tonal());
        if utterance.tonal >> PREAMBLE_STEPS & 1 == 1 {
            utterance.tones_at(self.step.saturating_sub(PREAMBLE_STEPS));
        }
        let is_quiet = utterance.tonal == 0 && self.step.saturating_sub(utterance.toned) > QUIET_STEPS;
        if is_quiet || self.step - utterance.preamble_heard > PACKET_STEPS {
            self.packet = None;
            self.break_off(heard);
        }
    }

    fn begin(&mut self, began: u64, heard: &mut Vec<ToneHeard>) {
        self.utterance = Some(Utterance {
            began,
            toned: self.step,
            tonal: 0,
            preamble_heard: self.step,
            tag: None,
            next: 0,
            text: String::new(),
            is_understood: false,
        });
        heard.push(ToneHeard::Began);
    }

    /// The utterance ended with the packet of this number.
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

    /// The utterance, if there is one, ended before its last packet.
    fn break_off(&mut self, heard: &mut Vec<ToneHeard>) {
        if let Some(utterance) = self.utterance.take() {
            heard.push(ToneHeard::Garbled { duration_ms: utterance.duration_ms() });
        }
    }
}

impl Utterance {
    /// A packet has been understood. One that came before (a line repeats itself) says nothing new.
    fn take(&mut self, number: u16, text: &str) {
        if number >= self.next {
            self.skip_to(number);
            self.next = number + 1;
            self.text.push_str(text);
            self.is_understood = true;
        }
    }

    /// Packets before this one have been lost, if they have not been understood.
    fn skip_to(&mut self, number: u16) {
        if number > self.next {
            self.next = number;
            self.text.push('…');
        }
    }

    /// The window that ends with this step was tonal.
    fn tones_at(&mut self, step: u64) {
        self.toned = self.toned.max(step.saturating_sub(TONAL_STEPS));
    }

    /// How long it was, in whole frames: steps are not exact, and a line loses and repeats frames.
    fn duration_ms(&self) -> i64 {
        let duration_ms = self.toned.saturating_sub(self.began) as i64 * STEP_MS;
        (duration_ms + FRAME_MS / 2) / FRAME_MS * FRAME_MS
    }
}

/// Brings audio to 8 kHz: every sample is the mean of those it stands for, which is filter enough for tones below
/// 2.7 kHz.
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
