//! What has to be done so that a workspace is as a folder says.
use std::collections::{BTreeMap, HashMap, HashSet};

use super::api::Api;
use super::compare::{self, Difference};
use super::failure::Failure;
use super::folder::{Folder, needs, shown};
use super::kind::{Kind, operation};
use super::lock::Lock;
use super::matching::{Matched, matched};
use super::workspace::{self, Row, Workspace};

/// Of what uses a resource, so many are named.
const NAMED_MAX: usize = 3;

/// What is done with the resource of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// It is created.
    Create,
    /// These fields are written.
    Update(Vec<Difference>),
    /// Somebody else changed it: nothing is written.
    Conflict(Vec<Difference>),
    /// Somebody else deleted it: it is not created again.
    Gone,
}

/// A deletion: its file was deleted.
#[derive(Debug)]
pub struct Deletion {
    /// The kind.
    pub kind: Kind,
    /// The stem of the file that was.
    pub stem: String,
    /// The resource.
    pub row: Row,
    /// Whether it stays, because somebody else changed it since it was seen, or uses it.
    pub is_conflict: bool,
    /// Whether somebody else changed it since it was seen.
    pub is_changed: bool,
    /// What stays and names it, such as `simulation "Saturday"`.
    pub users: Vec<String>,
    /// The telephone numbers of an assistant, which go with it.
    pub numbers: Vec<String>,
}

impl Deletion {
    /// What uses it, in words; empty if nothing does.
    pub fn used_by(&self) -> String {
        let numbers = self.numbers.iter().map(|number| format!("number {number}"));
        let all: Vec<String> = numbers.chain(self.users.iter().cloned()).collect();
        let more = all.len().saturating_sub(NAMED_MAX);
        let named = all.into_iter().take(NAMED_MAX).collect::<Vec<_>>().join(", ");
        if more > 0 { format!("{named} and {more} more") } else { named }
    }
}

/// What has to be done.
#[derive(Debug)]
pub struct Plan {
    /// For files, in the order in which it is done.
    pub steps: Vec<(Kind, String, Step)>,
    /// In the order in which it is done.
    pub deletions: Vec<Deletion>,
    /// Resources that have no file and never had one.
    pub unseen: Vec<(Kind, Row)>,
    /// Which resource a file is.
    pub matched: Matched,
    /// The workspace.
    pub workspace: Workspace,
    /// The workspaces that the folder was used with, if this one is none of them.
    pub others: Vec<String>,
    /// How many files are as the workspace is.
    pub same: usize,
}

impl Plan {
    /// Whether the folder and the workspace agree.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.deletions.is_empty()
    }

    /// Keeps what is used now: by what could not be written, and by what somebody else made since the plan. Returns the
    /// files of those, and by what they are used.
    pub async fn hold_what_is_used(&mut self, api: &Api) -> Result<Vec<String>, Failure> {
        let now = Workspace::read(api).await?;
        let goes: HashSet<String> =
            self.deletions.iter().filter(|one| !one.is_conflict).map(|one| one.row.id.clone()).collect();
        let rows = |kind| now.rows(kind, &self.matched.stems).into_iter().map(move |row| (kind, row));
        let staying: Vec<(Kind, Row)> =
            Kind::ALL.into_iter().flat_map(rows).filter(|(_, row)| !goes.contains(&row.id)).collect();
        find_numbers(api, &mut self.deletions).await?;
        hold(&mut self.deletions, staying.iter().map(|(kind, row)| (*kind, row)));
        let held = self.deletions.iter().filter(|one| one.is_conflict && goes.contains(&one.row.id));
        Ok(held.map(|one| format!("{} is used by {}", shown(one.kind, &one.stem), one.used_by())).collect())
    }

    /// How many files have this kind of step.
    pub fn count(&self, is_counted: impl Fn(&Step) -> bool) -> usize {
        self.steps.iter().filter(|(.., step)| is_counted(step)).count()
    }
}

/// Reads the workspace and compares. With `force`, what somebody else changed is written over.
pub async fn plan(api: &Api, folder: &Folder, force: bool) -> Result<(Plan, Lock), Failure> {
    let workspace = Workspace::read(api).await?;
    let lock = Lock::read(&folder.path, &workspace.id)?;
    // Where this one is new to the folder, the key may be a wrong one.
    let others = if lock.knows_workspace() { Vec::new() } else { lock.workspaces() };
    let mut matched = matched(&workspace, folder, &lock)?;
    workspace::complete(api, &workspace, folder, &lock, &mut matched, false).await?;
    let mut steps = Vec::new();
    let mut same = 0;
    for kind in Kind::ALL {
        for (stem, entry) in folder.of(kind) {
            let step = match matched.of_files.get(&(kind, stem.clone())) {
                None if matched.deleted.contains(&(kind, stem.clone())) && !force => Step::Gone,
                None => Step::Create,
                Some(row) => {
                    let seen = lock.seen(kind, stem, &row.id);
                    // Where others were seen and this was not, it is somebody else's. One of an `apply` that broke off
                    // lacks only what is attached.
                    let is_strange = seen.is_none() && lock.knows_workspace();
                    let is_unattached = |one: &Difference| {
                        kind.reference(&one.field).is_some_and(|reference| reference.set.is_some())
                            && one.there.as_array().is_some_and(Vec::is_empty)
                    };
                    let all = compare::differences(kind, &entry.fields, row, seen, &matched.ids);
                    let open: Vec<Difference> = all.into_iter().filter(|one| one.here.is_some()).collect();
                    if open.is_empty() {
                        same += 1;
                        continue;
                    }
                    let is_conflict = !force
                        && open.iter().any(|one| one.is_conflict() || (is_strange && !is_unattached(one)));
                    if is_conflict { Step::Conflict(open) } else { Step::Update(open) }
                }
            };
            steps.push((kind, stem.clone(), step));
        }
    }
    let mut deletions = Vec::new();
    let mut unseen = Vec::new();
    for (kind, stem, row) in std::mem::take(&mut matched.without_file) {
        match stem {
            None => unseen.push((kind, row)),
            Some(stem) => {
                let is_changed = is_changed(kind, &stem, &row, &lock);
                let is_conflict = is_changed && !force;
                let (users, numbers) = (Vec::new(), Vec::new());
                deletions.push(Deletion { kind, stem, row, is_conflict, is_changed, users, numbers });
            }
        }
    }
    deletions.sort_by(|one, other| (other.kind, &one.stem).cmp(&(one.kind, &other.stem)));
    find_numbers(api, &mut deletions).await?;
    if !force {
        let held = steps.iter().filter(|(.., step)| matches!(step, Step::Conflict(_)));
        let held =
            held.filter_map(|(kind, stem, _)| Some((*kind, matched.of_files.get(&(*kind, stem.clone()))?)));
        hold(&mut deletions, held.chain(unseen.iter().map(|(kind, row)| (*kind, row))));
    }
    Ok((Plan { steps, deletions, unseen, matched, workspace, others, same }, lock))
}

/// What stays keeps what it names: with an assistant, persona or scenario, its simulations would go. Those come first here.
/// An assistant with a telephone number stays, too: numbers are in no folder, so somebody else has bound it.
fn hold<'a>(deletions: &mut [Deletion], staying: impl Iterator<Item = (Kind, &'a Row)>) {
    let mut users = HashMap::new();
    staying.for_each(|(kind, row)| add_user(&mut users, kind, row));
    for one in deletions {
        if let Some(by) = users.get(&(one.kind, one.stem.clone())) {
            one.users = by.values().cloned().collect();
        }
        one.is_conflict |= !one.users.is_empty() || !one.numbers.is_empty();
        if one.is_conflict {
            add_user(&mut users, one.kind, &one.row);
        }
    }
}

/// What uses a file, by id and in words.
type Users = HashMap<(Kind, String), BTreeMap<String, String>>;

/// Adds a resource to what uses the files that it names.
fn add_user(users: &mut Users, kind: Kind, row: &Row) {
    for file in needs(kind, &row.fields) {
        let shown = format!("{} {:?}", kind.noun(), row.name());
        users.entry(file).or_default().insert(row.id.clone(), shown);
    }
}

/// Finds the telephone numbers of assistants.
async fn find_numbers(api: &Api, deletions: &mut [Deletion]) -> Result<(), Failure> {
    if deletions.iter().all(|one| one.kind != Kind::Assistant) {
        return Ok(());
    }
    let numbers = api.list(operation("list_numbers")).await?;
    for one in deletions.iter_mut().filter(|one| one.kind == Kind::Assistant) {
        let bound = numbers.iter().filter(|number| number["assistant_id"] == one.row.id.as_str());
        one.numbers = bound.map(|bound| bound["number"].as_str().unwrap_or_default().to_owned()).collect();
    }
    Ok(())
}

/// Whether a resource whose file was deleted is another than the one that was seen.
fn is_changed(kind: Kind, stem: &str, row: &Row, lock: &Lock) -> bool {
    let Some(seen) = lock.seen(kind, stem, &row.id) else { return true };
    let has_all = |field: &str| row.fields.contains_key(field);
    let is_other = |field: &String| compare::is_as_seen(kind, field, row, seen) == Some(false);
    row.fields.keys().any(is_other)
        || (kind.fields().iter().any(|field| !has_all(&field.name)) && seen.updated_at != row.updated_at)
}
