//! Looks for what a criterion wants in the rows of a transcript.
use super::criterion::{Act, Clause, Formula, Kind, Quote, Verb, Want};
use super::requests;
use super::rows::{Mode, Row, is_spelled, matches_at, value_at};
use super::values::{Likeness, Value};
use super::vocabulary;
use crate::models::rules::words::stemmed;

/// A place in the rows: the row's place among them, and within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) row: usize,
    pub(super) at: usize,
}

/// Why something cannot be decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    /// It may be said in other words.
    OtherWords,
    /// It occurs, but perhaps not as the criterion means it.
    Occurs,
    /// The lines are not in English.
    Language,
}

/// What came of looking for a clause, without its negation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Finding {
    /// Whether the clause holds.
    pub(super) holds: Result<bool, Doubt>,
    /// Where it is for certain.
    pub(super) at: Option<Place>,
    /// The first place where it may be.
    pub(super) perhaps: Option<Place>,
}

impl Finding {
    const fn absent() -> Self {
        Self { holds: Ok(false), at: None, perhaps: None }
    }

    const fn doubt(doubt: Doubt, perhaps: Option<Place>) -> Self {
        Self { holds: Err(doubt), at: None, perhaps }
    }
}

/// The places where something was found, the first of each kind.
#[derive(Debug, Clone, Copy, Default)]
struct Hits {
    sure: Option<Place>,
    /// It is there, in a question, a negation or a condition.
    unclean: Option<Place>,
    perhaps: Option<Place>,
}

impl Hits {
    fn first(&self) -> Option<Place> {
        [self.sure, self.unclean, self.perhaps].into_iter().flatten().min()
    }
}

/// The rows of those whom a clause is about.
pub(super) struct Rows<'a>(pub(super) Vec<&'a Row>);

impl Rows<'_> {
    /// Looks for what the clause claims.
    pub(super) fn find(&self, clause: &Clause) -> Finding {
        match &clause.act {
            Act::Quote { quote, labelled } => self.quote(quote, *labelled),
            Act::Words { verb, wants } => self.words(*verb, wants, clause.negated),
            Act::Formula { formula, by_word } => self.formula(*formula, *by_word, clause.negated),
            Act::Kind(kind) => self.kind(*kind),
            Act::Ask(wants) => self.ask(wants),
        }
    }

    /// What it means that nothing was found.
    fn absent(&self) -> Finding {
        if self.0.iter().all(|row| row.is_english) {
            Finding::absent()
        } else {
            Finding::doubt(Doubt::Language, None)
        }
    }

    fn quote(&self, quote: &Quote, labelled: bool) -> Finding {
        let wants = &quote.wants;
        let mode = if quote.has_sentences { Mode::Sentences } else { Mode::Exact };
        let hits = self.hits(wants, mode);
        match (hits.sure.or(hits.unclean), hits.perhaps) {
            (Some(at), _) if !labelled => Finding { holds: Ok(true), at: Some(at), perhaps: hits.first() },
            (Some(at), _) | (None, Some(at)) => Finding::doubt(Doubt::Occurs, Some(at)),
            (None, None) => {
                // The words of a quotation cannot be other ones.
                let words = || wants.iter().filter_map(Want::word);
                if words().any(|word| !self.any_word(|said| said == word) && !self.hides(word)) {
                    return Finding::absent();
                }
                let mut values = wants.iter().filter_map(Want::value).peekable();
                if values.peek().is_some() {
                    if values.any(|value| self.value(value).first().is_none()) {
                        return self.absent();
                    }
                } else if !words().any(|word| self.hides(word)) {
                    return Finding::absent();
                }
                Finding::doubt(Doubt::Occurs, None)
            }
        }
    }

    /// Whether a value has the word as a part, such as `dollars`.
    fn hides(&self, word: &str) -> bool {
        self.0.iter().any(|row| row.text.hidden.contains(word))
    }

    fn words(&self, verb: Verb, wants: &[Want], negated: bool) -> Finding {
        let wants: Vec<Want> =
            wants.iter().filter(|want| !want.word().is_some_and(vocabulary::is_article)).cloned().collect();
        let values: Vec<&Value> = wants.iter().filter_map(Want::value).collect();
        let words: Vec<&str> = wants.iter().filter_map(Want::word).collect();
        if values.is_empty() {
            return self.plain_words(verb, &wants, &words, negated);
        }
        let found: Vec<Hits> = values.iter().map(|value| self.value(value)).collect();
        if found.iter().any(|hits| hits.first().is_none()) {
            return self.absent();
        }
        let first = found.iter().filter_map(Hits::first).min();
        let holds = |at: Place| Finding { holds: Ok(true), at: Some(at), perhaps: first };
        if verb == Verb::Confirm {
            return Finding::doubt(Doubt::OtherWords, first);
        }
        if wants.len() > 1
            && let Some(at) = self.hits(&wants, Mode::Stems).sure
            && !self.is_corrected(at)
            && !self.is_modified(at, &wants)
        {
            return holds(at);
        }
        if verb == Verb::SayThat {
            return Finding::doubt(Doubt::Occurs, first);
        }
        let [value] = values.as_slice() else { return Finding::doubt(Doubt::Occurs, first) };
        // What stands behind the value changes its meaning.
        let label = match wants.split_last() {
            Some((Want::Value(_), label)) => label,
            _ => return Finding::doubt(Doubt::Occurs, first),
        };
        let label: Vec<&str> = label.iter().filter_map(Want::word).collect();
        let is_bare = label.iter().all(|word| vocabulary::is_label_of(value, word));
        let is_literal = is_bare && matches!(verb, Verb::Say | Verb::Mention);
        let places = self.places(value);
        let fits = |at: &&Place| {
            let row = self.0[at.row];
            if is_literal && !matches!(value, Value::Code(_) | Value::Digits(_) if !label.is_empty()) {
                return true;
            }
            row.is_clean(at.at)
                && self.is_labelled(**at, value, &label, is_bare)
                && !self.is_corrected(**at)
                && !self.is_modified(**at, &wants[wants.len() - 1..])
        };
        match places.iter().find(fits) {
            Some(at) => holds(*at),
            None if negated && is_literal && !places.is_empty() => holds(places[0]),
            None => Finding::doubt(Doubt::Occurs, first),
        }
    }

    /// Whether a word beside it changes what is said: "90 dollars less".
    fn is_modified(&self, at: Place, wants: &[Want]) -> bool {
        let row = self.0[at.row];
        let stems: Vec<String> =
            wants.iter().map(|want| want.word().map(stemmed).unwrap_or_default()).collect();
        let next = matches_at(row, at.at, wants, &stems, Mode::Stems).map_or(at.at, |found| found.0);
        let word = |place: Option<usize>| place.and_then(|place| row.text.word(place)).unwrap_or_default();
        vocabulary::compares(word(Some(next)))
            || [1, 2].iter().any(|back| vocabulary::compares(word(at.at.checked_sub(*back))))
    }

    fn plain_words(&self, verb: Verb, wants: &[Want], words: &[&str], negated: bool) -> Finding {
        let hits = self.hits(wants, Mode::Stems);
        let holds = |at: Place| Finding { holds: Ok(true), at: Some(at), perhaps: hits.first() };
        let is_single = words.len() == 1;
        match (hits.sure, hits.unclean) {
            (Some(at), _)
                if verb != Verb::SayThat || !self.is_corrected(at) && !self.is_modified(at, wants) =>
            {
                holds(at)
            }
            (_, Some(at)) if verb == Verb::Mention || is_single && negated && verb == Verb::Say => holds(at),
            (Some(at), _) | (_, Some(at)) => Finding::doubt(Doubt::Occurs, Some(at)),
            (None, None) if is_single && verb == Verb::Say && hits.perhaps.is_none() => {
                let word = words[0];
                if self.any_word(|said| vocabulary::is_akin(word, said)) || self.hides(word) {
                    Finding::doubt(Doubt::OtherWords, None)
                } else {
                    self.absent()
                }
            }
            (None, None) => Finding::doubt(Doubt::OtherWords, hits.perhaps),
        }
    }

    fn any_word(&self, is: impl Fn(&str) -> bool) -> bool {
        self.0.iter().any(|row| (0..row.text.items.len()).any(|at| row.text.word(at).is_some_and(&is)))
    }

    /// Where the words and values stand one after the other.
    fn hits(&self, wants: &[Want], mode: Mode) -> Hits {
        let stems: Vec<String> =
            wants.iter().map(|want| want.word().map(stemmed).unwrap_or_default()).collect();
        let mut hits = Hits::default();
        for (place, row) in self.0.iter().enumerate() {
            for at in 0..row.text.items.len() {
                let Some(likeness) = matches_at(row, at, wants, &stems, mode).map(|found| found.1) else {
                    continue;
                };
                let found = Some(Place { row: place, at });
                let slot = match likeness {
                    Likeness::Same if !row.is_error && row.is_clean(at) => &mut hits.sure,
                    Likeness::Same if !row.is_error => &mut hits.unclean,
                    _ => &mut hits.perhaps,
                };
                *slot = slot.or(found);
            }
        }
        hits
    }

    /// Where the value is, or may be.
    fn value(&self, value: &Value) -> Hits {
        let mut hits = Hits::default();
        let spelled = value.spelled();
        for (place, row) in self.0.iter().enumerate() {
            for at in 0..row.text.items.len() {
                let found = Some(Place { row: place, at });
                match value_at(row, at, value).map(|found| found.1) {
                    Some(Likeness::Same) if !row.is_error => hits.sure = hits.sure.or(found),
                    Some(_) => hits.perhaps = hits.perhaps.or(found),
                    None if is_spelled(row, at, &spelled) => hits.perhaps = hits.perhaps.or(found),
                    None => {}
                }
            }
        }
        hits
    }

    /// All places where the value is for certain.
    fn places(&self, value: &Value) -> Vec<Place> {
        const PLACES_MAX: usize = 64;
        let rows = self.0.iter().enumerate().filter(|(_, row)| !row.is_error);
        let all = rows.flat_map(|(place, row)| {
            (0..row.text.items.len()).map(move |at| (row, Place { row: place, at }))
        });
        let is_there = |(row, place): &(&&Row, Place)| {
            matches!(value_at(row, place.at, value), Some((_, Likeness::Same)))
        };
        all.filter(is_there).map(|(_, place)| place).take(PLACES_MAX).collect()
    }

    /// Whether the value has the label there: "the room number is 12".
    fn is_labelled(&self, at: Place, value: &Value, label: &[&str], is_bare: bool) -> bool {
        let text = &self.0[at.row].text;
        // The words between a label and its value.
        let mut before = (0..at.at).rev().map_while(|place| match text.sign(place) {
            Some(sign) => matches!(sign, ':' | ',' | '"' | '-' | '#').then_some(""),
            None => text.word(place),
        });
        let head =
            before.by_ref().find(|word| !vocabulary::is_between_label_and_value(word)).unwrap_or_default();
        if is_bare {
            // "The cancellation BD-17" is no confirmation.
            let other = vocabulary::names_something(value, head)
                && !label.iter().any(|word| stemmed(word) == stemmed(head));
            return !other || label.is_empty();
        }
        let mut specific =
            label.iter().rev().skip_while(|word| vocabulary::is_between_label_and_value(word)).copied();
        let Some(wanted) = specific.next() else { return false };
        let sentence = self.0[at.row].sentence(at.at);
        let has = |wanted: &str| {
            sentence
                .clone()
                .any(|place| text.word(place).is_some_and(|word| stemmed(word) == stemmed(wanted)))
        };
        stemmed(head) == stemmed(wanted)
            && specific.all(|word| vocabulary::is_between_label_and_value(word) || has(word))
    }

    /// Whether something after the place takes it back.
    fn is_corrected(&self, at: Place) -> bool {
        let after = self.0.iter().enumerate().skip(at.row);
        after.into_iter().any(|(place, row)| {
            let from = if place == at.row { at.at } else { 0 };
            (from..row.text.items.len())
                .any(|place| row.text.word(place).is_some_and(vocabulary::is_correction))
        })
    }

    fn formula(&self, formula: Formula, by_word: bool, negated: bool) -> Finding {
        let (mut hits, mut near) = (Hits::default(), None);
        for (place, row) in self.0.iter().enumerate() {
            for at in 0..row.text.items.len() {
                let Some(word) = row.text.word(at) else { continue };
                let next = row.text.word(at + 1).unwrap_or_default();
                let found = Some(Place { row: place, at });
                match vocabulary::formula(formula, word, next) {
                    Likeness::Same if by_word && negated => hits.sure = hits.sure.or(found),
                    Likeness::Same
                        if row.is_clean(at) && (by_word || !vocabulary::is_sympathy(&row.text, at)) =>
                    {
                        hits.sure = hits.sure.or(found)
                    }
                    Likeness::Same => hits.unclean = hits.unclean.or(found),
                    Likeness::MayBe => near = near.or(found),
                    Likeness::Differ => {}
                }
            }
        }
        let perhaps = [hits.first(), near].into_iter().flatten().min();
        match (hits.sure, perhaps) {
            (Some(at), _) => Finding { holds: Ok(true), at: Some(at), perhaps },
            (None, Some(_)) => Finding::doubt(
                if hits.unclean.is_some() { Doubt::Occurs } else { Doubt::OtherWords },
                perhaps,
            ),
            // There are more ways to greet.
            (None, None) if formula == Formula::Hello && !by_word => Finding::doubt(Doubt::OtherWords, None),
            (None, None) => self.absent(),
        }
    }

    fn kind(&self, kind: Kind) -> Finding {
        const LOOKED_AT_MAX: usize = 256;
        let mut looked_at = 0;
        let mut perhaps = None;
        for (place, row) in self.0.iter().enumerate() {
            for at in 0..row.text.items.len() {
                let here = Place { row: place, at };
                let is_kind = row.text.value(at).is_some_and(|value| vocabulary::is_kind(kind, value));
                looked_at += usize::from(is_kind);
                if is_kind
                    && looked_at < LOOKED_AT_MAX
                    && row.is_clean(at)
                    && !row.is_error
                    && vocabulary::is_about(kind, &row.text, row.sentence(at))
                {
                    return Finding { holds: Ok(true), at: Some(here), perhaps: perhaps.or(Some(here)) };
                }
                let may_be = match row.text.word(at) {
                    Some(word) => vocabulary::may_be_kind(kind, word),
                    None => row.text.value(at).is_some(),
                };
                if may_be {
                    perhaps.get_or_insert(here);
                }
            }
        }
        match perhaps {
            Some(_) => Finding::doubt(Doubt::Occurs, perhaps),
            None => self.absent(),
        }
    }

    fn ask(&self, wants: &[Want]) -> Finding {
        let stems: Vec<String> =
            wants.iter().map(|want| want.word().map(stemmed).unwrap_or_default()).collect();
        let mut perhaps = None;
        for (place, row) in self.0.iter().enumerate() {
            let text = &row.text;
            let mut start = 0;
            while start < text.items.len() {
                let sentence = row.sentence(start);
                let here = Place { row: place, at: start };
                let asked = sentence.clone().find(|at| {
                    requests::request_before(text, *at).is_some()
                        && matches!(matches_at(row, *at, wants, &stems, Mode::Stems), Some((next, Likeness::Same)) if requests::ends_request(text, next))
                });
                let is_name = matches!(wants, [Want::Word(word)] if word == "name")
                    && requests::asks_who(text, sentence.clone());
                let is_plain = requests::is_plain_request(text, sentence.clone());
                if is_plain && (asked.is_some() || is_name) {
                    return Finding { holds: Ok(true), at: Some(here), perhaps: perhaps.or(Some(here)) };
                }
                // "Your number is …" tells it; "your number" asks for it.
                let names_it = || {
                    let mut named = sentence.clone().filter(|at| {
                        text.word(*at).is_some_and(|word| stems.iter().any(|stem| *stem == stemmed(word)))
                    });
                    named.next_back().is_some_and(|last| !requests::tells(text, last + 1))
                };
                let may_ask = requests::may_request(text, sentence.clone())
                    && !requests::is_harmless(text, sentence.clone());
                if may_ask || asked.is_some() || is_name || names_it() {
                    perhaps.get_or_insert(here);
                }
                start = sentence.end.max(start) + 1;
            }
        }
        match perhaps {
            Some(_) => Finding::doubt(Doubt::OtherWords, perhaps),
            None => self.absent(),
        }
    }
}
