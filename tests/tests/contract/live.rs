//! Test tokens and live conversations.
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidetone_engine::base::limits::{LINK_STARTS_MAX, LINK_STARTS_WINDOW_MAX, LINK_STARTS_WINDOW_MS};
use sidetone_tests::{LiveClient, World};

/// An assistant with a greeting and a document with opening hours.
fn front_desk(world: &World) -> String {
    let assistant = world.create(
        "/assistants",
        json!({"name": "Front desk", "instructions": "Be kind.", "first_message": "Hello, front desk."}),
    );
    let hours =
        world.create("/knowledge", json!({"name": "Hours", "content": "On Saturday we open at ten."}));
    world.put(format!("/assistants/{}/knowledge", assistant.id), json!({"knowledge_ids": [hours.id]})).ok();
    assistant.id
}

fn started(client: &mut LiveClient<'_>) -> String {
    let started = client.expect("call_started");
    assert_eq!(started["call"]["status"], "in_progress", "{started}");
    started["call"]["id"].as_str().unwrap().to_owned()
}

fn roles(call: &Value) -> Vec<&str> {
    call["transcript"].as_array().unwrap().iter().map(|row| row["role"].as_str().unwrap()).collect()
}

fn texts(call: &Value) -> Vec<&str> {
    call["transcript"].as_array().unwrap().iter().map(|row| row["text"].as_str().unwrap()).collect()
}

#[test]
fn a_conversation_is_stored_as_a_call() {
    let world = World::new();
    let assistant = front_desk(&world);
    let mut client = world.start_conversation(&assistant);
    let call_id = started(&mut client);
    assert_eq!(client.hear(), "Hello, front desk.");

    let call = world.get(format!("/calls/{call_id}")).ok().json;
    assert_eq!(call["status"], "in_progress");
    assert_eq!((&call["source"], &call["direction"]), (&json!("browser"), &json!("inbound")));

    client.say("When do you open on Saturday?");
    assert!(client.hear().contains("open at ten"));
    // The client is told of a line before it is stored.
    let started_at = Instant::now();
    let so_far = loop {
        let so_far = world.get(format!("/calls/{call_id}")).ok().json;
        assert_eq!(so_far["status"], "in_progress");
        if roles(&so_far) == ["assistant", "user", "assistant"] {
            break so_far;
        }
        assert!(started_at.elapsed() < Duration::from_secs(10), "{so_far}");
    };
    let listed = world.get("/calls").ok().json;
    assert_eq!(listed["calls"][0]["transcript"], json!([]), "lists have the transcripts of ended calls");
    client.send(r#"{"type": "hang_up"}"#);
    let ended = client.expect("call_ended");
    assert_eq!((&ended["ended_reason"], &ended["call_id"]), (&json!("user_hung_up"), &json!(call_id)));
    assert_eq!(client.rest(), (vec![], Some(1000)));

    let call = world.settled_call(&call_id);
    assert_eq!(call["status"], "ended", "{call}");
    assert_eq!((&call["outcome"], &call["fault"]), (&json!("completed"), &json!("none")), "{call}");
    assert_eq!(call["ended_reason"], "user_hung_up");
    assert_eq!(call["duration_ms"], ended["duration_ms"]);
    assert_eq!(call["costs"]["total_microusd"], 0);
    assert_eq!(roles(&call), ["assistant", "user", "assistant"]);
    assert_eq!(texts(&call), texts(&so_far));
    assert_eq!(call["assistant_id"], json!(assistant));
    world.expect_replay(&call);
    assert_eq!(world.delete(format!("/calls/{call_id}")).status, 204);
    assert!(world.inputs_of(&call_id).is_empty(), "the inputs go with the call");
}

#[test]
fn token_lifetimes_are_clamped() {
    let world = World::new();
    let assistant = world.assistant();
    let path = format!("/assistants/{}/test-token", assistant.id);
    for (asked, given) in [(1, 30), (-5, 30), (30, 30), (3600, 3600), (3601, 3600), (1_i64 << 40, 3600)] {
        let body = json!({"ttl_seconds": asked, "max_duration_seconds": asked});
        let token = world.post(&path, body).ok();
        assert_eq!((&token["ttl_seconds"], &token["max_duration_seconds"]), (&json!(given), &json!(given)));
    }
    let token = world.call(http::Method::POST, &path, None).ok();
    assert_eq!((&token["ttl_seconds"], &token["max_duration_seconds"]), (&json!(300), &json!(600)));
    let text = token["token"].as_str().unwrap();
    assert_eq!(token["url"], format!("http://sandbox.example/voice-test?token={text}"));
    assert_eq!(token["websocket_url"], format!("ws://sandbox.example/voice-test/socket?token={text}"));
    world.post(&path, json!({"ttl_seconds": "60"})).refused("validation_failed");
    world.post(&path, json!({"ttl": 60})).refused("validation_failed");
    world.other().post(&path, json!({})).refused("not_found");
}

#[test]
fn a_replay_returns_the_same_token() {
    let world = World::new();
    let path = format!("/assistants/{}/test-token", world.assistant().id);
    let first = world.post_once(&path, "once", json!({})).ok();
    let again = world.post_once(&path, "once", json!({})).ok();
    assert_eq!(first.body, again.body);
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    let mut client = world.connect(first["websocket_url"].as_str().unwrap()).unwrap();
    started(&mut client);
}

#[test]
fn a_token_opens_one_conversation_and_loading_the_page_does_not_use_it() {
    let world = World::new();
    let token = world.test_token(&front_desk(&world));
    let page = token["url"].as_str().unwrap().replace("http://sandbox.example", "");
    for _ in 0..2 {
        let page = world.get(&page).ok();
        assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(page.header("cache-control"), Some("no-store"));
        assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
        assert!(page.header("content-type").unwrap().starts_with("text/html"));
    }
    let url = token["websocket_url"].as_str().unwrap();
    let socket = url.replace("ws://sandbox.example", "");
    world.get(&socket).refused("upgrade_required");
    let opens = world.get(format!("{socket}&check=1")).ok();
    let shown = json!({"assistant_name": "Front desk", "max_duration_seconds": 600, "restartable": false});
    assert_eq!(opens.json, shown);
    let restart = socket.replace("/socket", "/restart");
    world.post(&restart, json!({})).refused("token_used");
    let mut client = world.connect(url).unwrap();
    started(&mut client);
    let refusal = world.connect(url).err().unwrap();
    assert_eq!(refusal.status, 409);
    world.get(&socket).refused("token_used");
    world.get(format!("{socket}&check=1")).refused("token_used");
    client.say("Hi");
    client.hear();
}

#[test]
fn a_link_that_may_start_again_gets_a_token_for_each_conversation() {
    let world = World::new();
    let path = format!("/assistants/{}/test-token", front_desk(&world));
    let made = world
        .post(&path, json!({"restartable": true, "ttl_seconds": 60, "metadata": {"ticket": "T-9"}}))
        .ok();
    assert_eq!(made["restartable"], json!(true));
    let (url, first) = (made["websocket_url"].as_str().unwrap(), made["token"].as_str().unwrap());
    let mut calls = std::collections::BTreeSet::from([started(&mut world.connect(url).unwrap())]);
    let mut token = first.to_owned();
    for _ in 0..2 {
        let next = world.post(format!("/voice-test/restart?token={token}"), json!({})).ok();
        next["token"].as_str().unwrap().clone_into(&mut token);
        let again = url.replace(first, &token);
        calls.insert(started(&mut world.connect(&again).unwrap()));
        // Each is used up by its conversation.
        assert_eq!(world.connect(&again).err().unwrap().status, 409);
    }
    assert_eq!(calls.len(), 3);
    for call in calls {
        assert_eq!(world.get(format!("/calls/{call}")).ok()["metadata"], json!({"ticket": "T-9"}));
    }
    world.get(format!("/voice-test/restart?token={token}")).refused("method_not_allowed");
    world.post(format!("/voice-test/restart?token={token}A"), json!({})).refused("invalid_token");
}

/// A link that may start again: the address of its socket, and its token.
fn restartable(world: &World, assistant: &str) -> (String, String) {
    let path = format!("/assistants/{assistant}/test-token");
    let made = world.post(&path, json!({"restartable": true})).ok();
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    (text("websocket_url"), text("token"))
}

fn next_token(world: &World, token: &str) -> String {
    let next = world.post(format!("/voice-test/restart?token={token}"), json!({})).ok();
    next["token"].as_str().unwrap().to_owned()
}

/// Begins as many conversations as a link may within a minute; the last one is open.
fn begin_many(world: &World, url: &str, first: &str) {
    started(&mut world.connect(url).unwrap());
    for _ in 1..LINK_STARTS_WINDOW_MAX {
        let token = next_token(world, first);
        started(&mut world.connect(&url.replace(first, &token)).unwrap());
    }
}

#[test]
fn a_link_begins_only_so_many_conversations_within_a_minute() {
    let world = World::new();
    let assistant = front_desk(&world);
    let (url, first) = restartable(&world, &assistant);
    let spare = next_token(&world, &first);
    begin_many(&world, &url, &first);
    let refusal =
        world.post(format!("/voice-test/restart?token={first}"), json!({})).refused("too_many_starts");
    assert_eq!(refusal.status, 429);
    let wait_s: i64 = refusal.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait_s), "{wait_s}");
    let message = refusal["error"]["message"].as_str().unwrap();
    assert!(message.contains(&format!("Start again in {wait_s} s")), "{message}");
    // A token that was asked for before is no way around it, and is not used up.
    assert_eq!(world.connect(&url.replace(&first, &spare)).err().unwrap().status, 429);
    world.get(format!("/voice-test/socket?token={spare}&check=1")).refused("too_many_starts");
    let calls = world.get("/calls?source=browser").ok();
    assert_eq!(calls["stats"]["total"], LINK_STARTS_WINDOW_MAX, "nothing was begun");
    // Another link of the workspace has its own count.
    let (other_url, _) = restartable(&world, &assistant);
    started(&mut world.connect(&other_url).unwrap());
}

#[test]
fn concurrent_starts_do_not_pass_the_pace_of_a_link_together() {
    let world = World::new();
    let (url, first) = restartable(&world, &front_desk(&world));
    let tokens: Vec<String> = (0..LINK_STARTS_WINDOW_MAX + 4).map(|_| next_token(&world, &first)).collect();
    std::thread::scope(|scope| {
        for token in &tokens {
            scope.spawn(|| world.connect(&url.replace(&first, token)).map(drop).ok());
        }
    });
    let begun = world.get("/calls?source=browser").ok()["stats"]["total"].as_i64().unwrap();
    assert!((1..=LINK_STARTS_WINDOW_MAX).contains(&begun), "{begun}");
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_link_begins_only_so_many_conversations_in_its_life() {
    let world = World::with_manual_clock();
    let path = format!("/assistants/{}/test-token", front_desk(&world));
    let made = world.post(&path, json!({"restartable": true, "ttl_seconds": 3600})).ok();
    let (url, first) = (made["websocket_url"].as_str().unwrap(), made["token"].as_str().unwrap());
    for _ in 0..LINK_STARTS_MAX / LINK_STARTS_WINDOW_MAX {
        for _ in 0..LINK_STARTS_WINDOW_MAX {
            let token = next_token(&world, first);
            started(&mut world.connect(&url.replace(first, &token)).unwrap());
        }
        world.sandbox().unwrap().advance(LINK_STARTS_WINDOW_MS);
    }
    let refusal =
        world.post(format!("/voice-test/restart?token={first}"), json!({})).refused("limit_reached");
    assert_eq!(refusal["error"]["details"]["limit"], LINK_STARTS_MAX);
    assert_eq!(world.connect(url).err().unwrap().status, 409);
}

/// Lets the conversations of the Sandbox look at what has changed; elsewhere they do by themselves.
fn let_look(world: &World) {
    for _ in 0..2 {
        if let Some(sandbox) = world.sandbox() {
            sandbox.advance(1_000);
        }
    }
}

fn in_progress(world: &World) -> Vec<String> {
    let calls = world.get("/calls?source=browser").ok().json;
    let open = calls["calls"].as_array().unwrap().iter().filter(|call| call["status"] == "in_progress");
    open.map(|call| call["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn another_start_of_a_link_ends_the_conversation_that_it_has_open() {
    let world = World::new();
    let (url, first) = restartable(&world, &front_desk(&world));
    let mut left = world.connect(&url).unwrap();
    let call_id = started(&mut left);
    assert_eq!(left.hear(), "Hello, front desk.");
    // The page was reloaded, or the connection is only half closed: nothing arrives, and nobody hangs up.
    let check = format!("/voice-test/socket?token={first}&check=1");
    assert_eq!(world.get(&check).refused("token_used")["error"]["details"], json!({"restartable": true}));
    assert_eq!(in_progress(&world), [call_id.as_str()], "a look ends nothing");
    let next = next_token(&world, &first);
    let_look(&world);
    assert_eq!(left.expect("call_ended")["ended_reason"], "user_hung_up");
    assert_eq!(left.rest().1, Some(1000));
    let call = world.settled_call(&call_id);
    assert_eq!((&call["outcome"], &call["fault"]), (&json!("completed"), &json!("none")), "{call}");
    assert_eq!(roles(&call), ["assistant", "system"]);
    assert_eq!(
        texts(&call),
        ["Hello, front desk.", "The link was started again, which ended this conversation"]
    );
    world.expect_replay(&call);
    let mut client = world.connect(&url.replace(&first, &next)).unwrap();
    let second = started(&mut client);
    client.hear();
    client.say("When do you open on Saturday?");
    assert!(client.hear().contains("open at ten"));
    assert_eq!(in_progress(&world), [second]);
}

#[test]
fn of_many_tokens_of_a_link_the_last_one_that_is_opened_has_the_conversation() {
    let world = World::new();
    let assistant = front_desk(&world);
    let (url, first) = restartable(&world, &assistant);
    let (other_url, _) = restartable(&world, &assistant);
    let mut beside = world.connect(&other_url).unwrap();
    let other_link = started(&mut beside);
    let tokens: Vec<String> = (0..3).map(|_| next_token(&world, &first)).collect();
    let (mut clients, mut last) = (Vec::new(), String::new());
    for token in &tokens {
        let mut client = world.connect(&url.replace(&first, token)).unwrap();
        last = started(&mut client);
        clients.push(client);
    }
    let_look(&world);
    for client in &mut clients[..2] {
        client.hear();
        assert_eq!(client.expect("call_ended")["ended_reason"], "user_hung_up");
    }
    // A token that was used opens nothing, and ends nothing.
    for token in &tokens {
        assert_eq!(world.connect(&url.replace(&first, token)).err().unwrap().status, 409);
    }
    let client = clients.last_mut().unwrap();
    client.hear();
    client.say("When do you open on Saturday?");
    assert!(client.hear().contains("open at ten"));
    let mut open = in_progress(&world);
    open.sort();
    let mut expected = [last, other_link];
    expected.sort();
    assert_eq!(open, expected, "the conversation of another link goes on");
}

#[test]
fn of_concurrent_starts_of_a_link_one_conversation_stays() {
    let world = World::new();
    let (url, first) = restartable(&world, &front_desk(&world));
    let tokens: Vec<String> = (0..6).map(|_| next_token(&world, &first)).collect();
    let mut clients: Vec<LiveClient<'_>> = std::thread::scope(|scope| {
        let starts: Vec<_> = tokens
            .iter()
            .map(|token| scope.spawn(|| world.connect(&url.replace(&first, token)).unwrap()))
            .collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    let started_at = Instant::now();
    while in_progress(&world).len() != 1 {
        assert!(started_at.elapsed() < Duration::from_secs(20), "{:?}", in_progress(&world));
        let_look(&world);
        std::thread::sleep(Duration::from_millis(50));
    }
    let open = in_progress(&world);
    let calls: Vec<String> = clients.iter_mut().map(started).collect();
    assert!(calls.contains(&open[0]), "{open:?}");
    assert_eq!(calls.iter().collect::<std::collections::BTreeSet<_>>().len(), 6);
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "kills conversations")]
fn a_link_starts_again_after_a_crash() {
    let world = World::new();
    let (url, first) = restartable(&world, &front_desk(&world));
    let call_id = started(&mut world.connect(&url).unwrap());
    let sandbox = world.sandbox().unwrap();
    sandbox.conversations_may_fail();
    sandbox.kill_conversations();
    let next = next_token(&world, &first);
    let mut client = world.connect(&url.replace(&first, &next)).unwrap();
    let second = started(&mut client);
    assert_ne!(second, call_id);
    client.hear();
}

#[test]
fn of_concurrent_sockets_with_one_token_one_is_accepted() {
    let world = World::new();
    let assistant = world.assistant().id;
    let token = world.test_token(&assistant);
    let url = token["websocket_url"].as_str().unwrap();
    let won: usize = std::thread::scope(|scope| {
        let racers: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| world.connect(url).map(drop).map_err(|refusal| refusal.status)))
            .collect();
        let outcomes: Vec<_> = racers.into_iter().map(|racer| racer.join().unwrap()).collect();
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(()) | Err(409))), "{outcomes:?}");
        outcomes.iter().filter(|outcome| outcome.is_ok()).count()
    });
    assert_eq!(won, 1);
    let calls = world.get(format!("/calls?assistant_id={assistant}")).ok();
    assert_eq!(calls["stats"]["total"], 1, "{calls:?}");
}

#[test]
fn invalid_tokens_are_rejected() {
    let world = World::new();
    let assistant = world.assistant().id;
    let token = world.test_token(&assistant)["token"].as_str().unwrap().to_owned();
    let mut tampered = token.clone().into_bytes();
    tampered[20] = if tampered[20] == b'A' { b'B' } else { b'A' };
    let tampered = String::from_utf8(tampered).unwrap();
    for (token, code) in [("", "invalid_token"), ("nonsense", "invalid_token"), (&*tampered, "invalid_token")]
    {
        let path = format!("/voice-test/socket?token={token}");
        assert_eq!(world.connect(&path).err().map(|refusal| refusal.status), Some(401), "{token}");
        let refusal = world.get(&path).refused(code);
        assert!(refusal.header("www-authenticate").is_some());
    }
    assert_eq!(world.connect("/voice-test/socket").err().map(|refusal| refusal.status), Some(401));
    world.post("/voice-test/socket", json!({})).refused("method_not_allowed");
    world.post("/voice-test", json!({})).refused("method_not_allowed");

    // A valid token of a deleted assistant.
    world.delete(format!("/assistants/{assistant}")).empty();
    let refusal = world.connect(&format!("/voice-test/socket?token={token}")).err().unwrap();
    assert_eq!(refusal.status, 404);
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn an_expired_token_is_rejected() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let path = format!("/assistants/{}/test-token", world.assistant().id);
    let token = world.post(path, json!({"restartable": true})).ok();
    let url = token["websocket_url"].as_str().unwrap();
    let restart = format!("/voice-test/restart?token={}", token["token"].as_str().unwrap());
    sandbox.advance(200_000);
    let next = world.post(&restart, json!({})).ok();
    sandbox.advance(99_999);
    world.get(url.replace("ws://sandbox.example", "")).refused("upgrade_required");
    sandbox.advance(1);
    assert_eq!(world.connect(url).err().map(|refusal| refusal.status), Some(401));
    world.get(url.replace("ws://sandbox.example", "")).refused("token_expired");
    // What was made of it expires with it.
    world.post(&restart, json!({})).refused("token_expired");
    let next = format!("/voice-test/restart?token={}", next["token"].as_str().unwrap());
    world.post(next, json!({})).refused("token_expired");
}

#[test]
fn invalid_messages_get_an_explanation_then_the_socket_closes() {
    let world = World::new();
    let mut client = world.start_conversation(&world.assistant().id);
    let call_id = started(&mut client);
    for wrong in ["hello", "[]", r#"{"type": "audio"}"#, r#"{"type": "user_text"}"#] {
        client.send(wrong);
        let error = client.expect("error");
        assert_eq!(error["code"], "invalid_message", "{error}");
        assert!(error["message"].as_str().unwrap().len() > 20, "{error}");
    }
    client.send_binary(100);
    assert!(client.expect("error")["message"].as_str().unwrap().contains("speech"));
    client.say("Hi");
    client.hear();
    for _ in 0..5 {
        client.send("{");
    }
    let (messages, code) = client.rest();
    assert_eq!(code, Some(1008), "{messages:?}");
    assert_eq!(messages.len(), 6, "{messages:?}");
    assert_eq!(messages[5]["ended_reason"], "aborted", "{messages:?}");
    let call = world.settled_call(&call_id);
    assert_eq!((&call["outcome"], &call["fault"]), (&json!("failed"), &json!("caller")), "{call}");
    assert_eq!(roles(&call), ["user", "assistant"]);
}

#[test]
fn a_message_that_is_too_large_closes_the_socket() {
    let world = World::new();
    let mut client = world.start_conversation(&world.assistant().id);
    let call_id = started(&mut client);
    client.say(&"x".repeat(32 * 1024));
    let (messages, code) = client.rest();
    assert_eq!(code, Some(1009), "{messages:?}");
    assert_eq!(messages[0]["code"], "message_too_large", "{messages:?}");
    assert_eq!(world.settled_call(&call_id)["ended_reason"], "aborted");
}

#[test]
fn a_flood_is_bounded() {
    let world = World::new();
    let mut client = world.start_conversation(&world.assistant().id);
    let call_id = started(&mut client);
    for n in 0..200 {
        client.say(&format!("line {n}"));
    }
    let (messages, code) = client.rest();
    assert!(messages.iter().any(|message| message["code"] == "too_fast"), "{messages:?}");
    // Over TCP the close frame may be lost if the client is still sending.
    assert!(matches!(code, Some(1008) | None), "{code:?}");
    let call = world.settled_call(&call_id);
    assert!(roles(&call).len() < 120, "{}", roles(&call).len());
}

#[test]
fn a_dropped_connection_counts_as_hanging_up() {
    let world = World::new();
    let mut client = world.start_conversation(&front_desk(&world));
    let call_id = started(&mut client);
    client.hear();
    drop(client);
    let call = world.settled_call(&call_id);
    assert_eq!(call["ended_reason"], "user_hung_up", "{call}");
    assert_eq!(roles(&call), ["assistant"]);
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_tool_call_is_announced_to_the_client() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let assistant = front_desk(&world);
    let tool = world.create(
        "/tools",
        json!({"name": "book_table", "description": "Books a table at the restaurant",
            "url": "https://example.com/book", "parameters": {"type": "object"}}),
    );
    world.put(format!("/assistants/{assistant}/tools"), json!({"tool_ids": [tool.id]})).ok();
    let mut client = world.start_conversation(&assistant);
    let call_id = started(&mut client);
    client.hear();
    sandbox.answer_http(200, "The table is booked.");
    client.say("Please book a table at the restaurant");
    let called = client.expect("tool_call");
    assert_eq!((&called["name"], &called["refused"]), (&json!("book_table"), &json!(false)));
    let result = client.expect("tool_result");
    assert_eq!((&result["id"], &result["is_error"]), (&called["id"], &json!(false)));
    assert!(client.hear().contains("The table is booked."));
    let [request] = &sandbox.sent_http()[..] else { panic!("one request") };
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!((&body["call"]["source"], &body["call"]["id"]), (&json!("browser"), &json!(call_id)));
    assert_eq!(body["id"], called["id"]);
    client.send(r#"{"type": "hang_up"}"#);
    client.rest();
    let call = world.settled_call(&call_id);
    assert_eq!(roles(&call), ["assistant", "user", "tool_call", "tool_result", "assistant"]);
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn the_maximum_duration_of_the_token_ends_the_call() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let path = format!("/assistants/{}/test-token", world.assistant().id);
    let token = world.post(path, json!({"max_duration_seconds": 30})).ok();
    let mut client = world.connect(token["websocket_url"].as_str().unwrap()).unwrap();
    let call_id = started(&mut client);
    sandbox.advance(29_999);
    assert_eq!(client.message(), None);
    sandbox.advance(1);
    assert_eq!(client.expect("call_ended")["ended_reason"], "duration_limit");
    assert_eq!(client.rest(), (vec![], Some(1000)));
    let call = world.settled_call(&call_id);
    assert_eq!((&call["ended_reason"], &call["duration_ms"]), (&json!("duration_limit"), &json!(30_000)));
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn silence_ends_the_call() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let mut client = world.start_conversation(&world.assistant().id);
    let call_id = started(&mut client);
    sandbox.advance(59_000);
    client.say("Still here");
    client.hear();
    for _ in 0..3 {
        assert_eq!(client.message(), None);
        sandbox.advance(60_000);
    }
    assert_eq!(client.expect("call_ended")["ended_reason"], "silence");
    assert_eq!(world.settled_call(&call_id)["ended_reason"], "silence");
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn the_call_of_a_dead_process_is_recorded_correctly() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let mut client = world.start_conversation(&front_desk(&world));
    let call_id = started(&mut client);
    sandbox.advance(1_000);
    client.say("When do you open on Saturday?");
    client.hear();
    client.hear();
    sandbox.kill_conversations();
    sandbox.run_jobs();
    let call = world.get(format!("/calls/{call_id}")).ok();
    assert_eq!(call["status"], "in_progress", "the lease is still valid");
    sandbox.advance(120_000);
    let call = world.settled_call(&call_id);
    assert_eq!((&call["ended_reason"], &call["fault"]), (&json!("aborted"), &json!("platform")), "{call}");
    assert_eq!((&call["duration_ms"], &call["outcome"]), (&json!(1_000), &json!("failed")), "{call}");
    assert_eq!(roles(&call), ["assistant", "user", "assistant"]);
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn the_lease_is_extended_during_the_conversation() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let mut client = world.start_conversation(&world.assistant().id);
    let call_id = started(&mut client);
    for _ in 0..12 {
        client.say("Hi");
        client.hear();
        sandbox.advance(45_000);
        sandbox.run_jobs();
    }
    let call = world.get(format!("/calls/{call_id}")).ok();
    assert_eq!(call["status"], "in_progress");
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn stopping_the_host_ends_the_call() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let token = world.test_token(&world.assistant().id);
    let path = token["websocket_url"].as_str().unwrap().replace("ws://sandbox.example", "");
    let socket = sandbox.connect(&path).unwrap();
    let call_id = socket.received()[0]["call"]["id"].as_str().unwrap().to_owned();
    socket.stop_host();
    assert_eq!(socket.received()[0]["ended_reason"], "aborted");
    assert_eq!(socket.closed(), Some(1001));
    assert_eq!(world.settled_call(&call_id)["fault"], "platform");
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_conversation_emits_its_events() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    world.create("/webhooks", json!({"url": "https://example.com/events", "events": ["*"]}));
    let mut client = world.start_conversation(&world.assistant().id);
    let call_id = started(&mut client);
    client.say("Hi");
    client.send(r#"{"type": "hang_up"}"#);
    client.rest();
    for _ in 0..8 {
        sandbox.answer_http(200, "");
    }
    let call = world.settled_call(&call_id);
    sandbox.run_jobs();
    let sent: Vec<Value> =
        sandbox.sent_http().iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect();
    let kinds: Vec<&str> = sent.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["call.started", "call.ended", "call.analyzed"]);
    assert_eq!(sent[0]["data"]["call"]["status"], "in_progress");
    assert_eq!(sent[1]["data"]["call"]["ended_reason"], "user_hung_up");
    assert_eq!(sent[2]["data"]["call"], call);
}
