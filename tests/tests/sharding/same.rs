//! A workspace moves to another host and back, by the commands and the operator's requests: whatever is read with its keys is the
//! same before, while it is frozen, and afterwards, and whoever it calls knows it by the same secrets.
use bytes::Bytes;
use serde_json::{Value, json};
use sidetone_engine::ports::{HttpReply, HttpRequest};
use sidetone_engine::storage::signing::webhook_signature;
use sidetone_tests::{Created, Reply, World};

use crate::operators::{Hosts, assert_same, run_erase, run_export, run_import};

const TOOL: &str = "https://tools.example/order";
const WEBHOOK: &str = "https://receiver.example/moved";

/// What is made before the move, and the secrets that sign for it, newest first.
struct Things {
    tool: Created,
    tool_secrets: Vec<String>,
    webhook: Created,
    webhook_secrets: Vec<String>,
    /// A run that waits. It calls the tool.
    run: Created,
    /// What a repeated request is answered.
    once: Value,
}

fn secret(of: &Value) -> String {
    of["signing_secret"].as_str().expect("a secret").to_owned()
}

/// A request with an Idempotency-Key, whose answer has a secret.
fn once(world: &World) -> Reply {
    let body = json!({"name": "made_once", "url": TOOL, "description": "Does something else",
        "parameters": {"type": "object", "properties": {}}});
    world.post_once("/tools", "before the move", body).created()
}

impl Things {
    fn of(world: &World) -> Self {
        let assistant = world.assistant();
        let tool = world.create(
            "/tools",
            json!({"name": "order_status", "url": TOOL, "description": "Looks up the status of an order",
                   "parameters": {"type": "object", "properties": {}}}),
        );
        world.put(format!("/assistants/{}/tools", assistant.id), json!({"tool_ids": [tool.id]})).ok();
        let scenario = world.create(
            "/simulations/scenarios",
            json!({"name": "Order", "instructions": "Ask: \"What is the status of my order?\""}),
        );
        let body = json!({"assistant_id": assistant.id, "persona_id": world.persona().id,
            "scenario_id": scenario.id});
        let simulation = world.create("/simulations", body);
        let webhook = world.create("/webhooks", json!({"url": WEBHOOK, "events": ["*"]}));
        let mut things = Self {
            tool_secrets: vec![secret(&tool.json)],
            tool,
            webhook_secrets: vec![secret(&webhook.json)],
            webhook,
            once: once(world).json,
            run: world.create(&format!("/simulations/{}/runs", simulation.id), json!({"seed": 1})),
        };
        things.rotate_webhook(world);
        things
    }

    fn rotate_webhook(&mut self, world: &World) {
        let rotated = world.post(format!("/webhooks/{}/rotate-secret", self.webhook.id), json!({})).created();
        self.webhook_secrets.insert(0, secret(&rotated.json));
        self.webhook_secrets.truncate(2);
    }

    fn rotate_tool(&mut self, world: &World) {
        let rotated = world.post(format!("/tools/{}/rotate-secret", self.tool.id), json!({})).created();
        self.tool_secrets.insert(0, secret(&rotated.json));
        self.tool_secrets.truncate(2);
    }

    /// Calls the tool and the webhook, and checks who signs.
    fn assert_signed(&self, world: &World) {
        let sandbox = world.sandbox().unwrap();
        sandbox.sent_http();
        world.post(format!("/tools/{}/test", self.tool.id), json!({"arguments": {}})).ok();
        world.create(&format!("/webhooks/{}/test", self.webhook.id), json!({}));
        sandbox.run_jobs();
        self.assert_all_signed(&sandbox.sent_http());
    }

    /// Checks the signatures of these requests; each receiver has to get some.
    fn assert_all_signed(&self, sent: &[HttpRequest]) {
        for (url, secrets) in [(TOOL, &self.tool_secrets), (WEBHOOK, &self.webhook_secrets)] {
            let own: Vec<_> = sent.iter().filter(|request| request.url == url).collect();
            assert!(!own.is_empty(), "nothing is sent to {url}");
            for request in own {
                let signed: Vec<String> = secrets.iter().map(|secret| signature(request, secret)).collect();
                assert_eq!(header(request, "webhook-signature"), signed.join(" "), "{url}");
            }
        }
    }

    fn assert_replayed(&self, world: &World) {
        let again = once(world);
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
        assert_eq!(again.json, self.once);
    }
}

fn header(request: &HttpRequest, name: &str) -> String {
    let found = request.headers.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| value.clone()).unwrap_or_else(|| panic!("no {name}"))
}

fn signature(request: &HttpRequest, secret: &str) -> String {
    let timestamp_s = header(request, "webhook-timestamp").parse().unwrap();
    webhook_signature(secret, &header(request, "webhook-id"), timestamp_s, &request.body)
}

/// Everybody whom the host calls is content.
fn answer_everything(world: &World) {
    world.sandbox().unwrap().answer_http_with(|_| {
        Ok(HttpReply { status: 200, headers: Vec::new(), body: Bytes::from_static(b"{}") })
    });
}

#[test]
fn a_workspace_is_the_same_on_the_other_host_and_back_again() {
    let hosts = Hosts::new();
    let folder = tempfile::tempdir().unwrap();
    let (home, away) = (hosts.world(0), hosts.world(1));
    hosts.calm_down(0);
    let mut things = Things::of(&home);
    let (before, beside) = (hosts.everything(0), hosts.beside());
    assert_eq!(hosts.running(), [0]);

    let file = folder.path().join("there.move");
    run_export(hosts.operator(0), &hosts.id, &file).unwrap();
    assert_same(&hosts.everything(0), &before, "while it is frozen");
    let new = json!({"name": "New", "instructions": "Be kind."});
    home.post("/assistants", new.clone()).refused("workspace_moving");
    run_import(hosts.operator(1), &file, hosts.operator(0)).unwrap();
    assert_eq!(hosts.running(), [1]);
    assert_same(&hosts.everything(1), &before, "where it has moved");
    assert_eq!(hosts.beside(), beside, "the neighbours are unchanged");
    home.get("/assistants").refused("workspace_moved");
    home.post("/assistants", new.clone()).refused("workspace_moved");

    // It goes on there.
    answer_everything(&away);
    things.assert_replayed(&away);
    away.sandbox().unwrap().sent_http();
    let run = away.settle(&things.run.id);
    assert_eq!(run["status"], "completed", "{run}");
    things.assert_all_signed(&away.sandbox().unwrap().sent_http());
    things.rotate_tool(&away);
    things.assert_signed(&away);
    things.rotate_webhook(&away);
    things.assert_signed(&away);
    away.post("/assistants", new.clone()).created();
    let made = away.post("/keys", json!({"name": "Made there"})).created();
    let key = made["key"].as_str().unwrap();
    away.with_key(key).get("/assistants").ok();

    // And back, over what is left there.
    run_erase(hosts.operator(0), &hosts.id).unwrap();
    hosts.calm_down(1);
    let waiting = away.run();
    let (before, beside) = (hosts.everything(1), hosts.beside());
    let file = folder.path().join("back.move");
    run_export(hosts.operator(1), &hosts.id, &file).unwrap();
    assert_same(&hosts.everything(1), &before, "while it is frozen there");
    run_import(hosts.operator(0), &file, hosts.operator(1)).unwrap();
    assert_eq!(hosts.running(), [0]);
    assert_same(&hosts.everything(0), &before, "at home again");
    assert_eq!(hosts.beside(), beside, "the neighbours are unchanged");
    away.get("/assistants").refused("workspace_moved");
    answer_everything(&home);
    home.with_key(key).get("/assistants").ok();
    things.assert_replayed(&home);
    things.assert_signed(&home);
    things.rotate_tool(&home);
    things.rotate_webhook(&home);
    things.assert_signed(&home);
    assert_eq!(home.settle(&waiting.id)["status"], "completed");
    home.post("/assistants", new).created();
    run_erase(hosts.operator(1), &hosts.id).unwrap();
    home.get("/assistants").ok();
}
