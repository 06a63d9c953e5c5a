//! The file of a move, as both hosts and the command line write and read it.
//!
//! It begins with [`FORM`] and the line of its [`Head`], and goes on with parts: a line of JSON ([`PartHead`]), as many bytes as
//! that says, and a line feed. So a file that was cut off has whole parts, and more are written after them. The last part is
//! a [`Tally`] of all others.
use std::collections::BTreeMap;
use std::str::SplitTerminator;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::base::hash::sha256_hex;
use crate::base::ids::{CallId, RecordingId, ToolId, WebhookId, WorkspaceId};
use crate::base::limits::{
    MODEL_CHARS_MAX, MOVE_PART_BYTES_MAX, MOVE_PART_HEAD_BYTES_MAX, MOVE_PART_SECRETS_MAX, NAME_CHARS_MAX,
};
use crate::base::text::is_line;
use crate::storage::moving::{Page, ROWS_MAX, Sum, at_most};
use crate::storage::signing::SecretOwner;

/// The first line of the file: in which form the others are.
pub const FORM: &str = "SIDETONE MOVE 1";

/// What a file is of: its second line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// `exp_…`
    pub export_id: String,
    /// The workspace, which keeps its id.
    pub workspace_id: WorkspaceId,
    /// Its name.
    pub name: String,
    /// What its rows are of, as [`SCHEMA`](crate::storage::moving::SCHEMA) says.
    pub schema: String,
    /// When it was frozen: RFC 3339.
    pub frozen_at: String,
    /// The host that it comes from.
    pub base_url: String,
    /// The SHA-256 of the key with which its secrets are sealed; a [`Code`](super::code::Code) has the key.
    pub key_sha256: String,
    /// Its telephone numbers.
    pub numbers: Vec<String>,
    /// The SHA-256 of each of its API keys that is not revoked.
    pub key_hashes: Vec<String>,
    /// What its assistants use.
    pub needs: Needs,
}

/// What the operator of the next host has to have configured, so that calls go on as before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Needs {
    /// Carriers of numbers.
    pub carriers: Vec<String>,
    /// Models.
    pub models: Vec<String>,
    /// Voices.
    pub voices: Vec<String>,
    /// Transcribers.
    pub transcribers: Vec<String>,
}

impl Head {
    /// The line, without its line feed.
    pub fn to_line(&self) -> String {
        as_json(self)
    }

    /// Reads the line.
    pub fn from_line(line: &str) -> Result<Self, WrongPart> {
        from_json(line, "the head of the file")
    }

    /// Whether what is told of it to the operator can be shown: a terminal would obey other texts, or take them for the command's.
    pub fn is_fit(&self) -> bool {
        let Needs { carriers, models, voices, transcribers } = &self.needs;
        let mut others = [&self.numbers, carriers, models, voices, transcribers].into_iter().flatten();
        is_line(&self.name, NAME_CHARS_MAX) && others.all(|text| is_line(text, MODEL_CHARS_MAX))
    }
}

/// Why bytes are no part, in words that have no value of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongPart(pub String);

impl WrongPart {
    fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

/// A part of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its line.
    pub head: PartHead,
    /// What follows the line.
    pub bytes: Bytes,
}

/// The line that a part begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartHead {
    /// What it has.
    pub kind: Kind,
    /// What the source is asked for the next part with; `None`: there is none.
    pub next: Option<String>,
    /// How many bytes follow.
    pub bytes: u64,
    /// Their SHA-256.
    pub sha256: String,
}

/// What a part has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Pages of rows, each a line ([`Page::to_line`]). There may be none: only rows of others were looked at.
    Rows(Vec<PageHead>),
    /// Signing secrets, each owner's a line ([`CarriedSecrets`]).
    Secrets,
    /// Blobs, one after the other.
    Blobs(Vec<BlobHead>),
    /// The end of the file; no bytes.
    End(Tally),
}

/// A page in a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageHead {
    /// Its table.
    pub table: String,
    /// How many rows it has.
    pub rows: usize,
}

/// A blob in a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlobHead {
    /// The call that it is of.
    pub call: CallId,
    /// Which segment of a recording it is; `None`: the call's archived transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<Segment>,
    /// Its bytes; `None`: the source has lost it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Found>,
}

/// A segment of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// The recording.
    pub recording: RecordingId,
    /// Which one, from 0.
    pub n: u64,
}

/// The bytes of a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Found {
    /// How many.
    pub bytes: u64,
    /// Their SHA-256.
    pub sha256: String,
}

/// Secrets of one owner: that of the current version, and of the one before.
pub(super) const SEALED_MAX: usize = 2;

/// The secrets of one owner that sign at present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CarriedSecrets {
    /// Whose.
    pub owner: Owner,
    /// The version of the first.
    pub version: i64,
    /// Sealed with the file's key, each for its [`label`](crate::storage::signing::label); the second is of the version before.
    #[serde(deserialize_with = "at_most::<SEALED_MAX, _, _>")]
    pub sealed: Vec<String>,
}

/// The owner of secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// A tool.
    Tool(ToolId),
    /// A webhook.
    Webhook(WebhookId),
}

impl Owner {
    /// The same, for signing.
    pub fn as_secret_owner(&self) -> SecretOwner<'_> {
        match self {
            Self::Tool(id) => SecretOwner::Tool(id),
            Self::Webhook(id) => SecretOwner::Webhook(id),
        }
    }
}

impl PartHead {
    /// The line, without its line feed.
    pub fn to_line(&self) -> String {
        as_json(self)
    }

    /// Reads the line.
    pub fn from_line(line: &str) -> Result<Self, WrongPart> {
        let head: Self = from_json(line, "the line that a part begins with")?;
        if head.bytes > MOVE_PART_BYTES_MAX as u64 {
            return Err(WrongPart::new(format!("a part has more than {MOVE_PART_BYTES_MAX} bytes")));
        }
        Ok(head)
    }
}

impl Part {
    /// A part with these bytes.
    pub fn new(kind: Kind, next: Option<String>, bytes: Bytes) -> Self {
        let head = PartHead { kind, next, bytes: bytes.len() as u64, sha256: sha256_hex(&bytes) };
        Self { head, bytes }
    }

    /// A part with these pages.
    pub fn of_pages(pages: &[Page], next: Option<String>) -> Self {
        let heads = pages.iter().map(|page| PageHead { table: page.table.clone(), rows: page.rows.len() });
        Self::new(Kind::Rows(heads.collect()), next, lines(pages.iter().map(Page::to_line)))
    }

    /// A part with these secrets.
    pub fn of_secrets(secrets: &[CarriedSecrets], next: Option<String>) -> Self {
        Self::new(Kind::Secrets, next, lines(secrets.iter().map(as_json)))
    }

    /// The last part.
    pub fn of_end(tally: Tally) -> Self {
        Self::new(Kind::End(tally), None, Bytes::new())
    }

    /// The part as it is sent, and stands in the file.
    pub fn to_bytes(&self) -> Bytes {
        let line = self.head.to_line();
        [line.as_bytes(), b"\n", &self.bytes[..], b"\n"].concat().into()
    }

    /// Reads a whole part: its length and SHA-256 are as its line says.
    pub fn read(bytes: &Bytes) -> Result<Self, WrongPart> {
        let looked_at = &bytes[..bytes.len().min(MOVE_PART_HEAD_BYTES_MAX + 1)];
        let end = looked_at.iter().position(|byte| *byte == b'\n');
        let end = end.ok_or_else(|| WrongPart::new("it does not begin with the line of a part"))?;
        let line = std::str::from_utf8(&bytes[..end]);
        let head = PartHead::from_line(line.map_err(|_| WrongPart::new("its line is not UTF-8"))?)?;
        let rest = bytes.slice(end + 1..);
        match rest.strip_suffix(b"\n") {
            Some(content) => Self::of(head, rest.slice(..content.len())),
            None => Err(WrongPart::new("it does not end with a line feed")),
        }
    }

    /// A part whose line was read before its bytes.
    pub fn of(head: PartHead, bytes: Bytes) -> Result<Self, WrongPart> {
        if head.bytes != bytes.len() as u64 {
            return Err(WrongPart::new("it has not as many bytes as its line says"));
        }
        if head.sha256 != sha256_hex(&bytes) {
            return Err(WrongPart::new("its bytes are not those that its line says"));
        }
        Ok(Self { head, bytes })
    }

    /// The pages of a part of rows; none of another part.
    pub fn pages(&self) -> Result<Vec<Page>, WrongPart> {
        let Kind::Rows(heads) = &self.head.kind else { return Ok(Vec::new()) };
        // Before any of them is read: rows take more memory than their lines.
        if heads.iter().fold(0, |rows: usize, head| rows.saturating_add(head.rows)) > ROWS_MAX {
            return Err(WrongPart(format!("it has more than {ROWS_MAX} rows")));
        }
        let mut lines = self.lines()?;
        let mut pages = Vec::with_capacity(heads.len());
        for (n, head) in (1..).zip(heads) {
            let Some(line) = lines.next() else { break };
            let page = Page::from_line(line).map_err(|what| WrongPart(format!("page {n}: {what}")))?;
            if page.table != head.table || page.rows.len() != head.rows {
                return Err(WrongPart(format!("page {n} is not as the line of the part says")));
            }
            pages.push(page);
        }
        match pages.len() == heads.len() && lines.next().is_none() {
            true => Ok(pages),
            false => Err(WrongPart::new("it has not as many pages as its line says")),
        }
    }

    /// The secrets of a part of secrets; none of another part.
    pub fn secrets(&self) -> Result<Vec<CarriedSecrets>, WrongPart> {
        if self.head.kind != Kind::Secrets {
            return Ok(Vec::new());
        }
        let mut lines = self.lines()?;
        let some = lines.by_ref().take(MOVE_PART_SECRETS_MAX as usize);
        let secrets = some
            .map(|line| from_json(line, "a line of secrets"))
            .collect::<Result<Vec<CarriedSecrets>, _>>()?;
        match lines.next() {
            None => Ok(secrets),
            Some(_) => {
                let what = "tools and webhooks";
                Err(WrongPart(format!("it has secrets of more than {MOVE_PART_SECRETS_MAX} {what}")))
            }
        }
    }

    /// The blobs of a part of blobs that are in it, each as its line says; none of another part.
    pub fn blobs(&self) -> Result<Vec<(&BlobHead, Bytes)>, WrongPart> {
        let Kind::Blobs(heads) = &self.head.kind else { return Ok(Vec::new()) };
        let mut rest = self.bytes.clone();
        let mut blobs = Vec::with_capacity(heads.len());
        for (n, head) in (1..).zip(heads) {
            let Some(found) = &head.found else { continue };
            let bytes = usize::try_from(found.bytes).ok().filter(|bytes| *bytes <= rest.len());
            let blob = rest.split_to(bytes.ok_or_else(|| WrongPart(format!("blob {n} is cut off")))?);
            if sha256_hex(&blob) != found.sha256 {
                return Err(WrongPart(format!("blob {n} is not the one that the line of the part says")));
            }
            blobs.push((head, blob));
        }
        match rest.is_empty() {
            true => Ok(blobs),
            false => Err(WrongPart::new("it has more bytes than its blobs have")),
        }
    }

    /// The lines of a part of rows or secrets.
    fn lines(&self) -> Result<SplitTerminator<'_, char>, WrongPart> {
        let text = std::str::from_utf8(&self.bytes).map_err(|_| WrongPart::new("its lines are not UTF-8"))?;
        match text.is_empty() || text.ends_with('\n') {
            true => Ok(text.split_terminator('\n')),
            false => Err(WrongPart::new("its last line has no end")),
        }
    }
}

/// The chain of parts: what was added, in which order, and to which head. A part that is missing, there twice, changed, or of
/// another export breaks it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Chain(String);

impl Chain {
    /// Before the first part.
    pub fn of(head: &Head) -> Self {
        Self(sha256_hex(head.to_line().as_bytes()))
    }

    /// Adds the next part.
    pub fn add(&mut self, part: &PartHead) {
        self.0 = sha256_hex(format!("{} {}", self.0, part.to_line()).as_bytes());
    }

    /// The SHA-256 of all of it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What the parts so far have had. Whoever writes the file ends it with this; whoever receives it counts, too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    /// How many parts.
    pub parts: u64,
    /// Their chain.
    pub chain: Chain,
    /// The rows of each table that has any.
    pub sums: BTreeMap<String, Sum>,
    /// Signing secrets.
    pub secrets: u64,
    /// Blobs.
    pub blobs: u64,
    /// Blobs that the source has lost.
    pub missing: u64,
}

impl Tally {
    /// Before the first part.
    pub fn of(head: &Head) -> Self {
        Self { parts: 0, chain: Chain::of(head), sums: BTreeMap::new(), secrets: 0, blobs: 0, missing: 0 }
    }

    /// Adds the next part.
    pub fn add(&mut self, part: &Part) -> Result<(), WrongPart> {
        self.add_with(part, &part.pages()?)
    }

    /// The same of a part whose pages were read.
    pub(super) fn add_with(&mut self, part: &Part, pages: &[Page]) -> Result<(), WrongPart> {
        for page in pages {
            let sum = self.sums.entry(page.table.clone()).or_insert_with_key(|table| Sum::of(table));
            page.rows.iter().for_each(|row| sum.add(row));
        }
        self.secrets += part.secrets()?.iter().map(|one| one.sealed.len() as u64).sum::<u64>();
        if let Kind::Blobs(heads) = &part.head.kind {
            let found = heads.iter().filter(|head| head.found.is_some()).count() as u64;
            self.blobs += found;
            self.missing += heads.len() as u64 - found;
        }
        self.parts += 1;
        self.chain.add(&part.head);
        Ok(())
    }
}

fn lines(lines: impl Iterator<Item = String>) -> Bytes {
    let mut all = String::new();
    for line in lines {
        all.push_str(&line);
        all.push('\n');
    }
    all.into()
}

fn as_json(value: &impl Serialize) -> String {
    // Texts, whole numbers, and lists and maps of them can always be written.
    serde_json::to_string(value).unwrap_or_default()
}

fn from_json<'a, T: Deserialize<'a>>(line: &'a str, what: &str) -> Result<T, WrongPart> {
    serde_json::from_str(line)
        .map_err(|error| WrongPart(format!("column {} of {what} is not as it is written", error.column())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::Id as _;
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
        let chains =
            [chain(&[]), chain(&[one]), chain(&[one, two]), chain(&[two, one]), chain(&[one, one, two])];
        for (n, chain) in chains.iter().enumerate() {
            assert!(!chains[n + 1..].contains(chain), "{n}");
        }
        let other = Head { export_id: "exp_2".to_owned(), ..head() };
        assert_ne!(Chain::of(&other), Chain::of(&head()));
    }
}
