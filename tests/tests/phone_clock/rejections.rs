//! Calls that are rejected: by us with a spoken reason, or by the carrier after its callbacks have reported the call.
use sidetone_engine::sql;
use sidetone_engine::storage::moves::lock;

use super::*;

/// Vonage cannot decline a call: it answers, speaks the reason, and ends the call itself.
#[test]
fn a_spoken_rejection_is_not_cut_off() {
    let wire = VonageWire::default();
    let settings = wire.settings("http://vonage.example");
    let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let sandbox = Sandbox::with_settings(&settings);
    let assistant = sandbox.post(
        "/assistants",
        json!({"name": "Front desk", "instructions": "Be kind.", "voice": "builtin/tone"}),
    );
    sandbox.put(
        &format!("/numbers/{OURS}"),
        json!({"assistant_id": assistant.json["id"], "provider": "vonage"}),
    );
    sandbox.patch("/workspace", json!({"monthly_spend_limit_microusd": 0}));
    let mut call = phone_call(false, &json!({"webhook_url": "", "stream_url": ""}));
    call.carrier_call_id = "63f61863-4a51-4f6b-86e1-46edebcf9356".to_owned();
    call.voice_url = format!("{BASE_URL}/carriers/vonage/voice");
    call.status_url = format!("{BASE_URL}/carriers/vonage/status");
    let told = |event: CallEvent, nth| tell(&sandbox, &wire, &call, &event, nth, START_S);
    let refusal = told(CallEvent::Incoming, 0);
    assert_eq!(refusal.json[0]["action"], "talk", "{refusal:?}");
    assert_eq!(sandbox.get("/calls").json["calls"][0]["ended_reason"], "cost_limit");
    for (nth, event) in [(1, CallEvent::Ringing), (2, CallEvent::Answered)] {
        assert!((200..300).contains(&told(event, nth).status));
    }
    sandbox.answer_http(204, "");
    sandbox.run_jobs();
    let sent = sandbox.sent_http();
    assert!(sent.is_empty(), "hung up in the middle of the sentence: {sent:?}");
}

/// The workspace moves to another host: nothing can be stored, and a caller waits.
#[test]
fn a_caller_of_a_locked_workspace_is_told_that_it_is_busy() {
    let wire = VonageWire::default();
    let settings = wire.settings("http://vonage.example");
    let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let sandbox = Sandbox::with_settings(&settings);
    let assistant = sandbox.post(
        "/assistants",
        json!({"name": "Front desk", "instructions": "Be kind.", "voice": "builtin/tone"}),
    );
    let id = assistant.json["id"].clone();
    sandbox.put(&format!("/numbers/{OURS}"), json!({"assistant_id": id, "provider": "vonage"}));
    let services = sandbox.services();
    let find = sql!("SELECT workspace_id FROM numbers");
    let found = block_on(services.ports().database.read(vec![find])).unwrap();
    let workspace_id = found[0].first().unwrap().id("workspace_id").unwrap();
    block_on(lock::arm(services, &workspace_id)).unwrap();
    let locked = sql!(
        "INSERT INTO moves (workspace_id, id, state, lock, schema, file_key, began_at, changed_at)
         VALUES (:id, 'exp_1', 'frozen', 2, '', '', 0, 0)",
        id = &workspace_id
    );
    block_on(services.ports().database.write(vec![locked])).unwrap();

    let mut call = phone_call(false, &json!({"webhook_url": "", "stream_url": ""}));
    call.carrier_call_id = "63f61863-4a51-4f6b-86e1-46edebcf9356".to_owned();
    call.voice_url = format!("{BASE_URL}/carriers/vonage/voice");
    call.status_url = format!("{BASE_URL}/carriers/vonage/status");
    let refusal = tell(&sandbox, &wire, &call, &CallEvent::Incoming, 0, START_S);
    assert_eq!((refusal.status, &refusal.json[0]["action"]), (200, &json!("talk")), "{refusal:?}");
    assert_eq!(sandbox.get("/calls").json["calls"], json!([]));
}

/// A call whose order the carrier rejects after its callbacks have already reported the call.
struct RejectedLate {
    /// The call as read afterwards.
    call: Value,
    spent_microusd: i64,
    /// The events that the webhook received.
    events: Vec<Value>,
    /// The URLs of commands to the carrier.
    commands: Vec<String>,
}

impl RejectedLate {
    /// With a webhook that is created during the order.
    fn new() -> Self {
        Self::ordered(false)
    }

    /// With a webhook that is created before the order.
    fn with_webhook() -> Self {
        Self::ordered(true)
    }

    fn ordered(has_webhook: bool) -> Self {
        let mut settings = TelnyxWire.settings("http://telnyx.example");
        settings.retain(|(name, _)| name.contains("TELNYX"));
        let settings: Vec<(&str, &str)> =
            settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let world = World::with_settings(&settings);
        let sandbox = world.sandbox().unwrap();
        let assistant = world.assistant();
        let number = json!({"assistant_id": assistant.id, "provider": "telnyx"});
        world.put(format!("/numbers/{OURS}"), number).ok();
        let other = world.clone();
        let add_webhook = |world: &World| {
            world.create("/webhooks", json!({"url": "https://receiver.example/", "events": ["*"]}));
        };
        if has_webhook {
            add_webhook(&world);
        }
        sandbox.meanwhile(move || {
            let sandbox = other.sandbox().unwrap();
            sandbox.advance(3_000);
            if !has_webhook {
                add_webhook(&other);
            }
            let order: Value = serde_json::from_slice(&sandbox.sent_http().pop().unwrap().body).unwrap();
            let call = phone_call(true, &order);
            for (nth, event) in
                (0..).zip([CallEvent::Ringing, CallEvent::Answered, CallEvent::Priced { seconds: 60 }])
            {
                assert_eq!(tell(sandbox, &TelnyxWire, &call, &event, nth, START_S + 3).status, 200);
            }
        });
        let no = json!({"errors": [{"code": "10015", "title": "Bad request", "detail": "No."}]});
        sandbox.answer_http(422, &no.to_string());
        let order = json!({"assistant_id": assistant.id, "to": THEIRS, "from": OURS});
        let refusal = world.post("/calls/outbound", order).refused("carrier_rejected");
        let id = refusal["error"]["details"]["call_id"].as_str().unwrap().to_owned();
        sandbox.answer_http_with(|_| Ok(HttpReply { status: 200, headers: Vec::new(), body: Bytes::new() }));
        sandbox.run_jobs();
        let (told, commands): (Vec<_>, Vec<_>) = sandbox
            .sent_http()
            .into_iter()
            .partition(|request| request.url.starts_with("https://receiver.example"));
        Self {
            call: world.get(format!("/calls/{id}")).ok().json,
            spent_microusd: world.get("/workspace").ok()["spent_this_month_microusd"].as_i64().unwrap(),
            events: told.iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect(),
            commands: commands.into_iter().map(|request| request.url).collect(),
        }
    }

    fn ended(&self) -> &Value {
        self.events.iter().find(|event| event["type"] == "call.ended").expect("an event reports the end")
    }
}

#[test]
fn the_reported_price_of_a_rejected_call_is_recorded_and_counts_as_spent() {
    let RejectedLate { call, spent_microusd, .. } = RejectedLate::new();
    assert_eq!((&call["status"], &call["ended_reason"]), (&json!("ended"), &json!("carrier_refused")));
    assert!(spent_microusd > 0, "{call}");
    assert_eq!(call["costs"]["telephony_microusd"], spent_microusd);
    assert_eq!(call["costs"]["total_microusd"], spent_microusd);
}

#[test]
fn the_end_of_a_rejected_call_is_sent_to_the_webhooks_of_that_moment() {
    RejectedLate::new().ended();
}

#[test]
fn the_end_of_a_rejected_call_has_the_time_of_its_end() {
    let rejected = RejectedLate::with_webhook();
    assert_eq!(rejected.call["ended_at"], "2026-01-01T00:00:03.000Z");
    assert_eq!(rejected.ended()["created_at"], rejected.call["ended_at"]);
}

#[test]
fn the_event_of_a_rejected_call_contains_the_call_as_read() {
    let rejected = RejectedLate::with_webhook();
    let mut shown = rejected.call.clone();
    assert_eq!(shown["carrier_call_id"], CARRIER_CALL_ID);
    assert_eq!(shown["answered_at"], "2026-01-01T00:00:03.000Z", "it was answered");
    (shown["analysis"], shown["sentiment"]) = (json!(null), json!(null));
    assert_eq!(rejected.ended()["data"]["call"], shown);
}

/// The telephone rings, although the response to the order is a rejection.
#[test]
fn a_rejected_call_that_rings_is_hung_up() {
    let commands = RejectedLate::new().commands;
    assert!(commands.iter().any(|url| url.ends_with("/actions/hangup")), "{commands:?}");
}
