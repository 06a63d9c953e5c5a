//! Language tags, and what the service itself says in a language.

/// Asks somebody who is silent whether they are there, by the primary tag of a language.
const STILL_THERE: &[(&str, &str)] = &[
    ("da", "Er du der stadig?"),
    ("de", "Sind Sie noch da?"),
    ("en", "Are you still there?"),
    ("es", "¿Sigue ahí?"),
    ("fi", "Oletteko vielä siellä?"),
    ("fr", "Êtes-vous toujours là ?"),
    ("hi", "क्या आप अभी भी वहाँ हैं?"),
    ("it", "È ancora lì?"),
    ("ja", "もしもし、聞こえていますか？"),
    ("ko", "여보세요, 듣고 계신가요?"),
    ("nb", "Er du der fortsatt?"),
    ("nl", "Bent u er nog?"),
    ("no", "Er du der fortsatt?"),
    ("pl", "Czy nadal jest Pan lub Pani na linii?"),
    ("pt", "Ainda está aí?"),
    ("ru", "Вы ещё на линии?"),
    ("sv", "Är du kvar?"),
    ("tr", "Hâlâ orada mısınız?"),
    ("uk", "Ви ще на лінії?"),
    ("zh", "您还在吗？"),
];

/// What an assistant of this language (BCP 47; empty if unknown) asks somebody who is silent. In English, if the language
/// is none of those known here.
#[must_use]
pub fn still_there(language: &str) -> &'static str {
    let primary = language.split('-').next().unwrap_or_default();
    let known = STILL_THERE.iter().find(|(tag, _)| tag.eq_ignore_ascii_case(primary));
    known.map_or("Are you still there?", |(_, question)| question)
}

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
    fn a_silent_person_is_asked_in_their_language() {
        assert_eq!(still_there("de-CH"), "Sind Sie noch da?");
        assert_eq!(still_there("PT"), "Ainda está aí?");
        for other in ["", "en-GB", "tlh"] {
            assert_eq!(still_there(other), "Are you still there?");
        }
    }

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
