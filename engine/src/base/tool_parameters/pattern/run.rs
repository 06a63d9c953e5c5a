//! Runs a program over a text: all active states at once, character by character, so that no text is read twice.

use crate::base::tool_parameters::pattern::code::{Assertion, Code, Instruction};
use crate::base::tool_parameters::pattern::set::Set;

/// Visits of an instruction per step.
const VISITS_PER_STEP: u64 = 16;

pub(super) struct Program {
    instructions: Vec<Instruction>,
    sets: Vec<Set>,
    /// Whether every match must start at the start of the text.
    is_anchored: bool,
}

impl Program {
    pub fn new(code: Code) -> Self {
        let mut program = Self { instructions: code.instructions, sets: code.sets, is_anchored: false };
        let mut states = ActiveStates::new(&program);
        // An anchored program makes no progress anywhere but at the start of the text.
        let ends = states.follow(&program, 0, |assertion| assertion != Assertion::Start);
        program.is_anchored = !ends && states.consuming.is_empty();
        program
    }

    /// What it took to compile it, in steps.
    pub fn steps_to_compile(&self) -> u64 {
        (self.instructions.len() as u64).div_ceil(VISITS_PER_STEP)
    }

    /// Whether any part of the text matches; `None` when the steps run out. Subtracts the steps it needs.
    pub fn is_match(&self, text: &str, steps_left: &mut u64) -> Option<bool> {
        let mut states = ActiveStates::new(self);
        let visits_max = steps_left.saturating_mul(VISITS_PER_STEP);
        let found = self.search(text, &mut states, visits_max);
        let steps = states.visits.div_ceil(VISITS_PER_STEP);
        *steps_left = steps_left.saturating_sub(steps);
        found
    }

    fn search(&self, text: &str, states: &mut ActiveStates, visits_max: u64) -> Option<bool> {
        let (mut rest, mut before, mut entered) = (text.chars(), None, Vec::new());
        loop {
            let after = rest.clone().next();
            states.next_generation();
            let holds = |assertion| match assertion {
                Assertion::Start => before.is_none(),
                Assertion::End => after.is_none(),
                Assertion::WordBoundary => is_word(before) != is_word(after),
                Assertion::NotWordBoundary => is_word(before) == is_word(after),
            };
            for state in entered.drain(..) {
                if states.follow(self, state, holds) {
                    return Some(true);
                }
            }
            if (before.is_none() || !self.is_anchored) && states.follow(self, 0, holds) {
                return Some(true);
            }
            if states.visits > visits_max {
                return None;
            }
            let Some(character) = rest.next() else { return Some(false) };
            if states.consuming.is_empty() && self.is_anchored {
                return Some(false);
            }
            states.visits += states.consuming.len() as u64;
            entered.extend(
                states.consuming.iter().filter(|state| self.takes(**state, character)).map(|state| state + 1),
            );
            before = Some(character);
        }
    }

    fn takes(&self, state: usize, character: char) -> bool {
        match self.instructions.get(state) {
            Some(Instruction::Character(own)) => *own == character,
            Some(Instruction::Set(number)) => {
                self.sets.get(*number).is_some_and(|set| set.contains(character))
            }
            _ => false,
        }
    }
}

/// The instructions that can be consuming before the next character.
struct ActiveStates {
    /// Those that consume a character.
    consuming: Vec<usize>,
    /// The generation in which each instruction was last visited.
    visited: Vec<u64>,
    generation: u64,
    to_visit: Vec<usize>,
    visits: u64,
}

impl ActiveStates {
    fn new(program: &Program) -> Self {
        let length = program.instructions.len();
        Self {
            consuming: Vec::new(),
            visited: vec![0; length],
            generation: 1,
            to_visit: Vec::new(),
            visits: 1 + length as u64 / 16, // the cost of this allocation
        }
    }

    fn next_generation(&mut self) {
        self.generation += 1;
        self.consuming.clear();
    }

    /// Follows the program from an instruction until characters are needed; true when it reaches the end.
    fn follow(&mut self, program: &Program, state: usize, holds: impl Fn(Assertion) -> bool) -> bool {
        self.to_visit.clear();
        self.to_visit.push(state);
        while let Some(state) = self.to_visit.pop() {
            self.visits += 1;
            let (Some(instruction), Some(visited)) =
                (program.instructions.get(state), self.visited.get_mut(state))
            else {
                return true;
            };
            if std::mem::replace(visited, self.generation) == self.generation {
                continue;
            }
            match *instruction {
                Instruction::Character(_) | Instruction::Set(_) => self.consuming.push(state),
                Instruction::Assertion(assertion) if !holds(assertion) => {}
                Instruction::Assertion(_) => self.to_visit.push(state + 1),
                Instruction::Fork(distance) => {
                    self.to_visit.push(state.wrapping_add_signed(distance));
                    self.to_visit.push(state + 1);
                }
                Instruction::Jump(distance) => self.to_visit.push(state.wrapping_add_signed(distance)),
            }
        }
        false
    }
}

fn is_word(character: Option<char>) -> bool {
    character.is_some_and(|character| character.is_ascii_alphanumeric() || character == '_')
}
