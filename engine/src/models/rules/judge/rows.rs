//! A row that was read, and whether something stands at a place in it.
use std::ops::Range;

use super::criterion::Want;
use super::reading::Text;
use super::values::{Likeness, Value};
use super::vocabulary;
use crate::models::rules::words::stemmed;

/// A row that was read.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) text: Text,
    /// The row was cut off at its last word, which may have been meant to go on.
    is_cut: bool,
    /// The failure of a tool.
    pub(super) is_error: bool,
    /// Its words are English, or a tool's.
    pub(super) is_english: bool,
    /// The ends of its sentences, and whether each states what it says: it is no question, no negation, no condition.
    sentences: Vec<(usize, bool)>,
}

impl Row {
    pub(super) fn new(text: Text, is_cut: bool, is_tool: bool, is_error: bool) -> Self {
        let mut sentences = Vec::new();
        let mut start = 0;
        for at in 0..=text.items.len() {
            if at == text.items.len() || text.ends_sentence(at) {
                sentences.push((at, vocabulary::is_statement(&text, start..at)));
                start = at + 1;
            }
        }
        Self { is_english: is_tool || vocabulary::is_english(&text), text, is_cut, is_error, sentences }
    }

    fn sentence_number(&self, at: usize) -> usize {
        self.sentences.partition_point(|(end, _)| *end < at).min(self.sentences.len().saturating_sub(1))
    }

    /// The items of the sentence there, without its mark.
    pub(super) fn sentence(&self, at: usize) -> Range<usize> {
        let number = self.sentence_number(at);
        let start =
            number.checked_sub(1).and_then(|before| self.sentences.get(before)).map_or(0, |(end, _)| end + 1);
        start..self.sentences.get(number).map_or(start, |(end, _)| *end).max(start)
    }

    /// Whether the sentence there states what it says.
    pub(super) fn is_clean(&self, at: usize) -> bool {
        self.sentences.get(self.sentence_number(at)).is_some_and(|(_, clean)| *clean)
    }
}

/// How words are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// As they are, within a sentence.
    Exact,
    /// As they are.
    Sentences,
    /// By their stems and without articles, within a sentence.
    Stems,
}

/// Whether all that is wanted stands there, one after the other, and what follows.
pub(super) fn matches_at(
    row: &Row,
    at: usize,
    wants: &[Want],
    stems: &[String],
    mode: Mode,
) -> Option<(usize, Likeness)> {
    let text = &row.text;
    let mut place = at;
    let mut likeness = Likeness::Same;
    for (number, want) in wants.iter().enumerate() {
        while number > 0 && skipped(text, place, mode) {
            if mode == Mode::Exact
                && text.ends_sentence(place)
                && !text.word(place - 1).is_some_and(vocabulary::is_abbreviation)
            {
                likeness = Likeness::MayBe;
            }
            place += 1;
        }
        match want {
            Want::Word(word) => {
                let said = text.word(place)?;
                let stem = stems.get(number).map_or("", String::as_str);
                let is_form = || {
                    mode == Mode::Stems
                        && said.starts_with(stem.get(..2).unwrap_or_default())
                        && stemmed(said) == stem
                };
                if said != word && !is_form() {
                    let may_be =
                        mode == Mode::Stems && wants.len() == 1 && stem.len() >= 4 && said.starts_with(stem);
                    return may_be.then_some((place + 1, Likeness::MayBe));
                }
                place += 1;
            }
            Want::Value(value) => {
                let (next, found) = value_at(row, place, value)?;
                likeness = likeness.min(found);
                place = next;
            }
        }
    }
    (place > at).then_some((place, likeness))
}

/// What may stand between words that follow one another.
fn skipped(text: &Text, at: usize, mode: Mode) -> bool {
    match (text.sign(at), text.word(at)) {
        (Some(sign), _) => mode != Mode::Stems || matches!(sign, ',' | ':' | '-' | '"' | '(' | ')'),
        (None, Some(word)) => mode == Mode::Stems && vocabulary::is_article(word),
        (None, None) => false,
    }
}

/// Whether the value, or one that may be it, stands there, and what follows.
pub(super) fn value_at(row: &Row, at: usize, value: &Value) -> Option<(usize, Likeness)> {
    let text = &row.text;
    if let Some(said) = text.value(at) {
        let likeness = value.likeness(said);
        if likeness != Likeness::Differ {
            // "Twenty-" may have been going to be twenty-five.
            let cut = row.is_cut && at + 1 == text.items.len();
            return Some((at + 1, if cut { Likeness::MayBe } else { likeness }));
        }
    }
    match value {
        Value::Code(wanted) | Value::Email(wanted) => {
            spoken_code(text, at, wanted).map(|next| (next, Likeness::Same))
        }
        _ => None,
    }
}

/// A code or an address in several words: `bd 17`, `help at example dot com`.
fn spoken_code(text: &Text, at: usize, wanted: &str) -> Option<usize> {
    const PARTS_MAX: usize = 32;
    let mut rest = wanted;
    let mut place = at;
    while !rest.is_empty() && place < at + PARTS_MAX {
        let said = match (text.word(place), text.value(place)) {
            (Some(word), _) if rest.starts_with(word) => word,
            (Some("at" | "dot" | "dash" | "hyphen" | "minus" | "underscore"), _) if place > at => "",
            (
                None,
                Some(Value::Number(said) | Value::Digits(said) | Value::Code(said) | Value::Email(said)),
            ) => said,
            (None, None)
                if place > at
                    && text.sign(place).is_some_and(|sign| matches!(sign, '-' | '.' | '@' | '_')) =>
            {
                ""
            }
            _ => return None,
        };
        rest = rest.strip_prefix(said)?;
        place += 1;
    }
    // "BD 17 1" is another one.
    let goes_on = matches!(text.value(place), Some(Value::Number(_) | Value::Digits(_)));
    (!goes_on && rest.is_empty()).then_some(place)
}

/// Whether neighbouring numbers have these digits together.
pub(super) fn is_spelled(row: &Row, at: usize, spelled: &[String]) -> bool {
    const NUMBERS_MAX: usize = 8;
    if spelled.is_empty() {
        return false;
    }
    let mut said = String::new();
    for place in at..at + NUMBERS_MAX {
        let Some(figures) = row.text.value(place).and_then(Value::figures_said) else { break };
        said.push_str(&figures);
        if place > at && spelled.contains(&said) {
            return true;
        }
    }
    false
}
