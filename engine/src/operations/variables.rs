//! Whether the variables of a conversation fill in its assistant's texts, before it is started.
use std::collections::BTreeSet;

use serde_json::json;

use crate::base::error::{Code, Error};
use crate::conversation::{Values, Wanted};

/// Refuses names without a value, and values that make a text longer than its field may be.
pub(crate) fn check(wanted: &Wanted<'_>, values: &Values<'_>) -> Result<(), Error> {
    let names: BTreeSet<&str> = wanted.missing(values).collect();
    if !names.is_empty() {
        let listed: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let message = format!(
            "The assistant's texts use variables that have no value: {}. Send their values in `variables`.",
            listed.join(", ")
        );
        return Err(Error::new(Code::MissingVariables, message).with_details(json!({"names": names})));
    }
    match wanted.too_long(values) {
        Some(field) => {
            let message = format!(
                "with these values, the assistant's `{field}` exceeds its maximum length; send shorter values"
            );
            Err(Error::field("variables", message))
        }
        None => Ok(()),
    }
}
