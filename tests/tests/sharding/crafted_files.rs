//! Files of a move that somebody has made up: what would harm others is refused, and nothing of such a part is written.
use std::slice::from_ref;

use bytes::Bytes;
use serde_json::json;
use sidetone::sandbox::block_on;
use sidetone_engine::base::hash::sha256_hex;
use sidetone_engine::base::ids::{CallId, Id as _, RecordingId, ToolId, WorkspaceId};
use sidetone_engine::ports::statement::Value;
use sidetone_engine::sql;
use sidetone_engine::storage::moves::erase::{Erasing, erase};
use sidetone_engine::storage::moves::part::{
    BlobHead, CarriedSecrets, Found, Head, Kind, Owner, PageHead, Part, PartHead, Segment, Tally,
};
use sidetone_engine::storage::signing::{Origin, SecretOwner, SecretVersions};
use sidetone_engine::storage::workspace_rows::{EMPTY, Page, Table};

use crate::arriving::{File, Target, reason};
use crate::cluster::Cluster;
use crate::frozen::rows;
use crate::furnished::furnished;
use crate::handing_over::{blobs, frozen, hand_over, key_of, source};
use crate::schema::{ask, texts};

const DAY_MS: i64 = 86_400_000;

/// A file of a workspace with everything in it, and a host where a neighbour has everything, too.
pub struct Crafted {
    pub to: Target,
    pub file: File,
    pub id: WorkspaceId,
    pub neighbour: WorkspaceId,
    /// How many parts have been received.
    received: usize,
}

impl Crafted {
    pub fn new() -> Self {
        let from = Cluster::new(1);
        let (_, id, services) = source(&from);
        let file = File::of(&services, &id);
        let to = Target::new();
        let neighbour = WorkspaceId::from_stored(furnished(&to.cluster, 0).1);
        to.begin(&file.head).unwrap();
        Self { to, file, id, neighbour, received: 0 }
    }

    /// Receives the parts before the first one for which this holds, and returns that.
    fn until(&mut self, is_it: impl Fn(&Part) -> bool) -> Part {
        loop {
            let part = self.file.parts[self.received].clone();
            if is_it(&part) {
                return part;
            }
            self.received += 1;
            self.to.receive(&self.id, self.received, &part).unwrap();
        }
    }

    /// Offers another part instead of the next one. It changes nothing.
    fn refused(&self, part: &Part) -> String {
        self.refused_bytes(&part.to_bytes())
    }

    fn refused_bytes(&self, bytes: &Bytes) -> String {
        let before = (self.to.left(&self.id), rows(&self.to.cluster.shards, &self.neighbour));
        let outcome = self.to.receive_bytes(&self.id, self.received + 1, bytes);
        assert_eq!((self.to.left(&self.id), rows(&self.to.cluster.shards, &self.neighbour)), before);
        reason(outcome)
    }

    /// The next part with rows of this table, with this change of its first row.
    fn with_row(&mut self, name: &str, change: impl Fn(&mut Vec<Value>, &dyn Fn(&str) -> usize)) -> Part {
        let part = self.until(|part| has_rows(part, name));
        let table = Table::named(name).unwrap();
        let place = |column: &str| table.carried().position(|one| one.name == column).unwrap();
        let mut pages = part.pages().unwrap();
        let page = pages.iter_mut().find(|page| page.table == name).unwrap();
        change(&mut page.rows[0], &place);
        Part::of_pages(&pages, part.head.next)
    }

    fn a_neighbours(&self, table: &'static str) -> String {
        let all = rows(&self.to.cluster.shards, &self.neighbour);
        let at = Table::named(table).unwrap().carried().position(|one| one.name == "id").unwrap();
        match &all[table][0][at] {
            Value::Text(id) => id.clone(),
            other => panic!("{other:?}"),
        }
    }
}

pub fn has_rows(part: &Part, name: &str) -> bool {
    match &part.head.kind {
        Kind::Rows(pages) => pages.iter().any(|page| page.table == name && page.rows > 0),
        _ => false,
    }
}

pub fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

#[test]
fn rows_that_would_harm_others_do_not_arrive() {
    let mut crafted = Crafted::new();
    // In the order in which the tables arrive.
    let (call, tool) = (crafted.a_neighbours("calls"), crafted.a_neighbours("tools"));
    let large = text(&json!(["x".repeat(200_000)]).to_string());
    for (table, column, value, expected) in [
        ("workspaces", "secret_salt", text("chosen"), "wrong_part"),
        ("workspaces", "id", text(&crafted.neighbour), "wrong_part"),
        ("workspaces", "call_retention_days", Value::Number(-9e15), "wrong_part"),
        ("workspaces", "archived_until", Value::Number(-9e15), "wrong_part"),
        ("api_keys", "workspace_id", text(&crafted.neighbour), "wrong_part"),
        ("assistant_revisions", "tool_ids", text(&json!([tool]).to_string()), "names_a_stranger"),
        (
            "assistant_revisions",
            "knowledge_ids",
            text(&json!([call]).to_string().replace('_', "\\u005f")),
            "names_a_stranger",
        ),
        ("assistants", "metadata", text("no JSON"), "wrong_part"),
        ("deliveries", "due_at", Value::Number(9e15), "wrong_part"),
        ("events", "call_id", Value::Null, "wrong_part"),
        ("events", "body", text("no JSON"), "wrong_part"),
        // More than its delivery counts.
        ("events", "body", large.clone(), "wrong_part"),
        ("phone_calls", "is_over", Value::Number(0.0), "wrong_part"),
        ("phone_calls", "line_until", Value::Number(9e12), "wrong_part"),
        ("recordings", "call_id", text("../../other"), "wrong_part"),
        ("recordings", "segments", Value::Number(9e15), "wrong_part"),
        ("runs", "status", text("running"), "wrong_part"),
        ("snapshots", "content", text(&json!({"tools": [{"id": tool}]}).to_string()), "names_a_stranger"),
        ("tools", "carried_secrets", text("{}"), "wrong_part"),
        ("tools", "timeout_ms", Value::Number(9e15), "wrong_part"),
        ("calls", "status", text("in_progress"), "wrong_part"),
        ("calls", "group_id", text("[]"), "wrong_part"),
        // More than its call counts.
        ("call_transcripts", "content", large.clone(), "wrong_part"),
        ("call_transcripts", "turns", large, "wrong_part"),
        ("call_transcripts", "archive_bytes", Value::Number(8e6), "wrong_part"),
    ] {
        let part = crafted.with_row(table, |row, place| row[place(column)] = value.clone());
        assert_eq!(crafted.refused(&part), expected, "{table}.{column}");
    }
    crafted.until(|part| matches!(part.head.kind, Kind::End(_)));
    crafted.received += 1;
    crafted.to.receive(&crafted.id, crafted.received, &crafted.file.parts[crafted.received - 1]).unwrap();
    crafted.to.verify(&crafted.id).unwrap();
}

/// Whoever talks to an assistant does not decide whether its workspace can move.
#[test]
fn texts_that_nothing_follows_may_name_what_others_have() {
    let mut crafted = Crafted::new();
    let (call, tool) = (crafted.a_neighbours("calls"), crafted.a_neighbours("tools"));
    let revision = crafted.with_row("assistant_revisions", |row, place| {
        row[place("tool_ids")] = text(&json!([tool]).to_string());
    });
    let refused = crafted.to.receive(&crafted.id, crafted.received + 1, &revision).unwrap_err();
    assert!(refused.message.contains("row 1, tool_ids names"), "{}", refused.message);
    let details = refused.details.unwrap();
    assert_eq!((&details["row"], &details["column"]), (&json!(1), &json!("tool_ids")));
    assert!(details["page"].is_number(), "{details}");

    let said = format!("What are {call} and {tool}?");
    let mut file = crafted.file.clone();
    let mut changed = 0;
    for (name, column, value) in [
        ("assistants", "instructions", said.clone()),
        ("call_transcripts", "content", json!([{"text": said}]).to_string()),
        ("call_words", "summary", said.replace('_', " ").replace('?', "")),
        ("calls", "metadata", json!({"note": said}).to_string()),
        ("events", "body", json!({"data": {"said": said}}).to_string()),
        ("runs", "last_line", said.clone()),
    ] {
        let at = Table::named(name).unwrap().carried().position(|one| one.name == column).unwrap();
        for part in file.parts.iter_mut().filter(|part| has_rows(part, name)) {
            let mut pages = part.pages().unwrap();
            let page = pages.iter_mut().find(|page| page.table == name && !page.rows.is_empty()).unwrap();
            page.rows[0][at] = text(&value);
            *part = Part::of_pages(&pages, part.head.next.clone());
            changed += 1;
        }
    }
    assert!(changed >= 6, "{changed}");
    file.parts.pop();
    let file = file.with_end();
    crafted.to.cancel(&crafted.id).unwrap();
    crafted.to.receive_all(&file).unwrap();
    crafted.to.verify(&crafted.id).unwrap();
}

#[test]
fn pages_that_no_export_writes_do_not_arrive() {
    let mut crafted = Crafted::new();
    let first = crafted.until(|_| true);
    let page = |table: &str, rows: Vec<Vec<Value>>| Page { table: table.to_owned(), rows, next: None };
    // Tables of people and of the service, and of what is under way.
    for table in ["accounts", "sessions", "service_facts", "migrations", "moves", "nonsense", "batch_guard"] {
        let part = Part::of_pages(&[page(table, vec![vec![Value::Null]])], None);
        assert_eq!(crafted.refused(&part), "wrong_part", "{table}");
    }
    for table in EMPTY {
        let row = Table::named(table).unwrap().carried().map(|_| Value::Null).collect();
        assert_eq!(
            crafted.refused(&Part::of_pages(&[page(table, vec![row])], None)),
            "wrong_part",
            "{table}"
        );
    }
    let row = |n: usize| {
        let row = [text(&crafted.id), text("2026-01"), Value::Number(n as f64)];
        row.to_vec()
    };
    let many = Part::of_pages(&[page("spending", (0..201).map(row).collect())], None);
    assert_eq!(crafted.refused(&many), "wrong_part");
    // What its rows refer to is not there.
    let number = crafted.file.parts.iter().flat_map(|part| part.pages().unwrap());
    let numbers = number.into_iter().find(|page| page.table == "numbers").unwrap();
    assert_eq!(crafted.refused(&Part::of_pages(&[numbers], None)), "wrong_part");
    // The same twice.
    let keys = first.pages().unwrap().into_iter().find(|page| page.table == "api_keys").unwrap();
    assert_eq!(crafted.refused(&Part::of_pages(&[keys.clone(), keys], None)), "exists");

    // What is cut off, changed, or of another order.
    let bytes = first.to_bytes();
    for cut in [0, 1, bytes.len() / 2, bytes.len() - 1] {
        assert_eq!(crafted.refused_bytes(&bytes.slice(..cut)), "wrong_part", "{cut}");
    }
    let mut changed = bytes.to_vec();
    let last = changed.len() - 3;
    changed[last] ^= 1;
    assert_eq!(crafted.refused_bytes(&changed.into()), "wrong_part");
    let short = PartHead { bytes: first.head.bytes - 1, ..first.head.clone() };
    assert_eq!(crafted.refused(&Part { head: short, ..first.clone() }), "wrong_part");
    let heads = vec![PageHead { table: "calls".to_owned(), rows: 1 }];
    assert_eq!(crafted.refused(&Part::new(Kind::Rows(heads), None, first.bytes.clone())), "wrong_part");
    let second = crafted.file.parts[1].clone();
    assert_eq!(reason(crafted.to.receive(&crafted.id, 2, &second)), "out_of_order");
}

#[test]
fn a_file_with_another_end_is_not_complete() {
    let mut crafted = Crafted::new();
    let end = crafted.until(|part| matches!(part.head.kind, Kind::End(_)));
    let Kind::End(tally) = &end.head.kind else { unreachable!() };
    let changed = |change: &dyn Fn(&mut Tally)| {
        let mut tally = tally.clone();
        change(&mut tally);
        Part::of_end(tally)
    };
    let mut other = Tally::of(&crafted.file.head);
    other.add(&crafted.file.parts[0]).unwrap();
    for end in [
        changed(&|tally| tally.parts += 1),
        changed(&|tally| tally.missing += 1),
        changed(&|tally| tally.blobs -= 1),
        changed(&|tally| tally.chain = other.chain.clone()),
        changed(&|tally| {
            tally.sums.remove("calls");
        }),
    ] {
        assert_eq!(crafted.refused(&end), "wrong_part", "{end:?}");
    }
    crafted.to.receive(&crafted.id, crafted.received + 1, &end).unwrap();
    crafted.to.verify(&crafted.id).unwrap();
}

/// What looks at the head before anything arrives has looked at what arrives.
#[test]
fn a_file_has_what_its_head_names_and_no_more_than_a_workspace_can_have() {
    let crafted = Crafted::new();
    let (id, to) = (&crafted.id, &crafted.to);
    let changes: [fn(&mut Head); 4] = [
        |head| head.numbers.clear(),
        |head| head.numbers.push("+14155559999".to_owned()),
        |head| head.key_hashes.clear(),
        |head| head.key_hashes[0] = sha256_hex(b"another"),
    ];
    for (n, change) in changes.into_iter().enumerate() {
        let mut file = crafted.file.clone();
        change(&mut file.head);
        file.parts.pop();
        to.cancel(id).unwrap();
        let refused = to.receive_all(&file.with_end()).unwrap_err();
        assert!(refused.message.contains("its head names other"), "{n}: {}", refused.message);
    }

    to.cancel(id).unwrap();
    to.begin(&crafted.file.head).unwrap();
    let row = |n: usize| {
        let run = format!("run_{n:026}");
        [text(id), text(&format!("job_{n:026}")), text("simulation_run"), text(&run)]
            .into_iter()
            .chain([Value::Number(0.0), Value::Number(0.0), Value::Number(0.0)])
            .collect::<Vec<Value>>()
    };
    let part = |n: usize| {
        let rows = (n * 200..(n + 1) * 200).map(row).collect();
        Part::of_pages(&[Page { table: "jobs_away".to_owned(), rows, next: None }], None)
    };
    // Twice as many as a workspace can have that is not locked.
    let refused = (0..100).find_map(|n| to.receive(id, n + 1, &part(n)).err().map(|error| (n, error)));
    let (n, error) = refused.unwrap();
    assert_eq!(n, 10_500 / 200, "{}", error.message);
    assert!(error.message.contains("rows of jobs_away"), "{}", error.message);
    to.cancel(id).unwrap();
    to.receive_all(&crafted.file).unwrap();
    to.verify(id).unwrap();
}

/// A blob goes where a row of the workspace says, and nowhere else.
#[test]
fn a_blob_without_a_row_does_not_arrive() {
    let mut crafted = Crafted::new();
    let part = crafted.until(|part| matches!(&part.head.kind, Kind::Blobs(heads) if !heads.is_empty()));
    let of = |heads: Vec<BlobHead>, bytes: Bytes| Part::new(Kind::Blobs(heads), None, bytes);
    let (head, bytes) = part.blobs().unwrap()[0].clone();
    let found = |bytes: &[u8]| Some(Found { bytes: bytes.len() as u64, sha256: sha256_hex(bytes) });
    let segment = head.segment.clone().expect("recordings come first");
    let of_neighbour = RecordingId::from_stored(crafted.a_neighbours("recordings"));
    let call_of_neighbour = CallId::from_stored(crafted.a_neighbours("calls"));
    let short = bytes.slice(1..);
    let same = |head: BlobHead| of(vec![head], bytes.clone());
    let longer: Bytes = [&bytes[..], b"x"].concat().into();
    let (transcript, transcript_bytes) = blobs(crafted.file.contents())
        .into_iter()
        .find(|(head, _)| head.segment.is_none())
        .map(|(head, bytes)| (head.clone(), bytes))
        .unwrap();
    let damaged: Bytes = transcript_bytes.iter().map(|byte| byte ^ 1).collect::<Vec<u8>>().into();
    for wrong in [
        same(BlobHead { segment: Some(Segment { n: 1_000, ..segment.clone() }), ..head.clone() }),
        same(BlobHead { segment: Some(Segment { n: u64::MAX, ..segment.clone() }), ..head.clone() }),
        same(BlobHead { segment: Some(Segment { recording: of_neighbour, n: 0 }), ..head.clone() }),
        same(BlobHead { call: call_of_neighbour.clone(), ..head.clone() }),
        same(BlobHead { call: CallId::from_stored("../../x"), ..head.clone() }),
        same(BlobHead { segment: None, ..head.clone() }),
        same(BlobHead { segment: None, call: call_of_neighbour, ..head.clone() }),
        of(vec![BlobHead { found: found(&short), ..head.clone() }], short),
        of(vec![BlobHead { found: found(&longer), ..head.clone() }], longer),
        of(vec![BlobHead { found: found(&damaged), ..transcript }], damaged),
        of(vec![BlobHead { found: None, ..head.clone() }; 65], Bytes::new()),
    ] {
        let before: Vec<_> = wrong.blobs().unwrap().into_iter().map(|(head, _)| head.clone()).collect();
        assert_eq!(crafted.refused(&wrong), "wrong_part", "{before:?}");
    }
    assert_eq!(block_on(crafted.to.services.ports().blobs.size(&key_of(&crafted.id, head))).unwrap(), None);

    // Whoever says that a blob is lost, or leaves one out, harms themselves.
    let mut file = crafted.file.clone();
    file.parts =
        file.contents().iter().filter(|part| !matches!(part.head.kind, Kind::Blobs(_))).cloned().collect();
    let file = file.with_end();
    crafted.to.cancel(&crafted.id).unwrap();
    crafted.to.receive_all(&file).unwrap();
    assert_eq!(reason(crafted.to.verify(&crafted.id)), "differs");
}

#[test]
fn secrets_of_what_is_not_there_do_not_arrive_and_ones_that_do_not_open_are_new() {
    let from = Cluster::new(1);
    let (tenant, id) = from.workspace(0);
    let id = WorkspaceId::from_stored(id);
    let tool = ToolId::from_stored(tenant.a_tool().id);
    let services = frozen(&from, &tenant, &id);
    let mut file = File::of(&services, &id);
    let to = Target::new();
    let at = file.parts.iter().position(|part| part.head.kind == Kind::Secrets).unwrap();
    let next = file.parts[at].head.next.clone();
    let carried = file.parts[at].secrets().unwrap().remove(0);
    assert_eq!(carried.owner, Owner::Tool(tool.clone()));
    to.begin(&file.head).unwrap();
    for (n, part) in (1..).zip(&file.parts[..at]) {
        to.receive(&id, n, part).unwrap();
    }
    let other = ToolId::from_stored("tool_01kas3v8hq4x7m2n5p6r9t0w1z");
    let sealed = |sealed: &[&str]| sealed.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    for wrong in [
        CarriedSecrets { owner: Owner::Tool(other), ..carried.clone() },
        CarriedSecrets { version: 2, ..carried.clone() },
        CarriedSecrets { sealed: Vec::new(), ..carried.clone() },
        CarriedSecrets { sealed: sealed(&["short"]), ..carried.clone() },
        CarriedSecrets { sealed: vec![carried.sealed[0].clone(); 3], ..carried.clone() },
    ] {
        let part = Part::of_secrets(from_ref(&wrong), None);
        assert_eq!(reason(to.receive(&id, at + 1, &part)), "wrong_part", "{wrong:?}");
    }
    // It looks like one.
    let forged = CarriedSecrets { sealed: sealed(&[&"A".repeat(88)]), ..carried };
    file.parts[at] = Part::of_secrets(&[forged], next);
    file.parts.pop();
    let file = file.with_end();
    for (n, part) in (1..).zip(&file.parts).skip(at) {
        to.receive(&id, n, part).unwrap();
    }
    let import_id = to.verify(&id).unwrap();
    let lost = to.open(&id, &hand_over(&services, &id, &import_id, None).code).unwrap();
    assert_eq!(lost, [tool.as_str()]);
    to.tenant(&tenant).get(format!("/tools/{tool}")).ok();
}

/// The receiver of a deleted tool of somebody else still believes what is signed with its secret.
#[test]
fn nothing_is_signed_as_what_somebody_else_has_deleted() {
    let from = Cluster::new(1);
    let (tenant, id) = from.workspace(0);
    let id = WorkspaceId::from_stored(id);
    tenant.a_tool();
    let services = frozen(&from, &tenant, &id);
    let mut file = File::of(&services, &id);
    let to = Target::new();
    let deleted = to.neighbour.a_tool();
    to.neighbour.delete(format!("/tools/{}", deleted.id)).empty();
    let table = Table::named("tools").unwrap();
    let place = table.carried().position(|column| column.name == "id").unwrap();
    for part in &mut file.parts {
        if has_rows(part, "tools") {
            let mut pages = part.pages().unwrap();
            let page = pages.iter_mut().find(|page| page.table == "tools").unwrap();
            page.rows[0][place] = text(&deleted.id);
            *part = Part::of_pages(&pages, part.head.next.clone());
        }
        if part.head.kind == Kind::Secrets {
            *part = Part::of_secrets(&[], part.head.next.clone());
        }
    }
    file.parts.pop();
    let file = file.with_end();
    to.take(&file, &services);
    let there = to.tenant(&tenant);
    let tool = ToolId::from_stored(&*deleted.id);
    let owner = SecretOwner::Tool(&tool);
    let secret = || {
        let select = SecretVersions::select(owner).in_workspace(&id);
        let [found] = block_on(to.services.read([select])).unwrap();
        let SecretVersions { version, origin, .. } = SecretVersions::read(found.first().unwrap()).unwrap();
        origin.secret(&to.services.config().secret, owner, version)
    };
    let first = Origin::default().secret(&to.services.config().secret, owner, 1);
    assert_eq!(deleted["signing_secret"], json!(first), "as others are derived");
    assert_ne!(secret(), first);
    there.delete(format!("/tools/{tool}")).empty();
}

/// The workspace is tried in each round.
#[test]
fn retention_that_fails_in_one_workspace_goes_on_in_the_others() {
    let cluster = Cluster::new(1);
    let of_ended_calls = || {
        let (tenant, id) = cluster.workspace(0);
        tenant.run();
        cluster.run_jobs();
        tenant.patch("/workspace", json!({"call_retention_days": 1})).ok();
        (tenant, WorkspaceId::from_stored(id))
    };
    let (with_sums, of_sums) = of_ended_calls();
    let (without_group, of_no_group) = of_ended_calls();
    let (_, neighbour) = of_ended_calls();
    let select = "SELECT id AS text FROM calls WHERE workspace_id = ?1";
    let calls = |id: &WorkspaceId| texts(&ask(cluster.shards.at(0), select, &[id])).len();
    assert_eq!([&of_sums, &of_no_group, &neighbour].map(calls), [1; 3]);
    // What no rule lets in: less than this is no whole number of 64 bits.
    with_sums.write(vec![
        sql!("UPDATE calls SET duration_ms = 60000 WHERE workspace_id = :id", id = &of_sums),
        sql!(
            "UPDATE call_rollups SET duration_ms = -9223372036854775807 WHERE workspace_id = :id",
            id = &of_sums
        ),
    ]);
    // What a file may lack: the group for any assistant.
    without_group.write(vec![
        sql!(
            "DELETE FROM call_rollups WHERE workspace_id = :id
             AND group_id IN (SELECT id FROM call_groups WHERE assistant_id = '')",
            id = &of_no_group
        ),
        sql!("DELETE FROM call_groups WHERE workspace_id = :id AND assistant_id = ''", id = &of_no_group),
    ]);
    let sandbox = cluster.sandbox();
    sandbox.advance(3 * DAY_MS);
    let failed = (0..5).filter(|_| block_on(sandbox.services().sweep()).is_err()).count();
    assert!(failed > 0, "the log has it");
    assert_eq!([&of_sums, &of_no_group, &neighbour].map(calls), [1, 0, 0]);
}

/// Whoever removes the blobs of large recordings leaves time for others.
#[test]
fn one_round_removes_a_bounded_number_of_segments() {
    let cluster = Cluster::new(1);
    let (tenant, id) = cluster.workspace(0);
    let attempt = |n: usize| {
        sql!(
            "INSERT INTO recordings (id, workspace_id, call_id, state, due_at, size_bytes, sha256, duration_ms, created_at, segments)
             VALUES (:recording, :id, :call, 'abandoned', 0, 0, '', 0, 0, 10000)",
            recording = format!("rec_0000000000000000000000000{n}"),
            id = &id,
            call = "call_01kas3v8hq4x7m2n5p6r9t0w1z"
        )
    };
    tenant.write((0..3).map(attempt).collect());
    let select = "SELECT id AS text FROM recordings WHERE workspace_id = ?1";
    let left = || texts(&ask(cluster.shards.at(0), select, &[&id])).len();
    let rounds = [(); 3].map(|()| {
        assert!(block_on(cluster.sandbox().services().sweep()).unwrap().more);
        left()
    });
    assert_eq!(rounds, [2, 1, 0]);
}

/// What was to be removed at the source is not here: it takes no turn of the sweep from others.
#[test]
fn nothing_is_due_for_removal_in_a_workspace_that_has_arrived() {
    let from = Cluster::new(1);
    let (_, id, services) = source(&from);
    let mut file = File::of(&services, &id);
    let table = Table::named("recordings").unwrap();
    let place = |column: &str| table.carried().position(|one| one.name == column).unwrap();
    let nth = file.parts.iter().position(|part| has_rows(part, "recordings")).unwrap();
    let next = file.parts[nth].head.next.clone();
    let mut pages = file.parts[nth].pages().unwrap();
    let at = pages.iter().position(|page| page.table == "recordings").unwrap();
    // A part of its own: there is room for two more rows.
    let others = pages.split_off(at + 1);
    let page = &mut pages[at];
    for (n, state) in [(2, "deleted"), (1, "abandoned")] {
        let mut row = page.rows[0].clone();
        for (column, value) in [
            ("id", text(&format!("rec_0000000000000000000000000{n}"))),
            ("call_id", text(&format!("call_0000000000000000000000000{n}"))),
            ("state", text(state)),
            ("due_at", Value::Number(0.0)),
            ("segments", Value::Number(10_000.0)),
        ] {
            row[place(column)] = value;
        }
        page.rows.insert(0, row);
    }
    file.parts[nth] = Part::of_pages(&pages, next.clone());
    file.parts.insert(nth + 1, Part::of_pages(&others, next));
    file.parts.pop();
    let file = file.with_end();
    let to = Target::new();
    to.take(&file, &services);
    let all = rows(&to.cluster.shards, &id).remove("recordings").unwrap();
    assert!(all.iter().all(|row| row[place("due_at")] == Value::Null), "{all:?}");
    let of = |state: &str| all.iter().filter(|row| row[place("state")] == text(state)).count();
    assert_eq!((of("deleted"), of("abandoned")), (1, 0));
}

/// Whoever has a key is told where the workspace is, whatever file with its id somebody has made up.
#[test]
fn the_keys_of_a_workspace_that_moved_away_stay_until_they_come_back() {
    let from = Cluster::new(1);
    let (tenant, id, services) = source(&from);
    let file = File::of(&services, &id);
    let to = Target::new();
    to.take(&file, &services);
    while let Erasing::Rows(_) = block_on(erase(&services, &id)).unwrap().unwrap() {}
    tenant.get("/assistants").refused("workspace_moved");

    let home = Target { cluster: from, neighbour: tenant.clone(), services };
    let mut crafted = file;
    let table = Table::named("api_keys").unwrap();
    let place = |column: &str| table.carried().position(|one| one.name == column).unwrap();
    crafted.head.key_hashes.clear();
    for part in crafted.parts.iter_mut().filter(|part| has_rows(part, "api_keys")) {
        let mut pages = part.pages().unwrap();
        for row in pages.iter_mut().filter(|page| page.table == "api_keys").flat_map(|page| &mut page.rows) {
            let n = crafted.head.key_hashes.len();
            let hash = sha256_hex(format!("{n}").as_bytes());
            row[place("id")] = text(&format!("key_{n:026}"));
            row[place("hash")] = text(&hash);
            row[place("revoked_at")] = Value::Null;
            crafted.head.key_hashes.push(hash);
        }
        *part = Part::of_pages(&pages, part.head.next.clone());
    }
    crafted.head.key_hashes.sort();
    crafted.parts.pop();
    let crafted = crafted.with_end();
    home.begin(&crafted.head).unwrap();
    for (n, part) in (1..).zip(crafted.contents()) {
        home.receive(&id, n, part).unwrap();
    }
    tenant.get("/assistants").refused("workspace_moving");
    assert_eq!(reason(home.receive(&id, crafted.parts.len(), crafted.parts.last().unwrap())), "wrong_part");
    home.cancel(&id).unwrap();
    tenant.get("/assistants").refused("workspace_moved");
}
