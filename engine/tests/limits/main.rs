//! Holds the table of limits in `docs/settings-and-limits.md` to the constants: every row of the table is in a list here,
//! with what the constants say. So are the numbers that other pages repeat.
#![allow(clippy::unwrap_used, reason = "a test")]
mod pages;
mod render;
mod sources;
mod table;

use pages::repeated;
use sources::read;
use table::limits;

/// The page with the table.
const PAGE: &str = "docs/settings-and-limits.md";

/// Rows that `host-native/src/server/limits_page_tests.rs` compares: their constants are the host's.
const OF_THE_HOST: &[&str] = &[
    "connections (self-hosted)",
    "outgoing requests and WebSockets at once (self-hosted)",
    "idle connection (self-hosted)",
    "heads of requests that have not arrived completely (self-hosted)",
    "long reads at once (self-hosted)",
    "long reads of one workspace at once (self-hosted)",
    "long reads that wait (self-hosted)",
    "changes that wait to be written (self-hosted)",
    "disk space for deletes on a full disk (self-hosted)",
    "free disk space that recordings leave to the database (self-hosted)",
];
/// Rows without a number of ours: an amount that others choose, or a limit of the library for HTTP or traces.
const WITHOUT_CONSTANTS: &[&str] = &[
    "costs in a calendar month (UTC)",
    "fields in a head (self-hosted)",
    "spans of traces that wait (self-hosted)",
];

#[test]
fn the_table_says_what_the_constants_say() {
    let rows = rows(&read(PAGE));
    let mut wrong = Vec::new();
    for (what, default, most) in limits() {
        match rows.iter().find(|row| row[0] == what) {
            None => wrong.push(format!("no row `{what}`: default `{default}`, at most `{most}`")),
            Some(row) if row[1] == default && row[2] == most => {}
            Some(row) => wrong.push(format!(
                "`{what}`: default `{}`, at most `{}`; the code says `{default}` and `{most}`",
                row[1], row[2]
            )),
        }
    }
    assert!(wrong.is_empty(), "{PAGE}:\n{}", wrong.join("\n"));
}

#[test]
fn every_row_of_the_table_is_compared_once() {
    let limits = limits();
    let mut known: Vec<&str> = limits.iter().map(|limit| limit.0).collect();
    known.extend(OF_THE_HOST.iter().chain(WITHOUT_CONSTANTS));
    known.sort_unstable();
    let rows = rows(&read(PAGE));
    let mut shown: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
    shown.sort_unstable();
    let twice: Vec<&[&str]> = shown.windows(2).filter(|two| two[0] == two[1]).collect();
    assert!(twice.is_empty(), "twice in {PAGE}: {twice:?}");
    let unknown: Vec<&&str> = shown.iter().filter(|row| !known.contains(row)).collect();
    assert!(unknown.is_empty(), "compared with nothing: {unknown:?}");
    assert_eq!(shown, known);
}

#[test]
fn other_pages_repeat_the_same_numbers() {
    let mut missing = Vec::new();
    for (page, numbers) in repeated() {
        // A sentence may be broken anywhere.
        let text = read(page).split_whitespace().collect::<Vec<_>>().join(" ");
        missing.extend(
            numbers
                .into_iter()
                .filter(|number| !text.contains(number))
                .map(|number| format!("{page}: {number}")),
        );
    }
    assert!(missing.is_empty(), "not found:\n{}", missing.join("\n"));
}

/// The cells of all rows in the chapter on limits.
fn rows(page: &str) -> Vec<Vec<String>> {
    let (_, limits) = page.split_once("\n## Limits\n").unwrap();
    let limits = limits.split("\n## ").next().unwrap();
    let cells = |line: &str| -> Vec<String> {
        let line = line.strip_prefix('|').unwrap().strip_suffix('|').unwrap();
        line.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let rows: Vec<_> = limits.lines().filter(|line| line.starts_with('|')).map(cells).collect();
    for row in &rows {
        assert_eq!(row.len(), 6, "{row:?}");
    }
    rows.into_iter().filter(|row| row[0] != "what" && !row[0].starts_with("---")).collect()
}
