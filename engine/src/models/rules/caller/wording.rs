//! Turns the words of an instruction into the words of the person who follows it: "your dog" is "my dog".
use super::clause::{Clause, lowered};

/// Words for the assistant in an instruction.
pub(super) const ASSISTANTS: [&str; 6] =
    ["assistant", "agent", "receptionist", "operator", "employee", "representative"];

/// Verbs that change their place in a question.
const AUXILIARIES: [&str; 12] =
    ["are", "is", "can", "could", "will", "would", "should", "may", "must", "shall", "were", "was"];

/// After these words "you" is "me".
const BEFORE_OBJECTS: [&str; 40] = [
    "for", "to", "with", "at", "by", "of", "from", "about", "on", "in", "behind", "near", "without",
    "around", "call", "calls", "called", "tell", "tells", "told", "give", "gives", "gave", "send", "sends",
    "sent", "help", "offer", "charge", "charged", "let", "show", "email", "inform", "remind", "connect",
    "refund", "owe", "bring", "promised",
];

/// After "you", these say that it is who does something.
const AFTER_SUBJECTS: [&str; 22] = [
    "are", "were", "have", "had", "can", "could", "will", "would", "want", "need", "do", "did", "don't",
    "can't", "am", "live", "like", "should", "must", "ordered", "booked", "paid",
];

/// Plural words that "they" does not stand for.
const NOT_MEANT: [&str; 22] = [
    "always",
    "sometimes",
    "besides",
    "perhaps",
    "across",
    "does",
    "goes",
    "days",
    "hours",
    "minutes",
    "weeks",
    "months",
    "years",
    "times",
    "mondays",
    "tuesdays",
    "wednesdays",
    "thursdays",
    "fridays",
    "saturdays",
    "sundays",
    "weekends",
];

/// The words from the mouth of the caller: "you" is "I" or "me", and "they" and "the assistant" are "you".
///
/// "They" stays after a plural that it may stand for: "the pizzas were cold and they were late".
pub(super) fn turned(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let low: Vec<String> = words.iter().map(|word| lowered(word)).collect();
    let low_at = |at: usize| low.get(at).map_or("", String::as_str);
    let mut out: Vec<String> = Vec::with_capacity(words.len());
    let (mut others, mut skipped, mut third_person) = (false, false, false);
    for (at, word) in words.iter().enumerate() {
        if std::mem::take(&mut skipped) {
            continue;
        }
        let (now, next) = (low_at(at), low_at(at + 1));
        let before = at.checked_sub(1).map_or("", low_at);
        if now == "the" && ASSISTANTS.contains(&next) {
            let written = words.get(at + 1).copied().unwrap_or_default();
            out.push(replaced(written, "you"));
            (skipped, third_person) = (true, true);
            continue;
        }
        if std::mem::take(&mut third_person) && now.bytes().all(|byte| byte.is_ascii_lowercase()) {
            out.push(replaced(word, &second_person(now)));
            continue;
        }
        let new = match now {
            "you" if is_object(before, next, word) => Some("me"),
            "you" => Some("I"),
            "your" => Some("my"),
            "yours" => Some("mine"),
            "yourself" => Some("myself"),
            "you're" => Some("I'm"),
            "you've" => Some("I've"),
            "you'll" => Some("I'll"),
            "you'd" => Some("I'd"),
            "are" if before == "you" || next == "you" => Some("am"),
            "aren't" if before == "you" => Some("am not"),
            "were" if before == "you" || next == "you" => Some("was"),
            "weren't" if before == "you" => Some("wasn't"),
            "they" | "them" if !others => Some("you"),
            "their" if !others => Some("your"),
            "theirs" if !others => Some("yours"),
            "themselves" if !others => Some("yourself"),
            "they're" if !others => Some("you're"),
            "they've" if !others => Some("you've"),
            "they'll" if !others => Some("you'll"),
            "they'd" if !others => Some("you'd"),
            _ => None,
        };
        others |= is_plural(now);
        out.push(new.map_or_else(|| (*word).to_owned(), |new| replaced(word, new)));
    }
    out.join(" ")
}

/// The word with the punctuation of another one.
fn replaced(written: &str, new: &str) -> String {
    let inside = |char: char| char.is_alphanumeric();
    let start = written.find(inside).unwrap_or(0);
    let end = written.rfind(inside).map_or(written.len(), |place| {
        place + written.get(place..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8)
    });
    let (head, tail) = (written.get(..start), written.get(end..));
    format!("{}{new}{}", head.unwrap_or_default(), tail.unwrap_or_default())
}

fn is_object(before: &str, next: &str, word: &str) -> bool {
    let is_last = next.is_empty() || !word.ends_with(char::is_alphabetic);
    let follows = BEFORE_OBJECTS.contains(&before) && !AFTER_SUBJECTS.contains(&next);
    let asks = AUXILIARIES.contains(&before) || matches!(before, "" | "and" | "or" | "do" | "did" | "than");
    follows || is_last && !asks
}

fn is_plural(word: &str) -> bool {
    word.len() > 3
        && word.ends_with('s')
        && !["ss", "us", "is", "'s"].iter().any(|end| word.ends_with(end))
        && !NOT_MEANT.contains(&word)
}

/// The form of a verb after "you": "delivers" is "deliver".
fn second_person(verb: &str) -> String {
    match verb {
        "is" => return "are".into(),
        "was" => return "were".into(),
        "has" => return "have".into(),
        "doesn't" => return "don't".into(),
        "isn't" => return "aren't".into(),
        _ => {}
    }
    if let Some(stem) = verb.strip_suffix("ies").filter(|stem| stem.len() > 2) {
        return format!("{stem}y");
    }
    if ["ches", "shes", "sses", "xes", "oes"].iter().any(|end| verb.ends_with(end)) {
        return verb.strip_suffix("es").unwrap_or(verb).to_owned();
    }
    match verb.strip_suffix('s') {
        Some(stem) if stem.len() > 2 && !stem.ends_with(['s', 'u', 'i']) => stem.to_owned(),
        _ => verb.to_owned(),
    }
}

/// The direct question of "they deliver on Sundays" or "what time they open", in the caller's words, where its form is certain.
pub(super) fn direct_question(text: &str) -> Option<String> {
    let clause = Clause::new(text);
    let subject = (0..clause.len().min(6)).find(|at| {
        matches!(clause.word(*at), "they" | "you") || *at == 0 && matches!(clause.word(*at), "there" | "it")
    })?;
    let head = clause.between(0, subject);
    let verb = clause.word(subject + 1);
    if verb.is_empty() || clause.pauses_after(subject) {
        return None;
    }
    let who = match clause.word(subject) {
        "they" => "you",
        "you" => "I",
        other => other,
    };
    let is_modal = AUXILIARIES.contains(&verb);
    let (first, rest) = match (who, verb) {
        ("I", "are") => ("am", subject + 2),
        ("I", "were") => ("was", subject + 2),
        _ if is_modal => (verb, subject + 2),
        ("I" | "you", _) if is_base(verb) => ("do", subject + 1),
        _ => return None,
    };
    let rest = turned(&clause.from(rest));
    Some(question(&[head.as_str(), first, who, rest.as_str()].join(" ")))
}

/// Whether the word may be the first form of a verb.
fn is_base(verb: &str) -> bool {
    const NOT: [&str; 16] = [
        "had", "did", "do", "sold", "got", "made", "went", "not", "don't", "can't", "won't", "aren't",
        "said", "both", "all", "haven't",
    ];
    verb.bytes().all(|byte| byte.is_ascii_lowercase()) && !verb.ends_with("ed") && !NOT.contains(&verb)
}

/// A sentence: a capital letter at its beginning and a mark at its end.
pub(super) fn statement(text: &str) -> String {
    let text = text.trim().trim_end_matches([',', ';', ':']).trim_end();
    let mut out = capitalized(text);
    if !out.is_empty() && !out.ends_with(['.', '!', '?', '…', '。', '！', '？', '"', '”', '»', ')']) {
        out.push('.');
    }
    out
}

/// A question.
pub(super) fn question(text: &str) -> String {
    format!("{}?", capitalized(&bare(text)))
}

/// The words without spaces between and marks after them.
pub(super) fn bare(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.trim_end_matches(['.', ',', ';', ':', '!', '?', '…']).trim_end().to_owned()
}

/// A verb from the beginning of a sentence, within one.
pub(super) fn inside(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) if first.is_uppercase() && chars.as_str().starts_with(char::is_lowercase) => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => text.to_owned(),
    }
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    let is_address = text.split_whitespace().next().is_some_and(|word| word.contains(['@', '/']));
    // A name such as iPhone keeps its form.
    match chars.next() {
        Some(first)
            if first.is_lowercase() && !is_address && !chars.as_str().starts_with(char::is_uppercase) =>
        {
            first.to_uppercase().chain(chars).collect()
        }
        _ => text.to_owned(),
    }
}
