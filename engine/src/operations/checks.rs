//! Checks that several resources share.
use crate::base::error::{Code, Error, FieldProblem};
use crate::base::targets::PublicUrl;
use crate::config::Config;
use crate::models::settings::provider_of;
use crate::operations::validate;
use crate::ports::statement::{Statement, Value};
use crate::speech::settings::{SpeechProvider, key_setting};
use crate::storage::fault::Fault;

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

/// Why a voice or a transcriber cannot be used, and what would make it usable: one of `builtin`, or of a provider that `can`.
pub(crate) fn unknown_speech_provider(
    value: &str,
    builtin: &[&str],
    config: &Config,
    can: impl Fn(&SpeechProvider) -> bool,
) -> String {
    let able = config.speech.providers.iter().filter(|(_, provider)| can(provider));
    let able = able.map(|(name, _)| format!("{name}/…"));
    let usable: Vec<String> = builtin.iter().map(|name| (*name).to_owned()).chain(able).collect();
    let usable = usable.join(", ");
    match provider_of(value) {
        Some("builtin") => format!("`{value}` does not exist; use one of: {usable}"),
        Some(provider) => match key_setting(provider) {
            Some(key) if !config.speech.providers.contains_key(provider) => {
                format!("provider `{provider}` needs the setting {key}; without it use one of: {usable}")
            }
            _ => format!("provider `{provider}` is not configured for this; use one of: {usable}"),
        },
        None => format!("must be `provider/name`; use one of: {usable}"),
    }
}

/// Refuses `problems`, and a `url` that requests for users must not go to. A private target has an error code of its
/// own, used when nothing else is wrong.
pub(crate) fn check_target(url: &str, config: &Config, mut problems: Vec<FieldProblem>) -> Result<(), Error> {
    match PublicUrl::parse(url, config.allow_private_targets) {
        Err(error) if problems.is_empty() => {
            return Err(Error::fields(error.code(), &[FieldProblem::new("url", error.to_string())]));
        }
        Err(error) => problems.push(FieldProblem::new("url", error.to_string())),
        Ok(_) => {}
    }
    validate::refuse(&problems)
}

/// Undoes the batch when the workspace has `most` rows of the table already, of which `filter` (`AND …`) may leave some
/// out. It is part of the write, so several requests at once do not pass it; it reads at most `most` entries of an index.
pub(crate) fn room(table: &str, filter: &str, most: i64) -> Statement {
    room_among(table, filter, Vec::new(), most)
}

/// The same for a filter with values.
pub(crate) fn room_among(
    table: &str,
    filter: &str,
    values: Vec<(&'static str, Value)>,
    most: i64,
) -> Statement {
    let guard = format!(
        "INSERT INTO batch_guard (room) SELECT 0 WHERE (SELECT COUNT(*) FROM
         (SELECT 1 FROM {table} WHERE workspace_id = :ws{filter} LIMIT {most})) >= {most}"
    );
    Statement::named(&guard, values)
}

/// Turns what [`room`] undoes into a 409, for what can be deleted.
pub(crate) fn explain_room(fault: Fault, noun: &str, most: i64) -> Fault {
    explain_limit(fault, &format!("{noun}s"), most, "Delete one first.")
}

/// The 409 of a limit: how many, of what.
pub(crate) fn limit_reached(message: String, these: &str, most: i64) -> Error {
    Error::new(Code::LimitReached, message).with_details(serde_json::json!({"limit": most, "of": these}))
}

/// Turns what [`room`] undoes into a 409: the workspace has `most` of these, and what makes room.
pub(crate) fn explain_limit(fault: Fault, these: &str, most: i64, remedy: &str) -> Fault {
    match fault {
        Fault::Storage(error) if error.is_constraint("limit_reached") => {
            let message = format!("This workspace has {most} {these}, which is the limit. {remedy}");
            limit_reached(message, these, most).into()
        }
        other => other,
    }
}
