//! What a word or number may mean besides what it was read as. Whatever is here makes a verdict open, and never decides it.
use super::numbers::{decimal, shifted};
use super::{Kind, Reader};
use crate::models::rules::judge::spoken_numbers::{below_twenty, ordinal, scale};
use crate::models::rules::judge::values::Value;
use crate::models::rules::judge::vocabulary::is_one_of;

/// From two on.
const ROMAN: &str = "ii iii iv v vi vii viii ix x xi xii";

/// Days with names: their words, whether "eve" follows, day and month.
const DAYS: [(&str, &str, bool, u32, u32); 10] = [
    ("christmas xmas", "", true, 24, 12),
    ("christmas xmas", "", false, 25, 12),
    ("boxing", "day", false, 26, 12),
    ("new", "year's years year", true, 31, 12),
    ("new", "year's years year", false, 1, 1),
    ("halloween", "", false, 31, 10),
    ("valentine's valentines", "", false, 14, 2),
    ("patrick's", "", false, 17, 3),
    ("epiphany", "", false, 6, 1),
    ("independence", "day", false, 4, 7),
];

impl Reader<'_> {
    /// What the words from this place on may mean as well. `in_value`: they are parts of a value that was read.
    pub(super) fn otherwise(&self, at: usize, in_value: bool) -> Vec<Value> {
        let mut out = Vec::new();
        match self.tokens.get(at).map(|token| token.kind) {
            Some(Kind::Word) => {
                self.counts(at, in_value, &mut out);
                self.shares(at, &mut out);
                self.days(at, &mut out);
                out.extend(self.address(at));
            }
            Some(Kind::Figures) => self.figures_otherwise(at, &mut out),
            // `-5` may be a list.
            Some(Kind::Sign('-')) if in_value => {
                out.extend(self.number(at + 1).map(|found| Value::Number(found.number)));
                return out;
            }
            _ => return out,
        }
        self.clock_otherwise(at, in_value, &mut out);
        if let Some(found) = self.number(at).filter(|_| matches!(self.before(at, 1), "minus" | "negative")) {
            out.push(Value::Number(format!("-{}", found.number)));
        }
        out
    }

    /// Whether the value there may not be meant: "minus five", "half of 20", "this one", `1.000`.
    pub(super) fn is_doubtful(&self, at: usize, next: usize) -> bool {
        let share = |word: &str| is_one_of(word, "half quarter quarters third thirds minus negative point");
        let (one, two) = (self.before(at, 1), self.before(at, 2));
        let by_share = share(one)
            || matches!(one, "of" | "a" | "the") && is_one_of(two, "half quarter quarters thirds")
            || matches!(one, "double" | "triple" | "twice");
        let is_pronoun = next == at + 1
            && self.word(at) == "one"
            && (is_one_of(one, "this that the another any no which each every other only")
                || self.word(next) == "of");
        let negative =
            self.sign(at.wrapping_sub(1)) == Some('-') && self.glued(at) && !self.glued(at.wrapping_sub(1));
        by_share
            || is_pronoun
            || negative
            || self.word(next.wrapping_sub(1)) == "grand"
            || (at..next).any(|place| thousands(self.raw(place)).is_some())
    }

    /// The word so many places before; empty if there is none.
    fn before(&self, at: usize, back: usize) -> &str {
        at.checked_sub(back).map_or("", |place| self.word(place))
    }

    fn figures_otherwise(&self, at: usize, out: &mut Vec<Value>) {
        const TELEPHONE_MIN: usize = 7;
        let raw = self.raw(at);
        out.extend(thousands(raw).map(Value::Number));
        if self.glued(at + 1) && self.word(at + 1) == "k" {
            out.push(Value::Number(raw.to_owned()));
        }
        // Five million metres, or users.
        if self.glued(at + 1) && self.word(at + 1) == "m" {
            out.extend(decimal(raw).map(|number| Value::Number(shifted(&number, 6))));
        }
        // `555.0100`
        let digits = raw.replace('.', "");
        if digits.len() >= TELEPHONE_MIN && digits.len() < raw.len() {
            out.push(Value::Digits(digits));
        }
        // `9h30`
        if self.glued(at + 1)
            && self.glued(at + 2)
            && self.word(at + 1) == "h"
            && let (Ok(hour @ 0..24), Ok(minute @ 0..60)) = (raw.parse(), self.figures(at + 2).parse())
        {
            out.push(self.clock(hour, minute, false, at + 3).0);
        }
    }

    /// "Half a dozen", "a couple", "twice".
    fn counts(&self, at: usize, in_value: bool, out: &mut Vec<Value>) {
        let word = self.word(at);
        let number = |number: u64| Value::Number(number.to_string());
        let named = matches!(self.before(at, 1), "the" | "on");
        let counted = match word {
            _ if is_one_of(word, "nil nought naught") => Some(0),
            _ if is_one_of(word, "once single") => Some(1),
            _ if is_one_of(word, "twice both couple pair double") => Some(2),
            _ if is_one_of(word, "triple thrice") => Some(3),
            "score" => Some(20),
            // "Henry VIII"
            _ if word.len() > 1 && is_one_of(word, ROMAN) => {
                ROMAN.split(' ').position(|one| one == word).and_then(|place| u64::try_from(place + 2).ok())
            }
            "grand" if matches!(self.before(at, 1), "a" | "one") => Some(1_000),
            _ if !in_value => scale(word),
            _ => None,
        };
        out.extend(counted.map(number));
        // "A couple of million", "a dozen and a half"
        let is_some =
            !in_value && is_one_of(self.before(at, 1), "half quarter quarters of couple few several some");
        if scale(word).is_some() && (is_some || self.word(at + 1) == "and" && self.word(at + 3) == "half") {
            out.push(Value::Unclear);
        }
        match word {
            "free" => out.push(Value::Money { currency: "", amount: "0".to_owned() }),
            "first" if named => out.push(Value::Ordinal(1)),
            "second" if named => out.push(Value::Ordinal(2)),
            "times" if self.number(at + 1).is_some() => out.push(Value::Unclear),
            "grand" => out.extend(self.number(at.wrapping_sub(1)).map(|found| Value::Number(found.number))),
            "point" => {
                out.extend(self.singles(at + 1).map(|(digits, _)| Value::Number("0.".to_owned() + &digits)));
            }
            _ if word.chars().any(|char| char.is_numeric() && !char.is_ascii()) => out.push(Value::Unclear),
            _ => {}
        }
    }

    /// Parts of a whole: "three quarters", "two thirds", "one in five".
    fn shares(&self, at: usize, out: &mut Vec<Value>) {
        let many = below_twenty(self.before(at, 1)).filter(|many| *many > 0);
        let word = self.word(at);
        let parts = match word {
            "half" | "halves" => Some(2),
            "quarter" | "quarters" => Some(4),
            _ => ordinal(word.strip_suffix('s').unwrap_or(word)).map(u64::from).filter(|parts| *parts > 2),
        };
        if let Some(parts) = parts {
            if self.word(at + 1) == "of" && self.number(at + 2).is_some() {
                out.push(Value::Unclear);
            }
            // "One half" as well as "half".
            out.extend(shares(many.filter(|many| *many < parts).unwrap_or(1), parts));
            return;
        }
        let whole = |at: usize| self.number(at).and_then(|found| Some((found.whole?, found.next)));
        if let Some((some, next)) = whole(at) {
            let of = match (self.word(next), self.word(next + 1)) {
                ("in", _) => next + 1,
                ("out", "of") => next + 2,
                _ => return,
            };
            out.extend(
                whole(of).filter(|(all, _)| some < *all).into_iter().flat_map(|(all, _)| shares(some, all)),
            );
        }
    }

    /// Days with names, and those that only somebody with a calendar can tell.
    fn days(&self, at: usize, out: &mut Vec<Value>) {
        let next = self.word(at + 1);
        let is_eve = next == "eve" || self.word(at + 2) == "eve";
        let word = self.word(at);
        let named = DAYS.iter().find(|(first, second, eve, ..)| {
            is_one_of(word, first) && (second.is_empty() || is_one_of(next, second)) && (is_eve || !eve)
        });
        if let Some((.., day, month)) = named {
            out.push(Value::Date { day: *day, month: *month, year: None });
            return;
        }
        let before = self.before(at, 1);
        let is_day = is_one_of(
            word,
            "yesterday tomorrow easter thanksgiving monday tuesday wednesday thursday friday saturday sunday",
        ) || is_one_of(word, "today tonight") && before != "you"
            || is_one_of(word, "day days week weeks month months weekend")
                && (is_one_of(before, "next this last coming following")
                    || is_one_of(self.before(at, 2), "in within"));
        out.extend(is_day.then_some(Value::SomeDay));
    }

    /// "Bob at example.com", "bob (at) example dot com".
    fn address(&self, at: usize) -> Option<Value> {
        if self.word(at) != "at" {
            return None;
        }
        let is_bracket = |place: usize| self.sign(place).is_some_and(|sign| "()[]{}<>-_*".contains(sign));
        let mut local = at.checked_sub(1)?;
        while is_bracket(local) {
            local = local.checked_sub(1).filter(|place| at - place < 4)?;
        }
        let mut host = at + 1;
        while is_bracket(host) && host < at + 4 {
            host += 1;
        }
        let is_part = |place: usize| self.sign(place).is_none() && !self.raw(place).is_empty();
        let is_dot = |place: usize| {
            self.sign(place) == Some('.') && self.glued(place) && self.glued(place + 1)
                || self.word(place) == "dot"
        };
        if !is_part(local) || self.word(host).is_empty() || !is_dot(host + 1) || !is_part(host + 2) {
            return None;
        }
        let mut end = host + 3;
        while is_dot(end) && is_part(end + 1) && end < at + 16 {
            end += 2;
        }
        let parts = (host..end).filter(|place| self.word(*place) != "dot");
        let host: String = parts.map(|place| self.letters_and_digits(place..place + 1)).collect();
        Some(Value::Email(self.letters_and_digits(local..local + 1) + &host))
    }

    /// "Five to ten", "half nine", and the numbers in a time of day.
    fn clock_otherwise(&self, at: usize, in_value: bool, out: &mut Vec<Value>) {
        if let Some((time, _)) = self.clock_phrase(at, false) {
            out.push(time);
            if in_value {
                let parts = (at..at + 6).filter_map(|place| self.number(place));
                out.extend(parts.map(|found| Value::Number(found.number)));
            }
        }
        let hour = || self.number(at + 1)?.whole.filter(|hour| (1..=12).contains(hour));
        if self.word(at) == "half"
            && let Some(hour) = hour()
        {
            out.push(self.clock(hour, 30, false, at + 2).0);
            out.push(self.clock((hour + 10) % 12 + 1, 30, false, at + 2).0);
        }
    }
}

/// `1.000`, if it is a thousand.
fn thousands(raw: &str) -> Option<String> {
    let (whole, rest) = raw.split_once('.')?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    (matches!(whole.len(), 1..=3)
        && rest.len() == 3
        && digits(whole)
        && digits(rest)
        && !whole.starts_with('0'))
    .then(|| format!("{whole}{rest}"))
}

/// A share as percentages, as far as somebody may round it, and as a number.
fn shares(some: u64, all: u64) -> Vec<Value> {
    let tenths = some * 1_000 / all;
    let exact = (some * 1_000).is_multiple_of(all);
    let percent = |tenths: u64| match (tenths / 10, tenths % 10) {
        (whole, 0) => whole.to_string(),
        (whole, rest) => format!("{whole}.{rest}"),
    };
    let mut out = vec![Value::Percent(percent(tenths))];
    if exact {
        let number = format!("0.{tenths:03}");
        out.push(Value::Number(number.trim_end_matches('0').to_owned()));
    } else {
        out.push(Value::Percent((tenths / 10).to_string()));
        out.push(Value::Percent((tenths / 10 + 1).to_string()));
    }
    out
}
