//! What follows a backslash.

use super::translate::Rest;

/// What a backslash made of what follows it.
pub(super) enum Escape {
    Character(char),
    Set(Set),
    Assertion(&'static str),
}

/// A set of characters.
pub(super) struct Set {
    /// What is in it, as it stands within brackets.
    members: String,
    negated: bool,
}

impl Set {
    /// Writes it where no brackets are around.
    pub fn push_alone(&self, out: &mut String) {
        out.push_str(if self.negated { "[^" } else { "[" });
        out.push_str(&self.members);
        out.push(']');
    }

    /// Writes it within brackets.
    pub fn push_within(&self, out: &mut String) {
        if self.negated {
            self.push_alone(out);
        } else {
            out.push_str(&self.members);
        }
    }
}

// All of them are ASCII in ECMA-262 but the white space.
const DIGITS: &str = "0-9";
const WORD: &str = "A-Za-z0-9_";
const SPACE: &str = r"\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}";

/// After a backslash outside of brackets.
pub(super) fn outside(rest: &mut Rest<'_>) -> Option<Escape> {
    let assertion = match rest.peek()? {
        // Of ASCII, as `\w` is.
        'b' => r"(?-u:\b)",
        'B' => r"(?-u:\B)",
        // Not of ECMA-262, but in wide use and never anything else.
        'A' => r"\A",
        'z' => r"\z",
        _ => return either(rest),
    };
    rest.next();
    Some(Escape::Assertion(assertion))
}

/// After a backslash within brackets.
pub(super) fn within(rest: &mut Rest<'_>) -> Option<Escape> {
    match rest.next_if_eq(&'b') {
        Some(_) => Some(Escape::Character('\u{8}')),
        None => either(rest),
    }
}

/// What means the same within brackets and without.
fn either(rest: &mut Rest<'_>) -> Option<Escape> {
    let character = match rest.next()? {
        letter @ ('d' | 'D' | 'w' | 'W' | 's' | 'S') => {
            let members = match letter.to_ascii_lowercase() {
                'd' => DIGITS,
                'w' => WORD,
                _ => SPACE,
            };
            return Some(Escape::Set(Set {
                members: members.to_owned(),
                negated: letter.is_ascii_uppercase(),
            }));
        }
        letter @ ('p' | 'P') => {
            let members = format!("\\p{{{}}}", property(rest)?);
            return Some(Escape::Set(Set { members, negated: letter == 'P' }));
        }
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        'c' => char::from(u8::try_from(rest.next_if(char::is_ascii_alphabetic)?).ok()? % 32),
        '0' if !rest.peek().is_some_and(char::is_ascii_digit) => '\0',
        'x' if rest.peek() == Some(&'{') => char::from_u32(braced(rest)?)?,
        'x' => char::from_u32(digits(rest, 2)?)?,
        'u' => unicode(rest)?,
        itself if !itself.is_alphanumeric() => itself,
        _ => return None,
    };
    Some(Escape::Character(character))
}

/// After `\u`. Half of a pair of surrogates is no character, so a text never has it.
fn unicode(rest: &mut Rest<'_>) -> Option<char> {
    if rest.peek() == Some(&'{') {
        return char::from_u32(braced(rest)?);
    }
    let first = digits(rest, 4)?;
    if !(0xD800..0xDC00).contains(&first) {
        return char::from_u32(first);
    }
    rest.next_if_eq(&'\\')?;
    rest.next_if_eq(&'u')?;
    let second = digits(rest, 4)?;
    let low = second.checked_sub(0xDC00).filter(|low| *low < 0x400)?;
    char::from_u32(0x1_0000 + ((first - 0xD800) << 10) + low)
}

fn braced(rest: &mut Rest<'_>) -> Option<u32> {
    rest.next_if_eq(&'{')?;
    let mut number = hex(rest)?;
    while rest.next_if_eq(&'}').is_none() {
        number = number.checked_mul(16)?.checked_add(hex(rest)?)?;
    }
    Some(number)
}

fn digits(rest: &mut Rest<'_>, count: usize) -> Option<u32> {
    (0..count).try_fold(0, |number, _| Some(number * 16 + hex(rest)?))
}

fn hex(rest: &mut Rest<'_>) -> Option<u32> {
    rest.next()?.to_digit(16)
}

/// After `\p`: `{Letter}`, `{Script=Greek}`; `L` alone is Perl's. Only the properties that ECMA-262 has: `regex` may
/// know others or not, by how it was built.
fn property(rest: &mut Rest<'_>) -> Option<String> {
    if let Some(letter) = rest.next_if(char::is_ascii_alphabetic) {
        return Some(letter.to_string());
    }
    rest.next_if_eq(&'{')?;
    let mut name = String::new();
    loop {
        match rest.next()? {
            '}' => break,
            letter @ ('A'..='Z' | 'a'..='z' | '0'..='9' | '_' | '=') => name.push(letter),
            _ => return None,
        }
    }
    let of = name.split_once('=').map(|(of, _)| of.replace('_', "").to_ascii_lowercase());
    match of.as_deref() {
        None | Some("gc" | "generalcategory" | "sc" | "script" | "scx" | "scriptextensions") => Some(name),
        Some(_) => None,
    }
}
