//! The program that a pattern compiles to, and the construction of its parts.
//!
//! Jump distances are relative, so that a part can be repeated by copying its instructions.

use crate::base::tool_parameters::pattern::PatternError;
use crate::base::tool_parameters::pattern::set::Set;

/// Longest program. Repetitions are unrolled, so this bounds their counts.
pub(super) const INSTRUCTIONS_MAX: usize = 16 * 1024;

/// One instruction of a program. A text matches when execution reaches the end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Instruction {
    /// Consumes this character, then continues.
    Character(char),
    /// Consumes a character of the set with this index, then continues.
    Set(usize),
    /// Continues if the assertion holds here.
    Assertion(Assertion),
    /// Continues both here and at this distance.
    Fork(isize),
    /// Continues at this distance.
    Jump(isize),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Assertion {
    Start,
    End,
    WordBoundary,
    NotWordBoundary,
}

/// A program under construction.
#[derive(Default)]
pub(super) struct Code {
    pub instructions: Vec<Instruction>,
    pub sets: Vec<Set>,
}

impl Code {
    pub fn len(&self) -> usize {
        self.instructions.len()
    }

    pub fn push(&mut self, instruction: Instruction) -> Result<(), PatternError> {
        self.check_capacity(1)?;
        self.instructions.push(instruction);
        Ok(())
    }

    pub fn push_set(&mut self, set: Set) -> Result<(), PatternError> {
        self.push(Instruction::Set(self.sets.len()))?;
        self.sets.push(set);
        Ok(())
    }

    /// Makes the code from `start` one alternative of several, and returns the index of its jump to the common end.
    pub fn alternative(&mut self, start: usize) -> Result<usize, PatternError> {
        self.check_capacity(2)?;
        let length = self.len() - start;
        self.instructions.insert(start, Instruction::Fork(signed(length + 2)));
        self.instructions.push(Instruction::Jump(0));
        Ok(self.len() - 1)
    }

    /// Sets the target of a jump to the next instruction.
    pub fn patch(&mut self, jump: usize) {
        let distance = signed(self.len() - jump);
        if let Some(instruction) = self.instructions.get_mut(jump) {
            *instruction = Instruction::Jump(distance);
        }
    }

    /// Repeats the code from `start` `min` to `max` times.
    pub fn repeat(&mut self, start: usize, min: usize, max: Option<usize>) -> Result<(), PatternError> {
        let body = self.instructions.split_off(start);
        let length = body.len();
        if length == 0 || max == Some(0) {
            return Ok(());
        }
        let optional = max.map_or(0, |max| max - min);
        let required = length.saturating_mul(min);
        self.check_capacity(required.saturating_add((length + 1).saturating_mul(optional)))?;
        for _ in 0..min {
            self.instructions.extend_from_slice(&body);
        }
        for left in (1..=optional).rev() {
            self.instructions.push(Instruction::Fork(signed((length + 1) * left)));
            self.instructions.extend_from_slice(&body);
        }
        match (min, max) {
            (0, None) => {
                self.check_capacity(length + 2)?;
                self.instructions.push(Instruction::Fork(signed(length + 2)));
                self.instructions.extend_from_slice(&body);
                self.instructions.push(Instruction::Jump(-signed(length + 1)));
            }
            (_, None) => self.push(Instruction::Fork(-signed(length)))?,
            (_, Some(_)) => {}
        }
        Ok(())
    }

    fn check_capacity(&self, count: usize) -> Result<(), PatternError> {
        if count > INSTRUCTIONS_MAX - self.len() { Err(PatternError::TooLarge) } else { Ok(()) }
    }
}

/// A distance within a program always fits.
fn signed(distance: usize) -> isize {
    distance as isize
}
