//! A workspace that arrives from another host: over HTTP, into the storage of each host.
use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use sidetone_engine::storage::moves::part::{Head, Part, Tally};
use sidetone_tests::process::bootstrap_key;
use sidetone_tests::{Reply, World};

const HOUR_MS: i64 = 3_600_000;

/// A workspace that is frozen in a Sandbox.
struct Source {
    world: World,
    operator: World,
    path: String,
    head: Value,
    parts: Vec<Part>,
    /// A call with a recording.
    recorded: String,
}

impl Source {
    fn new() -> Self {
        let key = bootstrap_key(4_000_040);
        let world = World::with_settings(&[("SIDETONE_OPERATOR_KEY", &key)]);
        let operator = world.with_key(&key);
        world.assistant();
        world.webhook();
        world.binding();
        world.runs_call();
        let recorded = world.a_recorded_call().id;
        let path = format!("/operator/exports/{}", world.workspace_id());
        let head = frozen(&world, &operator, &path);
        let (mut parts, mut query) = (Vec::new(), String::new());
        loop {
            let part = Part::read(&operator.get(format!("{path}/parts{query}")).ok().body).unwrap();
            let next = part.head.next.clone();
            parts.push(part);
            match next {
                Some(next) => query = format!("?after={next}"),
                None => break,
            }
        }
        let mut tally = Tally::of(&Head::from_line(&head.to_string()).unwrap());
        parts.iter().for_each(|part| tally.add(part).unwrap());
        assert!(tally.blobs > 0 && tally.secrets > 0, "{tally:?}");
        parts.push(Part::of_end(tally));
        Self { world, operator, path, head, parts, recorded }
    }

    fn release(&self, import_id: &Value) -> Value {
        let body = json!({
            "export_id": self.head["export_id"],
            "import_id": import_id,
            "moved_to": "https://elsewhere.example",
        });
        self.operator.post(format!("{}/release", self.path), body).ok()["code"].clone()
    }
}

/// The head of the file, once nothing is under way.
fn frozen(world: &World, operator: &World, path: &str) -> Value {
    let sandbox = world.sandbox().unwrap();
    for _ in 0..60 {
        let told = operator.post(path, json!({})).ok();
        if told["state"] == "frozen" {
            return told["head"].clone();
        }
        sandbox.advance(HOUR_MS);
        sandbox.run_jobs();
    }
    panic!("it is not frozen");
}

/// The host to which it moves.
struct Target {
    world: World,
    operator: World,
    path: String,
}

impl Target {
    fn new(source: &Source) -> Self {
        let key = bootstrap_key(4_000_041);
        let world = World::of_its_own(&[("SIDETONE_OPERATOR_KEY", &key)]);
        let path = format!("/operator/imports/{}", source.world.workspace_id());
        Self { operator: world.with_key(&key), world, path }
    }

    fn begin(&self, source: &Source) -> Reply {
        self.operator.post("/operator/imports", source.head.clone())
    }

    fn put(&self, n: usize, body: Bytes) -> Reply {
        put(&self.operator, &self.path, n, body)
    }

    /// Asks for a step until it has come to its end.
    fn until(&self, step: &str, body: &Value, last: &str) -> Reply {
        for _ in 0..1_000 {
            let told = self.operator.post(format!("{}{step}", self.path), body.clone()).ok();
            if told["state"] == last {
                return told;
            }
        }
        panic!("{step} does not end");
    }

    fn drop_all(&self) {
        for _ in 0..1_000 {
            if self.operator.delete(&self.path).status == 204 {
                return;
            }
        }
        panic!("it is not canceled");
    }
}

fn put(world: &World, path: &str, n: usize, body: Bytes) -> Reply {
    world.send(world.request(Method::PUT, &format!("{path}/parts/{n}")).body(body).unwrap())
}

/// The triggers, the rows, the text index and the blobs, in what each host has.
#[test]
#[cfg_attr(
    test_host = "sandbox",
    ignore = "two sandboxes make the same ids; tests/sharding/arriving.rs does this in memory"
)]
fn a_workspace_from_another_host_runs_here_as_it_was() {
    let source = Source::new();
    let recorded = format!("/calls/{}/recording", source.recorded);
    let before = source.world.get(&recorded).ok().body;
    let target = Target::new(&source);
    let begun = target.begin(&source).ok();
    assert_eq!((&begun["state"], &begun["next_part"]), (&json!("arriving"), &json!(1)));
    let there = target.world.with_key(source.world.key());
    there.from_elsewhere().get("/assistants").refused("unauthorized");

    // Given up in the middle, it begins again.
    target.put(1, source.parts[0].to_bytes()).ok();
    there.get("/assistants").refused("workspace_moving");
    target.drop_all();
    target.operator.get(&target.path).refused("not_found");
    target.begin(&source).ok();
    for (n, part) in (1..).zip(&source.parts) {
        for _ in 0..2 {
            assert_eq!(target.put(n, part.to_bytes()).ok()["next_part"], n + 1);
        }
    }
    let import_id = target.until("/verify", &json!({}), "arrived")["import_id"].clone();
    let wrong = target.operator.post(format!("{}/open", target.path), json!({"code": "move_"}));
    assert_eq!(wrong.refused("move_refused")["error"]["details"]["reason"], "wrong_code");
    let body = json!({"code": source.release(&import_id)});
    target.until("/open", &body, "running");
    target.world.logged("runs here");
    assert_eq!(target.until("/open", &body, "running")["import_id"], import_id);

    for call in there.get("/calls").ok()["calls"].as_array().unwrap() {
        let found = there.get(format!("/calls?search={}", call["id"].as_str().unwrap())).ok();
        assert_eq!(found["calls"].as_array().unwrap().len(), 1, "{call}");
    }
    assert!(there.get(&recorded).ok().body == before, "the recording is the same");
    there.assistant();
    assert_eq!(there.settle(&there.run().id)["status"], "completed");
    let handed_over = target.operator.delete(&target.path).refused("move_refused");
    assert_eq!(handed_over["error"]["details"]["reason"], "handed_over");
    source.world.get("/assistants").refused("workspace_moved");
}

/// A row may have 2 MB, which as JSON can be six times that.
#[test]
#[cfg_attr(test_host = "sandbox", ignore = "tests/sharding/arriving.rs does this in memory")]
fn only_a_part_of_the_operators_may_be_large() {
    let key = bootstrap_key(4_000_042);
    let world = World::of_its_own(&[("SIDETONE_OPERATOR_KEY", &key)]);
    let operator = world.with_key(&key);
    let path = format!("/operator/imports/{}", world.get("/workspace").ok()["id"].as_str().unwrap());
    let body = |bytes: usize| Bytes::from(vec![b' '; bytes]);
    put(&operator, &path, 1, body(16 << 20)).refused("not_found");
    put(&operator, &path, 1, body(17 << 20)).refused("body_too_large");
    put(&world, &path, 1, body(2 << 20)).refused("body_too_large");
    let large = operator.request(Method::POST, "/operator/imports").body(body(2 << 20)).unwrap();
    operator.send(large).refused("body_too_large");
}
