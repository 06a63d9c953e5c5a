//! Signing in with a code or a link that was sent to an address, and attacks on it.
use std::net::IpAddr;
use std::sync::Arc;

use sidetone::sandbox::{block_on, memory};
use sidetone_tests::World;
use sidetone_tests::reply::Reply;
use sidetone_tests::visitor::{Visitor, text};

fn address(name: &str) -> String {
    format!("{name}-{}@parcels.example", std::process::id())
}

const CODE: &str = "/dashboard/sign-in/code";
const LINK: &str = "/dashboard/sign-in/link";

/// A code that is not this one.
fn other(code: &str) -> String {
    format!("{:06}", (code.parse::<u32>().unwrap() + 1) % 1_000_000)
}

#[test]
fn a_code_is_good_once_and_in_its_browser_only() {
    let world = World::new();
    let email = address("once");
    let mut visitor = Visitor::new(&world);
    let code = visitor.ask_for_code(&email.to_uppercase().replace("EXAMPLE", "example").to_lowercase());
    let mut thief = Visitor::new(&world);
    let csrf = thief.csrf("/dashboard/sign-in");
    let stolen = thief.post(CODE, &[("_csrf", &csrf), ("code", &code)]);
    assert_eq!(stolen.status, 401, "{stolen:?}");
    let before = visitor.clone();
    let spaced = format!(" {} {} ", &code[..3], &code[3..]);
    assert_eq!(visitor.submit(CODE, CODE, &[("code", &spaced)]).status, 303);
    assert_eq!(visitor.get("/dashboard").status, 200);
    let mut replay = before;
    let csrf = replay.csrf("/dashboard/sign-in");
    assert_eq!(replay.post(CODE, &[("_csrf", &csrf), ("code", &code)]).status, 401);
}

#[test]
fn a_code_can_be_tried_five_times() {
    let world = World::new();
    let mut visitor = Visitor::new(&world);
    let code = visitor.ask_for_code(&address("guess"));
    let wrong = other(&code);
    for n in 1..=4 {
        let reply = visitor.submit(CODE, CODE, &[("code", &wrong)]);
        assert_eq!(reply.status, 422, "{n}: {reply:?}");
        let page = text(&reply);
        let left = if n == 4 { "1 try is left".to_owned() } else { format!("{} tries are left", 5 - n) };
        assert!(page.contains("This is not the last code for") && page.contains(&left), "{page}");
        assert!(!page.contains("code: "), "{page}");
    }
    let csrf = visitor.csrf(CODE);
    assert_eq!(visitor.post(CODE, &[("_csrf", &csrf), ("code", &wrong)]).status, 429);
    let late = visitor.post(CODE, &[("_csrf", &csrf), ("code", &code)]);
    assert_eq!(late.status, 429, "the right code comes too late: {late:?}");
    assert_eq!(visitor.get("/dashboard").status, 303);
}

/// Asks for a code at the page to sign in.
fn ask(visitor: &mut Visitor, email: &str) -> Reply {
    visitor.submit("/dashboard/sign-in", "/dashboard/sign-in", &[("email", email)])
}

#[test]
fn codes_are_limited_by_network() {
    let world = World::new();
    let mut greedy = Visitor::new(&world);
    for n in 0..20 {
        assert_eq!(ask(&mut greedy, &address(&format!("flood{n}"))).status, 303);
    }
    assert_eq!(ask(&mut greedy, &address("flood20")).status, 429);
    assert_eq!(ask(&mut Visitor::new(&world), &address("flood20")).status, 303, "others are not affected");
}

/// One customer of a network has a /48: 65,536 networks that are limited alone.
#[test]
fn codes_are_limited_by_ipv6_block() {
    let world = World::new();
    let at = |block: u16, network: u16| {
        Visitor::at(&world, IpAddr::from([0x2001, 0xdb8, block, network, 0, 0, 0, 1]))
    };
    for network in 0..10 {
        let mut visitor = at(1, network);
        for n in 0..20 {
            assert_eq!(ask(&mut visitor, &address(&format!("block{network}n{n}"))).status, 303);
        }
    }
    assert_eq!(ask(&mut at(1, 10), &address("block10")).status, 429);
    assert_eq!(ask(&mut at(2, 10), &address("block10")).status, 303, "another block is not affected");
}

#[test]
fn a_stranger_who_asks_for_codes_does_not_keep_their_owner_out() {
    let world = World::new();
    let email = address("locked");
    let mut stranger = Visitor::new(&world);
    let mut last = String::new();
    for _ in 0..5 {
        last = stranger.ask_for_code(&email);
    }
    let refused = ask(&mut stranger, &email);
    assert_eq!(refused.status, 429);
    let page = text(&refused);
    assert!(
        page.contains("from your network") && page.contains("name=\"code\""),
        "the last code can be typed"
    );
    Visitor::new(&world).sign_in(&email);
    // Whoever has the mailbox can still use the code that was sent to this browser.
    assert_eq!(stranger.submit(CODE, CODE, &[("code", &last)]).status, 303);
}

#[test]
fn many_strangers_leave_the_owner_a_link() {
    let world = World::new();
    let email = address("crowd");
    for _ in 0..10 {
        Visitor::new(&world).ask_for_code(&email);
    }
    let mut owner = Visitor::new(&world);
    let refused = ask(&mut owner, &email);
    assert_eq!(refused.status, 429, "a mailbox is not flooded");
    assert!(text(&refused).contains("Open the link in the latest"), "{refused:?}");
    let link = owner.link_of(&email);
    let token = link.split("token=").nth(1).unwrap();
    assert_eq!(owner.submit(&link, LINK, &[("token", token)]).status, 303);
    assert_eq!(owner.get("/dashboard").status, 200);
}

/// Where the bound of the address refuses, one of the mails that it counts must still be good.
#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn an_address_gets_codes_again_when_its_links_have_expired() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let email = address("again");
    for _ in 0..10 {
        Visitor::new(&world).ask_for_code(&email);
    }
    let mut owner = Visitor::new(&world);
    let link = owner.link_of(&email);
    sandbox.advance(599_999);
    assert_eq!(ask(&mut owner, &email).status, 429);
    assert_eq!(owner.get(&link).status, 200);
    sandbox.advance(1);
    assert_eq!(owner.get(&link).status, 401);
    owner.sign_in(&email);
}

#[test]
fn many_networks_together_guess_no_more_than_one() {
    let world = World::new();
    let email = address("guessed");
    let mut owner = Visitor::new(&world);
    let code = owner.ask_for_code(&email);
    let link = owner.link_of(&email);
    let csrf = owner.csrf(CODE);
    for _ in 0..5 {
        let mut guesser = Visitor::new(&world);
        let wrong = other(&guesser.ask_for_code(&email));
        let csrf = guesser.csrf(CODE);
        for _ in 0..5 {
            guesser.post(CODE, &[("_csrf", &csrf), ("code", &wrong)]);
        }
    }
    let refused = owner.post(CODE, &[("_csrf", &csrf), ("code", &code)]);
    assert_eq!(refused.status, 429);
    assert!(text(&refused).contains("Open the link in the mail"), "{refused:?}");
    let token = link.split("token=").nth(1).unwrap();
    assert_eq!(owner.submit(&link, LINK, &[("token", token)]).status, 303, "a link is not guessed");
}

/// Five tries a code and twenty-five an hour would be 600 a day: a chance of one in 1,700 each day, for whoever is patient.
#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn an_address_is_guessed_at_fifty_times_a_day_at_most() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let email = address("patient");
    // Whoever types the code rightly uses nothing up.
    for _ in 0..4 {
        sandbox.advance(3_600_000);
        Visitor::signed_in(&world, &email);
    }
    let mut tries = 0;
    let mut last = None;
    for _ in 0..11 {
        sandbox.advance(3_600_000);
        let mut guesser = Visitor::new(&world);
        let wrong = other(&guesser.ask_for_code(&email));
        let csrf = guesser.csrf(CODE);
        for n in 1..=5 {
            let reply = guesser.post(CODE, &[("_csrf", &csrf), ("code", &wrong)]);
            let page = text(&reply);
            if page.contains("in the last 24 hours") {
                last = Some(reply.status);
                break;
            }
            assert_eq!(reply.status, if n == 5 { 429 } else { 422 }, "{page}");
            tries += 1;
        }
    }
    assert_eq!((tries, last), (50, Some(429)));
    // The owner's code is not taken either; the link of the same mail is.
    let mut owner = Visitor::new(&world);
    let code = owner.ask_for_code(&email);
    let refused = owner.submit(CODE, CODE, &[("code", &code)]);
    let page = text(&refused);
    assert!(refused.status == 429 && page.contains("Open the link in the mail instead"), "{page}");
    let link = owner.link_of(&email);
    let token = link.split("token=").nth(1).unwrap();
    assert_eq!(owner.submit(&link, LINK, &[("token", token)]).status, 303);
    // Another address is not affected, and a day later neither is this one. What is swept is not counted too soon.
    sandbox.run_jobs();
    Visitor::signed_in(&world, &address("other"));
    let mut again = Visitor::new(&world);
    let code = again.ask_for_code(&email);
    assert_eq!(again.submit(CODE, CODE, &[("code", &code)]).status, 429, "also after the sweep");
    sandbox.advance(24 * 3_600_000);
    Visitor::signed_in(&world, &email);
}

#[test]
fn a_link_signs_in_with_a_button_only() {
    let world = World::new();
    let email = address("link");
    let mut asker = Visitor::new(&world);
    asker.ask_for_code(&email);
    let link = asker.link_of(&email);
    let mut phone = Visitor::new(&world);
    for _ in 0..2 {
        let page = phone.get(&link);
        assert!(page.status == 200 && text(&page).contains(&email), "{page:?}");
        assert_eq!(phone.get("/dashboard").status, 303, "opening the link signs nobody in");
    }
    let token = link.split("token=").nth(1).unwrap();
    let reply = phone.submit(&link, LINK, &[("token", token)]);
    assert_eq!((reply.status, reply.header("location")), (303, Some("/dashboard")));
    assert_eq!(phone.get("/dashboard").status, 200);
    let mut again = Visitor::new(&world);
    assert_eq!(again.get(&link).status, 401, "once");
    let csrf = again.csrf("/dashboard/sign-in");
    assert_eq!(again.post(LINK, &[("_csrf", &csrf), ("token", token)]).status, 401);
    let code = asker.code_of(&email);
    let csrf = asker.csrf("/dashboard/sign-in");
    assert_eq!(
        asker.post(CODE, &[("_csrf", &csrf), ("code", &code)]).status,
        401,
        "code and link are one proof"
    );
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_code_expires_after_ten_minutes_and_a_session_after_thirty_days_without_use() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let email = address("late");
    let mut visitor = Visitor::new(&world);
    let code = visitor.ask_for_code(&email);
    let link = visitor.link_of(&email);
    let csrf = visitor.csrf(CODE);
    sandbox.advance(600_001);
    assert_eq!(visitor.post(CODE, &[("_csrf", &csrf), ("code", &code)]).status, 401);
    assert_eq!(visitor.get(&link).status, 401);
    visitor.sign_in(&email);
    const DAY_MS: i64 = 86_400_000;
    for _ in 0..3 {
        sandbox.advance(29 * DAY_MS);
        assert_eq!(visitor.get("/dashboard").status, 200, "a session that is used goes on");
    }
    sandbox.advance(30 * DAY_MS + 1);
    assert_eq!(visitor.get("/dashboard").status, 303);
}

/// Otherwise the browser drops the cookie 30 days after the sign-in, however often the session is used.
#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn the_cookie_lasts_as_long_as_the_session() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let mut visitor = Visitor::signed_in(&world, &address("cookie"));
    let token = visitor.cookies["sidetone_session"].clone();
    let renewed = |reply: &Reply| {
        let cookies = reply.headers.get_all("set-cookie").iter().map(|one| one.to_str().unwrap().to_owned());
        cookies.filter(|one| one.starts_with("sidetone_session=")).collect::<Vec<_>>()
    };
    let expected = format!("sidetone_session={token}; Path=/; HttpOnly; SameSite=Lax; Max-Age=2592000");
    assert_eq!(renewed(&visitor.get("/dashboard")), [""; 0], "the session is new");
    for path in ["/dashboard", "/dashboard/api/workspace", "/dashboard/nowhere", "/dashboard/sign-in"] {
        sandbox.advance(3_600_000);
        assert_eq!(renewed(&visitor.get(path)), [expected.as_str()], "{path}");
        assert_eq!(renewed(&visitor.get(path)), [""; 0], "{path}, again");
    }
    // A form extends it, too; but not the one that ends it.
    let csrf = visitor.csrf("/dashboard/keys");
    sandbox.advance(3_600_000);
    let made = visitor.post("/dashboard/do/create_api_key", &[("_csrf", &csrf), ("name", "x")]);
    assert_eq!(renewed(&made), [expected.as_str()]);
    sandbox.advance(3_600_000);
    let out = renewed(&visitor.post("/dashboard/sign-out", &[("_csrf", &csrf)]));
    assert!(out.len() == 1 && out[0].starts_with("sidetone_session=;"), "{out:?}");
}

/// The cookies that a sign-in sets where the service has this address, without their values.
fn cookies_at(base_url: &str) -> Vec<String> {
    let world = World::with_settings(&[("SIDETONE_BASE_URL", base_url)]);
    let mut visitor = Visitor::new(&world);
    let mut replies = vec![visitor.get("/dashboard/sign-in")];
    let code = visitor.ask_for_code("anna@parcels.example");
    let csrf = visitor.csrf(CODE);
    replies.push(visitor.post(CODE, &[("_csrf", &csrf), ("code", &code)]));
    assert_eq!(visitor.get("/dashboard").status, 200, "{base_url}: the cookie opens the session");
    let all = replies.iter().flat_map(|reply| reply.headers.get_all("set-cookie"));
    all.map(|cookie| {
        let (name, rest) = cookie.to_str().unwrap().split_once('=').unwrap();
        format!("{name}; {}", rest.split_once("; ").unwrap().1)
    })
    .collect()
}

#[test]
fn cookies_are_secure_and_of_this_host_alone_where_there_is_tls() {
    let expected = |prefix: &str, end: &str| {
        let about = "Path=/; HttpOnly; SameSite=Lax; Max-Age=";
        [("visit", 86_400), ("session", 2_592_000), ("visit", 0)]
            .map(|(name, age)| format!("{prefix}sidetone_{name}; {about}{age}{end}"))
    };
    assert_eq!(cookies_at("https://voice.parcels.example"), expected("__Host-", "; Secure"));
    // Some browsers keep secure cookies of this machine without TLS, too. Safari does not: nobody could sign in there.
    assert_eq!(cookies_at("http://127.0.0.1:8787"), expected("", ""));
    assert_eq!(cookies_at("http://localhost:8787"), expected("", ""));
    assert_eq!(cookies_at("http://voice.parcels.example"), expected("", ""));
    // With TLS, a cookie that a page of another host, or one without TLS, could have set opens nothing.
    let world = World::with_settings(&[("SIDETONE_BASE_URL", "https://voice.parcels.example")]);
    let mut visitor = Visitor::signed_in(&world, "anna@parcels.example");
    let token = visitor.cookies.remove("__Host-sidetone_session").expect("a session");
    visitor.cookies.insert("sidetone_session".to_owned(), token);
    assert_eq!(visitor.get("/dashboard").status, 303);
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "starts the service again")]
fn the_first_start_shows_a_link_to_the_first_workspace() {
    // Only a host with one database starts.
    let world = World::over(Arc::new(memory()));
    let engine = world.sandbox().unwrap().engine();
    let start = || {
        let link = block_on(engine.start("tests")).unwrap().sign_in_link?;
        Some(link.strip_prefix(sidetone_tests::world::BASE_URL).unwrap().to_owned())
    };
    let first = start().expect("a link");
    // Whoever signs in by a code gets a workspace of their own: the first one waits on.
    Visitor::signed_in(&world, &address("sooner"));
    let second = start().expect("nobody has used it");
    let mut operator = Visitor::new(&world);
    assert_eq!(operator.get(&first).status, 401, "the next start replaces it");
    let token = second.split("token=").nth(1).unwrap();
    assert_eq!(operator.submit(&second, LINK, &[("token", token)]).status, 303);
    assert_eq!(operator.get("/dashboard/api/workspace").json, world.get("/workspace").ok().json);
    assert_eq!(Visitor::new(&world).get(&second).status, 401, "once");
    assert_eq!(start(), None, "the operator has signed in");
    // Those who come later have workspaces of their own.
    let mut other = Visitor::signed_in(&world, &address("later"));
    assert_ne!(other.get("/dashboard/api/workspace").json, world.get("/workspace").ok().json);
}

/// Whoever opens the first address of the start instead of its link would get an empty workspace.
#[test]
fn without_mail_the_page_says_how_the_first_workspace_opens() {
    let world = World::new();
    let page = text(&Visitor::new(&world).get("/dashboard/sign-in"));
    assert!(page.contains("<code>sidetone sign-in-link</code> makes another"), "{page}");
    let invited = text(&Visitor::new(&world).get("/dashboard/sign-in?next=%2Fdashboard%2Fjoin%3Ftoken%3Dx"));
    assert!(invited.contains("You are invited") && !invited.contains("sign-in-link"), "{invited}");
}

#[test]
fn what_is_no_address_is_refused() {
    let world = World::new();
    let mut visitor = Visitor::new(&world);
    for email in ["", "anna", "anna@b", "anna@b.example\r\nbcc: c@d.example"] {
        let reply = visitor.submit("/dashboard/sign-in", "/dashboard/sign-in", &[("email", email)]);
        assert_eq!(reply.status, 422, "{email}: {reply:?}");
    }
}

#[test]
fn no_form_is_taken_from_elsewhere() {
    let world = World::new();
    let mut visitor = Visitor::new(&world);
    let email = address("forged");
    // Without the cookie of a visit, without the proof, with that of another visit, from another site.
    assert_eq!(visitor.post("/dashboard/sign-in", &[("email", &email)]).status, 403);
    let own = visitor.csrf("/dashboard/sign-in");
    assert_eq!(visitor.post("/dashboard/sign-in", &[("email", &email)]).status, 403);
    let foreign = Visitor::new(&world).csrf("/dashboard/sign-in");
    assert_eq!(visitor.post("/dashboard/sign-in", &[("_csrf", &foreign), ("email", &email)]).status, 403);
    let fields = [("_csrf", own.as_str()), ("email", email.as_str())];
    for site in ["cross-site", "same-site"] {
        let reply = visitor.post_with("/dashboard/sign-in", &fields, &[("sec-fetch-site", site)]);
        assert_eq!(reply.status, 403, "{site}");
    }
    visitor.sign_in(&address("forged2"));
    let csrf = visitor.csrf("/dashboard");
    let forms = [
        "/dashboard/do/create_api_key",
        "/dashboard/do/delete_assistant",
        "/dashboard/do/update_workspace",
        "/dashboard/do/revoke_session",
        "/dashboard/do/switch_workspace",
        "/dashboard/sign-out",
    ];
    for form in forms {
        for fields in [
            vec![("name", "x")],
            vec![("name", "x"), ("_csrf", own.as_str())],
            vec![("name", "x"), ("_csrf", "")],
        ] {
            assert_eq!(visitor.post(form, &fields).status, 403, "{form} {fields:?}");
        }
        let fields = [("name", "x"), ("_csrf", csrf.as_str())];
        let reply = visitor.post_with(form, &fields, &[("sec-fetch-site", "cross-site")]);
        assert_eq!(reply.status, 403, "{form}");
        let json = visitor.send(http::Method::POST, form, &[("content-type", "text/plain")], "a=b".into());
        assert_eq!(json.status, 415, "{form}");
    }
    assert_eq!(visitor.get("/dashboard").status, 200, "nothing of it was done");
    assert_eq!(visitor.get("/dashboard/api/keys").json, serde_json::json!([]));
}

#[test]
fn a_planted_cookie_becomes_no_session() {
    let world = World::new();
    let mut visitor = Visitor::new(&world);
    let planted = "x".repeat(43);
    visitor.cookies.insert("sidetone_session".to_owned(), planted.clone());
    visitor.sign_in(&address("planted"));
    let first = visitor.cookies["sidetone_session"].clone();
    assert_ne!(first, planted);
    let mut thief = Visitor::new(&world);
    thief.cookies.insert("sidetone_session".to_owned(), planted);
    assert_eq!(thief.get("/dashboard").status, 303);
    // Signing in again ends the session that the browser had.
    let email = address("planted2");
    let mut other = Visitor::new(&world);
    other.ask_for_code(&email);
    let link = other.link_of(&email);
    let token = link.split("token=").nth(1).unwrap().to_owned();
    assert_eq!(visitor.submit(&link, LINK, &[("token", &token)]).status, 303);
    assert_ne!(visitor.cookies["sidetone_session"], first);
    let mut old = Visitor::new(&world);
    old.cookies.insert("sidetone_session".to_owned(), first);
    assert_eq!(old.get("/dashboard").status, 303, "rotated at the sign-in");
}

#[test]
fn nobody_is_sent_elsewhere() {
    let world = World::new();
    let elsewhere = [
        "https://evil.example",
        "//evil.example",
        "/\\evil.example",
        "/dashboard/../docs",
        "/docs",
        "javascript:alert(1)",
    ];
    for (n, bad) in elsewhere.into_iter().enumerate() {
        let mut visitor = Visitor::new(&world);
        let email = address(&format!("elsewhere{n}"));
        let page = text(&visitor.get(&format!("/dashboard/sign-in?next={bad}")));
        assert!(page.contains("name=\"next\" value=\"/dashboard\""), "{bad}: {page}");
        visitor.submit("/dashboard/sign-in", "/dashboard/sign-in", &[("email", &email), ("next", bad)]);
        let code = visitor.code_of(&email);
        let reply = visitor.submit(CODE, CODE, &[("code", &code)]);
        assert_eq!((reply.status, reply.header("location")), (303, Some("/dashboard")), "{bad}");
        let csrf = visitor.csrf("/dashboard/keys");
        for name in ["_back", "_then"] {
            let fields = [("_csrf", csrf.as_str()), ("id", "key_x"), (name, bad)];
            let reply = visitor.post("/dashboard/do/revoke_api_key", &fields);
            assert!(reply.status == 422 && reply.header("location").is_none(), "{bad}: {reply:?}");
        }
    }
}
