//! The drill of an operator: fill, back up, kill, lose the folder, restore, check. Every acknowledged row, signing secret
//! and recording is there.
#![allow(missing_docs, clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test")]
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bytes::Bytes;
use serde_json::{Value, json};
use sidetone_tests::process::{self, Client, Folder, Server, bootstrap_key};
use sidetone_tests::wire;

/// Lists that have all there is.
const READS: [&str; 9] = [
    "/assistants",
    "/tools",
    "/knowledge",
    "/webhooks",
    "/calls",
    "/simulations/runs",
    "/keys",
    "/workspace",
    "/events",
];

struct Filled {
    key: String,
    reads: Vec<Value>,
    tool: Value,
    recording: Bytes,
    recording_path: String,
}

fn tool() -> Value {
    json!({"name": "look_up", "url": "https://tools.example/look_up"})
}

/// Something of everything; what is read afterwards.
fn fill(server: &Server, key: &str) -> Filled {
    let mut client = server.connect(key);
    let made = client.send("POST", "/tools", &[("idempotency-key", "one")], Some(&tool())).unwrap();
    assert_eq!(made.status, 201);
    let document = json!({"name": "Hours", "content": "We open at nine."});
    client.expect(201, "POST", "/knowledge", Some(&document));
    let webhook = json!({"url": "https://hooks.example/", "events": ["webhook.test"]});
    client.expect(201, "POST", "/webhooks", Some(&webhook));
    let recording_path = record(&mut client);
    let recording = bytes_of(server, key, &recording_path);
    Filled { key: key.to_owned(), reads: reads(&mut client), tool: made.json, recording, recording_path }
}

/// A service that has run on this folder and made a recording.
fn run_and_record(data: &Path) {
    let key = bootstrap_key(1);
    let server = Server::start(data, &settings(&key));
    record(&mut server.connect(&key));
    assert!(server.stop().success());
}

/// A spoken run; the path of its recording.
fn record(client: &mut Client) -> String {
    let body = json!({
        "assistant": {"name": "Desk", "instructions": "Be kind.", "first_message": "Blue Door Dental, hello."},
        "persona": {"name": "Ada", "system_prompt": "Brief."},
        "scenario": {"name": "Hours", "instructions": "Ask when they open."},
        "mode": "voice",
    });
    let run = client.expect(201, "POST", "/simulations/runs/inline", Some(&body));
    let id = run["runs"][0]["id"].as_str().expect("a run").to_owned();
    for _ in 0..20 {
        let run = client.expect(200, "GET", &format!("/simulations/runs/{id}?wait_seconds=5"), None);
        if run["status"] == "completed" && !run["call"]["recording"].is_null() {
            return format!("/calls/{}/recording", run["call_id"].as_str().unwrap());
        }
    }
    panic!("the run does not end");
}

fn bytes_of(server: &Server, key: &str, path: &str) -> Bytes {
    let request =
        http::Request::get(path).header("host", "localhost").header("authorization", format!("Bearer {key}"));
    let reply = wire::send(server.address(), &request.body(Bytes::new()).unwrap()).unwrap();
    assert_eq!(reply.status, 200, "{path}");
    reply.body
}

fn reads(client: &mut Client) -> Vec<Value> {
    READS.iter().map(|path| client.expect(200, "GET", path, None)).collect()
}

/// Each start has another port, and links are to be the same.
fn settings(key: &str) -> [(&str, &str); 2] {
    [("SIDETONE_BOOTSTRAP_KEYS", key), ("SIDETONE_BASE_URL", "https://voice.example.com")]
}

/// A list or a thing without the times of the last use: these a read changes.
fn without_use(read: &Value) -> Value {
    let mut read = read.clone();
    for row in read.as_array_mut().into_iter().flatten() {
        if let Some(fields) = row.as_object_mut() {
            fields.remove("last_used_at");
        }
    }
    read
}

/// Everything that was acknowledged is there.
fn expect_all(data: &Path, filled: &Filled) {
    let server = Server::start(data, &settings(&filled.key));
    let mut client = server.connect(&filled.key);
    for (path, (was, is)) in READS.iter().zip(filled.reads.iter().zip(reads(&mut client))) {
        assert_eq!(without_use(was), without_use(&is), "{path}");
    }
    let again = client.send("POST", "/tools", &[("idempotency-key", "one")], Some(&tool())).unwrap();
    assert_eq!(again.json, filled.tool, "the signing secret is derived again");
    assert!(bytes_of(&server, &filled.key, &filled.recording_path) == filled.recording);
    assert!(server.stop().success());
    let report = said(&process::run(data, &[], &["check"]));
    assert!(report.lines().count() == 3 && report.lines().all(|line| line.starts_with("ok ")), "{report}");
}

/// What a command printed; it must succeed.
#[track_caller]
fn said(output: &std::process::Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    out.into_owned()
}

/// Why a command failed, in one line.
#[track_caller]
fn refused(output: &std::process::Output) -> String {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    error.lines().last().unwrap_or_default().to_owned()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn a_lost_folder_is_restored_in_full() {
    let folder = Folder::new();
    let at = |name: &str| folder.path().join(name);
    let (data, copy, archive) = (at("data"), at("copy"), at("copy.tar"));
    let key = bootstrap_key(1);
    let server = Server::start(&data, &settings(&key));
    record(&mut server.connect(&key));
    let first = said(&process::run(&data, &[], &["backup", text(&copy)]));
    let filled = fill(&server, &key);
    // While the service runs; only what is new is copied.
    let second = said(&process::run(&data, &[], &["backup", text(&copy)]));
    let files = |said: &str, words: &str| {
        let before = said.split(words).next().unwrap().rsplit([' ', '(']).next().unwrap().to_owned();
        before.parse::<u32>().unwrap_or_else(|_| panic!("{said}"))
    };
    let (old, new) = (files(&first, " new"), files(&second, " new"));
    assert!(old > 0 && new > 0, "{first}{second}");
    assert_eq!(files(&second, " files of"), old + new, "{second}");
    let third = said(&process::run(&data, &[], &["backup", text(&copy)]));
    assert_eq!((files(&third, " new"), files(&third, " removed")), (0, 0), "{third}");
    said(&process::run(&data, &[], &["backup", text(&archive)]));
    server.kill();
    fs::remove_dir_all(&data).unwrap();

    for backup in [&copy, &archive] {
        said(&process::run(&data, &[], &["restore", text(backup)]));
        expect_all(&data, &filled);
        let error = refused(&process::run(&data, &[], &["restore", text(backup)]));
        assert!(error.contains("is not empty") && error.contains("SIDETONE_DATA"), "{error}");
        fs::remove_dir_all(&data).unwrap();
    }
}

/// Whoever forgets to stop the service first loses nothing that was acknowledged, and is told.
#[test]
fn a_service_whose_folder_is_replaced_acknowledges_nothing_and_ends() {
    let folder = Folder::new();
    let (data, copy) = (folder.path().join("data"), folder.path().join("copy"));
    let key = bootstrap_key(1);
    let mut server = Server::start(&data, &settings(&key));
    let mut client = server.connect(&key);
    let desk = json!({"name": "Desk", "instructions": "Be kind."});
    let made = client.expect(201, "POST", "/assistants", Some(&desk));
    said(&process::run(&data, &[], &["backup", text(&copy)]));
    let mut is_refused = || {
        // It may have ended already.
        if let Ok(answer) = client.send("POST", "/assistants", &[], Some(&desk)) {
            assert_eq!((answer.status, &answer["error"]["code"]), (503, &json!("unavailable")));
        }
    };
    fs::remove_dir_all(&data).unwrap();
    is_refused();
    said(&process::run(&data, &[], &["restore", text(&copy)]));
    is_refused();
    assert_eq!(server.wait().code(), Some(1));
    let log = server.log();
    let told =
        log.lines().find(|line| line.contains("ERROR") && line.contains("was removed or replaced while"));
    let told = told.unwrap_or_else(|| panic!("it does not say why: {log}"));
    assert!(told.contains(text(&data.join("sidetone.db"))) && told.contains("start it again"), "{told}");

    let again = Server::start(&data, &settings(&key));
    let all = again.connect(&key).expect(200, "GET", "/assistants", None);
    assert_eq!((all.as_array().map(Vec::len), &all[0]["id"]), (Some(1), &made["id"]), "{all}");
}

#[test]
fn what_is_deleted_leaves_the_backup() {
    let folder = Folder::new();
    let (data, copy) = (folder.path().join("data"), folder.path().join("copy"));
    let key = bootstrap_key(1);
    let server = Server::start(&data, &settings(&key));
    let mut client = server.connect(&key);
    let path = record(&mut client);
    said(&process::run(&data, &[], &["backup", text(&copy)]));
    client.expect(204, "DELETE", path.strip_suffix("/recording").unwrap(), None);
    let again = said(&process::run(&data, &[], &["backup", text(&copy)]));
    assert!(again.contains(" 0 files of recordings") && !again.contains("0 removed"), "{again}");
}

#[test]
fn a_backup_that_is_not_whole_is_refused() {
    let folder = Folder::new();
    let at = |name: &str| folder.path().join(name);
    let (data, copy, target) = (at("data"), at("copy"), at("target"));
    let key = bootstrap_key(1);
    let settings = [("SIDETONE_BOOTSTRAP_KEYS", key.as_str())];
    let server = Server::start(&data, &settings);
    record(&mut server.connect(&key));
    assert!(server.stop().success());
    said(&process::run(&data, &[], &["backup", text(&copy)]));
    let restore = |change: &dyn Fn(&Path)| {
        let changed = at("changed");
        copy_folder(&copy, &changed);
        change(&changed);
        let error = refused(&process::run(&target, &[], &["restore", text(&changed)]));
        assert!(!target.exists() && !at("target.restoring").exists(), "nothing is left: {error}");
        fs::remove_dir_all(&changed).unwrap();
        error
    };
    let manifest = |folder: &Path| folder.join("backup.json");
    for (words, change) in [
        (
            "is not complete",
            &(|folder: &Path| {
                let text = fs::read_to_string(manifest(folder)).unwrap();
                fs::write(manifest(folder), text.replace("\"complete\": true", "\"complete\": false"))
                    .unwrap();
            }) as &dyn Fn(&Path),
        ),
        ("is not a backup", &|folder| fs::remove_file(manifest(folder)).unwrap()),
        ("no server secret", &|folder| fs::remove_file(folder.join("secret")).unwrap()),
        ("is not the one", &|folder| fs::write(folder.join("secret"), "another secret of a server").unwrap()),
        ("is damaged", &|folder| {
            let mut bytes = fs::read(folder.join("sidetone.db")).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle..middle + 8_192].fill(0x5a);
            fs::write(folder.join("sidetone.db"), bytes).unwrap();
        }),
        ("changed or cut off", &|folder| fs::remove_dir_all(folder.join("recordings")).unwrap()),
        ("-wal", &|folder| fs::write(folder.join("sidetone.db-wal"), "changes").unwrap()),
        ("newer Sidetone", &|folder| {
            let database = rusqlite::Connection::open(folder.join("sidetone.db")).unwrap();
            database.execute("INSERT INTO migrations (name) VALUES ('9999_later.sql')", []).unwrap();
        }),
    ] {
        let error = restore(change);
        assert!(error.contains(words), "{words}: {error}");
    }
    // A secret that is only a setting is no obstacle where it is set.
    let secret = fs::read_to_string(copy.join("secret")).unwrap();
    fs::remove_file(copy.join("secret")).unwrap();
    said(&process::run(&target, &[("SIDETONE_SECRET", secret.trim())], &["restore", text(&copy)]));

    let error = refused(&process::run(&at("nowhere"), &[], &["backup", text(&at("other"))]));
    assert!(error.contains("does not exist"), "{error}");
    fs::create_dir(at("full")).unwrap();
    fs::write(at("full").join("thesis.txt"), "mine").unwrap();
    let error = refused(&process::run(&data, &[], &["backup", text(&at("full"))]));
    assert!(error.contains("no backup.json"), "{error}");
    assert_eq!(fs::read_to_string(at("full").join("thesis.txt")).unwrap(), "mine");
}

#[test]
fn a_check_names_what_is_wrong() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let key = bootstrap_key(1);
    let server = Server::start(&data, &settings(&key));
    let path = record(&mut server.connect(&key));
    // Also while it runs.
    said(&process::run(&data, &[], &["check"]));
    let call = path.split('/').nth(2).unwrap();
    let workspace = fs::read_dir(data.join("recordings")).unwrap().next().unwrap().unwrap().path();
    let segment = fs::read_dir(workspace).unwrap().next().unwrap().unwrap().path();
    fs::write(&segment, [0; 10]).unwrap();
    fs::write(data.join("notes.txt"), "mine").unwrap();
    let output = process::run(&data, &[], &["check"]);
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    refused(&output);
    assert!(report.contains(&format!("PROBLEM  the recording of {call}")), "{report}");
    assert!(report.contains("has 10 bytes instead of") && report.contains("notes.txt"), "{report}");
}

/// SQLite leaves a hole in files above 1 GiB, and some file systems make holes of silence.
#[test]
fn a_file_with_a_hole_is_restored_from_an_archive() {
    let folder = Folder::new();
    let (data, archive) = (folder.path().join("data"), folder.path().join("copy.tar"));
    let key = bootstrap_key(1);
    let server = Server::start(&data, &[("SIDETONE_BOOTSTRAP_KEYS", key.as_str())]);
    record(&mut server.connect(&key));
    assert!(server.stop().success());
    let recording = first_segment(&data);
    fs::write(&recording, [7; 10]).unwrap();
    fs::File::options().write(true).open(&recording).unwrap().set_len(1 << 20).unwrap();
    said(&process::run(&data, &[], &["backup", text(&archive)]));
    fs::remove_dir_all(&data).unwrap();
    said(&process::run(&data, &[], &["restore", text(&archive)]));
    assert_eq!(fs::metadata(&recording).unwrap().len(), 1 << 20);
}

#[test]
fn a_database_with_a_log_beside_it_is_no_backup() {
    let folder = Folder::new();
    let (data, copy) = (folder.path().join("data"), folder.path().join("copied.db"));
    let key = bootstrap_key(1);
    let server = Server::start(&data, &[("SIDETONE_BOOTSTRAP_KEYS", key.as_str())]);
    assert!(server.stop().success());
    fs::copy(data.join("sidetone.db"), &copy).unwrap();
    fs::write(folder.path().join("copied.db-wal"), "changes").unwrap();
    let target = folder.path().join("target");
    let error = refused(&process::run(&target, &[], &["restore", text(&copy)]));
    assert!(error.contains("-wal") && !target.exists(), "{error}");
}

#[test]
fn what_the_data_folder_has_lost_stays_in_the_backup() {
    let folder = Folder::new();
    let (data, copy) = (folder.path().join("data"), folder.path().join("copy"));
    let key = bootstrap_key(1);
    let server = Server::start(&data, &settings(&key));
    let filled = fill(&server, &key);
    said(&process::run(&data, &[], &["backup", text(&copy)]));
    fs::remove_dir_all(data.join("recordings")).unwrap();
    let again = said(&process::run(&data, &[], &["backup", text(&copy)]));
    assert!(again.contains(" 0 removed"), "{again}");
    server.kill();
    fs::remove_dir_all(&data).unwrap();
    said(&process::run(&data, &[], &["restore", text(&copy)]));
    expect_all(&data, &filled);
}

#[test]
fn a_backup_that_fails_leaves_the_earlier_one_whole() {
    let folder = Folder::new();
    let at = |name: &str| folder.path().join(name);
    let key = bootstrap_key(1);
    let server = Server::start(&at("data"), &settings(&key));
    record(&mut server.connect(&key));
    said(&process::run(&at("data"), &[], &["backup", text(&at("copy"))]));
    // Nothing can be written there.
    fs::create_dir(at("copy").join("sidetone.db.next.part")).unwrap();
    refused(&process::run(&at("data"), &[], &["backup", text(&at("copy"))]));
    said(&process::run(&at("new"), &[], &["restore", text(&at("copy"))]));
}

#[test]
fn an_earlier_backup_keeps_the_secret_and_what_was_cut_short() {
    let folder = Folder::new();
    let at = |name: &str| folder.path().join(name);
    let (data, copy) = (at("data"), at("copy"));
    run_and_record(&data);
    said(&process::run(&data, &[], &["backup", text(&copy)]));
    let (secret, segment) = (fs::read(data.join("secret")).unwrap(), first_segment(&data));
    let whole = fs::read(&segment).unwrap();
    assert!(whole.len() > 100);

    fs::remove_file(data.join("secret")).unwrap();
    fs::write(&segment, &whole[..100]).unwrap();
    let output = process::run(&data, &[], &["backup", text(&copy)]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said(&output).contains("the server secret, "), "{told}");
    assert!(told.contains("the server secret is missing") && told.contains("1 file that"), "{told}");
    assert_eq!(fs::read(copy.join("secret")).unwrap(), secret);
    assert_eq!(fs::read(first_segment(&copy)).unwrap(), whole);

    // Whoever started it with the secret of another one would have a backup that nobody can use.
    for wrong in ["", "the secret of another server"] {
        fs::write(data.join("secret"), wrong).unwrap();
        for target in ["copy", "new", "new.tar"] {
            let error = refused(&process::run(&data, &[], &["backup", text(&at(target))]));
            assert!(error.contains("is not the server secret that the database was used with"), "{error}");
        }
        assert_eq!(fs::read(copy.join("secret")).unwrap(), secret);
        assert!(!at("new.tar").exists() && !copy.join("sidetone.db.next").exists());
        said(&process::run(&data, &[], &["backup", text(&at("alone.db"))]));
        fs::remove_file(at("alone.db")).unwrap();
    }
    // As a setting it takes the place of the file.
    let setting = String::from_utf8(secret.clone()).unwrap();
    let setting = [("SIDETONE_SECRET", setting.trim())];
    assert!(said(&process::run(&data, &setting, &["backup", text(&at("set"))])).contains("no server secret"));
    assert!(!at("set").join("secret").exists());
    fs::remove_file(data.join("secret")).unwrap();
    let again = said(&process::run(&data, &setting, &["backup", text(&copy)]));
    assert!(again.contains("no server secret") && !copy.join("secret").exists(), "{again}");
    fs::write(data.join("secret"), &secret).unwrap();
    said(&process::run(&data, &[], &["backup", text(&copy)]));
    said(&process::run(&at("restored"), &[], &["restore", text(&copy)]));
    said(&process::run(&at("restored"), &[], &["check"]));
}

/// As when the disk of the service is not mounted: it starts with a new database, and the nightly backup comes.
#[test]
fn a_backup_of_another_database_stays() {
    let folder = Folder::new();
    let at = |name: &str| folder.path().join(name);
    run_and_record(&at("data"));
    said(&process::run(&at("data"), &[], &["backup", text(&at("copy"))]));
    let before = fs::read(at("copy").join("sidetone.db")).unwrap();
    assert!(Server::start(&at("unmounted"), &[]).stop().success());
    let error = refused(&process::run(&at("unmounted"), &[], &["backup", text(&at("copy"))]));
    assert!(error.contains("is a backup of another database"), "{error}");
    assert!(!at("copy").join("sidetone.db.next").exists());
    assert!(
        fs::read(at("copy").join("sidetone.db")).unwrap() == before && first_segment(&at("copy")).exists()
    );
    said(&process::run(&at("data"), &[], &["backup", text(&at("copy"))]));
    said(&process::run(&at("new"), &[], &["restore", text(&at("copy"))]));
}

#[test]
fn of_a_damaged_database_there_is_no_backup() {
    let folder = Folder::new();
    let at = |name: &str| folder.path().join(name);
    let (data, copy) = (at("data"), at("copy"));
    run_and_record(&data);
    said(&process::run(&data, &[], &["backup", text(&copy)]));
    let before = fs::read(copy.join("sidetone.db")).unwrap();

    // An index that does not know of a change.
    let open = || rusqlite::Connection::open(data.join("sidetone.db")).unwrap();
    let hidden = open();
    hidden.execute_batch("PRAGMA writable_schema = ON").unwrap();
    let root: i64 = hidden
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'calls_by_cost'", [], |row| row.get(0))
        .unwrap();
    let sql: String = hidden
        .query_row("SELECT sql FROM sqlite_schema WHERE name = 'calls_by_cost'", [], |row| row.get(0))
        .unwrap();
    hidden.execute("DELETE FROM sqlite_schema WHERE name = 'calls_by_cost'", []).unwrap();
    drop(hidden);
    let changed = open();
    assert_eq!(changed.execute("UPDATE calls SET cost_microusd = 77", []).unwrap(), 1);
    changed.execute_batch("PRAGMA writable_schema = ON").unwrap();
    let row = rusqlite::params![root, sql];
    let insert = "INSERT INTO sqlite_schema VALUES ('index', 'calls_by_cost', 'calls', ?1, ?2)";
    changed.execute(insert, row).unwrap();
    drop(changed);

    let is_refused = || {
        for target in ["copy", "new.tar", "new.db"] {
            let error = refused(&process::run(&data, &[], &["backup", text(&at(target))]));
            assert!(error.contains("is damaged") && error.contains(text(&data)), "{error}");
        }
    };
    is_refused();
    open().execute_batch("REINDEX").unwrap();
    said(&process::run(&data, &[], &["backup", text(&at("sound.db"))]));
    // As the command line of SQLite deletes it.
    let deleting = open();
    deleting.execute_batch("PRAGMA foreign_keys = OFF; DELETE FROM workspaces").unwrap();
    drop(deleting);
    is_refused();
    assert!(!at("new.tar").exists() && !at("new.db").exists() && !copy.join("sidetone.db.next").exists());
    assert!(fs::read(copy.join("sidetone.db")).unwrap() == before);
    said(&process::run(&at("restored"), &[], &["restore", text(&copy)]));
}

/// The rows of a later recording are not in the database that was copied before it.
#[test]
fn a_recording_that_no_row_names_is_not_restored() {
    let folder = Folder::new();
    let (data, copy) = (folder.path().join("data"), folder.path().join("copy"));
    run_and_record(&data);
    let segment = first_segment(&data);
    let recording = segment.file_name().unwrap().to_str().unwrap().strip_suffix(".0.pcm").unwrap().to_owned();
    let stray = segment.with_file_name(format!("{}.0.pcm", other_id(&recording)));
    let further = segment.with_file_name(format!("{recording}.99.pcm"));
    let foreign = segment.with_file_name("call_01.rec_01.0.pcm");
    for copy in [&stray, &further, &foreign] {
        fs::copy(&segment, copy).unwrap();
    }
    said(&process::run(&data, &[], &["backup", text(&copy)]));
    fs::remove_dir_all(&data).unwrap();
    said(&process::run(&data, &[], &["restore", text(&copy)]));
    assert!(segment.exists() && !stray.exists() && !further.exists());
    assert!(foreign.exists(), "the service has not made it");
}

/// As after a restore of the newest database beside recordings and transcripts of an earlier night.
#[test]
fn what_no_row_names_is_found_and_removed() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let key = bootstrap_key(1);
    let server = Server::start(&data, &settings(&key));
    let mut client = server.connect(&key);
    (0..3).for_each(|_| drop(record(&mut client)));
    drop(client);
    assert!(server.stop().success());

    let database = rusqlite::Connection::open(data.join("sidetone.db")).unwrap();
    let mut select = database.prepare("SELECT id FROM recordings ORDER BY id").unwrap();
    let ids: Vec<String> = select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    drop(select);
    let [erased, writing, ready] = &ids[..] else { panic!("{ids:?}") };
    let erase = "UPDATE recordings SET state = 'deleted', due_at = NULL WHERE id = ?1";
    database.execute(erase, [erased]).unwrap();
    // Its last segment is stored and not counted yet.
    let write = "UPDATE recordings SET state = 'writing', segments = segments - 1 WHERE id = ?1";
    database.execute(write, [writing]).unwrap();
    // Its transcript is being archived.
    let archive = "UPDATE call_transcripts SET archive_bytes = 0 WHERE seq = (SELECT min(seq) FROM calls)";
    assert_eq!(database.execute(archive, []).unwrap(), 1);
    let call: String = database
        .query_row("SELECT workspace_id || '/' || id FROM calls ORDER BY seq LIMIT 1", [], |row| row.get(0))
        .unwrap();
    drop(database);
    let transcripts = data.join("transcripts");
    let named = transcripts.join(format!("{call}.json"));
    let stray = transcripts.join(format!("{}.json", other_id(&call)));
    let foreign = named.with_file_name("summary.json");
    fs::create_dir_all(named.parent().unwrap()).unwrap();
    fs::set_permissions(&transcripts, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(&named, "{}").unwrap();
    fs::write(&stray, "{}").unwrap();
    fs::write(&foreign, "{}").unwrap();
    let workspace = first_segment(&data).parent().unwrap().to_owned();
    let segments = |id: &str| {
        let files = fs::read_dir(&workspace).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|file| text(file).contains(id)).count()
    };
    let before = [segments(writing), segments(ready)];
    assert!(segments(erased) > 0 && before.iter().all(|count| *count > 0), "{before:?}");

    let unnamed = format!("{} files", segments(erased) + 1);
    let output = process::run(&data, &[], &["check"]);
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(refused(&output).contains("2 problems in"), "{report}");
    assert!(report.contains("summary.json in the data folder is not the service's"), "{report}");
    assert!(report.contains(&format!("no row of the database names {unnamed}")), "{report}");
    assert!(report.contains(erased.as_str()) && !report.contains(writing.as_str()), "{report}");
    assert!(stray.exists() && segments(erased) > 0, "a check changes nothing");

    let output = process::run(&data, &[], &["check", "--remove-unnamed"]);
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = refused(&output);
    assert!(error.contains(&format!("{unnamed} (")) && error.contains("--remove-unnamed --yes"), "{error}");
    assert!(report.contains("unnamed  recordings/") && report.contains(erased.as_str()), "{report}");
    assert!(!report.contains("summary.json") && !report.contains(writing.as_str()), "{report}");
    assert!(stray.exists() && segments(erased) > 0, "without --yes it changes nothing");

    let output = process::run(&data, &[], &["check", "--remove-unnamed", "--yes"]);
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(refused(&output).contains("1 problem in"), "{report}");
    assert!(report.contains(&format!("removed  {unnamed} (")), "{report}");
    assert!(!stray.exists() && segments(erased) == 0, "{report}");
    assert!(named.exists() && [segments(writing), segments(ready)] == before, "{report}");
    assert!(foreign.exists(), "the service has not made it");
    fs::remove_file(foreign).unwrap();
    said(&process::run(&data, &[], &["check"]));
    let report = said(&process::run(&data, &[], &["check", "--remove-unnamed"]));
    assert!(report.starts_with("ok       nothing is to be removed: "), "{report}");
    assert!(!report.contains("removed  "), "{report}");
}

/// A service writes files, and a database that is new names none.
#[test]
fn nothing_is_removed_beside_a_service_or_a_new_database() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let key = bootstrap_key(1);
    let remove = |yes: Option<&str>| {
        let arguments: Vec<&str> = ["check", "--remove-unnamed"].into_iter().chain(yes).collect();
        process::run(&data, &[], &arguments)
    };
    let server = Server::start(&data, &settings(&key));
    record(&mut server.connect(&key));
    for yes in [None, Some("--yes")] {
        let error = refused(&remove(yes));
        assert!(error.contains("only while no service runs") && error.ends_with("stop it first"), "{error}");
    }
    assert!(server.stop().success());

    let segment = first_segment(&data);
    let database = rusqlite::Connection::open(data.join("sidetone.db")).unwrap();
    database.execute("UPDATE recordings SET state = 'deleted', due_at = NULL", []).unwrap();
    drop(database);
    let output = remove(None);
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(refused(&output).contains("make sure first"), "{report}");
    assert!(report.contains("warning  that is more than half of the"), "{report}");

    for name in ["sidetone.db", "sidetone.db-wal", "sidetone.db-shm"] {
        let file = data.join(name);
        assert!(!file.exists() || fs::remove_file(file).is_ok());
    }
    for yes in [None, Some("--yes")] {
        let error = refused(&remove(yes));
        assert!(error.contains("the database is missing or empty"), "{error}");
    }
    // A new database is made only where nothing is left of the old one.
    let (recordings, aside) = (data.join("recordings"), folder.path().join("aside"));
    fs::rename(&recordings, &aside).unwrap();
    assert!(Server::start(&data, &settings(&key)).stop().success());
    let _ = fs::remove_dir(&recordings);
    fs::rename(&aside, &recordings).unwrap();
    for yes in [None, Some("--yes")] {
        let error = refused(&remove(yes));
        assert!(error.contains("the database has no calls"), "{error}");
    }
    assert!(segment.exists());
    let error = refused(&process::run(&data, &[], &["check", "--yes"]));
    assert!(!error.is_empty() && segment.exists(), "{error}");
}

/// A copy from a moment before brings back what the service has not noted as removed yet.
#[test]
fn what_was_deleted_a_moment_ago_is_found_and_removed() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let key = bootstrap_key(1);
    let server = Server::start(&data, &settings(&key));
    let mut client = server.connect(&key);
    let paths = [record(&mut client), record(&mut client), record(&mut client)];
    let [recording, call, kept] = paths.each_ref().map(|path| path.split('/').nth(2).unwrap());
    let workspace = first_segment(&data).parent().unwrap().to_owned();
    let entries = fs::read_dir(&workspace).unwrap().map(|entry| entry.unwrap().path());
    let copies: Vec<_> = entries.map(|file| (fs::read(&file).unwrap(), file)).collect();
    let left = || copies.iter().filter(|(_, file)| file.exists()).count();
    let of_kept = copies.iter().filter(|(_, file)| text(file).contains(kept)).count();
    client.expect(204, "DELETE", &paths[0], None);
    client.expect(204, "DELETE", &format!("/calls/{call}"), None);
    drop(client);
    assert!(server.stop().success());
    assert!(of_kept > 0 && left() == of_kept, "the service has removed the others");

    // As if the transcript of the call had been archived.
    let workspace_id = workspace.file_name().unwrap().to_str().unwrap();
    let transcripts = data.join("transcripts");
    let transcript = transcripts.join(workspace_id).join(format!("{call}.json"));
    let database = rusqlite::Connection::open(data.join("sidetone.db")).unwrap();
    let mark = "INSERT INTO archives_to_remove (call_id, workspace_id, due_at) VALUES (?1, ?2, 0)";
    database.execute(mark, [call, workspace_id]).unwrap();
    let due = "SELECT count(*) FROM recordings WHERE due_at IS NOT NULL";
    assert_eq!(database.query_row(due, [], |row| row.get::<_, i64>(0)).unwrap(), 2);
    drop(database);
    copies.iter().for_each(|(bytes, file)| fs::write(file, bytes).unwrap());
    fs::create_dir_all(transcript.parent().unwrap()).unwrap();
    fs::set_permissions(&transcripts, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(&transcript, "{}").unwrap();

    let report = said(&process::run(&data, &[], &["check"]));
    assert!(report.contains("every file belongs to the service"), "it removes them itself: {report}");
    let files = format!("{} files (", copies.len() - of_kept + 1);
    let output = process::run(&data, &[], &["check", "--remove-unnamed"]);
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = refused(&output);
    assert!(error.contains(&files) && error.contains("--remove-unnamed --yes"), "{error}");
    assert!(report.contains(recording) && report.contains(call) && !report.contains(kept), "{report}");
    assert_eq!(left(), copies.len(), "without --yes it changes nothing");
    let report = said(&process::run(&data, &[], &["check", "--remove-unnamed", "--yes"]));
    assert!(report.contains(&format!("removed  {files}")), "{report}");
    assert!(left() == of_kept && !transcript.exists(), "{report}");
    assert!(Server::start(&data, &settings(&key)).stop().success());
}

/// A check compares no files of a workspace that is moving, and says how many these are.
#[test]
fn recordings_of_a_locked_workspace_are_counted_apart() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    run_and_record(&data);
    let sound = |report: &str| report.lines().next().unwrap_or_default().to_owned();
    let report = said(&process::run(&data, &[], &["check"]));
    assert!(sound(&report).ends_with(" 1 recording"), "{report}");

    let database = rusqlite::Connection::open(data.join("sidetone.db")).unwrap();
    let lock = "INSERT INTO moves (workspace_id, id, state, lock, schema, file_key, began_at, changed_at)
        SELECT DISTINCT workspace_id, 'exp_1', 'released', 2, '', '', 0, 0 FROM recordings";
    assert_eq!(database.execute(lock, []).unwrap(), 1);
    drop(database);
    let report = said(&process::run(&data, &[], &["check"]));
    let counted = " 1 recording (1 in workspaces that a move keeps locked)";
    let left_out = "no recording was compared; 1 in workspaces that a move keeps locked was not looked at";
    assert!(sound(&report).ends_with(counted) && report.contains(left_out), "{report}");
}

#[test]
fn a_place_that_is_none_for_a_backup_is_named() {
    let folder = Folder::new();
    let at = |name: &str| folder.path().join(name);
    let data = at("data");
    assert!(Server::start(&data, &[]).stop().success());
    let backup = |target: &Path| refused(&process::run(&data, &[], &["backup", text(target)]));
    for name in ["missing/copy.tar", "missing/copy.db"] {
        let error = backup(&at(name));
        let missing = format!("the folder {} does not exist", at("missing").display());
        assert!(error.contains(&missing) && error.contains("make it"), "{error}");
    }
    fs::write(at("copy"), "mine").unwrap();
    for target in [at("copy"), at("copy").join("nightly")] {
        let error = backup(&target);
        let is_a_file = format!("{} is a file;", at("copy").display());
        assert!(error.contains(&is_a_file) && error.contains("NAME.tar"), "{error}");
    }
    assert!(!at("missing").exists() && fs::read_to_string(at("copy")).unwrap() == "mine");
}

#[test]
fn what_is_no_backup_is_named() {
    let folder = Folder::new();
    let at = |name: &str| folder.path().join(name);
    let (data, target) = (at("data"), at("target"));
    assert!(Server::start(&data, &[]).stop().success());
    said(&process::run(&data, &[], &["backup", text(&at("whole.tar"))]));
    let whole = fs::read(at("whole.tar")).unwrap();
    // The database comes first, and backup.json at the end: its head, its text, and two empty blocks.
    fs::write(at("cut.tar"), &whole[..whole.len() / 2]).unwrap();
    fs::write(at("head.tar"), &whole[..whole.len() - 4 * 512]).unwrap();
    fs::write(at("empty.tar"), "").unwrap();
    fs::write(at("text.tar"), "not an archive ".repeat(100)).unwrap();
    fs::write(at("text"), "mine").unwrap();
    fs::create_dir(at("nothing")).unwrap();
    fs::create_dir(at("folder.tar")).unwrap();
    rusqlite::Connection::open(at("none.db")).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
    let other = "CREATE TABLE migrations (name TEXT); INSERT INTO migrations VALUES ('CreateUsers')";
    rusqlite::Connection::open(at("other.db")).unwrap().execute_batch(other).unwrap();
    for (name, words) in [
        ("cut.tar", "cut off or damaged"),
        ("head.tar", "has no backup.json: it was cut off"),
        ("empty.tar", "has no backup.json: it was cut off"),
        ("text.tar", "or is not a backup"),
        ("text", "is a file, and its name ends neither in .tar"),
        ("folder.tar", "is a folder"),
        ("nothing", "has no backup.json: it is not a backup"),
        ("none.db", "is not a database of Sidetone"),
        ("other.db", "is not a database of Sidetone"),
    ] {
        let error = refused(&process::run(&target, &[], &["restore", text(&at(name))]));
        assert!(error.contains(text(&at(name))) && error.contains(words), "{name}: {error}");
        assert!(!error.contains(".restoring") && !target.exists(), "{name}: {error}");
    }
}

/// An id of the same kind, of nothing.
fn other_id(id: &str) -> String {
    let (rest, last) = id.split_at(id.len() - 1);
    format!("{rest}{}", if last == "0" { "1" } else { "0" })
}

#[test]
fn a_data_folder_is_no_place_for_its_backup() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    assert!(Server::start(&data, &[]).stop().success());
    fs::write(data.join("backup.json"), "{}").unwrap();
    for target in [data.clone(), data.join("nightly"), data.join("nightly.tar"), data.join("copy.db")] {
        let error = refused(&process::run(&data, &[], &["backup", text(&target)]));
        assert!(error.contains("is in the data folder itself"), "{error}");
    }
}

#[test]
fn a_backup_is_not_restored_while_it_is_made() {
    let folder = Folder::new();
    let at = |name: &str| folder.path().join(name);
    let (data, copy, target) = (at("data"), at("copy"), at("target"));
    assert!(Server::start(&data, &[]).stop().success());
    said(&process::run(&data, &[], &["backup", text(&copy)]));
    // As a backup locks it.
    let held = fs::File::open(&copy).unwrap();
    held.try_lock().unwrap();
    let error = refused(&process::run(&target, &[], &["restore", text(&copy)]));
    assert!(error.contains("is under way; wait for it") && !target.exists(), "{error}");
    held.unlock().unwrap();
    // As a restore does; another one may read it, too.
    held.try_lock_shared().unwrap();
    let error = refused(&process::run(&data, &[], &["backup", text(&copy)]));
    assert!(error.contains("is under way; wait for it"), "{error}");
    said(&process::run(&target, &[], &["restore", text(&copy)]));
}

#[test]
fn a_backup_cannot_speak_to_the_terminal() {
    let folder = Folder::new();
    let at = |name: &str| folder.path().join(name);
    let (data, copy) = (at("data"), at("copy"));
    assert!(Server::start(&data, &[]).stop().success());
    said(&process::run(&data, &[], &["backup", text(&copy)]));
    let manifest = fs::read_to_string(copy.join("backup.json")).unwrap();
    let changed = manifest.replace("\"made_at\": \"", "\"made_at\": \"\\u001b[2J");
    assert_ne!(changed, manifest);
    fs::write(copy.join("backup.json"), changed).unwrap();
    let done = said(&process::run(&at("target"), &[], &["restore", text(&copy)]));
    assert!(done.contains("It is as of \u{fffd}[2J"), "{done:?}");

    let database = rusqlite::Connection::open(copy.join("sidetone.db")).unwrap();
    database.execute("INSERT INTO migrations (name) VALUES ('\u{1b}[2J.sql')", []).unwrap();
    drop(database);
    let error = refused(&process::run(&at("other"), &[], &["restore", text(&copy)]));
    assert!(error.contains("it has migration \u{fffd}[2J.sql"), "{error:?}");
}

/// One that another user made would be taken for a full disk.
#[test]
fn a_command_makes_no_reserve() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    assert!(Server::start(&data, &[]).stop().success());
    fs::remove_file(data.join("reserve")).unwrap();
    said(&process::run(&data, &[], &["check"]));
    assert!(!data.join("reserve").exists());
}

/// The first segment of a recording.
fn first_segment(data: &Path) -> std::path::PathBuf {
    let workspace = fs::read_dir(data.join("recordings")).unwrap().next().unwrap().unwrap().path();
    let files = fs::read_dir(workspace).unwrap().map(|entry| entry.unwrap().path());
    files.into_iter().find(|file| text(file).ends_with(".0.pcm")).expect("a segment")
}

/// The reserve of the disk is the service's: a command beside it neither takes nor changes it.
#[test]
fn a_command_leaves_the_reserve_of_the_service_alone() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let key = bootstrap_key(1);
    let _server =
        Server::start(&data, &[("SIDETONE_BOOTSTRAP_KEYS", key.as_str()), ("SIDETONE_RESERVE_MB", "8")]);
    let bytes = || fs::metadata(data.join("reserve")).unwrap().len();
    assert_eq!(bytes(), 8 << 20);
    said(&process::run(&data, &[("SIDETONE_RESERVE_MB", "0")], &["key", "list"]));
    said(&process::run(&data, &[], &["check"]));
    assert_eq!(bytes(), 8 << 20);
}

#[test]
fn a_folder_without_a_database_is_no_service_s() {
    let folder = Folder::new();
    for command in [&["check"][..], &["key", "list"], &["backup", "copy"]] {
        let error = refused(&process::run(folder.path(), &[], command));
        assert!(error.contains("does not exist") && error.contains("SIDETONE_DATA"), "{error}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was made");
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &to.join(entry.file_name())),
            false => drop(fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}

/// As after somebody put an old database beside a newer log: a connection that writes would move the log into it.
#[test]
fn a_check_leaves_a_damaged_database_and_the_log_beside_it_alone() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let (file, log) = (data.join("sidetone.db"), data.join("sidetone.db-wal"));
    assert!(Server::start(&data, &[]).stop().success());
    let database = rusqlite::Connection::open(&file).unwrap();
    database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let number = |select: &str| {
        let number: i64 = database.query_row(select, [], |row| row.get(0)).unwrap();
        usize::try_from(number).unwrap()
    };
    let root = number("SELECT rootpage FROM sqlite_schema WHERE type = 'table' AND name = 'calls'");
    let page_bytes = number("SELECT page_size FROM pragma_page_size");
    let mut damaged = fs::read(&file).unwrap();
    damaged[(root - 1) * page_bytes..][..page_bytes].fill(0x5a);
    database.execute("INSERT INTO service_facts (name, value) VALUES ('newer', 'yes')", []).unwrap();
    let newer = fs::read(&log).unwrap();
    assert!(!newer.is_empty());
    drop(database);
    fs::write(&file, &damaged).unwrap();
    fs::write(&log, &newer).unwrap();
    fs::set_permissions(&log, fs::Permissions::from_mode(0o600)).unwrap();

    let output = process::run(&data, &[], &["check"]);
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(refused(&output).contains("1 problem in"), "{report}");
    assert!(report.starts_with("PROBLEM  the database") && report.contains("damaged"), "{report}");
    refused(&process::run(&data, &[], &["check", "--remove-unnamed", "--yes"]));
    let is_same = fs::read(&file).unwrap() == damaged && fs::read(&log).unwrap() == newer;
    assert!(is_same, "a check changes nothing");
}
