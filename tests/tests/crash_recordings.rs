//! The binary is killed (SIGKILL) in the middle of a telephone call. After the restart the call ends, and its recording has
//! what was heard until then.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
use std::time::Duration;

use bytes::Bytes;
use hound::WavReader;
use serde_json::json;
use sidetone_engine::base::limits::{PHONE_QUEUE_MS, RECORDING_SEGMENT_MS};
use sidetone_engine::speech::audio::Rate;
use sidetone_engine::speech::speech_like::speech_like;
use sidetone_tests::fakes::carrier::Carriers;
use sidetone_tests::process::{Client, Folder, Server, bootstrap_key};
use sidetone_tests::until;

const TIMEOUT: Duration = Duration::from_secs(60);
const OURS: &str = "+4420794600011";
const THEIRS: &str = "+4420794600022";

#[test]
fn a_killed_call_keeps_what_was_recorded() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let key = bootstrap_key(77);
    let carriers = Carriers::shared();
    let mut settings = carriers.settings();
    settings.push(("SIDETONE_BOOTSTRAP_KEYS", key.clone()));
    let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let server = Server::start(&data, &settings);
    carriers.serve(server.address());
    let mut client = server.connect(&key);
    let greeting = "We have a great many things to tell you about our opening hours. ".repeat(20);
    let assistant = json!({"name": "Front desk", "instructions": "Be kind.", "first_message": greeting.trim(),
                           "model": "builtin/rules", "voice": "builtin/tone",
                           "speech": {"interruptible": false}});
    let assistant = client.expect(201, "POST", "/assistants", Some(&assistant));
    let body = json!({"assistant_id": assistant["id"], "provider": "twilio"});
    let bound = client.send("PUT", &format!("/numbers/{OURS}"), &[], Some(&body)).unwrap();
    assert!(matches!(bound.status, 200 | 201), "{bound:?}");
    let mut phone = carriers.get("twilio").call(THEIRS, OURS);
    phone.answer();
    phone.say(&speech_like(3_000, Rate::Khz8, 120.0));
    let stored = || {
        let file = rusqlite::Connection::open(data.join("sidetone.db")).unwrap();
        let sql = "SELECT segments FROM recordings";
        file.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap_or(0)
    };
    until("two segments are stored", TIMEOUT, || (stored() >= 2).then_some(()));
    server.kill();
    phone.drop_connection();

    let file = rusqlite::Connection::open(data.join("sidetone.db")).unwrap();
    let sql = "UPDATE jobs SET due_at = MAX(0, due_at - ?1) WHERE kind = 'live_call'";
    file.execute(sql, [PHONE_QUEUE_MS + 20_000]).unwrap();
    drop(file);
    let server = Server::start(&data, &settings);
    carriers.serve(server.address());
    let client = || Client::new(server.address(), &key);
    let call = until("the call has ended", TIMEOUT, || {
        let list = client().expect(200, "GET", "/calls", None);
        let call = list["calls"][0].clone();
        (call["status"] == "ended").then_some(call)
    });
    let recorded_ms = call["recording"]["duration_ms"].as_i64().unwrap_or_else(|| panic!("{call:#}"));
    assert!(recorded_ms >= 2 * RECORDING_SEGMENT_MS, "{call:#}");
    let id = call["id"].as_str().unwrap();
    let request = http::Request::get(format!("/calls/{id}/recording"))
        .header("host", "localhost")
        .header("authorization", format!("Bearer {key}"));
    let reply = sidetone_tests::wire::send(server.address(), &request.body(Bytes::new()).unwrap()).unwrap();
    assert_eq!(reply.status, 200);
    let reader = WavReader::new(std::io::Cursor::new(&reply.body)).unwrap();
    assert_eq!(i64::from(reader.duration()) / 8, recorded_ms);
    let samples: Vec<i16> = reader.into_samples().map(Result::unwrap).collect();
    for (channel, name, from_ms, until_ms) in [(0, "caller", 500, 2_500), (1, "assistant", 500, 9_500)] {
        let part = samples[from_ms * 16..until_ms * 16].iter().skip(channel).step_by(2);
        assert!(part.filter(|sample| sample.unsigned_abs() > 500).count() > 4_000, "the {name} is heard");
    }
    let waveform = client().expect(200, "GET", &format!("/calls/{id}/waveform"), None);
    assert_eq!(waveform["duration_ms"], recorded_ms);
    assert!(server.stop().success());
}
