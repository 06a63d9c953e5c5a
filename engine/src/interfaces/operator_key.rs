//! The key of whoever runs the service, for what no workspace's key opens.
use http::HeaderMap;
use subtle::ConstantTimeEq as _;

use crate::base::error::{Code, Error};
use crate::config::{Config, OPERATOR_KEY};
use crate::operations::auth::Credential;

/// Refuses a request without the operator's key. Where there is no such key, nothing is here, and `otherwise` says what does the
/// same. Count the refusal of a wrong one with [`Api::refuse`](crate::interfaces::api::Api::refuse).
pub(crate) fn check(config: &Config, headers: &HeaderMap, otherwise: &str) -> Result<(), Error> {
    let Some(known) = &config.operator_hash else {
        return Err(Error::new(Code::NotFound, format!("{OPERATOR_KEY} is not set here. {otherwise}")));
    };
    match Credential::from_headers(headers) {
        Credential::Key { hash } if bool::from(hash.as_bytes().ct_eq(known.as_bytes())) => Ok(()),
        _ => {
            let message =
                format!("Send the operator's key, {OPERATOR_KEY}: `Authorization: Bearer sidetone_…`.");
            Err(Error::new(Code::Unauthorized, message))
        }
    }
}

/// Whether a request has the operator's key.
pub(crate) fn is_sent(config: &Config, headers: &HeaderMap) -> bool {
    check(config, headers, "").is_ok()
}
