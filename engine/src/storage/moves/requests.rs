//! The bodies of the operator's requests, as the command line writes and a host reads them.
use serde::{Deserialize, Serialize};

/// Of closing and freezing a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Closing {
    /// Prices that carriers report after a call are not waited for.
    #[serde(default)]
    pub without_late_prices: bool,
}

/// Of handing a workspace over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Releasing {
    /// The export whose file has arrived at the other host.
    pub export_id: String,
    /// The import there.
    pub import_id: String,
    /// The address of that host, which clients are told.
    pub moved_to: String,
    /// The import that it was handed over to before, and that is lost for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<String>,
}

/// Of moving a workspace to another database of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moving {
    /// Its name.
    pub database: String,
    /// Prices that carriers report after a call are not waited for.
    #[serde(default)]
    pub without_late_prices: bool,
}

/// Of opening what has arrived. It has no `Debug`: the code is for no log.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opening {
    /// What the source tells when it hands over.
    pub code: String,
    /// The e-mail address of somebody who is invited as an admin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admin: Option<String>,
}
