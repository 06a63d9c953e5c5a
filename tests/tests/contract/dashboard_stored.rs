//! What opens something is stored as a hash: who reads the database, or a copy of it, can sign in nowhere.
use std::collections::BTreeMap;

use serde_json::json;
use sidetone::sandbox::block_on;
use sidetone_engine::base::hash::sha256_hex;
use sidetone_engine::ports::Database;
use sidetone_engine::ports::statement::{Statement, Value};
use sidetone_tests::World;
use sidetone_tests::visitor::{Visitor, key_in, text};

/// Every text in the databases, by table and column.
fn stored(world: &World) -> BTreeMap<String, Vec<String>> {
    let mut texts = BTreeMap::new();
    for services in world.sandbox().expect("the databases can be read").services().on_every_shard() {
        add_stored(&*services.ports().database, &mut texts);
    }
    texts
}

fn add_stored(database: &dyn Database, texts: &mut BTreeMap<String, Vec<String>>) {
    let read = |sql: String| {
        let statement = Statement { sql: sql.into(), params: Vec::new() };
        block_on(database.read(vec![statement])).expect("it can be read").remove(0)
    };
    let tables =
        read("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'".to_owned());
    for table in tables.iter().map(|row| row.text("name").expect("a name")) {
        let columns = read(format!("SELECT name FROM pragma_table_info('{table}') WHERE type <> 'BLOB'"));
        let columns: Vec<String> = columns.iter().map(|row| row.text("name").expect("a name")).collect();
        let rows = read(format!("SELECT {} FROM {table}", columns.join(", ")));
        for values in &rows.values {
            for (column, value) in rows.columns.iter().zip(values) {
                if let Value::Text(text) = value {
                    texts.entry(format!("{table}.{column}")).or_default().push(text.clone());
                }
            }
        }
    }
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "reads the database in memory")]
fn what_opens_something_is_stored_as_a_hash() {
    let world = World::with_manual_clock();
    let email = "anna@stored.example";
    // Waits for a code: neither the code nor the link is used yet.
    let mut asker = Visitor::new(&world);
    let code = asker.ask_for_code(email);
    let link = asker.link_of(email);
    let operator = block_on(world.sandbox().unwrap().engine().start("tests")).unwrap().sign_in_link;
    let mut visitor = Visitor::signed_in(&world, email);
    // Sent with the field that makes a repetition answer as the first time did.
    let fields = [("name", "CI"), ("_once", "one rendered form")];
    let made = visitor.act("create_api_key", "/dashboard/keys", &fields);
    let key = key_in(&text(&made)).to_owned();
    let invitation = visitor.invite("ben@stored.example", "member");
    let api = world.with_key(&key);
    let tool = api.post("/tools", json!({"name": "find_slot", "url": "https://tools.example/x"})).created();
    let desk = api.post("/assistants", json!({"name": "Desk", "instructions": "Be kind."})).created();
    let test_token = api.test_token(desk["id"].as_str().unwrap());
    let token = |link: &str| link.split("token=").nth(1).expect("a token").to_owned();
    let secrets = BTreeMap::from([
        ("session", visitor.cookies["sidetone_session"].clone()),
        ("visit", asker.cookies["sidetone_visit"].clone()),
        ("link to sign in", token(&link)),
        ("link of the operator", token(&operator.expect("nobody had an account"))),
        ("invitation", token(&invitation)),
        ("key made in the dashboard", key.clone()),
        ("key of the service", world.key().to_owned()),
        ("signing secret of a tool", tool["signing_secret"].as_str().unwrap().to_owned()),
        ("token to talk", test_token["token"].as_str().unwrap().to_owned()),
    ]);
    let stored = stored(&world);
    let all = || stored.iter().flat_map(|(place, texts)| texts.iter().map(move |text| (place, text)));
    assert!(stored.len() > 30, "the tables were read: {:?}", stored.keys());
    for (name, secret) in &secrets {
        assert!(secret.len() >= 32, "{name}: {secret}");
        for (place, text) in all() {
            assert!(!text.contains(secret.as_str()), "the {name} is in {place}: {text}");
        }
    }
    for (place, text) in all() {
        assert_ne!(*text, code, "the code is in {place}");
        // The hash of six digits alone would be found by trying all of them.
        assert_ne!(*text, sha256_hex(code.as_bytes()), "a hash that tells the code is in {place}");
    }
    // They are known by their hashes.
    for (name, place) in [
        ("session", "sessions.hash"),
        ("visit", "sign_ins.visit_hash"),
        ("link to sign in", "sign_ins.link_hash"),
        ("link of the operator", "sign_ins.link_hash"),
        ("invitation", "invitations.hash"),
        ("key made in the dashboard", "api_keys.hash"),
        ("key of the service", "api_keys.hash"),
    ] {
        let hash = sha256_hex(secrets[name].as_bytes());
        assert!(stored.get(place).is_some_and(|texts| texts.contains(&hash)), "the {name} is not in {place}");
    }
}
