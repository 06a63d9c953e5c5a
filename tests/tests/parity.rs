//! One sequence of some hundred requests, valid and invalid, over REST and MCP, sent to two hosts. The responses must be equal,
//! except for ids, times and secrets. `SIDETONE_TEST_PARITY=native,worker` selects the hosts; default: `sandbox,native`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests are tests: they panic when something is wrong"
)]
use std::collections::BTreeMap;

use bytes::Bytes;
use http::Method;
use regex::{Captures, Regex};
use serde_json::{Value, json};
use sidetone_engine::operations::OPERATIONS;
use sidetone_tests::call::UNKNOWN_ID;
use sidetone_tests::{Call, Reply, World};

/// Headers that a client may rely on.
const HEADERS: &[&str] = &[
    "access-control-allow-headers",
    "access-control-allow-methods",
    "access-control-allow-origin",
    "access-control-expose-headers",
    "access-control-max-age",
    "allow",
    "cache-control",
    "content-type",
    "etag",
    "idempotent-replayed",
    "retry-after",
    "vary",
    "www-authenticate",
    "x-content-type-options",
];

#[test]
fn two_hosts_give_the_same_responses() {
    let hosts = std::env::var("SIDETONE_TEST_PARITY").unwrap_or_else(|_| "sandbox,native".to_owned());
    let (one, other) = hosts.split_once(',').expect("two hosts");
    let (ours, theirs) = (Exchange::hold(one), Exchange::hold(other));
    println!("{} requests to {one} and to {other}", ours.len());
    assert_eq!(ours.len(), theirs.len());
    let different: Vec<String> = ours
        .iter()
        .zip(&theirs)
        .filter(|(ours, theirs)| ours != theirs)
        .map(|(ours, theirs)| format!("{one}: {ours}\n{other}: {theirs}"))
        .collect();
    assert!(different.is_empty(), "{} responses differ:\n\n{}", different.len(), different.join("\n\n"));
}

struct Exchange {
    world: World,
    volatile: Regex,
    heard: Vec<String>,
}

impl Exchange {
    /// Sends all requests and records the responses.
    fn hold(host: &str) -> Vec<String> {
        let volatile = r#"[a-z]+_[0-9a-hjkmnp-tv-z]{26}|\d{4}-\d\d-\d\dT[\d:.]+Z|whsec_[\w+/=]+|sidetone_\w{49}|vt\d_[\w-]+|CA[0-9a-f]{32}|(?:\+|%2B)1415\d{7}|seed\\*":\d+|(?:hint|last_line)\\*":\\*"[^"\\]*|attempts\\*":\d+|next\\*":\\*"[\w-]+|last_error\\*":(?:null|\\*"[^"\\]*\\*")"#;
        let world = World::on_host(host);
        world.patch("/workspace", json!({"name": "parity"})).ok();
        let volatile = Regex::new(volatile).unwrap();
        let mut conversation = Self { world, volatile, heard: Vec::new() };
        conversation.open_routes();
        // What the test of a tool shows depends on the network beyond the host.
        for operation in OPERATIONS.iter().filter(|operation| operation.id != "test_tool") {
            conversation.settle();
            conversation.good(operation);
            conversation.bad(operation);
        }
        conversation.protocol();
        conversation.heard
    }

    fn open_routes(&mut self) {
        for path in [
            "/healthz",
            "/openapi.json",
            "/openapi-3.0.json",
            "/docs",
            "/nowhere",
            "/",
            "/assistants/",
            "//assistants",
        ] {
            for method in [Method::GET, Method::HEAD, Method::POST, Method::OPTIONS] {
                let request = http::Request::builder().method(method).uri(path);
                self.say(request, "");
            }
        }
    }

    fn good(&mut self, operation: &'static sidetone_engine::operations::operation::Operation) {
        let call = Call::valid(&self.world, operation);
        let body = text(&call);
        let request = self.request(&call);
        self.say(request, &body);
        let call = Call::valid(&self.world, operation);
        self.mcp(json!({"name": operation.id, "arguments": call.arguments()}));
        if operation.takes_idempotency_key() {
            let call = Call::valid(&self.world, operation);
            for text in [text(&call), text(&call), "{}".to_owned()] {
                let request = self.request(&call).header("idempotency-key", operation.id);
                self.say(request, &text);
            }
        }
        if operation.revision {
            for revision in ["\"1\"", "1", "W/\"1\"", "99", "*", "x", "01", "-1", "9007199254740993"] {
                let call = Call::valid(&self.world, operation);
                let request = self.request(&call).header("if-match", revision);
                self.say(request, &text(&call));
            }
        }
    }

    /// Completes every run, so that lists do not depend on the speed of the host.
    fn settle(&self) {
        for status in ["queued", "running"] {
            let path = format!("/simulations/runs?status={status}");
            while let Some(run) = self.world.get(&path).ok()["runs"].as_array().and_then(|runs| runs.first())
            {
                self.world.settle(run["id"].as_str().expect("an id"));
            }
        }
    }

    fn bad(&mut self, operation: &'static sidetone_engine::operations::operation::Operation) {
        let call = Call::valid(&self.world, operation);
        for other in [UNKNOWN_ID, "x", "%20", "a%2Fb", "%00", "é"] {
            let request = self.request(&call.with_path(other));
            self.say(request, &text(&call));
        }
        for (name, value) in [("limit", "x"), ("page", "0"), ("nonsense", "1"), ("status", "nope")] {
            let request = self.request(&call.with_query(name, value.into()));
            self.say(request, &text(&call));
        }
        let fields: Vec<String> = call.body.iter().flatten().map(|(name, _)| name.clone()).collect();
        for name in &fields {
            let wrong =
                [Value::Null, json!(-1.5), json!([{}]), json!({"a": []}), json!(""), json!("a\u{fffd}b")];
            for call in
                wrong.map(|value| call.with_field(name, value)).iter().chain([&call.without_field(name)])
            {
                let request = self.request(call);
                self.say(request, &text(call));
            }
            let call = call.with_field(name, json!(7));
            self.mcp(json!({"name": operation.id, "arguments": call.arguments()}));
        }
        if !fields.is_empty() {
            for text in ["", "{", "[]", "null", "{\"a\":1,\"a\":2}", "{\"\\u0000\":1}", "\u{feff}{}"] {
                let request = self.request(&call);
                self.say(request, text);
            }
            let request = self.request(&call).header("content-type", "text/plain");
            self.say(request, &text(&call));
        }
        for authorization in [None, Some("Bearer nope"), Some("Basic YTpi"), Some("Bearer é")] {
            let mut request = http::Request::builder().method(operation.method.clone()).uri(call.uri());
            if let Some(authorization) = authorization {
                request = request.header("authorization", authorization.as_bytes());
            }
            let elsewhere = self.world.from_elsewhere();
            self.say_from(&elsewhere, request, &text(&call));
        }
        let request = self.world.request(Method::TRACE, &call.uri());
        self.say(request, "");
        self.mcp(json!({"name": operation.id}));
        self.mcp(json!({"name": operation.id, "arguments": {"nonsense": 1, "id": UNKNOWN_ID, "data": []}}));
    }

    fn protocol(&mut self) {
        for message in [
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
                "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
            json!({"jsonrpc": "2.0", "id": "3", "method": "ping"}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 4, "method": "nope"}),
            json!({"jsonrpc": "1.0", "id": 5, "method": "ping"}),
            json!([{"jsonrpc": "2.0", "id": 6, "method": "ping"}, {"jsonrpc": "2.0", "id": 7, "method": "ping"}]),
            json!([]),
            json!({"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": {"name": "nope"}}),
            json!(7),
        ] {
            for headers in [
                &[][..],
                &[("origin", "https://evil.example")],
                &[("origin", "http://localhost:3000")],
                &[("mcp-protocol-version", "2026-07-28")],
                &[("mcp-protocol-version", "1999-01-01")],
            ] {
                let mut request =
                    self.world.request(Method::POST, "/mcp").header("content-type", "application/json");
                for (name, value) in headers {
                    request = request.header(*name, *value);
                }
                self.say(request, &message.to_string());
            }
        }
        for (method, body) in
            [(Method::GET, ""), (Method::OPTIONS, ""), (Method::DELETE, ""), (Method::POST, "{")]
        {
            let request = self.world.request(method, "/mcp").header("content-type", "application/json");
            self.say(request, body);
        }
    }

    fn request(&self, call: &Call) -> http::request::Builder {
        let request = self.world.request(call.operation.method.clone(), &call.uri());
        if call.body.is_some() { request.header("content-type", "application/json") } else { request }
    }

    fn mcp(&mut self, params: Value) {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let request = self.world.request(Method::POST, "/mcp").header("content-type", "application/json");
        self.say(request, &message.to_string());
    }

    fn say(&mut self, request: http::request::Builder, body: &str) {
        let world = self.world.clone();
        self.say_from(&world, request, body);
    }

    fn say_from(&mut self, world: &World, request: http::request::Builder, body: &str) {
        let request = request.body(Bytes::from(body.to_owned())).unwrap();
        let said =
            format!("{} {} {:?} {body}", request.method(), request.uri(), request.headers().get("if-match"));
        let head = request.method() == Method::HEAD;
        let mut reply = world.send_unchecked(request);
        if head {
            reply.body = Bytes::new();
        }
        let heard = format!("{said}\n  {}", told(&reply));
        // The first key of a `World` has another name if it is a bootstrap key.
        let heard = self.named(&heard).replace("first key", "bootstrap");
        self.heard.push(heard);
    }

    /// Values that differ between hosts are replaced by names in the order of their appearance.
    fn named(&self, text: &str) -> String {
        let mut names = BTreeMap::new();
        let named = self.volatile.replace_all(text, |found: &Captures<'_>| {
            let found = &found[0];
            if found.starts_with("req_") {
                return "<request>".to_owned();
            }
            if found.starts_with(|c: char| c.is_ascii_digit()) {
                return "<time>".to_owned();
            }
            // Depends on a random seed.
            if found.starts_with("last_line") {
                return "<last line>".to_owned();
            }
            // Depends on when the delivery is attempted.
            if found.starts_with("attempts") || found.starts_with("last_error") {
                return "<attempt>".to_owned();
            }
            let count = names.len();
            let kind = match found.starts_with("CA") {
                true => "carrier's call",
                false => found.split(['_', ':', '1']).next().unwrap_or_default(),
            };
            let name: &mut String =
                names.entry(found.to_owned()).or_insert_with(|| format!("<{kind} {count}>"));
            name.clone()
        });
        named.into_owned()
    }
}

fn text(call: &Call) -> String {
    call.body.clone().map_or_else(String::new, |body| Value::Object(body).to_string())
}

fn told(reply: &Reply) -> String {
    // That of a recording tells its segments apart, and so the call: each service has made one of its own.
    let is_recording = reply.header("content-type") == Some("audio/wav");
    let value =
        |name: &str| reply.header(name).map(|value| if is_recording && name == "etag" { "…" } else { value });
    let headers: Vec<String> =
        HEADERS.iter().filter_map(|name| Some(format!("{name}: {}", value(name)?))).collect();
    let body = String::from_utf8_lossy(&reply.body);
    format!("{} [{}] {body}", reply.status, headers.join(", "))
}
