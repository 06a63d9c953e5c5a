//! The page of the audit log names what was changed, and reads no more than it shows.
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use sidetone::database::Memory;
use sidetone::sandbox::memory;
use sidetone_engine::ports::statement::{Rows, Statement};
use sidetone_engine::ports::{BoxFuture, Database, DatabaseError};
use sidetone_tests::World;
use sidetone_tests::visitor::{Visitor, text};

/// A database that counts the rows which it reads out.
struct Counting {
    memory: Memory,
    /// Of each batch: how many statements, how many rows.
    read: Mutex<Vec<(usize, usize)>>,
}

impl Counting {
    fn taken(&self) -> Vec<(usize, usize)> {
        std::mem::take(&mut *self.read.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Database for Counting {
    fn read(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        Box::pin(async move {
            let rows = self.memory.read(batch).await?;
            let count = rows.iter().map(|rows| rows.values.len()).sum();
            self.read.lock().unwrap_or_else(PoisonError::into_inner).push((rows.len(), count));
            Ok(rows)
        })
    }

    fn write(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        self.memory.write(batch)
    }
}

#[test]
fn the_log_reads_the_names_of_what_it_shows_and_no_others() {
    let database = Arc::new(Counting { memory: memory(), read: Mutex::default() });
    let world = World::over(database.clone());
    let mut anna = Visitor::signed_in(&world, "anna@audit.example");
    let api = anna.api(&world);
    for n in 0..40 {
        api.post("/assistants", json!({"name": format!("Desk {n}"), "instructions": "Be kind."})).created();
        api.post("/tools", json!({"name": format!("tool_{n}"), "url": "https://tools.example/x"})).created();
    }
    let persona = json!({"name": "Hurried parent", "system_prompt": "You have one minute."});
    api.post("/simulations/personas", persona).created();
    let scenario =
        json!({"name": "Saturday", "instructions": "Ask \"When do you open?\"", "evaluations": []});
    api.post("/simulations/scenarios", scenario).created();
    api.post("/knowledge", json!({"name": "Prices", "content": "A crown costs 600."})).created();
    let hook = json!({"url": "https://hooks.example/events", "events": ["call.ended"]});
    api.post("/webhooks", hook).created();
    anna.invite("ben@audit.example", "member");
    database.taken();
    let page = text(&anna.get("/dashboard/audit?limit=8"));
    let read = database.taken();
    for name in [
        "Hurried parent",
        "Saturday",
        "Prices",
        "https://hooks.example/events",
        "ben@audit.example",
        "Desk 39",
        "tool_39",
    ] {
        assert!(page.contains(&format!(">{name}</a>")), "{name}: {page}");
    }
    assert!(
        !page.contains("Desk 3<") && !page.contains("Desk 38"),
        "only what the entries are about: {page}"
    );
    // The session, the entries and one that says whether there are more: each in one batch.
    let rows: usize = read.iter().map(|(_, rows)| rows).sum();
    assert!(rows <= 25 && read.len() <= 5, "{read:?}");
}

/// What was renamed or deleted keeps the name in the log that it had, and what did not happen is not in it.
#[test]
fn the_log_keeps_the_names_of_what_is_gone() {
    let world = World::new();
    let mut anna = Visitor::signed_in(&world, "anna@gone.example");
    let api = anna.api(&world);
    let tool = json!({"name": "book_table", "url": "https://tools.example/x"});
    let id = api.post("/tools", tool).created().json["id"].as_str().unwrap().to_owned();
    api.patch(format!("/tools/{id}"), json!({"name": "book_room"})).ok();
    api.delete(format!("/tools/{id}")).empty();
    api.delete(format!("/tools/{id}")).refused("not_found");
    let entries = api.get("/audit?limit=3").ok().json;
    let told: Vec<_> = entries
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            let part = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
            (part("operation"), part("subject_name"), part("subject") == id)
        })
        .collect();
    let expected =
        [("delete_tool", "book_room"), ("update_tool", "book_table"), ("create_tool", "book_table")];
    let expected: Vec<_> = expected
        .iter()
        .map(|(operation, name)| ((*operation).to_owned(), (*name).to_owned(), true))
        .collect();
    assert_eq!(told, expected, "{entries}");
    let page = text(&anna.get("/dashboard/audit?limit=2"));
    assert!(
        page.contains(&format!("<span title=\"{id}\" dir=\"auto\">book_room</span>")),
        "no link to what is gone: {page}"
    );
}
