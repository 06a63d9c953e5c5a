//! What a workspace has.
use std::collections::{BTreeMap, HashMap, HashSet};

use futures_util::future::try_join_all;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::{Map, Value};

use super::api::{Api, Extras};
use super::failure::Failure;
use super::folder::{Folder, names};
use super::kind::{Kind, Verb, filled, operation};
use super::lock::{Lock, Seen};
use super::matching::Matched;

/// Requests at once.
pub const REQUESTS_AT_ONCE: usize = 8;
/// What stands between the names of persona and scenario in the name of a simulation that has none of its own.
const JOINED: &str = " × ";

/// How sure it is that a simulation has no name of its own, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unnamed {
    /// It is called by the names of its persona and its scenario.
    Surely,
    /// By one of them: the other one may have been renamed since.
    Probably,
    /// By two names, which these may have had.
    Perhaps,
}

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
    /// Of a simulation: whether it may have no name of its own.
    pub unnamed: Option<Unnamed>,
    /// The fields as the service names and fills them.
    raw: Value,
}

impl Row {
    /// Its name.
    pub fn name(&self) -> &str {
        self.raw["name"].as_str().unwrap_or_default()
    }

    /// What the service keeps of a field, whatever files and others are called now: ids, and the name that a simulation has.
    pub fn kept(&self, kind: Kind, field: &str) -> Option<&Value> {
        match kept_as(kind, field) {
            Some(name) => self.raw.get(name),
            None => self.fields.get(field),
        }
    }

    /// Has what `earlier` had of a field.
    pub fn take(&mut self, kind: Kind, field: &str, earlier: &Self) {
        if let Some(value) = earlier.fields.get(field) {
            self.fields.insert(field.to_owned(), value.clone());
        }
        if let Some(name) = kept_as(kind, field)
            && let Some(value) = earlier.raw.get(name)
            && let Some(raw) = self.raw.as_object_mut()
        {
            raw.insert(name.to_owned(), value.clone());
        }
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

    /// It has no name of its own: its file says so.
    pub fn leave_unnamed(&mut self) {
        self.fields.insert("name".to_owned(), Value::Null);
    }

    /// In a lock of an earlier version, a simulation without a name of its own has none: so it stays until it changes.
    pub fn keep_default_name(&mut self, seen: &Seen) {
        if seen.updated_at == self.updated_at && seen.is_as_seen("name", &Value::Null) == Some(true) {
            self.leave_unnamed();
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

/// The ids of what files are.
#[derive(Debug, Default, Clone)]
pub struct Ids(HashMap<(Kind, String), String>);

impl Ids {
    /// The id of what a file is.
    pub fn get(&self, kind: Kind, stem: &str) -> Option<&str> {
        self.0.get(&(kind, stem.to_owned())).map(String::as_str)
    }

    /// A file is this resource.
    pub fn insert(&mut self, kind: Kind, stem: &str, id: &str) {
        self.0.insert((kind, stem.to_owned()), id.to_owned());
    }

    /// What a file has in a field, with ids in place of the names of files, which change.
    pub fn in_field(&self, kind: Kind, field: &str, value: &Value) -> Value {
        let Some(reference) = kind.reference(field) else { return value.clone() };
        let id_of = |name: &Value| match name.as_str().and_then(|stem| self.get(reference.kind, stem)) {
            Some(id) => Value::String(id.to_owned()),
            None => name.clone(),
        };
        match value {
            Value::Array(names) => Value::Array(names.iter().map(id_of).collect()),
            name => id_of(name),
        }
    }
}

impl FromIterator<((Kind, String), String)> for Ids {
    fn from_iter<I: IntoIterator<Item = ((Kind, String), String)>>(all: I) -> Self {
        Self(all.into_iter().collect())
    }
}

/// The resources of a workspace, by kind.
#[derive(Debug)]
pub struct Workspace {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
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
        let workspace = workspace?;
        let other = workspace.failure();
        let workspace = workspace.success()?;
        let id = workspace["id"].as_str().ok_or(other)?.to_owned();
        let name = workspace["name"].as_str().unwrap_or(&id).to_owned();
        let rows: BTreeMap<Kind, Vec<Value>> = Kind::ALL.into_iter().zip(lists?).collect();
        let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let named = [Kind::Persona, Kind::Scenario].into_iter().filter_map(|kind| rows.get(&kind)).flatten();
        let names = named.map(|row| (text(row, "id"), text(row, "name"))).collect();
        Ok(Self { id, name, rows, names })
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
        let unnamed = (kind == Kind::Simulation).then(|| self.unnamed(&raw)).flatten();
        if unnamed == Some(Unnamed::Surely) {
            fields.insert("name".to_owned(), Value::Null);
        }
        let text = |name: &str| raw[name].as_str().unwrap_or_default().to_owned();
        let revision = kind.has_revisions().then(|| raw["revision"].as_i64()).flatten();
        Row { id: text("id"), revision, updated_at: text("updated_at"), fields, unnamed, raw }
    }

    /// Whether a simulation may have no name of its own. Its name was made of those of persona and scenario of then.
    fn unnamed(&self, raw: &Value) -> Option<Unnamed> {
        let name = raw["name"].as_str()?;
        let name_of = |field: &str| raw[field].as_str().and_then(|id| self.names.get(id)).map(String::as_str);
        let (persona, scenario) = (name_of("persona_id")?, name_of("scenario_id")?);
        let rest = name.strip_prefix(persona).and_then(|rest| rest.strip_prefix(JOINED));
        let ends = name.strip_suffix(scenario).is_some_and(|rest| rest.ends_with(JOINED));
        match rest {
            Some(rest) if rest == scenario => Some(Unnamed::Surely),
            Some(_) => Some(Unnamed::Probably),
            None if ends => Some(Unnamed::Probably),
            None => name.contains(JOINED).then_some(Unnamed::Perhaps),
        }
    }

    /// The names of what was created or changed since.
    pub fn learn_name(&mut self, raw: &Value) {
        if let (Some(id), Some(name)) = (raw["id"].as_str(), raw["name"].as_str()) {
            self.names.insert(id.to_owned(), name.to_owned());
        }
    }
}

/// The field of the service that keeps what a file has under another name, or in other words.
fn kept_as(kind: Kind, field: &str) -> Option<&'static str> {
    match kind.reference(field) {
        Some(reference) => Some(reference.field),
        None => (kind == Kind::Simulation && field == "name").then_some("name"),
    }
}

fn named(id: &Value, stems: &Stems) -> Value {
    match id.as_str().and_then(|id| stems.get(id)) {
        Some(stem) => Value::String(stem.to_owned()),
        None => id.clone(),
    }
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
