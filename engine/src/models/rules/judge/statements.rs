//! What makes a sentence a plain statement, and a word a formula and nothing else.
use crate::models::rules::judge::vocabulary::is_one_of;
use std::ops::Range;

use super::criterion::Formula;
use super::reading::Text;
use super::rows::Statement;
use crate::models::rules::words::{is_negation, is_stop};

/// Whether a sentence states what it says, without question, negation, condition or somebody else's words.
pub(super) fn statement(text: &Text, sentence: Range<usize>) -> Statement {
    const UNSURE: &str = "allegedly apparently assume believe believes canceled cancelled claim claims colleague could doubt \
        expired false former formerly guess hardly heard hope if imagine incorrect instead invalid know \
        likely maybe meant mentioned might neither old perhaps possibly pretend previous previously probably \
        reportedly rumor rumour said say saying says seems should somebody someone sounds suppose supposed \
        supposedly tells think thinks thought told unavailable unknown unless untrue used was were whether \
        wish wonder would writes wrong wrote";
    const QUESTION: &str =
        "are can could did do does how is may shall should what when where which who why will would";
    let is_unsure = |at: usize| {
        text.word(at).is_some_and(|word| {
            // "No, thank you" denies something else.
            let is_answer = word == "no" && text.sign(at + 1) == Some(',');
            let may_be = word == "may" && matches!(text.word(at + 1), Some("be" | "have"));
            let is_example = word == "example" && at > 0 && text.word(at - 1) == Some("for");
            is_negation(word) && !is_answer || may_be || is_example || is_one_of(word, UNSURE)
        })
    };
    let first =
        sentence.clone().find_map(|at| text.word(at).filter(|word| !matches!(*word, "and" | "so" | "but")));
    let asks = text.sign(sentence.end) == Some('?') || first.is_some_and(|word| is_one_of(word, QUESTION));
    if asks || sentence.clone().any(is_unsure) {
        Statement::Unclear
    } else if sentence.into_iter().any(|at| text.word(at) == Some("or")) {
        Statement::Choice
    } else {
        Statement::Plain
    }
}

/// Whether the word greets, and is no part of a name or a saying: "Hello Kitty", "goodbye stress".
pub(super) fn is_address(text: &Text, at: usize) -> bool {
    let is_good_bye = text.word(at) == Some("good");
    let next = text.word(at + 1 + usize::from(is_good_bye));
    let begins = at.checked_sub(1).is_none_or(|before| match text.word(before) {
        Some(word) => is_one_of(word, "oh and well ok okay so then hello hi bye now but thanks you day yes no sir madam there just calling lot sorry"),
        None => true,
    });
    begins
        && text.sign(at + 1) != Some('-')
        && next.is_none_or(|next| {
            is_one_of(next, "and there this i'm i you you've how what sir madam mr mrs ms dr everyone everybody all again for then now bye hello hi good thank thanks welcome we my who can may from to it's is who's our please so but have until") && !matches!((next, text.word(at + 2)), ("to", Some("the")) | ("is", Some("a" | "the" | "not" | "my")))
        })
}

/// Whether whoever says the formula means it: "I'm so sorry", not "he is sorry" or "I refuse to apologise".
pub(super) fn is_own(formula: Formula, text: &Text, start: usize, at: usize) -> bool {
    const WORDS_MAX: usize = 12;
    const BEFORE: &str = "accept again all am and are bye course deeply deepest do dear extremely for good goodbye great hello hi i         i'm like many must my now of oh ok okay our please perfect really sincere sincerely sir madam so terribly thank thanks that         the then there to truly very want we we're well welcome wish yes you your";
    if matches!(formula, Formula::Hello | Formula::Goodbye) {
        return true;
    }
    // The words since the last mark.
    let start = start.max(at.saturating_sub(WORDS_MAX));
    let before = || (start..at).rev().map_while(|place| text.word(place));
    let is_known = before().all(|word| is_one_of(word, BEFORE));
    let first = before().last().unwrap_or_default();
    let is_others = formula == Formula::Sorry && is_one_of(first, "you your that the there");
    let next = text.word(at + 1).unwrap_or_default();
    is_known && before().count() < WORDS_MAX && !is_others && !is_one_of(next, "accepted are is aren't isn't")
}

/// Whether "sorry" or "thanks" is said for something else: "a sorry state", "thanks to the storm".
pub(super) fn is_other_use(text: &Text, at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| text.word(before)).unwrap_or_default();
    let next = text.word(at + 1).unwrap_or_default();
    match text.word(at) {
        Some("sorry") => {
            is_one_of(before, "a the be you're he's she's they're feel such this")
                || matches!(next, "state" | "sight" | "excuse")
        }
        Some("thanks") => next == "to" || before == "no",
        _ => false,
    }
}

/// "Sorry to hear that" is no apology.
pub(super) fn is_sympathy(text: &Text, at: usize) -> bool {
    let next = |ahead: usize| text.word(at + ahead).unwrap_or_default();
    matches!((next(1), next(2)), ("to", "hear") | ("for", "your") | ("you", _)) || next(1) == "that"
}

/// Whether a row can be taken for English: a reader of another language finds numbers and sorrow where the rules do not.
pub(super) fn is_english(text: &Text) -> bool {
    const SHARE: usize = 8;
    // Words of other languages, too.
    const OTHERS: [&str; 20] = [
        "a", "an", "as", "am", "do", "es", "has", "he", "hey", "hi", "i", "in", "me", "no", "on", "over",
        "so", "to", "under", "was",
    ];
    const MORE: [&str; 16] = [
        "another",
        "booked",
        "certainly",
        "closed",
        "down",
        "number",
        "price",
        "right",
        "room",
        "sir",
        "sorry",
        "sure",
        "today",
        "tomorrow",
        "write",
        "wrote",
    ];
    /// Frequent words of others, and those by which they apologise; none of them English, as "til" and "pour" are.
    const FOREIGN: &str = "auch auf avec bij dans das dat dem der des det een ein eine geen haben har hebben heeft het hvad \
        ich ik ikke ingen inte jag jeg jij mir niet nicht nous og onze på sie sind sono und uns usted vi \
        voor vous wij wir zijn är que está não você nie się jest che della è für och \
        beklager desculpe disculpe désolé désolée förlåt helaas lamento leider pardón perdón przepraszam scusi spijt tyvärr \
        undskyld";
    let (mut all, mut known, mut short, mut foreign) = (0, 0, 0, 0);
    for word in (0..text.items.len()).filter_map(|at| text.word(at)) {
        if word.chars().any(|char| char > '\u{24f}' && char.is_alphabetic()) {
            return false;
        }
        all += 1;
        short += usize::from(is_stop(word));
        foreign += usize::from(is_one_of(word, FOREIGN));
        known += usize::from(is_stop(word) && !OTHERS.contains(&word) || MORE.contains(&word));
    }
    // "No." is the same everywhere.
    short == all || known * SHARE >= all && foreign < known.max(1)
}
