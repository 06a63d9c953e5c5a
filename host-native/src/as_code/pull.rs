//! `sidetone pull`: writes a workspace into a folder. Files that exist keep their names, their comments, and what was changed
//! in them since they were last in step.
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use serde_json::{Map, Value};
use toml_edit::DocumentMut;

use super::api::Api;
use super::compare::{self, Changed, Difference};
use super::failure::Failure;
use super::folder::{Entry, Folder, needs, parse, shown};
use super::kind::{Field, Kind, stripped};
use super::lock::{self, Lock, Seen};
use super::matching::{Matched, matched};
use super::show::{self, Paint};
use super::workspace::{self, Row, Workspace};
use super::{DONE, FINDINGS, Wishes, say, toml, write_file};
use crate::data;
use crate::text::clean;

/// Characters of a file's stem.
const STEM_CHARS_MAX: usize = 60;

#[derive(Default)]
struct Tally {
    written: usize,
    same: usize,
    deleted: usize,
    conflicts: usize,
}

/// Writes the folder. Returns the exit code.
pub async fn pull(api: &Api, path: &Path, wishes: Wishes) -> Result<u8, Failure> {
    fs::create_dir_all(path).map_err(|error| Failure(format!("{}: {error}", path.display())))?;
    let _held = lock::hold(path)?;
    let folder = Folder::read(path)?;
    let workspace = Workspace::read(api).await?;
    if !workspace.is_whole() {
        return Err(Failure::new("the workspace changed while it was read; run it again"));
    }
    let mut lock = Lock::read(path, &workspace.id)?;
    let mut matched = matched(&workspace, &folder, &lock)?;
    let paint = Paint::of(&std::io::stdout());
    let mut tally = Tally::default();

    let without_file = name_new_files(&folder, wishes, &mut matched);
    workspace::complete(api, &workspace, &folder, &lock, &mut matched, true).await?;
    let mut needed: BTreeSet<(Kind, String)> = BTreeSet::new();
    lock.rename(matched.files())?;
    for ((kind, stem), row) in &matched.of_files {
        let Some(entry) = folder.of(*kind).get(stem) else { continue };
        let row = resolved(&matched, *kind, row);
        let before = lock.seen(*kind, stem, &row.id).cloned();
        let before = before.as_ref();
        let all = compare::differences(*kind, &entry.fields, &row, before, &matched.ids);
        let conflicts: Vec<&Difference> =
            all.iter().filter(|one| matches!(one.changed, Changed::Both | Changed::Unknown)).collect();
        if !conflicts.is_empty() && !wishes.force {
            tally.conflicts += 1;
            let mut text = paint.red(&format!("! {}  differs here and there; `sidetone apply --force` keeps the file, `sidetone pull --force` takes the workspace's", shown(*kind, stem)));
            text.push('\n');
            conflicts.iter().for_each(|one| text.push_str(&show::difference(*kind, one, paint)));
            say(&text)?;
        }
        let is_kept = |one: &Difference| one.changed != Changed::There && !wishes.force;
        let written = if all.iter().all(is_kept) {
            tally.same += usize::from(conflicts.is_empty());
            entry.fields.clone()
        } else if let Some(obstacle) = obstacle(entry) {
            tally.conflicts += 1;
            let line = format!("! {}  {obstacle}", shown(*kind, stem));
            say(&format!("{}\n", paint.red(&line)))?;
            needed.extend(needs(*kind, &entry.fields));
            continue;
        } else {
            // What was changed there alone is taken, also where another field is in conflict.
            let mut document = entry.document.clone();
            for one in all.iter().filter(|one| !is_kept(one)) {
                if let Some(field) = kind.field(&one.field) {
                    write_field(&mut document, field, &one.there);
                }
            }
            finish_file(*kind, stem, &entry.path, &document, Some(&entry.text), &row, &mut tally)?
        };
        let mut seen = compare::seen(*kind, &row, &written, &matched.ids);
        // What was changed here stays a change that is not applied yet.
        for one in all.iter().filter(|one| is_kept(one)) {
            match one.changed {
                Changed::Unknown => seen.leave_open(&one.field),
                _ => seen.keep(&one.field, before),
            }
        }
        lock.set_seen(*kind, stem, seen)?;
        needed.extend(needs(*kind, &written));
    }
    let rows: HashMap<&str, &Row> =
        matched.without_file.iter().map(|(.., row)| (row.id.as_str(), row)).collect();
    for (kind, stem, id) in &without_file {
        let Some(row) = rows.get(id.as_str()).copied() else { continue };
        let written = write_new(&folder, &matched, (*kind, stem.as_str(), row), &mut lock, &mut tally)?;
        needed.extend(needs(*kind, &written));
    }
    // What a file names has a file again, also if that was deleted here. Simulations come last, so they are looked at first.
    for (kind, stem, row) in matched.without_file.iter().rev() {
        if let Some(stem) = stem
            && !wishes.force
            && needed.contains(&(*kind, stem.clone()))
        {
            let written = write_new(&folder, &matched, (*kind, stem.as_str(), row), &mut lock, &mut tally)?;
            needed.extend(needs(*kind, &written));
        }
    }
    let gone = gone(&folder, &lock, &matched);
    for kind in Kind::ALL {
        for (stem, entry) in folder.of(kind) {
            let file = (kind, stem.clone());
            if !matched.of_files.contains_key(&file) && !gone.contains(&file) {
                needed.extend(needs(kind, &entry.fields));
            }
        }
    }
    // What refers to others comes first.
    for (kind, stem) in gone {
        let is_needed = needed.contains(&(kind, stem.clone()));
        let file = (kind, stem.as_str());
        let stays = remove(&folder, &matched, file, wishes, is_needed, &mut lock, &mut tally)?;
        if stays && let Some(entry) = folder.of(kind).get(&stem) {
            needed.extend(needs(kind, &entry.fields));
        }
    }
    for (kind, stem, row) in &matched.without_file {
        if let Some(stem) = stem
            && !wishes.force
            && !needed.contains(&(*kind, stem.clone()))
        {
            let file = shown(*kind, stem);
            say(&format!(
                "  {file}  was deleted here, and {} is still there; --force writes it again\n",
                clean(&row.title())
            ))?;
        }
    }
    if tally.written + tally.deleted > 0 {
        sync_folders(&folder);
    }
    lock.finish()?;
    say(&format!(
        "{} written, {} deleted, {} the same, {} in conflict.\n",
        tally.written, tally.deleted, tally.same, tally.conflicts
    ))?;
    Ok(if tally.conflicts > 0 { FINDINGS } else { DONE })
}

/// Gives files to what has none: to what is new, and with `force` to what was deleted here.
fn name_new_files(folder: &Folder, wishes: Wishes, matched: &mut Matched) -> Vec<(Kind, String, String)> {
    let mut named = Vec::new();
    for kind in Kind::ALL {
        let mut taken: BTreeSet<String> = folder.of(kind).keys().map(|stem| stem.to_lowercase()).collect();
        if !wishes.force {
            // The names of files that were deleted here stay theirs.
            let known = matched.without_file.iter().filter(|(of, ..)| *of == kind);
            taken.extend(known.filter_map(|(_, stem, _)| Some(stem.as_ref()?.to_lowercase())));
        }
        let mut rows: Vec<&mut (Kind, Option<String>, Row)> =
            matched.without_file.iter_mut().filter(|(of, ..)| *of == kind).collect();
        // Oldest first, so that the same workspace gets the same names.
        rows.sort_by(|one, other| one.2.id.cmp(&other.2.id));
        for (_, known, row) in rows {
            let stem = match known {
                Some(_) if !wishes.force => continue,
                Some(stem) => stem.clone(),
                None => {
                    // What it joins has names by now.
                    row.resolve(kind, &matched.stems);
                    stem_of(kind, row)
                }
            };
            let stem = (1_u64..)
                .map(|number| if number == 1 { stem.clone() } else { format!("{stem}-{number}") })
                .find(|stem| !taken.contains(&stem.to_lowercase()))
                .unwrap_or(stem);
            taken.insert(stem.to_lowercase());
            matched.stems.insert(&row.id, &stem);
            matched.ids.insert(kind, &stem, &row.id);
            named.push((kind, stem, row.id.clone()));
        }
    }
    named
}

/// A name for a file: the resource's, in small letters, digits and dashes.
fn stem_of(kind: Kind, row: &Row) -> String {
    let joined: Vec<&str> = kind
        .references()
        .iter()
        .filter(|reference| reference.set.is_none())
        .filter_map(|reference| row.fields.get(reference.key).and_then(Value::as_str))
        .collect();
    let name = match row.fields.get("name").and_then(Value::as_str) {
        Some(name) => name.to_owned(),
        None => joined.join("-"),
    };
    let is_function = kind == Kind::Tool;
    let mut stem = String::new();
    for c in name.chars().flat_map(char::to_lowercase) {
        match c {
            c if c.is_alphanumeric() || (is_function && c == '_') => stem.push(c),
            _ if !stem.is_empty() && !stem.ends_with('-') => stem.push('-'),
            _ => {}
        }
    }
    let stem: String = stem.chars().take(STEM_CHARS_MAX).collect();
    match stem.trim_end_matches('-') {
        "" => kind.noun().replace(' ', "-"),
        stem => stem.to_owned(),
    }
}

/// Sets a field, or leaves it out where it has its default.
fn write_field(document: &mut DocumentMut, field: &Field, value: &Value) {
    let is_default = field.default.as_ref() == Some(value);
    if is_default && (value.is_null() || !document.contains_key(&field.name)) {
        document.remove(&field.name);
    } else {
        let old = document.get(&field.name).and_then(|item| toml::field_to_json(item, &field.schema).ok());
        let brief = stripped(&field.schema, value);
        let brief = match old {
            Some(old) => stated(&old, value, brief),
            None => brief,
        };
        toml::set_field(document, &field.name, &brief);
    }
}

/// What a file states stays stated, also where it has its default: a comment may say why.
fn stated(old: &Value, full: &Value, brief: Value) -> Value {
    match (old, full, brief) {
        (Value::Object(old), Value::Object(full), Value::Object(mut brief)) => {
            for (name, old) in old {
                let Some(full) = full.get(name).filter(|full| !full.is_null()) else { continue };
                let inner = match brief.get(name) {
                    Some(inner) => inner.clone(),
                    None if full.is_object() => Value::Object(Map::new()),
                    None => full.clone(),
                };
                brief.insert(name.clone(), stated(old, full, inner));
            }
            Value::Object(brief)
        }
        (Value::Array(old), Value::Array(full), Value::Array(brief)) if full.len() == brief.len() => {
            let each =
                brief.into_iter().enumerate().map(|(place, brief)| match (old.get(place), full.get(place)) {
                    (Some(old), Some(full)) => stated(old, full, brief),
                    _ => brief,
                });
            Value::Array(each.collect())
        }
        (.., brief) => brief,
    }
}

/// Writes the file of a resource that has none; returns the fields that it decides.
fn write_new(
    folder: &Folder,
    matched: &Matched,
    (kind, stem, row): (Kind, &str, &Row),
    lock: &mut Lock,
    tally: &mut Tally,
) -> Result<Map<String, Value>, Failure> {
    let row = resolved(matched, kind, row);
    let mut document = DocumentMut::new();
    for field in kind.fields() {
        if let Some(value) = row.fields.get(&field.name) {
            write_field(&mut document, field, value);
        }
    }
    let path = folder.path_of(kind, stem);
    if path.symlink_metadata().is_ok() {
        let file = shown(kind, stem);
        return Err(Failure(format!("{file} was made meanwhile; run `sidetone pull` again")));
    }
    let written = finish_file(kind, stem, &path, &document, None, &row, tally)?;
    lock.set_seen(kind, stem, compare::seen(kind, &row, &written, &matched.ids))?;
    Ok(written)
}

/// Why a file is not written, and what to do.
fn obstacle(entry: &Entry) -> Option<&'static str> {
    let is_as_read = fs::read_to_string(&entry.path).ok().as_ref() == Some(&entry.text);
    (!is_as_read).then_some("was edited meanwhile; run `sidetone pull` again")
}

/// What was written and deleted is durable before the lock says that it was seen. Not every file system can do that to a
/// folder, which is no reason to fail.
fn sync_folders(folder: &Folder) {
    for kind in Kind::ALL {
        let _ = data::sync_folder(&folder.path_of(kind, "any"));
    }
    let _ = data::sync_folder(&folder.path.join(lock::NAME));
}

/// Whether the lines of a text end as on Windows.
fn is_of_windows(text: &str) -> bool {
    2 * text.matches("\r\n").count() > text.matches('\n').count()
}

/// Writes a file, if its bytes change; returns the fields that it decides now. Its lines end as they did `before`.
fn finish_file(
    kind: Kind,
    stem: &str,
    path: &Path,
    document: &DocumentMut,
    before: Option<&str>,
    row: &Row,
    tally: &mut Tally,
) -> Result<Map<String, Value>, Failure> {
    let mut text = document.to_string();
    if before.is_some_and(is_of_windows) {
        text = text.replace('\n', "\r\n");
    }
    let file = shown(kind, stem);
    let entry = parse(path, kind, &text).map_err(|problems| {
        Failure(format!("{file}: {} cannot be written: {}", row.title(), problems.join("; ")))
    })?;
    if write_file(path, &text)? {
        tally.written += 1;
        say(&format!("wrote {file}\n"))?;
    } else {
        tally.same += 1;
    }
    Ok(entry.fields)
}

/// The row with the stems that are known by now.
fn resolved(matched: &Matched, kind: Kind, row: &Row) -> Row {
    let mut row = row.clone();
    row.resolve(kind, &matched.stems);
    row
}

/// Files whose resource was deleted there.
fn gone(folder: &Folder, lock: &Lock, matched: &Matched) -> Vec<(Kind, String)> {
    let mut gone: Vec<(Kind, String)> = matched.deleted.iter().cloned().collect();
    // The lock may still know what has neither a file nor a resource.
    for kind in Kind::ALL {
        let rows = |id: &str| matched.without_file.iter().any(|(.., row)| row.id == id);
        let is_left = |(stem, seen): &(&str, &Seen)| {
            !folder.of(kind).contains_key(*stem) && !rows(&seen.id) && matched.stems.get(&seen.id).is_none()
        };
        gone.extend(lock.stems(kind).filter(is_left).map(|(stem, _)| (kind, stem.to_owned())));
    }
    // What refers to others goes first.
    gone.sort_by(|one, other| other.cmp(one));
    gone
}

/// Removes a file whose resource was deleted there. Returns whether it stays.
fn remove(
    folder: &Folder,
    matched: &Matched,
    (kind, stem): (Kind, &str),
    wishes: Wishes,
    is_needed: bool,
    lock: &mut Lock,
    tally: &mut Tally,
) -> Result<bool, Failure> {
    let file = shown(kind, stem);
    let Some(entry) = folder.of(kind).get(stem) else {
        lock.set(kind, stem, None)?;
        return Ok(false);
    };
    let is_unchanged = fs::read_to_string(&entry.path).ok().as_ref() == Some(&entry.text)
        && lock.get(kind, stem).is_some_and(|seen| {
            let is_as_written = |(field, value): (&String, &Value)| match seen.written(field) {
                // The lock is of an earlier version, which did not know the field.
                None => kind.field(field).is_some_and(|field| field.default.as_ref() == Some(value)),
                Some(_) => compare::is_as_written(kind, field, value, seen, &matched.ids),
            };
            entry.fields.iter().all(is_as_written)
        });
    match (wishes.prune, is_unchanged || wishes.force) {
        (true, _) if is_needed => {
            tally.conflicts += 1;
            say(&format!("! {file}  was deleted there, and another file names it: it stays\n"))?;
        }
        (true, true) => {
            fs::remove_file(&entry.path).map_err(|error| Failure(format!("{file}: {error}")))?;
            lock.set(kind, stem, None)?;
            tally.deleted += 1;
            say(&format!("deleted {file}\n"))?;
            return Ok(false);
        }
        (true, false) => {
            tally.conflicts += 1;
            say(&format!("! {file}  was deleted there and changed here; --force deletes it\n"))?;
        }
        (false, true) => say(&format!("  {file}  was deleted there; --prune deletes the file\n"))?,
        (false, false) => {
            tally.conflicts += 1;
            say(&format!("! {file}  was deleted there and changed here; --prune --force deletes it\n"))?;
        }
    }
    Ok(true)
}
