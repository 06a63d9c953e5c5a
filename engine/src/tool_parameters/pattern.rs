//! Regular expressions in schemas: written for ECMA-262, run by an engine whose time is linear in the text.

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
    /// Takes a pattern without look-around and back-references (which no engine runs in linear time).
    pub fn parse(source: &str) -> Result<Self, &'static str> {
        const UNSUPPORTED: &str = "is not a regular expression that can be used here: check its brackets, and use no look-around and no back-reference";
        let translated = jsonschema_regex::to_rust_regex(source).map_err(|()| UNSUPPORTED)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_ecma_patterns() {
        let matches = [
            ("^a+$", "aaa"),
            (r"^\d{3}$", "123"),
            (r"^\/a\-b$", "/a-b"),
            (r"^\u0041$", "A"),
            (r"^\cJ$", "\n"),
            (r"^(?<year>\d+)$", "2024"),
            (r"^[\w.+-]{1,64}@[\w-]{1,63}\.[a-z]{2,}$", "a.b@example.com"),
            ("^.{0,500}$", "é"),
            (r"^\p{L}+$", "π"),
            ("", "anything"),
        ];
        for (pattern, text) in matches {
            assert!(Pattern::parse(pattern).ok().unwrap().is_match(text), "{pattern}");
        }
        assert!(!Pattern::parse(r"^\d$").ok().unwrap().is_match("٣"), "digits are ASCII in ECMA-262");
        assert!(!Pattern::parse("^a$").ok().unwrap().is_match("a\n"), "the end is the end");
    }

    #[test]
    fn refuses_what_cannot_be_run_safely() {
        for pattern in [
            "(",
            "[a",
            "a{2,1}",
            "*",
            "(?=a)",
            "(?!a)b",
            "(?<!a)b",
            r"(a)\1",
            r"\k<a>",
            "(?<a",
            r"\u{110000}",
            "[",
        ] {
            assert!(Pattern::parse(pattern).is_err(), "{pattern}");
        }
        for pattern in ["(((a{100}){100}){100}){100}", r"\p{L}{10000}", "(a|b|c){100000}"] {
            assert!(Pattern::parse(pattern).err().unwrap().contains("too large"), "{pattern}");
        }
        let _ = Pattern::parse(&"(".repeat(30_000));
        let _ = Pattern::parse(&"a|".repeat(15_000));
    }
}
