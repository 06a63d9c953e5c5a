//! Rotating a signing secret: what tools and webhooks share.
//!
//! A rotation counts the secret's version up. For a while the one before it signs too, beside the new
//! one, so that a receiver can be told the new one without refusing anything meanwhile.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::limits::SECRET_OVERLAP_MS_MAX;
use crate::base::time;
use crate::operations::context::Context;
use crate::operations::crud;
use crate::operations::operation::Input;
use crate::ports::statement::Statement;
use crate::sql;
use crate::storage::fault::Fault;

/// How to rotate.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Body {
    /// How long requests are signed with the old secret as well, in milliseconds; default 24 hours. 0 when the old
    /// one has leaked.
    #[serde(default = "overlap_ms")]
    #[schemars(range(min = 0, max = SECRET_OVERLAP_MS_MAX))]
    overlap_ms: i64,
}

fn overlap_ms() -> i64 {
    i64::try_from(SECRET_OVERLAP_MS_MAX).unwrap_or(i64::MAX)
}

/// What was rotated, with its new secret.
#[derive(Serialize, JsonSchema)]
pub struct Rotated<T> {
    /// What it belongs to.
    #[serde(flatten)]
    owner: T,
    /// Until when the old secret signs as well.
    old_secret_until: String,
    /// `whsec_…`, shown this once.
    signing_secret: String,
}

/// The answer without the secret, which is added when it is sent.
#[derive(Serialize)]
pub struct Unrevealed<'a, T> {
    #[serde(flatten)]
    owner: &'a T,
    old_secret_until: String,
}

/// A rotation about to be written.
pub struct Rotation {
    /// Until when the old secret signs as well.
    until_ms: i64,
}

impl Rotation {
    /// What the request asks for.
    pub fn of(context: &Context, input: &Input) -> Result<Self, Fault> {
        let Body { overlap_ms } = input.body()?;
        Ok(Self { until_ms: context.now_ms + overlap_ms })
    }

    /// The answer; `owner` as it will be.
    pub fn answer<'a, T>(&self, owner: &'a T) -> Unrevealed<'a, T> {
        Unrevealed { owner, old_secret_until: time::format(self.until_ms) }
    }

    /// The guard and the change of a row of `table`.
    pub fn statements(
        &self,
        context: &Context,
        table: &'static str,
        id: &str,
        revision: i64,
    ) -> Vec<Statement> {
        vec![
            crud::unchanged(table, id, revision),
            sql!(
                format!(
                    "UPDATE {table} SET secret_version = secret_version + 1, old_secret_until = ?2,
                     revision = revision + 1, updated_at = ?3 WHERE workspace_id = :ws AND id = ?1"
                ),
                id,
                self.until_ms,
                context.now_ms
            ),
        ]
    }
}
