//! Key-value facts about the service as a whole.
use crate::ports::statement::Statement;
use crate::services::Services;
use crate::sql;
use crate::storage::fault::Fault;

impl Services {
    pub(super) async fn fact(&self, name: &str) -> Result<Option<String>, Fault> {
        let [found] = self.read([select(name)]).await?;
        Ok(found.first().map(|row| row.text("value")).transpose()?)
    }
}

/// Reads the `value` of a fact; no row if it was never written.
fn select(name: &str) -> Statement {
    sql!("SELECT value FROM service_facts WHERE name = :name", name = name)
}

/// Writes a fact.
pub(crate) fn set(name: &str, value: &str) -> Statement {
    sql!(
        "INSERT INTO service_facts (name, value) VALUES (:name, :value)
         ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        name = name,
        value = value
    )
}

/// Whether this fact holds a time that is still to come, at `:now`, as an expression. One further away than the longest pause was
/// written with a clock that was ahead, and does not count.
pub(crate) fn pauses(name: &str, longest_ms: i64) -> String {
    format!(
        "EXISTS (SELECT 1 FROM service_facts WHERE name = '{name}' AND CAST(value AS INTEGER) > CAST(:now AS INTEGER)
           AND CAST(value AS INTEGER) <= CAST(:now AS INTEGER) + {longest_ms})"
    )
}

/// Whether workspace `w` had its turn since all had theirs, as an expression: this fact holds the one whose turn was the last.
pub(crate) fn had_its_turn(last: &str) -> String {
    format!("w.id <= COALESCE((SELECT value FROM service_facts WHERE name = '{last}'), '')")
}

/// Removes a fact.
pub(super) fn remove(name: &str) -> Statement {
    sql!("DELETE FROM service_facts WHERE name = :name", name = name)
}
