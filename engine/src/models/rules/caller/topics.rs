//! What words are about, so that "What's your telephone number?" meets "Your phone is 555 0100".
use std::collections::BTreeSet;

use super::clause::Clause;
use crate::models::rules::entities::{EntityKind, entities};
use crate::models::rules::words::{Word, stemmed, words};

/// Terms, with one for all words of the same meaning.
pub(super) type Topics = BTreeSet<String>;

/// Words of the same meaning; the first stands for all.
const SAME: [&[&str]; 11] = [
    &["phone", "telephone", "mobile", "cell", "cellphone", "callback"],
    &["email", "mail", "e-mail"],
    &["number", "id", "code", "reference", "no", "nr"],
    &["book", "booking", "reservation"],
    &["people", "person", "persons", "guests", "guest", "party", "adults", "seats"],
    &["birth", "birthday", "born"],
    &["name", "surname"],
    &["date", "day"],
    &["old", "age"],
    &["cost", "price"],
    &["address", "street"],
];

/// Phrases that ask for something without its name.
const MEANS: [(&str, &[&str]); 26] = [
    ("who are you", &["name"]),
    ("who am i", &["name"]),
    ("who you are", &["name"]),
    ("who is calling", &["name"]),
    ("who's calling", &["name"]),
    ("whom am i", &["name"]),
    ("call you back", &["phone"]),
    ("reach you", &["phone"]),
    ("where do you live", &["address"]),
    ("where you live", &["address"]),
    ("where are you calling", &["address"]),
    ("where are you based", &["address"]),
    ("where are you located", &["address"]),
    ("where should we deliver", &["address"]),
    ("where shall we deliver", &["address"]),
    ("where should i send", &["address"]),
    ("what city", &["address"]),
    ("which city", &["address"]),
    ("how many of you", &["people"]),
    ("how big", &["people"]),
    ("how large", &["people"]),
    ("how many people", &["people"]),
    ("what time", &["time"]),
    ("when would", &["date", "time"]),
    ("when do you want", &["date", "time"]),
    ("when should", &["date", "time"]),
];

/// What a text is about.
pub(super) fn topics(text: &str) -> Topics {
    let mut out = Topics::new();
    for word in words(text) {
        out.extend(topic(&word));
    }
    let numbers = entities(text).into_iter().filter(|one| one.kind == EntityKind::NumberWord);
    out.extend(numbers.map(|one| one.value));
    let clause = Clause::new(text);
    for (phrase, means) in MEANS {
        if clause.has(&[phrase]) {
            out.extend(means.iter().map(|topic| (*topic).to_owned()));
        }
    }
    for at in 0..clause.len() {
        if clause.phrase_at(at, &["how many"]).is_some() {
            out.insert(counted(clause.word(at + 2)));
        }
        if clause.phrase_at(at, &["e-mail"]).is_some() {
            out.insert("email".into());
        }
    }
    // "E-mail address" and "date of birth" are no addresses and dates.
    for (whole, part) in [("email", "address"), ("birth", "date")] {
        if out.contains(whole) {
            out.remove(part);
        }
    }
    out
}

/// The topic of a number of things.
pub(super) fn counted(thing: &str) -> String {
    match same(thing) {
        Some("people") => "people".into(),
        _ => format!("count of {}", stemmed(thing)),
    }
}

fn topic(word: &Word<'_>) -> Option<String> {
    let lower = word.text.to_lowercase();
    same(&lower).map(str::to_owned).or_else(|| word.term())
}

fn same(word: &str) -> Option<&'static str> {
    let of =
        |word: &str| SAME.iter().find(|group| group.contains(&word)).and_then(|group| group.first().copied());
    of(word).or_else(|| of(word.strip_suffix('s')?))
}
