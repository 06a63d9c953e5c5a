//! Errors of settings, and secrets in settings.
use std::fmt;

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
