//! What the caller knows: the facts in its persona and scenario.
use super::clause::Clause;
use super::topics::{Topics, counted, topics};
use super::wording::{bare, statement, turned};
use crate::models::rules::entities::{EntityKind, entities};

/// Facts of a caller; more are not kept.
const FACTS_MAX: usize = 200;
/// Words of a value at most.
const VALUE_WORDS_MAX: usize = 30;

/// Bytes after a number that are looked at.
const AFTER_BYTES_MAX: usize = 80;

/// Things with a number.
const NUMBERED: [&str; 16] = [
    "order",
    "booking",
    "reservation",
    "customer",
    "invoice",
    "ticket",
    "account",
    "policy",
    "case",
    "tracking",
    "confirmation",
    "membership",
    "member",
    "contract",
    "reference",
    "room",
];

/// Adjectives that look like a name after "You are": they have a capital letter as well.
const NO_NAMES: [&str; 34] = [
    "a",
    "an",
    "the",
    "german",
    "american",
    "british",
    "english",
    "french",
    "spanish",
    "italian",
    "dutch",
    "danish",
    "swedish",
    "norwegian",
    "finnish",
    "polish",
    "russian",
    "chinese",
    "japanese",
    "canadian",
    "australian",
    "austrian",
    "swiss",
    "indian",
    "irish",
    "scottish",
    "welsh",
    "turkish",
    "greek",
    "portuguese",
    "mexican",
    "brazilian",
    "european",
    "i",
];

/// Something the caller can tell.
#[derive(Debug, Clone)]
pub(super) struct Fact {
    /// A question that has all of these asks for it.
    pub(super) about: Topics,
    /// The words that a confirmation repeats.
    pub(super) value: String,
    /// The ways to say it.
    pub(super) says: Vec<String>,
}

/// The facts, the first of each kind.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts(Vec<Fact>);

impl Facts {
    /// The facts that a question asks for; only the nearest: a booking number is no telephone number.
    pub(super) fn asked(&self, question: &Topics) -> Vec<&Fact> {
        let asked: Vec<&Fact> = self.0.iter().filter(|fact| fact.about.is_subset(question)).collect();
        let nearer = |fact: &Fact| {
            asked
                .iter()
                .any(|other| other.about.len() > fact.about.len() && fact.about.is_subset(&other.about))
        };
        let nearest: Vec<&Fact> = asked.iter().copied().filter(|fact| !nearer(fact)).collect();
        if nearest.is_empty() && question.contains("number") {
            // "Your number", where there is only one.
            let alone = question.iter().all(|topic| matches!(topic.as_str(), "number" | "contact"));
            let phone = self.0.iter().find(|fact| fact.about.contains("phone"));
            let mut numbers = self.0.iter().filter(|fact| fact.about.contains("number"));
            return match (phone, numbers.next(), numbers.next()) {
                (Some(phone), ..) if alone => vec![phone],
                (None, Some(only), None) if alone => vec![only],
                _ => Vec::new(),
            };
        }
        nearest
    }

    /// The value that a sentence has.
    pub(super) fn mentioned(&self, sentence: &str) -> bool {
        let lower = sentence.to_lowercase();
        self.0.iter().any(|fact| {
            fact.value.len() > 1
                && lower.contains(fact.value.to_lowercase().trim_end_matches(['.', '!', '?']))
        })
    }

    /// Reads a sentence; returns whether it tells nothing but facts.
    pub(super) fn read(&mut self, sentence: &str, is_scenario: bool) -> bool {
        let mut is_fact = false;
        for part in parts(sentence) {
            is_fact |= self.read_part(&part);
        }
        self.identities(sentence);
        self.numbered(sentence);
        if is_scenario {
            self.wanted(sentence);
        }
        is_fact
    }

    fn add(&mut self, mut about: Topics, value: &str, says: Vec<String>) {
        // Who asks for a telephone need not say "number".
        if about.contains("phone") {
            about.remove("number");
        }
        let value = bare(value);
        let is_new = !self.0.iter().any(|fact| fact.about == about);
        if is_new && !about.is_empty() && value.contains(char::is_alphanumeric) && self.0.len() < FACTS_MAX {
            self.0.push(Fact { about, value, says });
        }
    }

    fn add_plain(&mut self, about: &[&str], label: &str, value: &str) {
        let value = bare(value);
        let says = vec![statement(&value), format!("It's {value}."), format!("My {label} is {value}.")];
        self.add(about.iter().map(|topic| (*topic).to_owned()).collect(), &value, says);
    }

    fn name(&mut self, name: &str) {
        let says = vec![statement(name), format!("My name is {name}."), format!("It's {name}.")];
        self.add(Topics::from(["name".to_owned()]), name, says);
        let mut parts = name.split_whitespace();
        let (first, last) = (parts.next().unwrap_or_default(), parts.next_back());
        let part = |word: &str| Topics::from([word.to_owned(), "name".to_owned()]);
        self.add(part("first"), first, vec![statement(first)]);
        if let Some(last) = last {
            self.add(part("last"), last, vec![statement(last)]);
            self.add(part("famili"), last, vec![statement(last)]);
        }
    }

    fn read_part(&mut self, part: &str) -> bool {
        let clause = Clause::new(part);
        if let Some(at) = clause.begins(&[
            "your name is",
            "your full name is",
            "you are called",
            "you're called",
            "my name is",
            "the caller's name is",
            "the caller is called",
            "name",
            "you are named",
            "named",
        ]) && (clause.word(0) != "name" || clause.written(0).ends_with(':'))
            && let Some(name) = name_at(&clause, at, true)
        {
            self.name(&name);
            return true;
        }
        if let Some(at) = clause.begins(&["you are", "you're", "i am", "i'm", "this is", "you play", "play"])
        {
            if let Some(name) = name_at(&clause, at, false) {
                self.name(&name);
                return true;
            }
            if let Some(age) = age(&clause, at) {
                self.add_plain(&["old"], "age", &age);
            }
        } else if let Some(name) = name_at(&clause, 0, false).filter(|name| name.contains(' ')) {
            // "Anna Berg, 34, lives in Oslo."
            self.name(&name);
        }
        if let Some(at) = clause.begins(&["you were born on", "you were born in", "born on", "born in"]) {
            self.add_plain(&["birth"], "date of birth", &clause.from(at));
            return true;
        }
        if let Some(at) = clause.find(0, &["live", "lives"])
            && matches!(clause.word(at + 1), "in" | "at" | "on" | "near")
        {
            let place = clause.from(at + 1);
            let place = bare(&place);
            let says = vec![format!("I live {place}."), statement(&place)];
            self.add(Topics::from(["address".to_owned()]), &place, says);
            return true;
        }
        self.possession(&clause)
    }

    /// "Your favourite colour is blue", "Order number: A-17", "phone 555 0100".
    fn possession(&mut self, clause: &Clause<'_>) -> bool {
        let own = matches!(clause.word(0), "your" | "my");
        let from = usize::from(own || clause.word(0) == "the");
        let is = (from + 1..clause.len().min(from + 7)).find(|at| {
            matches!(clause.word(*at), "is" | "are" | "was") && own || clause.written(at - 1).ends_with(':')
        });
        if let Some(is) = is {
            let colon = clause.written(is - 1).ends_with(':');
            let label = bare(&clause.between(from, is));
            let value = clause.between(is + usize::from(!colon), clause.len().min(is + VALUE_WORDS_MAX));
            let about = topics(&label);
            if about.is_empty() || value.is_empty() {
                return false;
            }
            let value = bare(&turned(&value));
            if let Some(people) = value.strip_prefix("for ").filter(|_| about.contains("book")) {
                let says = vec![format!("For {people}.")];
                self.add(Topics::from(["people".to_owned()]), people, says);
            }
            let verb = if clause.word(is) == "are" { "are" } else { "is" };
            let says = vec![statement(&value), format!("My {} {verb} {value}.", turned(&label))];
            self.add(about, &value, says);
            return true;
        }
        let label = ["phone", "telephone", "mobile", "number"];
        if let Some(at) = clause.find(0, &label) {
            let digits = digits_from(clause, at + 1);
            if digits.bytes().filter(u8::is_ascii_digit).count() >= 6 && !self.has_numbered(clause, at) {
                self.add_plain(&["phone"], "phone number", &digits);
                return own;
            }
        }
        false
    }

    fn has_numbered(&self, clause: &Clause<'_>, at: usize) -> bool {
        at.checked_sub(1).is_some_and(|before| NUMBERED.contains(&clause.word(before)))
    }

    /// Addresses and telephone numbers, wherever they are.
    fn identities(&mut self, sentence: &str) {
        for one in entities(sentence) {
            let written = sentence.get(one.span).unwrap_or_default();
            match one.kind {
                EntityKind::Email => self.add_plain(&["email"], "e-mail address", written),
                EntityKind::Phone => self.add_plain(&["phone"], "phone number", written),
                _ => {}
            }
        }
    }

    /// "The booking BD-17", "order number 1234".
    fn numbered(&mut self, sentence: &str) {
        let clause = Clause::new(sentence);
        for at in 0..clause.len() {
            if !NUMBERED.contains(&clause.word(at)) {
                continue;
            }
            let is_label = matches!(clause.word(at + 1), "number" | "no" | "code" | "id" | "reference");
            let value_at = at + 1 + usize::from(is_label);
            let value = bare(clause.written(value_at));
            let value = value.trim_start_matches('#');
            if value.contains(|char: char| char.is_ascii_digit()) && !clause.pauses_after(at) {
                let about = topics(&format!("{} number", clause.word(at)));
                let label = format!("{} number", clause.word(at));
                let says =
                    vec![statement(value), format!("It's {value}."), format!("My {label} is {value}.")];
                self.add(about, value, says);
            }
        }
    }

    /// When, and for how many, the caller wants something.
    fn wanted(&mut self, sentence: &str) {
        let clause = Clause::new(sentence);
        if clause.has(&["born", "birth", "birthday"]) {
            return;
        }
        for one in entities(sentence) {
            let written = sentence.get(one.span.clone()).unwrap_or_default();
            let rest = sentence.get(one.span.end..).unwrap_or_default();
            // Two words are looked at; a long sentence is full of numbers.
            let after =
                Clause::new(rest.get(..rest.floor_char_boundary(AFTER_BYTES_MAX)).unwrap_or_default());
            let before = sentence.get(..one.span.start).unwrap_or_default().trim_end();
            match one.kind {
                EntityKind::Date => {
                    let plain = ["today", "tomorrow", "yesterday", "next", "this"];
                    let on = if Clause::new(written).begins(&plain).is_some() { "" } else { "on " };
                    let says = vec![statement(&format!("{on}{written}"))];
                    self.add(Topics::from(["date".to_owned()]), written, says);
                }
                EntityKind::Time => {
                    let says = vec![format!("At {written}.")];
                    self.add(Topics::from(["time".to_owned()]), written, says);
                }
                EntityKind::Number | EntityKind::NumberWord => {
                    let ends = sentence
                        .get(one.span.end..)
                        .unwrap_or_default()
                        .starts_with(['.', ',', '!', '?', ';']);
                    let alone = after.len() == 0
                        || ends
                        || matches!(
                            after.word(0),
                            "on" | "at" | "tonight" | "tomorrow" | "today" | "this" | "next" | "and"
                        );
                    if alone {
                        if before.ends_with(" for") {
                            let says = vec![format!("For {written}."), format!("For {written} people.")];
                            self.add(Topics::from(["people".to_owned()]), written, says);
                        }
                        continue;
                    }
                    for ahead in 0..2 {
                        let thing = after.word(ahead);
                        if thing.is_empty() || !thing.bytes().all(|byte| byte.is_ascii_lowercase()) {
                            break;
                        }
                        let about = Topics::from([counted(thing)]);
                        let things = bare(&after.between(0, ahead + 1));
                        let says = vec![statement(&format!("{written} {things}"))];
                        self.add(about, written, says);
                        if after.pauses_after(ahead) {
                            break;
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

/// The parts of a sentence that may be facts of their own.
fn parts(sentence: &str) -> Vec<String> {
    let clause = Clause::new(sentence);
    let mut out = Vec::new();
    let mut start = 0;
    for at in 1..clause.len() {
        let new = matches!(clause.word(at), "your" | "you" | "born" | "phone" | "telephone");
        let joined = clause.word(at - 1) == "and" && clause.word(at).starts_with("you");
        let after_mark = clause.pauses_after(at - 1) && !clause.written(at - 1).ends_with(':');
        if new && (joined || after_mark) {
            let end = if joined { at - 1 } else { at };
            out.push(clause.between(start, end));
            start = at;
        }
    }
    out.push(clause.from(start));
    out
}

/// A name: one to four words with a capital letter. After "your name is" it may be any words.
fn name_at(clause: &Clause<'_>, from: usize, is_certain: bool) -> Option<String> {
    let mut end = from;
    while end < clause.len() && end - from < 4 {
        let written = clause.written(end);
        let is_capital = written.trim_start_matches(['"', '“', '\'']).starts_with(char::is_uppercase);
        let is_small = matches!(clause.word(end), "von" | "van" | "de" | "der" | "da" | "di" | "bin" | "al")
            && end > from;
        if !(is_capital || is_small) || !is_certain && NO_NAMES.contains(&clause.word(end)) {
            break;
        }
        end += 1;
        let is_title = matches!(clause.word(end - 1), "dr" | "mr" | "mrs" | "ms" | "prof");
        if written.ends_with([',', ';', '.', '!', ':', '"', '”', ')']) && !is_title {
            break;
        }
    }
    if end == from {
        return None;
    }
    // "You are Happy to wait" is no name; what follows a name is not "to".
    let goes_on = clause.word(end) == "to" && !clause.pauses_after(end - 1);
    let name = bare(&clause.between(from, end));
    let name = name.trim_matches(|char: char| !char.is_alphanumeric()).to_owned();
    (!goes_on && name.contains(char::is_alphabetic)).then_some(name)
}

fn age(clause: &Clause<'_>, from: usize) -> Option<String> {
    (from..clause.len().min(from + 3)).find_map(|at| {
        let word = clause.word(at);
        let number = word.split('-').next().unwrap_or_default();
        let is_number =
            !number.is_empty() && number.len() <= 3 && number.bytes().all(|byte| byte.is_ascii_digit());
        let is_age = word.contains("-year")
            || matches!(clause.word(at + 1), "" | "years" | "and")
            || clause.pauses_after(at);
        (is_number && is_age).then(|| number.to_owned())
    })
}

/// The words from a place on that consist of digits, such as "555 0100".
fn digits_from(clause: &Clause<'_>, from: usize) -> String {
    let from = from + usize::from(matches!(clause.word(from), "number" | "is"));
    let is_digits = |word: &str| {
        word.contains(|char: char| char.is_ascii_digit())
            && word.chars().all(|char| char.is_ascii_digit() || "+-()./,;".contains(char))
    };
    let end = (from..clause.len()).find(|at| !is_digits(clause.written(*at))).unwrap_or(clause.len());
    bare(&clause.between(from, end))
}
