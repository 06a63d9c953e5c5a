//! Several databases behind one service: which of them answers, what that costs, and what is true after a crash.
use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use serde_json::json;
use sidetone::Sandbox;
use sidetone::database::Memory;
use sidetone::sandbox::{Reply, block_on, memory};
use sidetone_engine::base::limits::NUMBERS_MAX;
use sidetone_engine::ports::statement::Statement;
use sidetone_engine::ports::{Database, Shard, Shards};
use sidetone_engine::sql;
use sidetone_tests::counted::{Counted, Trips};
use sidetone_tests::meanwhile::Meanwhile;
use sidetone_tests::process::bootstrap_key;

const BOOTSTRAPS: u32 = 6;
pub const MINUTE_MS: i64 = 60_000;

/// Three databases with their directory.
struct Service {
    directory: Arc<Counted>,
    shards: Vec<Arc<Counted>>,
}

impl Service {
    fn new() -> Self {
        let directory = Arc::new(Counted::over(Memory::directory().unwrap()));
        Self { directory, shards: (0..3).map(|_| Arc::new(Counted::over(memory()))).collect() }
    }

    /// The service. Its Sandbox has a workspace in each of the first two databases.
    fn isolate(&self) -> Sandbox {
        let all = named(self.shards.iter().map(|shard| shard.clone() as Arc<dyn Database>));
        let isolate = with_bootstrap_keys(Shards { directory: self.directory.clone(), all });
        self.take();
        isolate
    }

    /// The batches of each shard and, last, of the directory, since the last time.
    fn take(&self) -> Vec<Trips> {
        self.shards.iter().chain([&self.directory]).map(|one| one.take()).collect()
    }

    /// The rows on each shard.
    fn count(&self, from: &str) -> Vec<i64> {
        let ask = || sql!(format!("SELECT COUNT(*) AS n FROM {from}"));
        let all = self.shards.iter();
        all.map(|shard| block_on(shard.read(vec![ask()])).unwrap()[0].first().unwrap().integer("n").unwrap())
            .collect()
    }
}

/// Databases by their names at the edge.
pub fn named(databases: impl Iterator<Item = Arc<dyn Database>>) -> Vec<Shard> {
    let all = databases.enumerate();
    all.map(|(n, database)| Shard { name: format!("DB_{}", n + 1).into(), database }).collect()
}

/// A service over these databases that creates a workspace for each bootstrap key.
pub fn with_bootstrap_keys(shards: Shards) -> Sandbox {
    let keys: Vec<String> = (0..BOOTSTRAPS).map(bootstrap_key).collect();
    Sandbox::over_shards(shards, &[("SIDETONE_BOOTSTRAP_KEYS", &keys.join(","))])
}

fn write(database: &Counted, statement: Statement) {
    block_on(database.write(vec![statement])).unwrap();
}

pub fn send(
    isolate: &Sandbox,
    key: &str,
    method: Method,
    path: &str,
    body: Option<serde_json::Value>,
) -> Reply {
    let mut request = http::Request::builder().method(method).uri(path);
    request = request.header("authorization", format!("Bearer {key}"));
    if body.is_some() {
        request = request.header("content-type", "application/json");
    }
    let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
    isolate.send(request.body(body).unwrap())
}

pub fn get(isolate: &Sandbox, key: &str) -> Reply {
    send(isolate, key, Method::GET, "/assistants", None)
}

pub fn assistant(isolate: &Sandbox, key: &str) -> String {
    let body = json!({"name": "Front desk", "instructions": "Be kind."});
    let made = send(isolate, key, Method::POST, "/assistants", Some(body));
    assert_eq!(made.status, 201, "{made:?}");
    made["id"].as_str().unwrap().to_owned()
}

/// A further key of a workspace that the directory does not know, like those from before there was one.
fn unseen_key(service: &Service, isolate: &Sandbox, key: &str) -> String {
    let made = send(isolate, key, Method::POST, "/keys", Some(json!({"name": "another"})));
    let unseen = made["key"].as_str().unwrap().to_owned();
    let hash = crate::cluster::hash(&unseen);
    write(&service.directory, sql!("DELETE FROM keys WHERE hash = :hash", hash = &hash));
    unseen
}

fn bind(isolate: &Sandbox, key: &str, number: &str) -> u16 {
    bind_to(isolate, key, &assistant(isolate, key), number)
}

pub fn bind_to(isolate: &Sandbox, key: &str, assistant_id: &str, number: &str) -> u16 {
    let body = json!({"assistant_id": assistant_id, "provider": "twilio"});
    send(isolate, key, Method::PUT, &format!("/numbers/{number}"), Some(body)).status
}

fn total(trips: &[Trips]) -> usize {
    trips.iter().map(|trips| trips.total()).sum()
}

#[test]
fn bootstrap_keys_fill_the_databases_evenly_and_create_one_workspace_each() {
    let service = Service::new();
    let one = service.isolate();
    let other = one.another_process();
    for n in 0..BOOTSTRAPS {
        assert_eq!(get(&one, &bootstrap_key(n)).status, 200);
        assert_eq!(get(&other, &bootstrap_key(n)).status, 200);
    }
    assert_eq!(service.count("api_keys WHERE name = 'bootstrap'").iter().sum::<i64>(), 6, "one each");
    let workspaces = service.count("workspaces");
    assert_eq!(workspaces.iter().sum::<i64>(), 8, "and those of the sandbox");
    assert!(workspaces.iter().all(|count| (2..=3).contains(count)), "{workspaces:?}");
}

#[test]
fn a_request_that_died_before_its_workspace_existed_is_repeated_in_the_same_place() {
    let service = Service::new();
    let decided = sql!(
        "INSERT INTO bootstraps (hash, shard) VALUES (:hash, 'DB_3')",
        hash = crate::cluster::hash(&bootstrap_key(0))
    );
    write(&service.directory, decided);
    let isolate = service.isolate();
    for isolate in [&isolate, &isolate.another_process()] {
        assert_eq!(get(isolate, &bootstrap_key(0)).status, 200);
    }
    assert_eq!(service.count("api_keys WHERE name = 'bootstrap'"), [0, 0, 1]);
}

#[test]
fn only_the_first_request_of_a_key_asks_the_directory() {
    let service = Service::new();
    let first = service.isolate();
    let key = first.create_workspace("a customer");
    let key = unseen_key(&service, &first, &key);
    let home = service.count("workspaces WHERE name = 'a customer'").iter().position(|n| *n == 1).unwrap();
    service.take();
    assert_eq!(get(&first, &key).status, 200, "the directory did not know the key: every shard was asked");
    let searched = service.take();
    assert_eq!((searched[3].reads, searched[3].writes), (1, 1), "{searched:?}");
    assert!(searched[..3].iter().all(|shard| shard.reads >= 1), "{searched:?}");

    // It knows it now, whichever isolate asks.
    let second = first.another_process();
    assert_eq!(get(&second, &key).status, 200);
    let asked = service.take();
    assert_eq!((asked[3].total(), asked[home].reads, total(&asked)), (1, 1, 2), "{asked:?}");
    assert_eq!(get(&second, &key).status, 200);
    let remembered = service.take();
    assert_eq!((remembered[home].reads, total(&remembered)), (1, 1), "as with one database: {remembered:?}");
}

#[test]
fn a_new_key_is_known_at_once_and_a_revoked_one_is_asked_about_once() {
    let service = Service::new();
    let one = service.isolate();
    let (key, other) = (one.create_workspace("a customer"), one.another_process());
    let made = send(&one, &key, Method::POST, "/keys", Some(json!({"name": "temporary"})));
    let temporary = made["key"].as_str().unwrap();
    service.take();
    assert_eq!(get(&other, temporary).status, 200);
    let trips = service.take();
    assert_eq!(trips[3].total(), 1, "{trips:?}");
    assert_eq!(
        trips[..3].iter().filter(|shard| shard.total() > 0).count(),
        1,
        "nothing is searched: {trips:?}"
    );

    let path = format!("/keys/{}", made["id"].as_str().unwrap());
    assert_eq!(send(&one, &key, Method::DELETE, &path, None).status, 204);
    for n in 0..11 {
        service.take();
        assert_eq!(get(&other, temporary).status, if n < 10 { 401 } else { 429 }, "it counts as wrong");
        let trips = service.take();
        assert_eq!(
            (trips[3].total(), total(&trips)),
            (1, 3),
            "and whether its workspace has moved: {trips:?}"
        );
    }
    assert_eq!(get(&other, &key).status, 200);
}

#[test]
fn an_outdated_memory_finds_the_new_place_and_counts_no_wrong_key() {
    let service = Service::new();
    let isolate = service.isolate();
    let key = isolate.create_workspace("a customer");
    assert_eq!(get(&isolate, &key).status, 200);
    let (hash, id) = (crate::cluster::hash(&key), "SELECT workspace_id FROM api_keys WHERE hash = ?1");
    let names = ["DB_1", "DB_2", "DB_3"];
    let home = |service: &Service| {
        let count = service
            .count("api_keys AS k JOIN workspaces AS w ON w.id = k.workspace_id WHERE w.name = 'a customer'");
        count.iter().position(|n| *n == 1).unwrap()
    };
    let from = home(&service);
    let row = Statement { sql: id.into(), params: vec![hash.as_str().into()] };
    let rows = block_on(service.shards[from].read(vec![row])).unwrap();
    let id = rows[0].first().unwrap().text("workspace_id").unwrap();
    // More often than wrong keys are allowed from one address. A copy by hand stands for the move.
    for n in 0..12 {
        let from = home(&service);
        let to = (from + 1) % 3;
        for statement in [
            sql!("INSERT INTO workspaces (id, name, created_at) VALUES (:id, 'a customer', 0)", id = &id),
            sql!(
                "INSERT INTO api_keys (id, workspace_id, name, hash, hint, created_at)
                 VALUES ('key_1', :id, 'first key', :hash, '', 0)",
                id = &id,
                hash = &hash
            ),
        ] {
            write(&service.shards[to], statement);
        }
        write(&service.shards[from], sql!("DELETE FROM api_keys WHERE hash = :hash", hash = &hash));
        write(&service.shards[from], sql!("DELETE FROM workspaces WHERE id = :id", id = &id));
        if n % 2 == 0 {
            let settling = sql!(
                "UPDATE workspaces SET state = 'settling', shard = :to, other_shard = :from WHERE id = :id",
                to = names[to],
                from = names[from],
                id = &id
            );
            write(&service.directory, settling);
            assert_eq!(get(&isolate, &key).status, 200);
        }
        let moved = sql!(
            "UPDATE workspaces SET state = 'at', shard = :to, other_shard = NULL WHERE id = :id",
            to = names[to],
            id = &id
        );
        write(&service.directory, moved);
        assert_eq!(get(&isolate, &key).status, 200);
    }
}

#[test]
fn wrong_keys_stop_costing_a_search() {
    let service = Service::new();
    let isolate = service.isolate();
    let seen = isolate.create_workspace("in the third database");
    let unseen = unseen_key(&service, &isolate, &seen);
    let isolate = isolate.another_process();
    let wrong = |n: u32| bootstrap_key(1_000 + n);
    for n in 0..10 {
        assert_eq!(get(&isolate, &wrong(n)).status, 401);
    }
    service.take();
    assert_eq!(get(&isolate, &wrong(10)).status, 429);
    let trips = service.take();
    assert_eq!(trips[1..].iter().map(|one| one.total()).collect::<Vec<_>>(), [0, 0, 1], "{trips:?}");
    assert_eq!(get(&isolate, &unseen).status, 429, "a key that was never seen waits, too");
    assert_eq!(get(&isolate, &seen).status, 200);
    isolate.advance(MINUTE_MS);
    assert_eq!(get(&isolate, &unseen).status, 200);
    // Nothing of it is about what takes no key.
    service.take();
    assert_eq!(send(&isolate, &wrong(11), Method::GET, "/nowhere", None).status, 404);
    assert_eq!(total(&service.take()), 0);
}

/// What is refused for its method or its origin is not counted as a wrong key.
#[test]
fn a_key_that_nobody_looks_at_costs_no_search() {
    let service = Service::new();
    let isolate = service.isolate();
    let wrong = |n: u32| bootstrap_key(1_000 + n);
    for n in 0..20 {
        assert_eq!(send(&isolate, &wrong(n), Method::PUT, "/assistants", None).status, 405);
        assert_eq!(send(&isolate, &wrong(n), Method::GET, "/mcp", None).status, 405);
        let elsewhere = http::Request::builder().method(Method::POST).uri("/mcp");
        let elsewhere = elsewhere.header("origin", "https://elsewhere.example");
        let elsewhere = elsewhere.header("authorization", format!("Bearer {}", wrong(n)));
        assert_eq!(isolate.send(elsewhere.body(Bytes::new()).unwrap()).status, 403);
    }
    assert_eq!(total(&service.take()), 0);
}

#[test]
fn a_workspace_at_its_limit_keeps_no_number_from_others() {
    const NUMBER: &str = "+14155550123";
    let service = Service::new();
    let isolate = service.isolate();
    let (one, other) = (isolate.create_workspace("one"), isolate.create_workspace("other"));
    let id = assistant(&isolate, &one);
    for shard in &service.shards {
        let fill = sql!(
            "INSERT INTO numbers (number, workspace_id, assistant_id, provider, created_at, updated_at)
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :most)
             SELECT '+1999' || (1000000 + i), a.workspace_id, a.id, 'twilio', 0, 0 FROM n, assistants AS a WHERE a.id = :id",
            most = NUMBERS_MAX,
            id = &id
        );
        write(shard, fill);
    }
    assert_eq!(bind_to(&isolate, &one, &id, NUMBER), 409, "the limit");
    assert_eq!(bind(&isolate, &other, NUMBER), 200, "at once");
}

#[test]
fn a_binding_that_was_undone_meanwhile_is_claimed_anew() {
    const NUMBER: &str = "+14155550123";
    let directory = Arc::new(Memory::directory().unwrap());
    let shards: Vec<Arc<Meanwhile>> = (0..2).map(|_| Arc::default()).collect();
    let all = named(shards.iter().map(|shard| shard.clone() as Arc<dyn Database>));
    let isolate = with_bootstrap_keys(Shards { directory: directory.clone(), all });
    let (one, other) = (isolate.key().to_owned(), isolate.create_workspace("other"));
    let [first, second] = [assistant(&isolate, &one), assistant(&isolate, &one)];
    assert_eq!(bind_to(&isolate, &one, &first, NUMBER), 200);
    // Between the read and the write of a change it is unbound, and claimed by somebody else.
    for shard in &shards {
        shard.before("INSERT INTO numbers", vec![sql!("DELETE FROM numbers")]);
    }
    let claim = sql!(
        "UPDATE numbers SET claimed_at = :now, workspace_id = (SELECT workspace_id FROM keys WHERE hash = :hash)",
        now = isolate.services().now(),
        hash = crate::cluster::hash(&other)
    );
    block_on(directory.write(vec![claim])).unwrap();
    assert_eq!(bind_to(&isolate, &one, &second, NUMBER), 409);
    assert_eq!(send(&isolate, &one, Method::GET, &format!("/numbers/{NUMBER}"), None).status, 404);
}

#[test]
fn a_number_has_one_workspace_among_all_databases() {
    const NUMBER: &str = "+14155550123";
    let service = Service::new();
    let isolate = service.isolate();
    let (one, other) = (isolate.create_workspace("one"), isolate.create_workspace("other"));
    assert!(
        service.count("workspaces WHERE name IN ('one', 'other')").iter().all(|n| *n < 2),
        "two databases"
    );
    assert_eq!(bind(&isolate, &one, NUMBER), 200);
    assert_eq!(bind(&isolate, &other, NUMBER), 409);
    assert_eq!(service.count("numbers").iter().sum::<i64>(), 1);
    // A directory that was lost, or is newer than the binding, learns of it from the shards.
    write(&service.directory, sql!("DELETE FROM numbers"));
    assert_eq!(bind(&isolate, &other, NUMBER), 409);
    assert_eq!(send(&isolate, &one, Method::DELETE, &format!("/numbers/{NUMBER}"), None).status, 204);
    assert_eq!(bind(&isolate, &other, NUMBER), 200, "at once");

    // A binding that goes with its assistant leaves nothing to wait for.
    let bound = send(&isolate, &other, Method::GET, &format!("/numbers/{NUMBER}"), None);
    let path = format!("/assistants/{}", bound["assistant_id"].as_str().unwrap());
    assert_eq!(send(&isolate, &other, Method::DELETE, &path, None).status, 204);
    assert_eq!(bind(&isolate, &one, NUMBER), 200, "at once");
    assert_eq!(send(&isolate, &one, Method::DELETE, &format!("/numbers/{NUMBER}"), None).status, 204);

    // A request that died between its claim and its binding.
    let claim = sql!(
        "INSERT INTO numbers (number, workspace_id, claimed_at)
         SELECT :number, k.workspace_id, :now FROM keys AS k WHERE k.hash = :hash",
        number = NUMBER,
        hash = crate::cluster::hash(&one),
        now = isolate.services().now()
    );
    write(&service.directory, claim);
    assert_eq!(bind(&isolate, &other, NUMBER), 409, "it may still be about to");
    isolate.advance(MINUTE_MS);
    assert_eq!(bind(&isolate, &other, NUMBER), 200, "it has not");
    assert_eq!(bind(&isolate, &one, NUMBER), 409);
}

#[test]
fn a_test_token_finds_the_database_of_its_workspace() {
    let service = Service::new();
    let isolate = service.isolate();
    let key = isolate.create_workspace("in the third database");
    let id = assistant(&isolate, &key);
    let path = format!("/assistants/{id}/test-token");
    let token = send(&isolate, &key, Method::POST, &path, Some(json!({})));
    let (_, path) = token["websocket_url"].as_str().unwrap().split_once("sandbox.example").unwrap();
    let other = isolate.another_process();
    service.take();
    let request = http::Request::builder().uri(format!("{path}&check")).body(Bytes::new()).unwrap();
    let checked = other.send(request);
    assert_eq!(checked.status, 200, "{checked:?}");
    let trips = service.take();
    assert_eq!((trips[3].reads, trips[0].total(), trips[1].total()), (1, 0, 0), "{trips:?}");
    let socket = other.connect(path).unwrap_or_else(|refused| panic!("{refused:?}"));
    assert_eq!(send(&isolate, &key, Method::GET, "/calls", None)["pagination"]["total"], 1);
    drop(socket);
}

#[test]
fn the_directory_keeps_hashes_of_keys_only() {
    let service = Service::new();
    let isolate = service.isolate();
    let made = isolate.create_workspace("a customer");
    let keys = [made.as_str(), isolate.key(), &bootstrap_key(0)];
    assert!(keys.iter().all(|key| get(&isolate, key).status == 200));
    let tables = ["workspaces", "keys", "bootstraps", "numbers", "carrier_tokens"];
    let known = sql!(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN (SELECT value FROM json_each(:t))",
        t = json!(tables).to_string()
    );
    assert!(block_on(service.directory.read(vec![known])).unwrap()[0].is_empty(), "a table to look at");
    for key in keys {
        let hash = crate::cluster::hash(key);
        let found = sql!(
            "SELECT hash FROM keys WHERE hash = :hash UNION ALL SELECT hash FROM bootstraps WHERE hash = :hash",
            hash = hash
        );
        assert!(!block_on(service.directory.read(vec![found])).unwrap()[0].is_empty());
        for table in tables {
            let ask = Statement { sql: format!("SELECT * FROM {table}").into(), params: Vec::new() };
            let rows = block_on(service.directory.read(vec![ask])).unwrap();
            assert!(!format!("{rows:?}").contains(key), "{table}: {rows:?}");
        }
    }
}
