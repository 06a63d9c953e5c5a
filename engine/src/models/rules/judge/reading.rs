//! Reads a text into words, values and punctuation, in one pass.
use std::ops::Range;

use super::spoken_numbers::{below_twenty, month, ordinal, scale, tens};
use super::values::Value;
use crate::base::text::casefold;
use crate::models::rules::words::is_spaceless;

/// A part of a text.
#[derive(Debug, Clone)]
pub(super) enum Item {
    /// The place of a case-folded word in [`Text::folded`].
    Word(Range<u32>),
    /// Boxed, because most parts are words.
    Value(Box<Value>),
    /// Punctuation, or the end of a line.
    Sign(char),
}

/// A text that was read.
#[derive(Debug, Clone, Default)]
pub(super) struct Text {
    folded: String,
    pub(super) items: Vec<Item>,
}

impl Text {
    /// Reads a text.
    pub(super) fn read(text: &str) -> Self {
        let tokens = tokens(text);
        let mut reader = Reader { text, tokens, folded: Vec::new() };
        reader.folded = reader.tokens.iter().map(|token| reader.fold(token)).collect();
        let mut out = Self::default();
        let mut at = 0;
        while let Some(token) = reader.tokens.get(at) {
            if let Some((value, next)) = reader.value(at) {
                out.items.push(Item::Value(Box::new(value)));
                at = next.max(at + 1);
                continue;
            }
            match token.kind {
                Kind::Sign(sign) => out.items.push(Item::Sign(sign)),
                _ => out.push_word(reader.word(at)),
            }
            at += 1;
        }
        out
    }

    fn push_word(&mut self, word: &str) {
        let place = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
        let start = place(self.folded.len());
        self.folded.push_str(word);
        self.items.push(Item::Word(start..place(self.folded.len())));
    }

    /// The word at this place; `None` for anything else.
    pub(super) fn word(&self, at: usize) -> Option<&str> {
        match self.items.get(at)? {
            Item::Word(range) => self.folded.get(range.start as usize..range.end as usize),
            _ => None,
        }
    }

    /// The value at this place.
    pub(super) fn value(&self, at: usize) -> Option<&Value> {
        match self.items.get(at)? {
            Item::Value(value) => Some(value),
            _ => None,
        }
    }

    /// The punctuation at this place.
    pub(super) fn sign(&self, at: usize) -> Option<char> {
        match self.items.get(at)? {
            Item::Sign(sign) => Some(*sign),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Word,
    /// Digits, with `.`, `,` or `:` between them.
    Figures,
    Sign(char),
}

#[derive(Debug, Clone, Copy)]
struct Token {
    kind: Kind,
    start: usize,
    end: usize,
    /// Nothing stands between it and the token before.
    glued: bool,
}

fn tokens(text: &str) -> Vec<Token> {
    let mut out: Vec<Token> = Vec::new();
    let mut chars = text.char_indices().peekable();
    let mut before_end = usize::MAX;
    while let Some((start, char)) = chars.next() {
        if char.is_whitespace() && char != '\n' {
            continue;
        }
        let mut end = start + char.len_utf8();
        let kind = if char.is_ascii_digit() {
            while let Some(&(place, next)) = chars.peek() {
                let joins = matches!(next, '.' | ',' | ':')
                    && text.as_bytes().get(place + 1).is_some_and(u8::is_ascii_digit);
                if !(next.is_ascii_digit() || joins) {
                    break;
                }
                end = place + next.len_utf8();
                chars.next();
            }
            Kind::Figures
        } else if char.is_alphanumeric() {
            while let Some(&(place, next)) = chars.peek() {
                let letter = next.is_alphanumeric() && !next.is_ascii_digit()
                    || ('\u{300}'..='\u{36f}').contains(&next);
                let after = || text.get(place + next.len_utf8()..).and_then(|rest| rest.chars().next());
                let joins = matches!(next, '\'' | '\u{2019}') && after().is_some_and(char::is_alphabetic);
                if is_spaceless(char) || is_spaceless(next) || !(letter || joins) {
                    break;
                }
                end = place + next.len_utf8();
                chars.next();
            }
            Kind::Word
        } else {
            Kind::Sign(char)
        };
        out.push(Token { kind, start, end, glued: before_end == start });
        before_end = end;
    }
    out
}

struct Reader<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    /// The case-folded words; empty for anything else.
    folded: Vec<String>,
}

/// A number with the place after it.
struct Found {
    number: String,
    next: usize,
    whole: Option<u64>,
}

impl Reader<'_> {
    fn raw(&self, at: usize) -> &str {
        self.tokens.get(at).and_then(|token| self.text.get(token.start..token.end)).unwrap_or_default()
    }

    fn fold(&self, token: &Token) -> String {
        match token.kind {
            Kind::Word => {
                casefold(self.text.get(token.start..token.end).unwrap_or_default()).replace('\u{2019}', "'")
            }
            _ => String::new(),
        }
    }

    /// The case-folded word; empty for anything else.
    fn word(&self, at: usize) -> &str {
        self.folded.get(at).map_or("", String::as_str)
    }

    /// The digits; empty unless there is nothing between them.
    fn figures(&self, at: usize) -> &str {
        let raw = self.raw(at);
        if raw.bytes().all(|byte| byte.is_ascii_digit()) { raw } else { "" }
    }

    fn sign(&self, at: usize) -> Option<char> {
        match self.tokens.get(at)?.kind {
            Kind::Sign(sign) => Some(sign),
            _ => None,
        }
    }

    fn glued(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|token| token.glued)
    }

    fn value(&self, at: usize) -> Option<(Value, usize)> {
        self.email(at)
            .or_else(|| self.written_date(at))
            .or_else(|| self.code(at))
            .or_else(|| self.prefixed_money(at))
            .or_else(|| self.month_first(at))
            .or_else(|| self.named_time(at))
            .or_else(|| self.telephone(at))
            .or_else(|| self.ordinal(at))
            .or_else(|| self.counted(at))
    }

    fn email(&self, at: usize) -> Option<(Value, usize)> {
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
        .then(|| (Value::Email(self.letters_and_digits(at..end)), end))
    }

    fn letters_and_digits(&self, range: Range<usize>) -> String {
        range
            .flat_map(|place| self.raw(place).chars())
            .filter(|char| char.is_alphanumeric())
            .flat_map(char::to_lowercase)
            .collect()
    }

    /// `2026-05-04`, or days and months that cannot be told apart, which are only digits.
    fn written_date(&self, at: usize) -> Option<(Value, usize)> {
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

    /// `BD-17`, `BD17`, `BD 17`, `B D one seven`, `24B`.
    fn code(&self, at: usize) -> Option<(Value, usize)> {
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

    fn rest_of_code(&self, mut end: usize) -> usize {
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

    /// A digit, as figure or word.
    fn digit(&self, at: usize) -> Option<char> {
        let figure = Some(self.figures(at))
            .filter(|figures| figures.len() == 1)
            .and_then(|figures| figures.chars().next());
        let word = || match self.word(at) {
            "oh" | "o" => Some('0'),
            word => below_twenty(word)
                .filter(|number| *number < 10)
                .and_then(|number| char::from_digit(u32::try_from(number).ok()?, 10)),
        };
        figure.or_else(word)
    }

    /// Digits said one by one, without punctuation between them.
    fn singles(&self, at: usize) -> Option<(String, usize)> {
        let mut said = String::new();
        let mut next = at;
        loop {
            let times = match self.word(next) {
                "double" => 2,
                "triple" => 3,
                _ => 1,
            };
            let place = next + usize::from(times > 1);
            let Some(digit) = self.digit(place) else { break };
            said.extend(std::iter::repeat_n(digit, times));
            next = place + 1;
        }
        (next > at).then_some((said, next))
    }

    fn telephone(&self, at: usize) -> Option<(Value, usize)> {
        const DIGITS_MIN: usize = 7;
        const DIGITS_MAX: usize = 40;
        let mut said = String::new();
        let (mut next, mut end, mut groups, mut all_single) = (at, at, 0, true);
        let plus = self.sign(at) == Some('+') || self.word(at) == "plus";
        if plus || self.sign(at) == Some('(') {
            next += 1;
        }
        if self.digit(next).is_none()
            && self.figures(next).is_empty()
            && !matches!(self.word(next), "double" | "triple")
        {
            return None;
        }
        let mut through_comma = false;
        while said.len() < DIGITS_MAX {
            if let Some((singles, after)) = self.singles(next) {
                if groups == 0 && matches!(self.word(next), "oh" | "o") {
                    return None;
                }
                groups += after - next;
                said.push_str(&singles);
                next = after;
            } else if !self.figures(next).is_empty() || self.raw(next).matches('.').count() > 1 {
                said.extend(self.raw(next).chars().filter(char::is_ascii_digit));
                groups += 1;
                all_single = false;
                next += 1;
            } else {
                break;
            }
            end = next;
            let is_word = !self.word(next.wrapping_sub(1)).is_empty();
            let is_between = |place: usize| match self.sign(place) {
                Some('-' | '(' | ')' | '/') => true,
                Some(',') => is_word,
                Some('.') => self.glued(place) && self.glued(place + 1),
                _ => false,
            };
            while is_between(next) {
                through_comma |= self.sign(next) == Some(',');
                next += 1;
            }
        }
        let is_long = said.len() >= DIGITS_MIN && (groups > 1 || plus || !self.figures(at).is_empty());
        let is_spelled = all_single && said.len() >= 3 && groups > 1 && !through_comma;
        let has_zero = said.len() > 1 && said.starts_with('0') && groups == 1 && !self.figures(at).is_empty();
        (is_long || is_spelled || has_zero).then_some((Value::Digits(said), end))
    }

    fn prefixed_money(&self, at: usize) -> Option<(Value, usize)> {
        let currency = match self.sign(at) {
            Some('$') => "usd",
            Some('€') => "eur",
            Some('£') => "gbp",
            Some('¥') => "jpy",
            Some(_) => return None,
            None => currency(self.word(at)).filter(|_| self.word(at).len() == 3)?,
        };
        let found = self.number(at + 1)?;
        Some((Value::Money { currency, amount: found.number }, found.next))
    }

    /// `May 4`, `May the fourth, 2026`.
    fn month_first(&self, at: usize) -> Option<(Value, usize)> {
        let month = month(self.word(at))?;
        let place = at + 1 + usize::from(self.sign(at + 1) == Some('.'));
        let place = place + usize::from(self.word(place) == "the");
        let (day, next) = self.day(place)?;
        let (year, next) = self.year(next);
        Some((Value::Date { day, month, year }, next))
    }

    fn year(&self, at: usize) -> (Option<u32>, usize) {
        let place = at + usize::from(self.sign(at) == Some(','));
        match self.figures(place).parse() {
            Ok(year @ 1_900..=2_199) => (Some(year), place + 1),
            _ => (None, at),
        }
    }

    /// The day of a month.
    fn day(&self, at: usize) -> Option<(u32, usize)> {
        let (day, next) = self.ordinal_number(at).or_else(|| {
            let found = self.number(at)?;
            Some((u32::try_from(found.whole?).ok()?, found.next))
        })?;
        (1..=31).contains(&day).then_some((day, next))
    }

    fn ordinal_number(&self, at: usize) -> Option<(u32, usize)> {
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
    fn ordinal(&self, at: usize) -> Option<(Value, usize)> {
        let (number, next) = self.ordinal_number(at)?;
        if let Some(date) = self.month_after(number, next) {
            return Some(date);
        }
        (!matches!(self.word(at), "first" | "second")).then_some((Value::Ordinal(number), next))
    }

    fn month_after(&self, day: u32, at: usize) -> Option<(Value, usize)> {
        let place = at + usize::from(self.word(at) == "of");
        let month = month(self.word(place)).filter(|_| (1..=31).contains(&day))?;
        let (year, next) = self.year(place + 1);
        Some((Value::Date { day, month, year }, next))
    }

    /// Noon, `half past nine`, `quarter to ten`.
    fn named_time(&self, at: usize) -> Option<(Value, usize)> {
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
    fn clock(&self, hour: u64, minute: u64, mut known: bool, at: usize) -> (Value, usize) {
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
    fn half_of_day(&self, at: usize) -> Option<(bool, usize)> {
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

    /// A number with what it counts: a time, a date, money, a percentage, or nothing.
    fn counted(&self, at: usize) -> Option<(Value, usize)> {
        if let Some((hour, minute)) = self.raw(at).split_once(':') {
            let padded = hour.len() == 2 && hour.starts_with('0');
            let (hour, minute) = (hour.parse().ok()?, minute.get(..2)?.parse().ok()?);
            return (hour < 24 && minute < 60).then(|| self.clock(hour, minute, padded || hour == 0, at + 1));
        }
        let found = self.number(at)?;
        let next = found.next;
        if let Some(date) = found.whole.and_then(|day| self.month_after(u32::try_from(day).ok()?, next)) {
            return Some(date);
        }
        let hour = found.whole.filter(|hour| (1..=12).contains(hour));
        if let Some(hour) = hour {
            if self.word(next) == "o'clock" {
                return Some(self.clock(hour, 0, false, next + 1));
            }
            if self.half_of_day(next).is_some() {
                return Some(self.clock(hour, 0, false, next));
            }
            let minute = self
                .number(next)
                .filter(|found| found.whole.is_some_and(|minute| (10..60).contains(&minute)));
            let is_at = self.word(at.wrapping_sub(1)) == "at";
            if let Some((minute, after)) = minute.and_then(|found| Some((found.whole?, found.next)))
                && (is_at || self.half_of_day(after).is_some())
            {
                return Some(self.clock(hour, minute, false, after));
            }
            let ends = matches!(self.sign(next), Some('.' | ',' | '?' | '!')) || next >= self.tokens.len();
            if is_at && (ends || FOLLOWS_TIME.contains(&self.word(next))) {
                return Some(self.clock(hour, 0, false, next));
            }
        }
        if let Some((hour, minute)) =
            found.number.split_once('.').filter(|_| self.half_of_day(next).is_some())
        {
            let minute = if minute.len() == 1 { format!("{minute}0") } else { minute.to_owned() };
            let (hour, minute) = (hour.parse().ok()?, minute.parse().ok()?);
            if (1..=12).contains(&hour) && minute < 60 {
                return Some(self.clock(hour, minute, false, next));
            }
        }
        if self.sign(next) == Some('%') || self.word(next) == "percent" {
            return Some((Value::Percent(found.number), next + 1));
        }
        if self.word(next) == "per" && self.word(next + 1) == "cent" {
            return Some((Value::Percent(found.number), next + 2));
        }
        if matches!(self.word(next), "cent" | "cents") {
            return Some((Value::Money { currency: "", amount: plus_cents("0", found.whole?) }, next + 1));
        }
        let by_sign = match self.sign(next) {
            Some('$') => Some("usd"),
            Some('€') => Some("eur"),
            Some('£') => Some("gbp"),
            _ => None,
        };
        if let Some(currency) = by_sign.or_else(|| currency(self.word(next))) {
            let place = next + 1 + usize::from(self.word(next + 1) == "and");
            let cents = self
                .number(place)
                .filter(|cents| matches!(self.word(cents.next), "cent" | "cents" | "pence"));
            if let Some(cents) = cents
                && let Some(whole) = cents.whole.filter(|cents| *cents < 100)
            {
                return Some((
                    Value::Money { currency, amount: plus_cents(&found.number, whole) },
                    cents.next + 1,
                ));
            }
            return Some((Value::Money { currency, amount: found.number }, next + 1));
        }
        Some((Value::Number(found.number), next))
    }

    /// A number in figures or words.
    fn number(&self, at: usize) -> Option<Found> {
        let raw = self.raw(at);
        let (mut next, mut total, mut group) = (at, 0_u64, None);
        if matches!(self.tokens.get(at)?.kind, Kind::Figures) {
            let number = decimal(raw)?;
            let whole = number.parse().ok().filter(|_| number.len() <= 12);
            let scaled = scale(self.word(at + 1)).filter(|_| !self.glued(at + 1));
            match (whole, scaled) {
                (Some(whole), Some(_)) => group = Some(whole),
                _ => return Some(Found { number, next: at + 1, whole }),
            }
            next += 1;
        } else if matches!(self.word(at), "a" | "an") && scale(self.word(at + 1)).is_some() {
            group = Some(1);
            next += 1;
        }
        loop {
            let word = self.word(next);
            let now = group.unwrap_or(0);
            if let Some(number) = below_twenty(word) {
                let fits = match group {
                    None => true,
                    Some(_) => {
                        number > 0 && now.is_multiple_of(100)
                            || number < 10 && number > 0 && now.is_multiple_of(10) && now % 100 >= 20
                    }
                };
                if !fits {
                    break;
                }
                group = Some(now + number);
            } else if let Some(number) = tens(word) {
                if group.is_some() && !now.is_multiple_of(100) {
                    break;
                }
                group = Some(now + number);
            } else if let Some(factor) = scale(word).filter(|_| now > 0 && now < 1_000_000) {
                if factor < 1_000 {
                    group = Some(now * factor);
                } else {
                    total = (total + now * factor).min(1_000_000_000_000);
                    // What may follow is a new group.
                    group = Some(0);
                }
            } else {
                let is_part = |place: usize| {
                    below_twenty(self.word(place)).is_some() || tens(self.word(place)).is_some()
                };
                let joins = self.sign(next) == Some('-')
                    && self.glued(next)
                    && now % 100 >= 20
                    && below_twenty(self.word(next + 1)).is_some_and(|ones| ones < 10)
                    || word == "and"
                        && group.is_some()
                        && now.is_multiple_of(100)
                        && total + now > 0
                        && is_part(next + 1);
                if !joins {
                    break;
                }
            }
            next += 1;
        }
        let whole = total + group?;
        let mut number = whole.to_string();
        if self.word(next) == "point"
            && let Some((fraction, after)) = self.singles(next + 1)
        {
            number = trimmed(format!("{number}.{fraction}"));
            return Some(Found { number, next: after, whole: None });
        }
        Some(Found { number, next, whole: Some(whole) })
    }
}

/// What may follow a time of day without `o'clock`.
const FOLLOWS_TIME: [&str; 18] = [
    "on", "in", "and", "for", "tomorrow", "today", "tonight", "sharp", "every", "with", "or", "until",
    "till", "when", "but", "so", "because", "if",
];

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

fn currency(word: &str) -> Option<&'static str> {
    Some(match word {
        "dollar" | "dollars" | "buck" | "bucks" | "usd" => "usd",
        "euro" | "euros" | "eur" => "eur",
        "pound" | "pounds" | "gbp" | "quid" => "gbp",
        "yen" | "jpy" => "jpy",
        "franc" | "francs" | "chf" => "chf",
        _ => return None,
    })
}

fn plus_cents(whole: &str, cents: u64) -> String {
    trimmed(format!("{whole}.{cents:02}"))
}

/// Without zeros after the point.
fn trimmed(number: String) -> String {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.').to_owned() } else { number }
}

/// A number in figures: `1,250.50` is `1250.5`. `None` for what is none, such as a time.
fn decimal(raw: &str) -> Option<String> {
    if raw.contains(':') || raw.matches('.').count() > 1 {
        return None;
    }
    let (whole, fraction) = raw.split_once('.').unwrap_or((raw, ""));
    let mut groups = whole.split(',');
    let first = groups.next()?;
    let rest: Vec<&str> = groups.collect();
    let number = if rest.iter().all(|group| group.len() == 3) {
        format!("{first}{}.{fraction}", rest.concat())
    } else if rest.len() == 1 && fraction.is_empty() {
        format!("{first}.{}", rest.concat())
    } else {
        return None;
    };
    let number = trimmed(number);
    let bare = number.trim_start_matches('0');
    Some(if bare.is_empty() || bare.starts_with('.') { format!("0{bare}") } else { bare.to_owned() })
}
