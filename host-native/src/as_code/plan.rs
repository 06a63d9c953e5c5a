//! What has to be done so that a workspace is as a folder says.
use std::collections::HashSet;

use super::api::Api;
use super::compare::{self, Difference};
use super::failure::Failure;
use super::folder::{Folder, needs, shown};
use super::kind::{Kind, operation};
use super::lock::Lock;
use super::matching::{Matched, matched};
use super::workspace::{self, Row, Workspace};

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
    /// Whether somebody else changed it since it was seen, or uses it.
    pub is_conflict: bool,
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
    /// How many files are as the workspace is.
    pub same: usize,
}

impl Plan {
    /// Whether the folder and the workspace agree.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.deletions.is_empty()
    }

    /// Keeps what is used now: by what could not be written, and by what somebody else made since the plan. Returns the
    /// files of those.
    pub async fn hold_what_is_used(&mut self, api: &Api) -> Result<Vec<String>, Failure> {
        let now = Workspace::read(api).await?;
        let goes: HashSet<String> =
            self.deletions.iter().filter(|one| !one.is_conflict).map(|one| one.row.id.clone()).collect();
        let rows = |kind| now.rows(kind, &self.matched.stems).into_iter().map(move |row| (kind, row));
        let staying: Vec<(Kind, Row)> =
            Kind::ALL.into_iter().flat_map(rows).filter(|(_, row)| !goes.contains(&row.id)).collect();
        hold_what_has_a_number(api, &mut self.deletions).await?;
        hold(&mut self.deletions, staying.iter().map(|(kind, row)| (*kind, row)));
        let held = self.deletions.iter().filter(|one| one.is_conflict && goes.contains(&one.row.id));
        Ok(held.map(|one| shown(one.kind, &one.stem)).collect())
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
                let is_conflict = !force && is_changed(kind, &stem, &row, &lock);
                deletions.push(Deletion { kind, stem, row, is_conflict });
            }
        }
    }
    deletions.sort_by(|one, other| (other.kind, &one.stem).cmp(&(one.kind, &other.stem)));
    if !force {
        hold_what_has_a_number(api, &mut deletions).await?;
        let held = steps.iter().filter(|(.., step)| matches!(step, Step::Conflict(_)));
        let held =
            held.filter_map(|(kind, stem, _)| Some((*kind, matched.of_files.get(&(*kind, stem.clone()))?)));
        hold(&mut deletions, held.chain(unseen.iter().map(|(kind, row)| (*kind, row))));
    }
    Ok((Plan { steps, deletions, unseen, matched, workspace, same }, lock))
}

/// What stays keeps what it names: with an assistant, persona or scenario, its simulations would go. Those come first here.
fn hold<'a>(deletions: &mut [Deletion], staying: impl Iterator<Item = (Kind, &'a Row)>) {
    let mut needed: HashSet<(Kind, String)> =
        staying.flat_map(|(kind, row)| needs(kind, &row.fields)).collect();
    for one in deletions {
        one.is_conflict |= needed.contains(&(one.kind, one.stem.clone()));
        if one.is_conflict {
            needed.extend(needs(one.kind, &one.row.fields));
        }
    }
}

/// An assistant with a telephone number stays: numbers are in no folder, so somebody else has bound it.
async fn hold_what_has_a_number(api: &Api, deletions: &mut [Deletion]) -> Result<(), Failure> {
    if deletions.iter().all(|one| one.kind != Kind::Assistant) {
        return Ok(());
    }
    let numbers = api.list(operation("list_numbers")).await?;
    for one in deletions.iter_mut().filter(|one| one.kind == Kind::Assistant) {
        one.is_conflict |= numbers.iter().any(|number| number["assistant_id"] == one.row.id.as_str());
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
