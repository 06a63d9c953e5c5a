//! Rotating the signing secret of a tool or a webhook.
//!
//! A rotation increments the secret's version. During the overlap the previous secret signs as well, so that the receiver
//! can switch to the new one without refusing any request.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::error::Error;
use crate::base::limits::SECRET_OVERLAP_MS_MAX;
use crate::base::time::Timestamp;
use crate::operations::context::Context;
use crate::operations::operation::{Input, Operation, Output};
use crate::operations::resource::{self, Resource};
use crate::sql;
use crate::storage::fault::Fault;

/// The operation that rotates the secret of an `R`.
pub(crate) const fn rotate<R: Resource>(id: &'static str, path: &'static str) -> Operation {
    Operation::post(id, path, |context, input| Box::pin(run::<R>(context, input)))
        .replacing()
        .optional_body::<Body>()
        .returns::<Rotated<R>>()
}

/// Options of the rotation; all have defaults.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Body {
    /// How long requests are also signed with the old secret, in milliseconds; default 24 hours. Use 0 when the old
    /// secret has leaked.
    #[serde(default = "overlap_ms")]
    #[schemars(range(min = 0, max = SECRET_OVERLAP_MS_MAX))]
    overlap_ms: i64,
}

fn overlap_ms() -> i64 {
    i64::try_from(SECRET_OVERLAP_MS_MAX).unwrap_or(i64::MAX)
}

/// The resource whose secret was rotated, with the new secret.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Rotated{T}")]
struct Rotated<T> {
    /// The resource.
    #[serde(flatten)]
    owner: T,
    /// Until this time, requests are also signed with the old secret.
    old_secret_until: Timestamp,
    /// `whsec_…`, shown only this once.
    signing_secret: String,
}

/// [`Rotated`] without the secret, which is added when the response is sent.
#[derive(Serialize)]
struct Unrevealed<T> {
    #[serde(flatten)]
    owner: T,
    old_secret_until: Timestamp,
}

async fn run<R: Resource>(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let Body { overlap_ms } = input.body()?;
    let now = Timestamp::from_ms(context.now_ms);
    let old_secret_until = now + overlap_ms;
    let select = sql!(
        format!(
            "SELECT {}, secret_version FROM {} WHERE workspace_id = :ws AND id = :id",
            R::COLUMNS,
            R::TABLE
        ),
        id = &input.id::<R::Id>()
    );
    let [rows] = context.read_each([select]).await?;
    let row = rows.first().ok_or_else(|| Error::not_found(R::NOUN))?;
    let (current, version) = (R::read(row)?, row.integer("secret_version")?);
    let rotate = sql!(
        format!(
            "UPDATE {} SET secret_version = secret_version + 1, old_secret_until = :until,
             revision = revision + 1, updated_at = :now WHERE workspace_id = :ws AND id = :id",
            R::TABLE
        ),
        id = current.id(),
        until = old_secret_until,
        now = now
    );
    let statements = vec![resource::unchanged(&current), rotate];
    let owner = current.changed(current.draft().clone(), now);
    let reveal = R::secret(owner.id(), version + 1);
    let output = Output { reveal, ..Output::created(&Unrevealed { owner, old_secret_until })? };
    context.commit(statements, output).await
}
