//! Snapshots of the interfaces that clients depend on, so that changes appear in review.
use std::path::PathBuf;

use serde_json::{Value, json};
use sidetone_tests::World;

#[test]
fn openapi() {
    let document = World::new().get("/openapi.json").ok().json;
    matches_file("openapi.json", &pretty(&document));
}

#[test]
fn tools() {
    let reply = World::new().mcp(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).ok();
    matches_file("tools.json", &pretty(&reply["result"]));
}

#[test]
fn schema() {
    matches_file("schema.sql", &sidetone::sandbox::memory().schema().unwrap());
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap() + "\n"
}

fn matches_file(name: &str, text: &str) {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "contract", "snapshots", name].iter().collect();
    if std::env::var_os("SIDETONE_UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    if stored != text {
        let at = stored.lines().zip(text.lines()).position(|(old, new)| old != new);
        let at = at.unwrap_or_else(|| stored.lines().count().min(text.lines().count()));
        panic!(
            "snapshots/{name} differs from what is served, first in line {}:\n- {}\n+ {}\n\
             If that is meant, run the suite with SIDETONE_UPDATE_SNAPSHOTS=1 and commit the file.",
            at + 1,
            stored.lines().nth(at).unwrap_or("(end)"),
            text.lines().nth(at).unwrap_or("(end)"),
        );
    }
}
