//! The cases with their verdicts are in `engine/tests/judge/`.
use proptest::prelude::*;

use super::*;

#[test]
fn reasons_name_what_is_not_understood() {
    let verdict = judge("The assistant is polite.", &["Hello."]);
    assert_eq!(verdict.passed, None);
    assert!(verdict.reason.contains("“is”"), "{}", verdict.reason);
    let verdict = judge("The assistant says \"a\" politely.", &["a"]);
    assert!(verdict.reason.contains("“politely”"), "{}", verdict.reason);
}

#[test]
fn the_row_that_decides_is_named() {
    let verdict =
        judge("The assistant gives the confirmation BD-17.", &["Hello.", "Your confirmation is BD-17."]);
    assert_eq!((verdict.passed, verdict.matched_index), (Some(true), Some(1)));
    let verdict = judge("The assistant never says sorry.", &["Hello.", "Sorry."]);
    assert_eq!((verdict.passed, verdict.matched_index), (Some(false), Some(1)));
    let verdict = judge("The assistant says \"b\" before \"a\".", &["a", "b"]);
    assert_eq!((verdict.passed, verdict.matched_index), (Some(false), Some(0)));
}

#[test]
fn what_is_too_long_is_not_decided() {
    let criterion = format!("The assistant says \"{}\".", "a ".repeat(200));
    assert_eq!(judge(&criterion, &["a"]).passed, None);
}

proptest! {
    #[test]
    fn caching_does_not_change_verdicts(
        asked in prop::collection::vec(("says \"[a-c1 ]{1,6}\"", prop::collection::vec("[a-c1-3 .?]{0,9}", 0..4)), 0..6),
    ) {
        let mut remembering = RulesJudge::new();
        for (criterion, texts) in &asked {
            let rows = rows(texts.iter().map(String::as_str));
            let turns: Vec<_> = rows.iter().collect();
            let turn = JudgeTurn { criterion, only: None, turns: &turns, vote: 0 };
            prop_assert_eq!(remembering.judge(&turn), RulesJudge::new().judge(&turn));
        }
    }

    #[test]
    fn whatever_is_written_has_a_verdict(criterion in ".{0,80}", text in ".{0,80}") {
        let verdict = judge(&criterion, &[&text]);
        prop_assert!(verdict.reason.ends_with('.'));
        // A plain text is no criterion.
        let says = judge(&format!("never says \"{}\" before 5 and {criterion}", text.replace('"', "")), &[&text, &criterion]);
        prop_assert!(says.reason.ends_with('.'));
    }

    #[test]
    fn numbers_dates_and_codes_never_panic(text in "[a-zA-Z0-9 $%.,:@/+()-]{0,60}", words in "(?:one|twenty|hundred|thousand|and|May|the|fourth|of|half|past|at|pm|dollars| |-|,){0,20}") {
        let criterion = format!("gives the price {words} {text}");
        let _ = judge(&criterion, &[&text, &words]);
        let _ = judge(&format!("says \"{}\"", text), &[&words, &text]);
    }
}

fn judge(criterion: &str, texts: &[&str]) -> Verdict {
    let rows = rows(texts.iter().copied());
    let turns: Vec<_> = rows.iter().collect();
    RulesJudge::new().judge(&JudgeTurn { criterion, only: None, turns: &turns, vote: 0 })
}

fn rows<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<TranscriptRow> {
    let row = |(index, text): (usize, &str)| {
        TranscriptRow::new(index, TranscriptRole::Assistant, text.into(), 0, 0)
    };
    texts.enumerate().map(row).collect()
}
