//! Recordings to the millisecond: what is lost on the way, the segments, and what removes them.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hound::WavReader;
use sidetone::sandbox::MemoryBlobs;
use sidetone_engine::ports::{BlobError, BlobKey, Blobs, BoxFuture, ByteRange};
use sidetone_engine::speech::audio::Rate;
use sidetone_engine::speech::speech_like::speech_like;
use sidetone_tests::fakes::carrier::MediaWire;
use tokio::sync::Semaphore;

use super::*;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Storage whose requests are counted, as they are at the edge.
#[derive(Default)]
pub(super) struct Metered {
    blobs: MemoryBlobs,
    puts: AtomicUsize,
    gets: AtomicUsize,
}

impl Blobs for Metered {
    fn put(&self, key: &BlobKey, bytes: Bytes) -> BoxFuture<'_, Result<(), BlobError>> {
        self.puts.fetch_add(1, Ordering::SeqCst);
        self.blobs.put(key, bytes)
    }

    fn size(&self, key: &BlobKey) -> BoxFuture<'_, Result<Option<u64>, BlobError>> {
        self.blobs.size(key)
    }

    fn get(&self, key: &BlobKey, range: ByteRange) -> BoxFuture<'_, Result<Option<Bytes>, BlobError>> {
        self.gets.fetch_add(1, Ordering::SeqCst);
        self.blobs.get(key, range)
    }

    fn delete(&self, key: &BlobKey) -> BoxFuture<'_, Result<(), BlobError>> {
        self.blobs.delete(key)
    }

    fn is_metered(&self) -> bool {
        true
    }
}

/// Storage whose writes wait until it is opened.
struct Stalled {
    blobs: MemoryBlobs,
    opened: Semaphore,
}

impl Blobs for Stalled {
    fn put(&self, key: &BlobKey, bytes: Bytes) -> BoxFuture<'_, Result<(), BlobError>> {
        let key = key.clone();
        Box::pin(async move {
            let _opened = self.opened.acquire().await;
            self.blobs.put(&key, bytes).await
        })
    }

    fn size(&self, key: &BlobKey) -> BoxFuture<'_, Result<Option<u64>, BlobError>> {
        self.blobs.size(key)
    }

    fn get(&self, key: &BlobKey, range: ByteRange) -> BoxFuture<'_, Result<Option<Bytes>, BlobError>> {
        self.blobs.get(key, range)
    }

    fn delete(&self, key: &BlobKey) -> BoxFuture<'_, Result<(), BlobError>> {
        self.blobs.delete(key)
    }
}

/// A call under way, of an assistant that says nothing by itself.
struct Line<'a> {
    desk: &'a Desk,
    call: PhoneCall,
    socket: SandboxSocket<'a>,
    media: Box<dyn MediaWire>,
}

impl<'a> Line<'a> {
    fn new(desk: &'a Desk) -> Self {
        let path = format!("/assistants/{}", desk.assistant);
        assert_eq!(desk.sandbox.patch(&path, json!({"first_message": ""})).status, 200);
        let call = desk.place();
        let socket = desk.socket(&call);
        desk.tell(&call, &CallEvent::Answered);
        begin(&socket, &call);
        let media = TelnyxWire.media(&call);
        Self { desk, call, socket, media }
    }

    fn rate(&self) -> Rate {
        match self.media.rate_hz() {
            8_000 => Rate::Khz8,
            16_000 => Rate::Khz16,
            other => panic!("{other}"),
        }
    }

    /// Sends audio in real time; each frame is sent when it is over.
    fn say(&mut self, samples: &[i16]) {
        for frame in samples.chunks(self.rate().frame_samples()) {
            self.desk.wait(20);
            let WireMessage::Text(text) = self.media.audio(frame) else { panic!("a binary message") };
            self.socket.send(text);
        }
    }

    fn quiet(&mut self, ms: i64) {
        let samples = self.rate().frame_samples() * usize::try_from(ms / 20).unwrap();
        self.say(&vec![0; samples]);
    }

    /// Hangs up; returns the call.
    fn over(self) -> Value {
        let Self { desk, call, socket, .. } = self;
        desk.tell(&call, &CallEvent::Ended { how: EndKind::HungUp, seconds: 1 });
        drop(socket);
        desk.sandbox.run_jobs();
        desk.expect(&json!({"status": "ended"}));
        desk.call()
    }
}

/// The path of a part of the call, such as `recording`.
fn path(call: &Value, part: &str) -> String {
    format!("/calls/{}/{part}", call["id"].as_str().unwrap())
}

/// The caller's samples, and how many there are in a millisecond.
fn caller(file: &[u8]) -> (Vec<i16>, usize) {
    let reader = WavReader::new(std::io::Cursor::new(file)).unwrap();
    let per_ms = reader.spec().sample_rate as usize / 1_000;
    (reader.into_samples().map(Result::unwrap).step_by(2).collect(), per_ms)
}

#[test]
fn lost_audio_is_faded_to_silence_and_counted() {
    let desk = Desk::new();
    let mut line = Line::new(&desk);
    let sound = speech_like(1_500, line.rate(), 120.0);
    line.say(&sound);
    desk.wait(500);
    line.say(&sound);
    line.quiet(1_000);
    let call = line.over();
    let waveform = desk.sandbox.get(&path(&call, "waveform")).json;
    assert_eq!(waveform["missing_ms"], 500);
    let (samples, per_ms) = caller(&desk.sandbox.get(&path(&call, "recording")).body);
    let loudest = |from_ms: usize, until_ms: usize| -> u16 {
        let part = &samples[from_ms * per_ms..until_ms * per_ms];
        part.iter().map(|sample| sample.unsigned_abs()).max().unwrap()
    };
    assert_eq!(loudest(1_540, 2_000), 0, "silence until it goes on");
    // The codec is lossy, but both parts are the same.
    let [first, second] = [0, 2_000].map(|ms| &samples[ms * per_ms..(ms + 1_500) * per_ms]);
    assert!(first == second && loudest(0, 1_500) > 10_000);
    assert_eq!(call["recording"]["duration_ms"], call["duration_ms"]);
}

#[test]
fn what_comes_late_is_not_lost() {
    let desk = Desk::new();
    let mut line = Line::new(&desk);
    let sound = speech_like(2_000, line.rate(), 120.0);
    let frame = line.rate().frame_samples();
    line.say(&sound[..50 * frame]);
    // A second of it arrives at once.
    desk.wait(1_000);
    for late in sound[50 * frame..].chunks(frame) {
        let WireMessage::Text(text) = line.media.audio(late) else { panic!("a binary message") };
        line.socket.send(text);
    }
    line.quiet(1_000);
    let call = line.over();
    assert_eq!(desk.sandbox.get(&path(&call, "waveform")).json["missing_ms"], 0);
    let (samples, per_ms) = caller(&desk.sandbox.get(&path(&call, "recording")).body);
    let other = Desk::new();
    let mut line = Line::new(&other);
    line.say(&sound);
    line.quiet(1_000);
    let (in_time, _) = caller(&other.sandbox.get(&path(&line.over(), "recording")).body);
    assert!(samples[..2_000 * per_ms] == in_time[..2_000 * per_ms], "as if it had come in time");
}

#[test]
fn segments_are_removed_with_their_recording_their_call_and_their_time() {
    for how in ["recording", "call", "recordings' retention", "calls' retention"] {
        let blobs = Arc::new(MemoryBlobs::default());
        let desk = Desk::with_blobs(blobs.clone());
        let mut line = Line::new(&desk);
        line.quiet(12_000);
        let call = line.over();
        assert_eq!(blobs.keys().len(), 3, "two segments of five seconds, and the rest");
        let keep_a_day = |setting: &str| {
            assert_eq!(desk.sandbox.patch("/workspace", json!({setting: 1})).status, 200);
            desk.wait(DAY_MS + 60_000);
            while block_on(desk.sandbox.services().sweep()).unwrap().more {}
        };
        match how {
            "recording" => assert_eq!(desk.sandbox.delete(&path(&call, "recording")).status, 204),
            "call" => assert_eq!(desk.sandbox.delete(path(&call, "").trim_end_matches('/')).status, 204),
            "calls' retention" => keep_a_day("call_retention_days"),
            _ => keep_a_day("recording_retention_days"),
        }
        assert_eq!(desk.sandbox.get(&path(&call, "recording")).status, 404, "{how}");
        while block_on(desk.sandbox.services().sweep()).unwrap().more {}
        assert_eq!(blobs.keys(), [], "{how}");
    }
}

#[test]
fn an_assistant_that_is_not_recorded_leaves_no_blob() {
    let blobs = Arc::new(MemoryBlobs::default());
    let desk = Desk::with_blobs(blobs.clone());
    let assistant = format!("/assistants/{}", desk.assistant);
    assert_eq!(desk.sandbox.patch(&assistant, json!({"record": false})).json["record"], false);
    let mut line = Line::new(&desk);
    line.quiet(12_000);
    let call = line.over();
    assert_eq!((&call["recording"], blobs.keys().len()), (&Value::Null, 0));
    assert_eq!(desk.sandbox.get(&path(&call, "recording")).status, 404);
}

#[test]
fn a_quiet_call_is_stored_as_it_goes() {
    let blobs = Arc::new(MemoryBlobs::default());
    let desk = Desk::with_blobs(blobs.clone());
    let mut line = Line::new(&desk);
    line.quiet(23_000);
    assert_eq!(blobs.keys().len(), 4, "a crash loses the segment under way, and no more");
    assert_eq!(desk.call()["status"], "in_progress");
    line.over();
}

/// Otherwise all that follows on the gap would be heard too early.
#[test]
fn a_recording_that_storage_could_not_follow_ends_there() {
    let blobs = Arc::new(Stalled { blobs: MemoryBlobs::default(), opened: Semaphore::new(0) });
    let desk = Desk::with_blobs(blobs.clone());
    let mut line = Line::new(&desk);
    line.quiet(32_000);
    blobs.opened.add_permits(1);
    line.quiet(12_000);
    let call = line.over();
    assert_eq!((&call["recording"]["duration_ms"], blobs.blobs.keys().len()), (&json!(5_000), 1));
    let told = call["transcript"].as_array().unwrap().iter().filter(|row| row["role"] == "system");
    let told: Vec<_> = told.map(|row| row["text"].as_str().unwrap()).collect();
    assert_eq!(told, ["The recording ends here: it could not be stored in time"]);
}

/// At the edge each request counts: fewer, longer segments, and a range reads only its own.
#[test]
fn where_requests_count_segments_are_longer() {
    let blobs = Arc::new(Metered::default());
    let desk = Desk::with_blobs(blobs.clone());
    let mut line = Line::new(&desk);
    let sound = speech_like(8_000, line.rate(), 120.0);
    for _ in 0..6 {
        line.say(&sound);
    }
    let call = line.over();
    assert_eq!(blobs.puts.load(Ordering::SeqCst), 2, "48 seconds in segments of 30");
    let url = path(&call, "recording");
    let file = desk.sandbox.get(&url).body;
    let (samples, per_ms) = caller(&file);
    assert_eq!(call["recording"]["duration_ms"], samples.len() / per_ms);
    let key = desk.sandbox.key();
    let range = |range: &str| {
        let request = http::Request::get(&url).header("authorization", format!("Bearer {key}"));
        blobs.gets.store(0, Ordering::SeqCst);
        desk.sandbox.send(request.header("range", range).body(Bytes::new()).unwrap())
    };
    // Around the end of the first segment.
    let edge = 44 + 30_000 * per_ms * 4;
    let reply = range(&format!("bytes={}-{}", edge - 1_000, edge + 999));
    assert_eq!((reply.status, blobs.gets.load(Ordering::SeqCst)), (206, 2));
    assert!(reply.body == file[edge - 1_000..edge + 1_000], "the bytes differ");
    let reply = range(&format!("bytes={}-", file.len() - 4));
    assert_eq!((reply.status, blobs.gets.load(Ordering::SeqCst)), (206, 1));
    assert!(reply.body == file[file.len() - 4..], "the bytes differ");
}
