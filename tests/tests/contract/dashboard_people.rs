//! People of a workspace: invitations, roles, and the audit log of what they change.
use serde_json::{Value, json};
use sidetone_engine::base::limits::INVITATIONS_SENT_MAX;
use sidetone_tests::World;
use sidetone_tests::visitor::{Visitor, text};

const PEOPLE: &str = "/dashboard/people";

fn address(name: &str) -> String {
    format!("{name}-{}@people.example", std::process::id())
}

#[test]
fn an_invited_person_joins_with_their_role() {
    let world = World::new();
    let (anna, ben) = (address("anna"), address("ben"));
    let mut admin = Visitor::signed_in(&world, &anna);
    let link = admin.invite(&ben, "member");
    // Not signed in yet: the link leads through the sign-in.
    let mut member = Visitor::new(&world);
    let reply = member.get(&link);
    assert!(reply.status == 303 && reply.header("location").unwrap().starts_with("/dashboard/sign-in?next="));
    member.sign_in(&ben);
    let page = member.get(&link);
    assert!(page.status == 200 && text(&page).contains("Join"), "{page:?}");
    assert_eq!(member.join(&link), 303);
    assert_eq!(member.workspace(), admin.workspace());
    assert_eq!(member.get(&link).status, 404, "used");
    // A member works, but manages neither people nor keys nor the workspace.
    let made =
        member.act("create_assistant", "/dashboard/keys", &[("name", "Desk"), ("instructions", "Be kind.")]);
    assert_eq!(made.status, 303, "{made:?}");
    let id = admin.account_of(&anna);
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
    // The pages say who can, in place of forms that would be refused.
    for (page, operation) in
        [("/dashboard/keys", "create_api_key"), ("/dashboard/settings", "update_workspace")]
    {
        let shown = text(&member.get(page));
        assert!(
            shown.contains("Only admins of") && !shown.contains(&format!("/do/{operation}")),
            "{page}: {shown}"
        );
        assert!(text(&admin.get(page)).contains(&format!("/do/{operation}")), "{page}");
    }
    assert_eq!(member.get("/dashboard/api/audit").sound().code(), "admins_only");
    let csrf = member.csrf("/dashboard/keys");
    let headers = [("content-type", "application/json"), ("x-csrf-token", csrf.as_str())];
    let body = json!({"name": "x"}).to_string();
    let reply = member.send(http::Method::POST, "/dashboard/api/keys", &headers, body.into());
    assert_eq!(reply.sound().code(), "admins_only");
    // Made an admin, the same person may.
    let id = admin.account_of(&ben);
    assert_eq!(admin.act("set_role", PEOPLE, &[("id", &id), ("role", "admin")]).status, 303);
    assert_eq!(member.act("create_api_key", "/dashboard/keys", &[("name", "x")]).status, 200);
}

#[test]
fn an_invitation_is_good_for_its_address_only() {
    let world = World::new();
    let mut admin = Visitor::signed_in(&world, &address("host"));
    assert_eq!(admin.act("update_workspace", PEOPLE, &[("name", "Secret project")]).status, 303);
    let link = admin.invite(&address("guest"), "admin");
    // Somebody else who has the link learns neither whom nor what it is for.
    let mut other = Visitor::signed_in(&world, &address("neighbour"));
    let silent = |page: &str| !page.contains(&address("guest")) && !page.contains("Secret project");
    let page = other.get(&link);
    let shown = text(&page);
    assert!(page.status == 200 && shown.contains("somebody else") && !shown.contains(">Join<"), "{page:?}");
    assert!(silent(&shown), "{shown}");
    let token = link.split("token=").nth(1).unwrap();
    let fields = [("token", token), ("_back", link.as_str())];
    let refused = other.submit("/dashboard", "/dashboard/do/join_workspace", &fields);
    assert!(refused.status == 403 && silent(&text(&refused)), "{refused:?}");
    assert_ne!(other.workspace(), admin.workspace());
    let mut guest = Visitor::signed_in(&world, &address("guest"));
    let second = admin.invite(&address("guest"), "member");
    assert_eq!(guest.join(&link), 404, "a later invitation replaces it");
    assert_eq!(guest.join(&second), 303);
    assert_eq!(guest.join(&second), 404, "once");
}

#[test]
fn a_workspace_keeps_an_admin() {
    let world = World::new();
    let (anna, ben) = (address("last"), address("first"));
    let mut admin = Visitor::signed_in(&world, &anna);
    let own = admin.workspace();
    let id = admin.account_of(&anna);
    for (operation, fields) in [
        ("set_role", vec![("id", id.as_str()), ("role", "member")]),
        ("remove_person", vec![("id", id.as_str())]),
    ] {
        let reply = admin.act(operation, PEOPLE, &fields);
        assert!(reply.status == 409 && text(&reply).contains("needs an admin"), "{operation}: {reply:?}");
    }
    let link = admin.invite(&ben, "admin");
    let mut other = Visitor::signed_in(&world, &ben);
    assert_eq!(other.join(&link), 303);
    // Removed, a person goes on in a workspace of their own, and their session writes nothing in this one.
    assert_eq!(other.act("remove_person", PEOPLE, &[("id", &id)]).status, 303);
    assert_ne!(admin.workspace(), own);
    assert_eq!(admin.act("create_api_key", "/dashboard/keys", &[("name", "x")]).status, 200);
    assert_eq!(other.workspace(), own);
    assert_eq!(admin.act("switch_workspace", "/dashboard/sessions", &[("id", &own)]).status, 404);
    assert_eq!(other.act("remove_person", PEOPLE, &[("id", &id)]).status, 404, "gone already");
}

#[test]
fn who_is_removed_comes_back_by_no_earlier_invitation() {
    let world = World::new();
    let (anna, ben, other) = (address("owner"), address("leaving"), address("leaving-2"));
    let mut admin = Visitor::signed_in(&world, &anna);
    let mut removed = Visitor::signed_in(&world, &ben);
    let link = admin.invite(&ben, "admin");
    assert_eq!(removed.join(&link), 303);
    let to_another = removed.invite(&other, "admin");
    let to_himself = removed.act("invite_person", PEOPLE, &[("email", &ben), ("role", "admin")]);
    assert_eq!(to_himself.status, 422, "a member is not invited: {to_himself:?}");
    let kept = admin.invite(&address("colleague"), "member");
    let id = admin.account_of(&ben);
    assert_eq!(admin.act("remove_person", PEOPLE, &[("id", &id)]).status, 303);
    assert_eq!(Visitor::signed_in(&world, &other).join(&to_another), 404);
    // Somebody who is no member is not removed, and keeps an invitation that was made since.
    let again = admin.invite(&ben, "member");
    assert_eq!(admin.act("remove_person", PEOPLE, &[("id", &id)]).status, 404);
    assert_eq!(removed.join(&again), 303);
    assert_eq!(Visitor::signed_in(&world, &address("colleague")).join(&kept), 303);
}

#[test]
fn who_is_made_a_member_or_leaves_becomes_no_admin_by_an_earlier_invitation() {
    for (leaves, case) in [(false, "demoted"), (true, "leaving")] {
        let world = World::new();
        // A server keeps the accounts of the case before.
        let address = |name| address(&format!("{name}-{case}"));
        let (anna, ben, other) = (address("owner"), address("second"), address("back-door"));
        let mut admin = Visitor::signed_in(&world, &anna);
        let mut second = Visitor::signed_in(&world, &ben);
        let link = admin.invite(&ben, "admin");
        assert_eq!(second.join(&link), 303);
        let back_door = second.invite(&other, "admin");
        let id = admin.account_of(&ben);
        let done = match leaves {
            true => second.act("remove_person", PEOPLE, &[("id", &id)]),
            false => admin.act("set_role", PEOPLE, &[("id", &id), ("role", "member")]),
        };
        assert_eq!(done.status, 303, "{done:?}");
        assert_eq!(Visitor::signed_in(&world, &other).join(&back_door), 404);
    }
}

/// Whoever loses is an admin no more, and is told so: their session goes on.
#[test]
fn two_admins_who_demote_each_other_at_once_stay_signed_in() {
    const ROUNDS: usize = 40;
    let world = World::new();
    let (anna, ben) = (address("first-of-two"), address("second-of-two"));
    let mut first = Visitor::signed_in(&world, &anna);
    let mut second = Visitor::signed_in(&world, &ben);
    let link = first.invite(&ben, "admin");
    assert_eq!(second.join(&link), 303);
    let ids = [first.account_of(&anna), first.account_of(&ben)];
    for _ in 0..ROUNDS {
        let barrier = std::sync::Barrier::new(2);
        let demote = |visitor: &mut Visitor, other: &str| {
            let csrf = visitor.csrf(PEOPLE);
            let fields = [("_csrf", csrf.as_str()), ("_back", PEOPLE), ("id", other), ("role", "member")];
            barrier.wait();
            visitor.post("/dashboard/do/set_role", &fields)
        };
        let replies = std::thread::scope(|scope| {
            let other = scope.spawn(|| demote(&mut second, &ids[0]));
            [demote(&mut first, &ids[1]), other.join().unwrap()]
        });
        for reply in &replies {
            let location = reply.header("location").unwrap_or_default();
            let is_done = reply.status == 303 && location.contains("done=set_role");
            assert!(is_done || reply.status == 403 && text(reply).contains("admins_only"), "{reply:?}");
            assert!(!reply.header("set-cookie").unwrap_or_default().contains("Max-Age=0"), "{reply:?}");
        }
        let [lost_first, _] = replies.map(|reply| reply.status == 403);
        let (winner, loser) = if lost_first { (&mut second, &ids[0]) } else { (&mut first, &ids[1]) };
        assert_eq!(winner.act("set_role", PEOPLE, &[("id", loser), ("role", "admin")]).status, 303);
    }
}

#[test]
fn one_person_is_not_sent_invitations_without_end() {
    let world = World::new();
    let mut admin = Visitor::signed_in(&world, &address("sender"));
    let victim = address("victim");
    for _ in 0..INVITATIONS_SENT_MAX {
        admin.invite(&victim, "member");
    }
    let reply = admin.act("invite_person", PEOPLE, &[("email", &victim), ("role", "member")]);
    assert!(reply.status == 409 && text(&reply).contains("wait for an hour"), "{reply:?}");
}

#[test]
fn a_member_is_not_invited_again() {
    let world = World::new();
    let (anna, ben) = (address("member-host"), address("member"));
    let mut admin = Visitor::signed_in(&world, &anna);
    let link = admin.invite(&ben, "member");
    assert_eq!(Visitor::signed_in(&world, &ben).join(&link), 303);
    let again = admin.act("invite_person", PEOPLE, &[("email", &ben.to_uppercase()), ("role", "member")]);
    assert!(again.status == 422 && text(&again).contains("is the address of a member"), "{again:?}");
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

/// What still exists is called by its name.
#[test]
fn the_page_of_the_audit_log_names_what_was_changed() {
    let world = World::new();
    let mut admin = Visitor::signed_in(&world, &address("names"));
    let api = admin.api(&world);
    let id = |path: &str, body: Value| api.post(path, body).created()["id"].as_str().unwrap().to_owned();
    let assistant = api.assistant().id;
    let persona =
        id("/simulations/personas", json!({"name": "Hurried parent", "system_prompt": "Be brief."}));
    let evaluations = json!([{"kind": "transcript", "role": "assistant", "includes": "never said"}]);
    let scenario = json!({"name": "Saturday opening", "instructions": "Ask.", "evaluations": evaluations});
    let scenario = id("/simulations/scenarios", scenario);
    let simulation = json!({"assistant_id": assistant, "persona_id": persona, "scenario_id": scenario});
    let simulation = id("/simulations", simulation);
    let run = id(&format!("/simulations/{simulation}/runs"), json!({"mode": "chat"}));
    api.settle(&run);
    let page = text(&admin.get("/dashboard/audit"));
    let page = page.split("<main").nth(1).expect("the content").to_owned();
    let name = "Hurried parent × Saturday opening";
    for (id, name) in [(&persona, "Hurried parent"), (&scenario, "Saturday opening"), (&simulation, name)] {
        assert!(page.contains(&format!("title=\"{id}\" dir=\"auto\">{name}</a>")), "{name}: {page}");
    }
    let key = api.get("/keys").ok().json[0]["id"].as_str().unwrap().to_owned();
    assert!(page.contains(&format!("title=\"{key}\" dir=\"auto\">Test</a>")), "{page}");
    // So does the overview of what failed.
    let overview = text(&admin.get("/dashboard"));
    let failed = overview.split("aria-label=\"What failed lately\"").nth(1).expect("a run failed");
    assert!(failed.split("</table>").next().unwrap().contains(name), "{failed}");
}

#[test]
fn what_is_done_about_people_is_in_the_audit_log() {
    let world = World::new();
    let (anna, ben, carl) = (address("keeper"), address("joiner"), address("leaver"));
    let mut admin = Visitor::signed_in(&world, &anna);
    let (mut joiner, mut leaver) = (Visitor::signed_in(&world, &ben), Visitor::signed_in(&world, &carl));
    let own = leaver.workspace();
    let link = admin.invite(&ben, "member");
    assert_eq!(joiner.join(&link), 303);
    let ben_id = admin.account_of(&ben);
    assert_eq!(admin.act("set_role", PEOPLE, &[("id", &ben_id), ("role", "admin")]).status, 303);
    let link = joiner.invite(&carl, "member");
    assert_eq!(leaver.join(&link), 303);
    let carl_id = admin.account_of(&carl);
    // A member leaves, and goes on in a workspace of their own.
    let left = leaver.act("remove_person", PEOPLE, &[("id", &carl_id), ("_then", "/dashboard")]);
    assert_eq!((left.status, left.header("location")), (303, Some("/dashboard?done=remove_person")));
    assert_eq!(leaver.workspace(), own);
    assert!(!text(&admin.get(PEOPLE)).contains(&carl));
    admin.invite(&carl, "member");
    let page = text(&admin.get(PEOPLE));
    let invitation = page[page.find("inv_").expect("an invitation")..][..30].to_owned();
    assert_eq!(admin.act("withdraw_invitation", PEOPLE, &[("id", &invitation)]).status, 303);
    assert_eq!(admin.act("remove_person", PEOPLE, &[("id", &ben_id)]).status, 303);
    // What was refused or changed nothing is not in it.
    assert_eq!(admin.act("withdraw_invitation", PEOPLE, &[("id", &invitation)]).status, 404);
    assert_eq!(admin.act("remove_person", PEOPLE, &[("id", &ben_id)]).status, 404);
    let log = admin.get("/dashboard/api/audit").json;
    let told: Vec<_> = log
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            ["actor_name", "operation", "subject"].map(|name| entry[name].as_str().unwrap_or_default())
        })
        .filter(|[_, operation, _]| *operation != "invite_person")
        .collect();
    let expected = [
        [anna.as_str(), "remove_person", &ben_id],
        [&anna, "withdraw_invitation", &invitation],
        [&carl, "leave_workspace", &carl_id],
        [&carl, "join_workspace", &carl_id],
        [&anna, "set_role", &ben_id],
        [&ben, "join_workspace", &ben_id],
    ];
    assert_eq!(told, expected);
    // The other workspace's log knows nothing of it.
    assert_eq!(leaver.get("/dashboard/api/audit").json, Value::Array(Vec::new()));
}

/// Without mail, an admin is told what to hand over, and an earlier link that is good no more is no surprise.
#[test]
fn without_mail_the_pages_say_what_to_hand_over() {
    let world = World::new();
    let mut admin = Visitor::signed_in(&world, &address("mailless"));
    let page = text(&admin.get(PEOPLE));
    assert!(page.contains("No mail is set up here") && page.contains("server's log"), "{page}");
    let guest = address("mailless-guest");
    let fields = [("email", guest.as_str()), ("role", "member")];
    let first = text(&admin.act("invite_person", PEOPLE, &fields));
    let notice = |page: &str| {
        page.split("<div class=\"once\"").nth(1).unwrap().split("</div></div>").next().unwrap().to_owned()
    };
    assert!(notice(&first).contains("Give them this link") && notice(&first).contains("server's log"));
    assert!(!first.contains("earlier link"), "{first}");
    let link = |page: &str| {
        let at = page.find("/dashboard/join?token=").expect("a link");
        page[at..].split(['<', '"']).next().unwrap().to_owned()
    };
    let second = text(&admin.act("invite_person", PEOPLE, &fields));
    assert!(notice(&second).contains("the earlier link is good no more"), "{second}");
    let mut invited = Visitor::new(&world);
    let to = invited.get(&link(&first)).header("location").unwrap().to_owned();
    let page = text(&invited.get(&to));
    assert!(
        page.contains("You are invited") && page.contains("your code will be in the server's log"),
        "{page}"
    );
    invited.sign_in(&guest);
    assert_eq!(invited.get(&link(&first)).status, 404);
    assert_eq!(invited.get(&link(&second)).status, 200);
}
