//! The flow of the client that progenitor made.
use std::time::Duration;
use std::{env, error};

use progenitor_flow::types::{self, EvaluationInput, EvaluationKind, EvaluationRole, RunMode, RunStatus};
use progenitor_flow::{Client, Error};
use reqwest::header::{AUTHORIZATION, HeaderMap};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn error::Error>> {
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, format!("Bearer {}", env::var("SIDETONE_KEY")?).parse()?);
    let http = reqwest::Client::builder().default_headers(headers).build()?;
    let client = Client::new_with_client(&env::var("SIDETONE_URL")?, http);

    let assistant = client
        .create_assistant()
        .body_map(|body| {
            body.name("Harbour Dental")
                .instructions("You answer the telephone.")
                .first_message("Harbour Dental, hello.")
        })
        .send()
        .await?
        .into_inner();
    assert!(assistant.created_at.timestamp() > 0, "times are times");
    let listed = client.list_assistants().limit(20).send().await?.into_inner();
    assert!(listed.iter().any(|one| one.id == assistant.id), "the assistant is in the list");

    let persona = client
        .create_simulation_persona()
        .body_map(|body| body.name("Mira").system_prompt("A caller in a hurry."))
        .send()
        .await?;
    let evaluation: EvaluationInput = EvaluationInput::builder()
        .kind(EvaluationKind::Transcript)
        .role(EvaluationRole::Assistant)
        .includes("hello")
        .try_into()?;
    let scenario = client
        .create_simulation_scenario()
        .body_map(|body| {
            body.name("A greeting").instructions(r#"Say: "Hello.""#).evaluations(vec![evaluation])
        })
        .send()
        .await?;
    let simulation = client
        .create_simulation()
        .body_map(|body| {
            body.assistant_id(&*assistant.id).persona_id(&*persona.id).scenario_id(&*scenario.id)
        })
        .send()
        .await?;
    let seed = 7_000_000_000_i64; // more than 32 bits
    let queued = client
        .start_simulation_run()
        .id(&*simulation.id)
        .body_map(|body| body.mode(RunMode::Chat).seed(seed))
        .send()
        .await?;
    let mut run = client.get_simulation_run().id(&*queued.id).send().await?;
    for _ in 0..1200 {
        if run.status == RunStatus::Completed {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        run = client.get_simulation_run().id(&*queued.id).send().await?;
    }
    assert!(run.passed == Some(true) && run.error.is_none(), "the run has not passed: {run:?}");
    assert_eq!(run.seed, seed);
    assert_eq!(run.evaluations[0].passed, Some(true));
    let call = run.call.as_ref().expect("a run that has ended has a call");
    let transcript = call.transcript.as_ref().expect("a read has the transcript");
    assert_eq!(transcript[0].role, types::TranscriptRole::Assistant);

    let refused = client.create_tool().body_map(|body| body.name("x").description("x").url("x")).send().await;
    let Err(Error::ErrorResponse(error)) = refused else { panic!("a bad URL was taken: {refused:?}") };
    assert_eq!(error.status(), 422);
    assert_eq!(error.error.code, types::ErrorErrorCode::ValidationFailed);
    println!("progenitor: a run of {} rows passed", transcript.len());
    Ok(())
}
