//! The language of criteria that the rules decide: a parser that refuses every word that it does not know.
//!
//! ```text
//! criterion = clause { join clause }      join = and | or | but | without | "," | before | after | then
//! clause    = [subject] [never] verb object        a clause without subject or verb has those of the one before
//! object    = "text" | value | words
//! ```
//!
//! `docs/testing.md` describes it for users.
mod parser;

use super::reading::{Item, Text};
use super::values::Value;
use crate::models::rules::judge::vocabulary::is_one_of;

/// Words and values in a row that a criterion looks for, its clauses together.
const WANTS_MAX: usize = 128;

/// A criterion that was understood.
#[derive(Debug)]
pub(super) struct Criterion {
    pub(super) clauses: Vec<Clause>,
    pub(super) join: Join,
}

/// How the clauses belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Join {
    All,
    Any,
    /// The first comes before the second.
    Before,
    /// Each is there, in this order.
    InOrder,
}

/// Whose rows count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    Assistant,
    User,
    Tool,
    /// Either side.
    Anybody,
}

#[derive(Debug, Clone)]
pub(super) struct Clause {
    /// `None`: whom the evaluation is about.
    pub(super) who: Option<Who>,
    pub(super) negated: bool,
    pub(super) act: Act,
}

/// What a clause claims.
#[derive(Debug, Clone)]
pub(super) enum Act {
    /// These words and no others. `labelled`: something stands before them that only a reader understands.
    Quote { quote: Quote, labelled: bool },
    /// Words or values without quotation marks.
    Words { verb: Verb, wants: Vec<Want> },
    /// A formula in one of its forms. `by_word`: it was said, whatever was meant.
    Formula { formula: Formula, by_word: bool },
    /// Any value of a kind.
    Kind(Kind),
    /// Asks for something.
    Ask(Vec<Want>),
    /// What only a reader knows: "… or similar".
    Open,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    /// The words themselves.
    Say,
    /// What is said, as a statement.
    SayThat,
    /// The subject that is talked about.
    Mention,
    /// A value that is told as true.
    Give,
    /// More than words: the absence of a value disproves it, and nothing proves it.
    Confirm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Formula {
    Sorry,
    Hello,
    Goodbye,
    Thanks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Price,
    Telephone,
    Email,
    Date,
    Time,
    Percentage,
}

/// A text in quotation marks.
#[derive(Debug, Clone)]
pub(super) struct Quote {
    pub(super) wants: Vec<Want>,
    /// It has more than one sentence.
    pub(super) has_sentences: bool,
    /// As [`Text::plain`].
    pub(super) plain: String,
}

/// A word, case-folded, or a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Want {
    Word(String),
    Value(Value),
}

impl Want {
    pub(super) fn word(&self) -> Option<&str> {
        match self {
            Self::Word(word) => Some(word),
            Self::Value(_) => None,
        }
    }

    pub(super) const fn value(&self) -> Option<&Value> {
        match self {
            Self::Value(value) => Some(value),
            Self::Word(_) => None,
        }
    }
}

/// Why a criterion is not understood.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// This is not in the language.
    Word(String),
    /// Something is missing, or ambiguous.
    Shape,
    /// A number may mean several things.
    Value,
    TooLong,
}

enum Part {
    Word(String),
    Value(Value),
    Quote(Quote),
    Sign(char),
}

/// Parses a criterion.
pub(super) fn parse(criterion: &str) -> Result<Criterion, Unknown> {
    let mut parts = parts(criterion)?;
    while matches!(parts.last(), Some(Part::Sign('.' | '!' | '\n'))) {
        parts.pop();
    }
    let wants: usize =
        parts.iter().map(|part| if let Part::Quote(quote) = part { quote.wants.len() } else { 1 }).sum();
    if wants > WANTS_MAX {
        return Err(Unknown::TooLong);
    }
    parser::Parser::new(parts).criterion()
}

/// Splits a criterion at its quotation marks.
fn parts(criterion: &str) -> Result<Vec<Part>, Unknown> {
    let mut out = Vec::new();
    let mut plain = 0;
    let mut chars = criterion.char_indices();
    let mut before = ' ';
    while let Some((start, char)) = chars.next() {
        let closings: &[char] = match char {
            '"' => &['"'],
            '“' | '”' => &['”', '“'],
            '„' => &['“', '”'],
            '«' => &['»'],
            '「' => &['」'],
            '\'' if !before.is_alphanumeric() => &['\''],
            '‘' => &['’'],
            _ => {
                before = char;
                continue;
            }
        };
        let inside = start + char.len_utf8();
        let rest = criterion.get(inside..).unwrap_or_default();
        // An apostrophe within a word closes nothing.
        let apostrophe = |place: usize, mark: char| {
            matches!(mark, '\'' | '’')
                && rest
                    .get(place + mark.len_utf8()..)
                    .and_then(|rest| rest.chars().next())
                    .is_some_and(char::is_alphanumeric)
        };
        let found =
            rest.char_indices().find(|(place, mark)| closings.contains(mark) && !apostrophe(*place, *mark));
        let Some((end, mark)) = found else { return Err(Unknown::Word(char.to_string())) };
        push_plain(&mut out, criterion.get(plain..start).unwrap_or_default())?;
        let text = Text::read(rest.get(..end).unwrap_or_default());
        let wants = wants(&text);
        if wants.is_empty() {
            return Err(Unknown::Shape);
        }
        let has_sentences = (0..text.items.len().saturating_sub(1)).any(|at| text.ends_sentence(at));
        let tokens = text.plain().trim_end_matches([' ', '.', ',', '?', '!']).to_owned();
        out.push(Part::Quote(Quote { wants, has_sentences, plain: tokens }));
        plain = inside + end + mark.len_utf8();
        chars = criterion.char_indices();
        while chars.clone().next().is_some_and(|(place, _)| place < plain) {
            chars.next();
        }
        before = ' ';
    }
    push_plain(&mut out, criterion.get(plain..).unwrap_or_default())?;
    Ok(out)
}

fn push_plain(out: &mut Vec<Part>, plain: &str) -> Result<(), Unknown> {
    let text = Text::read(plain);
    if text.has_doubtful() {
        return Err(Unknown::Value);
    }
    for (at, item) in text.items.iter().enumerate() {
        out.push(match item {
            Item::Word(_) => Part::Word(text.word(at).unwrap_or_default().to_owned()),
            Item::Value(value) => Part::Value((**value).clone()),
            Item::Sign(sign) => Part::Sign(*sign),
        });
    }
    Ok(())
}

/// The words and values of a text.
fn wants(text: &Text) -> Vec<Want> {
    let want = |at: usize| match text.items.get(at)? {
        Item::Word(_) => Some(Want::Word(text.word(at)?.to_owned())),
        Item::Value(value) => Some(Want::Value((**value).clone())),
        Item::Sign(_) => None,
    };
    (0..text.items.len()).filter_map(want).collect()
}

/// Words between clauses.
fn is_link(word: &str) -> bool {
    is_one_of(word, "and or but before after then without")
}

/// Words that say when or how something is said, or leave open what.
fn is_vague(word: &str) -> bool {
    const WORDS: [&str; 42] = [
        "again",
        "always",
        "anything",
        "because",
        "both",
        "each",
        "either",
        "else",
        "enough",
        "ever",
        "every",
        "everything",
        "except",
        "how",
        "if",
        "instead",
        "it",
        "just",
        "less",
        "little",
        "more",
        "much",
        "never",
        "not",
        "nothing",
        "once",
        "only",
        "so",
        "something",
        "times",
        "twice",
        "unless",
        "until",
        "what",
        "when",
        "whenever",
        "whether",
        "while",
        "who",
        "why",
        "within",
        "yet",
    ];
    WORDS.binary_search(&word).is_ok()
}
