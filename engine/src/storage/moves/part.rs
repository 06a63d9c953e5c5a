//! The file of a move, as both hosts and the command line write and read it.
//!
//! It begins with [`FORM`] and the line of its [`Head`], and goes on with parts: a line of JSON ([`PartHead`]), as many bytes as
//! that says, and a line feed. So a file that was cut off has whole parts, and more are written after them. The last part is
//! a [`Tally`] of all others.
mod file_head;
mod secrets;
mod tally;

use std::str::SplitTerminator;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub use self::file_head::{FORM, Head, Needs};
pub use self::secrets::{CarriedSecrets, Owner, SEALED_MAX};
pub use self::tally::{Chain, Tally};
use crate::base::hash::sha256_hex;
use crate::base::ids::{CallId, RecordingId};
use crate::base::limits::{MOVE_PART_BYTES_MAX, MOVE_PART_HEAD_BYTES_MAX, MOVE_PART_SECRETS_MAX};
use crate::storage::workspace_rows::{Page, ROWS_MAX};

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
mod tests;
