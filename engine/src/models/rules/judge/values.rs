//! What a text says in numbers: amounts, dates, times, telephone numbers, codes. However they are written, equal ones compare
//! as equal.

use super::reading::shifted;

/// How alike two values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Likeness {
    /// They differ.
    Differ,
    /// They may mean the same, such as `3 pm` and `three`.
    MayBe,
    /// They are the same.
    Same,
}

/// A value in a text. Numbers are decimal, without superfluous zeros.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Number(String),
    /// A telephone number, or digits said one by one.
    Digits(String),
    /// Letters and digits, such as `BD-17`; case-folded, without separators.
    Code(String),
    /// An e-mail address, in small letters.
    Email(String),
    Percent(String),
    /// `currency` is empty for cents of an unknown one.
    Money {
        currency: &'static str,
        amount: String,
    },
    Date {
        day: u32,
        month: u32,
        year: Option<u32>,
    },
    /// Minutes from midnight. Whether it is before noon is not always `known`.
    Time {
        minutes: u32,
        known: bool,
    },
    /// A day of a month, or a place in an order.
    Ordinal(u32),
    /// A day whose date only a calendar tells, such as tomorrow. Nobody asks for it.
    SomeDay,
    /// Figures that may be any value. Nobody asks for it.
    Unclear,
}

/// An address without its signs, which may be spoken.
pub(super) fn letters(address: &str) -> String {
    address.chars().filter(|char| char.is_alphanumeric()).collect()
}

impl Value {
    /// Whether `said` is this value, which a criterion asks for.
    pub(super) fn likeness(&self, said: &Self) -> Likeness {
        let exactly = |is: bool| if is { Likeness::Same } else { Likeness::Differ };
        match (self, said) {
            (Self::Email(_), Self::Unclear) => Likeness::Differ,
            (Self::Email(one), Self::Email(other)) if one != other => match letters(one) == letters(other) {
                true => Likeness::MayBe,
                false => Likeness::Differ,
            },
            (_, Self::Unclear) | (Self::Unclear, _) | (Self::Date { .. }, Self::SomeDay) => Likeness::MayBe,
            (Self::Number(one) | Self::Digits(one), Self::Digits(other))
            | (Self::Digits(one), Self::Number(other)) => digits(one, other),
            (Self::Number(one), Self::Number(other)) => match other.split_once('.') {
                Some((whole, _)) if one == whole => Likeness::MayBe,
                _ => exactly(one == other),
            },
            (Self::Money { currency, amount }, Self::Money { currency: other, amount: other_amount }) => {
                if amount != other_amount {
                    Likeness::Differ
                } else if currency == other {
                    Likeness::Same
                } else if currency.is_empty() || other.is_empty() {
                    Likeness::MayBe
                } else {
                    Likeness::Differ
                }
            }
            (
                Self::Date { day, month, year },
                Self::Date { day: other, month: other_month, year: other_year },
            ) => {
                match other_year {
                    _ if day != other || month != other_month => Likeness::Differ,
                    // Of which year, was not said.
                    None if year.is_some() => Likeness::MayBe,
                    _ => exactly(year.is_none() || year == other_year),
                }
            }
            (Self::Time { minutes, known }, Self::Time { minutes: other, known: other_known }) => {
                if minutes % 720 != other % 720 || *known && *other_known && minutes != other {
                    Likeness::Differ
                } else {
                    // Half past nine in the evening is not for certain what 9:30 means.
                    exactly(minutes == other && (known == other_known || *other_known)).max(Likeness::MayBe)
                }
            }
            _ if std::mem::discriminant(self) == std::mem::discriminant(said) => exactly(self == said),
            // `5ish`, `USD20`
            (Self::Time { .. } | Self::Money { .. } | Self::Percent(_), Self::Code(code)) => {
                let runs = code.split(|char: char| !char.is_ascii_digit()).filter(|run| !run.is_empty());
                runs.map(|run| self.likeness(&Self::Number(run.to_owned())))
                    .max()
                    .unwrap_or(Likeness::Differ)
                    .min(Likeness::MayBe)
            }
            _ if self.may_be(said) => Likeness::MayBe,
            _ => Likeness::Differ,
        }
    }

    /// Whether a value of another kind has the same figures.
    fn may_be(&self, said: &Self) -> bool {
        match (self, said) {
            // A part of what was said.
            (Self::Number(number), Self::Time { minutes, .. }) => {
                is_hour(number, *minutes)
                    || *number == (minutes % 60).to_string()
                    || said.spelled().contains(number)
            }
            (Self::Number(number), Self::Date { day, month, year }) => [Some(*day), Some(*month), *year]
                .into_iter()
                .flatten()
                .any(|part| *number == part.to_string()),
            (Self::Number(number), Self::Money { amount, .. }) => {
                let (whole, cents) = amount.split_once('.').unwrap_or((amount, ""));
                number == amount || number == whole || !cents.is_empty() && *number == format!("{cents:0<2}")
            }
            // `0.15` is 15 percent.
            (Self::Percent(percent), Self::Number(number))
            | (Self::Number(number), Self::Percent(percent)) => {
                percent == number || *percent == shifted(number, 2)
            }
            (Self::Number(number) | Self::Digits(number), Self::Email(address)) => {
                address.contains(number.as_str()) || letters(address).contains(number.as_str())
            }
            (Self::Time { minutes, .. }, Self::Number(number)) => {
                let (hour, minute) = (minutes / 60, minutes % 60);
                self.spelled().contains(number)
                    || minute == 0 && is_hour(number, *minutes)
                    || minute > 0
                        && number.split_once('.').is_some_and(|(hours, rest)| {
                            let rest = if rest.len() == 1 { format!("{rest}0") } else { rest.to_owned() };
                            is_hour(hours, hour * 60) && rest == format!("{minute:02}")
                        })
            }
            (Self::Code(code), Self::Number(figures) | Self::Digits(figures))
            | (Self::Number(figures) | Self::Digits(figures), Self::Code(code)) => {
                code.split(|char: char| !char.is_ascii_digit()).any(|run| run == figures)
            }
            (moment @ (Self::Time { .. } | Self::Date { .. }), other)
            | (other, moment @ (Self::Time { .. } | Self::Date { .. }))
                if other.figures_said().is_some_and(|said| {
                    let is_short = matches!(moment, Self::Date { .. }) && said.len() < 4;
                    (!is_short || matches!(other, Self::Number(number) if number.contains('.')))
                        && moment.spelled().contains(&said)
                }) =>
            {
                true
            }
            _ => self.figures().is_some_and(|one| Some(one) == said.figures()),
        }
    }

    /// The number in it, for comparison with other kinds.
    fn figures(&self) -> Option<String> {
        Some(match self {
            Self::Number(text) | Self::Digits(text) | Self::Percent(text) => text.clone(),
            Self::Money { amount, .. } => amount.clone(),
            Self::Date { day, .. } => day.to_string(),
            Self::Ordinal(number) => number.to_string(),
            Self::Code(_) | Self::Email(_) | Self::Time { .. } | Self::SomeDay | Self::Unclear => {
                return None;
            }
        })
    }

    /// The digits that the value can be said with, one number after the other: `9 30`, `twenty twenty-six`.
    pub(super) fn spelled(&self) -> Vec<String> {
        match self {
            Self::Number(text) | Self::Digits(text) | Self::Percent(text) => vec![text.replace('.', "")],
            Self::Money { amount, .. } => {
                let (whole, cents) = amount.split_once('.').unwrap_or((amount, ""));
                vec![format!("{whole}{cents}"), format!("{whole}{cents:0<2}")]
            }
            Self::Time { minutes, .. } => {
                let (hour, minute) = (minutes / 60, minutes % 60);
                let minute = two_digits(minute);
                let hours = [hour, hour % 12, if hour % 12 == 0 { 12 } else { hour }];
                let hours = hours.into_iter().flat_map(|hour| [hour.to_string(), two_digits(hour)]);
                hours.map(|hour| hour + &minute).collect()
            }
            Self::Code(code) => vec![code.chars().filter(char::is_ascii_digit).collect()],
            Self::Date { day, month, year } => written(*day, *month, *year),
            Self::Ordinal(_) | Self::Email(_) | Self::SomeDay | Self::Unclear => Vec::new(),
        }
    }

    /// Whether a number beside it may change it, as in "10 to 12" or "12 50".
    pub(super) const fn is_amount(&self) -> bool {
        matches!(self, Self::Number(_) | Self::Money { .. } | Self::Percent(_))
    }

    /// The digits that it adds to those of its neighbours.
    pub(super) fn figures_said(&self) -> Option<String> {
        match self {
            Self::Time { minutes, .. } if minutes % 60 == 0 => Some((minutes / 60).to_string()),
            Self::Date { .. } => None,
            other => other.figures().map(|figures| figures.replace('.', "")),
        }
    }
}

/// A date in figures, in whatever order.
fn written(day: u32, month: u32, year: Option<u32>) -> Vec<String> {
    let (day, month) = ([day.to_string(), two_digits(day)], [month.to_string(), two_digits(month)]);
    let years = match year {
        Some(year) => vec![year.to_string(), two_digits(year % 100), String::new()],
        None => vec![String::new()],
    };
    let mut out = Vec::new();
    // `4/5`, `04/05`, `4/05`
    for (first, second) in [(0, 0), (1, 1), (0, 1)] {
        for (one, other) in [(&day[first], &month[second]), (&month[first], &day[second])] {
            for year in &years {
                out.push([one.as_str(), other, year].concat());
                out.push([year.as_str(), one, other].concat());
            }
        }
    }
    out
}

fn two_digits(number: u32) -> String {
    format!("{number:02}")
}

fn is_hour(number: &str, minutes: u32) -> bool {
    let hour = minutes / 60;
    [hour, hour % 12, if hour.is_multiple_of(12) { 12 } else { hour }]
        .iter()
        .any(|hour| number == hour.to_string())
}

/// Telephone numbers may lack the country's code.
fn digits(one: &str, other: &str) -> Likeness {
    const LOCAL_MIN: usize = 7;
    if one == other {
        return Likeness::Same;
    }
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    if short.len() >= LOCAL_MIN && long.ends_with(short) {
        return Likeness::Same;
    }
    let local = short.trim_start_matches('0');
    let is_part = !short.is_empty() && long.contains(short);
    if is_part || local.len() >= LOCAL_MIN - 1 && long.ends_with(local) {
        return Likeness::MayBe;
    }
    Likeness::Differ
}
