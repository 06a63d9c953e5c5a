//! How the text of a single setting is read.
use std::net::IpAddr;

use ipnet::IpNet;

use super::{LATE_PERCENT, METRICS_TOKEN, OPERATOR_KEY};
use crate::base::api_key::ApiKey;
use crate::base::hash::sha256_hex;
use crate::base::limits::{APOLOGY_CHARS_MAX, LATE_PERCENT_DEFAULT, MEMORY_MB_DEFAULT, MEMORY_MB_MIN};
use crate::base::setting::SettingError;

/// The shortest token for the metrics, in bytes.
const METRICS_TOKEN_BYTES_MIN: usize = 16;

/// Said on the telephone when the assistant's model fails.
const DEFAULT_APOLOGY: &str = "I am sorry, I have a technical problem. Please call again later.";

pub(super) fn whole_number(
    name: &'static str,
    text: Option<String>,
    least: i64,
    most: i64,
) -> Result<Option<i64>, SettingError> {
    let read = |text: String| match text.trim().parse::<i64>() {
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        _ => Err(SettingError {
            name,
            message: format!("must be a whole number from {least} to {most}, not `{text}`"),
        }),
    };
    text.map(read).transpose()
}

pub(super) fn apology(text: Option<String>) -> Result<String, SettingError> {
    let text = text.map_or_else(|| DEFAULT_APOLOGY.to_owned(), |text| text.trim().to_owned());
    let chars = text.chars().count();
    if chars > APOLOGY_CHARS_MAX {
        let message =
            format!("has {chars} characters, more than {APOLOGY_CHARS_MAX}: it is one short sentence");
        return Err(SettingError { name: "SIDETONE_APOLOGY", message });
    }
    Ok(text)
}

pub(super) fn http_url(name: &'static str, text: &str) -> Result<String, SettingError> {
    // A URL may have a password in it.
    let shown = if text.contains('@') { "it" } else { &format!("`{text}`") };
    let wrong =
        || SettingError { name, message: format!("{shown} is not a URL such as https://voice.example.com") };
    let url = url::Url::parse(text).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "http" | "https") || url.query().is_some() || !url.has_host() {
        return Err(wrong());
    }
    Ok(text.trim_end_matches('/').to_owned())
}

pub(super) fn secret(text: &str) -> Result<String, SettingError> {
    const SECRET_BYTES_MIN: usize = 16;
    if text.len() < SECRET_BYTES_MIN {
        return Err(SettingError {
            name: "SIDETONE_SECRET",
            message: format!("must have at least {SECRET_BYTES_MIN} random bytes"),
        });
    }
    Ok(text.to_owned())
}

pub(super) fn bootstrap_hashes(list: Option<String>) -> Result<Vec<String>, SettingError> {
    list.unwrap_or_default()
        .split(',')
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .enumerate()
        .map(|(n, text)| match ApiKey::parse(text) {
            Some(key) => Ok(key.sha256_hex()),
            None => Err(SettingError {
                name: "SIDETONE_BOOTSTRAP_KEYS",
                message: format!(
                    "entry {} is not an API key (`sidetone_` and 49 characters, the last 6 a checksum)",
                    n + 1
                ),
            }),
        })
        .collect()
}

pub(super) fn operator_hash(key: Option<String>) -> Result<Option<String>, SettingError> {
    let Some(text) = key else { return Ok(None) };
    let message =
        "is not a key (`sidetone_` and 49 characters, the last 6 a checksum); `sidetone secrets` prints one";
    let wrong = || SettingError { name: OPERATOR_KEY, message: message.to_owned() };
    ApiKey::parse(text.trim()).map(|key| Some(key.sha256_hex())).ok_or_else(wrong)
}

pub(super) fn metrics_hash(token: Option<String>) -> Result<Option<String>, SettingError> {
    let Some(token) = token else { return Ok(None) };
    let token = token.trim();
    if token.len() < METRICS_TOKEN_BYTES_MIN {
        let message = format!("needs at least {METRICS_TOKEN_BYTES_MIN} bytes");
        return Err(SettingError { name: METRICS_TOKEN, message });
    }
    Ok(Some(sha256_hex(token.as_bytes())))
}

pub(super) fn switch(value: Option<String>) -> Result<bool, SettingError> {
    match value.as_deref() {
        None | Some("0" | "false") => Ok(false),
        Some("1" | "true") => Ok(true),
        Some(other) => Err(SettingError {
            name: "SIDETONE_ALLOW_PRIVATE_TARGETS",
            message: format!("must be 1 or 0, not `{other}`"),
        }),
    }
}

pub(super) fn memory_bytes(value: Option<String>) -> Result<u64, SettingError> {
    let Some(text) = value else { return Ok(MEMORY_MB_DEFAULT * 1024 * 1024) };
    let megabytes = text.trim().parse::<u64>().ok().filter(|megabytes| *megabytes >= MEMORY_MB_MIN);
    let bytes = megabytes.and_then(|megabytes| megabytes.checked_mul(1024 * 1024));
    bytes.ok_or_else(|| SettingError {
        name: "SIDETONE_MEMORY_MB",
        message: format!("must be a whole number of megabytes, at least {MEMORY_MB_MIN}, not `{text}`"),
    })
}

pub(super) fn late_percent(value: Option<String>) -> Result<u64, SettingError> {
    let Some(text) = value else { return Ok(LATE_PERCENT_DEFAULT) };
    let percent = text.trim().parse::<u64>().ok().filter(|percent| *percent <= 100);
    let message = || format!("must be a whole number from 0 to 100, not `{text}`");
    percent.ok_or_else(|| SettingError { name: LATE_PERCENT, message: message() })
}

/// Addresses and networks (`10.0.0.0/8`).
pub(super) fn proxies(list: Option<String>) -> Result<Vec<IpNet>, SettingError> {
    list.unwrap_or_default()
        .split(',')
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .map(|text| {
            network(text).ok_or_else(|| SettingError {
                name: "SIDETONE_TRUSTED_PROXIES",
                message: format!(
                    "`{text}` is not an IP address such as 10.0.0.7 or a network such as 10.0.0.0/8; names of hosts are not \
                     looked up"
                ),
            })
        })
        .collect()
}

fn network(text: &str) -> Option<IpNet> {
    match text.split_once('/') {
        Some((address, bits)) => IpNet::new(address.parse().ok()?, bits.parse().ok()?).ok(),
        None => text.parse::<IpAddr>().ok().map(|address| IpNet::from(address.to_canonical())),
    }
}
