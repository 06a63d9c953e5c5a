//! The judge of `builtin/rules`.
mod affirmation;
mod criterion;
mod kinds;
mod looks;
mod quantities;
mod reading;
mod requests;
mod rows;
mod search;
mod spoken_numbers;
mod statements;
mod values;
mod vocabulary;
mod word_forms;

use std::collections::BTreeMap;

use crate::base::text::{collapse_whitespace, truncate};
use crate::conversation::transcript::{TranscriptRole, TranscriptRow};
use crate::models::{JudgeTurn, Verdict};
use criterion::{Clause, Criterion, Join, Unknown, Who};
use reading::Text;
use rows::Row;
use search::{Doubt, Finding, Place, Rows};

/// Decides criteria in a small language, described in `docs/testing.md`: who says, never says, mentions, gives or asks for
/// what, and in which order. It understands quoted text, numbers, money, dates, times, telephone numbers, codes and addresses,
/// in figures and in English words.
///
/// It never guesses. `passed` is `None`, with the reason, for a criterion outside of the language, for rows in another language
/// where their words matter, and wherever something is said that only a reader can tell from what the criterion means.
///
/// It takes time in proportion to the length of the rows, and to the words of the criterion, of which there are few. It caches
/// parsed rows: use one judge for all evaluations of a run.
#[derive(Debug, Clone, Default)]
pub struct RulesJudge {
    /// The rows that were read, by index, with the text that they had.
    rows: BTreeMap<usize, (String, Row)>,
}

impl RulesJudge {
    /// A judge with an empty cache.
    #[must_use]
    pub const fn new() -> Self {
        Self { rows: BTreeMap::new() }
    }

    /// Judges a criterion, as [`RulesJudge`] describes.
    #[must_use]
    pub fn judge(&mut self, turn: &JudgeTurn<'_>) -> Verdict {
        let criterion = match criterion::parse(turn.criterion) {
            Ok(criterion) => criterion,
            Err(unknown) => return undecided(not_understood(&unknown)),
        };
        for row in turn.turns {
            self.read(row);
        }
        let view = View { judge: self, turn, from: 0 };
        match criterion.join {
            Join::All | Join::Any => view.together(&criterion),
            Join::Before | Join::InOrder => view.in_order(&criterion),
        }
    }

    fn read(&mut self, row: &TranscriptRow) {
        if self.rows.get(&row.index).is_some_and(|(text, _)| *text == row.text) {
            return;
        }
        let heard = row.text.as_str();
        let going_on =
            row.intended_text.as_deref().filter(|_| row.interrupted).and_then(|all| all.strip_prefix(heard));
        // Of a word that was cut off in the middle, nobody heard which it was.
        let whole = match going_on.and_then(|rest| rest.chars().next()) {
            Some(next) if next.is_alphanumeric() => heard.trim_end_matches(char::is_alphanumeric),
            _ => heard,
        };
        let read = Row::new(
            Text::read(whole),
            row.interrupted,
            row.role == TranscriptRole::ToolResult,
            row.is_error == Some(true),
        );
        self.rows.insert(row.index, (heard.to_owned(), read));
    }
}

/// The rows of one question.
struct View<'a> {
    judge: &'a RulesJudge,
    turn: &'a JudgeTurn<'a>,
    /// The index of the first row to look at.
    from: usize,
}

impl View<'_> {
    /// The clauses, all or any of them.
    fn together(&self, criterion: &Criterion) -> Verdict {
        let all = criterion.join == Join::All;
        let (mut doubt, mut last) = (None, None);
        for clause in &criterion.clauses {
            let verdict = self.clause(clause);
            match verdict.passed {
                // One clause settles it.
                Some(passed) if passed != all => return verdict,
                Some(_) => {
                    last.get_or_insert(verdict);
                }
                None => {
                    doubt.get_or_insert(verdict);
                }
            }
        }
        doubt.or(last).unwrap_or_else(|| undecided(not_understood(&Unknown::Shape)))
    }

    fn clause(&self, clause: &Clause) -> Verdict {
        let (finding, roles) = match self.find(clause) {
            Ok(found) => found,
            Err(reason) => return undecided(reason.to_owned()),
        };
        match finding.holds {
            Err(doubt) => undecided(self.doubt(doubt, finding.perhaps, roles)),
            Ok(false) if clause.negated && self.turns(roles).next().is_none() => {
                undecided("There is no line in which it could be.".to_owned())
            }
            Ok(holds) => {
                let index = finding.at.and_then(|at| self.index(roles, at));
                let reason = match (holds, clause.negated) {
                    (false, false) if self.was_cut_off(clause, roles) => {
                        "A line was going to say it, but was cut off before."
                    }
                    (true, false) => "It is said there.",
                    (true, true) => "It is said there, and should not be.",
                    (false, false) => "None of the lines has it.",
                    (false, true) => "None of the lines has it, as it should be.",
                };
                Verdict {
                    passed: Some(holds != clause.negated),
                    matched_index: index,
                    reason: reason.to_owned(),
                }
            }
        }
    }

    /// Why something is open, with the line that makes it doubtful.
    fn doubt(&self, doubt: Doubt, perhaps: Option<Place>, roles: &'static [TranscriptRole]) -> String {
        const LINE_BYTES_MAX: usize = 120;
        let place = match doubt {
            Doubt::Language => self.rows(roles).foreign(),
            _ => perhaps,
        };
        match place.and_then(|at| self.turns(roles).nth(at.row)) {
            Some(row) => {
                let line = truncate(collapse_whitespace(&row.text), LINE_BYTES_MAX);
                format!("{} The line in doubt: “{line}”.", told(doubt))
            }
            None => told(doubt).to_owned(),
        }
    }

    /// Whether a line would have met the clause, had it been heard to its end.
    fn was_cut_off(&self, clause: &Clause, roles: &'static [TranscriptRole]) -> bool {
        let intended = self
            .turns(roles)
            .filter(|row| row.interrupted)
            .filter_map(|row| Some(Row::new(Text::read(row.intended_text.as_deref()?), false, false, false)));
        let rows: Vec<Row> = intended.collect();
        Rows(rows.iter().collect()).find(clause).holds == Ok(true)
    }

    /// Looks for a clause in the rows of those whom it is about.
    fn find(&self, clause: &Clause) -> Result<(Finding, &'static [TranscriptRole]), &'static str> {
        let own: &'static [TranscriptRole] = match clause.who {
            None => {
                let only = self.turn.only;
                let found = |who| {
                    let roles = roles_of(who);
                    (self.rows(roles).find(clause), roles)
                };
                return Ok(match only {
                    Some(TranscriptRole::User) => found(Who::User),
                    Some(TranscriptRole::ToolResult) => found(Who::Tool),
                    Some(_) => found(Who::Assistant),
                    None => {
                        let assistants = found(Who::Assistant);
                        // What the caller alone says is not what the criterion means for certain.
                        match (assistants.0.holds, found(Who::User).0.holds) {
                            (Ok(false), Ok(true) | Err(_)) => {
                                return Err(
                                    "builtin/rules cannot decide this: only the caller may have said it, and the criterion does not say who should. Begin it with “The assistant”.",
                                );
                            }
                            _ => assistants,
                        }
                    }
                });
            }
            Some(who) => roles_of(who),
        };
        if self.turn.only.is_some_and(|only| !own.contains(&only)) {
            return Err(
                "builtin/rules cannot decide this: the evaluation's role leaves out the lines that the criterion is about.",
            );
        }
        Ok((self.rows(own).find(clause), own))
    }

    fn in_order(&self, criterion: &Criterion) -> Verdict {
        // Places of different speakers are compared by the index of their rows.
        let mut found = Vec::new();
        for clause in &criterion.clauses {
            match self.find(clause) {
                Ok((finding, roles)) => {
                    let place = |at: Option<Place>| at.and_then(|at| Some((self.index(roles, at)?, at.at)));
                    found.push((finding.holds, place(finding.at), place(finding.perhaps)));
                }
                Err(reason) => return undecided(reason.to_owned()),
            }
        }
        // The first has to be there, and in an order each.
        let needed = if criterion.join == Join::Before { 1 } else { found.len() };
        if found.iter().take(needed).any(|(holds, ..)| *holds == Ok(false)) {
            return decided(false, None, "A part of the order is in none of the lines.");
        }
        if let Some(doubt) = found.iter().find_map(|(holds, ..)| holds.err()) {
            return undecided(told(doubt).to_owned());
        }
        if found.iter().any(|(holds, ..)| *holds == Ok(false)) {
            return undecided(
                "builtin/rules cannot decide this: what should come later never comes.".to_owned(),
            );
        }
        let mut place = None;
        for (pair, clauses) in found.windows(2).zip(criterion.clauses.windows(2)) {
            let [(_, Some(first), first_perhaps), (_, Some(second), second_perhaps)] = pair else { continue };
            if first < &second_perhaps.unwrap_or(*second) {
                place = Some(second.0);
            } else if *second >= first_perhaps.unwrap_or(*first)
                || self.comes_again(criterion, clauses, first.0)
            {
                return undecided(told(Doubt::Occurs).to_owned());
            } else {
                return decided(false, Some(second.0), "It comes too early there.");
            }
        }
        decided(true, place, "All of it comes in the order of the criterion.")
    }

    /// Whether what came too early in an order may come once more in its place.
    fn comes_again(&self, criterion: &Criterion, clauses: &[Clause], after: usize) -> bool {
        let rest = View { from: after + 1, ..*self };
        let again = clauses.last().and_then(|clause| rest.find(clause).ok());
        criterion.join == Join::InOrder && again.is_some_and(|(finding, _)| finding.holds != Ok(false))
    }

    fn turns(&self, roles: &'static [TranscriptRole]) -> impl Iterator<Item = &TranscriptRow> {
        self.turn.turns.iter().copied().filter(move |row| row.index >= self.from && roles.contains(&row.role))
    }

    fn rows(&self, roles: &'static [TranscriptRole]) -> Rows<'_> {
        Rows(self.turns(roles).filter_map(|row| Some(&self.judge.rows.get(&row.index)?.1)).collect())
    }

    fn index(&self, roles: &'static [TranscriptRole], at: Place) -> Option<usize> {
        self.turns(roles).nth(at.row).map(|row| row.index)
    }
}

const fn roles_of(who: Who) -> &'static [TranscriptRole] {
    match who {
        Who::Assistant => &[TranscriptRole::Assistant],
        Who::User => &[TranscriptRole::User],
        Who::Tool => &[TranscriptRole::ToolResult],
        Who::Anybody => &[TranscriptRole::Assistant, TranscriptRole::User],
    }
}

fn not_understood(unknown: &Unknown) -> String {
    let what = match unknown {
        Unknown::Word(word) => format!("it does not know “{word}” there"),
        Unknown::Shape => "it is not clear what should be said, or how its parts belong together".to_owned(),
        Unknown::Value => "a number in it may mean several things".to_owned(),
        Unknown::TooLong => "it is too long".to_owned(),
    };
    format!(
        "builtin/rules cannot decide this criterion: {what}. It decides who says, never says, mentions, gives or asks for what. A provider's judge_model decides by meaning."
    )
}

const fn told(doubt: Doubt) -> &'static str {
    match doubt {
        Doubt::OtherWords => {
            "builtin/rules cannot decide this: it may be said in other words. Put the exact words into quotation marks, or let a provider's judge_model decide."
        }
        Doubt::Occurs => {
            "builtin/rules cannot decide this: something like it occurs, but perhaps not as it is meant, such as in a question, a negation or another form."
        }
        Doubt::Language => {
            "builtin/rules cannot decide this: it understands English only, and a line seems to be in another language."
        }
    }
}

fn decided(passed: bool, index: Option<usize>, reason: &str) -> Verdict {
    Verdict { passed: Some(passed), matched_index: index, reason: reason.to_owned() }
}

const fn undecided(reason: String) -> Verdict {
    Verdict { passed: None, matched_index: None, reason }
}

#[cfg(test)]
mod tests;
