//! Phrases of the rule model.
use crate::base::text::{collapse_whitespace, truncate};
use crate::conversation::{Knowledge, ToolSpec};

use super::words::identifier_words;

pub(super) const GOODBYES: [&str; 3] =
    ["Thank you, goodbye.", "That was all, thanks. Goodbye.", "Thanks a lot. Bye!"];
pub(super) const CLOSINGS: [&str; 3] =
    ["You're welcome. Goodbye!", "Thank you for calling. Goodbye!", "Have a nice day. Goodbye!"];
pub(super) const WELCOMES: [&str; 2] = [
    "You're welcome. Is there anything else I can help with?",
    "My pleasure. Can I help with anything else?",
];
const GREETINGS: [&str; 2] = ["Hello!", "Hello and welcome!"];
const SORRIES: [&str; 3] = [
    "I'm sorry, I have no answer to that.",
    "I'm afraid I don't know that.",
    "Sorry, that is beyond what I know.",
];

/// Documents, and tools, that an offer of help names at most.
const NAMED_MAX: usize = 5;
/// Bytes of one name in that offer.
const NAME_BYTES_MAX: usize = 120;

/// Selects a phrase that differs from the previous turn's.
pub(super) fn pick<'a>(phrases: &[&'a str], seed: u64, turn: usize) -> &'a str {
    let count = phrases.len().max(1) as u64;
    let place = (mixed(seed) % count + turn as u64 % count) % count;
    phrases.get(usize::try_from(place).unwrap_or(0)).copied().unwrap_or_default()
}

pub(super) fn greeting(help: &str, seed: u64, turn: usize) -> String {
    joined(pick(&GREETINGS, seed, turn), help)
}

pub(super) fn sorry(help: &str, seed: u64, turn: usize) -> String {
    joined(pick(&SORRIES, seed, turn), help)
}

/// What the assistant can help with; empty without documents and tools.
pub(super) fn help(knowledge: &[Knowledge], tools: &[ToolSpec]) -> String {
    let about = list(knowledge.iter().map(|document| collapse_whitespace(&document.name)), "; ");
    let can = list(tools.iter().map(what_for), "; ");
    match (about.as_str(), can.as_str()) {
        ("", "") => String::new(),
        (about, "") => format!("I can answer questions about: {about}."),
        ("", can) => format!("Here is what I can do: {can}."),
        (about, can) => {
            format!("I can answer questions about: {about}. I can also do this: {can}.")
        }
    }
}

/// A tool's name as words: `book_table` is "book table".
pub(super) fn spoken_name(tool_name: &str) -> String {
    identifier_words(tool_name).join(" ")
}

fn what_for(tool: &ToolSpec) -> String {
    let description = collapse_whitespace(&tool.description);
    match description.trim_end_matches('.') {
        "" => spoken_name(&tool.name),
        description => description.to_owned(),
    }
}

fn list(names: impl Iterator<Item = String>, between: &str) -> String {
    let names = names.filter(|name| !name.is_empty()).take(NAMED_MAX);
    names.map(|name| truncate(name, NAME_BYTES_MAX)).collect::<Vec<_>>().join(between)
}

fn joined(first: &str, second: &str) -> String {
    if second.is_empty() { first.to_owned() } else { format!("{first} {second}") }
}

/// Decorrelates neighbouring seeds (the finalizer of splitmix64).
const fn mixed(seed: u64) -> u64 {
    let seed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let seed = (seed ^ (seed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    seed ^ (seed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn no_phrase_comes_twice_in_a_row() {
        for seed in [0, 1, u64::MAX] {
            for turn in 0..9 {
                assert_ne!(pick(&SORRIES, seed, turn), pick(&SORRIES, seed, turn + 1));
            }
        }
        assert_eq!(pick(&[], 1, 1), "");
    }

    #[test]
    fn help_names_documents_and_tools() {
        let documents = [Knowledge { name: "Menu".into(), content: String::new() }];
        let tools = [tool("book_table", "Books a\n table."), tool("callBack", "")];
        assert_eq!(
            help(&documents, &tools),
            "I can answer questions about: Menu. I can also do this: Books a table; call back."
        );
        assert_eq!(help(&documents, &[]), "I can answer questions about: Menu.");
        assert_eq!(help(&[], &tools[..1]), "Here is what I can do: Books a table.");
        assert_eq!(help(&[], &[]), "");
        let many = vec![tool("x", &"é".repeat(10_000)); 100];
        assert!(help(&[], &many).len() < 1_000);
    }

    fn tool(name: &str, description: &str) -> ToolSpec {
        ToolSpec { name: name.into(), description: description.into(), parameters: Value::Null.into() }
    }
}
