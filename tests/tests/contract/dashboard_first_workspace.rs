//! A person without a workspace gets one, however many requests ask for it at once.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use sidetone::database::Memory;
use sidetone::sandbox::memory;
use sidetone_engine::ports::statement::{Rows, Statement};
use sidetone_engine::ports::{BoxFuture, Database, DatabaseError};
use sidetone_tests::World;
use sidetone_tests::visitor::{Visitor, text};

const PEOPLE: &str = "/dashboard/people";

fn address(name: &str) -> String {
    format!("{name}-{}@workspaces.example", std::process::id())
}

/// A database in which the first two reads with a certain text are answered at the same time.
struct Meeting {
    memory: Memory,
    text: &'static str,
    /// Reads that still wait for each other.
    left: AtomicUsize,
    both: Barrier,
}

impl Meeting {
    fn world(text: &'static str) -> (World, Arc<Self>) {
        let left = AtomicUsize::new(0);
        let database = Arc::new(Self { memory: memory(), text, left, both: Barrier::new(2) });
        (World::over(database.clone()), database)
    }

    fn arm(&self) {
        self.left.store(2, Ordering::SeqCst);
    }
}

impl Database for Meeting {
    fn read(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        let is_met = batch.iter().any(|statement| statement.sql.contains(self.text));
        Box::pin(async move {
            let rows = self.memory.read(batch).await;
            let take = |left: usize| left.checked_sub(1);
            if is_met && self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok() {
                self.both.wait();
            }
            rows
        })
    }

    fn write(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        self.memory.write(batch)
    }
}

/// Somebody who has left their only workspace to another person: two browsers of theirs.
fn without_workspace(world: &World, name: &str) -> (Visitor, Visitor) {
    let (email, heirs) = (address(name), address(&format!("{name}-heir")));
    let (mut desk, phone) = (Visitor::signed_in(world, &email), Visitor::signed_in(world, &email));
    let link = desk.invite(&heirs, "admin");
    assert_eq!(Visitor::signed_in(world, &heirs).join(&link), 303);
    let id = desk.account_of(&email);
    assert_eq!(desk.act("remove_person", PEOPLE, &[("id", &id)]).status, 303);
    (desk, phone)
}

#[test]
fn two_requests_at_once_make_one_workspace_for_a_person_without_one() {
    let (world, database) = Meeting::world("LEFT JOIN memberships");
    let (mut desk, mut phone) = without_workspace(&world, "gone");
    database.arm();
    let (one, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| phone.workspace());
        (desk.workspace(), other.join().expect("an answer"))
    });
    assert_eq!(database.left.load(Ordering::SeqCst), 0, "both saw that there is none");
    assert_eq!(one, other);
    assert!(!text(&desk.get("/dashboard/sessions")).contains("Your workspaces"), "there is one");
}

#[test]
fn two_sign_ins_at_once_make_one_workspace_for_a_person_without_one() {
    let (world, database) = Meeting::world("FROM accounts AS a JOIN memberships");
    without_workspace(&world, "again");
    let codes = ["one", "other"].map(|_| {
        let mut visitor = Visitor::new(&world);
        let code = visitor.ask_for_code(&address("again"));
        (visitor, code)
    });
    database.arm();
    let found: Vec<String> = std::thread::scope(|scope| {
        let sign_ins = codes.map(|(mut visitor, code)| {
            scope.spawn(move || {
                let page = "/dashboard/sign-in/code";
                assert_eq!(visitor.submit(page, page, &[("code", &code)]).status, 303);
                visitor.workspace()
            })
        });
        sign_ins.map(|one| one.join().expect("an answer")).into()
    });
    assert_eq!(database.left.load(Ordering::SeqCst), 0, "both saw that there is none");
    assert_eq!(found[0], found[1]);
}
