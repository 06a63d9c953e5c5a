//! `sidetone workspace`: the tenants of this service.
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use sidetone_engine::base::ids::WorkspaceId;
use sidetone_engine::base::time;
use sidetone_engine::engine::{Engine, ListedWorkspace};
use sidetone_engine::storage::moves::State;
use tokio::runtime::Runtime;

use super::moving::{MoveOptions, run_move};
use super::place::Place;
use super::{Failure, failure, key_lost, print_line};
use crate::text::counted;

#[derive(Subcommand)]
pub enum Command {
    /// Create a workspace and print its first API key once.
    Create {
        /// The name of the workspace.
        name: String,
    },
    /// List the workspaces, oldest first.
    List {
        /// One JSON object a line.
        #[arg(long)]
        json: bool,
    },
    /// Give a workspace another name.
    Rename {
        /// The workspace's id or name.
        workspace: String,
        /// Its new name.
        name: String,
    },
    /// Show the limits of a workspace, or change those that are given. The operator's settings apply beside them.
    Limits {
        /// The workspace's id or name.
        workspace: String,
        #[command(flatten)]
        limits: NewLimits,
        /// The workspace as the API returns it, as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Move a workspace to another database of a service that has several, or cancel that. It can be read meanwhile, and takes no
    /// changes. Exits with 0 when done, 1 if it is not yet or needs you, 2 if it failed.
    Move(MoveOptions),
}

/// The fields of `PATCH /workspace`. `none` takes a limit away.
#[derive(Args)]
pub struct NewLimits {
    /// Simulation runs in progress at once.
    #[arg(long, value_name = "NUMBER")]
    runs_at_once: Option<i64>,
    /// Telephone calls at once.
    #[arg(long, value_name = "NUMBER")]
    calls_at_once: Option<i64>,
    /// Costs in a calendar month, in millionths of a US dollar, or `none`.
    #[arg(long, value_name = "NUMBER", value_parser = number_or_none)]
    monthly_spend_limit_microusd: Option<OrNone>,
    /// Days that calls are kept, or `none`.
    #[arg(long, value_name = "DAYS", value_parser = number_or_none)]
    call_retention_days: Option<OrNone>,
    /// Days that recordings are kept, or `none`.
    #[arg(long, value_name = "DAYS", value_parser = number_or_none)]
    recording_retention_days: Option<OrNone>,
}

/// A number, or no limit.
#[derive(Clone, Copy)]
struct OrNone(Option<i64>);

fn number_or_none(text: &str) -> Result<OrNone, String> {
    match text {
        "none" => Ok(OrNone(None)),
        text => text
            .parse()
            .map(|number| OrNone(Some(number)))
            .map_err(|_| "write a whole number, or `none`".to_owned()),
    }
}

impl NewLimits {
    /// The body of `PATCH /workspace`.
    fn body(&self) -> Map<String, Value> {
        let or_none = |value: Option<OrNone>| value.map(|OrNone(number)| json!(number));
        [
            ("runs_at_once", self.runs_at_once.map(Value::from)),
            ("calls_at_once", self.calls_at_once.map(Value::from)),
            ("monthly_spend_limit_microusd", or_none(self.monthly_spend_limit_microusd)),
            ("call_retention_days", or_none(self.call_retention_days)),
            ("recording_retention_days", or_none(self.recording_retention_days)),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
    }
}

/// Runs it. A workspace can be created before the service has ever started.
pub fn run(command: Command, runtime: &Runtime) -> Result<(), Failure> {
    if let Command::Move(options) = &command {
        // As of the other commands that move workspaces, its exit codes say more.
        std::process::exit(i32::from(run_move(options, runtime)));
    }
    let place = match command {
        Command::Create { .. } => Place::named()?,
        _ => Place::of_service()?,
    };
    let engine = place.engine()?;
    match command {
        Command::Create { name } => {
            let created = runtime.block_on(engine.create_workspace(&name)).map_err(failure)?;
            print_line(&format!(
                "Workspace {} ({name})\nAPI key (shown only once): {}",
                created.workspace_id, created.key
            ))
            .map_err(|error| key_lost(&error, &created.workspace_id))
        }
        Command::List { json } => runtime.block_on(list(&engine, json)),
        Command::Rename { workspace, name } => runtime.block_on(async {
            let id = engine.find_workspace(&workspace).await.map_err(failure)?;
            let changed =
                update(&engine, &id, [("name".to_owned(), json!(name))].into_iter().collect()).await?;
            Ok(print_line(&format!("{id} is now called {}", shown(&changed["name"])))?)
        }),
        Command::Limits { workspace, limits, json } => runtime.block_on(async {
            let id = engine.find_workspace(&workspace).await.map_err(failure)?;
            let body = limits.body();
            let now = match body.is_empty() {
                true => engine.operate(&id, "get_workspace", Vec::new(), None).await.map_err(failure)?,
                false => update(&engine, &id, body).await?,
            };
            Ok(print_line(&if json { now.to_string() } else { described(&now) })?)
        }),
        // It has ended the process.
        Command::Move(_) => Ok(()),
    }
}

async fn update(engine: &Engine, id: &WorkspaceId, body: Map<String, Value>) -> Result<Value, Failure> {
    engine.operate(id, "update_workspace", Vec::new(), Some(body)).await.map_err(failure)
}

async fn list(engine: &Engine, as_json: bool) -> Result<(), Failure> {
    let mut after = Some(String::new());
    while let Some(place) = after {
        let (workspaces, next) = engine.workspaces(&place).await.map_err(failure)?;
        for one in workspaces {
            let created_at = time::format(one.created_at.ms());
            print_line(&match as_json {
                true => json!({
                    "id": one.id,
                    "name": one.name,
                    "keys": one.keys,
                    "created_at": created_at,
                    "move": one.moves.map(State::as_str),
                    "moved_to": one.moved_to,
                })
                .to_string(),
                false => {
                    let (id, name) = (&one.id, &one.name);
                    let keys = counted(one.keys.unsigned_abs(), "key");
                    format!("{id}  {created_at}  {keys:>9}  {name}{}", move_of(&one))
                }
            })?;
        }
        after = next;
    }
    Ok(())
}

/// Whether a workspace moves or has moved, behind its name.
fn move_of(workspace: &ListedWorkspace) -> String {
    match (workspace.moves, &workspace.moved_to) {
        (None, _) => String::new(),
        (Some(State::Released | State::Erasing | State::Gone), Some(url)) => format!("  moved to {url}"),
        // Its import was canceled.
        (Some(State::Gone), None) => "  empty (its import was canceled)".to_owned(),
        (Some(state), _) => format!("  moving ({})", state.as_str()),
    }
}

/// A workspace for people: what it has, and what keeps its limits from holding.
fn described(workspace: &Value) -> String {
    let mut text = format!("{} ({})", shown(&workspace["name"]), shown(&workspace["id"]));
    for name in [
        "runs_at_once",
        "calls_at_once",
        "monthly_spend_limit_microusd",
        "spent_this_month_microusd",
        "call_retention_days",
        "recording_retention_days",
    ] {
        text.push_str(&format!("\n  {name:<29} {}", shown(&workspace[name])));
    }
    for warning in workspace["warnings"].as_array().into_iter().flatten() {
        text.push_str(&format!("\n  {}", shown(warning)));
    }
    text
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "none".to_owned(),
        other => other.to_string(),
    }
}
