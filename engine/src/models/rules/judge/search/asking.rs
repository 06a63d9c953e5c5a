//! Looks for questions and requests.
use super::{Doubt, Finding, Place, Rows};
use crate::models::rules::judge::criterion::Want;
use crate::models::rules::judge::requests;
use crate::models::rules::judge::rows::{Mode, matches_at};
use crate::models::rules::judge::values::Likeness;
use crate::models::rules::words::stemmed;

impl Rows<'_> {
    pub(super) fn ask(&self, wants: &[Want]) -> Finding {
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
                        && requests::is_opening(text, sentence.start..*at)
                        && !requests::is_own_name(text, *at)
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
