//! Character classes: `[…]`.

use crate::base::tool_parameters::pattern::PatternError;
use crate::base::tool_parameters::pattern::escape::{self, Escape};
use crate::base::tool_parameters::pattern::parse::Cursor;
use crate::base::tool_parameters::pattern::set::Set;

/// Parses from after `[` through the closing `]`. Brackets and operators inside are plain characters; an empty class
/// matches nothing.
pub(super) fn parse(rest: &mut Cursor<'_>) -> Result<Set, PatternError> {
    let negated = rest.characters.next_if_eq(&'^').is_some();
    let mut ranges = Vec::new();
    while rest.characters.next_if_eq(&']').is_none() {
        let first = member(rest)?;
        let mut after = rest.characters.clone();
        // A hyphen before the closing bracket is a literal hyphen.
        if after.next() != Some('-') || after.peek() == Some(&']') {
            push(&mut ranges, &first);
            continue;
        }
        rest.characters = after;
        match (first, member(rest)?) {
            (Escape::Character(first), Escape::Character(last)) if first <= last => {
                ranges.push((first.into(), last.into()));
            }
            (Escape::Character(_), Escape::Character(_)) => return Err(PatternError::Unsupported),
            // With a class escape at either end there is no range, and the hyphen is a literal: `[\w-.]`.
            (first, last) => {
                push(&mut ranges, &first);
                push(&mut ranges, &Escape::Character('-'));
                push(&mut ranges, &last);
            }
        }
    }
    let set = Set::of(ranges);
    Ok(if negated { set.negated() } else { set })
}

fn member(rest: &mut Cursor<'_>) -> Result<Escape, PatternError> {
    match rest.characters.next() {
        Some('\\') => escape::within(rest),
        Some(character) => Ok(Escape::Character(character)),
        None => Err(PatternError::Unsupported),
    }
}

fn push(ranges: &mut Vec<(u32, u32)>, member: &Escape) {
    match member {
        Escape::Character(character) => ranges.push(((*character).into(), (*character).into())),
        Escape::Set(set) => ranges.extend_from_slice(set.ranges()),
        Escape::Assertion(_) => {} // brackets contain no assertions
    }
}
