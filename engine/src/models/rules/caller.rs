//! The rule model as a simulated caller.
mod clause;
mod conditions;
mod english;
mod facts;
mod instructions;
mod questions;
mod script;
#[cfg(test)]
mod tests;
mod topics;
mod wording;

use std::collections::BTreeMap;

use super::phrases::{GOODBYES, pick};
use crate::base::text::truncate;
use crate::conversation::Message;
use crate::models::{CallerReply, CallerTurn};
use questions::{Heard, Kind, Sentence};
use script::Script;
use topics::Topics;

/// Times that a caller answers the same question.
const SAME_ANSWERS_MAX: u8 = 2;
/// Answers of a caller in a call.
const ANSWERS_MAX: usize = 64;
/// Answers in a line, to several questions.
const ANSWERS_AT_ONCE_MAX: usize = 4;
/// Bytes of a question by which it is known again.
const KEY_BYTES_MAX: usize = 200;
/// Bytes of a line.
const LINE_BYTES_MAX: usize = 2_000;

const UNKNOWN: [&str; 2] = ["I'm sorry, I don't have that.", "Sorry, I don't know that."];
const SECRET: [&str; 2] = ["I'd rather not say, sorry.", "I'm sorry, I'd rather keep that to myself."];
const AGREED: [&str; 2] = ["Yes, please.", "Yes, please, that would be good."];
const DECLINED: [&str; 2] = ["No, thank you.", "No, thanks."];
const RIGHT: [&str; 2] = ["Yes, that's right.", "Yes, that is correct."];
/// The goodbyes of a caller who is asked whether there is anything else.
const NOTHING_ELSE: [&str; 3] =
    ["No, thank you. Goodbye.", "No, that was all, thanks. Goodbye.", "No, thanks a lot. Bye!"];

/// The rule model as a simulated caller; it reads its persona and scenario once per run.
///
/// It speaks the quoted passages of a scenario (`"…"`, `“…”`, `„…“`, `«…»`, `「…」`, and `'…'` where it is clearly speech)
/// word for word, one per turn, in order. Then it follows the other instructions: it asks, orders and tells what they say,
/// one per turn, and answers what the assistant asks from the facts of persona and scenario. Then it says goodbye, and
/// hangs up.
///
/// What it has said follows from the assistant's words alone, so each turn goes through the call from its beginning.
#[derive(Debug, Clone, Default)]
pub struct RulesCaller {
    script: Script,
}

/// How far a call is.
#[derive(Default)]
struct Progress {
    lines: usize,
    agenda: usize,
    answers: usize,
    answered: BTreeMap<String, u8>,
}

impl Progress {
    /// Whether the same may be answered again.
    fn can_answer(&self, key: &str) -> bool {
        let times = self.answered.get(&truncate(key.to_owned(), KEY_BYTES_MAX)).copied().unwrap_or_default();
        times < SAME_ANSWERS_MAX && self.answers < ANSWERS_MAX
    }

    /// The same; it counts as answered then.
    fn may_answer(&mut self, key: &str) -> bool {
        let may = self.can_answer(key);
        if may {
            self.count_answer(key);
        }
        may
    }

    /// Counts a question as answered.
    fn count_answer(&mut self, key: &str) {
        *self.answered.entry(truncate(key.to_owned(), KEY_BYTES_MAX)).or_default() += 1;
        self.answers += 1;
    }
}

/// What a caller answers to a question.
enum Answer {
    Says(String),
    /// It does not know, and goes on.
    Unknown(String),
    /// The question leaves it to the caller what to say.
    Open,
}

impl RulesCaller {
    /// Reads the persona and the scenario of a run.
    #[must_use]
    pub fn new(persona: &str, scenario: &str) -> Self {
        Self { script: Script::new(persona, scenario) }
    }

    /// The caller's next line. `turn` must have the persona and scenario that were given to [`RulesCaller::new`].
    #[must_use]
    pub fn reply(&self, turn: &CallerTurn<'_>) -> CallerReply {
        let said = turn.history.iter().filter(|row| matches!(row, Message::User { .. })).count();
        if let Some(line) = self.script.quotes.get(said) {
            return CallerReply { text: line.clone(), hang_up: false };
        }
        let mut progress = Progress::default();
        let mut words = String::new();
        for row in turn.history {
            match row {
                Message::Assistant { text } => {
                    words.push_str(text);
                    words.push('\n');
                }
                Message::User { .. } => {
                    self.line(&mut progress, &words, turn.seed);
                    words.clear();
                }
                Message::ToolCall { .. } | Message::ToolResult { .. } => {}
            }
        }
        let mut reply = self.line(&mut progress, &words, turn.seed);
        reply.text = truncate(reply.text, LINE_BYTES_MAX);
        reply
    }

    /// The next line after the assistant's words.
    fn line(&self, progress: &mut Progress, words: &str, seed: u64) -> CallerReply {
        let at = progress.lines;
        progress.lines += 1;
        if let Some(line) = self.script.quotes.get(at) {
            return CallerReply { text: line.clone(), hang_up: false };
        }
        let heard = Heard::new(words);
        if let Some(reply) = self.condition(progress, &heard, seed, at) {
            return reply;
        }
        let closes = heard.questions().any(|one| one.kind == Kind::Closing);
        let mut says: Vec<String> = Vec::new();
        let mut goes_on = false;
        for question in heard.questions().filter(|_| !closes).take(ANSWERS_AT_ONCE_MAX) {
            let key: Vec<&str> = question.topics.iter().map(String::as_str).collect();
            let key = if key.is_empty() { question.text.clone() } else { key.join(" ") };
            // What is not to be answered any more is not looked up.
            if !progress.can_answer(&key) {
                continue;
            }
            let (text, is_unknown) = match self.answer(question, seed, at) {
                Answer::Says(text) => (text, false),
                Answer::Unknown(text) => (text, true),
                Answer::Open => continue,
            };
            progress.count_answer(&key);
            goes_on |= is_unknown;
            says.push(text);
        }
        says.dedup();
        if !says.is_empty() && !goes_on {
            return CallerReply { text: says.join(" "), hang_up: false };
        }
        if let Some(next) = self.script.agenda.get(progress.agenda) {
            says.push(one_of(next, seed, progress.agenda));
            progress.agenda += 1;
            return CallerReply { text: says.join(" "), hang_up: false };
        }
        if !says.is_empty() {
            return CallerReply { text: says.join(" "), hang_up: false };
        }
        let goodbyes = if closes { &NOTHING_ELSE } else { &GOODBYES };
        CallerReply { text: pick(goodbyes, seed, at).to_owned(), hang_up: true }
    }

    fn condition(&self, progress: &mut Progress, heard: &Heard, seed: u64, at: usize) -> Option<CallerReply> {
        let mut holds = self.script.conditions.iter().enumerate().filter(|(_, one)| one.holds(heard));
        let first = holds.next()?;
        // "Otherwise" is for what meets none before it, also one that was answered as often as it may be.
        let (_, condition) = std::iter::once(first)
            .chain(holds.filter(|(_, one)| !one.is_otherwise()))
            .find(|(place, _)| progress.may_answer(&format!("condition {place}")))?;
        Some(CallerReply { text: one_of(&condition.says, seed, at), hang_up: condition.hangs_up })
    }

    fn answer(&self, question: &Sentence, seed: u64, at: usize) -> Answer {
        let says = |phrases: &[&str]| Answer::Says(pick(phrases, seed, at).to_owned());
        match question.kind {
            Kind::Closing | Kind::Open => return Answer::Open,
            Kind::HowAreYou => return Answer::Unknown("I'm fine, thank you.".into()),
            Kind::Presence => return Answer::Unknown("Yes, I'm here.".into()),
            Kind::Other => {}
        }
        let script = &self.script;
        let facts = script.facts.asked(&question.topics);
        let is_secret = |about: &Topics| script.secrets.iter().any(|secret| is_secret(secret, about));
        if is_secret(&question.topics) || facts.iter().any(|fact| is_secret(&fact.about)) {
            return says(&SECRET);
        }
        if question.is_yes_or_no && script.facts.mentioned(&question.text) {
            return says(&RIGHT);
        }
        if !facts.is_empty() {
            let told: Vec<String> =
                facts.iter().take(ANSWERS_AT_ONCE_MAX).map(|fact| one_of(&fact.says, seed, at)).collect();
            return Answer::Says(told.join(" "));
        }
        if question.is_yes_or_no {
            return self.yes_or_no(question, seed, at);
        }
        match self.repeated(&question.topics) {
            Some(line) => Answer::Says(line),
            None => Answer::Unknown(pick(&UNKNOWN, seed, at).to_owned()),
        }
    }

    fn yes_or_no(&self, question: &Sentence, seed: u64, at: usize) -> Answer {
        const CONSENT: [&str; 7] = ["correct", "right", "ahead", "work", "suit", "confirm", "fin"];
        let says = |phrases: &[&str]| Answer::Says(pick(phrases, seed, at).to_owned());
        let script = &self.script;
        let shared = |all: &[Topics]| {
            all.iter().map(|one| one.intersection(&question.topics).count()).max().unwrap_or(0)
        };
        let (denied, affirmed) = (shared(&script.denied), shared(&script.affirmed));
        if denied > affirmed {
            return says(&DECLINED);
        }
        let wants = !script.agenda.is_empty() || !script.quotes.is_empty();
        let consents = question.topics.iter().any(|topic| CONSENT.contains(&topic.as_str()));
        if question.topics.contains("correct") || question.topics.contains("right") {
            return says(&RIGHT);
        }
        if question.offers || consents {
            let is_wanted =
                consents || question.topics.is_empty() || !script.wanted.is_disjoint(&question.topics);
            return says(if wants && is_wanted || affirmed > 0 { &AGREED } else { &DECLINED });
        }
        if affirmed > 0 {
            return Answer::Says("Yes.".into());
        }
        Answer::Unknown(pick(&UNKNOWN, seed, at).to_owned())
    }

    /// What the caller said about it, or will say: "What kind of pizza?" "I'd like to order two pizzas with ham, please."
    fn repeated(&self, question: &Topics) -> Option<String> {
        const OWN: [&str; 6] = ["name", "phone", "email", "number", "address", "birth"];
        if question.iter().any(|topic| OWN.contains(&topic.as_str()))
            || self.script.wanted.is_disjoint(question)
        {
            return None;
        }
        self.script.line_about(question).map(str::to_owned)
    }
}

/// Whether a question asks for what is not to be told.
fn is_secret(secret: &Topics, question: &Topics) -> bool {
    const ALL: [&str; 3] = ["person", "personal", "privat"];
    const OWN: [&str; 6] = ["name", "phone", "email", "number", "address", "birth"];
    let everything = secret.iter().any(|topic| ALL.contains(&topic.as_str()));
    if everything {
        return question.iter().any(|topic| OWN.contains(&topic.as_str()));
    }
    !secret.is_empty() && secret.is_subset(question)
}

fn one_of(says: &[String], seed: u64, at: usize) -> String {
    let says: Vec<&str> = says.iter().map(String::as_str).collect();
    pick(&says, seed, at).to_owned()
}
