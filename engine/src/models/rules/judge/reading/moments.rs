//! Dates and times of day.
use super::Reader;
use crate::base::time::month_number;
use crate::models::rules::judge::spoken_numbers::{ordinal, tens};
use crate::models::rules::judge::values::Value;
use crate::models::rules::judge::vocabulary::is_one_of;

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
            // Only one of them can be the month.
            (1 | 2, [day @ 13..=31, month @ 1..=12, year @ 1_900..=2_199])
            | (1 | 2, [month @ 1..=12, day @ 13..=31, year @ 1_900..=2_199]) => {
                Some((Value::Date { day, month, year: Some(year) }, at + 5))
            }
            (1 | 2, [_, _, year]) if sign == '/' && year > 0 => Some((Value::Digits(parts.concat()), at + 5)),
            _ => None,
        }
    }

    /// `May 4`, `May the fourth, 2026`.
    pub(super) fn month_first(&self, at: usize) -> Option<(Value, usize)> {
        let month = month_number(self.word(at))?;
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
            Ok(_) => (None, at),
            Err(_) => self.spoken_year(place).map_or((None, at), |(year, next)| (Some(year), next)),
        }
    }

    /// "Twenty twenty-six".
    fn spoken_year(&self, at: usize) -> Option<(u32, usize)> {
        let first = self.number(at)?;
        let (year, next) = match first.whole? {
            year @ 1_900..=2_199 => (year, first.next),
            century @ 19..=21 => {
                let rest = self.number(first.next)?;
                (century * 100 + rest.whole.filter(|year| *year < 100)?, rest.next)
            }
            _ => return None,
        };
        Some((u32::try_from(year).ok()?, next))
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
            let ending = self.glued(at + 1) && is_one_of(self.word(at + 1), "st nd rd th");
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
        let month = month_number(self.word(place)).filter(|_| (1..=31).contains(&day))?;
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

    /// "Ten past one", "twenty to eight in the evening". `sure`: nothing else can be meant, such as from five to ten.
    pub(super) fn clock_phrase(&self, at: usize, sure: bool) -> Option<(Value, usize)> {
        let is_quarter = self.word(at) == "quarter";
        let (minutes, next) = if is_quarter {
            (15, at + 1)
        } else {
            let found = self.number(at)?;
            (found.whole.filter(|minutes| (1..=59).contains(minutes))?, found.next)
        };
        let named = is_one_of(self.word(next), "minutes minute mins min");
        let link = next + usize::from(named);
        let past = match self.word(link) {
            "past" | "after" => true,
            "to" | "before" | "till" | "til" => false,
            "of" if named || is_quarter => false,
            _ => return None,
        };
        let (hour, known, end) = match self.word(link + 1) {
            "noon" | "midday" => (12, Some(12), link + 2),
            "midnight" => (12, Some(0), link + 2),
            _ => {
                let found = self.number(link + 1)?;
                (found.whole.filter(|hour| (1..=12).contains(hour))?, None, found.next)
            }
        };
        let end = end + usize::from(self.word(end) == "o'clock");
        let is_clock = self.half_of_day(end).is_some() || self.word(end - 1) == "o'clock" || known.is_some();
        let before = |back: usize| at.checked_sub(back).map_or("", |place| self.word(place));
        let is_told = named
            || is_quarter
            || matches!(before(1), "at" | "time" | "it's")
            || before(1) == "is" && matches!(before(2), "it" | "time");
        let is_sure = is_clock || self.word(link) == "past" || is_told && self.ends_time(end);
        if sure && (!is_sure || matches!(before(1), "from" | "between")) {
            return None;
        }
        if let Some(noon) = known {
            let noon = noon * 60;
            let time = if past { noon + minutes } else { (noon + 1_440 - minutes) % 1_440 };
            return Some((Value::Time { minutes: u32::try_from(time).ok()?, known: true }, end));
        }
        Some(if past {
            self.clock(hour, minutes, false, end)
        } else {
            self.clock((hour + 10) % 12 + 1, 60 - minutes, false, end)
        })
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
            ("this", "morning") => return Some((false, at + 2)),
            ("this", "afternoon" | "evening") => return Some((true, at + 2)),
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
