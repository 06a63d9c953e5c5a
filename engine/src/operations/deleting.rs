//! Deleting what matches a filter: so many at once, or only counted.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::error::Error;

/// Whether something is deleted.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Trial {
    /// Only counts what the same request without it would delete.
    pub(crate) dry_run: Option<bool>,
}

/// What one request has deleted.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DeletedByFilter")] // clients that are made of the document have a type of this name
pub(crate) struct Deleted {
    /// How many were deleted; not with `dry_run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64")]
    deleted: Option<i64>,
    /// How many would be deleted; only with `dry_run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64")]
    would_delete: Option<i64>,
    /// How many were found that are in progress: they stay.
    in_progress: i64,
    /// Whether there are more: repeat the request.
    more: bool,
}

impl Deleted {
    pub(crate) fn of(trial: &Trial, count: usize, in_progress: i64, more: bool) -> Self {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let is_trial = trial.is_set();
        Self {
            deleted: (!is_trial).then_some(count),
            would_delete: is_trial.then_some(count),
            in_progress,
            more,
        }
    }
}

impl Trial {
    pub(crate) fn is_set(&self) -> bool {
        self.dry_run == Some(true)
    }
}

/// The error without a filter: nobody deletes everything by accident.
pub(crate) fn no_filter(field: &str) -> Error {
    Error::field(field, "at least one filter is required, so that nobody deletes everything by mistake")
}
