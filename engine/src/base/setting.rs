//! Errors of settings, and secrets in settings.
use std::fmt;

use url::Url;

/// A setting with an invalid value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingError {
    /// The setting's name.
    pub name: &'static str,
    /// What is wrong and how to correct it.
    pub message: String,
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.message)
    }
}

impl std::error::Error for SettingError {}

/// A secret text: `Debug` hides it, and it implements neither `Display` nor `Serialize`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the place that needs it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Checks a base URL and removes a trailing slash. The error does not quote it: it may contain a password.
pub(crate) fn base_url_of(name: &'static str, text: &str) -> Result<String, SettingError> {
    let wrong = |message: &str| SettingError { name, message: message.to_owned() };
    let text = text.trim().trim_end_matches('/');
    let url =
        Url::parse(text).map_err(|_| wrong("a base_url is not a URL such as https://api.example.com/v1"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(wrong("a base_url is not a URL such as https://api.example.com/v1"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("a base_url must not contain `?` or `#`"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("a base_url must not contain a user name or password; put the key into api_key"));
    }
    Ok(text.to_owned())
}

/// Checks that a key is valid in a header.
pub(crate) fn api_key(name: &'static str, text: &str) -> Result<Secret, SettingError> {
    let text = text.trim();
    if text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(Secret::new(text.to_owned()));
    }
    let message = "an API key contains a space or another invalid character".to_owned();
    Err(SettingError { name, message })
}
