//! Recordings of telephone calls.
use hound::WavReader;
use http::Method;
use serde_json::{Value, json};
use sidetone_engine::base::ids::{CallId, Id as _, RecordingId, WorkspaceId};
use sidetone_engine::ports::BlobKey;
use sidetone_engine::speech::audio::Rate;
use sidetone_engine::speech::resample::Resampler;
use sidetone_engine::speech::speech_like::speech_like;
use sidetone_engine::sql;
use sidetone_tests::direct_access::wait;
use sidetone_tests::example::LONG_ANSWER;
use sidetone_tests::fakes;
use sidetone_tests::fakes::openai::speech::CHAR_MS;

use crate::speech::{desk, hears_ms, speak};
use crate::support::{Desk, GREETING, Person};

with_each_carrier!(
    a_call_is_recorded_on_both_channels,
    the_recording_follows_the_transcript,
    a_call_of_an_assistant_without_recordings_keeps_nothing
);

/// The samples of both channels, and their rate.
pub fn channels(file: &[u8]) -> ([Vec<i16>; 2], u32) {
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
    let segments = segments(&desk, &call);
    let blobs = desk.world.direct_access().ports().blobs.clone();
    let sizes = |segments: &[BlobKey]| -> u64 {
        segments.iter().map(|key| wait(blobs.size(key)).unwrap().unwrap_or(0)).sum()
    };
    assert_eq!(sizes(&segments), file.len() as u64 - 44, "{segments:?}");
    desk.world.delete(&url).empty();
    desk.world.get(&url).refused("not_found");
    assert_eq!(sizes(&segments), 0, "all segments are deleted");
}

/// The blobs of a call's recording.
fn segments(desk: &Desk, call: &Value) -> Vec<BlobKey> {
    let call_id = CallId::from_stored(call["id"].as_str().unwrap());
    let select = sql!(
        "SELECT id, workspace_id, segments FROM recordings WHERE call_id = :call_id AND state = 'ready'",
        call_id = &call_id
    );
    let rows = wait(desk.world.direct_access().ports().database.read(vec![select])).unwrap();
    let row = rows[0].first().unwrap();
    let id: RecordingId = row.id("id").unwrap();
    let workspace_id: WorkspaceId = row.id("workspace_id").unwrap();
    let key = BlobKey::recording(&workspace_id, &call_id, &id).unwrap();
    (0..row.integer("segments").unwrap().unsigned_abs()).map(|n| key.segment(n)).collect()
}

/// Where this sound begins in the channel, in ms: the best of the places around `about_ms`, and how alike they are, up to 1.
pub fn find(channel: &[i16], rate_hz: u32, sound: &[i16], about_ms: i64) -> (i64, f64) {
    const AROUND_MS: i64 = 600;
    // 8,000 samples per second are enough, and quick.
    let thin = |samples: &[i16]| -> Vec<f64> {
        samples.iter().step_by((rate_hz / 8_000) as usize).map(|sample| f64::from(*sample)).collect()
    };
    let (channel, sound) = (thin(channel), thin(sound));
    let power = |samples: &[f64]| samples.iter().map(|sample| sample * sample).sum::<f64>();
    let alike = |at: usize| -> Option<f64> {
        let part = channel.get(at..at + sound.len())?;
        let both: f64 = part.iter().zip(&sound).map(|(one, other)| one * other).sum();
        Some(both / (power(part) * power(&sound)).sqrt().max(1.0))
    };
    let places = ((about_ms - AROUND_MS).max(0) * 8..(about_ms + AROUND_MS) * 8).step_by(2);
    let found = places.filter_map(|at| Some((at / 8, alike(usize::try_from(at).unwrap())?)));
    found.max_by(|one, other| one.1.total_cmp(&other.1)).expect("a place")
}

/// The pitch of the fakes' voices.
const VOICE_HZ: f64 = 200.0;

/// A sound that was made at one rate, at another.
pub fn resampled(sound: &[i16], from: Rate, to_hz: u32) -> Vec<i16> {
    let mut resampler = Resampler::new(from.hz(), to_hz);
    let mut converted = resampler.push(sound);
    converted.extend(resampler.flush());
    converted
}

/// What a fake's voice makes of a text of one sentence, at this rate.
pub fn synthesised(text: &str, rate_hz: u32) -> Vec<i16> {
    let ms = text.chars().count() as i64 * CHAR_MS;
    resampled(&speech_like(ms, Rate::Khz24, VOICE_HZ), Rate::Khz24, rate_hz)
}

/// A line of a fake's voice is whole in the recording, and begins and ends where its row says, to 50 ms. Returns how long
/// it was paused, in ms.
pub fn whole_line(assistant: &[i16], rate: Rate, row: &Value) -> i64 {
    const PART_MS: i64 = 500;
    let sound = synthesised(row["text"].as_str().unwrap(), rate.hz());
    let line_ms = rate.ms_of(sound.len());
    let at = |ms: i64| usize::try_from(ms * i64::from(rate.hz()) / 1_000).unwrap();
    let start_ms = row["start_ms"].as_i64().unwrap();
    let end_ms = row["end_ms"].as_i64().unwrap();
    let place = |from_ms: i64, about_ms: i64| {
        let part = &sound[at(from_ms)..at(from_ms + PART_MS)];
        let (found_ms, alike) = find(assistant, rate.hz(), part, about_ms);
        // The voice's audio may come late on a busy machine, and leave a gap.
        assert!(alike > 0.6, "{from_ms}: {alike} at {found_ms}, {about_ms}: {row}");
        found_ms
    };
    let first_ms = place(0, start_ms);
    let last_ms = place(line_ms - PART_MS, end_ms - PART_MS);
    assert!(
        (first_ms - start_ms).abs() <= 50 && (last_ms + PART_MS - end_ms).abs() <= 50,
        "{first_ms} to {} ms: {row}",
        last_ms + PART_MS
    );
    // Nothing of it is missing, and nothing is there twice.
    let (from, until) = (at(first_ms), at(last_ms + PART_MS));
    let frames = assistant[from..until].chunks(rate.frame_samples());
    let heard_ms = 20 * frames.filter(|frame| frame.iter().any(|sample| *sample != 0)).count() as i64;
    assert!((heard_ms - line_ms).abs() <= 60, "{heard_ms} of {line_ms} ms: {row}");
    last_ms + PART_MS - first_ms - line_ms
}

/// Each line of a fake's voice begins where its row says, to 50 ms. Nothing is heard between the end of an interrupted one and
/// the next line. Returns the number of lines that were interrupted.
pub fn lines_agree(assistant: &[i16], rate_hz: u32, call: &Value) -> usize {
    const SOUND_MS: i64 = 500;
    let time = |row: &Value, name: &str| row[name].as_i64().unwrap();
    let at = |ms: i64| usize::try_from(ms * i64::from(rate_hz) / 1_000).unwrap();
    let rows = call["transcript"].as_array().unwrap().iter();
    let rows: Vec<&Value> = rows.filter(|row| row["role"] == "assistant").collect();
    let begins = &synthesised("long enough", rate_hz)[..at(SOUND_MS)];
    for (nth, row) in rows.iter().enumerate() {
        let (start_ms, end_ms) = (time(row, "start_ms"), time(row, "end_ms"));
        if end_ms - start_ms > SOUND_MS {
            let (_, alike) = find(assistant, rate_hz, begins, start_ms);
            // A voice that comes late on a busy machine leaves a gap: then its first sound alone tells.
            let from_ms = nth.checked_sub(1).map_or(0, |before| time(rows[before], "end_ms"));
            let silent = assistant[at(from_ms)..].iter().take_while(|sample| **sample == 0).count();
            let found_ms = from_ms + silent as i64 * 1_000 / i64::from(rate_hz);
            assert!(
                alike > 0.6 && (found_ms - start_ms).abs() <= 50,
                "{found_ms}, {alike}: {row} of {call:#}"
            );
        }
        if row["interrupted"] == true {
            let until_ms =
                rows.get(nth + 1).map_or(time(call, "duration_ms"), |row| time(row, "start_ms") - 50);
            let rest = &assistant[at(end_ms)..at(until_ms.max(end_ms))];
            assert!(rest.iter().all(|sample| *sample == 0), "silent from {end_ms} to {until_ms}: {call:#}");
        }
    }
    rows.iter().filter(|row| row["interrupted"] == true).count()
}

/// Each line is where the transcript says, to 50 ms, and an interrupted one is silent from its end on.
fn the_recording_follows_the_transcript(provider: &'static str) {
    /// How long the caller speaks: first, and over the answer.
    const SPOKEN_MS: [i64; 2] = [1_200, 1_000];
    const PART_MS: i64 = 250;
    let (desk, term) = desk(provider, "fake/alto");
    desk.knows(LONG_ANSWER);
    fakes::shared().will_hear(&term, &["When do you open on Saturday?", "Thank you, I have to go now."]);
    let (id, mut person) = desk.connected();
    let rate = person.rate();
    let greeting_ms = GREETING.len() as i64 * CHAR_MS;
    hears_ms(&person, greeting_ms);
    speak(&person, SPOKEN_MS[0]);
    hears_ms(&person, greeting_ms + 400);
    speak(&person, SPOKEN_MS[1]);
    std::thread::sleep(std::time::Duration::from_millis(1_000));
    person.hang_up();
    let call = desk.over(&id);
    let file = desk.world.get(format!("/calls/{id}/recording")).ok().body;
    let ([caller, assistant], rate_hz) = channels(&file);
    assert!(lines_agree(&assistant, rate_hz, &call) > 0, "{call:#}");
    let rows = call["transcript"].as_array().unwrap();
    let users: Vec<_> = rows.iter().filter(|row| row["role"] == "user").collect();
    assert_eq!(users.len(), SPOKEN_MS.len(), "{call:#}");
    for (row, spoken_ms) in users.into_iter().zip(SPOKEN_MS) {
        let [start_ms, end_ms] = ["start_ms", "end_ms"].map(|name| row[name].as_i64().unwrap());
        let voice = resampled(&speech_like(spoken_ms, rate, 120.0), rate, rate_hz);
        let part = usize::try_from(PART_MS * i64::from(rate_hz) / 1_000).unwrap();
        // A delay may stay between its parts.
        let parts = [(start_ms, &voice[..part]), (end_ms - PART_MS, &voice[voice.len() - part..])];
        for (about_ms, part) in parts {
            let (found_ms, alike) = find(&caller, rate_hz, part, about_ms);
            let late_ms = about_ms - found_ms;
            assert!(alike > 0.4 && late_ms.abs() <= 50, "{late_ms}, {alike}: {row}");
        }
    }
}

fn a_call_of_an_assistant_without_recordings_keeps_nothing(provider: &'static str) {
    let desk = Desk::new(provider);
    desk.world.patch(format!("/assistants/{}", desk.assistant.id), json!({"record": false})).ok();
    let (call, _) = talk(&desk);
    assert_eq!(call["recording"], Value::Null);
    let id = call["id"].as_str().unwrap();
    desk.world.get(format!("/calls/{id}/recording")).refused("not_found");
}
