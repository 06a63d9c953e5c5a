//! What a conversation ran with, under one name: a hash of what its outcome follows from. The same assistant, caller,
//! scenario and mode have the same name, whenever and wherever they are made; ids, revisions and versions of secrets are no
//! part of it.
//!
//! A name is a row that refers to its parts, the assistant and the simulation, which are stored once
//! ([`snapshots`](super::snapshots)). A name is deleted with the last run or call that has it, a part with the last name
//! and run.
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::base::error::{Code, Error};
use crate::base::hash::sha256_hex;
use crate::base::limits::{SNAPSHOT_BYTES_MAX, SNAPSHOTS_KEPT_BYTES_MAX};
use crate::base::time::Timestamp;
use crate::ports::statement::{Rows, Statement};
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::runs::RunMode;
use crate::storage::snapshots::{AssistantSnapshot, Snapshot, count_added, delete_where};

/// What of an assistant changes nothing about a conversation.
const ASSISTANT_WITHOUT: &[&str] = &["id", "revision"];
/// Likewise of a tool.
const TOOL_WITHOUT: &[&str] = &["id", "secret_version"];
/// Likewise of a simulation.
const SIMULATION_WITHOUT: &[&str] = &["name"];

/// A JSON object whose values are left as text.
type Fields = BTreeMap<String, Box<RawValue>>;

/// A part of a snapshot: what counts of it.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// The id of the stored row.
    pub(crate) id: String,
    /// The hash of `content`.
    pub(crate) hash: String,
    /// What counts, as JSON.
    pub(crate) content: Box<RawValue>,
}

impl Part {
    /// The part of a stored assistant.
    pub(crate) fn assistant(stored: &Snapshot) -> Result<Self, Fault> {
        let mut fields = without(&stored.content, ASSISTANT_WITHOUT)?;
        if let Some(tools) = fields.get("tools") {
            let tools: Vec<&RawValue> = serde_json::from_str(tools.get()).map_err(unreadable)?;
            let tools = tools.into_iter().map(|tool| without(tool.get(), TOOL_WITHOUT));
            let tools = tools.collect::<Result<Vec<_>, _>>()?;
            fields.insert("tools".to_owned(), serde_json::value::to_raw_value(&tools).map_err(unreadable)?);
        }
        Self::of(stored, &fields)
    }

    /// The part of a stored simulation.
    pub(crate) fn simulation(stored: &Snapshot) -> Result<Self, Fault> {
        Self::of(stored, &without(&stored.content, SIMULATION_WITHOUT)?)
    }

    fn of(stored: &Snapshot, fields: &Fields) -> Result<Self, Fault> {
        let content = serde_json::value::to_raw_value(fields).map_err(unreadable)?;
        Ok(Self { id: stored.id.clone(), hash: sha256_hex(content.get().as_bytes()), content })
    }
}

/// The name of a snapshot.
#[derive(Debug, Clone)]
pub(crate) struct Name {
    pub(crate) hash: String,
    /// The ids of the parts.
    assistant: String,
    simulation: Option<String>,
    mode: Option<RunMode>,
}

impl Name {
    /// The name of a run's snapshot.
    pub(crate) fn of_run(assistant: &Part, simulation: &Part, mode: RunMode) -> Self {
        Self::of(assistant, Some(simulation), Some(mode))
    }

    fn of(assistant: &Part, simulation: Option<&Part>, mode: Option<RunMode>) -> Self {
        let text = serde_json::json!({
            "assistant": assistant.hash, "mode": mode, "simulation": simulation.map(|part| &part.hash),
        });
        Self {
            hash: sha256_hex(text.to_string().as_bytes()),
            assistant: assistant.id.clone(),
            simulation: simulation.map(|part| part.id.clone()),
            mode,
        }
    }
}

/// Inserts the names that workspace `:ws` does not have yet; their parts are the caller's.
pub(crate) fn insert<'a>(names: impl Iterator<Item = &'a Name>, now_ms: i64) -> Statement {
    let row = |name: &Name| {
        serde_json::json!({
            "hash": name.hash, "assistant": name.assistant, "simulation": name.simulation, "mode": name.mode,
        })
    };
    sql!(
        "INSERT INTO named_snapshots (workspace_id, hash, assistant, simulation, mode, created_at)
         SELECT :ws, json_extract(value, '$.hash'), json_extract(value, '$.assistant'), json_extract(value, '$.simulation'),
         json_extract(value, '$.mode'), :now FROM json_each(:rows) WHERE true ON CONFLICT DO NOTHING",
        rows = serde_json::Value::Array(names.map(row).collect()).to_string(),
        now = now_ms
    )
}

/// The snapshot of a conversation that is no run's: its name, and the statements that store it in workspace `:ws`. `None` for
/// an assistant that is too large for a row.
pub(crate) fn of_conversation(
    assistant: &AssistantSnapshot,
    now: Timestamp,
) -> Result<Option<(String, [Statement; 3])>, Fault> {
    let stored = Snapshot::of(assistant)?;
    if stored.content.len() > SNAPSHOT_BYTES_MAX {
        return Ok(None);
    }
    let name = Name::of(&Part::assistant(&stored)?, None, None);
    let is_named = "EXISTS (SELECT 1 FROM named_snapshots WHERE workspace_id = :ws AND assistant = json_extract(value, '$.id'))";
    let counted = count_added(std::iter::once(&stored), is_named);
    let statements = [insert(std::iter::once(&name), now.ms()), counted, insert_named(&stored)];
    Ok(Some((name.hash, statements)))
}

/// Reads how much workspace `:ws` keeps of what conversations ran with, for [`check_kept`].
pub(crate) fn kept() -> Statement {
    sql!("SELECT snapshot_bytes FROM workspaces WHERE id = :ws")
}

/// Refuses a start in a workspace that keeps as much as it may. Starts at the same time can pass the limit together, by what
/// they add. An incoming call is not asked: its caller can neither wait nor delete anything.
pub(crate) fn check_kept(rows: &Rows) -> Result<(), Fault> {
    let Some(row) = rows.first() else { return Ok(()) };
    let bytes = row.integer("snapshot_bytes")?;
    if bytes < SNAPSHOTS_KEPT_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "This workspace keeps {bytes} bytes of configurations that runs and calls ran with; the limit is {SNAPSHOTS_KEPT_BYTES_MAX}. Delete runs (DELETE /simulations/runs with a filter) and calls (DELETE /calls with a filter) that are no longer needed."
    );
    let details = serde_json::json!({"limit": SNAPSHOTS_KEPT_BYTES_MAX, "of": "bytes of configurations"});
    Err(Error::new(Code::LimitReached, message).with_details(details).into())
}

/// Inserts the assistant of a name. The name may refer to one of another revision: then this one is not stored, since nothing
/// would delete it.
fn insert_named(stored: &Snapshot) -> Statement {
    sql!(
        "INSERT INTO snapshots (workspace_id, id, content) SELECT :ws, :id, :content WHERE EXISTS
           (SELECT 1 FROM named_snapshots WHERE workspace_id = :ws AND assistant = :id) ON CONFLICT DO NOTHING",
        id = &stored.id,
        content = &stored.content
    )
}

/// Reads a name of workspace `:ws` with its parts.
pub(crate) fn select(hash: &str) -> Statement {
    sql!(
        "SELECT n.mode AS mode, n.created_at AS created_at, a.id AS assistant_id, a.content AS assistant, s.id AS simulation_id,
           s.content AS simulation
         FROM named_snapshots AS n
         JOIN snapshots AS a ON a.workspace_id = n.workspace_id AND a.id = n.assistant
         LEFT JOIN snapshots AS s ON s.workspace_id = n.workspace_id AND s.id = n.simulation
         WHERE n.workspace_id = :ws AND n.hash = :hash",
        hash = hash
    )
}

/// The texts of statements that delete parts of workspace `:ws` that nobody has any more, then names likewise. `names` is an SQL
/// list of names that lose a run or call. `parts` is one of parts that lose a run: the name of its snapshot may have others,
/// since a part tells the revision, too. `runs` and `calls` are conditions on the rows `r` and `c` that stay.
pub(crate) fn release(names: &str, parts: Option<&str>, runs: &str, calls: &str) -> [String; 3] {
    let gone = format!(
        "SELECT hash FROM named_snapshots AS n WHERE n.workspace_id = :ws AND n.hash IN ({names})
         AND NOT EXISTS (SELECT 1 FROM runs AS r WHERE r.workspace_id = :ws AND r.snapshot = n.hash AND {runs})
         AND NOT EXISTS (SELECT 1 FROM calls AS c WHERE c.workspace_id = :ws AND c.snapshot = n.hash AND {calls})"
    );
    let part_is_used = |column: &str| {
        format!(
            "EXISTS (SELECT 1 FROM named_snapshots AS o WHERE o.workspace_id = :ws AND o.{column} = snapshots.id
               AND o.hash NOT IN ({gone}))
             OR EXISTS (SELECT 1 FROM runs AS r WHERE r.workspace_id = :ws AND r.{column}_snapshot = snapshots.id AND {runs})"
        )
    };
    let others = parts.map(|parts| format!(" UNION {parts}")).unwrap_or_default();
    let [counted, parts] = delete_where(&format!(
        "id IN
           (SELECT assistant FROM named_snapshots WHERE workspace_id = :ws AND hash IN ({gone})
            UNION SELECT simulation FROM named_snapshots WHERE workspace_id = :ws AND hash IN ({gone}){others})
         AND NOT ({} OR {})",
        part_is_used("assistant"),
        part_is_used("simulation")
    ));
    [counted, parts, format!("DELETE FROM named_snapshots WHERE workspace_id = :ws AND hash IN ({gone})")]
}

/// The fields of a JSON object, without these.
fn without(text: &str, names: &[&str]) -> Result<Fields, Fault> {
    let mut fields: Fields = serde_json::from_str(text).map_err(unreadable)?;
    fields.retain(|name, _| !names.contains(&name.as_str()));
    Ok(fields)
}

fn unreadable(error: serde_json::Error) -> Fault {
    Fault::Bug(format!("a stored snapshot cannot be read: {error}"))
}
