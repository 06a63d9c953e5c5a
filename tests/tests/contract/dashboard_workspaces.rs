//! A person with several workspaces: forms act where they were made.
use http::Method;
use serde_json::json;
use sidetone_tests::World;
use sidetone_tests::visitor::{Visitor, text};

const PEOPLE: &str = "/dashboard/people";
const KEYS: &str = "/dashboard/keys";

fn address(name: &str) -> String {
    format!("{name}-{}@workspaces.example", std::process::id())
}

fn assistants(visitor: &mut Visitor) -> usize {
    visitor.get("/dashboard/api/assistants").json.as_array().map_or(0, Vec::len)
}

/// Anna, whose first tab shows her own workspace, and whose second one has opened Ben's. With the proof of the first.
fn two_tabs(world: &World, name: &str) -> (Visitor, Visitor, String) {
    let (email, other) = (address(name), address(&format!("{name}-host")));
    let mut anna = Visitor::signed_in(world, &email);
    let mut ben = Visitor::signed_in(world, &other);
    assert_eq!(anna.act("update_workspace", KEYS, &[("name", "Anna & Co")]).status, 303);
    assert_eq!(ben.act("update_workspace", KEYS, &[("name", "Ben's")]).status, 303);
    let first_tab = anna.csrf(KEYS);
    let link = ben.invite(&email, "admin");
    assert_eq!(anna.join(&link), 303);
    (anna, ben, first_tab)
}

#[test]
fn a_form_acts_in_the_workspace_that_it_was_made_in() {
    let world = World::new();
    let (mut anna, _, first_tab) = two_tabs(&world, "tabs");
    let theirs = anna.workspace();
    let back = "/dashboard/assistants/new?note=a%26b";
    let fields =
        [("_csrf", first_tab.as_str()), ("_back", back), ("name", "Desk"), ("instructions", "Be kind.")];
    let refused = anna.post("/dashboard/do/create_assistant", &fields);
    let page = text(&refused);
    assert!(refused.status == 409 && page.contains("other_workspace"), "{page}");
    assert!(
        page.contains("Anna &amp; Co") && page.contains("Ben's") && page.contains("Nothing was done"),
        "{page}"
    );
    assert_eq!((assistants(&mut anna), anna.workspace()), (0, theirs.clone()), "nothing was done");
    // The page offers to open the form's workspace, with the page of the form; there it is good again.
    let value = |name: &str| {
        let at = page.split(&format!("name=\"{name}\" value=\"")).nth(1).expect("a field");
        at.split('"').next().unwrap().replace("&amp;", "&")
    };
    let (csrf, id, then) = (value("_csrf"), value("id"), value("_then"));
    let fields_of_page = [("_csrf", csrf.as_str()), ("id", id.as_str()), ("_then", then.as_str())];
    let opened = anna.post("/dashboard/do/switch_workspace", &fields_of_page);
    let to = "/dashboard/assistants/new?note=a%26b&done=switch_workspace";
    assert_eq!((opened.status, opened.header("location")), (303, Some(to)));
    assert_eq!(anna.workspace(), id);
    assert_eq!(anna.post("/dashboard/do/create_assistant", &fields).status, 303);
    assert_eq!(assistants(&mut anna), 1);
    // The second tab's is refused now.
    let fields = [("_csrf", csrf.as_str()), ("name", "x")];
    assert_eq!(anna.post("/dashboard/do/create_api_key", &fields).status, 409);
    // A proof is not made to fit another workspace.
    let (_, proof) = csrf.split_once('.').unwrap();
    let forged = format!("{id}.{proof}");
    assert_eq!(anna.post("/dashboard/do/create_api_key", &[("_csrf", &forged), ("name", "x")]).status, 403);
    assert_eq!(anna.get("/dashboard/api/keys").json, json!([]));
}

#[test]
fn nobody_leaves_a_workspace_by_a_form_of_another() {
    let world = World::new();
    let (mut anna, mut ben, first_tab) = two_tabs(&world, "leaves");
    let email = address("leaves");
    let id = ben.account_of(&email);
    for (form, fields) in [
        ("remove_person", vec![("id", id.as_str())]),
        ("set_role", vec![("id", id.as_str()), ("role", "member")]),
        ("invite_person", vec![("email", "c@workspaces.example"), ("role", "member")]),
        ("withdraw_invitation", vec![("id", "inv_x")]),
        ("simulate_caller", vec![("id", "asst_x")]),
        ("delete_assistant", vec![("id", "asst_x")]),
    ] {
        let fields = [&[("_csrf", first_tab.as_str())], fields.as_slice()].concat();
        assert_eq!(anna.post(&format!("/dashboard/do/{form}"), &fields).status, 409, "{form}");
    }
    assert_eq!(ben.account_of(&email), id, "still a member");
    // What is about the person is the same in every workspace.
    let fields = [("_csrf", first_tab.as_str()), ("id", "sess_x")];
    assert_eq!(anna.post("/dashboard/do/revoke_session", &fields).status, 404);
    // Of a workspace that somebody was removed from, no name is told.
    let second_tab = anna.csrf(KEYS);
    assert_eq!(ben.act("remove_person", PEOPLE, &[("id", &id)]).status, 303);
    let reply = anna.post("/dashboard/do/create_api_key", &[("_csrf", &second_tab), ("name", "x")]);
    let page = text(&reply);
    assert!(reply.status == 409 && page.contains("no longer a member") && !page.contains("Ben's"), "{page}");
    assert_eq!(anna.post("/dashboard/sign-out", &[("_csrf", &second_tab)]).status, 303);
    assert_eq!(anna.get(KEYS).status, 303, "signed out");
}

#[test]
fn the_live_parts_of_a_page_act_in_its_workspace() {
    let world = World::new();
    let (mut anna, _, first_tab) = two_tabs(&world, "live");
    let body = json!({"name": "Desk", "instructions": "Be kind."}).to_string();
    let headers = [("content-type", "application/json"), ("x-csrf-token", first_tab.as_str())];
    let path = "/dashboard/api/assistants";
    let reply = anna.send(Method::POST, path, &headers, body.clone().into()).sound();
    assert_eq!((reply.status, reply.code()), (409, "other_workspace"));
    assert_eq!(anna.send(Method::GET, path, &headers, "".into()).sound().code(), "other_workspace");
    assert_eq!(assistants(&mut anna), 0, "reads that name no page are of the open workspace");
    let second_tab = anna.csrf(KEYS);
    let headers = [headers[0], ("x-csrf-token", second_tab.as_str())];
    assert_eq!(anna.send(Method::POST, path, &headers, body.into()).status, 201);
    assert_eq!(anna.send(Method::GET, path, &headers, "".into()).status, 200);
}
