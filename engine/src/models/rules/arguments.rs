//! Fills a tool's arguments from the user's words, guided by the tool's JSON Schema.
mod schema;
mod spoken;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::{Map, Value};

use self::schema::{Field, Shape};
use super::entities::{Entity, EntityKind, entities};
use super::words::{Word, stemmed, words};
use crate::base::ordered::Ordered as _;
use crate::base::text::truncate;

/// Bytes of the user's words that are searched.
const TEXT_BYTES_MAX: usize = 8_000;
/// Deepest nesting of objects.
const DEPTH_MAX: usize = 4;
/// Most properties in total, including nested objects.
const PROPERTIES_MAX: usize = 256;
/// Most items of one array.
const ITEMS_MAX: usize = 16;
/// Search steps (words, entities and letters) for all properties together. When they run out, the remaining properties stay
/// empty.
const STEPS_MAX: usize = 2_000_000;
/// Most bytes between a value and a word that relates it to a property.
const DISTANCE_BYTES_MAX: usize = 200;

/// The arguments found in the text, in the schema's order.
///
/// Dates, times, e-mail addresses, phone numbers, numbers and `enum` values go to the properties whose type, format, name or
/// description asks for them, each to one property; a number next to a property's word goes to that property first. Quoted
/// text and what follows "…name is" or "in …" go to the remaining strings. A required string without a better value gets the
/// remaining text. A property without a value is left out, or gets its `default` when it is required.
pub(super) fn fill(parameters: &Value, text: &str) -> Map<String, Value> {
    let text = truncate(text.to_owned(), TEXT_BYTES_MAX);
    let words = words(&text);
    let entities = entities(&text);
    let stems: Vec<String> = words.iter().map(|word| stemmed(word.text)).collect();
    let mut filler = Filler {
        text: &text,
        said: stems.iter().cloned().into_set(),
        stems,
        lower: spoken::lower(&words),
        content: (0..words.len()).filter(|place| words.get(*place).is_some_and(has_content)).collect(),
        words,
        entities,
        consumed: Vec::new(),
        root: parameters,
        properties_left: PROPERTIES_MAX,
        steps_left: Cell::new(STEPS_MAX),
    };
    filler.object(parameters, 0)
}

struct Filler<'a> {
    text: &'a str,
    words: Vec<Word<'a>>,
    stems: Vec<String>,
    /// The stems as a set, for lookups.
    said: BTreeSet<String>,
    /// The words in lower case, with one form of apostrophe.
    lower: Vec<String>,
    /// Indices of the content words.
    content: Vec<usize>,
    entities: Vec<Entity>,
    /// Ranges of the text that arguments have used: disjoint, in ascending order.
    consumed: Vec<Range<usize>>,
    root: &'a Value,
    properties_left: usize,
    steps_left: Cell<usize>,
}

impl<'a> Filler<'a> {
    fn object(&mut self, schema: &'a Value, depth: usize) -> Map<String, Value> {
        let fields = schema::fields(schema, self.root, self.properties_left);
        self.properties_left = self.properties_left.saturating_sub(fields.len());
        let mut values = vec![None; fields.len()];
        // Adjacent words are a stronger signal than the order of the properties.
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
            // The first pass found what there is.
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
        let text =
            || Some(field.shortened(self.take_steps(self.text.len()).then(|| self.remaining_text())??));
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
        // Each of these consumes its value, so the loop ends.
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

    /// The listed value that matches the most words.
    fn choice(&mut self, values: &[&Value]) -> Option<Value> {
        let mut best: Option<(usize, Range<usize>, &Value)> = None;
        for value in values {
            let found = match value {
                Value::String(name) => self.named(name),
                Value::Number(number) => self.numbered(number.as_f64()?),
                // "true" and "false" can be spoken; null, lists and objects cannot.
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
        // The first word rules out most values.
        if !self.said.contains(wanted.first()?) || !self.take_steps(self.stems.len()) {
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
                && self.is_free(&entity.span)
        };
        if !self.take_steps(self.entities.len()) {
            return None;
        }
        self.entities.iter().find(is_it).map(|entity| (1, entity.span.clone()))
    }

    fn number(&mut self, field: &Field<'_>, only_named: bool) -> Option<Value> {
        for kind in [EntityKind::Number, EntityKind::NumberWord] {
            if !self.take_steps(self.entities.len()) {
                return None;
            }
            let found = self.entities.iter().find_map(|entity| {
                let value = (entity.kind == kind).then(|| field.number(&entity.value)).flatten()?;
                let fits =
                    self.is_free(&entity.span) && (!only_named || self.is_next_to(field, &entity.span));
                fits.then(|| (entity.span.clone(), value))
            });
            if let Some((place, value)) = found {
                self.consume(place);
                return Some(value);
            }
        }
        None
    }

    /// True when the property's words occur, false when they are negated; a bare yes or no answers a required property.
    fn boolean(&self, field: &Field<'_>, only_named: bool) -> Option<Value> {
        const REACH: usize = 3;
        let said = field.name_terms.iter().all(|term| self.said.contains(term));
        let find = || self.stems.iter().position(|stem| field.name_terms.contains(stem));
        let place = if said && self.take_steps(self.stems.len()) { find() } else { None };
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
                return self.take_next_to(kinds, field);
            }
            return self.take(kinds, field);
        }
        if only_named || !field.takes_any_text() {
            return None;
        }
        if !self.take_steps(self.words.len()) {
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

    fn take_next_to(&mut self, kinds: &[EntityKind], field: &Field<'_>) -> Option<String> {
        self.take_where(kinds, field, |filler, place| filler.is_next_to(field, place))
    }

    /// The first unused entity of these kinds, in order of preference.
    fn take_where(
        &mut self,
        kinds: &[EntityKind],
        field: &Field<'_>,
        fits: impl Fn(&Self, &Range<usize>) -> bool,
    ) -> Option<String> {
        let found = kinds.iter().filter(|_| self.take_steps(self.entities.len())).find_map(|kind| {
            self.entities.iter().find(|entity| {
                entity.kind == *kind
                    && field.accepts(entity)
                    && self.is_free(&entity.span)
                    && fits(self, &entity.span)
            })
        });
        let (place, value) = found.map(|entity| (entity.span.clone(), entity.value.clone()))?;
        self.consume(place);
        Some(field.shortened(value))
    }

    /// Whether one of the two content words before the range, or the word after it, belongs to the field, without punctuation in
    /// between.
    fn is_next_to(&self, field: &Field<'_>, place: &Range<usize>) -> bool {
        let joined = |from: usize, to: usize| {
            to - from <= DISTANCE_BYTES_MAX
                && !self.text.get(from..to).unwrap_or(",").contains([',', ';', '.', '!', '?', '\n'])
        };
        // Words are in text order and disjoint, except pairs in scripts without spaces; their starts and ends are still in order.
        let word = |index: &usize| self.words.get(*index).zip(self.stems.get(*index));
        let ended = |index: &usize| word(index).is_some_and(|(word, _)| word.end() <= place.start);
        let before = self.content.get(..self.content.partition_point(ended)).unwrap_or_default();
        let before =
            before.iter().rev().take(2).filter_map(word).filter(|(word, _)| joined(word.end(), place.start));
        let after = self.words.partition_point(|word| word.start < place.end);
        let after = word(&after).filter(|(word, _)| joined(place.end, word.start));
        before.chain(after).any(|(_, stem)| field.terms.contains(stem))
    }

    /// The text that no argument used, without dangling function words at its end.
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

    /// Marks a range as used; it must be unused.
    fn consume(&mut self, place: Range<usize>) {
        let next = self.consumed.partition_point(|taken| taken.end <= place.start);
        self.consumed.insert(next, place);
    }

    /// Uses search steps; false when not enough are left.
    fn take_steps(&self, count: usize) -> bool {
        let left = self.steps_left.get().checked_sub(count);
        self.steps_left.set(left.unwrap_or(0));
        left.is_some()
    }
}

fn has_content(word: &Word<'_>) -> bool {
    word.term().is_some()
}

fn terms_of<'w>(words: impl IntoIterator<Item = &'w str>) -> BTreeSet<String> {
    words.into_iter().map(stemmed).into_set()
}

#[cfg(test)]
mod tests;
