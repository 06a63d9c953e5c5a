//! What one request or round deletes, in parts of a limited size: each part is a batch, and others write between them. A run or
//! call can have several MB of its own, and be the last that has a configuration of as much.
use std::collections::BTreeSet;

use crate::base::limits::SWEEP_BYTES_MAX;
use crate::ports::DatabaseError;
use crate::ports::statement::Row;

/// The columns of a call `c` that [`Parts::add`] reads. Its transcript is in its words and its events, too; a delivery has
/// entries in four indexes.
pub(crate) const CALL_SIZE: &str = "c.id AS id,
    5 * c.transcript_bytes
      + 2048 * (SELECT COUNT(*) FROM events AS e JOIN deliveries AS d ON d.event_id = e.id
        WHERE e.workspace_id = :ws AND e.call_id = c.id AND e.call_id <> '') AS bytes,
    c.snapshot AS shared, (SELECT SUM(OCTET_LENGTH(s.content)) FROM named_snapshots AS n JOIN snapshots AS s
      ON s.workspace_id = n.workspace_id AND s.id IN (n.assistant, n.simulation)
      WHERE n.workspace_id = :ws AND n.hash = c.snapshot) AS shared_bytes";

/// Likewise of a run. Many runs have the same assistant, and few the same simulation.
pub(crate) const RUN_SIZE: &str =
    "runs.id AS id, OCTET_LENGTH(evaluations) + OCTET_LENGTH(transcript) + OCTET_LENGTH(variables) + OCTET_LENGTH(metadata)
    + COALESCE((SELECT OCTET_LENGTH(s.content) FROM snapshots AS s WHERE s.workspace_id = :ws AND s.id = simulation_snapshot), 0) AS bytes,
    assistant_snapshot AS shared,
    (SELECT OCTET_LENGTH(s.content) FROM snapshots AS s WHERE s.workspace_id = :ws AND s.id = assistant_snapshot) AS shared_bytes";

/// Ids in parts, each of so many rows at most, and of so many bytes if it has more than one.
pub(crate) struct Parts {
    most: usize,
    parts: Vec<Vec<String>>,
    bytes: i64,
    /// What the rows of the last part share, which is counted once.
    shared: BTreeSet<String>,
}

impl Parts {
    /// No parts yet.
    pub(crate) fn of(most: i64) -> Self {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        Self { most, parts: Vec::new(), bytes: 0, shared: BTreeSet::new() }
    }

    /// Adds a row with the columns of [`CALL_SIZE`] or [`RUN_SIZE`].
    pub(crate) fn add(&mut self, row: Row<'_>) -> Result<(), DatabaseError> {
        let (own, shared) = (row.integer("bytes")?, row.optional_text("shared")?);
        let shared_bytes = row.optional_integer("shared_bytes")?.unwrap_or(0);
        let more = |seen: &BTreeSet<String>| match &shared {
            Some(shared) if !seen.contains(shared) => own.saturating_add(shared_bytes),
            _ => own,
        };
        let fits = self.parts.last().is_some_and(|part| {
            part.len() < self.most && self.bytes.saturating_add(more(&self.shared)) <= SWEEP_BYTES_MAX
        });
        if !fits {
            self.parts.push(Vec::new());
            (self.bytes, self.shared) = (0, BTreeSet::new());
        }
        self.bytes = self.bytes.saturating_add(more(&self.shared));
        self.shared.extend(shared);
        if let Some(part) = self.parts.last_mut() {
            part.push(row.text("id")?);
        }
        Ok(())
    }

    /// The parts, each a JSON array of ids.
    pub(crate) fn lists(self) -> impl Iterator<Item = String> {
        self.parts.into_iter().map(|part| serde_json::json!(part).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::statement::{Rows, Value};

    fn parts(rows: &[(&str, i64, Option<&str>, i64)]) -> Vec<String> {
        let values = rows.iter().map(|(id, own, shared, shared_bytes)| {
            let shared = shared.map_or(Value::Null, Value::from);
            vec![(*id).into(), (*own).into(), shared, (*shared_bytes).into()]
        });
        let columns = ["id", "bytes", "shared", "shared_bytes"].map(str::to_owned).into();
        let rows = Rows { columns, values: values.collect() };
        let mut parts = Parts::of(3);
        rows.iter().try_for_each(|row| parts.add(row)).unwrap();
        parts.lists().collect()
    }

    #[test]
    fn a_part_has_a_limited_size_and_what_is_shared_counts_once_in_it() {
        let half = SWEEP_BYTES_MAX / 2;
        assert!(parts(&[]).is_empty());
        assert_eq!(parts(&[("a", 1, None, 0); 4]), [r#"["a","a","a"]"#, r#"["a"]"#], "rows");
        assert_eq!(
            parts(&[("a", half, None, 0), ("b", half, None, 0), ("c", 1, None, 0)]),
            [r#"["a","b"]"#, r#"["c"]"#]
        );
        let large = SWEEP_BYTES_MAX * 2;
        assert_eq!(
            parts(&[("a", large, None, 0), ("b", large, None, 0)]),
            [r#"["a"]"#, r#"["b"]"#],
            "one at least"
        );
        let same = [("a", 1, Some("x"), half), ("b", 1, Some("x"), half)];
        assert_eq!(parts(&same), [r#"["a","b"]"#]);
        let others = [("a", 1, Some("x"), half), ("b", 1, Some("y"), half)];
        assert_eq!(parts(&others), [r#"["a"]"#, r#"["b"]"#]);
    }
}
