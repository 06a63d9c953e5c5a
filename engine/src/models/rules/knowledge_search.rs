//! Answers questions from documents: BM25 over their sentences.
use std::ops::Range;

use super::postings::Postings;
use super::sentences::sentences;
use super::words::{terms, unique};
use crate::base::text::{collapse_whitespace, truncate};
use crate::conversation::Knowledge;

/// Most sentences in one answer.
const ANSWER_SENTENCES_MAX: usize = 3;
/// Further sentences need at least this percentage of the best score.
const FURTHER_SENTENCE_PERCENT: u64 = 75;
/// A sentence is an answer when it contains this percentage of the question's content words …
const COVERAGE_MIN_PERCENT: usize = 40;
/// … or at least this many of them.
const COVERAGE_MIN_TERMS: usize = 3;
/// A line of at most this many bytes that ends in a colon is a heading.
const HEADING_BYTES_MAX: usize = 80;
/// Bytes of a document's name and of a heading that are indexed, because every sentence below is found by them.
const TITLE_BYTES_MAX: usize = 240;
/// Most terms of the names that a sentence is under.
const SECTION_TERMS_MAX: usize = 24;

/// Scores are fixed-point numbers with 16 fractional bits: floating-point logarithms may differ between machines in their
/// last bit, and the same question must get the same answer everywhere.
const ONE: u64 = 1 << 16;
/// Lowest weight of a word, so that common words still count in a document of one sentence.
const WEIGHT_MIN: u64 = ONE / 4;

/// An index over documents.
#[derive(Debug, Clone, Default)]
pub(super) struct KnowledgeIndex {
    sentences: Vec<Sentence>,
    /// The sentences that contain a term, with its frequency.
    postings: Postings<Posting>,
    /// The sections: the sentences of a document, under a title, or under a heading.
    sections: Vec<Section>,
    /// The sections whose name contains a term. No section within another one repeats a term of its name, so each sentence
    /// is under a term once.
    section_terms: Postings<u32>,
    terms_total: u64,
}

/// A term's frequency in a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Posting {
    sentence: u32,
    times: u32,
}

/// The best sentences for a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KnowledgeAnswer {
    /// The sentences, in document order.
    pub(super) text: String,
    /// The number of the question's content words in the best sentence.
    pub(super) matched: usize,
    score: u64,
}

#[derive(Debug, Clone)]
struct Sentence {
    text: Box<str>,
    terms: u32,
}

#[derive(Debug, Clone, Copy)]
struct Section {
    first: u32,
    end: u32,
}

impl Section {
    const fn range(self) -> Range<usize> {
        self.first as usize..self.end as usize
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Score {
    score: u64,
    matched: usize,
    /// Number (from 1) of the question's term that was counted last.
    last_term: usize,
}

impl KnowledgeIndex {
    pub(super) fn new(knowledge: &[Knowledge]) -> Self {
        let mut building = Building::default();
        for document in knowledge {
            building.name(0, truncate(document.name.clone(), TITLE_BYTES_MAX));
            for Block { title, heading, text } in blocks(&document.content) {
                building.name(1, title);
                building.name(2, heading);
                building.add_sentences(&text);
            }
            building.close(0);
        }
        building.finish()
    }

    /// The best answer to any sentence of the text.
    pub(super) fn answer(&self, text: &str) -> Option<KnowledgeAnswer> {
        const QUESTIONS_MAX: usize = 8;
        let mut best: Option<KnowledgeAnswer> = None;
        for question in sentences(text).into_iter().take(QUESTIONS_MAX) {
            let answer = self.best_sentences(&unique(terms(question)));
            if let Some(answer) = answer
                && best.as_ref().is_none_or(|best| answer.score > best.score)
            {
                best = Some(answer);
            }
        }
        best
    }

    fn best_sentences(&self, question: &[String]) -> Option<KnowledgeAnswer> {
        let mut scores = vec![Score::default(); self.sentences.len()];
        for (place, term) in question.iter().enumerate() {
            self.add_scores(term, place + 1, &mut scores);
        }
        // Higher score first, then document order.
        let rank = |place: usize, score: &Score| (std::cmp::Reverse(score.score), place);
        let (_, best) = scores
            .iter()
            .enumerate()
            .filter(|(_, score)| score.matched > 0)
            .min_by_key(|(place, score)| rank(*place, score))?;
        let covered = best.matched * 100 >= question.len() * COVERAGE_MIN_PERCENT;
        if !covered && best.matched < COVERAGE_MIN_TERMS {
            return None;
        }
        let good = |score: &Score| {
            score.matched >= best.matched && score.score * 100 >= best.score * FURTHER_SENTENCE_PERCENT
        };
        let mut ranked = Vec::with_capacity(ANSWER_SENTENCES_MAX + 1);
        for (place, score) in scores.iter().enumerate().filter(|(_, score)| score.matched > 0 && good(score))
        {
            ranked.push(rank(place, score));
            ranked.sort_unstable();
            ranked.truncate(ANSWER_SENTENCES_MAX);
        }
        let mut places: Vec<_> = ranked.into_iter().map(|(_, place)| place).collect();
        places.sort_unstable();
        let texts: Vec<_> = places.iter().filter_map(|place| self.sentences.get(*place)).map(ended).collect();
        Some(KnowledgeAnswer { text: texts.join(" "), matched: best.matched, score: best.score })
    }

    /// BM25 with k1 = 1.2 and b = 0.75; a term in the section's name counts half as much as one in the sentence.
    fn add_scores(&self, term: &str, number: usize, scores: &mut [Score]) {
        let inside = self.postings.of(term);
        let sections = self.section_terms.of(term);
        let under = sections.iter().filter_map(|place| self.sections.get(*place as usize));
        let holders = inside.len() + under.clone().map(|section| section.range().len()).sum::<usize>();
        let count = self.sentences.len() as u64;
        let holders = (holders as u64).min(count);
        // ln(1 + (N - n + ½) / (n + ½)), as the difference of two logarithms.
        let weight = log2(2 * count + 2).saturating_sub(log2(2 * holders + 1)).max(WEIGHT_MIN);
        for posting in inside {
            let (place, times) = (posting.sentence as usize, u64::from(posting.times));
            let (Some(sentence), Some(score)) = (self.sentences.get(place), scores.get_mut(place)) else {
                continue;
            };
            // tf · (k1 + 1) / (tf + k1 · (1 - b + b · length / average)), in hundredths.
            let length = 75 * u64::from(sentence.terms) * count / self.terms_total.max(1);
            let share = weight * times * 220 / (times * 100 + 120 * (25 + length) / 100);
            score.add(share, number);
        }
        for section in under {
            for score in scores.get_mut(section.range()).unwrap_or_default() {
                score.add(weight / 2, number);
            }
        }
    }
}

/// An index that documents are added to.
#[derive(Default)]
struct Building {
    sentences: Vec<Sentence>,
    found: Vec<(Box<str>, Posting)>,
    sections: Vec<Section>,
    named: Vec<(Box<str>, u32)>,
    /// The open sections, each within the one before: the document, the title, the heading.
    open: Vec<Open>,
    terms_total: u64,
}

/// A section to which sentences are being added.
struct Open {
    name: String,
    /// The terms of the name that the sections around it do not have.
    terms: Vec<String>,
    first: u32,
}

impl Building {
    /// What follows is in the section of that name, within the section one level above.
    fn name(&mut self, level: usize, name: String) {
        if self.open.get(level).is_some_and(|open| open.name == name) {
            return;
        }
        self.close(level);
        let around: usize = self.open.iter().map(|open| open.terms.len()).sum();
        let is_new = |term: &String| !self.open.iter().any(|open| open.terms.contains(term));
        let more =
            unique(terms(&name)).into_iter().filter(is_new).take(SECTION_TERMS_MAX.saturating_sub(around));
        let (terms, first) = (more.collect(), count(self.sentences.len()));
        self.open.push(Open { name, terms, first });
    }

    /// Ends the sections from this level down.
    fn close(&mut self, level: usize) {
        let end = count(self.sentences.len());
        for Open { terms, first, .. } in self.open.drain(level.min(self.open.len())..) {
            if first < end && !terms.is_empty() {
                let section = count(self.sections.len());
                self.named.extend(terms.into_iter().map(|term| (term.into(), section)));
                self.sections.push(Section { first, end });
            }
        }
    }

    fn add_sentences(&mut self, block: &str) {
        for sentence in sentences(block) {
            let place = count(self.sentences.len());
            let mut terms = terms(sentence);
            self.terms_total += terms.len() as u64;
            self.sentences
                .push(Sentence { text: collapse_whitespace(sentence).into(), terms: count(terms.len()) });
            terms.sort_unstable();
            for same in terms.chunk_by_mut(|one, other| one == other) {
                let posting = Posting { sentence: place, times: count(same.len()) };
                let term = same.first_mut().map(std::mem::take).unwrap_or_default();
                self.found.push((term.into(), posting));
            }
        }
    }

    fn finish(mut self) -> KnowledgeIndex {
        self.sentences.shrink_to_fit();
        self.sections.shrink_to_fit();
        KnowledgeIndex {
            sentences: self.sentences,
            postings: Postings::new(self.found),
            sections: self.sections,
            section_terms: Postings::new(self.named),
            terms_total: self.terms_total,
        }
    }
}

/// Documents are far smaller than 4 GB.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl Score {
    fn add(&mut self, share: u64, term: usize) {
        if self.last_term != term {
            self.score += share;
            self.matched += 1;
            self.last_term = term;
        }
    }
}

/// Lines under a title and a heading.
struct Block {
    title: String,
    heading: String,
    text: String,
}

/// Splits the text at its titles, which are lines that start with `#`, and at its headings: short lines that end in a colon
/// and apply up to the next blank line.
fn blocks(content: &str) -> impl Iterator<Item = Block> + '_ {
    let mut lines = content.lines();
    let (mut title, mut heading) = (String::new(), String::new());
    let mut is_over = false;
    std::iter::from_fn(move || {
        let mut text = String::new();
        while !is_over {
            let Some(line) = lines.next() else {
                is_over = true;
                break;
            };
            let trimmed = line.trim();
            let (next_title, next_heading) = if trimmed.starts_with('#') {
                let next = truncate(trimmed.trim_start_matches('#').trim().to_owned(), TITLE_BYTES_MAX);
                (Some(next), String::new())
            } else if trimmed.ends_with(':') && trimmed.len() <= HEADING_BYTES_MAX {
                (None, trimmed.to_owned())
            } else if trimmed.is_empty() && text.is_empty() {
                // A block starts with a non-blank line, so that an empty block is recognised at once.
                continue;
            } else if trimmed.is_empty() && !heading.is_empty() {
                (None, String::new())
            } else {
                text.push_str(line);
                text.push('\n');
                continue;
            };
            let block =
                Block { title: title.clone(), heading: std::mem::replace(&mut heading, next_heading), text };
            if let Some(next) = next_title {
                title = next;
            }
            if !block.text.is_empty() {
                return Some(block);
            }
            text = block.text;
        }
        (!text.is_empty()).then(|| Block { title: title.clone(), heading: heading.clone(), text })
    })
}

/// The sentence, with a full stop when it ends in a letter or digit.
fn ended(sentence: &Sentence) -> String {
    let mut text = sentence.text.to_string();
    if text.ends_with(char::is_alphanumeric) {
        text.push('.');
    }
    text
}

/// Fixed-point logarithm to base 2, linear between powers of two.
fn log2(value: u64) -> u64 {
    let Some(whole) = value.checked_ilog2() else {
        return 0;
    };
    let fraction = ((u128::from(value) << 16) >> whole) - u128::from(ONE);
    u64::from(whole) * ONE + u64::try_from(fraction).unwrap_or(ONE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHOP: &str = "We open at nine and close at five. Parking is free behind the house.\n\
        Returns are possible within 30 days with the receipt. Dogs are welcome.";

    #[test]
    fn the_best_matching_sentence_answers() {
        assert_eq!(
            ask(&[("Shop", SHOP)], "When do you open?").unwrap(),
            "We open at nine and close at five."
        );
        assert_eq!(
            ask(&[("Shop", SHOP)], "Hello, I'm Bob. Is there parking?").unwrap(),
            "Parking is free behind the house."
        );
        assert_eq!(
            ask(&[("Shop", SHOP)], "can I RETURN it without a receipt").unwrap(),
            "Returns are possible within 30 days with the receipt."
        );
    }

    #[test]
    fn nonsense_is_not_answered() {
        for question in ["What is the capital of France?", "", "?!", "the of and", "quantum dog fur coat"] {
            assert_eq!(ask(&[("Shop", SHOP)], question), None, "{question}");
        }
        assert_eq!(ask(&[], "When do you open?"), None);
        assert_eq!(ask(&[("Empty", " \n")], "empty?"), None);
    }

    #[test]
    fn a_documents_name_counts() {
        let documents = [("Opening hours", "Monday to Friday 9 to 5.\nSunday closed"), ("Menu", "Soup.")];
        assert_eq!(
            ask(&documents, "What are your opening hours?").unwrap(),
            "Monday to Friday 9 to 5. Sunday closed."
        );
        assert_eq!(ask(&documents, "Hours on Sunday?").unwrap(), "Sunday closed.");
    }

    #[test]
    fn headings_count_for_their_section() {
        let text = "# Prices\nSmall: 3 euros.\n# Delivery\nTakes two days.\n# Else\nPayment:\n- cash\n- card\n\nNothing more.";
        assert_eq!(ask(&[("Shop", text)], "How long is delivery?").unwrap(), "Takes two days.");
        assert_eq!(ask(&[("Shop", text)], "How can I pay?").unwrap(), "cash. card.");
    }

    #[test]
    fn rare_words_weigh_more_than_common_ones() {
        let text = "The red shirt costs 10. The red hat costs 12. The red scarf costs 15.";
        assert_eq!(ask(&[("Wares", text)], "red scarf").unwrap(), "The red scarf costs 15.");
    }

    #[test]
    fn other_scripts_are_answered() {
        let text = "営業時間は9時から5時までです。駐車場は無料です。";
        assert_eq!(ask(&[("店", text)], "営業時間は？").unwrap(), "営業時間は9時から5時までです。");
        assert_eq!(
            ask(&[("Laden", "Die Öffnungszeiten sind 9-17 Uhr.")], "ÖFFNUNGSZEITEN?").unwrap(),
            "Die Öffnungszeiten sind 9-17 Uhr."
        );
    }

    #[test]
    fn logarithms_are_monotonic_and_exact_at_powers_of_two() {
        assert_eq!(log2(0), 0);
        assert_eq!(log2(1), 0);
        assert_eq!(log2(8), 3 * ONE);
        assert!((1..2_000).all(|value| log2(value) < log2(value + 1)));
        assert!(log2(u64::MAX) <= 64 * ONE);
    }

    #[test]
    fn a_large_document_is_searched() {
        let mut text = "Some words about nothing much at all here. ".repeat(4_800);
        text.push_str("The elephant sleeps at noon.");
        assert!(text.len() > 200 * 1024);
        assert_eq!(
            ask(&[("Zoo", &text)], "When does the elephant sleep?").unwrap(),
            "The elephant sleeps at noon."
        );
        let one_line = "elephant ".repeat(23_000);
        assert!(ask(&[("Zoo", &one_line)], "elephant?").unwrap().len() < 3_000);
    }

    proptest! {
        #[test]
        fn answers_are_deterministic(text in ".{0,200}", question in ".{0,60}") {
            let knowledge = [Knowledge { name: question.clone(), content: text }];
            let index = KnowledgeIndex::new(&knowledge);
            prop_assert_eq!(index.answer(&question), KnowledgeIndex::new(&knowledge).answer(&question));
        }
    }

    fn ask(documents: &[(&str, &str)], question: &str) -> Option<String> {
        let knowledge: Vec<_> = documents
            .iter()
            .map(|(name, content)| Knowledge { name: (*name).into(), content: (*content).into() })
            .collect();
        KnowledgeIndex::new(&knowledge).answer(question).map(|answer| answer.text)
    }
}
