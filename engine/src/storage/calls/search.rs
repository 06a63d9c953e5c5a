//! The text index: what is found by it, and how a user's words become an expression for it.
use crate::ports::statement::Statement;
use crate::sql;

/// Words of a search that are looked for; further ones are left out.
const WORDS_MAX: usize = 32;

/// Indexes a call as it now is, in place of what was indexed of it before. [`mod@crate::storage::calls::write`] does it for every
/// change; by itself it is for a database that was filled otherwise.
pub fn index(workspace_id: &str, id: &str) -> Statement {
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

/// The one word a workspace is indexed by: without the `_`, at which the index would cut it in two.
fn workspace_word(workspace: &str) -> String {
    format!("replace({workspace}, '_', '')")
}

/// The expression to be matched for the words in the parameter, within the caller's workspace. A wrong key
/// has none, and an expression of nothing would be an error where an empty answer is due.
pub fn expression(parameter: &str) -> String {
    let workspace = workspace_word("COALESCE(:ws, 'nobody')");
    format!("'workspace : \"' || {workspace} || '\" AND words : (' || {parameter} || ')'")
}

/// A user's text as the words part of an expression: each word quoted, all of them wanted, the last one
/// perhaps unfinished. `None` when it has no word, so that nothing can be found.
pub fn words(text: &str) -> Option<String> {
    let words: Vec<String> = text
        .split(|c: char| c.is_whitespace() || c.is_control() || c == '"')
        // The index knows letters and digits only; a word of none would find nothing.
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

/// The digits of what looks like a telephone number, however it is grouped: a call's numbers are indexed
/// as one word each.
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
    fn every_word_is_wanted_and_the_last_may_go_on() {
        assert_eq!(words("front  desk").unwrap(), r#""front" AND "desk"*"#);
        assert_eq!(words("call_01 -- x").unwrap(), r#""call_01" AND "x"*"#);
        assert_eq!(words(r#"a" OR workspace:"ws1"#).unwrap(), r#""a" AND "OR" AND "workspace:" AND "ws1"*"#);
        assert_eq!(words("a\0b").unwrap(), r#""a" AND "b"*"#);
        for nothing in ["", " ", "\"", "***", "—", "\0", "_", "👋"] {
            assert_eq!(words(nothing), None, "{nothing:?}");
        }
    }

    #[test]
    fn a_number_is_one_word_however_it_is_grouped() {
        for number in ["+14155550123", "1 (415) 555-0123", "1.415.555.0123"] {
            assert!(words(number).unwrap().starts_with("(\"14155550123\"*) OR ("), "{number}");
        }
        assert_eq!(words("10 12").unwrap(), r#""10" AND "12"*"#);
    }
}
