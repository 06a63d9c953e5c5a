//! Dates and times of day.
use super::Reader;
use crate::models::rules::judge::spoken_numbers::{month, ordinal, tens};
use crate::models::rules::judge::values::Value;

impl Reader<'_> {
    /// `2026-05-04`, or days and months that cannot be told apart, which are only digits.
    pub(super) fn written_date(&self, at: usize) -> Option<(Value, usize)> {
        let sign = self.sign(at + 1).filter(|sign| matches!(sign, '-' | '/'))?;
        let parts: [&str; 3] = [at, at + 2, at + 4].map(|place| self.figures(place));
        let joined = (1..5).all(|step| self.glued(at + step))
            && self.sign(at + 3) == Some(sign)
            && !(self.glued(at + 5) && matches!(self.sign(at + 5), None | Some('-' | '/')));
        if !joined || parts.iter().any(|part| part.is_empty()) {
            return None;
        }
        let numbers = parts.map(|part| part.parse().unwrap_or(0));
        match (parts[0].len(), numbers) {
            (4, [year, month @ 1..=12, day @ 1..=31]) => {
                Some((Value::Date { day, month, year: Some(year) }, at + 5))
            }
            (1 | 2, [_, _, year]) if sign == '/' && year > 0 => Some((Value::Digits(parts.concat()), at + 5)),
            _ => None,
        }
    }

    /// `May 4`, `May the fourth, 2026`.
    pub(super) fn month_first(&self, at: usize) -> Option<(Value, usize)> {
        let month = month(self.word(at))?;
        let place = at + 1 + usize::from(self.sign(at + 1) == Some('.'));
        let place = place + usize::from(self.word(place) == "the");
        let (day, next) = self.day(place)?;
        let (year, next) = self.year(next);
        Some((Value::Date { day, month, year }, next))
    }

    pub(super) fn year(&self, at: usize) -> (Option<u32>, usize) {
        let place = at + usize::from(self.sign(at) == Some(','));
        match self.figures(place).parse() {
            Ok(year @ 1_900..=2_199) => (Some(year), place + 1),
            _ => (None, at),
        }
    }

    /// The day of a month.
    pub(super) fn day(&self, at: usize) -> Option<(u32, usize)> {
        let (day, next) = self.ordinal_number(at).or_else(|| {
            let found = self.number(at)?;
            Some((u32::try_from(found.whole?).ok()?, found.next))
        })?;
        (1..=31).contains(&day).then_some((day, next))
    }

    pub(super) fn ordinal_number(&self, at: usize) -> Option<(u32, usize)> {
        if let Ok(number) = self.figures(at).parse() {
            let ending = self.glued(at + 1) && matches!(self.word(at + 1), "st" | "nd" | "rd" | "th");
            return ending.then_some((number, at + 2));
        }
        if let Some(number) = ordinal(self.word(at)) {
            return Some((number, at + 1));
        }
        let tens = tens(self.word(at)).filter(|tens| *tens < 40)?;
        let place = at + 1 + usize::from(self.sign(at + 1) == Some('-'));
        let ones = ordinal(self.word(place)).filter(|ones| *ones < 10)?;
        Some((u32::try_from(tens).ok()? + ones, place + 1))
    }

    /// `the fourth`, or with a month a date.
    pub(super) fn ordinal(&self, at: usize) -> Option<(Value, usize)> {
        let (number, next) = self.ordinal_number(at)?;
        if let Some(date) = self.month_after(number, next) {
            return Some(date);
        }
        (!matches!(self.word(at), "first" | "second")).then_some((Value::Ordinal(number), next))
    }

    pub(super) fn month_after(&self, day: u32, at: usize) -> Option<(Value, usize)> {
        let place = at + usize::from(self.word(at) == "of");
        let month = month(self.word(place)).filter(|_| (1..=31).contains(&day))?;
        let (year, next) = self.year(place + 1);
        Some((Value::Date { day, month, year }, next))
    }

    /// Noon, `half past nine`, `quarter to ten`.
    pub(super) fn named_time(&self, at: usize) -> Option<(Value, usize)> {
        let past = |place: usize| matches!(self.word(place), "past" | "after");
        let hour = |place: usize| {
            self.number(place).and_then(|found| {
                found.whole.filter(|hour| (1..=12).contains(hour)).map(|hour| (hour, found.next))
            })
        };
        let (minutes, (hour, next)) = match self.word(at) {
            "noon" | "midday" => return Some((Value::Time { minutes: 720, known: true }, at + 1)),
            "midnight" => return Some((Value::Time { minutes: 0, known: true }, at + 1)),
            "half" if past(at + 1) => (30, hour(at + 2)?),
            "quarter" if past(at + 1) => (15, hour(at + 2)?),
            "quarter" if matches!(self.word(at + 1), "to" | "of" | "before") => {
                let (hour, next) = hour(at + 2)?;
                (45, ((hour + 10) % 12 + 1, next))
            }
            _ => return None,
        };
        Some(self.clock(hour, minutes, false, next))
    }

    /// A time of day, with `am`, `p.m.` or `in the morning` after it.
    pub(super) fn clock(&self, hour: u64, minute: u64, mut known: bool, at: usize) -> (Value, usize) {
        let (mut hour, mut next) = (hour, at);
        known |= hour > 12;
        if let Some((afternoon, after)) = self.half_of_day(at).filter(|_| hour <= 12) {
            hour = hour % 12 + if afternoon { 12 } else { 0 };
            known = true;
            next = after;
        }
        (Value::Time { minutes: u32::try_from(hour * 60 + minute).unwrap_or(0) % 1_440, known }, next)
    }

    /// Whether it is after noon, and what follows.
    pub(super) fn half_of_day(&self, at: usize) -> Option<(bool, usize)> {
        match (self.word(at), self.word(at + 1)) {
            ("am", _) => return Some((false, at + 1)),
            ("pm", _) => return Some((true, at + 1)),
            ("at", "night") => return Some((true, at + 2)),
            ("in", "the") => match self.word(at + 2) {
                "morning" => return Some((false, at + 3)),
                "afternoon" | "evening" => return Some((true, at + 3)),
                _ => {}
            },
            _ => {}
        }
        let letter =
            matches!(self.word(at), "a" | "p") && self.sign(at + 1) == Some('.') && self.word(at + 2) == "m";
        let ends_sentence = || self.raw(at + 4).chars().next().is_none_or(char::is_uppercase);
        letter.then(|| {
            (self.word(at) == "p", at + 3 + usize::from(self.sign(at + 3) == Some('.') && !ends_sentence()))
        })
    }
}
