//! Acknowledgements: what listeners say to show that they listen, without wanting to speak themselves.
use super::vocabulary::{Vocabulary, words_of};

/// Most words of an acknowledgement.
const WORDS_MAX: usize = 2;

/// Whether a text, said while the assistant speaks, only acknowledges what it says.
///
/// Such a text does not interrupt the assistant. A question does, and so do other words: "okay stop".
///
/// ```
/// use sidetone_engine::speech::backchannel::is_backchannel;
///
/// assert!(is_backchannel("Mhm, okay.", "en"));
/// assert!(!is_backchannel("No, wait.", "en"));
/// ```
#[must_use]
pub fn is_backchannel(text: &str, language: &str) -> bool {
    let words = words_of(text);
    if words.is_empty() || words.len() > WORDS_MAX || text.contains(['?', '？', '؟']) {
        return false;
    }
    let known = Vocabulary::of(language).acknowledgements;
    known.contains(&words.join(" ").as_str()) || words.iter().all(|word| known.contains(&word.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_are_short_and_known() {
        for text in
            ["mhm", "Yeah.", "Okay!", "right", "Uh-huh", "uh huh", "I see.", "yeah yeah", "Okay, great."]
        {
            assert!(is_backchannel(text, "en"), "{text}");
        }
        for text in [
            "",
            "…",
            "no",
            "stop",
            "wait",
            "okay stop",
            "yeah but",
            "Right?",
            "yes yes yes",
            "the second one",
        ] {
            assert!(!is_backchannel(text, "en"), "{text}");
        }
    }

    #[test]
    fn other_languages_have_their_own() {
        assert!(is_backchannel("ach so", "de-AT"));
        assert!(is_backchannel("vale", "es") && is_backchannel("d’accord", "fr"));
        assert!(!is_backchannel("vale", "en"));
        // These sound the same in most languages.
        assert!(is_backchannel("Mhm", "fi") && !is_backchannel("joo", "fi"));
    }
}
