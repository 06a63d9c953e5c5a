//! What the assistant asks of the caller.
use super::clause::Clause;
use super::topics::{Topics, topics};
use crate::models::rules::sentences::sentences;
use crate::models::rules::words::is_negation;

/// Bytes at the end of the assistant's words that are heard.
const HEARD_BYTES_MAX: usize = 2_000;
/// Sentences at the end of the assistant's words that are heard.
const SENTENCES_MAX: usize = 24;
/// A question is answered if it is among so many sentences at the end: "What is your name? I'll look you up."
const LATE_MAX: usize = 2;

/// Words of a question that nobody but the caller can be meant to answer: "On which day?"
const SHORT_WORDS: usize = 4;

/// The assistant's words since the caller's last line.
pub(super) struct Heard(Vec<Sentence>);

/// A sentence of the assistant.
pub(super) struct Sentence {
    pub(super) text: String,
    pub(super) topics: Topics,
    pub(super) asks: bool,
    pub(super) offers: bool,
    /// Whether it speaks of the caller.
    pub(super) to_the_caller: bool,
    pub(super) negated: bool,
    /// Whether a yes or no answers it.
    pub(super) is_yes_or_no: bool,
    pub(super) is_late: bool,
    pub(super) kind: Kind,
}

/// Questions that have the same answer in every call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// "Is there anything else?"
    Closing,
    /// "How can I help you?"
    Open,
    /// "How are you?"
    HowAreYou,
    /// "Are you still there?"
    Presence,
    Other,
}

const REQUESTS: [&str; 21] = [
    "please tell",
    "please give",
    "please provide",
    "please spell",
    "please state",
    "please confirm",
    "please enter",
    "please say",
    "tell me",
    "i need your",
    "i need the",
    "i'll need",
    "i will need",
    "could i have",
    "may i have",
    "can i have",
    "could i get",
    "may i get",
    "can i get",
    "let me have",
    "give me",
];

const OFFERS: [&str; 29] = [
    "would you like",
    "do you want",
    "shall i",
    "should i",
    "shall we",
    "can i offer",
    "may i offer",
    "could i offer",
    "would you prefer",
    "how about",
    "what about",
    "do you need",
    "i can offer",
    "we can offer",
    "i could offer",
    "we could offer",
    "would that",
    "does that",
    "would you be",
    "is that ok",
    "is that okay",
    "is that all right",
    "would you care",
    "may i suggest",
    "how does",
    "is that fine",
    "would it be",
    "may i book",
    "can i book",
];

const ASKING_FIRST: [&str; 20] = [
    "is", "are", "do", "does", "did", "can", "could", "shall", "should", "would", "will", "have", "has",
    "may", "am", "was", "were", "isn't", "aren't", "don't",
];

impl Heard {
    pub(super) fn new(words: &str) -> Self {
        let from = words.ceil_char_boundary(words.len().saturating_sub(HEARD_BYTES_MAX));
        let all = sentences(words.get(from..).unwrap_or_default());
        let last = all.get(all.len().saturating_sub(SENTENCES_MAX)..).unwrap_or_default();
        let late = last.len().saturating_sub(LATE_MAX);
        Self(last.iter().enumerate().map(|(at, text)| Sentence::new(text, at >= late)).collect())
    }

    pub(super) fn sentences(&self) -> impl Iterator<Item = &Sentence> {
        self.0.iter()
    }

    /// The questions that wait for an answer.
    pub(super) fn questions(&self) -> impl Iterator<Item = &Sentence> {
        let last = self.0.len().saturating_sub(1);
        let waits =
            move |at: usize, one: &Sentence| one.asks && one.to_the_caller && (at == last || one.is_late);
        self.0.iter().enumerate().filter(move |(at, one)| waits(*at, one)).map(|(_, one)| one)
    }
}

impl Sentence {
    fn new(text: &str, is_late: bool) -> Self {
        let clause = Clause::new(text);
        let is_question = text.trim_end().ends_with(['?', '？']);
        let requests = clause.has(&REQUESTS);
        let offers = clause.has(&OFFERS)
            && (is_question
                || clause.has(&["i can offer", "we can offer", "i could offer", "we could offer"]));
        let mut start = 0;
        while matches!(
            clause.word(start),
            "and" | "so" | "okay" | "ok" | "then" | "well" | "great" | "thanks"
        ) {
            start += 1;
        }
        let asks = is_question || requests || offers;
        let to_the_caller = requests
            || is_question && clause.len() <= SHORT_WORDS && clause.find(0, &["our", "we", "us"]).is_none()
            || offers
            || clause.has(&[
                "you",
                "your",
                "yours",
                "you're",
                "you'd",
                "you've",
                "that right",
                "that correct",
                "am i speaking",
                "is calling",
                "who's calling",
                "anything else",
                "something else",
                "the name",
                "what name",
                "which name",
                "what time",
                "which day",
                "what day",
                "what date",
                "how many people",
                "for how many",
                "go ahead",
            ]);
        let kind = if clause.has(&["anything else", "something else", "what else", "all for today", "be all"])
        {
            Kind::Closing
        } else if clause.has(&[
            "help you",
            "do for you",
            "assist you",
            "how may i",
            "how can i",
            "how could i",
            "can i help",
            "i help",
            "i be of",
        ]) {
            Kind::Open
        } else if clause.has(&["how are you"]) {
            Kind::HowAreYou
        } else if clause.has(&["hear me", "still there", "you there"]) {
            Kind::Presence
        } else {
            Kind::Other
        };
        Self {
            text: text.to_owned(),
            topics: topics(text),
            asks,
            offers,
            to_the_caller,
            negated: (0..clause.len()).any(|at| is_negation(clause.word(at))),
            is_yes_or_no: is_question && ASKING_FIRST.contains(&clause.word(start)) || offers,
            is_late,
            kind,
        }
    }
}
