use std::collections::BTreeMap;

use super::words::{Word, is_negation, is_stop, stemmed, unique, words};
use crate::base::text::casefold;
use crate::models::{JudgeTurn, Verdict};

/// Words that refer to the conversation itself, not to its content.
const FRAME_WORDS: [&str; 18] = [
    "agent",
    "answer",
    "answers",
    "assistant",
    "caller",
    "mention",
    "mentioned",
    "mentions",
    "said",
    "say",
    "saying",
    "says",
    "tell",
    "telling",
    "tells",
    "told",
    "turn",
    "user",
];

/// Judges a criterion by its content words: it holds when all of them occur in the turns.
///
/// Function words such as "the" or "your" are ignored, and so are words that refer to the conversation itself ("the assistant
/// says …", "tells the caller …"). Case and common English endings are ignored. A single turn with all words is preferred and
/// reported; otherwise the turn that completes the words is reported.
///
/// It matches words, not meaning: it does not recognise synonyms, other spellings of numbers, or word order. **A negation is
/// a word like any other**: "no", "not", "never", "without", "can't" are equivalent, and a criterion with one of them holds
/// only when the turns contain one. So "we never charge a fee" matches "there is no fee charged", but "does not mention a
/// refund" does not check for absence; use the evaluation kind `transcript_excludes` for that.
///
/// It caches parsed turns: use one judge for all evaluations of a run, whatever roles they cover.
#[derive(Debug, Clone, Default)]
pub struct RulesJudge {
    /// The id of each known term.
    terms: BTreeMap<String, u32>,
    /// The parsed turns, by index.
    turns: BTreeMap<usize, ReadTurn>,
}

#[derive(Debug, Clone)]
struct ReadTurn {
    text: String,
    /// The ids of the text's terms, sorted.
    terms: Vec<u32>,
}

impl RulesJudge {
    /// A judge with an empty cache.
    #[must_use]
    pub const fn new() -> Self {
        Self { terms: BTreeMap::new(), turns: BTreeMap::new() }
    }

    /// Judges a criterion, as [`RulesJudge`] describes.
    #[must_use]
    pub fn judge(&mut self, turn: &JudgeTurn<'_>) -> Verdict {
        let wanted = content_words(turn.criterion);
        if wanted.is_empty() {
            return no("The criterion has no words to look for.".to_owned());
        }
        for (index, text) in turn.turns {
            self.read(*index, text);
        }
        // A term without an id occurs in no turn.
        let numbers: Vec<Option<u32>> = wanted.iter().map(|word| self.terms.get(word).copied()).collect();
        let all_known = numbers.iter().all(Option::is_some);
        let mut left: Vec<u32> = numbers.iter().flatten().copied().collect();
        left.sort_unstable();
        let mut completed_at = None;
        for (index, _) in turn.turns {
            let said = self.turns.get(index).map_or(&[][..], |read| read.terms.as_slice());
            let says = |number: &u32| said.binary_search(number).is_ok();
            if all_known && numbers.iter().flatten().all(says) {
                return yes(*index, "One turn contains all significant words of the criterion.");
            }
            left.retain(|number| !says(number));
            if all_known && left.is_empty() {
                completed_at.get_or_insert(*index);
            }
        }
        if let Some(index) = completed_at {
            return yes(index, "Several turns together contain all significant words of the criterion.");
        }
        let is_missing =
            |number: &Option<u32>| number.is_none_or(|number| left.binary_search(&number).is_ok());
        let missing: Vec<_> = wanted
            .iter()
            .zip(&numbers)
            .filter(|(_, number)| is_missing(number))
            .map(|(wanted, _)| wanted.as_str())
            .collect();
        no(shortfall(&missing, turn.criterion))
    }

    fn read(&mut self, index: usize, text: &str) {
        if self.turns.get(&index).is_some_and(|read| read.text == text) {
            return;
        }
        let mut terms = Vec::new();
        for word in words(text) {
            let next = u32::try_from(self.terms.len()).unwrap_or(u32::MAX);
            terms.push(*self.terms.entry(term(&word)).or_insert(next));
        }
        terms.sort_unstable();
        terms.dedup();
        self.turns.insert(index, ReadTurn { text: text.to_owned(), terms });
    }
}

/// The terms to search for: content words, or all words when there are none.
fn content_words(criterion: &str) -> Vec<String> {
    let all = words(criterion);
    let of = |keep: fn(&str) -> bool| {
        let kept = all.iter().filter(|word| keep(&casefold(word.text)));
        unique(kept.map(term).collect())
    };
    let content = of(|word| is_negation(word) || !is_stop(word) && !FRAME_WORDS.contains(&word));
    if content.is_empty() { of(|_| true) } else { content }
}

/// The term of a word; all negations share one.
fn term(word: &Word<'_>) -> String {
    if is_negation(&casefold(word.text)) { "not".to_owned() } else { stemmed(word.text) }
}

/// Names the missing terms as the criterion spells them.
fn shortfall(missing: &[&str], criterion: &str) -> String {
    const NAMED_MAX: usize = 5;
    let all = words(criterion);
    let named = missing.iter().take(NAMED_MAX).map(|wanted| {
        let spelled = all.iter().find(|word| term(word) == **wanted).map_or(*wanted, |word| word.text);
        format!("\"{spelled}\"")
    });
    let named: Vec<String> = named.collect();
    let more = if missing.len() > NAMED_MAX { " and more" } else { "" };
    let absence = if missing.contains(&"not") {
        " The built-in rules match a negation as a word; to check that something was not said, use transcript_excludes."
    } else {
        ""
    };
    format!(
        "builtin/rules looks only for the words of the criterion. The checked turns do not contain: {}{more}.{absence}",
        named.join(", ")
    )
}

fn yes(index: usize, reason: &str) -> Verdict {
    Verdict { passed: true, matched_index: Some(index), reason: reason.to_owned() }
}

const fn no(reason: String) -> Verdict {
    Verdict { passed: false, matched_index: None, reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn judge(turn: &JudgeTurn<'_>) -> Verdict {
        RulesJudge::new().judge(turn)
    }

    #[test]
    fn a_turn_with_all_content_words_is_reported() {
        let turns = [(0, "Hello."), (2, "Opening at nine."), (4, "Our HOURS: we open at 9.")];
        let verdict = rule("The assistant tells the caller the opening hours.", &turns);
        assert!(verdict.passed);
        assert_eq!(verdict.matched_index, Some(4));
    }

    #[test]
    fn one_turn_is_preferred_over_several() {
        let turns = [(1, "Free parking."), (3, "A garage."), (5, "Parking in the garage.")];
        assert_eq!(rule("garage parking", &turns).matched_index, Some(5));
        let verdict = rule("garage parking", &turns[..2]);
        assert!(verdict.passed);
        assert_eq!(verdict.matched_index, Some(3));
        assert!(verdict.reason.contains("Several turns"));
    }

    #[test]
    fn missing_words_are_reported() {
        let verdict = rule("offers a refund for the parcel", &[(0, "The parcel is late.")]);
        assert!(!verdict.passed);
        assert_eq!(verdict.matched_index, None);
        assert_eq!(
            verdict.reason,
            "builtin/rules looks only for the words of the criterion. The checked turns do not contain: \"offers\", \"refund\"."
        );
        let verdict = rule("offers a refund", &[(0, "We offer help.")]);
        assert_eq!(
            verdict.reason,
            "builtin/rules looks only for the words of the criterion. The checked turns do not contain: \"refund\"."
        );
    }

    #[test]
    fn negation_is_a_word_like_any_other() {
        let fee = [(0, "There is no fee charged.")];
        assert!(rule("We never charge a fee", &fee).passed);
        assert!(!rule("We never charge a fee", &[(0, "We charge a fee.")]).passed);
        assert!(rule("can't refund", &[(0, "A refund is not possible.")]).passed);
        let verdict = rule("The assistant does not mention a refund", &[(0, "Goodbye.")]);
        assert!(!verdict.passed);
        assert!(verdict.reason.contains("transcript_excludes"), "{}", verdict.reason);
    }

    #[test]
    fn a_criterion_of_function_words_is_matched_literally() {
        assert!(rule("Thank you", &[(0, "I thank you, sir.")]).passed);
        assert!(!rule("Thank you", &[(0, "You are kind.")]).passed);
        assert!(rule("the assistant says", &[(0, "The assistant says hi")]).passed);
        assert_eq!(rule("?!", &[(0, "?!")]).reason, "The criterion has no words to look for.");
    }

    #[test]
    fn other_scripts_are_supported() {
        assert!(rule("営業時間", &[(0, "私たちの営業時間は9時からです。")]).passed);
        assert!(!rule("営業時間", &[(0, "時間がありません。")]).passed);
        assert!(rule("ÖFFNUNG", &[(7, "Die öffnung")]).passed);
    }

    proptest! {
        #[test]
        fn caching_does_not_change_verdicts(
            asked in prop::collection::vec(("[a-d no']{0,6}", prop::collection::vec("[a-d ]{0,6}", 0..4)), 0..6),
        ) {
            let mut remembering = RulesJudge::new();
            for (criterion, texts) in &asked {
                let turns: Vec<_> = texts.iter().map(String::as_str).enumerate().collect();
                let turn = JudgeTurn { criterion, turns: &turns };
                prop_assert_eq!(remembering.judge(&turn), judge(&turn));
            }
        }

        #[test]
        fn every_turn_matches_its_own_text(text in ".{0,60}") {
            let verdict = rule(&text, &[(3, "x"), (5, &text)]);
            prop_assert!(verdict.reason.ends_with('.'));
            prop_assert_eq!(verdict.passed, !words(&text).is_empty());
        }
    }

    fn rule(criterion: &str, turns: &[(usize, &str)]) -> Verdict {
        judge(&JudgeTurn { criterion, turns })
    }
}
