//! From ECMA-262's regular expressions to those of `regex`. By hand, because a full parser in between drags every
//! Unicode table of that library into the Worker.

use std::iter::Peekable;
use std::str::Chars;

use super::class;
use super::escape::{self, Escape};

/// What is left of the pattern.
pub(super) type Rest<'a> = Peekable<Chars<'a>>;

/// Any character at all; `.` is none at the end of a line.
pub(super) const ANY: &str = r"[\x00-\x{10FFFF}]";

/// Writes the pattern for `regex`; `None` when it is none, or needs what takes more than linear time. What both
/// languages understand the same, brackets that are not closed included, is left for `regex` to judge.
///
/// It takes what the flag `u` allows and what a pattern without that flag is commonly written with, such as
/// needless backslashes. A full stop keeps the meaning it has in `regex`, anything but `\n`: without three rarer ends
/// of lines a repetition of it compiles to a fraction.
pub(super) fn translate(pattern: &str) -> Option<String> {
    let mut out = String::with_capacity(pattern.len() + pattern.len() / 4);
    let mut rest = pattern.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\\' => match escape::outside(&mut rest)? {
                Escape::Character(character) => push_literal(&mut out, character),
                Escape::Set(set) => set.push_alone(&mut out),
                Escape::Assertion(assertion) => out.push_str(assertion),
            },
            '[' => class::translate(&mut rest, &mut out)?,
            '(' => group(&mut rest, &mut out)?,
            '{' => repetition(&mut rest, &mut out)?,
            '^' | '$' | '.' | '|' | ')' | '*' | '+' | '?' => out.push(character),
            literal => push_literal(&mut out, literal),
        }
    }
    Some(out)
}

/// Writes a character that stands for itself, within brackets and without.
pub(super) fn push_literal(out: &mut String, character: char) {
    if r"\.+*?()|[]{}^$#&-~".contains(character) {
        out.push('\\');
    }
    out.push(character);
}

/// After `(`: a group with a name, Python's spelling included, or without. Flags, look-around and comments are none.
fn group(rest: &mut Rest<'_>, out: &mut String) -> Option<()> {
    out.push('(');
    if rest.next_if_eq(&'?').is_none() {
        return Some(());
    }
    out.push('?');
    if rest.next_if_eq(&':').is_some() {
        out.push(':');
        return Some(());
    }
    rest.next_if_eq(&'P');
    rest.next_if_eq(&'<')?;
    out.push('<');
    while let Some(letter) = rest.next_if(|next| next.is_alphanumeric() || *next == '_') {
        out.push(letter);
    }
    rest.next_if_eq(&'>')?;
    out.push('>');
    Some(())
}

/// After `{`: `3}`, `3,}` or `3,5}`. `regex` also knows `{,5}`, which ECMA-262 does not.
fn repetition(rest: &mut Rest<'_>, out: &mut String) -> Option<()> {
    out.push('{');
    rest.peek()?.is_ascii_digit().then_some(())?;
    let mut commas = 0;
    loop {
        let next = rest.next()?;
        out.push(next);
        match next {
            '}' => return Some(()),
            ',' if commas == 0 => commas += 1,
            '0'..='9' => {}
            _ => return None,
        }
    }
}
