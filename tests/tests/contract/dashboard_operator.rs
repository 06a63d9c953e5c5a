//! The operator's key: a link to sign in, by one request, where there is no command line.
use std::sync::Arc;

use http::Method;
use serde_json::json;
use sidetone::sandbox::memory;
use sidetone_engine::sql;
use sidetone_tests::host::{host, shards};
use sidetone_tests::process::bootstrap_key;
use sidetone_tests::visitor::{Visitor, text};
use sidetone_tests::{Reply, World};

const OPERATOR: &str = "/dashboard/sign-in/operator";
const LINK: &str = "/dashboard/sign-in/link";

/// A service with an operator's key, and the key.
fn service() -> (World, String) {
    let key = bootstrap_key(4_000_000);
    (World::of_its_own(&[("SIDETONE_OPERATOR_KEY", &key)]), key)
}

fn ask(world: &World, key: &str) -> Reply {
    let authorization = format!("Bearer {key}");
    let headers = [("authorization", authorization.as_str())];
    Visitor::new(world).send(Method::POST, OPERATOR, &headers, "".into()).sound()
}

/// The path of the link in an answer.
fn path_of(reply: &Reply) -> String {
    assert_eq!(reply.status, 201, "{reply:?}");
    let url = reply["url"].as_str().expect("a link");
    url.strip_prefix(sidetone_tests::world::BASE_URL).expect("a link to this service").to_owned()
}

fn use_link(world: &World, path: &str) -> Visitor {
    let mut operator = Visitor::new(world);
    let token = path.split("token=").nth(1).unwrap();
    let reply = operator.submit(path, LINK, &[("token", token)]);
    assert_eq!((reply.status, reply.header("location")), (303, Some("/dashboard")), "{reply:?}");
    operator
}

#[test]
fn the_operators_key_makes_a_link_that_signs_in_once() {
    let (world, key) = service();
    // Also when others have accounts already.
    Visitor::signed_in(&world, "anna@operator.example");
    let first = path_of(&ask(&world, &key));
    let page = text(&Visitor::new(&world).get(&first));
    assert!(page.contains("as the operator"), "{page}");
    let mut operator = use_link(&world, &first);
    assert!(text(&operator.get("/dashboard")).contains("operator"));
    let own = operator.get("/dashboard/api/workspace").json;
    assert_eq!(Visitor::new(&world).get(&first).status, 401, "once");
    // Signed out, the operator comes back to the same workspace.
    assert_eq!(operator.submit("/dashboard", "/dashboard/sign-out", &[]).status, 303);
    let replaced = path_of(&ask(&world, &key));
    let second = path_of(&ask(&world, &key));
    assert_eq!(Visitor::new(&world).get(&replaced).status, 401, "a later link replaces it");
    assert_eq!(use_link(&world, &second).get("/dashboard/api/workspace").json, own);
    world.logged("made a sign-in link");
    // Each use of a link is in the workspace's audit log.
    let mut again = use_link(&world, &path_of(&ask(&world, &key)));
    let log = again.get("/dashboard/api/audit").json;
    let used = log.as_array().unwrap().iter().filter(|entry| entry["operation"] == "use_operator_link");
    let used: Vec<_> = used.map(|entry| entry["actor_name"].clone()).collect();
    assert_eq!(used, vec![json!("operator"); 3], "{log}");
    assert!(!world.log().contains(second.split("token=").nth(1).unwrap()), "but not the link");
}

/// The first workspace is the operator's only as long as nobody is a member of it.
#[test]
fn the_operator_joins_no_workspace_of_others() {
    // The service begins with a workspace, and its first member is the operator: nobody else comes in without an invitation.
    let (world, key) = service();
    let mut operator = use_link(&world, &path_of(&ask(&world, &key)));
    // A service under test on a host has keys of many workspaces, so there the first one is not this one. Nor is it where
    // there are several databases: people are in the first.
    if host() == "sandbox" && shards() < 2 {
        assert_eq!(operator.workspace(), world.get("/workspace").ok()["id"]);
    }
    // He hands it over and leaves.
    let link = operator.invite("anna@operator.example", "admin");
    let mut anna = Visitor::signed_in(&world, "anna@operator.example");
    assert_eq!(anna.join(&link), 303);
    let id = anna.account_of("operator");
    assert_eq!(anna.act("remove_person", "/dashboard/people", &[("id", &id)]).status, 303);
    // Then it is hers: his next link leads to a workspace of his own.
    let mut again = use_link(&world, &path_of(&ask(&world, &key)));
    assert_ne!(again.workspace(), anna.workspace());
    let people = text(&anna.get("/dashboard/people"));
    assert!(!people.contains("<strong>operator"), "{people}");
    let log = anna.get("/dashboard/api/audit").json;
    let used = log.as_array().unwrap().iter().filter(|entry| entry["operation"] == "use_operator_link");
    assert_eq!(used.count(), 1, "only his first link is of her workspace");
}

/// Once the first workspace has moved away, no other one is the first: the next may be that of a customer who only uses keys.
#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "writes to the database in memory")]
fn the_operator_joins_no_other_workspace_when_the_first_has_moved_away() {
    let moved = "INSERT INTO moves (workspace_id, id, state, lock, schema, file_key, began_at, changed_at)
        VALUES (:id, 'exp_1', 'released', 2, '', '', 0, 0)";
    // When it comes back, its secrets have a salt.
    let returned = "UPDATE workspaces SET secret_salt = 'a salt' WHERE id = :id";
    for away in [moved, returned] {
        // People are in the first database: there is one.
        let key = bootstrap_key(4_000_000);
        let world = World::over_with(Arc::new(memory()), &[("SIDETONE_OPERATOR_KEY", &key)]);
        let beta = world.with_key(&world.sandbox().unwrap().create_workspace("Beta"));
        let others = [&world, &beta].map(|one| one.get("/workspace").ok()["id"].clone());
        world.write(vec![sql!(away, id = &world.workspace_id())]);
        let own = use_link(&world, &path_of(&ask(&world, &key))).workspace();
        assert!(!others.contains(&json!(own)), "{own}: {others:?}");
    }
}

#[test]
fn nothing_else_makes_a_link() {
    let (world, key) = service();
    let mut visitor = Visitor::signed_in(&world, "ben@operator.example");
    let absent = visitor.send(Method::POST, OPERATOR, &[], "".into()).sound();
    assert_eq!((absent.status, absent.code()), (401, "unauthorized"), "a session does not");
    assert_eq!(ask(&world, world.key()).sound().code(), "unauthorized", "an API key does not");
    assert_eq!(ask(&world, &key[..key.len() - 1]).sound().code(), "unauthorized");
    let authorization = format!("Bearer {key}");
    let headers = [("authorization", authorization.as_str())];
    assert_eq!(visitor.send(Method::GET, OPERATOR, &headers, "".into()).status, 404, "a read does not");
    // And the operator's key is no API key.
    world.with_key(&key).get("/workspace").refused("unauthorized");
    // Wrong keys are counted by address, as those of the API are.
    let wrong = format!("Bearer {}", bootstrap_key(4_000_001));
    let mut guesser = Visitor::new(&world);
    let mut guess = || guesser.send(Method::POST, OPERATOR, &[("authorization", &wrong)], "".into()).status;
    let statuses: Vec<u16> = (0..11).map(|_| guess()).collect();
    assert_eq!(statuses, [vec![401; 10], vec![429]].concat());
    assert_eq!(ask(&world, &key).status, 201, "others are not affected");
}

#[test]
fn without_the_setting_there_is_no_such_link() {
    let world = World::new();
    let reply = ask(&world, &bootstrap_key(4_000_000));
    assert_eq!((reply.status, reply.code()), (404, "not_found"), "{reply:?}");
    assert!(reply["error"]["message"].as_str().unwrap().contains("SIDETONE_OPERATOR_KEY"), "{reply:?}");
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn the_link_is_good_for_ten_minutes() {
    let (world, key) = service();
    let sandbox = world.sandbox().unwrap();
    let reply = ask(&world, &key);
    assert_eq!(reply["expires_at"], json!("2026-01-01T00:10:00.000Z"));
    let path = path_of(&reply);
    sandbox.advance(600_000);
    assert_eq!(Visitor::new(&world).get(&path).status, 401);
    let path = path_of(&ask(&world, &key));
    sandbox.advance(599_999);
    use_link(&world, &path);
}
