//! Files of a move that somebody has made up: more than a workspace can have, and what would be another one's later.
use sidetone_engine::base::ids::{Id as _, WorkspaceId};
use sidetone_engine::base::limits::WEBHOOKS_MAX;
use sidetone_engine::ports::statement::Value;
use sidetone_engine::storage::moves::part::{Head, Part};
use sidetone_engine::storage::workspace_rows::{Page, Table};

use crate::arriving::{File, Target, reason};
use crate::cluster::Cluster;
use crate::crafted_files::{Crafted, has_rows, text};
use crate::frozen::rows;
use crate::handing_over::source;

fn place(table: &str, column: &str) -> usize {
    Table::named(table).unwrap().carried().position(|one| one.name == column).unwrap()
}

fn page(table: &str, rows: Vec<Vec<Value>>) -> Page {
    Page { table: table.to_owned(), rows, next: None }
}

/// The first webhook of a file.
fn webhook(file: &File) -> Vec<Value> {
    let mut pages = file.parts.iter().flat_map(|part| part.pages().unwrap());
    pages.find(|page| page.table == "webhooks" && !page.rows.is_empty()).unwrap().rows.remove(0)
}

/// Each event goes to all of them.
#[test]
fn a_file_has_no_more_webhooks_than_a_workspace_can_have() {
    let crafted = Crafted::new();
    let (id, to) = (&crafted.id, &crafted.to);
    let like = webhook(&crafted.file);
    let part = |all: std::ops::Range<i64>| {
        let row = |n: i64| {
            let mut row = like.clone();
            row[place("webhooks", "id")] = text(&format!("hook_{n:026}"));
            row
        };
        Part::of_pages(&[page("webhooks", all.map(row).collect())], None)
    };
    to.receive(id, 1, &part(0..200)).unwrap();
    let refused = to.receive(id, 2, &part(200..WEBHOOKS_MAX + 1)).unwrap_err();
    assert!(refused.message.contains("more than 250 rows of webhooks"), "{}", refused.message);
    to.receive(id, 2, &part(200..WEBHOOKS_MAX)).unwrap();
}

/// The end of the id marks the words of a workspace in the text index: all searches of both would read the entries of both.
#[test]
fn an_id_that_ends_as_that_of_another_workspace_does_not_come_in() {
    let crafted = Crafted::new();
    let end = &crafted.neighbour[crafted.neighbour.len() - 8..];
    let id = WorkspaceId::from_stored(format!("ws_01kas3v8hq4x7m2n5p{end}"));
    let head = Head { workspace_id: id.clone(), ..crafted.file.head.clone() };
    assert_eq!(reason(crafted.to.begin(&head)), "id_taken");
    assert!(crafted.to.left(&id).is_empty());
}

/// A job of a webhook that is not here yet would be the only one that the webhook can have.
#[test]
fn only_jobs_of_what_the_workspace_has_come_back() {
    let from = Cluster::new(1);
    let (_, id, services) = source(&from);
    let mut file = File::of(&services, &id);
    let own = webhook(&file)[place("webhooks", "id")].clone();
    for part in file.parts.iter_mut().filter(|part| has_rows(part, "jobs_away")) {
        let mut pages = part.pages().unwrap();
        pages.iter_mut().filter(|page| page.table == "jobs_away").for_each(|page| page.rows.clear());
        *part = Part::of_pages(&pages, part.head.next.clone());
    }
    let job = |n: usize, kind: &str, subject: Value| {
        let numbers = [(); 3].map(|()| Value::Number(0.0));
        let texts = [text(&id), text(&format!("job_{n:026}")), text(kind), subject];
        texts.into_iter().chain(numbers).collect::<Vec<Value>>()
    };
    let jobs = vec![
        job(1, "webhook_delivery", text("hook_01kas3v8hq4x7m2n5p6r9t0w1z")),
        job(2, "webhook_delivery", own.clone()),
        job(3, "simulation_run", text("run_01kas3v8hq4x7m2n5p6r9t0w1z")),
    ];
    let next = file.parts[0].head.next.clone();
    file.parts.insert(1, Part::of_pages(&[page("jobs_away", jobs)], next));
    file.parts.pop();
    let file = file.with_end();
    let to = Target::new();
    to.take(&file, &services);
    let there = rows(&to.cluster.shards, &id);
    let subjects: Vec<&Value> = there["jobs"].iter().map(|row| &row[place("jobs", "subject_id")]).collect();
    assert_eq!(subjects, [&own]);
    assert!(there["jobs_away"].is_empty());
}
