//! The statements that read and write a resource. Those whose text is put together here are functions of texts, so that
//! they are compiled once and not for every resource.
use super::{Declared, Resource};
use crate::base::ids::Id;
use crate::ports::statement::Statement;
use crate::sql;

pub(crate) fn select_one<R: Declared>(id: &R::Id) -> Statement {
    one(R::COLUMNS, R::TABLE, id.as_str())
}

pub(crate) fn insert<R: Declared>(resource: &R) -> Statement {
    Statement { sql: R::INSERT.into(), params: resource.values() }
}

/// Replaces `current` by `next`, unless it was changed concurrently.
pub(crate) fn change<R: Declared>(current: &R, next: &R) -> [Statement; 2] {
    [unchanged(current), Statement { sql: R::UPDATE.into(), params: next.values() }]
}

/// Undoes the batch when the row is no longer what was read.
pub(crate) fn unchanged<R: Declared>(resource: &R) -> Statement {
    guard(R::TABLE, resource.id().as_str(), resource.revision())
}

/// Deletes a row that nothing holds, and says whether it did, and whether there is still a row.
pub(super) fn delete<R: Resource>(id: &R::Id) -> [Statement; 2] {
    deletion(R::TABLE, R::HELD_BY, id.as_str())
}

fn one(columns: &str, table: &str, id: &str) -> Statement {
    sql!(format!("SELECT {columns} FROM {table} WHERE workspace_id = :ws AND id = :id"), id = id)
}

fn deletion(table: &str, held_by: &str, id: &str) -> [Statement; 2] {
    [
        sql!(
            format!(
                "DELETE FROM {table} WHERE workspace_id = :ws AND id = :id AND NOT ({held_by}) RETURNING id"
            ),
            id = id
        ),
        one("id", table, id),
    ]
}

fn guard(table: &str, id: &str, revision: i64) -> Statement {
    sql!(
        format!(
            "INSERT INTO batch_guard (ok) SELECT 0 WHERE NOT EXISTS
             (SELECT 1 FROM {table} WHERE workspace_id = :ws AND id = :id AND revision = :revision)"
        ),
        id = id,
        revision = revision
    )
}
