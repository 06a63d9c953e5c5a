//! The settings that only the native host reads.
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use sidetone_engine::base::setting::SettingError;
use sidetone_engine::config::{Config, SHARDS};

use crate::log::{LOG_FORMAT, LogFormat};
use crate::memory;

/// Settings that only the native host reads.
pub const HOST_SETTINGS: &[&str] =
    &["SIDETONE_LISTEN", "SIDETONE_DATA", "SIDETONE_RESERVE_MB", LOG_FORMAT, STOP_SECONDS, TLS_CERT, TLS_KEY];

/// The file with the certificate.
pub const TLS_CERT: &str = "SIDETONE_TLS_CERT";
/// The file with its key.
pub const TLS_KEY: &str = "SIDETONE_TLS_KEY";

/// The files of a certificate, both PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate and those that lead to a known authority, in this order.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

impl TlsFiles {
    fn read(cert: Option<String>, key: Option<String>) -> Result<Option<Self>, SettingError> {
        let lacks = |name: &'static str, other: &str| SettingError {
            name,
            message: format!(
                "is required with {other}: both name files, a certificate and its key, for HTTPS"
            ),
        };
        match (cert, key) {
            (None, None) => Ok(None),
            (Some(cert), Some(key)) => Ok(Some(Self { cert: cert.trim().into(), key: key.trim().into() })),
            (Some(_), None) => Err(lacks(TLS_KEY, TLS_CERT)),
            (None, Some(_)) => Err(lacks(TLS_CERT, TLS_KEY)),
        }
    }
}

/// The longest time that stopping takes. `docker stop` kills after 10 s.
const STOP_SECONDS: &str = "SIDETONE_STOP_SECONDS";
/// The server secret.
const SECRET: &str = "SIDETONE_SECRET";
/// The memory that conversations may use.
const MEMORY_MB: &str = "SIDETONE_MEMORY_MB";

/// A variable of the environment, as it is.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// A variable of the environment, trimmed; `None` if it is missing or blank.
pub fn text(name: &str) -> Option<String> {
    filled(&variable(name)?)
}

/// A value, trimmed; `None` if it is blank.
pub fn filled(value: &str) -> Option<String> {
    Some(value.trim()).filter(|value| !value.is_empty()).map(str::to_owned)
}

/// The server secret, where a setting has it. As it is, since the service takes it so.
pub fn secret() -> Option<String> {
    variable(SECRET).filter(|secret| !secret.trim().is_empty())
}

/// The settings of the native host.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The data folder.
    pub data: PathBuf,
    /// Disk space that is kept for deletes.
    pub reserve_bytes: u64,
    /// How long requests, conversations and jobs may go on after the signal to stop.
    pub stop: Duration,
    /// The form of the log's lines.
    pub log_format: LogFormat,
    /// The files for HTTPS; `None` for plain HTTP.
    pub tls: Option<TlsFiles>,
    /// Whether SIDETONE_SECRET replaces the secret in the data folder.
    pub has_secret: bool,
}

impl Settings {
    /// Reads the settings with `lookup`.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, SettingError> {
        let get = |name: &str| lookup(name).filter(|value| !value.trim().is_empty());
        let listen = get("SIDETONE_LISTEN").unwrap_or_else(|| "127.0.0.1:8787".to_owned());
        let listen = listen_address(listen.trim())?;
        let data = get("SIDETONE_DATA").unwrap_or_else(|| "sidetone-data".to_owned());
        let reserve = get("SIDETONE_RESERVE_MB").unwrap_or_else(|| "64".to_owned());
        let reserve_mb: u32 = reserve.trim().parse().map_err(|_| SettingError {
            name: "SIDETONE_RESERVE_MB",
            message: format!("`{reserve}` is not a whole number of megabytes"),
        })?;
        let stop = get(STOP_SECONDS).unwrap_or_else(|| "8".to_owned());
        let stop_seconds: u32 = stop.trim().parse().map_err(|_| SettingError {
            name: STOP_SECONDS,
            message: format!("`{stop}` is not a whole number of seconds"),
        })?;
        let stop = Duration::from_secs(stop_seconds.into());
        let reserve_bytes = u64::from(reserve_mb) * 1024 * 1024;
        let log_format = LogFormat::read(get(LOG_FORMAT).as_deref())?;
        let tls = TlsFiles::read(get(TLS_CERT), get(TLS_KEY))?;
        let has_secret = get(SECRET).is_some();
        Ok(Self { listen, data: data.into(), reserve_bytes, stop, log_format, tls, has_secret })
    }

    /// The configuration of the service that listens on `listen`, read with `lookup`. Without SIDETONE_BASE_URL, the base
    /// URL follows from `listen`; without SIDETONE_SECRET, the server secret is `secret`.
    pub fn config(
        &self,
        lookup: impl Fn(&str) -> Option<String>,
        listen: SocketAddr,
        secret: &str,
    ) -> Result<Config, SettingError> {
        let private_key = text_or_file(PRIVATE_KEY, lookup(PRIVATE_KEY))?;
        let of_machine = |name: &str| match name {
            PRIVATE_KEY => private_key.clone(),
            MEMORY_MB => lookup(name).or_else(memory::default_mb),
            name => lookup(name),
        };
        let base_url = base_url(listen, self.tls.is_some());
        let config = Config::from_settings(of_machine, &base_url, secret)?;
        if !config.shards.is_empty() {
            let message =
                "is for a Worker: the database of a server has no limit to be spread for".to_owned();
            return Err(SettingError { name: SHARDS, message });
        }
        Ok(config)
    }
}

/// `localhost` is this machine's own address. Other names are not looked up: they have several addresses, or change theirs.
fn listen_address(text: &str) -> Result<SocketAddr, SettingError> {
    let wrong = |message: String| SettingError { name: "SIDETONE_LISTEN", message };
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    let Ok(port) = port.parse::<u16>() else {
        return Err(wrong(format!("`{text}` is not an address and port such as 127.0.0.1:8787")));
    };
    match host {
        "localhost" => Ok(SocketAddr::from(([127, 0, 0, 1], port))),
        _ => Err(wrong(format!(
            "`{text}` names no address of this machine; write 127.0.0.1:{port} for this machine alone, or 0.0.0.0:{port} for \
             all its addresses"
        ))),
    }
}

/// The setting whose value can be the path of a file.
const PRIVATE_KEY: &str = "SIDETONE_VONAGE_PRIVATE_KEY";

/// The key from the setting's value, or from the file whose path is the value. The error never contains the value.
fn text_or_file(name: &'static str, value: Option<String>) -> Result<Option<String>, SettingError> {
    let Some(value) = value.filter(|value| !value.trim().is_empty()) else { return Ok(None) };
    if value.contains("-----BEGIN") {
        return Ok(Some(value));
    }
    match std::fs::read_to_string(value.trim()) {
        Ok(text) => Ok(Some(text)),
        Err(error) => Err(SettingError {
            name,
            message: format!(
                "is neither a PEM text (-----BEGIN …) nor a file that can be read: {}",
                error.kind()
            ),
        }),
    }
}

/// The URL of a service on this address, for a browser on this machine.
fn base_url(address: SocketAddr, has_tls: bool) -> String {
    let scheme = if has_tls { "https" } else { "http" };
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => format!("{scheme}://127.0.0.1:{}", v4.port()),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => format!("{scheme}://localhost:{}", v6.port()),
        address => format!("{scheme}://{address}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_given_as_text_or_as_a_file() {
        let read = |value: &str| text_or_file(PRIVATE_KEY, Some(value.to_owned()));
        let pem = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        assert_eq!(read(pem), Ok(Some(pem.to_owned())));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("private.key");
        std::fs::write(&file, pem).unwrap();
        assert_eq!(read(file.to_str().unwrap()), Ok(Some(pem.to_owned())));
        let error = read("a-secret-that-is-no-file").unwrap_err();
        assert!(error.name == PRIVATE_KEY && !error.message.contains("a-secret"), "{error}");
        assert_eq!(read(" "), Ok(None));
    }

    #[test]
    fn a_blank_value_is_none() {
        assert_eq!((filled(" key\n").as_deref(), filled(" \n")), (Some("key"), None));
        assert_eq!(text("SIDETONE_NOBODY_SETS_THIS"), None);
    }

    #[test]
    fn a_listen_address_is_one_or_the_error_says_what_to_write() {
        let listen = |text: &str| listen_address(text).map_err(|error| error.message);
        assert_eq!(listen("localhost:8787"), listen("127.0.0.1:8787"));
        assert_eq!(listen("[::1]:80").map(|address| address.port()), Ok(80));
        for text in [":8787", "8787", "voice.example.com:8787", "*:8787"] {
            let told = listen(text).unwrap_err();
            assert!(told.contains("127.0.0.1:8787") && told.contains("0.0.0.0:8787"), "{told}");
        }
        assert!(listen("127.0.0.1").unwrap_err().contains("address and port"));
        assert!(listen("127.0.0.1:99999").is_err());
    }

    #[test]
    fn stopping_is_over_before_docker_kills() {
        let stop = |value: Option<&str>| {
            let settings = Settings::read(|name| value.filter(|_| name == STOP_SECONDS).map(str::to_owned));
            settings.map(|settings| settings.stop.as_secs()).map_err(|error| error.name)
        };
        assert_eq!((stop(None), stop(Some("30"))), (Ok(8), Ok(30)));
        assert_eq!(stop(Some("soon")), Err(STOP_SECONDS));
    }

    #[test]
    fn certificate_and_key_come_together() {
        let read = |names: &[&'static str]| {
            let lookup = |name: &str| names.contains(&name).then(|| format!("/etc/{name}"));
            Settings::read(lookup).map(|settings| settings.tls.is_some()).map_err(|error| error.name)
        };
        assert_eq!((read(&[]), read(&[TLS_CERT, TLS_KEY])), (Ok(false), Ok(true)));
        assert_eq!((read(&[TLS_CERT]), read(&[TLS_KEY])), (Err(TLS_KEY), Err(TLS_CERT)));
    }

    #[test]
    fn base_urls_can_be_opened_in_a_browser() {
        for (listen, url) in [
            ("127.0.0.1:8787", "http://127.0.0.1:8787"),
            ("0.0.0.0:80", "http://127.0.0.1:80"),
            ("[::]:8787", "http://localhost:8787"),
            ("[2001:db8::1]:8787", "http://[2001:db8::1]:8787"),
        ] {
            assert_eq!(base_url(listen.parse().unwrap(), false), url);
            assert_eq!(base_url(listen.parse().unwrap(), true), url.replace("http:", "https:"));
        }
    }
}
