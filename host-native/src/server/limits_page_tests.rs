//! Compares the rows of `docs/settings-and-limits.md` whose constants are this host's; `engine/tests/limits/` compares
//! the others.
use super::IDLE_MS;
use super::connections::HEADS_BYTES_MAX;
use super::watched::HEAD_BYTES_FREE;
use crate::open_files::{CONNECTIONS_MAX, OTHER_FILES, OUTGOING_MAX};
use crate::settings::Settings;

const PAGE: &str = include_str!("../../../docs/settings-and-limits.md");
const READERS: &str = include_str!("../database/readers.rs");
const TURNS: &str = include_str!("../database/turns.rs");
const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// The numbers in the cells `default` and `at most` of a row.
fn numbers(what: &str) -> Vec<u64> {
    let begins = format!("| {what} (self-hosted) | ");
    let row = PAGE.lines().find_map(|line| line.strip_prefix(&begins));
    let row = row.unwrap_or_else(|| panic!("no row `{what} (self-hosted)`")).replace(',', "");
    let cells: Vec<&str> = row.split('|').take(2).collect();
    let digits = cells.join(" ");
    digits.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

/// A constant that only its module knows.
fn of_source(text: &str, constant: &str) -> u64 {
    let begins = format!("const {constant}: usize = ");
    let value = text.lines().find_map(|line| line.strip_prefix(&begins));
    let value = value.unwrap_or_else(|| panic!("no constant {constant}"));
    value.trim_end_matches(';').replace('_', "").parse().unwrap()
}

#[test]
fn the_table_says_what_the_constants_say() {
    let reserve_bytes = Settings::read(|_| None).unwrap().reserve_bytes;
    assert_eq!(numbers("connections"), [CONNECTIONS_MAX as u64, OTHER_FILES as u64]);
    assert_eq!(
        numbers("outgoing requests and WebSockets at once"),
        [OUTGOING_MAX as u64, OTHER_FILES as u64]
    );
    assert_eq!(numbers("idle connection").first().map(|minutes| minutes * 60_000), Some(IDLE_MS));
    let heads = "heads of requests that have not arrived completely";
    assert_eq!(numbers(heads), [HEADS_BYTES_MAX / MIB, HEAD_BYTES_FREE / KIB]);
    assert_eq!(numbers("long reads at once"), [of_source(READERS, "TURNS_PER_CORE")]);
    assert!(READERS.contains("cores.saturating_sub(1).max(1)"), "long reads of one workspace");
    assert_eq!(numbers("long reads of one workspace at once"), [1]);
    let waiting = ["ALL_WAITING_MAX", "WAITING_MAX"].map(|constant| of_source(TURNS, constant));
    assert_eq!(numbers("long reads that wait"), waiting);
    let (changes, bytes) = crate::database::WAITING_CHANGES_MAX;
    assert_eq!(numbers("changes that wait to be written"), [changes, bytes / MIB]);
    assert_eq!(numbers("disk space for deletes on a full disk"), [reserve_bytes / MIB]);
}
