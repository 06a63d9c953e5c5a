//! `backup`, `restore` and `check`: the data folder as a whole.
use std::path::Path;

use tokio::runtime::Runtime;

use super::place::{Place, say_where, settings};
use super::{Failure, print_line};
use crate::backup;
use crate::check::{Looked, shorten};
use crate::data::DataFolder;
use crate::settings::secret;
use crate::text::{clean, counted, size};

/// `sidetone backup`
pub fn backup(place: &Place, target: &Path) -> Result<(), Failure> {
    Ok(print_line(&backup::backup(&place.data, target, secret().as_deref(), &mut progress)?)?)
}

/// `sidetone restore`. The folder is made only if all is well.
pub fn restore(source: &Path) -> Result<(), Failure> {
    let settings = settings()?;
    say_where(&settings.data, DataFolder::server_of(&settings.data).as_ref());
    let done = backup::restore(source, &settings.data, secret().as_deref(), &mut progress)?;
    // Its manifest may say anything.
    Ok(print_line(&clean(&done))?)
}

/// What `sidetone check` does with files that no row names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnnamedFiles {
    /// It reports them.
    Report,
    /// It shows what would be removed, and ends.
    Show,
    /// It removes them first.
    Remove,
}

/// `sidetone check`
pub fn check(place: &Place, unnamed: UnnamedFiles, runtime: &Runtime) -> Result<(), Failure> {
    if place.is_earlier()? {
        return Err("the database is of an earlier version, and a check changes nothing: run `sidetone check` of the version \
                    that it is of, or start the service, which upgrades it, and check again"
            .into());
    }
    if unnamed != UnnamedFiles::Report {
        remove_unnamed(&place.data, unnamed == UnnamedFiles::Remove)?;
    }
    let looked = Looked::at(place.data.path(), secret().as_deref());
    // It opens the database to write.
    let engine = looked.is_sound().then(|| place.engine()).transpose()?;
    let report = runtime.block_on(looked.report(engine.as_ref()));
    for line in &report.good {
        print_line(&format!("ok       {line}"))?;
    }
    for line in &report.problems {
        // Files may have any name.
        print_line(&clean(&format!("PROBLEM  {line}")))?;
    }
    match report.problems.len() {
        0 => Ok(()),
        some => Err(format!("{} in {}", counted(some as u64, "problem"), place.data.path().display()).into()),
    }
}

/// Removes files that no row names, or shows which they are.
fn remove_unnamed(data: &DataFolder, is_sure: bool) -> Result<(), Failure> {
    let unnamed = backup::remove_unnamed(data, secret().as_deref(), is_sure)?;
    let files = unnamed.files.len() as u64;
    let what =
        format!("{} ({}) that no row of the database names", counted(files, "file"), size(unnamed.bytes));
    if is_sure {
        return Ok(print_line(&format!("removed  {what}"))?);
    }
    if files == 0 {
        let nothing = "nothing is to be removed: each recording and transcript has its row";
        return Ok(print_line(&format!("ok       {nothing}"))?);
    }
    let mut names: Vec<String> = unnamed.files.iter().map(|file| file.display().to_string()).collect();
    shorten(&mut names, "file");
    for name in names {
        print_line(&format!("unnamed  {name}"))?;
    }
    if files * 2 > unnamed.of_files {
        let all = counted(unnamed.of_files, "file");
        print_line(&format!("warning  that is more than half of the {all} of recordings and transcripts"))?;
    }
    Err(format!(
        "{what} would be removed for good: make sure first that you have no newer database. Then: sidetone check --remove-unnamed --yes"
    )
    .into())
}

/// Shows how far a long command is, on standard error: its output stays clean.
fn progress(what: &str) {
    eprintln!("{what} …");
}
