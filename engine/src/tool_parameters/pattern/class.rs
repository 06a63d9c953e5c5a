//! What stands in square brackets.

use super::escape::{self, Escape};
use super::translate::{ANY, Rest, push_literal};

/// Translates what follows `[`, up to its `]`. Brackets and operators within are plain characters in ECMA-262 (they
/// are not in `regex`), and empty brackets are the set of nothing.
pub(super) fn translate(rest: &mut Rest<'_>, out: &mut String) -> Option<()> {
    let negated = rest.next_if_eq(&'^').is_some();
    if rest.next_if_eq(&']').is_some() {
        out.push_str(if negated { ANY } else { r"[^\x00-\x{10FFFF}]" });
        return Some(());
    }
    out.push_str(if negated { "[^" } else { "[" });
    while rest.next_if_eq(&']').is_none() {
        let first = member(rest)?;
        let mut after = rest.clone();
        // A hyphen before the last bracket is one.
        if after.next() != Some('-') || after.peek() == Some(&']') {
            push(out, &first);
            continue;
        }
        *rest = after;
        match (first, member(rest)?) {
            (Escape::Character(first), Escape::Character(last)) => {
                push_literal(out, first);
                out.push('-');
                push_literal(out, last);
            }
            // A range with a set at an end is none, and its hyphen one more character: `[\w-.]`.
            (first, last) => {
                push(out, &first);
                push_literal(out, '-');
                push(out, &last);
            }
        }
    }
    out.push(']');
    Some(())
}

fn member(rest: &mut Rest<'_>) -> Option<Escape> {
    match rest.next()? {
        '\\' => escape::within(rest),
        character => Some(Escape::Character(character)),
    }
}

fn push(out: &mut String, member: &Escape) {
    match member {
        Escape::Character(character) => push_literal(out, *character),
        Escape::Set(set) => set.push_within(out),
        Escape::Assertion(_) => {} // there are none within brackets
    }
}
