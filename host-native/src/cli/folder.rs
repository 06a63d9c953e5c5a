//! `backup`, `restore` and `check`: the data folder as a whole.
use std::path::Path;

use tokio::runtime::Runtime;

use super::place::{Place, say_where, settings};
use super::{Failure, print_line};
use crate::as_code::clean;
use crate::backup;
use crate::check;
use crate::data::DataFolder;

/// `sidetone backup`
pub fn backup(place: &Place, target: &Path) -> Result<(), Failure> {
    Ok(print_line(&backup::backup(&place.data, target, &mut progress)?)?)
}

/// `sidetone restore`. The folder is made only if all is well.
pub fn restore(source: &Path) -> Result<(), Failure> {
    let settings = settings()?;
    say_where(&settings.data, DataFolder::server_of(&settings.data).as_ref());
    let done = backup::restore(source, &settings.data, secret_setting().as_deref(), &mut progress)?;
    // Its manifest may say anything.
    Ok(print_line(&clean(&done))?)
}

/// `sidetone check`
pub fn check(place: &Place, runtime: &Runtime) -> Result<(), Failure> {
    if place.is_earlier()? {
        return Err("the database is of an earlier version, and a check changes nothing; the service upgrades it at its \
                    start"
            .into());
    }
    let engine = place.engine()?;
    let report = runtime.block_on(check::check(&engine, &place.data, secret_setting().as_deref()));
    for line in &report.good {
        print_line(&format!("ok       {line}"))?;
    }
    for line in &report.problems {
        print_line(&format!("PROBLEM  {line}"))?;
    }
    match report.problems.len() {
        0 => Ok(()),
        some => Err(format!("{some} problems in {}", place.data.path().display()).into()),
    }
}

/// The server secret, where a setting has it.
fn secret_setting() -> Option<String> {
    std::env::var("SIDETONE_SECRET")
        .ok()
        .map(|secret| secret.trim().to_owned())
        .filter(|secret| !secret.is_empty())
}

/// Shows how far a long command is, on standard error: its output stays clean.
fn progress(what: &str) {
    eprintln!("{what} …");
}
