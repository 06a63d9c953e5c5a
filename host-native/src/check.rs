//! `sidetone check`: the data folder, compared with itself. It changes nothing, and works while the service runs.
use std::fs;
use std::io;
use std::path::Path;

use sidetone_engine::engine::Engine;
use sidetone_engine::storage::checked::Checked;
use sidetone_engine::storage::fault::Fault;

use crate::backup::{Listed, Unnamed, Verified, verify};
use crate::data::{DATABASE, LOCK, RECORDINGS, RESERVE, SECRET, TRANSCRIPTS};
use crate::text::{count, counted};

/// Lines of one kind that are shown.
const SHOWN_MAX: usize = 20;
/// Files without a row that are named.
const UNNAMED_SHOWN_MAX: usize = 5;
/// A folder that a fresh volume has, of its file system.
const LOST_AND_FOUND: &str = "lost+found";

/// What a check has found.
#[derive(Debug, Default)]
pub struct Report {
    /// What is in order.
    pub good: Vec<String>,
    /// What is not.
    pub problems: Vec<String>,
}

/// What a check has found without a connection that writes: that would move a log that is left into the database, even if it is
/// another one's.
#[derive(Debug)]
pub struct Looked<'a> {
    folder: &'a Path,
    listed: io::Result<Listed>,
    /// `None`: nobody knows what the database names.
    verified: Option<Verified>,
    report: Report,
}

impl<'a> Looked<'a> {
    /// Lists the files of a data folder, and checks the database and the secret.
    pub fn at(folder: &'a Path, secret: Option<&str>) -> Self {
        let mut report = Report::default();
        let listed = Listed::of(folder);
        let verified = verify(folder, secret);
        match &verified {
            Ok(found) => report.good.push(format!("the database is sound: {}", found.summary())),
            Err(error) => report.problems.push(error.to_string()),
        }
        Self { folder, listed, verified: verified.ok(), report }
    }

    /// Whether the database and its secret are in order, so that an engine may work on them.
    pub fn is_sound(&self) -> bool {
        self.verified.is_some()
    }

    /// Goes on with the files: with an engine, compares those of recordings and archived transcripts with their rows.
    pub async fn report(self, engine: Option<&Engine>) -> Report {
        let Self { folder, listed, verified, mut report } = self;
        if let Some(engine) = engine {
            let locked = verified.as_ref().map_or(0, |verified| verified.locked_recordings);
            compare(engine, locked, &mut report).await;
        }
        match listed.and_then(|listed| Ok((unexpected_files(folder, &listed)?, listed))) {
            Ok((mut names, listed)) => {
                let unnamed = verified.map(|verified| listed.unnamed(folder, &verified));
                if names.is_empty() && unnamed.as_ref().is_some_and(|unnamed| unnamed.files.is_empty()) {
                    report.good.push("every file belongs to the service".to_owned());
                }
                shorten(&mut names, "file");
                report.problems.extend(names);
                report.problems.extend(unnamed.and_then(|unnamed| without_a_row(&unnamed)));
            }
            Err(error) => report.problems.push(format!("{} cannot be read: {error}", folder.display())),
        }
        report
    }
}

/// Compares recordings and archived transcripts with their files. So many recordings are `locked` by a move, and left out.
async fn compare(engine: &Engine, locked: u64, report: &mut Report) {
    let (recordings, problems) =
        compared("recording", async |after: String| engine.check_recordings(&after).await).await;
    if problems.is_empty() {
        report.good.push(complete_recordings(recordings, locked));
    }
    report.problems.extend(problems);
    let (transcripts, problems) =
        compared("archived transcript", async |after| engine.check_archives(after).await).await;
    if problems.is_empty() && transcripts > 0 {
        report.good.push(complete(transcripts, "archived transcript"));
    }
    report.problems.extend(problems);
}

fn complete_recordings(compared: u64, locked: u64) -> String {
    if locked == 0 {
        return complete(compared, "recording");
    }
    let looked_at = match compared {
        0 => "no recording was compared".to_owned(),
        1 => "1 recording is there, in full".to_owned(),
        some => format!("{} are there, in full", counted(some, "recording")),
    };
    let were = if locked == 1 { "was" } else { "were" };
    format!("{looked_at}; {} in workspaces that a move keeps locked {were} not looked at", count(locked))
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
            Err(fault) => problems.push(format!("the {what}s cannot be listed: {}", fault.told())),
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
fn unexpected_files(folder: &Path, listed: &Listed) -> io::Result<Vec<String>> {
    let names = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
        .collect::<Result<Vec<String>, _>>()?;
    let foreign = listed.foreign().map(|file| file.display().to_string());
    let others = names.into_iter().filter(|name| !is_ours(name) && name != LOST_AND_FOUND);
    let unknown = others.chain(foreign);
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
pub fn open_to_others(folder: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mut look = |path: &Path| -> io::Result<()> {
            let mode = path.metadata()?.permissions().mode() & 0o777;
            if mode & 0o077 != 0 {
                let shown = path.display();
                found.push(format!("{shown} is open to others (mode {mode:o}); run chmod go= {shown}"));
            }
            Ok(())
        };
        look(folder)?;
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_name() != LOST_AND_FOUND {
                look(&entry.path())?;
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_that_were_not_looked_at_are_not_in_full() {
        assert_eq!(complete_recordings(4, 0), "all 4 recordings are there, in full");
        assert_eq!(complete_recordings(1, 0), "the only recording is there, in full");
        for (compared, locked, said) in [
            (0, 1, ["no recording was compared; 1 in", "was"]),
            (1, 2, ["1 recording is there, in full; 2 in", "were"]),
            (4, 3, ["4 recordings are there, in full; 3 in", "were"]),
        ] {
            let said = said.join(" workspaces that a move keeps locked ") + " not looked at";
            assert_eq!(complete_recordings(compared, locked), said);
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_folder_of_the_file_system_is_no_problem() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
        let problems_with = |name: &str| {
            fs::create_dir(path.join(name)).unwrap();
            fs::set_permissions(path.join(name), fs::Permissions::from_mode(0o755)).unwrap();
            unexpected_files(path, &Listed::of(path).unwrap()).unwrap()
        };
        assert_eq!(problems_with(LOST_AND_FOUND), Vec::<String>::new());
        let problems = problems_with("found");
        let is_found = |problem: &String| problem.contains("found") && !problem.contains(LOST_AND_FOUND);
        assert!(problems.len() == 2 && problems.iter().all(is_found), "{problems:?}");
    }
}
