//! What an operator sees of the binary: the log of what failed outside, the metrics and who may read them.
#![allow(missing_docs, clippy::expect_used, clippy::panic, reason = "a test")]
use std::io::{Read as _, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use serde_json::json;
use sidetone_tests::process::{Folder, Server, bootstrap_key};
use sidetone_tests::receiver::{Receiver, ReceiverBehaviour};

/// Status, head and body of `GET /metrics`.
fn metrics(address: SocketAddr, headers: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    let head = format!("GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the server answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
    (status, head.to_ascii_lowercase(), body.to_owned())
}

/// What `find` finds, which comes soon.
fn soon<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} does not come");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn what_failed_outside_is_logged_and_counted() {
    let (folder, key) = (Folder::new(), bootstrap_key(1));
    let settings = [("SIDETONE_BOOTSTRAP_KEYS", key.as_str()), ("SIDETONE_ALLOW_PRIVATE_TARGETS", "1")];
    let server = Server::start(&folder.path().join("data"), &settings);
    let mut client = server.connect(&key);
    let nobody = {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.local_addr().expect("an address")
    };
    let tool = json!({
        "name": "hours", "description": "Opening hours.", "method": "POST",
        "url": format!("http://{nobody}/hidden-path?token=hidden-query"),
        "parameters": {"type": "object", "properties": {}},
    });
    let tool = client.expect(201, "POST", "/tools", Some(&tool))["id"].clone();
    let workspace = client.expect(200, "GET", "/workspace", None)["id"].clone();
    let path = format!("/tools/{}/test", tool.as_str().expect("an id"));
    let tested = client.expect(200, "POST", &path, Some(&json!({"arguments": {}})));
    assert_eq!(tested["error"], "the tool could not be reached", "{tested}");
    let hook = json!({"url": format!("http://{nobody}/another-hidden-path"), "events": ["*"]});
    let hook = client.expect(201, "POST", "/webhooks", Some(&hook))["id"].clone();
    let path = format!("/webhooks/{}/test", hook.as_str().expect("an id"));
    client.expect(201, "POST", &path, None);

    let line_of = |party: &str| {
        let party = format!("party=\"{party}\"");
        let line = |line: &&str| line.contains("sidetone::outside") && line.contains(&party);
        soon(&party, || server.log().lines().find(line).map(str::to_owned))
    };
    for line in [line_of("tool"), line_of("webhook")] {
        let workspace = format!("workspace={workspace}");
        let server = format!("server=\"{nobody}\"");
        for part in [workspace.as_str(), &server, "method=\"POST\"", "result=\"failed\"", "duration_ms="] {
            assert!(line.contains(part), "{part}: {line}");
        }
        assert!(!line.contains("provider=") && !line.contains("status="), "{line}");
    }
    assert!(!server.log().contains("hidden"), "neither path nor query: {}", server.log());

    let page = soon("the delivery's count", || {
        let (status, _, page) = metrics(server.address(), "");
        assert_eq!(status, 200, "{page}");
        page.contains("party=\"webhook\"").then_some(page)
    });
    for line in [
        "sidetone_outside_exchanges_total{party=\"tool\",provider=\"\",result=\"failed\"} 1",
        "sidetone_outside_exchanges_total{party=\"webhook\",provider=\"\",result=\"failed\"} 1",
        "sidetone_requests_total{route=\"/tools/{id}/test\",method=\"POST\",status=\"2xx\"} 1",
        "sidetone_jobs_due{kind=\"simulation_run\"} 0",
        "sidetone_jobs_oldest_late_seconds{kind=\"live_call\"} 0.0",
    ] {
        assert!(page.lines().any(|shown| shown == line), "{line}\n{page}");
    }
    let value = |name: &str| -> f64 {
        let found = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        found.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name}\n{page}"))
    };
    for name in [
        "sidetone_commit_seconds_count",
        "sidetone_written_batches_total",
        "sidetone_timers_total",
        "sidetone_database_bytes",
        "sidetone_disk_free_bytes",
        "sidetone_conversation_memory_max_bytes",
        "process_resident_memory_bytes",
        "process_cpu_seconds_total",
        "process_start_time_seconds",
    ] {
        assert!(value(name) > 0.0, "{name}\n{page}");
    }
    for secret in [workspace.as_str().expect("an id"), tool.as_str().expect("an id"), &nobody.to_string()] {
        assert!(!page.contains(secret), "{secret} is a label\n{page}");
    }
    assert!(server.stop().success());
}

#[test]
fn how_late_a_webhook_gets_an_event_is_measured_once() {
    let (folder, key) = (Folder::new(), bootstrap_key(1));
    let settings = [("SIDETONE_BOOTSTRAP_KEYS", key.as_str()), ("SIDETONE_ALLOW_PRIVATE_TARGETS", "1")];
    let server = Server::start(&folder.path().join("data"), &settings);
    let mut client = server.connect(&key);
    let receiver = Receiver::start(ReceiverBehaviour::Status(500));
    let hook = json!({"url": receiver.url(), "events": ["*"]});
    let hook = client.expect(201, "POST", "/webhooks", Some(&hook))["id"].clone();
    let deliveries = format!("/webhooks/{}/deliveries", hook.as_str().expect("an id"));
    client.expect(201, "POST", &deliveries.replace("deliveries", "test"), None);
    let mut attempts = |least: i64| {
        soon("an attempt", || {
            let delivery = client.expect(200, "GET", &deliveries, None)["deliveries"][0].clone();
            (delivery["attempts"].as_i64() >= Some(least)).then_some(delivery)
        })
    };
    let lag = || {
        let page = metrics(server.address(), "").2;
        let value = |name: &str| -> Option<f64> {
            page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
        };
        value("sidetone_delivery_lag_seconds_count")
            .zip(value("sidetone_delivery_lag_seconds_sum"))
            .expect("a lag")
    };
    let failed = attempts(1);
    assert_eq!((failed["last_status"].as_i64(), lag()), (Some(500), (0.0, 0.0)), "it has not got it yet");

    receiver.set(ReceiverBehaviour::Status(204));
    let again = format!("{deliveries}/{}/redeliver", failed["id"].as_str().expect("an id"));
    let mut other = server.connect(&key);
    other.expect(201, "POST", &again, None);
    attempts(2);
    let (count, sum) = soon("the lag", || Some(lag()).filter(|(count, _)| *count > 0.0));
    assert!(count == 1.0 && sum > 0.0 && sum < 60.0, "from the event on: {sum} s");

    other.expect(201, "POST", &again, None);
    attempts(3);
    std::thread::sleep(Duration::from_millis(1_200));
    assert_eq!(lag(), (count, sum), "whoever asks for it again had it already");
    assert!(server.stop().success());
}

#[test]
fn who_may_read_the_metrics() {
    let (folder, key) = (Folder::new(), bootstrap_key(1));
    let data = folder.path().join("data");
    let server = Server::start(&data, &[("SIDETONE_BOOTSTRAP_KEYS", key.as_str())]);
    let (status, head, page) = metrics(server.address(), "");
    assert_eq!(status, 200, "{head}");
    assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(page.ends_with("# EOF\n"), "{page}");
    let (_, head, page) = metrics(server.address(), "accept: text/plain\r\n");
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    assert!(!page.contains("# EOF"), "{page}");
    let (status, _, page) = metrics(server.address(), "x-forwarded-for: 127.0.0.1\r\n");
    assert_eq!(status, 404, "a proxy passed it on: {page}");
    assert!(server.stop().success());

    let token = "a-token-for-the-metrics";
    let server = Server::start(&data, &[("SIDETONE_METRICS_TOKEN", token)]);
    for wrong in ["", "authorization: Bearer another-token-of-somebody\r\n"] {
        let (status, head, page) = metrics(server.address(), wrong);
        assert_eq!(status, 401, "{head}\n{page}");
        assert!(!page.contains("sidetone_requests"), "{page}");
    }
    let own = format!("authorization: Bearer {key}\r\n");
    assert_eq!(metrics(server.address(), &own).0, 401, "a key of the API opens no metrics");
    let with_token = format!("authorization: Bearer {token}\r\nx-forwarded-for: 203.0.113.9\r\n");
    assert_eq!(metrics(server.address(), &with_token).0, 200, "from anywhere");
    assert!(!server.log().contains(token), "the token is in no log");
    assert!(server.stop().success());
}
