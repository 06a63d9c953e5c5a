//! Numbers, with what they count: money, percentages, telephone numbers.
use super::{Found, Kind, Reader};
use crate::models::rules::judge::spoken_numbers::{below_twenty, scale, tens};
use crate::models::rules::judge::values::Value;

impl Reader<'_> {
    /// A digit, as figure or word.
    pub(super) fn digit(&self, at: usize) -> Option<char> {
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
    pub(super) fn singles(&self, at: usize) -> Option<(String, usize)> {
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

    pub(super) fn telephone(&self, at: usize) -> Option<(Value, usize)> {
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

    pub(super) fn prefixed_money(&self, at: usize) -> Option<(Value, usize)> {
        // "A dollar"
        if matches!(self.word(at), "a" | "an")
            && let Some(currency) = currency(self.word(at + 1))
        {
            return Some((Value::Money { currency, amount: "1".to_owned() }, at + 2));
        }
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

    /// A number with what it counts: a time, a date, money, a percentage, or nothing.
    pub(super) fn counted(&self, at: usize) -> Option<(Value, usize)> {
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
            if is_at && self.ends_time(next) {
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
            return Some((Value::Money { currency: "", amount: in_cents(found.whole?) }, next + 1));
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

    /// Whether nothing follows that would make a number of something of the hour before.
    pub(super) fn ends_time(&self, next: usize) -> bool {
        let ends = matches!(self.sign(next), Some('.' | ',' | '?' | '!' | '"' | ';'));
        ends || next >= self.tokens.len() || FOLLOWS_TIME.contains(&self.word(next))
    }

    /// A number in figures or words.
    pub(super) fn number(&self, at: usize) -> Option<Found> {
        const TOKENS_MAX: usize = 24;
        let raw = self.raw(at);
        let (mut next, mut total, mut group) = (at, 0_u64, None);
        if let Some(found) = self.signed(at).or_else(|| self.half_of_scale(at)) {
            return Some(found);
        }
        if matches!(self.tokens.get(at)?.kind, Kind::Figures) {
            let number = decimal(raw)?;
            let whole = number.parse().ok().filter(|_| number.len() <= 12);
            if let Some(zeros) = self.short_scale(at) {
                return Some(found(shifted(&number, zeros), at + 2));
            }
            let scaled = scale(self.word(at + 1)).filter(|_| !self.glued(at + 1));
            match (whole, scaled) {
                (Some(whole), Some(_)) => group = Some(whole),
                (None, Some(factor)) if number.contains('.') && factor != 12 => {
                    return Some(found(shifted(&number, factor.ilog10() as usize), at + 2));
                }
                _ => return Some(Found { number, next: at + 1, whole }),
            }
            next += 1;
        } else if matches!(self.word(at), "a" | "an")
            && scale(self.word(at + 1)).is_some_and(|_| self.word(at + 1) != "grand")
        {
            group = Some(1);
            next += 1;
        }
        while next < at + TOKENS_MAX {
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
            } else if let Some(factor) =
                scale(word).filter(|_| now > 0 && now < 1_000_000 && total < 1_000_000_000_000)
            {
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
                // "One thousand, two hundred."
                let hundreds = total > 0
                    && now == 0
                    && self.sign(next) == Some(',')
                    && is_part(next + 1)
                    && self.word(next + 2) == "hundred";
                if !joins && !hundreds {
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
            return Some(self.scaled(number, after));
        }
        if whole < 100 && self.word(next) == "and" {
            let (fraction, after) = match (self.word(next + 1), self.word(next + 2)) {
                ("a", "half") => (".5", next + 3),
                ("a", "quarter") => (".25", next + 3),
                ("three", "quarters") => (".75", next + 3),
                _ => return Some(Found { number, next, whole: Some(whole) }),
            };
            return Some(self.scaled(number + fraction, after));
        }
        Some(Found { number, next, whole: Some(whole) })
    }

    /// A number with a fraction, and the thousands or millions after it.
    fn scaled(&self, number: String, next: usize) -> Found {
        match scale(self.word(next)).filter(|factor| *factor != 12) {
            Some(factor) => found(shifted(&number, factor.ilog10() as usize), next + 1),
            None => Found { number, next, whole: None },
        }
    }

    /// `-5` and `.5`, which begin with a sign.
    fn signed(&self, at: usize) -> Option<Found> {
        let sign = self.sign(at).filter(|_| self.glued(at + 1))?;
        let after_currency = || matches!(self.sign(at.wrapping_sub(1)), Some('$' | '€' | '£' | '-'));
        if self.glued(at) && !(sign == '.' && after_currency()) {
            return None;
        }
        match sign {
            '.' if !self.figures(at + 1).is_empty() => Some(Found {
                number: trimmed(format!("0.{}", self.figures(at + 1))),
                next: at + 2,
                whole: None,
            }),
            '-' if matches!(self.tokens.get(at + 1)?.kind, Kind::Figures) => {
                Some(Found { number: format!("-{}", decimal(self.raw(at + 1))?), next: at + 2, whole: None })
            }
            _ => None,
        }
    }

    /// "Half a million", "half a dozen".
    fn half_of_scale(&self, at: usize) -> Option<Found> {
        if self.word(at) != "half" {
            return None;
        }
        let place = at + 1 + usize::from(matches!(self.word(at + 1), "a" | "an"));
        let factor = scale(self.word(place)).filter(|_| self.word(place) != "grand")?;
        Some(found((factor / 2).to_string(), place + 1))
    }

    /// How many zeros a letter after the figures adds: `2k`, `$5m`.
    fn short_scale(&self, at: usize) -> Option<usize> {
        let is_money = || {
            matches!(self.sign(at.wrapping_sub(1)), Some('$' | '€' | '£' | '¥'))
                || currency(self.word(at + 2)).is_some()
        };
        match self.word(at + 1) {
            "k" if self.glued(at + 1) => Some(3),
            "m" if self.glued(at + 1) && is_money() => Some(6),
            "mn" | "mio" => Some(6),
            "b" if self.glued(at + 1) && is_money() => Some(9),
            "bn" => Some(9),
            _ => None,
        }
    }
}

fn found(number: String, next: usize) -> Found {
    let whole = number.parse().ok();
    Found { number, next, whole }
}

/// The number with the point so many places further to the right.
pub(in crate::models::rules::judge) fn shifted(number: &str, zeros: usize) -> String {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let (inside, rest) = fraction.split_at(zeros.min(fraction.len()));
    let number = trimmed(format!("{whole}{inside:0<zeros$}.{rest}"));
    let bare = number.trim_start_matches('0');
    if bare.is_empty() || bare.starts_with('.') { format!("0{bare}") } else { bare.to_owned() }
}

/// What may follow a time of day without `o'clock`.
const FOLLOWS_TIME: [&str; 18] = [
    "on", "in", "and", "for", "tomorrow", "today", "tonight", "sharp", "every", "with", "or", "until",
    "till", "when", "but", "so", "because", "if",
];

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

fn in_cents(cents: u64) -> String {
    plus_cents(&(cents / 100).to_string(), cents % 100)
}

fn plus_cents(whole: &str, cents: u64) -> String {
    trimmed(format!("{whole}.{cents:02}"))
}

/// Without zeros after the point.
fn trimmed(number: String) -> String {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.').to_owned() } else { number }
}

/// A number in figures: `1,250.50` is `1250.5`. `None` for what is none, such as a time.
pub(super) fn decimal(raw: &str) -> Option<String> {
    if let Some(number) = continental(raw) {
        return Some(number);
    }
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

/// `1.000,50` and `1.000.000`.
fn continental(raw: &str) -> Option<String> {
    let (whole, fraction) = raw.split_once(',').unwrap_or((raw, ""));
    let points = whole.matches('.').count();
    let fits = points > usize::from(fraction.is_empty())
        && !fraction.contains(['.', ','])
        && whole.split('.').skip(1).all(|group| group.len() == 3)
        && whole.find('.').is_some_and(|first| (1..=3).contains(&first))
        && !raw.contains(':');
    fits.then(|| trimmed([whole.replace('.', "").as_str(), ".", fraction].concat()))
}
