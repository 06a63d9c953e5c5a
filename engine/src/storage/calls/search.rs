//! The full-text index of calls: what it contains, and how a search text becomes an FTS5 expression.
use crate::base::ids::{CallId, WorkspaceId};
use crate::ports::statement::Statement;
use crate::sql;

/// Further words of a search are ignored.
const WORDS_MAX: usize = 32;

/// Indexes the current state of a call and replaces its former entry. [`mod@crate::storage::calls::write`] does this
/// for every change; use it alone only for a database that was filled in another way.
pub fn index(workspace_id: &WorkspaceId, id: &CallId) -> Statement {
    sql!(
        format!(
            "INSERT OR REPLACE INTO call_search (rowid, workspace, words)
             SELECT c.seq, {}, c.id || ' ' || COALESCE(c.from_number, '') || ' ' || COALESCE(c.to_number, '') || ' '
               || COALESCE(c.user_number, '') || ' ' || COALESCE(c.carrier_call_id, '') || ' '
               || COALESCE(c.simulation_run_id, '') || ' ' || COALESCE(json_extract(c.analysis, '$.summary'), '') || ' '
               || COALESCE((SELECT group_concat(json_extract(value, '$.text'), ' ') FROM json_each(t.content)), '')
             FROM calls AS c LEFT JOIN call_transcripts AS t ON t.seq = c.seq WHERE c.workspace_id = :workspace_id AND c.id = :id",
            workspace_word("c.workspace_id")
        ),
        workspace_id = workspace_id,
        id = id
    )
}

/// How many workspaces have words of deleted calls in the index, and of those a merge under way covers.
pub(crate) fn erasures() -> Statement {
    sql!("SELECT COUNT(*) AS workspaces, COALESCE(MAX(merging), 0) AS merging FROM search_erasures")
}

/// Merges some pages of the index's segments, which drops entries that are only marked as deleted. A merge that has not
/// `begun` takes in all segments. The rows of the second and the fourth statement tell how much has changed.
pub(crate) fn merge(pages: i64, begun: bool) -> [Statement; 4] {
    let changes = || sql!("SELECT total_changes() AS changes");
    [
        sql!("UPDATE search_erasures SET merging = 1 WHERE merging = 0 AND :begun = 0", begun = begun),
        changes(),
        sql!(
            "INSERT INTO call_search (call_search, rank) VALUES ('merge', CAST(:pages AS INTEGER))",
            pages = if begun { pages } else { -pages }
        ),
        changes(),
    ]
}

/// The merge under way is complete.
pub(crate) fn merged() -> Statement {
    sql!("DELETE FROM search_erasures WHERE merging = 1")
}

/// The word that a workspace is indexed by: without the `_`, at which the tokenizer would split it.
fn workspace_word(workspace: &str) -> String {
    format!("replace({workspace}, '_', '')")
}

/// The FTS5 expression for the words in `parameter`, within the caller's workspace. For a workspace without calls, and
/// with a wrong API key, it matches nothing and reads nothing: FTS5 collects all entries of a word that is a prefix
/// before it looks at the other words, so it would read the entries of all workspaces.
pub fn expression(parameter: &str) -> String {
    let workspace = workspace_word(":ws");
    format!(
        "CASE WHEN EXISTS (SELECT 1 FROM calls WHERE workspace_id = :ws)
         THEN 'workspace : \"' || {workspace} || '\" AND words : (' || {parameter} || ')'
         ELSE 'workspace : nobody' END"
    )
}

/// The search text as the words part of an expression: every word is quoted and required, and the last one is a prefix.
/// `None` when the text has no word, so that nothing can be found.
pub fn words(text: &str) -> Option<String> {
    let words: Vec<String> = text
        .split(|c: char| c.is_whitespace() || c.is_control() || c == '"')
        // The index contains letters and digits only; a word without them would find nothing.
        .filter(|word| word.chars().any(char::is_alphanumeric))
        .take(WORDS_MAX)
        .map(|word| format!("\"{word}\""))
        .collect();
    if words.is_empty() {
        return None;
    }
    let words = words.join(" AND ") + "*";
    Some(match phone_number(text) {
        Some(digits) => format!("(\"{digits}\"*) OR ({words})"),
        None => words,
    })
}

/// The digits of a text that looks like a telephone number, with any grouping: each number of a call is indexed as one
/// word.
fn phone_number(text: &str) -> Option<String> {
    const DIGITS_MIN: usize = 7;
    let grouping = |c: char| matches!(c, '+' | ' ' | '(' | ')' | '-' | '.' | '/');
    if !text.chars().all(|c| c.is_ascii_digit() || grouping(c)) {
        return None;
    }
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    (digits.len() >= DIGITS_MIN).then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_required_and_the_last_is_a_prefix() {
        assert_eq!(words("front  desk").unwrap(), r#""front" AND "desk"*"#);
        assert_eq!(words("call_01 -- x").unwrap(), r#""call_01" AND "x"*"#);
        assert_eq!(words(r#"a" OR workspace:"ws1"#).unwrap(), r#""a" AND "OR" AND "workspace:" AND "ws1"*"#);
        assert_eq!(words("a\0b").unwrap(), r#""a" AND "b"*"#);
        for nothing in ["", " ", "\"", "***", "—", "\0", "_", "👋"] {
            assert_eq!(words(nothing), None, "{nothing:?}");
        }
    }

    #[test]
    fn a_number_in_any_grouping_is_one_word() {
        for number in ["+14155550123", "1 (415) 555-0123", "1.415.555.0123"] {
            assert!(words(number).unwrap().starts_with("(\"14155550123\"*) OR ("), "{number}");
        }
        assert_eq!(words("10 12").unwrap(), r#""10" AND "12"*"#);
    }
}
