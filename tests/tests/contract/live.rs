//! Test tokens and live conversations.
use std::time::{Duration, Instant};

use serde_json::{Value, json};
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
    world.get(format!("{socket}&check=1")).empty();
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
    let token = world.test_token(&world.assistant().id);
    let url = token["websocket_url"].as_str().unwrap();
    sandbox.advance(299_999);
    world.get(url.replace("ws://sandbox.example", "")).refused("upgrade_required");
    sandbox.advance(1);
    assert_eq!(world.connect(url).err().map(|refusal| refusal.status), Some(401));
    world.get(url.replace("ws://sandbox.example", "")).refused("token_expired");
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
