//! Reads a file that is complete.
use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use sidetone_engine::storage::moves::part::{Chain, Head, Kind, WrongPart};

use super::{BUFFER_BYTES, Next, Stop, Totals, next, not_a_file, opening};

/// A file of which every digest was compared.
#[derive(Debug)]
pub struct Reader {
    file: File,
    path: PathBuf,
    head: Head,
    /// The last one is the end.
    parts: Vec<Placed>,
    totals: Totals,
}

/// A part in the file.
#[derive(Debug)]
struct Placed {
    /// Where it begins.
    place: u64,
    bytes: u64,
    /// The chain of the parts before it.
    chain_before: Chain,
}

impl Reader {
    /// Opens a file and reads all of it: a host is asked for nothing unless it can have everything.
    pub fn open(path: &Path) -> Result<Self, Stop> {
        let of_file = |error: io::Error| Stop::of_file(path, &error);
        let file = File::open(path).map_err(of_file)?;
        let mut from = BufReader::with_capacity(BUFFER_BYTES, &file);
        let (head, mut place) =
            opening(&mut from).map_err(of_file)?.map_err(|what| not_a_file(path, &what))?;
        let mut totals = Totals::of(&head);
        let mut parts = Vec::new();
        let mut was_last = false;
        loop {
            let n = parts.len() + 1;
            let (part, bytes) = match next(&mut from).map_err(of_file)? {
                Next::Part(part, bytes) => (part, bytes),
                Next::Nothing => return Err(cut_off(path, parts.len())),
                Next::Broken(what) => return Err(damaged(path, &format!("part {n}: {what}"))),
            };
            parts.push(Placed { place, bytes, chain_before: totals.tally.chain.clone() });
            place += bytes;
            if let Kind::End(tally) = &part.head.kind {
                if !was_last || *tally != totals.tally {
                    return Err(damaged(path, "its end says that it has something else"));
                }
                break;
            }
            if was_last {
                return Err(damaged(path, &format!("part {n} comes after the last one")));
            }
            was_last = part.head.next.is_none();
            let added = totals.add(&part);
            added.map_err(|WrongPart(what)| damaged(path, &format!("part {n}: {what}")))?;
        }
        if !matches!(next(&mut from).map_err(of_file)?, Next::Nothing) {
            return Err(damaged(path, "something comes after its end"));
        }
        drop(from);
        Ok(Self { file, path: path.to_owned(), head, parts, totals })
    }

    /// Its head.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// What it has.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// How many parts there are to send, with the end.
    pub fn parts(&self) -> u64 {
        self.parts.len() as u64
    }

    /// A part as it is sent, from 1; `None`: there is no such part.
    pub fn part(&self, n: u64) -> Result<Option<Bytes>, Stop> {
        let at = n.checked_sub(1).and_then(|at| self.parts.get(usize::try_from(at).ok()?));
        let Some(Placed { place, bytes, .. }) = at else { return Ok(None) };
        self.read(*place, *bytes).map(Some).map_err(|error| Stop::of_file(&self.path, &error))
    }

    /// The chain of the parts before this one, from 1; behind the end, which is not in it, that of all others.
    pub fn chain_before(&self, n: u64) -> Option<&Chain> {
        let at = usize::try_from(n.checked_sub(1)?).ok()?;
        self.parts.get(at).or_else(|| self.parts.last()).map(|part| &part.chain_before)
    }

    fn read(&self, place: u64, bytes: u64) -> io::Result<Bytes> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(place))?;
        let mut part = vec![0; usize::try_from(bytes).map_err(io::Error::other)?];
        file.read_exact(&mut part)?;
        Ok(part.into())
    }
}

/// Whether an export still writes this file.
fn is_begun(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "part")
}

fn begun(path: &Path) -> Stop {
    Stop::failed(format!(
        "{} is not complete. Run the same `sidetone export` again: it goes on after its last whole part",
        path.display()
    ))
}

fn damaged(path: &Path, what: &str) -> Stop {
    if is_begun(path) {
        return begun(path);
    }
    Stop::failed(format!(
        "{} is damaged ({what}). Copy it again, or export again into another file",
        path.display()
    ))
}

fn cut_off(path: &Path, parts: usize) -> Stop {
    if is_begun(path) {
        return begun(path);
    }
    Stop::failed(format!(
        "{} is not complete: it ends after part {parts}. Run `sidetone export` again until it is done, or copy it again",
        path.display()
    ))
}
