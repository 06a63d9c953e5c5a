//! Recordings of telephone calls.
use hound::WavReader;
use http::Method;
use serde_json::{Value, json};

use crate::support::{Desk, GREETING, Person};

with_each_carrier!(
    a_call_is_recorded_on_both_channels,
    a_call_of_an_assistant_without_recordings_keeps_nothing
);

/// The samples of both channels, and their rate.
fn channels(file: &[u8]) -> ([Vec<i16>; 2], u32) {
    let reader = WavReader::new(std::io::Cursor::new(file)).unwrap();
    let rate_hz = reader.spec().sample_rate;
    let samples: Vec<i16> = reader.into_samples().map(Result::unwrap).collect();
    let channel = |n: usize| samples.iter().skip(n).step_by(2).copied().collect();
    ([channel(0), channel(1)], rate_hz)
}

/// A call in which the assistant greets and the person asks and hangs up when the answer is over.
fn talk(desk: &Desk) -> (Value, Person) {
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.says("When do you open on Saturday?");
    person.hears();
    person.hang_up();
    (desk.over(&id), person)
}

fn a_call_is_recorded_on_both_channels(provider: &'static str) {
    let desk = Desk::new(provider);
    let (call, _) = talk(&desk);
    let url = format!("/calls/{}/recording", call["id"].as_str().unwrap());
    let file = desk.world.get(&url).ok().body;
    let ([caller, assistant], rate_hz) = channels(&file);
    assert_eq!(caller.len(), assistant.len());
    let duration_ms = caller.len() as i64 * 1_000 / i64::from(rate_hz);
    assert_eq!(call["recording"]["duration_ms"], duration_ms);
    assert_eq!(call["duration_ms"], duration_ms, "as long as the conversation");
    // Nobody speaks over the other: each channel is loud where the transcript says so.
    let loud = |channel: &[i16], from_ms: i64, until_ms: i64| {
        let sample = |ms: i64| (ms * i64::from(rate_hz) / 1_000) as usize;
        channel[sample(from_ms)..sample(until_ms).min(channel.len())]
            .iter()
            .any(|one| one.unsigned_abs() > 500)
    };
    for row in call["transcript"].as_array().unwrap() {
        let (from, until) = (row["start_ms"].as_i64().unwrap(), row["end_ms"].as_i64().unwrap());
        let (own, other) = match row["role"].as_str().unwrap() {
            "assistant" => (&assistant, &caller),
            "user" => (&caller, &assistant),
            _ => continue,
        };
        if until - from > 400 {
            assert!(loud(own, from + 150, until - 150), "{row}");
            assert!(!loud(other, from + 150, until - 150), "{row}");
        }
    }
    let range = desk.world.call_with(Method::GET, &url, None, &[("range", "bytes=30-170000")]);
    assert_eq!(range.status, 206);
    assert!(range.body == file[30..file.len().min(170_001)], "the bytes differ");
    let waveform = desk.world.get(url.replace("recording", "waveform")).ok().json;
    let peaks = waveform["channels"][1]["peaks"].as_array().unwrap().len() as i64;
    assert_eq!(peaks, (duration_ms + 99) / 100);
    desk.world.delete(&url).empty();
    desk.world.get(&url).refused("not_found");
}

fn a_call_of_an_assistant_without_recordings_keeps_nothing(provider: &'static str) {
    let desk = Desk::new(provider);
    desk.world.patch(&format!("/assistants/{}", desk.assistant.id), json!({"record": false})).ok();
    let (call, _) = talk(&desk);
    assert_eq!(call["recording"], Value::Null);
    let id = call["id"].as_str().unwrap();
    desk.world.get(format!("/calls/{id}/recording")).refused("not_found");
}
