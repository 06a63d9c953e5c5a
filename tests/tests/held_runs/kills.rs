//! The binary is killed (SIGKILL) in the middle of a conversation. It cannot be held again: the run ends with what was heard.
use bytes::Bytes;
use sidetone_tests::process::{Folder, Server, bootstrap_key};

use super::*;

const LONG: &str = "Welcome to the front desk of the house by the lake. We are open every day from ten to six, and \
                    on Sundays from noon. The garden is open all day, and so is the tea room next to it. Dogs are \
                    welcome on a lead. How can I help you today?";

#[test]
fn a_killed_conversation_ends_with_what_was_heard() {
    let key = bootstrap_key(91);
    let mut settings = fakes::settings();
    settings.push(("SIDETONE_BOOTSTRAP_KEYS", key.clone()));
    let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let folder = Folder::new();
    let data = folder.path().join("data");
    let server = Server::start(&data, &settings);
    let mut client = server.connect(&key);
    let mut case = Case::new("fake/alto", "fake/scribe");
    case.assistant["first_message"] = json!(LONG);
    let mut make = |path: &str, body: Value| {
        client.expect(201, "POST", path, Some(&body))["id"].as_str().unwrap().to_owned()
    };
    let path = case.make(&mut make, |_| {});
    let run = make(&path, json!({"mode": "voice"}));
    let file = rusqlite::Connection::open(data.join("sidetone.db")).unwrap();
    file.busy_timeout(Duration::from_secs(10)).unwrap();
    let deadline = Instant::now() + TIMEOUT;
    // The first segment of the recording is stored, and the greeting goes on.
    let begun = "SELECT 1 FROM recordings WHERE state = 'writing' AND segments >= 1";
    while !file.prepare(begun).unwrap().exists([]).unwrap() {
        assert!(Instant::now() < deadline, "no recording");
        std::thread::sleep(Duration::from_millis(20));
    }
    server.kill();
    let number = |query: &str| -> i64 { file.query_row(query, [], |row| row.get(0)).unwrap() };
    assert_eq!(number("SELECT COUNT(*) FROM runs WHERE status = 'running'"), 1);
    assert_eq!(number("SELECT COUNT(*) FROM spending_reservations"), 0, "there is no limit to reserve from");

    let server = Server::start(&data, &settings);
    let mut client = server.connect(&key);
    let started = Instant::now();
    let run = finished(|| client.expect(200, "GET", &format!("/simulations/runs/{run}"), None));
    assert!(started.elapsed() < Duration::from_secs(60), "it is not held again");
    assert_eq!((&run["status"], &run["error"]["code"]), (&json!("error"), &json!("interrupted")), "{run:#}");
    let call = &run["call"];
    assert_eq!((&call["ended_reason"], &call["fault"]), (&json!("aborted"), &json!("platform")), "{call}");
    let rows = run["call"]["transcript"].as_array().unwrap();
    let heard = rows[0]["text"].as_str().unwrap();
    assert!(rows.len() == 1 && LONG.starts_with(heard) && !heard.is_empty() && heard.len() < LONG.len());
    assert!(call["costs"]["tts_microusd"].as_i64().unwrap() > 0, "what was spoken was paid: {call}");
    let request = http::Request::get(format!("/calls/{}/recording", call["id"].as_str().unwrap()))
        .header("host", "localhost")
        .header("authorization", format!("Bearer {key}"));
    let reply = sidetone_tests::wire::send(server.address(), &request.body(Bytes::new()).unwrap()).unwrap();
    let ([_, assistant], rate_hz) = channels(&reply.body);
    let ms = assistant.len() as i64 * 1_000 / rate_hz;
    assert!(ms >= 4_000 && assistant.iter().any(|sample| sample.unsigned_abs() > 500), "{ms} ms");
    assert_eq!(number("SELECT COUNT(*) FROM calls"), 1);
    assert_eq!(number("SELECT COUNT(*) FROM live_calls"), 0);
    assert_eq!(number("SELECT COUNT(*) FROM jobs WHERE kind = 'simulation_run'"), 0);
    assert_eq!(number("SELECT COUNT(*) FROM conversation_journal"), 0);
    assert!(server.stop().success());
}
