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

/// Asks somebody whose words were lost to say them again, by the primary tag of a language.
const NOT_UNDERSTOOD: &[(&str, &str)] = &[
    ("da", "Undskyld, det hørte jeg ikke. Vil du gentage det?"),
    ("de", "Entschuldigung, das habe ich nicht verstanden. Können Sie das bitte wiederholen?"),
    ("en", "Sorry, I did not catch that. Could you say it again?"),
    ("es", "Perdone, no le he entendido. ¿Puede repetirlo?"),
    ("fi", "Anteeksi, en kuullut. Voisitteko toistaa?"),
    ("fr", "Excusez-moi, je n'ai pas compris. Pouvez-vous répéter ?"),
    ("hi", "माफ़ कीजिए, मैं समझ नहीं सका। क्या आप दोबारा कह सकते हैं?"),
    ("it", "Mi scusi, non ho capito. Può ripetere?"),
    ("ja", "すみません、聞き取れませんでした。もう一度お願いできますか？"),
    ("ko", "죄송합니다, 잘 듣지 못했습니다. 다시 말씀해 주시겠어요?"),
    ("nb", "Beklager, jeg hørte ikke det. Kan du gjenta det?"),
    ("nl", "Sorry, ik heb u niet verstaan. Kunt u dat herhalen?"),
    ("no", "Beklager, jeg hørte ikke det. Kan du gjenta det?"),
    ("pl", "Przepraszam, nie usłyszałem. Czy można powtórzyć?"),
    ("pt", "Desculpe, não entendi. Pode repetir?"),
    ("ru", "Извините, не удалось расслышать. Повторите, пожалуйста."),
    ("sv", "Förlåt, jag hörde inte. Kan du säga det igen?"),
    ("tr", "Özür dilerim, anlayamadım. Tekrar söyler misiniz?"),
    ("uk", "Вибачте, не вдалося розчути. Повторіть, будь ласка."),
    ("zh", "抱歉，我没有听清。您能再说一遍吗？"),
];

/// What an assistant of this language (BCP 47; empty if unknown) asks somebody who is silent. In English, if the language
/// is none of those known here.
#[must_use]
pub fn still_there(language: &str) -> &'static str {
    in_language(STILL_THERE, language).unwrap_or("Are you still there?")
}

/// What an assistant of this language says to somebody whose words were lost. In English, as [`still_there`].
#[must_use]
pub fn not_understood(language: &str) -> &'static str {
    in_language(NOT_UNDERSTOOD, language).unwrap_or("Sorry, I did not catch that. Could you say it again?")
}

/// `en` of `en-US`; `None` without a language.
#[must_use]
pub fn primary_language(tag: &str) -> Option<String> {
    let primary = tag.split(['-', '_']).next().unwrap_or_default();
    (!primary.is_empty()).then(|| primary.to_ascii_lowercase())
}

fn in_language<'t>(texts: &[(&str, &'t str)], language: &str) -> Option<&'t str> {
    let primary = language.split('-').next().unwrap_or_default();
    texts.iter().find(|(tag, _)| tag.eq_ignore_ascii_case(primary)).map(|(_, text)| *text)
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
            assert_eq!(not_understood(other), "Sorry, I did not catch that. Could you say it again?");
        }
    }

    #[test]
    fn every_language_has_both_texts() {
        let tags = |texts: &'static [(&str, &str)]| texts.iter().map(|(tag, _)| *tag).collect::<Vec<_>>();
        assert_eq!(tags(STILL_THERE), tags(NOT_UNDERSTOOD));
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
