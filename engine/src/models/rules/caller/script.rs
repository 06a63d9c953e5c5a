//! Reads a persona and a scenario: what to say, what to know, what to answer, and what to keep to oneself.
use std::collections::BTreeMap;
use std::ops::Range;

use super::clause::Clause;
use super::conditions::{Condition, in_order};
use super::facts::Facts;
use super::instructions::{Instruction, is_deed, read};
use super::topics::{Topics, topics};
use super::wording::{statement, turned};
use crate::base::text::collapse_whitespace;
use crate::models::rules::quotes::quoted;
use crate::models::rules::sentences::sentences;

/// Sentences of a persona, and of a scenario, that are followed.
const SENTENCES_MAX: usize = 1_500;
/// Conditions that are kept, and sentences that tell what is and is not so.
const KEPT_MAX: usize = 100;

/// What a caller does in a call.
#[derive(Debug, Clone, Default)]
pub(super) struct Script {
    /// Passages to say word for word, in order.
    pub(super) quotes: Vec<String>,
    /// What to say afterwards, in order; each in one of several ways.
    pub(super) agenda: Vec<Vec<String>>,
    /// By topic, the first line of the agenda about it that is no question.
    said_of: BTreeMap<String, usize>,
    pub(super) facts: Facts,
    pub(super) conditions: Vec<Condition>,
    /// What not to tell.
    pub(super) secrets: Vec<Topics>,
    /// What is so, and what is not so or not wanted.
    pub(super) affirmed: Vec<Topics>,
    pub(super) denied: Vec<Topics>,
    /// What the caller wants.
    pub(super) wanted: Topics,
}

/// A part of a scenario that says something of its own.
struct Part {
    text: String,
    is_fact: bool,
    /// Whether a passage to say word for word is in the same sentence. Then only what is understood is followed.
    is_beside_quote: bool,
}

impl Script {
    pub(super) fn new(persona: &str, scenario: &str) -> Self {
        let mut script = Self::default();
        for sentence in sentences(persona).into_iter().take(SENTENCES_MAX) {
            for text in deeds(&collapse_whitespace(sentence)) {
                script.facts.read(&text, false);
            }
        }
        let mut passages = quoted(scenario).into_iter().peekable();
        let mut parts: Vec<Part> = Vec::new();
        let mut conditional: Vec<String> = Vec::new();
        let mut quotes: Vec<Range<usize>> = Vec::new();
        let mut read_to = 0;
        for sentence in sentences(scenario).into_iter().take(SENTENCES_MAX) {
            let start = sentence.as_ptr().addr() - scenario.as_ptr().addr();
            if start < read_to {
                continue;
            }
            // Passages that ended before it have no sentence of their own.
            while let Some(passage) = passages.next_if(|passage| passage.end <= start) {
                quotes.push(passage);
            }
            let mut end = start + sentence.len();
            let mut inside: Vec<Range<usize>> = Vec::new();
            // A passage may have several sentences.
            while let Some(passage) = passages.next_if(|passage| passage.start < end) {
                end = end.max(passage.end);
                inside.push(passage);
            }
            read_to = end;
            let text = collapse_whitespace(scenario.get(start..end).unwrap_or(sentence));
            if inside.is_empty() {
                for text in deeds(&text) {
                    let is_fact = script.facts.read(&text, true);
                    parts.push(Part { text, is_fact, is_beside_quote: false });
                }
                continue;
            }
            script.facts.read(&text, true);
            let is_condition = is_conditional(&text) && Condition::read(&text, &script.facts).is_some();
            if is_condition || forbids_words(&text) {
                conditional.push(text);
            } else {
                let beside = beside(scenario, start..end, &inside);
                parts.extend(beside.into_iter().map(|text| Part {
                    text,
                    is_fact: false,
                    is_beside_quote: true,
                }));
                quotes.append(&mut inside);
            }
        }
        quotes.extend(passages);
        let spoken = quotes.into_iter().filter_map(|range| scenario.get(range));
        script.quotes = spoken.map(|passage| passage.trim().to_owned()).collect();
        for sentence in sentences(persona).into_iter().take(SENTENCES_MAX) {
            for text in deeds(&collapse_whitespace(sentence)) {
                script.attitude(&text);
            }
        }
        for text in &conditional {
            script.attitude(text);
        }
        script.plan(&parts);
        script.index();
        script
    }

    /// Finds the topics of the agenda once: the caller is asked about them in each line of a call.
    fn index(&mut self) {
        for (place, line) in
            self.agenda.iter().enumerate().filter_map(|(place, says)| Some((place, says.first()?)))
        {
            if !line.ends_with('?') {
                for topic in topics(line) {
                    self.said_of.entry(topic).or_insert(place);
                }
            }
        }
    }

    /// The first line of the agenda that is no question and is about one of these topics.
    pub(super) fn line_about(&self, asked: &Topics) -> Option<&str> {
        let place = asked.iter().filter_map(|topic| self.said_of.get(topic)).min()?;
        self.agenda.get(*place)?.first().map(String::as_str)
    }

    /// What the caller will say on its own.
    fn plan(&mut self, parts: &[Part]) {
        let mut others: Vec<&Part> = Vec::new();
        let mut has_instruction = false;
        for part in parts {
            if self.attitude(&part.text) || part.is_fact {
                if part.is_fact {
                    others.push(part);
                }
                continue;
            }
            match read(&part.text, &self.facts) {
                Instruction::Say(says) => {
                    self.wanted.extend(topics(&part.text));
                    self.agenda.push(says);
                    has_instruction = true;
                }
                _ if part.is_beside_quote => {}
                Instruction::Other if is_foreign(&part.text) => self.agenda.push(vec![part.text.clone()]),
                Instruction::Other => others.push(part),
                Instruction::Behave if part.text.to_lowercase().starts_with("you") => others.push(part),
                Instruction::Behave => {}
            }
        }
        if has_instruction || !self.quotes.is_empty() || !self.agenda.is_empty() {
            return;
        }
        // No instruction that is understood: the scenario is told as the caller would.
        let plain: Vec<&&Part> = others.iter().filter(|part| !part.is_fact).collect();
        let told: Vec<String> = if plain.is_empty() {
            others.iter().map(|part| in_first_person(&part.text)).collect()
        } else {
            plain.iter().map(|part| in_first_person(&part.text)).collect()
        };
        self.agenda = told.into_iter().map(|line| vec![line]).collect();
        if self.agenda.is_empty() && (!parts.is_empty() || !self.conditions.is_empty()) {
            self.agenda.push(vec!["Hello.".into()]);
        }
    }

    /// Reads a sentence that has nothing to say: a condition, or what to keep to oneself. Returns whether it is one.
    fn attitude(&mut self, text: &str) -> bool {
        let clause = Clause::new(text);
        if let Some(condition) = Condition::read(text, &self.facts) {
            if self.conditions.len() < KEPT_MAX {
                self.conditions.push(condition);
            }
            return true;
        }
        let from = clause.begins(&["you must", "you should", "please", "but", "and"]).unwrap_or(0);
        let forbids = [
            "do not",
            "don't",
            "never",
            "avoid",
            "not",
            "refuse to",
            "you do not",
            "you don't",
            "you have no",
            "you never",
        ];
        if let Some(len) = clause.phrase_at(from, &forbids) {
            let about = topics(&clause.from(from + len));
            let tells = [
                "give",
                "giving",
                "tell",
                "telling",
                "say",
                "saying",
                "reveal",
                "share",
                "mention",
                "provide",
                "disclose",
                "state",
                "spell",
                "volunteer",
                "revealing",
                "sharing",
                "giving",
                "mentioning",
            ];
            let until = ["unless", "until", "before", "without", "only"];
            let own = matches!(clause.word(from), "you");
            match clause.find(from, &tells) {
                Some(_) if clause.find(from, &until).is_some() => {}
                Some(verb) if self.secrets.len() < KEPT_MAX => {
                    self.secrets.push(topics(&clause.from(verb + 1)))
                }
                None if self.denied.len() < KEPT_MAX => self.denied.push(about),
                _ => {}
            }
            return !own
                || clause.phrase_at(from, &["you do not", "you don't"]).is_none()
                || clause.word(from + len) != "want";
        }
        if matches!(clause.word(0), "you" | "your" | "you're") && self.affirmed.len() < KEPT_MAX {
            self.affirmed.push(topics(text));
        }
        is_conditional(text)
    }
}

/// What the caller says in its own words where the instruction is not understood; another language is left as it is.
fn in_first_person(text: &str) -> String {
    let turned = turned(text);
    if turned == text { turned } else { statement(&turned) }
}

/// Whether the sentence begins with a condition.
fn is_conditional(text: &str) -> bool {
    let clause = Clause::new(text);
    let starts = [
        "if",
        "when",
        "whenever",
        "once",
        "should they",
        "should the",
        "otherwise",
        "and if",
        "but if",
        "only if",
    ];
    let within =
        ["when asked", "if asked", "when you are asked", "if they ask", "when they ask", "once asked"];
    if in_order(text).is_some() {
        return false;
    }
    let own_question = text.trim_end().ends_with('?');
    !own_question && (clause.begins(&starts).is_some() || clause.has(&within))
}

/// Whether the sentence forbids to say what it quotes.
fn forbids_words(text: &str) -> bool {
    let clause = Clause::new(text);
    ["do not", "don't", "never"].iter().any(|not| {
        ["say", "mention", "use", "tell"]
            .iter()
            .any(|verb| clause.begins(&[&format!("{not} {verb}")]).is_some())
    })
}

/// Whether a sentence is in a language that is not read.
fn is_foreign(text: &str) -> bool {
    let clause = Clause::new(text);
    let english = ["the", "you", "your", "they", "and", "are", "a", "their"];
    clause.find(0, &english).is_none() && (!text.is_ascii() || clause.len() >= 4)
}

/// The instructions of a sentence that have nothing to do with the passages in it: of `Ask for the price, then say "Fine."`,
/// the first.
fn beside(scenario: &str, sentence: Range<usize>, passages: &[Range<usize>]) -> Vec<String> {
    // One word in place of a passage, whose own words are no instructions.
    const PASSAGE: &str = "thesewords";
    let mut text = String::new();
    let mut from = sentence.start;
    for passage in passages {
        text += scenario.get(from..passage.start).unwrap_or_default();
        text += PASSAGE;
        from = passage.end;
    }
    text += scenario.get(from..sentence.end).unwrap_or_default();
    let deeds = deeds(&collapse_whitespace(&text));
    // "…, but do not give your name"
    let parts = deeds.iter().flat_map(|deed| deed.split(" but "));
    let beside = parts.filter(|part| !part.contains(PASSAGE) && part.contains(char::is_alphanumeric));
    beside.map(str::to_owned).collect()
}

/// The parts of a sentence that are instructions of their own: "Ask for X, then book Y".
fn deeds(sentence: &str) -> Vec<String> {
    let rest = in_order(sentence);
    let sentence = rest.as_deref().unwrap_or(sentence);
    let clause = Clause::new(sentence);
    // "If they offer Tuesday, accept, otherwise decline."
    if let Some(at) = (1..clause.len()).find(|at| clause.word(*at) == "otherwise") {
        let after = clause.from(at);
        return deeds(&clause.between(0, at)).into_iter().chain([after]).collect();
    }
    let begins_condition = is_conditional(sentence);
    let mut out: Vec<String> = Vec::new();
    let mut start = 0;
    let mut prefix = "";
    let mut at = 1;
    while !begins_condition && at < clause.len() {
        let (before, now, next) = (clause.word(at - 1), clause.word(at), clause.word(at + 1));
        let stops = clause.pauses_after(at - 1) && !clause.written(at - 1).ends_with(':');
        let joins = before == "and" || before == "then" || stops;
        let always =
            matches!(now, "ask" | "tell" | "inform" | "complain" | "hang" | "find" | "thank" | "say");
        // "You want to order and book": what somebody wants is one wish.
        let is_open = (start..at)
            .any(|at| matches!(clause.word(at), "that" | "to" | "want" | "wants" | "whether" | "asked"));
        let is_new = joins
            && (always
                || !is_open
                    && is_deed(now)
                    && !matches!(now, "order" | "change" | "return" | "stay" | "report"));
        let wants =
            joins && matches!((now, next), ("you" | "you'd", "want" | "would" | "need" | "like" | "wish"));
        let left_out = joins && matches!(now, "want" | "wants")
            || now == "calling"
                && matches!(next, "to" | "about")
                && !matches!(before, "are" | "you're" | "is");
        let asks_on = before == "and"
            && matches!(now, "whether" | "what" | "when" | "where" | "how" | "if")
            && matches!(clause.word(start), "ask" | "find" | "check" | "inquire");
        if is_new || wants || left_out || asks_on {
            let end = if before == "and" || before == "then" { at - 1 } else { at };
            let part = clause.between(start, end);
            out.push(format!("{prefix}{part}"));
            prefix = match (left_out, asks_on) {
                (true, _) if now == "calling" => "You are ",
                (true, _) => "You ",
                (_, true) => "Ask ",
                _ => "",
            };
            start = at;
        }
        at += 1;
    }
    let part = clause.from(start);
    out.push(format!("{prefix}{part}"));
    out.retain(|part| part.contains(char::is_alphanumeric));
    out
}
