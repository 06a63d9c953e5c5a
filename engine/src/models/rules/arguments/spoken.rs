//! Phrases that introduce an argument's value.
use std::ops::Range;

use super::super::words::{Word, is_negation};
use super::schema::Field;
use crate::base::text::{casefold, collapse_whitespace};

/// Most words of a value after a phrase.
const VALUE_WORDS_MAX: usize = 6;

/// The range of the field's value: after "<its name> is", after "I'm" for a name, after "in" and the like for a location.
pub(super) fn after_cue(
    text: &str,
    words: &[Word<'_>],
    lower: &[String],
    stems: &[String],
    field: &Field<'_>,
) -> Option<Range<usize>> {
    after_name(text, words, lower, stems, field)
        .or_else(|| after_introduction(text, words, lower, field))
        .or_else(|| after_preposition(text, words, lower, field))
}

/// The words in lower case, with one form of apostrophe.
pub(super) fn lower(words: &[Word<'_>]) -> Vec<String> {
    words.iter().map(|word| casefold(word.text)).collect()
}

/// Whether the word negates what follows.
pub(super) fn denies(word: &Word<'_>) -> bool {
    is_negation(&casefold(word.text))
}

/// The meaning of a bare yes or no at the start of an answer.
pub(super) fn yes_or_no(word: &Word<'_>) -> Option<bool> {
    match casefold(word.text).as_str() {
        "yes" | "yeah" | "yep" | "sure" | "ok" | "okay" | "please" | "true" => Some(true),
        "no" | "nope" | "not" | "false" => Some(false),
        _ => None,
    }
}

/// The text on one line, without surrounding punctuation and dangling function words at its end.
pub(super) fn tidied(text: &str) -> String {
    const HANGING: [&str; 16] = [
        "a", "an", "and", "at", "by", "for", "from", "in", "is", "of", "on", "or", "the", "to", "until",
        "with",
    ];
    let text = collapse_whitespace(text);
    let punctuation = |char: char| !char.is_alphanumeric() && !matches!(char, ')' | '%' | '€' | '+');
    let full_stop = text.ends_with(['.', '!', '?']);
    let mut rest = text.trim_end_matches(punctuation);
    let mut hung = false;
    while let Some((head, last)) = rest.rsplit_once(' ')
        && HANGING.contains(&last.to_lowercase().as_str())
        // The last word that there is stays.
        && let head = head.trim_end_matches(punctuation)
        && !head.is_empty()
    {
        rest = head;
        hung = true;
    }
    // The final mark stays when nothing was removed from the end.
    let end = if full_stop && !hung && !rest.is_empty() { text.trim_end().len() } else { rest.len() };
    let tidy = text.get(..end).unwrap_or_default();
    tidy.trim_start_matches([',', '.', ';', ':', ' ', '-']).to_owned()
}

/// "name is Bob", "city: Paris".
fn after_name(
    text: &str,
    words: &[Word<'_>],
    lower: &[String],
    stems: &[String],
    field: &Field<'_>,
) -> Option<Range<usize>> {
    for (place, stem) in stems.iter().enumerate() {
        if !field.name_terms.contains(stem) {
            continue;
        }
        let word = words.get(place)?;
        let marked =
            text.get(word.end()..).is_some_and(|rest| rest.trim_start().starts_with([':', '=', '：']));
        let next = place + 1;
        let is = matches!(lower.get(next).map(String::as_str), Some("is" | "are" | "="));
        let value_at = if is { next + 1 } else { next };
        if marked || is {
            return value(text, words, value_at);
        }
    }
    None
}

/// "I'm Bob", "this is Bob Smith".
fn after_introduction(
    text: &str,
    words: &[Word<'_>],
    lower: &[String],
    field: &Field<'_>,
) -> Option<Range<usize>> {
    if !field.name_terms.contains("name") && !field.name_terms.contains("nam") {
        return None;
    }
    (0..words.len()).find_map(|place| {
        let word = |place: usize| lower.get(place).map_or("", String::as_str);
        let length = match (word(place), word(place + 1)) {
            ("i'm", _) => 1,
            ("i", "am") | ("this", "is") => 2,
            _ => return None,
        };
        proper_name(text, words, place + length)
    })
}

/// "in New York", "to Rome", "from Oslo".
fn after_preposition(
    text: &str,
    words: &[Word<'_>],
    lower: &[String],
    field: &Field<'_>,
) -> Option<Range<usize>> {
    let is = |names: &[&str]| names.iter().any(|name| field.name.to_lowercase().contains(name));
    let prepositions: &[&str] = if is(&["destination", "arrival"]) || field.name == "to" {
        &["to"]
    } else if is(&["origin", "departure"]) || field.name == "from" {
        &["from"]
    } else if is(&["city", "town", "place", "location", "country", "region", "address"]) {
        &["in", "at", "near", "to", "from", "for"]
    } else {
        return None;
    };
    prepositions.iter().find_map(|preposition| {
        let matching = lower.iter().enumerate().filter(|(_, word)| word == preposition);
        matching.into_iter().find_map(|(place, _)| proper_name(text, words, place + 1))
    })
}

/// The capitalised words from index `place`, separated by spaces, hyphens or apostrophes only.
fn proper_name(text: &str, words: &[Word<'_>], place: usize) -> Option<Range<usize>> {
    run(text, words, place, |word| word.text.starts_with(char::is_uppercase))
}

/// The value from index `place`: a proper name, or else the words up to punctuation or a conjunction.
fn value(text: &str, words: &[Word<'_>], place: usize) -> Option<Range<usize>> {
    proper_name(text, words, place)
        .or_else(|| run(text, words, place, |word| !matches!(word.text, "and" | "or" | "but")))
}

fn run(
    text: &str,
    words: &[Word<'_>],
    place: usize,
    belongs: impl Fn(&Word<'_>) -> bool,
) -> Option<Range<usize>> {
    let first = words.get(place).filter(|word| belongs(word))?;
    let mut end = first.end();
    for word in words.iter().skip(place + 1).take(VALUE_WORDS_MAX - 1) {
        let between = text.get(end..word.start).unwrap_or("-");
        let joined = between.chars().all(|char| matches!(char, ' ' | '-' | '\''));
        if !joined || !belongs(word) {
            break;
        }
        end = word.end();
    }
    Some(first.start..end)
}
