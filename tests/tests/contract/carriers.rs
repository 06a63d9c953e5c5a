//! Invalid behaviour of carriers, and carriers without an account.
use http::Method;
use serde_json::json;
use sidetone_engine::base::limits::PHONE_CONNECT_MS;
use sidetone_tests::World;
use sidetone_tests::fakes::carrier::Wire;
use sidetone_tests::fakes::carrier::vonage::VonageWire;

use crate::grants::announced;

#[test]
fn calls_from_a_carrier_without_an_account_are_declined() {
    let world = World::new();
    let ask = |path: &str| world.call(Method::POST, path, None);
    // This service only has an account with Twilio.
    let plivo = ask("/carriers/plivo/voice");
    assert_eq!((plivo.status, plivo.header("content-type")), (200, Some("text/xml; charset=utf-8")));
    assert_eq!(plivo.body, r#"<Response><Hangup reason="rejected"/></Response>"#);
    let vonage = ask("/carriers/vonage/voice").ok().json;
    assert_eq!(vonage[0]["text"], "This number is not in service. Goodbye.");
    // Telnyx declines only by a command with an API key, and status callbacks have no effect.
    for path in ["/carriers/telnyx/voice", "/carriers/plivo/status", "/carriers/vonage/status"] {
        ask(path).refused("carrier_not_configured");
    }
    assert_eq!(world.get("/calls").ok()["calls"], json!([]));
}

/// A dry run reports problems in the same form as the errors of the real request.
#[test]
fn dry_run_problems_have_the_form_of_errors() {
    let world = World::new();
    let assistant = world.assistant();
    let binding = json!({"assistant_id": assistant.id, "provider": "telnyx"});
    let number = world.phone_number();
    world.put(format!("/numbers/{number}"), binding).ok();
    let order = json!({"assistant_id": assistant.id, "to": "+14155557777"});
    let dry = world.post("/calls/outbound?dry_run=true", order.clone()).created().json;
    let error = world.post("/calls/outbound", order).refused("carrier_not_configured").json["error"].clone();
    assert_eq!(error.get("details"), None, "{error}");
    assert_eq!(dry["problems"], json!([{"code": error["code"], "message": error["message"]}]));
    let order = json!({"assistant_id": "asst_1", "to": "+14155557777", "from": number});
    let dry = world.post("/calls/outbound?dry_run=true", order.clone()).created().json;
    let error = world.post("/calls/outbound", order).refused("validation_failed").json["error"].clone();
    assert_eq!(dry["problems"][0]["details"], error["details"]);
    assert!(error["details"].is_object(), "{error}");
}

#[test]
fn a_callback_with_another_call_id_is_ignored() {
    let world = World::with_settings(&[]);
    let sandbox = world.sandbox().unwrap();
    let body = json!({"sid": format!("CA{}", "7".repeat(32)), "status": "queued"}).to_string();
    sandbox.answer_http(201, &body);
    let first = world.placed_call();
    sandbox.answer_http(201, &body);
    let from = world.binding();
    let order = json!({"assistant_id": from["assistant_id"], "to": "+14155557777", "from": from.id});
    let refusal = world.post("/calls/outbound", order).refused("carrier_timeout");
    let second = refusal["error"]["details"]["call_id"].as_str().unwrap().to_owned();
    let call = |id: &str| world.get(format!("/calls/{id}")).ok().json;
    assert_eq!(call(&first.id)["carrier_call_id"], first["carrier_call_id"]);
    assert_eq!(
        (&call(&second)["carrier_call_id"], &call(&second)["status"]),
        (&json!(null), &json!("queued"))
    );
}

/// The conversation cannot start any more, and only the response to the order contains the carrier's call id.
#[test]
fn a_call_given_up_before_its_carrier_id_is_known_is_hung_up() {
    let world = World::with_settings(&[]);
    let sandbox = world.sandbox().unwrap();
    let from = world.binding();
    let order = json!({"assistant_id": from["assistant_id"], "to": "+14155557777", "from": from.id});
    let ours = world.direct_access();
    sandbox.meanwhile(move || {
        let over = sidetone_engine::sql!("UPDATE phone_calls SET is_over = 1, version = version + 1");
        let write = async move { ours.ports().database.write(vec![over]).await };
        std::thread::spawn(move || sidetone::sandbox::block_on(write)).join().unwrap().unwrap();
    });
    let sid = format!("CA{}", "9".repeat(32));
    sandbox.answer_http(201, &json!({"sid": sid, "status": "queued"}).to_string());
    world.post("/calls/outbound", order).created();
    sandbox.sent_http();
    sandbox.answer_http(200, "{}");
    sandbox.run_jobs();
    let sent = sandbox.sent_http();
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert!(sent[0].url.contains(&sid), "{}", sent[0].url);
}

/// A callback may arrive before the response to the order, whose `queued` is then outdated.
#[test]
fn a_call_that_rings_before_the_order_response_is_not_queued() {
    let world = World::with_settings(&[]);
    let sandbox = world.sandbox().unwrap();
    let from = world.binding();
    let order = json!({"assistant_id": from["assistant_id"], "to": "+14155557777", "from": from.id});
    for rings in [false, true] {
        let ours = world.direct_access();
        if rings {
            sandbox.meanwhile(move || {
                let told = vec![
                    sidetone_engine::sql!("UPDATE calls SET status = 'ringing' WHERE status = 'queued'"),
                    sidetone_engine::sql!("UPDATE phone_calls SET version = version + 1"),
                ];
                let write = async move { ours.ports().database.write(told).await };
                std::thread::spawn(move || sidetone::sandbox::block_on(write)).join().unwrap().unwrap();
            });
        }
        let sid = format!("CA{}", if rings { "1" } else { "2" }.repeat(32));
        sandbox.answer_http(201, &json!({"sid": sid, "status": "queued"}).to_string());
        let call = world.post("/calls/outbound", order.clone()).created();
        sandbox.advance(PHONE_CONNECT_MS);
        sandbox.answer_http(200, "{}");
        sandbox.run_jobs();
        let call = world.get(format!("/calls/{}", call["id"].as_str().unwrap())).ok().json;
        assert_eq!(call["ended_reason"], if rings { json!("unsettled") } else { json!(null) });
        world.post(format!("/calls/{}/hang-up", call["id"].as_str().unwrap()), json!({}));
    }
}

#[test]
fn the_order_response_is_stored_although_the_key_was_revoked() {
    let world = World::with_settings(&[]);
    let sandbox = world.sandbox().unwrap();
    let from = world.binding();
    let order = json!({"assistant_id": from["assistant_id"], "to": "+14155557777", "from": from.id});
    let temporary = world.api_key();
    let (ours, key_id) = (world.direct_access(), temporary.id.clone());
    sandbox.meanwhile(move || {
        let revoke = sidetone_engine::sql!("UPDATE api_keys SET revoked_at = 1 WHERE id = :id", id = key_id);
        let write = async move { ours.ports().database.write(vec![revoke]).await };
        let revoked = std::thread::spawn(move || sidetone::sandbox::block_on(write)).join();
        revoked.unwrap().unwrap();
    });
    let sid = format!("CA{}", "8".repeat(32));
    sandbox.answer_http(201, &json!({"sid": sid, "status": "queued"}).to_string());
    let with_temporary = world.with_key(temporary["key"].as_str().unwrap());
    let call = with_temporary.post("/calls/outbound", order).created().json;
    assert_eq!(call["carrier_call_id"], sid);
    assert_eq!(world.get(format!("/calls/{}", call["id"].as_str().unwrap())).ok()["carrier_call_id"], sid);
    with_temporary.get("/calls").refused("unauthorized");
}

#[test]
fn a_call_to_an_assistant_that_cannot_hear_is_declined_and_says_so() {
    const NUMBER: &str = "+14155550100";
    let settings = VonageWire::default().settings("http://vonage.example");
    let settings: Vec<_> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let local = ("SIDETONE_PROVIDERS", r#"{"local": {"base_url": "http://127.0.0.1:1/v1"}}"#);
    let world = World::with_settings(&[&settings[..], &[local]].concat());
    // The model must not be asked about a call without a word.
    let deaf = json!({"name": "Desk", "instructions": "Be kind.", "model": "local/m", "voice": "local/v"});
    let assistant = world.create("/assistants", deaf).id;
    let binding = json!({"assistant_id": assistant, "provider": "vonage"});
    world.put(format!("/numbers/{NUMBER}"), binding).ok();
    assert_eq!(announced(&world, NUMBER), "talk", "the call is declined");
    let sandbox = world.sandbox().unwrap();
    sandbox.run_jobs();
    let call = world.get("/calls").ok().json["calls"][0].clone();
    assert_eq!(call["ended_reason"], "speech_failed", "{call}");
    assert_eq!((&call["outcome"], &call["fault"]), (&json!("failed"), &json!("operator")));
    let row = &call["transcript"][0];
    assert_eq!(row["role"], "system");
    assert!(row["text"].as_str().unwrap().contains("no transcriber is configured"), "{row}");
    assert!(call["analysis"].is_object(), "{call}");
    assert!(sandbox.sent_http().is_empty(), "no provider was asked");
}
