//! `sidetone check`: the data folder, compared with itself. It changes nothing, and works while the service runs.
use std::fs;
use std::path::Path;

use sidetone_engine::engine::Engine;
use sidetone_engine::storage::checked::Checked;
use sidetone_engine::storage::fault::Fault;

use crate::backup::{Listed, Unnamed, verify};
use crate::data::{DATABASE, DataFolder, LOCK, RECORDINGS, RESERVE, SECRET, TRANSCRIPTS};
use crate::text::counted;

/// Lines of one kind that are shown.
const SHOWN_MAX: usize = 20;
/// Files without a row that are named.
const UNNAMED_SHOWN_MAX: usize = 5;

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
    let listed = Listed::of(data.path());
    let verified = match verify(data.path(), secret) {
        Ok(found) => {
            report.good.push(format!("the database is sound: {}", found.summary()));
            Some(found)
        }
        Err(error) => {
            report.problems.push(error.to_string());
            // Nobody knows what it names.
            None
        }
    };
    let (recordings, problems) =
        compared("recording", async |after: String| engine.check_recordings(&after).await).await;
    if problems.is_empty() {
        report.good.push(complete(recordings, "recording"));
    }
    report.problems.extend(problems);
    let (transcripts, problems) =
        compared("archived transcript", async |after| engine.check_archives(after).await).await;
    if problems.is_empty() && transcripts > 0 {
        report.good.push(complete(transcripts, "archived transcript"));
    }
    report.problems.extend(problems);
    match listed.and_then(|listed| Ok((unexpected_files(data.path(), &listed)?, listed))) {
        Ok((mut names, listed)) => {
            let unnamed = verified.map(|verified| listed.unnamed(data.path(), &verified));
            if names.is_empty() && unnamed.as_ref().is_some_and(|unnamed| unnamed.files.is_empty()) {
                report.good.push("every file belongs to the service".to_owned());
            }
            shorten(&mut names, "file");
            report.problems.extend(names);
            report.problems.extend(unnamed.and_then(|unnamed| without_a_row(&unnamed)));
        }
        Err(error) => report.problems.push(format!("{} cannot be read: {error}", data.path().display())),
    }
    report
}

fn complete(compared: u64, what: &str) -> String {
    match compared {
        1 => format!("the only {what} is there, in full"),
        some => format!("all {} are there, in full", counted(some, what)),
    }
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
            Err(fault) => problems.push(format!("the {what}s cannot be listed: {fault:?}")),
        }
    }
    shorten(&mut problems, what);
    (compared, problems)
}

/// Leaves the first of these lines, and says how many more there are.
pub(crate) fn shorten(lines: &mut Vec<String>, what: &str) {
    let more = lines.len().saturating_sub(SHOWN_MAX);
    lines.truncate(SHOWN_MAX);
    if more > 0 {
        lines.push(format!("… and {}", counted(more as u64, &format!("more {what}"))));
    }
}

/// What is wrong with these files, which no row names.
fn without_a_row(unnamed: &Unnamed) -> Option<String> {
    let files = &unnamed.files;
    let first: Vec<String> =
        files.iter().take(UNNAMED_SHOWN_MAX).map(|file| file.display().to_string()).collect();
    (!files.is_empty()).then(|| {
        format!(
            "no row of the database names {} in {RECORDINGS} and {TRANSCRIPTS}: {}{}. A copy from before they were deleted has brought \
             them back, or the database is older than they are. Unless you still have a newer one, stop the service and remove \
             them with: sidetone check --remove-unnamed",
            counted(files.len() as u64, "file"),
            first.join(", "),
            if files.len() > first.len() { ", …" } else { "" }
        )
    })
}

/// Files of the data folder that the service has not made, or that others can read.
fn unexpected_files(folder: &Path, listed: &Listed) -> std::io::Result<Vec<String>> {
    let names = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
        .collect::<Result<Vec<String>, _>>()?;
    let foreign = listed.foreign().map(|file| file.display().to_string());
    let unknown = names.into_iter().filter(|name| !is_ours(name)).chain(foreign);
    let mut found: Vec<String> =
        unknown.map(|name| format!("{name} in the data folder is not the service's")).collect();
    found.extend(open_to_others(folder)?);
    Ok(found)
}

/// Whether the service makes a file or folder with this name.
fn is_ours(name: &str) -> bool {
    match name.strip_prefix(DATABASE) {
        Some(suffix) => ["", "-wal", "-shm"].contains(&suffix),
        // The last is of Litestream, which copies the database continuously.
        None => [SECRET, LOCK, RECORDINGS, TRANSCRIPTS, RESERVE, &format!(".{DATABASE}-litestream")]
            .contains(&name),
    }
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
