use super::*;
use crate::base::ids::{Id as _, WebhookId, WorkspaceId};
use crate::ports::statement::Value;

fn head() -> Head {
    Head {
        export_id: "exp_1".to_owned(),
        workspace_id: WorkspaceId::from_stored("ws_1"),
        name: "Acme".to_owned(),
        schema: "0048_moves.sql 0".to_owned(),
        frozen_at: "2026-01-31T09:00:00.000Z".to_owned(),
        base_url: "https://box.example".to_owned(),
        key_sha256: sha256_hex(b"key"),
        numbers: vec!["+14155550100".to_owned()],
        key_hashes: vec![sha256_hex(b"sidetone_")],
        needs: Needs::default(),
    }
}

fn pages() -> Vec<Page> {
    let row = |n: f64| vec![Value::Text("ws_1\n".to_owned()), Value::Number(n), Value::Null];
    let page = |table: &str, rows| Page { table: table.to_owned(), rows, next: None };
    vec![page("tools", vec![row(1.0), row(2.0)]), page("webhooks", vec![row(3.0)])]
}

fn blob(n: u64, found: Option<&[u8]>) -> BlobHead {
    BlobHead {
        call: CallId::from_stored("call_1"),
        segment: (n > 0).then(|| Segment { recording: RecordingId::from_stored("rec_1"), n }),
        found: found.map(|bytes| Found { bytes: bytes.len() as u64, sha256: sha256_hex(bytes) }),
    }
}

fn secrets() -> Vec<CarriedSecrets> {
    let owner = Owner::Webhook(WebhookId::from_stored("hook_1"));
    vec![CarriedSecrets { owner, version: 2, sealed: vec!["one".to_owned(), "two".to_owned()] }]
}

fn parts() -> Vec<Part> {
    let blobs = vec![blob(0, Some(b"{}\n")), blob(1, None), blob(2, Some(b"\n\n"))];
    vec![
        Part::of_pages(&pages(), Some("a".to_owned())),
        Part::of_pages(&[], Some("b".to_owned())),
        Part::of_secrets(&secrets(), Some("c".to_owned())),
        Part::new(Kind::Blobs(blobs), None, Bytes::from_static(b"{}\n\n\n")),
    ]
}

#[test]
fn a_part_is_read_as_it_was_written() {
    let mut tally = Tally::of(&head());
    for part in parts() {
        assert_eq!(Part::read(&part.to_bytes()), Ok(part.clone()));
        tally.add(&part).unwrap();
    }
    let [rows, nothing, of_owners, blobs] = <[Part; 4]>::try_from(parts()).unwrap();
    assert_eq!(rows.pages(), Ok(pages()));
    assert_eq!(nothing.pages(), Ok(Vec::new()));
    assert_eq!(of_owners.secrets(), Ok(secrets()));
    let read = blobs.blobs().unwrap();
    let read: Vec<(&BlobHead, &[u8])> = read.iter().map(|(head, bytes)| (*head, &bytes[..])).collect();
    assert_eq!(read, [(&blob(0, Some(b"{}\n")), &b"{}\n"[..]), (&blob(2, Some(b"\n\n")), &b"\n\n"[..])]);
    assert_eq!((tally.parts, tally.secrets, tally.blobs, tally.missing), (4, 2, 2, 1));
    assert_eq!(
        tally.sums.iter().map(|(table, sum)| (&**table, sum.rows)).collect::<Vec<_>>(),
        [("tools", 2), ("webhooks", 1)]
    );
    let end = Part::of_end(tally);
    assert_eq!(Part::read(&end.to_bytes()), Ok(end));
    assert_eq!(Head::from_line(&head().to_line()), Ok(head()));
}

#[test]
fn a_part_that_is_cut_off_or_changed_is_none() {
    for part in parts() {
        let bytes = part.to_bytes();
        for end in 0..bytes.len() {
            assert!(Part::read(&bytes.slice(..end)).is_err(), "{end} of {}", bytes.len());
        }
        let line = part.head.to_line().len();
        for at in line..bytes.len() {
            let mut changed = bytes.to_vec();
            changed[at] ^= 1;
            assert!(Part::read(&changed.into()).is_err(), "{at} of {}", bytes.len());
        }
    }
    let more = PartHead { bytes: 1 << 40, ..parts()[0].head.clone() };
    assert!(PartHead::from_line(&more.to_line()).is_err());
    let line = parts()[0].head.to_line();
    assert!(PartHead::from_line(&line.replacen('{', r#"{"x":1,"#, 1)).is_err());
}

#[test]
fn what_the_line_says_of_its_bytes_is_true() {
    let bytes = || Bytes::from_static(b"{}\n\n\n");
    let of_blobs = |blobs| Part::new(Kind::Blobs(blobs), None, bytes()).blobs().map(drop);
    assert!(of_blobs(vec![blob(0, Some(b"{}\n\n\n"))]).is_ok());
    for wrong in [
        vec![blob(0, Some(b"{}\n\n\n\n"))],
        vec![blob(0, Some(b"{}\n"))],
        vec![blob(0, Some(b"{}\r\n\n"))],
        vec![],
    ] {
        assert!(of_blobs(wrong.clone()).is_err(), "{wrong:?}");
    }
    let [first, _] = <[Page; 2]>::try_from(pages()).unwrap();
    let heads = |table: &str, rows| vec![PageHead { table: table.to_owned(), rows }];
    let lines = Part::of_pages(&[first], None).bytes;
    for (heads, is_so) in [
        (heads("tools", 2), true),
        (heads("tools", 1), false),
        (heads("calls", 2), false),
        (Vec::new(), false),
        ([heads("tools", 2), heads("tools", 0)].concat(), false),
    ] {
        assert_eq!(Part::new(Kind::Rows(heads), None, lines.clone()).pages().is_ok(), is_so);
    }
    // Whatever its lines are: they are not read.
    let many = WrongPart(format!("it has more than {ROWS_MAX} rows"));
    for heads in [heads("tools", usize::MAX), [heads("tools", ROWS_MAX), heads("calls", 1)].concat()] {
        assert_eq!(Part::new(Kind::Rows(heads), None, lines.clone()).pages(), Err(many.clone()));
    }
    let most = MOVE_PART_SECRETS_MAX as usize;
    let of = |owners: usize, sealed: usize| {
        let owner = secrets().remove(0);
        let one = CarriedSecrets { sealed: vec![String::new(); sealed], ..owner };
        Part::of_secrets(&vec![one; owners], None).secrets().map(|all| all.len())
    };
    assert_eq!(of(most, SEALED_MAX), Ok(most));
    assert!(of(most + 1, 1).is_err() && of(1, SEALED_MAX + 1).is_err());
}

#[test]
fn the_chain_tells_of_every_part_in_its_place() {
    let chain = |parts: &[&Part]| {
        let mut chain = Chain::of(&head());
        parts.iter().for_each(|part| chain.add(&part.head));
        chain
    };
    let parts = parts();
    let (one, two) = (&parts[0], &parts[2]);
    let chains = [chain(&[]), chain(&[one]), chain(&[one, two]), chain(&[two, one]), chain(&[one, one, two])];
    for (n, chain) in chains.iter().enumerate() {
        assert!(!chains[n + 1..].contains(chain), "{n}");
    }
    let other = Head { export_id: "exp_2".to_owned(), ..head() };
    assert_ne!(Chain::of(&other), Chain::of(&head()));
}
