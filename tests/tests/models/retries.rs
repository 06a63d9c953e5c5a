//! Retries, fallbacks, and the form of failures.
use sidetone_engine::models::{FailureCode, ModelFailure};

use sidetone_tests::fakes::openai::refusal::FORMS;

use crate::support::{Service, user};

#[track_caller]
fn fails(service: &Service, model: &str) -> ModelFailure {
    let failure = service.reply(model, &[user("Hello")]).unwrap_err();
    assert!(failure.message.starts_with(model), "{}", failure.message);
    assert!(!failure.message.contains(&service.key) && !failure.message.contains("http:"), "{failure:?}");
    failure
}

#[test]
fn temporary_failures_are_retried() {
    let service = Service::new();
    assert_eq!(service.said("fake/rate-limited", "Hello"), "Hello");
    assert_eq!(service.pauses(), [1_000], "the pause is Retry-After");
    for model in ["fake/broken-once", "fake/cut"] {
        let service = Service::new();
        assert_eq!(service.said(model, "Hello"), "Hello");
        assert_eq!(service.asked().len(), 2, "{model}");
        assert!((500..1_000).contains(&service.pauses()[0]), "{model}");
    }
}

#[test]
fn permanent_failures_are_reported() {
    for (model, code, requests) in [
        ("fake/broken", FailureCode::Unavailable, 3),
        ("fake/cut-always", FailureCode::Unavailable, 3),
        ("fake/error-in-stream", FailureCode::Unavailable, 3),
        ("nowhere/model", FailureCode::Unavailable, 3),
        ("fake/hangs", FailureCode::Timeout, 3),
        ("fake/hangs-halfway", FailureCode::Timeout, 3),
        ("fake/garbage", FailureCode::Garbled, 2),
        ("fake/says-nothing", FailureCode::Garbled, 2),
        ("fake/endless", FailureCode::Garbled, 1),
        ("fake/rejects", FailureCode::Rejected, 1),
        ("fake/no-such-model", FailureCode::Rejected, 1),
        ("fake/no-quota", FailureCode::RateLimited, 1),
    ] {
        let failure = fails(&Service::new(), model);
        assert_eq!((failure.code, failure.requests), (code, requests), "{failure:?}");
    }
    let service = Service::new();
    let failure = fails(&service, "fake/rejects");
    assert_eq!(
        failure.message,
        "fake/rejects rejected the request (HTTP 400): This model's maximum context length is 7."
    );
    // A server may quote the key in an error, whatever the key looks like.
    let failure = fails(&Service::with_key("context", "{}"), "fake/rejects");
    assert_eq!(
        failure.message,
        "fake/rejects rejected the request (HTTP 400): This model's maximum … length is 7."
    );
    // A partial answer has a cost, with or without token counts.
    let rate = r#"{"fake/cut-always": {"output_microusd_per_1m_tokens": 1000000}}"#;
    let failure = fails(&Service::with_models(rate), "fake/cut-always");
    assert_eq!(failure.usage.uncounted_answers, 3);
    assert!((3..40).contains(&failure.cost_microusd), "{failure:?}");
}

#[test]
fn no_try_starts_beyond_the_cost_limit() {
    let settings =
        r#"{"fake/cut-always": {"output_microusd_per_1m_tokens": 1000000, "fallback": ["fake/echo"]}}"#;
    let service = Service::with_models(settings);
    let answered = service.reply("fake/cut-always", &[user("Hello")]).unwrap();
    let one_microusd = answered.cost_microusd / 3;
    assert_eq!(answered.requests, 4, "three tries, and the fallback");
    for (most_microusd, requests) in
        [(1, 1), (one_microusd, 1), (one_microusd + 1, 2), (2 * one_microusd + 1, 3)]
    {
        let mut service = Service::with_models(settings);
        service.most_microusd = most_microusd;
        let failure = fails(&service, "fake/cut-always");
        assert_eq!(failure.requests, requests, "{most_microusd}: {failure:?}");
        assert!(failure.message.contains("cost limit was reached"), "{failure:?}");
    }
}

#[test]
fn an_invalid_key_is_the_operators_fault() {
    let service = Service::with_key("wrong", "{}");
    let failure = service.reply("fake/echo", &[user("Hello")]).unwrap_err();
    assert_eq!((failure.code, failure.requests), (FailureCode::Rejected, 1));
    assert!(!failure.message.contains("wrong") && !failure.message.contains("x.example"), "{failure:?}");
}

#[test]
fn a_field_that_the_server_rejects_is_omitted() {
    let service = Service::new();
    assert_eq!(service.said("fake/picky", "Hello"), "Hello");
    let seeds: Vec<bool> = service.asked().iter().map(|asked| asked.body.get("seed").is_some()).collect();
    assert_eq!(seeds, [true, false]);
    assert!(service.pauses().is_empty());
}

#[test]
fn a_rejected_field_is_recognised_in_every_servers_words() {
    for (form, _) in FORMS {
        let service = Service::new();
        assert_eq!(service.said(&format!("fake/strict-{form}"), "Hello"), "Hello");
        let asked = service.asked();
        let fields = ["max_completion_tokens", "seed", "stream_options"];
        let sent: Vec<_> =
            asked.iter().map(|asked| fields.map(|name| asked.body.get(name).is_some())).collect();
        let one_less_each_time = [[true, true, true], [false, true, true], [false, false, true]];
        assert_eq!(sent, one_less_each_time, "{form}: only the rejected field is left out");
        assert!(service.pauses().is_empty(), "{form}");
    }
}

#[test]
fn a_fallback_model_is_asked() {
    let service = Service::with_models(r#"{"fake/broken": {"fallback": ["fake/rejects", "fake/echo"]}}"#);
    let answered = service.reply("fake/broken", &[user("Hello")]).unwrap();
    assert_eq!(answered.requests, 5);
    let service = Service::with_models(r#"{"fake/broken": {"fallback": ["fake/rejects"]}}"#);
    let failure = fails(&service, "fake/broken");
    assert_eq!(failure.code, FailureCode::Unavailable, "the failure of the first model");
    assert!(failure.message.contains("asked 3 times; fake/rejects rejected"), "{}", failure.message);
}
