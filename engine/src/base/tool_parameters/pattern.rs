//! Regular expressions in schemas: written for ECMA-262, run in time linear in the text.
//!
//! A pattern only has to say yes or no, never where, so it is run as a set of places in a program, all at once
//! (K. Thompson, "Regular Expression Search Algorithm", 1968). A library that does the same also does captures, cases
//! and its own tables of Unicode, which together were an eighth of the Worker; and how large a pattern may be would hang
//! on the width of a pointer.

mod class;
mod code;
#[cfg(test)]
mod comparison;
mod escape;
mod parse;
mod property;
mod run;
mod set;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use run::Program;

/// A pattern that can be run.
#[derive(Clone)]
pub(super) struct Pattern {
    source: String,
    program: Arc<Program>,
}

/// Why a pattern cannot be used.
#[derive(Debug, PartialEq)]
enum Refused {
    Unsupported,
    TooLarge,
    Property(String),
    TooManyProperties,
}

impl Pattern {
    /// Takes a pattern without look-around and back-references (which no engine runs in linear time) and without
    /// flags (whose tables of upper and lower case are large).
    pub fn parse(source: &str) -> Result<Self, String> {
        match parse::parse(source) {
            Ok(program) => Ok(Self { source: source.to_owned(), program: Arc::new(program) }),
            Err(refused) => Err(refused.message()),
        }
    }

    /// The pattern as the user wrote it.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether it is found anywhere in the text; `None` when there are not enough steps left to say. Takes the steps
    /// it needed.
    pub fn is_match(&self, text: &str, steps_left: &mut u64) -> Option<bool> {
        self.program.is_match(text, steps_left)
    }
}

impl Refused {
    fn message(self) -> String {
        match self {
            Self::Unsupported => "is not a regular expression that can be used here: check its brackets, and use no look-around, no back-reference and no flag".to_owned(),
            Self::TooLarge => "is too large once compiled; use smaller repetition counts".to_owned(),
            Self::TooManyProperties => {
                format!("has too many \\p; a pattern may have {}", property::PROPERTIES_MAX)
            }
            Self::Property(name) => format!(
                "has \\p{{{name}}}, which cannot be used here: use a general category such as \\p{{L}} or \\p{{Lu}}, a script such as \\p{{Script=Greek}}, or one of {}",
                property::binary_names()
            ),
        }
    }
}
