//! The program that a pattern becomes, and how its parts are put together.
//!
//! Ways lead to places relative to where they stand, so that a part can be repeated by copying it.

use crate::base::tool_parameters::pattern::Refused;
use crate::base::tool_parameters::pattern::set::Set;

/// Longest program. A repetition is written out, so this is what bounds its counts.
pub(super) const INSTRUCTIONS_MAX: usize = 16 * 1024;

/// What stands at one place of a program. A match is to arrive at its end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Instruction {
    /// This character, then the next place.
    Character(char),
    /// A character of the set with this number, then the next place.
    Set(usize),
    /// The next place, if this is so here.
    Assertion(Assertion),
    /// The next place, and the one this far away.
    Fork(isize),
    /// The place this far away.
    Jump(isize),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Assertion {
    Start,
    End,
    WordEdge,
    NoWordEdge,
}

/// A program in the making.
#[derive(Default)]
pub(super) struct Code {
    pub instructions: Vec<Instruction>,
    pub sets: Vec<Set>,
}

impl Code {
    pub fn len(&self) -> usize {
        self.instructions.len()
    }

    pub fn push(&mut self, instruction: Instruction) -> Result<(), Refused> {
        self.make_room(1)?;
        self.instructions.push(instruction);
        Ok(())
    }

    pub fn push_set(&mut self, set: Set) -> Result<(), Refused> {
        self.push(Instruction::Set(self.sets.len()))?;
        self.sets.push(set);
        Ok(())
    }

    /// Makes what starts at `start` one of several ways, and gives where its jump to their common end stands.
    pub fn alternative(&mut self, start: usize) -> Result<usize, Refused> {
        self.make_room(2)?;
        let length = self.len() - start;
        self.instructions.insert(start, Instruction::Fork(signed(length + 2)));
        self.instructions.push(Instruction::Jump(0));
        Ok(self.len() - 1)
    }

    /// Lets a jump lead to what comes next.
    pub fn land(&mut self, jump: usize) {
        let distance = signed(self.len() - jump);
        if let Some(instruction) = self.instructions.get_mut(jump) {
            *instruction = Instruction::Jump(distance);
        }
    }

    /// Repeats what starts at `start` as often as `min` to `max` says.
    pub fn repeat(&mut self, start: usize, min: usize, max: Option<usize>) -> Result<(), Refused> {
        let body = self.instructions.split_off(start);
        let length = body.len();
        if length == 0 || max == Some(0) {
            return Ok(());
        }
        let optional = max.map_or(0, |max| max - min);
        let required = length.saturating_mul(min);
        self.make_room(required.saturating_add((length + 1).saturating_mul(optional)))?;
        for _ in 0..min {
            self.instructions.extend_from_slice(&body);
        }
        for left in (1..=optional).rev() {
            self.instructions.push(Instruction::Fork(signed((length + 1) * left)));
            self.instructions.extend_from_slice(&body);
        }
        match (min, max) {
            (0, None) => {
                self.make_room(length + 2)?;
                self.instructions.push(Instruction::Fork(signed(length + 2)));
                self.instructions.extend_from_slice(&body);
                self.instructions.push(Instruction::Jump(-signed(length + 1)));
            }
            (_, None) => self.push(Instruction::Fork(-signed(length)))?,
            (_, Some(_)) => {}
        }
        Ok(())
    }

    fn make_room(&self, count: usize) -> Result<(), Refused> {
        if count > INSTRUCTIONS_MAX - self.len() { Err(Refused::TooLarge) } else { Ok(()) }
    }
}

/// Of a distance within a program, which fits many times.
fn signed(distance: usize) -> isize {
    distance as isize
}
