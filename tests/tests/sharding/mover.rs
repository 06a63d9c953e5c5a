//! Moves a workspace from one database to another in small steps. A process may die after any step: a new mover continues
//! from the state in the directory.
use std::sync::{Arc, Mutex};

use sidetone::sandbox::block_on;
use sidetone_engine::base::ids::{Id as _, WorkspaceId};
use sidetone_engine::base::limits::INTEGER_MAX;
use sidetone_engine::ports::Database;
use sidetone_engine::ports::statement::{Rows, Statement, Value};
use sidetone_engine::sql;
use sidetone_engine::storage::moving::{AWAY, Page, Sum, TABLES, Table, Window};

use crate::cluster::{Cluster, Directory, Place, Shards};

/// Rows copied per step. On D1 as many as fit a batch; small here, so that there are many steps.
const PAGE_ROWS: usize = 3;
/// A step that copies. It looks at all rows: each further step is one more interruption that is tested.
const STEP: Window = Window { rows: 3, looked_at: 1_000, bytes: 1_000_000 };
/// As much as is compared or deleted at once, however it was copied.
const WHOLE: Window = Window { rows: 1_000, looked_at: 1_000, bytes: 1_000_000 };
/// Frozen rows that stay at the source: without its row, a bootstrap key would create a new workspace there.
const TOMBSTONES: &[&str] = &["workspaces", "api_keys"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Announce,
    Freeze,
    EmptyTarget,
    Copy { table: usize, page: usize },
    Verify,
    Switch,
    Thaw,
    EmptySource,
    Done,
}

pub struct Mover {
    shards: Arc<Shards>,
    directory: Arc<Mutex<Directory>>,
    workspace: String,
    from: usize,
    to: usize,
    pub next: Step,
    /// Where the table that is being copied continues.
    after: Vec<Value>,
}

impl Mover {
    /// Moves `workspace` to the shard `to`, or continues an interrupted move.
    pub fn new(cluster: &Cluster, workspace: &str, to: usize) -> Self {
        Self::over(cluster.shards.clone(), cluster.directory.clone(), workspace, to)
    }

    pub fn over(shards: Arc<Shards>, directory: Arc<Mutex<Directory>>, workspace: &str, to: usize) -> Self {
        let place = directory.lock().unwrap().places[workspace];
        let (from, to, next) = match place {
            Place::At(from) if from == to => (from, to, Step::Done),
            Place::At(from) => (from, to, Step::Announce),
            Place::Moving { from, to } => (from, to, Step::Freeze),
            Place::Settling { from, to } => (from, to, Step::Thaw),
        };
        Self { shards, directory, workspace: workspace.to_owned(), from, to, next, after: Vec::new() }
    }

    /// Performs all remaining steps; returns their number.
    pub fn finish(&mut self) -> usize {
        let mut steps = 0;
        while self.step() {
            steps += 1;
        }
        steps
    }

    /// Performs one step; `false` if none was left.
    pub fn step(&mut self) -> bool {
        let (from, to) = (self.from, self.to);
        self.next = match self.next {
            Step::Announce => {
                self.place(Place::Moving { from, to });
                Step::Freeze
            }
            // Every write of a request checks the key in its own batch, and every batch that finishes a job checks
            // its lease. From here on all of them fail, including those that have already read.
            Step::Freeze => {
                self.write(from, vec![
                    sql!("UPDATE api_keys SET revoked_at = :revoked_at WHERE workspace_id = :workspace_id AND revoked_at IS NULL", workspace_id = &self.workspace, revoked_at = AWAY),
                    sql!("UPDATE jobs SET lease = NULL, due_at = :due_at WHERE workspace_id = :workspace_id", workspace_id = &self.workspace, due_at = INTEGER_MAX),
                ]);
                Step::EmptyTarget
            }
            Step::EmptyTarget => {
                self.empty(to, &[]);
                Step::Copy { table: 0, page: 0 }
            }
            Step::Copy { table, page } => {
                if self.copy(table) {
                    Step::Copy { table, page: page + 1 }
                } else if table + 1 < TABLES.len() {
                    Step::Copy { table: table + 1, page: 0 }
                } else {
                    Step::Verify
                }
            }
            Step::Verify => {
                for table in TABLES {
                    assert_eq!(self.sum(table, from), self.sum(table, to), "{}", table.name);
                }
                assert_eq!(self.entries(from), self.entries(to), "the text index");
                Step::Switch
            }
            Step::Switch => {
                self.place(Place::Settling { from, to });
                Step::Thaw
            }
            Step::Thaw => {
                self.write(to, vec![
                    sql!("UPDATE api_keys SET revoked_at = NULL WHERE workspace_id = :workspace_id AND revoked_at = :revoked_at", workspace_id = &self.workspace, revoked_at = AWAY),
                    sql!("UPDATE jobs SET due_at = 0 WHERE workspace_id = :workspace_id AND due_at = :due_at", workspace_id = &self.workspace, due_at = INTEGER_MAX),
                ]);
                Step::EmptySource
            }
            Step::EmptySource => {
                self.empty(from, TOMBSTONES);
                self.place(Place::At(to));
                Step::Done
            }
            Step::Done => return false,
        };
        true
    }

    /// The number of the workspace's rows on a shard, by table, and of its entries in the text index.
    pub fn rows(&self, shard: usize) -> Vec<(String, usize)> {
        let count = |table: &'static Table| {
            (table.name.to_owned(), usize::try_from(self.sum(table, shard).rows).unwrap())
        };
        let entries = ("call_index".to_owned(), self.entries(shard));
        TABLES.iter().map(count).chain([entries]).collect()
    }

    fn place(&self, place: Place) {
        self.directory.lock().unwrap().places.insert(self.workspace.clone(), place);
    }

    /// Copies the next page of a table, in the form in which it would cross a network; whether the table goes on.
    fn copy(&mut self, table: usize) -> bool {
        let table = &TABLES[table];
        let page = self.page(STEP, table, self.from, &self.after);
        assert!(page.rows.len() <= PAGE_ROWS);
        let arrived = Page::from_line(&page.to_line()).unwrap();
        let batch = arrived.insert(table, &WorkspaceId::from_stored(&*self.workspace)).unwrap();
        if !batch.is_empty() {
            self.write(self.to, batch);
        }
        self.after = page.next.unwrap_or_default();
        !self.after.is_empty()
    }

    fn page(&self, window: Window, table: &'static Table, shard: usize, after: &[Value]) -> Page {
        let workspace_id = WorkspaceId::from_stored(&*self.workspace);
        block_on(window.read(self.shards.at(shard), table, &workspace_id, after)).unwrap()
    }

    /// The number of the workspace's entries in the text index.
    fn entries(&self, shard: usize) -> usize {
        let count = sql!(
            "SELECT COUNT(*) AS entries FROM call_index WHERE rowid IN (SELECT seq FROM calls WHERE workspace_id = :workspace)",
            workspace = &self.workspace
        );
        let rows = self.read(shard, count);
        usize::try_from(rows.first().unwrap().integer("entries").unwrap()).unwrap()
    }

    fn sum(&self, table: &'static Table, shard: usize) -> Sum {
        let (mut sum, mut after) = (Sum::of(table.name), Vec::new());
        loop {
            let page = self.page(WHOLE, table, shard, &after);
            page.rows.iter().for_each(|row| sum.add(row));
            match page.next {
                Some(next) => after = next,
                None => return sum,
            }
        }
    }

    fn empty(&self, shard: usize, but: &[&str]) {
        let workspace_id = WorkspaceId::from_stored(&*self.workspace);
        for table in TABLES.iter().rev().filter(|table| !but.contains(&table.name)) {
            let mut after = Vec::new();
            loop {
                let keys = block_on(WHOLE.keys(self.shards.at(shard), table, &workspace_id, &after)).unwrap();
                let batch = keys.delete(&workspace_id);
                if !batch.is_empty() {
                    self.write(shard, batch);
                }
                match keys.next {
                    Some(next) => after = next,
                    None => break,
                }
            }
        }
    }

    fn read(&self, shard: usize, statement: Statement) -> Rows {
        block_on(self.shards.at(shard).read(vec![statement])).unwrap().remove(0)
    }

    fn write(&self, shard: usize, batch: Vec<Statement>) {
        block_on(self.shards.at(shard).write(batch)).unwrap();
    }
}
