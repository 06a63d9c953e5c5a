//! `GET /snapshots/{hash}`: what a run or call ran with.
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::base::error::Error;
use crate::base::limits::MCP_LARGE_RESULT_BYTES;
use crate::base::text::truncate_with_note;
use crate::base::time::Timestamp;
use crate::operations::context::Context;
use crate::operations::operation::{Input, Operation, Output, Shortened};
use crate::ports::statement::Row;
use crate::storage::fault::Fault;
use crate::storage::named_snapshots::{self, Part};
use crate::storage::runs::RunMode;
use crate::storage::snapshots::Snapshot;

/// `GET /snapshots/{hash}`
pub const OPERATION: Operation = Operation::get("get_snapshot", "/snapshots/{hash}", run!(run))
    .docs(
        "Get a snapshot",
        "Returns what a run or call ran with: `snapshot` of the run or call is its hash. The same assistant with its tools \
        and documents, persona, scenario and mode have the same hash, and with the same seed an offline run has the same \
        bytes. It is kept as long as a run or call has it. Secrets are no part of it.",
    )
    .returns::<Shown>()
    .shorter_over_mcp(shorter);

/// What a conversation ran with.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Snapshot")]
struct Shown {
    /// Its hash: 64 hexadecimal digits, of the hashes of its two parts and of `mode`.
    hash: String,
    /// The hash of `assistant`: SHA-256 of its compact JSON.
    assistant_hash: String,
    /// The hash of `simulation`; null without one.
    simulation_hash: Option<String>,
    /// The mode of the run; null for a call that is no run's.
    mode: Option<RunMode>,
    /// The assistant with its tools and documents, without ids and revisions.
    #[schemars(with = "Map<String, Value>")]
    assistant: Box<RawValue>,
    /// The caller and the scenario with its evaluations and the answers in place of tools; null for a call that is no run's.
    #[schemars(with = "Option<Map<String, Value>>")]
    simulation: Option<Box<RawValue>>,
    /// When it was first used.
    created_at: Timestamp,
}

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let hash = input.path_value().to_owned();
    let [rows] = context.read_each([named_snapshots::select(&hash)]).await?;
    let row = rows.first().ok_or_else(|| Error::not_found("snapshot"))?;
    let assistant = Part::assistant(&stored(row, "assistant")?)?;
    let simulation = match row.is_null("simulation")? {
        true => None,
        false => Some(Part::simulation(&stored(row, "simulation")?)?),
    };
    let (simulation_hash, simulation) = simulation.map(|part| (part.hash, part.content)).unzip();
    Output::ok(&Shown {
        hash,
        assistant_hash: assistant.hash,
        simulation_hash,
        mode: row.optional_word("mode")?,
        assistant: assistant.content,
        simulation,
        created_at: row.timestamp("created_at")?,
    })
}

/// The bytes that are left of a long text.
const SHORT_BYTES: usize = 1_000;

/// A large snapshot without what makes it so: what documents contain, and what tools take.
fn shorter(body: &str) -> Option<Shortened> {
    if body.len() <= MCP_LARGE_RESULT_BYTES {
        return None;
    }
    let mut shown: Value = serde_json::from_str(body).ok()?;
    let lists = ["knowledge", "tools"];
    let [documents, tools] =
        lists.map(|list| shown["assistant"][list].as_array().cloned().unwrap_or_default());
    let cut = |mut one: Value, field: &str| {
        if let Some(Value::String(text)) = one.get_mut(field) {
            *text = truncate_with_note(std::mem::take(text), SHORT_BYTES);
        }
        one
    };
    let documents = documents.into_iter().map(|document| cut(document, "content"));
    let tools = tools.into_iter().map(|tool| {
        let mut tool = cut(tool, "description");
        if let Some(fields) = tool.as_object_mut() {
            fields.shift_remove("parameters");
        }
        tool
    });
    let [documents, tools] = [documents.collect(), tools.collect::<Value>()];
    for (list, short) in lists.into_iter().zip([documents, tools]) {
        if let Some(long) = shown["assistant"].get_mut(list) {
            *long = short;
        }
    }
    let note = "This snapshot is large: documents and descriptions of tools are cut to 1,000 bytes, and the parameters of tools are left \
        out. GET /snapshots/{hash} over REST has all of it.";
    Some(Shortened { body: shown.to_string(), note: Some(note) })
}

fn stored(row: Row<'_>, part: &str) -> Result<Snapshot, Fault> {
    Ok(Snapshot { id: row.text(&format!("{part}_id"))?, content: row.text(part)? })
}
