//! The English that the rules know: formulas, requests, and what makes a sentence no plain statement.
use std::ops::Range;

use super::criterion::{Formula, Kind};
use super::reading::Text;
use super::values::{Likeness, Value};
use crate::models::rules::words::{is_negation, is_stop};

pub(super) fn is_article(word: &str) -> bool {
    matches!(word, "a" | "an" | "the" | "his" | "her" | "its" | "their" | "your" | "our" | "my")
}

/// How a word of a row relates to a formula. `next` is the word after it.
pub(super) fn formula(formula: Formula, word: &str, next: &str) -> Likeness {
    let (is, may_be) = match formula {
        Formula::Sorry => (
            word == "sorry" || word.starts_with("apolog"),
            matches!(
                word,
                "pardon"
                    | "regret"
                    | "regrets"
                    | "regrettably"
                    | "unfortunately"
                    | "afraid"
                    | "fault"
                    | "mistake"
                    | "bad"
                    | "forgive"
                    | "excuse"
                    | "blame"
                    | "oops"
            ),
        ),
        Formula::Hello => (
            matches!(word, "hello" | "hi"),
            matches!(word, "hey" | "welcome" | "greetings" | "howdy" | "good")
                || word == "how" && matches!(next, "can" | "may" | "are"),
        ),
        Formula::Goodbye => (
            matches!(word, "goodbye" | "bye") || word == "good" && next == "bye",
            matches!(word, "farewell" | "cheers" | "good" | "nice" | "great" | "later" | "soon")
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

/// "Sorry to hear that" is no apology.
pub(super) fn is_sympathy(text: &Text, at: usize) -> bool {
    let next = |ahead: usize| text.word(at + ahead).unwrap_or_default();
    matches!((next(1), next(2)), ("to", "hear") | ("for", "your") | ("you", _)) || next(1) == "that"
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

/// Whether a sentence states what it says, without question, negation, condition or somebody else's words.
pub(super) fn is_statement(text: &Text, sentence: Range<usize>) -> bool {
    const UNSURE: [&str; 48] = [
        "allegedly",
        "assume",
        "believe",
        "believes",
        "canceled",
        "cancelled",
        "claim",
        "claims",
        "could",
        "expired",
        "false",
        "former",
        "formerly",
        "guess",
        "hardly",
        "hope",
        "if",
        "imagine",
        "incorrect",
        "instead",
        "invalid",
        "know",
        "maybe",
        "meant",
        "might",
        "neither",
        "old",
        "or",
        "perhaps",
        "possibly",
        "previous",
        "previously",
        "said",
        "supposedly",
        "think",
        "thought",
        "told",
        "unavailable",
        "unknown",
        "unless",
        "untrue",
        "used",
        "was",
        "were",
        "whether",
        "wish",
        "wonder",
        "wrong",
    ];
    const QUESTION: [&str; 19] = [
        "are", "can", "could", "did", "do", "does", "how", "is", "may", "shall", "should", "what", "when",
        "where", "which", "who", "why", "will", "would",
    ];
    let is_unsure = |at: usize| {
        text.word(at).is_some_and(|word| {
            // "No, thank you" denies something else.
            let is_answer = word == "no" && text.sign(at + 1) == Some(',');
            is_negation(word) && !is_answer || UNSURE.binary_search(&word).is_ok()
        })
    };
    let first =
        sentence.clone().find_map(|at| text.word(at).filter(|word| !matches!(*word, "and" | "so" | "but")));
    let asks = text.sign(sentence.end) == Some('?') || first.is_some_and(|word| QUESTION.contains(&word));
    !asks && !sentence.into_iter().any(is_unsure)
}

/// Words that make more or less of a value beside them.
pub(super) fn compares(word: &str) -> bool {
    matches!(
        word,
        "less"
            | "more"
            | "off"
            | "cheaper"
            | "below"
            | "above"
            | "over"
            | "under"
            | "extra"
            | "higher"
            | "lower"
            | "about"
            | "around"
            | "nearly"
            | "almost"
            | "roughly"
            | "approximately"
            | "than"
            | "between"
            | "least"
            | "most"
            | "ago"
            | "later"
            | "earlier"
            | "plus"
            | "minus"
            | "only"
            | "up"
            | "too"
    )
}

/// Whether a period after the word ends no sentence.
pub(super) fn is_abbreviation(word: &str) -> bool {
    matches!(word, "mr" | "mrs" | "ms" | "dr" | "st" | "no" | "prof")
}

/// Words by which somebody takes back what was said.
pub(super) fn is_correction(word: &str) -> bool {
    matches!(
        word,
        "meant"
            | "correction"
            | "mistake"
            | "mistaken"
            | "actually"
            | "rather"
            | "wrong"
            | "misspoke"
            | "scratch"
            | "mixed"
            | "incorrect"
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
        Value::Number(_) | Value::Ordinal(_) => &[],
    };
    word == "number" || of_kind.contains(&word)
}

fn is_name_of_code(word: &str) -> bool {
    matches!(
        word,
        "number"
            | "code"
            | "id"
            | "confirmation"
            | "reference"
            | "booking"
            | "reservation"
            | "order"
            | "appointment"
            | "ticket"
            | "case"
            | "tracking"
            | "flight"
            | "invoice"
            | "customer"
            | "account"
            | "cancellation"
            | "parcel"
            | "gate"
            | "seat"
            | "room"
            | "table"
            | "claim"
            | "voucher"
            | "coupon"
    )
}

/// Whether the word names something that such a value belongs to.
pub(super) fn names_something(value: &Value, word: &str) -> bool {
    match value {
        Value::Code(_) => is_name_of_code(word) && !matches!(word, "number" | "code" | "id" | "reference"),
        Value::Digits(_) => matches!(
            word,
            "fax"
                | "order"
                | "card"
                | "account"
                | "reference"
                | "extension"
                | "invoice"
                | "customer"
                | "emergency"
                | "booking"
        ),
        _ => false,
    }
}

/// Words that may stand between a label and its value.
pub(super) fn is_between_label_and_value(word: &str) -> bool {
    matches!(
        word,
        "" | "is"
            | "are"
            | "be"
            | "will"
            | "of"
            | "at"
            | "on"
            | "to"
            | "number"
            | "no"
            | "comes"
            | "it's"
            | "that's"
            | "reads"
            | "the"
            | "a"
            | "your"
            | "our"
            | "costs"
    )
}

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

/// Whether the sentence is about such a value, where the value alone does not show it.
pub(super) fn is_about(kind: Kind, text: &Text, sentence: Range<usize>) -> bool {
    let words: &[&str] = match kind {
        Kind::Price => &["cost", "costs", "price", "prices", "charge", "fee", "pay", "total", "rate"],
        Kind::Telephone => &["phone", "telephone", "call", "mobile", "reach", "dial"],
        _ => return true,
    };
    let other = |word: &str| {
        matches!(
            word,
            "order"
                | "card"
                | "account"
                | "reference"
                | "invoice"
                | "booking"
                | "over"
                | "above"
                | "under"
                | "limit"
        )
    };
    let has = |is: &dyn Fn(&str) -> bool| sentence.clone().any(|at| text.word(at).is_some_and(is));
    has(&|word| words.contains(&word)) && !has(&other)
}

/// Whether the word may be another way to give such a value.
pub(super) fn may_be_kind(kind: Kind, word: &str) -> bool {
    match kind {
        Kind::Price => matches!(
            word,
            "dollar"
                | "dollars"
                | "euro"
                | "euros"
                | "pound"
                | "pounds"
                | "cents"
                | "free"
                | "hundred"
                | "hundreds"
                | "thousands"
                | "quarter"
        ),
        Kind::Email => matches!(word, "at" | "dot"),
        Kind::Date | Kind::Time => {
            word.ends_with("day")
                || word.ends_with("days")
                || matches!(
                    word,
                    "tomorrow"
                        | "tonight"
                        | "week"
                        | "month"
                        | "noon"
                        | "morning"
                        | "afternoon"
                        | "evening"
                        | "now"
                        | "soon"
                        | "first"
                        | "second"
                        | "half"
                        | "quarter"
                )
                || super::spoken_numbers::month(word).is_some()
        }
        Kind::Percentage => matches!(word, "half" | "percent" | "third" | "quarter"),
        Kind::Telephone => false,
    }
}

/// Whether a row can be taken for English: a reader of another language finds numbers and sorrow where the rules do not.
pub(super) fn is_english(text: &Text) -> bool {
    const SHARE: usize = 8;
    // Words of other languages, too.
    const OTHERS: [&str; 20] = [
        "a", "an", "as", "am", "do", "es", "has", "he", "hey", "hi", "i", "in", "me", "no", "on", "over",
        "so", "to", "under", "was",
    ];
    const MORE: [&str; 16] = [
        "another",
        "booked",
        "certainly",
        "closed",
        "down",
        "number",
        "price",
        "right",
        "room",
        "sir",
        "sorry",
        "sure",
        "today",
        "tomorrow",
        "write",
        "wrote",
    ];
    let (mut all, mut known, mut short) = (0, 0, 0);
    for word in (0..text.items.len()).filter_map(|at| text.word(at)) {
        if word.chars().any(|char| char > '\u{24f}' && char.is_alphabetic()) {
            return false;
        }
        all += 1;
        short += usize::from(is_stop(word));
        known += usize::from(is_stop(word) && !OTHERS.contains(&word) || MORE.contains(&word));
    }
    // "No." is the same everywhere.
    short == all || known * SHARE >= all
}
