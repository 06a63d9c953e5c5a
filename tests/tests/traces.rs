//! Traces of calls, as a collector gets them from the binary.
#![allow(missing_docs, clippy::expect_used, clippy::panic, reason = "a test")]
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::json;
use sidetone_tests::LiveClient;
use sidetone_tests::process::{Folder, Server, bootstrap_key};
use sidetone_tests::receiver::{Receiver, ReceiverBehaviour};

/// A service that sends its traces to `collector`, and the id of a call that has ended there.
fn call(folder: &Folder, collector: &Receiver) -> (Server, String) {
    let key = bootstrap_key(1);
    let url = collector.url();
    let settings = [
        ("SIDETONE_BOOTSTRAP_KEYS", key.as_str()),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &url),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-collector-key=a%20key%2541"),
        // As good as none.
        ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", ""),
        ("OTEL_BSP_SCHEDULE_DELAY", "200"),
        ("SIDETONE_STOP_SECONDS", "2"),
    ];
    let server = Server::start(&folder.path().join("data"), &settings);
    let mut client = server.connect(&key);
    let body =
        json!({"name": "A", "instructions": "Answer the question.", "first_message": "Welcome to us."});
    let assistant = client.expect(201, "POST", "/assistants", Some(&body));
    let path = format!("/assistants/{}/test-token", assistant["id"].as_str().expect("an id"));
    let token = client.expect(200, "POST", &path, Some(&json!({})));
    let url = token["websocket_url"].as_str().expect("a URL");
    let path = url.find("/voice-test").map_or(url, |at| &url[at..]);
    let mut talking = LiveClient::over_tcp(server.address(), path).expect("the token is good");
    let id = talking.expect("call_started")["call"]["id"].as_str().expect("an id").to_owned();
    talking.hear();
    talking.say("What are your hours, please? My number is 4711.");
    talking.hear();
    drop(talking);
    let deadline = Instant::now() + Duration::from_secs(20);
    while client.expect(200, "GET", &format!("/calls/{id}"), None)["status"] != "ended" {
        assert!(Instant::now() < deadline, "the call does not end");
        std::thread::sleep(Duration::from_millis(50));
    }
    (server, id)
}

fn text<'a>(span: &'a Span, name: &str) -> Option<&'a str> {
    let found = span.attributes.iter().find(|attribute| attribute.key == name)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text),
        _ => None,
    }
}

#[test]
fn a_collector_gets_a_trace_of_each_call() {
    let folder = Folder::new();
    let collector = Receiver::start(ReceiverBehaviour::Status(204));
    let (server, id) = call(&folder, &collector);
    let received = collector.wait_for(1, Duration::from_secs(20));
    assert!(server.stop().success());
    let sent = &received[0];
    assert_eq!((sent.method.as_str(), sent.header("content-type")), ("POST", "application/x-protobuf"));
    assert_eq!(sent.header("x-collector-key"), "a key%41");
    let request = ExportTraceServiceRequest::decode(sent.body.as_slice()).expect("OTLP");
    let resource = format!("{:?}", request.resource_spans[0].resource);
    assert!(resource.contains("service.name") && resource.contains("sidetone"), "{resource}");
    let spans: Vec<&Span> =
        request.resource_spans.iter().flat_map(|of| &of.scope_spans).flat_map(|of| &of.spans).collect();
    let root = spans.iter().find(|span| span.parent_span_id.is_empty()).expect("a root");
    assert_eq!(
        (root.name.as_str(), text(root, "gen_ai.conversation.id")),
        ("invoke_agent", Some(id.as_str()))
    );
    assert_eq!(text(root, "gen_ai.request.model"), Some("rules"));
    assert!(text(root, "sidetone.workspace.id").is_some_and(|id| id.starts_with("ws_")));
    assert!(
        spans
            .iter()
            .all(|span| span.trace_id == root.trace_id
                && root.start_time_unix_nano <= span.start_time_unix_nano)
    );
    let of = |parent: &Span, name: &str| {
        spans.iter().find(|span| span.parent_span_id == parent.span_id && span.name == name).copied()
    };
    let turn = of(root, "turn").unwrap_or_else(|| panic!("{spans:?}"));
    assert!(of(turn, "chat rules").is_some(), "{spans:?}");
    let everything = String::from_utf8_lossy(&sent.body).into_owned();
    assert!(!everything.contains("4711") && !everything.contains("Welcome"), "nothing that was said");
}

#[test]
fn a_batch_that_is_taken_at_a_later_attempt_is_not_lost() {
    let folder = Folder::new();
    let collector = Receiver::start(ReceiverBehaviour::With(503, "retry-after", "1".to_owned()));
    let (server, _) = call(&folder, &collector);
    collector.wait_for(1, Duration::from_secs(20));
    collector.set(ReceiverBehaviour::Status(200));
    let attempts = collector.wait_for(2, Duration::from_secs(20));
    assert!(attempts[1].at - attempts[0].at >= Duration::from_secs(1), "as the collector asked");
    std::thread::sleep(Duration::from_millis(500));
    assert!(!server.log().contains("traces"), "nothing is lost: {}", server.log());
    assert!(server.stop().success());
}

#[test]
fn spans_that_a_collector_rejects_are_logged() {
    let folder = Folder::new();
    let collector = Receiver::start(ReceiverBehaviour::Says("\u{a}\u{6}\u{8}\u{2}\u{12}\u{2}no"));
    let (server, _) = call(&folder, &collector);
    server.logs("rejected_spans=2 error_message=\"no\"");
    assert!(server.stop().success());
}

#[test]
fn a_batch_that_is_lost_is_logged_once() {
    let folder = Folder::new();
    let collector = Receiver::start(ReceiverBehaviour::Status(400));
    let (server, _) = call(&folder, &collector);
    server.logs("it answered 400");
    std::thread::sleep(Duration::from_millis(500));
    let log = server.log();
    let is_about_traces = |line: &&str| line.contains("traces") || line.contains("opentelemetry");
    let warnings: Vec<&str> = log.lines().filter(is_about_traces).collect();
    assert!(matches!(warnings[..], [line] if line.contains("it answered 400")), "{warnings:?}");
    assert!(server.stop().success());
}

#[test]
fn a_collector_that_does_not_answer_holds_nothing_up() {
    let folder = Folder::new();
    let collector = Receiver::start(ReceiverBehaviour::Hang);
    let (server, _) = call(&folder, &collector);
    collector.wait_for(1, Duration::from_secs(20));
    let mut client = server.connect(&bootstrap_key(1));
    client.expect(200, "GET", "/calls", None);
    let started = Instant::now();
    assert!(server.stop().success());
    assert!(started.elapsed() < Duration::from_secs(7), "the longest time that stopping takes");
}
