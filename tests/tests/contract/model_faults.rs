//! Who is at fault when a model does not answer: its provider, or the operator, if a setting is wrong.
use serde_json::{Value, json};
use sidetone_engine::ports::{HttpError, HttpReply};
use sidetone_engine::sql;
use sidetone_tests::{Created, World};

const MODEL: &str = "openai/some-model";

type Answer = fn() -> Result<HttpReply, HttpError>;

/// The provider's response and the expected fault.
const ANSWERS: [(&str, Answer, &str); 6] = [
    ("a server error", || refusal(500, ""), "provider"),
    ("a timeout", || Err(HttpError::Timeout), "provider"),
    ("a rejected request", || refusal(400, ""), "provider"),
    ("a rejected key", || refusal(401, ""), "operator"),
    ("an empty account", || refusal(429, "insufficient_quota"), "operator"),
    ("a forbidden address", || Err(HttpError::Refused), "operator"),
];

fn refusal(status: u16, kind: &str) -> Result<HttpReply, HttpError> {
    let body = json!({"error": {"message": "no", "type": kind}}).to_string();
    Ok(HttpReply { status, headers: Vec::new(), body: body.into() })
}

/// A service whose provider gives this answer.
fn world(answer: Answer) -> World {
    let world = World::with_settings(&[("SIDETONE_OPENAI_API_KEY", "sk-hush")]);
    world.sandbox().unwrap().answer_http_with(move |_| answer());
    world
}

fn assistant(world: &World, model: &str) -> Created {
    world.create("/assistants", json!({"name": "Desk", "instructions": "Be kind.", "model": model}))
}

/// A queued run with these models.
fn run(world: &World, caller: &str, model: &str, judge: &str) -> Created {
    let evaluations = json!([{"kind": "judge", "role": "any", "includes": "The assistant is kind."}]);
    let persona = world.create(
        "/simulations/personas",
        json!({"name": "Ada", "system_prompt": "You are in a hurry.", "model": caller}),
    );
    let scenario = world.create(
        "/simulations/scenarios",
        json!({"name": "Hello", "instructions": "Say \"Hello\".", "evaluations": evaluations, "judge_model": judge}),
    );
    let simulation = world.create(
        "/simulations",
        json!({"assistant_id": assistant(world, model).id, "persona_id": persona.id, "scenario_id": scenario.id}),
    );
    world.create(&format!("/simulations/{}/runs", simulation.id), json!({"seed": 7}))
}

fn end(call: &Value) -> [&str; 3] {
    ["outcome", "ended_reason", "fault"].map(|name| call[name].as_str().unwrap_or("null"))
}

#[test]
fn a_failed_run_names_the_model_and_its_call_has_the_fault() {
    for (what, answer, fault) in ANSWERS {
        for (caller, model) in [(MODEL, "builtin/rules"), ("builtin/rules", MODEL)] {
            let world = world(answer);
            let run = world.settle(&run(&world, caller, model, "builtin/rules").id);
            assert_eq!(run["status"], "error", "{what}: {run:#}");
            let whose = if caller == MODEL { "The caller's model" } else { "The assistant's model" };
            assert!(run["error"]["message"].as_str().unwrap().starts_with(whose), "{what}: {run:#}");
            assert_eq!(end(&run["call"]), ["failed", "model_failed", fault], "{what}, {whose}");
        }
    }
}

#[test]
fn a_failing_judge_does_not_change_the_fault_of_the_call() {
    for (what, answer, _) in ANSWERS {
        let world = world(answer);
        let run = world.settle(&run(&world, "builtin/rules", "builtin/rules", MODEL).id);
        assert_eq!(run["status"], "error", "{what}: {run:#}");
        assert_eq!(end(&run["call"])[2], "none", "{what}: {run:#}");
    }
}

#[test]
fn a_live_call_has_the_fault() {
    for (what, answer, fault) in ANSWERS {
        let world = world(answer);
        let call = greeted(&world, &assistant(&world, MODEL));
        assert_eq!(end(&call), ["failed", "model_failed", fault], "{what}: {call:#}");
    }
}

#[test]
fn a_removed_provider_is_the_operators_fault() {
    let world = world(|| refusal(500, ""));
    let expected = ["failed", "model_failed", "operator"];
    let assistant = assistant(&world, MODEL);
    world.write(vec![sql!("UPDATE assistants SET model = 'gone/model' WHERE id = :id", id = &assistant.id)]);
    let call = greeted(&world, &assistant);
    assert_eq!(end(&call), expected, "{call:#}");

    let run = run(&world, MODEL, "builtin/rules", "builtin/rules");
    world.write(vec![sql!(
        "UPDATE snapshots SET content = replace(content, 'openai/some-model', 'gone/model') WHERE id IN
         (SELECT simulation_snapshot FROM runs WHERE id = :id)",
        id = &run.id
    )]);
    let run = world.settle(&run.id);
    assert_eq!((&run["status"], &run["error"]["code"]), (&json!("error"), &json!("model_unavailable")));
    assert_eq!(end(&run["call"]), expected, "{run:#}");
}

/// Says hello to the assistant; returns the settled call.
#[track_caller]
fn greeted(world: &World, assistant: &Created) -> Value {
    let mut client = world.start_conversation(&assistant.id);
    let call_id = client.expect("call_started")["call"]["id"].as_str().unwrap().to_owned();
    client.say("Hello");
    assert_eq!(client.expect("error")["code"], "model_failed");
    client.expect("call_ended");
    world.settled_call(&call_id)
}
