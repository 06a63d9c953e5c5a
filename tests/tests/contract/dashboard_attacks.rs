//! Attacks on the dashboard that concern every form and every operation, by the table.
use http::Method;
use sidetone_engine::dashboard::{OWN_FORMS, SIGN_IN_FORMS};
use sidetone_engine::operations::OPERATIONS;
use sidetone_engine::operations::operation::Operation;
use sidetone_tests::call::UNKNOWN_ID;
use sidetone_tests::receiver::{Receiver, ReceiverBehaviour};
use sidetone_tests::visitor::{Visitor, text};
use sidetone_tests::{World, fakes};

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

/// A field is put where its name says. Without a bound, a name of a million dots had overflowed the stack of the process.
#[test]
fn the_name_of_a_field_goes_no_deeper_than_what_the_form_makes() {
    let world = World::new();
    let mut visitor = Visitor::signed_in(&world, &address("deep"));
    for name in
        [".".repeat(500_000), format!("speech{}", ".speed".repeat(80_000)), "conditions.a".repeat(40_000)]
    {
        for operation in ["create_assistant", "create_simulation_persona", "create_simulation"] {
            let csrf = visitor.csrf("/dashboard/keys");
            let fields = [("_csrf", csrf.as_str()), ("name", "Deep"), (name.as_str(), "x")];
            let reply = visitor.post(&format!("/dashboard/do/{operation}"), &fields);
            assert!(matches!(reply.status, 303 | 422), "{operation}: {}", reply.status);
        }
    }
    assert_eq!(visitor.get("/dashboard").status, 200, "still there");
}

/// Whoever could send these for somebody else would sign them in as another person (login CSRF), use up their code, or have
/// mails sent.
#[test]
fn no_form_to_sign_in_is_taken_without_its_proof() {
    let world = World::new();
    let email = address("signing-in");
    let mut visitor = Visitor::new(&world);
    let code = visitor.ask_for_code(&email);
    let link = visitor.link_of(&email);
    let token = link.split("token=").nth(1).unwrap().to_owned();
    let own = visitor.csrf("/dashboard/sign-in/code");
    let another = Visitor::new(&world).csrf("/dashboard/sign-in");
    let of_session = Visitor::signed_in(&world, &address("signed-in")).csrf("/dashboard/keys");
    assert_eq!(SIGN_IN_FORMS.len(), 3);
    for form in SIGN_IN_FORMS.iter().map(|rest| format!("/dashboard/sign-in{rest}")) {
        let rest = [("email", email.as_str()), ("code", &code), ("token", &token)];
        let with = |proof: &'static str| [&[("_csrf", proof)][..], &rest].concat();
        for fields in [rest.to_vec(), with(""), with("nonsense")] {
            let reply = visitor.post(&form, &fields);
            assert_eq!(reply.status, 403, "{form} {fields:?}: {reply:?}");
        }
        for proof in [&another, &of_session] {
            let reply = visitor.post(&form, &[&[("_csrf", proof.as_str())][..], &rest].concat());
            assert_eq!(reply.status, 403, "{form}, with the proof of somebody else: {reply:?}");
        }
        let fields = [&[("_csrf", own.as_str())][..], &rest].concat();
        assert_eq!(
            Visitor::new(&world).post(&form, &fields).status,
            403,
            "{form} without the visit's cookie"
        );
        for site in ["cross-site", "same-site"] {
            let reply = visitor.post_with(&form, &fields, &[("sec-fetch-site", site)]);
            assert_eq!(reply.status, 403, "{form} from {site}");
        }
        let mut body = form_urlencoded::Serializer::new(String::new());
        let body = body.extend_pairs(&fields).finish();
        // What a page elsewhere can send without asking first.
        for kind in ["text/plain", "multipart/form-data; boundary=x"] {
            let reply = visitor.send(Method::POST, &form, &[("content-type", kind)], body.clone().into());
            assert_eq!(reply.status, 415, "{form} as {kind}");
        }
        let read = visitor.get(&format!("{form}?{body}"));
        assert!(!read.headers.contains_key("set-cookie"), "{form} by a link: {read:?}");
        assert_eq!(visitor.get("/dashboard").status, 303, "{form}: nobody is signed in");
    }
    // Nothing was used up: no try of the code, and not the link.
    let wrong = [("_csrf", own.as_str()), ("code", "no code")];
    assert!(text(&visitor.post("/dashboard/sign-in/code", &wrong)).contains("4 tries are left"));
    let mut phone = Visitor::new(&world);
    assert_eq!(phone.submit(&link, "/dashboard/sign-in/link", &[("token", &token)]).status, 303);
    // A form that the list lacks is not answered.
    for rest in ["/google", "/google/callback", "/code/", "/other"] {
        let reply = visitor.post(&format!("/dashboard/sign-in{rest}"), &[("_csrf", own.as_str())]);
        assert_eq!(reply.status, 404, "{rest}: {reply:?}");
    }
}

/// What stays the same in compressed answers can be guessed from their lengths (BREACH).
#[test]
fn the_proof_in_forms_is_other_bytes_on_each_page() {
    let world = World::new();
    let mut visitor = Visitor::new(&world);
    let before: Vec<String> = (0..3).map(|_| visitor.csrf("/dashboard/sign-in")).collect();
    visitor.sign_in(&address("masked"));
    let after: Vec<String> = (0..3).map(|_| visitor.csrf("/dashboard/keys")).collect();
    for (pages, prefix) in [(&before, 0), (&after, after[0].rfind('.').expect("a workspace") + 1)] {
        for (at, one) in pages.iter().enumerate() {
            for other in &pages[..at] {
                let same =
                    one[prefix..].bytes().zip(other[prefix..].bytes()).filter(|(one, other)| one == other);
                // Of 86 characters, one or two are the same by chance.
                assert!(same.count() < 20, "{one} {other}");
            }
        }
    }
    // Each of them is good.
    for csrf in &after {
        assert_eq!(
            visitor.post("/dashboard/do/create_api_key", &[("_csrf", csrf), ("name", "x")]).status,
            200
        );
    }
    for csrf in &before {
        assert_eq!(
            visitor.post("/dashboard/do/create_api_key", &[("_csrf", csrf), ("name", "x")]).status,
            403
        );
    }
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

/// Ways out of an element, of an attribute, of a `pre`, and of a comment.
const HOSTILE: &str =
    "</pre></code><script>alert(1)</script>\"><img src=x onerror=alert(1)>'><svg/onload=alert(1)>-->";

/// Fails unless a page shows the hostile text as text: it has no element and no attribute of it.
#[track_caller]
fn assert_is_text(page: &str, place: &str) {
    for raw in ["<script>alert", "<img src=x", "<svg/onload", "\"><img", "</pre></code><script>"] {
        assert!(!page.contains(raw), "{place} has `{raw}`: {page}");
    }
    assert!(page.contains("&lt;img src=x onerror=alert(1)"), "{place} shows it as text: {page}");
}

/// A page made of this would run scripts of whoever has the endpoint in the dashboard of whoever tests it.
#[test]
fn what_the_endpoint_of_a_tool_answers_stays_text() {
    let world = World::with_fakes();
    let receiver = Receiver::start(ReceiverBehaviour::Says(HOSTILE));
    // Codes come by mail here.
    let email = address("tester");
    let mut visitor = Visitor::new(&world);
    assert_eq!(visitor.submit("/dashboard/sign-in", "/dashboard/sign-in", &[("email", &email)]).status, 303);
    let mail = fakes::shared_people().mails_to(&email).remove(0);
    let code = [("code", &mail["subject"].as_str().unwrap()[..6])];
    assert_eq!(visitor.submit("/dashboard/sign-in/code", "/dashboard/sign-in/code", &code).status, 303);
    let fields = [("name", "find_slot"), ("url", &receiver.url()), ("_then", "/dashboard/tools/{id}")];
    let made = visitor.act("create_tool", "/dashboard/tools", &fields);
    let list = visitor.get("/dashboard/api/tools");
    let id = list.json[0]["id"].as_str().unwrap_or_else(|| panic!("{made:?}")).to_owned();
    let here = format!("/dashboard/tools/{id}");
    let tested = visitor.act("test_tool", &here, &[("id", &id), ("arguments", "{}")]);
    assert_eq!((tested.status, receiver.count()), (200, 1), "{tested:?}");
    let page = text(&tested);
    assert!(page.contains("HTTP 200"), "{page}");
    assert_is_text(&page, "the page of a tested tool");
    // Nor does the answer decide what the page is.
    assert_eq!(tested.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(tested.header("content-security-policy").unwrap().contains("script-src 'self';"));
}

/// A document has the name of the file that it was made of.
#[test]
fn the_names_of_files_stay_text() {
    let world = World::new();
    let mut visitor = Visitor::signed_in(&world, &address("files"));
    let document = [("name", HOSTILE), ("source", HOSTILE), ("content", HOSTILE)];
    // Also in the form that comes back, because a field is wrong.
    let refused = visitor.act(
        "create_knowledge_document",
        "/dashboard/knowledge/new",
        &[&document[..2], &[("content", "")]].concat(),
    );
    assert_eq!(refused.status, 422, "{refused:?}");
    assert_is_text(&text(&refused), "the form that came back");
    let made = visitor.act("create_knowledge_document", "/dashboard/knowledge/new", &document);
    assert_eq!(made.status, 303, "{made:?}");
    let listed = visitor.get("/dashboard/api/knowledge");
    assert_eq!(listed.json[0]["source"], HOSTILE, "{listed:?}");
    let document = listed.json[0]["id"].as_str().unwrap().to_owned();
    let fields = [("name", "Desk"), ("instructions", "Be kind."), ("_then", "/dashboard/assistants/{id}")];
    let desk = visitor.act("create_assistant", "/dashboard/keys", &fields);
    let desk = desk.header("location").unwrap().split('?').next().unwrap().to_owned();
    for page in
        ["/dashboard/knowledge", &format!("/dashboard/knowledge/{document}"), &desk, "/dashboard/audit"]
    {
        let reply = visitor.get(page);
        assert_eq!(reply.status, 200, "{page}");
        assert_is_text(&text(&reply), page);
    }
}
