//! Checks that several resources share.
use crate::base::error::{Code, Error, FieldProblem};
use crate::base::targets::{PublicUrl, TargetError};
use crate::config::Config;
use crate::models::settings::provider_of;
use crate::operations::validate;

/// Refuses a model whose provider is not configured, by the name of the field.
pub(crate) fn check_model(field: &str, value: Option<&str>, config: &Config) -> Result<(), Error> {
    match value {
        Some(value) if provider_of(value).is_none_or(|name| !config.catalog.providers.contains_key(name)) => {
            Err(Error::field(field, unknown_provider(value, config)))
        }
        _ => Ok(()),
    }
}

pub(crate) fn unknown_provider(value: &str, config: &Config) -> String {
    let known: Vec<&str> = config.catalog.providers.keys().map(String::as_str).collect();
    let known = known.join(", ");
    match provider_of(value) {
        Some(provider) => format!("provider `{provider}` is not configured; configured: {known}"),
        None => format!("must be `provider/name`; configured providers: {known}"),
    }
}

/// Refuses `problems`, and a `url` that requests for users must not go to. A private target has an error code of its
/// own, used when nothing else is wrong.
pub(crate) fn check_target(url: &str, config: &Config, mut problems: Vec<FieldProblem>) -> Result<(), Error> {
    match PublicUrl::parse(url, config.allow_private_targets) {
        Err(TargetError::NotPublic(message)) if problems.is_empty() => {
            return Err(Error::fields(Code::PrivateTarget, &[FieldProblem::new("url", message)]));
        }
        Err(TargetError::NotPublic(message) | TargetError::Malformed(message)) => {
            problems.push(FieldProblem::new("url", message));
        }
        Ok(_) => {}
    }
    validate::refuse(&problems)
}
