//! Conformance tests for every implementation of the `Blobs` port. The numbers refer to the guarantees in its documentation.
use bytes::Bytes;
use sidetone_engine::base::ids::{CallId, Id as _, RecordingId, WorkspaceId};
use sidetone_engine::ports::{BlobKey, Blobs, ByteRange};

/// Checks all guarantees and deletes its blobs.
pub async fn check_guarantees(blobs: &dyn Blobs) {
    let (workspace, call) = (WorkspaceId::from_stored("ws_suite"), CallId::from_stored("call_1"));
    let key = |id: &str| BlobKey::recording(&workspace, &call, &RecordingId::from_stored(id)).expect("a key");
    let (one, two, longer) = (key("rec_1"), key("rec_2"), key("rec_11"));
    let part = |first, bytes| ByteRange { first, bytes };
    for key in [&one, &two, &longer] {
        blobs.delete(key).await.expect("4: deleting a missing blob succeeds");
        assert_eq!(blobs.size(key).await, Ok(None));
        assert_eq!(blobs.get(key, part(0, 1)).await, Ok(None), "3");
    }

    let bytes: Bytes = (0..1_000_000_u32).map(|n| (n % 251) as u8).collect();
    blobs.put(&one, bytes.clone()).await.expect("1");
    assert_eq!(blobs.size(&one).await, Ok(Some(1_000_000)), "2");
    for (first, wanted, last) in
        [(0, 1_000_000, 1_000_000), (0, 1, 1), (999_999, 1, 1_000_000), (500, 70_000, 70_500)]
    {
        let read = blobs.get(&one, part(first, wanted)).await.expect("a read").expect("a blob");
        assert!(read == bytes[first as usize..last], "3: {first} and {wanted} bytes");
    }
    let end = blobs.get(&one, part(999_990, 1_000)).await.expect("a read").expect("a blob");
    assert_eq!(end, bytes[999_990..], "3: fewer bytes at the end");

    // 5: blobs with similar keys are independent.
    assert_eq!(blobs.size(&longer).await, Ok(None));
    blobs.put(&two, Bytes::from_static(b"two")).await.expect("1");
    blobs.put(&longer, Bytes::new()).await.expect("1: an empty blob");
    assert_eq!(blobs.size(&longer).await, Ok(Some(0)));

    // 1: replaces an existing blob, which may be longer.
    blobs.put(&one, Bytes::from_static(b"other")).await.expect("1");
    assert_eq!(blobs.size(&one).await, Ok(Some(5)), "2");
    assert_eq!(blobs.get(&one, part(1, 3)).await, Ok(Some(Bytes::from_static(b"the"))), "2");

    blobs.delete(&one).await.expect("4");
    assert_eq!(blobs.size(&one).await, Ok(None), "2");
    assert_eq!(blobs.get(&one, part(0, 5)).await, Ok(None), "2");
    blobs.delete(&one).await.expect("4: again");
    assert_eq!(blobs.size(&two).await, Ok(Some(3)), "5");
    blobs.delete_all(vec![two.clone(), one, longer.clone()]).await.expect("4: one of them is missing");
    for key in [&two, &longer] {
        assert_eq!(blobs.size(key).await, Ok(None), "2");
    }
    blobs.delete_all(Vec::new()).await.expect("4: nothing");
}
