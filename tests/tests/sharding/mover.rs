//! Moves a workspace from one database to another in small steps. A process may die after any step: a new mover continues
//! from the state in the directory.
use std::sync::{Arc, Mutex};

use sidetone::sandbox::block_on;
use sidetone_engine::base::hash::sha256_hex;
use sidetone_engine::base::ids::{Id as _, WorkspaceId};
use sidetone_engine::base::limits::INTEGER_MAX;
use sidetone_engine::ports::Database;
use sidetone_engine::ports::statement::{Rows, Statement};
use sidetone_engine::sql;
use sidetone_engine::storage::calls::search;

use crate::cluster::{Cluster, Directory, Place, Shards};
use crate::schema::{ByNumber, Table, tables};

/// Rows copied per step. On D1 as many as fit a batch; small here, so that there are many steps.
const PAGE_ROWS: usize = 3;
/// `revoked_at` of a key whose workspace is being moved: not a real time, so that it differs from a revoked key.
const FROZEN: i64 = -1;
/// Frozen rows that stay at the source: without its row, a bootstrap key would create a new workspace there.
const TOMBSTONES: &[&str] = &["workspaces", "api_keys"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Announce,
    Freeze,
    EmptyTarget,
    Copy { table: usize, page: usize },
    Index { page: usize },
    Verify,
    Switch,
    Thaw,
    EmptySource,
    Done,
}

pub struct Mover {
    shards: Arc<Shards>,
    directory: Arc<Mutex<Directory>>,
    tables: Vec<Table>,
    workspace: String,
    from: usize,
    to: usize,
    pub next: Step,
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
        let tables = tables(shards.at(from));
        Self { shards, directory, tables, workspace: workspace.to_owned(), from, to, next }
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
                    sql!("UPDATE api_keys SET revoked_at = :revoked_at WHERE workspace_id = :workspace_id AND revoked_at IS NULL", workspace_id = &self.workspace, revoked_at = FROZEN),
                    sql!("UPDATE jobs SET lease = NULL, due_at = :due_at WHERE workspace_id = :workspace_id", workspace_id = &self.workspace, due_at = INTEGER_MAX),
                ]);
                Step::EmptyTarget
            }
            Step::EmptyTarget => {
                self.empty(to, &[]);
                Step::Copy { table: 0, page: 0 }
            }
            Step::Copy { table, page } => {
                if self.copy(&self.tables[table], page) == PAGE_ROWS {
                    Step::Copy { table, page: page + 1 }
                } else if table + 1 < self.tables.len() {
                    Step::Copy { table: table + 1, page: 0 }
                } else {
                    Step::Index { page: 0 }
                }
            }
            Step::Index { page } if self.index(page) == PAGE_ROWS => Step::Index { page: page + 1 },
            Step::Index { .. } => Step::Verify,
            Step::Verify => {
                for table in &self.tables {
                    assert_eq!(self.digest(table, from), self.digest(table, to), "{}", table.name);
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
                    sql!("UPDATE api_keys SET revoked_at = NULL WHERE workspace_id = :workspace_id AND revoked_at = :revoked_at", workspace_id = &self.workspace, revoked_at = FROZEN),
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
        let count = |table: &Table| (table.name.clone(), self.select(table, shard, "").values.len());
        let entries = ("call_index".to_owned(), self.entries(shard));
        self.tables.iter().map(count).chain([entries]).collect()
    }

    fn place(&self, place: Place) {
        self.directory.lock().unwrap().places.insert(self.workspace.clone(), place);
    }

    fn copy(&self, table: &Table, page: usize) -> usize {
        let rows = self.select(table, self.from, &page_of(page));
        let columns: Vec<&str> = carried(table).collect();
        let values: Vec<String> = (1..=columns.len())
            .zip(&columns)
            .map(|(place, column)| match table.by_number.iter().find(|one| one.column == **column) {
                Some(one) => here(one, place),
                None => format!("?{place}"),
            })
            .collect();
        let insert =
            format!("INSERT INTO {} ({}) VALUES ({})", table.name, columns.join(", "), values.join(", "));
        let statements: Vec<Statement> = rows
            .values
            .iter()
            .map(|values| Statement { sql: insert.clone().into(), params: values.clone() })
            .collect();
        let copied = statements.len();
        if copied > 0 {
            self.write(self.to, statements);
        }
        copied
    }

    /// Writes entries of the text index from the copied rows.
    fn index(&self, page: usize) -> usize {
        let calls =
            format!("SELECT id FROM calls WHERE workspace_id = :workspace ORDER BY seq {}", page_of(page));
        let calls = self.read(self.to, sql!(calls, workspace = &self.workspace));
        let workspace_id = WorkspaceId::from_stored(&*self.workspace);
        let statements: Vec<Statement> =
            calls.iter().flat_map(|call| search::index(&workspace_id, &call.id("id").unwrap())).collect();
        if !statements.is_empty() {
            self.write(self.to, statements);
        }
        calls.values.len()
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

    fn digest(&self, table: &Table, shard: usize) -> String {
        sha256_hex(format!("{:?}", self.select(table, shard, "").values).as_bytes())
    }

    /// The workspace's rows in a form that is equal in every database: without numbers, and with references by number replaced
    /// by the unique columns of the referenced row. In the order of the key, because numbers differ but their order does not.
    fn select(&self, table: &Table, shard: usize, page: &str) -> Rows {
        let columns: Vec<String> = carried(table)
            .map(|column| match table.by_number.iter().find(|one| one.column == column) {
                Some(one) => everywhere(one),
                None => format!("t.{column}"),
            })
            .collect();
        let key: Vec<String> = table.key.iter().map(|column| format!("t.{column}")).collect();
        let select = format!(
            "SELECT {} FROM {} AS t WHERE t.{} = :workspace ORDER BY {} {page}",
            columns.join(", "),
            table.name,
            table.owner,
            key.join(", ")
        );
        self.read(shard, sql!(select, workspace = &self.workspace))
    }

    fn empty(&self, shard: usize, but: &[&str]) {
        let delete = |table: &Table| {
            sql!(
                format!("DELETE FROM {} WHERE {} = :workspace", table.name, table.owner),
                workspace = &self.workspace
            )
        };
        let tables = self.tables.iter().rev().filter(|table| !but.contains(&table.name.as_str()));
        // The calls are needed to find the entries.
        let entries = sql!(
            "DELETE FROM call_index WHERE rowid IN (SELECT seq FROM calls WHERE workspace_id = :workspace_id)",
            workspace_id = &self.workspace
        );
        self.write(shard, [entries].into_iter().chain(tables.map(delete)).collect());
    }

    fn read(&self, shard: usize, statement: Statement) -> Rows {
        block_on(self.shards.at(shard).read(vec![statement])).unwrap().remove(0)
    }

    fn write(&self, shard: usize, batch: Vec<Statement>) {
        block_on(self.shards.at(shard).write(batch)).unwrap();
    }
}

fn page_of(page: usize) -> String {
    format!("LIMIT {PAGE_ROWS} OFFSET {}", page * PAGE_ROWS)
}

/// The copied columns: all except the number, which the target assigns again in the same order.
fn carried(table: &Table) -> impl Iterator<Item = &str> {
    table.columns.iter().map(String::as_str).filter(|column| table.number.as_deref() != Some(*column))
}

/// The replacement of a number: the unique columns of its row, which are equal in every database.
fn everywhere(one: &ByNumber) -> String {
    let ByNumber { column, table, number, known_by } = one;
    format!("(SELECT json_array({}) FROM {table} WHERE {number} = t.{column})", known_by.join(", "))
}

/// The number of such a row in this database.
fn here(one: &ByNumber, place: usize) -> String {
    let ByNumber { table, number, known_by, .. } = one;
    let values: Vec<String> =
        (0..known_by.len()).map(|at| format!("json_extract(?{place}, '$[{at}]')")).collect();
    format!("(SELECT {number} FROM {table} WHERE ({}) = ({}))", known_by.join(", "), values.join(", "))
}
