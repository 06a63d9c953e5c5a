//! People of a workspace: invitations, roles, and the audit log of what they change.
use serde_json::{Value, json};
use sidetone_engine::base::limits::INVITATIONS_SENT_MAX;
use sidetone_tests::World;
use sidetone_tests::visitor::{Visitor, text};

const PEOPLE: &str = "/dashboard/people";

fn address(name: &str) -> String {
    format!("{name}-{}@people.example", std::process::id())
}

/// Invites somebody; the path of the link.
fn invite(admin: &mut Visitor, email: &str, role: &str) -> String {
    let reply = admin.act("invite_person", PEOPLE, &[("email", email), ("role", role)]);
    assert_eq!(reply.status, 200, "{reply:?}");
    let page = text(&reply);
    let at = page.find("/dashboard/join?token=").expect("a link");
    page[at..].split('<').next().unwrap().to_owned()
}

fn join(visitor: &mut Visitor, link: &str) -> u16 {
    let token = link.split("token=").nth(1).unwrap().to_owned();
    visitor.submit("/dashboard", "/dashboard/do/join_workspace", &[("token", &token)]).status
}

fn workspace(visitor: &mut Visitor) -> String {
    visitor.get("/dashboard/api/workspace")["id"].as_str().expect("a workspace").to_owned()
}

fn id_of(visitor: &mut Visitor, email: &str) -> String {
    let page = text(&visitor.get(PEOPLE));
    let entry =
        page.split("<tr>").find(|entry| entry.contains(email) && entry.contains("acct_")).expect("a person");
    let at = entry.find("acct_").expect("an id");
    entry[at..at + 31].to_owned()
}

#[test]
fn an_invited_person_joins_with_their_role() {
    let world = World::new();
    let (anna, ben) = (address("anna"), address("ben"));
    let mut admin = Visitor::signed_in(&world, &anna);
    let link = invite(&mut admin, &ben, "member");
    // Not signed in yet: the link leads through the sign-in.
    let mut member = Visitor::new(&world);
    let reply = member.get(&link);
    assert!(reply.status == 303 && reply.header("location").unwrap().starts_with("/dashboard/sign-in?next="));
    member.sign_in(&ben);
    let page = member.get(&link);
    assert!(page.status == 200 && text(&page).contains("Join"), "{page:?}");
    assert_eq!(join(&mut member, &link), 303);
    assert_eq!(workspace(&mut member), workspace(&mut admin));
    assert_eq!(member.get(&link).status, 404, "used");
    // A member works, but manages neither people nor keys nor the workspace.
    let made =
        member.act("create_assistant", "/dashboard/keys", &[("name", "Desk"), ("instructions", "Be kind.")]);
    assert_eq!(made.status, 303, "{made:?}");
    let id = id_of(&mut admin, &anna);
    let attempts: [(&str, &[(&str, &str)]); 7] = [
        ("create_api_key", &[("name", "x")]),
        ("revoke_api_key", &[("id", "key_x")]),
        ("update_workspace", &[("name", "Mine")]),
        ("invite_person", &[("email", "c@people.example"), ("role", "admin")]),
        ("withdraw_invitation", &[("id", "inv_x")]),
        ("set_role", &[("id", &id), ("role", "member")]),
        ("remove_person", &[("id", &id)]),
    ];
    for (operation, fields) in attempts {
        let reply = member.act(operation, "/dashboard/keys", fields);
        assert!(reply.status == 403 && text(&reply).contains("admins_only"), "{operation}: {reply:?}");
    }
    assert_eq!(member.get("/dashboard/audit").status, 403);
    assert_eq!(member.get("/dashboard/api/audit").sound().code(), "admins_only");
    let csrf = member.csrf("/dashboard/keys");
    let headers = [("content-type", "application/json"), ("x-csrf-token", csrf.as_str())];
    let body = json!({"name": "x"}).to_string();
    let reply = member.send(http::Method::POST, "/dashboard/api/keys", &headers, body.into());
    assert_eq!(reply.sound().code(), "admins_only");
    // Made an admin, the same person may.
    let id = id_of(&mut admin, &ben);
    assert_eq!(admin.act("set_role", PEOPLE, &[("id", &id), ("role", "admin")]).status, 303);
    assert_eq!(member.act("create_api_key", "/dashboard/keys", &[("name", "x")]).status, 200);
}

#[test]
fn an_invitation_is_good_for_its_address_only() {
    let world = World::new();
    let mut admin = Visitor::signed_in(&world, &address("host"));
    let link = invite(&mut admin, &address("guest"), "admin");
    let mut other = Visitor::signed_in(&world, &address("neighbour"));
    let page = other.get(&link);
    assert!(page.status == 200 && !text(&page).contains(">Join<"), "{page:?}");
    assert_eq!(join(&mut other, &link), 403);
    assert_ne!(workspace(&mut other), workspace(&mut admin));
    let mut guest = Visitor::signed_in(&world, &address("guest"));
    let second = invite(&mut admin, &address("guest"), "member");
    assert_eq!(join(&mut guest, &link), 404, "a later invitation replaces it");
    assert_eq!(join(&mut guest, &second), 303);
    assert_eq!(join(&mut guest, &second), 404, "once");
}

#[test]
fn a_workspace_keeps_an_admin() {
    let world = World::new();
    let (anna, ben) = (address("last"), address("first"));
    let mut admin = Visitor::signed_in(&world, &anna);
    let own = workspace(&mut admin);
    let id = id_of(&mut admin, &anna);
    for (operation, fields) in [
        ("set_role", vec![("id", id.as_str()), ("role", "member")]),
        ("remove_person", vec![("id", id.as_str())]),
    ] {
        let reply = admin.act(operation, PEOPLE, &fields);
        assert!(reply.status == 409 && text(&reply).contains("needs an admin"), "{operation}: {reply:?}");
    }
    let link = invite(&mut admin, &ben, "admin");
    let mut other = Visitor::signed_in(&world, &ben);
    assert_eq!(join(&mut other, &link), 303);
    // Removed, a person goes on in a workspace of their own, and their session writes nothing in this one.
    assert_eq!(other.act("remove_person", PEOPLE, &[("id", &id)]).status, 303);
    assert_ne!(workspace(&mut admin), own);
    assert_eq!(admin.act("create_api_key", "/dashboard/keys", &[("name", "x")]).status, 200);
    assert_eq!(workspace(&mut other), own);
    assert_eq!(admin.act("switch_workspace", "/dashboard/sessions", &[("id", &own)]).status, 404);
    assert_eq!(other.act("remove_person", PEOPLE, &[("id", &id)]).status, 404, "gone already");
}

#[test]
fn who_is_removed_comes_back_by_no_earlier_invitation() {
    let world = World::new();
    let (anna, ben, other) = (address("owner"), address("leaving"), address("leaving-2"));
    let mut admin = Visitor::signed_in(&world, &anna);
    let mut removed = Visitor::signed_in(&world, &ben);
    let link = invite(&mut admin, &ben, "admin");
    assert_eq!(join(&mut removed, &link), 303);
    let (to_himself, to_another) =
        (invite(&mut removed, &ben, "admin"), invite(&mut removed, &other, "admin"));
    let kept = invite(&mut admin, &address("colleague"), "member");
    let id = id_of(&mut admin, &ben);
    assert_eq!(admin.act("remove_person", PEOPLE, &[("id", &id)]).status, 303);
    assert_eq!(join(&mut removed, &to_himself), 404);
    assert_eq!(join(&mut Visitor::signed_in(&world, &other), &to_another), 404);
    // Somebody who is no member is not removed, and keeps an invitation that was made since.
    let again = invite(&mut admin, &ben, "member");
    assert_eq!(admin.act("remove_person", PEOPLE, &[("id", &id)]).status, 404);
    assert_eq!(join(&mut removed, &again), 303);
    assert_eq!(join(&mut Visitor::signed_in(&world, &address("colleague")), &kept), 303);
}

#[test]
fn one_person_is_not_sent_invitations_without_end() {
    let world = World::new();
    let mut admin = Visitor::signed_in(&world, &address("sender"));
    let victim = address("victim");
    for _ in 0..INVITATIONS_SENT_MAX {
        invite(&mut admin, &victim, "member");
    }
    let reply = admin.act("invite_person", PEOPLE, &[("email", &victim), ("role", "member")]);
    assert!(reply.status == 409 && text(&reply).contains("wait for an hour"), "{reply:?}");
}

#[test]
fn the_audit_log_says_who_changed_what() {
    let world = World::new();
    let email = address("auditor");
    let mut admin = Visitor::signed_in(&world, &email);
    let page = text(&admin.act("create_api_key", "/dashboard/keys", &[("name", "CI")]));
    let at = page.find("sidetone_").expect("a key");
    let api = world.with_key(&page[at..at + 58]);
    let made = api.post("/assistants", json!({"name": "Desk", "instructions": "Be kind."})).created();
    let id = made["id"].as_str().unwrap();
    api.tool("update_assistant", json!({"id": id, "data": {"name": "Front desk"}})).ok();
    api.patch(format!("/assistants/{id}"), json!({"name": "Front desk"})).ok();
    api.patch(format!("/assistants/{id}"), json!({"name": ""})).refused("validation_failed");
    api.delete(format!("/assistants/{id}")).empty();
    api.delete(format!("/assistants/{id}")).refused("not_found");
    admin.act("invite_person", PEOPLE, &[("email", "guest@people.example"), ("role", "member")]);
    let log = api.get("/audit").ok().json;
    let told: Vec<_> = log
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["actor_name"].as_str().unwrap(), entry["operation"].as_str().unwrap()))
        .collect();
    let expected = [
        (email.as_str(), "invite_person"),
        ("CI", "delete_assistant"),
        ("CI", "update_assistant"),
        ("CI", "create_assistant"),
        (email.as_str(), "create_api_key"),
    ];
    assert_eq!(told, expected, "what changed nothing is not in it");
    assert_eq!(
        (&log[1]["subject"], &log[2]["subject"], &log[3]["subject"]),
        (&json!(id), &json!(id), &json!(id))
    );
    assert!(
        log[1]["actor"].as_str().unwrap().starts_with("key_")
            && log[0]["actor"].as_str().unwrap().starts_with("acct_")
    );
    assert_eq!(
        api.tool("list_audit_entries", json!({"limit": 2})).ok().json.as_array().map(Vec::len),
        Some(2)
    );
    assert_eq!(world.get("/audit").ok().json, Value::Array(Vec::new()), "that of another workspace");
    assert!(text(&admin.get("/dashboard/audit")).contains("delete_assistant"));
}
