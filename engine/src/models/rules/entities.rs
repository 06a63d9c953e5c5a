//! Finds values in a text that arguments may need: dates, times, numbers, addresses, quoted text.
use std::collections::BTreeMap;
use std::ops::Range;

use super::quotes::quoted;
use crate::base::time;

/// A value and its range in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entity {
    pub(super) span: Range<usize>,
    pub(super) kind: EntityKind,
    /// The normalised value: ISO form for a complete date or time, E.164 for a phone number with `+`, JSON's form for a number;
    /// otherwise the text as written.
    pub(super) value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EntityKind {
    Quoted,
    Email,
    Url,
    Date,
    Time,
    Phone,
    Number,
    /// A number in words.
    NumberWord,
    /// A word that contains a digit, such as `A-1234`.
    Code,
}

/// The entities of a text in order; they do not overlap.
pub(super) fn entities(text: &str) -> Vec<Entity> {
    let mut found = EntityFinder { text, entities: Vec::new(), taken: BTreeMap::new() };
    for passage in quoted(text) {
        let value = text.get(passage.clone()).unwrap_or_default().trim().to_owned();
        found.add(passage, EntityKind::Quoted, value);
    }
    let tokens = tokens(text);
    for token in &tokens {
        found.address(token);
    }
    for (place, token) in tokens.iter().enumerate() {
        let next = tokens.get(place + 1);
        found.date(token, next, tokens.get(place + 2), tokens.get(place + 3));
        found.time(token, next);
    }
    found.phones();
    for token in &tokens {
        found.number(token);
    }
    found.entities.sort_by_key(|entity| entity.span.start);
    found.entities
}

struct EntityFinder<'a> {
    text: &'a str,
    entities: Vec<Entity>,
    /// The ranges of the entities, by start.
    taken: BTreeMap<usize, usize>,
}

/// A white-space separated part of the text without surrounding punctuation.
#[derive(Debug, Clone, Copy)]
struct Token<'a> {
    text: &'a str,
    start: usize,
}

impl Token<'_> {
    const fn place(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }
}

impl EntityFinder<'_> {
    fn add(&mut self, place: Range<usize>, kind: EntityKind, value: String) {
        if !value.is_empty() && !self.is_taken(&place) {
            self.taken.insert(place.start, place.end);
            self.entities.push(Entity { span: place, kind, value });
        }
    }

    fn is_taken(&self, place: &Range<usize>) -> bool {
        self.taken.range(..place.end).next_back().is_some_and(|(_, end)| *end > place.start)
    }

    fn address(&mut self, token: &Token<'_>) {
        let address = token.text.strip_prefix("mailto:").unwrap_or(token.text);
        if is_email(address) {
            self.add(token.place(), EntityKind::Email, address.to_owned());
        } else if token.text.starts_with("https://") || token.text.starts_with("http://") {
            self.add(token.place(), EntityKind::Url, token.text.to_owned());
        }
    }

    fn date(
        &mut self,
        token: &Token<'_>,
        second: Option<&Token<'_>>,
        third: Option<&Token<'_>>,
        fourth: Option<&Token<'_>>,
    ) {
        if let Some(date) = written_date(token.text) {
            return self.add(token.place(), EntityKind::Date, date);
        }
        let Some(second) = second else {
            return self.relative_date(token, None);
        };
        // "12th of March" is "12 March".
        let of = second.text.eq_ignore_ascii_case("of");
        let (second, third) = if of { (third.unwrap_or(second), fourth) } else { (second, third) };
        let day_and_month = match (day(token.text), month(second.text)) {
            (Some(day), Some(month)) => Some((day, month)),
            _ => month(token.text).zip(day(second.text)).map(|(month, day)| (day, month)),
        };
        let Some((day, month)) = day_and_month else {
            return self.relative_date(token, Some(second));
        };
        let year = third.and_then(|token| Some((token, year(token.text)?)));
        match year.filter(|(_, year)| time::is_date(*year, month, day)) {
            Some((last, year)) => {
                let date = format!("{year:04}-{month:02}-{day:02}");
                self.add(token.start..last.place().end, EntityKind::Date, date);
            }
            None => self.add_words(token.start..second.place().end, EntityKind::Date),
        }
    }

    fn relative_date(&mut self, token: &Token<'_>, next: Option<&Token<'_>>) {
        const DAYS: [&str; 10] = [
            "today",
            "tomorrow",
            "yesterday",
            "monday",
            "tuesday",
            "wednesday",
            "thursday",
            "friday",
            "saturday",
            "sunday",
        ];
        let is_day = |text: &str| DAYS.contains(&text.to_ascii_lowercase().as_str());
        let qualified = matches!(token.text.to_ascii_lowercase().as_str(), "next" | "this");
        match next {
            Some(next) if qualified && is_day(next.text) => {
                self.add_words(token.start..next.place().end, EntityKind::Date);
            }
            _ if is_day(token.text) => self.add_words(token.place(), EntityKind::Date),
            _ => {}
        }
    }

    fn time(&mut self, token: &Token<'_>, next: Option<&Token<'_>>) {
        let lower = token.text.to_ascii_lowercase();
        let (digits, half) = half_of_day(&lower);
        if let Some(half) = half {
            if let Some(time) = clock(digits, Some(half)) {
                self.add(token.place(), EntityKind::Time, time);
            }
            return;
        }
        let following = next.map(|next| (next, next.text.to_ascii_lowercase()));
        if let Some((next, word)) = following
            && let ("", Some(half)) = half_of_day(&word)
            && let Some(time) = clock(&lower, Some(half))
        {
            return self.add(token.start..next.place().end, EntityKind::Time, time);
        }
        if lower.contains(':')
            && let Some(time) = clock(&lower, None)
        {
            self.add(token.place(), EntityKind::Time, time);
        }
    }

    /// Digits separated by spaces and `-().`: 7 to 15 after a `+`; otherwise 9 to 15 that start with 0 or contain a separator.
    fn phones(&mut self) {
        let bytes = self.text.as_bytes();
        let mut from = 0;
        while let Some(offset) = bytes.get(from..).and_then(|rest| rest.iter().position(begins_phone)) {
            let start = from + offset;
            let (end, digits, marks) = phone_run(bytes, start);
            from = end.max(start + 1);
            let apart = |byte: Option<&u8>| byte.is_none_or(|byte| !byte.is_ascii_alphanumeric());
            let before = start.checked_sub(1).and_then(|place| bytes.get(place));
            let plus = bytes.get(start) == Some(&b'+');
            let long_enough = if plus {
                (7..=15).contains(&digits.len())
            } else {
                (9..=15).contains(&digits.len()) && (marks || digits.starts_with('0'))
            };
            if long_enough && apart(before) && apart(bytes.get(end)) {
                let value = if plus { format!("+{digits}") } else { digits };
                self.add(start..end, EntityKind::Phone, value);
            }
        }
    }

    fn number(&mut self, token: &Token<'_>) {
        if let Some(value) = number(token.text) {
            return self.add(token.place(), EntityKind::Number, value);
        }
        const WORDS: [&str; 13] = [
            "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
            "twelve",
        ];
        let lower = token.text.to_ascii_lowercase();
        if let Some(value) = WORDS.iter().position(|word| *word == lower) {
            return self.add(token.place(), EntityKind::NumberWord, value.to_string());
        }
        let code = token.text.trim_start_matches('#');
        if code.contains(|char: char| char.is_ascii_digit())
            && code.chars().all(|char| char.is_alphanumeric() || matches!(char, '-' | '_' | '/' | '.'))
        {
            self.add(token.place(), EntityKind::Code, code.to_owned());
        }
    }

    fn add_words(&mut self, place: Range<usize>, kind: EntityKind) {
        let words = self.text.get(place.clone()).unwrap_or_default().to_owned();
        self.add(place, kind, words);
    }
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    text.split_whitespace()
        .filter_map(|piece| {
            let left = piece.trim_start_matches(['(', '[', '{', '"', '\'', '“', '‘', '<', '¿', '¡']);
            let token = left.trim_end_matches([
                '.', ',', ';', ':', '!', '?', ')', ']', '}', '"', '\'', '”', '’', '>', '。', '、', '？',
            ]);
            let start = piece.as_ptr().addr() - text.as_ptr().addr() + piece.len() - left.len();
            (!token.is_empty()).then_some(Token { text: token, start })
        })
        .collect()
}

fn is_email(token: &str) -> bool {
    let Some((local, domain)) = token.split_once('@') else {
        return false;
    };
    let local_ok = !local.is_empty()
        && !local.starts_with('.')
        && !local.ends_with('.')
        && local.chars().all(|char| char.is_alphanumeric() || "._%+-'".contains(char));
    let labels: Vec<_> = domain.split('.').collect();
    let label_ok = |label: &&str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|char| char.is_alphanumeric() || char == '-')
    };
    local_ok
        && labels.len() >= 2
        && labels.iter().all(label_ok)
        && labels.last().is_some_and(|label| label.chars().count() >= 2)
}

/// `2027-03-12` (if the date exists), optionally with a time; `12/03/2027` and `12.3.27` stay as written, because their order
/// is ambiguous.
fn written_date(token: &str) -> Option<String> {
    let head = token.get(..10).filter(|head| head.is_ascii()).unwrap_or_default();
    let is_iso = head.len() == 10
        && head.bytes().enumerate().all(|(place, byte)| match place {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if !is_iso {
        return numeric_date(token);
    }
    let number = |digits: &str| digits.parse().unwrap_or_default();
    if !time::is_date(number(&head[..4]), number(&head[5..7]), number(&head[8..])) {
        return None;
    }
    let rest = token.get(10..)?;
    (rest.is_empty() || rest.starts_with(['T', 't'])).then(|| token.to_owned())
}

fn numeric_date(token: &str) -> Option<String> {
    for mark in ['/', '.'] {
        let parts: Vec<_> = token.split(mark).collect();
        if let [one, two, year] = parts.as_slice()
            && day(one).is_some()
            && day(two).is_some()
            && self::year(year).is_some()
        {
            return Some(token.to_owned());
        }
    }
    None
}

fn day(token: &str) -> Option<i64> {
    let lower = token.to_ascii_lowercase();
    let digits = ["st", "nd", "rd", "th"]
        .iter()
        .find_map(|ending| lower.strip_suffix(ending))
        .unwrap_or(lower.trim_end_matches('.'));
    if digits.len() > 2 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|day| (1..=31).contains(day))
}

fn month(token: &str) -> Option<i64> {
    time::month_number(&token.to_ascii_lowercase()).map(i64::from)
}

fn year(token: &str) -> Option<i64> {
    let is_year = token.len() == 4 && token.bytes().all(|byte| byte.is_ascii_digit());
    if is_year { token.parse().ok() } else { None }
}

/// Splits "7pm" into "7" and whether it is the afternoon.
fn half_of_day(lower: &str) -> (&str, Option<bool>) {
    for (ending, afternoon) in [("am", false), ("a.m", false), ("pm", true), ("p.m", true)] {
        if let Some(digits) = lower.strip_suffix(ending) {
            return (digits, Some(afternoon));
        }
    }
    (lower, None)
}

/// `HH:MM` of "7", "7:30" or "19:30".
fn clock(digits: &str, afternoon: Option<bool>) -> Option<String> {
    let (hour, minute) = digits.split_once([':', '.']).unwrap_or((digits, "00"));
    let plain = |text: &str, len: Range<usize>| {
        len.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    if !plain(hour, 1..3) || !plain(minute, 2..3) {
        return None;
    }
    let (hour, minute): (u8, u8) = (hour.parse().ok()?, minute.parse().ok()?);
    let hour = match afternoon {
        None => hour,
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some(afternoon) => hour % 12 + if afternoon { 12 } else { 0 },
    };
    (hour < 24 && minute < 60).then(|| format!("{hour:02}:{minute:02}"))
}

const fn begins_phone(byte: &u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'+' | b'(')
}

/// The end of a run of phone number characters, its digits, and whether it contains separators.
fn phone_run(bytes: &[u8], start: usize) -> (usize, String, bool) {
    let mut digits = String::new();
    let (mut end, mut marks, mut gap) = (start, false, 0);
    for (place, byte) in bytes.iter().enumerate().skip(start) {
        let opening = place == start && matches!(byte, b'+' | b'(');
        match byte {
            b'0'..=b'9' => {
                digits.push(char::from(*byte));
                end = place + 1;
                gap = 0;
            }
            b' ' | b'-' | b'.' | b'(' | b')' if gap < 2 => {
                gap += 1;
                marks |= *byte != b' ' && place > start;
            }
            _ if opening => {}
            _ => break,
        }
        // Longer than any phone number: continue after it.
        if digits.len() > 40 {
            break;
        }
    }
    (end, digits, marks)
}

/// The number in JSON's form: `$1,200.50` is `1200.50`, `#7` is `7`.
fn number(token: &str) -> Option<String> {
    let token = token.trim_start_matches(['$', '€', '£', '¥', '#']).trim_end_matches(['€', '%', '£', '$']);
    let (sign, digits) = match token.strip_prefix(['-', '−']) {
        Some(digits) => ("-", digits),
        None => ("", token),
    };
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(w, f)| (w, Some(f)));
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let mut groups = whole.split(',');
    let first = groups.next().unwrap_or_default();
    let rest: Vec<_> = groups.collect();
    let grouped = rest.is_empty() || first.len() <= 3 && rest.iter().all(|group| group.len() == 3);
    let ok = all_digits(first)
        && grouped
        && rest.iter().all(|group| all_digits(group))
        && fraction.is_none_or(all_digits);
    if !ok {
        return None;
    }
    let whole = format!("{first}{}", rest.concat());
    // Leading zeros stay: 007 is not a JSON number, but a valid code.
    Some(match fraction {
        Some(fraction) => format!("{sign}{whole}.{fraction}"),
        None => format!("{sign}{whole}"),
    })
}

#[cfg(test)]
mod tests;
