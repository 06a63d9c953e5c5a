//! Compiles a regular expression of ECMA-262 to a program.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::str::Chars;

use crate::base::tool_parameters::pattern::code::{Assertion, Code, INSTRUCTIONS_MAX, Instruction};
use crate::base::tool_parameters::pattern::escape::{self, Escape};
use crate::base::tool_parameters::pattern::property::PROPERTIES_MAX;
use crate::base::tool_parameters::pattern::run::Program;
use crate::base::tool_parameters::pattern::set::Set;
use crate::base::tool_parameters::pattern::{PatternError, class};

/// The unparsed rest of the pattern.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    pub characters: Peekable<Chars<'a>>,
    /// Character properties that the pattern may still use.
    pub properties_left: usize,
}

/// Compiles a pattern.
///
/// Accepts the syntax of the flag `u`, and what is common without that flag, such as unnecessary backslashes. `.` matches
/// anything but `\n`, as most authors expect; ECMA-262 excludes three rarer line terminators as well. A repetition may
/// itself be repeated.
pub(super) fn parse(pattern: &str) -> Result<Program, PatternError> {
    let rest = Cursor { characters: pattern.chars().peekable(), properties_left: PROPERTIES_MAX };
    let mut parser = Parser {
        rest,
        code: Code::default(),
        names: BTreeSet::new(),
        group: Group::at(0),
        outer: Vec::new(),
    };
    while let Some(character) = parser.rest.characters.next() {
        parser.element(character)?;
    }
    if !parser.outer.is_empty() {
        return Err(PatternError::Unsupported);
    }
    parser.finish_group();
    Ok(Program::new(parser.code))
}

struct Parser<'a> {
    rest: Cursor<'a>,
    code: Code,
    /// The names of the groups so far; each must be unique.
    names: BTreeSet<String>,
    group: Group,
    /// The enclosing groups.
    outer: Vec<Group>,
}

/// A group under construction, by instruction index.
struct Group {
    start: usize,
    /// Where its current alternative starts.
    alternative: usize,
    /// The jumps at the ends of its alternatives, to be patched.
    jumps: Vec<usize>,
    /// Where the last element starts, if it can be repeated.
    last: Option<usize>,
}

impl Group {
    fn at(start: usize) -> Self {
        Self { start, alternative: start, jumps: Vec::new(), last: None }
    }
}

impl Parser<'_> {
    fn element(&mut self, character: char) -> Result<(), PatternError> {
        let start = self.code.len();
        match character {
            '|' => {
                self.group.jumps.push(self.code.alternative(self.group.alternative)?);
                self.group.alternative = self.code.len();
                self.group.last = None;
                return Ok(());
            }
            '(' => {
                self.open_group()?;
                let outer = std::mem::replace(&mut self.group, Group::at(start));
                self.outer.push(outer);
                return Ok(());
            }
            ')' => {
                let outer = self.outer.pop().ok_or(PatternError::Unsupported)?;
                self.finish_group();
                let group = std::mem::replace(&mut self.group, outer);
                self.group.last = Some(group.start);
                return Ok(());
            }
            '*' => return self.repeat(0, None),
            '+' => return self.repeat(1, None),
            '?' => return self.repeat(0, Some(1)),
            '{' => {
                let (min, max) = counts(&mut self.rest).ok_or(PatternError::Unsupported)?;
                return self.repeat(min, max);
            }
            '^' => self.code.push(Instruction::Assertion(Assertion::Start))?,
            '$' => self.code.push(Instruction::Assertion(Assertion::End))?,
            '.' => self.code.push_set(Set::of(vec![('\n'.into(), '\n'.into())]).negated())?,
            '[' => self.code.push_set(class::parse(&mut self.rest)?)?,
            '\\' => match escape::outside(&mut self.rest)? {
                Escape::Character(character) => self.code.push(Instruction::Character(character))?,
                Escape::Set(set) => self.code.push_set(set)?,
                Escape::Assertion(assertion) => self.code.push(Instruction::Assertion(assertion))?,
            },
            literal => self.code.push(Instruction::Character(literal))?,
        }
        self.group.last = Some(start);
        Ok(())
    }

    /// A following `?` makes the repetition lazy, which does not change whether the pattern matches.
    fn repeat(&mut self, min: usize, max: Option<usize>) -> Result<(), PatternError> {
        let start = self.group.last.ok_or(PatternError::Unsupported)?;
        if max.is_some_and(|max| max < min) {
            return Err(PatternError::Unsupported);
        }
        self.rest.characters.next_if_eq(&'?');
        if (min, max) == (1, Some(1)) { Ok(()) } else { self.code.repeat(start, min, max) }
    }

    fn finish_group(&mut self) {
        for jump in self.group.jumps.drain(..) {
            self.code.patch(jump);
        }
    }

    /// After `(`: a capturing, named (including Python's syntax) or non-capturing group. Flags, look-around and comments are rejected.
    fn open_group(&mut self) -> Result<(), PatternError> {
        let rest = &mut self.rest.characters;
        if rest.next_if_eq(&'?').is_none() || rest.next_if_eq(&':').is_some() {
            return Ok(());
        }
        rest.next_if_eq(&'P');
        rest.next_if_eq(&'<').ok_or(PatternError::Unsupported)?;
        let mut name = String::new();
        while let Some(letter) = rest.next_if(|next| next.is_alphanumeric() || *next == '_') {
            name.push(letter);
        }
        let is_name = name.starts_with(|first: char| first.is_alphabetic() || first == '_');
        if is_name && rest.next() == Some('>') && self.names.insert(name) {
            Ok(())
        } else {
            Err(PatternError::Unsupported)
        }
    }
}

/// After `{`: `3}`, `3,}` or `3,5}`.
fn counts(rest: &mut Cursor<'_>) -> Option<(usize, Option<usize>)> {
    let min = count(rest)?;
    if rest.characters.next_if_eq(&',').is_none() {
        rest.characters.next_if_eq(&'}')?;
        return Some((min, Some(min)));
    }
    if rest.characters.next_if_eq(&'}').is_some() {
        return Some((min, None));
    }
    let max = count(rest)?;
    rest.characters.next_if_eq(&'}')?;
    Some((min, Some(max)))
}

/// A number; numbers beyond the largest program saturate.
fn count(rest: &mut Cursor<'_>) -> Option<usize> {
    let mut number: Option<usize> = None;
    while let Some(digit) = rest.characters.peek().and_then(|next| next.to_digit(10)) {
        rest.characters.next();
        number = Some((number.unwrap_or(0) * 10 + digit as usize).min(INSTRUCTIONS_MAX + 1));
    }
    number
}
