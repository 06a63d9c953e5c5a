//! Looks for what a criterion wants in the rows of a transcript.
mod asking;

use super::affirmation::Said;
use super::criterion::{Act, Clause, Formula, Kind, Quote, Verb, Want};
use super::quantities::{self, Quantity};
use super::rows::{Mode, Row, is_spelled, matches_at, value_at, whole_value_at};
use super::values::{Likeness, Value};
use super::word_forms::Forms;
use super::{kinds, looks, statements, vocabulary};
use crate::base::look_alikes::without_accents;
use crate::models::rules::words::stemmed;

/// A place in the rows: the row's place among them, and within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) row: usize,
    pub(super) at: usize,
}

/// Statements that are looked at for one that affirms what is wanted; each may be taken back in any later line.
const STATEMENTS_MAX: usize = 16;

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
            Act::Open => Finding::doubt(Doubt::OtherWords, None),
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

    /// The first row that is in another language.
    pub(super) fn foreign(&self) -> Option<Place> {
        self.0.iter().position(|row| !row.is_english).map(|row| Place { row, at: 0 })
    }

    /// Where the values are, or may be, each with what it counts.
    fn values(&self, wants: &[Want]) -> Vec<Hits> {
        let mut out = Vec::new();
        for (at, want) in wants.iter().enumerate() {
            if let Some(value) = want.value() {
                out.push(self.value(value, quantities::wanted(wants, at)));
            }
        }
        out
    }

    fn quote(&self, quote: &Quote, labelled: bool) -> Finding {
        let wants = &quote.wants;
        let mode = if quote.has_sentences { Mode::Sentences } else { Mode::Exact };
        let hits = self.hits(wants, mode, &quote.plain);
        match (hits.sure.or(hits.unclean), hits.perhaps) {
            (Some(at), _) if !labelled => Finding { holds: Ok(true), at: Some(at), perhaps: hits.first() },
            (Some(at), _) | (None, Some(at)) => Finding::doubt(Doubt::Occurs, Some(at)),
            (None, None) => {
                // The words of a quotation cannot be other ones.
                let words = || wants.iter().filter_map(Want::word);
                let hides = |word: &str| self.hides(word) || self.looks_like(word).is_some();
                if words().any(|word| !self.any_word(|said| said == word) && !hides(word)) {
                    return Finding::absent();
                }
                let values = self.values(wants);
                if !values.is_empty() {
                    if values.iter().any(|hits| hits.first().is_none()) {
                        return self.absent();
                    }
                    return Finding::doubt(Doubt::Occurs, values.iter().filter_map(Hits::first).min());
                } else if !words().any(hides) {
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

    /// Where something looks like the word, which is not there as it is.
    fn looks_like(&self, word: &str) -> Option<Place> {
        let bare = without_accents(word);
        self.first(|row, at| looks::looks_like(&row.text, at, word, &bare))
    }

    fn words(&self, verb: Verb, wants: &[Want], negated: bool) -> Finding {
        let wants: Vec<Want> =
            wants.iter().filter(|want| !want.word().is_some_and(vocabulary::is_article)).cloned().collect();
        let values: Vec<&Value> = wants.iter().filter_map(Want::value).collect();
        let words: Vec<&str> = wants.iter().filter_map(Want::word).collect();
        if values.is_empty() {
            return self.plain_words(verb, &wants, &words, negated);
        }
        let found = self.values(&wants);
        if found.iter().any(|hits| hits.first().is_none()) {
            // A booking may be confirmed without its number.
            let affirmed = if verb == Verb::Confirm { self.affirmed(&words) } else { None };
            return affirmed.map_or_else(|| self.absent(), |at| Finding::doubt(Doubt::OtherWords, Some(at)));
        }
        let first = found.iter().filter_map(Hits::first).min();
        let holds = |at: Place| Finding { holds: Ok(true), at: Some(at), perhaps: first };
        if verb == Verb::Confirm {
            return Finding::doubt(Doubt::OtherWords, first);
        }
        let is_literal = matches!(verb, Verb::Say | Verb::Mention);
        if wants.len() > 1 {
            let as_said = || self.hits(&wants, Mode::Stems, "").sure.filter(|at| !self.is_corrected(*at));
            let at = if is_literal { as_said() } else { self.stated(&wants) };
            if let Some(at) = at.filter(|at| !self.is_modified(*at, &wants)) {
                return holds(at);
            }
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
        let is_said = is_bare && is_literal;
        let stems: Vec<String> = label.iter().map(|word| stemmed(word)).collect();
        let places = self.places(value);
        let fits = |at: &&Place| {
            let row = self.0[at.row];
            if is_said && !matches!(value, Value::Code(_) | Value::Digits(_) if !label.is_empty()) {
                return true;
            }
            let is_contact = matches!(value, Value::Email(_) | Value::Digits(_));
            (if is_contact { row.is_clean_or_choice(at.at) } else { row.is_clean(at.at) })
                && self.is_labelled(**at, value, &label, is_bare)
                && !self.is_modified(**at, &wants[wants.len() - 1..])
                && if is_literal {
                    !self.is_corrected(**at)
                } else {
                    self.is_affirmed(**at, value, &stems, true)
                }
        };
        let looked_at = if is_literal { places.len() } else { STATEMENTS_MAX };
        match places.iter().take(looked_at).find(fits) {
            Some(at) => holds(*at),
            None if negated && is_said && !places.is_empty() => holds(places[0]),
            None => Finding::doubt(Doubt::Occurs, first),
        }
    }

    /// The first place where a statement has all that is wanted, one after the other, and affirms it.
    fn stated(&self, wants: &[Want]) -> Option<Place> {
        let stems: Vec<String> =
            wants.iter().map(|want| want.word().map(stemmed).unwrap_or_default()).collect();
        let mut looked_at = 0;
        for (number, row) in self.0.iter().enumerate().filter(|(_, row)| !row.is_error) {
            for at in 0..row.text.items.len() {
                let Some((next, Likeness::Same)) = matches_at(row, at, wants, &stems, Mode::Stems) else {
                    continue;
                };
                looked_at += 1;
                if looked_at > STATEMENTS_MAX {
                    return None;
                }
                let value = wants.iter().rev().find_map(Want::value);
                let said = Said { at, next, value, stems: &stems, is_only: true };
                let place = Place { row: number, at };
                if row.is_clean(at) && self.affirms(place, said) {
                    return Some(place);
                }
            }
        }
        None
    }

    fn is_affirmed(&self, place: Place, value: &Value, stems: &[String], is_only: bool) -> bool {
        let next = value_at(self.0[place.row], place.at, value).map_or(place.at + 1, |found| found.0);
        self.affirms(place, Said { at: place.at, next, value: Some(value), stems, is_only })
    }

    /// Whether a statement affirms it and nobody takes it back. What a tool returns are no sentences.
    fn affirms(&self, place: Place, said: Said<'_>) -> bool {
        let row = self.0[place.row];
        let later = || self.0.iter().skip(place.row + 1).any(|row| said.is_taken_back_later(row));
        row.is_tool && !self.is_corrected(place) || said.is_affirmed(row) && !later()
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
        let hits = self.hits(wants, Mode::Stems, "");
        let holds = |at: Place| Finding { holds: Ok(true), at: Some(at), perhaps: hits.first() };
        let is_single = words.len() == 1;
        if matches!(verb, Verb::SayThat | Verb::Give) {
            let stated = self.stated(wants).filter(|at| !self.is_modified(*at, wants));
            return match (stated, hits.first()) {
                (Some(at), _) => holds(at),
                (None, Some(at)) => Finding::doubt(Doubt::Occurs, Some(at)),
                (None, None) => Finding::doubt(Doubt::OtherWords, None),
            };
        }
        match (hits.sure, hits.unclean) {
            (Some(at), _) => holds(at),
            (_, Some(at)) if verb == Verb::Mention || is_single && negated && verb == Verb::Say => holds(at),
            (_, Some(at)) => Finding::doubt(Doubt::Occurs, Some(at)),
            (None, None) if is_single && verb == Verb::Say && hits.perhaps.is_none() => {
                match self.akin(words[0]) {
                    Some(at) => Finding::doubt(Doubt::OtherWords, Some(at)),
                    None if self.hides(words[0]) => Finding::doubt(Doubt::OtherWords, None),
                    None => self.absent(),
                }
            }
            (None, None) => Finding::doubt(Doubt::OtherWords, hits.perhaps),
        }
    }

    /// The first place where the word may stand in another form, or one of the same meaning.
    fn akin(&self, word: &str) -> Option<Place> {
        let forms = Forms::new(word);
        self.first(|row, at| {
            row.text.word(at).is_some_and(|said| vocabulary::is_akin(word, said))
                || forms.may_be_at(&row.text, at)
        })
        .or_else(|| self.looks_like(word))
    }

    /// Where somebody agrees, or states one of the words.
    fn affirmed(&self, words: &[&str]) -> Option<Place> {
        let stems: Vec<String> = words.iter().map(|word| stemmed(word)).collect();
        self.first(|row, at| {
            row.is_clean(at)
                && row
                    .text
                    .word(at)
                    .is_some_and(|said| vocabulary::affirms(said) || stems.contains(&stemmed(said)))
        })
    }

    fn first(&self, is: impl Fn(&Row, usize) -> bool) -> Option<Place> {
        let rows = self.0.iter().enumerate();
        let mut places =
            rows.flat_map(|(row, read)| (0..read.text.items.len()).map(move |at| (read, Place { row, at })));
        places.find(|(read, place)| is(read, place.at)).map(|(_, place)| place)
    }

    fn any_word(&self, is: impl Fn(&str) -> bool) -> bool {
        self.0.iter().any(|row| (0..row.text.items.len()).any(|at| row.text.word(at).is_some_and(&is)))
    }

    /// Where the words and values stand one after the other; for certain also as `plain` tokens.
    fn hits(&self, wants: &[Want], mode: Mode, plain: &str) -> Hits {
        let stems: Vec<String> =
            wants.iter().map(|want| want.word().map(stemmed).unwrap_or_default()).collect();
        let mut hits = Hits::default();
        for (place, row) in self.0.iter().enumerate() {
            for at in 0..row.text.items.len() {
                let Some((next, mut likeness)) = matches_at(row, at, wants, &stems, mode) else { continue };
                if likeness == Likeness::MayBe && !plain.is_empty() && row.says_plainly(at, next, plain) {
                    likeness = Likeness::Same;
                }
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
    fn value(&self, value: &Value, counted: Option<Quantity>) -> Hits {
        let mut hits = Hits::default();
        let spelled = value.spelled();
        for (place, row) in self.0.iter().enumerate() {
            for at in 0..row.text.items.len() {
                let found = Some(Place { row: place, at });
                match whole_value_at(row, at, value) {
                    Some(Likeness::Same) if !row.is_error => hits.sure = hits.sure.or(found),
                    Some(_) => hits.perhaps = hits.perhaps.or(found),
                    None if is_spelled(row, at, &spelled)
                        || counted.is_some_and(|counted| counted.may_be(&row.text, at)) =>
                    {
                        hits.perhaps = hits.perhaps.or(found)
                    }
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
        let is_there =
            |(row, place): &(&&Row, Place)| whole_value_at(row, place.at, value) == Some(Likeness::Same);
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
            row.last_correction.is_some_and(|last| last >= from)
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
                        if row.is_clean(at)
                            && statements::is_own(formula, &row.text, row.sentence(at).start, at)
                            && (by_word || !statements::is_sympathy(&row.text, at))
                            && !statements::is_other_use(&row.text, at)
                            && (!matches!(formula, Formula::Hello | Formula::Goodbye)
                                || statements::is_address(&row.text, at)) =>
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
        let mut looked_at = 0;
        let mut perhaps = None;
        for (place, row) in self.0.iter().enumerate() {
            for at in 0..row.text.items.len() {
                let here = Place { row: place, at };
                let is_clean = match kind {
                    Kind::Email | Kind::Telephone => row.is_clean_or_choice(at),
                    _ => row.is_clean(at),
                };
                let is_kind = row.text.value(at).is_some_and(|value| kinds::is_kind(kind, value));
                looked_at += usize::from(is_kind);
                if is_kind
                    && looked_at <= STATEMENTS_MAX
                    && is_clean
                    && !row.is_error
                    && kinds::is_about(kind, &row.text, row.sentence(at))
                    && row.text.value(at).is_some_and(|value| self.is_affirmed(here, value, &[], false))
                {
                    return Finding { holds: Ok(true), at: Some(here), perhaps: perhaps.or(Some(here)) };
                }
                let may_be = match row.text.word(at) {
                    Some(word) => kinds::may_be_kind(kind, word),
                    None => kinds::may_be_value(kind, &row.text, at),
                };
                let is_sign = kind == Kind::Email && row.text.sign(at) == Some('@');
                if may_be || is_sign || row.text.others(at).any(|other| kinds::is_like(kind, other)) {
                    perhaps.get_or_insert(here);
                }
            }
        }
        match perhaps {
            Some(_) => Finding::doubt(Doubt::Occurs, perhaps),
            None => self.absent(),
        }
    }
}
