//! `sidetone.lock`: which resource of a workspace a file is, and what of it was last seen there.
//!
//! It is a line of JSON for each resource, so that what was done is kept even if the process dies: new lines are appended,
//! the last one counts, and at the end the file is sorted. A workspace's id is the same under every URL of its server.
//! Fields that name other resources are hashed with ids, as files are renamed.
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use sidetone_engine::base::hash::sha256_hex;

use super::failure::Failure;
use super::kind::Kind;
use crate::folder_lock;

/// The name of the file.
pub const NAME: &str = "sidetone.lock";
/// Characters of a hash that are kept.
const HASH_CHARS: usize = 16;
/// Bytes that must have room on the disk besides what the file has: the lines of some hundred resources.
const ROOM_BYTES: usize = 256 * 1024;

/// What was last seen of a resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Its id.
    pub id: String,
    /// Its revision, where it has one.
    pub revision: Option<i64>,
    /// When it last changed, as the service says it.
    pub updated_at: String,
    /// Hashes of its fields.
    fields: BTreeMap<String, String>,
}

impl Seen {
    /// Without fields yet.
    pub fn new(id: &str, revision: Option<i64>, updated_at: &str) -> Self {
        Self { id: id.to_owned(), revision, updated_at: updated_at.to_owned(), fields: BTreeMap::new() }
    }

    /// Remembers a field: what the service had, and what the file had then, if that was written in another way.
    pub fn remember(&mut self, field: &str, server: &Value, file: Option<&Value>) {
        let (server, file) = (hash(server), file.map(hash));
        let both = match file {
            Some(file) if file != server => format!("{server}/{file}"),
            _ => server,
        };
        self.fields.insert(field.to_owned(), both);
    }

    /// Keeps what `earlier` remembers of a field, which may be nothing.
    pub fn keep(&mut self, field: &str, earlier: Option<&Self>) {
        match earlier.and_then(|earlier| earlier.fields.get(field)) {
            Some(both) => drop(self.fields.insert(field.to_owned(), both.clone())),
            None => drop(self.fields.remove(field)),
        }
    }

    /// Both sides differ and nobody decided: neither is as seen, until one is taken.
    pub fn leave_open(&mut self, field: &str) {
        self.fields.insert(field.to_owned(), "?".to_owned());
    }

    /// Whether the service still has what was seen; `None` if nothing was.
    pub fn is_as_seen(&self, field: &str, server: &Value) -> Option<bool> {
        self.fields.get(field).map(|both| both.split('/').next() == Some(hash(server).as_str()))
    }

    /// Whether the file still has what it had when the resource was last seen.
    pub fn is_as_written(&self, field: &str, file: &Value) -> bool {
        self.written(field) == Some(hash(file).as_str())
    }

    /// The hash of what the file had then.
    pub fn written(&self, field: &str) -> Option<&str> {
        self.fields.get(field).and_then(|both| both.rsplit('/').next())
    }
}

/// Keeps other commands out of a folder until the returned file is closed: two at once would lose one another's lines, and a
/// later `apply` would write over what the lost ones had seen.
pub fn hold(folder: &Path) -> Result<Option<File>, Failure> {
    folder_lock::exclusive(folder)
        .map_err(|_| Failure(format!("another command works in {}; wait for it", folder.display())))
}

/// The lines of all workspaces.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    workspace: String,
    seen: BTreeMap<(String, Kind, String), Seen>,
    log: Option<File>,
}

impl Lock {
    /// Reads the file of a folder, for a workspace. A last line that was not written to its end is left out.
    pub fn read(folder: &Path, workspace: &str) -> Result<Self, Failure> {
        let path = folder.join(NAME);
        // A link would be written through.
        if fs::symlink_metadata(&path).is_ok_and(|found| !found.is_file()) {
            let wrong =
                format!("{} is not a regular file; delete it, then run `sidetone pull`", path.display());
            return Err(Failure::new(wrong));
        }
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(Failure::new(format!("{}: {error}", path.display()))),
        };
        let mut seen = BTreeMap::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            match serde_json::from_str(line).ok().as_ref().and_then(parse) {
                Some((key, Some(value))) => drop(seen.insert(key, value)),
                Some((key, None)) => drop(seen.remove(&key)),
                None if number + 1 == text.lines().count() && !text.ends_with('\n') => {}
                None => {
                    return Err(Failure::new(format!(
                        "{}: line {} is not valid; delete it, then run `sidetone pull`",
                        path.display(),
                        number + 1
                    )));
                }
            }
        }
        Ok(Self { path, workspace: workspace.to_owned(), seen, log: None })
    }

    /// Whether anything of the workspace was seen.
    pub fn knows_workspace(&self) -> bool {
        self.seen.keys().any(|(workspace, ..)| *workspace == self.workspace)
    }

    /// The workspaces of which anything was seen.
    pub fn workspaces(&self) -> Vec<String> {
        let mut all: Vec<String> = self.seen.keys().map(|(workspace, ..)| workspace.clone()).collect();
        // They are sorted.
        all.dedup();
        all
    }

    /// What was seen of the resource of a file.
    pub fn get(&self, kind: Kind, stem: &str) -> Option<&Seen> {
        self.seen.get(&(self.workspace.clone(), kind, stem.to_owned()))
    }

    /// What was seen of a resource, also if its file had another name then.
    pub fn seen(&self, kind: Kind, stem: &str, id: &str) -> Option<&Seen> {
        let of_file = self.get(kind, stem).filter(|seen| seen.id == id);
        of_file.or_else(|| self.stems(kind).map(|(_, seen)| seen).find(|seen| seen.id == id))
    }

    /// Sets what was seen of the resource of a file, which may have had another file.
    pub fn set_seen(&mut self, kind: Kind, stem: &str, seen: Seen) -> Result<(), Failure> {
        if self.get(kind, stem).is_none_or(|earlier| earlier.id != seen.id) {
            let others = self.stems(kind).filter(|(other, earlier)| *other != stem && earlier.id == seen.id);
            for other in others.map(|(other, _)| other.to_owned()).collect::<Vec<_>>() {
                self.set(kind, &other, None)?;
            }
        }
        self.set(kind, stem, Some(seen))
    }

    /// Puts what was seen of resources under the names that their files have now, before anything else is set: one file may have
    /// taken another one's name. `files` are kinds, stems and ids.
    pub fn rename<'a>(
        &mut self,
        files: impl Iterator<Item = (Kind, &'a str, &'a str)>,
    ) -> Result<(), Failure> {
        let renamed = files.filter_map(|(kind, stem, id)| {
            let is_here = self.get(kind, stem).is_some_and(|seen| seen.id == id);
            let seen = if is_here { None } else { self.seen(kind, stem, id) };
            seen.map(|seen| (kind, stem, seen.clone()))
        });
        for (kind, stem, seen) in renamed.collect::<Vec<_>>() {
            self.set_seen(kind, stem, seen)?;
        }
        Ok(())
    }

    /// The stems of the workspace's resources of this kind.
    pub fn stems(&self, kind: Kind) -> impl Iterator<Item = (&str, &Seen)> {
        let of_kind = move |key: &&(String, Kind, String)| key.0 == self.workspace && key.1 == kind;
        self.seen.iter().filter(move |(key, _)| of_kind(key)).map(|(key, seen)| (key.2.as_str(), seen))
    }

    /// Makes sure that it can be written, before anything is written that it has to know: a later `apply` would take that for
    /// somebody else's.
    pub fn prepare(&mut self) -> Result<(), Failure> {
        let (path, bytes) = (self.path.with_file_name(format!("{NAME}.new")), self.text().len() + ROOM_BYTES);
        // First: opening the log makes the file, or cuts off what follows its last line end.
        has_room(&path, bytes).map_err(|error| unready(&path, &error))?;
        let opened = self.log().map(|_| ());
        opened.map_err(|error| unready(&self.path, &error))
    }

    /// Sets what was seen, or forgets it, and writes that at once.
    pub fn set(&mut self, kind: Kind, stem: &str, seen: Option<Seen>) -> Result<(), Failure> {
        let key = (self.workspace.clone(), kind, stem.to_owned());
        if self.seen.get(&key) == seen.as_ref() {
            return Ok(());
        }
        let line = line(&key, seen.as_ref());
        let written = self.log().and_then(|log| log.write_all(line.as_bytes()));
        written.map_err(|error| unwritten(&format!("{}: {error}", self.path.display())))?;
        match seen {
            Some(seen) => drop(self.seen.insert(key, seen)),
            None => drop(self.seen.remove(&key)),
        }
        Ok(())
    }

    /// Writes the file anew, sorted, if it changed.
    pub fn finish(&mut self) -> Result<(), Failure> {
        self.log = None;
        super::write_file(&self.path, &self.text()).map(drop).map_err(|failure| unwritten(&failure.0))
    }

    /// The whole file, sorted.
    fn text(&self) -> String {
        self.seen.iter().map(|(key, seen)| line(key, Some(seen))).collect()
    }

    /// The file, to which lines are appended.
    fn log(&mut self) -> io::Result<&mut File> {
        match &mut self.log {
            Some(log) => Ok(log),
            none => {
                let log = OpenOptions::new().create(true).append(true).open(&self.path)?;
                // Without a line that was not written to its end.
                let bytes = fs::read(&self.path)?;
                let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |place| place + 1);
                log.set_len(whole as u64)?;
                Ok(none.insert(log))
            }
        }
    }
}

fn unready(path: &Path, error: &io::Error) -> Failure {
    Failure(format!(
        "{}: {error}; nothing was changed in the workspace: {NAME} and its folder have to be \
         writable, and the disk needs room",
        path.display()
    ))
}

/// What was done is found again where both sides are still equal.
fn unwritten(problem: &str) -> Failure {
    Failure(format!(
        "{problem}; what was done stays: once this file can be written, run the same command again, \
         before you change any file"
    ))
}

/// Whether a new file can be made there and has room.
fn has_room(path: &Path, bytes: usize) -> io::Result<()> {
    // What has this name already, such as a link that somebody left, is not written through.
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let written = file.write_all(&vec![b'\n'; bytes]).and_then(|()| file.sync_all());
    drop(file);
    let removed = fs::remove_file(path);
    written.and(removed)
}

fn parse(line: &Value) -> Option<((String, Kind, String), Option<Seen>)> {
    let text = |name: &str| line[name].as_str().map(str::to_owned);
    let stem = text("file").filter(|stem| is_stem(stem))?;
    let key = (text("workspace")?, Kind::of_folder(line["kind"].as_str()?)?, stem);
    let Some(id) = text("id") else { return Some((key, None)) };
    let fields = line["fields"].as_object()?.iter();
    let fields = fields.map(|(name, hash)| Some((name.clone(), hash.as_str()?.to_owned())));
    let (revision, updated_at) = (line["revision"].as_i64(), text("updated_at")?);
    Some((key, Some(Seen { id, revision, updated_at, fields: fields.collect::<Option<_>>()? })))
}

/// Whether it names a file in the folder of its kind, and nothing elsewhere.
fn is_stem(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0'])
}

fn line((workspace, kind, stem): &(String, Kind, String), seen: Option<&Seen>) -> String {
    let mut line = Map::new();
    line.insert("workspace".to_owned(), json!(workspace));
    line.insert("kind".to_owned(), json!(kind.folder()));
    line.insert("file".to_owned(), json!(stem));
    if let Some(Seen { id, revision, updated_at, fields }) = seen {
        line.insert("id".to_owned(), json!(id));
        if let Some(revision) = revision {
            line.insert("revision".to_owned(), json!(revision));
        }
        line.insert("updated_at".to_owned(), json!(updated_at));
        line.insert("fields".to_owned(), json!(fields));
    }
    format!("{}\n", Value::Object(line))
}

/// The order of an object's keys does not count.
pub fn hash(value: &Value) -> String {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    let mut hash = sha256_hex(sorted.to_string().as_bytes());
    hash.truncate(HASH_CHARS);
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_is_known_before_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let new = folder.path().join("sidetone.lock.new");
        let mut lock = Lock::read(folder.path(), "ws_a").unwrap();
        lock.prepare().unwrap();
        assert!(!new.exists());
        lock.set(Kind::Tool, "book", Some(Seen::new("tool_a", None, "now"))).unwrap();
        lock.finish().unwrap();
        let before = fs::read_to_string(folder.path().join(NAME)).unwrap();
        assert_eq!(before.lines().count(), 1);

        // Neither can be written, whoever runs this.
        fs::create_dir(&new).unwrap();
        let problem = lock.prepare().unwrap_err().to_string();
        assert!(
            problem.contains("sidetone.lock.new: ") && problem.contains("nothing was changed"),
            "{problem}"
        );
        assert_eq!(fs::read_to_string(folder.path().join(NAME)).unwrap(), before);
        fs::remove_dir(&new).unwrap();
        lock.finish().unwrap();
        fs::remove_file(folder.path().join(NAME)).unwrap();
        fs::create_dir(folder.path().join(NAME)).unwrap();
        lock.prepare().unwrap_err();
        let problem = lock.set(Kind::Tool, "book", None).unwrap_err().to_string();
        assert!(problem.contains("run the same command again"), "{problem}");
    }
}
