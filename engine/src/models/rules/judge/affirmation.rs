//! Whether the sentence around a value is of a form that affirms it. Words that deny, hide or take back have no end, so all words
//! of the sentence have to be known ones; anything else leaves the verdict open.
use std::mem::discriminant;

use super::reading::Text;
use super::rows::Row;
use super::values::{Likeness, Value};
use super::vocabulary::{self, is_label_of, is_one_of, names_something};
use crate::models::rules::words::stemmed;

/// Words of plain statements, whatever they are about.
const PLAIN: &str = "a an all also and are arranged be booked confirmed done down fine for good great has have hello here here's hi i \
    i've i'll is it it's its madam mr mrs ms my note now of ok okay our perfect please reserved set sir so sure thank thanks that \
    that's the this we we've we'll welcome well will yes you you're your yours";
/// Words of a sentence after the one that states the value, which leave it as it is.
const AFTERWARDS: &str = "anything else anyone bring can correct do down else get help in is keep may me need ready remember right \
    there to us with write";
/// Words of times and dates.
const TIMES: &str = "afternoon appointment arrive arrives at begin begins close closes come day daily date end ends evening every \
    from hours in leave leaves let let's meet meeting month morning on open opens opening closing see slot start starts table time \
    today tomorrow tonight us week weekdays monday mondays tuesday tuesdays wednesday wednesdays thursday thursdays friday fridays \
    saturday saturdays sunday sundays year";
const PRICES: &str = "amount charge comes cost costs each fee in pay person per price rate sum tax to total with including night \
    that'll";
const CONTACTS: &str = "address at call can contact dial e email mail me mobile on or phone reach ring telephone text to under us \
    write";
const NUMBERS: &str = "at code in number on table there total";
/// By these words somebody takes back what was said, or may.
const TAKES_BACK: &str = "actually but correction disregard false fool forget gotcha ha ignore incorrect instead joke joking \
    kidding liar lie lied lying meant misspoke mistake mistaken mixed myth nah no nope not oh oops pretend psych rather sarcasm \
    scratch sorry strike untrue wait wrong";
/// These make what follows untrue as well.
const UNTRUE: &str =
    "dream false incorrect joke joking kidding lie lied lying myth mistake story untrue wrong";
/// A noun before one of these is what the value belongs to: "the bus leaves at …".
const OF_NOUNS: &str = "arrives begins closes costs ends is leaves opens starts will";

/// What is said, and where.
#[derive(Debug, Clone, Copy)]
pub(super) struct Said<'a> {
    /// Where it stands, and what follows.
    pub(super) at: usize,
    pub(super) next: usize,
    /// The value, if there is one.
    pub(super) value: Option<&'a Value>,
    /// The stems of the criterion's words.
    pub(super) stems: &'a [String],
    /// Another value of the kind takes it back.
    pub(super) is_only: bool,
}

impl Said<'_> {
    fn of_kind(&self) -> &'static str {
        match self.value {
            Some(Value::Time { .. } | Value::Date { .. }) => TIMES,
            Some(Value::Money { .. }) => PRICES,
            Some(Value::Digits(_) | Value::Email(_)) => CONTACTS,
            Some(_) => NUMBERS,
            None => "",
        }
    }

    fn is_known(&self, word: &str) -> bool {
        is_one_of(word, PLAIN)
            || is_one_of(word, self.of_kind())
            || self.value.is_some_and(|value| is_label_of(value, word))
            || self.stems.contains(&stemmed(word))
    }

    /// A noun after its article and before its verb, of a price or a time.
    fn is_noun(&self, text: &Text, at: usize) -> bool {
        let word = |at: Option<usize>| at.and_then(|at| text.word(at)).unwrap_or_default();
        matches!(self.value, Some(Value::Time { .. } | Value::Date { .. } | Value::Money { .. }))
            && is_one_of(word(at.checked_sub(1)), "the your our this a an")
            && is_one_of(word(Some(at + 1)), OF_NOUNS)
    }

    /// Whether the sentence affirms what is said, and nothing before or after it in the row makes it untrue.
    pub(super) fn is_affirmed(&self, row: &Row) -> bool {
        let text = &row.text;
        let sentence = row.sentence(self.at);
        let mut nouns = 0;
        for place in sentence.start..self.at {
            let Some(word) = text.word(place) else { continue };
            // "Please be sure your table is booked."
            if word == "be" && text.word(place + 1) == Some("sure") {
                return false;
            }
            if !self.is_known(word) {
                nouns += 1;
                if nouns > 1 || !self.is_noun(text, place) {
                    return false;
                }
            }
        }
        // What follows directly makes more or less of the value, or is its verb.
        let mut is_beside = true;
        for place in self.next..sentence.end {
            let is_fine = match text.word(place) {
                Some("and") | None => {
                    is_beside = false;
                    true
                }
                Some(word @ ("is" | "are" | "will" | "has" | "have" | "booked" | "reserved")) => {
                    !is_beside || word == "is" && self.is_named(text, place + 1)
                }
                Some("a" | "an") if is_beside => matches!(text.word(place + 1), Some("night" | "person")),
                // "90 dollars down"
                Some("down") if is_beside && matches!(self.value, Some(Value::Money { .. })) => false,
                Some(word) => self.is_known(word) || !is_beside && is_one_of(word, AFTERWARDS),
            };
            if !is_fine {
                return false;
            }
        }
        let values = (sentence.start..self.at).chain(self.next..sentence.end);
        let has_other = values.clone().any(|place| {
            let beside = place == self.next && text.value(place).is_some_and(Value::is_amount);
            beside || self.is_only && self.is_rival(text, place)
        });
        !has_other && !self.follows_untruth(row, sentence.start) && !self.is_taken_back(row, sentence.end + 1)
    }

    /// "BD-17 is your confirmation."
    fn is_named(&self, text: &Text, at: usize) -> bool {
        text.word(at).is_some_and(|word| is_one_of(word, "your the our my"))
            && text.word(at + 1).is_some_and(|word| {
                self.value.is_some_and(|value| is_label_of(value, word))
                    || self.stems.contains(&stemmed(word))
            })
    }

    /// Whether another value of the same kind stands there, which is not named as something else.
    fn is_rival(&self, text: &Text, at: usize) -> bool {
        let (Some(value), Some(said)) = (self.value, text.value(at)) else { return false };
        let name = at.checked_sub(1).and_then(|before| text.word(before)).unwrap_or_default();
        let is_other = names_something(value, name) && !self.stems.contains(&stemmed(name));
        discriminant(value) == discriminant(said) && value.likeness(said) == Likeness::Differ && !is_other
    }

    /// "This is a joke. Your number is …"
    fn follows_untruth(&self, row: &Row, start: usize) -> bool {
        let Some(before) = start.checked_sub(1) else { return false };
        let mut words = row.sentence(before).filter_map(|place| row.text.word(place));
        row.text.sign(before) != Some('?') && !row.is_clean_or_choice(before)
            || words.any(|word| is_one_of(word, UNTRUE))
    }

    /// Whether something from there on takes back what was said, in the same row.
    fn is_taken_back(&self, row: &Row, from: usize) -> bool {
        const SHORT: usize = 3;
        let text = &row.text;
        if self.takes_back(row, from) {
            return true;
        }
        let mut start = from;
        while start < text.items.len() {
            let sentence = row.sentence(start);
            let words = || sentence.clone().filter_map(|place| text.word(place));
            let refers =
                || words().any(|word| is_one_of(word, "it it's that that's this those these which them"));
            let is_strange = || words().any(|word| !self.is_known(word) && !is_one_of(word, AFTERWARDS));
            if (words().nth(SHORT).is_none() || refers()) && is_strange() {
                return true;
            }
            start = sentence.end.max(start) + 1;
        }
        false
    }

    /// The same for a later row of the same side.
    pub(super) fn is_taken_back_later(&self, row: &Row) -> bool {
        let text = &row.text;
        let (first, second) = (text.word(0).unwrap_or_default(), text.word(1).unwrap_or_default());
        let refers = is_one_of(first, "that that's this those") || first == "it" && second == "was";
        let mut words = row.sentence(0).filter_map(|place| text.word(place));
        refers && words.any(|word| !self.is_known(word) && !is_one_of(word, AFTERWARDS))
            || self.takes_back(row, 0)
    }

    fn takes_back(&self, row: &Row, from: usize) -> bool {
        row.last_taking_back.is_some_and(|last| last >= from)
            || self.is_only && (from..row.text.items.len()).any(|place| self.is_rival(&row.text, place))
    }
}

/// Whether this word may take back what was said before it.
pub(super) fn may_take_back(word: &str) -> bool {
    is_one_of(word, TAKES_BACK) || vocabulary::is_correction(word)
}
