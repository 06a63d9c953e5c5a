//! The English that the rules know: formulas, labels of values, corrections and comparisons.
use super::criterion::Formula;
use super::values::{Likeness, Value};
use crate::base::time::month_name;

/// Whether the word is in the list, in which a space follows each word but the last. Such a list takes less room in a program
/// than a `match`.
pub(super) fn is_one_of(word: &str, words: &str) -> bool {
    !word.is_empty() && words.split(' ').any(|one| one == word)
}

pub(super) fn is_article(word: &str) -> bool {
    is_one_of(word, "a an the his her its their your our my")
}

/// How a word of a row relates to a formula. `next` is the word after it.
pub(super) fn formula(formula: Formula, word: &str, next: &str) -> Likeness {
    let (is, may_be) = match formula {
        Formula::Sorry => (
            word == "sorry" || word.starts_with("apolog"),
            is_one_of(
                word,
                "pardon regret regrets regrettably unfortunately afraid fault mistake bad forgive excuse blame oops",
            ),
        ),
        Formula::Hello => (
            matches!(word, "hello" | "hi"),
            is_one_of(word, "hey welcome greetings howdy good")
                || word == "how" && matches!(next, "can" | "may" | "are"),
        ),
        Formula::Goodbye => (
            matches!(word, "goodbye" | "bye") || word == "good" && next == "bye",
            is_one_of(word, "farewell cheers good nice great later soon")
                || matches!((word, next), ("see", "you") | ("take", "care")),
        ),
        Formula::Thanks => (
            word == "thanks" || word == "thank" && next == "you",
            word.starts_with("thank")
                || word.starts_with("appreciat")
                || matches!(word, "grateful" | "cheers" | "kind"),
        ),
    };
    if is {
        Likeness::Same
    } else if may_be {
        Likeness::MayBe
    } else {
        Likeness::Differ
    }
}

/// Whether the word agrees to something.
pub(super) fn affirms(word: &str) -> bool {
    is_one_of(
        word,
        "yes yeah yep sure certainly absolutely indeed correct right exactly booked reserved confirmed confirm done set arranged",
    )
}

/// Whether the words have much the same meaning, as single words.
pub(super) fn is_akin(wanted: &str, said: &str) -> bool {
    const AKIN: [&[&str]; 3] = [
        &["yes", "yeah", "yep", "sure", "certainly", "absolutely", "indeed", "correct", "right", "course"],
        &["ok", "okay", "fine", "alright", "right"],
        &["no", "nope", "nah", "not"],
    ];
    AKIN.iter().any(|group| group.contains(&wanted) && group.contains(&said))
}

/// Words that make more or less of a value beside them.
pub(super) fn compares(word: &str) -> bool {
    is_one_of(
        word,
        "less more off cheaper below above over under extra higher lower about around nearly almost roughly approximately than between least most ago later earlier plus minus only up too",
    )
}

/// Whether a period after the word ends no sentence.
pub(super) fn is_abbreviation(word: &str) -> bool {
    is_one_of(word, "mr mrs ms dr st no prof")
}

/// Words by which somebody takes back what was said.
pub(super) fn is_correction(word: &str) -> bool {
    is_one_of(
        word,
        "meant correction mistake mistaken actually rather wrong misspoke scratch mixed incorrect",
    )
}

/// Whether the word only says what the value is anyway.
pub(super) fn is_label_of(value: &Value, word: &str) -> bool {
    let of_kind: &[&str] = match value {
        Value::Code(_) => return is_name_of_code(word),
        Value::Digits(_) => &["phone", "telephone", "mobile", "cell", "contact", "callback"],
        Value::Email(_) => &["email", "e", "mail", "address"],
        Value::Money { .. } => &["amount", "sum"],
        Value::Date { .. } => &["date", "day"],
        Value::Time { .. } => &["time", "hour"],
        Value::Percent(_) => &["percentage"],
        Value::Number(_) | Value::Ordinal(_) | Value::SomeDay | Value::Unclear => &[],
    };
    word == "number" || of_kind.contains(&word)
}

fn is_name_of_code(word: &str) -> bool {
    is_one_of(
        word,
        "number code id confirmation reference booking reservation order appointment ticket case tracking flight invoice customer account cancellation parcel gate seat room table claim voucher coupon",
    )
}

/// Whether the word names something that such a value belongs to.
pub(super) fn names_something(value: &Value, word: &str) -> bool {
    match value {
        Value::Code(_) => is_name_of_code(word) && !is_one_of(word, "number code id reference"),
        Value::Digits(_) => {
            is_one_of(word, "fax order card account reference extension invoice customer emergency booking")
        }
        _ => false,
    }
}

/// Words that may stand between a label and its value.
pub(super) fn is_between_label_and_value(word: &str) -> bool {
    word.is_empty()
        || is_one_of(
            word,
            "is are be will of at on to number no comes it's that's reads the a your our costs",
        )
}

/// Words for what a value says in figures or signs: "dollars" of `$20`.
pub(super) fn spoken_words(value: &Value) -> &'static str {
    match value {
        Value::Money { currency: "usd", .. } => "dollar dollars",
        Value::Money { currency: "eur", .. } => "euro euros",
        Value::Money { currency: "gbp", .. } => "pound pounds",
        Value::Percent(_) => "percent",
        Value::Email(_) => "at dot",
        Value::Date { month, .. } => month_name(*month),
        _ => "",
    }
}
