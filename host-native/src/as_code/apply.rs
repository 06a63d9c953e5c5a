//! `sidetone apply`: makes a workspace as a folder says, and can be repeated after it broke off.
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::time::Instant;

use futures_util::{StreamExt, stream};
use serde_json::{Map, Value};
use sidetone_engine::base::hash::sha256_hex;

use super::api::{Api, Extras};
use super::compare::{self, Changed, Difference};
use super::failure::Failure;
use super::folder::{Entry, Folder, names, shown};
use super::kind::{Kind, Verb, operation};
use super::lock::Lock;
use super::plan::{Deletion, Plan, Step, plan};
use super::show::{self, Paint};
use super::workspace::{Ids, REQUESTS_AT_ONCE, Row, Stems, Workspace};
use super::{DONE, FAILED, FINDINGS, Wishes, say};
use crate::service_client::Patience;
use crate::text::clean;

/// Times that something is created under a key whose resource was deleted since.
const KEYS_MAX: u32 = 20;

/// What came of a step.
enum Outcome {
    Done(Value),
    /// Of the resource with this id.
    Conflict(String, Vec<Difference>),
    Failed(String),
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure.0)
    }
}

#[derive(Default)]
struct Tally {
    created: usize,
    changed: usize,
    deleted: usize,
    conflicts: usize,
    failed: usize,
}

/// Prints the plan, asks, and does it. Returns the exit code.
pub async fn apply(api: &Api, folder: &Folder, wishes: Wishes, yes: bool) -> Result<u8, Failure> {
    let started = Instant::now();
    let paint = Paint::of(&std::io::stdout());
    let (mut plan, mut lock) = plan(api, folder, wishes.force).await?;
    say(&show::heading(&plan, api.place(), paint))?;
    say(&show::plan(&plan, wishes.prune, paint))?;
    say(&format!("{}\n", show::summary(&plan, wishes.prune)))?;
    let can_do = plan.count(|step| matches!(step, Step::Create | Step::Update(_))) > 0
        || (wishes.prune && plan.deletions.iter().any(|deletion| !deletion.is_conflict));
    if can_do && !yes && !is_agreed(&show::place(&plan, api.place()))? {
        say("Nothing was changed.\n")?;
        return Ok(FAILED);
    }
    if can_do {
        lock.prepare()?;
    }
    let mut tally = Tally {
        conflicts: plan.count(|step| matches!(step, Step::Conflict(_) | Step::Gone)),
        ..Tally::default()
    };
    remember_the_same(folder, &plan, &mut lock)?;
    let done = carry_out(api, folder, wishes, &mut plan, &mut lock, &mut tally, paint).await;
    lock.finish()?;
    done?;
    say(&format!(
        "{} created, {} changed, {} deleted, {} changed by somebody else, {} failed. {:.1} s\n",
        tally.created,
        tally.changed,
        tally.deleted,
        tally.conflicts,
        tally.failed,
        started.elapsed().as_secs_f64()
    ))?;
    Ok(match tally {
        Tally { failed: 1.., .. } => FAILED,
        Tally { conflicts: 1.., .. } => FINDINGS,
        _ => DONE,
    })
}

/// Asks on a terminal. Elsewhere nobody could answer: whoever pipes into it has decided.
fn is_agreed(place: &str) -> Result<bool, Failure> {
    let input = std::io::stdin();
    if !input.is_terminal() {
        return Ok(true);
    }
    say(&format!("Apply to {place}? [y/N] "))?;
    let mut line = String::new();
    input.lock().read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

/// What is already as the files say is seen, too.
fn remember_the_same(folder: &Folder, plan: &Plan, lock: &mut Lock) -> Result<(), Failure> {
    lock.rename(plan.matched.files())?;
    let differ: std::collections::HashSet<(Kind, &str)> =
        plan.steps.iter().map(|(kind, stem, _)| (*kind, stem.as_str())).collect();
    for ((kind, stem), row) in &plan.matched.of_files {
        if let Some(entry) = folder.of(*kind).get(stem)
            && !differ.contains(&(*kind, stem))
        {
            lock.set_seen(*kind, stem, compare::seen(*kind, row, &entry.fields, &plan.matched.ids))?;
        }
    }
    Ok(())
}

async fn carry_out(
    api: &Api,
    folder: &Folder,
    wishes: Wishes,
    plan: &mut Plan,
    lock: &mut Lock,
    tally: &mut Tally,
    paint: Paint,
) -> Result<(), Failure> {
    let mut ids: Ids =
        plan.matched.of_files.iter().map(|(file, row)| (file.clone(), row.id.clone())).collect();
    for kind in Kind::ALL {
        let due = plan.steps.iter().filter(|(of, ..)| *of == kind);
        let due: Vec<(&String, &Step, &Entry, Option<&Row>)> = due
            .filter_map(|(_, stem, step)| {
                let row = plan.matched.of_files.get(&(kind, stem.clone()));
                Some((stem, step, folder.of(kind).get(stem)?, row))
            })
            .filter(|(_, step, ..)| matches!(step, Step::Create | Step::Update(_)))
            .collect();
        let (known, stems, workspace) = (ids.clone(), plan.matched.stems.clone(), &plan.workspace);
        let mut running = stream::iter(due)
            .map(|(stem, step, entry, row)| {
                let (ids, stems, force) = (&known, &stems, wishes.force);
                let writer = Writer { api, kind, stem, entry, ids, stems, workspace, force };
                async move {
                    let outcome = match (step, row) {
                        (Step::Update(fields), Some(row)) => writer.update(row, fields).await,
                        _ => writer.create().await,
                    };
                    (stem, step, entry, outcome.unwrap_or_else(Outcome::from))
                }
            })
            .buffer_unordered(REQUESTS_AT_ONCE);
        let (mut written, mut learned) = (Vec::new(), Vec::new());
        while let Some((stem, step, entry, outcome)) = running.next().await {
            let file = shown(kind, stem);
            match outcome {
                Outcome::Done(raw) => {
                    learned.push(serde_json::json!({"id": raw["id"], "name": raw["name"]}));
                    let id = raw["id"].as_str().unwrap_or_default().to_owned();
                    plan.matched.stems.insert(&id, stem);
                    ids.insert(kind, stem, &id);
                    let mut row = plan.workspace.row(kind, raw, &plan.matched.stems);
                    let planned = plan.matched.of_files.get(&(kind, stem.clone()));
                    if let (Step::Update(sent), Some(planned)) = (step, planned) {
                        forget_the_unsent(kind, &mut row, sent, planned);
                    }
                    lock.set_seen(kind, stem, compare::seen(kind, &row, &entry.fields, &ids))?;
                    let is_new = *step == Step::Create;
                    if is_new {
                        tally.created += 1
                    } else {
                        tally.changed += 1
                    };
                    written.push(format!("{} {file}\n", if is_new { "created" } else { "changed" }));
                    if written.len() >= 100 {
                        say(&written.drain(..).collect::<String>())?;
                    }
                }
                Outcome::Conflict(id, fields) => {
                    tally.conflicts += 1;
                    // It may be new, and is there for what names it.
                    plan.matched.stems.insert(&id, stem);
                    ids.insert(kind, stem, &id);
                    let mut text = paint.red(&format!("{file} was changed by somebody else meanwhile"));
                    text.push('\n');
                    fields.iter().for_each(|one| text.push_str(&show::difference(kind, one, paint)));
                    say(&text)?;
                }
                Outcome::Failed(problem) => {
                    tally.failed += 1;
                    std::io::stderr().write_all(
                        format!("{}\n", paint.red(&format!("{file}: {}", clean(&problem)))).as_bytes(),
                    )?;
                }
            }
        }
        drop(running);
        learned.iter().for_each(|named| plan.workspace.learn_name(named));
        say(&written.concat())?;
    }
    let may_delete = wishes.prune && plan.deletions.iter().any(|one| !one.is_conflict);
    if may_delete && tally.failed > 0 {
        // What replaces it may not be there.
        say(&paint.red("Nothing is deleted, because something failed: run it again.\n"))?;
    } else if may_delete {
        if !wishes.force {
            hold_what_is_used(api, plan, paint).await?;
        }
        for place in 0..plan.deletions.len() {
            delete(api, plan, place, wishes.force, lock, tally, paint).await?;
        }
    }
    if wishes.prune {
        tally.conflicts += plan.deletions.iter().filter(|deletion| deletion.is_conflict).count();
    }
    Ok(())
}

/// What was not sent counts as it was compared: a change since is somebody else's, and is not known yet.
fn forget_the_unsent(kind: Kind, row: &mut Row, sent: &[Difference], planned: &Row) {
    for field in planned.fields.keys() {
        let now = row.kept(kind, field);
        let is_other = now.is_some() && now != planned.kept(kind, field);
        if is_other && sent.iter().all(|one| one.field != *field) {
            row.take(kind, field, planned);
            row.updated_at.clone_from(&planned.updated_at);
        }
    }
}

/// Keeps what is used by now, and says so.
async fn hold_what_is_used(api: &Api, plan: &mut Plan, paint: Paint) -> Result<(), Failure> {
    for used in plan.hold_what_is_used(api).await? {
        say(&paint.red(&clean(&format!("{used} meanwhile; it was not deleted\n"))))?;
    }
    Ok(())
}

/// Deletes what the plan has at this place of its deletions, unless it is held, or somebody else has changed it.
async fn delete(
    api: &Api,
    plan: &mut Plan,
    place: usize,
    force: bool,
    lock: &mut Lock,
    tally: &mut Tally,
    paint: Paint,
) -> Result<(), Failure> {
    let mut patience = Patience::default();
    let (answer, kind, stem) = loop {
        // While the service was waited for, somebody may have begun to use it.
        if !patience.is_fresh() && !force {
            hold_what_is_used(api, plan, paint).await?;
        }
        let Some(deletion) = plan.deletions.get(place).filter(|one| !one.is_conflict) else { return Ok(()) };
        let Deletion { kind, stem, row, .. } = deletion;
        let fresh = fresh(api, *kind, &row.id).await?;
        let is_other = fresh.as_ref().is_some_and(|raw| raw["updated_at"] != row.updated_at.as_str());
        if is_other && !force {
            let file = shown(*kind, stem);
            return spare(api, plan, place, &file, paint).await;
        }
        let revision = if force { None } else { row.revision };
        let extras = Extras { revision, ..Extras::default() };
        match api.call_once(kind.operation(Verb::Delete), &row.id, extras).await? {
            Ok(answer) => break (answer, *kind, stem.clone()),
            Err(unanswered) => api.wait(&mut patience, unanswered).await?,
        }
    };
    let file = shown(kind, &stem);
    match answer.status {
        404 | 204 => {
            lock.set(kind, &stem, None)?;
            tally.deleted += 1;
            say(&format!("deleted {file}\n"))
        }
        409 if answer.code() == "revision_conflict" => spare(api, plan, place, &file, paint).await,
        _ => {
            tally.failed += 1;
            let problem = answer.success().err().map(|failure| failure.0).unwrap_or_default();
            eprintln!("{}", paint.red(&format!("{file}: {}", clean(&problem))));
            Ok(())
        }
    }
}

/// Keeps what somebody else has changed, and what it uses: the service deletes simulations with their assistant.
async fn spare(api: &Api, plan: &mut Plan, place: usize, file: &str, paint: Paint) -> Result<(), Failure> {
    if let Some(one) = plan.deletions.get_mut(place) {
        // The end of all deletions counts it.
        (one.is_conflict, one.is_changed) = (true, true);
    }
    say(&paint.red(&format!("{file} was changed by somebody else meanwhile; it was not deleted\n")))?;
    hold_what_is_used(api, plan, paint).await
}

/// The resource as it is now; `None` if it is gone.
async fn fresh(api: &Api, kind: Kind, id: &str) -> Result<Option<Value>, Failure> {
    let answer = api.call(kind.operation(Verb::Get), id, Extras::default()).await?;
    if answer.status == 404 { Ok(None) } else { answer.success().map(Some) }
}

/// Writes one resource.
struct Writer<'a> {
    api: &'a Api,
    kind: Kind,
    stem: &'a str,
    entry: &'a Entry,
    ids: &'a Ids,
    stems: &'a Stems,
    workspace: &'a Workspace,
    force: bool,
}

impl Writer<'_> {
    async fn create(&self) -> Result<Outcome, Failure> {
        let body = Value::Object(self.body(&self.entry.stated)?);
        let operation = self.kind.operation(Verb::Create);
        for number in 0..KEYS_MAX {
            let key = sha256_hex(
                serde_json::json!([self.workspace.id, self.kind.folder(), self.stem, body, number])
                    .to_string()
                    .as_bytes(),
            );
            let extras = Extras { body: Some(&body), key: Some(&key), revision: None };
            let answer = self.api.call(operation, "", extras).await?;
            // It was created with this key, and deleted since.
            if answer.is_replay && answer.status == 404 {
                continue;
            }
            let is_replay = answer.is_replay;
            let mut raw = answer.success()?;
            if is_replay {
                // Deleted since, or made into another one.
                match fresh(self.api, self.kind, raw["id"].as_str().unwrap_or_default()).await? {
                    Some(now) if now["updated_at"] == raw["updated_at"] => raw = now,
                    _ => continue,
                }
            }
            let attached: Vec<&str> = self.attachments().filter(|key| self.attaches(key)).collect();
            return self.attach(raw, &attached).await;
        }
        Err(Failure::new("was created and changed too often today; try again tomorrow, or change it"))
    }

    async fn update(&self, row: &Row, fields: &[Difference]) -> Result<Outcome, Failure> {
        let changed: Map<String, Value> = fields
            .iter()
            .filter(|one| self.attachments().all(|key| key != one.field))
            .filter_map(|one| Some((one.field.clone(), one.here.clone()?)))
            .collect();
        let body = Value::Object(self.body(&changed)?);
        let mut patience = Patience::default();
        let raw = loop {
            // Where the service takes no revision, the time of the last change is looked at as late as possible: before each
            // try, as minutes may pass between two.
            let Some(now) = fresh(self.api, self.kind, &row.id).await? else {
                return Ok(deleted_meanwhile());
            };
            let is_other = now["updated_at"] != row.updated_at.as_str();
            // A try whose answer was lost may have written it.
            let is_ours = !patience.is_fresh()
                && self.has(&now, &changed)
                && (self.force || self.is_attached_as_planned(&now, row, fields));
            if is_other && is_ours {
                break now;
            }
            if is_other && !self.force {
                return Ok(self.conflict(row, fields, &now));
            }
            if changed.is_empty() {
                break now;
            }
            let extras = Extras { body: Some(&body), revision: self.revision(&now), key: None };
            let answer = match self.api.call_once(self.kind.operation(Verb::Update), &row.id, extras).await? {
                Ok(answer) => answer,
                Err(unanswered) => {
                    self.api.wait(&mut patience, unanswered).await?;
                    continue;
                }
            };
            if answer.code() != "revision_conflict" {
                break answer.success()?;
            }
            // One that was given up may have come late.
            match fresh(self.api, self.kind, &row.id).await? {
                Some(now) if self.has(&now, &changed) && self.is_attached_as_planned(&now, row, fields) => {
                    break now;
                }
                Some(now) => return Ok(self.conflict(row, fields, &now)),
                None => return Ok(deleted_meanwhile()),
            }
        };
        let attached: Vec<&str> =
            self.attachments().filter(|key| fields.iter().any(|one| one.field == *key)).collect();
        self.attach(raw, &attached).await
    }

    /// Sets the lists of what is attached.
    async fn attach(&self, mut raw: Value, keys: &[&str]) -> Result<Outcome, Failure> {
        for key in keys {
            let Some(reference) = self.kind.reference(key) else { continue };
            let Some(set) = reference.set else { continue };
            let ids = self.ids_of(self.entry.fields.get(*key).unwrap_or(&Value::Null), reference.kind)?;
            // One that is named twice counts once.
            let mut once: Vec<String> = Vec::new();
            for id in ids {
                if !once.contains(&id) {
                    once.push(id);
                }
            }
            let ids = Value::from(once);
            let body = serde_json::json!({ (reference.field): ids });
            let id = raw["id"].as_str().unwrap_or_default().to_owned();
            let extras = Extras { body: Some(&body), revision: self.revision(&raw), key: None };
            let answer = self.api.call(operation(set), &id, extras).await?;
            if answer.code() != "revision_conflict" {
                raw = answer.success()?;
                continue;
            }
            // A try whose answer was lost may have written it: then nothing else was written since.
            let next = raw["revision"].as_i64().map(|revision| revision + 1);
            let is_ours = |now: &Value| now[reference.field] == ids && now["revision"].as_i64() == next;
            match fresh(self.api, self.kind, &id).await?.filter(is_ours) {
                Some(now) => raw = now,
                None => return Ok(Outcome::Conflict(id, Vec::new())),
            }
        }
        Ok(Outcome::Done(raw))
    }

    fn revision(&self, raw: &Value) -> Option<i64> {
        let takes = self.kind.has_revisions() && !self.force;
        takes.then(|| raw["revision"].as_i64()).flatten()
    }

    fn attachments(&self) -> impl Iterator<Item = &'static str> + use<> {
        let lists = self.kind.references().iter().filter(|reference| reference.set.is_some());
        lists.map(|reference| reference.key)
    }

    fn attaches(&self, key: &str) -> bool {
        self.entry.fields.get(key).is_some_and(|value| !names(value).is_empty())
    }

    /// The fields as the service takes them.
    fn body(&self, fields: &Map<String, Value>) -> Result<Map<String, Value>, Failure> {
        let mut body = Map::new();
        for (name, value) in fields {
            match self.kind.reference(name) {
                Some(reference) if reference.set.is_some() => {}
                Some(reference) => {
                    let ids = self.ids_of(value, reference.kind)?;
                    body.insert(reference.field.to_owned(), ids.into_iter().next().into());
                }
                None => drop(body.insert(name.clone(), value.clone())),
            }
        }
        Ok(body)
    }

    fn ids_of(&self, value: &Value, kind: Kind) -> Result<Vec<String>, Failure> {
        let id = |stem: &str| {
            let id = self.ids.get(kind, stem).map(str::to_owned);
            id.ok_or_else(|| Failure(format!("needs {}, which is not in the workspace", shown(kind, stem))))
        };
        names(value).into_iter().map(id).collect()
    }

    /// Whether the resource has what the file has in these fields.
    fn has(&self, now: &Value, fields: &Map<String, Value>) -> bool {
        self.differing(&self.row(now)).iter().all(|one| !fields.contains_key(&one.field))
    }

    /// Whether the lists that are still to be attached are as they were when it was planned: they are written next.
    fn is_attached_as_planned(&self, now: &Value, planned: &Row, sent: &[Difference]) -> bool {
        let now = self.row(now);
        let mut lists = self.attachments().filter(|key| sent.iter().any(|one| one.field == *key));
        lists.all(|key| now.kept(self.kind, key) == planned.kept(self.kind, key))
    }

    /// What somebody else did between the plan, which was to write `sent`, and now.
    fn conflict(&self, planned: &Row, sent: &[Difference], now: &Value) -> Outcome {
        let now = self.row(now);
        let mut fields = self.differing(&now);
        fields.retain(|one| now.kept(self.kind, &one.field) != planned.kept(self.kind, &one.field));
        for one in &mut fields {
            let is_ours = sent.iter().any(|sent| sent.field == one.field);
            one.changed = if is_ours { Changed::Both } else { Changed::There };
        }
        Outcome::Conflict(planned.id.clone(), fields)
    }

    fn row(&self, raw: &Value) -> Row {
        self.workspace.row(self.kind, raw.clone(), self.stems)
    }

    /// The fields in which a resource is not as the file says.
    fn differing(&self, row: &Row) -> Vec<Difference> {
        compare::differences(self.kind, &self.entry.fields, row, None, self.ids)
    }
}

fn deleted_meanwhile() -> Outcome {
    Outcome::Failed("was deleted by somebody else meanwhile".to_owned())
}
