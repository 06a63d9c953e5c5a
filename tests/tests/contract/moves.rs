//! A workspace that is locked because it moves to another host: nothing writes to its rows but the move.
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};
use sidetone_engine::base::ids::{Id as _, WorkspaceId};
use sidetone_engine::base::time::Timestamp;
use sidetone_engine::operations::OPERATIONS;
use sidetone_engine::operations::operation::Effects;
use sidetone_engine::ports::DatabaseError;
use sidetone_engine::ports::statement::Statement;
use sidetone_engine::sql;
use sidetone_engine::storage::moves::State;
use sidetone_engine::storage::moves::lock::{self, Expected};
use sidetone_engine::storage::moves::part::{Head, Kind, Part, Tally};
use sidetone_engine::storage::workspace_rows::TABLES;
use sidetone_tests::direct_access::{disarm, wait};
use sidetone_tests::process::bootstrap_key;
use sidetone_tests::{Call, World};

/// The service's own storage: what the move writes has no request yet.
struct Move<'a> {
    world: &'a World,
    workspace_id: WorkspaceId,
}

impl<'a> Move<'a> {
    /// Begins a move, as far as the triggers.
    fn begin(world: &'a World) -> Self {
        let workspace_id = world.workspace_id();
        let id = format!("exp_{}", &workspace_id[3..]);
        world.write(vec![sql!(
            "INSERT INTO moves (workspace_id, id, state, lock, schema, file_key, began_at, changed_at)
             VALUES (:workspace, :id, 'frozen', 0, '', '', 0, 0)",
            workspace = &workspace_id,
            id = id
        )]);
        wait(lock::arm(&world.direct_access(), &workspace_id)).unwrap();
        Self { world, workspace_id }
    }

    fn lock(&self, lock: i64) {
        let set = sql!(
            "UPDATE moves SET lock = :lock WHERE workspace_id = :workspace",
            lock = lock,
            workspace = &self.workspace_id
        );
        self.world.write(vec![lock::guard_armed(&self.workspace_id).unwrap(), set]);
    }

    fn try_write(&self, batch: Vec<Statement>) -> Result<(), DatabaseError> {
        wait(self.world.direct_access().ports().database.write(batch)).map(drop)
    }

    /// Writes in the name of the move.
    fn write_within(
        &self,
        progress: &str,
        statements: Vec<Statement>,
        next: &str,
    ) -> Result<(), DatabaseError> {
        let id = format!("exp_{}", &self.workspace_id[3..]);
        let expected = Expected { workspace_id: &self.workspace_id, id: &id, state: State::Frozen, progress };
        self.try_write(lock::within(&expected, statements, State::Frozen, next, Timestamp::from_ms(1)))
    }

    fn triggers(&self) -> i64 {
        let count = sql!(
            "SELECT COUNT(*) AS triggers FROM sqlite_schema WHERE type = 'trigger' AND instr(name, :ulid) > 0",
            ulid = &self.workspace_id[3..]
        );
        let rows = wait(self.world.direct_access().ports().database.read(vec![count])).unwrap();
        rows[0].first().unwrap().integer("triggers").unwrap()
    }

    fn end(self) {
        self.world.write(vec![sql!(
            "DELETE FROM moves WHERE workspace_id = :workspace",
            workspace = &self.workspace_id
        )]);
        wait(disarm(&self.world.direct_access(), &self.workspace_id, &[]));
        assert_eq!(self.triggers(), 0);
    }
}

/// On every host: D1 takes the triggers, and what they refuse.
#[test]
fn a_locked_workspace_is_read_and_not_written() {
    let (world, beside) = (World::new(), World::new());
    let assistant = world.assistant();
    let path = format!("/assistants/{}", assistant.id);
    let moving = Move::begin(&world);
    assert_eq!(moving.triggers(), i64::try_from(TABLES.len() * 3).unwrap());
    world.patch(&path, json!({"name": "Before"})).ok();

    moving.lock(2);
    let before = world.get(&path).ok();
    for reply in [
        world.patch(&path, json!({"name": "Meanwhile"})),
        world.post("/assistants", json!({"name": "New", "instructions": "Be kind."})),
        world.post_once(
            "/tools",
            "once",
            json!({"name": "new", "url": "https://example.com/", "description": "It is new", "parameters": {"type": "object", "properties": {}}}),
        ),
        world.delete(&path),
    ] {
        let reply = reply.refused("workspace_moving");
        assert_eq!((reply.status, reply.header("retry-after")), (503, Some("60")));
    }
    let told = world.tool("update_assistant", json!({"id": assistant.id, "data": {"name": "Meanwhile"}}));
    assert!(told.json.to_string().contains("workspace_moving"), "{told:?}");
    assert_eq!(world.get(&path).ok().json, before.json);
    beside.assistant();

    moving.lock(0);
    world.patch(&path, json!({"name": "Afterwards"})).ok();
    moving.end();
}

#[test]
fn while_a_workspace_closes_no_call_and_no_run_begins_in_it() {
    let world = World::new();
    let simulation = world.simulation();
    let runs = format!("/simulations/{}/runs", simulation.id);
    let moving = Move::begin(&world);
    moving.lock(1);
    world.post(&runs, json!({"seed": 1})).refused("workspace_moving");
    world.assistant();
    moving.lock(0);
    world.post(&runs, json!({"seed": 1})).created();
    moving.end();
}

#[test]
fn only_the_move_writes_and_only_from_where_it_is() {
    let world = World::new();
    let assistant = world.assistant();
    let moving = Move::begin(&world);
    moving.lock(2);
    let rename = |name: &str| {
        sql!(
            "UPDATE assistants SET name = :name WHERE workspace_id = :workspace AND id = :id",
            name = name,
            workspace = &moving.workspace_id,
            id = &assistant.id
        )
    };
    let name = || world.get(format!("/assistants/{}", assistant.id)).ok()["name"].clone();
    let refused = moving.try_write(vec![rename("Meanwhile")]).unwrap_err();
    assert!(refused.is_constraint("workspace_moving"), "{refused:?}");
    let early = moving.write_within(r#"{"part":2}"#, vec![rename("Early")], "{}").unwrap_err();
    assert!(early.is_constraint("stale"), "{early:?}");
    moving.write_within("{}", vec![rename("Moved")], r#"{"part":2}"#).unwrap();
    assert_eq!(name(), "Moved");
    // A repetition, and whoever else writes.
    let again = moving.write_within("{}", vec![rename("Again")], r#"{"part":2}"#).unwrap_err();
    assert!(again.is_constraint("stale"), "{again:?}");
    let refused = moving.try_write(vec![rename("Meanwhile")]).unwrap_err();
    assert!(refused.is_constraint("workspace_moving"), "{refused:?}");
    moving.write_within(r#"{"part":2}"#, vec![rename("Moved on")], "{}").unwrap();
    assert_eq!(name(), "Moved on");
    moving.lock(0);
    moving.end();
}

/// A table that was missed would be written on.
#[test]
fn nothing_is_locked_before_every_trigger_is_there() {
    let world = World::new();
    let moving = Move::begin(&world);
    let ulid = &moving.workspace_id[3..];
    for (n, table) in TABLES.iter().enumerate() {
        let on = ["i", "u", "d"][n % 3];
        world.write(vec![sql!(format!("DROP TRIGGER moving_{ulid}_{}_{on}", table.name))]);
        let guard = || vec![lock::guard_armed(&moving.workspace_id).unwrap()];
        let missing = moving.try_write(guard()).unwrap_err();
        assert!(missing.is_constraint("stale"), "{}: {missing:?}", table.name);
        if n + 1 == TABLES.len() {
            wait(lock::arm(&world.direct_access(), &moving.workspace_id)).unwrap();
            moving.try_write(guard()).unwrap();
        }
    }
    wait(disarm(&world.direct_access(), &moving.workspace_id, &["workspaces", "api_keys"]));
    assert_eq!(moving.triggers(), 6);
    moving.end();
}

/// Every row of every table, whoever changes it in whatever way.
#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "hosts differ in none of it")]
fn no_row_of_a_locked_workspace_is_added_changed_or_deleted() {
    let world = World::with_manual_clock();
    for operation in OPERATIONS.iter().filter(|operation| operation.effects != Effects::Delete) {
        assert_eq!(Call::valid(&world, operation).rest(&world).status, operation.success.status());
    }
    let moving = Move::begin(&world);
    moving.lock(2);
    let mut tried = 0;
    for table in TABLES {
        let (name, owner) = (table.name, table.owner);
        let own = || format!("FROM {name} WHERE {owner} = '{}'", moving.workspace_id);
        let columns: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
        let columns = columns.join(", ");
        let copy = format!("({columns}) SELECT {columns} {}", own());
        for sql in [
            format!("DELETE {}", own()),
            format!("UPDATE {name} SET {owner} = {owner} WHERE {owner} = '{}'", moving.workspace_id),
            format!("UPDATE {name} SET {owner} = 'ws_of_others' WHERE {owner} = '{}'", moving.workspace_id),
            format!("INSERT INTO {name} {copy}"),
            format!("INSERT OR IGNORE INTO {name} {copy}"),
            format!("INSERT INTO {name} {copy} ON CONFLICT DO NOTHING"),
        ] {
            let has_rows = has_rows(&world, own());
            let outcome = moving.try_write(vec![sql!(sql.clone())]);
            match outcome {
                Err(refused) => assert!(refused.is_constraint("workspace_moving"), "{sql}: {refused:?}"),
                Ok(()) => assert!(!has_rows, "{sql}"),
            }
            tried += usize::from(has_rows);
        }
    }
    assert!(tried > 100, "{tried}");
}

fn has_rows(world: &World, from: String) -> bool {
    let rows = wait(
        world.direct_access().ports().database.read(vec![sql!(format!("SELECT 1 AS one {from} LIMIT 1"))]),
    );
    !rows.unwrap()[0].is_empty()
}

/// The workspace's id stands in the text of the triggers.
#[test]
fn only_an_id_of_ours_is_locked() {
    let world = World::new();
    for text in [
        "",
        "ws_",
        "ws_1",
        "ws_01kas3v8hq4x7m2n5p6r9t0w1'",
        "call_01kas3v8hq4x7m2n5p6r9t0w1z",
        "x'; DROP TABLE calls; --",
    ] {
        let id = WorkspaceId::from_stored(text);
        assert!(wait(lock::arm(&world.direct_access(), &id)).is_err(), "{text}");
        assert!(lock::guard_armed(&id).is_err(), "{text}");
    }
}

const IMPORT: &str = "imp_01kas3v8hq4x7m2n5p6r9t0w1z";

/// A service with a workspace, and the operator's requests about it.
struct Operated {
    world: World,
    operator: World,
    id: String,
}

impl Operated {
    fn new() -> Self {
        let key = bootstrap_key(4_000_010);
        let world = World::of_its_own(&[("SIDETONE_OPERATOR_KEY", &key)]);
        let id = world.get("/workspace").ok()["id"].as_str().unwrap().to_owned();
        Self { operator: world.with_key(&key), world, id }
    }

    fn path(&self, rest: &str) -> String {
        format!("/operator/exports/{}{rest}", self.id)
    }

    /// Closes the workspace, and waits for what is under way.
    fn freeze(&self) -> Value {
        for _ in 0..300 {
            let told = self.operator.post(self.path(""), json!({})).ok().json;
            if told["state"] == "frozen" {
                return told;
            }
            assert_eq!(told["state"], "closing", "{told}");
            assert!(!told["waiting_for"].as_array().unwrap().is_empty(), "{told}");
            sleep(Duration::from_millis(100));
        }
        panic!("it is not frozen");
    }

    fn parts(&self) -> Vec<Part> {
        let (mut parts, mut query) = (Vec::new(), String::new());
        loop {
            let reply = self.operator.get(self.path(&format!("/parts{query}"))).ok();
            assert_eq!(reply.header("content-type"), Some("application/octet-stream"));
            let part = Part::read(&reply.body).expect("a part of the file");
            let next = part.head.next.clone();
            parts.push(part);
            match next {
                Some(next) => query = format!("?after={next}"),
                None => return parts,
            }
        }
    }

    fn refused(&self, rest: &str, body: Value, reason: &str) {
        let reply = self.operator.post(self.path(rest), body).refused("move_refused");
        assert_eq!(reply["error"]["details"]["reason"], reason, "{reply:?}");
    }
}

#[test]
fn the_operator_hands_a_workspace_over_and_nobody_else_does() {
    let here = Operated::new();
    let Operated { world, operator, id } = &here;
    let assistant = world.assistant();
    operator.get(here.path("")).refused("not_found");
    operator.delete(here.path("")).empty();
    let named = operator.get(format!("/operator/workspaces?named={id}")).ok();
    assert_eq!((named["id"].as_str(), &named["state"]), (Some(id.as_str()), &Value::Null));
    operator.get("/operator/workspaces?named=nobody%20has%20this").refused("not_found");
    for (stranger, code) in [(world.clone(), "unauthorized"), (world.with_key("none"), "unauthorized")] {
        stranger.from_elsewhere().post(here.path(""), json!({})).refused(code);
        stranger.from_elsewhere().get(here.path("/parts")).refused(code);
    }

    // Frozen, it is read; canceled, it goes on.
    let frozen = here.freeze();
    let head = Head::from_line(&frozen["head"].to_string()).expect("the head of the file");
    assert_eq!((head.workspace_id.as_str(), head.key_hashes.is_empty()), (id.as_str(), false));
    world.post("/assistants", json!({"name": "New", "instructions": "Be kind."})).refused("workspace_moving");
    world.get(format!("/assistants/{}", assistant.id)).ok();
    here.refused("/erase", json!({}), "not_released");
    world.logged("is frozen for a move");
    operator.delete(here.path("")).empty();
    world.logged("export was canceled");
    world.assistant();
    let before =
        json!({"export_id": frozen["export_id"], "import_id": IMPORT, "moved_to": "https://edge.example"});
    here.refused("/release", before.clone(), "not_frozen");
    operator.get(here.path("/parts")).refused("move_refused");

    let again = here.freeze();
    let export_id = &again["export_id"];
    assert_ne!(*export_id, frozen["export_id"]);
    here.refused("/release", before, "other_export");
    let head = Head::from_line(&again["head"].to_string()).expect("the head of the file");
    let parts = here.parts();
    let mut tally = Tally::of(&head);
    parts.iter().for_each(|part| tally.add(part).unwrap());
    assert_eq!(tally.sums["assistants"].rows, 2);
    assert_eq!(tally.sums["workspaces"].rows, 1);
    assert!(parts.iter().any(|part| part.head.kind == Kind::Secrets));
    operator.get(here.path("/parts?after=nowhere")).refused("move_refused");

    for (mut body, field) in [
        (json!({"import_id": "imp_1", "moved_to": "https://edge.example"}), "import_id"),
        (json!({"import_id": IMPORT, "moved_to": "edge.example"}), "moved_to"),
        (json!({"import_id": IMPORT, "moved_to": "https://me:you@edge.example"}), "moved_to"),
        (json!({"import_id": IMPORT}), "body"),
    ] {
        body["export_id"] = export_id.clone();
        let reply = operator.post(here.path("/release"), body).refused("validation_failed");
        assert_eq!(reply.fields(), [field]);
    }
    let without = json!({"import_id": IMPORT, "moved_to": "https://edge.example"});
    assert_eq!(operator.post(here.path("/release"), without).refused("validation_failed").fields(), ["body"]);
    let to = json!({"export_id": export_id, "import_id": IMPORT, "moved_to": "https://edge.example/"});
    let told = operator.post(here.path("/release"), to.clone()).ok();
    let code = told["code"].as_str().unwrap();
    assert!(code.starts_with("move_"), "{code}");
    assert_eq!(operator.post(here.path("/release"), to).ok().json, told.json);
    world.logged(&format!("was handed over to {IMPORT} at https://edge.example"));
    assert!(!world.log().contains(code), "the log has no code");
    let other = json!({
        "export_id": export_id,
        "import_id": "imp_01kas3v8hq4x7m2n5p6r9t0w20",
        "moved_to": "https://edge.example",
    });
    here.refused("/release", other, "released_elsewhere");
    here.refused("", json!({}), "moved");
    let told = operator.get(here.path("")).ok();
    assert_eq!((&told["state"], &told["import_id"]), (&json!("released"), &json!(IMPORT)));
    let moved = world.get("/assistants").refused("workspace_moved");
    assert_eq!(moved["error"]["details"], json!({"base_url": "https://edge.example"}));
    assert_eq!(here.parts().len(), parts.len());

    let mut erased = 0;
    loop {
        let told = operator.post(here.path("/erase"), json!({})).ok();
        if told["state"] == "gone" {
            break;
        }
        let rows = told["rows_erased"].as_u64().unwrap();
        assert!(rows >= erased && erased < 10_000, "{told:?}");
        erased = rows;
    }
    assert!(erased > 2, "{erased}");
    world.logged("was erased");
    world.get("/assistants").refused("workspace_moved");
    operator.get(here.path("/parts")).refused("move_refused");
    world.other().assistant();
}

#[test]
fn the_operators_steps_are_no_operations() {
    let here = Operated::new();
    let Operated { world, operator, .. } = &here;
    for path in ["/operator/", "/operator/exports", "/operator/exports/ws_1", "/operator/imports/x/y/z"] {
        operator.get(path).refused("not_found");
    }
    operator.get(here.path("/steps")).refused("not_found");
    let reply = operator.put(here.path(""), json!({})).refused("method_not_allowed");
    assert_eq!(reply.header("allow"), Some("POST, GET, DELETE"));
    operator.post(here.path(""), json!({"without_late_price": true})).refused("validation_failed");
    for page in ["/openapi.json", "/docs"] {
        let text = String::from_utf8(world.get(page).ok().body.to_vec()).unwrap();
        assert!(!text.contains("/operator/"), "{page}");
    }
    let without = World::new();
    let reply = without.get("/operator/exports/ws_1").refused("not_found");
    assert!(reply["error"]["message"].as_str().unwrap().contains("SIDETONE_OPERATOR_KEY"), "{reply:?}");
}
