//! The judgement of a criterion by a model.
use sidetone_engine::conversation::transcript::{TranscriptRole, TranscriptRow};
use sidetone_engine::models::{Answered, FailureCode, JudgeModel, JudgeTurn, ModelFailure, Verdict};

use crate::support::{Service, wait};

#[test]
fn a_verdict_contains_the_matching_turn() {
    let answered = ruled(&Service::new(), "fake/judge", "open at ten").unwrap();
    assert_eq!(
        answered.reply,
        Verdict { passed: Some(true), matched_index: Some(4), reason: "It was said.".into() }
    );
    let answered = ruled(&Service::new(), "fake/judge", "refund").unwrap();
    assert_eq!((answered.reply.passed, answered.reply.matched_index), (Some(false), None));
}

#[test]
fn an_invalid_verdict_is_requested_once_more() {
    let answered = ruled(&Service::new(), "fake/judge-garbled-once", "hello").unwrap();
    assert_eq!((answered.reply.matched_index, answered.requests), (Some(2), 2));
    let failure = ruled(&Service::new(), "fake/judge-garbled", "hello").unwrap_err();
    assert_eq!((failure.code, failure.requests), (FailureCode::Garbled, 2));
}

fn ruled(service: &Service, model: &str, criterion: &str) -> Result<Answered<Verdict>, ModelFailure> {
    let row = |index, text: &str| TranscriptRow::new(index, TranscriptRole::Assistant, text.to_owned(), 0, 0);
    let rows = [row(2, "Hello."), row(4, "We open at ten.")];
    let turns: Vec<_> = rows.iter().collect();
    let mut judge = JudgeModel::new(&service.services.config().catalog, model).unwrap();
    let turn = JudgeTurn { criterion, only: None, turns: &turns, vote: 0 };
    wait(judge.rule(service.services.ports(), &turn, i64::MAX.into()))
}
