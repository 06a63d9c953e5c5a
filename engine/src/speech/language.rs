//! Language tags.

/// Whether this has the form of a language tag that recognisers and voices take (BCP 47): a language of two or three letters,
/// then parts of at most eight letters or digits. `english` is none.
#[must_use]
pub fn is_language_tag(text: &str) -> bool {
    let mut parts = text.split('-');
    let is_language = parts.next().is_some_and(|language| {
        (2..=3).contains(&language.len()) && language.bytes().all(|byte| byte.is_ascii_alphabetic())
    });
    is_language
        && parts.all(|part| {
            (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_tags_and_names_are_not() {
        for tag in ["en", "pt-BR", "yue", "zh-Hant-TW", "es-419"] {
            assert!(is_language_tag(tag), "{tag}");
        }
        for other in ["", "e", "english", "en_US", "en-", "-en", "1a", "en-waytoolongpart"] {
            assert!(!is_language_tag(other), "{other}");
        }
    }
}
