//! What a workspace has, and which file is which of its resources.
use std::collections::{BTreeMap, HashMap, HashSet};

use futures_util::future::try_join_all;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::{Map, Value};

use super::api::{Api, Extras};
use super::compare;
use super::failure::Failure;
use super::folder::{Folder, names, shown};
use super::kind::{Kind, Verb, filled, operation};
use super::lock::{Lock, Seen};

/// Requests at once.
pub const REQUESTS_AT_ONCE: usize = 8;

/// A resource as a service has it.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its id.
    pub id: String,
    /// Its revision, where it has one.
    pub revision: Option<i64>,
    /// When it last changed.
    pub updated_at: String,
    /// Its fields, with references as the stems of files; those without a file as ids.
    pub fields: Map<String, Value>,
    /// The fields as the service names and fills them.
    raw: Value,
}

impl Row {
    /// Its name.
    pub fn name(&self) -> &str {
        self.raw["name"].as_str().unwrap_or_default()
    }

    /// Names what it refers to by the stems that are known by now.
    pub fn resolve(&mut self, kind: Kind, stems: &Stems) {
        for reference in kind.references() {
            match self.fields.get_mut(reference.key) {
                Some(Value::Array(items)) => items.iter_mut().for_each(|item| *item = named(item, stems)),
                Some(value) => *value = named(value, stems),
                None => {}
            }
        }
    }

    /// A simulation that had no name of its own has none as long as it does not change, whoever else is renamed.
    fn keep_default_name(&mut self, seen: &Seen) {
        if seen.updated_at == self.updated_at && seen.is_as_seen("name", &Value::Null) == Some(true) {
            self.fields.insert("name".to_owned(), Value::Null);
        }
    }

    /// What it is, in words.
    pub fn title(&self) -> String {
        format!("{:?} ({})", self.name(), self.id)
    }
}

/// The stems of what has an id.
#[derive(Debug, Default, Clone)]
pub struct Stems(HashMap<String, String>);

impl Stems {
    /// The stem of a resource.
    pub fn get(&self, id: &str) -> Option<&str> {
        self.0.get(id).map(String::as_str)
    }

    /// A resource has a file.
    pub fn insert(&mut self, id: &str, stem: &str) {
        self.0.insert(id.to_owned(), stem.to_owned());
    }
}

/// The resources of a workspace, by kind.
#[derive(Debug)]
pub struct Workspace {
    /// Its id.
    pub id: String,
    rows: BTreeMap<Kind, Vec<Value>>,
    /// The names of personas and scenarios, by id.
    names: HashMap<String, String>,
}

impl Workspace {
    /// Reads it: pages of lists, and nothing one by one.
    pub async fn read(api: &Api) -> Result<Self, Failure> {
        let workspace = api.call(operation("get_workspace"), "", Extras::default());
        let lists = try_join_all(Kind::ALL.map(|kind| api.list(kind.operation(Verb::List))));
        let (workspace, lists) = tokio::join!(workspace, lists);
        let workspace = workspace?.success()?;
        let id = workspace["id"]
            .as_str()
            .ok_or_else(|| Failure::new("this is no service of Sidetone"))?
            .to_owned();
        let rows: BTreeMap<Kind, Vec<Value>> = Kind::ALL.into_iter().zip(lists?).collect();
        let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let named = [Kind::Persona, Kind::Scenario].into_iter().filter_map(|kind| rows.get(&kind)).flatten();
        let names = named.map(|row| (text(row, "id"), text(row, "name"))).collect();
        Ok(Self { id, rows, names })
    }

    /// Whether all that is referred to is there: lists are read at once, and somebody may create or delete meanwhile.
    pub fn is_whole(&self) -> bool {
        let ids: HashSet<&str> = self.rows.values().flatten().filter_map(|raw| raw["id"].as_str()).collect();
        self.rows.iter().all(|(kind, rows)| {
            kind.references().iter().all(|reference| {
                rows.iter().flat_map(|raw| names(&raw[reference.field])).all(|id| ids.contains(id))
            })
        })
    }

    /// Its resources of a kind, as files have them.
    pub fn rows(&self, kind: Kind, stems: &Stems) -> Vec<Row> {
        self.rows.get(&kind).into_iter().flatten().map(|raw| self.row(kind, raw.clone(), stems)).collect()
    }

    /// A row as files have it.
    pub fn row(&self, kind: Kind, raw: Value, stems: &Stems) -> Row {
        let mut fields = Map::new();
        for field in kind.fields() {
            let value = match kind.reference(&field.name) {
                Some(reference) => match &raw[reference.field] {
                    Value::Array(ids) => Value::Array(ids.iter().map(|id| named(id, stems)).collect()),
                    id => named(id, stems),
                },
                None if raw.get(&field.name).is_none() => continue,
                None => filled(&field.schema, &raw[&field.name]),
            };
            fields.insert(field.name.clone(), value);
        }
        if kind == Kind::Simulation && self.has_default_name(&raw) {
            fields.insert("name".to_owned(), Value::Null);
        }
        let text = |name: &str| raw[name].as_str().unwrap_or_default().to_owned();
        let revision = kind.has_revisions().then(|| raw["revision"].as_i64()).flatten();
        Row { id: text("id"), revision, updated_at: text("updated_at"), fields, raw }
    }

    /// The name that a simulation has without one of its own.
    fn has_default_name(&self, raw: &Value) -> bool {
        let name_of = |field: &str| raw[field].as_str().and_then(|id| self.names.get(id));
        match (name_of("persona_id"), name_of("scenario_id")) {
            // Either may have been renamed since: the name was made of those of then.
            (Some(persona), Some(scenario)) => raw["name"].as_str().is_some_and(|name| {
                name.strip_prefix(persona.as_str()).is_some_and(|rest| rest.starts_with(" × "))
                    || name.strip_suffix(scenario.as_str()).is_some_and(|rest| rest.ends_with(" × "))
            }),
            _ => false,
        }
    }

    /// The names of what was created or changed since.
    pub fn learn_name(&mut self, raw: &Value) {
        if let (Some(id), Some(name)) = (raw["id"].as_str(), raw["name"].as_str()) {
            self.names.insert(id.to_owned(), name.to_owned());
        }
    }
}

fn named(id: &Value, stems: &Stems) -> Value {
    match id.as_str().and_then(|id| stems.get(id)) {
        Some(stem) => Value::String(stem.to_owned()),
        None => id.clone(),
    }
}

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
}

/// Finds the resource of each file: the one that the lock knows, else the only one of its name.
pub fn matched(workspace: &Workspace, folder: &Folder, lock: &Lock) -> Result<Matched, Failure> {
    let mut matched = Matched::default();
    for kind in Kind::ALL {
        let mut rows: BTreeMap<String, Row> =
            workspace.rows(kind, &matched.stems).into_iter().map(|row| (row.id.clone(), row)).collect();
        let mut found = Vec::new();
        let mut unknown = Vec::new();
        for stem in folder.of(kind).keys() {
            let Some(seen) = lock.get(kind, stem) else {
                unknown.push(stem);
                continue;
            };
            match rows.remove(&seen.id) {
                Some(mut row) => {
                    row.keep_default_name(seen);
                    found.push((stem, row));
                }
                // Somebody may have made it again.
                None => unknown.push(stem),
            }
        }
        // A file that was renamed is found by its name, too.
        let mut by_name: HashMap<String, Vec<String>> = HashMap::new();
        for row in rows.values() {
            by_name.entry(identity(kind, &row.fields)).or_default().push(row.id.clone());
        }
        let mut wanted: BTreeMap<String, Vec<&String>> = BTreeMap::new();
        for stem in unknown {
            let fields = folder.of(kind).get(stem).map(|entry| &entry.fields);
            wanted
                .entry(fields.map(|fields| identity(kind, fields)).unwrap_or_default())
                .or_default()
                .push(stem);
        }
        for (name, files) in &wanted {
            match (by_name.get(name).map_or(&[][..], Vec::as_slice), files.as_slice()) {
                ([], files) => {
                    let known = files.iter().filter(|stem| lock.get(kind, stem).is_some());
                    matched.deleted.extend(known.map(|stem| (kind, (*stem).clone())));
                }
                ([id], [stem]) => {
                    if let Some(row) = rows.remove(id) {
                        found.push((*stem, row));
                    }
                }
                // An `apply` that broke off made some of them: those are as their files say.
                (ids, files) => {
                    let mut free = files.to_vec();
                    for id in ids {
                        let is_of = |stem: &&String| {
                            let both = folder.of(kind).get(stem.as_str()).zip(rows.get(id));
                            both.is_some_and(|(entry, row)| is_made_of(kind, &entry.fields, row))
                        };
                        let Some(place) = free.iter().position(is_of) else {
                            return Err(ambiguous(kind, ids, files));
                        };
                        let stem = free.remove(place);
                        found.extend(rows.remove(id).map(|row| (stem, row)));
                    }
                }
            }
        }
        for (stem, row) in found {
            matched.stems.insert(&row.id, stem);
            matched.of_files.insert((kind, stem.clone()), row);
        }
        let known: HashMap<String, String> =
            lock.stems(kind).map(|(stem, seen)| (seen.id.clone(), stem.to_owned())).collect();
        for (id, row) in rows {
            let stem = known.get(&id).cloned();
            if let Some(stem) = &stem {
                matched.stems.insert(&id, stem);
            }
            matched.without_file.push((kind, stem, row));
        }
    }
    Ok(matched)
}

/// Whether it has all that the file says, but perhaps not yet what is attached.
fn is_made_of(kind: Kind, fields: &Map<String, Value>, row: &Row) -> bool {
    let is_list = |name: &str| kind.reference(name).is_some_and(|reference| reference.set.is_some());
    compare::differences(kind, fields, row, None).iter().all(|one| is_list(&one.field))
}

/// By what a resource is known that no lock has: its name, and for a simulation what it joins.
fn identity(kind: Kind, fields: &Map<String, Value>) -> String {
    let name = fields.get("name").unwrap_or(&Value::Null);
    let joined = kind.references().iter().filter(|reference| reference.set.is_none());
    let joined: Vec<&Value> = joined.filter_map(|reference| fields.get(reference.key)).collect();
    serde_json::json!([name, joined]).to_string()
}

fn ambiguous(kind: Kind, ids: &[String], files: &[&String]) -> Failure {
    let noun = kind.noun();
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

/// Reads what lists leave out, where it may differ from the files; `all` of it also for resources without a file.
pub async fn complete(
    api: &Api,
    workspace: &Workspace,
    folder: &Folder,
    lock: &Lock,
    matched: &mut Matched,
    all: bool,
) -> Result<(), Failure> {
    let mut missing = Vec::new();
    for ((kind, stem), row) in &mut matched.of_files {
        let Some(field) = kind.fields().iter().find(|field| kind.is_left_out_of_lists(&field.name)) else {
            continue;
        };
        let file = folder.of(*kind).get(stem).and_then(|entry| entry.fields.get(&field.name));
        match (lock.seen(*kind, stem, &row.id), file) {
            (Some(seen), Some(file)) if is_in_sync(seen, row, &field.name, file) => {
                row.fields.insert(field.name.clone(), file.clone());
            }
            _ => missing.push((*kind, row.id.clone())),
        }
    }
    if all {
        let left_out = |kind: Kind| kind.fields().iter().any(|field| kind.is_left_out_of_lists(&field.name));
        let without = matched.without_file.iter().filter(|(kind, ..)| left_out(*kind));
        missing.extend(without.map(|(kind, _, row)| (*kind, row.id.clone())));
    }
    let stems = matched.stems.clone();
    let read = stream::iter(missing).map(|(kind, id)| {
        let stems = &stems;
        async move {
            let answer = api.call(kind.operation(Verb::Get), &id, Extras::default()).await?;
            Ok::<_, Failure>((id, workspace.row(kind, answer.success()?, stems)))
        }
    });
    let read: HashMap<String, Row> = read.buffer_unordered(REQUESTS_AT_ONCE).try_collect().await?;
    let rows = matched.of_files.values_mut().chain(matched.without_file.iter_mut().map(|(.., row)| row));
    for row in rows {
        if let Some(whole) = read.get(&row.id) {
            *row = whole.clone();
        }
    }
    Ok(())
}

/// Whether the service still has what the file has.
fn is_in_sync(seen: &Seen, row: &Row, field: &str, file: &Value) -> bool {
    seen.id == row.id
        && seen.updated_at == row.updated_at
        && seen.is_as_written(field, file)
        && seen.is_as_seen(field, file) == Some(true)
}
