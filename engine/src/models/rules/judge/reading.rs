//! Reads a text into words, values and punctuation, in one pass.
mod codes;
mod moments;
mod numbers;
mod otherwise;

pub(super) use numbers::shifted;

use std::collections::BTreeSet;
use std::ops::Range;

use super::values::Value;
use super::vocabulary::spoken_words;
use crate::base::look_alikes::latin_letters;
use crate::base::text::{casefold, plain_marks};
use crate::models::rules::words::is_spaceless;

/// A part of a text.
#[derive(Debug, Clone)]
pub(super) enum Item {
    /// The place of a case-folded word in [`Text::folded`].
    Word(Range<u32>),
    /// Boxed, because most parts are words.
    Value(Box<Value>),
    /// Punctuation, or the end of a line.
    Sign(char),
}

/// A text that was read.
#[derive(Debug, Clone, Default)]
pub(super) struct Text {
    folded: String,
    pub(super) items: Vec<Item>,
    /// The words that are parts of values, such as `dollars`.
    pub(super) hidden: BTreeSet<String>,
    /// What an item may mean as well, such as 9:55 of the five in "five to ten"; by the places of the items.
    others: Vec<(u32, Value)>,
    /// The places of values that may not be meant so, such as the five in "minus five".
    doubtful: Vec<u32>,
    /// The first token of each item, and then all tokens, case-folded, each after a space.
    starts: Vec<u32>,
    plain: String,
}

impl Text {
    /// Reads a text.
    pub(super) fn read(text: &str) -> Self {
        let text = plain_marks(text);
        let text = &*latin_letters(&text);
        let tokens = tokens(text);
        let mut reader = Reader { text, tokens, folded: Vec::new() };
        reader.folded = reader.tokens.iter().map(|token| reader.fold(token)).collect();
        let mut out = Self::default();
        let mut at = 0;
        while let Some(token) = reader.tokens.get(at) {
            let item = offset(out.items.len());
            out.starts.push(offset(out.plain.len()));
            if let Some((value, next)) = reader.value(at) {
                let next = next.max(at + 1);
                if reader.is_doubtful(at, next) {
                    out.doubtful.push(item);
                }
                let words = (at..next).map(|place| reader.word(place)).chain(spoken_words(&value).split(' '));
                out.hidden.extend(words.map(str::to_owned));
                out.items.push(Item::Value(Box::new(value)));
                for place in at..next {
                    out.push_token(&reader, place, item, true);
                }
                at = next;
                continue;
            }
            match token.kind {
                Kind::Sign(sign) => out.items.push(Item::Sign(sign)),
                Kind::Word => out.push_word(reader.word(at)),
                // Figures that nobody understands may be any value.
                Kind::Figures => out.items.push(Item::Value(Box::new(Value::Unclear))),
            }
            out.push_token(&reader, at, item, false);
            at += 1;
        }
        out
    }

    fn push_token(&mut self, reader: &Reader<'_>, place: usize, item: u32, in_value: bool) {
        self.plain.push(' ');
        match reader.word(place) {
            "" => self.plain.push_str(reader.raw(place)),
            word => self.plain.push_str(word),
        }
        self.others.extend(reader.otherwise(place, in_value).into_iter().map(|value| (item, value)));
    }

    /// What the item may mean as well.
    pub(super) fn others(&self, at: usize) -> impl Iterator<Item = &Value> {
        let item = offset(at);
        let from = self.others.partition_point(|(place, _)| *place < item);
        let others = self.others.get(from..).unwrap_or_default();
        others.iter().take_while(move |(place, _)| *place == item).map(|(_, value)| value)
    }

    /// Whether the value there may not be meant.
    pub(super) fn is_doubtful(&self, at: usize) -> bool {
        self.doubtful.binary_search(&offset(at)).is_ok()
    }

    /// Whether a value is doubtful.
    pub(super) const fn has_doubtful(&self) -> bool {
        !self.doubtful.is_empty()
    }

    /// All tokens, each after a space.
    pub(super) fn plain(&self) -> &str {
        &self.plain
    }

    /// Whether the tokens from the item on are these.
    pub(super) fn is_plainly(&self, at: usize, tokens: &str) -> bool {
        let start = self.starts.get(at).map_or(usize::MAX, |start| *start as usize);
        let rest = self.plain.get(start..).and_then(|plain| plain.strip_prefix(tokens));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    }

    fn push_word(&mut self, word: &str) {
        let start = offset(self.folded.len());
        self.folded.push_str(word);
        self.items.push(Item::Word(start..offset(self.folded.len())));
    }

    /// The word at this place; `None` for anything else.
    pub(super) fn word(&self, at: usize) -> Option<&str> {
        match self.items.get(at)? {
            Item::Word(range) => self.folded.get(range.start as usize..range.end as usize),
            _ => None,
        }
    }

    /// The value at this place.
    pub(super) fn value(&self, at: usize) -> Option<&Value> {
        match self.items.get(at)? {
            Item::Value(value) => Some(value),
            _ => None,
        }
    }

    /// Whether a sentence ends there.
    pub(super) fn ends_sentence(&self, at: usize) -> bool {
        self.sign(at).is_some_and(|sign| matches!(sign, '.' | '?' | '!' | ';' | '\n'))
    }

    /// The punctuation at this place.
    pub(super) fn sign(&self, at: usize) -> Option<char> {
        match self.items.get(at)? {
            Item::Sign(sign) => Some(*sign),
            _ => None,
        }
    }
}

fn offset(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Word,
    /// Digits, with `.`, `,` or `:` between them.
    Figures,
    Sign(char),
}

#[derive(Debug, Clone, Copy)]
struct Token {
    kind: Kind,
    start: usize,
    end: usize,
    /// Nothing stands between it and the token before.
    glued: bool,
}

fn tokens(text: &str) -> Vec<Token> {
    let mut out: Vec<Token> = Vec::new();
    let mut chars = text.char_indices().peekable();
    let mut before_end = usize::MAX;
    while let Some((start, char)) = chars.next() {
        if char.is_whitespace() && char != '\n' {
            continue;
        }
        let mut end = start + char.len_utf8();
        let kind = if char.is_ascii_digit() {
            while let Some(&(place, next)) = chars.peek() {
                let joins = matches!(next, '.' | ',' | ':')
                    && text.as_bytes().get(place + 1).is_some_and(u8::is_ascii_digit);
                if !(next.is_ascii_digit() || joins) {
                    break;
                }
                end = place + next.len_utf8();
                chars.next();
            }
            Kind::Figures
        } else if char.is_alphanumeric() {
            while let Some(&(place, next)) = chars.peek() {
                let letter = next.is_alphanumeric() && !next.is_ascii_digit()
                    || ('\u{300}'..='\u{36f}').contains(&next);
                let after = || text.get(place + next.len_utf8()..).and_then(|rest| rest.chars().next());
                let joins = next == '\'' && after().is_some_and(char::is_alphabetic);
                if is_spaceless(char) || is_spaceless(next) || !(letter || joins) {
                    break;
                }
                end = place + next.len_utf8();
                chars.next();
            }
            Kind::Word
        } else {
            Kind::Sign(char)
        };
        out.push(Token { kind, start, end, glued: before_end == start });
        before_end = end;
    }
    out
}

struct Reader<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    /// The case-folded words; empty for anything else.
    folded: Vec<String>,
}

/// A number with the place after it.
struct Found {
    number: String,
    next: usize,
    whole: Option<u64>,
}

impl Reader<'_> {
    fn raw(&self, at: usize) -> &str {
        self.tokens.get(at).and_then(|token| self.text.get(token.start..token.end)).unwrap_or_default()
    }

    fn fold(&self, token: &Token) -> String {
        match token.kind {
            Kind::Word => casefold(self.text.get(token.start..token.end).unwrap_or_default()),
            _ => String::new(),
        }
    }

    /// The case-folded word; empty for anything else.
    fn word(&self, at: usize) -> &str {
        self.folded.get(at).map_or("", String::as_str)
    }

    /// The digits; empty unless there is nothing between them.
    fn figures(&self, at: usize) -> &str {
        let raw = self.raw(at);
        if raw.bytes().all(|byte| byte.is_ascii_digit()) { raw } else { "" }
    }

    fn sign(&self, at: usize) -> Option<char> {
        match self.tokens.get(at)?.kind {
            Kind::Sign(sign) => Some(sign),
            _ => None,
        }
    }

    fn glued(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|token| token.glued)
    }

    fn value(&self, at: usize) -> Option<(Value, usize)> {
        self.email(at)
            .or_else(|| self.written_date(at))
            .or_else(|| self.code(at))
            .or_else(|| self.prefixed_money(at))
            .or_else(|| self.month_first(at))
            .or_else(|| self.named_time(at))
            .or_else(|| self.clock_phrase(at, true))
            .or_else(|| self.telephone(at))
            .or_else(|| self.ordinal(at))
            .or_else(|| self.counted(at))
    }
}
