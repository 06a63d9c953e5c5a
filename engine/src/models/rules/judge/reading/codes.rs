//! Codes and e-mail addresses.
use std::ops::Range;

use super::Reader;
use crate::models::rules::judge::values::Value;

impl Reader<'_> {
    pub(super) fn email(&self, at: usize) -> Option<(Value, usize)> {
        const PARTS_MAX: usize = 24;
        let joins = |place: usize| matches!(self.sign(place), None | Some('@' | '.' | '_' | '-' | '+'));
        let mut end = at + 1;
        while end < at + PARTS_MAX && end < self.tokens.len() && self.glued(end) && joins(end) {
            end += 1;
        }
        while self.sign(end - 1).is_some() && end > at + 1 {
            end -= 1;
        }
        let host = (at..end).find(|place| self.sign(*place) == Some('@'))?;
        (self.sign(at).is_none()
            && (host..end).any(|place| self.sign(place) == Some('.') || self.raw(place).contains('.')))
        .then(|| (Value::Email(self.written(at..end)), end))
    }

    /// As it is written: `blue-door.com` and `bluedoor.com` are two.
    fn written(&self, range: Range<usize>) -> String {
        range.flat_map(|place| self.raw(place).chars()).flat_map(char::to_lowercase).collect()
    }

    pub(super) fn letters_and_digits(&self, range: Range<usize>) -> String {
        range
            .flat_map(|place| self.raw(place).chars())
            .filter(|char| char.is_alphanumeric())
            .flat_map(char::to_lowercase)
            .collect()
    }

    /// `BD-17`, `BD17`, `BD 17`, `B D one seven`, `24B`.
    pub(super) fn code(&self, at: usize) -> Option<(Value, usize)> {
        const LETTERS_MAX: usize = 6;
        let raw = self.raw(at);
        let is_letters = |raw: &str| {
            !raw.is_empty() && raw.len() <= LETTERS_MAX && raw.bytes().all(|byte| byte.is_ascii_alphabetic())
        };
        let dash = |place: usize| usize::from(self.sign(place) == Some('-') && self.glued(place));
        if is_letters(raw) {
            let figures = at + 1 + dash(at + 1);
            if self.glued(figures) && !self.figures(figures).is_empty() {
                let end = self.rest_of_code(figures + 1);
                return Some((Value::Code(self.letters_and_digits(at..end)), end));
            }
        }
        if !self.figures(at).is_empty()
            && self.glued(at + 1)
            && is_letters(self.raw(at + 1))
            && !is_unit(self.word(at + 1))
        {
            let end = self.rest_of_code(at + 2);
            return Some((Value::Code(self.letters_and_digits(at..end)), end));
        }
        let is_single = |place: usize| self.raw(place).len() == 1 && is_letters(self.raw(place));
        let mut letters = at;
        while is_single(letters) && letters < at + LETTERS_MAX {
            letters += 1;
            if matches!(self.sign(letters), Some('-' | '.')) && is_single(letters + 1) {
                letters += 1;
            }
        }
        let spelled = letters > at + 1;
        if !spelled {
            let is_upper =
                raw.len() <= 3 && is_letters(raw) && raw.bytes().all(|byte| byte.is_ascii_uppercase());
            if !is_upper || is_common(self.word(at)) {
                return None;
            }
            letters = at + 1;
        }
        let mut figures = letters;
        if matches!(self.sign(figures), Some('-' | '.'))
            || matches!(self.word(figures), "dash" | "hyphen" | "minus")
        {
            figures += 1;
        }
        let singles = self.singles(figures);
        let number = self.number(figures).filter(|found| found.whole.is_some());
        let (said, next) = match (singles, number) {
            (Some((said, next)), Some(found)) if next >= found.next => (said, next),
            (_, Some(found)) if !self.figures(figures).is_empty() => {
                (self.figures(figures).to_owned(), found.next)
            }
            (_, Some(found)) => (found.number, found.next),
            (Some(singles), None) => singles,
            (None, None) => return None,
        };
        Some((Value::Code(self.letters_and_digits(at..letters) + &said), next))
    }

    pub(super) fn rest_of_code(&self, mut end: usize) -> usize {
        let fits =
            |place: usize| self.glued(place) && self.sign(place).is_none() && self.raw(place).len() <= 8;
        loop {
            if fits(end) {
                end += 1;
            } else if self.glued(end) && self.sign(end) == Some('-') && fits(end + 1) {
                end += 2;
            } else {
                return end;
            }
        }
    }
}

/// What follows a number and makes no code of it.
fn is_unit(word: &str) -> bool {
    const UNITS: [&str; 24] = [
        "st", "nd", "rd", "th", "am", "pm", "a", "p", "h", "k", "km", "kg", "m", "cm", "mm", "mb", "gb",
        "ml", "min", "hrs", "usd", "eur", "gbp", "x",
    ];
    UNITS.contains(&word)
}

/// Short words in capital letters that are no part of a code, unless a hyphen follows.
fn is_common(word: &str) -> bool {
    const WORDS: [&str; 38] = [
        "a", "i", "am", "pm", "ok", "tv", "no", "we", "in", "at", "on", "to", "is", "it", "of", "or", "by",
        "my", "do", "so", "us", "up", "an", "as", "be", "go", "he", "if", "me", "the", "and", "for", "you",
        "usd", "eur", "gbp", "chf", "may",
    ];
    WORDS.contains(&word)
}
