//! Which file is which resource: the one that the lock knows, else the only one of its name, else the one that was it but
//! for its name.
use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

use super::compare;
use super::failure::Failure;
use super::folder::{Files, Folder, shown};
use super::kind::Kind;
use super::lock::{Lock, Seen, hash};
use super::workspace::{Ids, Row, Stems, Unnamed, Workspace};

/// Which resource a file is.
#[derive(Debug, Default)]
pub struct Matched {
    /// The resources of files, by kind and stem.
    pub of_files: BTreeMap<(Kind, String), Row>,
    /// Resources without a file, with the stem of the file that the lock knows.
    pub without_file: Vec<(Kind, Option<String>, Row)>,
    /// Files whose resource was deleted since it was seen.
    pub deleted: HashSet<(Kind, String)>,
    /// The stems of all that have a file, or had one.
    pub stems: Stems,
    /// The ids of all that have a file, or had one, also of what was deleted since.
    pub ids: Ids,
}

/// Finds the resource of each file.
pub fn matched(workspace: &Workspace, folder: &Folder, lock: &Lock) -> Result<Matched, Failure> {
    let mut matched = Matched::default();
    for kind in Kind::ALL {
        let rows = workspace.rows(kind, &matched.stems).into_iter().map(|row| (row.id.clone(), row));
        let mut search = Search {
            kind,
            files: folder.of(kind),
            lock,
            rows: rows.collect(),
            found: Vec::new(),
            unknown: Vec::new(),
            deleted: Vec::new(),
            displaced: HashSet::new(),
        };
        search.by_lock(&matched.ids);
        search.by_name()?;
        search.by_content(&matched.ids);
        matched.take(search);
    }
    Ok(matched)
}

impl Matched {
    /// The kinds and stems of files with the ids of their resources.
    pub fn files(&self) -> impl Iterator<Item = (Kind, &str, &str)> {
        self.of_files.iter().map(|((kind, stem), row)| (*kind, stem.as_str(), row.id.as_str()))
    }

    /// What was found of a kind.
    fn take(&mut self, search: Search<'_>) {
        let Search { kind, lock, rows, found, deleted, .. } = search;
        self.deleted.extend(deleted.into_iter().map(|stem| (kind, stem.clone())));
        for (stem, row) in &found {
            self.stems.insert(&row.id, stem);
        }
        let known: HashMap<&str, &str> =
            lock.stems(kind).map(|(stem, seen)| (seen.id.as_str(), stem)).collect();
        for (id, row) in rows {
            let stem = known.get(id.as_str()).map(|stem| (*stem).to_owned());
            if let Some(stem) = &stem {
                self.stems.insert(&id, stem);
            }
            self.without_file.push((kind, stem, row));
        }
        // A name whose resource was deleted still means that one, unless the file has another name now.
        for (stem, seen) in lock.stems(kind) {
            if self.stems.get(&seen.id).is_none_or(|now| now == stem) {
                self.ids.insert(kind, stem, &seen.id);
            }
        }
        for (stem, row) in found {
            self.ids.insert(kind, stem, &row.id);
            self.of_files.insert((kind, stem.clone()), row);
        }
    }
}

/// The files and the resources of a kind, while it is found out which is which.
struct Search<'a> {
    kind: Kind,
    files: &'a Files,
    lock: &'a Lock,
    /// Resources whose file is not found, by id.
    rows: BTreeMap<String, Row>,
    found: Vec<(&'a String, Row)>,
    /// Files whose resource is not found.
    unknown: Vec<&'a String>,
    /// Files whose resource was deleted since it was seen.
    deleted: Vec<&'a String>,
    /// Files under whose names the lock has resources that have other files now.
    displaced: HashSet<&'a String>,
}

impl<'a> Search<'a> {
    /// By the names of the files.
    fn by_lock(&mut self, ids: &Ids) {
        let (kind, files, lock) = (self.kind, self.files, self.lock);
        let moved = self.moved(ids);
        self.displaced = moved.values().copied().collect();
        for stem in files.keys() {
            let in_lock = match moved.get(stem) {
                Some(earlier) => Some(*earlier),
                None if self.displaced.contains(stem) => None,
                None => Some(stem),
            };
            let seen = in_lock.and_then(|stem| lock.get(kind, stem));
            match seen.and_then(|seen| self.rows.remove(&seen.id).map(|row| (seen, row))) {
                Some((seen, mut row)) => {
                    row.keep_default_name(seen);
                    self.found.push((stem, row));
                }
                // Somebody may have made it again.
                None => self.unknown.push(stem),
            }
        }
    }

    /// Files that were moved and whose old names other files have: the name within a file says which it is. For each, its
    /// name in the lock.
    fn moved(&self, ids: &Ids) -> BTreeMap<&'a String, &'a String> {
        let (kind, files, lock) = (self.kind, self.files, self.lock);
        let mut changed: BTreeMap<&'a String, Vec<&'a str>> = BTreeMap::new();
        let mut by_name: HashMap<Vec<String>, Vec<&'a String>> = HashMap::new();
        for (stem, entry) in files {
            let hash_of =
                |field: &str| entry.fields.get(field).map(|value| hash(&ids.in_field(kind, field, value)));
            let name: Vec<String> = named_by(kind).filter_map(hash_of).collect();
            if let Some(seen) = lock.get(kind, stem) {
                let earlier: Vec<&'a str> = named_by(kind).filter_map(|field| seen.written(field)).collect();
                if earlier == name || !self.rows.contains_key(&seen.id) {
                    continue;
                }
                changed.insert(stem, earlier);
            }
            if entry.fields.get("name").is_some_and(Value::is_string) {
                by_name.entry(name).or_default().push(stem);
            }
        }
        let mut claims: BTreeMap<&'a String, Vec<&'a String>> = BTreeMap::new();
        for (stem, earlier) in &changed {
            let earlier: Vec<String> = earlier.iter().map(|hash| (*hash).to_owned()).collect();
            if let Some([one]) = by_name.get(&earlier).map(Vec::as_slice) {
                claims.entry(*one).or_default().push(*stem);
            }
        }
        let mut moved: BTreeMap<&'a String, &'a String> = BTreeMap::new();
        for (stem, earlier) in claims {
            if let [earlier] = earlier.as_slice() {
                moved.insert(stem, *earlier);
            }
        }
        // One that would leave a resource without a file stays what the lock says.
        loop {
            let (before, displaced) = (moved.len(), moved.values().copied().collect::<HashSet<_>>());
            moved.retain(|stem, _| !changed.contains_key(stem) || displaced.contains(stem));
            if moved.len() == before {
                return moved;
            }
        }
    }

    /// By the names in the files.
    fn by_name(&mut self) -> Result<(), Failure> {
        let (kind, files, lock) = (self.kind, self.files, self.lock);
        let knows_workspace = lock.knows_workspace();
        let was_seen: HashSet<&String> = lock.stems(kind).map(|(_, seen)| &seen.id).collect();
        let mut by_name: HashMap<String, Vec<(Unnamed, String)>> = HashMap::new();
        for row in self.rows.values() {
            let name = row.kept(kind, "name").unwrap_or(&Value::Null);
            let mut add = |name: &Value, sure: Unnamed| {
                let rows = by_name.entry(identity(kind, name, &row.fields)).or_default();
                rows.push((sure, row.id.clone()));
            };
            add(name, Unnamed::Surely);
            // A file may say the name that it has anyway, or say none. What the lock would know, had it been seen, is not guessed.
            let is_open =
                |sure: &Unnamed| *sure != Unnamed::Perhaps || !knows_workspace || was_seen.contains(&row.id);
            if let Some(sure) = row.unnamed.filter(is_open) {
                add(&Value::Null, sure);
            }
        }
        // Those that state a name come first: so their texts are sorted.
        let mut wanted: BTreeMap<String, Vec<&'a String>> = BTreeMap::new();
        for stem in std::mem::take(&mut self.unknown) {
            let Some(fields) = files.get(stem).map(|entry| &entry.fields) else { continue };
            let name = fields.get("name").unwrap_or(&Value::Null);
            wanted.entry(identity(kind, name, fields)).or_default().push(stem);
        }
        for (name, stems) in wanted {
            let rows = by_name.get(&name).into_iter().flatten();
            let free: Vec<&(Unnamed, String)> = rows.filter(|one| self.rows.contains_key(&one.1)).collect();
            let best = free.iter().map(|one| one.0).min();
            let mut ids: Vec<&String> =
                free.into_iter().filter(|one| Some(one.0) == best).map(|one| &one.1).collect();
            if best == Some(Unnamed::Perhaps) && (ids.len(), stems.len()) != (1, 1) {
                ids.clear();
            }
            let name_of = |stem: &String| files.get(stem).and_then(|entry| entry.fields.get("name"));
            if stems.iter().all(|stem| name_of(stem).is_some_and(Value::is_null)) {
                for id in &ids {
                    if let Some(row) = self.rows.get_mut(*id) {
                        row.leave_unnamed();
                    }
                }
            }
            match (ids.as_slice(), stems.as_slice()) {
                ([], _) => {
                    for stem in &stems {
                        let is_known = lock.get(kind, stem).is_some() && !self.displaced.contains(stem);
                        let place = if is_known { &mut self.deleted } else { &mut self.unknown };
                        place.push(*stem);
                    }
                }
                ([id], [stem]) => self.found.extend(self.rows.remove(*id).map(|row| (*stem, row))),
                // An `apply` that broke off made some of them: those are as their files say.
                (ids, stems) => {
                    let mut left = stems.to_vec();
                    for id in ids {
                        let is_of = |stem: &&'a String| {
                            let both = files.get(*stem).zip(self.rows.get(*id));
                            both.is_some_and(|(entry, row)| is_made_of(kind, &entry.fields, row))
                        };
                        let Some(place) = left.iter().position(is_of) else {
                            return Err(ambiguous(kind, ids, stems));
                        };
                        let stem = left.remove(place);
                        self.found.extend(self.rows.remove(*id).map(|row| (stem, row)));
                    }
                }
            }
        }
        Ok(())
    }

    /// By all but the name: a file whose name was changed, and the name in it, is what had the same fields in a file that is
    /// gone. Made anew, a tool would have another signing secret, and an assistant none of its simulations.
    fn by_content(&mut self, ids: &Ids) {
        let (kind, files, lock) = (self.kind, self.files, self.lock);
        let is_gone = |stem: &str, seen: &Seen| !files.contains_key(stem) && self.rows.contains_key(&seen.id);
        let gone: Vec<&'a Seen> =
            lock.stems(kind).filter(|(stem, seen)| is_gone(stem, seen)).map(|(_, seen)| seen).collect();
        if gone.is_empty() {
            return;
        }
        let mut pairs: Vec<(&'a String, &'a Seen)> = Vec::new();
        for stem in &self.unknown {
            let Some(entry) = files.get(*stem) else { continue };
            let stated = entry.fields.iter().filter(|(field, _)| *field != "name");
            let hashes: Vec<(&String, String)> =
                stated.map(|(field, value)| (field, hash(&ids.in_field(kind, field, value)))).collect();
            let has_all =
                |seen: &Seen| hashes.iter().all(|(field, hash)| seen.written(field) == Some(hash.as_str()));
            // Two are as good as more: it is not clear which.
            let fitting = gone.iter().copied().filter(|seen| has_all(seen)).take(2);
            pairs.extend(fitting.map(|seen| (*stem, seen)));
        }
        let mut of_file: HashMap<&String, usize> = HashMap::new();
        let mut of_row: HashMap<&str, usize> = HashMap::new();
        for (stem, seen) in &pairs {
            *of_file.entry(*stem).or_default() += 1;
            *of_row.entry(seen.id.as_str()).or_default() += 1;
        }
        for (stem, seen) in &pairs {
            let is_clear = of_file.get(*stem) == Some(&1) && of_row.get(seen.id.as_str()) == Some(&1);
            if is_clear && let Some(mut row) = self.rows.remove(&seen.id) {
                row.keep_default_name(seen);
                self.found.push((*stem, row));
            }
        }
    }
}

/// Whether it has all that the file says, but perhaps not yet what is attached.
fn is_made_of(kind: Kind, fields: &Map<String, Value>, row: &Row) -> bool {
    let is_list = |name: &str| kind.reference(name).is_some_and(|reference| reference.set.is_some());
    compare::differences(kind, fields, row, None, &Ids::default()).iter().all(|one| is_list(&one.field))
}

/// The fields by which a resource is known among those of its kind: its name, and for a simulation what it joins.
fn named_by(kind: Kind) -> impl Iterator<Item = &'static str> {
    let joined = kind.references().iter().filter(|reference| reference.set.is_none());
    std::iter::once("name").chain(joined.map(|reference| reference.key))
}

/// The values of these fields.
fn identity(kind: Kind, name: &Value, fields: &Map<String, Value>) -> String {
    let joined: Vec<&Value> = named_by(kind).skip(1).filter_map(|field| fields.get(field)).collect();
    serde_json::json!([name, joined]).to_string()
}

fn ambiguous(kind: Kind, ids: &[&String], files: &[&String]) -> Failure {
    let noun = kind.noun();
    let ids: Vec<&str> = ids.iter().map(|id| id.as_str()).collect();
    let files: Vec<String> = files.iter().map(|stem| shown(kind, stem)).collect();
    Failure(format!(
        "it is not clear which {noun} is which: of the same name there are {} in the workspace ({}) and {} in the folder \
         ({}). Give each a name of its own.",
        ids.len(),
        ids.join(", "),
        files.len(),
        files.join(", ")
    ))
}
