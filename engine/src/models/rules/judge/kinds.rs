//! Values of a kind: "a price", "a phone number".
use crate::models::rules::judge::vocabulary::is_one_of;
use std::ops::Range;

use super::criterion::Kind;
use super::reading::Text;
use super::values::Value;

/// Whether a value is of the kind.
pub(super) const fn is_kind(kind: Kind, value: &Value) -> bool {
    match (kind, value) {
        (Kind::Telephone, Value::Digits(digits)) => matches!(digits.len(), 7..=15),
        (Kind::Price, Value::Money { .. })
        | (Kind::Email, Value::Email(_))
        | (Kind::Date, Value::Date { .. })
        | (Kind::Time, Value::Time { .. })
        | (Kind::Percentage, Value::Percent(_)) => true,
        _ => false,
    }
}

/// Whether what an item may mean as well is of the kind.
pub(super) const fn is_like(kind: Kind, value: &Value) -> bool {
    is_kind(kind, value) || matches!((kind, value), (Kind::Date, Value::SomeDay))
}

/// Whether the sentence is about such a value, where the value alone does not show it.
pub(super) fn is_about(kind: Kind, text: &Text, sentence: Range<usize>) -> bool {
    let words: &[&str] = match kind {
        Kind::Price => &["cost", "costs", "price", "prices", "charge", "fee", "pay", "total", "rate"],
        Kind::Telephone => &["phone", "telephone", "call", "mobile", "reach", "dial"],
        _ => return true,
    };
    let other =
        |word: &str| is_one_of(word, "order card account reference invoice booking over above under limit");
    let has = |is: &dyn Fn(&str) -> bool| sentence.clone().any(|at| text.word(at).is_some_and(is));
    has(&|word| words.contains(&word)) && !has(&other)
}

/// Whether the word may be another way to give such a value.
pub(super) fn may_be_kind(kind: Kind, word: &str) -> bool {
    match kind {
        Kind::Price => is_one_of(
            word,
            "dollar dollars euro euros pound pounds cents cent free hundred hundreds thousands quarter grand quid buck bucks k tenner fiver pence penny pennies p francs yen rupees pesos kr nothing zloty dolla dollarz",
        ),
        Kind::Email => word == "dot",
        Kind::Date | Kind::Time => {
            word.ends_with("day")
                || word.ends_with("days")
                || is_one_of(
                    word,
                    "tomorrow tonight week month noon morning afternoon evening now soon first second half quarter christmas xmas easter eve lent advent ides halloween ramadan eid diwali hanukkah passover whitsun pentecost epiphany",
                )
                || crate::base::time::month_number(word).is_some()
        }
        Kind::Percentage => is_one_of(word, "half percent third quarter"),
        Kind::Telephone => false,
    }
}

/// Whether a value of another kind may be one of this kind.
pub(super) fn may_be_value(kind: Kind, text: &Text, at: usize) -> bool {
    // As many digits as a short number of a telephone has.
    const DIGITS_MIN: usize = 3;
    let Some(value) = text.value(at) else { return false };
    let digits =
        |place: usize| text.value(place).and_then(Value::figures_said).map_or(0, |figures| figures.len());
    match (kind, value) {
        (_, Value::Unclear) => true,
        (Kind::Email, value) => matches!(value, Value::Email(_)),
        (Kind::Telephone, Value::Number(_) | Value::Digits(_) | Value::Code(_)) => {
            digits(at) + digits(at + 1) + digits(at + 2) >= DIGITS_MIN || matches!(value, Value::Code(_))
        }
        (Kind::Telephone, _) => false,
        (Kind::Price, value) => !matches!(value, Value::Time { .. } | Value::Date { .. } | Value::Email(_)),
        (Kind::Percentage, value) => matches!(value, Value::Number(_) | Value::Percent(_)),
        (Kind::Date | Kind::Time, value) => {
            !matches!(value, Value::Email(_) | Value::Money { .. } | Value::Percent(_))
        }
    }
}
