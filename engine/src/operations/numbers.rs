//! Numbers: which assistant answers calls to which phone number. A binding only routes calls: it does not buy, release
//! or cancel a number at the carrier.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::error::{Code, Error, FieldProblem};
use crate::base::ids::{AssistantId, WorkspaceId};
use crate::base::limits;
use crate::base::phone::E164;
use crate::base::time::Timestamp;
use crate::base::values::Metadata;
use crate::carriers::CarrierName;
use crate::operations::checks;
use crate::operations::context::Context;
use crate::operations::listing::{self, Key, List, Part};
use crate::operations::operation::{Effects, Input, Operation, Output};
use crate::operations::resource;
use crate::ports::DatabaseError;
use crate::ports::statement::Row;
use crate::sql;
use crate::storage::directory;
use crate::storage::fault::Fault;

/// `GET /numbers`
pub const LIST: Operation = Operation::get("list_numbers", "/numbers", run!(list))
    .docs("List number bindings", "Lists the number bindings of the workspace, by number.")
    .query::<Part>()
    .returns::<Vec<Number>>();

/// `GET /numbers/{number}`
pub const GET: Operation = Operation::get("get_number", "/numbers/{number}", run!(get))
    .docs("Get a number binding", "Reads which assistant answers calls to a number.")
    .returns::<Number>()
    .errors(&[Code::InvalidParameter]);

/// `PUT /numbers/{number}`
pub const BIND: Operation = Operation::put("bind_number", "/numbers/{number}", run!(bind))
    .with_effects(Effects::Update)
    .replacing()
    .docs(
        "Bind a number to an assistant",
        "Routes incoming calls to the number to an assistant and replaces any previous binding. Only the routing \
        changes: configure the carrier's webhook at the carrier. Live calls stay with their assistant. The operator of \
        the service can give each number to one workspace; then no other can bind it.",
    )
    .body::<Draft>()
    .returns::<Number>()
    .errors(&[Code::InvalidParameter, Code::NumberInUse, Code::LimitReached]);

/// `DELETE /numbers/{number}`
pub const UNBIND: Operation = Operation::delete("unbind_number", "/numbers/{number}", run!(unbind))
    .docs("Unbind a number", "Removes the routing of a number. You keep the number at the carrier.")
    .errors(&[Code::InvalidParameter]);

/// The fields that you set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Draft {
    /// The assistant that receives incoming calls.
    assistant_id: AssistantId,
    /// The carrier that the number belongs to.
    provider: CarrierName,
    /// A label for the carrier's region. It has no effect yet.
    #[serde(default)]
    #[schemars(length(min = 1, max = limits::REGION_CHARS_MAX))]
    region: Option<String>,
    /// Texts of your own, by name. At most 50, with names of up to 64 characters and values of up to 512 bytes, 4 KiB in all.
    /// Replaces all of them; if it is left out, the number keeps what it has.
    #[serde(default)]
    #[schemars(with = "Metadata")]
    metadata: Option<Metadata>,
}

/// A number's binding.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "NumberBinding")]
struct Number {
    /// The phone number in E.164, such as +14155550123.
    number: String,
    #[serde(flatten)]
    draft: Draft,
    /// When it was first bound.
    created_at: Timestamp,
    /// When it last changed.
    updated_at: Timestamp,
    /// When a callback of the carrier was last seen: that of a call to it, or one about a call that was placed from it. Null
    /// until then: a binding that gets no calls although people call is not configured at the carrier.
    last_callback_at: Option<Timestamp>,
}

const COLUMNS: &str =
    "number, assistant_id, provider, region, metadata, created_at, updated_at, last_callback_at";

impl Number {
    fn read(row: Row<'_>) -> Result<Self, Fault> {
        Ok(Self {
            number: row.text("number")?,
            draft: Draft {
                assistant_id: row.id("assistant_id")?,
                provider: row.word("provider")?,
                region: row.optional_text("region")?,
                metadata: Some(row.json("metadata")?),
            },
            created_at: row.timestamp("created_at")?,
            updated_at: row.timestamp("updated_at")?,
            last_callback_at: row.optional_timestamp("last_callback_at")?,
        })
    }
}

fn number(input: &Input) -> Result<E164, Error> {
    E164::parse(input.path_value()).map_err(|error| {
        let problem = FieldProblem::new("number", error.to_string());
        Error::fields(Code::InvalidParameter, &[problem])
    })
}

const NOUN: &str = "number binding";

async fn list(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let key = Key::ascending("number", |text| E164::parse(text).is_ok_and(|number| number.as_str() == text));
    let (table, columns, bytes, read) = ("numbers", COLUMNS, "0", Number::read);
    let list = List { table, columns, bytes, key, filter: "", values: Vec::new(), read };
    listing::run(context, input.query()?, list).await
}

async fn get(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let select = sql!(
        format!("SELECT {COLUMNS} FROM numbers WHERE workspace_id = :ws AND number = :number"),
        number = number(input)?.as_str()
    );
    let [rows] = context.read_each([select]).await?;
    Output::ok(&Number::read(rows.first().ok_or_else(|| Error::not_found(NOUN))?)?)
}

async fn bind(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let number = number(input)?;
    let mut draft: Draft = input.body()?;
    let select = sql!(
        format!(
            "SELECT {COLUMNS}, workspace_id = :ws AS ours,
               EXISTS (SELECT 1 FROM moves AS m WHERE m.workspace_id = numbers.workspace_id AND m.lock = 2) AS is_locked
             FROM numbers WHERE number = :number"
        ),
        number = number.as_str()
    );
    let assistant =
        sql!("SELECT id FROM assistants WHERE workspace_id = :ws AND id = :id", id = &draft.assistant_id);
    let [bound, assistant] = context.read_each([select, assistant]).await?;
    if assistant.is_empty() {
        return Err(Error::field("assistant_id", "is no assistant of this workspace").into());
    }
    let grants = context.services.config().carriers.grants();
    if !grants.permit(context.workspace_id()?, number.as_str()) {
        return Err(not_granted(context.workspace_id()?));
    }
    let mut is_taken_over = false;
    let bound = match bound.first() {
        Some(row) if !row.flag("ours")? && row.flag("is_locked")? => {
            return Err(directory::stays_with_another().into());
        }
        // Bound before the operator decided about numbers.
        Some(row) if !row.flag("ours")? && grants.are_set() => {
            is_taken_over = true;
            None
        }
        Some(row) if !row.flag("ours")? => {
            return Err(directory::in_use().into());
        }
        row => row.map(Number::read).transpose()?,
    };
    let is_given = draft.metadata.is_some();
    let kept = bound.as_ref().and_then(|bound| bound.draft.metadata.clone());
    let metadata = draft.metadata.take().or(kept).unwrap_or_default();
    let metadata_json = serde_json::json!(metadata).to_string();
    draft.metadata = Some(metadata);
    let now = Timestamp::from_ms(context.now_ms);
    let is_new = bound.is_none();
    let (created_at, last_callback_at) = match &bound {
        Some(bound) if bound.draft == draft => return Output::ok(bound),
        // Another carrier has to prove itself again.
        Some(bound) if bound.draft.provider != draft.provider => (bound.created_at, None),
        Some(bound) => (bound.created_at, bound.last_callback_at),
        None => (now, None),
    };
    let upsert = sql!(
        "INSERT INTO numbers (workspace_id, number, assistant_id, provider, region, metadata, created_at, updated_at)
         VALUES (:ws, :number, :assistant_id, :provider, :region, :metadata, :now, :now)
         ON CONFLICT (number) DO UPDATE SET assistant_id = excluded.assistant_id, provider = excluded.provider,
         region = excluded.region, metadata = excluded.metadata, updated_at = excluded.updated_at,
         last_callback_at = CASE WHEN provider = excluded.provider THEN last_callback_at END
         WHERE numbers.workspace_id = excluded.workspace_id",
        number = number.as_str(),
        assistant_id = &draft.assistant_id,
        provider = draft.provider.as_str(),
        region = draft.region.clone(),
        metadata = &metadata_json,
        now = now
    );
    // The update applies only within the workspace: when another one has bound the number meanwhile, the guard undoes
    // the batch.
    let guard = || {
        sql!(
            "INSERT INTO batch_guard (ok) SELECT 0 WHERE NOT EXISTS
             (SELECT 1 FROM numbers WHERE workspace_id = :ws AND number = :number)",
            number = number.as_str()
        )
    };
    let next =
        Number { number: number.as_str().to_owned(), draft, created_at, updated_at: now, last_callback_at };
    // Another database may have the number.
    let (services, workspace_id) = (context.services.clone(), context.workspace_id()?.clone());
    let claim = match is_new {
        true => services.claim_number(number.as_str(), &workspace_id, grants.are_set()).await?,
        false => None,
    };
    let mut statements = vec![upsert, guard()];
    if !is_given {
        // It keeps what it has now, not what it had when it was read: otherwise the operation starts over.
        let is_as_read = sql!(
            "INSERT INTO batch_guard (ok) SELECT 0 WHERE EXISTS
             (SELECT 1 FROM numbers WHERE workspace_id = :ws AND number = :number AND metadata <> :metadata)",
            number = number.as_str(),
            metadata = &metadata_json
        );
        statements.insert(0, is_as_read);
    }
    if is_new {
        statements.insert(0, checks::room("numbers", "", limits::NUMBERS_MAX));
    } else {
        // Unbound meanwhile, it may be bound in another database by now: the operation starts over, and claims it.
        statements.insert(0, guard());
    }
    if is_taken_over {
        let release = sql!(
            "DELETE FROM numbers WHERE number = :number AND workspace_id <> :ws",
            number = number.as_str()
        );
        statements.insert(0, release);
    }
    let committed = context.commit(statements, Output::ok(&next)?).await;
    match (&committed, claim) {
        (Ok(_), Some(claim)) => services.confirm_number(number.as_str(), &workspace_id, claim).await,
        // Nothing was bound. After any other fault, it may have been.
        (
            Err(Fault::Refused(_) | Fault::Stale | Fault::Storage(DatabaseError::Constraint(_))),
            Some(claim),
        ) => {
            services.release_number(number.as_str(), &workspace_id, claim).await;
        }
        _ => {}
    }
    committed.map_err(|fault| checks::explain_room(fault, NOUN, limits::NUMBERS_MAX))
}

fn not_granted(workspace_id: &WorkspaceId) -> Fault {
    let message = format!(
        "The operator of this service has not given this number to this workspace. Ask the operator to add it to \
         SIDETONE_NUMBERS, for {workspace_id}."
    );
    Error::new(Code::NumberInUse, message).into()
}

async fn unbind(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let number = number(input)?;
    let delete = sql!(
        "DELETE FROM numbers WHERE workspace_id = :ws AND number = :number RETURNING number",
        number = number.as_str()
    );
    let output = resource::write_one(context, vec![delete], NOUN).await?;
    context.services.forget_number(number.as_str(), context.workspace_id()?, context.now_ms).await;
    Ok(output)
}
