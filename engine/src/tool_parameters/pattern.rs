//! Regular expressions in schemas: written for ECMA-262, run by an engine whose time is linear in the text.

mod class;
mod escape;
#[cfg(test)]
mod tests;
mod translate;

use regex::{Regex, RegexBuilder};

/// Largest compiled pattern.
const PATTERN_COMPILED_BYTES_MAX: usize = 512 * 1024;

/// Up to this compiled size a pattern costs one step a byte; above it, [`LARGE_PATTERN_STEPS_PER_BYTE`]. An engine in
/// linear time still does work in proportion to pattern × text when the pattern sets out to make it.
const SMALL_PATTERN_COMPILED_BYTES_MAX: usize = 16 * 1024;

const LARGE_PATTERN_STEPS_PER_BYTE: u64 = 32;

/// A pattern that compiles.
#[derive(Clone)]
pub(super) struct Pattern {
    source: String,
    regex: Regex,
    steps_per_byte: u64,
}

impl Pattern {
    /// Takes a pattern without look-around and back-references (which no engine runs in linear time) and without
    /// flags (whose tables of upper and lower case are a Worker's largest).
    pub fn parse(source: &str) -> Result<Self, &'static str> {
        const UNSUPPORTED: &str = "is not a regular expression that can be used here: check its brackets, and use no look-around, no back-reference and no flag";
        let translated = translate::translate(source).ok_or(UNSUPPORTED)?;
        let attempts = [
            (SMALL_PATTERN_COMPILED_BYTES_MAX, 1),
            (PATTERN_COMPILED_BYTES_MAX, LARGE_PATTERN_STEPS_PER_BYTE),
        ];
        for (size_max, steps_per_byte) in attempts {
            match RegexBuilder::new(&translated)
                .size_limit(size_max)
                .dfa_size_limit(PATTERN_COMPILED_BYTES_MAX)
                .build()
            {
                Ok(regex) => {
                    return Ok(Self { source: source.to_owned(), regex, steps_per_byte });
                }
                Err(regex::Error::CompiledTooBig(_)) => {}
                Err(_) => return Err(UNSUPPORTED),
            }
        }
        Err("is too large once compiled; use smaller repetition counts")
    }

    /// The pattern as the user wrote it.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// How many steps a search in this text may cost.
    pub fn steps(&self, text: &str) -> u64 {
        1 + text.len() as u64 * self.steps_per_byte
    }

    /// Whether it is found anywhere in the text.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}
