//! A folder of plain files: one for each resource, in a folder for each kind, named by their stems.
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use sidetone_engine::base::limits::BODY_BYTES_MAX;
use toml_edit::{DocumentMut, Item};

use super::failure::Failure;
use super::kind::{Field, Kind, filled, has_parts};
use super::toml;
use crate::text::{clean, counted};

/// Problems that are listed at once.
const PROBLEMS_MAX: usize = 20;

/// A file.
#[derive(Debug)]
pub struct Entry {
    /// Where it is.
    pub path: PathBuf,
    /// The text, as it was read.
    pub text: String,
    /// The text, as it is edited.
    pub document: DocumentMut,
    /// The fields that it states.
    pub stated: Map<String, Value>,
    /// The fields that it decides: those that it states, and those that it leaves at their defaults.
    pub fields: Map<String, Value>,
}

/// The files of a kind, by their stems.
pub type Files = BTreeMap<String, Entry>;

/// What is wrong with a folder.
#[derive(Default)]
struct Problems {
    texts: Vec<String>,
    /// Files that are there and were not read: to name them is no problem of its own.
    files: HashSet<(Kind, String)>,
    /// Likewise, all files of a kind.
    kinds: HashSet<Kind>,
}

/// A folder.
#[derive(Debug)]
pub struct Folder {
    /// Where it is.
    pub path: PathBuf,
    files: BTreeMap<Kind, Files>,
}

impl Folder {
    /// Reads all files, and lists what is wrong with them.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let mut problems = Problems::default();
        let mut files = BTreeMap::new();
        check_folders(path, &mut problems)?;
        for kind in Kind::ALL {
            files.insert(kind, read_kind(path, kind, &mut problems)?);
        }
        let folder = Self { path: path.to_owned(), files };
        folder.check_references(&mut problems);
        folder.check_names(&mut problems.texts);
        let problems = problems.texts;
        if problems.is_empty() {
            return Ok(folder);
        }
        let mut text = format!("{} in {}:", counted(problems.len() as u64, "problem"), path.display());
        problems.iter().take(PROBLEMS_MAX).for_each(|problem| text.push_str(&format!("\n  {problem}")));
        if problems.len() > PROBLEMS_MAX {
            text.push_str(&format!("\n  and {} more", problems.len() - PROBLEMS_MAX));
        }
        Err(Failure(text))
    }

    /// The files of a kind.
    pub fn of(&self, kind: Kind) -> &Files {
        static NONE: Files = Files::new();
        self.files.get(&kind).unwrap_or(&NONE)
    }

    /// How many files there are.
    pub fn len(&self) -> usize {
        self.files.values().map(Files::len).sum()
    }

    /// Where the file of a resource is, or would be.
    pub fn path_of(&self, kind: Kind, stem: &str) -> PathBuf {
        self.path.join(kind.folder()).join(format!("{stem}.toml"))
    }

    fn check_references(&self, problems: &mut Problems) {
        for kind in Kind::ALL {
            for (stem, entry) in self.of(kind) {
                for reference in kind.references() {
                    for name in entry.stated.get(reference.key).map(names).unwrap_or_default() {
                        let is_unread = problems.kinds.contains(&reference.kind)
                            || problems.files.contains(&(reference.kind, name.to_owned()));
                        if !is_unread && !self.of(reference.kind).contains_key(name) {
                            let folder = reference.kind.folder();
                            problems.texts.push(format!(
                                "{}: {}: there is no {folder}/{name}.toml{}",
                                shown(kind, stem),
                                reference.key,
                                similar_name(name, self.of(reference.kind).keys())
                            ));
                        }
                    }
                }
            }
        }
    }

    /// Of two files with one name, the service would refuse the second.
    fn check_names(&self, problems: &mut Vec<String>) {
        for kind in Kind::ALL.into_iter().filter(|kind| kind.has_unique_names()) {
            let mut stems: HashMap<&str, &str> = HashMap::new();
            for (stem, entry) in self.of(kind) {
                let Some(name) = entry.fields.get("name").and_then(Value::as_str) else { continue };
                if let Some(other) = stems.insert(name, stem) {
                    problems.push(format!(
                        "{}: name: {} has the same; give each {} a name of its own",
                        shown(kind, stem),
                        shown(kind, other),
                        kind.noun()
                    ));
                }
            }
        }
    }
}

/// How a file is named in what commands print.
pub fn shown(kind: Kind, stem: &str) -> String {
    clean(&format!("{}/{stem}.toml", kind.folder())).replace('\n', "\u{fffd}")
}

/// The names in a reference's value.
pub fn names(value: &Value) -> Vec<&str> {
    match value {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The resources that these fields name, by kind and the stems of their files.
pub fn needs(kind: Kind, fields: &Map<String, Value>) -> Vec<(Kind, String)> {
    let mut needs = Vec::new();
    for reference in kind.references() {
        let named = fields.get(reference.key).map(names).unwrap_or_default();
        needs.extend(named.into_iter().map(|name| (reference.kind, name.to_owned())));
    }
    needs
}

/// What is in a folder, in order; nothing is in one that does not exist.
fn listed(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error: io::Error| Failure(format!("{}: {error}", folder.display()));
    let mut paths = match fs::read_dir(folder) {
        Ok(entries) => entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<Vec<PathBuf>>>()
            .map_err(failed)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(failed(error)),
    };
    paths.sort();
    Ok(paths)
}

/// A folder whose name is nearly that of a kind's is a mistake: its files would not be read, and `apply --prune` would delete
/// what they are.
fn check_folders(path: &Path, problems: &mut Problems) -> Result<(), Failure> {
    for entry in listed(path)? {
        let name = entry.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') || Kind::of_folder(&name).is_some() || !entry.is_dir() {
            continue;
        }
        let small = name.to_lowercase();
        let is_meant = |kind: &Kind| {
            let folder = kind.folder();
            strsim::damerau_levenshtein(&small, folder) <= folder.len() / 5
        };
        if let Some(kind) = Kind::ALL.into_iter().find(is_meant) {
            let folder = kind.folder();
            problems
                .texts
                .push(format!("{name}/ is not read; is {folder}/ meant? Rename it, or move it elsewhere"));
            problems.kinds.insert(kind);
        }
    }
    Ok(())
}

fn read_kind(path: &Path, kind: Kind, problems: &mut Problems) -> Result<Files, Failure> {
    let mut files = Files::new();
    let folder = kind.folder();
    let path = path.join(folder);
    // It may lead anywhere, and `pull` writes and deletes in it.
    let wrong = if path.is_symlink() {
        Some(format!("{folder}/ is a link; put the folder itself there"))
    } else if path.exists() && !path.is_dir() {
        Some(format!("{folder} is a file, where a folder is needed; rename it, or move it elsewhere"))
    } else {
        None
    };
    if let Some(wrong) = wrong {
        problems.texts.push(wrong);
        problems.kinds.insert(kind);
        return Ok(files);
    }
    for path in listed(&path)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // What editors leave, and a `pull` that was killed.
        if name.starts_with('.') || name.ends_with('~') || name.ends_with(".toml.new") {
            continue;
        }
        let stem = path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
        if let Some(obstacle) = obstacle(&path, &format!("{folder}/{name}"), folder) {
            problems.texts.push(obstacle);
            problems.files.extend(stem.map(|stem| (kind, stem)));
            continue;
        }
        let Some(stem) = stem else {
            problems.texts.push(format!("{folder}/{name}: the name is not in UTF-8"));
            continue;
        };
        match read_file(&path, kind) {
            Ok(entry) => drop(files.insert(stem, entry)),
            Err(found) => {
                let file = shown(kind, &stem);
                problems.texts.extend(found.iter().map(|problem| format!("{file}: {problem}")));
                problems.files.insert((kind, stem));
            }
        }
    }
    Ok(files)
}

/// Why something in the folder of a kind is not read. What is here and is not read must not look as if it were.
fn obstacle(path: &Path, name: &str, folder: &str) -> Option<String> {
    // What a link leads to may be secret, and messages quote it.
    if path.is_symlink() {
        return Some(format!("{name} is a link; put the file itself there"));
    }
    if path.is_dir() {
        return Some(format!("{name} is a folder; files stand directly in {folder}/"));
    }
    // To read a named pipe, or some devices, might never end.
    if !path.is_file() {
        return Some(format!("{name} is not a regular file; delete it, or put one there"));
    }
    path.extension()
        .is_none_or(|extension| extension != "toml")
        .then(|| format!("{name} is not read: names of files end in .toml; rename it, or move it elsewhere"))
}

fn read_file(path: &Path, kind: Kind) -> Result<Entry, Vec<String>> {
    let one = |problem: String| vec![problem];
    let size = fs::metadata(path).map_err(|error| one(error.to_string()))?.len();
    if size > BODY_BYTES_MAX as u64 {
        return Err(one(format!("has {size} bytes; at most {BODY_BYTES_MAX} are allowed")));
    }
    // It may grow, and some files do not know their size.
    let file = fs::File::open(path).map_err(|error| one(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(BODY_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(|error| one(error.to_string()))?;
    if bytes.len() > BODY_BYTES_MAX {
        return Err(one(format!("has more than {BODY_BYTES_MAX} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| one("is not in UTF-8".to_owned()))?;
    parse(path, kind, &text)
}

/// Reads the text of a file.
pub fn parse(path: &Path, kind: Kind, text: &str) -> Result<Entry, Vec<String>> {
    // Git on Windows ends lines in another way; what is sent is the same everywhere.
    let document: DocumentMut = text
        .replace("\r\n", "\n")
        .parse()
        .map_err(|error: toml_edit::TomlError| vec![error.to_string().trim_end().to_owned()])?;
    let mut problems = Vec::new();
    let mut stated = Map::new();
    for (name, item) in document.iter() {
        let Some(field) = kind.field(name) else {
            let fields: Vec<&str> = kind.fields().iter().map(|field| field.name.as_str()).collect();
            problems.push(format!("{name} is not a field; fields are: {}", fields.join(", ")));
            continue;
        };
        match toml::field_to_json(item, &field.schema) {
            Ok(value) => match wrong_form(kind, name, &field.schema, &value) {
                None => drop(stated.insert(name.to_owned(), value)),
                Some(problem) => problems.push(format!("{name} {problem}")),
            },
            Err(problem) => problems.push(format!("{name} {}", unreadable(kind, field, item, problem))),
        }
    }
    let missing = kind.fields().iter().filter(|field| field.required && document.get(&field.name).is_none());
    problems.extend(missing.map(|field| format!("{} is missing", field.name)));
    if !problems.is_empty() {
        return Err(problems);
    }
    let fields = decided(kind, &stated);
    Ok(Entry { path: path.to_owned(), text: text.to_owned(), document, stated, fields })
}

/// What is wrong with a field whose value cannot be read. A text that was not meant as JSON is not told that it is none.
fn unreadable(kind: Kind, field: &Field, item: &Item, problem: String) -> String {
    if item.as_str().is_none_or(|text| text.trim_start().starts_with(['{', '['])) {
        return problem;
    }
    wrong_form(kind, &field.name, &field.schema, &Value::Null).unwrap_or(problem)
}

/// The service checks all rules; what would make the comparison meaningless is checked here.
fn wrong_form(kind: Kind, name: &str, schema: &Value, value: &Value) -> Option<String> {
    if let Some(reference) = kind.reference(name) {
        let is_list = reference.set.is_some();
        let are_texts = |items: &Vec<Value>| items.iter().all(Value::is_string);
        let is_right = if is_list { value.as_array().is_some_and(are_texts) } else { value.is_string() };
        let files = reference.kind.folder();
        return (!is_right).then(|| match is_list {
            true => format!("has to be a list of names of files in {files}/"),
            false => format!("has to be the name of a file in {files}/"),
        });
    }
    let is_text = schema["type"] == "string" || schema["type"][0] == "string";
    if is_text && !value.is_string() {
        return Some("has to be a text, in quotation marks".to_owned());
    }
    if !has_parts(schema) || value.is_object() || value.is_array() {
        return None;
    }
    let is_array = |kind: &Value| kind == "array";
    let kinds = &schema["type"];
    let is_list = is_array(kinds) || kinds.as_array().is_some_and(|kinds| kinds.iter().any(is_array));
    Some(match is_list {
        true => "has to be a list".to_owned(),
        false => format!("has to be a table: put what is in it below a line [{name}]"),
    })
}

/// The values that a file decides.
fn decided(kind: Kind, stated: &Map<String, Value>) -> Map<String, Value> {
    let mut fields = Map::new();
    for field in kind.fields() {
        let value = match stated.get(&field.name) {
            Some(value) => Some(filled(&field.schema, value)),
            None => field.default.clone(),
        };
        if let Some(value) = value {
            fields.insert(field.name.clone(), value);
        }
    }
    fields
}

/// What was probably meant.
fn similar_name<'a>(name: &str, all: impl Iterator<Item = &'a String>) -> String {
    let distance = |other: &str| similar::TextDiff::from_chars(name, other).ratio();
    let best = all.map(|other| (distance(other), other)).max_by(|one, other| one.0.total_cmp(&other.0));
    best.filter(|(ratio, _)| *ratio > 0.7)
        .map(|(_, other)| format!("; is {other} meant?"))
        .unwrap_or_default()
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::Command;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_named_pipe_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let assistants = folder.path().join("assistants");
        fs::create_dir(&assistants).unwrap();
        assert!(Command::new("mkfifo").arg(assistants.join("p.toml")).status().unwrap().success());
        let (tell, told) = mpsc::channel();
        let path = folder.path().to_owned();
        thread::spawn(move || tell.send(Folder::read(&path).map(drop)));
        let read = told.recv_timeout(Duration::from_secs(30)).expect("it reads nothing of it");
        let problem = read.unwrap_err().to_string();
        let expected = "\n  assistants/p.toml is not a regular file; delete it, or put one there";
        assert!(problem.ends_with(expected), "{problem}");
    }
}
