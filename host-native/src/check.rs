//! `sidetone check`: the data folder, compared with itself. It changes nothing, and works while the service runs.
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use sidetone_engine::engine::Engine;
use sidetone_engine::storage::checked::Checked;
use sidetone_engine::storage::fault::Fault;

use crate::backup::verify;
use crate::data::DataFolder;

/// Problems of one kind that are shown.
const SHOWN_MAX: usize = 20;

/// What a check has found.
#[derive(Debug, Default)]
pub struct Report {
    /// What is in order.
    pub good: Vec<String>,
    /// What is not.
    pub problems: Vec<String>,
}

/// Checks the database, the secret and the recordings.
pub async fn check(engine: &Engine, data: &DataFolder, secret: Option<&str>) -> Report {
    let mut report = Report::default();
    match verify(data.path(), secret) {
        Ok(found) => report.good.push(format!(
            "the database is sound: {} workspaces, {} calls, {} recordings",
            found.workspaces, found.calls, found.recordings
        )),
        Err(error) => report.problems.push(error.to_string()),
    }
    let (recordings, problems) =
        compared("recordings", async |after: String| engine.check_recordings(&after).await).await;
    if problems.is_empty() {
        report.good.push(format!("all {recordings} recordings are there, in full"));
    }
    report.problems.extend(problems);
    let (transcripts, problems) =
        compared("archived transcripts", async |after| engine.check_archives(after).await).await;
    if problems.is_empty() && transcripts > 0 {
        report.good.push(format!("all {transcripts} archived transcripts are there, in full"));
    }
    report.problems.extend(problems);
    match strangers(data.path()) {
        Ok(names) if names.is_empty() => report.good.push("every file belongs to the service".to_owned()),
        Ok(mut names) => {
            shorten(&mut names, "files");
            report.problems.extend(names);
        }
        Err(error) => report.problems.push(format!("{} cannot be read: {error}", data.path().display())),
    }
    report
}

/// How many of these were compared with their files, part after part, and what is wrong with them.
async fn compared<Place: Default>(
    what: &str,
    next: impl AsyncFn(Place) -> Result<Checked<Place>, Fault>,
) -> (u64, Vec<String>) {
    let (mut compared, mut problems, mut after) = (0, Vec::new(), Some(Place::default()));
    while let Some(place) = after.take() {
        match next(place).await {
            Ok(part) => {
                compared += part.compared;
                problems.extend(part.problems);
                after = part.next;
            }
            Err(fault) => problems.push(format!("the {what} cannot be listed: {fault:?}")),
        }
    }
    shorten(&mut problems, what);
    (compared, problems)
}

fn shorten(problems: &mut Vec<String>, what: &str) {
    let more = problems.len().saturating_sub(SHOWN_MAX);
    problems.truncate(SHOWN_MAX);
    if more > 0 {
        problems.push(format!("… and {more} more {what}"));
    }
}

/// Files of the data folder that the service has not made, or that others can read.
fn strangers(folder: &Path) -> std::io::Result<Vec<String>> {
    let ours: BTreeSet<&str> = [
        "sidetone.db",
        "sidetone.db-wal",
        "sidetone.db-shm",
        "secret",
        "lock",
        "recordings",
        "transcripts",
        "reserve",
        // Of Litestream, which copies the database continuously.
        ".sidetone.db-litestream",
    ]
    .into();
    let names = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
        .collect::<Result<Vec<String>, _>>()?;
    let unknown = names.iter().filter(|name| !ours.contains(name.as_str()));
    let mut found: Vec<String> =
        unknown.map(|name| format!("{name} in the data folder is not the service's")).collect();
    found.extend(open_to_others(folder)?);
    Ok(found)
}

/// What in the data folder others than its owner can read, the folder included.
pub fn open_to_others(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut found = Vec::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mut look = |path: &Path| -> std::io::Result<()> {
            let mode = path.metadata()?.permissions().mode() & 0o777;
            if mode & 0o077 != 0 {
                let shown = path.display();
                found.push(format!("{shown} is open to others (mode {mode:o}); run chmod go= {shown}"));
            }
            Ok(())
        };
        look(folder)?;
        for entry in fs::read_dir(folder)? {
            look(&entry?.path())?;
        }
    }
    Ok(found)
}
