//! From ECMA-262's regular expressions to a program.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::str::Chars;

use crate::base::tool_parameters::pattern::code::{Assertion, Code, INSTRUCTIONS_MAX, Instruction};
use crate::base::tool_parameters::pattern::escape::{self, Escape};
use crate::base::tool_parameters::pattern::property::PROPERTIES_MAX;
use crate::base::tool_parameters::pattern::run::Program;
use crate::base::tool_parameters::pattern::set::Set;
use crate::base::tool_parameters::pattern::{Refused, class};

/// What is left of the pattern.
#[derive(Clone)]
pub(super) struct Rest<'a> {
    pub characters: Peekable<Chars<'a>>,
    /// How many properties of characters may still be asked for.
    pub properties_left: usize,
}

/// Reads the pattern.
///
/// It takes what the flag `u` allows and what a pattern without that flag is commonly written with, such as needless
/// backslashes. A full stop is anything but `\n`, as most who write one expect; ECMA-262 has three rarer ends of lines.
/// A repetition may itself be repeated.
pub(super) fn parse(pattern: &str) -> Result<Program, Refused> {
    let rest = Rest { characters: pattern.chars().peekable(), properties_left: PROPERTIES_MAX };
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
        return Err(Refused::Unsupported);
    }
    parser.finish_group();
    Ok(Program::new(parser.code))
}

struct Parser<'a> {
    rest: Rest<'a>,
    code: Code,
    /// Those of the groups, each of which may be used once.
    names: BTreeSet<String>,
    group: Group,
    /// The groups around the current one.
    outer: Vec<Group>,
}

/// A group whose bracket is still open, by places in the program.
struct Group {
    start: usize,
    /// Where the current one of its alternatives starts.
    alternative: usize,
    /// The jumps from the ends of its alternatives.
    jumps: Vec<usize>,
    /// Where the last element starts, if there is one to be repeated.
    last: Option<usize>,
}

impl Group {
    fn at(start: usize) -> Self {
        Self { start, alternative: start, jumps: Vec::new(), last: None }
    }
}

impl Parser<'_> {
    fn element(&mut self, character: char) -> Result<(), Refused> {
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
                let outer = self.outer.pop().ok_or(Refused::Unsupported)?;
                self.finish_group();
                let group = std::mem::replace(&mut self.group, outer);
                self.group.last = Some(group.start);
                return Ok(());
            }
            '*' => return self.repeat(0, None),
            '+' => return self.repeat(1, None),
            '?' => return self.repeat(0, Some(1)),
            '{' => {
                let (min, max) = counts(&mut self.rest).ok_or(Refused::Unsupported)?;
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

    /// A question mark behind asks for the shortest match, which is found as well as any other.
    fn repeat(&mut self, min: usize, max: Option<usize>) -> Result<(), Refused> {
        let start = self.group.last.ok_or(Refused::Unsupported)?;
        if max.is_some_and(|max| max < min) {
            return Err(Refused::Unsupported);
        }
        self.rest.characters.next_if_eq(&'?');
        if (min, max) == (1, Some(1)) { Ok(()) } else { self.code.repeat(start, min, max) }
    }

    fn finish_group(&mut self) {
        for jump in self.group.jumps.drain(..) {
            self.code.land(jump);
        }
    }

    /// After `(`: a group with a name, Python's spelling included, or without. Flags, look-around and comments are none.
    fn open_group(&mut self) -> Result<(), Refused> {
        let rest = &mut self.rest.characters;
        if rest.next_if_eq(&'?').is_none() || rest.next_if_eq(&':').is_some() {
            return Ok(());
        }
        rest.next_if_eq(&'P');
        rest.next_if_eq(&'<').ok_or(Refused::Unsupported)?;
        let mut name = String::new();
        while let Some(letter) = rest.next_if(|next| next.is_alphanumeric() || *next == '_') {
            name.push(letter);
        }
        let is_name = name.starts_with(|first: char| first.is_alphabetic() || first == '_');
        if is_name && rest.next() == Some('>') && self.names.insert(name) {
            Ok(())
        } else {
            Err(Refused::Unsupported)
        }
    }
}

/// After `{`: `3}`, `3,}` or `3,5}`.
fn counts(rest: &mut Rest<'_>) -> Option<(usize, Option<usize>)> {
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

/// A number; all that are too large are one.
fn count(rest: &mut Rest<'_>) -> Option<usize> {
    let mut number: Option<usize> = None;
    while let Some(digit) = rest.characters.peek().and_then(|next| next.to_digit(10)) {
        rest.characters.next();
        number = Some((number.unwrap_or(0) * 10 + digit as usize).min(INSTRUCTIONS_MAX + 1));
    }
    number
}
