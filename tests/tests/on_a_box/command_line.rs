//! Commands on workspaces and keys, beside a service that runs.
use serde_json::{Value, json};
use sidetone_tests::process::{self, Folder, Server};

use crate::said::{answered, key_in, place, refused};

#[test]
fn every_command_names_its_folder_and_the_server_on_it() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let server = Server::start(&data, &[]);
    let (path, target) = (data.display().to_string(), folder.path().join("copy").display().to_string());
    assert!(server.welcome().contains(&path), "{}", server.welcome());
    let commands: [&[&str]; 7] = [
        &["workspace", "create", "Second"],
        &["workspace", "list"],
        &["workspace", "limits", "Second"],
        &["key", "list"],
        &["sign-in-link"],
        &["check"],
        &["backup", &target],
    ];
    for arguments in commands {
        let said = place(&process::run(&data, &[], arguments));
        assert!(said.contains(&path), "{said}");
        assert!(said.contains(&format!("process {} serves it", server.pid())), "{said}");
    }
    assert!(server.stop().success());
    for arguments in [&["key", "list"][..], &["secrets", "accept"]] {
        let said = place(&process::run(&data, &[], arguments));
        assert!(said.contains(&path) && said.contains("no service runs on it"), "{said}");
    }
    let restored = folder.path().join("restored");
    let said = place(&process::run(&restored, &[], &["restore", &target]));
    assert!(said.contains(&restored.display().to_string()), "{said}");
}

#[test]
fn commands_that_look_do_not_keep_a_server_from_starting() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    assert!(Server::start(&data, &[]).stop().success());
    let looking = std::thread::spawn({
        let data = data.clone();
        move || (0..20).for_each(|_| drop(answered(&process::run(&data, &[], &["key", "list"]))))
    });
    for _ in 0..5 {
        assert!(Server::start(&data, &[]).stop().success());
    }
    looking.join().expect("every command works");
}

#[test]
fn workspaces_are_listed_renamed_and_limited() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let server = Server::start(&data, &[]);
    let run = |arguments: &[&str]| process::run(&data, &[], arguments);
    let key = key_in(&answered(&run(&["workspace", "create", "Shop"])));
    let listed = answered(&run(&["workspace", "list", "--json"]));
    let listed: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let named =
        |workspaces: &[Value]| -> Vec<Value> { workspaces.iter().map(|one| one["name"].clone()).collect() };
    assert_eq!(named(&listed), [json!("default"), json!("Shop")]);
    assert_eq!(listed[1]["keys"], 1);
    let plain = answered(&run(&["workspace", "list"]));
    assert!(plain.lines().count() == 2 && plain.contains("Shop") && !plain.contains(&key), "{plain}");

    answered(&run(&["workspace", "rename", "Shop", "Bakery"]));
    let changed = run(&[
        "workspace",
        "limits",
        "Bakery",
        "--json",
        "--calls-at-once",
        "7",
        "--monthly-spend-limit-microusd",
        "5000000",
        "--call-retention-days",
        "30",
    ]);
    let changed: Value = serde_json::from_str(&answered(&changed)).expect("JSON");
    let mut client = server.connect(&key);
    let seen = client.expect(200, "GET", "/workspace", None);
    assert_eq!(changed, seen, "the API says the same");
    let limits = |seen: &Value| {
        ["name", "calls_at_once", "monthly_spend_limit_microusd", "call_retention_days"]
            .map(|name| seen[name].clone())
    };
    assert_eq!(limits(&seen), [json!("Bakery"), json!(7), json!(5_000_000), json!(30)]);
    let plain = answered(&run(&["workspace", "limits", "Bakery", "--call-retention-days", "none"]));
    assert!(plain.contains("call_retention_days") && plain.contains("none"), "{plain}");
    assert_eq!(client.expect(200, "GET", "/workspace", None)["call_retention_days"], Value::Null);

    // Who did that is in the audit log.
    let entries = client.expect(200, "GET", "/audit", None);
    let entries: Vec<_> =
        entries.as_array().unwrap().iter().map(|one| (&one["operation"], &one["actor"])).collect();
    assert_eq!(entries, vec![(&json!("update_workspace"), &json!("operator")); 3]);

    // What the API refuses is refused here, too, and changes nothing.
    let line =
        refused(&run(&["workspace", "limits", "Bakery", "--calls-at-once", "0", "--runs-at-once", "0"]));
    assert!(line.contains("calls_at_once") && line.contains("runs_at_once"), "{line}");
    assert!(refused(&run(&["workspace", "rename", "Bakery", ""])).contains("name"));
    assert!(refused(&run(&["workspace", "rename", "Nobody", "x"])).contains("Nobody"));
    answered(&run(&["workspace", "create", "Bakery"]));
    let line = refused(&run(&["workspace", "limits", "Bakery", "--calls-at-once", "9"]));
    assert!(line.contains("several are named `Bakery`, such as ws_") && line.contains(" and ws_"), "{line}");
    assert_eq!(client.expect(200, "GET", "/workspace", None)["calls_at_once"], 7);
    assert!(server.stop().success());
}

#[test]
fn keys_are_listed_and_revoked_and_never_printed() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let server = Server::start(&data, &[]);
    let run = |arguments: &[&str]| process::run(&data, &[], arguments);
    let create = || key_in(&answered(&run(&["key", "create", "--workspace", "default"])));
    let keys = [key_in(server.welcome()), create(), create(), create()];
    answered(&run(&["workspace", "create", "Other"]));
    let listed = answered(&run(&["key", "list", "--workspace", "default", "--json"]));
    let listed: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(listed.len(), 4);
    let plain = answered(&run(&["key", "list"]));
    assert_eq!(plain.lines().count(), 5, "of all workspaces: {plain}");
    for key in &keys {
        assert!(!plain.contains(key.as_str()) && plain.contains(&key[key.len() - 4..]), "{plain}");
    }
    let id = |key: &str| -> String {
        let entry = listed.iter().find(|one| one["hint"].as_str().unwrap().ends_with(&key[key.len() - 4..]));
        entry.expect("the key is listed")["id"].as_str().unwrap().to_owned()
    };

    // By its last four characters, by its id, and as a whole, which is not repeated.
    let ways = [keys[1][keys[1].len() - 4..].to_owned(), id(&keys[2]), keys[3].clone()];
    for (key, named) in keys[1..].iter().zip(&ways) {
        server.connect(key).expect(200, "GET", "/assistants", None);
        let output = run(&["key", "revoke", named]);
        let said = answered(&output) + &String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(&id(key)) && !said.contains(key.as_str()), "{said}");
        server.connect(key).expect(401, "GET", "/assistants", None);
        let again = refused(&run(&["key", "revoke", named]));
        assert!(again.contains("sidetone key list") && !again.contains(key.as_str()), "{again}");
    }
    let mut first = server.connect(&keys[0]);
    let audit = first.expect(200, "GET", "/audit", None);
    let last = |nth: usize| [&audit[nth]["operation"], &audit[nth]["actor_name"]];
    assert_eq!(last(0), ["revoke_api_key", "command line"]);
    assert_eq!(last(3), ["create_api_key", "command line"], "after the three keys were created: {audit}");
    assert_eq!(answered(&run(&["key", "list", "--workspace", "default"])).lines().count(), 1);
    assert!(server.stop().success());
}

#[test]
fn the_version_says_what_it_was_built_of() {
    let folder = Folder::new();
    for argument in ["--version", "-V"] {
        let line = answered(&process::run(&folder.path().join("data"), &[], &[argument]));
        let (version, rest) = line.trim().split_once(" (commit ").expect("a commit");
        assert_eq!(version, format!("sidetone {}", env!("CARGO_PKG_VERSION")));
        let (commit, schema) = rest.trim_end_matches(')').split_once(", schema ").expect("a schema");
        assert!(commit == "unknown" || commit.len() == 12, "{line}");
        let newest = sidetone_engine::storage::migrations::MIGRATIONS.last().expect("migrations");
        assert_eq!(format!("{schema}.sql"), newest.name);
    }
    assert!(!folder.path().join("data").exists());
}
