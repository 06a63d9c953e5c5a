//! Instructions for what the assistant may say: "If they offer Tuesday, decline".
use super::clause::Clause;
use super::facts::Facts;
use super::instructions::{Instruction, is_deed, read};
use super::questions::{Heard, Sentence};
use super::topics::{Topics, topics};
use super::wording::{statement, turned};
use crate::models::rules::quotes::quoted;
use crate::models::rules::words::{is_negation, stemmed};

/// What the assistant has to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// It asks for it.
    Asked,
    /// It offers it, or proposes it.
    Offered,
    /// It says it.
    Said,
    /// It offers anything else.
    Otherwise,
}

/// An instruction with a condition.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    when: When,
    about: Topics,
    /// Whether the assistant must say that it is not so.
    negated: bool,
    /// The ways to answer.
    pub(super) says: Vec<String>,
    pub(super) hangs_up: bool,
}

/// Words of a condition that are not about anything.
const EMPTY: [&str; 26] = [
    "ask",
    "offer",
    "suggest",
    "propose",
    "assistant",
    "agent",
    "caller",
    "tell",
    "say",
    "mention",
    "request",
    "person",
    "receptionist",
    "operator",
    "first",
    "alternative",
    "suggestion",
    "proposal",
    "everything",
    "thing",
    "available",
    "option",
    "different",
    "else",
    "whatever",
    "other",
];

impl Condition {
    /// Reads a sentence that has a condition.
    pub(super) fn read(sentence: &str, facts: &Facts) -> Option<Self> {
        if sentence.trim_end().ends_with('?') {
            return None;
        }
        let clause = Clause::new(sentence);
        let first = usize::from(matches!(clause.word(0), "and" | "but" | "only" | "also" | "then"));
        if clause.phrase_at(first, &["otherwise", "if not", "else"]).is_some() {
            let action = first + if clause.word(first) == "if" { 2 } else { 1 };
            let (says, hangs_up) = answers(&clause.from(action), facts)?;
            return Some(Self {
                when: When::Otherwise,
                about: Topics::new(),
                negated: false,
                says,
                hangs_up,
            });
        }
        if let Some(len) = clause.phrase_at(first, &STARTS) {
            let action = action_at(&clause, first)?;
            let condition = clause.between(first + len, action);
            let action = action + usize::from(clause.word(action) == "then");
            return Self::of(&condition, &clause.from(action), facts);
        }
        let accepts = policy(&clause, first);
        // "Say 42 when asked for the number."
        for at in first + 1..clause.len() {
            let only = matches!(clause.word(at), "only");
            let start = at + usize::from(only);
            let begins = clause.phrase_at(start, &STARTS);
            let who = matches!(
                clause.word(start + begins.unwrap_or(1)),
                "asked" | "they" | "the" | "you" | "there" | "he" | "she" | "it" | "offered"
            );
            let can = !matches!(clause.word(first), "ask" | "find" | "check" | "inquire" | "enquire" | "you")
                && is_deed(clause.word(first))
                && (clause.word(first) != "tell" || at > first + 2);
            if let Some(len) = begins.filter(|_| who && can) {
                return Self::of(&clause.from(start + len), &clause.between(first, at), facts);
            }
        }
        let (says, thing) = accepts?;
        let about = meant(&thing);
        Some(Self { when: When::Offered, about, negated: false, says, hangs_up: false })
    }

    fn of(condition: &str, action: &str, facts: &Facts) -> Option<Self> {
        let (says, hangs_up) = answers(action, facts)?;
        let clause = Clause::new(condition);
        let asks =
            ["ask", "asks", "asked", "want", "wants", "need", "needs", "request", "requests", "requested"];
        let offers = ["offer", "offers", "offered", "suggest", "suggests", "propose", "proposes"];
        let when = if clause.find(0, &asks).is_some() {
            When::Asked
        } else if clause.find(0, &offers).is_some() {
            When::Offered
        } else {
            When::Said
        };
        let negated = (0..clause.len()).any(|at| is_negation(clause.word(at)));
        let about = match quoted(condition).into_iter().next().and_then(|range| condition.get(range)) {
            Some(words) => topics(words),
            None => meant(condition),
        };
        (when != When::Said || !about.is_empty() || negated).then_some(Self {
            when,
            about,
            negated,
            says,
            hangs_up,
        })
    }

    /// Whether it is for what meets no other condition.
    pub(super) fn is_otherwise(&self) -> bool {
        self.when == When::Otherwise
    }

    /// Whether the assistant's words meet it.
    pub(super) fn holds(&self, heard: &Heard) -> bool {
        let has_all = |sentence: &Sentence| self.about.is_subset(&sentence.topics);
        match self.when {
            When::Asked => heard.sentences().any(|one| one.asks && one.to_the_caller && has_all(one)),
            When::Offered if self.about.is_empty() => heard.sentences().any(|one| one.offers),
            When::Otherwise => heard.sentences().any(|one| one.offers),
            When::Offered | When::Said => {
                heard.sentences().any(|one| has_all(one) && one.negated == self.negated)
            }
        }
    }
}

const STARTS: [&str; 6] = ["if", "when", "whenever", "once", "should", "in case"];

/// The instruction of a sentence that only says at what point of the call it is followed: "Once you know the price, book a
/// room". What the caller is told comes in order anyway.
pub(super) fn in_order(sentence: &str) -> Option<String> {
    let clause = Clause::new(sentence);
    let points = [
        "after",
        "before",
        "once",
        "as soon as",
        "upon",
        "when you",
        "when they answer",
        "when they pick up",
        "when they greet",
        "when the assistant answers",
        "when the assistant greets",
        "when connected",
        "when done",
        "if possible",
        "to begin",
        "to start",
        "at the beginning",
        "during the call",
        "in the call",
        "on the phone",
    ];
    clause.begins(&points)?;
    let comma = (0..clause.len()).find(|at| clause.pauses_after(*at))?;
    let asked = (0..comma)
        .any(|at| matches!(clause.word(at), "asked" | "asks" | "ask" | "offered" | "offers" | "offer"));
    (!asked && comma + 1 < clause.len()).then(|| clause.from(comma + 1))
}

/// "Accept …" and "Decline …": the answer and what it is about.
fn policy(clause: &Clause<'_>, at: usize) -> Option<(Vec<String>, String)> {
    let len = clause.phrase_at(at, &["accept", "agree to", "decline", "refuse", "reject", "turn down"])?;
    Some((verdict(clause.word(at))?, clause.from(at + len)))
}

fn verdict(verb: &str) -> Option<Vec<String>> {
    match verb {
        "accept" | "agree" | "confirm" | "approve" => {
            Some(vec!["Yes, please.".into(), "Yes, that's fine, thank you.".into()])
        }
        "decline" | "refuse" | "reject" | "disagree" | "turn" => {
            Some(vec!["No, thank you.".into(), "No, thanks, I'd rather not.".into()])
        }
        _ => None,
    }
}

/// Topics without the words that every condition has.
fn meant(text: &str) -> Topics {
    topics(text).into_iter().filter(|topic| !EMPTY.iter().any(|word| stemmed(word) == *topic)).collect()
}

/// Where what to do begins.
fn action_at(clause: &Clause<'_>, first: usize) -> Option<usize> {
    let quote_open = |at: usize| clause.written(at).starts_with(['"', '“', '„', '«']);
    let mut is_quoted = false;
    for at in first + 1..clause.len() {
        is_quoted |= quote_open(at);
        if clause.written(at).contains(['”', '»'])
            || clause.written(at).trim_end_matches([',', '.']).ends_with('"')
        {
            is_quoted = false;
        }
        let next = at + 1;
        if !is_quoted && clause.pauses_after(at) && next < clause.len() {
            return Some(next);
        }
    }
    (first + 2..clause.len()).find(|at| {
        let before = clause.word(at - 1);
        let subject =
            matches!(before, "they" | "to" | "you" | "the" | "a" | "your" | "their" | "can" | "assistant");
        let verb = clause.word(*at);
        !subject
            && (matches!(verb, "then" | "accept" | "decline")
                || is_deed(verb) && !matches!(verb, "book" | "order"))
    })
}

/// The ways to do what is to be done, and whether that ends the call.
fn answers(action: &str, facts: &Facts) -> Option<(Vec<String>, bool)> {
    if let Some(range) = quoted(action).into_iter().next() {
        return Some((vec![action.get(range)?.trim().to_owned()], false));
    }
    let clause = Clause::new(action);
    let mut says: Vec<String> = Vec::new();
    let mut hangs_up = false;
    let mut start = 0;
    let ends: Vec<usize> = (1..clause.len())
        .filter(|at| clause.word(*at) == "and" && is_deed(clause.word(at + 1)))
        .chain([clause.len()])
        .collect();
    for end in ends {
        let part = clause.between(start, end);
        let done = answer(&part, facts)?;
        start = end + 1;
        match done {
            Done::HangsUp => hangs_up = true,
            Done::Says(more) if says.is_empty() => says = more,
            Done::Says(more) => {
                let more = more.first().cloned().unwrap_or_default();
                for one in &mut says {
                    *one = format!("{one} {more}");
                }
            }
        }
    }
    if hangs_up && says.is_empty() {
        says = vec!["Thank you, goodbye.".into()];
    }
    let has_words = says.iter().all(|one| one.contains(char::is_alphanumeric));
    (!says.is_empty() && has_words).then_some((says, hangs_up))
}

enum Done {
    Says(Vec<String>),
    HangsUp,
}

fn answer(action: &str, facts: &Facts) -> Option<Done> {
    let clause = Clause::new(action);
    let mut at = 0;
    while let Some(len) =
        clause.phrase_at(at, &["then", "please", "you should", "you must", "you", "just", "politely"])
    {
        at += len;
    }
    if clause.phrase_at(at, &["hang up", "end the call", "say goodbye", "end"]).is_some() {
        return Some(Done::HangsUp);
    }
    if clause.phrase_at(at, &["do not accept", "don't accept", "do not agree", "don't agree"]).is_some() {
        return verdict("decline").map(Done::Says);
    }
    if let Some(says) = verdict(clause.word(at)) {
        return Some(Done::Says(says));
    }
    if clause.phrase_at(at, &["take it", "book it", "choose it", "say yes", "answer yes"]).is_some() {
        return verdict("accept").map(Done::Says);
    }
    if clause.phrase_at(at, &["say no", "answer no"]).is_some_and(|len| at + len == clause.len()) {
        return verdict("decline").map(Done::Says);
    }
    // "Give 555 0100", "answer 42", "use BD-17".
    let plain = [
        "give them",
        "give",
        "answer with",
        "answer",
        "reply with",
        "reply",
        "respond with",
        "respond",
        "use",
        "it is",
        "it's",
        "say it is",
        "say",
    ];
    if let Some(len) = clause.phrase_at(at, &plain)
        && !matches!(
            clause.word(at + len),
            "that" | "your" | "the" | "" | "you" | "hello" | "thank" | "thanks"
        )
    {
        return Some(Done::Says(vec![statement(&turned(&clause.from(at + len)))]));
    }
    if let Some(len) = clause.phrase_at(at, &["answer that", "reply that", "respond that", "your"]) {
        let from = if clause.word(at) == "your" { at } else { at + len };
        return Some(Done::Says(vec![statement(&turned(&clause.from(from)))]));
    }
    match read(&clause.from(at), facts) {
        Instruction::Say(says) => Some(Done::Says(says)),
        Instruction::Behave | Instruction::Other => None,
    }
}
