//! Signing in at an OpenID provider, attacks on it, and mails: against fakes that check what they are sent.
use std::collections::BTreeMap;

use serde_json::{Value, json};
use sidetone_engine::base::limits::OPENID_SOURCE_MAX;
use sidetone_tests::World;
use sidetone_tests::fakes::people::Forgery;
use sidetone_tests::fakes::{self, people};
use sidetone_tests::reply::Reply;
use sidetone_tests::visitor::{Visitor, text};

const BEGIN: &str = "/dashboard/sign-in/google";
const CALLBACK: &str = "/dashboard/sign-in/google/callback";

/// What the browser was sent to the provider with.
fn begin(visitor: &mut Visitor, path: &str) -> BTreeMap<String, String> {
    let reply = visitor.get(path);
    let to = reply.header("location").unwrap_or_else(|| panic!("{reply:?}")).to_owned();
    let issuer = fakes::shared_people().issuer();
    let query = to.strip_prefix(&format!("{issuer}/authorize?")).expect("the provider's page");
    form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

fn claims(nonce: &str, subject: &str, email: &str) -> Value {
    json!({"iss": fakes::shared_people().issuer(), "aud": people::CLIENT_ID, "sub": subject, "email": email,
        "email_verified": true, "nonce": nonce, "iat": 1_767_000_000, "exp": 4_102_444_800_u64})
}

fn back(visitor: &mut Visitor, state: &str, code: &str, more: &[(&str, &str)]) -> Reply {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("code", code).append_pair("state", state).extend_pairs(more);
    visitor.get(&format!("{CALLBACK}?{}", query.finish()))
}

fn issuer() -> (&'static str, &'static str) {
    ("iss", fakes::shared_people().issuer())
}

/// Signs in with claims that a test changes.
fn sign_in(visitor: &mut Visitor, change: Value, algorithm: &str, is_broken: bool) -> Reply {
    let sent = begin(visitor, BEGIN);
    let mut claims = claims(&sent["nonce"], "subject-1", "anna@google.example");
    for (name, value) in change.as_object().unwrap() {
        claims[name] = value.clone();
    }
    let code = people::code(&sent["code_challenge"], &claims, algorithm, is_broken);
    back(visitor, &sent["state"], &code, &[issuer()])
}

#[test]
fn a_person_signs_in_at_the_provider() {
    let world = World::with_fakes();
    let mut visitor = Visitor::new(&world);
    let sent = begin(&mut visitor, &format!("{BEGIN}?next=/dashboard/keys"));
    assert_eq!(sent["tenant"], "one", "what the endpoint has already stays");
    assert_eq!((&*sent["response_type"], &*sent["client_id"]), ("code", people::CLIENT_ID));
    assert_eq!((&*sent["code_challenge_method"], &*sent["scope"]), ("S256", "openid email profile"));
    let redirect = format!("{}{CALLBACK}", sidetone_tests::world::BASE_URL);
    assert_eq!(sent["redirect_uri"], redirect);
    let subject = format!("subject-{}", std::process::id());
    let code = people::code(
        &sent["code_challenge"],
        &claims(&sent["nonce"], &subject, "Anna@Google.example"),
        "RS256",
        false,
    );
    let reply = back(&mut visitor, &sent["state"], &code, &[issuer()]);
    assert_eq!((reply.status, reply.header("location")), (303, Some("/dashboard/keys")), "{reply:?}");
    let workspace = visitor.get("/dashboard/api/workspace")["id"].clone();
    assert!(text(&visitor.get("/dashboard")).contains("anna@google.example"));
    // The same answer again is worth nothing, in this browser or another.
    assert_eq!(back(&mut visitor, &sent["state"], &code, &[issuer()]).status, 401);
    assert_eq!(back(&mut Visitor::new(&world), &sent["state"], &code, &[issuer()]).status, 401);
    // The person is who the provider says, whatever their address is by now.
    let mut again = Visitor::new(&world);
    let sent = begin(&mut again, BEGIN);
    let code = people::code(
        &sent["code_challenge"],
        &claims(&sent["nonce"], &subject, "anna@other.example"),
        "RS256",
        false,
    );
    assert_eq!(back(&mut again, &sent["state"], &code, &[issuer()]).status, 303);
    assert_eq!(again.get("/dashboard/api/workspace")["id"], workspace);
    // And somebody else with the address is somebody else.
    let mut other = Visitor::new(&world);
    let sent = begin(&mut other, BEGIN);
    let code = people::code(
        &sent["code_challenge"],
        &claims(&sent["nonce"], &format!("{subject}b"), "anna@other.example"),
        "RS256",
        false,
    );
    assert_eq!(back(&mut other, &sent["state"], &code, &[issuer()]).status, 303);
    assert_ne!(other.get("/dashboard/api/workspace")["id"], workspace);
}

#[test]
fn a_token_that_is_not_for_this_sign_in_is_refused() {
    let world = World::with_fakes();
    let mut visitor = Visitor::new(&world);
    for change in [
        json!({"aud": "another-client"}),
        json!({"aud": [people::CLIENT_ID, "another-client"]}),
        json!({"azp": "another-client"}),
        json!({"iss": "https://evil.example"}),
        json!({"iss": "https://accounts.google.com"}),
        json!({"nonce": "another"}),
        json!({"nonce": null}),
        json!({"exp": 1_767_000_000}),
        json!({"iat": 4_102_444_000_u64}),
        json!({"sub": ""}),
        json!({"email_verified": false}),
        json!({"email_verified": "true"}),
        json!({"email": null}),
        json!({"email": "not an address"}),
    ] {
        let reply = sign_in(&mut visitor, change.clone(), "RS256", false);
        assert_eq!(reply.status, 401, "{change}: {reply:?}");
        assert_eq!(visitor.get("/dashboard").status, 303, "{change}");
    }
    assert_eq!(sign_in(&mut Visitor::new(&world), json!({}), "none", false).status, 401);
    assert_eq!(sign_in(&mut Visitor::new(&world), json!({}), "HS256", false).status, 401);
    assert_eq!(sign_in(&mut Visitor::new(&world), json!({}), "RS256", true).status, 401);
    assert_eq!(sign_in(&mut Visitor::new(&world), json!({}), "RS256", false).status, 303);
}

/// What a token's header says is chosen by whoever made the token: it decides neither how the signature is checked nor by
/// which key.
#[test]
fn a_token_whose_header_lies_is_refused() {
    let world = World::with_fakes();
    let mut visitor = Visitor::new(&world);
    let mut status = |header: &Value, forgery: Forgery| {
        let sent = begin(&mut visitor, BEGIN);
        let claims = claims(&sent["nonce"], "subject-4", "d@google.example");
        let code = people::forged(&sent["code_challenge"], &claims, header, forgery);
        let reply = back(&mut visitor, &sent["state"], &code, &[issuer()]);
        (reply.status, visitor.get("/dashboard").status)
    };
    for algorithm in ["RS256", "HS256", "none"] {
        let header = json!({"alg": algorithm, "typ": "JWT", "kid": "tests"});
        for forgery in [Forgery::MacOfDer, Forgery::MacOfModulus, Forgery::Empty] {
            assert_eq!(status(&header, forgery), (401, 303), "{header} {forgery:?}");
        }
    }
    // Signed rightly, with a header that is not right.
    for header in [
        json!({"alg": "none", "kid": "tests"}),
        json!({"alg": "None", "kid": "tests"}),
        json!({"alg": "HS256", "kid": "tests"}),
        json!({"alg": "RS512", "kid": "tests"}),
        json!({"alg": "rs256", "kid": "tests"}),
        json!({"alg": ["RS256"], "kid": "tests"}),
        json!({"kid": "tests"}),
        json!({"alg": "RS256", "kid": "curve"}),
        json!({"alg": "RS256", "kid": ""}),
        json!({"alg": "RS256", "kid": "tests", "crit": ["exp"]}),
        json!({"alg": "RS256", "kid": "../tests"}),
        // A key that comes with the token proves nothing.
        json!({"alg": "RS256", "kid": "mine", "jwk": {"kty": "RSA", "kid": "mine", "n": "AQAB", "e": "AQAB"}}),
        json!({"alg": "RS256", "kid": "mine", "jku": "https://evil.example/jwks"}),
    ] {
        assert_eq!(status(&header, Forgery::Right), (401, 303), "{header}");
    }
    // The right one beside them, so that it is the header that is refused.
    assert_eq!(status(&json!({"alg": "RS256", "kid": "tests"}), Forgery::Right), (303, 200));
}

#[test]
fn an_answer_of_another_browser_or_provider_is_refused() {
    let world = World::with_fakes();
    let good = |sent: &BTreeMap<String, String>| {
        people::code(
            &sent["code_challenge"],
            &claims(&sent["nonce"], "subject-2", "b@google.example"),
            "RS256",
            false,
        )
    };
    // The attacker's answer in the victim's browser (login CSRF).
    let sent = begin(&mut Visitor::new(&world), BEGIN);
    let mut victim = Visitor::new(&world);
    begin(&mut victim, BEGIN);
    assert_eq!(back(&mut victim, &sent["state"], &good(&sent), &[issuer()]).status, 401);
    // Another provider's answer (mix-up), and one that does not say whose it is.
    for more in [vec![("iss", "https://evil.example")], vec![]] {
        let mut visitor = Visitor::new(&world);
        let sent = begin(&mut visitor, BEGIN);
        let reply = back(&mut visitor, &sent["state"], &good(&sent), &more);
        assert_eq!(reply.status, 401, "{more:?}: {reply:?}");
        assert_eq!(
            back(&mut visitor, &sent["state"], &good(&sent), &[issuer()]).status,
            401,
            "its state is used up"
        );
    }
    // A code that was got with another challenge (injection).
    let mut visitor = Visitor::new(&world);
    let (sent, other) = (begin(&mut visitor, BEGIN), begin(&mut Visitor::new(&world), BEGIN));
    let code = people::code(
        &other["code_challenge"],
        &claims(&sent["nonce"], "subject-2", "b@google.example"),
        "RS256",
        false,
    );
    assert_eq!(back(&mut visitor, &sent["state"], &code, &[issuer()]).status, 401);
    // No state, no code, a refusal.
    assert_eq!(visitor.get(CALLBACK).status, 401);
    let sent = begin(&mut visitor, BEGIN);
    let reply = back(&mut visitor, &sent["state"], "", &[issuer(), ("error", "access_denied<script>")]);
    assert!(reply.status == 401 && !text(&reply).contains("<script>"), "{reply:?}");
    assert_eq!(visitor.get("/dashboard").status, 303);
}

#[test]
fn a_page_elsewhere_begins_no_sign_in() {
    let world = World::with_fakes();
    let mut visitor = Visitor::new(&world);
    let path = format!("{BEGIN}?next=/dashboard/keys");
    for site in ["cross-site", "same-site"] {
        let reply = visitor.send(http::Method::GET, &path, &[("sec-fetch-site", site)], "".into());
        let page = text(&reply);
        assert!(reply.status == 200 && reply.header("location").is_none(), "{site}: {reply:?}");
        assert!(
            page.contains("/dashboard/sign-in/google?next=%2Fdashboard%2Fkeys"),
            "the button is shown: {page}"
        );
    }
    for site in ["same-origin", "none"] {
        let reply = visitor.send(http::Method::GET, &path, &[("sec-fetch-site", site)], "".into());
        assert_eq!(reply.status, 303, "{site}: {reply:?}");
    }
}

/// An office has one address: only what is begun and not finished is counted.
#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "begins hundreds of sign-ins")]
fn sign_ins_that_are_begun_and_not_finished_are_limited_by_source() {
    let world = World::with_fakes();
    let mut office = Visitor::new(&world);
    for _ in 0..25 {
        assert_eq!(sign_in(&mut office, json!({}), "RS256", false).status, 303);
    }
    for n in 0..OPENID_SOURCE_MAX {
        assert_eq!(office.get(BEGIN).status, 303, "{n}");
    }
    let reply = office.get(BEGIN);
    assert!(reply.status == 429 && text(&reply).contains("not finished"), "{reply:?}");
    assert_eq!(Visitor::new(&world).get(BEGIN).status, 303, "others are not affected");
    world.sandbox().unwrap().advance(3_600_001);
    assert_eq!(office.get(BEGIN).status, 303, "an hour later");
}

#[test]
fn nobody_is_sent_elsewhere_after_the_provider() {
    let world = World::with_fakes();
    let mut visitor = Visitor::new(&world);
    let sent = begin(&mut visitor, &format!("{BEGIN}?next=https://evil.example"));
    let claims = claims(&sent["nonce"], "subject-3", "c@google.example");
    let code = people::code(&sent["code_challenge"], &claims, "RS256", false);
    let reply = back(&mut visitor, &sent["state"], &code, &[issuer()]);
    assert_eq!((reply.status, reply.header("location")), (303, Some("/dashboard")));
}

#[test]
fn a_code_comes_by_mail() {
    let world = World::with_fakes();
    let email = format!("mail-{}@google.example", std::process::id());
    let mut visitor = Visitor::new(&world);
    let reply = visitor.submit("/dashboard/sign-in", "/dashboard/sign-in", &[("email", &email)]);
    assert_eq!(reply.status, 303, "{reply:?}");
    let mails = fakes::shared_people().mails_to(&email);
    assert_eq!(mails.len(), 1);
    assert_eq!(mails[0]["from"], people::MAIL_FROM);
    let subject = mails[0]["subject"].as_str().unwrap();
    let said = mails[0]["text"].as_str().unwrap();
    let code = &subject[..6];
    assert!(said.contains(code) && said.contains("/dashboard/sign-in/link?token="), "{said}");
    let reply = visitor.submit("/dashboard/sign-in/code", "/dashboard/sign-in/code", &[("code", code)]);
    assert_eq!(reply.status, 303, "{reply:?}");
    // An invitation says to which workspace it is.
    let guest = format!("guest-{}@google.example", std::process::id());
    let renamed = [("name", "Blue Door")];
    assert_eq!(visitor.act("update_workspace", "/dashboard/settings", &renamed).status, 303);
    visitor.invite(&guest, "member");
    let mail = fakes::shared_people().mails_to(&guest).remove(0);
    assert_eq!(mail["subject"], format!("{email} invites you to Blue Door in Sidetone"));
    assert!(mail["text"].as_str().unwrap().contains("the workspace \"Blue Door\" in Sidetone"), "{mail}");
    let failed = Visitor::new(&world).submit_any("/dashboard/sign-in", &[("email", people::REFUSED)]);
    assert!(failed.status == 503 && text(&failed).contains("could not be sent"), "{failed:?}");
}
