//! SQL as data: statements with bound values, and result rows.
mod render;
mod rows;

use std::borrow::Cow;

use crate::base::ids::{Id, WorkspaceId};
use crate::base::time::Timestamp;

use self::render::{is_workspace, name_end, push_number};
#[doc(hidden)]
pub use self::render::{render, rendered_length, utf8};
pub use self::rows::{Row, Rows};

/// One SQL statement and its values, as [`sql!`](crate::sql) builds it. In the statements of an operation `:ws` stands
/// for the caller's workspace; `crate::operations::context::Context` replaces it.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// The SQL text.
    pub sql: Cow<'static, str>,
    /// `params[0]` is `?1`.
    pub params: Vec<Value>,
}

impl Statement {
    /// Renders a text that is built at run time; [`sql!`](crate::sql) renders literals at compile time.
    #[doc(hidden)]
    pub fn named(text: &str, values: Vec<(&'static str, Value)>) -> Self {
        let mut rendered = String::with_capacity(text.len());
        let (bytes, mut kept, mut at, mut used) = (text.as_bytes(), 0, 0, 0u128);
        while let Some(colon) = text[at..].find(':') {
            at += colon;
            let end = name_end(bytes, at);
            let index = values.iter().position(|(name, _)| end > at && *name == &text[at + 1..end]);
            if let Some(index) = index {
                rendered.push_str(&text[kept..at]);
                rendered.push('?');
                push_number(&mut rendered, index + 1);
                kept = end;
                used |= 1 << index;
            }
            debug_assert!(
                index.is_some() || end == at || is_workspace(bytes, at, end),
                "a parameter of the statement has no value: {text}"
            );
            at = end.max(at + 1);
        }
        debug_assert_eq!(used, (1 << values.len()) - 1, "a value has no parameter in the statement: {text}");
        rendered.push_str(&text[kept..]);
        Self { sql: Cow::Owned(rendered), params: values.into_iter().map(|(_, value)| value).collect() }
    }

    fn asker(&self) -> Option<&str> {
        self.params.iter().rev().find_map(|value| match value {
            Value::Asker(asker) => Some(asker.as_str()),
            _ => None,
        })
    }

    /// Replaces `:ws` with the id of a known workspace, for code below operations.
    pub fn in_workspace(self, workspace_id: &WorkspaceId) -> Self {
        self.with_workspace("?", workspace_id, "")
    }

    /// Replaces each `:ws` with `before`, which ends with `?`, the number of a parameter that holds `value`, and `after`.
    pub(crate) fn with_workspace(mut self, before: &str, value: &str, after: &str) -> Self {
        const MARK: &str = ":ws";
        self.params.push(Value::Asker(value.to_owned()));
        let text: &str = &self.sql;
        let (bytes, mut kept, mut at) = (text.as_bytes(), 0, 0);
        let mut rendered = String::with_capacity(text.len() + 2 * (before.len() + after.len()));
        while let Some(found) = text[at..].find(MARK) {
            at += found;
            if is_workspace(bytes, at, name_end(bytes, at)) {
                rendered.push_str(&text[kept..at]);
                rendered.push_str(before);
                push_number(&mut rendered, self.params.len());
                rendered.push_str(after);
                kept = at + MARK.len();
            }
            at += MARK.len();
        }
        rendered.push_str(&text[kept..]);
        self.sql = Cow::Owned(rendered);
        self
    }
}

impl Statement {
    /// The size of its texts.
    pub fn bytes(&self) -> u64 {
        let params: usize = self.params.iter().map(Value::bytes).sum();
        (self.sql.len() + params) as u64
    }
}

impl Value {
    /// The size of a text; 0 of others.
    pub(super) const fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Asker(text) => text.len(),
            Self::Null | Self::Number(_) => 0,
        }
    }
}

/// For whom a batch is: the workspace, or the API key whose workspace is not known yet. `None`: the service itself.
pub fn asker(batch: &[Statement]) -> Option<&str> {
    batch.iter().find_map(Statement::asker)
}

/// For whom a batch reads that can take long: a search, a list, statistics. A host with threads runs such a batch beside the
/// requests, and interrupts it after [`LONG_READ_MS`](crate::base::limits::LONG_READ_MS). `None`: it takes no time, or the
/// service itself asks.
pub fn long_read_of(batch: &[Statement]) -> Option<&str> {
    let is_long = |one: &&Statement| one.sql.starts_with("WITH ") || one.sql.contains(" MATCH ");
    batch.iter().any(|one| is_long(&one)).then(|| asker(batch)).flatten()
}

/// Whether a batch removes rows or recordings or revokes a key, and adds nothing but what that needs (guards, the stored
/// response). A host without room for data still writes it.
pub fn only_removes(batch: &[Statement]) -> bool {
    const SMALL: &[&str] = &[
        "SELECT",
        "DELETE FROM",
        "UPDATE",
        "INSERT INTO batch_guard",
        "INSERT INTO idempotency_keys",
        "INSERT INTO service_facts",
        "INSERT INTO audit_entries",
        // Sums without the deleted calls, where their words still are, and which blobs are to go.
        "INSERT INTO call_rollups",
        "INSERT INTO search_erasures",
        "INSERT INTO archives_to_remove",
    ];
    let begins = |statement: &Statement, words: &[&str]| {
        let sql = statement.sql.trim_start();
        words.iter().any(|word| sql.starts_with(word))
    };
    const REMOVES: &[&str] = &[
        "DELETE FROM",
        "UPDATE api_keys",
        "UPDATE recordings SET state = 'deleted'",
        "UPDATE recordings SET state = 'abandoned'",
    ];
    // Of the audit log, a change takes back its own entry.
    let removes = |one: &&Statement| begins(one, REMOVES) && !begins(one, &["DELETE FROM audit_entries"]);
    batch.iter().all(|statement| begins(statement, SMALL)) && batch.iter().any(|one| removes(&one))
}

/// Builds a [`Statement`] with named parameters: `sql!("SELECT 1 FROM calls WHERE id = :id AND version = :version",
/// id = &call_id, version = 3)`. D1 knows no named parameters, so they become `?1`, `?2`, … in the order of the values.
/// In a literal text, a parameter without a value, or a value without a parameter, does not compile.
#[macro_export]
macro_rules! sql {
    ($text:literal $(,)?) => {
        $crate::ports::statement::Statement {
            sql: ::std::borrow::Cow::Borrowed({
                const _: usize = $crate::ports::statement::rendered_length($text, &[]);
                $text
            }),
            params: ::std::vec::Vec::new(),
        }
    };
    ($text:literal $(, $name:ident = $value:expr)+ $(,)?) => {
        $crate::ports::statement::Statement {
            sql: ::std::borrow::Cow::Borrowed($crate::rendered_sql!($text, &[$(stringify!($name)),+])),
            params: vec![$($crate::ports::statement::Value::from($value)),+],
        }
    };
    ($text:expr $(, $name:ident = $value:expr)+ $(,)?) => {
        $crate::ports::statement::Statement::named(
            ::std::convert::AsRef::<str>::as_ref(&$text),
            vec![$((stringify!($name), $crate::ports::statement::Value::from($value))),+],
        )
    };
    ($text:expr $(,)?) => {
        $crate::ports::statement::Statement { sql: ::std::convert::Into::into($text), params: ::std::vec::Vec::new() }
    };
}

/// The text of a statement, rendered at compile time: its parameters are exactly these names, in the order of the values.
#[macro_export]
#[doc(hidden)]
macro_rules! rendered_sql {
    ($text:expr, $names:expr) => {{
        const TEXT: &str = $text;
        const NAMES: &[&str] = $names;
        const LENGTH: usize = $crate::ports::statement::rendered_length(TEXT, NAMES);
        const RENDERED: [u8; LENGTH] = $crate::ports::statement::render(TEXT, NAMES);
        const { $crate::ports::statement::utf8(&RENDERED) }
    }};
}

/// A value as both hosts bind and return it.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// Every number is a float, as in D1; integers are exact up to 2^53.
    Number(f64),
    /// UTF-8.
    Text(String),
    /// A text that no caller can choose: a workspace's id, or the hash of the API key whose workspace is not known yet.
    Asker(String),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}
impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}
impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}
impl From<i64> for Value {
    fn from(number: i64) -> Self {
        debug_assert!(number.unsigned_abs() <= 1 << 53, "{number} loses digits as a float");
        Self::Number(number as f64)
    }
}
impl From<Timestamp> for Value {
    fn from(time: Timestamp) -> Self {
        Self::from(time.ms())
    }
}
impl<I: Id> From<&I> for Value {
    fn from(id: &I) -> Self {
        let text = id.as_str().to_owned();
        // What is written for a workspace takes its turn, also when a job writes it.
        if I::PREFIX == WorkspaceId::PREFIX { Self::Asker(text) } else { Self::Text(text) }
    }
}
impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Number(if flag { 1.0 } else { 0.0 })
    }
}
impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(option: Option<T>) -> Self {
        option.map_or(Self::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;

    #[test]
    fn parameters_are_numbered_in_the_order_of_their_values() {
        let statement = sql!(
            "SELECT json_extract(value, '$.a') || ':' FROM t WHERE ws = :ws AND b = :b AND a = :a OR b = :b AND x = ':1'",
            a = 1,
            b = "two"
        );
        let expected = "SELECT json_extract(value, '$.a') || ':' FROM t WHERE ws = :ws AND b = ?2 AND a = ?1 OR b = ?2 AND x = ':1'";
        assert_eq!(statement.sql, expected);
        assert_eq!(statement.params, [Value::Number(1.0), Value::Text("two".to_owned())]);
    }

    #[test]
    fn text_built_at_run_time_is_rendered_equally() {
        let text = "SELECT ':1', 'é' FROM t WHERE ws = :ws AND b = :b AND a = :a OR b = :b";
        let statement = sql!(text.to_owned(), a = 1, b = "two");
        assert_eq!(statement.sql, "SELECT ':1', 'é' FROM t WHERE ws = :ws AND b = ?2 AND a = ?1 OR b = ?2");
        assert_eq!(
            statement,
            sql!("SELECT ':1', 'é' FROM t WHERE ws = :ws AND b = :b AND a = :a OR b = :b", a = 1, b = "two")
        );
        let bound = statement.in_workspace(&WorkspaceId::from_stored("ws_1"));
        assert_eq!(bound.sql, "SELECT ':1', 'é' FROM t WHERE ws = ?3 AND b = ?2 AND a = ?1 OR b = ?2");
        assert_eq!(bound.params[2], Value::Asker("ws_1".to_owned()));
    }

    #[test]
    fn a_long_read_is_of_the_workspace_that_it_reads_whatever_it_looks_for() {
        let (own, key) = (WorkspaceId::from_stored("ws_1"), "ab".repeat(32));
        let search = || sql!("SELECT 1 FROM words WHERE words MATCH :text AND :ws <> ''", text = "ws_2");
        assert_eq!(long_read_of(&[search().in_workspace(&own)]), Some("ws_1"));
        assert_eq!(long_read_of(&[search().with_workspace("?", &key, "")]), Some(key.as_str()));
        let point = sql!("SELECT 1 FROM calls WHERE workspace_id = :ws").in_workspace(&own);
        assert_eq!(long_read_of(&[point]), None);
        // The first of a key's batch finds the workspace, which it may name.
        let lookup = sql!("SELECT 1 WHERE COALESCE(:workspace, '') IS NOT NULL", workspace = &own);
        assert_eq!(long_read_of(&[lookup, search().with_workspace("?", &key, "")]), Some("ws_1"));
        let service = sql!("WITH due AS (SELECT :now AS now) SELECT now FROM due", now = 1);
        assert_eq!(long_read_of(&[service]), None, "the job queue waits for no search");
        let named = sql!("UPDATE assistants SET name = :name", name = "ws_2");
        assert_eq!(asker(from_ref(&named)), None, "nothing that a caller sends passes for somebody else");
        let delete = sql!("DELETE FROM tools WHERE workspace_id = :ws").in_workspace(&own);
        assert_eq!(asker(&[named, delete]), Some("ws_1"));
        let of_a_job = sql!(
            "DELETE FROM tools WHERE workspace_id = :workspace AND id = :id",
            workspace = &own,
            id = "a"
        );
        assert_eq!(asker(from_ref(&of_a_job)), Some("ws_1"));
    }

    #[test]
    fn a_batch_that_adds_something_is_no_removal() {
        let delete =
            || sql!("DELETE FROM tools WHERE workspace_id = :ws AND id = :id RETURNING id", id = "a");
        let guard = || sql!("INSERT INTO batch_guard (key_ok) SELECT 0");
        let insert = || sql!("INSERT INTO tools (id) VALUES (:id)", id = "a");
        assert!(only_removes(&[guard(), delete()]));
        assert!(only_removes(&[guard(), sql!("UPDATE api_keys SET revoked_at = :now", now = 1)]));
        let rename = || sql!("UPDATE tools SET name = :name", name = "a");
        assert!(!only_removes(&[guard(), rename()]));
        assert!(!only_removes(&[rename(), sql!("DELETE FROM audit_entries WHERE id = :id", id = "a")]));
        assert!(!only_removes(&[delete(), insert()]));
        assert!(!only_removes(&[guard()]));
    }

    #[test]
    fn the_tenth_value_has_two_digits() {
        let statement = sql!(
            "SELECT :a, :b, :c, :d, :e, :f, :g, :h, :i, :j, :k",
            a = 1,
            b = 2,
            c = 3,
            d = 4,
            e = 5,
            f = 6,
            g = 7,
            h = 8,
            i = 9,
            j = 10,
            k = 11
        );
        assert_eq!(statement.sql, "SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11");
        assert_eq!(
            sql!(
                statement.sql.replace('?', ":a"),
                a1 = 1,
                a2 = 2,
                a3 = 3,
                a4 = 4,
                a5 = 5,
                a6 = 6,
                a7 = 7,
                a8 = 8,
                a9 = 9,
                a10 = 10,
                a11 = 11
            )
            .sql,
            statement.sql
        );
    }

    #[test]
    fn a_prefix_of_a_name_is_not_replaced() {
        let statement = sql!("SELECT :id, :id_2, :wsx", id = 1, id_2 = 2, wsx = 3);
        assert_eq!(statement.sql, "SELECT ?1, ?2, ?3");
    }

    #[test]
    #[should_panic(expected = "a parameter of the statement has no value")]
    fn a_parameter_without_a_value_is_refused() {
        rendered_length("SELECT :id, :other", &["id"]);
    }

    #[test]
    #[should_panic(expected = "a value has no parameter in the statement")]
    fn a_value_without_a_parameter_is_refused() {
        rendered_length("SELECT :id", &["id", "other"]);
    }
}
