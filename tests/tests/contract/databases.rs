//! A workspace moves between the databases of one service: in memory, and on the Worker, between three of D1.
use std::thread::sleep;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use sidetone::sandbox::memory_shards;
use sidetone_tests::fakes::carrier::default_account;
use sidetone_tests::host::host;
use sidetone_tests::process::bootstrap_key;
use sidetone_tests::{Browser, World};

const GREETING: &str = "Hello, front desk.";
/// How long what is under way may take.
const TRIES: usize = 600;

/// A service over three databases, whose workspaces are created by keys of the settings.
struct Service {
    world: World,
    operator: World,
    /// What the databases are called.
    names: [&'static str; 3],
}

impl Service {
    fn new() -> Self {
        let key = bootstrap_key(4_000_070);
        let operator = ("SIDETONE_OPERATOR_KEY", key.as_str());
        let (world, names) = match host() {
            "worker" => {
                let account = default_account();
                let mut settings = vec![operator, ("SIDETONE_SHARDS", "DB_2,DB_3")];
                settings.extend(account.iter().map(|(name, value)| (*name, value.as_str())));
                (World::of_its_own(&settings), ["DB", "DB_2", "DB_3"])
            }
            _ => (World::over_shards(memory_shards(3), &[operator]), ["DB_1", "DB_2", "DB_3"]),
        };
        Self { operator: world.with_key(&key), world, names }
    }

    /// One step after the other; `each` is called between two of them.
    fn moved(&self, id: &str, database: &str, mut each: impl FnMut()) {
        let path = format!("/operator/workspaces/{id}/database");
        let body = json!({"database": database, "without_late_prices": true});
        for _ in 0..TRIES {
            let told = self.operator.post(&path, body.clone()).ok();
            if told["state"] == "at" {
                assert_eq!(told["database"], database, "{told:?}");
                return;
            }
            each();
            if !told["waiting_for"].is_null() {
                self.pass();
            }
        }
        panic!("the move does not end");
    }

    /// What is under way comes to its end.
    fn pass(&self) {
        match self.world.sandbox() {
            Some(sandbox) => {
                sandbox.advance(1_000);
                sandbox.run_jobs();
            }
            None => sleep(Duration::from_millis(200)),
        }
    }
}

/// A call with a recording; its id.
fn recorded(world: &World) -> String {
    let body = json!({"name": "Front desk", "instructions": "Be kind.", "first_message": GREETING,
                      "voice": "builtin/tone", "record": true});
    let assistant = world.create("/assistants", body).id;
    let mut browser = Browser::open(world, &assistant, "tone");
    let id = browser.expect("call_started")["call"]["id"].as_str().expect("an id").to_owned();
    assert_eq!(browser.hear(), GREETING);
    browser.hang_up();
    world.settled_call(&id);
    id
}

#[test]
#[cfg_attr(test_host = "native", ignore = "the binary has one database")]
fn a_workspace_moves_between_the_databases_of_a_service() {
    let service = Service::new();
    let world = &service.world;
    let beside = world.other();
    let id = world.get("/workspace").ok()["id"].as_str().expect("an id").to_owned();
    let call = recorded(world);
    let number = world.binding().id;
    let path = format!("/operator/workspaces/{id}/database");
    let home = service.operator.get(&path).ok()["database"].clone();
    let first = service.names.iter().position(|name| home == *name).expect("one of the three");
    let read =
        [format!("/calls/{call}"), format!("/calls/{call}/recording"), format!("/calls?search={call}")];
    let before = read.each_ref().map(|path| world.get(path).ok().body);

    let (mut made, mut refused) = (Vec::new(), Vec::new());
    for turn in 1..=3 {
        let database = service.names[(first + turn) % 3];
        service.moved(&id, database, || {
            let n = made.len() + refused.len();
            let name = format!("request {n}");
            let body = json!({"name": name, "instructions": "Be kind."});
            let reply = world.post_once("/assistants", &name, body);
            match reply.status {
                201 => made.push((name, reply["id"].clone())),
                _ => {
                    reply.refused("workspace_moving");
                    refused.push(name);
                }
            }
            beside.assistant();
        });
        assert_eq!(service.operator.get(&path).ok().json, json!({"state": "at", "database": database}));
        assert_eq!(read.each_ref().map(|path| world.get(path).ok().body), before, "in {database}");
        let body = json!({"assistant_id": beside.assistant().id, "provider": "twilio"});
        beside.put(format!("/numbers/{number}"), body).refused("number_in_use");
    }
    assert!(!made.is_empty() && !refused.is_empty(), "{} and {}", made.len(), refused.len());
    for name in &refused {
        let body = json!({"name": name, "instructions": "Be kind."});
        made.push((name.clone(), world.post_once("/assistants", name, body).created()["id"].clone()));
    }
    let listed = world.get("/assistants?limit=1000").ok().json;
    for (name, id) in &made {
        let found: Vec<&Value> =
            listed.as_array().expect("a list").iter().filter(|one| one["name"] == **name).collect();
        assert!(found.len() == 1 && found[0]["id"] == *id, "{name}: {found:?}");
    }

    // Given up, it stays where it is.
    let elsewhere = json!({"database": service.names[(first + 1) % 3], "without_late_prices": true});
    for _ in 0..TRIES {
        let told = service.operator.post(&path, elsewhere.clone()).ok();
        if told["state"] == "comparing" {
            break;
        }
        service.pass();
    }
    for _ in 0..TRIES {
        let told = service.operator.call(Method::DELETE, &path, None).ok();
        if told["state"] == "at" {
            assert_eq!(told["database"], home);
            break;
        }
    }
    world.assistant();
    assert_eq!(read.each_ref().map(|path| world.get(path).ok().body), before);
}
