//! The same in a Sandbox, with scripted responses and a clock that pauses advance.
use bytes::Bytes;
use sidetone::Sandbox;
use sidetone::sandbox::block_on;
use sidetone_engine::conversation::{AssistantReply, AssistantTurn};
use sidetone_engine::models::{Answered, AssistantModel, FailureCode, ModelFailure};
use sidetone_engine::ports::{Egress, HttpError};

use crate::support::user;

const ANSWER: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Grüß Gott\"}}]}\n\ndata: [DONE]\n\n";

#[test]
fn a_response_may_arrive_in_any_chunks() {
    let sandbox = sandbox();
    for size in [1, 2, 3, 1_000] {
        let pieces: Vec<_> =
            ANSWER.as_bytes().chunks(size).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        sandbox.answer_http_chunks(200, &[("content-type", "text/event-stream")], pieces);
        assert_eq!(reply(&sandbox).unwrap().reply, AssistantReply::Say { text: "Grüß Gott".into() });
    }
    let sent = sandbox.sent_http().remove(0);
    assert_eq!(sent.url, "https://api.openai.com/v1/chat/completions");
    assert_eq!(sent.egress, Egress::Operator);
    assert!(sent.headers.contains(&("authorization", "Bearer sk-hush".to_owned())));
}

#[test]
fn pauses_only_advance_the_clock() {
    let sandbox = sandbox();
    let now_ms = || sandbox.services().ports().clock.now_ms();
    let began_ms = now_ms();
    // 2026-01-01T00:00:05Z is five seconds after the start of a Sandbox.
    for retry_after in ["2", "Thu, 01 Jan 2026 00:00:05 GMT"] {
        sandbox.answer_http_chunks(429, &[("retry-after", retry_after)], [Ok(Bytes::from_static(b"{}"))]);
    }
    sandbox.answer_http(200, ANSWER);
    assert!(reply(&sandbox).is_ok());
    assert_eq!(now_ms() - began_ms, 5_000);
}

#[test]
fn a_pause_beyond_the_deadline_is_not_started() {
    let sandbox = sandbox();
    sandbox.answer_http_chunks(429, &[("retry-after", "3600")], []);
    let failure = reply(&sandbox).unwrap_err();
    assert_eq!((failure.code, failure.requests), (FailureCode::RateLimited, 1));
}

#[test]
fn an_interrupted_stream_is_retried() {
    let sandbox = sandbox();
    let begun = Bytes::from_static(&ANSWER.as_bytes()[..40]);
    sandbox.answer_http_chunks(200, &[], [Ok(begun), Err(HttpError::Failed("reset".into()))]);
    sandbox.fail_http(HttpError::Timeout);
    sandbox.answer_http(200, ANSWER);
    let answered = reply(&sandbox).unwrap();
    assert_eq!((answered.requests, answered.usage.uncounted_answers), (3, 2));
}

/// Gateways send status 200 before they have an answer from the model.
#[test]
fn an_error_with_status_200_costs_nothing() {
    let sandbox = sandbox();
    let whole = r#"{"error": {"message": "No instances available", "code": 503}}"#;
    for body in [whole.to_owned(), format!("data: {whole}\n\ndata: [DONE]\n\n")] {
        sandbox.answer_http(200, &body);
        sandbox.answer_http(200, ANSWER);
        let answered = reply(&sandbox).unwrap();
        assert_eq!((answered.requests, answered.usage.uncounted_answers), (2, 1), "{body}");
    }
    let begun = r#"data: {"choices": [{"delta": {"content": "Your order"}}]}"#;
    sandbox.answer_http(200, &format!("{begun}\n\ndata: {whole}\n\n"));
    sandbox.answer_http(200, ANSWER);
    assert_eq!(reply(&sandbox).unwrap().usage.uncounted_answers, 2);
}

#[test]
fn failures_never_contain_the_key() {
    let sandbox = sandbox();
    let body = r#"{"error": {"message": "Incorrect API key provided: sk-hush. Ask at https://x.example"}}"#;
    sandbox.answer_http(401, body);
    sandbox.answer_http(400, body);
    for _ in 0..2 {
        let failure = reply(&sandbox).unwrap_err();
        assert_eq!(failure.code, FailureCode::Rejected);
        assert!(!failure.message.contains("hush") && !failure.message.contains("x.example"), "{failure:?}");
    }
    assert!(!format!("{:?}", sandbox.services().config().catalog).contains("hush"));
}

fn sandbox() -> Sandbox {
    Sandbox::with_settings(&[("SIDETONE_OPENAI_API_KEY", "sk-hush")])
}

fn reply(sandbox: &Sandbox) -> Result<Answered<AssistantReply>, ModelFailure> {
    let engine = sandbox.services();
    let history = [user("Hello")];
    let turn =
        AssistantTurn { instructions: "Be kind.", knowledge: &[], tools: &[], history: &history, seed: 7 };
    let model = AssistantModel::new(&engine.config().catalog, "openai/some-model", &[], &[])?;
    block_on(model.reply(engine.ports(), &turn, i64::MAX.into(), None))
}
