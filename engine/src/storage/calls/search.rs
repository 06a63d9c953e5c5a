//! The full-text index of calls: what it contains, and how a search text becomes an FTS5 expression.
//!
//! Every word of the index begins with its workspace. FTS5 collects all entries of a word that is a prefix before it
//! looks at anything else, so this is what keeps a search from reading the entries of other workspaces.
mod tokens;
pub(crate) mod upgrade;

use serde_json::json;

pub use self::tokens::tokens;
use crate::base::ids::{CallId, WorkspaceId};
use crate::conversation::transcript::TranscriptRow;
use crate::ports::statement::Statement;
use crate::sql;
use crate::storage::calls::{Analysis, EndedCall, NewCall};
use crate::storage::moves::lock::INDEX_STAYS;

/// Further words of a search are ignored.
const WORDS_MAX: usize = 32;
/// The columns for what was said.
const SAID_COLUMNS: [&str; 4] = ["said", "said2", "said3", "said4"];
/// Size of such a column, with the workspace in each word: D1 holds texts of 2 MB. All columns together hold a
/// transcript of the maximum size in which every word is one letter.
const SAID_BYTES_MAX: usize = 1_800_000;
/// What the workspace adds to a word.
const WORKSPACE_BYTES: usize = WORKSPACE_CHARS + 1;
/// Random characters of an id. Two workspaces that share them would share entries to read, but find no calls of each other. So an
/// import refuses an id that somebody has chosen like that.
const WORKSPACE_CHARS: usize = 8;
/// Words that a column repeats of the one before, so that words in a row are found across the border: as many as a
/// search text can have.
const REPEATED_WORDS: usize = 256;

/// Stores the words of a new call, unless they are stored.
pub(super) fn insert(new: &NewCall, ended: Option<&EndedCall>, analysis: Option<&Analysis>) -> Statement {
    let NewCall { workspace_id, id, from, to, user_number, carrier_call_id, simulation_run_id, .. } = new;
    let insert = sql!(
        "INSERT INTO call_words (seq, workspace_id, heads, carrier, summary, said)
         SELECT seq, workspace_id, :heads, :carrier, :summary, :said FROM calls WHERE workspace_id = :ws AND id = :call
         ON CONFLICT DO NOTHING",
        call = id,
        heads = heads(id, [from.as_deref(), to.as_deref(), user_number.as_deref(), simulation_run_id.as_deref()]),
        carrier = joined(carrier_call_id.as_deref()),
        summary = joined(analysis.map(|analysis| analysis.summary.as_str())),
        said = ended.and_then(|ended| said(lines(&ended.transcript))),
    );
    insert.in_workspace(workspace_id)
}

/// Stores the words of a call that ends. It precedes the change of the call, which may run twice.
pub(super) fn end(
    workspace_id: &WorkspaceId,
    id: &CallId,
    ended: &EndedCall,
    analysis: Option<&Analysis>,
) -> Statement {
    let update = sql!(
        "UPDATE call_words SET said = :said, summary = :summary
         WHERE seq = (SELECT seq FROM calls WHERE workspace_id = :ws AND id = :call AND status <> 'ended')",
        call = id,
        said = said(lines(&ended.transcript)),
        summary = joined(analysis.map(|analysis| analysis.summary.as_str())),
    );
    update.in_workspace(workspace_id)
}

/// Stores the words of the analysis of an ended call.
pub(super) fn analyzed(workspace_id: &WorkspaceId, id: &CallId, analysis: &Analysis) -> Statement {
    let update = sql!(
        "UPDATE call_words SET summary = :summary
         WHERE seq = (SELECT seq FROM calls WHERE workspace_id = :ws AND id = :call AND status = 'ended')",
        call = id,
        summary = joined([analysis.summary.as_str()]),
    );
    update.in_workspace(workspace_id)
}

/// Stores the words of the carrier's id of a call.
pub(super) fn carried(workspace_id: &WorkspaceId, id: &CallId, carrier_call_id: &str) -> Statement {
    let update = sql!(
        "UPDATE call_words SET carrier = :carrier WHERE seq = (SELECT seq FROM calls WHERE workspace_id = :ws AND id = :call)",
        call = id,
        carrier = joined([carrier_call_id]),
    );
    update.in_workspace(workspace_id)
}

/// Indexes the stored words of a call and replaces its former entry. [`mod@crate::storage::calls::write`] does this for
/// every change; use it alone only for a database that was filled in another way.
pub fn index(workspace_id: &WorkspaceId, id: &CallId) -> [Statement; 2] {
    [entry(workspace_id, id), sql!(upgrade::index_where(ONE), workspace_id = workspace_id, id = id)]
}

/// The first of [`index`], for calls whose words are stored.
pub(in crate::storage) fn entry(workspace_id: &WorkspaceId, id: &CallId) -> Statement {
    sql!(index_where(ONE), workspace_id = workspace_id, id = id)
}

/// Removes the entries of the calls with these numbers, which a query selects.
pub(in crate::storage) fn remove_entries(numbers: &str) -> String {
    format!("DELETE FROM call_index WHERE rowid IN ({numbers})")
}

const ONE: &str = "c.workspace_id = :workspace_id AND c.id = :id";

fn index_where(condition: &str) -> String {
    let workspace = workspace_mark("c.workspace_id");
    let marked = |words: &str| format!("{workspace} || replace({words}, ' ', ' ' || {workspace})");
    let about = "w.heads || COALESCE(' ' || w.carrier, '') || COALESCE(' ' || w.summary, '')";
    let said = (0..SAID_COLUMNS.len()).map(|at| marked(&format!("json_extract(w.said, '$[{at}]')")));
    format!(
        "INSERT OR REPLACE INTO call_index (rowid, about, {}) SELECT c.seq, {}, {}
         FROM calls AS c CROSS JOIN call_words AS w ON w.seq = c.seq WHERE {condition}",
        SAID_COLUMNS.join(", "),
        marked(about),
        said.collect::<Vec<_>>().join(", ")
    )
}

/// How many workspaces have words of deleted calls in the index, and of those a merge under way covers.
pub(crate) fn erasures() -> Statement {
    sql!(format!(
        "SELECT COUNT(*) AS workspaces, COALESCE(MAX(merging), 0) AS merging FROM search_erasures WHERE {INDEX_STAYS}"
    ))
}

/// The words of calls of workspace `:ws` that were deleted are to be merged out of the index: with a merge that is yet to begin.
pub(crate) fn erase_words() -> Statement {
    sql!(
        "INSERT INTO search_erasures (workspace_id, merging) VALUES (:ws, 0) ON CONFLICT DO UPDATE SET merging = 0"
    )
}

/// Merges some pages of the index's segments, and of the former index's, which drops entries that are only marked as
/// deleted. A merge that has not `begun` takes in all segments. The rows of every second statement tell how much has
/// changed.
pub(crate) fn merge(pages: i64, begun: bool) -> [Statement; 6] {
    let changes = || sql!("SELECT total_changes() AS changes");
    let pages = if begun { pages } else { -pages };
    [
        sql!(
            format!(
                "UPDATE search_erasures SET merging = 1 WHERE merging = 0 AND :begun = 0 AND {INDEX_STAYS}"
            ),
            begun = begun
        ),
        changes(),
        sql!(
            "INSERT INTO call_index (call_index, rank) VALUES ('merge', CAST(:pages AS INTEGER))",
            pages = pages
        ),
        changes(),
        sql!(
            "INSERT INTO call_search (call_search, rank) VALUES ('merge', CAST(:pages AS INTEGER))",
            pages = pages
        ),
        changes(),
    ]
}

/// The merge under way is complete.
pub(crate) fn merged() -> Statement {
    sql!(format!("DELETE FROM search_erasures WHERE merging = 1 AND {INDEX_STAYS}"))
}

/// What the words of a workspace begin with: the end of its id, which is random, and a `.`, which is in no word.
pub(in crate::storage) fn workspace_mark(workspace: &str) -> String {
    format!("(substr(replace({workspace}, '_', ''), -{WORKSPACE_CHARS}) || '.')")
}

/// A SELECT of the `seq` of the calls that have the words in `parameter`, in the caller's workspace. With a wrong API key
/// it finds nothing.
pub fn found(parameter: &str) -> String {
    format!(
        "SELECT rowid AS seq FROM call_index WHERE call_index MATCH COALESCE(replace({parameter}, '.', {}), 'nobody')
         UNION ALL {}",
        workspace_mark(":ws"),
        upgrade::found(parameter)
    )
}

/// The search text as an expression: every word is required, and the last one is a prefix. A `.` stands where the
/// workspace belongs. `None` when the text has no word, so that nothing can be found.
pub fn words(text: &str) -> Option<String> {
    let mut words = Vec::new();
    let separated = text.split(|c: char| c.is_whitespace() || c.is_control() || c == '"');
    for word in separated.filter(|word| word.chars().any(char::is_alphanumeric)).take(WORDS_MAX) {
        // Parts of a word, such as those of an id, are found in a row.
        let parts: Vec<String> = tokens(word).map(|part| format!(".{part}")).collect();
        if parts.is_empty() {
            return None;
        }
        words.push(format!("\"{}\"", parts.join(" ")));
    }
    if words.is_empty() {
        return None;
    }
    let words = words.join(" AND ") + "*";
    Some(match phone_number(text) {
        Some(digits) => format!("(\".{digits}\"*) OR ({words})"),
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

/// Whether a text is words of the index with single spaces, as they are stored.
pub(in crate::storage) fn are_words(text: &str) -> bool {
    text.is_empty() || text.split(' ').all(|word| tokens(word).eq([word]))
}

fn heads<'a>(id: &'a str, others: [Option<&'a str>; 4]) -> String {
    joined([id].into_iter().chain(others.into_iter().flatten())).unwrap_or_default()
}

/// The words of the texts, with single spaces; `None` if there are none.
fn joined<'a>(texts: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let words: Vec<&str> = texts.into_iter().flat_map(tokens).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

fn lines(transcript: &[TranscriptRow]) -> impl Iterator<Item = &str> {
    transcript.iter().map(|row| row.text.as_str())
}

/// The words of the lines, as a list of a text for each column that is needed; `None` if there are none.
fn said<'a>(lines: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let columns = columns(lines.into_iter().flat_map(tokens), SAID_BYTES_MAX);
    (!columns.is_empty()).then(|| json!(columns).to_string())
}

fn columns<'a>(words: impl Iterator<Item = &'a str>, bytes_max: usize) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    let mut bytes = usize::MAX;
    for word in words {
        let size = word.len() + 1 + WORKSPACE_BYTES;
        match columns.last_mut() {
            Some(column) if bytes + size <= bytes_max => {
                column.push(' ');
                column.push_str(word);
                bytes += size;
            }
            last => {
                let mut column = last.map_or(String::new(), |column| {
                    let start =
                        column.rmatch_indices(' ').nth(REPEATED_WORDS - 1).map_or(0, |(at, _)| at + 1);
                    format!("{} ", &column[start..])
                });
                column.push_str(word);
                bytes = column.len() + (REPEATED_WORDS + 1) * WORKSPACE_BYTES;
                columns.push(column);
            }
        }
    }
    columns.truncate(SAID_COLUMNS.len());
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::limits::SEARCH_CHARS_MAX;
    use crate::conversation::TRANSCRIPT_BYTES_MAX;

    #[test]
    fn every_word_is_required_and_the_last_is_a_prefix() {
        assert_eq!(words("front  desk").unwrap(), r#"".front" AND ".desk"*"#);
        assert_eq!(words("call_01 -- x").unwrap(), r#"".call .01" AND ".x"*"#);
        assert_eq!(
            words(r#"a" OR workspace:"ws1"#).unwrap(),
            r#"".a" AND ".OR" AND ".workspace" AND ".ws1"*"#
        );
        assert_eq!(words("a\0b").unwrap(), r#"".a" AND ".b"*"#);
        for nothing in ["", " ", "\"", "***", "—", "\0", "_", "👋"] {
            assert_eq!(words(nothing), None, "{nothing:?}");
        }
    }

    #[test]
    fn a_number_in_any_grouping_is_one_word() {
        for number in ["+14155550123", "1 (415) 555-0123", "1.415.555.0123"] {
            assert!(words(number).unwrap().starts_with("(\".14155550123\"*) OR ("), "{number}");
        }
        assert_eq!(words("10 12").unwrap(), r#"".10" AND ".12"*"#);
    }

    #[test]
    fn the_largest_transcript_has_room_whatever_its_words() {
        for word in ["x ", "words ", "\u{1f600}é "] {
            let text = word.repeat(TRANSCRIPT_BYTES_MAX / word.len());
            let columns = columns(tokens(&text), SAID_BYTES_MAX);
            let marked = |column: &String| column.len() + (column.matches(' ').count() + 1) * WORKSPACE_BYTES;
            assert!(columns.iter().all(|column| marked(column) <= SAID_BYTES_MAX));
            let words: usize = columns.iter().map(|column| column.matches(' ').count() + 1).sum();
            let repeated = (columns.len() - 1) * REPEATED_WORDS;
            assert_eq!(words - repeated, tokens(&text).count(), "{word}");
        }
    }

    #[test]
    fn words_in_a_row_are_found_across_the_border_of_two_columns() {
        let text: Vec<String> = (0..3_000).map(|n| n.to_string()).collect();
        let columns = columns(text.iter().map(String::as_str), 20_000);
        assert!(columns.len() > 1);
        let longest = usize::try_from(SEARCH_CHARS_MAX).unwrap() / 2;
        assert!(longest < REPEATED_WORDS);
        let covered = columns.iter().map(|column| column.matches(' ').count()).sum::<usize>();
        for row in text[..covered - 3 * REPEATED_WORDS].windows(longest) {
            assert!(columns.iter().any(|column| column.contains(&row.join(" "))));
        }
    }
}
