//! Splits text into words, and reduces words to terms for comparison.
use std::ops::Range;

use crate::base::text::casefold;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    pub(super) start: usize,
}

impl Word<'_> {
    pub(super) const fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// The term of this word, or `None` for a stop word.
    pub(super) fn term(&self) -> Option<String> {
        let word = casefold(self.text);
        if is_stop(&word) { None } else { Some(stem(word)) }
    }
}

/// The terms of a text's content words, in order, with repetitions.
pub(super) fn terms(text: &str) -> Vec<String> {
    words(text).iter().filter_map(Word::term).collect()
}

/// The terms of a text's content words, without repetitions, in order of first occurrence.
pub(super) fn unique_terms(text: &str) -> Vec<String> {
    unique(terms(text))
}

/// Removes repetitions and keeps the order of first occurrence.
pub(super) fn unique(terms: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    terms.into_iter().filter(|term| seen.insert(term.clone())).collect()
}

/// The words of a text in order.
///
/// In scripts without spaces between words, every two adjacent characters form a word.
pub(super) fn words(text: &str) -> Vec<Word<'_>> {
    let mut out = Vec::with_capacity(text.len() / 6);
    let mut start = None;
    let mut chars = text.char_indices().peekable();
    while let Some((place, char)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        let inside = is_word_char(char)
            || (start.is_some() && is_apostrophe(char) && next.is_some_and(char::is_alphabetic));
        if inside {
            start.get_or_insert(place);
        }
        let end = if inside { place + char.len_utf8() } else { place };
        let goes_on = inside && next.is_some_and(|next| is_word_char(next) || is_apostrophe(next));
        let script_changes = next.is_some_and(|next| is_spaceless(char) != is_spaceless(next));
        if (!goes_on || script_changes)
            && let Some(start) = start.take()
        {
            push_run(text, start..end, &mut out);
        }
    }
    out
}

/// The words in an identifier: `bookTable_v2` has `book`, `table`, `v2`.
pub(super) fn identifier_words(name: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    let mut chars = name.chars().peekable();
    while let Some(char) = chars.next() {
        let next_is_lower = chars.peek().is_some_and(|next| next.is_lowercase());
        let hump = char.is_uppercase()
            && (before.is_lowercase() || before.is_numeric() || before.is_uppercase() && next_is_lower);
        if !char.is_alphanumeric() || hump {
            out.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
        }
        if char.is_alphanumeric() {
            word.extend(char.to_lowercase());
        }
        before = char;
    }
    out.extend(Some(word).filter(|word| !word.is_empty()));
    out
}

/// The term of a word: case-folded, without its English ending.
pub(super) fn stemmed(word: &str) -> String {
    stem(casefold(word))
}

/// Whether the word is a negation such as `not`, `never`, `can't`.
pub(super) fn is_negation(folded_word: &str) -> bool {
    const NEGATIONS: [&str; 8] = ["cannot", "never", "no", "none", "nor", "not", "nothing", "without"];
    NEGATIONS.contains(&folded_word) || folded_word.ends_with("n't") || folded_word.ends_with("n\u{2019}t")
}

/// Whether the case-folded word is a stop word, without content of its own.
pub(super) fn is_stop(folded_word: &str) -> bool {
    let bare = match folded_word.find(is_apostrophe) {
        Some(_) if is_negation(folded_word) => return true,
        // I'm, you're, it's: the part before the apostrophe decides.
        Some(place) => folded_word.get(..place).unwrap_or_default(),
        None => folded_word,
    };
    STOP_WORDS.binary_search(&bare).is_ok()
}

fn push_run<'a>(text: &'a str, run: Range<usize>, out: &mut Vec<Word<'a>>) {
    let Some(word) = text.get(run.clone()) else {
        return;
    };
    if !word.starts_with(is_spaceless) || word.chars().nth(2).is_none() {
        out.push(Word { text: word, start: run.start });
        return;
    }
    let places: Vec<usize> = word.char_indices().map(|(place, _)| place).chain([word.len()]).collect();
    out.extend(places.windows(3).filter_map(|pair| {
        let (from, to) = (pair.first()?, pair.last()?);
        Some(Word { text: word.get(*from..*to)?, start: run.start + from })
    }));
}

fn is_word_char(char: char) -> bool {
    // Combining accents belong to the preceding letter.
    char.is_alphanumeric() || ('\u{300}'..='\u{36f}').contains(&char)
}

const fn is_apostrophe(char: char) -> bool {
    matches!(char, '\'' | '\u{2019}')
}

/// Thai to Tibetan, Myanmar, Khmer, kana, Han: scripts without spaces between words.
pub(super) const fn is_spaceless(char: char) -> bool {
    matches!(char,
        '\u{e00}'..='\u{fff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{2fa1f}')
}

/// A light stemmer: it unifies common English word forms and leaves other words alone.
fn stem(mut word: String) -> String {
    if let Some(place) = word.find(is_apostrophe) {
        let tail = word.split_off(place);
        let tail: String = tail.chars().filter(|char| !is_apostrophe(*char)).collect();
        if !matches!(tail.as_str(), "s" | "") {
            word.push_str(&tail);
        }
    }
    if word.len() < 4 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word;
    }
    plural(&mut word);
    verb_form(&mut word);
    for (ending, stem_min) in [("ation", 4), ("ment", 3), ("ly", 4)] {
        strip(&mut word, ending, stem_min);
    }
    if word.len() > 3 {
        strip(&mut word, "e", 3);
    }
    let bytes = word.as_bytes();
    if let [.., before, b'y'] = bytes
        && bytes.len() > 3
        && !is_vowel(*before)
    {
        word.pop();
        word.push('i');
    } else if let [.., before, last] = bytes
        && bytes.len() > 3
        && before == last
        && !is_vowel(*last)
    {
        word.pop();
    }
    word
}

fn plural(word: &mut String) {
    if word.len() > 4 && word.ends_with("ies") {
        word.truncate(word.len() - 3);
        word.push('y');
    } else if ["sses", "xes", "ches", "shes", "zes", "oes"].iter().any(|end| word.ends_with(end)) {
        word.truncate(word.len() - 2);
    } else if word.ends_with('s') && !["ss", "us", "is"].iter().any(|end| word.ends_with(end)) {
        word.pop();
    }
}

fn verb_form(word: &mut String) {
    if word.ends_with("eed") {
        return;
    }
    for ending in ["ing", "ed"] {
        let stem = word.strip_suffix(ending).unwrap_or_default();
        if stem.len() >= 3 && stem.bytes().any(|byte| is_vowel(byte) || byte == b'y') {
            word.truncate(word.len() - ending.len());
            return;
        }
    }
}

fn strip(word: &mut String, ending: &str, stem_min: usize) {
    if word.len() >= ending.len() + stem_min && word.ends_with(ending) {
        word.truncate(word.len() - ending.len());
    }
}

const fn is_vowel(byte: u8) -> bool {
    matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u')
}

/// Function words, and the small talk of a call. Sorted.
#[rustfmt::skip]
const STOP_WORDS: [&str; 151] = [
    "a", "about", "after", "again", "all", "also", "am", "an", "and", "any", "anybody", "anyone",
    "anything", "are", "as", "at", "be", "because", "been", "before", "being", "but", "by", "bye", "can",
    "cannot", "could", "did", "do", "does", "doing", "done", "for", "from", "get", "getting", "give", "go",
    "going", "good", "goodbye", "got", "had", "has", "have", "having", "he", "hello", "help", "her", "here",
    "hey", "hi", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "kindly", "know",
    "let", "like", "many", "may", "maybe", "me", "might", "more", "most", "much", "must", "my", "need",
    "never", "no", "none", "nor", "not", "nothing", "now", "of", "oh", "ok", "okay", "on", "or", "our",
    "out", "over", "please", "quite", "really", "shall", "she", "should", "so", "some", "somebody",
    "someone", "something", "such", "than", "thank", "thanks", "that", "the", "their", "them", "then",
    "there", "these", "they", "this", "those", "to", "too", "under", "until", "up", "us", "very", "want",
    "was", "we", "well", "were", "what", "when", "where", "whether", "which", "while", "who", "whom",
    "whose", "why", "will", "with", "without", "would", "yeah", "yes", "you", "your", "yours",
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stop_words_are_sorted_for_the_search() {
        assert!(STOP_WORDS.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn forms_of_a_word_share_a_term() {
        for forms in [
            &["open", "opens", "opened", "opening", "OPEN"][..],
            &["delivery", "deliveries"],
            &["close", "closes", "closed", "closing"],
            &["price", "prices", "pricing", "priced"],
            &["cancel", "cancels", "cancelled", "cancellation"],
            &["reserve", "reservation", "reservations"],
            &["pay", "payment", "payments", "paying"],
            &["stop", "stopped", "stopping"],
            &["box", "boxes"],
            &["glass", "glasses"],
            &["customer", "customer's", "customers", "customer\u{2019}s"],
            &["café", "cafe\u{301}", "CAFÉ"],
            &["o'brien", "O\u{2019}Brien"],
        ] {
            let terms: Vec<_> = forms.iter().map(|form| stemmed(form)).collect();
            assert!(terms.iter().all(|term| *term == terms[0]), "{forms:?}: {terms:?}");
        }
    }

    #[test]
    fn different_words_have_different_terms() {
        for (one, other) in [("string", "str"), ("bus", "bu"), ("need", "ne"), ("order", "ord")] {
            assert_ne!(stemmed(one), stemmed(other));
        }
    }

    #[test]
    fn stop_words_are_removed() {
        assert_eq!(terms("What are your opening hours, please?"), ["open", "hour"]);
        assert_eq!(terms("I'm sure it's O'Brien's; don't you?"), ["sur", "obrien"]);
        assert_eq!(terms("the of and"), Vec::<String>::new());
        assert_eq!(terms(""), Vec::<String>::new());
    }

    #[test]
    fn scripts_without_spaces_give_pairs() {
        assert_eq!(terms("営業時間は?"), ["営業", "業時", "時間", "間は"]);
        assert_eq!(terms("店 open"), ["店", "open"]);
        assert_eq!(terms("9時open"), ["9", "時", "open"]);
    }

    #[test]
    fn splits_identifiers() {
        assert_eq!(identifier_words("book_table"), ["book", "table"]);
        assert_eq!(identifier_words("bookTable2Go"), ["book", "table2", "go"]);
        assert_eq!(identifier_words("getHTTPStatus"), ["get", "http", "status"]);
        assert_eq!(identifier_words("__"), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn words_are_in_order_at_their_position(text in "[a-z' 店時\u{301}é.0-9-]{0,30}") {
            let mut before = 0;
            for word in words(&text) {
                prop_assert_eq!(text.get(word.start..word.end()), Some(word.text));
                prop_assert!(word.start >= before && !word.text.is_empty());
                before = word.start;
            }
        }

        #[test]
        fn terms_are_not_empty(text in ".{0,60}") {
            for term in terms(&text) {
                prop_assert!(!term.is_empty());
            }
        }
    }
}
