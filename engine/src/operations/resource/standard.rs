//! The rows and functions of the operations that every resource has.
use schemars::JsonSchema;
use serde::Serialize;

use super::statements::{self, change};
use super::{Resource, all, check_revision, explain_limit, insert_within_limit, ok, one, overlaid};
use crate::base::error::{Code, Error, FieldProblem};
use crate::base::time::Timestamp;
use crate::config::Config;
use crate::operations::all_problems::SoundFields;
use crate::operations::context::Context;
use crate::operations::listing::{self, Part};
use crate::operations::operation::{Input, Operation, Output};
use crate::storage::batch::Batch;
use crate::storage::fault::Fault;
use crate::storage::idempotency;

/// `GET` of all.
pub(crate) const fn list<R: Resource>(id: &'static str) -> Operation {
    Operation::get(id, R::PATH, |context, input| Box::pin(run_list::<R>(context, input)))
        .query::<Part>()
        .returns::<Vec<R>>()
}

/// `GET` of one.
pub(crate) const fn get<R: Resource>(id: &'static str) -> Operation {
    Operation::get(id, R::PATH_OF_ONE, |context, input| Box::pin(run_get::<R>(context, input))).returns::<R>()
}

/// `POST`.
pub(crate) const fn create<R: Resource>(id: &'static str) -> Operation {
    Operation::post(id, R::PATH, |context, input| Box::pin(run_create::<R>(context, input)))
        .body::<R::Draft>()
        .listing_problems(problems::<R>)
        .returns::<R>()
        .errors(&[Code::LimitReached])
}

/// `PATCH`.
pub(crate) const fn update<R: Resource>(id: &'static str) -> Operation {
    Operation::patch(id, R::PATH_OF_ONE, |context, input| Box::pin(run_update::<R>(context, input)))
        .partial_body::<R::Draft>()
        .listing_problems(problems::<R>)
        .returns::<R>()
}

/// `DELETE`.
pub(crate) const fn delete<R: Resource>(id: &'static str) -> Operation {
    Operation::delete(id, R::PATH_OF_ONE, |context, input| Box::pin(run_delete::<R>(context, input)))
}

/// What the type and the rules of a resource refuse. Defaults are not filled in: a rule that compares two fields needs
/// both from the client.
pub(crate) fn problems<R: Resource>(fields: &mut SoundFields<'_>, config: &Config) -> Vec<FieldProblem> {
    let mut problems = Vec::new();
    if let Some(draft) = fields.read::<R::Draft>(&mut problems)
        && let Err(error) = R::check(&draft, config)
    {
        problems.extend(error.problems().into_iter().filter(|problem| fields.is_new(problem)));
    }
    problems
}

/// A created resource with its secret.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Created{T}")]
pub(crate) struct Created<T> {
    /// The resource.
    #[serde(flatten)]
    resource: T,
    /// `whsec_…`, shown only this once.
    signing_secret: String,
}

async fn run_list<R: Resource>(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    listing::run(context, input.query()?, all::<R>()).await
}

async fn run_get<R: Resource>(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    ok(&one::<R>(context, &input.id()).await?)
}

async fn run_create<R: Resource>(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let mut draft: R::Draft = input.body()?;
    R::normalize(&mut draft, context.services.config());
    R::check(&draft, context.services.config())?;
    let resource = R::new(context.services.new_id(), draft, Timestamp::from_ms(context.now_ms));
    let output =
        Output { etag: resource.etag(), reveal: R::secret(resource.id(), 1), ..Output::created(&resource)? };
    let committed = context.commit(insert_within_limit(&resource), output).await;
    committed.map_err(|fault| resource.explain(explain_limit::<R>(fault)))
}

async fn run_update<R: Resource>(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let current = one::<R>(context, &input.id()).await?;
    check_revision(R::NOUN, current.revision(), input)?;
    let mut draft: R::Draft = overlaid(current.draft(), &input.body, R::MERGED)?;
    R::normalize(&mut draft, context.services.config());
    if draft == *current.draft() {
        return ok(&current);
    }
    context.check_unchanged(current.updated_at())?;
    R::check(&draft, context.services.config())?;
    let next = current.changed(draft, Timestamp::from_ms(context.now_ms));
    let mut statements = current.before_update();
    statements.extend(change(&current, &next));
    let mut batch = Batch::from(statements);
    batch.append(current.updated_with(&next, context));
    context.commit(batch, ok(&next)?).await.map_err(|fault| next.explain(fault))
}

async fn run_delete<R: Resource>(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let id: R::Id = input.id();
    loop {
        let mut statements = vec![idempotency::forget_deleted(R::NOUN, &id)];
        statements.extend(R::deleted_with(&id, Timestamp::from_ms(context.now_ms)));
        statements.extend(statements::delete::<R>(&id));
        let rows = context.write(statements).await?;
        match rows.as_slice() {
            [.., deleted, _] if !deleted.is_empty() => return Ok(Output::empty()),
            [.., left] if !left.is_empty() => {}
            _ => return Err(Error::not_found(R::NOUN).into()),
        }
    }
}
