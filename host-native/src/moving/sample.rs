//! A frozen workspace, as its source gives it.
use bytes::Bytes;
use sidetone_engine::base::hash::sha256_hex;
use sidetone_engine::base::ids::{CallId, Id as _, ToolId, WorkspaceId};
use sidetone_engine::ports::statement::Value;
use sidetone_engine::storage::moves::part::{
    BlobHead, CarriedSecrets, Found, Head, Kind, Needs, Owner, Part,
};
use sidetone_engine::storage::workspace_rows::Page;

/// The workspace.
pub(super) fn workspace() -> WorkspaceId {
    WorkspaceId::from_bytes([7; 16])
}

/// The head of this export.
pub(super) fn head(export_id: &str) -> Head {
    Head {
        export_id: export_id.to_owned(),
        workspace_id: workspace(),
        name: "Acme".to_owned(),
        schema: "0048_moves.sql 0".to_owned(),
        frozen_at: "2026-11-28T09:00:00.000Z".to_owned(),
        base_url: "https://box.example.com".to_owned(),
        key_sha256: sha256_hex(b"key"),
        numbers: vec!["+14155550100".to_owned()],
        key_hashes: Vec::new(),
        needs: Needs::default(),
    }
}

/// Its parts: rows, none of a look at others, secrets, and a blob beside one that is lost.
pub(super) fn parts() -> Vec<Part> {
    let row =
        |text: &str, number: f64| vec![Value::Text(text.to_owned()), Value::Number(number), Value::Null];
    let page = |table: &str, rows| Page { table: table.to_owned(), rows, next: None };
    let call = |n: u8| CallId::from_bytes([n; 16]);
    let bytes = b"{\"a\":\n\"}\n\"}";
    let found = Found { bytes: bytes.len() as u64, sha256: sha256_hex(bytes) };
    let blobs = vec![
        BlobHead { call: call(1), segment: None, found: Some(found) },
        BlobHead { call: call(2), segment: None, found: None },
    ];
    let secrets = CarriedSecrets {
        owner: Owner::Tool(ToolId::from_bytes([3; 16])),
        version: 2,
        sealed: vec!["new".to_owned(), "old".to_owned()],
    };
    let after = |place: &str| Some(place.to_owned());
    let pages =
        [page("workspaces", vec![row("Acme", 1.0)]), page("calls", vec![row("a\nb", 2.0), row("ü\"", 3.0)])];
    vec![
        Part::of_pages(&pages, after("a")),
        Part::of_pages(&[page("calls", vec![row("c", 4.0)])], after("b")),
        Part::of_pages(&[], after("c")),
        Part::of_secrets(&[secrets], after("d")),
        Part::new(Kind::Blobs(blobs), None, Bytes::from_static(bytes)),
    ]
}
