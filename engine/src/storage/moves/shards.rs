//! A workspace moves to another database of this host, where there are several.
//!
//! It is closed and frozen as for another host. Its rows are copied then, and compared; blobs stay where they are, and signing
//! secrets are sealed with the same server secret. The directory decides who owns it (`storage/directory/moves.rs`), and only the
//! owner opens it: the new database, or the one that it was in, if the move is canceled before. What is in the other one is erased,
//! but for a tombstone, over which the workspace can come back.
//!
//! One id names the move in all three databases, and each step is a batch that expects how far it is: a step can be repeated, and
//! what comes late, after the move was canceled and another one began, changes nothing.
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::arrive::{self, Arrival};
use super::cancel_export::cancel_export_as;
use super::cursor::Cursor;
use super::declined::Declined;
use super::erase::{self, Erasing};
use super::freeze::{self, Freeze};
use super::import::{self, At};
use super::lock::{self, Expected};
use super::parts::{self, To};
use super::verify::{self, Place};
use super::{cancel_import, open, release};
use crate::base::ids::{WorkspaceId, prefix};
use crate::ports::DatabaseError;
use crate::ports::statement::Statement;
use crate::services::{Services, Sharding};
use crate::sql;
use crate::storage::directory::{Home, Transit};
use crate::storage::fault::{Fault, retry_stale};
use crate::storage::moves::{Move, Refusal, State, Step, Wait};
use crate::storage::workspace_rows::{SCHEMA, Sum, Table};

/// What the operator wishes.
#[derive(Debug, Clone, Copy)]
pub enum Wish<'a> {
    /// The workspace moves to the database with this name.
    To {
        /// The name.
        database: &'a str,
        /// Prices that carriers report after a call are not waited for.
        without_late_prices: bool,
    },
    /// A move that is under way is canceled: it stays where it is.
    Cancel,
}

crate::words! {
    /// How far a move between two databases is.
    plain Stage {
        /// There is none: the workspace is in one database.
        At = "at",
        /// What is under way comes to its end.
        Closing = "closing",
        /// Nothing changes any more; rows are copied.
        Copying = "copying",
        /// The copy is compared.
        Comparing = "comparing",
        /// It is decided who owns the workspace, which is opened, and erased in the other database.
        Settling = "settling",
    }
}

/// What has come of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// How far it is.
    pub stage: Stage,
    /// The database that owns the workspace.
    pub database: String,
    /// The database that is being filled or erased.
    pub other: Option<String>,
    /// What is still under way in the workspace.
    pub waits: Vec<Wait>,
    /// How many rows are copied, or erased.
    pub rows: u64,
    /// For the log, if something was decided.
    pub note: Option<String>,
}

/// How far copying is: the progress of the new database's row.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Copied {
    /// `file_key` of the frozen rows: each time that they are frozen, it is another one.
    frozen: String,
    /// The rows of each table that has any.
    sums: BTreeMap<String, Sum>,
    /// What is copied next; no rows: everything is.
    next: Cursor,
    /// What is compared next; no rows: everything was.
    compared: At,
}

/// A move, with both databases.
struct Between<'a> {
    services: &'a Services,
    sharding: &'a Sharding,
    workspace_id: &'a WorkspaceId,
    /// The shard that owns the workspace.
    owner: usize,
    transit: Transit,
}

/// Makes the next step. To be asked until the workspace is in one database.
pub async fn step(services: &Services, workspace_id: &WorkspaceId, wish: Wish<'_>) -> Step<Told> {
    retry_stale(|| try_step(services, workspace_id, wish)).await
}

/// How far a move is; nothing changes.
pub async fn status(services: &Services, workspace_id: &WorkspaceId) -> Step<Told> {
    let Some(sharding) = services.sharding() else { return Ok(Err(Refusal::OneDatabase)) };
    let Some(home) = home(services, sharding, workspace_id).await? else {
        return Ok(Err(Refusal::NoWorkspace));
    };
    let Some(transit) = home.transit else {
        // What has closed it came late.
        let left = Move::of(&services.on_shard(home.shard), workspace_id).await?.filter(is_left);
        let stage = if left.is_some() { Stage::Closing } else { Stage::At };
        return Ok(Ok(Told { stage, ..at(sharding, home.shard) }));
    };
    let between = Between { services, sharding, workspace_id, owner: home.shard, transit };
    if between.transit.is_decided {
        return Ok(Ok(between.told(Stage::Settling)));
    }
    Ok(Ok(match between.row(between.transit.other).await? {
        Some(target) if between.is_its(&target) => between.told_copied(&target)?,
        _ => between.told(Stage::Closing),
    }))
}

async fn try_step(services: &Services, workspace_id: &WorkspaceId, wish: Wish<'_>) -> Step<Told> {
    let Some(sharding) = services.sharding() else { return Ok(Err(Refusal::OneDatabase)) };
    let to = match wish {
        Wish::To { database, .. } => match sharding.named(database) {
            Some(to) => Some(to),
            None => return Ok(Err(Refusal::NoSuchDatabase)),
        },
        Wish::Cancel => None,
    };
    let Some(home) = home(services, sharding, workspace_id).await? else {
        return Ok(Err(Refusal::NoWorkspace));
    };
    let Home { shard: owner, transit } = home;
    let Some(transit) = transit else {
        // What was on its way when an earlier move was canceled may have arrived since, and nobody would ever open what it closed.
        let here = services.on_shard(owner);
        if let Some(left) = Move::of(&here, workspace_id).await?.filter(is_left) {
            return match cancel_leftover(&here, sharding, &left).await? {
                Ok(()) => Err(Fault::Stale),
                Err(refusal) => Ok(Err(refusal)),
            };
        }
        return match to.filter(|to| *to != owner) {
            Some(to) => begin(services, sharding, workspace_id, owner, to).await,
            None => Ok(Ok(at(sharding, owner))),
        };
    };
    let between = Between { services, sharding, workspace_id, owner, transit };
    match wish {
        _ if between.transit.is_decided => between.settle(to).await,
        Wish::To { without_late_prices, .. } if to == Some(between.transit.other) => {
            between.go_on(without_late_prices).await
        }
        Wish::To { .. } => Ok(Err(Refusal::BetweenDatabases)),
        Wish::Cancel => between.decide(owner, between.transit.other).await.map(Ok),
    }
}

/// Where the workspace is. What the directory does not know yet, it is told.
async fn home(
    services: &Services,
    sharding: &Sharding,
    workspace_id: &WorkspaceId,
) -> Result<Option<Home>, Fault> {
    if let Some(home) = sharding.home_of(workspace_id).await? {
        return Ok(Some(home));
    }
    services.at_home_of(workspace_id).await?;
    sharding.home_of(workspace_id).await
}

/// Whether an earlier move left this workspace closed or frozen.
fn is_left(found: &Move) -> bool {
    found.is_between_databases() && matches!(found.state, State::Closing | State::Frozen | State::Canceled)
}

/// Cancels what a move that is over has left in this database. That the directory does not name it proves that, if it is read
/// after the row: it has named the move before there was a row, and never names it again. A row that came late may be of a move
/// that has begun since.
async fn cancel_leftover(here: &Services, sharding: &Sharding, left: &Move) -> Step<()> {
    if let Some(Home { shard, transit }) = sharding.home_of(&left.workspace_id).await? {
        let is_under_way = transit.is_some_and(|transit| transit.id == left.id);
        // Only where it belongs is a workspace opened.
        if is_under_way || is_left(left) && Some(shard) != here.shard() {
            return Err(Fault::Stale);
        }
    }
    if is_left(left) {
        let canceled = cancel_export_as(here, &left.workspace_id, Some(&left.id)).await?;
        return Ok(canceled.map(|_| ()));
    }
    cancel_import::step_of(here, left).await.map(|_| Ok(()))
}

/// Cancels what requests that came late have left in this database of moves that are over: a closed workspace would stay closed
/// until somebody asks about it. Whether there may be more.
pub(crate) async fn cancel_leftovers(services: &Services) -> Result<bool, Fault> {
    let Some(sharding) = services.sharding() else { return Ok(false) };
    let late = sql!(
        "SELECT workspace_id FROM moves WHERE substr(id, 1, 4) = 'mov_'
         AND state IN ('closing', 'frozen', 'canceled', 'arriving', 'arrived', 'canceling')"
    );
    let [late] = services.read([late]).await?;
    let mut more = false;
    for row in late.iter() {
        let Some(left) = Move::of(services, &row.id("workspace_id")?).await? else { continue };
        match cancel_leftover(services, sharding, &left).await {
            Ok(Ok(())) => more = true,
            // It is under way.
            Ok(Err(_)) | Err(Fault::Stale) => {}
            Err(fault) => return Err(fault),
        }
    }
    Ok(more)
}

fn at(sharding: &Sharding, shard: usize) -> Told {
    Told {
        stage: Stage::At,
        database: sharding.name(shard).to_owned(),
        other: None,
        waits: Vec::new(),
        rows: 0,
        note: None,
    }
}

async fn begin(
    services: &Services,
    sharding: &Sharding,
    workspace_id: &WorkspaceId,
    from: usize,
    to: usize,
) -> Step<Told> {
    let here = services.on_shard(from);
    match Move::of(&here, workspace_id).await?.map(|found| found.state) {
        None | Some(State::Running) => {}
        Some(State::Released | State::Erasing | State::Gone) => return Ok(Err(Refusal::Moved)),
        Some(_) => return Ok(Err(Refusal::BetweenHosts)),
    }
    if has_people(&here, workspace_id).await? {
        return Ok(Err(Refusal::HasPeople));
    }
    // What would refuse it later, when it is frozen.
    let there = services.on_shard(to);
    let found = Move::of(&there, workspace_id).await?;
    if found.is_some_and(|found| found.state != State::Gone && !found.is_between_databases()) {
        return Ok(Err(Refusal::BetweenHosts));
    }
    arrive::check_room(&here, workspace_id).await?;
    arrive::check_room(&there, workspace_id).await?;
    let numbers = sql!("SELECT number FROM numbers WHERE workspace_id = :ws");
    let [numbers] = here.read([numbers.in_workspace(workspace_id)]).await?;
    let numbers: Vec<String> = numbers.iter().map(|row| row.text("number")).collect::<Result<_, _>>()?;
    arrive::check_numbers(services, workspace_id, &numbers).await?;
    let id = services.id(prefix::MOVE);
    if !sharding.depart(workspace_id, from, to, &id).await? {
        return Err(Fault::Stale);
    }
    let transit = Transit { id, other: to, is_decided: false };
    let between = Between { services, sharding, workspace_id, owner: from, transit };
    let (from, to, id) = (sharding.name(from), sharding.name(to), &between.transit.id);
    let note = Some(format!("{workspace_id} begins to move from {from} to {to} ({id})"));
    Ok(Ok(Told { note, ..between.told(Stage::Closing) }))
}

/// Why the new database does not take rows.
fn taken(error: DatabaseError) -> Fault {
    if let DatabaseError::Constraint(sentence) = &error
        && let Some((_, rest)) = sentence.split_once("UNIQUE constraint failed: ")
        && let Some(table) = rest.split('.').next().and_then(Table::named)
    {
        return Declined::Exists(table.name).into();
    }
    error.into()
}

/// The dashboard's people are in the first database, and would not find the workspace in another one.
async fn has_people(services: &Services, workspace_id: &WorkspaceId) -> Result<bool, Fault> {
    let ask = sql!(
        "SELECT 1 AS found FROM memberships WHERE workspace_id = :ws UNION ALL
         SELECT 1 FROM invitations WHERE workspace_id = :ws LIMIT 1"
    );
    let [found] = services.read([ask.in_workspace(workspace_id)]).await?;
    Ok(!found.is_empty())
}

impl Between<'_> {
    /// The row of the move in a shard, or of another one.
    async fn row(&self, shard: usize) -> Result<Option<Move>, Fault> {
        Ok(Move::of(&self.services.on_shard(shard), self.workspace_id).await?)
    }

    fn is_its(&self, found: &Move) -> bool {
        found.id == self.transit.id
    }

    fn told(&self, stage: Stage) -> Told {
        let other = self.sharding.name(self.transit.other).to_owned();
        Told { stage, other: Some(other), ..at(self.sharding, self.owner) }
    }

    fn told_copied(&self, target: &Move) -> Result<Told, Fault> {
        if target.state != State::Arriving {
            return Ok(self.told(Stage::Comparing));
        }
        Ok(self.told_rows(&import::progress(target)?))
    }

    fn told_rows(&self, copied: &Copied) -> Told {
        let stage = if let Cursor::Rows { .. } = copied.next { Stage::Copying } else { Stage::Comparing };
        let rows = copied.sums.values().map(|sum| sum.rows).sum();
        Told { rows, ..self.told(stage) }
    }

    fn bug(&self, found: &Move) -> Fault {
        let Transit { id, .. } = &self.transit;
        Fault::Bug(format!("{id} of {} meets {} as {}", self.workspace_id, found.id, found.state.as_str()))
    }

    /// From here on it cannot be decided otherwise.
    async fn decide(&self, owner: usize, other: usize) -> Result<Told, Fault> {
        let Self { sharding, workspace_id, transit, .. } = self;
        if !sharding.decide(workspace_id, &transit.id, owner, other).await? {
            return Err(Fault::Stale);
        }
        let note = match owner == self.owner {
            true => format!(
                "the move of {workspace_id} is canceled: it stays in {} ({})",
                sharding.name(owner),
                transit.id
            ),
            false => format!("{workspace_id} is in {} from now on ({})", sharding.name(owner), transit.id),
        };
        let (database, other) = (sharding.name(owner).to_owned(), Some(sharding.name(other).to_owned()));
        Ok(Told { database, other, note: Some(note), ..self.told(Stage::Settling) })
    }

    /// Closes the workspace, freezes it, and copies its rows; then it is decided.
    async fn go_on(&self, without_late_prices: bool) -> Step<Told> {
        let from = self.services.on_shard(self.owner);
        let source = match Move::of(&from, self.workspace_id).await? {
            None => return self.close(&from).await,
            Some(found) if found.state == State::Running => return self.close(&from).await,
            Some(found) if self.is_its(&found) => found,
            Some(found) if is_left(&found) => {
                let canceled = cancel_leftover(&from, self.sharding, &found).await?;
                return Ok(canceled.map(|()| self.told(Stage::Closing)));
            }
            Some(_) => return Ok(Err(Refusal::BetweenHosts)),
        };
        match source.state {
            // They can still be removed.
            State::Closing if has_people(&from, self.workspace_id).await? => Ok(Err(Refusal::HasPeople)),
            State::Closing => {
                let id = Some(&*source.id);
                let frozen = freeze::freeze_as(&from, self.workspace_id, id, without_late_prices).await?;
                Ok(frozen.map(|frozen| match frozen {
                    Freeze::Waits(waits) => Told { waits, ..self.told(Stage::Closing) },
                    Freeze::Frozen => {
                        let note =
                            Some(format!("{} is frozen for a move ({})", self.workspace_id, source.id));
                        Told { note, ..self.told(Stage::Copying) }
                    }
                }))
            }
            State::Frozen if source.schema != SCHEMA => Ok(Err(Refusal::SchemaChanged)),
            State::Frozen => self.fill(&from, &source).await,
            _ => Err(self.bug(&source)),
        }
    }

    async fn close(&self, from: &Services) -> Step<Told> {
        let closed = freeze::close_as(from, self.workspace_id, &self.transit.id).await?;
        Ok(closed.map(|_| self.told(Stage::Closing)))
    }

    /// Fills the new database from the frozen rows.
    async fn fill(&self, from: &Services, source: &Move) -> Step<Told> {
        let to = self.services.on_shard(self.transit.other);
        let target = match Move::of(&to, self.workspace_id).await? {
            None => return self.arrive(&to, source).await.map(Ok),
            Some(found) if found.state == State::Gone => return self.arrive(&to, source).await.map(Ok),
            Some(found) if self.is_its(&found) => found,
            // This database does not own the workspace.
            Some(found) if found.is_between_databases() => {
                let canceled = cancel_leftover(&to, self.sharding, &found).await?;
                return Ok(canceled.map(|()| self.told(Stage::Copying)));
            }
            Some(_) => return Ok(Err(Refusal::BetweenHosts)),
        };
        if target.schema != SCHEMA {
            return Ok(Err(Refusal::SchemaChanged));
        }
        // They have changed since, if somebody has canceled the move, and closed it again.
        let is_of_others = || Ok::<_, Fault>(import::progress::<Copied>(&target)?.frozen != source.file_key);
        match target.state {
            State::Canceling => self.cancel_copy(&to, &target).await,
            State::Arriving | State::Arrived if is_of_others()? => self.cancel_copy(&to, &target).await,
            State::Arriving => self.copy(from, &to, &target).await.map(Ok),
            State::Arrived if has_people(from, self.workspace_id).await? => Ok(Err(Refusal::HasPeople)),
            State::Arrived => self.decide(self.transit.other, self.owner).await.map(Ok),
            _ => Err(self.bug(&target)),
        }
    }

    /// What was copied is erased; then it is copied anew.
    async fn cancel_copy(&self, to: &Services, target: &Move) -> Step<Told> {
        cancel_import::step_of(to, target).await?;
        Ok(Ok(self.told(Stage::Copying)))
    }

    async fn arrive(&self, to: &Services, source: &Move) -> Result<Told, Fault> {
        let next =
            parts::beginning().ok_or_else(|| Fault::Bug("there are no tables of workspaces".to_owned()))?;
        arrive::check_room(to, self.workspace_id).await?;
        let frozen = source.file_key.clone();
        let copied = Copied { frozen, sums: BTreeMap::new(), next, compared: At::first() };
        let arrival = Arrival {
            workspace_id: self.workspace_id,
            id: &self.transit.id,
            name: "",
            salt: None,
            file_key: "",
            other_id: None,
            // Numbers, texts, and lists and maps of them can always be written.
            progress: &serde_json::to_string(&copied).unwrap_or_default(),
        };
        arrive::insert(to, &arrival).await?;
        Ok(self.told(Stage::Copying))
    }

    /// Copies the next rows or, once all are there, compares some with what was copied.
    async fn copy(&self, from: &Services, to: &Services, target: &Move) -> Result<Told, Fault> {
        let Self { workspace_id, .. } = *self;
        let mut copied: Copied = import::progress(target)?;
        let mut batch = Vec::new();
        let mut state = State::Arriving;
        if let Cursor::Rows { table, after } = &copied.next {
            let read = parts::pages(from, workspace_id, table, after, To::AnotherDatabase).await?;
            let (pages, next) = read.ok_or_else(|| self.bug(target))?;
            if copied.sums.is_empty() {
                // There are no rows before the first ones, so nothing has escaped the triggers that were not there.
                lock::arm(to, workspace_id).await?;
                batch.push(lock::guard_armed(workspace_id)?);
                // Those of a tombstone: they come with the others.
                batch.push(sql!("DELETE FROM api_keys WHERE workspace_id = :ws").in_workspace(workspace_id));
            }
            for page in &pages {
                let table = Table::named(&page.table).ok_or_else(|| self.bug(target))?;
                let rows = page.insert_own(table, workspace_id);
                batch
                    .extend(rows.map_err(|wrong| Fault::Bug(format!("a row of {}: {wrong:?}", table.name)))?);
                let sum = copied.sums.entry(page.table.clone()).or_insert_with(|| Sum::of(table.name));
                page.rows.iter().for_each(|row| sum.add(row));
            }
            copied.next = next;
        } else if let At::Rows { table, after, sum } = &copied.compared {
            let place = Place::of(target, table, after)?;
            let compared =
                verify::rows(to, workspace_id, place, sum.clone(), &copied.sums, To::AnotherDatabase).await?;
            copied.compared = compared;
            if !matches!(copied.compared, At::Rows { .. }) {
                state = State::Arrived;
            }
        }
        import::go_on(to, target, batch, state, &copied).await.map_err(taken)?;
        Ok(self.told_rows(&copied))
    }

    /// Opens the workspace in the database that owns it, and erases it in the other one. Keys open nothing there before they open it
    /// here: nobody reads old rows after somebody has written new ones.
    async fn settle(&self, wished: Option<usize>) -> Step<Told> {
        let (owner, other) = (self.services.on_shard(self.owner), self.services.on_shard(self.transit.other));
        let found = self.row(self.owner).await?;
        let ours = found.as_ref().filter(|found| self.is_its(found));
        let theirs = self.row(self.transit.other).await?.filter(|found| self.is_its(found));
        let has_moved = ours.is_some_and(|found| matches!(found.state, State::Arrived | State::Running));
        if wished != Some(self.owner) && (has_moved || wished.is_some()) {
            return Ok(Err(if has_moved { Refusal::Decided } else { Refusal::Canceled }));
        }
        let settling = self.told(Stage::Settling);
        match (ours, &theirs) {
            // Nothing of the workspace goes unless all of it is where it belongs.
            (_, Some(left))
                if !has_moved && matches!(left.state, State::Frozen | State::Released | State::Erasing) =>
            {
                return Err(self.bug(found.as_ref().unwrap_or(left)));
            }
            (_, Some(left)) if left.state == State::Frozen => self.release(&other, left).await?,
            (_, Some(left)) if left.state == State::Released => return self.erase(&other).await,
            (Some(arrived), _) if arrived.state == State::Arrived => {
                open::run(&owner, arrived, None).await?;
                lock::disarm_running(&owner, self.workspace_id).await?;
            }
            (Some(found), _) if is_left(found) => {
                let canceled = cancel_export_as(&owner, self.workspace_id, Some(&found.id)).await?;
                return Ok(canceled.map(|_| settling));
            }
            (_, Some(left)) if left.state == State::Erasing => return self.erase(&other).await,
            (_, Some(left)) if left.state != State::Gone => {
                cancel_import::step_of(&other, left).await?;
            }
            _ => {
                let is_locked = |found: &&Move| found.is_between_databases() && found.state != State::Running;
                if let Some(found) = found.as_ref().filter(is_locked) {
                    if self.is_its(found) || !is_left(found) {
                        return Err(self.bug(found));
                    }
                    // It came late.
                    let canceled = cancel_leftover(&owner, self.sharding, found).await?;
                    return Ok(canceled.map(|()| settling));
                }
                // Whoever has opened it may have died before.
                lock::disarm_running(&owner, self.workspace_id).await?;
                if !self.sharding.settle(self.workspace_id, &self.transit.id).await? {
                    return Err(Fault::Stale);
                }
                let name = self.sharding.name(self.owner);
                let note = Some(format!("{} is in {name} only ({})", self.workspace_id, self.transit.id));
                return Ok(Ok(Told { note, ..at(self.sharding, self.owner) }));
            }
        }
        Ok(Ok(settling))
    }

    /// Its keys open nothing any more in the database that it has left.
    async fn release(&self, other: &Services, left: &Move) -> Result<(), Fault> {
        let Move { workspace_id, id, progress, .. } = left;
        let own = |statement: Statement| statement.in_workspace(workspace_id);
        let closed = Vec::from(release::close_for_everybody().map(own));
        let expected = Expected { workspace_id, id, state: State::Frozen, progress };
        let batch = lock::within(&expected, closed, State::Released, progress, other.now());
        other.ports().database.write(batch).await?;
        Ok(())
    }

    async fn erase(&self, other: &Services) -> Step<Told> {
        let erased = erase::erase_as(other, self.workspace_id, Some(&self.transit.id)).await?;
        Ok(erased.map(|erased| match erased {
            Erasing::Rows(erased) => Told { rows: erased.rows, ..self.told(Stage::Settling) },
            Erasing::Gone(_) => self.told(Stage::Settling),
        }))
    }
}
