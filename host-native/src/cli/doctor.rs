//! `sidetone doctor`: a line for each finding, and a status that a script can use.
use serde_json::json;
use tokio::runtime::Runtime;

use super::place::{say_where, settings};
use super::{Failure, print_line};
use crate::data::DataFolder;
use crate::doctor::{State, examine};
use crate::text::counted;

/// Runs it. A warning is no failure.
pub fn run(as_json: bool, runtime: Runtime) -> Result<(), Failure> {
    let settings = settings()?;
    say_where(&settings.data, DataFolder::server_of(&settings.data).as_ref());
    let findings = runtime.block_on(examine(&settings));
    // What did not end in time is not waited for.
    runtime.shutdown_background();
    for finding in &findings {
        let (word, state) = match finding.state {
            State::Good => ("ok      ", "ok"),
            State::Warning => ("warning ", "warning"),
            State::Problem => ("PROBLEM ", "problem"),
        };
        print_line(&match as_json {
            true => json!({"check": finding.check, "state": state, "detail": finding.detail}).to_string(),
            false => format!("{word} {}: {}", finding.check, finding.detail),
        })?;
    }
    match findings.iter().filter(|finding| finding.state == State::Problem).count() {
        0 => Ok(()),
        some => Err(counted(some as u64, "problem").into()),
    }
}
