//! Deletes rows page by page.
use super::tables::Table;
use crate::base::ids::{Id as _, WorkspaceId};
use crate::ports::statement::{Statement, Value};
use crate::storage::calls::search;

/// The keys of rows of one table, in order: of all rows of a workspace between the first and the last.
#[derive(Debug, Clone)]
pub struct Keys {
    /// The table.
    pub table: &'static Table,
    /// The keys.
    pub keys: Vec<Vec<Value>>,
    /// The key after which the table continues; `None` after its last row. There may be no keys before the end.
    pub next: Option<Vec<Value>>,
}

impl Keys {
    /// The batch that deletes these rows of `workspace_id`, and of calls the entries in the text index. Empty without keys.
    pub fn delete(&self, workspace_id: &WorkspaceId) -> Vec<Statement> {
        let (Some(first), Some(last)) = (self.keys.first(), self.keys.last()) else { return Vec::new() };
        let Table { name, owner, .. } = self.table;
        let key = self.table.key_of("");
        let places = |from: usize| {
            let places: Vec<String> = (from..from + first.len()).map(|place| format!("?{place}")).collect();
            places.join(", ")
        };
        // `+`: an index by owner would lead through all rows of the workspace, each time.
        let rows = format!(
            "FROM {name} WHERE +{owner} = ?1 AND ({key}) >= ({}) AND ({key}) <= ({})",
            places(2),
            places(2 + first.len())
        );
        let asker = Value::Asker(workspace_id.as_str().to_owned());
        let params: Vec<Value> = [asker].into_iter().chain(first.iter().chain(last).cloned()).collect();
        let entries = (*name == "calls").then(|| Statement {
            sql: search::remove_entries(&format!("SELECT seq {rows}")).into(),
            params: params.clone(),
        });
        entries.into_iter().chain([Statement { sql: format!("DELETE {rows}").into(), params }]).collect()
    }
}
