//! Traces of calls, as a collector gets them from the binary and from the Worker. The Sandbox sends none.
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::json;
use sidetone_tests::World;
use sidetone_tests::receiver::{Received, Receiver, ReceiverBehaviour};

/// The longest time that a trace may take.
const SOON: Duration = Duration::from_secs(30);

/// By the official schema, in either form.
fn spans(sent: &Received) -> Vec<Span> {
    assert_eq!((sent.method.as_str(), sent.header("x-collector-key")), ("POST", "a key"));
    let request: ExportTraceServiceRequest = match sent.header("content-type") {
        "application/json" => serde_json::from_slice(&sent.body).expect("OTLP as JSON"),
        "application/x-protobuf" => Message::decode(sent.body.as_slice()).expect("OTLP"),
        other => panic!("{other}"),
    };
    let resource = format!("{:?}", request.resource_spans[0].resource);
    assert!(resource.contains("service.name") && resource.contains("edge-or-box"), "{resource}");
    assert!(resource.contains("deployment.environment.name"), "{resource}");
    let everything = String::from_utf8_lossy(&sent.body).into_owned();
    assert!(
        !everything.contains("Zanzibar") && !everything.contains("Welcome"),
        "nothing that was said: {everything}"
    );
    request.resource_spans.into_iter().flat_map(|of| of.scope_spans).flat_map(|of| of.spans).collect()
}

fn text<'a>(span: &'a Span, name: &str) -> Option<&'a str> {
    let found = span.attributes.iter().find(|attribute| attribute.key == name)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text),
        _ => None,
    }
}

/// All spans of the trace of this call, and its root.
fn trace_of(collector: &Receiver, call_id: &str) -> (Vec<Span>, Span) {
    let deadline = Instant::now() + SOON;
    loop {
        let all: Vec<Span> = collector.received().iter().flat_map(spans).collect();
        if let Some(root) = all.iter().find(|span| text(span, "gen_ai.conversation.id") == Some(call_id)) {
            let of_it = |span: &&Span| span.trace_id == root.trace_id;
            return (all.iter().filter(of_it).cloned().collect(), root.clone());
        }
        assert!(Instant::now() < deadline, "no trace of {call_id}: {all:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A conversation over a test link, which has ended.
fn conversation(world: &World, assistant: &str) -> String {
    let mut client = world.start_conversation(assistant);
    let id = client.expect("call_started")["call"]["id"].as_str().unwrap().to_owned();
    client.hear();
    client.say("What are your hours, please? I come from Zanzibar.");
    client.hear();
    client.send(r#"{"type": "hang_up"}"#);
    drop(client);
    let deadline = Instant::now() + SOON;
    while world.get(format!("/calls/{id}")).ok().json["status"] != "ended" {
        assert!(Instant::now() < deadline, "the call does not end");
        std::thread::sleep(Duration::from_millis(50));
    }
    id
}

#[test]
fn a_collector_gets_a_trace_of_each_call_and_holds_none_up() {
    let collector = Receiver::start(ReceiverBehaviour::Hang);
    let url = collector.url();
    let world = World::of_its_own(&[
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &url),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-collector-key=a%20key"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test"),
        ("OTEL_SERVICE_NAME", "edge-or-box"),
        ("OTEL_BSP_SCHEDULE_DELAY", "200"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "2000"),
    ]);
    if world.sandbox().is_some() {
        return;
    }
    let assistant = world.create(
        "/assistants",
        json!({"name": "A", "instructions": "Answer the question.", "first_message": "Welcome to us."}),
    );

    // It does not answer: the conversation ends all the same, and the next one begins.
    let first = conversation(&world, &assistant.id);
    let asked = collector.wait_for(1, SOON)[0].at;
    world.settled_call(&first);
    // The Worker gives a collector five seconds.
    assert!(asked.elapsed() < Duration::from_millis(4_500), "it took {:?}", asked.elapsed());
    collector.set(ReceiverBehaviour::Status(200));

    let id = conversation(&world, &assistant.id);
    let (spans, root) = trace_of(&collector, &id);
    assert_eq!((root.name.as_str(), root.parent_span_id.len()), ("invoke_agent", 0));
    assert_eq!((root.trace_id.len(), root.span_id.len()), (16, 8));
    assert_eq!(text(&root, "gen_ai.request.model"), Some("rules"));
    assert!(text(&root, "sidetone.workspace.id").is_some_and(|id| id.starts_with("ws_")));
    for span in &spans {
        assert!(root.start_time_unix_nano <= span.start_time_unix_nano, "{span:?}");
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano, "{span:?}");
    }
    let of = |parent: &Span, name: &str| {
        spans.iter().find(|span| span.parent_span_id == parent.span_id && span.name == name)
    };
    let turn = of(&root, "turn").unwrap_or_else(|| panic!("{spans:?}"));
    assert!(of(turn, "chat rules").is_some_and(|chat| chat.kind == 3), "{spans:?}");

    // A run is a call, too, and ends in a job.
    let persona =
        world.create("/simulations/personas", json!({"name": "P", "system_prompt": "You are brief."}));
    let scenario = world.create(
        "/simulations/scenarios",
        json!({"name": "S", "instructions": "Ask \"Do you open in Zanzibar?\""}),
    );
    let simulation = world.create(
        "/simulations",
        json!({"assistant_id": assistant.id, "persona_id": persona.id, "scenario_id": scenario.id}),
    );
    let run = world.post(format!("/simulations/{}/runs", simulation.id), json!({"mode": "chat"}));
    let run_id = run.json["id"].as_str().unwrap().to_owned();
    let done = world.settle(&run_id);
    let call_id = done["call_id"].as_str().unwrap_or_else(|| panic!("{done}")).to_owned();
    let (_, root) = trace_of(&collector, &call_id);
    assert_eq!(text(&root, "sidetone.run.id"), Some(run_id.as_str()));
}
