//! The names in an assistant's texts, `{{name}}`, and what fills them in when a conversation starts: once, so that a value with
//! braces stays as it is.
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::base::limits::{
    FIRST_MESSAGE_CHARS_MAX, INSTRUCTIONS_BYTES_MAX, VARIABLE_NAME_CHARS_MAX, VOICEMAIL_MESSAGE_CHARS_MAX,
};
use crate::base::time::{self, Timestamp};
use crate::base::values::{Variables, is_in_variable_name, is_variable_name};
use crate::conversation::{AssistantSnapshot, Voicemail};

const OPEN: &str = "{{";
const CLOSE: &str = "}}";

/// What names stand for. A variable may have the name of a value that is built in, and is used instead.
#[derive(Debug, Clone, Copy)]
pub struct Values<'a> {
    /// As the client gave them.
    pub variables: &'a Variables,
    /// When the conversation starts: `{{now}}`.
    pub now: Timestamp,
    /// The other party's number, `{{caller_number}}`; empty without one.
    pub caller_number: &'a str,
}

impl<'a> Values<'a> {
    /// Those of a conversation without a telephone.
    #[must_use]
    pub const fn without_telephone(variables: &'a Variables, now: Timestamp) -> Self {
        Self { variables, now, caller_number: "" }
    }

    fn get(&self, name: &str) -> Option<Cow<'_, str>> {
        match (self.variables.get(name), name) {
            (Some(value), _) => Some(value.into()),
            (None, "now") => Some(time::format(self.now.ms()).into()),
            (None, "caller_number") => Some(self.caller_number.into()),
            (None, _) => None,
        }
    }
}

/// The texts of an assistant before they are filled in.
#[derive(Debug, Clone, Copy)]
pub struct Texts<'a> {
    /// Its instructions.
    pub instructions: &'a str,
    /// Its opening message.
    pub first_message: &'a str,
    /// What it says to an answering machine; empty where it meets none.
    pub voicemail_message: &'a str,
}

impl<'a> Texts<'a> {
    /// Those of a conversation without answering machines.
    #[must_use]
    pub fn of(assistant: &'a AssistantSnapshot) -> Self {
        let AssistantSnapshot { instructions, first_message, .. } = assistant;
        Self { instructions, first_message, voicemail_message: "" }
    }

    /// What fills them in.
    #[must_use]
    pub fn wanted(&self) -> Wanted<'a> {
        Wanted([
            ("instructions", Uses::of(self.instructions, INSTRUCTIONS)),
            ("first_message", Uses::of(self.first_message, FIRST_MESSAGE)),
            ("voicemail.message", Uses::of(self.voicemail_message, VOICEMAIL)),
        ])
    }
}

/// What fills in the texts of an assistant: read once for any number of conversations. Each text is named as its field.
#[derive(Debug)]
pub struct Wanted<'a>([(&'static str, Uses<'a>); 3]);

impl<'a> Wanted<'a> {
    /// The names without a value; some more than once.
    pub fn missing<'b>(&'b self, values: &'b Values<'b>) -> impl Iterator<Item = &'a str> + 'b {
        let names = self.0.iter().flat_map(|(_, uses)| uses.counts.keys().copied());
        names.filter(|name| values.get(name).is_none())
    }

    /// The first of the texts that its values make longer than its field may be.
    #[must_use]
    pub fn too_long(&self, values: &Values<'_>) -> Option<&'static str> {
        self.0.iter().find_map(|(field, uses)| (uses.filled_size(values) > uses.room.most).then_some(*field))
    }
}

/// The names in a text.
#[derive(Debug)]
struct Uses<'a> {
    /// How often each is there.
    counts: BTreeMap<&'a str, u64>,
    /// The size of the text without them.
    rest: u64,
    room: Room,
}

impl<'a> Uses<'a> {
    fn of(text: &'a str, room: Room) -> Self {
        let mut uses = Self { counts: BTreeMap::new(), rest: (room.size)(text), room };
        for (place, name) in (Names { text, at: 0 }) {
            uses.rest -= (room.size)(text.get(place).unwrap_or_default());
            *uses.counts.entry(name).or_default() += 1;
        }
        uses
    }

    fn filled_size(&self, values: &Values<'_>) -> u64 {
        let size_of = |name: &str| values.get(name).map_or(0, |value| (self.room.size)(&value));
        self.rest + self.counts.iter().map(|(name, count)| count * size_of(name)).sum::<u64>()
    }
}

/// The texts of an assistant in one conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FilledTexts {
    /// Its instructions.
    pub instructions: String,
    /// Its opening message.
    pub first_message: String,
    /// What it does with an answering machine.
    pub voicemail: Option<Voicemail>,
    /// The names that had no value, or one for which there was no room. Nothing stands in their places.
    pub left_out: BTreeSet<String>,
}

impl FilledTexts {
    /// Fills in the texts of `assistant`, that of its voicemail only if it may meet an answering machine.
    #[must_use]
    pub fn of(assistant: &AssistantSnapshot, values: &Values<'_>, meets_machines: bool) -> Self {
        let mut left_out = BTreeSet::new();
        let mut fill = |text: &str, room| fill(text, values, room, &mut left_out);
        let instructions = fill(&assistant.instructions, INSTRUCTIONS);
        let first_message = fill(&assistant.first_message, FIRST_MESSAGE);
        let voicemail = assistant.voicemail.as_ref().map(|voicemail| match meets_machines {
            true => Voicemail { message: fill(&voicemail.message, VOICEMAIL), ..voicemail.clone() },
            false => voicemail.clone(),
        });
        Self { instructions, first_message, voicemail, left_out }
    }

    /// Their size.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let voicemail = self.voicemail.as_ref().map_or(0, |voicemail| voicemail.message.len());
        self.instructions.len() + self.first_message.len() + voicemail
    }

    /// What the transcript says of the names that were left out.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let names: Vec<String> = self.left_out.iter().map(|name| format!("{OPEN}{name}{CLOSE}")).collect();
        (!names.is_empty()).then(|| format!("Nothing was filled in for {}", names.join(", ")))
    }
}

/// How large a text may become: as large as its field.
#[derive(Debug, Clone, Copy)]
struct Room {
    most: u64,
    size: fn(&str) -> u64,
}

const INSTRUCTIONS: Room = Room { most: INSTRUCTIONS_BYTES_MAX as u64, size: bytes };
const FIRST_MESSAGE: Room = Room { most: FIRST_MESSAGE_CHARS_MAX, size: characters };
const VOICEMAIL: Room = Room { most: VOICEMAIL_MESSAGE_CHARS_MAX, size: characters };

const fn bytes(text: &str) -> u64 {
    text.len() as u64
}

fn characters(text: &str) -> u64 {
    text.chars().count() as u64
}

/// The text with values for its names.
fn fill(text: &str, values: &Values<'_>, room: Room, left_out: &mut BTreeSet<String>) -> String {
    if !text.contains(OPEN) {
        return text.to_owned();
    }
    let mut size = Uses::of(text, room).rest;
    let (mut filled, mut copied) = (String::with_capacity(text.len()), 0);
    for (place, name) in (Names { text, at: 0 }) {
        filled.push_str(text.get(copied..place.start).unwrap_or_default());
        copied = place.end;
        match values.get(name).filter(|value| size + (room.size)(value) <= room.most) {
            Some(value) => {
                size += (room.size)(&value);
                filled.push_str(&value);
            }
            None => drop(left_out.insert(name.to_owned())),
        }
    }
    filled.push_str(text.get(copied..).unwrap_or_default());
    filled
}

/// The names in a text, each with its place.
struct Names<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Names<'a> {
    type Item = (Range<usize>, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let start = self.at + self.text.get(self.at..)?.find(OPEN)?;
            match name(self.text.get(start + OPEN.len()..)?) {
                Some((name, length)) => {
                    self.at = start + OPEN.len() + length;
                    return Some((start..self.at, name));
                }
                // `{{{name}}` has one, behind a brace.
                None => self.at = start + 1,
            }
        }
    }
}

/// The name that this text begins with, up to the closing braces, and how long all that is.
fn name(text: &str) -> Option<(&str, usize)> {
    let inner = text.trim_start();
    let length =
        inner.bytes().take(VARIABLE_NAME_CHARS_MAX + 1).take_while(|byte| is_in_variable_name(*byte)).count();
    let (name, rest) = inner.split_at_checked(length).filter(|(name, _)| is_variable_name(name))?;
    let rest = rest.trim_start().strip_prefix(CLOSE)?;
    Some((name, text.len() - rest.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str, most: u64) -> (String, Vec<String>) {
        let variables =
            serde_json::from_str(r#"{"name": "Ada", "odd": "{{name}} {", "empty": "", "x1": "ä"}"#).unwrap();
        let values =
            Values { variables: &variables, now: Timestamp::from_ms(0), caller_number: "+14155550123" };
        let mut left_out = BTreeSet::new();
        let text = fill(text, &values, Room { most, size: bytes }, &mut left_out);
        (text, left_out.into_iter().collect())
    }

    #[test]
    fn names_are_filled_in_and_all_else_is_text() {
        for (text, wanted) in [
            ("Hello {{name}}!", "Hello Ada!"),
            ("{{name}}{{name}}", "AdaAda"),
            ("{{ name }} {{\n\tname}}", "Ada Ada"),
            ("{{{name}}}", "{Ada}"),
            ("{{odd}} {{name}}", "{{name}} { Ada"),
            ("a{{empty}}b", "ab"),
            ("{{now}}", "1970-01-01T00:00:00.000Z"),
            ("{{caller_number}}", "+14155550123"),
            ("{{x1}}é", "äé"),
            (
                "{{Name}} {{1a}} {{}} {{ }} {{na me}} {{name} {name}} {{name",
                "{{Name}} {{1a}} {{}} {{ }} {{na me}} {{name} {name}} {{name",
            ),
            ("{{{{{{", "{{{{{{"),
            ("{{ {{name}}", "{{ Ada"),
            ("no braces", "no braces"),
            ("", ""),
        ] {
            assert_eq!(filled(text, 1_000), (wanted.to_owned(), Vec::new()), "{text}");
        }
        let long = format!("{{{{{}}}}}", "a".repeat(65));
        assert_eq!(filled(&long, 1_000).0, long);
    }

    #[test]
    fn nothing_stands_for_a_name_without_a_value() {
        assert_eq!(
            filled("{{b}}, {{name}}, {{a}} {{b}}.", 1_000),
            (", Ada,  .".into(), vec!["a".into(), "b".into()])
        );
    }

    #[test]
    fn a_text_stays_within_its_size() {
        let text = "{{now}}".repeat(10);
        let (part, left_out) = filled(&text, 239);
        assert_eq!((part.len(), left_out), (9 * 24, vec!["now".to_owned()]));
        assert_eq!(filled(&text, 240), ("1970-01-01T00:00:00.000Z".repeat(10), vec![]));
        // What grows before something else shrinks has room.
        assert_eq!(
            filled("{{now}}{{caller_number}}{{ empty }}", 36),
            ("1970-01-01T00:00:00.000Z+14155550123".into(), vec![])
        );
    }
}
