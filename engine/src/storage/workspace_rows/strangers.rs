//! Ids in somebody's rows that belong to another workspace.
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::page::Page;
use super::rules::is_followed;
use super::tables::Table;
use super::write::Wrong;
use crate::base::ids::{Id as _, ULID_CHARS, WorkspaceId, is_ulid, prefix};
use crate::ports::statement::{Statement, Value};

/// What ids begin with, and the tables in which they are the key.
pub const OWNED: &[(&str, &str)] = &[
    (prefix::ASSISTANT, "assistants"),
    (prefix::AUDIT_ENTRY, "audit_entries"),
    (prefix::CALL, "calls"),
    (prefix::DELIVERY, "deliveries"),
    (prefix::DOCUMENT, "documents"),
    (prefix::EVENT, "event_log"),
    (prefix::EVENT, "events"),
    (prefix::JOB, "jobs"),
    (prefix::KEY, "api_keys"),
    (prefix::PERSONA, "personas"),
    (prefix::RECORDING, "recordings"),
    (prefix::RUN, "runs"),
    (prefix::SCENARIO, "scenarios"),
    (prefix::SIMULATION, "simulations"),
    (prefix::TEST_TOKEN, "test_token_values"),
    (prefix::TEST_TOKEN, "used_test_tokens"),
    (prefix::TOOL, "tools"),
    (prefix::WEBHOOK, "webhooks"),
    (prefix::WORKSPACE, "workspaces"),
];

/// Ids, by what they begin with.
type Named = BTreeMap<&'static str, BTreeSet<String>>;

/// Fails the batch if these rows name something of another workspace where [`is_followed`] says so. Whatever reads a row later
/// follows these ids, and signs with secrets that are derived from them.
pub(super) fn guards(workspace_id: &WorkspaceId, page: &Page, table: &'static Table) -> Vec<Statement> {
    let guard =
        |of_others: String| format!("INSERT INTO batch_guard (own) SELECT 0 WHERE EXISTS ({of_others})");
    looks(workspace_id, &page.named(table), guard)
}

/// A statement for each table in which a thing could be that is named: `sql` makes it of the text that selects what others have.
fn looks(workspace_id: &WorkspaceId, named: &Named, sql: impl Fn(String) -> String) -> Vec<Statement> {
    OWNED
        .iter()
        .filter_map(|(prefix, table)| {
            let ids = named.get(prefix)?;
            let owner = if *table == "workspaces" { "id" } else { "workspace_id" };
            let of_others = format!(
                "SELECT t.id AS id FROM json_each(?2) AS named CROSS JOIN {table} AS t ON t.id = named.value WHERE t.{owner} <> ?1"
            );
            Some(Statement {
                sql: sql(of_others).into(),
                params: vec![
                    Value::Asker(workspace_id.as_str().to_owned()),
                    Value::Text(serde_json::to_string(ids).unwrap_or_default()),
                ],
            })
        })
        .collect()
}

impl Page {
    /// Selects what the page names of other workspaces, as `id`.
    pub fn select_strangers(&self, table: &'static Table, workspace_id: &WorkspaceId) -> Vec<Statement> {
        looks(workspace_id, &self.named(table), |of_others| of_others)
    }

    /// Where the page names one of these things first.
    pub fn naming(&self, table: &'static Table, ids: &[String]) -> Option<Wrong> {
        let what = "names something of another workspace";
        self.followed(table).find_map(|(row, column, text)| {
            let mut named = Named::new();
            find(text, &mut named);
            let is_one = named.values().flatten().any(|id| ids.contains(id));
            is_one.then_some(Wrong { row, column: Some(column), what })
        })
    }

    fn named(&self, table: &'static Table) -> Named {
        let mut named = Named::new();
        self.followed(table).for_each(|(_, _, text)| find(text, &mut named));
        named
    }

    /// The texts whose ids are followed, each with its row, from 1, and column.
    fn followed(&self, table: &'static Table) -> impl Iterator<Item = (usize, &'static str, &str)> {
        let columns: Vec<Option<&'static str>> =
            table.carried().map(|column| is_followed(table, column).then_some(column.name)).collect();
        (1..).zip(&self.rows).flat_map(move |(n, row)| {
            let texts = columns.iter().zip(row).filter_map(|(column, value)| match value {
                Value::Text(text) | Value::Asker(text) => Some((n, (*column)?, &**text)),
                Value::Null | Value::Number(_) => None,
            });
            texts.collect::<Vec<_>>()
        })
    }
}

/// How often escapes are resolved: a row is JSON in which texts may be JSON. Nothing reads texts in texts in texts.
const DEPTH: usize = 4;

/// Adds the ids in a text, by what they begin with, in whatever form a later reader understands them.
fn find(text: &str, named: &mut Named) {
    let mut text = Cow::Borrowed(text);
    for _ in 0..DEPTH {
        find_plain(&text, named);
        match unescaped(&text) {
            Some(plain) => text = Cow::Owned(plain),
            None => return,
        }
    }
    find_plain(&text, named);
}

fn find_plain(text: &str, named: &mut Named) {
    for (at, _) in text.match_indices('_') {
        let Some(ulid) = text.get(at + 1..at + 1 + ULID_CHARS).filter(|ulid| is_ulid(ulid)) else { continue };
        for (prefix, _) in OWNED {
            if text[..at].ends_with(*prefix) {
                named.entry(*prefix).or_default().insert(format!("{prefix}_{ulid}"));
            }
        }
    }
}

/// The text with every `\\uXXXX` resolved once; `None` if there is none.
fn unescaped(text: &str) -> Option<String> {
    let mut plain = String::new();
    let mut kept = 0;
    for (at, _) in text.match_indices("\\u") {
        let hex = text.get(at + 2..at + 6).filter(|hex| hex.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let resolved = hex.and_then(|hex| u32::from_str_radix(hex, 16).ok()).and_then(char::from_u32);
        if let Some(one) = resolved {
            plain.push_str(text[kept..at].trim_end_matches('\\'));
            plain.push(one);
            kept = at + 6;
        }
    }
    (kept > 0).then(|| plain + &text[kept..])
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "tool_01kas3v8hq4x7m2n5p6r9t0w1z";

    fn found(text: &str) -> Vec<String> {
        let mut named = Named::new();
        find(text, &mut named);
        named.into_values().flatten().collect()
    }

    #[test]
    fn ids_are_found_wherever_and_however_they_are_written() {
        let escaped = ID.replace('t', "\\u0074");
        let twice = ID.replace('_', "\\\\u005f");
        let escaping = ID.replace('_', "\\u005cu005F");
        let deeper = ID.replace('_', "\\u005c\\u0075005f");
        for text in [
            ID.to_owned(),
            format!("x{ID}"),
            format!("é{ID}é"),
            format!(r#"{{"tools":[{{"id":"{ID}"}}]}}"#),
            format!(r#"{{"id":"{escaped}"}}"#),
            format!(r#"{{"id":"{twice}"}}"#),
            format!(r#"{{"id":"{escaping}"}}"#),
            format!(r#"{{"id":"{deeper}"}}"#),
        ] {
            assert_eq!(found(&text), [ID], "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_ids() {
        for text in [
            "",
            "_",
            "tool_",
            "tool_01kas3v8hq4x7m2n5p6r9t0w1",
            "door_01kas3v8hq4x7m2n5p6r9t0w1z",
            "\\u",
            "\\u00",
        ] {
            assert_eq!(found(text), Vec::<String>::new(), "{text}");
        }
    }
}
