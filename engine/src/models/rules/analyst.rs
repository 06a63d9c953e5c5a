use super::sentences::sentences;
use super::words::{is_negation, unique_terms, words};
use crate::base::limits::SUMMARY_BYTES_MAX;
use crate::base::text::{casefold, collapse_whitespace, truncate};
use crate::conversation::Sentiment;
use crate::conversation::transcript::{TranscriptRole, TranscriptRow};
use crate::models::{Analysis, AnalysisTurn};

/// Bytes of a quoted sentence.
const QUOTE_BYTES_MAX: usize = 200;
/// Fewest content words of a quoted sentence: greetings and goodbyes have fewer.
const TERMS_MIN: usize = 2;
/// Most tools in a summary.
const TOOLS_MAX: usize = 5;
/// A negation among this many words before a word inverts it.
const NEGATION_REACH: usize = 3;

/// Words of a satisfied caller, without polite phrases such as "thanks".
const GOOD: [&str; 16] = [
    "amazing",
    "awesome",
    "brilliant",
    "delighted",
    "excellent",
    "fantastic",
    "glad",
    "good",
    "great",
    "happy",
    "helpful",
    "love",
    "lovely",
    "perfect",
    "pleased",
    "wonderful",
];
/// Words of a dissatisfied caller.
const BAD: [&str; 20] = [
    "angry",
    "annoyed",
    "annoying",
    "awful",
    "bad",
    "complaint",
    "disappointed",
    "disgusting",
    "frustrated",
    "frustrating",
    "furious",
    "hate",
    "horrible",
    "ridiculous",
    "rude",
    "terrible",
    "unacceptable",
    "unhappy",
    "useless",
    "worst",
];

/// Analyses a call without understanding it: the summary consists of the call's own sentences, the sentiment of counted
/// words. The same call gives the same analysis.
///
/// The summary quotes the caller's first sentence of substance, lists the tools that were called, and quotes the assistant's
/// last sentence of substance. The sentiment is the majority of the caller's positive and negative words (a preceding
/// negation inverts a word), neutral without such words, and unknown when the caller said nothing. English only.
#[must_use]
pub fn analyse(turn: &AnalysisTurn<'_>) -> Analysis {
    Analysis { summary: summary(turn.transcript), sentiment: sentiment(turn.transcript) }
}

fn summary(rows: &[TranscriptRow]) -> String {
    let mut parts = Vec::new();
    let user: Vec<&str> = lines(rows, TranscriptRole::User).flat_map(sentences).collect();
    match quotable(user.iter().copied()) {
        Some(sentence) => parts.push(format!("The caller said: \"{sentence}\"")),
        None => parts.push("The caller said nothing.".to_owned()),
    }
    let mut tools: Vec<&str> = Vec::new();
    for row in rows.iter().filter(|row| row.role == TranscriptRole::ToolCall && row.is_error != Some(true)) {
        if let Some(name) = row.tool_name.as_deref().filter(|name| !tools.contains(name)) {
            tools.push(name);
        }
    }
    if !tools.is_empty() {
        let more = if tools.len() > TOOLS_MAX { " and more" } else { "" };
        tools.truncate(TOOLS_MAX);
        parts.push(format!("Tools called: {}{more}.", tools.join(", ")));
    }
    let assistant: Vec<&str> = lines(rows, TranscriptRole::Assistant).flat_map(sentences).collect();
    if let Some(sentence) = quotable(assistant.iter().rev().copied()) {
        parts.push(format!("The assistant last said: \"{sentence}\""));
    }
    truncate(parts.join(" "), SUMMARY_BYTES_MAX)
}

fn lines(rows: &[TranscriptRow], role: TranscriptRole) -> impl Iterator<Item = &str> {
    rows.iter().filter(move |row| row.role == role).map(|row| row.text.as_str())
}

/// The first sentence of substance, or else the first sentence.
fn quotable<'a>(sentences: impl Iterator<Item = &'a str> + Clone) -> Option<String> {
    let substance = |sentence: &&str| unique_terms(sentence).len() >= TERMS_MIN;
    let sentence = sentences.clone().find(substance).or_else(|| sentences.clone().next())?;
    Some(truncate(collapse_whitespace(sentence), QUOTE_BYTES_MAX))
}

fn sentiment(rows: &[TranscriptRow]) -> Sentiment {
    let (mut heard, mut good, mut bad) = (false, 0_usize, 0_usize);
    for line in lines(rows, TranscriptRole::User) {
        for sentence in sentences(line) {
            let said: Vec<String> = words(sentence).iter().map(|word| casefold(word.text)).collect();
            heard |= !said.is_empty();
            for (place, word) in said.iter().enumerate() {
                let before = said.get(place.saturating_sub(NEGATION_REACH)..place).unwrap_or_default();
                let turned = before.iter().any(|word| is_negation(word));
                match (GOOD.contains(&word.as_str()), BAD.contains(&word.as_str())) {
                    (true, _) if turned => bad += 1,
                    (true, _) => good += 1,
                    // "Not bad" is not praise.
                    (_, true) if !turned => bad += 1,
                    _ => {}
                }
            }
        }
    }
    match good.cmp(&bad) {
        _ if !heard => Sentiment::Unknown,
        std::cmp::Ordering::Greater => Sentiment::Positive,
        std::cmp::Ordering::Less => Sentiment::Negative,
        std::cmp::Ordering::Equal => Sentiment::Neutral,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_summary_quotes_the_conversation() {
        let mut rows = vec![
            row(TranscriptRole::Assistant, "Shop, hello!"),
            row(TranscriptRole::User, "Hi. Where is my order A-17? I am in a hurry."),
            row(TranscriptRole::ToolCall, "lookup_order({})"),
            row(TranscriptRole::ToolCall, "nonsense({})"),
            row(TranscriptRole::Assistant, "Your order A-17 is on its way."),
            row(TranscriptRole::User, "Great! Bye."),
            row(TranscriptRole::Assistant, "Goodbye!"),
        ];
        rows[2].tool_name = Some("lookup_order".into());
        rows[3].tool_name = Some("nonsense".into());
        rows[3].is_error = Some(true);
        let analysis = analyse(&AnalysisTurn { transcript: &rows });
        assert_eq!(
            analysis.summary,
            "The caller said: \"Where is my order A-17?\" Tools called: lookup_order. The assistant last said: \
             \"Your order A-17 is on its way.\""
        );
        assert_eq!(analysis.sentiment, Sentiment::Positive);
    }

    #[test]
    fn sentiment_counts_words() {
        for (line, sentiment) in [
            ("This is ridiculous, I am furious. Good grief.", Sentiment::Negative),
            ("That was not helpful.", Sentiment::Negative),
            ("Not bad.", Sentiment::Neutral),
            ("Thanks. Bye!", Sentiment::Neutral),
            ("Wonderful, I'm happy.", Sentiment::Positive),
            ("…", Sentiment::Unknown),
        ] {
            let rows = [row(TranscriptRole::User, line)];
            assert_eq!(analyse(&AnalysisTurn { transcript: &rows }).sentiment, sentiment, "{line}");
        }
        let nothing = analyse(&AnalysisTurn { transcript: &[] });
        assert_eq!(nothing.sentiment, Sentiment::Unknown);
        assert_eq!(nothing.summary, "The caller said nothing.");
    }

    proptest! {
        #[test]
        fn every_summary_fits(lines in prop::collection::vec(".{0,400}", 0..6)) {
            let roles = [TranscriptRole::User, TranscriptRole::Assistant];
            let rows: Vec<_> = lines.iter().zip(roles.iter().cycle()).map(|(line, role)| row(*role, line)).collect();
            let summary = analyse(&AnalysisTurn { transcript: &rows }).summary;
            prop_assert!(!summary.is_empty() && summary.len() <= SUMMARY_BYTES_MAX);
        }
    }

    fn row(role: TranscriptRole, text: &str) -> TranscriptRow {
        TranscriptRow::new(0, role, text.into(), 0, 0)
    }
}
