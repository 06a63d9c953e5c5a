//! The statements that read and write a resource.
use super::Declared;
use crate::ports::statement::Statement;
use crate::sql;

pub(crate) fn select_all<R: Declared>() -> Statement {
    sql!(format!("SELECT {} FROM {} WHERE workspace_id = :ws ORDER BY id DESC", R::COLUMNS, R::TABLE))
}

pub(crate) fn select_one<R: Declared>(id: &str) -> Statement {
    sql!(format!("SELECT {} FROM {} WHERE workspace_id = :ws AND id = :id", R::COLUMNS, R::TABLE), id = id)
}

pub(crate) fn insert<R: Declared>(resource: &R) -> Statement {
    Statement::named(R::INSERT.into(), resource.values())
}

/// Replaces `current` by `next`, unless somebody else has changed it.
pub(crate) fn change<R: Declared>(current: &R, next: &R) -> [Statement; 2] {
    [unchanged(current), Statement::named(R::UPDATE.into(), next.values())]
}

/// Undoes the batch when the row is no longer what was read.
pub(crate) fn unchanged<R: Declared>(resource: &R) -> Statement {
    sql!(
        format!(
            "INSERT INTO batch_guard (ok) SELECT 0 WHERE NOT EXISTS
             (SELECT 1 FROM {} WHERE workspace_id = :ws AND id = :id AND revision = :revision)",
            R::TABLE
        ),
        id = resource.id(),
        revision = resource.revision()
    )
}
