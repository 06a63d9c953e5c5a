//! Upgrades: a database as each earlier version left it, with rows of everything, is read through the API afterwards. And
//! the way back: the backup that was made before.
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};
use sidetone_engine::base::api_key::ApiKey;
use sidetone_engine::storage::migrations::MIGRATIONS;
use sidetone_tests::process::{self, Client, Folder, Server};

use crate::said::{answered, key_in, refused, settle};

/// A server secret, as the file has it.
const SECRET: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
/// Upgrades that are tried at the same time.
const AT_ONCE: usize = 4;

/// Rows as the version of each migration wrote them. Later versions found them so.
const ROWS: [(&str, &str); 2] = [
    (
        "0001_foundation.sql",
        "INSERT INTO workspaces (id, name, created_at) VALUES ('ws_01', 'Bakery', 1700000000000);
         INSERT INTO assistants VALUES ('asst_01', 'ws_01', 'Desk', 'Be kind.', 'Blue Door, hello.', 'builtin/rules',
           'builtin/tone', 'cascading', 3, 1700000000000, 1700000000000) /* the columns of then */;
         INSERT INTO tools (id, workspace_id, name, url, method, description, parameters, timeout_ms, secret_version, revision,
           created_at, updated_at) VALUES ('tool_01', 'ws_01', 'look_up', 'https://tools.example/', 'POST', 'Looks up.',
           '{\"type\":\"object\",\"properties\":{}}', 5000, 1, 1, 1700000000000, 1700000000000);
         INSERT INTO documents (id, workspace_id, name, content, source, size_bytes, revision, created_at, updated_at)
           VALUES ('doc_01', 'ws_01', 'Hours', 'We open at nine.', 'text', 16, 1, 1700000000000, 1700000000000);
         INSERT INTO assistant_tools VALUES ('ws_01', 'asst_01', 'tool_01', 0);
         INSERT INTO assistant_documents VALUES ('ws_01', 'asst_01', 'doc_01', 0);
         INSERT INTO numbers (number, workspace_id, assistant_id, provider, created_at, updated_at)
           VALUES ('+14155550100', 'ws_01', 'asst_01', 'twilio', 1700000000000, 1700000000000);
         INSERT INTO webhooks (id, workspace_id, url, events, enabled, secret_version, revision, created_at, updated_at)
           VALUES ('wh_01', 'ws_01', 'https://hooks.example/', '[\"call.ended\"]', 1, 1, 1, 1700000000000, 1700000000000);
         INSERT INTO personas (id, workspace_id, name, system_prompt, revision, created_at, updated_at)
           VALUES ('per_01', 'ws_01', 'Ada', 'Brief.', 1, 1700000000000, 1700000000000);
         INSERT INTO scenarios (id, workspace_id, name, instructions, evaluations, revision, created_at, updated_at)
           VALUES ('scen_01', 'ws_01', 'Hours', 'Ask when they open.', '[]', 1, 1700000000000, 1700000000000);
         INSERT INTO simulations (id, workspace_id, assistant_id, persona_id, scenario_id, name, revision, created_at, updated_at)
           VALUES ('sim_01', 'ws_01', 'asst_01', 'per_01', 'scen_01', 'Hours', 1, 1700000000000, 1700000000000);
         INSERT INTO snapshots (workspace_id, id, content) VALUES ('ws_01', 'aa', '{}'), ('ws_01', 'bb', '{}');
         INSERT INTO runs (id, workspace_id, simulation_id, assistant_id, assistant_revision, assistant_snapshot,
           simulation_snapshot, mode, seed, status, passed, evaluations, transcript, created_at, started_at, completed_at)
           VALUES ('run_01', 'ws_01', 'sim_01', 'asst_01', 3, 'aa', 'bb', 'chat', 7, 'completed', 1, '[]',
           '[{\"role\":\"assistant\",\"text\":\"Blue Door, hello.\"}]', 1700000000000, 1700000000000, 1700000001000);",
    ),
    (
        "0002_calls.sql",
        "INSERT INTO call_groups (id, workspace_id, assistant_id, source, model, voice, outcome, sentiment) VALUES
           (1, 'ws_01', 'asst_01', 'simulation', 'builtin/rules', 'builtin/tone', 'completed', ''),
           (2, 'ws_01', '', 'simulation', '', '', 'completed', '');
         INSERT INTO calls (seq, id, workspace_id, group_id, assistant_revision, direction, status, started_at, answered_at,
           ended_at, duration_ms, outcome, ended_reason, fault, cost_microusd, telephony_microusd, stt_microusd, llm_microusd,
           tts_microusd, llm_input_tokens, llm_output_tokens, transcript_bytes)
           VALUES (1, 'call_01', 'ws_01', 1, 3, 'inbound', 'ended', 1700000000000, 1700000000000, 1700000060000, 60000,
           'completed', 'user_hung_up', 'none', 12, 0, 0, 12, 0, 10, 5, 120);
         INSERT INTO call_transcripts (seq, workspace_id, content) VALUES (1, 'ws_01', '[{\"index\":0,\"role\":\"user\",
           \"text\":\"Do you have sourdough?\",\"start_ms\":0,\"end_ms\":1560,\"interrupted\":false,\"intended_text\":null}]');
         INSERT INTO call_rollups (workspace_id, group_id, span_ms, starts_at, calls, duration_ms, cost_microusd) VALUES
           ('ws_01', 1, 0, 0, 1, 60000, 12), ('ws_01', 2, 0, 0, 1, 60000, 12);
         INSERT INTO call_search (rowid, workspace, words) VALUES (1, 'ws01', 'call_01 Do you have sourdough?');",
    ),
];

fn key() -> ApiKey {
    ApiKey::from_bytes([5; 32])
}

/// The number of a migration.
fn number(name: &str) -> u32 {
    name[..4].parse().unwrap()
}

/// A data folder as the version with these migrations left it.
fn earlier(folder: &Path, migrations: usize) {
    std::fs::create_dir(folder).unwrap();
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o700)).unwrap();
    for (name, content) in [("secret", SECRET), ("sidetone.db", "")] {
        std::fs::write(folder.join(name), content).unwrap();
        std::fs::set_permissions(folder.join(name), PermissionsExt::from_mode(0o600)).unwrap();
    }
    let database = Connection::open(folder.join("sidetone.db")).unwrap();
    database.pragma_update(None, "journal_mode", "wal").unwrap();
    database
        .execute_batch(
            "CREATE TABLE migrations (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP) STRICT",
        )
        .unwrap();
    for migration in &MIGRATIONS[..migrations] {
        database.execute_batch(migration.sql).unwrap_or_else(|error| panic!("{}: {error}", migration.name));
        database.execute("INSERT INTO migrations (name) VALUES (?1)", [migration.name]).unwrap();
        // A row is written once, by the version that could first write it: later migrations find it.
        if let Some((_, rows)) = ROWS.iter().find(|(name, _)| *name == migration.name) {
            database
                .execute_batch(rows)
                .unwrap_or_else(|error| panic!("rows of {}: {error}", migration.name));
        }
        if migration.name == MIGRATIONS[0].name {
            database
                .execute(
                    "INSERT INTO api_keys (id, workspace_id, name, hash, hint, created_at)
                     VALUES ('key_01', 'ws_01', 'first', ?1, ?2, 1700000000000)",
                    [key().sha256_hex(), key().hint()],
                )
                .unwrap();
        }
    }
}

/// What a client reads, whatever version wrote it.
fn read(client: &mut Client, has_calls: bool) {
    let one = |client: &mut Client, path: &str| client.expect(200, "GET", path, None);
    assert_eq!(one(client, "/workspace")["name"], "Bakery");
    let assistant = one(client, "/assistants/asst_01");
    assert_eq!(
        (&assistant["name"], &assistant["first_message"], &assistant["revision"]),
        (&json!("Desk"), &json!("Blue Door, hello."), &json!(3))
    );
    assert_eq!(
        (&assistant["tool_ids"], &assistant["knowledge_ids"]),
        (&json!(["tool_01"]), &json!(["doc_01"]))
    );
    assert_eq!(one(client, "/knowledge/doc_01")["content"], "We open at nine.");
    for (path, name) in [
        ("/tools", "look_up"),
        ("/simulations/personas", "Ada"),
        ("/simulations/scenarios", "Hours"),
        ("/simulations", "Hours"),
    ] {
        assert_eq!(one(client, path)[0]["name"], name, "{path}");
    }
    assert_eq!(one(client, "/webhooks")[0]["url"], "https://hooks.example/");
    assert_eq!(one(client, "/numbers")[0]["number"], "+14155550100");
    assert_eq!(one(client, "/keys")[0]["id"], "key_01");
    let run = one(client, "/simulations/runs/run_01");
    assert_eq!(
        (&run["status"], &run["passed"], &run["seed"]),
        (&json!("completed"), &json!(true), &json!(7))
    );
    if has_calls {
        let call = one(client, "/calls/call_01");
        assert_eq!((&call["status"], &call["outcome"]), (&json!("ended"), &json!("completed")), "{call}");
        assert_eq!(call["transcript"][0]["text"], "Do you have sourdough?");
        // The second is found by a word that was said: an entry of the text index before 0017, which the sweep moves.
        for path in ["/calls", "/calls?search=sourdough"] {
            assert_eq!(one(client, path)["calls"].as_array().map(Vec::len), Some(1), "{path}");
        }
        assert_eq!(one(client, "/calls?search=rye")["calls"], json!([]));
    }
}

/// One upgrade with the binary.
fn upgrade(folder: &Path, migrations: usize) {
    let newest = MIGRATIONS[migrations - 1].name;
    earlier(folder, migrations);
    // Forty folders with a reserve each would take gigabytes.
    let server = Server::start(folder, &[("SIDETONE_RESERVE_MB", "0")]);
    let mut client = server.connect(key().as_str());
    read(&mut client, number(newest) >= 2);
    // It takes changes, and the old rows go with them.
    let changed = client.expect(200, "PATCH", "/assistants/asst_01", Some(&json!({"name": "Front desk"})));
    assert_eq!((&changed["name"], &changed["revision"]), (&json!("Front desk"), &json!(4)), "{newest}");
    client.expect(201, "POST", "/assistants", Some(&json!({"name": "New", "instructions": "Be kind."})));
    assert!(!server.log().contains("ERROR"), "{newest}: {}", server.log());
    assert!(server.stop().success(), "{newest}");
    let checked = answered(&process::run(folder, &[("SIDETONE_RESERVE_MB", "0")], &["check"]));
    assert!(checked.contains("the database is sound"), "{newest}: {checked}");
    std::fs::remove_dir_all(folder).unwrap();
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
    read(&mut client, true);
    let assistants: Value = client.expect(200, "GET", "/assistants", None);
    assert_eq!(assistants.as_array().map(Vec::len), Some(1), "what was written since is not there");
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
    answered(&export(&["--take-back"]));
    client.expect(201, "POST", "/assistants", Some(&desk));
    answered(&export(&[&file("third.move")]));
    assert!(server.stop().success());
}
