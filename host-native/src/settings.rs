//! The box's settings: the engine's, and where to listen and keep data.
use std::net::SocketAddr;
use std::path::PathBuf;

use sidetone_engine::config::SettingError;

/// Settings only a box has.
pub const BOX_SETTINGS: &[&str] = &["SIDETONE_LISTEN", "SIDETONE_DATA"];

/// Where the service is and where it keeps what.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The data folder.
    pub data: PathBuf,
}

impl Settings {
    /// Reads them through `lookup`.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, SettingError> {
        let get = |name: &str| lookup(name).filter(|value| !value.trim().is_empty());
        let listen = get("SIDETONE_LISTEN").unwrap_or_else(|| "127.0.0.1:8787".to_owned());
        let listen = listen.parse().map_err(|_| SettingError {
            name: "SIDETONE_LISTEN",
            message: format!("`{listen}` is not an address and port such as 127.0.0.1:8787"),
        })?;
        let data = get("SIDETONE_DATA").unwrap_or_else(|| "sidetone-data".to_owned());
        Ok(Self { listen, data: data.into() })
    }
}
