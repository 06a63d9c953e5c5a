//! Attacks on the dashboard that concern every form and every operation, by the table.
use http::Method;
use sidetone_engine::dashboard::OWN_FORMS;
use sidetone_engine::operations::OPERATIONS;
use sidetone_engine::operations::operation::Operation;
use sidetone_tests::World;
use sidetone_tests::call::UNKNOWN_ID;
use sidetone_tests::visitor::{Visitor, text};

fn address(name: &str) -> String {
    format!("{name}-{}@attacks.example", std::process::id())
}

fn changing() -> impl Iterator<Item = &'static Operation> {
    OPERATIONS.iter().filter(|operation| operation.method != Method::GET)
}

/// A member of the admin's workspace.
fn member_of(world: &World, admin: &mut Visitor, email: &str) -> Visitor {
    let link = admin.invite(email, "member");
    let mut member = Visitor::signed_in(world, email);
    assert_eq!(member.join(&link), 303);
    member
}

#[test]
fn no_form_is_taken_without_its_proof() {
    let world = World::new();
    let mut visitor = Visitor::signed_in(&world, &address("forms"));
    let foreign = Visitor::signed_in(&world, &address("forms2")).csrf("/dashboard/keys");
    let own = visitor.csrf("/dashboard/keys");
    let own_forms = OWN_FORMS.iter().copied();
    let forms =
        changing().map(|operation| operation.id).chain(own_forms).map(|id| format!("/dashboard/do/{id}"));
    for form in forms.chain(["/dashboard/sign-out".to_owned()]) {
        for proof in ["", "nonsense", &foreign] {
            let reply = visitor.post(&form, &[("_csrf", proof), ("id", "x")]);
            assert_eq!(reply.status, 403, "{form} with `{proof}`: {reply:?}");
        }
        assert_eq!(visitor.post(&form, &[("id", "x")]).status, 403, "{form}");
        let fields = [("_csrf", own.as_str()), ("id", "x")];
        let reply = visitor.post_with(&form, &fields, &[("sec-fetch-site", "cross-site")]);
        assert_eq!(reply.status, 403, "{form} from another site");
        // Nothing is done by a link.
        let link = visitor.get(&format!("{form}?_csrf={own}&id=x"));
        let expected = if form.contains("/do/") { (303, Some("/dashboard")) } else { (404, None) };
        assert_eq!((link.status, link.header("location")), expected, "{form}: {link:?}");
    }
    assert_eq!(visitor.get("/dashboard").status, 200, "still signed in");
}

#[test]
fn a_member_does_nothing_that_is_for_admins() {
    let world = World::new();
    let mut admin = Visitor::signed_in(&world, &address("admin"));
    let mut member = member_of(&world, &mut admin, &address("member"));
    let for_admins: Vec<&Operation> = OPERATIONS.iter().filter(|operation| operation.for_admins).collect();
    assert!(for_admins.len() >= 4, "the table names them");
    let csrf = member.csrf("/dashboard/keys");
    for operation in for_admins {
        let path = format!("/dashboard/api{}", operation.path.replace("{id}", UNKNOWN_ID));
        let headers = [("content-type", "application/json"), ("x-csrf-token", csrf.as_str())];
        let body = if operation.method == Method::GET { "" } else { r#"{"name": "x"}"# };
        let reply = member.send(operation.method.clone(), &path, &headers, body.into());
        assert_eq!(reply.sound().code(), "admins_only", "{}", operation.id);
        if operation.method != Method::GET {
            let reply = member.act(operation.id, "/dashboard/keys", &[("id", UNKNOWN_ID), ("name", "x")]);
            assert!(reply.status == 403 && text(&reply).contains("admins_only"), "{}", operation.id);
        }
    }
}

#[test]
fn a_workspace_is_closed_to_the_people_of_others() {
    let world = World::new();
    let mut admin = Visitor::signed_in(&world, &address("owner"));
    let mut stranger = Visitor::signed_in(&world, &address("stranger"));
    let own = admin.get("/dashboard/api/workspace")["id"].as_str().unwrap().to_owned();
    let before = stranger.get("/dashboard/api/workspace").json;
    assert_eq!(stranger.act("switch_workspace", "/dashboard/sessions", &[("id", &own)]).status, 404);
    let made = admin.act(
        "create_assistant",
        "/dashboard/keys",
        &[("name", "Ours"), ("instructions", "Be kind."), ("_then", "/dashboard/assistants/{id}")],
    );
    let page = made.header("location").unwrap().split('?').next().unwrap().to_owned();
    let id = page.rsplit('/').next().unwrap().to_owned();
    assert_eq!(stranger.get(&page).status, 404);
    assert_eq!(stranger.act("delete_assistant", "/dashboard/keys", &[("id", &id)]).status, 404);
    assert_eq!(admin.get(&page).status, 200);
    assert_eq!(stranger.get("/dashboard/api/workspace").json, before);
}

#[test]
fn what_people_type_about_themselves_stays_text() {
    let world = World::new();
    let mut admin = Visitor::new(&world);
    let csrf = admin.csrf("/dashboard/sign-in");
    // The client's name is shown in the list of sessions, the address on the page with the code.
    let email = format!("a'b&c{}@attacks.example", std::process::id());
    let fields = [("_csrf", csrf.as_str()), ("email", email.as_str())];
    assert_eq!(admin.post("/dashboard/sign-in", &fields).status, 303);
    let page = text(&admin.get("/dashboard/sign-in/code"));
    assert!(page.contains("&amp;c") && !page.contains("b&c"), "{page}");
    let code = admin.code_of(&email);
    let csrf = admin.csrf("/dashboard/sign-in/code");
    let client = [("user-agent", "<script>alert(1)</script>\"onload=x")];
    let fields = [("_csrf", csrf.as_str()), ("code", code.as_str())];
    assert_eq!(admin.post_with("/dashboard/sign-in/code", &fields, &client).status, 303);
    let page = text(&admin.get("/dashboard/sessions"));
    assert!(page.contains("&lt;script&gt;alert(1)"), "{page}");
    assert!(!page.contains("<script>alert"), "{page}");
    for bad in ["<img src=x onerror=alert(1)>@attacks.example", "\"><script>@attacks.example"] {
        let reply =
            Visitor::new(&world).submit("/dashboard/sign-in", "/dashboard/sign-in", &[("email", bad)]);
        let page = text(&reply);
        assert!(reply.status == 422 && !page.contains(bad), "{page}");
    }
}
