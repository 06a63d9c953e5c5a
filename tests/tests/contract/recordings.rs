//! Recordings: download, ranges, waveform, deletion, and interrupted storing. On every host, except that failing storage
//! needs a Sandbox.
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use sidetone::blobs::Files;
use sidetone::sandbox::{MemoryBlobs, memory};
use sidetone_engine::base::ids::{CallId, Id as _, RecordingId, WorkspaceId};
use sidetone_engine::base::limits::{RECORDING_RETRY_MS, RECORDING_WRITE_MS_MAX, RECORDINGS_SWEPT_MAX};
use sidetone_engine::ports::{BlobError, BlobKey, Blobs, BoxFuture, ByteRange};
use sidetone_engine::sql;
use sidetone_engine::storage::fault::Fault;
use sidetone_tests::blobs::check_guarantees;
use sidetone_tests::direct_access::wait;
use sidetone_tests::faults::{FaultyDatabase, StorageFault};
use sidetone_tests::process::Folder;
use sidetone_tests::{Created, Reply, World, example};

#[test]
fn every_blob_store_conforms_to_the_port() {
    wait(check_guarantees(&MemoryBlobs::default()));
    let folder = Folder::new();
    wait(check_guarantees(&Files::new(folder.path(), 0)));
    assert_eq!(files(folder.path()), [""; 0], "no file is left");
    // R2, if the suite runs on the Worker.
    wait(check_guarantees(&*World::new().direct_access().ports().blobs));
}

#[test]
fn a_recording_leaves_the_last_of_the_disk_to_the_database() {
    let folder = Folder::new();
    let (workspace, call) = (WorkspaceId::from_stored("ws_1"), CallId::from_stored("call_1"));
    let key = BlobKey::recording(&workspace, &call, &RecordingId::from_stored("rec_1")).unwrap();
    let put = |leaves| wait(Files::new(folder.path(), leaves).put(&key, Bytes::from_static(b"whole")));
    let refused = put(u64::MAX).unwrap_err();
    assert!(refused.0.contains("kept for the database"), "{refused:?}");
    assert_eq!(files(folder.path()), [""; 0]);
    put(1).unwrap();
}

#[test]
fn deleting_a_blob_also_deletes_the_remains_of_an_interrupted_put() {
    let folder = Folder::new();
    let blobs = Files::new(folder.path(), 0);
    let (workspace, call) = (WorkspaceId::from_stored("ws_1"), CallId::from_stored("call_1"));
    let key = BlobKey::recording(&workspace, &call, &RecordingId::from_stored("rec_1")).unwrap();
    wait(blobs.put(&key, Bytes::from_static(b"whole"))).unwrap();
    std::fs::write(folder.path().join("recordings/ws_1/call_1.rec_1.wav.part"), "ha").unwrap();
    assert_eq!(wait(blobs.size(&key)), Ok(Some(5)));
    wait(blobs.delete(&key)).unwrap();
    assert_eq!(files(folder.path()), [""; 0]);
}

#[test]
fn a_file_that_cannot_be_deleted_keeps_no_other() {
    let folder = Folder::new();
    let blobs = Files::new(folder.path(), 0);
    let (workspace, call) = (WorkspaceId::from_stored("ws_1"), CallId::from_stored("call_1"));
    let key = BlobKey::recording(&workspace, &call, &RecordingId::from_stored("rec_1")).unwrap();
    for n in [0, 2] {
        wait(blobs.put(&key.segment(n), Bytes::from_static(b"whole"))).unwrap();
    }
    let in_the_way = folder.path().join(key.segment(1).as_str());
    std::fs::create_dir(&in_the_way).unwrap();
    let keys = || (0..3).map(|n| key.segment(n)).collect::<Vec<_>>();
    let failed = wait(blobs.delete_all(keys())).unwrap_err();
    assert!(failed.0.contains("call_1.rec_1.1.pcm"), "{failed:?}");
    assert_eq!(files(folder.path()), [""; 0]);
    std::fs::remove_dir(in_the_way).unwrap();
    wait(blobs.delete_all(keys())).unwrap();
}

#[test]
fn download_a_complete_recording() {
    let world = World::new();
    let file = example::recording(16_000);
    let call = world.a_recorded_call();
    let url = format!("/calls/{}/recording", call.id);
    assert_eq!(
        call["recording"],
        json!({"url": format!("http://sandbox.example{url}"),
            "waveform_url": format!("http://sandbox.example/calls/{}/waveform", call.id),
            "duration_ms": 2_000, "channels": ["caller", "assistant"], "format": "wav"})
    );
    let reply = world.get(&url).ok();
    assert!(reply.body == file, "the bytes differ");
    let told = |reply: &Reply| {
        let names = [
            "content-type",
            "content-length",
            "accept-ranges",
            "etag",
            "content-disposition",
            "cache-control",
        ];
        names.map(|name| reply.header(name).unwrap_or_default().to_owned())
    };
    let [kind, length, ranges, etag, name, cache] = told(&reply);
    assert_eq!((kind.as_str(), ranges.as_str(), cache.as_str()), ("audio/wav", "bytes", "no-store"));
    assert!(length == file.len().to_string() || (length.is_empty() && world.sandbox().is_some()), "{length}");
    assert!(etag.starts_with('"') && etag.len() == 66, "{etag}");
    assert_eq!(name, format!("attachment; filename=\"{}.wav\"", call.id));
    assert_eq!(reply.header("content-range"), None);

    let head = world.call_with(Method::HEAD, &url, None, &[("range", "bytes=0-1")]);
    assert_eq!((head.status, head.body.len()), (200, 0), "a HEAD ignores ranges");
    assert_eq!(told(&head), told(&reply));
}

#[test]
fn range_requests_get_the_responses_in_the_table() {
    let world = World::new();
    let file = example::recording(16_000);
    let (size, call) = (file.len(), world.a_recorded_call());
    let url = format!("/calls/{}/recording", call.id);
    let etag = world.get(&url).ok().header("etag").unwrap().to_owned();
    let long = format!("bytes={}", "0-1,".repeat(1_000));
    #[rustfmt::skip] // one row per line
    let table: &[(&str, Option<(usize, usize)>)] = &[
        ("bytes=0-0", Some((0, 0))),
        ("bytes=0-43", Some((0, 43))),
        ("bytes=100-", Some((100, size - 1))),
        ("bytes=-100", Some((size - 100, size - 1))),
        ("bytes=-999999999", Some((0, size - 1))),
        ("bytes=64000-999999999", Some((64_000, size - 1))),
        ("BYTES=1-2", Some((1, 2))),
        ("bytes=64043-", Some((64_043, 64_043))),
        ("bytes=0-99999999999999999999999999", Some((0, size - 1))),
        // Anything but a single valid range gets the whole recording.
        ("bytes=2-1", None), ("bytes=0-1,3-4", None), ("bytes=0-1, 64043-", None), ("items=0-1", None),
        ("bytes=", None), ("bytes=-", None), ("bytes", None), ("bytes=a-", None), ("bytes=1.5-2", None),
        ("bytes=0-0x10", None), ("bytes=-1-2", None), ("bytes==0-1", None), ("bytes=0-1;q=1", None),
        ("' OR 1=1 --", None), ("bytes=%30-1", None), (&long, None),
    ];
    let get = |headers: &[(&str, &str)]| world.call_with(Method::GET, &url, None, headers);
    for (range, expected) in table {
        let reply = get(&[("range", range)]);
        match expected {
            Some((first, last)) => {
                assert_eq!(reply.status, 206, "{range}: {:?}", reply.headers);
                assert!(reply.body == file[*first..=*last], "{range}: the bytes differ");
                assert_eq!(
                    reply.header("content-range"),
                    Some(&*format!("bytes {first}-{last}/{size}")),
                    "{range}"
                );
                assert_eq!(reply.header("etag"), Some(&*etag), "{range}");
            }
            None => {
                assert_eq!((reply.status, reply.header("content-range")), (200, None), "{range}");
                assert!(reply.body == file, "{range}: not the whole recording");
            }
        }
    }
    for nothing in ["bytes=64044-", "bytes=64044-64050", "bytes=-0", "bytes=99999999999999999999999999-"] {
        let reply = get(&[("range", nothing)]).refused("range_not_satisfiable");
        assert_eq!(reply.header("content-range"), Some(&*format!("bytes */{size}")), "{nothing}");
    }
    let unchanged = get(&[("if-none-match", &etag), ("range", "bytes=5-9")]);
    assert_eq!((unchanged.status, unchanged.body.len(), unchanged.header("etag")), (304, 0, Some(&*etag)));
    assert_eq!(get(&[("if-none-match", "\"other\"")]).status, 200);
    // If-Range: the range if the recording is unchanged, otherwise the whole recording.
    assert_eq!(get(&[("range", "bytes=5-9"), ("if-range", &etag)]).body, file[5..10]);
    for other in ["\"other\"", &format!("W/{etag}"), "Wed, 21 Oct 2026 07:28:00 GMT"] {
        let reply = get(&[("range", "bytes=5-9"), ("if-range", other)]);
        assert_eq!((reply.status, reply.body.len()), (200, size), "{other}");
        let reply = get(&[("range", "bytes=64044-"), ("if-range", other)]);
        assert_eq!(reply.status, 200, "{other}");
    }
}

#[test]
fn a_recording_larger_than_one_chunk_is_complete() {
    let world = World::new();
    let (call, file) = (world.a_call(), &example::recording(1_000_000));
    world.store(&call.id, file).unwrap();
    let url = format!("/calls/{}/recording", call.id);
    assert!(world.get(&url).ok().body == file, "the bytes differ");
    let part = world.call_with(Method::GET, &url, None, &[("range", "bytes=262143-2000000")]);
    assert!(part.status == 206 && part.body == file[262_143..=2_000_000], "the bytes differ");
}

#[test]
fn a_waveform_shows_the_volume_of_each_channel() {
    let world = World::new();
    let call = world.a_recorded_call();
    let waveform = world.get(format!("/calls/{}/waveform", call.id)).ok().json;
    assert_eq!(waveform, world.tool("get_waveform", json!({"id": call.id})).ok().json);
    let channel =
        |n: usize| -> Vec<f64> { serde_json::from_value(waveform["channels"][n]["peaks"].clone()).unwrap() };
    assert_eq!((&waveform["call_id"], &waveform["duration_ms"]), (&json!(call.id), &json!(2_000)));
    assert_eq!(waveform["peaks_per_second"], 10);
    assert_eq!(
        (&waveform["channels"][0]["name"], &waveform["channels"][1]["name"]),
        (&json!("caller"), &json!("assistant"))
    );
    assert_eq!(channel(0), [vec![1.0; 10], vec![0.0; 10]].concat());
    assert_eq!(channel(1), vec![0.003; 20]);
}

#[test]
fn the_error_explains_why_there_is_no_recording() {
    let world = World::new();
    let stranger = world.other();
    let (call, recorded) = (world.a_call(), world.a_recorded_call());
    each(&world, &call, |reply| drop(reply.refused("not_found")));
    each(&stranger, &recorded, |reply| drop(reply.refused("not_found")));
    world.write(vec![sql!(
        "UPDATE recordings SET state = 'writing' WHERE call_id = :call_id",
        call_id = &recorded.id
    )]);
    each(&world, &recorded, |reply| drop(reply.refused("recording_not_ready")));
    world.write(vec![sql!(
        "UPDATE recordings SET state = 'ready' WHERE call_id = :call_id",
        call_id = &recorded.id
    )]);
    for (method, path) in routes(&recorded) {
        let request = http::Request::builder().method(method).uri(path).header("range", "bytes=0-1");
        // A HEAD has no body for an error code.
        assert_eq!(world.send_unchecked(request.body(Bytes::new()).unwrap()).status, 401);
    }
    world.get(format!("/calls/{}/recording", recorded.id)).ok();
}

#[test]
fn deleting_a_recording_is_permanent_and_keeps_the_call() {
    let world = World::new();
    let call = world.a_recorded_call();
    let (blobs, key) = (world.direct_access().ports().blobs.clone(), blob_of(&world, &call.id));
    assert!(wait(blobs.size(&key)).unwrap().is_some());
    let url = format!("/calls/{}/recording", call.id);
    world.delete(&url).empty();
    world.delete(&url).refused("not_found");
    each(&world, &call, |reply| drop(reply.refused("not_found")));
    assert_eq!(wait(blobs.size(&key)), Ok(None), "the file is gone");
    let left = world.get(format!("/calls/{}", call.id)).ok().json;
    let mut expected = call.json.clone();
    expected["recording"] = Value::Null;
    assert_eq!(left, expected);
    // The recorder may try again without knowing of the deletion.
    assert!(matches!(world.store(&call.id, &example::recording(16_000)), Err(Fault::Stale)));
    world.get(&url).refused("not_found");
    assert_eq!(wait(blobs.size(&key)), Ok(None));
}

#[test]
fn a_missing_file_is_a_404() {
    let world = World::new();
    let call = world.a_recorded_call();
    wait(world.direct_access().ports().blobs.delete(&blob_of(&world, &call.id))).unwrap();
    let url = format!("/calls/{}/recording", call.id);
    world.get(&url).refused("not_found");
    world.call_with(Method::GET, &url, None, &[("range", "bytes=7-")]).refused("not_found");
    world.delete(&url).empty();
}

#[test]
fn storing_twice_keeps_the_first() {
    let world = World::new();
    let call = world.a_recorded_call();
    for (id, frames) in [(&*call.id, 99), ("call_unknown", 9)] {
        assert!(matches!(world.store(id, &example::recording(frames)), Err(Fault::Stale)), "{id}");
    }
    assert!(world.get(format!("/calls/{}/recording", call.id)).ok().body == example::recording(16_000));
}

#[test]
fn a_failed_put_is_never_served_and_its_remains_are_swept() {
    let (world, blobs) = unreliable();
    let call = world.a_call();
    for half in [false, true] {
        blobs.keeps_what_it_refuses.store(half, Ordering::SeqCst);
        blobs.fails.store(true, Ordering::SeqCst);
        assert!(world.store(&call.id, &example::recording(16_000)).is_err());
        each(&world, &call, |reply| drop(reply.refused("recording_not_ready")));
    }
    blobs.fails.store(false, Ordering::SeqCst);
    // The recorder tries again.
    world.store(&call.id, &example::recording(16_000)).unwrap();
    assert_eq!(blobs.memory.keys().len(), 2, "one blob is left from the failed attempt");
    world.get(format!("/calls/{}/recording", call.id)).ok();
    later(&world);
    assert_eq!(blobs.memory.keys(), [blob_of(&world, &call.id)]);

    // Without another try, no blob is left after a day.
    let given_up = world.a_call();
    blobs.fails.store(true, Ordering::SeqCst);
    assert!(world.store(&given_up.id, &example::recording(16_000)).is_err());
    blobs.fails.store(false, Ordering::SeqCst);
    later(&world);
    each(&world, &given_up, |reply| drop(reply.refused("not_found")));
    assert_eq!(blobs.memory.keys(), [blob_of(&world, &call.id)]);
}

#[test]
fn blobs_that_cannot_be_deleted_are_not_in_the_way_of_others() {
    let (world, blobs) = unreliable();
    let calls: Vec<_> = (0..RECORDINGS_SWEPT_MAX * 2).map(|_| world.a_recorded_call()).collect();
    let delete = |calls: &[Created]| {
        for call in calls {
            world.delete(format!("/calls/{}/recording", call.id)).empty();
        }
    };
    // A round is full of those that cannot be deleted.
    blobs.fails.store(true, Ordering::SeqCst);
    delete(&calls[..RECORDINGS_SWEPT_MAX]);
    assert!(wait(world.direct_access().sweep()).is_err());
    delete(&calls[RECORDINGS_SWEPT_MAX..]);
    blobs.fails.store(false, Ordering::SeqCst);
    let before = blobs.memory.keys().len();
    wait(world.direct_access().sweep()).unwrap();
    let after = blobs.memory.keys().len();
    assert_eq!(before - after, RECORDINGS_SWEPT_MAX, "the next round is for the others");
    assert!(!wait(world.direct_access().sweep()).unwrap().more);
}

#[test]
fn a_blob_that_cannot_be_deleted_is_unreachable_and_swept_later() {
    let (world, blobs) = unreliable();
    let call = world.a_recorded_call();
    blobs.fails.store(true, Ordering::SeqCst);
    world.get(format!("/calls/{}/recording", call.id)).refused("unavailable");
    world.delete(format!("/calls/{}/recording", call.id)).empty();
    each(&world, &call, |reply| drop(reply.refused("not_found")));
    assert_eq!(blobs.memory.keys().len(), 1);
    assert!(wait(world.direct_access().sweep()).is_err(), "the sweep reports it");
    blobs.fails.store(false, Ordering::SeqCst);
    wait(world.direct_access().sweep()).unwrap();
    assert_eq!(blobs.memory.keys().len(), 1, "it is tried again later");
    world.sandbox().unwrap().advance(RECORDING_RETRY_MS);
    wait(world.direct_access().sweep()).unwrap();
    assert_eq!(blobs.memory.keys(), []);
    // The next sweep has nothing left to do.
    blobs.fails.store(true, Ordering::SeqCst);
    wait(world.direct_access().sweep()).unwrap();
}

#[test]
fn storing_interrupted_at_any_write_is_completed_by_a_retry_with_one_blob() {
    for fault in [StorageFault::Before, StorageFault::Half, StorageFault::After] {
        // The row, the segment, the end.
        for write in 2..=4 {
            let database = Arc::new(FaultyDatabase::default());
            let blobs = Arc::new(MemoryBlobs::default());
            let world = World::over_both(database.clone(), blobs.clone());
            let call = world.a_call();
            database.fail_write(write, fault);
            assert!(world.store(&call.id, &example::recording(16_000)).is_err(), "{fault:?} {write}");
            let again = world.store(&call.id, &example::recording(16_000));
            let was_stored = fault == StorageFault::After && write == 4;
            assert_eq!(matches!(again, Err(Fault::Stale)), was_stored, "{fault:?} {write}");
            world.get(format!("/calls/{}/recording", call.id)).ok();
            later(&world);
            assert_eq!(blobs.keys(), [blob_of(&world, &call.id)], "{fault:?} {write}");
        }
    }
}

#[test]
fn a_segment_whose_write_is_repeated_is_stored_once() {
    let plain = World::over_both(Arc::new(FaultyDatabase::default()), Arc::new(MemoryBlobs::default()));
    let expected = plain.a_recorded_call();
    let waveform = |world: &World, id: &str| world.get(format!("/calls/{id}/waveform")).ok().json;
    for fault in [StorageFault::Before, StorageFault::Half, StorageFault::After] {
        // The row, the segment.
        for write in 2..=3 {
            let database = Arc::new(FaultyDatabase::default());
            let world = World::over_both(database.clone(), Arc::new(MemoryBlobs::default()));
            let call = world.a_call();
            database.fail_write(write, fault);
            world.store_trying(&call.id, &example::recording(16_000), 2).unwrap();
            let recording = world.get(format!("/calls/{}/recording", call.id)).ok().body;
            assert!(recording == example::recording(16_000), "{fault:?} {write}");
            assert_eq!(waveform(&world, &call.id), waveform(&plain, &expected.id), "{fault:?} {write}");
        }
    }
}

#[test]
fn of_two_concurrent_attempts_one_is_stored() {
    let (world, blobs) = unreliable();
    let call = world.a_call();
    let (other, id) = (world.clone(), call.id.clone());
    *blobs.meanwhile.lock().unwrap() = Some(Box::new(move || {
        other.store(&id, &example::recording(8_000)).unwrap();
    }));
    assert!(matches!(world.store(&call.id, &example::recording(16_000)), Err(Fault::Stale)));
    assert!(world.get(format!("/calls/{}/recording", call.id)).ok().body == example::recording(8_000));
    later(&world);
    assert_eq!(blobs.memory.keys(), [blob_of(&world, &call.id)]);
}

/// The operations of a call's recording.
fn routes(call: &Created) -> [(Method, String); 4] {
    let (recording, waveform) =
        (format!("/calls/{}/recording", call.id), format!("/calls/{}/waveform", call.id));
    [
        (Method::GET, recording.clone()),
        (Method::HEAD, recording.clone()),
        (Method::GET, waveform),
        (Method::DELETE, recording),
    ]
}

#[track_caller]
fn each(world: &World, call: &Created, check: impl Fn(Reply)) {
    for (method, path) in routes(call) {
        let head = method == Method::HEAD;
        let reply = world.call(method, &path, None);
        if head { assert!(reply.status >= 400, "{reply:?}") } else { check(reply) }
    }
}

/// The blob of its only segment.
fn blob_of(world: &World, call_id: &str) -> BlobKey {
    let select = sql!(
        "SELECT id FROM recordings WHERE call_id = :call_id AND state <> 'abandoned'",
        call_id = call_id
    );
    let rows = wait(world.direct_access().ports().database.read(vec![select])).unwrap();
    let id = rows[0].first().unwrap().id("id").unwrap();
    BlobKey::recording(&world.workspace_id(), &CallId::from_stored(call_id), &id).unwrap().segment(0)
}

/// Sweeps after every attempt must have ended.
fn later(world: &World) {
    world.sandbox().unwrap().advance(RECORDING_WRITE_MS_MAX + 1);
    wait(world.direct_access().sweep()).unwrap();
}

type Hook = Box<dyn FnOnce() + Send>;

/// Blobs that fail on demand.
#[derive(Default)]
struct Unreliable {
    memory: MemoryBlobs,
    fails: AtomicBool,
    /// Whether a failing `put` stores the blob anyway.
    keeps_what_it_refuses: AtomicBool,
    /// Executed during the next `put`.
    meanwhile: Mutex<Option<Hook>>,
}

impl Unreliable {
    fn answer(&self) -> Result<(), BlobError> {
        match self.fails.load(Ordering::SeqCst) {
            true => Err(BlobError("as planned".to_owned())),
            false => Ok(()),
        }
    }
}

impl Blobs for Unreliable {
    fn put(&self, key: &BlobKey, bytes: Bytes) -> BoxFuture<'_, Result<(), BlobError>> {
        let key = key.clone();
        Box::pin(async move {
            let deed = self.meanwhile.lock().unwrap().take();
            // Not on this thread, because it runs a runtime.
            if let Some(deed) = deed {
                std::thread::spawn(deed).join().unwrap();
            }
            if self.answer().is_ok() || self.keeps_what_it_refuses.load(Ordering::SeqCst) {
                self.memory.put(&key, bytes).await?;
            }
            self.answer()
        })
    }

    fn size(&self, key: &BlobKey) -> BoxFuture<'_, Result<Option<u64>, BlobError>> {
        let key = key.clone();
        Box::pin(async move {
            self.answer()?;
            self.memory.size(&key).await
        })
    }

    fn get(&self, key: &BlobKey, range: ByteRange) -> BoxFuture<'_, Result<Option<Bytes>, BlobError>> {
        let key = key.clone();
        Box::pin(async move {
            self.answer()?;
            self.memory.get(&key, range).await
        })
    }

    fn delete(&self, key: &BlobKey) -> BoxFuture<'_, Result<(), BlobError>> {
        let key = key.clone();
        Box::pin(async move {
            self.answer()?;
            self.memory.delete(&key).await
        })
    }
}

fn unreliable() -> (World, Arc<Unreliable>) {
    let blobs = Arc::new(Unreliable::default());
    (World::over_both(Arc::new(memory()), blobs.clone()), blobs)
}

/// Every file below a folder.
fn files(folder: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path.display().to_string());
        }
    }
    found
}
