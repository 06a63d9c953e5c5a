//! Words as speech has them: without case and punctuation, and what some of them say about a conversation.

/// The words of a text in lower case, without punctuation. An apostrophe or hyphen within a word stays. Characters of scripts
/// without spaces between words are words of their own.
///
/// ```
/// use sidetone_engine::speech::vocabulary::words_of;
///
/// assert_eq!(words_of("Uh-huh… I’m Ann!"), ["uh-huh", "i'm", "ann"]);
/// assert_eq!(words_of("你好"), ["你", "好"]);
/// ```
#[must_use]
pub fn words_of(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut end = |word: &mut String| {
        let done = word.trim_matches(['\'', '-']);
        if !done.is_empty() {
            words.push(done.to_owned());
        }
        word.clear();
    };
    for character in text.chars() {
        match character {
            character if is_word_by_itself(character) => {
                end(&mut word);
                word.push(character);
                end(&mut word);
            }
            '\'' | '’' => word.push('\''),
            '-' | '‑' => word.push('-'),
            character if character.is_alphanumeric() => word.extend(character.to_lowercase()),
            // A combining sign is part of its letter; the joiner marks are invisible.
            '\u{300}'..='\u{36f}' | '\u{93e}'..='\u{94d}' | '\u{e31}' | '\u{e34}'..='\u{e3a}' => {
                word.push(character)
            }
            _ => end(&mut word),
        }
    }
    end(&mut word);
    words
}

/// Whether a character belongs to a script that has no spaces between words: Chinese and Japanese.
#[must_use]
pub const fn is_word_by_itself(character: char) -> bool {
    matches!(
        character,
        '\u{3040}'..='\u{30ff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{2fa1f}'
    )
}

/// The end of the last word that ends at or before a position, which is the border of a character.
///
/// ```
/// use sidetone_engine::speech::vocabulary::end_of_whole_words;
///
/// assert_eq!(end_of_whole_words("Good morning.", 9), 4);
/// assert_eq!(end_of_whole_words("今日は予約できません。", 15), 15);
/// ```
#[must_use]
pub fn end_of_whole_words(text: &str, end: usize) -> usize {
    let Some((before, after)) = text.split_at_checked(end) else { return text.len() };
    let is_inside = |character: char| !character.is_whitespace() && !is_word_by_itself(character);
    // Punctuation alone is no rest of a word.
    if !after.chars().take_while(|character| is_inside(*character)).any(char::is_alphanumeric) {
        return end;
    }
    before.trim_end_matches(is_inside).trim_end().len()
}

/// What words of one language say about a conversation. All are written as [`words_of`] gives them.
#[derive(Debug, PartialEq, Eq)]
pub struct Vocabulary {
    /// Somebody who says one of these last goes on: conjunctions, articles, hesitation, and such prepositions and pronouns as
    /// rarely end a sentence.
    pub unfinished: &'static [&'static str],
    /// Complete answers of a few words.
    pub answers: &'static [&'static str],
    /// What listeners say to show that they listen, also two words at a time.
    pub acknowledgements: &'static [&'static str],
    /// Words that numbers are read out with.
    pub digits: &'static [&'static str],
}

impl Vocabulary {
    /// The vocabulary of a language, given as a BCP 47 tag (`en`, `de-CH`). All others share one that is
    /// almost empty.
    #[must_use]
    pub fn of(language: &str) -> &'static Self {
        let primary = language.split(['-', '_']).next().unwrap_or_default();
        let known = [("en", &ENGLISH), ("de", &GERMAN), ("es", &SPANISH), ("fr", &FRENCH)];
        known
            .into_iter()
            .find(|(tag, _)| primary.eq_ignore_ascii_case(tag))
            .map_or(&NEUTRAL, |(_, words)| words)
    }
}

/// Nothing is known of the language.
const NEUTRAL: Vocabulary =
    Vocabulary { unfinished: &[], answers: &[], acknowledgements: &["mhm", "hm", "ok", "okay"], digits: &[] };

const ENGLISH: Vocabulary = Vocabulary {
    unfinished: &[
        "a", "an", "the", "my", "your", "his", "its", "our", "their", "and", "or", "but", "so", "because",
        "if", "when", "while", "although", "unless", "than", "whose", "with", "without", "for", "from", "to",
        "of", "at", "by", "into", "about", "as", "between", "during", "until", "through", "i", "i'm", "i'd",
        "i'll", "i've", "we", "we're", "it's", "there's", "um", "uh", "er", "erm", "hmm", "actually", "plus",
    ],
    answers: &[
        "yes",
        "no",
        "yeah",
        "yep",
        "nope",
        "nah",
        "okay",
        "ok",
        "sure",
        "right",
        "correct",
        "exactly",
        "please",
        "thanks",
        "thank you",
        "yes please",
        "no thanks",
        "no thank you",
        "hello",
        "hi",
        "hey",
        "bye",
        "goodbye",
        "bye bye",
        "stop",
        "wait",
        "all right",
        "alright",
        "of course",
        "got it",
        "that's right",
        "that's it",
        "that's all",
        "never mind",
        "not really",
        "not yet",
        "i do",
        "i don't",
        "it is",
        "it isn't",
        "i am",
        "i can",
        "i can't",
        "of course not",
    ],
    acknowledgements: &[
        "mhm",
        "mm",
        "mmm",
        "mm-hm",
        "mm-hmm",
        "mhmm",
        "hm",
        "hmm",
        "uh-huh",
        "uh huh",
        "uhuh",
        "huh",
        "ah",
        "aha",
        "oh",
        "yeah",
        "yes",
        "yep",
        "yup",
        "okay",
        "ok",
        "right",
        "sure",
        "alright",
        "all right",
        "i see",
        "got it",
        "gotcha",
        "i understand",
        "understood",
        "of course",
        "exactly",
        "true",
        "great",
        "good",
        "nice",
        "cool",
        "fine",
        "perfect",
        "go on",
        "wow",
        "really",
    ],
    digits: &[
        "zero",
        "oh",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
        "twenty",
        "thirty",
        "forty",
        "fifty",
        "sixty",
        "seventy",
        "eighty",
        "ninety",
        "hundred",
        "double",
        "triple",
    ],
};

const GERMAN: Vocabulary = Vocabulary {
    unfinished: &[
        "der", "den", "dem", "des", "eine", "einen", "einem", "einer", "mein", "meine", "ihre", "und",
        "oder", "aber", "weil", "wenn", "dass", "ob", "als", "denn", "sondern", "ohne", "für", "von", "vom",
        "zum", "zur", "beim", "im", "am", "über", "unter", "seit", "bis", "äh", "ähm", "hm", "also",
    ],
    answers: &[
        "ja",
        "nein",
        "doch",
        "okay",
        "ok",
        "genau",
        "richtig",
        "stimmt",
        "gut",
        "gerne",
        "bitte",
        "danke",
        "ja bitte",
        "nein danke",
        "hallo",
        "tschüss",
        "stopp",
        "moment",
        "alles klar",
        "passt",
        "natürlich",
        "klar",
    ],
    acknowledgements: &[
        "mhm",
        "hm",
        "hmm",
        "aha",
        "ah",
        "ach",
        "ach so",
        "achso",
        "oh",
        "ja",
        "genau",
        "okay",
        "ok",
        "gut",
        "klar",
        "richtig",
        "stimmt",
        "verstehe",
        "ich verstehe",
        "alles klar",
        "natürlich",
        "schön",
        "prima",
        "super",
        "in ordnung",
    ],
    digits: &[
        "null", "eins", "zwei", "zwo", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn",
        "elf", "zwölf", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig",
        "neunzig", "hundert", "doppel",
    ],
};

const SPANISH: Vocabulary = Vocabulary {
    unfinished: &[
        "el", "la", "los", "las", "un", "una", "unos", "unas", "mi", "su", "y", "e", "o", "u", "pero",
        "porque", "cuando", "que", "como", "con", "sin", "para", "por", "de", "del", "a", "al", "en",
        "entre", "hasta", "desde", "sobre", "yo", "quisiera", "eh", "em", "pues",
    ],
    answers: &[
        "sí",
        "no",
        "vale",
        "okay",
        "ok",
        "claro",
        "correcto",
        "exacto",
        "bueno",
        "gracias",
        "sí gracias",
        "no gracias",
        "por favor",
        "sí por favor",
        "hola",
        "adiós",
        "espera",
        "espere",
        "perfecto",
        "de acuerdo",
        "está bien",
    ],
    acknowledgements: &[
        "mhm",
        "mm",
        "hm",
        "ajá",
        "ah",
        "oh",
        "sí",
        "ya",
        "vale",
        "claro",
        "bueno",
        "bien",
        "okay",
        "ok",
        "exacto",
        "entiendo",
        "entendido",
        "perfecto",
        "de acuerdo",
        "ya veo",
        "está bien",
        "ah vale",
    ],
    digits: &[
        "cero",
        "uno",
        "dos",
        "tres",
        "cuatro",
        "cinco",
        "seis",
        "siete",
        "ocho",
        "nueve",
        "diez",
        "once",
        "doce",
        "trece",
        "catorce",
        "quince",
        "veinte",
        "treinta",
        "cuarenta",
        "cincuenta",
        "sesenta",
        "setenta",
        "ochenta",
        "noventa",
        "doble",
    ],
};

const FRENCH: Vocabulary = Vocabulary {
    unfinished: &[
        "le", "la", "les", "un", "une", "des", "du", "de", "mon", "ma", "mes", "votre", "et", "ou", "mais",
        "parce", "car", "quand", "que", "qui", "comme", "avec", "sans", "pour", "par", "à", "au", "aux",
        "en", "dans", "sur", "sous", "chez", "entre", "je", "c'est", "euh", "ben", "donc",
    ],
    answers: &[
        "oui",
        "non",
        "si",
        "d'accord",
        "okay",
        "ok",
        "bien sûr",
        "exactement",
        "merci",
        "oui merci",
        "non merci",
        "s'il vous plaît",
        "bonjour",
        "au revoir",
        "attendez",
        "parfait",
        "voilà",
        "c'est ça",
        "c'est bon",
    ],
    acknowledgements: &[
        "mhm",
        "mm",
        "hm",
        "hmm",
        "ah",
        "oh",
        "oui",
        "ouais",
        "d'accord",
        "okay",
        "ok",
        "bien",
        "bon",
        "voilà",
        "exactement",
        "je vois",
        "je comprends",
        "compris",
        "parfait",
        "bien sûr",
        "ah bon",
        "très bien",
        "ah oui",
    ],
    digits: &[
        "zéro",
        "deux",
        "trois",
        "quatre",
        "cinq",
        "six",
        "sept",
        "huit",
        "neuf",
        "dix",
        "onze",
        "douze",
        "treize",
        "quatorze",
        "quinze",
        "seize",
        "vingt",
        "trente",
        "quarante",
        "cinquante",
        "soixante",
        "cent",
        "double",
    ],
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_entry_is_written_as_it_is_looked_up() {
        for language in ["en", "de", "es", "fr", "tlh"] {
            let words = Vocabulary::of(language);
            for entry in [words.unfinished, words.answers, words.acknowledgements, words.digits].concat() {
                let looked_up = words_of(entry).join(" ");
                assert_eq!(looked_up, entry, "{language}");
            }
        }
    }

    #[test]
    fn a_tag_selects_by_its_language() {
        assert_eq!(Vocabulary::of("de-CH"), &GERMAN);
        assert_eq!(Vocabulary::of("EN_us"), &ENGLISH);
        assert_eq!(Vocabulary::of(""), &NEUTRAL);
        assert_eq!(Vocabulary::of("enx"), &NEUTRAL);
    }

    #[test]
    fn words_have_no_punctuation() {
        assert_eq!(words_of(" -- “Yes,” he said: 5-6 o'clock. "), ["yes", "he", "said", "5-6", "o'clock"]);
        assert_eq!(words_of("はい、OK"), ["は", "い", "ok"]);
        assert!(words_of("… ?! 👋").is_empty());
    }

    proptest! {
        #[test]
        fn words_are_themselves(text in "\\PC{0,40}") {
            for word in words_of(&text) {
                prop_assert!(!word.is_empty());
                prop_assert!(!word.contains(char::is_whitespace));
            }
        }
    }
}
