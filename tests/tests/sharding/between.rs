//! A workspace moves to another database of its service, while requests arrive, whatever write is lost, and whoever cancels.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use sidetone::Sandbox;
use sidetone::database::Memory;
use sidetone::sandbox::{Reply, block_on, memory};
use sidetone_engine::base::ids::{Id as _, WorkspaceId};
use sidetone_engine::ports::statement::{Rows, Statement};
use sidetone_engine::ports::{BoxFuture, Database, DatabaseError, Shards};
use sidetone_engine::services::Services;
use sidetone_engine::sql;
use sidetone_engine::storage::fault::Fault;
use sidetone_engine::storage::moves::Refusal;
use sidetone_engine::storage::moves::freeze::freeze;
use sidetone_engine::storage::moves::lock;
use sidetone_engine::storage::moves::shards::{self, Stage, Wish};
use sidetone_engine::storage::workspace_rows::TABLES;
use sidetone_tests::World;
use sidetone_tests::process::bootstrap_key;

use crate::frozen::ALL;
use crate::product::{assistant, bind_to, get, named, send};
use crate::schema::{ask, texts};

const NAMES: [&str; 3] = ["DB_1", "DB_2", "DB_3"];
const HOUR_MS: i64 = 3_600_000;
/// More than a move has.
const STEPS_MAX: usize = 300;
/// Rows that stay where a workspace was.
const TOMBSTONE: [&str; 3] = ["workspaces", "api_keys", "search_erasures"];

/// What reading the row of a move contains.
const A_ROW_OF_A_MOVE: &str = "file_key, other_id, moved_to";

type Hook = Box<dyn FnOnce() + Send>;

/// What happens to the writes of all databases of a service.
#[derive(Default)]
struct Plan {
    /// Writes before the one that is cut off; `None`: none will be.
    left: Option<usize>,
    /// Whether that one is made, and only its answer is lost.
    is_made: bool,
    /// Happens just before the next batch, of reads or of writes, of which a statement contains the text.
    before: Option<(&'static str, Hook)>,
}

impl Plan {
    fn fails(&mut self) -> bool {
        let fails = self.left == Some(0);
        self.left = self.left.and_then(|left| left.checked_sub(1));
        fails
    }
}

struct Planned {
    inner: Memory,
    plan: Arc<Mutex<Plan>>,
}

impl Planned {
    /// What happens just before this batch.
    fn before(&self, batch: &[Statement]) {
        let due = |(text, _): &mut (&'static str, Hook)| batch.iter().any(|one| one.sql.contains(*text));
        let hook = self.plan.lock().unwrap().before.take_if(due);
        if let Some((_, hook)) = hook {
            hook();
        }
    }
}

impl Database for Planned {
    fn read(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        Box::pin(async move {
            self.before(&batch);
            self.inner.read(batch).await
        })
    }

    fn write(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        Box::pin(async move {
            self.before(&batch);
            let (fails, is_made) = {
                let mut plan = self.plan.lock().unwrap();
                (plan.fails(), plan.is_made)
            };
            let cut_off = DatabaseError::Unavailable("the process has died".to_owned());
            if fails && !is_made {
                return Err(cut_off);
            }
            let rows = self.inner.write(batch).await;
            if fails { Err(cut_off) } else { rows }
        })
    }
}

/// Three databases with their directory.
struct Service {
    shards: Vec<Arc<Planned>>,
    directory: Arc<Planned>,
    plan: Arc<Mutex<Plan>>,
    world: World,
    operator: String,
}

impl Service {
    fn new() -> Self {
        Self::with_settings(&[])
    }

    fn with_settings(more: &[(&str, &str)]) -> Self {
        let plan: Arc<Mutex<Plan>> = Arc::default();
        let planned = |inner| Arc::new(Planned { inner, plan: plan.clone() });
        let shards: Vec<Arc<Planned>> = NAMES.iter().map(|_| planned(memory())).collect();
        let directory = planned(Memory::directory().unwrap());
        let all = named(shards.iter().map(|shard| shard.clone() as Arc<dyn Database>));
        let operator = bootstrap_key(4_000_060);
        let bootstrap = bootstrap_key(0);
        let settings =
            [("SIDETONE_OPERATOR_KEY", operator.as_str()), ("SIDETONE_BOOTSTRAP_KEYS", bootstrap.as_str())];
        let settings = [settings.as_slice(), more].concat();
        let world = World::over_shards(Shards { directory: directory.clone(), all }, &settings);
        Self { shards, directory, plan, world, operator }
    }

    fn isolate(&self) -> &Sandbox {
        self.world.sandbox().unwrap()
    }

    /// A workspace with a call and its recording, a number, a queued run.
    fn tenant(&self) -> Tenant {
        let world = self.world.other();
        let id = world.workspace_id();
        world.a_tool();
        let number = world.binding().id;
        let recorded = world.a_recorded_call().id;
        world.runs_call();
        // Nothing else is under way.
        self.isolate().advance(HOUR_MS);
        self.isolate().run_jobs();
        let run = world.run().id;
        let home = self.home(&id);
        Tenant { world, id, home, number, recorded, run }
    }

    /// Two workspaces in different databases. The first one's comes before the second one's.
    fn neighbours(&self) -> [(World, WorkspaceId); 2] {
        let made = (0..3).map(|_| {
            let world = self.world.other();
            let id = world.workspace_id();
            (world, id)
        });
        let mut made: Vec<(World, WorkspaceId)> = made.collect();
        made.sort_by_key(|(_, id)| self.home(id));
        let (first, last) = (made.remove(0), made.remove(1));
        assert!(self.home(&first.1) < self.home(&last.1));
        [first, last]
    }

    fn path(id: &WorkspaceId) -> String {
        format!("/operator/workspaces/{id}/database")
    }

    /// One step of a move, by this process.
    fn step(&self, isolate: &Sandbox, id: &WorkspaceId, to: usize) -> Reply {
        let body = json!({"database": NAMES[to], "without_late_prices": true});
        send(isolate, &self.operator, Method::POST, &Self::path(id), Some(body))
    }

    /// One step of canceling.
    fn cancel(&self, isolate: &Sandbox, id: &WorkspaceId) -> Reply {
        send(isolate, &self.operator, Method::DELETE, &Self::path(id), None)
    }

    /// Asks until the workspace is in one database. A step whose write is lost is asked for again.
    fn until_at(&self, step: impl Fn() -> Reply) -> Value {
        for _ in 0..STEPS_MAX {
            let reply = step();
            if reply.status == 503 {
                continue;
            }
            assert_eq!(reply.status, 200, "{:?}", reply.json);
            if reply["state"] == "at" {
                return reply.json;
            }
            if !reply["waiting_for"].is_null() {
                self.isolate().advance(HOUR_MS);
                self.isolate().run_jobs();
            }
        }
        panic!("it does not end");
    }

    fn moved(&self, id: &WorkspaceId, to: usize) {
        let told = self.until_at(|| self.step(self.isolate(), id, to));
        assert_eq!(told["database"], NAMES[to], "{told}");
    }

    /// The databases in which a key opens the workspace.
    fn homes(&self, id: &WorkspaceId) -> Vec<usize> {
        let open = "SELECT id AS text FROM api_keys WHERE workspace_id = ?1 AND revoked_at IS NULL
                    AND NOT EXISTS (SELECT 1 FROM moves WHERE moves.workspace_id = ?1 AND lock = 2)";
        let is_home =
            |shard: &usize| !texts(&ask(&self.shards[*shard].inner, open, &[id.as_str()])).is_empty();
        (0..NAMES.len()).filter(is_home).collect()
    }

    fn home(&self, id: &WorkspaceId) -> usize {
        let homes = self.homes(id);
        assert_eq!(homes.len(), 1, "{homes:?}");
        homes[0]
    }

    /// The tables with rows of the workspace in this database.
    fn left(&self, shard: usize, id: &WorkspaceId) -> Vec<&'static str> {
        let mut left = Vec::new();
        for table in TABLES {
            if !block_on(ALL.read(&self.shards[shard].inner, table, id, &[])).unwrap().rows.is_empty() {
                left.push(table.name);
            }
        }
        left
    }

    /// It is in this database, and nothing but what has to stay is in the others.
    #[track_caller]
    fn is_only_at(&self, id: &WorkspaceId, home: usize) {
        assert_eq!(self.home(id), home);
        let row = "SELECT state || ' ' || shard || ' ' || COALESCE(other_shard, '') || COALESCE(move_id, '') AS text
                   FROM workspaces WHERE id = ?1";
        assert_eq!(texts(&ask(&self.directory.inner, row, &[id.as_str()])), [format!("at {} ", NAMES[home])]);
        let prefix = format!("moving_{}_", &id.as_str()[3..]);
        let named = "SELECT name AS text FROM sqlite_schema WHERE type = 'trigger' AND instr(name, ?1) = 1";
        for shard in 0..NAMES.len() {
            let left = self.left(shard, id);
            let triggers = texts(&ask(&self.shards[shard].inner, named, &[prefix.as_str()])).len();
            assert_eq!(triggers, 0, "{shard}");
            if shard == home {
                assert!(left.contains(&"assistants") && !left.contains(&"jobs_away"), "{left:?}");
            } else {
                assert!(left.iter().all(|table| TOMBSTONE.contains(table)), "{shard}: {left:?}");
            }
        }
    }
}

struct Tenant {
    world: World,
    id: WorkspaceId,
    /// Where it was made.
    home: usize,
    number: String,
    recorded: String,
    run: String,
}

impl Tenant {
    fn key(&self) -> &str {
        self.world.key()
    }

    /// What it reads.
    fn reads(&self, isolate: &Sandbox) -> BTreeMap<String, Bytes> {
        let lists = [
            "/workspace",
            "/assistants",
            "/tools",
            "/numbers",
            "/calls",
            "/simulations",
            "/simulations/runs",
        ];
        let mut paths: Vec<String> = lists.map(str::to_owned).to_vec();
        paths.extend([
            format!("/calls/{}", self.recorded),
            format!("/calls/{}/recording", self.recorded),
            format!("/calls?search={}", self.recorded),
            format!("/simulations/runs/{}", self.run),
        ]);
        let read = |path: String| {
            let reply = get_path(isolate, self.key(), &path);
            assert_eq!(reply.status, 200, "{path}: {:?}", reply.json);
            (path, reply.body)
        };
        paths.into_iter().map(read).collect()
    }

    /// Its tool with its signing secret, by the same request each time.
    fn signed(&self, isolate: &Sandbox) -> Bytes {
        let body = json!({"name": "signed", "url": "https://example.com/hook"});
        let reply = once(isolate, self.key(), "/tools", "its secret", body);
        assert_eq!(reply.status, 201, "{:?}", reply.json);
        reply.body
    }
}

fn get_path(isolate: &Sandbox, key: &str, path: &str) -> Reply {
    send(isolate, key, Method::GET, path, None)
}

/// A POST with an Idempotency-Key.
fn once(isolate: &Sandbox, key: &str, path: &str, name: &str, body: Value) -> Reply {
    let request = http::Request::post(path)
        .header("authorization", format!("Bearer {key}"))
        .header("content-type", "application/json")
        .header("idempotency-key", name);
    isolate.send(request.body(Bytes::from(body.to_string())).unwrap())
}

#[test]
fn a_workspace_moves_from_database_to_database_and_back_and_is_as_it_was() {
    let service = Service::new();
    let tenant = service.tenant();
    let (neighbour, isolates) =
        (service.world.other(), [service.isolate(), &service.isolate().another_process()]);
    tenant.signed(isolates[0]);
    let from = service.home(&tenant.id);
    let (before, secret) = (tenant.reads(isolates[0]), tenant.signed(isolates[0]));
    // Twice around: each database has been left before, and is come back to.
    for turn in 1..=6 {
        // They remember where its key was.
        for isolate in isolates {
            assert_eq!(get(isolate, tenant.key()).status, 200);
        }
        let to = (from + turn) % NAMES.len();
        service.moved(&tenant.id, to);
        service.is_only_at(&tenant.id, to);
        let fresh = service.isolate().another_process();
        for isolate in [isolates[0], isolates[1], &fresh] {
            assert_eq!(tenant.reads(isolate), before, "turn {turn}");
            assert_eq!(tenant.signed(isolate), secret, "turn {turn}");
        }
        let theirs = assistant(&fresh, neighbour.key());
        assert_eq!(bind_to(&fresh, neighbour.key(), &theirs, &tenant.number), 409, "turn {turn}");
    }
    // The queued run ends where it is now.
    assert!(service.isolate().run_jobs() > 0);
    let run = get_path(isolates[1], tenant.key(), &format!("/simulations/runs/{}", tenant.run));
    assert_eq!(run["status"], "completed", "{:?}", run.json);
    let unbound =
        send(isolates[0], tenant.key(), Method::DELETE, &format!("/numbers/{}", tenant.number), None);
    assert_eq!(unbound.status, 204);
    let theirs = assistant(isolates[0], neighbour.key());
    assert_eq!(bind_to(isolates[0], neighbour.key(), &theirs, &tenant.number), 200);
}

/// The dashboard's people have the first database, and name their workspaces as they like.
#[test]
fn a_name_stands_for_no_workspace_of_somebody_else() {
    let service = Service::new();
    let [(mallory, theirs), (victim, id)] = &service.neighbours();
    let find = |named: &str| {
        get_path(service.isolate(), &service.operator, &format!("/operator/workspaces?named={named}"))
    };
    let rename = |world: &World, name: &str| {
        assert_eq!(world.patch("/workspace", json!({"name": name})).ok()["name"], name);
    };
    rename(mallory, id);
    assert_eq!(find(id)["id"], json!(id));
    rename(victim, "Acme");
    assert_eq!(find("Acme")["id"], json!(id));
    rename(mallory, "Acme");
    let several = find("Acme");
    assert_eq!(several.status, 404, "{:?}", several.json);
    assert!(several["error"]["message"].as_str().unwrap().contains("several"), "{:?}", several.json);
    assert_eq!(find("Nobody").status, 404);
    assert_eq!(find("ws_01kas3v8hq4x7m2n5p6r9t0w1z").status, 404);

    // A name that it has left behind in another database is not its own any more.
    service.moved(id, service.home(theirs));
    rename(victim, "Acme & Sons");
    assert_eq!(find("Acme")["id"], json!(theirs));
}

/// The operator has given a number to somebody else than whoever has bound it, and moves.
#[test]
fn a_number_of_a_workspace_that_moves_stays_with_it_in_the_directory_too() {
    const NUMBER: &str = "+14155550123";
    // The same in each service.
    let [(_, granted), _] = Service::new().neighbours();
    let given = format!(r#"{{"{NUMBER}": "{granted}"}}"#);
    let service = Service::with_settings(&[("SIDETONE_NUMBERS", &given)]);
    let [(world, id), (other, bound)] = service.neighbours();
    assert_eq!(id, granted);
    let isolate = service.isolate();
    let every = isolate.services().on_every_shard();
    let there = &every[service.home(&bound)];
    let write = |statement| block_on(there.ports().database.write(vec![statement])).map(drop).unwrap();
    // Bound before the operator decided about numbers.
    write(sql!(
        "INSERT INTO numbers (workspace_id, number, assistant_id, provider, created_at, updated_at)
         VALUES (:id, :number, :assistant, 'twilio', 0, 0)",
        id = &bound,
        number = NUMBER,
        assistant = assistant(isolate, other.key())
    ));
    let known = sql!(
        "INSERT INTO numbers (number, workspace_id, claimed_at) VALUES (:number, :id, 0)",
        number = NUMBER,
        id = &bound
    );
    block_on(service.directory.write(vec![known])).unwrap();
    block_on(lock::arm(there, &bound)).unwrap();
    write(sql!(
        "INSERT INTO moves (workspace_id, id, state, lock, schema, file_key, began_at, changed_at)
         VALUES (:id, 'exp_1', 'frozen', 2, '', '', 0, 0)",
        id = &bound
    ));
    let owner = || {
        let owner = "SELECT workspace_id AS text FROM numbers WHERE number = ?1";
        texts(&ask(&service.directory.inner, owner, &[NUMBER]))
    };
    let assistant_id = assistant(isolate, world.key());
    assert_eq!(bind_to(isolate, world.key(), &assistant_id, NUMBER), 409);
    assert_eq!(owner(), [bound.as_str()]);
    write(sql!("UPDATE moves SET lock = 0 WHERE workspace_id = :id", id = &bound));
    assert_eq!(bind_to(isolate, world.key(), &assistant_id, NUMBER), 200);
    assert_eq!(owner(), [id.as_str()]);
}

/// Whoever was told that something is made finds it everywhere at once, whichever process they ask.
#[test]
fn under_load_nothing_is_lost_or_doubled_and_nobody_reads_what_is_old() {
    let service = Service::new();
    let tenant = service.tenant();
    let neighbours: Vec<World> = (0..3).map(|_| service.world.other()).collect();
    let others: Vec<Sandbox> = (0..2).map(|_| service.isolate().another_process()).collect();
    let isolates = [service.isolate(), &others[0], &others[1]];
    let create = |isolate: &Sandbox, key: &str, name: &str| {
        let body = json!({"name": name, "instructions": "Be kind."});
        let reply = once(isolate, key, "/assistants", name, body);
        match reply.status {
            201 => Some(reply["id"].as_str().unwrap().to_owned()),
            503 => None,
            _ => panic!("{:?}", reply.json),
        }
    };
    let (mut made, mut refused): (BTreeMap<String, String>, Vec<String>) = Default::default();
    let mut n = 0;
    let from = service.home(&tenant.id);
    for turn in 1..=3 {
        let to = (from + turn) % NAMES.len();
        for step in 0.. {
            assert!(step < STEPS_MAX, "it does not end");
            for (nth, isolate) in isolates.into_iter().enumerate() {
                let name = format!("request {n}");
                n += 1;
                let Some(id) = create(isolate, tenant.key(), &name) else {
                    refused.push(name);
                    continue;
                };
                made.insert(name, id.clone());
                let elsewhere = get_path(isolates[(nth + 1) % 3], tenant.key(), &format!("/assistants/{id}"));
                assert_eq!(elsewhere.status, 200, "{:?}", elsewhere.json);
            }
            for neighbour in &neighbours {
                create(isolates[step % 3], neighbour.key(), &format!("beside {n}"))
                    .expect("they do not move");
            }
            service.isolate().run_jobs();
            let reply = service.step(isolates[step % 3], &tenant.id, to);
            assert_eq!(reply.status, 200, "{:?}", reply.json);
            assert!(service.homes(&tenant.id).len() <= 1);
            if reply["state"] == "at" {
                break;
            }
            if !reply["waiting_for"].is_null() {
                service.isolate().advance(HOUR_MS);
            }
        }
        service.is_only_at(&tenant.id, to);
    }
    assert!(!refused.is_empty() && !made.is_empty(), "{} of {n} were refused", refused.len());
    let acknowledged = made.clone();
    for name in refused.iter().chain(acknowledged.keys()) {
        let id = create(isolates[0], tenant.key(), name).expect("the move is over");
        let known = made.entry(name.clone()).or_insert_with(|| id.clone());
        assert_eq!(*known, id, "{name}: a repetition has the same answer");
    }
    let listed = get_path(isolates[0], tenant.key(), "/assistants?limit=1000");
    let ours = listed.json.as_array().unwrap().iter();
    let ours =
        ours.filter(|one| one["name"].as_str().is_some_and(|name| name.starts_with("request "))).count();
    assert_eq!(ours, n, "each once");
}

/// A process that has not seen a workspace since it was in a database, to which it comes back by now.
#[test]
fn while_a_workspace_comes_back_those_who_remember_it_there_read_it_where_it_is() {
    let service = Service::new();
    let (tenant, remembering) = (service.tenant(), service.isolate().another_process());
    let away = (tenant.home + 1) % NAMES.len();
    assert_eq!(get(&remembering, tenant.key()).status, 200);
    service.moved(&tenant.id, away);
    for _ in 0..STEPS_MAX {
        let told = service.step(service.isolate(), &tenant.id, tenant.home);
        if told["state"] != "comparing" {
            continue;
        }
        assert_eq!(get(&remembering, tenant.key()).status, 200);
        service.moved(&tenant.id, tenant.home);
        service.is_only_at(&tenant.id, tenant.home);
        assert_eq!(get(&remembering, tenant.key()).status, 200);
        return;
    }
    panic!("nothing is compared");
}

/// The directory has told a process where a workspace is, which moves before that process asks there.
#[test]
fn a_key_is_found_where_its_workspace_has_moved_during_the_request() {
    let service = Service::new();
    let (tenant, fresh) = (service.tenant(), service.isolate().another_process());
    let to = (tenant.home + 1) % NAMES.len();
    let (services, id) = (service.isolate().services().clone(), tenant.id.clone());
    let hook = move || moves(&services, &id, to);
    service.plan.lock().unwrap().before = Some(("api_keys", Box::new(hook)));
    assert_eq!(get(&fresh, tenant.key()).status, 200);
    assert!(service.plan.lock().unwrap().before.is_none());
    service.is_only_at(&tenant.id, to);
}

/// Does the same once for each write of it, with that write cut off; how many writes there are.
fn with_each_write_cut_off(act: impl Fn(&Service, &Tenant), check: impl Fn(&Service, &Tenant)) -> usize {
    let mut writes = 0;
    for is_made in [false, true] {
        for nth in 0.. {
            let service = Service::new();
            let tenant = service.tenant();
            let before = tenant.reads(service.isolate());
            *service.plan.lock().unwrap() = Plan { left: Some(nth), is_made, before: None };
            act(&service, &tenant);
            let has_failed = service.plan.lock().unwrap().left.is_none();
            service.plan.lock().unwrap().left = None;
            check(&service, &tenant);
            let after = tenant.reads(service.isolate());
            assert_eq!(after, before, "write {nth}");
            if !has_failed {
                writes = nth;
                break;
            }
        }
    }
    writes
}

#[test]
fn whatever_write_is_lost_the_same_request_again_ends_the_move() {
    let next = |tenant: &Tenant| (tenant.home + 1) % NAMES.len();
    let writes = with_each_write_cut_off(
        |service, tenant| service.moved(&tenant.id, next(tenant)),
        |service, tenant| {
            service.is_only_at(&tenant.id, next(tenant));
            assert_eq!(service.left(tenant.home, &tenant.id), TOMBSTONE);
        },
    );
    assert!(writes > 20, "{writes}");
}

#[test]
fn whatever_write_is_lost_a_move_can_be_canceled() {
    let writes = with_each_write_cut_off(
        |service, tenant| {
            let (isolate, home) = (service.isolate(), tenant.home);
            // As far as there are rows in both.
            for _ in 0..STEPS_MAX {
                let told = service.step(isolate, &tenant.id, (home + 1) % NAMES.len());
                if told["state"] == "comparing" {
                    break;
                }
            }
            let told = service.until_at(|| service.cancel(isolate, &tenant.id));
            assert_eq!(told["database"], NAMES[home]);
        },
        |service, tenant| {
            service.is_only_at(&tenant.id, tenant.home);
            let body = json!({"name": "Ada", "system_prompt": "You are in a hurry."});
            let path = "/simulations/personas";
            let made = send(service.isolate(), tenant.key(), Method::POST, path, Some(body));
            assert_eq!(made.status, 201, "it runs again: {:?}", made.json);
            service.moved(&tenant.id, (tenant.home + 1) % NAMES.len());
        },
    );
    assert!(writes > 20, "{writes}");
}

#[test]
fn a_move_can_be_canceled_after_each_step_until_it_is_decided() {
    let service = Service::new();
    let tenant = service.tenant();
    let isolate = service.isolate();
    let (from, before) = (service.home(&tenant.id), tenant.reads(isolate));
    let to = (from + 1) % NAMES.len();
    for steps in 0..STEPS_MAX {
        let mut last = Value::Null;
        for _ in 0..steps {
            last = service.step(isolate, &tenant.id, to).json;
            assert_ne!(last["state"], "at");
        }
        let canceled = service.cancel(isolate, &tenant.id);
        if last["state"] == "settling" {
            assert_eq!(canceled["error"]["details"]["reason"], "decided", "{:?}", canceled.json);
            service.moved(&tenant.id, to);
            assert_eq!(tenant.reads(isolate), before);
            assert!(steps > 6, "{steps}");
            return;
        }
        assert_eq!(canceled.status, 200, "{:?}", canceled.json);
        let on_the_way = service.step(isolate, &tenant.id, to);
        if canceled["state"] == "settling" {
            assert_eq!(on_the_way["error"]["details"]["reason"], "canceled", "{:?}", on_the_way.json);
        }
        service.until_at(|| service.cancel(isolate, &tenant.id));
        service.is_only_at(&tenant.id, from);
        assert_eq!(tenant.reads(isolate), before, "canceled after {steps}");
    }
    panic!("it is never decided");
}

/// Gives a move up, if there is one, and begins another attempt, which freezes the workspace and has copied nothing yet.
fn gives_up_and_begins_again(services: &Services, id: &WorkspaceId, to: usize) {
    let step = |wish| block_on(shards::step(services, id, wish)).unwrap().unwrap().stage;
    let canceled = (0..STEPS_MAX).find(|_| step(Wish::Cancel) == Stage::At);
    assert!(canceled.is_some());
    let again = Wish::To { database: NAMES[to], without_late_prices: true };
    let frozen = (0..STEPS_MAX).find(|_| step(again) == Stage::Copying);
    assert!(frozen.is_some());
}

/// Moves it, within another request.
fn moves(services: &Services, id: &WorkspaceId, to: usize) {
    let wish = Wish::To { database: NAMES[to], without_late_prices: true };
    let step = || block_on(shards::step(services, id, wish)).unwrap().unwrap().stage;
    assert!((0..STEPS_MAX).any(|_| step() == Stage::At));
}

/// A decision that was on its way while somebody gave up, and began anew, decides nothing.
#[test]
fn a_decision_that_comes_late_is_none() {
    let service = Service::new();
    let tenant = service.tenant();
    let before = tenant.reads(service.isolate());
    let (id, from) = (tenant.id.clone(), service.home(&tenant.id));
    let to = (from + 1) % NAMES.len();
    let (services, theirs) = (service.isolate().services().clone(), id.clone());
    let hook = move || gives_up_and_begins_again(&services, &theirs, to);
    service.plan.lock().unwrap().before = Some(("SET state = 'settling'", Box::new(hook)));
    let isolate = service.isolate();
    while service.plan.lock().unwrap().before.is_some() {
        let reply = service.step(isolate, &id, to);
        assert_eq!(reply.status, 200, "{:?}", reply.json);
        assert_ne!(reply["state"], "settling");
    }
    service.moved(&id, to);
    service.is_only_at(&id, to);
    assert_eq!(tenant.reads(isolate), before);
}

/// One who has read the directory before that, and the move's row in the database only afterwards, cancels nothing.
#[test]
fn what_is_read_late_does_not_undo_the_move_that_has_begun_since() {
    // Before there is a move, and in the middle of one.
    for steps in [0, 3] {
        let service = Service::new();
        let tenant = service.tenant();
        let (isolate, id) = (service.isolate(), tenant.id.clone());
        let (before, from) = (tenant.reads(isolate), service.home(&id));
        let to = (from + 1) % NAMES.len();
        for _ in 0..steps {
            assert_eq!(service.step(isolate, &id, to).status, 200);
        }
        let (services, theirs) = (isolate.services().clone(), id.clone());
        let hook = move || gives_up_and_begins_again(&services, &theirs, to);
        service.plan.lock().unwrap().before = Some((A_ROW_OF_A_MOVE, Box::new(hook)));
        let late = service.step(isolate, &id, to);
        assert_eq!(late.status, 200, "{:?}", late.json);
        assert!(service.plan.lock().unwrap().before.is_none(), "it has read late");
        assert_eq!(service.homes(&id), [0; 0], "it is frozen, after {steps} steps");
        service.moved(&id, to);
        service.is_only_at(&id, to);
        assert_eq!(tenant.reads(isolate), before);
    }
}

#[test]
fn what_the_new_database_would_refuse_is_told_before_anything_is_closed() {
    let service = Service::new();
    let (isolate, tenant) = (service.isolate(), service.tenant());
    let mut others = (0..NAMES.len()).map(|_| service.world.other());
    let neighbour = others.find(|one| service.home(&one.workspace_id()) != tenant.home).unwrap();
    let to = service.home(&neighbour.workspace_id());
    let theirs = assistant(isolate, neighbour.key());
    let write = |statement| block_on(service.shards[to].write(vec![statement])).map(drop).unwrap();
    // A binding of which the directory knows nothing.
    let bind = || {
        write(sql!(
            "INSERT INTO numbers (number, workspace_id, assistant_id, provider, created_at, updated_at)
             VALUES (:number, :workspace_id, :assistant_id, 'twilio', 0, 0)",
            number = &tenant.number,
            workspace_id = &neighbour.workspace_id(),
            assistant_id = &theirs
        ));
    };
    let unbind = || write(sql!("DELETE FROM numbers WHERE number = :number", number = &tenant.number));
    bind();
    let refused = service.step(isolate, &tenant.id, to);
    assert_eq!(refused["error"]["details"]["reason"], "numbers_taken", "{:?}", refused.json);
    service.is_only_at(&tenant.id, tenant.home);
    // One that is made in between.
    unbind();
    assert_eq!(service.step(isolate, &tenant.id, to).status, 200);
    bind();
    let refused = (0..STEPS_MAX).map(|_| service.step(isolate, &tenant.id, to)).find(|one| one.status != 200);
    let refused = refused.unwrap();
    assert_eq!(refused["error"]["details"]["reason"], "exists", "{:?}", refused.json);
    unbind();
    service.moved(&tenant.id, to);
    service.is_only_at(&tenant.id, to);
}

/// A request of a move that is over closes the workspace, and another one begins to fill a database.
#[test]
fn what_comes_after_a_move_is_over_is_told_and_canceled_by_itself() {
    let service = Service::new();
    let tenant = service.tenant();
    let (isolate, home) = (service.isolate(), service.home(&tenant.id));
    let other = (home + 1) % NAMES.len();
    let row = |state: &str, lock: i64| {
        sql!(
            "INSERT INTO moves (workspace_id, id, state, lock, schema, file_key, began_at, changed_at)
             VALUES (:workspace_id, 'mov_01aryz6s41tsv4rrffq69g5fav', :state, :lock, '', '', 0, 0)",
            workspace_id = &tenant.id,
            state = state,
            lock = lock
        )
    };
    let workspace = sql!(
        "INSERT INTO workspaces (id, name, created_at) VALUES (:workspace_id, '', 0)",
        workspace_id = &tenant.id
    );
    block_on(service.shards[home].write(vec![row("closing", 1)])).unwrap();
    block_on(service.shards[other].write(vec![workspace, row("arriving", 2)])).unwrap();
    let told = || get_path(isolate, &service.operator, &Service::path(&tenant.id));
    assert_eq!(told()["state"], "closing");
    for services in isolate.services().on_every_shard() {
        while block_on(services.sweep()).unwrap().more {}
    }
    assert_eq!(told()["state"], "at");
    service.is_only_at(&tenant.id, home);
    // What is under way stays.
    service.step(isolate, &tenant.id, other);
    let frozen = (0..STEPS_MAX).find(|_| service.step(isolate, &tenant.id, other)["state"] == "copying");
    assert!(frozen.is_some());
    for services in isolate.services().on_every_shard() {
        while block_on(services.sweep()).unwrap().more {}
    }
    assert_eq!(service.homes(&tenant.id), [0; 0]);
    service.moved(&tenant.id, other);
    service.is_only_at(&tenant.id, other);
}

/// Where it is asked whether its number is bound, nothing of it is left.
#[test]
fn a_number_stays_with_a_workspace_that_moves_while_another_one_asks_for_it() {
    let service = Service::new();
    let (tenant, neighbour) = (service.tenant(), service.world.other());
    let (isolate, id) = (service.isolate(), tenant.id.clone());
    let to = (service.home(&id) + 1) % NAMES.len();
    let theirs = assistant(isolate, neighbour.key());
    let services = isolate.services().clone();
    let hook = move || moves(&services, &id, to);
    service.plan.lock().unwrap().before = Some(("AS bound FROM numbers WHERE workspace_id", Box::new(hook)));
    assert_eq!(bind_to(isolate, neighbour.key(), &theirs, &tenant.number), 409);
    assert!(service.plan.lock().unwrap().before.is_none());
    service.is_only_at(&tenant.id, to);
    let owner = "SELECT workspace_id AS text FROM numbers WHERE number = ?1";
    assert_eq!(texts(&ask(&service.directory.inner, owner, &[tenant.number.as_str()])), [tenant.id.as_str()]);
}

#[test]
fn what_was_copied_before_the_rows_were_frozen_again_is_copied_anew() {
    let service = Service::new();
    let tenant = service.tenant();
    let (isolate, from) = (service.isolate(), service.home(&tenant.id));
    let to = (from + 1) % NAMES.len();
    let copied = (0..STEPS_MAX).find(|_| service.step(isolate, &tenant.id, to)["state"] == "comparing");
    assert!(copied.is_some());
    let again = [
        "UPDATE moves SET lock = 0 WHERE workspace_id = :id",
        "UPDATE workspaces SET name = 'It changed' WHERE id = :id",
        "UPDATE moves SET lock = 2, file_key = 'another' WHERE workspace_id = :id",
    ];
    let again = again.iter().map(|text| sql!(*text, id = &tenant.id)).collect();
    block_on(service.shards[from].write(again)).unwrap();
    service.moved(&tenant.id, to);
    service.is_only_at(&tenant.id, to);
    assert_eq!(get_path(isolate, tenant.key(), "/workspace")["name"], "It changed");
}

#[test]
fn what_is_left_behind_is_not_erased_unless_it_has_arrived() {
    let service = Service::new();
    let tenant = service.tenant();
    let (isolate, from) = (service.isolate(), service.home(&tenant.id));
    let to = (from + 1) % NAMES.len();
    let decided = (0..STEPS_MAX).find(|_| service.step(isolate, &tenant.id, to)["state"] == "settling");
    assert!(decided.is_some());
    let lost = sql!(
        "UPDATE moves SET state = 'canceling' WHERE workspace_id = :workspace_id",
        workspace_id = &tenant.id
    );
    block_on(service.shards[to].write(vec![lost])).unwrap();
    let left = service.left(from, &tenant.id);
    for _ in 0..3 {
        let wish = Wish::To { database: NAMES[to], without_late_prices: true };
        let step = block_on(shards::step(isolate.services(), &tenant.id, wish));
        assert!(matches!(step, Err(Fault::Bug(_))), "{step:?}");
    }
    assert_eq!(service.left(from, &tenant.id), left);
}

#[test]
fn a_key_of_the_settings_has_one_workspace_wherever_it_moves_and_the_directory_can_be_lost_afterwards() {
    let service = Service::new();
    let (key, remembering) = (bootstrap_key(0), service.isolate().another_process());
    let id = WorkspaceId::from_stored(get_path(&remembering, &key, "/workspace")["id"].as_str().unwrap());
    assistant(&remembering, &key);
    let to = (service.home(&id) + 1) % NAMES.len();
    service.moved(&id, to);
    let same = |isolate: &Sandbox| {
        let workspace = get_path(isolate, &key, "/workspace");
        assert_eq!(workspace["id"].as_str(), Some(id.as_str()), "{:?}", workspace.json);
    };
    same(&remembering);
    same(&service.isolate().another_process());
    for table in ["numbers", "keys", "workspaces", "bootstraps"] {
        block_on(service.directory.write(vec![sql!(format!("DELETE FROM {table}"))])).unwrap();
    }
    let fresh = service.isolate().another_process();
    same(&fresh);
    service.is_only_at(&id, to);
    // By its id, too: an operator asks without a key.
    block_on(service.directory.write(vec![sql!("DELETE FROM keys"), sql!("DELETE FROM workspaces")]))
        .unwrap();
    let told = get_path(&fresh, &service.operator, &Service::path(&id));
    assert_eq!(told.status, 200, "{:?}", told.json);
    let told = service.step(&fresh, &id, to);
    assert_eq!((&told["state"], &told["database"]), (&json!("at"), &json!(NAMES[to])), "{:?}", told.json);
}

#[test]
fn what_cannot_move_is_refused_and_both_kinds_of_moves_exclude_each_other() {
    let service = Service::new();
    let (isolate, tenant) = (service.isolate(), service.tenant());
    let home = service.home(&tenant.id);
    let to = (home + 1) % NAMES.len();
    let reason = |reply: Reply| reply["error"]["details"]["reason"].as_str().map(str::to_owned);
    let path = Service::path(&tenant.id);
    let ask = |body: Value| send(isolate, &service.operator, Method::POST, &path, Some(body));
    assert_eq!(reason(ask(json!({"database": "DB_9"}))).as_deref(), Some("no_such_database"));
    assert!((400..500).contains(&ask(json!({"data": "DB_2"})).status));
    assert_eq!(send(isolate, tenant.key(), Method::POST, &path, None).status, 401);
    let unknown = "/operator/workspaces/ws_01aryz6s41tsv4rrffq69g5faw/database";
    assert_eq!(get_path(isolate, &service.operator, unknown).status, 404);

    let exports = format!("/operator/exports/{}", tenant.id);
    let export = |method: Method| send(isolate, &service.operator, method, &exports, None);
    assert_eq!(export(Method::POST).status, 200);
    assert_eq!(reason(service.step(isolate, &tenant.id, to)).as_deref(), Some("between_hosts"));
    assert_eq!(export(Method::DELETE).status, 204);
    assert_eq!(service.step(isolate, &tenant.id, to)["state"], "closing");
    for method in [Method::POST, Method::DELETE, Method::GET] {
        assert_eq!(reason(export(method)).as_deref(), Some("between_databases"));
    }
    assert_eq!(
        reason(service.step(isolate, &tenant.id, (home + 2) % 3)).as_deref(),
        Some("between_databases")
    );
    service.until_at(|| service.cancel(isolate, &tenant.id));

    let account = sql!(
        "INSERT INTO accounts (id, issuer, subject, email, created_at)
         VALUES ('acct_1', 'email', 'anna@example.com', 'anna@example.com', 0)"
    );
    let member = || {
        sql!(
            "INSERT INTO memberships (workspace_id, account_id, role, created_at) VALUES (:id, 'acct_1', 'admin', 0)",
            id = &tenant.id
        )
    };
    let write = |batch| block_on(service.shards[home].write(batch)).map(drop).unwrap();
    write(vec![account, member()]);
    assert_eq!(reason(service.step(isolate, &tenant.id, to)).as_deref(), Some("has_people"));
    service.is_only_at(&tenant.id, home);
    // Who joins it once it is closed can be removed: it is not frozen.
    write(vec![sql!("DELETE FROM memberships")]);
    for _ in 0..2 {
        assert_eq!(service.step(isolate, &tenant.id, to)["state"], "closing");
    }
    // Nor is it frozen for another host.
    let here = isolate.services().on_every_shard().swap_remove(home);
    assert_eq!(block_on(freeze(&here, &tenant.id, true)).unwrap(), Err(Refusal::BetweenDatabases));
    write(vec![member()]);
    for _ in 0..3 {
        assert_eq!(reason(service.step(isolate, &tenant.id, to)).as_deref(), Some("has_people"));
    }
    write(vec![sql!("DELETE FROM memberships")]);
    assert_eq!(service.step(isolate, &tenant.id, to)["state"], "copying");
    service.until_at(|| service.cancel(isolate, &tenant.id));

    let alone = Sandbox::with_settings(&[("SIDETONE_OPERATOR_KEY", service.operator.as_str())]);
    let alone = send(&alone, &service.operator, Method::POST, &path, Some(json!({"database": "DB"})));
    assert_eq!(reason(alone).as_deref(), Some("one_database"));
}
