//! The source of a move once its workspace is frozen: the parts of the file, the hand-over, and what is left afterwards.
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::json;
use sidetone::sandbox::block_on;
use sidetone_engine::base::hash::sha256_hex;
use sidetone_engine::base::ids::{CallId, Id as _, WorkspaceId};
use sidetone_engine::base::sealed::unseal;
use sidetone_engine::ports::statement::Value;
use sidetone_engine::ports::{BlobKey, ByteRange};
use sidetone_engine::services::Services;
use sidetone_engine::sql;
use sidetone_engine::storage::moves::cancel_export::cancel_export;
use sidetone_engine::storage::moves::erase::{Erasing, erase};
use sidetone_engine::storage::moves::freeze::{Freeze, close, freeze};
use sidetone_engine::storage::moves::head::head;
use sidetone_engine::storage::moves::part::{BlobHead, Head, Part, Tally};
use sidetone_engine::storage::moves::parts::next_part;
use sidetone_engine::storage::moves::release::{Outcome, Receiver, Released, release};
use sidetone_engine::storage::moves::{Move, Refusal, State};
use sidetone_engine::storage::signing::{Origin, label};
use sidetone_engine::storage::workspace_rows::{TABLES, Table};
use sidetone_tests::World;
use sidetone_tests::process::bootstrap_key;

use crate::cluster::Cluster;
use crate::frozen::{ALL, rows};
use crate::furnished::furnished;
use crate::schema::{ask, texts};

const IMPORT: &str = "imp_01kas3v8hq4x7m2n5p6r9t0w1z";
const ANOTHER: &str = "imp_01kas3v8hq4x7m2n5p6r9t0w20";
const EARLIER: &str = "exp_01kas3v8hq4x7m2n5p6r9t0w1z";
const HOST: &str = "https://edge.example";
const HOUR_MS: i64 = 3_600_000;

/// Closes and freezes a workspace. What is under way comes to its end.
pub fn frozen(cluster: &Cluster, tenant: &World, id: &WorkspaceId) -> Services {
    let services = tenant.direct_access();
    block_on(close(&services, id)).unwrap().unwrap();
    let mut last = Vec::new();
    for _ in 0..60 {
        match block_on(freeze(&services, id, false)).unwrap().unwrap() {
            Freeze::Frozen => return services,
            Freeze::Waits(waits) => last = waits,
        }
        tenant.sandbox().unwrap().advance(HOUR_MS);
        cluster.run_jobs();
    }
    panic!("it still waits for {last:?}");
}

/// A frozen workspace with rows in every table that has any then, recordings, and an archived transcript.
pub fn source(cluster: &Cluster) -> (World, WorkspaceId, Services) {
    let (tenant, id) = with_files(cluster);
    let services = frozen(cluster, &tenant, &id);
    (tenant, id, services)
}

/// The same before it is frozen: what is under way in it comes to its end.
pub fn with_files(cluster: &Cluster) -> (World, WorkspaceId) {
    let (tenant, id) = furnished(cluster, 0);
    let id = WorkspaceId::from_stored(id);
    // As if something were under way for ever.
    let pretended = ["conversation_journal", "spending_reservations", "live_call_turns", "jobs_away"];
    let forget =
        pretended.map(|table| sql!(format!("DELETE FROM {table} WHERE workspace_id = :id"), id = &id));
    tenant.write(forget.to_vec());
    archive_a_transcript(&tenant, &id);
    tenant.a_recorded_call();
    (tenant, id)
}

fn archive_a_transcript(tenant: &World, id: &WorkspaceId) {
    let calls = tenant.get("/calls?limit=100").ok();
    let ended = calls["calls"].as_array().unwrap().iter().find(|call| call["status"] == "ended");
    let call_id = CallId::from_stored(ended.expect("a call has ended")["id"].as_str().unwrap());
    let content = br#"{"transcript":[],"turns":[]}"#;
    let key = BlobKey::transcript(id, &call_id).unwrap();
    let services = tenant.direct_access();
    block_on(services.ports().blobs.put(&key, Bytes::from_static(content))).unwrap();
    tenant.write(vec![sql!(
        "UPDATE call_transcripts SET content = '[]', turns = '[]', archive_bytes = :bytes, archive_sha256 = :sha256
         WHERE workspace_id = :id AND seq = (SELECT seq FROM calls WHERE id = :call)",
        id = id,
        call = &call_id,
        bytes = i64::try_from(content.len()).unwrap(),
        sha256 = sha256_hex(content)
    )]);
}

/// The head and the parts of a file.
pub fn export(services: &Services, id: &WorkspaceId) -> (Head, Vec<Part>) {
    let found = block_on(Move::of(services, id)).unwrap().unwrap();
    let head = block_on(head(services, &found)).unwrap();
    let (mut parts, mut after) = (Vec::new(), None::<String>);
    loop {
        let part = block_on(next_part(services, id, after.as_deref())).unwrap().unwrap();
        after = part.head.next.clone();
        parts.push(part);
        if after.is_none() {
            return (head, parts);
        }
        assert!(parts.len() < 1_000, "it does not end");
    }
}

pub fn hand_over(services: &Services, id: &WorkspaceId, to: &str, instead_of: Option<&str>) -> Released {
    try_hand_over(services, id, to, instead_of).unwrap()
}

fn try_hand_over(
    services: &Services,
    id: &WorkspaceId,
    to: &str,
    instead_of: Option<&str>,
) -> Result<Released, Refusal> {
    let found = block_on(Move::of(services, id)).unwrap();
    let export_id = found.map(|found| found.id).unwrap_or_default();
    let receiver = Receiver { export_id: &export_id, import_id: to, base_url: HOST, instead_of };
    block_on(release(services, id, receiver)).unwrap()
}

/// The key of a blob in a part.
pub fn key_of(id: &WorkspaceId, head: &BlobHead) -> BlobKey {
    match &head.segment {
        Some(segment) => BlobKey::recording(id, &head.call, &segment.recording).unwrap().segment(segment.n),
        None => BlobKey::transcript(id, &head.call).unwrap(),
    }
}

pub fn blobs(parts: &[Part]) -> Vec<(&BlobHead, Bytes)> {
    parts.iter().flat_map(|part| part.blobs().unwrap()).collect()
}

#[test]
fn the_parts_have_every_row_secret_and_blob() {
    let cluster = Cluster::new(1);
    let (_, _) = furnished(&cluster, 0);
    let (tenant, id, services) = source(&cluster);
    let (file_head, parts) = export(&services, &id);
    assert_eq!(file_head.workspace_id, id);
    assert_eq!(file_head.numbers.len(), rows(&cluster.shards, &id)["numbers"].len());
    assert!(!file_head.needs.models.is_empty(), "{file_head:?}");

    let mut carried: BTreeMap<String, Vec<Vec<Value>>> = BTreeMap::new();
    let mut tally = Tally::of(&file_head);
    for part in &parts {
        assert_eq!(Part::read(&part.to_bytes()), Ok(part.clone()));
        tally.add(part).unwrap();
        for page in part.pages().unwrap() {
            carried.entry(page.table).or_default().extend(page.rows);
        }
    }
    for table in TABLES {
        let all = block_on(ALL.read(cluster.shards.at(0), table, &id, &[])).unwrap();
        let all = all.for_another_host(table).rows;
        assert_eq!(tally.sums.get(table.name).map_or(0, |sum| sum.rows), all.len() as u64, "{}", table.name);
        assert_eq!(carried.remove(table.name).unwrap_or_default(), all, "{}", table.name);
    }
    assert!(carried.is_empty(), "{:?}", carried.keys());

    // Whatever was carried, it is asked for again in the same way.
    let mut after = None::<&str>;
    for part in &parts {
        let again = block_on(next_part(&services, &id, after)).unwrap().unwrap();
        assert_eq!(again, *part);
        after = part.head.next.as_deref();
    }

    let read = blobs(&parts);
    for (blob_head, content) in &read {
        let range = ByteRange { first: 0, bytes: content.len() as u64 };
        let stored = block_on(services.ports().blobs.get(&key_of(&id, blob_head), range)).unwrap();
        assert_eq!(stored.as_ref(), Some(content), "{blob_head:?}");
    }
    let (segments, transcripts): (Vec<_>, Vec<_>) =
        read.iter().partition(|(blob_head, _)| blob_head.segment.is_some());
    assert!(!segments.is_empty() && transcripts.len() == 1, "{} of {}", segments.len(), read.len());
    let recorded: BTreeMap<_, usize> =
        segments.iter().fold(BTreeMap::new(), |mut all, (blob_head, content)| {
            *all.entry(blob_head.call.clone()).or_default() += content.len();
            all
        });
    for (call_id, bytes) in recorded {
        let file = tenant.get(format!("/calls/{call_id}/recording"));
        assert_eq!(file.status, 200, "{file:?}");
        assert_eq!(file.body.len(), 44 + bytes, "the head of the file is in no blob");
    }
    assert_eq!((tally.blobs, tally.missing), (read.len() as u64, 0));

    // Nothing but the code opens the secrets.
    let released = hand_over(&services, &id, IMPORT, None);
    let key = released.code.opens(IMPORT, &file_head.key_sha256).expect("the key of the file");
    let mut owners = 0;
    for line in parts.iter().flat_map(|part| part.secrets().unwrap()) {
        let owner = line.owner.as_secret_owner();
        for (version, sealed) in (1..=line.version).rev().zip(&line.sealed) {
            let secret = unseal(&key, &label(owner, version), sealed).expect("a secret of this version");
            let signs = Origin::default().secret(&services.config().secret, owner, version);
            assert_eq!(format!("whsec_{}", STANDARD.encode(secret)), signs);
        }
        assert!((1..=2).contains(&line.sealed.len()), "{line:?}");
        owners += 1;
    }
    let stored = rows(&cluster.shards, &id);
    assert_eq!(owners, stored["tools"].len() + stored["webhooks"].len());
    // After the hand-over, the file can be made again.
    let (same_head, again) = export(&services, &id);
    assert_eq!(same_head, file_head);
    assert_eq!(again, parts);
}

#[test]
fn a_blob_that_storage_has_lost_is_told() {
    let cluster = Cluster::new(1);
    let (tenant, id) = cluster.workspace(0);
    let id = WorkspaceId::from_stored(id);
    tenant.a_recorded_call();
    let services = frozen(&cluster, &tenant, &id);
    let (_, parts) = export(&services, &id);
    let (lost, _) = blobs(&parts)[0].clone();
    block_on(services.ports().blobs.delete(&key_of(&id, lost))).unwrap();
    let (file_head, parts) = export(&services, &id);
    let mut tally = Tally::of(&file_head);
    parts.iter().for_each(|part| tally.add(part).unwrap());
    assert_eq!(tally.missing, 1);
}

#[test]
fn a_workspace_is_handed_over_once() {
    let cluster = Cluster::new(1);
    let (tenant, id) = cluster.workspace(0);
    let (id, assistant) = (WorkspaceId::from_stored(id), tenant.assistant());
    let token = tenant.test_token(&assistant.id);
    let services = tenant.direct_access();
    let part = |after| block_on(next_part(&services, &id, after)).unwrap();
    assert_eq!(part(None).unwrap_err(), Refusal::NotFrozen);
    assert_eq!(try_hand_over(&services, &id, IMPORT, None).unwrap_err(), Refusal::NotFrozen);
    assert_eq!(block_on(erase(&services, &id)).unwrap().unwrap_err(), Refusal::NotReleased);

    frozen(&cluster, &tenant, &id);
    assert_eq!(block_on(erase(&services, &id)).unwrap().unwrap_err(), Refusal::NotReleased);
    assert_eq!(part(Some("nowhere")).unwrap_err(), Refusal::NoSuchPlace);
    // An upgrade since.
    let schema = |schema: &str| {
        tenant.write(vec![sql!(
            "UPDATE moves SET schema = :schema WHERE workspace_id = :id",
            schema = schema,
            id = &id
        )]);
    };
    let ours = block_on(Move::of(&services, &id)).unwrap().unwrap().schema;
    schema("later");
    assert_eq!(part(None).unwrap_err(), Refusal::SchemaChanged);
    assert_eq!(try_hand_over(&services, &id, IMPORT, None).unwrap_err(), Refusal::SchemaChanged);
    schema(&ours);
    tenant.get("/assistants").ok();
    // A file of an export that was canceled.
    let before = Receiver { export_id: EARLIER, import_id: IMPORT, base_url: HOST, instead_of: None };
    assert_eq!(block_on(release(&services, &id, before)).unwrap().unwrap_err(), Refusal::OtherExport);

    let released = hand_over(&services, &id, IMPORT, None);
    assert_eq!(released.outcome, Outcome::Over);
    let again = hand_over(&services, &id, IMPORT, None);
    assert_eq!((again.outcome, again.code.to_text()), (Outcome::Again, released.code.to_text()));
    assert_eq!(block_on(release(&services, &id, before)).unwrap().unwrap_err(), Refusal::OtherExport);
    assert_eq!(block_on(cancel_export(&services, &id)).unwrap().unwrap_err(), Refusal::Moved);
    for instead_of in [None, Some(ANOTHER)] {
        let refused = try_hand_over(&services, &id, ANOTHER, instead_of).unwrap_err();
        assert_eq!(refused, Refusal::ReleasedElsewhere);
    }

    // Clients are told where it is, however often they ask.
    for _ in 0..12 {
        let told = tenant.get("/assistants").refused("workspace_moved");
        assert_eq!(told["error"]["details"]["base_url"], HOST);
    }
    tenant.post("/assistants", json!({"name": "New", "instructions": "Be kind."})).refused("workspace_moved");
    let told = tenant.connect(token["websocket_url"].as_str().unwrap()).map(drop).unwrap_err();
    assert_eq!((told.status, told.code()), (410, "workspace_moved"), "{told:?}");
    // Such an answer does not count as a wrong key.
    tenant.with_key(&bootstrap_key(4_000_020)).get("/assistants").refused("unauthorized");

    // The target is lost for good.
    let instead = hand_over(&services, &id, ANOTHER, Some(IMPORT));
    assert_eq!(instead.outcome, Outcome::Instead);
    assert_ne!(instead.code.to_text(), released.code.to_text());
    assert_eq!(try_hand_over(&services, &id, IMPORT, None).unwrap_err(), Refusal::ReleasedElsewhere);
}

#[test]
fn what_has_moved_is_erased_but_for_its_keys_which_say_where_it_is() {
    let cluster = Cluster::new(1);
    let (next_door, beside) = furnished(&cluster, 0);
    let beside = WorkspaceId::from_stored(beside);
    let (tenant, id, services) = source(&cluster);
    let (file_head, parts) = export(&services, &id);
    hand_over(&services, &id, IMPORT, None);
    // Its numbers are in the way of others until then, which they are told.
    let path = format!("/numbers/{}", file_head.numbers[0].replace('+', "%2B"));
    let body = json!({"assistant_id": next_door.assistant().id, "provider": "twilio"});
    let told = next_door.put(path, body).refused("number_in_use");
    let message = told["error"]["message"].as_str().unwrap();
    assert!(message.contains("has moved") && message.contains("operator"), "{message}");
    let neighbour = rows(&cluster.shards, &beside);
    let keys: Vec<BlobKey> = blobs(&parts).iter().map(|(blob_head, _)| key_of(&id, blob_head)).collect();
    let size = |key| block_on(services.ports().blobs.size(key)).unwrap();
    assert!(keys.iter().all(|key| size(key).is_some()));

    let (mut steps, mut deleted) = (0, 0);
    while let Erasing::Rows(erased) = block_on(erase(&services, &id)).unwrap().unwrap() {
        assert!(Table::named(&erased.table).is_some() && erased.rows >= deleted, "{erased:?}");
        (steps, deleted) = (steps + 1, erased.rows);
        assert!(steps < 1_000, "{erased:?}");
        assert_eq!(part_refused(&services, &id), Refusal::Moved);
    }
    assert!(deleted > 50, "{deleted}");
    assert_eq!(block_on(erase(&services, &id)).unwrap().unwrap(), Erasing::Gone(false));
    // The import is lost for good: another one can still be opened, and nothing comes back here.
    let instead = hand_over(&services, &id, ANOTHER, Some(IMPORT));
    assert_eq!(instead.outcome, Outcome::Instead);
    assert_eq!(try_hand_over(&services, &id, IMPORT, None).unwrap_err(), Refusal::ReleasedElsewhere);
    assert_eq!(block_on(erase(&services, &id)).unwrap().unwrap(), Erasing::Gone(false));
    let left = rows(&cluster.shards, &id);
    for (table, rows) in &left {
        let expected = match *table {
            "workspaces" | "search_erasures" => 1,
            "api_keys" => rows.len().max(1),
            _ => 0,
        };
        assert_eq!(rows.len(), expected, "{table}");
    }
    assert!(keys.iter().all(|key| size(key).is_none()), "its blobs are removed");
    assert_eq!(rows(&cluster.shards, &beside), neighbour);
    let triggers = || {
        let names = "SELECT name AS text FROM sqlite_schema WHERE type = 'trigger' ORDER BY name";
        texts(&ask(cluster.shards.at(0), names, &[]))
    };
    let shared = triggers();
    assert_eq!(shared.len(), 9);
    // Nobody pays for each workspace that has left.
    let (next, next_id) = cluster.workspace(0);
    let next_id = WorkspaceId::from_stored(next_id);
    frozen(&cluster, &next, &next_id);
    hand_over(&services, &next_id, ANOTHER, None);
    while let Erasing::Rows(_) = block_on(erase(&services, &next_id)).unwrap().unwrap() {}
    assert_eq!(triggers(), shared);
    let engine = tenant.sandbox().unwrap().engine();
    assert!(block_on(engine.create_key(&next_id)).is_err());
    tenant.get("/assistants").refused("workspace_moved");
    assert!(block_on(engine.create_key(&id)).is_err(), "nobody gets another key");
    let body = json!({"name": "New", "instructions": "Be kind."});
    let operated = engine.operate(&id, "create_assistant", Vec::new(), body.as_object().cloned());
    assert!(block_on(operated).is_err(), "nor does the operator change anything in it");
    assert_eq!(block_on(close(&services, &id)).unwrap().unwrap().state, State::Gone);

    // What it leaves is in nobody's way, and the words of its calls leave the text index.
    let sandbox = tenant.sandbox().unwrap();
    for _ in 0..10 {
        sandbox.advance(24 * HOUR_MS);
        assert!(block_on(sandbox.engine().start("host")).is_ok());
        cluster.run_jobs();
        while block_on(sandbox.services().sweep()).unwrap().more {}
    }
    assert!(rows(&cluster.shards, &id)["search_erasures"].is_empty());
}

fn part_refused(services: &Services, id: &WorkspaceId) -> Refusal {
    block_on(next_part(services, id, None)).unwrap().unwrap_err()
}
