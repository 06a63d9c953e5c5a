//! The operator's limits above those of a workspace, and what telephone calls reserve. Always on the Sandbox, because the
//! settings differ.
use serde_json::{Value, json};
use sidetone_engine::base::limits::PHONE_CONNECT_MS;
use sidetone_tests::World;

/// The price of a minute at the carrier.
const MINUTE_MICROUSD: i64 = 10_000;
/// What an hour with a free model reserves.
const HOUR_MICROUSD: i64 = 60 * MINUTE_MICROUSD;

/// A service whose carrier has a rate, and these settings.
fn world(settings: &[(&str, &str)]) -> World {
    World::with_settings(&[&[("SIDETONE_CARRIER_RATES", r#"{"twilio": 10000}"#)], settings].concat())
}

fn limit(world: &World, microusd: i64) {
    world.patch("/workspace", json!({"monthly_spend_limit_microusd": microusd})).ok();
}

fn reserved(world: &World) -> i64 {
    world.get("/workspace").ok()["reserved_microusd"].as_i64().unwrap()
}

fn order(world: &World) -> Value {
    let from = world.binding();
    json!({"assistant_id": from["assistant_id"], "to": "+14155557777", "from": from.id})
}

/// The carrier accepts the next call.
fn accept(world: &World, n: usize) {
    let sid = format!("CA{n:032}");
    world.sandbox().unwrap().answer_http(201, &json!({"sid": sid, "status": "queued"}).to_string());
}

/// The time limit of the last order to the carrier.
fn time_limit(world: &World) -> i64 {
    let sent = world.sandbox().unwrap().sent_http().pop().unwrap();
    let form: Vec<(String, String)> = form_urlencoded::parse(&sent.body).into_owned().collect();
    form.iter().find(|(name, _)| name == "TimeLimit").unwrap().1.parse().unwrap()
}

#[test]
fn telephone_calls_reserve_their_carriers_price_and_are_no_longer_than_it_allows() {
    let world = world(&[]);
    let order = order(&world);
    limit(&world, HOUR_MICROUSD + 7 * MINUTE_MICROUSD + 1);
    accept(&world, 1);
    let whole = world.post("/calls/outbound", order.clone()).created().json;
    assert_eq!((time_limit(&world), reserved(&world)), (3_600, HOUR_MICROUSD));
    accept(&world, 2);
    world.post("/calls/outbound", order.clone()).created();
    assert_eq!((time_limit(&world), reserved(&world)), (7 * 60, HOUR_MICROUSD + 7 * MINUTE_MICROUSD));
    // Less than three minutes are no call.
    let refusal = world.post("/calls/outbound", order.clone()).refused("spend_limit_reached");
    let details = &refusal["error"]["details"];
    assert_eq!(details["spent_microusd"], 0, "{details}");
    assert_eq!(details["reserved_microusd"], HOUR_MICROUSD + 7 * MINUTE_MICROUSD);
    let dry = world.post("/calls/outbound?dry_run=true", order.clone()).created();
    assert_eq!(dry["problems"][0]["code"], "spend_limit_reached");
    // Nobody answers the first one, and it gives everything back.
    let sandbox = world.sandbox().unwrap();
    world.post(format!("/calls/{}/hang-up", whole["id"].as_str().unwrap()), json!({}));
    sandbox.answer_http_with(|_| {
        Ok(sidetone_engine::ports::HttpReply { status: 200, headers: Vec::new(), body: "{}".into() })
    });
    sandbox.advance(PHONE_CONNECT_MS);
    sandbox.run_jobs();
    assert!(reserved(&world) <= 7 * MINUTE_MICROUSD, "{}", reserved(&world));
    accept(&world, 3);
    world.post("/calls/outbound", order).created();
}

#[test]
fn a_call_that_the_carrier_rejects_gives_its_reservation_back() {
    let world = world(&[]);
    limit(&world, HOUR_MICROUSD);
    let order = order(&world);
    let no = json!({"code": 21_211, "message": "Invalid 'To' Phone Number", "status": 400});
    world.sandbox().unwrap().answer_http(400, &no.to_string());
    world.post("/calls/outbound", order).refused("carrier_rejected");
    assert_eq!(reserved(&world), 0);
}

#[test]
fn calls_that_are_placed_together_do_not_reserve_the_same_money() {
    let world = world(&[]);
    let order = order(&world);
    limit(&world, 5 * MINUTE_MICROUSD);
    world.sandbox().unwrap().answer_http_with(|_| {
        // Whichever call it is, it is accepted; the id is the carrier's.
        let body = json!({"sid": format!("CA{:032}", 1), "status": "queued"}).to_string();
        Ok(sidetone_engine::ports::HttpReply { status: 201, headers: Vec::new(), body: body.into() })
    });
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| world.post("/calls/outbound", order.clone()).status)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 402).count(), 7, "{statuses:?}");
    assert_eq!(reserved(&world), 5 * MINUTE_MICROUSD);
}

#[test]
fn the_operators_limits_are_above_those_of_a_workspace() {
    let ceiling = (10 * MINUTE_MICROUSD).to_string();
    let world = world(&[
        ("SIDETONE_MONTHLY_SPEND_LIMIT_MICROUSD", &*ceiling),
        ("SIDETONE_CALLS_AT_ONCE", "1"),
        ("SIDETONE_RUNS_AT_ONCE", "2"),
    ]);
    let order = order(&world);
    // A workspace without a limit has the operator's, and is told so.
    let workspace = world.get("/workspace").ok().json;
    assert_eq!(workspace["monthly_spend_limit_microusd"], Value::Null);
    assert_eq!(
        workspace["warnings"],
        json!([
            "The operator allows this workspace at most 100000 millionths of a US dollar in a month.",
            "The operator allows this workspace at most 2 simulation runs at once.",
            "The operator allows this workspace at most 1 telephone calls at once.",
        ])
    );
    let limits = json!({"monthly_spend_limit_microusd": 1_000_000, "calls_at_once": 1, "runs_at_once": 1});
    let changed = world.patch("/workspace", limits).ok().json;
    assert_eq!(changed["warnings"].as_array().unwrap().len(), 1, "{changed}");
    assert_eq!(changed, world.get("/workspace").ok().json);
    accept(&world, 1);
    world.post("/calls/outbound", order.clone()).created();
    assert_eq!((time_limit(&world), reserved(&world)), (600, 10 * MINUTE_MICROUSD));
    world.patch("/workspace", json!({"calls_at_once": 50})).ok();
    limit(&world, 5 * MINUTE_MICROUSD);
    let dry = world.post("/calls/outbound?dry_run=true", order).created().json;
    let problems: Vec<&Value> = dry["problems"].as_array().unwrap().iter().map(|one| &one["code"]).collect();
    assert_eq!(problems, ["spend_limit_reached", "too_many_calls"]);
}

#[test]
fn no_more_runs_than_the_operator_allows_are_in_progress() {
    let world = World::with_settings(&[("SIDETONE_RUNS_AT_ONCE", "2")]);
    let simulation = world.simulation();
    for _ in 0..5 {
        world.create(&format!("/simulations/{}/runs", simulation.id), json!({}));
    }
    let services = world.sandbox().unwrap().services();
    let kinds = sidetone_engine::storage::jobs::JobKind::ALL;
    let claimed = sidetone::sandbox::block_on(services.claim_jobs("runner", kinds, 32)).unwrap();
    assert_eq!(claimed.len(), 2);
}

#[test]
fn a_limit_that_a_carrier_without_a_rate_can_pass_comes_with_a_warning() {
    let without = World::with_settings(&[]);
    assert_eq!(without.get("/workspace").ok()["warnings"], json!([]), "there is no limit yet");
    let set = without.patch("/workspace", json!({"monthly_spend_limit_microusd": 5})).ok().json;
    let warning = set["warnings"][0].as_str().unwrap();
    assert!(warning.contains("twilio") && warning.contains("SIDETONE_CARRIER_RATES"), "{warning}");
    assert_eq!(without.get("/workspace").ok()["warnings"], set["warnings"]);
    let with = world(&[]);
    assert_eq!(
        with.patch("/workspace", json!({"monthly_spend_limit_microusd": 5})).ok()["warnings"],
        json!([])
    );
}

/// A page that is refused a socket asks the same address why.
#[test]
fn a_refused_conversation_says_why() {
    let world = World::with_settings(&[
        ("SIDETONE_PROVIDERS", r#"{"local": {"base_url": "http://127.0.0.1:1/v1"}}"#),
        ("SIDETONE_VOICES", r#"{"local/v": {"microusd_per_1k_chars": 1000}}"#),
        ("SIDETONE_DEFAULT_TRANSCRIBER", "local/whisper"),
    ]);
    limit(&world, 5);
    let desk = json!({"name": "Desk", "instructions": "Be kind.", "voice": "local/v"});
    let assistant = world.create("/assistants", desk).id;
    let [first, second] = [(); 2].map(|()| {
        let url = world.test_token(&assistant)["websocket_url"].as_str().unwrap().to_owned();
        url[url.find("/voice-test").unwrap()..].to_owned()
    });
    let speaking = |path: &str| format!("{path}&audio=speech");
    for _ in 0..2 {
        world.get(speaking(&first)).refused("upgrade_required");
        assert_eq!(reserved(&world), 0, "a question takes nothing");
    }
    let open = world.connect(&speaking(&first)).map_err(drop).expect("there is money");
    assert_eq!(reserved(&world), 5);
    assert_eq!(world.connect(&speaking(&second)).map(drop).unwrap_err().status, 402);
    world.get(speaking(&second)).refused("spend_limit_reached");
    // To write costs nothing.
    world.get(&second).refused("upgrade_required");
    drop(open);
    let keys = world.get("/keys").ok().json;
    for key in keys.as_array().unwrap() {
        world.delete(format!("/keys/{}", key["id"].as_str().unwrap())).empty();
    }
    assert_eq!(world.connect(&second).map(drop).unwrap_err().status, 503);
    world.get(&second).refused("unavailable");
}
