//! Quoted passages of a text.
use std::ops::Range;

/// Longest passage that is still read as quoted; beyond it, the mark was not a quotation mark.
const QUOTED_BYTES_MAX: usize = 2_000;

/// The insides of the quoted passages, in order, without their marks; none is blank.
///
/// `"…"`, `“…”`, `„…“`, `«…»` and `「…」` count everywhere. `'…'` and `‘…’` are also apostrophes,
/// so they count only when several words stand between them and either a mark of speech
/// (`:` or `,`) stands before or the passage ends like a sentence.
pub(super) fn quoted(text: &str) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let mut from = 0;
    while let Some((open, char)) = next_opening(text, from) {
        let inside = open + char.len_utf8();
        let passage = closings(char).and_then(|marks| closing(text, inside, char, marks));
        match passage {
            Some((end, after)) => {
                if text
                    .get(inside..end)
                    .is_some_and(|passage| !passage.trim().is_empty())
                {
                    out.push(inside..end);
                }
                from = after;
            }
            None => from = inside,
        }
    }
    out
}

fn next_opening(text: &str, from: usize) -> Option<(usize, char)> {
    let rest = text.get(from..)?;
    let mut before = text.get(..from).and_then(|text| text.chars().next_back());
    for (place, char) in rest.char_indices() {
        // `5" pipe` and `don't` open nothing: a straight mark opens only where a word may begin.
        let straight = matches!(char, '"' | '\'' | '\u{2018}');
        let at_start = before.is_none_or(|before| !before.is_alphanumeric());
        if closings(char).is_some() && (!straight || at_start) {
            return Some((from + place, char));
        }
        before = Some(char);
    }
    None
}

const fn closings(open: char) -> Option<&'static [char]> {
    Some(match open {
        '"' => &['"'],
        '“' => &['”'],
        '„' => &['“', '”'],
        '«' => &['»'],
        '「' => &['」'],
        '\'' => &['\''],
        '\u{2018}' => &['\u{2019}'],
        _ => return None,
    })
}

/// Where the passage that starts at `inside` ends, and where to read on.
fn closing(text: &str, inside: usize, open: char, marks: &[char]) -> Option<(usize, usize)> {
    let limit = text.ceil_char_boundary(inside.saturating_add(QUOTED_BYTES_MAX).min(text.len()));
    let window = text.get(inside..limit)?;
    let apostrophe_like = matches!(open, '\'' | '\u{2018}');
    for (place, mark) in window
        .char_indices()
        .filter(|(_, char)| marks.contains(char))
    {
        let end = inside + place;
        let after = end + mark.len_utf8();
        if !apostrophe_like || is_clearly_quoted(text, inside..end, after) {
            return Some((end, after));
        }
    }
    None
}

fn is_clearly_quoted(text: &str, passage: Range<usize>, after: usize) -> bool {
    let before = text.get(..passage.start).unwrap_or_default();
    let words = text.get(passage).unwrap_or_default();
    let next = text.get(after..).and_then(|rest| rest.chars().next());
    let introduced = before
        .trim_end_matches(['\'', '\u{2018}'])
        .trim_end()
        .ends_with([':', ',', '：']);
    !words.starts_with(char::is_whitespace)
        && !words.ends_with(char::is_whitespace)
        && !words.contains('\n')
        && words.split_whitespace().nth(1).is_some()
        && next.is_none_or(|next| !next.is_alphanumeric())
        && (introduced || words.ends_with(['.', '?', '!', '…']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_pair_of_marks_quotes() {
        assert_eq!(
            passages(r#"Say "one" then “two”, „drei“, «quatre» and 「五」."#),
            ["one", "two", "drei", "quatre", "五"]
        );
    }

    #[test]
    fn single_marks_quote_only_when_clear() {
        assert_eq!(
            passages("Say 'When do you open?' and wait"),
            ["When do you open?"]
        );
        assert_eq!(
            passages("Ask: 'your opening hours', then go"),
            ["your opening hours"]
        );
        assert_eq!(
            passages("Say: 'I don't know, sorry.' and go"),
            ["I don't know, sorry."]
        );
        assert_eq!(
            passages("the 'new' plan, don't ask the boys' toys or rock 'n' roll"),
            none()
        );
        assert_eq!(passages("'tis the boys' day"), none());
    }

    #[test]
    fn marks_without_a_partner_quote_nothing() {
        assert_eq!(passages("a 5\" pipe and a 6\" pipe"), none());
        assert_eq!(passages("\"open"), none());
        assert_eq!(passages("\"\" \"  \" «»"), none());
        assert_eq!(passages("„"), none());
    }

    #[test]
    fn a_page_of_opening_marks_is_read_at_once() {
        assert_eq!(passages(&"“".repeat(100_000)), none());
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(text in "[“”\"'«»„a é.\n]{0,60}") {
            for range in quoted(&text) {
                prop_assert!(!text[range].trim().is_empty());
            }
        }
    }

    fn passages(text: &str) -> Vec<&str> {
        quoted(text).into_iter().map(|range| &text[range]).collect()
    }

    fn none() -> Vec<&'static str> {
        Vec::new()
    }
}
