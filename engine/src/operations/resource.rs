//! Resources: what a workspace stores under ids and its clients list, get, create, update and delete.
//!
//! `resource!` declares one, once: its fields with their limits and defaults are the body that clients send, the
//! body they get, the columns, and the statements that insert and update a row. [`Resource`] adds what is special about
//! it, and [`list`], [`get`], [`create`], [`update`] and [`delete`] are rows of the table.
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::base::error::{Code, Error};
use crate::base::ids::Id;
use crate::base::time::Timestamp;
use crate::config::Config;
use crate::operations::context::Context;
use crate::operations::operation::{Input, Operation, Output, from_map};
use crate::ports::statement::{Row, Rows, Statement, Value as SqlValue};
use crate::sql;
use crate::storage::batch::Batch;
use crate::storage::fault::Fault;
use crate::storage::idempotency::OneTimeSecret;

/// What `resource!` writes.
pub(crate) trait Declared: Serialize + JsonSchema + Clone + Send + Sync + 'static {
    type Id: Id + Send + Sync;
    /// The fields that clients set.
    type Draft: Serialize + DeserializeOwned + JsonSchema + Clone + PartialEq + Send + Sync + 'static;

    const NOUN: &'static str;
    const TABLE: &'static str;
    const PATH: &'static str;
    const PATH_OF_ONE: &'static str;
    /// The columns that [`Declared::read`] takes.
    const COLUMNS: &'static str;
    const INSERT: &'static str;
    const UPDATE: &'static str;

    fn read(row: Row<'_>) -> Result<Self, Fault>;
    fn new(id: Self::Id, draft: Self::Draft, now: Timestamp) -> Self;
    /// The next revision.
    fn changed(&self, draft: Self::Draft, now: Timestamp) -> Self;
    /// The parameters of [`Declared::INSERT`] and [`Declared::UPDATE`].
    fn values(&self) -> Vec<(&'static str, SqlValue)>;
    fn id(&self) -> &Self::Id;
    fn draft(&self) -> &Self::Draft;
    fn revision(&self) -> i64;
}

/// What is special about a resource.
pub(crate) trait Resource: Declared {
    /// How many of them a workspace can have.
    const LIMIT: Option<i64> = None;

    /// Fills in defaults and brings values into their normal form.
    fn normalize(_draft: &mut Self::Draft, _config: &Config) {}

    /// Refuses what the schema allows and the resource does not.
    fn check(_draft: &Self::Draft, _config: &Config) -> Result<(), Error> {
        Ok(())
    }

    /// The secret that its creation or a rotation shows once.
    fn secret(_id: &Self::Id, _version: i64) -> Option<OneTimeSecret> {
        None
    }

    /// The revision to show as `ETag`.
    fn etag(&self) -> Option<i64> {
        None
    }

    /// What an update writes beside the row.
    fn updated_with(&self, _next: &Self, _context: &Context) -> Batch {
        Batch::default()
    }

    /// What a deletion writes before the row goes.
    fn deleted_with(_id: &str, _now: Timestamp) -> Vec<Statement> {
        Vec::new()
    }

    /// The error for a constraint of the database that the resource breaks.
    fn explain(&self, fault: Fault) -> Fault {
        fault
    }
}

/// Declares a resource: its fields as clients set them (`draft`), its stored fields that follow from those (`derived`),
/// its fields that are read by a subquery (`computed`), and columns that start with a fixed value (`initially`).
macro_rules! resource {
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $(#[$id_about:meta])*
            id: $id:ty,
            draft: { $($(#[$field_about:meta])* $field:ident: $type:ty,)+ },
            $(derived: { $($(#[$derived_about:meta])* $derived:ident: $derived_type:ty = $derive:path,)+ },)?
            $(computed: { $($(#[$computed_about:meta])* $computed:ident: $computed_type:ty = $query:literal,)+ },)?
            $(#[$revision_about:meta])*
            revision,
        }
        noun: $noun:literal, table: $table:literal, path: $path:literal
        $(, initially: { $($initial:ident = $value:literal),+ })?
    ) => {
        /// The fields that a client sets.
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct Draft {
            $($(#[$field_about])* pub(crate) $field: $type,)+
        }

        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, schemars::JsonSchema)]
        pub(crate) struct $name {
            $(#[$id_about])*
            pub(crate) id: $id,
            #[serde(flatten)]
            pub(crate) draft: Draft,
            $($($(#[$derived_about])* pub(crate) $derived: $derived_type,)+)?
            $($($(#[$computed_about])* pub(crate) $computed: $computed_type,)+)?
            $(#[$revision_about])*
            pub(crate) revision: i64,
            /// When it was created.
            pub(crate) created_at: $crate::base::time::Timestamp,
            /// When it last changed.
            pub(crate) updated_at: $crate::base::time::Timestamp,
        }

        impl $crate::operations::resource::Declared for $name {
            type Id = $id;
            type Draft = Draft;

            const NOUN: &'static str = $noun;
            const TABLE: &'static str = $table;
            const PATH: &'static str = $path;
            const PATH_OF_ONE: &'static str = concat!($path, "/{id}");
            const COLUMNS: &'static str = concat!(
                "id, ", $(stringify!($field), ", ",)+ $($(stringify!($derived), ", ",)+)?
                $($($query, " AS ", stringify!($computed), ", ",)+)? "revision, created_at, updated_at"
            );
            const INSERT: &'static str = concat!(
                "INSERT INTO ", $table, " (workspace_id, id, ",
                $(stringify!($field), ", ",)+ $($(stringify!($derived), ", ",)+)? $($(stringify!($initial), ", ",)+)?
                "revision, created_at, updated_at) VALUES (:ws, :id, ",
                $(":", stringify!($field), ", ",)+ $($(":", stringify!($derived), ", ",)+)? $($($value, ", ",)+)?
                "1, :updated_at, :updated_at)"
            );
            const UPDATE: &'static str = concat!(
                "UPDATE ", $table, " SET ",
                $(stringify!($field), " = :", stringify!($field), ", ",)+
                $($(stringify!($derived), " = :", stringify!($derived), ", ",)+)?
                "revision = revision + 1, updated_at = :updated_at WHERE workspace_id = :ws AND id = :id"
            );

            fn read(
                row: $crate::ports::statement::Row<'_>,
            ) -> Result<Self, $crate::storage::fault::Fault> {
                use $crate::storage::column::Column;
                Ok(Self {
                    id: Column::read(row, "id")?,
                    draft: Draft { $($field: Column::read(row, stringify!($field))?,)+ },
                    $($($derived: Column::read(row, stringify!($derived))?,)+)?
                    $($($computed: Column::read(row, stringify!($computed))?,)+)?
                    revision: Column::read(row, "revision")?,
                    created_at: Column::read(row, "created_at")?,
                    updated_at: Column::read(row, "updated_at")?,
                })
            }

            fn new(id: $id, draft: Draft, now: $crate::base::time::Timestamp) -> Self {
                Self {
                    id,
                    $($($derived: $derive(&draft),)+)?
                    $($($computed: Default::default(),)+)?
                    draft,
                    revision: 1,
                    created_at: now,
                    updated_at: now,
                }
            }

            fn changed(&self, draft: Draft, now: $crate::base::time::Timestamp) -> Self {
                Self {
                    $($($derived: $derive(&draft),)+)?
                    draft,
                    revision: self.revision + 1,
                    updated_at: now,
                    ..self.clone()
                }
            }

            fn values(&self) -> Vec<(&'static str, $crate::ports::statement::Value)> {
                use $crate::storage::column::Column;
                vec![
                    ("id", self.id.value()),
                    $((stringify!($field), self.draft.$field.value()),)+
                    $($((stringify!($derived), self.$derived.value()),)+)?
                    ("updated_at", self.updated_at.value()),
                ]
            }

            fn id(&self) -> &$id {
                &self.id
            }

            fn draft(&self) -> &Draft {
                &self.draft
            }

            fn revision(&self) -> i64 {
                self.revision
            }
        }
    };
}
pub(crate) use resource;

/// `GET` of all.
pub(crate) const fn list<R: Resource>(id: &'static str) -> Operation {
    Operation::get(id, R::PATH, |context, _| Box::pin(run_list(context, select_all::<R>(), R::read)))
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
        .returns::<R>()
}

/// `PATCH`.
pub(crate) const fn update<R: Resource>(id: &'static str) -> Operation {
    Operation::patch(id, R::PATH_OF_ONE, |context, input| Box::pin(run_update::<R>(context, input)))
        .partial_body::<R::Draft>()
        .returns::<R>()
}

/// `DELETE`.
pub(crate) const fn delete<R: Resource>(id: &'static str) -> Operation {
    Operation::delete(id, R::PATH_OF_ONE, |context, input| Box::pin(run_delete::<R>(context, input)))
}

/// The body that creates a resource with a secret.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Created{T}")]
pub(crate) struct Created<T> {
    /// The resource.
    #[serde(flatten)]
    resource: T,
    /// `whsec_…`, shown only this once.
    signing_secret: String,
}

/// The rows of `select` as a JSON array.
pub(crate) async fn run_list<T: Serialize>(
    context: &mut Context,
    select: Statement,
    read: fn(Row<'_>) -> Result<T, Fault>,
) -> Result<Output, Fault> {
    let [rows] = context.read_each([select]).await?;
    Output::ok(&rows.iter().map(read).collect::<Result<Vec<T>, Fault>>()?)
}

async fn run_get<R: Resource>(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    ok(&one::<R>(context, input.id()).await?)
}

async fn run_create<R: Resource>(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let mut draft: R::Draft = input.body()?;
    R::normalize(&mut draft, context.services.config());
    R::check(&draft, context.services.config())?;
    let mut statements = Vec::new();
    if let Some(limit) = R::LIMIT {
        statements.push(room::<R>(context, limit).await?);
    }
    let resource = R::new(context.services.new_id(), draft, Timestamp::from_ms(context.now_ms));
    statements.push(insert(&resource));
    let output =
        Output { etag: resource.etag(), reveal: R::secret(resource.id(), 1), ..Output::created(&resource)? };
    context.commit(statements, output).await.map_err(|fault| resource.explain(fault))
}

async fn run_update<R: Resource>(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let current = one::<R>(context, input.id()).await?;
    check_revision(&current, input)?;
    let mut draft: R::Draft = overlaid(current.draft(), &input.body)?;
    R::normalize(&mut draft, context.services.config());
    if draft == *current.draft() {
        return ok(&current);
    }
    R::check(&draft, context.services.config())?;
    let next = current.changed(draft, Timestamp::from_ms(context.now_ms));
    let mut batch = Batch::from(change(&current, &next));
    batch.append(current.updated_with(&next, context));
    context.commit_batch(batch, ok(&next)?).await.map_err(|fault| next.explain(fault))
}

async fn run_delete<R: Resource>(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let mut statements = R::deleted_with(input.id(), Timestamp::from_ms(context.now_ms));
    statements.push(sql!(
        format!("DELETE FROM {} WHERE workspace_id = :ws AND id = :id RETURNING id", R::TABLE),
        id = input.id()
    ));
    write_one(context, statements, R::NOUN).await
}

/// Writes; the last statement returns the row that it has deleted or changed, else it is a 404.
pub(crate) async fn write_one(
    context: &mut Context,
    statements: Vec<Statement>,
    noun: &str,
) -> Result<Output, Fault> {
    let rows = context.write(statements).await?;
    match rows.last().and_then(Rows::first) {
        Some(_) => Ok(Output::empty()),
        None => Err(Error::not_found(noun).into()),
    }
}

/// The resource with this id, or 404.
pub(crate) async fn one<R: Declared>(context: &mut Context, id: &str) -> Result<R, Fault> {
    let [rows] = context.read_each([select_one::<R>(id)]).await?;
    found(&rows)
}

/// The resource that [`select_one`] has found, or 404.
pub(crate) fn found<R: Declared>(rows: &Rows) -> Result<R, Fault> {
    R::read(rows.first().ok_or_else(|| Error::not_found(R::NOUN))?)
}

/// 200 with the resource.
pub(crate) fn ok<R: Resource>(resource: &R) -> Result<Output, Fault> {
    Ok(Output { etag: resource.etag(), ..Output::ok(resource)? })
}

/// Refuses a revision that is not the current one.
pub(crate) fn check_revision<R: Declared>(current: &R, input: &Input) -> Result<(), Error> {
    match input.if_revision {
        Some(expected) if expected != current.revision() => {
            let message =
                format!("The {} changed since you read it. Read it again, then repeat the change.", R::NOUN);
            let details = serde_json::json!({"expected": expected, "current": current.revision()});
            Err(Error::new(Code::RevisionConflict, message).with_details(details))
        }
        _ => Ok(()),
    }
}

/// `current` with `changes` laid over it.
pub(crate) fn overlaid<T: Serialize, U: DeserializeOwned>(
    current: &T,
    changes: &Map<String, Value>,
) -> Result<U, Fault> {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(current) else {
        return Err(Fault::Bug("a resource is not an object".to_owned()));
    };
    fields.extend(changes.iter().map(|(name, value)| (name.clone(), value.clone())));
    Ok(from_map(&fields)?)
}

pub(crate) fn select_all<R: Declared>() -> Statement {
    sql!(format!("SELECT {} FROM {} WHERE workspace_id = :ws ORDER BY id DESC", R::COLUMNS, R::TABLE))
}

pub(crate) fn select_one<R: Declared>(id: &str) -> Statement {
    sql!(format!("SELECT {} FROM {} WHERE workspace_id = :ws AND id = :id", R::COLUMNS, R::TABLE), id = id)
}

pub(crate) fn insert<R: Declared>(resource: &R) -> Statement {
    Statement::named(R::INSERT, resource.values())
}

/// Replaces `current` by `next`, unless somebody else has changed it.
pub(crate) fn change<R: Declared>(current: &R, next: &R) -> [Statement; 2] {
    [unchanged(current), Statement::named(R::UPDATE, next.values())]
}

/// Undoes the batch when the row is no longer what was read.
pub(crate) fn unchanged<R: Declared>(resource: &R) -> Statement {
    sql!(
        format!(
            "INSERT INTO batch_guard (ok) SELECT 0 WHERE NOT EXISTS
             (SELECT 1 FROM {} WHERE workspace_id = :ws AND id = :id AND revision = :revision)",
            R::TABLE
        ),
        id = resource.id(),
        revision = resource.revision()
    )
}

/// Refuses one more than `limit`. The guard it returns refuses it again when several are created at once.
async fn room<R: Declared>(context: &mut Context, limit: i64) -> Result<Statement, Fault> {
    let (noun, table) = (R::NOUN, R::TABLE);
    let count = sql!(format!("SELECT COUNT(*) AS count FROM {table} WHERE workspace_id = :ws"));
    let [rows] = context.read_each([count]).await?;
    if rows.first().map(|row| row.integer("count")).transpose()?.is_some_and(|count| count >= limit) {
        let message = format!("This workspace has {limit} {noun}s, which is the limit. Delete one first.");
        return Err(Error::new(Code::LimitReached, message).into());
    }
    Ok(sql!(
        format!(
            "INSERT INTO batch_guard (ok) SELECT 0 WHERE (SELECT COUNT(*) FROM {table} WHERE workspace_id = :ws) >= :limit"
        ),
        limit = limit
    ))
}

/// Turns a UNIQUE failure of the table's `name` into a 409.
pub(crate) fn name_taken<R: Declared>(fault: Fault, name: &str) -> Fault {
    match fault {
        Fault::Storage(error) if error.is_constraint(&format!("{}.name", R::TABLE)) => {
            let message =
                format!("This workspace has another {} named `{name}`. Choose another name.", R::NOUN);
            Error::new(Code::NameTaken, message)
                .with_details(serde_json::json!({"fields": [{"field": "name", "message": "is taken"}]}))
                .into()
        }
        other => other,
    }
}
