//! The events that a protocol has for its driver, and the texts in them: bounded, whatever a provider sends.
use std::collections::VecDeque;

use crate::base::limits::{SPEECH_EVENTS_MAX, SPEECH_TEXT_BYTES_MAX};
use crate::speech::transcriber::TranscriberEvent;

/// Events in order.
#[derive(Default)]
pub(super) struct Events {
    waiting: VecDeque<TranscriberEvent>,
    /// The last partial text of the current utterance, so that none is told twice.
    partial: String,
}

impl Events {
    /// The words of the current utterance so far.
    pub(super) fn partial(&mut self, text: String) {
        if text.is_empty() || text == self.partial {
            return;
        }
        self.partial.clone_from(&text);
        if matches!(self.waiting.back(), Some(TranscriberEvent::Partial(_))) {
            self.waiting.pop_back();
        }
        self.waiting.push_back(TranscriberEvent::Partial(text));
    }

    pub(super) fn push(&mut self, event: TranscriberEvent) {
        let goes_on = matches!(
            event,
            TranscriberEvent::LikelyEnd(_) | TranscriberEvent::Resumed | TranscriberEvent::Late { .. }
        );
        if !goes_on {
            self.partial.clear();
            // The words so far are of no use where all of them follow at once.
            if matches!(self.waiting.back(), Some(TranscriberEvent::Partial(_))) {
                self.waiting.pop_back();
            }
        }
        self.waiting.push_back(event);
    }

    pub(super) fn pop(&mut self) -> Option<TranscriberEvent> {
        self.waiting.pop_front()
    }

    /// Whether the driver has left so much lying that what a provider says must be ignored.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= SPEECH_EVENTS_MAX
    }
}

/// A provider's words as words: no control characters, single spaces, at most [`SPEECH_TEXT_BYTES_MAX`] bytes.
pub(super) fn spoken(text: &str) -> String {
    let mut words = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
        if words.len() > SPEECH_TEXT_BYTES_MAX {
            break;
        }
    }
    words.truncate(words.floor_char_boundary(SPEECH_TEXT_BYTES_MAX));
    words
}

/// Adds words to a text, with a space where the script has spaces.
pub(super) fn append(text: &mut String, words: &str) {
    let last = text.chars().next_back();
    let first = words.chars().next();
    if let (Some(last), Some(first)) = (last, first)
        && !(is_unspaced(last) && is_unspaced(first))
        && text.len() < SPEECH_TEXT_BYTES_MAX
    {
        text.push(' ');
    }
    append_raw(text, words);
}

/// Adds a piece of a text as it is, as far as it fits.
pub(super) fn append_raw(text: &mut String, piece: &str) {
    let room = SPEECH_TEXT_BYTES_MAX.saturating_sub(text.len());
    text.push_str(piece.get(..piece.floor_char_boundary(room)).unwrap_or_default());
}

/// Two texts as one.
pub(super) fn joined(text: &str, words: &str) -> String {
    let mut whole = text.to_owned();
    append(&mut whole, words);
    whole
}

/// Chinese and Japanese characters, which follow each other without spaces.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3000}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cleaned_and_bounded() {
        assert_eq!(spoken("  One\n two\0three\u{7f} "), "One two three");
        let long = spoken(&"é ".repeat(SPEECH_TEXT_BYTES_MAX));
        assert!(long.len() <= SPEECH_TEXT_BYTES_MAX && long.starts_with("é é"));
        let mut text = "x".repeat(SPEECH_TEXT_BYTES_MAX - 2);
        append(&mut text, "éé");
        assert_eq!(text.len(), SPEECH_TEXT_BYTES_MAX - 1);
        append(&mut text, "more");
        assert_eq!(text.len(), SPEECH_TEXT_BYTES_MAX);
    }

    #[test]
    fn words_are_joined_as_their_script_does_it() {
        assert_eq!(joined("", "Hello"), "Hello");
        assert_eq!(joined("Hello", "there"), "Hello there");
        assert_eq!(joined("Hello", ""), "Hello");
        assert_eq!(joined("こん", "にちは"), "こんにちは");
        assert_eq!(joined("안녕", "하세요"), "안녕 하세요");
    }

    #[test]
    fn partial_texts_replace_each_other() {
        let mut events = Events::default();
        for n in 0..1_000 {
            events.partial(format!("word {n}"));
        }
        events.partial(String::new());
        assert_eq!(events.pop(), Some(TranscriberEvent::Partial("word 999".into())));
        events.partial("word 1000".into());
        events.push(TranscriberEvent::Final("word".into()));
        events.partial("word".into());
        assert_eq!(events.pop(), Some(TranscriberEvent::Final("word".into())));
        assert_eq!(events.pop(), Some(TranscriberEvent::Partial("word".into())));
        events.partial("word".into());
        assert_eq!(events.pop(), None);
    }
}
