//! The data folder, the disk, the database and the server secret.
use std::io;
use std::path::Path;

use super::{Finding, Look, moves};
use crate::backup;
use crate::check;
use crate::data::{self, DataFolder};
use crate::lost_database::{Lost, has_content};
use crate::settings::{self, Settings};

/// With less room a service does not go on for long.
const ROOM_BYTES_MIN: u64 = 1024 * 1024 * 1024;
const MIB: u64 = 1024 * 1024;

/// The looks at this machine.
pub fn looks(settings: &Settings) -> Vec<Look<'_>> {
    let (path, secret) = (settings.data.clone(), settings::secret());
    vec![
        ("data folder", Box::pin(async { folder(&settings.data) })),
        ("disk", Box::pin(async { vec![disk(&settings.data, settings.reserve_bytes)] })),
        (
            "database",
            // It may take long, and has its own thread for that.
            Box::pin(async move {
                let looked = tokio::task::spawn_blocking(move || database(&path, secret.as_deref())).await;
                looked.unwrap_or_else(|error| vec![Finding::problem("database", error.to_string())])
            }),
        ),
    ]
}

/// Who may do what with the folder.
fn folder(path: &Path) -> Vec<Finding> {
    const CHECK: &str = "data folder";
    let shown = path.display();
    let problem = |detail: String| vec![Finding::problem(CHECK, detail)];
    match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return vec![Finding::warning(
                CHECK,
                format!(
                    "{shown} does not exist; the first start makes it. If the service has run before, set SIDETONE_DATA to its folder"
                ),
            )];
        }
        Err(error) => {
            return problem(format!(
                "{shown} cannot be looked at ({error}); run this as the user of the service"
            ));
        }
        Ok(found) if !found.is_dir() => {
            return problem(format!("{shown} is not a folder; set SIDETONE_DATA to one"));
        }
        Ok(_) => {}
    }
    if let Err(error) = may_write(path) {
        return problem(format!(
            "{shown} cannot be written ({error}); run this as the user of the service, or chown it to that"
        ));
    }
    match check::open_to_others(path) {
        Ok(open) if open.is_empty() => {
            vec![Finding::good(CHECK, format!("{shown} can be written, and only by its owner"))]
        }
        Ok(open) => open.into_iter().map(|one| Finding::problem(CHECK, one)).collect(),
        Err(error) => {
            problem(format!("{shown} cannot be read ({error}); run this as the user of the service"))
        }
    }
}

#[cfg(unix)]
fn may_write(path: &Path) -> io::Result<()> {
    use rustix::fs::{Access, access};
    Ok(access(path, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK)?)
}

#[cfg(not(unix))]
fn may_write(_: &Path) -> io::Result<()> {
    Ok(())
}

fn disk(path: &Path, reserve_bytes: u64) -> Finding {
    const CHECK: &str = "disk";
    let existing = path.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    let Some(free) = data::free_bytes(existing) else {
        return Finding::warning(CHECK, "its room cannot be measured here");
    };
    let room = format!("{} MiB are free for {}", free / MIB, path.display());
    match free {
        free if free < reserve_bytes => Finding::problem(
            CHECK,
            format!(
                "{room}: only deletes are written until there is more. Make room, or delete old calls (`sidetone workspace limits`)"
            ),
        ),
        free if free < ROOM_BYTES_MIN => Finding::warning(
            CHECK,
            format!(
                "{room}; make room, or let calls be deleted after some days (`sidetone workspace limits`)"
            ),
        ),
        _ => Finding::good(CHECK, room),
    }
}

/// Database and secret belong together, so they are looked at together.
fn database(path: &Path, secret: Option<&str>) -> Vec<Finding> {
    const CHECK: &str = "database";
    if let Some(lost) = Lost::in_folder(path) {
        return vec![Finding::problem(CHECK, lost.to_string())];
    }
    if !has_content(&DataFolder::database_of(path)) {
        return vec![Finding::warning(CHECK, "there is none yet; the first start makes it")];
    }
    let found = match backup::verify_quickly(path, secret) {
        Ok(found) => found,
        Err(error) => return vec![Finding::problem(CHECK, error.to_string())],
    };
    let sound = format!("sound at a quick look, and the server secret is its own: {}", found.summary());
    let mut findings = vec![Finding::good(CHECK, sound)];
    findings.extend(moves::findings(path));
    findings
}
