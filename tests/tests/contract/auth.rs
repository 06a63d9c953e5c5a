//! Authentication, the limit for invalid keys, and Idempotency-Keys.
use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};
use sidetone_engine::base::api_key::ApiKey;
use sidetone_tests::faults::{FaultyDatabase, StorageFault};
use sidetone_tests::{Reply, World};

#[test]
fn the_eleventh_invalid_key_from_an_address_is_rate_limited() {
    let world = World::new();
    let stranger = world.with_key(&unknown_key(1));
    for _ in 0..10 {
        stranger.get("/assistants").refused("unauthorized");
    }
    for _ in 0..3 {
        let reply = stranger.get("/assistants").refused("too_many_invalid_credentials");
        let seconds: i64 = reply.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=60).contains(&seconds), "{seconds}");
    }
    // The limit applies to MCP too, and to any request with any invalid key.
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    stranger.mcp(list).refused("too_many_invalid_credentials");
    stranger.with_key("nonsense").delete("/tools/x").refused("too_many_invalid_credentials");
    // A valid key is always accepted.
    world.get("/assistants").ok();
    // A missing key does not count as an invalid key.
    without_key(&world, "/assistants").refused("unauthorized");
    // Each address has its own limit.
    stranger.from_elsewhere().get("/assistants").refused("unauthorized");
    // A valid key does not reset the counter.
    stranger.get("/assistants").refused("too_many_invalid_credentials");
}

#[test]
fn missing_keys_are_never_counted() {
    let world = World::new();
    for _ in 0..30 {
        without_key(&world, "/assistants").refused("unauthorized");
    }
    world.with_key(&unknown_key(2)).get("/assistants").refused("unauthorized");
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn the_rate_limit_window_is_one_minute() {
    let world = World::with_manual_clock();
    let stranger = world.with_key(&unknown_key(3));
    let sandbox = world.sandbox().unwrap();
    for _ in 0..10 {
        stranger.get("/assistants").refused("unauthorized");
    }
    sandbox.advance(59_001);
    let reply = stranger.get("/assistants").refused("too_many_invalid_credentials");
    assert_eq!(reply.header("retry-after"), Some("1"), "the remaining time is rounded up");
    sandbox.advance(999);
    stranger.get("/assistants").refused("unauthorized");
}

#[test]
fn malformed_authorization_counts_as_an_invalid_key() {
    let world = World::new();
    let valid = world.key().to_owned();
    let mut misspelt = valid.clone().into_bytes();
    misspelt[20] = if misspelt[20] == b'x' { b'y' } else { b'x' };
    let misspelt = String::from_utf8(misspelt).unwrap();
    for authorization in [
        valid.clone(),
        format!("Basic {valid}"),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        format!("Bearer {misspelt}"),
        format!("Bearer {valid}x"),
        format!("Bearer {}", valid.to_uppercase()),
        format!("Bearer {valid} {valid}"),
        format!("Bearer {valid}, Bearer {valid}"),
        format!("Bearer \"{valid}\""),
    ] {
        let reply = with_authorization(&world.from_elsewhere(), &authorization);
        reply.refused("unauthorized");
    }
    for authorization in [format!("Bearer {valid}"), format!("bearer {valid}"), format!("BEARER   {valid} ")]
    {
        with_authorization(&world, &authorization).ok();
    }
}

#[test]
fn keys_in_the_query_or_a_cookie_are_ignored() {
    let world = World::new();
    let key = world.key();
    without_key(&world, &format!("/assistants?api_key={key}")).refused("unauthorized");
    let request = http::Request::get("/assistants").header("cookie", format!("session={key}"));
    world.send(request.body("".into()).unwrap()).refused("unauthorized");
}

#[test]
fn each_bootstrap_key_creates_a_workspace() {
    let keys = [unknown_key(11), unknown_key(12)];
    let world = World::with_settings(&[("SIDETONE_BOOTSTRAP_KEYS", &keys.join(","))]);
    let [first, second] = [world.with_key(&keys[0]), world.with_key(&keys[1])];
    let made = first.assistant();
    assert_eq!(first.get("/assistants").ok().ids(), [&*made.id]);
    assert_eq!(second.get("/assistants").ok().json, json!([]));
    second.get(format!("/assistants/{}", made.id)).refused("not_found");
    let listed = first.get("/keys").ok();
    assert_eq!((&listed.json[0]["name"], &listed.json[0]["hint"]), (&json!("bootstrap"), &json!("")));
    // A revoked bootstrap key stays revoked although the setting still contains it.
    first.delete(format!("/keys/{}", listed.ids()[0])).empty();
    first.get("/assistants").refused("unauthorized");
    first.post("/assistants", json!({})).refused("unauthorized");
    second.get("/assistants").ok();
}

#[test]
fn a_revoked_bootstrap_key_causes_no_write() {
    let key = unknown_key(13);
    let database = Arc::new(FaultyDatabase::default());
    let world = World::over_with(database.clone(), &[("SIDETONE_BOOTSTRAP_KEYS", &key)]).with_key(&key);
    let listed = world.get("/keys").ok();
    world.delete(format!("/keys/{}", listed.ids()[0])).empty();
    // A write would fail, and the answer would be another one.
    database.fail_write(1, StorageFault::Before);
    world.get("/assistants").refused("unauthorized");
}

#[test]
fn any_request_may_be_the_first_use_of_a_bootstrap_key() {
    let first_uses: [fn(&World); 8] = [
        |world| {
            world.get("/assistants").ok();
        },
        |world| {
            world.assistant();
        },
        |world| {
            world.post("/assistants", json!({"bogus": 1})).refused("validation_failed");
        },
        |world| {
            world.delete("/tools/x").refused("not_found");
        },
        |world| {
            world.get("/models").ok();
        },
        |world| {
            world.post_once("/keys", "k", json!({"name": "CI"})).created();
        },
        |world| {
            world.mcp(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).ok();
        },
        |world| {
            world.tool("list_assistants", json!({})).ok();
        },
    ];
    for (n, first_use) in first_uses.iter().enumerate() {
        let key = unknown_key(20 + n as u8);
        first_use(&World::with_settings(&[("SIDETONE_BOOTSTRAP_KEYS", &key)]).with_key(&key));
    }
}

#[test]
fn open_routes_need_no_key() {
    let world = World::new();
    assert_eq!(without_key(&world, "/healthz").ok().json, json!({"status": "ok"}));
    assert_eq!(without_key(&world, "/readyz").ok().json, json!({"status": "ready"}));
    assert_eq!(
        without_key(&world, "/openapi.json").ok()["openapi"].as_str().unwrap().split_once('.').unwrap().0,
        "3"
    );
    let docs = without_key(&world, "/docs").ok();
    assert!(docs.header("content-type").unwrap().starts_with("text/html"), "{:?}", docs.headers);
    let home = without_key(&world, "/").ok();
    assert_eq!(home["name"], "Sidetone");
    let browsed = http::Request::get("/").header("accept", "text/html,*/*;q=0.8").body("".into()).unwrap();
    let page = world.send(browsed);
    assert!(page.header("content-type").unwrap().starts_with("text/html"), "{:?}", page.headers);
    assert_eq!(page.header("vary"), Some("accept"));
    let docs_at = home["docs"].as_str().unwrap();
    assert!(docs_at.ends_with("/docs"), "{docs_at}");
    for path in ["/", "/healthz", "/openapi.json", "/openapi-3.0.json", "/docs"] {
        let reply = world.post(path, json!({})).refused("method_not_allowed");
        assert_eq!(reply.header("allow"), Some("GET"));
    }
    // Who has them already is told so, and nothing else.
    for path in ["/openapi.json", "/docs"] {
        let first = without_key(&world, path).ok();
        let etag = first.header("etag").unwrap().to_owned();
        assert!(etag.starts_with("W/\""), "{etag}");
        assert_eq!(first.header("cache-control"), Some("no-cache"), "{path}");
        let asked = |etag: &str| {
            let request = http::Request::get(path).header("if-none-match", etag).body("".into()).unwrap();
            world.send(request)
        };
        let again = asked(&etag);
        assert_eq!((again.status, again.header("etag"), again.body.len()), (304, Some(&*etag), 0), "{path}");
        assert_eq!(asked("W/\"other\"").status, 200, "{path}");
    }
    // OAuth discovery gets plain 404s.
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
    ] {
        without_key(&world, path).refused("not_found");
    }
}

#[test]
fn a_repeated_post_returns_the_stored_response() {
    let world = World::new();
    let body = json!({"name": "Front desk", "instructions": "Be kind."});
    let first = world.post_once("/assistants", "k-1", body.clone()).created();
    assert_eq!(first.header("idempotent-replayed"), None);
    world.patch(format!("/assistants/{}", first["id"].as_str().unwrap()), json!({"name": "Changed"})).ok();
    let reordered = json!({"instructions": "Be kind.", "name": "Front desk"});
    for body in [body, reordered] {
        let again = world.post_once("/assistants", "k-1", body).created();
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
        assert_eq!(again.body, first.body, "the stored response is repeated byte for byte");
        assert_eq!(again.header("etag"), first.header("etag"));
        assert_ne!(again.header("x-request-id"), first.header("x-request-id"));
    }
    assert_eq!(world.get("/assistants").ok().ids().len(), 1);
}

#[test]
fn an_idempotency_key_reused_for_another_request_is_a_409() {
    let world = World::new();
    let body = json!({"name": "A", "instructions": "B"});
    world.post_once("/assistants", "k", body.clone()).created();
    let mut other = body.clone();
    other["first_message"] = "Hi".into();
    world.post_once("/assistants", "k", other).refused("idempotency_key_reused");
    world.post_once("/keys", "k", json!({"name": "A"})).refused("idempotency_key_reused");
    let (one, two) = (world.simulation().id, world.simulation().id);
    world.post_once(format!("/simulations/{one}/runs"), "r", json!({})).created();
    world.post_once(format!("/simulations/{two}/runs"), "r", json!({})).refused("idempotency_key_reused");
    // Each workspace has its own Idempotency-Keys.
    world.other().post_once("/assistants", "k", body).created();
}

#[test]
fn a_rejected_request_does_not_use_up_its_idempotency_key() {
    let world = World::new();
    world.post_once("/assistants", "k", json!({"name": "A"})).refused("validation_failed");
    world.post_once("/assistants", "k", json!({"name": "A", "instructions": "B"})).created();
}

#[test]
fn a_replay_repeats_signing_secrets_but_not_api_keys() {
    let world = World::new();
    for (path, body) in [
        ("/tools", json!({"name": "a", "url": "https://example.com/"})),
        ("/webhooks", json!({"url": "https://example.com/", "events": ["*"]})),
    ] {
        let first = world.post_once(path, path, body.clone()).created();
        let again = world.post_once(path, path, body).created();
        assert!(first["signing_secret"].is_string());
        assert_eq!(again.body, first.body);
    }
    let body = json!({"name": "CI"});
    let first = world.post_once("/keys", "key", body.clone()).created();
    let again = world.post_once("/keys", "key", body).created();
    assert!(first["key"].is_string());
    let mut expected = first.json.clone();
    expected["key"] = Value::Null;
    assert_eq!(again.json, expected);
    world.with_key(first["key"].as_str().unwrap()).get("/keys").ok();
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn an_idempotency_key_is_stored_for_24_hours() {
    const DAY_MS: i64 = 24 * 60 * 60 * 1000;
    let world = World::with_manual_clock();
    let body = json!({"name": "A", "instructions": "B"});
    let post = || world.post_once("/assistants", "k", body.clone()).created();
    let first = post();
    world.sandbox().unwrap().advance(DAY_MS - 1);
    assert_eq!(post()["id"], first["id"]);
    world.sandbox().unwrap().advance(1);
    let second = post();
    assert_ne!(second["id"], first["id"]);
    assert_eq!(second.header("idempotent-replayed"), None);
    assert_eq!(post()["id"], second["id"], "the new response is stored for its own 24 hours");
}

#[test]
fn concurrent_requests_with_one_idempotency_key_run_once() {
    const REQUESTS: usize = 12;
    let world = World::new();
    let replies: Vec<Reply> = std::thread::scope(|scope| {
        let post =
            || world.post_once("/tools", "concurrent", json!({"name": "one", "url": "https://example.com/"}));
        let all: Vec<_> = (0..REQUESTS).map(|_| scope.spawn(post)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    for reply in &replies {
        // Later requests wait for the first response or get 409.
        assert!(reply.status == 201 || reply.code() == "idempotency_key_reused", "{reply:?}");
    }
    let firsts =
        replies.iter().filter(|reply| reply.status == 201 && reply.header("idempotent-replayed").is_none());
    assert_eq!(firsts.count(), 1, "{replies:?}");
    let ids: std::collections::BTreeSet<_> =
        replies.iter().filter(|reply| reply.status == 201).map(|reply| reply["id"].to_string()).collect();
    assert_eq!(ids.len(), 1);
    assert_eq!(world.get("/tools").ok().ids().len(), 1);
}

#[test]
fn rest_and_mcp_share_idempotency_keys() {
    let world = World::new();
    let body = json!({"name": "A", "instructions": "B"});
    let first = world.tool("create_assistant", json!({"data": body, "idempotency_key": "shared"})).ok();
    assert!(!first.replayed);
    let again = world.post_once("/assistants", "shared", body.clone()).created();
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.json, first.json);
    let third = world.tool("create_assistant", json!({"data": body, "idempotency_key": "shared"})).ok();
    assert!(third.replayed);
    let other = json!({"data": {"name": "B", "instructions": "B"}, "idempotency_key": "shared"});
    world.tool("create_assistant", other).refused("idempotency_key_reused");
}

#[test]
fn an_idempotency_key_is_1_to_255_printable_characters() {
    let world = World::new();
    let body = json!({"name": "A", "instructions": "B"});
    for good in ["1", "a key with spaces", &"k".repeat(255), "8f14e45f-ceea-467f-a8f5-5d1b0b2d8a3e"] {
        world.post_once("/assistants", good, body.clone()).created();
    }
    for bad in ["", &"k".repeat(256), "ключ", "a\tb"] {
        world
            .post_once("/assistants", bad, body.clone())
            .refused("invalid_parameter")
            .naming(&["Idempotency-Key"]);
    }
    // The key is ignored where requests are idempotent anyway.
    let assistant = world.assistant().id;
    let patch = json!({"name": "B"});
    world
        .call_with(
            Method::PATCH,
            &format!("/assistants/{assistant}"),
            Some(&patch),
            &[("idempotency-key", "")],
        )
        .ok();
}

fn unknown_key(n: u8) -> String {
    ApiKey::from_bytes([200_u8.wrapping_add(n); 32]).as_str().to_owned()
}

fn without_key(world: &World, path: &str) -> Reply {
    world.send(http::Request::get(path).body("".into()).unwrap())
}

fn with_authorization(world: &World, value: &str) -> Reply {
    world.send(http::Request::get("/assistants").header("authorization", value).body("".into()).unwrap())
}
