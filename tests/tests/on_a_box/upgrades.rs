//! Upgrades: a database as each earlier version left it, with rows of everything (`upgrades/`), is read through the API
//! afterwards. And the way back: the backup that was made before.
mod reads;
mod rows;

use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};
use sidetone_engine::storage::migrations::MIGRATIONS;
use sidetone_tests::process::{self, Folder, Server};

use crate::said::{answered, key_in, refused, settle};
use reads::read;
use rows::{ROWS, counted, earlier, full, key, number};

/// Upgrades that are tried at the same time.
const AT_ONCE: usize = 4;

/// Tables without rows when an upgrade begins. `batch_guard` never has one; the service writes `service_facts` as it starts. A
/// workspace that moves (`moves`, `jobs_away`) is upgraded in `a_box_with_a_frozen_workspace_is_upgraded_and_starts`. The others
/// have what is under way, which ends when a service stops.
const EMPTY: [&str; 9] = [
    "batch_guard",
    "conversation_journal",
    "jobs_away",
    "live_call_rows",
    "live_call_turns",
    "live_calls",
    "moves",
    "service_facts",
    "spending_reservations",
];

/// One upgrade with the binary.
fn upgrade(folder: &Path, migrations: usize) {
    let newest = MIGRATIONS[migrations - 1].name;
    earlier(folder, migrations);
    let before = counted(folder);
    // Forty folders with a reserve each would take gigabytes.
    let server = Server::start(folder, &[("SIDETONE_RESERVE_MB", "0")]);
    let mut client = server.connect(key().as_str());
    read(&mut client, number(&MIGRATIONS[migrations - 1]));
    // It takes changes, and the old rows go with them.
    let changed =
        client.expect(200, "PATCH", &full("/assistants/asst_~01"), Some(&json!({"name": "Front desk"})));
    assert_eq!((&changed["name"], &changed["revision"]), (&json!("Front desk"), &json!(4)), "{newest}");
    client.expect(201, "POST", "/assistants", Some(&json!({"name": "New", "instructions": "Be kind."})));
    assert!(!server.log().contains("ERROR"), "{newest}: {}", server.log());
    assert!(server.stop().success(), "{newest}");
    let after = counted(folder);
    for (table, rows) in before {
        assert!(after.get(&table).is_some_and(|now| *now >= rows), "{newest}: rows of {table} are lost");
    }
    let checked = answered(&process::run(folder, &[("SIDETONE_RESERVE_MB", "0")], &["check"]));
    assert!(checked.contains("the database is sound"), "{newest}: {checked}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn every_table_has_rows_before_an_upgrade() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    earlier(&data, MIGRATIONS.len());
    let empty: Vec<String> =
        counted(&data).into_iter().filter(|(_, rows)| *rows == 0).map(|(table, _)| table).collect();
    assert_eq!(empty, EMPTY, "a migration that makes a table has rows of it in tests/on_a_box/upgrades/");
    for (name, _) in ROWS {
        assert!(MIGRATIONS.iter().any(|migration| migration.name == *name), "{name}: no such migration");
    }
}

#[test]
fn every_earlier_schema_is_upgraded_with_its_rows() {
    let folder = Folder::new();
    let all: Vec<usize> = (1..=MIGRATIONS.len()).collect();
    std::thread::scope(|scope| {
        for part in all.chunks(all.len().div_ceil(AT_ONCE)) {
            let folder = &folder;
            scope.spawn(move || {
                for migrations in part {
                    upgrade(&folder.path().join(format!("data-{migrations}")), *migrations);
                }
            });
        }
    });
}

#[test]
fn an_upgrade_is_taken_back_with_the_backup_made_before() {
    let folder = Folder::new();
    let (data, copy) = (folder.path().join("data"), folder.path().join("copy"));
    let migrations = MIGRATIONS.len() - 1;
    earlier(&data, migrations);
    // The backup is made before the new version starts, with either version's program: it changes nothing.
    answered(&process::run(&data, &[], &["backup", &copy.display().to_string()]));
    let applied = |data: &Path| -> Vec<String> {
        settle(data);
        let database = Connection::open(data.join("sidetone.db")).unwrap();
        let mut names = database.prepare("SELECT name FROM migrations ORDER BY name").unwrap();
        names.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    };
    assert_eq!(applied(&data).len(), migrations, "a backup upgrades nothing");
    let server = Server::start(&data, &[]);
    let written = json!({"name": "Since", "instructions": "Be kind."});
    server.connect(key().as_str()).expect(201, "POST", "/assistants", Some(&written));
    assert!(server.stop().success());
    assert_eq!(applied(&data).len(), MIGRATIONS.len());
    // The earlier version would refuse this folder; it gets that of the backup, with everything as of then.
    let back = folder.path().join("back");
    answered(&process::run(&back, &[], &["restore", &copy.display().to_string()]));
    assert_eq!(
        applied(&back),
        MIGRATIONS[..migrations].iter().map(|one| one.name.to_owned()).collect::<Vec<_>>()
    );
    let server = Server::start(&back, &[]);
    let mut client = server.connect(key().as_str());
    read(&mut client, number(&MIGRATIONS[migrations - 1]));
    let assistants: Value = client.expect(200, "GET", "/assistants", None);
    assert!(!assistants.to_string().contains("Since"), "what was written since is not there: {assistants}");
    assert!(server.stop().success());
}

/// It changes rows of every workspace.
const OF_ALL_ROWS: &str = "0041_kept_bytes.sql";

#[test]
fn a_box_with_a_frozen_workspace_is_upgraded_and_starts() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let database = || Connection::open(data.join("sidetone.db")).unwrap();
    let export = |further: &[&str]| {
        process::run(&data, &[], &[&["export", "--workspace", "default"][..], further].concat())
    };
    let file = |name: &str| folder.path().join(name).display().to_string();
    let desk = json!({"name": "Desk", "instructions": "Be kind."});
    let server = Server::start(&data, &[]);
    let key = key_in(server.welcome());
    server.connect(&key).expect(201, "POST", "/assistants", Some(&desk));
    assert!(server.stop().success());
    database()
        .execute_batch(
            "INSERT INTO snapshots (workspace_id, id, content) SELECT id, 'aa', '{}' FROM workspaces",
        )
        .unwrap();
    answered(&export(&[&file("first.move")]));

    // As a version before that migration would have frozen it.
    database()
        .execute_batch(&format!(
            "ALTER TABLE workspaces DROP COLUMN snapshot_bytes;
             DELETE FROM migrations WHERE name = '{OF_ALL_ROWS}';
             UPDATE moves SET schema = '0040_earlier.sql 0';"
        ))
        .unwrap();
    let migration = MIGRATIONS.iter().find(|migration| migration.name == OF_ALL_ROWS).unwrap();
    let locked = database().execute_batch(&format!("BEGIN; {}", migration.sql)).unwrap_err();
    assert!(locked.to_string().contains("workspace_moving"), "{locked}");

    let server = Server::start(&data, &[]);
    let mut client = server.connect(&key);
    let kept = database().query_row("SELECT snapshot_bytes FROM workspaces", [], |row| row.get::<_, i64>(0));
    assert_eq!(kept.unwrap(), 2, "the migration has changed the row");
    assert_eq!(client.expect(200, "GET", "/assistants", None)[0]["name"], "Desk");
    let moving = client.expect(503, "POST", "/assistants", Some(&desk));
    assert_eq!(moving["error"]["code"], "workspace_moving", "it is still frozen");

    // Its rows are not those of the file any more: the move begins again.
    let changed = refused(&export(&[&file("second.move")]));
    assert!(changed.contains("upgraded after the workspace was frozen"), "{changed}");
    answered(&export(&["--cancel"]));
    client.expect(201, "POST", "/assistants", Some(&desk));
    answered(&export(&[&file("third.move")]));
    assert!(server.stop().success());
}
