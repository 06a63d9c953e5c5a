//! The target of a move: a workspace arrives part by part, is compared and opened, and then is as it was.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use serde_json::{Value as Json, json};
use sidetone::sandbox::block_on;
use sidetone_engine::base::error::Error;
use sidetone_engine::base::ids::{Id as _, WorkspaceId};
use sidetone_engine::ports::ByteRange;
use sidetone_engine::services::Services;
use sidetone_engine::sql;
use sidetone_engine::storage::fault::Fault;
use sidetone_engine::storage::moves::arrive::{Begun, begin};
use sidetone_engine::storage::moves::cancel_export::cancel_export;
use sidetone_engine::storage::moves::cancel_import::{Canceling, cancel_import};
use sidetone_engine::storage::moves::code::Code;
use sidetone_engine::storage::moves::erase::{Erasing, erase};
use sidetone_engine::storage::moves::freeze::close;
use sidetone_engine::storage::moves::import::{Status, status};
use sidetone_engine::storage::moves::open::{Opened, open};
use sidetone_engine::storage::moves::part::{Chain, Head, Part, Tally};
use sidetone_engine::storage::moves::receive::receive;
use sidetone_engine::storage::moves::verify::verify;
use sidetone_engine::storage::moves::{Move, Refusal, State};
use sidetone_engine::storage::workspace_rows::{TABLES, Table};
use sidetone_tests::World;

use crate::cluster::Cluster;
use crate::frozen::{ALL, rows};
use crate::furnished::{everything, furnished};
use crate::handing_over::{blobs, export, frozen, hand_over, key_of, source};
use crate::schema::{ask, texts};

/// Both hosts have server secrets of their own.
const SECRET: &str = "a secret of another host, where it arrives";
const MINUTE_MS: i64 = 60_000;
const OPERATOR: &str = "SIDETONE_OPERATOR_KEY";

/// A file: its head, and its parts with the end.
#[derive(Clone)]
pub struct File {
    pub head: Head,
    pub parts: Vec<Part>,
}

impl File {
    /// That of a frozen workspace.
    pub fn of(services: &Services, id: &WorkspaceId) -> Self {
        let (head, parts) = export(services, id);
        Self { head, parts }.with_end()
    }

    /// The file with an end that says what its parts have.
    pub fn with_end(mut self) -> Self {
        let mut tally = Tally::of(&self.head);
        self.parts.iter().for_each(|part| tally.add(part).unwrap());
        self.parts.push(Part::of_end(tally));
        self
    }

    /// Its parts without the end.
    pub fn contents(&self) -> &[Part] {
        &self.parts[..self.parts.len() - 1]
    }
}

/// A host where workspaces arrive.
pub struct Target {
    pub cluster: Cluster,
    /// Another workspace of it.
    pub neighbour: World,
    pub services: Services,
}

impl Target {
    pub fn new() -> Self {
        Self::with_settings(&[])
    }

    pub fn with_settings(settings: &[(&str, &str)]) -> Self {
        let cluster = Cluster::with_settings(1, &[&[("SIDETONE_SECRET", SECRET)], settings].concat());
        // Each has a clock and random bytes of its own: two sandboxes make the same ids and keys otherwise.
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let made = MADE.fetch_add(1, Ordering::Relaxed) + 1;
        let services = cluster.sandbox().services().clone();
        services.ports().random.fill(&mut vec![0; 64 * made]);
        cluster.sandbox().advance(MINUTE_MS * made as i64);
        let (neighbour, _) = cluster.workspace(0);
        Self { cluster, neighbour, services }
    }

    pub fn begin(&self, head: &Head) -> Result<Begun, Error> {
        refusal(block_on(begin(&self.services, head)))
    }

    pub fn receive(&self, id: &WorkspaceId, n: usize, part: &Part) -> Result<u64, Error> {
        self.receive_bytes(id, n, &part.to_bytes())
    }

    pub fn receive_bytes(&self, id: &WorkspaceId, n: usize, bytes: &Bytes) -> Result<u64, Error> {
        refusal(block_on(receive(&self.services, id, n as u64, bytes)))
    }

    /// Receives all of a file.
    pub fn receive_all(&self, file: &File) -> Result<(), Error> {
        self.begin(&file.head)?;
        for (n, part) in (1..).zip(&file.parts) {
            self.receive(&file.head.workspace_id, n, part)?;
        }
        Ok(())
    }

    /// Receives all of a file and compares it, and the workspace runs here: `from` hands it over.
    pub fn take(&self, file: &File, from: &Services) {
        let id = &file.head.workspace_id;
        self.receive_all(file).unwrap();
        let import_id = self.verify(id).unwrap();
        self.open(id, &hand_over(from, id, &import_id, None).code).unwrap();
    }

    /// Compares everything; returns the id of the import.
    pub fn verify(&self, id: &WorkspaceId) -> Result<String, Error> {
        for _ in 0..1_000 {
            let Status { state, import_id, .. } = refusal(block_on(verify(&self.services, id)))?;
            if state != State::Arriving {
                return Ok(import_id.expect("it has arrived"));
            }
        }
        panic!("comparing does not end");
    }

    pub fn open(&self, id: &WorkspaceId, code: &Code) -> Result<Vec<String>, Error> {
        let mut lost = Vec::new();
        for _ in 0..1_000 {
            let Opened { status, without_secrets } = refusal(block_on(open(&self.services, id, code)))?;
            lost.extend(without_secrets);
            if status.state == State::Running {
                return Ok(lost);
            }
        }
        panic!("opening does not end");
    }

    pub fn cancel(&self, id: &WorkspaceId) -> Result<(), Error> {
        for _ in 0..1_000 {
            if let Canceling::Gone(_) = refusal(block_on(cancel_import(&self.services, id)))? {
                return Ok(());
            }
        }
        panic!("canceling does not end");
    }

    pub fn status(&self, id: &WorkspaceId) -> Result<Status, Error> {
        refusal(block_on(status(&self.services, id)))
    }

    /// The workspace with a key that it has brought.
    pub fn tenant(&self, source: &World) -> World {
        self.neighbour.with_key(source.key())
    }

    pub fn triggers(&self) -> usize {
        let triggers = "SELECT name AS text FROM sqlite_schema WHERE type = 'trigger'";
        texts(&ask(self.cluster.shards.at(0), triggers, &[])).len()
    }

    /// The tables with rows of the workspace, and how many.
    pub fn left(&self, id: &WorkspaceId) -> BTreeMap<&'static str, usize> {
        let all = rows(&self.cluster.shards, id);
        all.into_iter().map(|(table, rows)| (table, rows.len())).filter(|(_, rows)| *rows > 0).collect()
    }
}

/// What came of a step, or why it was not made.
fn refusal<T>(outcome: Result<T, Fault>) -> Result<T, Error> {
    outcome.map_err(|fault| match fault {
        Fault::Refused(error) => error,
        other => panic!("{other:?}"),
    })
}

/// `details.reason` of a refusal.
pub fn reason<T: std::fmt::Debug>(outcome: Result<T, Error>) -> String {
    let details = outcome.unwrap_err().details.unwrap_or_default();
    details["reason"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_workspace_arrives_and_is_as_it_was() {
    let from = Cluster::new(1);
    let (tenant, id, services) = source(&from);
    let file = File::of(&services, &id);
    let before = everything(&tenant);

    let to = Target::new();
    let neighbours = furnished(&to.cluster, 0).1;
    let clock = services.ports().clock.now_ms() - to.services.ports().clock.now_ms();
    to.neighbour.sandbox().unwrap().advance(clock);
    while to.cluster.run_jobs() > 0 {}
    let beside = rows(&to.cluster.shards, &WorkspaceId::from_stored(&*neighbours));
    let there = to.tenant(&tenant);
    assert_eq!(to.status(&id).unwrap_err().code.as_str(), "not_found");

    let begun = to.begin(&file.head).unwrap();
    assert_eq!((begun.status.state, begun.status.next_part), (State::Arriving, Some(1)));
    let again = to.begin(&file.head).unwrap();
    assert_eq!((begun.is_new, again.is_new, again.status), (true, false, begun.status), "it is begun once");
    assert_eq!(to.triggers(), TABLES.len() * 3);
    let code = Code::new([0; 32], "imp_1");
    let mut chain = Chain::of(&file.head);
    for (n, part) in (1..).zip(&file.parts) {
        assert_eq!(reason(to.receive(&id, n + 1, part)), "out_of_order");
        assert_eq!(reason(block_on(verify(&to.services, &id)).map_err(error_of)), "not_complete");
        assert_eq!(reason(to.open(&id, &code)), "not_arrived");
        // Its keys open nothing yet.
        there.get("/assistants").refused(if n == 1 { "unauthorized" } else { "workspace_moving" });
        for _ in 0..2 {
            assert_eq!(to.receive(&id, n, part).unwrap(), n as u64 + 1, "a repetition is answered");
        }
        // Whoever goes on begins with the head, and is told of which parts this is.
        if n < file.parts.len() {
            chain.add(&part.head);
        }
        let status = to.begin(&file.head).unwrap().status;
        assert_eq!((status.next_part, status.chain), (Some(n as u64 + 1), Some(chain.clone())));
        to.cluster.run_jobs();
    }
    let import_id = to.verify(&id).unwrap();
    assert_eq!(to.verify(&id).unwrap(), import_id);
    assert_eq!(reason(to.receive(&id, 1, &file.parts[0])), "complete");

    // Neither a code for another import of the file nor one of another file.
    for wrong in [Code::new([0; 32], &import_id), hand_over(&services, &id, &import_id, None).code] {
        let is_its = wrong.opens(&import_id, &file.head.key_sha256).is_some();
        if !is_its {
            assert_eq!(reason(to.open(&id, &wrong)), "wrong_code");
            continue;
        }
        tenant.get("/assistants").refused("workspace_moved");
        there.get("/assistants").refused("workspace_moving");
        assert_eq!(to.open(&id, &wrong).unwrap(), Vec::<String>::new());
        assert_eq!(to.open(&id, &wrong).unwrap(), Vec::<String>::new(), "a repetition is answered");
    }
    assert_eq!(reason(to.cancel(&id)), "handed_over");
    assert_eq!((to.triggers(), to.status(&id).unwrap().state), (0, State::Running));
    let after = everything(&there);
    // When its key was used last is noted where it runs.
    for (path, body) in before.iter().filter(|(path, _)| *path != "/keys") {
        assert_eq!(after.get(path), Some(body), "{path}");
    }
    assert_eq!(after.len(), before.len());

    // It goes on: what waits to be done, and what clients do.
    assert!(to.cluster.run_jobs() > 0, "the runs that wait");
    for run in there.get("/simulations/runs?limit=100").ok().json["runs"].as_array().unwrap() {
        assert!(["completed", "error"].contains(&run["status"].as_str().unwrap()), "{run}");
    }
    there.assistant();
    let there = rows(&to.cluster.shards, &WorkspaceId::from_stored(neighbours));
    // Its deliveries, which fail, are tried again meanwhile.
    for (table, rows) in there.into_iter().filter(|(table, _)| !["deliveries", "jobs"].contains(table)) {
        assert_eq!(rows, beside[table], "{table} of the neighbour");
    }
}

fn error_of(fault: Fault) -> Error {
    fault.split().0
}

/// A tool's receiver knows the secret that it was given at first, and is told a new one only if somebody asks for one.
#[test]
fn what_signed_at_the_source_signs_at_the_target() {
    let from = Cluster::new(1);
    let (tenant, id) = from.workspace(0);
    let id = WorkspaceId::from_stored(id);
    let tool = json!({"name": "lookup", "url": "https://example.com/", "description": "Looks up",
        "parameters": {"type": "object", "properties": {}}});
    let made = tenant.post_once("/tools", "once", tool.clone()).created();
    let webhook = tenant.webhook();
    let secret = || tenant.post(format!("/webhooks/{}/rotate-secret", webhook.id), json!({}));
    let rotated = secret().created();
    let services = frozen(&from, &tenant, &id);
    let file = File::of(&services, &id);
    let to = Target::new();
    let clock = services.ports().clock.now_ms() - to.services.ports().clock.now_ms();
    to.neighbour.sandbox().unwrap().advance(clock);
    to.receive_all(&file).unwrap();
    let import_id = to.verify(&id).unwrap();
    let there = to.tenant(&tenant);
    let stored = || {
        let select = "SELECT carried_secrets AS text FROM tools WHERE workspace_id = ?1";
        let found: Json =
            serde_json::from_str(&texts(&ask(to.cluster.shards.at(0), select, &[&id]))[0]).unwrap();
        found
    };
    assert!(stored()["file"].is_array() && stored()["sealed"].is_null(), "{}", stored());
    to.open(&id, &hand_over(&services, &id, &import_id, None).code).unwrap();
    assert!(stored()["sealed"].is_array() && stored()["file"].is_null(), "{}", stored());

    let again = there.post_once("/tools", "once", tool.clone()).created();
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!((&again["id"], &again["signing_secret"]), (&made["id"], &made["signing_secret"]));
    // What is made from now on is of this host.
    let next = there.post(format!("/webhooks/{}/rotate-secret", webhook.id), json!({})).created();
    assert_ne!(next["signing_secret"], rotated["signing_secret"]);
    assert_ne!(next["signing_secret"], webhook["signing_secret"]);
    there.run();
    assert_eq!(there.get("/tools").ok().json.as_array().unwrap().len(), 1);
}

#[test]
fn an_import_that_is_canceled_leaves_nothing_and_can_begin_again() {
    let from = Cluster::new(1);
    let (tenant, id, services) = source(&from);
    let file = File::of(&services, &id);
    let to = Target::new();
    let neighbours = furnished(&to.cluster, 0).1;
    let beside = rows(&to.cluster.shards, &WorkspaceId::from_stored(&*neighbours));
    let keys: Vec<_> = blobs(file.contents()).into_iter().map(|(head, _)| key_of(&id, head)).collect();
    assert!(!keys.is_empty());
    to.cancel(&id).unwrap();
    for received in [0, 1, file.parts.len() / 2, file.parts.len()] {
        to.begin(&file.head).unwrap();
        for (n, part) in (1..).zip(&file.parts[..received]) {
            to.receive(&id, n, part).unwrap();
        }
        if received == file.parts.len() {
            to.verify(&id).unwrap();
        }
        assert_eq!(
            block_on(cancel_import(&to.services, &id)).unwrap(),
            Canceling::Rows,
            "it takes several requests"
        );
        for refused in [
            reason(to.begin(&file.head)),
            reason(to.receive(&id, 1, &file.parts[0])),
            reason(block_on(verify(&to.services, &id)).map_err(error_of)),
        ] {
            assert_eq!(refused, "canceling");
        }
        for _ in 0..2 {
            to.cancel(&id).unwrap();
        }
        let left = to.left(&id);
        assert!(left.keys().all(|table| ["search_erasures", "workspaces"].contains(table)), "{left:?}");
        assert_eq!(to.triggers(), 9, "nobody makes a key for what is not here");
        for key in &keys {
            assert_eq!(block_on(to.services.ports().blobs.size(key)).unwrap(), None, "{key:?}");
        }
        assert_eq!(to.status(&id).unwrap_err().code.as_str(), "not_found");
        // It has moved nowhere: nobody is told so.
        for refused in [
            block_on(close(&to.services, &id)).unwrap().unwrap_err(),
            block_on(cancel_export(&to.services, &id)).unwrap().unwrap_err(),
            block_on(erase(&to.services, &id)).unwrap().unwrap_err(),
        ] {
            assert_eq!(refused, Refusal::NothingHere);
        }
        assert_eq!(rows(&to.cluster.shards, &WorkspaceId::from_stored(&*neighbours)), beside);
    }
    to.take(&file, &services);
    let there = to.tenant(&tenant);
    there.get("/assistants").ok();
    // And back again, over what was left there.
    while let Erasing::Rows(_) = block_on(erase(&services, &id)).unwrap().unwrap() {}
    // From there, it has moved.
    assert_eq!(block_on(cancel_export(&services, &id)).unwrap().unwrap_err(), Refusal::Moved);
    to.cluster.run_jobs();
    let services_there = there.direct_access();
    frozen(&to.cluster, &there, &id);
    let back = File::of(&services_there, &id);
    let home = Target { cluster: from, neighbour: tenant.clone(), services: services.clone() };
    home.receive_all(&back).unwrap();
    let import_id = home.verify(&id).unwrap();
    home.open(&id, &hand_over(&services_there, &id, &import_id, None).code).unwrap();
    tenant.get("/assistants").ok();
    there.get("/assistants").refused("workspace_moved");
    assert_eq!(home.triggers(), 9, "those of whatever is left of workspaces");
    tenant.assistant();
}

/// A request may hang, and reach the database when another one has long opened the workspace.
#[test]
fn what_comes_late_changes_nothing_of_a_workspace_that_runs() {
    let from = Cluster::new(1);
    let (tenant, id) = from.workspace(0);
    let id = WorkspaceId::from_stored(id);
    tenant.assistant();
    tenant.a_recorded_call();
    let services = frozen(&from, &tenant, &id);
    let file = File::of(&services, &id);
    let to = Target::new();
    to.begin(&file.head).unwrap();
    let row = || {
        let select =
            "SELECT state || ' ' || lock || ' ' || progress AS text FROM moves WHERE workspace_id = ?1";
        texts(&ask(to.cluster.shards.at(0), select, &[&id])).remove(0)
    };
    // As if it were opened just before the next write. Afterwards the move is as before.
    let late = |act: &dyn Fn() -> String, expected: &str| {
        let before = block_on(Move::of(&to.services, &id)).unwrap().unwrap();
        let theirs = (to.services.clone(), id.clone());
        let run = move || set_state(&theirs.0, &theirs.1, ("running", "{}", 0));
        to.cluster.shards.before_write(1, Box::new(run));
        assert_eq!(act(), expected, "{before:?}");
        assert_eq!(row(), "running 0 {}", "{before:?}");
        set_state(&to.services, &id, (before.state.as_str(), before.progress.as_str(), 2));
    };
    let cancel = || reason(block_on(cancel_import(&to.services, &id)).map_err(error_of));
    for (n, part) in (1..).zip(&file.parts) {
        late(&cancel, "handed_over");
        late(&|| reason(to.receive(&id, n, part)), "complete");
        to.receive(&id, n, part).unwrap();
    }
    late(&|| block_on(verify(&to.services, &id)).unwrap().state.as_str().to_owned(), "running");
    let import_id = to.verify(&id).unwrap();
    late(&cancel, "handed_over");
    let left = to.left(&id);

    // And as it is, with the code.
    let code = hand_over(&services, &id, &import_id, None).code;
    let theirs = (to.services.clone(), id.clone());
    let open_it =
        move || while block_on(open(&theirs.0, &theirs.1, &code)).unwrap().status.state != State::Running {};
    to.cluster.shards.before_write(1, Box::new(open_it));
    assert_eq!(cancel(), "handed_over");
    assert_eq!((row().as_str(), to.triggers()), ("running 0 {}", 0));
    assert_eq!(to.left(&id)["assistants"], left["assistants"]);
    to.tenant(&tenant).get("/assistants").ok();
}

/// Its move is in this state, with this progress and lock.
fn set_state(services: &Services, id: &WorkspaceId, (state, progress, lock): (&str, &str, i64)) {
    let row = sql!(
        "UPDATE moves SET state = :state, progress = :progress, lock = :lock WHERE workspace_id = :id",
        state = state,
        progress = progress,
        lock = lock,
        id = id
    );
    block_on(services.ports().database.write(vec![row])).unwrap();
}

/// What refuses a file before anything is written.
#[test]
fn what_cannot_come_in_is_refused_before_anything_is_written() {
    let from = Cluster::new(1);
    let (tenant, id, services) = source(&from);
    let file = File::of(&services, &id);
    let to = Target::new();
    let number = file.head.numbers[0].clone();
    let assistant = to.neighbour.assistant().id;
    let bind = || {
        to.neighbour
            .call(
                http::Method::PUT,
                &format!("/numbers/{}", number.replace('+', "%2B")),
                Some(&json!({"assistant_id": assistant, "provider": "twilio"})),
            )
            .ok()
    };
    let refused = |head: &Head| {
        let reason = reason(to.begin(head));
        assert_eq!((to.left(&id), to.triggers()), (BTreeMap::new(), 0), "{reason}");
        assert_eq!(to.status(&id).unwrap_err().code.as_str(), "not_found");
        reason
    };
    let with = |change: &dyn Fn(&mut Head)| {
        let mut head = file.head.clone();
        change(&mut head);
        refused(&head)
    };
    assert_eq!(with(&|head| head.schema = "0001_foundation.sql 00".to_owned()), "schema_older");
    assert_eq!(with(&|head| head.schema = "9999_later.sql 00".to_owned()), "schema_newer");
    assert_eq!(with(&|head| head.schema = head.schema.replace(' ', " 0")), "schema_changed");
    assert_eq!(with(&|head| head.export_id = "exp_1".to_owned()), "form");
    assert_eq!(with(&|head| head.key_sha256 = "no".to_owned()), "form");
    assert_eq!(with(&|head| head.key_hashes.push("no".to_owned())), "form");
    for unfit in ["Acme\nnext: sidetone export", "\u{202e}emcA", "\u{1b}[2J", &"x".repeat(201)] {
        assert_eq!(with(&|head| head.name = unfit.to_owned()), "form");
        assert_eq!(with(&|head| head.needs.models.push(unfit.to_owned())), "form");
        assert_eq!(with(&|head| head.numbers.push(unfit.to_owned())), "form");
    }
    let hash = sidetone_engine::base::api_key::ApiKey::parse(to.neighbour.key()).unwrap().sha256_hex();
    assert_eq!(with(&|head| head.key_hashes.push(hash.clone())), "keys_taken");
    bind();
    let taken = to.begin(&file.head).unwrap_err();
    assert_eq!(taken.details.unwrap()["numbers"], json!([number]));
    assert_eq!(refused(&file.head), "numbers_taken");
    to.neighbour.delete(format!("/numbers/{}", number.replace('+', "%2B"))).empty();

    // So many at once.
    to.neighbour.write(
        (0..4)
            .flat_map(|n| {
                let id = WorkspaceId::from_stored(format!("ws_{n}"));
                [
                    sql!("INSERT INTO workspaces (id, name, created_at) VALUES (:id, '', 0)", id = &id),
                    sql!(
                        "INSERT INTO moves (workspace_id, id, state, lock, schema, file_key, began_at, changed_at)
                         VALUES (:id, :id, 'frozen', 2, '', '', 0, 0)",
                        id = &id
                    ),
                ]
            })
            .collect(),
    );
    assert_eq!(refused(&file.head), "too_many_moves");
    to.neighbour.write(vec![sql!("DELETE FROM moves WHERE workspace_id <> :none", none = "")]);

    // The workspace is here, in whatever state.
    let at_home = Target { cluster: from, neighbour: tenant.clone(), services: services.clone() };
    assert_eq!(reason(at_home.begin(&file.head)), "workspace_exists");
    hand_over(&services, &id, "imp_01kas3v8hq4x7m2n5p6r9t0w1z", None);
    assert_eq!(reason(at_home.begin(&file.head)), "not_erased");

    // A number that somebody binds meanwhile.
    to.begin(&file.head).unwrap();
    bind();
    let refused = file.contents().iter().zip(1..).find_map(|(part, n)| to.receive(&id, n, part).err());
    let refused = refused.expect("the page with the number");
    assert_eq!(refused.details.unwrap()["reason"], "numbers_taken");
    to.neighbour.delete(format!("/numbers/{}", number.replace('+', "%2B"))).empty();
    to.receive_all(&file).unwrap();
    let other = Head { export_id: "exp_01kas3v8hq4x7m2n5p6r9t0w1z".to_owned(), ..file.head.clone() };
    assert_eq!(reason(to.begin(&other)), "other_export");
    let elsewhere = Head { base_url: "https://elsewhere.example".to_owned(), ..file.head.clone() };
    assert_eq!(reason(to.begin(&elsewhere)), "other_export");
    to.verify(&id).unwrap();
}

/// It could not be bound where the operator has given it as long as the workspace arrives.
#[test]
fn a_number_that_the_operator_has_given_to_another_workspace_does_not_arrive() {
    let from = Cluster::new(1);
    let (tenant, id) = from.workspace(0);
    let id = WorkspaceId::from_stored(id);
    let number = tenant.binding().id;
    let services = frozen(&from, &tenant, &id);
    let file = File::of(&services, &id);
    let host = |owner: &str| {
        Target::with_settings(&[("SIDETONE_NUMBERS", &format!(r#"{{"{number}": "{owner}"}}"#))])
    };
    let to = host("ws_01kas3v8hq4x7m2n5p6r9t0w1z");
    let taken = to.begin(&file.head).unwrap_err();
    assert_eq!(taken.details.as_ref().unwrap()["numbers"], json!([number]));
    assert_eq!(reason(Err::<(), _>(taken)), "numbers_taken");
    // Nor if the head does not tell it.
    let mut untold = file.clone();
    untold.head.numbers.clear();
    to.begin(&untold.head).unwrap();
    let refused = untold.contents().iter().zip(1..).find_map(|(part, n)| to.receive(&id, n, part).err());
    assert_eq!(reason(Err::<(), _>(refused.expect("the page with the number"))), "numbers_taken");

    host(&id).receive_all(&file).unwrap();
}

/// Over HTTP, with the operator's key.
#[test]
fn the_operator_moves_a_workspace_over_http() {
    let key = sidetone_tests::process::bootstrap_key(4_000_030);
    let from = Cluster::new(1);
    let (tenant, id, services) = source(&from);
    let mut file = File::of(&services, &id);
    file.head.needs.models.push("nowhere/model".to_owned());
    file.head.needs.voices.push("builtin/browser".to_owned());
    file.parts.pop();
    let file = file.with_end();
    let to = Target::with_settings(&[(OPERATOR, &key)]);
    let operator = to.neighbour.with_key(&key);
    let head: Json = serde_json::from_str(&file.head.to_line()).unwrap();
    let path = format!("/operator/imports/{id}");
    to.neighbour.from_elsewhere().post("/operator/imports", head.clone()).refused("unauthorized");
    let form = operator.post("/operator/imports", json!({})).refused("move_refused");
    assert_eq!(form["error"]["details"]["reason"], "form");
    operator.get(&path).refused("not_found");
    operator.get("/operator/imports").refused("method_not_allowed");

    let begun = operator.post("/operator/imports", head).ok();
    assert_eq!((&begun["state"], &begun["next_part"]), (&json!("arriving"), &json!(1)));
    assert_eq!(begun["chain"], Chain::of(&file.head).as_str());
    assert_eq!(begun["warnings"], json!(["this host does not know the model `nowhere/model`"]));
    let put = |n: usize, body: Bytes| {
        let request = operator.request(http::Method::PUT, &format!("{path}/parts/{n}"));
        operator.send(request.body(body).unwrap())
    };
    put(0, Bytes::new()).refused("validation_failed");
    for large in [Bytes::from(vec![b' '; 2 << 20]), Bytes::from(vec![b' '; 16 << 20])] {
        let refused = put(1, large.clone()).refused("move_refused");
        assert_eq!(refused["error"]["details"]["reason"], "wrong_part");
        let request = to.neighbour.request(http::Method::PUT, &format!("{path}/parts/1"));
        to.neighbour.send(request.body(large).unwrap()).refused("body_too_large");
    }
    put(1, Bytes::from(vec![b' '; 17 << 20])).refused("body_too_large");
    for (n, part) in (1..).zip(&file.parts) {
        assert_eq!(put(n, part.to_bytes()).ok()["next_part"], n + 1);
    }
    let mut verified = operator.post(format!("{path}/verify"), json!({})).ok();
    while verified["state"] == "arriving" {
        assert!(verified["table"].is_string(), "{verified:?}");
        verified = operator.post(format!("{path}/verify"), json!({})).ok();
    }
    let import_id = verified["import_id"].as_str().unwrap();
    let code = hand_over(&services, &id, import_id, None).code.to_text();
    let wrong = operator.post(format!("{path}/open"), json!({"code": "move_"})).refused("move_refused");
    assert_eq!(wrong["error"]["details"]["reason"], "wrong_code");
    operator
        .post(format!("{path}/open"), json!({"code": code, "admin": "nobody"}))
        .refused("validation_failed");
    let body = json!({"code": code, "admin": "Anna@Example.com"});
    let mut opened = operator.post(format!("{path}/open"), body.clone()).ok();
    while opened["state"] == "opening" {
        opened = operator.post(format!("{path}/open"), body.clone()).ok();
    }
    assert_eq!(opened["state"], "running");
    let url = opened["invitation_url"].as_str().unwrap();
    assert!(url.contains("/dashboard/join?token="), "{opened:?}");
    // It is told again with the same code alone, and invites once.
    let again = operator.post(format!("{path}/open"), body).ok();
    assert_eq!(again["invitation_url"], url);
    let entries = to.tenant(&tenant).get("/audit").ok();
    let invited = entries.json.as_array().unwrap().iter().filter(|one| one["operation"] == "invite_person");
    assert_eq!(invited.map(|one| &one["actor"]).collect::<Vec<_>>(), ["operator"]);
    assert_eq!(operator.get(&path).ok()["state"], "running");
    to.tenant(&tenant).get("/assistants").ok();
    let canceled = operator.delete(&path).refused("move_refused");
    assert_eq!(canceled["error"]["details"]["reason"], "handed_over");
    let log = to.neighbour.log();
    for note in [format!("{id} arrives ("), format!("{id} has arrived ("), format!("{id} runs here (")] {
        assert_eq!(log.matches(&note).count(), 1, "{note}: {log}");
    }
    assert!(!log.contains(&code), "the log has no code");
    // It stands in no document.
    for path in ["/openapi.json", "/openapi-3.0.json"] {
        let document = to.neighbour.get(path).ok();
        let paths = document["paths"].as_object().unwrap();
        assert!(!paths.keys().any(|path| path.contains("operator") || path.contains("import")), "{path}");
    }
}

#[test]
fn the_blobs_that_arrive_are_the_ones_of_the_source() {
    let from = Cluster::new(1);
    let (_, id, services) = source(&from);
    let file = File::of(&services, &id);
    let to = Target::new();
    to.receive_all(&file).unwrap();
    for (head, bytes) in blobs(file.contents()) {
        let range = ByteRange { first: 0, bytes: u64::MAX >> 12 };
        let stored = block_on(to.services.ports().blobs.get(&key_of(&id, head), range)).unwrap();
        assert_eq!(stored.as_ref(), Some(&bytes), "{head:?}");
    }
    // One that is lost again is found before the hand-over.
    let (lost, _) = blobs(file.contents())[0];
    block_on(to.services.ports().blobs.delete(&key_of(&id, lost))).unwrap();
    let differs = to.verify(&id).unwrap_err();
    assert_eq!(differs.details.unwrap()["what"], key_of(&id, lost).as_str());
    // So is a row that is not as it was.
    to.cancel(&id).unwrap();
    to.receive_all(&file).unwrap();
    let table = Table::named("assistants").unwrap();
    let page = block_on(ALL.read(to.cluster.shards.at(0), table, &id, &[])).unwrap();
    assert!(!page.rows.is_empty());
    to.neighbour.write(vec![
        sql!("UPDATE moves SET lock = 0 WHERE workspace_id = :id", id = &id),
        sql!("UPDATE assistants SET name = name || '!' WHERE workspace_id = :id", id = &id),
        sql!("UPDATE moves SET lock = 2 WHERE workspace_id = :id", id = &id),
    ]);
    let differs = to.verify(&id).unwrap_err();
    assert_eq!(differs.details.unwrap()["what"], "assistants");
}
