//! The monthly limit with a provider's models: what starts reserves, what does not fit is not asked, what ends gives back.
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidetone_engine::base::limits::{INTEGER_MAX, LIVE_LEASE_MS, MODEL_REPLY_TOKENS_MAX};
use sidetone_tests::{LiveClient, World, fakes, until};

use crate::support::Fixture;

/// Runs of each batch.
const RUNS: usize = 20;
/// The limit, which one conversation of the fixture exceeds with its second or third answer.
const LIMIT_MICROUSD: i64 = 1_000;
/// More than any answer in these tests costs: the fake's models take 2 microusd for a token in, 8 for one out.
const ANSWER_MICROUSD: i64 = 4_000;

fn limit(world: &World, microusd: Option<i64>) {
    world.patch("/workspace", json!({"monthly_spend_limit_microusd": microusd})).ok();
}

fn money(world: &World) -> (i64, i64) {
    let workspace = world.get("/workspace").ok().json;
    let of = |name: &str| workspace[name].as_i64().unwrap();
    (of("spent_this_month_microusd"), of("reserved_microusd"))
}

fn reserved(world: &World) -> i64 {
    money(world).1
}

/// Queues runs of an assistant that all cost something; returns their ids.
fn queue(fixture: &Fixture, runs: usize, max_cost_microusd: i64) -> Vec<String> {
    let first = fixture.simulation(&["One", "Two", "Three"], json!([])).json;
    for _ in 1..runs {
        fixture.world.create(
            "/simulations",
            json!({"assistant_id": fixture.assistant.id, "persona_id": first["persona_id"],
                   "scenario_id": first["scenario_id"]}),
        );
    }
    let batch =
        json!({"assistant_id": fixture.assistant.id, "seed": 3, "max_cost_microusd": max_cost_microusd});
    let batch = fixture.world.post("/simulations/runs/batch", batch).created();
    let queued = batch["runs"].as_array().unwrap();
    queued.iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn queued_runs_stop_at_the_limit() {
    let fixture = Fixture::new("echo");
    let world = &fixture.world;
    limit(world, Some(LIMIT_MICROUSD));
    let runs: Vec<Value> = queue(&fixture, RUNS, INTEGER_MAX).iter().map(|id| world.settle(id)).collect();
    let (refused, ran): (Vec<&Value>, Vec<&Value>) = runs.iter().partition(|run| run["status"] == "error");
    for run in &refused {
        assert_eq!(run["error"]["code"], "spend_limit_reached", "{run:#}");
        let untouched = (&run["cost_microusd"], &run["call"], &run["call_id"]);
        assert_eq!(untouched, (&json!(0), &Value::Null, &Value::Null), "{run:#}");
        assert!(run["completed_at"].is_string() && run["started_at"].is_null(), "{run:#}");
    }
    let mut spent = 0;
    for run in &ran {
        let reason = run["call"]["ended_reason"].as_str().unwrap();
        assert!(run["status"] == "completed" && ["cost_limit", "user_hung_up"].contains(&reason), "{run:#}");
        let (cost, most) =
            (run["cost_microusd"].as_i64().unwrap(), run["max_cost_microusd"].as_i64().unwrap());
        assert!(most <= LIMIT_MICROUSD, "clamped: {run:#}");
        assert!(cost <= most + ANSWER_MICROUSD, "one answer more at most: {run:#}");
        spent += cost;
    }
    assert!(!ran.is_empty() && refused.len() > RUNS / 2, "{} ran, {} were refused", ran.len(), refused.len());
    // What all had together, and one answer of the only one that was under way.
    assert_eq!(money(world), (spent, 0));
    assert!(spent <= LIMIT_MICROUSD + ANSWER_MICROUSD, "{spent}");
    // Three events for a call and one for its run; one for a run that was refused, as it is read.
    let events = fixture.events(4 * ran.len() + refused.len());
    let errors: Vec<&Value> = events
        .iter()
        .filter(|(kind, ..)| kind == "simulation.run.error")
        .map(|(_, body, _)| &body["data"]["run"])
        .collect();
    assert_eq!(errors.len(), refused.len());
    assert!(errors.iter().all(|told| refused.contains(told)), "{errors:#?}");
}

/// However little a run may cost, it gets one answer, and reserves what that costs.
#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "looks at the money while a model is asked")]
fn a_run_that_may_cost_next_to_nothing_reserves_an_answer() {
    let fixture = Fixture::new("echo");
    let world = &fixture.world;
    limit(world, Some(1_000_000));
    let ids = queue(&fixture, 1, 1);
    let (seen, other) = (Arc::new(AtomicI64::new(0)), world.clone());
    let told = seen.clone();
    world.sandbox().unwrap().meanwhile(move || told.store(reserved(&other), Ordering::Relaxed));
    let run = world.settle(&ids[0]);
    assert_eq!((&run["max_cost_microusd"], &run["call"]["ended_reason"]), (&json!(1), &json!("cost_limit")));
    // The longest answer, and the assistant with its tool and its document, at 2 microusd for a token of 3 bytes.
    let longest = i64::from(MODEL_REPLY_TOKENS_MAX) * 8;
    let input = seen.load(Ordering::Relaxed) - longest;
    assert!((100..ANSWER_MICROUSD).contains(&input), "{input}");
}

/// Runs that may cost next to nothing pass the limit by one answer together, not by one each.
#[test]
fn many_runs_that_may_cost_next_to_nothing_stop_at_the_limit() {
    let fixture = Fixture::new("echo");
    limit(&fixture.world, Some(LIMIT_MICROUSD));
    let runs: Vec<Value> = queue(&fixture, RUNS, 1).iter().map(|id| fixture.world.settle(id)).collect();
    let refused = runs.iter().filter(|run| run["error"]["code"] == "spend_limit_reached").count();
    let (spent, reserved) = money(&fixture.world);
    assert!(refused > 0 && reserved == 0, "{refused} refused, {reserved} reserved");
    assert!((1..=LIMIT_MICROUSD + ANSWER_MICROUSD).contains(&spent), "{spent}");
}

#[test]
fn runs_within_the_limit_wait_for_each_other_and_all_complete() {
    let fixture = Fixture::new("echo");
    let world = &fixture.world;
    // Two at a time: each may cost half of it, and gives most of that back.
    limit(world, Some(200_000));
    for id in queue(&fixture, 8, 100_000) {
        let run = world.settle(&id);
        assert_eq!(
            (&run["status"], &run["call"]["ended_reason"]),
            (&json!("completed"), &json!("user_hung_up"))
        );
    }
    let (spent, reserved) = money(world);
    assert!(spent > 0 && reserved == 0, "{spent} {reserved}");
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "counts requests before the jobs run")]
fn a_run_that_no_longer_fits_asks_nobody() {
    let fixture = Fixture::new("echo");
    let sandbox = fixture.world.sandbox().unwrap();
    let ids = queue(&fixture, RUNS, 1_000_000);
    limit(&fixture.world, Some(0));
    sandbox.run_jobs();
    for id in &ids {
        let run = fixture.world.settle(id);
        assert_eq!((&run["status"], &run["error"]["code"]), (&json!("error"), &json!("spend_limit_reached")));
    }
    let asked = sandbox.sent_http().iter().filter(|sent| sent.url.contains("/chat/")).count();
    assert_eq!(asked, 0);
}

/// The judge has heard the whole conversation: what that costs is known before it is asked.
#[test]
fn a_judge_whose_question_costs_more_than_is_left_is_not_asked() {
    let fixture = Fixture::new("echo");
    let world = &fixture.world;
    let made = |path: &str, body: Value| world.create(path, body).id.clone();
    let assistant = made(
        "/assistants",
        json!({"name": "Free", "instructions": "Help.", "first_message": "Hello!", "model": "builtin/rules"}),
    );
    let persona =
        made("/simulations/personas", json!({"name": "Ada", "system_prompt": "You are in a hurry."}));
    let scenario = made(
        "/simulations/scenarios",
        json!({"name": "Order", "instructions": "Say \"One\".", "judge_model": "fake/judge",
               "evaluations": [{"kind": "judge", "role": "any", "includes": "one"}]}),
    );
    let simulation = made(
        "/simulations",
        json!({"assistant_id": assistant, "persona_id": persona, "scenario_id": scenario}),
    );
    let start = |max: i64| {
        let run = world
            .create(&format!("/simulations/{simulation}/runs"), json!({"seed": 7, "max_cost_microusd": max}));
        world.settle(&run.id)
    };
    let refused = start(300);
    assert_eq!(
        (&refused["status"], &refused["error"]["code"], &refused["cost_microusd"]),
        (&json!("error"), &json!("cost_limit"), &json!(0)),
        "{refused:#}"
    );
    assert_eq!(money(world), (0, 0));
    let ruled = start(100_000);
    assert_eq!((&ruled["status"], ruled["cost_microusd"].as_i64() > Some(0)), (&json!("completed"), true));
}

/// A conversation that has heard its first line.
fn begun<'a>(world: &'a World, fixture: &Fixture) -> LiveClient<'a> {
    let mut client = world.start_conversation(&fixture.assistant.id);
    client.expect("call_started");
    assert_eq!(client.hear(), "Shop, hello!");
    client
}

#[test]
fn a_live_conversation_reserves_what_is_left_until_it_ends() {
    // Enough for the analysis of the first conversation and some answers.
    const LIMIT: i64 = 3_000;
    const FREE: Duration = Duration::from_secs(60);
    let fixture = Fixture::new("echo");
    let world = &fixture.world;
    limit(world, Some(LIMIT));
    let mut first = begun(world, &fixture);
    assert_eq!(money(world), (0, LIMIT));
    let token = world.test_token(&fixture.assistant.id);
    let url = token["websocket_url"].as_str().unwrap();
    let refusal = world.connect(url).err().unwrap();
    assert_eq!(refusal["error"]["code"], "spend_limit_reached");
    assert_eq!(refusal["error"]["details"]["reserved_microusd"], LIMIT);
    first.send(r#"{"type": "hang_up"}"#);
    first.rest();
    // The token is still good. Meanwhile the analysis of the first one may have reserved what is left.
    let mut second = until("the money is free again", FREE, || world.connect(url).ok());
    second.expect("call_started");
    assert_eq!(second.hear(), "Shop, hello!");
    let reason = talk_to_the_end(&mut second);
    assert_eq!(reason, "cost_limit");
    // The analysis may hold some of it for a moment.
    let (spent, _) =
        until("the money is free again", FREE, || Some(money(world)).filter(|(_, reserved)| *reserved == 0));
    // A question that costs more than is left is not asked.
    assert!((LIMIT / 2..LIMIT + ANSWER_MICROUSD).contains(&spent), "{spent}");
}

/// Says something until the service ends the conversation; returns why it did.
fn talk_to_the_end(client: &mut LiveClient<'_>) -> String {
    for n in 0..20 {
        client.say(&format!("Tell me more, for the {n}th time."));
        while let Some(message) = client.message() {
            match message["type"].as_str().unwrap() {
                "call_ended" => return message["ended_reason"].as_str().unwrap().to_owned(),
                "assistant_text" => break,
                _ => {}
            }
        }
    }
    panic!("the conversation does not end");
}

#[test]
fn conversations_that_start_together_do_not_reserve_the_same_money() {
    let fixture = Fixture::new("echo");
    let world = &fixture.world;
    limit(world, Some(LIMIT_MICROUSD));
    let urls: Vec<String> = (0..8)
        .map(|_| world.test_token(&fixture.assistant.id)["websocket_url"].as_str().unwrap().to_owned())
        .collect();
    let open = |url: &String| {
        let client = world.connect(url).ok();
        let is_open = client.is_some();
        // It stays open until all have tried: a conversation that ends gives its money back.
        std::mem::forget(client);
        is_open
    };
    let opened = std::thread::scope(|scope| {
        let threads: Vec<_> = urls.iter().map(|url| scope.spawn(move || open(url))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|open| *open).count()
    });
    assert_eq!((opened, reserved(world)), (1, LIMIT_MICROUSD));
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_process_that_dies_holds_no_money() {
    const LIMIT: i64 = 50_000;
    let fixture = Fixture::new("echo");
    let world = &fixture.world;
    limit(world, Some(LIMIT));
    let _client = begun(world, &fixture);
    let sandbox = world.sandbox().unwrap();
    sandbox.kill_conversations();
    // A run waits meanwhile.
    let waiting = queue(&fixture, 1, 500).remove(0);
    sandbox.run_jobs();
    let status = || world.get(format!("/simulations/runs/{waiting}")).ok()["status"].clone();
    assert_eq!((status(), reserved(world)), (json!("queued"), LIMIT));
    sandbox.advance(LIVE_LEASE_MS);
    let run = world.settle(&waiting);
    assert_eq!((&run["status"], &run["max_cost_microusd"]), (&json!("completed"), &json!(500)), "{run:#}");
    assert_eq!(reserved(world), 0);
}

/// The provider has the request, and may answer it.
#[test]
#[cfg_attr(test_host = "sandbox", ignore = "needs a request that stays under way")]
fn an_answer_that_a_hang_up_cuts_off_is_not_free() {
    let fixture = Fixture::new("hangs");
    let world = &fixture.world;
    let mut client = begun(world, &fixture);
    let id = &fixture.assistant.id;
    client.say(&format!("{id} {}", "Tell me everything. ".repeat(100)));
    let until = Instant::now() + Duration::from_secs(30);
    let is_asked = || fakes::shared().asked(fakes::KEY).iter().any(|one| one.body.to_string().contains(id));
    while !is_asked() {
        assert!(Instant::now() < until, "the model is not asked");
        std::thread::sleep(Duration::from_millis(20));
    }
    client.send(&json!({"type": "hang_up"}).to_string());
    client.rest();
    let path = format!("/calls?assistant_id={}", fixture.assistant.id);
    let call = world.get(path).ok()["calls"][0].clone();
    assert_eq!(call["status"], "ended", "{call:#}");
    // 2,000 letters are some 500 tokens at 2 microusd each.
    assert!(call["costs"]["llm_microusd"].as_i64().unwrap() > 500, "{call:#}");
    assert_eq!(call["usage"]["llm_uncounted_answers"], 1, "{call:#}");
    assert!(money(world).0 >= call["costs"]["llm_microusd"].as_i64().unwrap());
}
