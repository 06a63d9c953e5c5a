//! The audio of the responses, and the lines that it belongs to.
use std::collections::VecDeque;

use super::wire;
use crate::base::text::truncate;
use crate::speech::exchange::SpeechFailure;
use crate::speech::synthesizer::{LineId, SynthesizerEvent};
use crate::speech::transcribers::OpenaiRealtime;

/// Responses that are kept: their lines may still be heard, and cut.
const SPOKEN_MAX: usize = 16;

/// How much of a line that was read out in other words a note has.
const SAID_BYTES_MAX: usize = 300;

/// Pieces of audio that wait for their line are joined until they have so many samples: a server may send them tiny.
const WAITING_SAMPLES: usize = 4_096;

/// Items of a response that are told apart.
const ITEMS_MAX: usize = 64;

/// What one response says.
#[derive(Default)]
pub(super) struct Spoken {
    number: u64,
    /// The line that it is, once it is said.
    pub(super) line: Option<LineId>,
    pub(super) text: String,
    /// The items with its audio, and how much they have, in ms.
    items: Vec<(String, i64)>,
    /// All of its audio, in ms.
    audio_ms: i64,
    /// Audio that belongs to no line yet.
    waiting: Vec<Vec<i16>>,
    /// Half a sample.
    pub(super) odd: Option<u8>,
    /// Whether it is a part of the server's conversation.
    pub(super) is_in_conversation: bool,
    /// Whether the conversation's history is known to have it.
    is_synced: bool,
    /// Whether nothing more comes; with the failure, if something is missing.
    over: Option<Option<SpeechFailure>>,
    /// Whether the line has no more text.
    is_finished: bool,
    is_told: bool,
    heard_ms: i64,
}

impl Spoken {
    /// The response with this number.
    pub(super) fn new(number: u64) -> Self {
        Self { number, ..Self::default() }
    }

    /// An item of the response.
    pub(super) fn item(&mut self, id: &str) {
        if !id.is_empty() && self.items.len() < ITEMS_MAX && !self.items.iter().any(|(known, _)| known == id)
        {
            self.items.push((id.to_owned(), 0));
        }
    }

    /// How much audio it has, in ms.
    pub(super) const fn audio_ms(&self) -> i64 {
        self.audio_ms
    }
}

/// The responses whose lines may still be heard, in their order.
#[derive(Default)]
pub(super) struct AllSpoken {
    spoken: VecDeque<Spoken>,
    pub(super) events: VecDeque<SynthesizerEvent>,
}

impl AllSpoken {
    pub(super) fn begin(&mut self, spoken: Spoken) {
        if self.spoken.len() >= SPOKEN_MAX {
            self.spoken.pop_front();
        }
        self.spoken.push_back(spoken);
    }

    pub(super) fn get(&mut self, number: u64) -> Option<&mut Spoken> {
        self.spoken.iter_mut().find(|spoken| spoken.number == number)
    }

    fn of_line(&mut self, line: LineId) -> Option<&mut Spoken> {
        self.spoken.iter_mut().find(|spoken| spoken.line == Some(line))
    }

    /// The line is said that begins with this text: whether it is one of the model's own.
    pub(super) fn bind(&mut self, line: LineId, text: &str) -> bool {
        if self.of_line(line).is_some() {
            return true;
        }
        let begins = |spoken: &&mut Spoken| {
            spoken.line.is_none() && spoken.is_in_conversation && spoken.text.trim_start().starts_with(text)
        };
        let Some(spoken) = self.spoken.iter_mut().find(begins).filter(|_| !text.is_empty()) else {
            return false;
        };
        spoken.line = Some(line);
        for samples in std::mem::take(&mut spoken.waiting) {
            self.events.push_back(SynthesizerEvent::Audio { line, samples });
        }
        true
    }

    /// More audio of an item.
    pub(super) fn audio(&mut self, number: u64, item: &str, samples: Vec<i16>, ms: i64) {
        let Some(spoken) = self.spoken.iter_mut().find(|spoken| spoken.number == number) else { return };
        spoken.audio_ms += ms;
        spoken.item(item);
        if let Some((_, audio_ms)) = spoken.items.iter_mut().find(|(known, _)| known == item) {
            *audio_ms += ms;
        }
        match spoken.line {
            Some(line) => self.events.push_back(SynthesizerEvent::Audio { line, samples }),
            None => match spoken.waiting.last_mut() {
                Some(last) if last.len() < WAITING_SAMPLES => last.extend(samples),
                _ => spoken.waiting.push(samples),
            },
        }
    }

    /// A line was read out: notes it if the words are others.
    pub(super) fn check(&mut self, number: u64, line: &str, ear: &OpenaiRealtime) {
        let Some(spoken) = self.get(number).filter(|spoken| is_other(line, &spoken.text)) else { return };
        let said = truncate(spoken.text.trim().to_owned(), SAID_BYTES_MAX);
        let failure = ear.disturbed(&format!("read out a line in other words: {said}"));
        let noted = spoken.line.map(|line| SynthesizerEvent::VoiceFailed { line, failure });
        self.events.extend(noted);
    }

    /// Nothing more of a response comes.
    pub(super) fn over(&mut self, number: u64, failure: Option<SpeechFailure>) {
        if let Some(spoken) = self.get(number) {
            spoken.over.get_or_insert(failure);
        }
        self.tell();
    }

    /// The line has no more text.
    pub(super) fn finish(&mut self, line: LineId) {
        if let Some(spoken) = self.of_line(line) {
            spoken.is_finished = true;
        }
        self.tell();
    }

    /// Tells the ends of lines.
    fn tell(&mut self) {
        for spoken in self.spoken.iter_mut().filter(|spoken| !spoken.is_told) {
            let (Some(line), Some(over)) = (spoken.line, &spoken.over) else { continue };
            let event = match over {
                Some(failure) => SynthesizerEvent::Failed { line, failure: failure.clone() },
                None if spoken.is_finished => SynthesizerEvent::Done { line },
                None => continue,
            };
            spoken.is_told = true;
            self.events.push_back(event);
        }
    }

    /// How much of a line was heard, which is about to be cancelled.
    pub(super) fn heard(&mut self, line: LineId, heard_ms: i64) {
        if let Some(spoken) = self.of_line(line) {
            spoken.heard_ms = heard_ms;
        }
    }

    /// A line is cut to what was heard. Returns its items.
    pub(super) fn cut(&mut self, line: LineId, out: &mut Vec<String>) -> Vec<String> {
        let Some(place) = self.spoken.iter().position(|spoken| spoken.line == Some(line)) else {
            return Vec::new();
        };
        let Some(spoken) = self.spoken.get_mut(place) else { return Vec::new() };
        let items = spoken.items.iter().map(|(item, _)| item.clone()).collect();
        if !spoken.is_in_conversation {
            self.spoken.remove(place);
            return items;
        }
        let mut left_ms = spoken.heard_ms;
        spoken.items.retain(|(item, audio_ms)| {
            let (heard_ms, is_heard) = (left_ms, left_ms > 0);
            left_ms -= audio_ms;
            match is_heard {
                true if heard_ms >= *audio_ms => {}
                true => out.push(wire::truncate(item, heard_ms)),
                false => out.push(wire::delete(item)),
            }
            is_heard
        });
        // Nobody is told of its end any more: whoever cuts a line knows.
        (spoken.over, spoken.is_told) = (Some(None), true);
        if spoken.heard_ms == 0 {
            self.spoken.remove(place);
        }
        items
    }

    /// Drops a response that nobody says, and its items.
    pub(super) fn forget(&mut self, number: u64, out: &mut Vec<String>) -> Vec<String> {
        let unsaid = |spoken: &Spoken| spoken.number == number && spoken.line.is_none();
        let Some(place) = self.spoken.iter().position(unsaid) else { return Vec::new() };
        let items = self.spoken.remove(place).map(|spoken| spoken.items).unwrap_or_default();
        let items: Vec<String> = items.into_iter().map(|(item, _)| item).collect();
        out.extend(items.iter().map(|item| wire::delete(item)));
        items
    }

    /// Drops whole responses that nobody said, such as an answer to somebody who went on, and their items.
    pub(super) fn drop_unsaid(&mut self, out: &mut Vec<String>) {
        self.spoken.retain(|spoken| {
            let is_unsaid = spoken.line.is_none();
            if is_unsaid && !spoken.text.is_empty() {
                out.extend(spoken.items.iter().map(|(item, _)| wire::delete(item)));
            }
            !is_unsaid
        });
    }

    /// The lines of the model's own responses that the history has by now, with their last items; each is returned once.
    pub(super) fn take_said(&mut self) -> Vec<(&str, &str)> {
        let new =
            |spoken: &&mut Spoken| spoken.line.is_some() && spoken.is_in_conversation && !spoken.is_synced;
        self.spoken
            .iter_mut()
            .filter(new)
            .map(|spoken| {
                spoken.is_synced = true;
                let item = spoken.items.last().map(|(item, _)| item.as_str());
                (spoken.text.as_str(), item.unwrap_or_default())
            })
            .collect()
    }

    /// The session is lost: nothing on the server can be cut any more.
    pub(super) fn lost(&mut self) {
        self.spoken.retain(|spoken| spoken.line.is_some());
        for spoken in &mut self.spoken {
            spoken.is_in_conversation = false;
        }
    }

    /// Whether the audio of every line is complete.
    pub(super) fn is_complete(&self) -> bool {
        self.spoken.iter().all(|spoken| spoken.over.is_some())
    }
}

/// Whether the transcript of a line that was read out has other words. Numbers may be written as words or as digits.
fn is_other(line: &str, said: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    };
    let has_number = |text: &str| text.contains(char::is_numeric);
    let (wanted, said_words) = (words(line), words(said));
    if said_words.is_empty() {
        return false;
    }
    if !has_number(line) && !has_number(said) {
        return wanted.concat() != said_words.concat();
    }
    // A number may be spoken as two words for each digit; more words than that are others.
    let digits = |words: &[String]| words.concat().chars().filter(char::is_ascii_digit).count();
    let plain = |words: &[String]| words.iter().filter(|word| !has_number(word)).cloned().collect::<Vec<_>>();
    let (longer, shorter) = (plain(&said_words), plain(&wanted));
    let mut rest = longer.iter();
    let has_all = shorter.iter().all(|word| rest.any(|said| said == word));
    !has_all || longer.len() > shorter.len() + 2 * digits(&wanted).max(1)
}

#[cfg(test)]
mod tests {
    use super::is_other;

    #[test]
    fn words_are_compared_and_not_how_they_are_written() {
        for same in ["Hello, front desk!", "hello front-desk", "", "…"] {
            assert!(!is_other("Hello, front desk.", same), "{same}");
        }
        for other in ["Hello.", "Hello, front desk. How are you?", "Hallo, front desk."] {
            assert!(is_other("Hello, front desk.", other), "{other}");
        }
        assert!(!is_other("We open at 9 on Saturday.", "We open at nine on Saturday."));
        assert!(!is_other("Call 415 for help.", "Call four hundred and fifteen for help."));
        assert!(is_other("We open at 9.", "We open at nine and give fifty percent off."));
        assert!(is_other("This call is recorded. We open at 9.", "We open at nine."));
    }
}
