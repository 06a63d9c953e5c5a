//! A process that is late, and so with the audio of its conversations, begins no further one.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use sidetone_engine::ports::{BoxFuture, DatabaseError, Metrics, MetricsForm, Readings};
use sidetone_tests::fakes::carrier::Wire;
use sidetone_tests::fakes::carrier::vonage::VonageWire;
use sidetone_tests::{Browser, World};

use crate::grants::announced;

const NUMBER: &str = "+14155550100";

/// Counts what is declined.
#[derive(Default)]
struct Declined(AtomicUsize);

impl Metrics for Declined {
    fn delivered(&self, _lag_ms: i64) {}

    fn declined(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn page<'a>(
        &'a self,
        _form: MetricsForm,
        _readings: BoxFuture<'a, Result<Readings, DatabaseError>>,
    ) -> BoxFuture<'a, Result<String, DatabaseError>> {
        Box::pin(async { Ok(String::new()) })
    }
}

#[test]
fn a_process_that_is_late_with_audio_begins_no_further_conversation() {
    let settings = VonageWire::default().settings("http://vonage.example");
    let settings: Vec<_> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let declined: Arc<Declined> = Arc::default();
    let settings = [&settings[..], &[("SIDETONE_LATE_PERCENT", "1")]].concat();
    let world = World::with_metrics(declined.clone(), &settings);
    let counted = || declined.0.load(Ordering::Relaxed);
    let sandbox = world.sandbox().unwrap();
    let greeting = "Please listen carefully, because our menu has changed. ".repeat(36);
    let desk = json!({"name": "Desk", "instructions": "Be kind.", "first_message": greeting,
                      "voice": "builtin/tone"});
    let assistant = world.create("/assistants", desk).id;
    world.put(format!("/numbers/{NUMBER}"), json!({"assistant_id": assistant, "provider": "vonage"})).ok();
    let order = json!({"assistant_id": assistant, "to": "+14155557777"});
    let problems =
        || world.post("/calls/outbound?dry_run=true", order.clone()).created().json["problems"].clone();

    let timers = |late_ms: i64| {
        for _ in 0..10 {
            sandbox.services().note_lateness(late_ms);
        }
    };
    timers(30);
    assert_eq!(problems(), json!([]), "there is no conversation that another one could hurt");
    let mut browser = Browser::open(&world, &assistant, "tone");
    browser.expect("call_started");
    browser.wait(10_000);
    timers(20);
    assert_eq!(problems(), json!([]), "in time");
    timers(30);
    assert_eq!(problems()[0]["code"], "unavailable");
    assert_eq!(counted(), 0, "nothing was begun");
    let refusal = world.post("/calls/outbound", order.clone()).refused("unavailable");
    assert_eq!(refusal.header("retry-after"), Some("10"));
    assert_eq!(counted(), 1);
    let connect = |audio: &str| {
        let token = world.test_token(&assistant);
        let path = format!("{}{audio}", token["websocket_url"].as_str().unwrap());
        world.connect(&path).map(|_| ()).map_err(|refusal| refusal.status)
    };
    assert_eq!(connect("&audio=tone"), Err(503));
    assert_eq!(counted(), 2);
    // A browser hides from a page why its socket did not open: the page asks once more.
    let token = world.test_token(&assistant);
    let url = token["websocket_url"].as_str().unwrap();
    let path = &url[url.find("/voice-test").unwrap()..];
    world.get(format!("{path}&audio=tone&check=1")).refused("unavailable");
    world.get(format!("{path}&audio=tone")).refused("unavailable");
    assert_eq!(counted(), 2, "that declines nothing");
    assert_eq!(connect(""), Ok(()), "a conversation without audio takes nobody's time");
    assert_eq!(announced(&world, NUMBER), "talk", "the call is declined");
    assert_eq!(counted(), 3);
    let call = world.get("/calls?source=inbound").ok().json["calls"][0].clone();
    let end = ["ended_reason", "outcome", "fault"].map(|name| call[name].as_str().unwrap());
    assert_eq!(end, ["busy", "busy", "platform"], "{call}");
    let why = call["transcript"][0]["text"].as_str().unwrap();
    assert!(why.contains("the audio of current calls is late"), "{why}");

    // Whoever talks already is not disturbed, and what is over is forgotten.
    browser.wait(10_000);
    assert_eq!(problems(), json!([]));
    assert_eq!(connect("&audio=tone"), Ok(()));
}
