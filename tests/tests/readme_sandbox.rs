//! The Rust tests that README.md and docs/testing.md show, unchanged.
use serde_json::json;
use sidetone::Sandbox;

#[test]
fn the_front_desk_knows_when_we_open() {
    let sandbox = Sandbox::new();
    let make = |path: &str, body| sandbox.post(path, body)["id"].as_str().unwrap().to_owned();
    let assistant = make("/assistants", json!({"name": "Front desk", "instructions": "Be brief."}));
    let hours = make("/knowledge", json!({"name": "Hours", "content": "On Saturday we open at ten."}));
    sandbox.put(&format!("/assistants/{assistant}/knowledge"), json!({"knowledge_ids": [hours]}));
    let persona = make("/simulations/personas", json!({"name": "Caller", "system_prompt": "Polite."}));
    let scenario = make(
        "/simulations/scenarios",
        json!({"name": "Saturday", "instructions": "When do you open on Saturday?",
        "evaluations": [{"kind": "transcript", "role": "assistant", "includes": "open at ten"}]}),
    );
    let simulation = make(
        "/simulations",
        json!({"assistant_id": assistant, "persona_id": persona, "scenario_id": scenario}),
    );
    let run = make(&format!("/simulations/{simulation}/runs"), json!({"seed": 7}));
    sandbox.run_jobs();
    assert_eq!(sandbox.get(&format!("/simulations/runs/{run}"))["passed"], true);
}

#[test]
fn an_assistant_can_be_created() {
    let front_desk = json!({"name": "Front desk", "instructions": "Be kind."});
    assert_eq!(Sandbox::new().post("/assistants", front_desk).status, 201);
}

#[test]
fn the_documentation_contains_these_tests() {
    let source = include_str!("readme_sandbox.rs");
    for (name, document) in [
        ("README.md", include_str!("../../README.md")),
        ("docs/testing.md", include_str!("../../docs/testing.md")),
    ] {
        let block = document.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next());
        let test = block.and_then(|block| block.find("#[test]").map(|start| &block[start..]));
        let test = test.unwrap_or_else(|| panic!("{name} contains no Rust test"));
        assert!(source.contains(test), "{name} contains a different test:\n{test}");
    }
}
