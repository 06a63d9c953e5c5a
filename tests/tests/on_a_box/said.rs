//! What a command has said.
use std::path::Path;
use std::process::Output;

/// The output of a command that worked.
pub fn answered(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The error of a command that did not: the last line on standard error.
pub fn refused(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "it succeeded: {}", String::from_utf8_lossy(&output.stdout));
    let line = text.lines().last().expect("an error").to_owned();
    assert!(line.starts_with("sidetone: "), "{text}");
    line
}

/// Where a command said that it works.
pub fn place(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.lines()
        .find(|line| line.starts_with("In "))
        .unwrap_or_else(|| panic!("no folder: {text}"))
        .to_owned()
}

/// The first API key in a text.
pub fn key_in(text: &str) -> String {
    let start = text.find("sidetone_").unwrap_or_else(|| panic!("no key in the output: {text}"));
    text[start..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
}

/// Moves everything into the database file, so that a test can damage it there.
pub fn settle(data: &Path) {
    let database = rusqlite::Connection::open(data.join("sidetone.db")).unwrap();
    database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
}
