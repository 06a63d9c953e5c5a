//! Runs a program over a text: all its ways at once, character by character, so that no text is read twice.

use crate::base::tool_parameters::pattern::code::{Assertion, Code, Instruction};
use crate::base::tool_parameters::pattern::set::Set;

/// How many visits of a place in a program are one step.
const VISITS_PER_STEP: u64 = 16;

/// A pattern, ready to run.
pub(super) struct Program {
    instructions: Vec<Instruction>,
    sets: Vec<Set>,
    /// Every way passes the start of the text first.
    is_anchored: bool,
}

impl Program {
    pub fn new(code: Code) -> Self {
        let mut program = Self { instructions: code.instructions, sets: code.sets, is_anchored: false };
        let mut places = Places::new(&program);
        // Within a text, a program that starts at its start gets nowhere.
        let ends = places.follow(&program, 0, |assertion| assertion != Assertion::Start);
        program.is_anchored = !ends && places.reached.is_empty();
        program
    }

    /// Whether any part of the text matches; `None` when there are not enough steps left to say. Takes the steps that
    /// it needed.
    pub fn is_match(&self, text: &str, steps_left: &mut u64) -> Option<bool> {
        let mut places = Places::new(self);
        let visits_max = steps_left.saturating_mul(VISITS_PER_STEP);
        let found = self.search(text, &mut places, visits_max);
        let steps = places.visits.div_ceil(VISITS_PER_STEP);
        *steps_left = steps_left.saturating_sub(steps);
        found
    }

    fn search(&self, text: &str, places: &mut Places, visits_max: u64) -> Option<bool> {
        let (mut rest, mut before, mut arrived) = (text.chars(), None, Vec::new());
        loop {
            let after = rest.clone().next();
            places.forget();
            let holds = |assertion| match assertion {
                Assertion::Start => before.is_none(),
                Assertion::End => after.is_none(),
                Assertion::WordEdge => is_word(before) != is_word(after),
                Assertion::NoWordEdge => is_word(before) == is_word(after),
            };
            for place in arrived.drain(..) {
                if places.follow(self, place, holds) {
                    return Some(true);
                }
            }
            if (before.is_none() || !self.is_anchored) && places.follow(self, 0, holds) {
                return Some(true);
            }
            if places.visits > visits_max {
                return None;
            }
            let Some(character) = rest.next() else { return Some(false) };
            if places.reached.is_empty() && self.is_anchored {
                return Some(false);
            }
            places.visits += places.reached.len() as u64;
            arrived.extend(
                places.reached.iter().filter(|place| self.takes(**place, character)).map(|place| place + 1),
            );
            before = Some(character);
        }
    }

    fn takes(&self, place: usize, character: char) -> bool {
        match self.instructions.get(place) {
            Some(Instruction::Character(own)) => *own == character,
            Some(Instruction::Set(number)) => {
                self.sets.get(*number).is_some_and(|set| set.contains(character))
            }
            _ => false,
        }
    }
}

/// The places of a program that can be reached before the next character.
struct Places {
    /// Those that want a character.
    reached: Vec<usize>,
    /// When each place was visited last.
    visited: Vec<u64>,
    now: u64,
    to_visit: Vec<usize>,
    visits: u64,
}

impl Places {
    fn new(program: &Program) -> Self {
        let length = program.instructions.len();
        Self {
            reached: Vec::new(),
            visited: vec![0; length],
            now: 1,
            to_visit: Vec::new(),
            visits: 1 + length as u64 / 16, // to make the room
        }
    }

    fn forget(&mut self) {
        self.now += 1;
        self.reached.clear();
    }

    /// Goes on from a place, as far as it goes without a character; whether that is the end of the program.
    fn follow(&mut self, program: &Program, place: usize, holds: impl Fn(Assertion) -> bool) -> bool {
        self.to_visit.clear();
        self.to_visit.push(place);
        while let Some(place) = self.to_visit.pop() {
            self.visits += 1;
            let (Some(instruction), Some(visited)) =
                (program.instructions.get(place), self.visited.get_mut(place))
            else {
                return true;
            };
            if std::mem::replace(visited, self.now) == self.now {
                continue;
            }
            match *instruction {
                Instruction::Character(_) | Instruction::Set(_) => self.reached.push(place),
                Instruction::Assertion(assertion) if !holds(assertion) => {}
                Instruction::Assertion(_) => self.to_visit.push(place + 1),
                Instruction::Fork(distance) => {
                    self.to_visit.push(place.wrapping_add_signed(distance));
                    self.to_visit.push(place + 1);
                }
                Instruction::Jump(distance) => self.to_visit.push(place.wrapping_add_signed(distance)),
            }
        }
        false
    }
}

fn is_word(character: Option<char>) -> bool {
    character.is_some_and(|character| character.is_ascii_alphanumeric() || character == '_')
}
