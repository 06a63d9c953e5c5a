//! Arguments of a tool, filled from the user's words as its JSON Schema asks.
mod schema;
mod spoken;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::{Map, Value};

use self::schema::{Field, Shape};
use super::entities::{Entity, EntityKind, entities};
use super::words::{Word, stemmed, words};
use crate::base::text::truncate;

/// Bytes of the user's words that are searched.
const TEXT_BYTES_MAX: usize = 8_000;
/// Objects within objects.
const DEPTH_MAX: usize = 4;
/// Properties looked at in all, those of inner objects included.
const PROPERTIES_MAX: usize = 256;
/// Items filled of one array.
const ITEMS_MAX: usize = 16;
/// Words, entities and letters looked at for all properties together. A schema and a text that
/// need more leave the properties that come last without a value.
const LOOKS_MAX: usize = 2_000_000;
/// Bytes between a value and a word that may tell whose value it is.
const BESIDE_BYTES_MAX: usize = 200;

/// The arguments that the text tells, in the schema's order.
///
/// Dates, times, e-mail addresses, phone numbers, numbers and the values of an `enum` go where a
/// property's type, format, name or description asks for them, each to one property; a number
/// next to a property's word goes there first. Quoted words and what follows "…name is" or "in …"
/// go to the strings left. A required string with nothing better gets the remaining text.
/// Whatever the text does not tell is left out, or takes its `default` when it is required.
pub(super) fn fill(parameters: &Value, text: &str) -> Map<String, Value> {
    let text = truncate(text.to_owned(), TEXT_BYTES_MAX);
    let words = words(&text);
    let entities = entities(&text);
    let stems: Vec<String> = words.iter().map(|word| stemmed(word.text)).collect();
    let mut filler = Filler {
        text: &text,
        said: stems.iter().cloned().collect(),
        stems,
        lower: spoken::lower(&words),
        content: (0..words.len()).filter(|place| words.get(*place).is_some_and(has_content)).collect(),
        words,
        entities,
        consumed: Vec::new(),
        root: parameters,
        properties_left: PROPERTIES_MAX,
        looks_left: Cell::new(LOOKS_MAX),
    };
    filler.object(parameters, 0)
}

struct Filler<'a> {
    text: &'a str,
    words: Vec<Word<'a>>,
    stems: Vec<String>,
    /// The stems, for looking one up.
    said: BTreeSet<String>,
    /// The words folded, with one kind of apostrophe.
    lower: Vec<String>,
    /// Places of the words that carry content.
    content: Vec<usize>,
    entities: Vec<Entity>,
    /// Parts of the text that an argument has taken; no two overlap. In the text's order.
    consumed: Vec<Range<usize>>,
    root: &'a Value,
    properties_left: usize,
    looks_left: Cell<usize>,
}

impl<'a> Filler<'a> {
    fn object(&mut self, schema: &'a Value, depth: usize) -> Map<String, Value> {
        let fields = schema::fields(schema, self.root, self.properties_left);
        self.properties_left = self.properties_left.saturating_sub(fields.len());
        let mut values = vec![None; fields.len()];
        // What the words around a value say weighs more than the order of the properties.
        for only_named in [true, false] {
            for (field, value) in fields.iter().zip(&mut values) {
                if value.is_none() {
                    *value = self.value(field, only_named, depth);
                }
            }
        }
        for (field, value) in fields.iter().zip(&mut values) {
            if value.is_none() && field.takes_any_text() {
                *value = self.take(&[EntityKind::Quoted], field).map(Value::String);
            }
        }
        for (field, value) in fields.iter().zip(&mut values) {
            if value.is_none() && field.required {
                *value = self.last_resort(field);
            }
        }
        let named = fields.into_iter().zip(values);
        named.filter_map(|(field, value)| Some((field.name.to_owned(), value?))).collect()
    }

    fn value(&mut self, field: &Field<'a>, only_named: bool, depth: usize) -> Option<Value> {
        match &field.shape {
            // What was not found the first time is not there the second time.
            Shape::Choice(values) if only_named => self.choice(values),
            Shape::Integer | Shape::Number => self.number(field, only_named),
            Shape::Boolean => self.boolean(field, only_named),
            Shape::String => self.string(field, only_named).map(Value::String),
            Shape::Array(items) if !only_named => self.array(items.as_deref(), depth),
            Shape::Object(schema) if !only_named && depth < DEPTH_MAX => {
                let object = self.object(schema, depth + 1);
                (field.required || !object.is_empty()).then_some(Value::Object(object))
            }
            Shape::Choice(_) | Shape::Array(_) | Shape::Object(_) => None,
        }
    }

    fn last_resort(&self, field: &Field<'_>) -> Option<Value> {
        if let Some(default) = field.default {
            return Some(default.clone());
        }
        let text = || Some(field.shortened(self.look(self.text.len()).then(|| self.remaining_text())??));
        match &field.shape {
            Shape::String if field.takes_any_text() => text().map(Value::String),
            Shape::Array(Some(items)) if items.takes_any_text() => {
                text().map(|text| Value::Array(vec![Value::String(text)]))
            }
            _ => None,
        }
    }

    fn array(&mut self, items: Option<&Field<'a>>, depth: usize) -> Option<Value> {
        let items = items?;
        let mut out = Vec::new();
        // Each of these consumes what it takes, so the loop ends.
        let takes = matches!(items.shape, Shape::Choice(_) | Shape::Integer | Shape::Number | Shape::String);
        while takes && out.len() < ITEMS_MAX {
            let named = self.value(items, true, depth).or_else(|| self.value(items, false, depth));
            let item = match named {
                None if items.takes_any_text() => self.take(&[EntityKind::Quoted], items).map(Value::String),
                named => named,
            };
            let Some(item) = item else { break };
            out.push(item);
        }
        (!out.is_empty()).then_some(Value::Array(out))
    }

    /// The listed value the text names with the most words.
    fn choice(&mut self, values: &[&Value]) -> Option<Value> {
        let mut best: Option<(usize, Range<usize>, &Value)> = None;
        for value in values {
            let found = match value {
                Value::String(name) => self.named(name),
                Value::Number(number) => self.numbered(number.as_f64()?),
                // "true" and "false" said as words, but null, lists and objects cannot be said.
                Value::Bool(flag) => self.named(if *flag { "true" } else { "false" }),
                _ => None,
            };
            if let Some((length, place)) = found
                && best.as_ref().is_none_or(|(longest, ..)| length > *longest)
            {
                best = Some((length, place, value));
            }
        }
        let (_, place, value) = best?;
        self.consume(place);
        Some(value.clone())
    }

    fn named(&self, name: &str) -> Option<(usize, Range<usize>)> {
        let wanted: Vec<_> = words(name).iter().map(|word| stemmed(word.text)).collect();
        // Most values are told apart by their first word.
        if !self.said.contains(wanted.first()?) || !self.look(self.stems.len()) {
            return None;
        }
        self.stems.windows(wanted.len()).zip(self.words.windows(wanted.len())).find_map(|(stems, words)| {
            let place = words.first()?.start..words.last()?.end();
            (stems == wanted && self.is_free(&place)).then_some((wanted.len(), place))
        })
    }

    fn numbered(&self, number: f64) -> Option<(usize, Range<usize>)> {
        let is_it = |entity: &&Entity| {
            matches!(entity.kind, EntityKind::Number | EntityKind::NumberWord)
                && entity.value.parse::<f64>().is_ok_and(|value| value.total_cmp(&number).is_eq())
                && self.is_free(&entity.place)
        };
        if !self.look(self.entities.len()) {
            return None;
        }
        self.entities.iter().find(is_it).map(|entity| (1, entity.place.clone()))
    }

    fn number(&mut self, field: &Field<'_>, only_named: bool) -> Option<Value> {
        for kind in [EntityKind::Number, EntityKind::NumberWord] {
            if !self.look(self.entities.len()) {
                return None;
            }
            let found = self.entities.iter().find_map(|entity| {
                let value = (entity.kind == kind).then(|| field.number(&entity.value)).flatten()?;
                let fits =
                    self.is_free(&entity.place) && (!only_named || self.is_beside(field, &entity.place));
                fits.then(|| (entity.place.clone(), value))
            });
            if let Some((place, value)) = found {
                self.consume(place);
                return Some(value);
            }
        }
        None
    }

    /// True when the property's words are said, false when they are denied; a bare yes or no
    /// answers a required one.
    fn boolean(&self, field: &Field<'_>, only_named: bool) -> Option<Value> {
        const REACH: usize = 3;
        let said = field.name_terms.iter().all(|term| self.said.contains(term));
        let find = || self.stems.iter().position(|stem| field.name_terms.contains(stem));
        let place = if said && self.look(self.stems.len()) { find() } else { None };
        if let Some(place) = place {
            let before = self.words.get(place.saturating_sub(REACH)..place).unwrap_or_default();
            return Some(Value::Bool(!before.iter().any(spoken::denies)));
        }
        if only_named || !field.required {
            return None;
        }
        spoken::yes_or_no(self.words.first()?).map(Value::Bool)
    }

    fn string(&mut self, field: &Field<'_>, only_named: bool) -> Option<String> {
        if let Some(kinds) = field.entity_kinds() {
            if only_named {
                return self.take_beside(kinds, field);
            }
            return self.take(kinds, field);
        }
        if only_named || !field.takes_any_text() {
            return None;
        }
        if !self.look(self.words.len()) {
            return None;
        }
        let free = |place: &Range<usize>| self.is_free(place);
        let place =
            spoken::after_cue(self.text, &self.words, &self.lower, &self.stems, field).filter(free)?;
        self.consume(place.clone());
        self.text.get(place).map(|text| field.shortened(text.to_owned()))
    }

    fn take(&mut self, kinds: &[EntityKind], field: &Field<'_>) -> Option<String> {
        self.take_where(kinds, field, |_, _| true)
    }

    fn take_beside(&mut self, kinds: &[EntityKind], field: &Field<'_>) -> Option<String> {
        self.take_where(kinds, field, |filler, place| filler.is_beside(field, place))
    }

    /// The first free entity of the kinds, the kinds in order of preference.
    fn take_where(
        &mut self,
        kinds: &[EntityKind],
        field: &Field<'_>,
        fits: impl Fn(&Self, &Range<usize>) -> bool,
    ) -> Option<String> {
        let found = kinds.iter().filter(|_| self.look(self.entities.len())).find_map(|kind| {
            self.entities.iter().find(|entity| {
                entity.kind == *kind
                    && field.accepts(entity)
                    && self.is_free(&entity.place)
                    && fits(self, &entity.place)
            })
        });
        let (place, value) = found.map(|entity| (entity.place.clone(), entity.value.clone()))?;
        self.consume(place);
        Some(field.shortened(value))
    }

    /// True when one of the two content words before the place or the word after it is the
    /// field's, with no punctuation between.
    fn is_beside(&self, field: &Field<'_>, place: &Range<usize>) -> bool {
        let joined = |from: usize, to: usize| {
            to - from <= BESIDE_BYTES_MAX
                && !self.text.get(from..to).unwrap_or(",").contains([',', ';', '.', '!', '?', '\n'])
        };
        // Words stand in the text's order and do not overlap, but for the pairs of scripts without
        // spaces, whose starts and ends are still in order.
        let word = |index: &usize| self.words.get(*index).zip(self.stems.get(*index));
        let ended = |index: &usize| word(index).is_some_and(|(word, _)| word.end() <= place.start);
        let before = self.content.get(..self.content.partition_point(ended)).unwrap_or_default();
        let before =
            before.iter().rev().take(2).filter_map(word).filter(|(word, _)| joined(word.end(), place.start));
        let after = self.words.partition_point(|word| word.start < place.end);
        let after = word(&after).filter(|(word, _)| joined(place.end, word.start));
        before.chain(after).any(|(_, stem)| field.terms.contains(stem))
    }

    /// What no argument has taken, without the small words left hanging at its end.
    fn remaining_text(&self) -> Option<String> {
        let mut rest = String::new();
        let mut from = 0;
        for place in &self.consumed {
            rest.push_str(self.text.get(from..place.start).unwrap_or_default());
            rest.push(' ');
            from = from.max(place.end);
        }
        rest.push_str(self.text.get(from..).unwrap_or_default());
        let rest = spoken::tidied(&rest);
        let rest = if rest.is_empty() { spoken::tidied(self.text) } else { rest };
        (!rest.is_empty()).then_some(rest)
    }

    fn is_free(&self, place: &Range<usize>) -> bool {
        let next = self.consumed.partition_point(|taken| taken.end <= place.start);
        self.consumed.get(next).is_none_or(|taken| taken.start >= place.end)
    }

    /// The place must be free.
    fn consume(&mut self, place: Range<usize>) {
        let next = self.consumed.partition_point(|taken| taken.end <= place.start);
        self.consumed.insert(next, place);
    }

    /// Counts so many looks; false when there are not as many left.
    fn look(&self, count: usize) -> bool {
        let left = self.looks_left.get().checked_sub(count);
        self.looks_left.set(left.unwrap_or(0));
        left.is_some()
    }
}

fn has_content(word: &Word<'_>) -> bool {
    word.term().is_some()
}

/// The terms of several words, for finding them again.
fn terms_of<'w>(words: impl IntoIterator<Item = &'w str>) -> BTreeSet<String> {
    words.into_iter().map(stemmed).collect()
}

#[cfg(test)]
mod tests;
