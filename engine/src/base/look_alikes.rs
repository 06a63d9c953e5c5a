//! Texts that look like others: Latin letters replaced by those of other scripts, accents added, hyphens inside words.
use std::borrow::Cow;

use icu_normalizer::properties::{CanonicalDecompositionBorrowed, Decomposed};

use super::text::{casefold, plain_marks};

/// Letters that look like those of [`LATIN`], in the same order. Of the Unicode Consortium's confusables.txt (Unicode Technical
/// Standard 39), those of Cyrillic, Greek and Armenian, and the Latin letters ɑ, ɡ, ı.
const OTHERS: &str = "аеорсухіјѕһԁԛԝѵӏгАВЕКМНОРСТУХІЈЅҮԌαογιρυσνΑΒΕΖΗΙΚΜΝΟΡΤΥΧօսհոցɑɡı";
const LATIN: &str = "aeopcyxijshdqwvlrABEKMHOPCTYXIJSYGaoyipuovABEZHIKMNOPTYXouhngagi";

/// Replaces the letters that look like Latin ones, in words that have Latin letters as well.
#[must_use]
pub fn latin_letters(text: &str) -> Cow<'_, str> {
    replaced(text, false)
}

/// `whole`: also in words without Latin letters, if the text has no other letter of their scripts, which would be read as it is.
fn replaced(text: &str, whole: bool) -> Cow<'_, str> {
    if !text.chars().any(|char| latin(char).is_some()) {
        return Cow::Borrowed(text);
    }
    let is_read =
        |char| matches!(char, '\u{370}'..='\u{58f}') && char.is_alphabetic() && latin(char).is_none();
    let whole = whole && !text.chars().any(is_read);
    let mut out = String::with_capacity(text.len());
    for part in text.split_inclusive(|char: char| !char.is_alphanumeric()) {
        if whole || part.contains(|char: char| char.is_ascii_alphabetic()) {
            out.extend(part.chars().map(|char| latin(char).unwrap_or(char)));
        } else {
            out.push_str(part);
        }
    }
    Cow::Owned(out)
}

fn latin(char: char) -> Option<char> {
    if char.is_ascii() {
        return None;
    }
    let place = OTHERS.chars().position(|other| other == char)?;
    LATIN.chars().nth(place)
}

/// How a text has another one that its letters hide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hidden {
    /// It has not.
    No,
    /// Only without its accents, which may make another word of it: `schön` and `schon`.
    Perhaps,
    /// In letters that look like it, or with hyphens inside a word.
    Yes,
}

/// A text in the letters that it looks like.
#[derive(Debug, Clone)]
pub struct Looks {
    /// With accents and without.
    forms: Option<[Form; 2]>,
}

/// A text, and the same without the hyphens inside its words and where these were.
#[derive(Debug, Clone)]
struct Form {
    text: String,
    joined: String,
    joints: Vec<usize>,
}

/// What is looked for, prepared once for many texts.
#[derive(Debug, Clone)]
pub struct Wanted([Form; 2]);

impl Wanted {
    /// Reads what is looked for.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self(Looks::forms(text))
    }
}

impl Looks {
    /// Reads the text. A text that hides nothing takes no room.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let hides = !text.is_ascii() || text.contains('-');
        Self { forms: hides.then(|| Self::forms(text)) }
    }

    fn forms(text: &str) -> [Form; 2] {
        let text = casefold(&replaced(&plain_marks(text), true));
        [Form::new(without_accents(&text)), Form::new(text)]
    }

    /// How the text has `wanted`.
    #[must_use]
    pub fn hides(&self, wanted: &Wanted) -> Hidden {
        let Some([bare, whole]) = &self.forms else { return Hidden::No };
        let Wanted([wanted_bare, wanted]) = wanted;
        if whole.has(wanted) {
            Hidden::Yes
        } else if bare.has(wanted_bare) {
            Hidden::Perhaps
        } else {
            Hidden::No
        }
    }
}

impl Form {
    fn new(text: String) -> Self {
        let mut joined = String::with_capacity(text.len());
        let (mut joints, mut before) = (Vec::new(), ' ');
        let mut chars = text.chars().peekable();
        while let Some(char) = chars.next() {
            if char == '-' && before.is_alphabetic() && chars.peek().is_some_and(|next| next.is_alphabetic())
            {
                joints.push(joined.len());
            } else {
                joined.push(char);
            }
            before = char;
        }
        Self { text, joined, joints }
    }

    fn has(&self, wanted: &Self) -> bool {
        // `re-fund` has "refund" and `pre-fund` has not: what is found begins a word, or a part of one.
        let begins = |(place, _): (usize, &str)| {
            let before = self.joined.get(..place).and_then(|text| text.chars().next_back());
            !before.is_some_and(char::is_alphanumeric) || self.joints.binary_search(&place).is_ok()
        };
        self.text.contains(&wanted.text)
            || !self.joints.is_empty() && self.joined.match_indices(&wanted.joined).any(begins)
    }
}

/// The text with the letters that have accents without them.
#[must_use]
pub fn without_accents(text: &str) -> String {
    let accents = CanonicalDecompositionBorrowed::new();
    let base = |mut char: char| {
        while !char.is_ascii() {
            match accents.decompose(char) {
                Decomposed::Expansion(base, '\u{300}'..='\u{36f}') | Decomposed::Singleton(base) => {
                    char = base
                }
                Decomposed::Expansion(..) | Decomposed::Default => break,
            }
        }
        char
    };
    text.chars().filter(|char| !is_accent(*char)).map(base).collect()
}

const fn is_accent(char: char) -> bool {
    matches!(char, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_letter_has_one_that_it_looks_like() {
        assert_eq!(OTHERS.chars().count(), LATIN.chars().count());
        assert!(OTHERS.chars().all(|char| !char.is_ascii()) && LATIN.is_ascii());
    }

    #[test]
    fn hidden_words_are_found() {
        for text in [
            "a re-fund",
            "no-re-fund",
            "a r-e-f-u-n-d",
            "a rеfund",
            "RЕFUND",
            "𝐫𝐞𝐟𝐮𝐧𝐝",
            "ⓡⓔⓕⓤⓝⓓ",
            "re\u{34f}fund",
            "RE\u{202e}FUND",
            "re\u{2060}-fund",
        ] {
            assert_eq!(Looks::of(text).hides(&Wanted::of("refund")), Hidden::Yes, "{text}");
        }
        assert_eq!(Looks::of("Your ѕсоре is here.").hides(&Wanted::of("scope")), Hidden::Yes);
        for text in ["refu\u{301}nd", "refúnd", "réfùnd"] {
            assert_eq!(Looks::of(text).hides(&Wanted::of("refund")), Hidden::Perhaps, "{text}");
        }
        assert_eq!(Looks::of("Danke schön").hides(&Wanted::of("schon")), Hidden::Perhaps);
    }

    #[test]
    fn other_words_are_none() {
        for (text, wanted) in [
            ("pre-fund", "refund"),
            ("re - fund", "refund"),
            ("У меня болит рот.", "pot"),
            ("refund", "rеfund"),
            ("10-5", "105"),
            ("", "x"),
        ] {
            assert_eq!(Looks::of(text).hides(&Wanted::of(wanted)), Hidden::No, "{text}");
        }
    }

    #[test]
    fn latin_letters_replace_others_in_their_words_alone() {
        assert_eq!(latin_letters("ВD-17, sоrry"), "ВD-17, sorry".replace('В', "B"));
        assert_eq!(latin_letters("сорока и scope"), "сорока и scope");
        assert_eq!(latin_letters("plain"), "plain");
    }
}
