//! Regular expressions in schemas: the syntax of ECMA-262, matched in time linear in the text.
//!
//! A pattern only has to match or not, so it runs as a set of NFA states (K. Thompson, "Regular Expression Search
//! Algorithm", 1968). A library with the same algorithm also brings captures, case folding and its own Unicode tables,
//! together an eighth of the Worker's size, and its limit on the size of a pattern depends on the width of a pointer.

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

use std::sync::{Arc, OnceLock};

use run::Program;

/// A pattern that can be compiled, and is when a text is first compared with it.
#[derive(Clone)]
pub(super) struct Pattern {
    source: String,
    program: OnceLock<Option<Arc<Program>>>,
}

/// Why a pattern was rejected.
#[derive(Debug, PartialEq)]
enum PatternError {
    Unsupported,
    TooLarge,
    Property(String),
    TooManyProperties,
}

impl Pattern {
    /// Accepts patterns without look-around and back-references (no engine runs these in linear time) and without flags (case
    /// folding needs large tables).
    pub fn parse(source: &str) -> Result<Self, String> {
        match parse::parse(source) {
            Ok(program) => Ok(Self { source: source.to_owned(), program: Some(Arc::new(program)).into() }),
            Err(refused) => Err(refused.message()),
        }
    }

    /// One that was accepted before: nothing is compiled yet.
    pub fn later(source: &str) -> Self {
        Self { source: source.to_owned(), program: OnceLock::new() }
    }

    /// The pattern as the user wrote it.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether the pattern matches anywhere in the text; `None` when the steps run out. Subtracts the steps it needs.
    pub fn is_match(&self, text: &str, steps_left: &mut u64) -> Option<bool> {
        let program = self.program.get_or_init(|| {
            let program = parse::parse(&self.source).ok()?;
            *steps_left = steps_left.saturating_sub(program.steps_to_compile());
            Some(Arc::new(program))
        });
        // One that cannot be compiled was never accepted; nothing fits it.
        program.as_ref().map_or(Some(false), |program| program.is_match(text, steps_left))
    }
}

impl PatternError {
    fn message(self) -> String {
        match self {
            Self::Unsupported => "is not a supported regular expression: check its brackets; look-around, back-references and flags are not supported".to_owned(),
            Self::TooLarge => "is too large when compiled; use smaller repetition counts".to_owned(),
            Self::TooManyProperties => {
                format!("has too many \\p; the limit per pattern is {}", property::PROPERTIES_MAX)
            }
            Self::Property(name) => format!(
                "has \\p{{{name}}}, which is not supported: use a general category such as \\p{{L}} or \\p{{Lu}}, a script such as \\p{{Script=Greek}}, or one of {}",
                property::binary_names()
            ),
        }
    }
}
