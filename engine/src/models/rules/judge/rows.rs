//! A row that was read, and whether something stands at a place in it.
use std::ops::Range;

use super::criterion::Want;
use super::reading::Text;
use super::values::{Likeness, Value, letters};
use super::{affirmation, statements, vocabulary, word_forms};
use crate::models::rules::words::stemmed;

/// A row that was read.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) text: Text,
    /// The row was cut off at its last word, which may have been meant to go on.
    is_cut: bool,
    /// The failure of a tool.
    pub(super) is_error: bool,
    /// A tool's result.
    pub(super) is_tool: bool,
    /// Its words are English, or a tool's.
    pub(super) is_english: bool,
    /// The last word that corrects what was said, and the last that may take it back.
    pub(super) last_correction: Option<usize>,
    pub(super) last_taking_back: Option<usize>,
    /// The ends of its sentences, and whether each states what it says: it is no question, no negation, no condition.
    sentences: Vec<(usize, Statement)>,
}

/// How plainly a sentence states what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Statement {
    Plain,
    /// It names alternatives: "or".
    Choice,
    /// It may be a question, a negation, a condition.
    Unclear,
}

impl Row {
    pub(super) fn new(text: Text, is_cut: bool, is_tool: bool, is_error: bool) -> Self {
        let mut sentences = Vec::new();
        let mut start = 0;
        for at in 0..=text.items.len() {
            if at == text.items.len() || text.ends_sentence(at) {
                sentences.push((at, statements::statement(&text, start..at)));
                start = at + 1;
            }
        }
        let last =
            |is: fn(&str) -> bool| (0..text.items.len()).rev().find(|at| text.word(*at).is_some_and(is));
        Self {
            last_correction: last(vocabulary::is_correction),
            last_taking_back: last(affirmation::may_take_back),
            is_english: is_tool || statements::is_english(&text),
            text,
            is_cut,
            is_error,
            is_tool,
            sentences,
        }
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
        self.statement(at) == Some(Statement::Plain)
    }

    /// The same, but "or" may stand there: it does not matter for addresses and telephone numbers.
    pub(super) fn is_clean_or_choice(&self, at: usize) -> bool {
        matches!(self.statement(at), Some(Statement::Plain | Statement::Choice))
    }

    /// Whether these tokens stand there, as they are; digits that belong to others are no number of their own.
    pub(super) fn says_plainly(&self, at: usize, next: usize, tokens: &str) -> bool {
        let is_whole =
            !matches!(self.text.value(at), Some(Value::Digits(_) | Value::Code(_) | Value::Email(_)));
        is_whole && !(self.is_cut && next >= self.text.items.len()) && self.text.is_plainly(at, tokens)
    }

    fn statement(&self, at: usize) -> Option<Statement> {
        self.sentences.get(self.sentence_number(at)).map(|(_, statement)| *statement)
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
                        && !word_forms::is_contraction(said)
                        && !word_forms::is_contraction(word)
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
    if likeness == Likeness::Same && is_part(text, at, place, wants) {
        likeness = Likeness::MayBe;
    }
    (place > at).then_some((place, likeness))
}

/// Whether what stands there begins or ends with a number that is a part of something: of "10 to 12", "3/4", "12 50".
fn is_part(text: &Text, at: usize, next: usize, wants: &[Want]) -> bool {
    let is_amount = |want: Option<&Want>| want.and_then(Want::value).is_some_and(Value::is_amount);
    is_amount(wants.first()) && is_part_before(text, at)
        || is_amount(wants.last()) && is_part_after(text, next)
}

fn is_part_before(text: &Text, at: usize) -> bool {
    let Some(before) = at.checked_sub(1) else { return false };
    let is_value = |back: usize| at.checked_sub(back).is_some_and(|place| is_amount_at(text, place));
    is_value(1)
        || is_between_numbers(text, before) && is_value(2)
        || text.word(before) == Some("between")
        || text.word(before) == Some("and")
            && is_value(2)
            && at.checked_sub(3).and_then(|place| text.word(place)) == Some("between")
}

fn is_part_after(text: &Text, next: usize) -> bool {
    let fraction = || {
        text.word(next) == Some("and")
            && matches!(
                (text.word(next + 1), text.word(next + 2)),
                (Some("a"), Some("half" | "quarter")) | (Some("three"), Some("quarters"))
            )
    };
    is_amount_at(text, next)
        || text.others(next).any(|other| *other == Value::Unclear)
        || is_between_numbers(text, next) && is_amount_at(text, next + 1)
        || fraction()
        // "20 dollars and fifty".
        || text.word(next) == Some("and")
            && is_amount_at(text, next + 1)
            && matches!(next.checked_sub(1).and_then(|at| text.value(at)), Some(Value::Money { .. }))
}

fn is_amount_at(text: &Text, at: usize) -> bool {
    text.value(at)
        .is_some_and(|value| value.is_amount() || matches!(value, Value::Digits(_) | Value::Unclear))
}

fn is_between_numbers(text: &Text, at: usize) -> bool {
    matches!(text.sign(at), Some('-' | '/' | '*' | '+' | '^' | '×'))
        || matches!(text.word(at), Some("to" | "till" | "until" | "through" | "times" | "x" | "point"))
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
            let is_sure = !cut && !text.is_doubtful(at);
            return Some((at + 1, if is_sure { likeness } else { Likeness::MayBe }));
        }
    }
    let spoken = match value {
        Value::Code(wanted) => spoken_code(text, at, wanted).map(|(next, _)| (next, Likeness::Same)),
        Value::Email(wanted) => spoken_code(text, at, &letters(wanted))
            .map(|(next, said)| (next, if said == *wanted { Likeness::Same } else { Likeness::MayBe })),
        _ => None,
    };
    spoken.or_else(|| may_mean(text, at, value).then_some((at + 1, Likeness::MayBe)))
}

/// The same for a value alone, which may be a part of a range.
pub(super) fn whole_value_at(row: &Row, at: usize, value: &Value) -> Option<Likeness> {
    let (next, likeness) = value_at(row, at, value)?;
    let is_part = || value.is_amount() && (is_part_before(&row.text, at) || is_part_after(&row.text, next));
    Some(if likeness == Likeness::Same && is_part() { Likeness::MayBe } else { likeness })
}

/// Whether the item may mean the value besides what it was read as.
fn may_mean(text: &Text, at: usize, value: &Value) -> bool {
    text.others(at).any(|other| {
        // "One second" is no number.
        let is_place =
            matches!(other, Value::Ordinal(_)) && !matches!(value, Value::Ordinal(_) | Value::Date { .. });
        !is_place && value.likeness(other) != Likeness::Differ
    })
}

/// A code or an address in several words: `bd 17`, `help at example dot com`. Returns what follows, and what it spells with
/// its signs; `wanted` has none.
fn spoken_code(text: &Text, at: usize, wanted: &str) -> Option<(usize, String)> {
    const PARTS_MAX: usize = 32;
    let mut rest = wanted;
    let mut place = at;
    let mut spelled = String::new();
    while !rest.is_empty() && place < at + PARTS_MAX {
        let (bare, said) = match (text.word(place), text.value(place)) {
            (Some(word), _) if rest.starts_with(word) => (word.to_owned(), word.to_owned()),
            (Some(word), _) if place > at => (String::new(), spoken_sign(word)?.to_owned()),
            (None, Some(Value::Email(said))) => (letters(said), said.clone()),
            (None, Some(Value::Number(said) | Value::Digits(said) | Value::Code(said))) => {
                (said.clone(), said.clone())
            }
            (None, None) if place > at => {
                let is_joint = |sign: &char| matches!(sign, '-' | '.' | '@' | '_' | '(' | ')' | '[' | ']');
                (String::new(), text.sign(place).filter(is_joint)?.to_string())
            }
            _ => return None,
        };
        rest = rest.strip_prefix(bare.as_str())?;
        spelled.push_str(&said);
        place += 1;
    }
    // "BD 17 1" is another one.
    let goes_on = matches!(text.value(place), Some(Value::Number(_) | Value::Digits(_)));
    (!goes_on && rest.is_empty()).then_some((place, spelled))
}

/// The sign of an address that is said as a word.
fn spoken_sign(word: &str) -> Option<&'static str> {
    Some(match word {
        "at" => "@",
        "dot" => ".",
        "dash" | "hyphen" | "minus" => "-",
        "underscore" => "_",
        _ => return None,
    })
}

/// Whether neighbouring numbers have these digits together.
pub(super) fn is_spelled(row: &Row, at: usize, spelled: &[String]) -> bool {
    const NUMBERS_MAX: usize = 8;
    if spelled.is_empty() {
        return false;
    }
    let mut said = String::new();
    let mut place = at;
    while place < at + NUMBERS_MAX * 2 {
        let Some(figures) = row.text.value(place).and_then(Value::figures_said) else { break };
        said.push_str(&figures);
        if place > at && spelled.contains(&said) {
            return true;
        }
        let joined = matches!(row.text.sign(place + 1), Some('-' | '/' | '.'));
        place += 1 + usize::from(joined);
    }
    false
}
