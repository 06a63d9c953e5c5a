//! Writes a file. It is `NAME.part` until it is complete, so that nobody takes a beginning for the whole.
use std::fs::{File, TryLockError};
use std::io::{self, BufReader, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use sidetone_engine::storage::moves::part::{FORM, Head, Part, WrongPart};

use super::{BUFFER_BYTES, Next, Stop, Totals, next, opening};
use crate::data;

/// A file that waits for its head. No other command writes it.
#[derive(Debug)]
pub struct Begun {
    file: File,
    part: PathBuf,
    target: PathBuf,
}

/// What a file had already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resumed {
    /// Nothing.
    New,
    /// So many whole parts of this export. What was behind them is cut off.
    After(u64),
    /// Something else, which is gone.
    Replaced,
}

/// Where an export goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// At its first part.
    Start,
    /// After this place.
    After(String),
    /// Nowhere: every part is there.
    End,
}

impl Place {
    fn after(part: &Part) -> Self {
        part.head.next.clone().map_or(Self::End, Self::After)
    }
}

impl Begun {
    /// Opens what will be `target`.
    pub fn at(target: &Path) -> Result<Self, Stop> {
        let part = target.with_added_extension("part");
        let opened = data::private().create(true).truncate(false).read(true).write(true).open(&part);
        let file = opened.map_err(|error| Stop::of_file(&part, &error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Stop::Waits(format!("another command is writing {}", part.display())));
            }
            Err(TryLockError::Error(error)) => return Err(Stop::of_file(&part, &error)),
        }
        let begun = Self { file, part, target: target.to_owned() };
        // Also if another command has completed it just now: then this is the same file under its earlier name.
        match target.try_exists() {
            Ok(false) => Ok(begun),
            Ok(true) => {
                begun.remove_if_empty();
                Err(Stop::failed(format!("{} exists; choose another file", target.display())))
            }
            Err(error) => Err(Stop::of_file(target, &error)),
        }
    }

    /// Leaves nothing behind, unless there was something before.
    pub fn remove_if_empty(self) {
        if self.file.metadata().is_ok_and(|file| file.len() == 0) {
            // An empty file does no harm.
            let _ = std::fs::remove_file(&self.part);
        }
    }

    /// Goes on after the last whole part of this export; what is damaged or cut off is fetched again.
    pub fn resume(self, head: &Head) -> Result<(Writer, Resumed), Stop> {
        let part = self.part.clone();
        self.try_resume(head).map_err(|error| Stop::of_file(&part, &error))
    }

    fn try_resume(mut self, head: &Head) -> io::Result<(Writer, Resumed)> {
        let found = scan(&mut self.file, head)?;
        let Self { mut file, part, target } = self;
        let had_something = file.metadata()?.len() > 0;
        let Some(Found { totals, place, bytes }) = found else {
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(format!("{FORM}\n{}\n", head.to_line()).as_bytes())?;
            let writer = Writer { file, part, target, totals: Totals::of(head), place: Place::Start };
            return Ok((writer, if had_something { Resumed::Replaced } else { Resumed::New }));
        };
        file.set_len(bytes)?;
        file.seek(SeekFrom::Start(bytes))?;
        let parts = totals.tally.parts;
        Ok((Writer { file, part, target, totals, place }, Resumed::After(parts)))
    }
}

/// The whole parts of a file.
struct Found {
    totals: Totals,
    place: Place,
    bytes: u64,
}

/// Reads a file as far as it is sound, without its end; `None`: it is not of this export.
fn scan(file: &mut File, head: &Head) -> io::Result<Option<Found>> {
    file.seek(SeekFrom::Start(0))?;
    let mut from = BufReader::with_capacity(BUFFER_BYTES, file);
    // The head that it began with counts: a host that has another address by now is the same.
    let (head, bytes) = match opening(&mut from)? {
        Ok((found, bytes)) if found.export_id == head.export_id => (found, bytes),
        _ => return Ok(None),
    };
    let mut found = Found { totals: Totals::of(&head), place: Place::Start, bytes };
    while found.place != Place::End {
        let Next::Part(part, bytes) = next(&mut from)? else { break };
        if found.totals.add(&part).is_err() {
            break;
        }
        found.place = Place::after(&part);
        found.bytes += bytes;
    }
    Ok(Some(found))
}

/// A file that grows by parts.
#[derive(Debug)]
pub struct Writer {
    file: File,
    part: PathBuf,
    target: PathBuf,
    totals: Totals,
    place: Place,
}

impl Writer {
    /// Where the export goes on.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// What the file has so far.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Adds the next part, as the source gave it.
    pub fn add(&mut self, bytes: &Bytes) -> Result<(), Stop> {
        self.check(bytes).map_err(|WrongPart(what)| {
            Stop::failed(format!("the answer of the service is no part: {what}"))
        })?;
        // The place is that of the file only when the part is in it, but no command goes on after a failure.
        self.file.write_all(bytes).map_err(|error| Stop::of_file(&self.part, &error))
    }

    fn check(&mut self, bytes: &Bytes) -> Result<(), WrongPart> {
        let part = Part::read(bytes)?;
        let place = Place::after(&part);
        // The source would give the same part for ever.
        if place == self.place {
            return Err(WrongPart("it leads nowhere".to_owned()));
        }
        self.totals.add(&part)?;
        self.place = place;
        Ok(())
    }

    /// Ends the file, which has its name then, durably.
    pub fn finish(mut self) -> Result<Totals, Stop> {
        if self.place != Place::End {
            return Err(Stop::failed(format!("{} is not complete", self.part.display())));
        }
        let end = Part::of_end(self.totals.tally.clone()).to_bytes();
        self.file.write_all(&end).map_err(|error| Stop::of_file(&self.part, &error))?;
        data::publish(self.file, &self.part, &self.target)
            .map_err(|error| Stop::of_file(&self.target, &error))?;
        Ok(self.totals)
    }
}
