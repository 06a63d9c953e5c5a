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

/// Removes a fact.
pub(super) fn remove(name: &str) -> Statement {
    sql!("DELETE FROM service_facts WHERE name = :name", name = name)
}
