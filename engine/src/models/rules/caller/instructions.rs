//! What an instruction makes the caller say: "Ask for the opening hours" is "What are the opening hours?".
use super::clause::Clause;
use super::english::{
    BEHAVIOUR, DEEDS, DESCRIPTIONS, DUTIES, LACKS, OPENERS, PEOPLE, STATING, WANTS, WISHES,
};
use super::facts::Facts;
use super::topics::topics;
use super::wording::{ASSISTANTS, bare, direct_question, inside, question, statement, turned};

/// What an instruction is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Instruction {
    /// Something to say, in one of these ways.
    Say(Vec<String>),
    /// How to behave, or what the assistant should do: nothing to say.
    Behave,
    /// Not understood, or a description.
    Other,
}

use Instruction::{Behave, Other, Say};

/// Reads an instruction. The facts are for "Tell them your name".
pub(super) fn read(text: &str, facts: &Facts) -> Instruction {
    match understood(text, facts) {
        // "Say that" without anything to say.
        Say(says) if says.iter().any(|one| !one.contains(char::is_alphanumeric)) => Other,
        instruction => instruction,
    }
}

fn understood(text: &str, facts: &Facts) -> Instruction {
    let clause = Clause::new(text);
    let mut from = 0;
    while let Some(len) = clause.phrase_at(from, &OPENERS).or_else(|| clause.phrase_at(from, &DUTIES)) {
        from += len;
    }
    let rest = clause.from(from);
    let clause = Clause::new(&rest);
    if clause.len() == 0 {
        return Other;
    }
    // Somebody's own words.
    let is_own = text.trim_end().ends_with('?')
        || clause.find(0, &["i", "i'm", "i'd", "i've", "i'll", "me", "my"]).is_some();
    if is_own && clause.begins(&["ask", "you", "find out", "say", "tell them"]).is_none() {
        return Say(vec![statement(text)]);
    }
    if let Some(len) = clause.begins(&WISHES) {
        let deed = clause.from(len);
        return match read(&deed, facts) {
            Say(says) => Say(says),
            _ => wish(&deed),
        };
    }
    said(&clause, facts)
        .or_else(|| asked(&clause))
        .or_else(|| wanted(&clause))
        .or_else(|| called(&clause, facts))
        .unwrap_or_else(|| {
            let is_quiet = clause.begins(&BEHAVIOUR).is_some() || clause.begins(&DESCRIPTIONS).is_some();
            if is_quiet { Behave } else { Other }
        })
}

/// Whether the word begins an instruction that makes the caller say something.
pub(super) fn is_deed(word: &str) -> bool {
    const OTHERS: [&str; 16] = [
        "ask",
        "tell",
        "inform",
        "give",
        "request",
        "inquire",
        "enquire",
        "find",
        "accept",
        "decline",
        "refuse",
        "reject",
        "agree",
        "hang",
        "thank",
        "apologise",
    ];
    DEEDS.contains(&word) || STATING.contains(&word) || OTHERS.contains(&word)
}

fn wish(deed: &str) -> Instruction {
    let deed = inside(&bare(&turned(deed)));
    Say(vec![format!("I'd like to {deed}, please."), format!("I want to {deed}, please.")])
}

/// "Book a table", "You want a table".
fn wanted(clause: &Clause<'_>) -> Option<Instruction> {
    if let Some(len) = clause.begins(&WANTS) {
        // "You want them to call back."
        if matches!(clause.word(len), "them" | "him" | "her") && clause.word(len + 1) == "to" {
            return Some(plea(&clause.from(len + 2)));
        }
        let thing = bare(&turned(&clause.from(len)));
        return (!thing.is_empty()).then(|| Say(vec![format!("I'd like {thing}, please.")]));
    }
    if let Some(len) = clause.begins(&LACKS).filter(|len| *len < clause.len()) {
        let own =
            if clause.word(0) == "the" { format!("you need {}", clause.from(len)) } else { clause.from(0) };
        return Some(Say(vec![statement(&turned(&own))]));
    }
    let is_behaviour = clause.begins(&BEHAVIOUR).is_some();
    (DEEDS.contains(&clause.word(0)) && !is_behaviour && clause.word(1) != "that")
        .then(|| wish(&clause.from(0)))
}

/// "You call the shop to book a table", "You are calling about your order".
fn called(clause: &Clause<'_>, facts: &Facts) -> Option<Instruction> {
    let calls = [
        "call",
        "you call",
        "you are calling",
        "you're calling",
        "you phone",
        "you ring",
        "the caller calls",
        "phone",
        "the caller is calling",
    ];
    let len = clause.begins(&calls)?;
    for at in len..clause.len() {
        let aim = || clause.from(at + 1);
        match clause.word(at) {
            "to" if is_deed(clause.word(at + 1)) => return Some(read(&aim(), facts)),
            "and" if is_deed(clause.word(at + 1)) => return Some(read(&aim(), facts)),
            "about" => return Some(Say(vec![statement(&format!("I'm calling about {}", turned(&aim())))])),
            "because" => {
                return Some(Say(vec![statement(&format!("I'm calling because {}", turned(&aim())))]));
            }
            _ => {}
        }
    }
    None
}

/// Something to state.
fn said(clause: &Clause<'_>, facts: &Facts) -> Option<Instruction> {
    let first = clause.word(0);
    if first == "introduce" {
        let name = facts.asked(&topics("name")).first().and_then(|fact| fact.says.get(1).cloned());
        return Some(Say(vec![name.unwrap_or_else(|| "Hello!".into())]));
    }
    if first == "greet" {
        return Some(Say(vec!["Hello!".into()]));
    }
    if first == "thank" && clause.word(2) == "for" {
        return Some(Say(vec![statement(&format!("Thank you {}", turned(&clause.from(2))))]));
    }
    if matches!(first, "apologise" | "apologize") {
        let what = turned(&clause.from(1));
        return Some(Say(vec![statement(&format!("I'm sorry {what}"))]));
    }
    let told = clause.begins(&[
        "tell",
        "inform",
        "let them know",
        "let the assistant know",
        "remind",
        "warn",
        "assure",
    ]);
    let gave = clause
        .begins(&["give", "provide", "spell", "read out", "state", "mention", "say", "leave", "pass on"]);
    if let Some(len) = told {
        let at = if first == "let" { len } else { len + recipient(clause, len)? };
        return tell(clause, at, facts);
    }
    if let Some(len) = gave {
        let at = len + recipient(clause, len).unwrap_or(0);
        let thing = clause.from(at);
        if matches!(clause.word(at), "your" | "the") && !clause.has(&["that", "is", "are", "was"]) {
            let known = facts.asked(&topics(&thing));
            if !known.is_empty() {
                let says = known.iter().filter_map(|fact| fact.says.last().cloned()).collect::<Vec<_>>();
                return Some(Say(vec![says.join(" ")]));
            }
        }
    }
    let at = if clause.begins(&["point out", "make clear"]).is_some() { 2 } else { 1 };
    let to = at + if clause.word(at) == "to" { 1 + recipient(clause, at + 1).unwrap_or(0) } else { 0 };
    if !STATING.contains(&first) && at == 1 {
        return None;
    }
    if clause.word(to) == "that" {
        return Some(Say(vec![statement(&turned(&clause.from(to + 1)))]));
    }
    match (first, clause.word(1)) {
        ("complain", _) => {
            let what = bare(&turned(&clause.from(1)));
            let what = what.strip_prefix("of ").map_or(what.clone(), |thing| format!("about {thing}"));
            Some(Say(vec![bare(&format!("I'd like to complain {what}")) + "."]))
        }
        ("say", "nothing" | "goodbye" | "bye") => Some(Behave),
        ("say", "yes") if clause.len() == 2 => Some(Say(vec!["Yes, please.".into()])),
        ("say", "no") if clause.len() == 2 => Some(Say(vec!["No, thank you.".into()])),
        ("say", "hello" | "hi") if clause.len() == 2 => Some(Say(vec!["Hello!".into()])),
        ("say", "thanks" | "thank") => Some(Say(vec!["Thank you!".into()])),
        ("say", word) if !word.is_empty() => Some(Say(vec![statement(&turned(&clause.from(1)))])),
        ("mention", word) if !word.is_empty() => {
            Some(Say(vec![statement(&format!("It's about {}", turned(&clause.from(1))))]))
        }
        _ => None,
    }
}

/// What follows "Tell them".
fn tell(clause: &Clause<'_>, at: usize, facts: &Facts) -> Option<Instruction> {
    let rest = |from: usize| turned(&clause.from(from));
    match clause.word(at) {
        "that" => Some(Say(vec![statement(&rest(at + 1))])),
        "to" => Some(plea(&clause.from(at + 1))),
        "not" if clause.word(at + 1) == "to" => {
            Some(Say(vec![statement(&format!("Please don't {}", rest(at + 2)))]))
        }
        "about" | "of" => Some(Say(vec![statement(&format!("It's about {}", rest(at + 1)))])),
        "goodbye" | "bye" => Some(Behave),
        "" => None,
        _ => {
            let known = facts.asked(&topics(&clause.from(at)));
            let is_thing = !clause.has(&["is", "are", "was", "were", "has", "have", "does", "not"]);
            if clause.word(at) == "your" && is_thing && !known.is_empty() {
                let says: Vec<String> = known.iter().filter_map(|fact| fact.says.last().cloned()).collect();
                return Some(Say(vec![says.join(" ")]));
            }
            matches!(
                clause.word(at),
                "your" | "you" | "you're" | "they" | "the" | "there" | "it" | "a" | "an" | "this"
            )
            .then(|| Say(vec![statement(&rest(at))]))
        }
    }
}

/// How many words name the person who is told or asked.
fn recipient(clause: &Clause<'_>, at: usize) -> Option<usize> {
    let word = clause.word(at);
    if matches!(word, "them" | "him" | "her" | "someone" | "somebody") {
        return Some(1);
    }
    let is_person = |word: &str| {
        ASSISTANTS.contains(&word)
            || PEOPLE.contains(&word)
            || matches!(
                word,
                "waiter" | "restaurant" | "shop" | "hotel" | "clinic" | "company" | "staff" | "clerk"
            )
    };
    (word == "the" && is_person(clause.word(at + 1))).then_some(2)
}

/// Somebody is asked to do something.
fn plea(deed: &str) -> Instruction {
    let deed = inside(&bare(&turned(deed)));
    Say(vec![format!("Could you {deed}, please?"), format!("Please {deed}.")])
}

/// Something to ask.
fn asked(clause: &Clause<'_>) -> Option<Instruction> {
    let len = clause.begins(&[
        "ask",
        "inquire",
        "enquire",
        "find out",
        "check",
        "you ask",
        "know",
        "learn",
        "see",
        "you want to know",
        "you would like to know",
        "you'd like to know",
        "you wonder",
        "wonder",
        "the caller asks",
        "the caller wants to know",
        "request",
    ])?;
    let verb = clause.word(0);
    let at = len + recipient(clause, len).unwrap_or(0);
    let rest = clause.from(at);
    let asks = verb == "ask" || clause.word(1) == "ask" || clause.word(2) == "asks";
    if clause.written(at.saturating_sub(1)).ends_with(':') && !rest.is_empty() {
        return Some(Say(vec![statement(&rest)]));
    }
    match clause.word(at) {
        "whether" | "if" => Some(about_clause(&clause.from(at + 1), "whether")),
        "what" | "when" | "where" | "how" | "who" | "which" | "why" | "whose" => {
            Some(about_clause(&rest, ""))
        }
        "about" => {
            let thing = bare(&turned(&clause.from(at + 1)));
            Some(Say(vec![
                format!("Could you tell me about {thing}, please?"),
                format!("What can you tell me about {thing}?"),
            ]))
        }
        "a" | "some"
            if matches!(clause.word(at + 1), "question" | "questions") && clause.word(at + 2) == "about" =>
        {
            let thing = bare(&turned(&clause.from(at + 3)));
            Some(Say(vec![format!("Could you tell me about {thing}, please?")]))
        }
        "to" if asks && at > len => Some(plea(&clause.from(at + 1))),
        "to" if asks => Some(wish(&clause.from(at + 1))),
        "for" if asks || verb.ends_with("nquire") => Some(for_thing(&clause.from(at + 1))),
        _ => None,
    }
}

/// "whether they deliver on Sundays", "what time they open".
fn about_clause(text: &str, whether: &str) -> Instruction {
    let indirect = bare(&turned(text));
    let told = format!("Could you tell me {whether} {indirect}, please?");
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    Say(match direct_question(text) {
        Some(direct) => vec![direct, told],
        None => vec![told],
    })
}

/// "the opening hours", "a refund", "directions".
fn for_thing(thing: &str) -> Instruction {
    let clause = Clause::new(thing);
    let words = bare(&turned(thing));
    let last = (0..clause.len())
        .find(|at| {
            matches!(clause.word(*at), "of" | "for" | "in" | "on" | "at" | "to" | "with" | "from" | "and")
        })
        .unwrap_or(clause.len());
    let noun = clause.word(last.saturating_sub(1));
    let is_name = clause.written(0).starts_with(char::is_uppercase);
    if (0..last).any(|at| PEOPLE.contains(&clause.word(at))) || is_name {
        return Say(vec![format!("Could I speak to {words}, please?")]);
    }
    if clause.word(0) == "help" {
        let with = bare(&turned(&clause.from(1)));
        return Say(vec![statement(&format!("I need help {with}"))]);
    }
    if !matches!(clause.word(0), "the" | "their" | "your" | "its" | "his" | "her") {
        return Say(vec![format!("Could I have {words}, please?"), format!("I'd like {words}, please.")]);
    }
    let is_plural = noun.ends_with('s') && !["ss", "us", "is"].iter().any(|end| noun.ends_with(end));
    let both = clause.word(last) == "and";
    let is = if is_plural || both { "are" } else { "is" };
    Say(vec![question(&format!("what {is} {words}")), format!("Could you tell me {words}, please?")])
}
