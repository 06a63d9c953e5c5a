//! No client input causes an internal error, a hang, or a response without the error envelope.
use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use sidetone_engine::base::limits::BODY_BYTES_MAX;
use sidetone_tests::call::UNKNOWN_ID;
use sidetone_tests::{Reply, World, wire};

#[test]
fn an_invalid_json_body_is_a_400() {
    let world = World::new();
    let bodies: Vec<Vec<u8>> = vec![
        b"{".to_vec(),
        b"}".to_vec(),
        b"{\"name\":\"A\",}".to_vec(),
        b"{\"name\":\"A\" \"instructions\":\"B\"}".to_vec(),
        b"{name:\"A\"}".to_vec(),
        b"{'name':'A'}".to_vec(),
        b"name=A&instructions=B".to_vec(),
        b"{\"name\":\"A\"}{\"name\":\"A\"}".to_vec(),
        b"{\"name\":\"A\"}\0".to_vec(),
        b"\xEF\xBB\xBF{\"name\":\"A\",\"instructions\":\"B\"}".to_vec(),
        b"{\"name\":\"\xFF\",\"instructions\":\"B\"}".to_vec(),
        b"{\"name\":\"\xC0\x80\",\"instructions\":\"B\"}".to_vec(),
        b"{\"name\":\"\xED\xA0\x80\",\"instructions\":\"B\"}".to_vec(),
        b"\xFF\xFE{\0}\0".to_vec(),
        b"{\"name\":\"\\ud800\",\"instructions\":\"B\"}".to_vec(),
        b"{\"name\":\"\\udc00\\ud800\",\"instructions\":\"B\"}".to_vec(),
        b"{\"name\":\"a\nb\",\"instructions\":\"B\"}".to_vec(),
        b"{\"name\":\"a\0b\",\"instructions\":\"B\"}".to_vec(),
        b"{\"name\":NaN}".to_vec(),
        b"{\"timeout_ms\":1e999}".to_vec(),
        b"{\"timeout_ms\":-1e999999999999}".to_vec(),
        b"{\"timeout_ms\":01}".to_vec(),
        b"{\"name\":\"A\",\"instructions\":\"B\"} // comment".to_vec(),
        "[".repeat(10_000).into_bytes(),
        "{\"a\":".repeat(10_000).into_bytes(),
        format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)).into_bytes(),
        format!("{{\"name\":{}1{}}}", "{\"a\":".repeat(10_000), "}".repeat(10_000)).into_bytes(),
        format!("{{\"name\":{}1{}}}", "[".repeat(100), "]".repeat(100)).into_bytes(),
    ];
    let paths = [
        (Method::POST, "/assistants".to_owned()),
        (Method::POST, "/tools".to_owned()),
        (Method::PATCH, format!("/assistants/{}", world.assistant().id)),
    ];
    for body in bodies {
        for (method, path) in &paths {
            let reply = send(&world, method, path, &body);
            assert_eq!(reply.code(), "invalid_json", "{}: {reply:?}", shown(&body));
            assert_eq!(reply.status, 400);
        }
    }
    still_answers(&world);
}

#[test]
fn the_error_for_forbidden_json_names_the_problem() {
    let world = World::new();
    for (body, field) in [
        (r#"{"name":"A","name":"B","instructions":"C"}"#, "name"),
        (r#"{"name":"A","\u006eame":"B","instructions":"C"}"#, "name"),
        (r#"{"name":"A\u0000","instructions":"C"}"#, "name"),
        (r#"{"name":"A","instructions":"\u0000"}"#, "instructions"),
        (r#"{"name":"A","instructions":"C","x\u0000":1}"#, "[\"x\\u0000\"]"),
        (
            r#"{"name":"A","instructions":"C","$serde_json::private::RawValue":"{}"}"#,
            "[\"$serde_json::private::RawValue\"]",
        ),
        (
            r#"{"name":"A","instructions":"C","$serde_json::private::Number":"1"}"#,
            "[\"$serde_json::private::Number\"]",
        ),
        (r#"{"name":{"a":1},"instructions":"C"}"#, "name"),
        (r#"{"name":1e308,"instructions":"C"}"#, "name"),
        (r#"{"name":123456789012345678901234567890,"instructions":"C"}"#, "name"),
    ] {
        send(&world, &Method::POST, "/assistants", body.as_bytes())
            .refused("validation_failed")
            .naming(&[field]);
    }
    let tool = |rest: &str| format!(r#"{{"name":"a","url":"https://example.com/",{rest}}}"#);
    for (rest, field) in [
        (r#""parameters":{"type":"object","type":"object"}"#, "parameters.type"),
        (r#""parameters":{"type":"object","description":"\u0000"}"#, "parameters.description"),
        (r#""timeout_ms":123456789012345678901234567890"#, "timeout_ms"),
        (r#""timeout_ms":-9223372036854775809"#, "timeout_ms"),
        (r#""timeout_ms":9007199254740993"#, "timeout_ms"),
        (r#""timeout_ms":1e15"#, "timeout_ms"),
        (r#""timeout_ms":5e-324"#, "timeout_ms"),
        (r#""timeout_ms":-0.0"#, "timeout_ms"),
    ] {
        send(&world, &Method::POST, "/tools", tool(rest).as_bytes())
            .refused("validation_failed")
            .naming(&[field]);
    }
    still_answers(&world);
}

#[test]
fn errors_are_short_even_with_many_problems() {
    let world = World::new();
    let many: serde_json::Map<String, Value> =
        (0..50_000).map(|n| (format!("field_{n}"), Value::Null)).collect();
    world.post("/assistants", many.into()).refused("validation_failed");
    let long = "x".repeat(500_000);
    world
        .post("/assistants", json!({"name": "A", "instructions": "B", &long: 1}))
        .refused("validation_failed");
    world
        .post("/assistants", json!({"name": long, "instructions": "B"}))
        .refused("validation_failed")
        .naming(&["name"]);
    world
        .post("/assistants", json!({"name": "A", "instructions": "B", "model": long}))
        .refused("validation_failed")
        .naming(&["model"]);
    world
        .post("/webhooks", json!({"url": "https://example.com/", "events": vec!["x"; 100_000]}))
        .refused("validation_failed");
    world
        .post("/simulations", json!({"assistant_id": long, "persona_id": long, "scenario_id": "x"}))
        .refused("validation_failed");
    let evaluations: Vec<Value> = (0..20_000).map(|_| json!({"x": 1})).collect();
    world
        .post("/simulations/scenarios", json!({"name": "A", "instructions": "B", "evaluations": evaluations}))
        .refused("validation_failed");
    let properties: serde_json::Map<String, Value> =
        (0..5_000).map(|n| (format!("p{n}"), json!({"type": "nope"}))).collect();
    world.post("/tools", json!({"name": "a", "url": "https://example.com/", "parameters": {"type": "object", "properties": properties}})).refused("validation_failed");
    let query: Vec<String> = (0..2_000).map(|n| format!("q{n}=1")).collect();
    world.get(format!("/assistants?{}", query.join("&"))).refused("validation_failed");
    world.get(format!("/assistants?{}", ["a=1"; 2_000].join("&"))).refused("invalid_parameter");
    world.get(format!("/simulations/runs?limit={}", "9".repeat(20_000))).refused("invalid_parameter");
    world.get(format!("/simulations/runs?status={}", "9".repeat(20_000))).refused("validation_failed");
    world.mcp(json!({"jsonrpc": "2.0", "id": 1, "method": long})).ok();
    world.tool("create_assistant", json!({&long: 1, "data": {}})).refused("validation_failed");
    still_answers(&world);
}

#[test]
fn a_large_body_within_the_limit_is_accepted() {
    let world = World::new();
    let mut body = br#"{"name":"A","instructions":"B"}"#.to_vec();
    body.resize(BODY_BYTES_MAX, b' ');
    send(&world, &Method::POST, "/assistants", &body).created();
}

#[test]
fn a_body_over_1_mib_is_a_413() {
    let world = World::new();
    for bytes in [BODY_BYTES_MAX + 1, 3 * BODY_BYTES_MAX] {
        let body = vec![b' '; bytes];
        for (method, path) in [
            (Method::POST, "/assistants"),
            (Method::POST, "/mcp"),
            (Method::PATCH, "/tools/x"),
            (Method::DELETE, "/tools/x"),
            (Method::POST, "/nowhere"),
        ] {
            send(&world, &method, path, &body).refused("body_too_large");
        }
    }
    still_answers(&world);
}

#[test]
#[cfg_attr(not(test_host = "native"), ignore = "needs the binary's own socket")]
fn a_413_is_sent_before_the_body_is_complete() {
    let world = World::with_socket();
    let address = world.native().unwrap().address;
    let mut stream = wire::connect(address).unwrap();
    write!(stream, "POST /assistants HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000000\r\n\r\nonly this")
        .unwrap();
    let started = Instant::now();
    let reply = wire::receive(stream, false).unwrap().sound().refused("body_too_large");
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    assert_eq!(reply.header("connection"), Some("close"));
    still_answers(&world);
}

#[test]
#[cfg_attr(not(test_host = "native"), ignore = "needs the binary's own socket")]
fn a_chunked_body_gets_413_as_soon_as_it_exceeds_1_mib() {
    let world = World::with_socket();
    let address = world.native().unwrap().address;
    // The body has no end, so a server that waits for the end would never respond.
    let mut stream = wire::connect(address).unwrap();
    write!(stream, "POST /assistants HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n").unwrap();
    let chunk = vec![b' '; 64 * 1024];
    for _ in 0..17 {
        write!(stream, "{:x}\r\n", chunk.len()).unwrap();
        stream.write_all(&chunk).unwrap();
        stream.write_all(b"\r\n").unwrap();
    }
    wire::receive(stream, false).unwrap().sound().refused("body_too_large");

    still_answers(&world);
}

#[test]
#[cfg_attr(not(test_host = "native"), ignore = "needs the binary's own socket")]
fn a_client_that_reads_only_after_sending_everything_gets_the_413() {
    let world = World::with_socket();
    const PARTS: usize = 64;
    let part = vec![b' '; 64 * 1024];
    for chunked in [false, true] {
        let mut stream = wire::connect(world.native().unwrap().address).unwrap();
        let length = match chunked {
            true => "transfer-encoding: chunked".to_owned(),
            false => format!("content-length: {}", PARTS * part.len()),
        };
        write!(stream, "POST /assistants HTTP/1.1\r\nhost: x\r\n{length}\r\n\r\n").unwrap();
        for n in 0..PARTS {
            if chunked {
                write!(stream, "{:x}\r\n", part.len()).unwrap();
            }
            stream.write_all(&part).unwrap_or_else(|error| panic!("chunked: {chunked}, part {n}: {error}"));
            if chunked {
                stream.write_all(b"\r\n").unwrap();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        if chunked {
            stream.write_all(b"0\r\n\r\n").unwrap();
        }
        wire::receive(stream, false).unwrap().sound().refused("body_too_large");
    }
    still_answers(&world);
}

#[test]
#[cfg_attr(not(test_host = "native"), ignore = "needs the binary's own socket")]
fn chunked_bodies_are_accepted() {
    let world = World::with_socket();
    let mut stream = wire::connect(world.native().unwrap().address).unwrap();
    write!(
        stream,
        "POST /assistants HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
        world.key()
    )
    .unwrap();
    for part in ["{\"name\":\"A\",", "\"instructions\"", ":\"B\"}"] {
        write!(stream, "{:x}\r\n{part}\r\n", part.len()).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    stream.write_all(b"0\r\n\r\n").unwrap();
    wire::receive(stream, false).unwrap().sound().created();
}

#[test]
#[cfg_attr(not(test_host = "native"), ignore = "needs the binary's own socket")]
fn slow_bodies_do_not_delay_other_requests() {
    let world = World::with_socket();
    let address = world.native().unwrap().address;
    let slow = || {
        let mut stream = wire::connect(address).unwrap();
        write!(stream, "POST /assistants HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{{").unwrap();
        stream
    };
    let is_quick = || {
        let slow: Vec<_> = (0..50).map(|_| slow()).collect();
        let started = Instant::now();
        for _ in 0..20 {
            still_answers(&world);
        }
        drop(slow);
        started.elapsed() < Duration::from_secs(5)
    };
    // Other tests take the processor meanwhile.
    assert!((0..3).any(|_| is_quick()));
}

#[test]
#[cfg_attr(not(test_host = "native"), ignore = "needs the binary's own socket")]
fn an_incomplete_body_is_a_408_and_has_no_effect() {
    let world = World::with_socket();
    let mut stream = wire::connect(world.native().unwrap().address).unwrap();
    let body = r#"{"name":"A","instructions":"B"}"#;
    write!(
        stream,
        "POST /assistants HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        world.key(),
        body.len() + 1
    )
    .unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert_eq!(world.get("/assistants").ok().json, json!([]));
}

#[test]
#[cfg_attr(not(test_host = "native"), ignore = "needs the binary's own socket")]
fn malformed_http_only_closes_its_own_connection() {
    let world = World::with_socket();
    let junk: [&[u8]; 9] = [
        b"\r\n\r\n\r\n",
        b"hello\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /assistants HTTP/9.9\r\n\r\n",
        b"GET /assistants HTTP/1.1\r\nbad header\r\n\r\n",
        b"GET /assistants HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        b"GET /assistants HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\0\0\0\0\0\0\0\0\r\n\r\n",
    ];
    for bytes in junk {
        let mut stream = wire::connect(world.native().unwrap().address).unwrap();
        stream.write_all(bytes).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{}: {answer}", shown(bytes));
        still_answers(&world);
    }
}

#[test]
fn unusual_path_spellings_are_a_404_or_equivalent() {
    let world = World::new();
    let id = world.assistant().id;
    let spelled: String = id.bytes().map(|byte| format!("%{byte:02x}")).collect();
    world.get(format!("/assistants/{spelled}")).ok();
    let long = "x".repeat(30_000);
    for path in [
        "//",
        "/assistants/",
        "//assistants",
        "/assistants//",
        "/ASSISTANTS",
        "/%61ssistants",
        "/assistants%2F",
        "/v1/assistants",
        "/api/v1/assistants",
        "/assistants/%ff",
        "/assistants/%",
        "/assistants/%zz",
        "/assistants/%00",
        "/assistants/%E0%A4%A",
        "/assistants/..%2f..%2fetc%2fpasswd",
        "/assistants/../keys",
        "/assistants/./",
        "/assistants/;x",
        "/assistants/{id}",
        "/assistants/*",
        "/assistants/%2A",
        "/assistants/a/b/c",
        "/assistants/%F0%9F%98%80",
        "/assistants/%C0%80",
        "/assistants/'%20OR%201=1--",
        "/assistants/:ws",
        "/assistants/?1",
        "/.env",
        "/robots.txt",
        "/simulations/runs/",
        "/simulations/runs/batch/x",
        "/mcp/",
        "/mcp/x",
        "/healthz/",
        "/docs/",
        "/openapi.json/",
        "/openapi.yaml",
        "/openapi-3.1.json",
        &format!("/{long}"),
        &format!("/assistants/{long}"),
        &format!("/assistants/{}", "%41".repeat(10_000)),
        &format!("/assistants{}", "/x".repeat(10_000)),
    ] {
        if path.contains("/..") && !world.is_literal() {
            continue;
        }
        let reply = world.get(path);
        assert!(
            reply.code() == "not_found" || (path == "/assistants/?1" && reply.code() == "not_found"),
            "{}: {reply:?}",
            shown(path.as_bytes())
        );
    }
    world.get(format!("/numbers/{UNKNOWN_ID}")).refused("invalid_parameter");
    still_answers(&world);
}

#[test]
fn unusual_query_spellings_get_the_right_error() {
    let world = World::new();
    for (query, code) in [
        ("?", ""),
        ("?limit=1", ""),
        ("?limit=%31", ""),
        ("?%6cimit=1", ""),
        ("?limit=1&", ""),
        ("?&&limit=1", ""),
        ("?assistant_id=%ff", ""),
        ("?assistant_id=%", ""),
        ("?assistant_id=%zz", ""),
        ("?assistant_id=a+b%20c", ""),
        ("?assistant_id=%00", ""),
        ("?assistant_id=", "invalid_parameter"),
        ("?limit", "invalid_parameter"),
        ("?limit=", "invalid_parameter"),
        ("?limit=1&limit=1", "invalid_parameter"),
        ("?limit=1;page=2", "invalid_parameter"),
        ("?limit[]=1", "validation_failed"),
        ("?=", "validation_failed"),
        ("?=x", "validation_failed"),
        ("?%00=1", "validation_failed"),
        ("?limit=1?page=2", "invalid_parameter"),
        ("?LIMIT=1", "validation_failed"),
        ("?limit%20=1", "validation_failed"),
        ("?%ff=1", "validation_failed"),
    ] {
        let reply = world.get(format!("/simulations/runs{query}"));
        assert_eq!(reply.code(), code, "{query}: {reply:?}");
    }
    still_answers(&world);
}

#[test]
fn unusual_headers_get_a_response() {
    let world = World::new();
    let long = "x".repeat(30_000);
    for (name, value) in [
        ("accept", "application/xml"),
        ("accept", "*/*;q=0"),
        ("accept-encoding", "gzip, br, deflate"),
        ("accept-language", &long),
        ("cookie", &long),
        ("x-junk", &long),
        ("content-type", &long),
        ("content-encoding", "gzip"),
        ("expect", "nonsense"),
        ("range", "bytes=0-1"),
        ("if-none-match", "*"),
        ("if-modified-since", "never"),
        ("upgrade", "websocket"),
        ("x-http-method-override", "DELETE"),
        ("x-forwarded-for", "1.2.3.4, junk"),
        ("x-forwarded-for", ""),
        ("x-forwarded-host", "evil.example"),
        ("host", ""),
        ("x-request-id", "mine"),
        ("idempotency-key", &long),
        ("if-match", "junk"),
        ("mcp-protocol-version", "junk"),
        ("origin", "https://evil.example"),
    ] {
        if name == "host" && !world.is_literal() {
            continue;
        }
        let reply = world.call_with(Method::GET, "/assistants", None, &[(name, value)]);
        assert!(reply.status == 200, "{name}: {reply:?}");
        assert_ne!(reply.header("x-request-id"), Some("mine"));
    }
    for value in ["junk", "Bearer", "Bearer \u{e9}", &format!("Bearer {long}")] {
        let request = http::Request::get("/assistants").header("authorization", value);
        world.from_elsewhere().send(request.body("".into()).unwrap()).refused("unauthorized");
    }
    still_answers(&world);
}

#[test]
fn responses_forbid_caching_and_content_sniffing() {
    let world = World::new();
    for reply in [
        world.get("/assistants"),
        world.get("/nowhere"),
        world.post("/keys", json!({"name": "CI"})),
        world.get("/openapi.json"),
        world.get("/openapi-3.0.json"),
    ] {
        // A document for everybody may be kept, and is asked for again.
        let is_document = reply.json["openapi"].is_string();
        let expected = if is_document { "no-cache" } else { "no-store" };
        assert_eq!(reply.header("cache-control"), Some(expected), "{reply:?}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(reply.header("content-type"), Some("application/json"));
    }
}

fn send(world: &World, method: &Method, path: &str, body: &[u8]) -> Reply {
    let request = world.request(method.clone(), path).header("content-type", "application/json");
    world.send(request.body(body.to_vec().into()).unwrap())
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned()
}

#[track_caller]
fn still_answers(world: &World) {
    world.get("/models").ok();
}
