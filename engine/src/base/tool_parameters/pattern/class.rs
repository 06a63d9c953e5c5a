//! What stands in square brackets.

use crate::base::tool_parameters::pattern::Refused;
use crate::base::tool_parameters::pattern::escape::{self, Escape};
use crate::base::tool_parameters::pattern::parse::Rest;
use crate::base::tool_parameters::pattern::set::Set;

/// Reads what follows `[`, up to its `]`. Brackets and operators within are plain characters, and empty brackets are
/// the set of nothing.
pub(super) fn parse(rest: &mut Rest<'_>) -> Result<Set, Refused> {
    let negated = rest.characters.next_if_eq(&'^').is_some();
    let mut ranges = Vec::new();
    while rest.characters.next_if_eq(&']').is_none() {
        let first = member(rest)?;
        let mut after = rest.characters.clone();
        // A hyphen before the last bracket is one.
        if after.next() != Some('-') || after.peek() == Some(&']') {
            push(&mut ranges, &first);
            continue;
        }
        rest.characters = after;
        match (first, member(rest)?) {
            (Escape::Character(first), Escape::Character(last)) if first <= last => {
                ranges.push((first.into(), last.into()));
            }
            (Escape::Character(_), Escape::Character(_)) => return Err(Refused::Unsupported),
            // A range with a set at an end is none, and its hyphen one more character: `[\w-.]`.
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

fn member(rest: &mut Rest<'_>) -> Result<Escape, Refused> {
    match rest.characters.next() {
        Some('\\') => escape::within(rest),
        Some(character) => Ok(Escape::Character(character)),
        None => Err(Refused::Unsupported),
    }
}

fn push(ranges: &mut Vec<(u32, u32)>, member: &Escape) {
    match member {
        Escape::Character(character) => ranges.push(((*character).into(), (*character).into())),
        Escape::Set(set) => ranges.extend_from_slice(set.ranges()),
        Escape::Assertion(_) => {} // there are none within brackets
    }
}
