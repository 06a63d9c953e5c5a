//! Divides the text of a model into sentences while it arrives.
use super::vocabulary::is_word_by_itself;

/// Shorter sentences are joined with the next: a voice sounds better with more of the text.
const MIN_LENGTH: usize = 20;
/// A character of a script without spaces is about a syllable, as long as three letters.
const LENGTH_PER_SYLLABLE: usize = 3;
/// Longer text without an end is divided at a clause or between words.
const MAX_CHARS: usize = 300;
/// A first sentence that is longer is divided at a clause, if there is one: somebody waits for the answer.
const FIRST_CHARS: usize = 60;

/// Abbreviations that something follows: a full stop after them is not an end.
const ABBREVIATIONS: [&str; 34] = [
    "mr", "mrs", "ms", "dr", "prof", "sr", "jr", "st", "mt", "rev", "hon", "gen", "col", "capt", "lt", "sgt",
    "vs", "nr", "fig", "approx", "ca", "dept", "tel", "ext", "vol", "pp", "pg", "cf", "bzw", "usw", "sra",
    "srta", "mme", "mlle",
];
/// Abbreviations that may also end a sentence: the next letter tells.
const FINAL_ABBREVIATIONS: [&str; 8] = ["etc", "inc", "ltd", "co", "corp", "a.m", "p.m", "ph.d"];

/// Divides text into sentences as soon as each is certain to be complete.
///
/// The parts joined are the text, white space included, and any division of the input gives the same parts. Each ends where a
/// voice can pause. No part is longer than 300 characters.
///
/// ```
/// use sidetone_engine::speech::sentence_cutter::SentenceCutter;
///
/// let mut cutter = SentenceCutter::default();
/// assert!(cutter.push("Good morning, Dr. Smith").is_empty());
/// assert_eq!(cutter.push(". How can I"), ["Good morning, Dr. Smith. "]);
/// assert_eq!(cutter.finish().as_deref(), Some("How can I"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SentenceCutter {
    /// Text that is not part of a complete sentence.
    rest: String,
    /// Its characters.
    chars: usize,
    /// Its length in terms of [`MIN_LENGTH`].
    length: usize,
    /// Whether the first part may end with a clause.
    begins_early: bool,
}

impl SentenceCutter {
    /// With a first part that may be a clause of a long sentence.
    #[must_use]
    pub fn that_begins_early() -> Self {
        Self { begins_early: true, ..Self::default() }
    }

    /// Takes more of the text. Returns the parts that are complete now.
    pub fn push(&mut self, text: &str) -> Vec<String> {
        text.chars().filter_map(|character| self.push_char(character)).collect()
    }

    /// The text is over. Returns its rest; the cutter is then at the beginning of another text.
    pub fn finish(&mut self) -> Option<String> {
        let rest = std::mem::take(self).rest;
        (!rest.is_empty()).then_some(rest)
    }

    fn push_char(&mut self, character: char) -> Option<String> {
        if self.length >= MIN_LENGTH && ends_before(&self.rest, character) {
            let part = self.cut(self.rest.len());
            self.append(character);
            return Some(part);
        }
        let ends = self.length >= MIN_LENGTH && ends_with(&self.rest, character);
        self.append(character);
        if ends {
            return Some(self.cut(self.rest.len()));
        }
        if self.begins_early && self.chars >= FIRST_CHARS && character.is_whitespace() {
            let clause = ClauseEnd::of(&self.rest).clause;
            return clause.map(|end| self.cut(end));
        }
        (self.chars >= MAX_CHARS).then(|| self.cut(ClauseEnd::of(&self.rest).or_end_of(&self.rest)))
    }

    fn append(&mut self, character: char) {
        self.rest.push(character);
        self.chars += 1;
        self.length += length(character);
    }

    /// Removes the text up to a position.
    fn cut(&mut self, end: usize) -> String {
        self.begins_early = false;
        let rest = self.rest.split_off(end);
        self.chars = rest.chars().count();
        self.length = rest.chars().map(length).sum();
        std::mem::replace(&mut self.rest, rest)
    }
}

const fn length(character: char) -> usize {
    if is_word_by_itself(character) { LENGTH_PER_SYLLABLE } else { 1 }
}

/// Whether a sentence is complete with `next`, a white space after it.
fn ends_with(text: &str, next: char) -> bool {
    next == '\n' || next.is_whitespace() && matches!(End::of(text), End::Certain | End::Wide)
}

/// Whether a sentence was complete before `next`, which tells more.
fn ends_before(text: &str, next: char) -> bool {
    if text.ends_with(char::is_whitespace) {
        return !next.is_whitespace() && !next.is_lowercase() && matches!(End::of(text), End::Likely);
    }
    matches!(End::of(text), End::Wide) && !next.is_whitespace() && !is_closing(next) && !is_wide_end(next)
}

/// How a text ends, white space and closing quotation marks aside.
enum End {
    /// With a sentence.
    Certain,
    /// With a sentence, if what follows begins like one.
    Likely,
    /// With a sentence, in a script without spaces after it.
    Wide,
    /// Not with a sentence.
    None,
}

impl End {
    fn of(text: &str) -> Self {
        let text =
            text.trim_end_matches(|character: char| character.is_whitespace() || is_closing(character));
        let Some(last) = text.chars().next_back() else { return Self::None };
        match last {
            '!' | '?' | '؟' | '۔' | '।' | '॥' => Self::Certain,
            '…' => Self::Likely,
            '.' => Self::of_full_stop(text.strip_suffix('.').unwrap_or(text)),
            wide if is_wide_end(wide) => Self::Wide,
            _ => Self::None,
        }
    }

    /// What a full stop after `text` is.
    fn of_full_stop(text: &str) -> Self {
        let word = text
            .rsplit(|character: char| character.is_whitespace() || "([“\"'-/*_".contains(character))
            .next();
        let word = word.unwrap_or_default().to_lowercase();
        if word.ends_with('.') || FINAL_ABBREVIATIONS.contains(&word.as_str()) {
            return Self::Likely; // an ellipsis, or an abbreviation
        }
        let mut letters = word.chars();
        let is_initial = letters.next().is_some_and(char::is_alphabetic) && letters.next().is_none();
        // With a full stop inside, it is an abbreviation ("e.g"), unless it is an address or a number.
        let is_dotted = word.contains('.')
            && word.split('.').all(|part| part.chars().nth(1).is_none())
            && !word.contains(|character: char| character.is_numeric());
        // A number in front of an entry of a list.
        let is_listed = !word.is_empty()
            && word.chars().all(|character| character.is_ascii_digit())
            && text
                .strip_suffix(word.as_str())
                .is_some_and(|before| before.is_empty() || before.ends_with('\n'));
        if is_initial || is_dotted || is_listed || ABBREVIATIONS.contains(&word.as_str()) {
            Self::None
        } else {
            Self::Certain
        }
    }
}

/// Whether a character ends a sentence in a script without spaces.
const fn is_wide_end(character: char) -> bool {
    matches!(character, '。' | '！' | '？' | '．' | '｡')
}

/// Whether a character can stand between the end of a sentence and the space after it.
const fn is_closing(character: char) -> bool {
    matches!(character, '"' | '\'' | '”' | '’' | '»' | ')' | ']' | '」' | '』' | '）' | '*' | '_')
}

/// Where a text without an end can be divided.
#[derive(Default)]
struct ClauseEnd {
    /// After its last clause.
    clause: Option<usize>,
    /// Between its last words.
    word: Option<usize>,
}

impl ClauseEnd {
    fn of(text: &str) -> Self {
        let mut found = Self::default();
        let mut before = ' ';
        let mut length_before = 0;
        for (place, character) in text.char_indices() {
            let end = Some(place + character.len_utf8());
            if length_before >= MIN_LENGTH {
                if character.is_whitespace() {
                    found.word = end;
                    if matches!(before, ',' | ';' | ':' | '—' | '–' | ')' | '.' | '،') {
                        found.clause = end;
                    }
                } else if matches!(character, '，' | '、' | '；' | '：') {
                    found.clause = end;
                }
            }
            length_before += length(character);
            before = character;
        }
        found
    }

    /// The best place.
    fn or_end_of(self, text: &str) -> usize {
        self.clause.or(self.word).unwrap_or(text.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(text: &str) -> Vec<String> {
        let mut cutter = SentenceCutter::default();
        let mut parts = cutter.push(text);
        parts.extend(cutter.finish());
        parts
    }

    #[test]
    fn sentences() {
        for (text, parts) in [
            ("", &[][..]),
            ("Hello.", &["Hello."]),
            ("Your table is booked. See you then!", &["Your table is booked. ", "See you then!"]),
            // Short ones wait for the next.
            ("Yes. Sure. Your table is booked. Bye.", &["Yes. Sure. Your table is booked. ", "Bye."]),
            (
                "He said “that is all right.” Then he went.",
                &["He said “that is all right.” ", "Then he went."],
            ),
            ("**This is very important!** Listen.", &["**This is very important!** ", "Listen."]),
            (
                "Please ask for Mrs. Jones or J. R. Smith there.",
                &["Please ask for Mrs. Jones or J. R. Smith there."],
            ),
            (
                "We sell fruit, e.g. apples, in the U.S. and Canada.",
                &["We sell fruit, e.g. apples, in the U.S. and Canada."],
            ),
            (
                "We are open until 9 a.m. Please come early.",
                &["We are open until 9 a.m. ", "Please come early."],
            ),
            (
                "We are open from 9 a.m. to 5 p.m. on Monday.",
                &["We are open from 9 a.m. to 5 p.m. on Monday."],
            ),
            ("The price of that is $29. Next question?", &["The price of that is $29. ", "Next question?"]),
            ("It weighs about 3.5 kg. Anything else?", &["It weighs about 3.5 kg. ", "Anything else?"]),
            ("Look at www.example.com for more. Bye.", &["Look at www.example.com for more. ", "Bye."]),
            ("You find all at example.com. Bye.", &["You find all at example.com. ", "Bye."]),
            (
                "Well, let me think... maybe on Monday... No.",
                &["Well, let me think... maybe on Monday... ", "No."],
            ),
            ("Is that so?! I did not know.", &["Is that so?! I did not know."]),
            (
                "These are the choices:\n1. Apple pie\n2. Pear\n",
                &["These are the choices:\n", "1. Apple pie\n2. Pear\n"],
            ),
            (
                "今日は予約できません。明日はどうですか？「はい。」",
                &["今日は予約できません。", "明日はどうですか？", "「はい。」"],
            ),
            ("आपका स्वागत है। हम कैसे मदद करें?", &["आपका स्वागत है। हम कैसे मदद करें?"]),
        ] {
            assert_eq!(cut(text), parts, "{text}");
        }
    }

    #[test]
    fn a_sentence_comes_as_soon_as_it_is_certain() {
        let mut cutter = SentenceCutter::default();
        assert!(cutter.push("The total price is $29.").is_empty());
        assert_eq!(cutter.push(" "), ["The total price is $29. "]);
        assert!(cutter.push("The total price is $29.").is_empty());
        assert!(cutter.push("50").is_empty());
        assert_eq!(cutter.push(" today. "), ["The total price is $29.50 today. "]);
        assert_eq!(cutter.finish(), None);
    }

    #[test]
    fn long_text_is_divided_at_a_clause_or_between_words() {
        let clauses = "and then we go on, as we always do ".repeat(20);
        assert!(cut(&clauses)[0].ends_with("on, "), "{clauses}");
        let words = "and then we go on ".repeat(40);
        for part in &cut(&words)[..2] {
            assert!(part.ends_with(' ') && part.len() > 290, "{part}");
        }
        assert_eq!(
            cut(&"ß".repeat(700)).iter().map(|part| part.chars().count()).collect::<Vec<_>>(),
            [300, 300, 100]
        );
    }

    #[test]
    fn a_long_first_sentence_begins_with_a_clause() {
        let text = "As far as I can see in our calendar, we have a free table on Saturday at eight, which is by the window.";
        let mut cutter = SentenceCutter::that_begins_early();
        assert_eq!(cutter.push(text), ["As far as I can see in our calendar, "]);
        assert_eq!(
            cutter.push(&format!(" {text} ")).concat().len(),
            2 * text.len() + 2 - 37,
            "the others are sentences"
        );
        assert_eq!(cut(text), [text], "if nobody waits");
        let mut cutter = SentenceCutter::that_begins_early();
        assert_eq!(
            cutter.push("Your table is booked. See you then, as always! Bye"),
            ["Your table is booked. ", "See you then, as always! "]
        );
        let mut cutter = SentenceCutter::that_begins_early();
        assert!(cutter.push(&"and then we go on ".repeat(10)).is_empty(), "never between words");
    }

    proptest! {
        #[test]
        fn parts_are_the_text_however_it_arrives(
            words in prop::collection::vec(
                prop::sample::select(&["Dr.", "a.m.", "yes", "3.5", "end.", "what?!", "...", "。", "你好", "\n", "“so.”", "e.g.", "**", ",", "ß"][..]),
                0..300,
            ),
            spaces in prop::collection::vec(prop::sample::select(&["", " ", "  "][..]), 300),
            pieces in prop::collection::vec(1_usize..40, 0..200),
            begins_early: bool,
        ) {
            let text: String = words.iter().zip(&spaces).flat_map(|(word, space)| [*word, *space]).collect();
            let cutter = || SentenceCutter { begins_early, ..SentenceCutter::default() };
            let mut whole = Vec::new();
            let mut at_once = cutter();
            whole.extend(at_once.push(&text));
            whole.extend(at_once.finish());
            prop_assert_eq!(&whole.concat(), &text);
            for part in &whole {
                prop_assert!(!part.is_empty() && part.chars().count() <= MAX_CHARS);
            }
            let mut cutter = cutter();
            let (mut divided, mut rest) = (Vec::new(), &text[..]);
            for piece in pieces {
                let end = rest.char_indices().nth(piece).map_or(rest.len(), |(end, _)| end);
                divided.extend(cutter.push(&rest[..end]));
                rest = &rest[end..];
            }
            divided.extend(cutter.push(rest));
            divided.extend(cutter.finish());
            prop_assert_eq!(divided, whole);
        }
    }
}
