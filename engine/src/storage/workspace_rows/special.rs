//! Columns of which not the stored value itself moves.
use super::page::Page;
use super::tables::Table;
use crate::ports::statement::Value;

/// `revoked_at` of a key that opens nothing because its workspace is not here: not here any more, or not here yet. A key
/// that was revoked has a time.
pub const AWAY: i64 = -1;

/// Columns that mean something only together with the server secret: they move between the databases of one host.
const OF_THE_HOST: &[(&str, &str)] =
    &[("tools", "carried_secrets"), ("webhooks", "carried_secrets"), ("workspaces", "secret_salt")];

/// What a statement reads as the value of a column of `t`.
pub(super) fn read(table: &str, column: &str) -> String {
    match (table, column) {
        ("api_keys", "revoked_at") => format!("NULLIF(t.{column}, {AWAY})"),
        _ => format!("t.{column}"),
    }
}

/// What a statement writes of the value that is the parameter `place`.
pub(super) fn written(table: &str, column: &str, place: usize) -> String {
    match (table, column) {
        // A workspace is complete before anything opens it.
        ("api_keys", "revoked_at") => format!("COALESCE(?{place}, {AWAY})"),
        _ => format!("?{place}"),
    }
}

/// Whether a value stays on its host.
pub(super) fn is_of_the_host(table: &str, column: &str) -> bool {
    OF_THE_HOST.contains(&(table, column))
}

impl Page {
    /// The page without what means nothing on another host. What two hosts compare is this, too.
    #[must_use]
    pub fn for_another_host(mut self, table: &'static Table) -> Self {
        let stays =
            |at: usize| table.carried().nth(at).is_some_and(|column| is_of_the_host(table.name, column.name));
        for row in &mut self.rows {
            let values = row.iter_mut().enumerate().filter(|(at, _)| stays(*at));
            values.for_each(|(_, value)| *value = Value::Null);
        }
        self
    }
}
