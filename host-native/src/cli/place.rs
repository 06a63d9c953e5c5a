//! Where a command works: its settings and the data folder, which it names on standard error.
use std::path::Path;

use sidetone_engine::engine::Engine;

use super::Failure;
use super::service::{Service, service};
use crate::data::{DataFolder, RESERVE, Server};
use crate::database::{Reserved, Sqlite};
use crate::lost_database::{Lost, has_content};
use crate::settings::{Settings, variable};

/// The settings and the data folder.
pub struct Place {
    pub settings: Settings,
    pub data: DataFolder,
}

impl Place {
    /// The folder, which is made if there is none.
    pub fn made() -> Result<Self, Failure> {
        let settings = settings()?;
        // Before anything is made: a new database would hide that the old one is gone.
        if let Some(lost) = Lost::in_folder(&settings.data) {
            return Err(format!("SIDETONE_DATA: {lost}").into());
        }
        let data = DataFolder::open(&settings.data)
            .map_err(|error| format!("SIDETONE_DATA: {}", unusable(&settings.data, &error)))?;
        Ok(Self { settings, data })
    }

    /// The folder, made if there is none, of a command other than serving: says so.
    pub fn named() -> Result<Self, Failure> {
        let place = Self::made()?;
        say_where(place.data.path(), place.data.server().as_ref());
        Ok(place)
    }

    /// The folder of a service that was started before.
    pub fn of_service() -> Result<Self, Failure> {
        let settings = settings()?;
        if !settings.data.try_exists().map_err(|error| unusable(&settings.data, &error))? {
            let folder = std::path::absolute(&settings.data).unwrap_or_else(|_| settings.data.clone());
            return Err(format!(
                "{} does not exist; set SIDETONE_DATA to the data folder of the service",
                folder.display()
            )
            .into());
        }
        let database = DataFolder::database_of(&settings.data);
        if !has_content(&database) && Lost::in_folder(&settings.data).is_none() {
            return Err(format!(
                "{} does not exist or is empty; set SIDETONE_DATA to the data folder of the service",
                std::path::absolute(&database).unwrap_or(database).display()
            )
            .into());
        }
        Self::named()
    }

    /// The engine on this folder.
    pub fn engine(&self) -> Result<Engine, Failure> {
        let reserved = match self.data.server() {
            // Only one that is there: made by another user, the service could not open it, and would take its disk for full.
            None if self.data.path().join(RESERVE).try_exists()? => {
                Reserved::Kept(self.settings.reserve_bytes)
            }
            None => Reserved::ByOther,
            Some(_) if self.is_earlier()? => {
                return Err("the service that runs here is of an earlier version; restart it, or use its own program for \
                            this command"
                    .into());
            }
            Some(_) => Reserved::ByOther,
        };
        self.engine_with(reserved)
    }

    /// The engine for whoever holds the folder's lock, so that no service runs.
    pub fn engine_alone(&self) -> Result<Engine, Failure> {
        self.engine_with(Reserved::Kept(self.settings.reserve_bytes))
    }

    fn engine_with(&self, reserved: Reserved) -> Result<Engine, Failure> {
        let Service { engine, .. } =
            service(&self.settings, &self.data, self.settings.listen, reserved, None)?;
        Ok(engine)
    }

    /// Whether the database is one that this version would upgrade.
    pub fn is_earlier(&self) -> Result<bool, Failure> {
        let path = self.data.database();
        Ok(path.try_exists()?
            && Sqlite::is_earlier(&path).map_err(|error| format!("{}: {error}", path.display()))?)
    }
}

/// The settings of the environment.
pub fn settings() -> Result<Settings, Failure> {
    Ok(Settings::read(variable)?)
}

/// Says on standard error which folder a command works on: with another SIDETONE_DATA it is not the service's. The output
/// stays clean for scripts.
pub fn say_where(folder: &Path, server: Option<&Server>) {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let running = match server {
        Some(Server { process: Some(id) }) => format!("process {id} serves it"),
        Some(Server { process: None }) => "a service runs on it".to_owned(),
        None => "no service runs on it".to_owned(),
    };
    eprintln!("In {} ({running})", folder.display());
}

/// Why a folder cannot be used, and what to do.
fn unusable(folder: &Path, error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    let path = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let advice = match error.kind() {
        ErrorKind::PermissionDenied => format!(
            "give it to {} with chown, or set SIDETONE_DATA to a folder that this user may write",
            user()
        ),
        ErrorKind::ReadOnlyFilesystem => {
            "set SIDETONE_DATA to a folder on a disk that can be written".to_owned()
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room on the disk".to_owned(),
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
            "it, or what it is in, is a file; set SIDETONE_DATA to a folder".to_owned()
        }
        _ => "set SIDETONE_DATA to a folder that can be written".to_owned(),
    };
    format!("{} cannot be used: {error}; {advice}", path.display())
}

#[cfg(unix)]
fn user() -> String {
    format!("the user with the number {}", rustix::process::geteuid().as_raw())
}

#[cfg(not(unix))]
fn user() -> String {
    "this user".to_owned()
}
