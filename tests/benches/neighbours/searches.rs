//! A has many calls, and four clients that search them for a letter without end. B reads an assistant, and searches its
//! few calls.
use sidetone_engine::base::api_key::ApiKey;
use sidetone_engine::base::ids::{AssistantId, CallId, WorkspaceId};
use sidetone_engine::base::time::Timestamp;
use sidetone_engine::base::values::{Metadata, Variables};
use sidetone_engine::conversation::transcript::{TranscriptRole, TranscriptRow};
use sidetone_engine::conversation::{CallFault, EndedReason, Outcome};
use sidetone_engine::services::Services;
use sidetone_engine::sql;
use sidetone_engine::storage::calls::{
    CallStatus, Costs, Direction, EndedCall, NewCall, Source, Usage, write,
};
use sidetone_tests::direct_access::wait;

use crate::scene::{Scene, assistant};

const CALLS_OF_A: usize = 30_000;
const CALLS_OF_B: usize = 20;
const CLIENTS_OF_A: usize = 4;
const REQUESTS_OF_B: usize = 200;
/// Calls per batch while they are written.
const BATCH: usize = 500;
/// 2026-01-01T00:00:00Z
const FIRST_MS: i64 = 1_767_225_600_000;

pub fn load(scene: &Scene) {
    let storage = scene.storage();
    scene.a().expect(200, "GET", "/calls", None);
    write_calls(&storage, &workspace_of(&storage, scene.key_of_a()), CALLS_OF_A);
    search(scene);
}

/// Searches without end.
pub fn search(scene: &Scene) {
    for _ in 0..CLIENTS_OF_A {
        let mut client = scene.a();
        scene.repeat(move || client.send("GET", "/calls?search=e", &[], None).map(drop));
    }
}

/// An assistant, and a search, in turn.
pub fn measure(scene: &Scene) -> Vec<f64> {
    let mut b = scene.b();
    let desk = format!("/assistants/{}", assistant(&mut b, "Be brief."));
    let storage = scene.storage();
    write_calls(&storage, &workspace_of(&storage, scene.key_of_b()), CALLS_OF_B);
    let paths = [desk.as_str(), "/calls?search=e"];
    (0..REQUESTS_OF_B).map(|nth| scene.ask(&mut b, 200, "GET", paths[nth % 2], None)).collect()
}

fn workspace_of(storage: &Services, key: &str) -> WorkspaceId {
    let hash = ApiKey::parse(key).expect("a key").sha256_hex();
    let select = sql!("SELECT workspace_id FROM api_keys WHERE hash = :hash", hash = hash);
    let rows = wait(storage.ports().database.read(vec![select])).expect("a read");
    rows[0].first().expect("the key is known").id("workspace_id").expect("an id")
}

/// Ended calls with a transcript, in which every line has words that begin with an e.
pub fn write_calls(storage: &Services, workspace_id: &WorkspaceId, count: usize) {
    for first in (0..count).step_by(BATCH) {
        let batch = (first..count.min(first + BATCH)).flat_map(|nth| {
            let new = call(storage, workspace_id, nth);
            write::record(&new, Some(&ended(nth)), None)
        });
        wait(storage.ports().database.write(batch.collect())).expect("calls can be written");
    }
}

fn call(storage: &Services, workspace_id: &WorkspaceId, nth: usize) -> NewCall {
    NewCall {
        workspace_id: workspace_id.clone(),
        id: storage.new_id::<CallId>(),
        assistant_id: storage.new_id::<AssistantId>(),
        assistant_revision: 1,
        source: Source::Browser,
        direction: Direction::Inbound,
        status: CallStatus::InProgress,
        from: None,
        to: None,
        user_number: None,
        provider: None,
        carrier_call_id: None,
        model: "builtin/rules".to_owned(),
        voice: "builtin/tone".to_owned(),
        started_at: at(nth),
        answered_at: None,
        simulation_run_id: None,
        snapshot: None,
        variables: Variables::default(),
        metadata: Metadata::default(),
    }
}

fn ended(nth: usize) -> EndedCall {
    let line = |index: usize| {
        let role = if index.is_multiple_of(2) { TranscriptRole::Assistant } else { TranscriptRole::User };
        let text = format!("e {} e{} everybody expects an early end e{index}", nth % 97, nth * 7 + index);
        TranscriptRow::new(index, role, text, 0, 1_000)
    };
    EndedCall {
        answered_at: Some(at(nth)),
        ended_at: at(nth),
        duration_ms: 1_000,
        outcome: Outcome::Completed,
        ended_reason: Some(EndedReason::UserHungUp),
        fault: CallFault::None,
        transcript: (0..10).map(line).collect(),
        turns: Vec::new(),
        costs: Costs::of(0, 0, 0, 0),
        usage: Usage { llm_input_tokens: 0, llm_output_tokens: 0, llm_uncounted_answers: 0 },
    }
}

fn at(nth: usize) -> Timestamp {
    Timestamp::from_ms(FIRST_MS + i64::try_from(nth).unwrap_or_default() * 60_000)
}
