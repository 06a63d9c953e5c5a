//! The words of a turn: how they are joined, and what one text has beyond another.

pub(super) fn count_words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// The text after these words; `None` if it does not begin with them. Case and punctuation do not matter.
pub(super) fn words_after<'t>(words: &str, text: &'t str) -> Option<&'t str> {
    let letters = |word: &str| -> String {
        word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    words.split_whitespace().try_fold(text.trim_start(), |rest, word| {
        let (first, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        (letters(first) == letters(word)).then(|| rest.trim_start())
    })
}

/// What a provider tells beyond the words that were told before; all of it, if it does not begin with them.
pub(super) fn untold<'t>(told: Option<&String>, text: &'t str) -> &'t str {
    told.and_then(|told| words_after(told, text)).unwrap_or(text)
}

pub(super) fn join(text: &mut String, more: &str) {
    let more = more.trim();
    if !more.is_empty() {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(more);
    }
}
