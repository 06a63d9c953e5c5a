//! The judgement of a criterion by a model.
use sidetone_engine::models::{Answered, FailureCode, JudgeModel, JudgeTurn, ModelFailure, Verdict};

use crate::support::{Service, wait};

#[test]
fn a_verdict_contains_the_matching_turn() {
    let answered = ruled(&Service::new(), "fake/judge", "open at ten").unwrap();
    assert_eq!(
        answered.reply,
        Verdict { passed: true, matched_index: Some(4), reason: "It was said.".into() }
    );
    let answered = ruled(&Service::new(), "fake/judge", "refund").unwrap();
    assert_eq!((answered.reply.passed, answered.reply.matched_index), (false, None));
}

#[test]
fn an_invalid_verdict_is_requested_once_more() {
    let answered = ruled(&Service::new(), "fake/judge-garbled-once", "hello").unwrap();
    assert_eq!((answered.reply.matched_index, answered.requests), (Some(2), 2));
    let failure = ruled(&Service::new(), "fake/judge-garbled", "hello").unwrap_err();
    assert_eq!((failure.code, failure.requests), (FailureCode::Garbled, 2));
}

fn ruled(service: &Service, model: &str, criterion: &str) -> Result<Answered<Verdict>, ModelFailure> {
    let turns = [(2, "Hello."), (4, "We open at ten.")];
    let mut judge = JudgeModel::new(&service.services.config().catalog, model).unwrap();
    wait(judge.rule(service.services.ports(), &JudgeTurn { criterion, turns: &turns }, i64::MAX))
}
