//! Escape sequences.

use std::iter::Peekable;
use std::str::Chars;

use crate::base::tool_parameters::pattern::code::Assertion;
use crate::base::tool_parameters::pattern::parse::Cursor;
use crate::base::tool_parameters::pattern::set::Set;
use crate::base::tool_parameters::pattern::{PatternError, property};

/// Longest property name, including the value after `=`; existing ones have at most about 40 characters.
const PROPERTY_NAME_CHARS_MAX: usize = 64;

type Characters<'a> = Peekable<Chars<'a>>;

/// A parsed escape sequence.
pub(super) enum Escape {
    Character(char),
    Set(Set),
    Assertion(Assertion),
}

// In ECMA-262 all of them are ASCII except white space.
const DIGITS: &[(char, char)] = &[('0', '9')];
const WORD: &[(char, char)] = &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')];
const SPACE: &[(char, char)] = &[
    ('\t', '\r'),
    (' ', ' '),
    ('\u{a0}', '\u{a0}'),
    ('\u{1680}', '\u{1680}'),
    ('\u{2000}', '\u{200a}'),
    ('\u{2028}', '\u{2029}'),
    ('\u{202f}', '\u{202f}'),
    ('\u{205f}', '\u{205f}'),
    ('\u{3000}', '\u{3000}'),
    ('\u{feff}', '\u{feff}'),
];

/// After a backslash outside brackets.
pub(super) fn outside(rest: &mut Cursor<'_>) -> Result<Escape, PatternError> {
    let assertion = match rest.characters.peek() {
        // ASCII word boundaries, consistent with `\w`.
        Some('b') => Assertion::WordBoundary,
        Some('B') => Assertion::NotWordBoundary,
        // Not in ECMA-262, but in wide use and without another meaning.
        Some('A') => Assertion::Start,
        Some('z') => Assertion::End,
        _ => return either(rest),
    };
    rest.characters.next();
    Ok(Escape::Assertion(assertion))
}

/// After a backslash inside brackets.
pub(super) fn within(rest: &mut Cursor<'_>) -> Result<Escape, PatternError> {
    match rest.characters.next_if_eq(&'b') {
        Some(_) => Ok(Escape::Character('\u{8}')),
        None => either(rest),
    }
}

/// Escapes with the same meaning inside and outside brackets.
fn either(rest: &mut Cursor<'_>) -> Result<Escape, PatternError> {
    if let Some(letter) =
        rest.characters.next_if(|next| matches!(next, 'd' | 'D' | 'w' | 'W' | 's' | 'S' | 'p' | 'P'))
    {
        let set = match letter.to_ascii_lowercase() {
            'd' => set(DIGITS),
            'w' => set(WORD),
            's' => set(SPACE),
            _ => {
                let name = property_name(&mut rest.characters).ok_or(PatternError::Unsupported)?;
                rest.properties_left =
                    rest.properties_left.checked_sub(1).ok_or(PatternError::TooManyProperties)?;
                property::named(&name).ok_or(PatternError::Property(name))?
            }
        };
        return Ok(Escape::Set(if letter.is_ascii_uppercase() { set.negated() } else { set }));
    }
    character(&mut rest.characters).map(Escape::Character).ok_or(PatternError::Unsupported)
}

fn set(ranges: &[(char, char)]) -> Set {
    Set::of(ranges.iter().map(|(first, last)| (u32::from(*first), u32::from(*last))).collect())
}

fn character(rest: &mut Characters<'_>) -> Option<char> {
    Some(match rest.next()? {
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
    })
}

/// After `\u`. A lone surrogate is not a character, so no text contains it.
fn unicode(rest: &mut Characters<'_>) -> Option<char> {
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

fn braced(rest: &mut Characters<'_>) -> Option<u32> {
    rest.next_if_eq(&'{')?;
    let mut number = hex(rest)?;
    while rest.next_if_eq(&'}').is_none() {
        number = number.checked_mul(16)?.checked_add(hex(rest)?)?;
    }
    Some(number)
}

fn digits(rest: &mut Characters<'_>, count: usize) -> Option<u32> {
    (0..count).try_fold(0, |number, _| Some(number * 16 + hex(rest)?))
}

fn hex(rest: &mut Characters<'_>) -> Option<u32> {
    rest.next()?.to_digit(16)
}

/// After `\p`: `{Letter}`, `{Script=Greek}`; the short form `\pL` comes from Perl.
fn property_name(rest: &mut Characters<'_>) -> Option<String> {
    if let Some(letter) = rest.next_if(char::is_ascii_alphabetic) {
        return Some(letter.to_string());
    }
    rest.next_if_eq(&'{')?;
    let mut name = String::new();
    while let Some(letter) = rest.next_if(|next| next.is_ascii_alphanumeric() || matches!(next, '_' | '=')) {
        name.push(letter);
    }
    rest.next_if_eq(&'}')?;
    (1..=PROPERTY_NAME_CHARS_MAX).contains(&name.len()).then_some(name)
}
