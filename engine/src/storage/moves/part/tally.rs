//! What the parts of a file have had, and in which order.
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Head, Kind, Part, PartHead, WrongPart};
use crate::base::hash::sha256_hex;
use crate::storage::workspace_rows::{Page, Sum};

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
    pub(in crate::storage::moves) fn add_with(
        &mut self,
        part: &Part,
        pages: &[Page],
    ) -> Result<(), WrongPart> {
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
