//! Who gets an account: `SIDETONE_SIGN_UP`, at both ways to sign in. And how often a provider is asked about itself.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use sidetone_engine::base::limits::INVITATIONS_TO_ADDRESS_MAX;
use sidetone_tests::World;
use sidetone_tests::fakes::{self, people};
use sidetone_tests::reply::Reply;
use sidetone_tests::visitor::{Visitor, text};

const SIGN_IN: &str = "/dashboard/sign-in";
const CODE: &str = "/dashboard/sign-in/code";

/// A service in memory with this rule, whose mails go to the fake.
fn with_mails(rule: &str) -> World {
    let settings = fakes::settings();
    let mut settings: Vec<(&str, &str)> =
        settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    settings.push(("SIDETONE_SIGN_UP", rule));
    let world = World::with_settings(&settings);
    world.sandbox().unwrap().answer_http_with(fakes::exchange);
    world
}

/// A service of the host under test with this rule, without mail.
fn on_host(rule: &str) -> World {
    let settings = fakes::settings();
    let mut settings: Vec<(&str, &str)> = settings
        .iter()
        .filter(|(name, _)| !name.contains("_MAIL_"))
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    settings.push(("SIDETONE_SIGN_UP", rule));
    World::of_its_own(&settings)
}

fn google(visitor: &mut Visitor, subject: &str, email: &str) -> Reply {
    let to = visitor.get("/dashboard/sign-in/google");
    let query =
        to.header("location").and_then(|to| to.split_once('?')).expect("the provider's page").1.to_owned();
    let sent = |name: &str| {
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        pairs.find(|(known, _)| known == name).expect("it is sent").1.into_owned()
    };
    let issuer = fakes::shared_people().issuer();
    let claims = json!({"iss": issuer, "aud": people::CLIENT_ID, "sub": subject, "email": email, "email_verified": true,
        "nonce": sent("nonce"), "iat": 1_767_000_000, "exp": 4_102_444_800_u64});
    let code = people::code(&sent("code_challenge"), &claims, "RS256", false);
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("code", &code).append_pair("state", &sent("state")).append_pair("iss", issuer);
    visitor.get(&format!("/dashboard/sign-in/google/callback?{}", query.finish()))
}

#[test]
fn only_listed_and_invited_people_sign_in_and_the_page_tells_nobody_who_they_are() {
    let world = on_host("listed.example, boss@other.example");
    let mut boss = Visitor::signed_in(&world, "boss@other.example");
    Visitor::signed_in(&world, "anybody@listed.example");
    // The same answers and the same page for somebody who may not.
    let ask = |email: &str| {
        let mut visitor = Visitor::new(&world);
        let reply = visitor.submit(SIGN_IN, SIGN_IN, &[("email", email)]);
        let page = text(&visitor.get(CODE)).replace(email, "ADDRESS");
        let csrf = page
            .split("name=\"_csrf\" value=\"")
            .nth(1)
            .expect("a form")
            .split('"')
            .next()
            .unwrap()
            .to_owned();
        let wrong = visitor.post(CODE, &[("_csrf", &csrf), ("code", "0000000")]).status;
        (reply.status, reply.header("location").map(str::to_owned), page.replace(&csrf, "CSRF"), wrong)
    };
    let guest = "guest@other.example";
    assert_eq!(ask(guest), ask("boss@other.example"));
    let line = world.logged(&format!("no code was made for {guest}"));
    assert!(line.contains("SIDETONE_SIGN_UP"), "{line}");
    assert!(!world.log().contains(&format!("the sign-in code for {guest}")));
    // Invited, the same person may; and has an account from then on, whatever becomes of the invitation.
    let invited = boss.act("invite_person", "/dashboard/people", &[("email", guest), ("role", "member")]);
    assert_eq!(invited.status, 200, "{invited:?}");
    Visitor::signed_in(&world, guest);
    let page = text(&boss.get("/dashboard/people"));
    let id = &page[page.find("inv_").expect("an invitation")..][..30];
    assert_eq!(boss.act("withdraw_invitation", "/dashboard/people", &[("id", id)]).status, 303);
    Visitor::signed_in(&world, guest);
}

#[test]
fn who_was_let_in_lets_nobody_in() {
    let world = on_host("boss@other.example");
    let mut boss = Visitor::signed_in(&world, "boss@other.example");
    let guest = [("email", "guest@other.example"), ("role", "admin")];
    assert_eq!(boss.act("invite_person", "/dashboard/people", &guest).status, 200);
    // Signed in, with a workspace of their own and without joining that of the boss.
    let mut guest = Visitor::signed_in(&world, "guest@other.example");
    let puppet = [("email", "puppet@other.example"), ("role", "admin")];
    let refused = guest.act("invite_person", "/dashboard/people", &puppet);
    assert!(refused.status == 403 && text(&refused).contains("cannot invite"), "{refused:?}");
    let mut puppet = Visitor::new(&world);
    puppet.submit(SIGN_IN, SIGN_IN, &[("email", "puppet@other.example")]);
    world.logged("no code was made for puppet@other.example");
}

#[test]
fn a_guessed_code_does_not_get_around_the_rule() {
    // Whoever reads the database, or is lucky, has the code of somebody who was withdrawn meanwhile.
    let world = on_host("boss@other.example");
    let mut boss = Visitor::signed_in(&world, "boss@other.example");
    boss.act("invite_person", "/dashboard/people", &[("email", "late@other.example"), ("role", "admin")]);
    let mut late = Visitor::new(&world);
    let code = late.ask_for_code("late@other.example");
    let page = text(&boss.get("/dashboard/people"));
    let id = &page[page.find("inv_").expect("an invitation")..][..30];
    assert_eq!(boss.act("withdraw_invitation", "/dashboard/people", &[("id", id)]).status, 303);
    let reply = late.submit(CODE, CODE, &[("code", &code)]);
    assert!(reply.status == 403 && text(&reply).contains("Only invited people"), "{reply:?}");
    assert_eq!(late.get("/dashboard").status, 303);
}

#[test]
fn a_provider_vouches_for_an_address_but_invites_nobody() {
    let world = with_mails("invited");
    let refused = google(&mut Visitor::new(&world), "stranger", "stranger@google.example");
    assert!(refused.status == 403 && text(&refused).contains("Only invited people"), "{refused:?}");
    // The operator comes by the link of the start, and invites.
    let engine = world.sandbox().unwrap().engine();
    let link = sidetone::sandbox::block_on(engine.start("tests")).unwrap().sign_in_link.expect("a link");
    let token = link.split("token=").nth(1).unwrap().to_owned();
    let mut operator = Visitor::new(&world);
    let page = format!("/dashboard/sign-in/link?token={token}");
    assert_eq!(operator.submit(&page, "/dashboard/sign-in/link", &[("token", &token)]).status, 303);
    let email = format!("friend-{}@google.example", std::process::id());
    operator.act("invite_person", "/dashboard/people", &[("email", &email), ("role", "member")]);
    assert_eq!(fakes::shared_people().mails_to(&email).len(), 1);
    let mut friend = Visitor::new(&world);
    assert_eq!(google(&mut friend, "friend", &email).status, 303);
    assert_eq!(friend.get("/dashboard").status, 200);
    // Whoever invites chooses the address and words of the mail: one mailbox gets few of them, from all workspaces.
    let often = format!("often-{}@google.example", std::process::id());
    for _ in 0..2 * INVITATIONS_TO_ADDRESS_MAX {
        let made =
            operator.act("invite_person", "/dashboard/people", &[("email", &often), ("role", "member")]);
        assert!(text(&made).contains("/dashboard/join?token="), "the link is shown: {made:?}");
    }
    assert_eq!(fakes::shared_people().mails_to(&often).len() as i64, INVITATIONS_TO_ADDRESS_MAX);
    // Somebody who is not invited is told so by mail, and gets no code.
    let nobody = format!("nobody-{}@google.example", std::process::id());
    let reply = Visitor::new(&world).submit(SIGN_IN, SIGN_IN, &[("email", &nobody)]);
    assert_eq!(reply.status, 303, "{reply:?}");
    let mails = fakes::shared_people().mails_to(&nobody);
    let said = format!("{}{}", mails[0]["subject"], mails[0]["text"]);
    assert!(mails.len() == 1 && said.contains("invitation") && !said.contains("token="), "{said}");
    assert!(!said.contains("is your code"), "{said}");
}

#[test]
fn an_invitation_whose_mail_fails_is_shown_and_logged() {
    let world = with_mails("open");
    let email = format!("host-{}@google.example", std::process::id());
    let mut host = Visitor::new(&world);
    assert_eq!(google(&mut host, "host", &email).status, 303);
    let fields = [("email", people::REFUSED), ("role", "member")];
    let reply = host.act("invite_person", "/dashboard/people", &fields);
    let page = text(&reply);
    assert!(reply.status == 200 && page.contains("no mail could be sent"), "{page}");
    assert!(page.contains("/dashboard/join?token="), "{page}");
    let line = world.logged("the mail of invitation inv_");
    assert!(line.contains("the address is suppressed"), "{line}");
}

#[test]
fn a_provider_is_asked_about_itself_once_in_ten_minutes_and_for_new_keys_once_a_minute() {
    let world = with_mails("open");
    let sandbox = world.sandbox().unwrap();
    let (documents, sets, rotated) =
        (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counted = (documents.clone(), sets.clone(), rotated.clone());
    sandbox.answer_http_with(move |request| {
        let reply = fakes::exchange(request);
        if request.url.contains("/.well-known/") {
            counted.0.fetch_add(1, Ordering::SeqCst);
        }
        if request.url.ends_with("/jwks") {
            counted.1.fetch_add(1, Ordering::SeqCst);
            // Until the rotation is seen, the provider shows keys that the token is not of.
            if counted.2.load(Ordering::SeqCst) == 0 {
                return reply.map(|mut reply| {
                    let text = String::from_utf8_lossy(&reply.body).replace("\"tests\"", "\"before\"");
                    reply.body = text.into();
                    reply
                });
            }
        }
        reply
    });
    let count = || (documents.load(Ordering::SeqCst), sets.load(Ordering::SeqCst));
    let sign_in = |n: usize| google(&mut Visitor::new(&world), &format!("s{n}"), "a@google.example").status;
    assert_eq!((sign_in(0), count()), (401, (1, 1)), "an unknown key, and the set is new");
    assert_eq!((sign_in(1), count()), (401, (1, 1)), "not asked again within a minute");
    rotated.store(1, Ordering::SeqCst);
    sandbox.advance(60_000);
    assert_eq!((sign_in(2), count()), (303, (1, 2)), "the new key is found");
    assert_eq!((sign_in(3), count()), (303, (1, 2)), "and kept");
    sandbox.advance(540_000);
    assert_eq!((sign_in(4), count()), (303, (2, 2)), "the document is ten minutes old");
    sandbox.advance(60_000);
    assert_eq!((sign_in(5), count()), (303, (2, 3)), "the keys, too");
}

#[test]
fn an_invitation_for_another_address_says_what_to_do() {
    let world = on_host("open");
    let mut host = Visitor::signed_in(&world, "host@listed.example");
    let fields = [("email", "guest@listed.example"), ("role", "member")];
    let page = text(&host.act("invite_person", "/dashboard/people", &fields));
    let token = page.split("/dashboard/join?token=").nth(1).unwrap().split(['<', '"']).next().unwrap();
    let mut other = Visitor::signed_in(&world, "other@listed.example");
    let fields = [("token", token)];
    let back = format!("/dashboard/join?token={token}");
    let reply = other.act("join_workspace", &back, &fields);
    let page = text(&reply);
    assert!(reply.status == 403 && !page.contains("guest@listed.example"), "{page}");
    assert!(page.contains("or ask for a new invitation to yours"), "{page}");
    let own: Value = other.get("/dashboard/api/workspace").json;
    assert_ne!(own["id"], host.get("/dashboard/api/workspace")["id"]);
}
