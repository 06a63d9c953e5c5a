//! Numbers that the operator has given to workspaces (`SIDETONE_NUMBERS`).
use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use sidetone_engine::sql;
use sidetone_engine::storage::moves::cancel_export::cancel_export;
use sidetone_engine::storage::moves::freeze::{Freeze, close, freeze};
use sidetone_tests::direct_access::wait;
use sidetone_tests::fakes::carrier::vonage::VonageWire;
use sidetone_tests::fakes::carrier::{CallEvent, PhoneCall, Public, Wire};
use sidetone_tests::{Created, World};

const OURS: &str = "+14155550100";
const THEIRS: &str = "+14155550101";
const NOBODYS: &str = "+14155550102";
const BASE_URL: &str = "http://sandbox.example";

/// Two workspaces of one service; the operator has given a number to each.
struct Granted {
    us: World,
    them: World,
}

impl Granted {
    fn new() -> Self {
        // Sandboxes are equal: the workspaces of the second one have the ids of those of the first.
        let (us, them) = Self::workspaces(&[]);
        let ids = [&us, &them].map(World::workspace_id);
        let numbers = json!({OURS: ids[0], THEIRS: ids[1]}).to_string();
        let (us, them) = Self::workspaces(&[("SIDETONE_NUMBERS", &numbers)]);
        assert_eq!([&us, &them].map(World::workspace_id), ids);
        Self { us, them }
    }

    fn workspaces(own: &[(&str, &str)]) -> (World, World) {
        let settings = VonageWire::default().settings("http://vonage.example");
        let settings: Vec<(&str, &str)> =
            settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let us = World::with_settings(&[&settings[..], own].concat());
        let them = us.other();
        (us, them)
    }

    /// They had bound our number before the operator gave it to us.
    fn bound_by_them_before(&self) -> Created {
        let assistant = self.them.assistant();
        bind(&self.them, THEIRS, &assistant.id).ok();
        let before =
            sql!("UPDATE numbers SET number = :ours WHERE number = :theirs", ours = OURS, theirs = THEIRS);
        self.them.write(vec![before]);
        assert_eq!(self.them.get("/numbers").ok().json[0]["number"], OURS);
        assistant
    }
}

fn bind(world: &World, number: &str, assistant_id: &str) -> sidetone_tests::Reply {
    world.put(format!("/numbers/{number}"), json!({"assistant_id": assistant_id, "provider": "vonage"}))
}

/// What a dry run objects to.
fn problems(world: &World, assistant_id: &str, from: Option<&str>) -> Vec<Value> {
    let mut order = json!({"assistant_id": assistant_id, "to": "+14155557777"});
    if let Some(from) = from {
        order["from"] = json!(from);
    }
    let dry = world.post("/calls/outbound?dry_run=true", order).created().json;
    assert_eq!(dry["would_place"], dry["problems"] == json!([]), "{dry}");
    dry["problems"].as_array().unwrap().clone()
}

/// Announces a call to a number; returns what the caller gets to hear or do.
pub(crate) fn announced(world: &World, number: &str) -> String {
    let call = PhoneCall {
        carrier_call_id: "63f61863-4a51-4f6b-86e1-46edebcf9356".to_owned(),
        other_id: "0ccc7b54-4df3-4bca-a65a-3da1ecc777f0".to_owned(),
        from: "+14155550123".to_owned(),
        to: number.to_owned(),
        outbound: false,
        status_url: format!("{BASE_URL}/carriers/vonage/status"),
        voice_url: format!("{BASE_URL}/carriers/vonage/voice"),
        format: String::new(),
        detection: None,
    };
    let public = Public { base_url: BASE_URL.to_owned() };
    let wire = VonageWire::default();
    wire.settings("http://vonage.example");
    let callback = wire.callback(&public, &call, &CallEvent::Incoming, 0, 1_767_225_600).unwrap();
    let mut request = http::Request::builder().method(callback.method).uri(&callback.url[BASE_URL.len()..]);
    for (name, value) in &callback.headers {
        request = request.header(*name, value);
    }
    let reply = world.send_unchecked(request.body(Bytes::from(callback.body)).unwrap()).ok();
    reply.json[0]["action"].as_str().unwrap().to_owned()
}

#[test]
fn only_the_workspace_that_has_a_number_can_bind_it() {
    let Granted { us, them } = Granted::new();
    let (ours, theirs) = (us.assistant().id, them.assistant().id);
    let refusal = bind(&them, OURS, &theirs).refused("number_in_use");
    let message = refusal["error"]["message"].as_str().unwrap();
    assert!(message.contains("SIDETONE_NUMBERS") && message.contains(&*them.workspace_id()), "{message}");
    let arguments = json!({"number": OURS, "data": {"assistant_id": theirs, "provider": "vonage"}});
    them.tool("bind_number", arguments).refused("number_in_use");
    bind(&us, NOBODYS, &ours).refused("number_in_use");
    bind(&us, OURS, &ours).ok();
    bind(&us, OURS, &us.assistant().id).ok();
    bind(&them, THEIRS, &theirs).ok();
    us.delete(format!("/numbers/{OURS}")).empty();
    bind(&them, OURS, &theirs).refused("number_in_use");
}

#[test]
fn only_the_workspace_that_has_a_number_places_calls_from_it() {
    let granted = Granted::new();
    let Granted { us, them } = &granted;
    let ours = us.assistant().id;
    bind(us, OURS, &ours).ok();
    assert_eq!(problems(us, &ours, None), [] as [Value; 0]);
    // A number of another workspace's binding is unknown, granted or not.
    let unknown = problems(them, &them.assistant().id, Some(OURS));
    assert_eq!(unknown[0]["details"]["fields"][0]["field"], "from", "{unknown:?}");
    us.delete(format!("/numbers/{OURS}")).empty();
    // A binding from before does not count either, named or chosen.
    let theirs = granted.bound_by_them_before();
    for from in [Some(OURS), None] {
        let problems = problems(them, &theirs.id, from);
        let text = problems[0]["details"]["fields"][0]["message"].as_str().unwrap();
        assert!(text.contains("SIDETONE_NUMBERS"), "{problems:?}");
    }
    let order = json!({"assistant_id": theirs.id, "to": "+14155557777", "from": OURS});
    them.post("/calls/outbound", order).refused("validation_failed").naming(&["from"]);
    assert!(us.sandbox().unwrap().sent_http().is_empty(), "the carrier was not asked");
}

#[test]
fn a_binding_from_before_is_not_called_and_is_replaced() {
    let granted = Granted::new();
    granted.bound_by_them_before();
    let Granted { us, them } = &granted;
    assert_eq!(announced(us, OURS), "talk", "the call is declined");
    assert_eq!(them.get("/calls").ok()["stats"]["total"], 0);
    let ours = us.assistant().id;
    let bound = bind(us, OURS, &ours).ok();
    assert_eq!(bound["created_at"], bound["updated_at"]);
    assert_eq!(us.get("/numbers").ok().json, json!([bound.json]));
    assert_eq!(them.get("/numbers").ok().json, json!([]));
    assert_eq!(announced(us, OURS), "connect");
    assert_eq!(us.get("/calls").ok()["stats"]["total"], 1);
    let unbound = them.call(Method::DELETE, &format!("/numbers/{OURS}"), None);
    unbound.refused("not_found");
}

/// Nothing of a workspace changes while it moves, and whoever asks for its number is not told that it is theirs that moves.
#[test]
fn a_number_is_not_taken_from_a_workspace_that_moves() {
    let granted = Granted::new();
    granted.bound_by_them_before();
    let Granted { us, them } = &granted;
    let (services, id) = (them.direct_access(), them.workspace_id());
    wait(close(&services, &id)).unwrap().unwrap();
    assert_eq!(wait(freeze(&services, &id, true)).unwrap().unwrap(), Freeze::Frozen);
    let ours = us.assistant().id;
    let refusal = bind(us, OURS, &ours).refused("number_in_use");
    let message = refusal["error"]["message"].as_str().unwrap();
    assert!(message.contains("Another workspace") && message.contains("moves to another host"), "{message}");
    assert_eq!(them.get("/numbers").ok().json[0]["number"], OURS);
    wait(cancel_export(&services, &id)).unwrap().unwrap();
    bind(us, OURS, &ours).ok();
    assert_eq!(them.get("/numbers").ok().json, json!([]));
}
