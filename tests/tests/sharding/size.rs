//! A measurement of the size of conversations.
use std::sync::Arc;

use serde_json::json;
use sidetone::database::Memory;
use sidetone::sandbox::memory;
use sidetone_tests::World;

use crate::schema::ask;

const RUNS: i64 = 10_000;
const RUNS_PER_BATCH: i64 = 100;
/// D1's limit.
const DATABASE_BYTES: i64 = 10_000_000_000;

/// `cargo test -p sidetone-tests --test sharding size -- --ignored --nocapture`
#[test]
#[ignore = "a measurement of half a minute"]
fn bytes_of_a_simulated_conversation() {
    let database = Arc::new(memory());
    let world = World::over(database.clone());
    // The README's tour: four lines, two evaluations.
    let assistant = world.create(
        "/assistants",
        json!({"name": "Front desk", "instructions": "You answer the phone for Blue Door Dental. Be brief.",
            "first_message": "Blue Door Dental, how can I help?"}),
    );
    let document = world.create(
        "/knowledge",
        json!({"name": "Opening hours", "content": "We are open Monday to Friday from nine to five. On Saturday we open at ten. We are closed on Sunday."}),
    );
    world
        .put(format!("/assistants/{}/knowledge", assistant.id), json!({"knowledge_ids": [document.id]}))
        .ok();
    let persona = world.create(
        "/simulations/personas",
        json!({"name": "Hurried parent", "system_prompt": "You are on your way to work and have one minute."}),
    );
    let scenario = world.create(
        "/simulations/scenarios",
        json!({"name": "Saturday opening", "instructions": "Ask \"When do you open on Saturday?\"", "evaluations": [
            {"kind": "transcript", "role": "assistant", "includes": "open at ten"},
            {"kind": "transcript_excludes", "role": "assistant", "includes": "closed on Saturday"}]}),
    );
    for _ in 0..RUNS_PER_BATCH {
        let body =
            json!({"assistant_id": assistant.id, "persona_id": persona.id, "scenario_id": scenario.id});
        world.create("/simulations", body);
    }
    let before = size_bytes(&database);
    for _ in 0..RUNS / RUNS_PER_BATCH {
        world.post("/simulations/runs/batch", json!({"assistant_id": assistant.id})).created();
        world.sandbox().unwrap().run_jobs();
    }
    let each = (size_bytes(&database) - before) / RUNS;
    println!("{RUNS} runs of four lines: {each} bytes each, {} in 10 GB", DATABASE_BYTES / each);
    assert!((500..20_000).contains(&each));
}

fn size_bytes(database: &Memory) -> i64 {
    let question = "SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()";
    ask(database, question, &[]).first().unwrap().integer("bytes").unwrap()
}
