//! The file with a workspace: written part by part, continued after any interruption, and read as a whole before it is sent.
//!
//! Its form is in `sidetone_engine::storage::moves::part`.
mod reader;
#[cfg(test)]
mod tests;
mod totals;
mod writer;

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

use bytes::Bytes;
use sidetone_engine::base::ids::Id as _;
use sidetone_engine::base::limits::MOVE_PART_HEAD_BYTES_MAX;
use sidetone_engine::storage::moves::part::{FORM, Head, Part, PartHead, WrongPart};

pub use self::reader::Reader;
pub use self::totals::Totals;
pub use self::writer::{Begun, Place, Resumed, Writer};

use super::Stop;

/// A head has the hashes of all keys.
const HEAD_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How much is read at once.
const BUFFER_BYTES: usize = 256 * 1024;

/// The head of a file, whatever comes after it.
pub fn head_of(path: &Path) -> Result<Head, Stop> {
    let file = File::open(path).map_err(|error| Stop::of_file(path, &error))?;
    let opening = opening(&mut BufReader::new(file)).map_err(|error| Stop::of_file(path, &error))?;
    opening.map(|(head, _)| head).map_err(|what| not_a_file(path, &what))
}

/// Makes sure that a new file can have this path. What the system says of one that cannot does not name the folder.
pub(super) fn check_target(path: &Path) -> Result<(), Stop> {
    if path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(Stop::of_file(path, &io::ErrorKind::IsADirectory.into()));
    }
    // That of a name alone is empty.
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    let shown = folder.display();
    match fs::metadata(folder) {
        Ok(found) if !found.is_dir() => {
            Err(Stop::failed(format!("{shown} is no folder; choose another one")))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Stop::failed(format!(
            "the folder {shown} does not exist; make it first, or choose another one"
        ))),
        // Whatever else is wrong with it shows when the file is made.
        _ => Ok(()),
    }
}

/// A head whose ids are ones of ours: they stand in paths of requests, and its name in lines of ours.
pub(super) fn checked(head: Head) -> Result<Head, WrongPart> {
    match head.workspace_id.to_bytes() {
        Some(_) if head.is_fit() => Ok(head),
        Some(_) => Err(WrongPart("its head has what cannot be shown".to_owned())),
        None => Err(WrongPart("its head names no workspace".to_owned())),
    }
}

fn not_a_file(path: &Path, WrongPart(what): &WrongPart) -> Stop {
    Stop::failed(format!("{} is no file that `sidetone export` has made: {what}", path.display()))
}

/// Reads the beginning of a file: its head, and how many bytes that is.
fn opening(from: &mut impl BufRead) -> io::Result<Result<(Head, u64), WrongPart>> {
    let wrong = |what: &str| Ok(Err(WrongPart(what.to_owned())));
    let Some(form) = line(from, FORM.len() + 1)? else { return wrong("its first line is another one") };
    if form != FORM {
        return wrong(match form.starts_with("SIDETONE MOVE ") {
            true => "it has another form; use the version of sidetone that wrote it",
            false => "its first line is another one",
        });
    }
    let Some(head) = line(from, HEAD_BYTES_MAX)? else { return wrong("it has no head") };
    let bytes = form.len() + head.len() + 2;
    Ok(Head::from_line(&head).and_then(checked).map(|head| (head, bytes as u64)))
}

/// What comes next in a file after its head.
enum Next {
    /// A part, and how many bytes it has in the file.
    Part(Part, u64),
    /// The file ends there, between two parts.
    Nothing,
    /// Something that was cut off or damaged.
    Broken(String),
}

/// Reads what comes next.
fn next(from: &mut impl BufRead) -> io::Result<Next> {
    if from.fill_buf()?.is_empty() {
        return Ok(Next::Nothing);
    }
    let Some(line) = line(from, MOVE_PART_HEAD_BYTES_MAX + 1)? else {
        return Ok(Next::Broken("its line is cut off".to_owned()));
    };
    let head = match PartHead::from_line(&line) {
        Ok(head) => head,
        Err(WrongPart(what)) => return Ok(Next::Broken(what)),
    };
    let mut bytes = Vec::new();
    let wanted = head.bytes + 1;
    from.by_ref().take(wanted).read_to_end(&mut bytes)?;
    if bytes.len() as u64 != wanted || bytes.pop() != Some(b'\n') {
        return Ok(Next::Broken("it is cut off".to_owned()));
    }
    Ok(match Part::of(head, Bytes::from(bytes)) {
        Ok(part) => Next::Part(part, line.len() as u64 + 1 + wanted),
        Err(WrongPart(what)) => Next::Broken(what),
    })
}

/// Reads a line of at most so many bytes, which is returned without its end; `None`: it has none, or is no UTF-8.
fn line(from: &mut impl BufRead, bytes_max: usize) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    from.by_ref().take(bytes_max as u64).read_until(b'\n', &mut line)?;
    let is_whole = line.pop() == Some(b'\n');
    Ok(String::from_utf8(line).ok().filter(|_| is_whole))
}
