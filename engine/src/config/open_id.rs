//! Where people sign in to the dashboard besides by e-mail.
use super::values::http_url;
use crate::base::setting::{Secret, SettingError};

/// An OpenID provider and our registration there.
#[derive(Clone)]
pub struct OpenIdSettings {
    /// The provider's URL, as it writes it itself.
    pub issuer: String,
    /// Our name there.
    pub client_id: String,
    /// Our secret there, if it gives us one.
    pub client_secret: Option<Secret>,
}

impl OpenIdSettings {
    pub(super) fn from_settings(get: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, SettingError> {
        let issuer =
            get("SIDETONE_GOOGLE_ISSUER").unwrap_or_else(|| "https://accounts.google.com".to_owned());
        http_url("SIDETONE_GOOGLE_ISSUER", &issuer)?;
        let client_secret = get("SIDETONE_GOOGLE_CLIENT_SECRET").map(Secret::new);
        match get("SIDETONE_GOOGLE_CLIENT_ID") {
            Some(client_id) => Ok(Some(Self { issuer, client_id, client_secret })),
            None if client_secret.is_some() => Err(SettingError {
                name: "SIDETONE_GOOGLE_CLIENT_ID",
                message: "is required with SIDETONE_GOOGLE_CLIENT_SECRET".to_owned(),
            }),
            None => Ok(None),
        }
    }
}
