//! `sidetone key`: API keys, which are shown once and never again.
use clap::Subcommand;
use serde_json::json;
use sidetone_engine::base::api_key::ApiKey;
use sidetone_engine::base::time::{self, Timestamp};
use sidetone_engine::engine::{Engine, ListedKey};
use tokio::runtime::Runtime;

use super::place::Place;
use super::{Failure, failure, key_lost, print_line};

#[derive(Subcommand)]
pub enum Command {
    /// Create an API key and print it once.
    Create {
        /// The workspace's id or name.
        #[arg(long)]
        workspace: String,
    },
    /// List the API keys that are not revoked, oldest first: their ids and last four characters, never the keys.
    List {
        /// Those of this workspace alone, by id or name.
        #[arg(long)]
        workspace: Option<String>,
        /// One JSON object a line.
        #[arg(long)]
        json: bool,
    },
    /// Revoke an API key: the next request with it is refused, also while the service runs.
    Revoke {
        /// The key's id (`key_…`), or its last four characters. The key itself works, too.
        key: String,
    },
}

/// Runs it.
pub fn run(command: Command, place: &Place, runtime: &Runtime) -> Result<(), Failure> {
    let engine = place.engine()?;
    match command {
        Command::Create { workspace } => {
            let key = runtime.block_on(engine.create_key(&workspace)).map_err(failure)?;
            print_line(&format!("API key (shown only once): {key}"))
                .map_err(|error| key_lost(&error, &workspace))
        }
        Command::List { workspace, json } => runtime.block_on(list(&engine, workspace.as_deref(), json)),
        Command::Revoke { key } => runtime.block_on(revoke(&engine, key.trim())),
    }
}

async fn list(engine: &Engine, workspace: Option<&str>, as_json: bool) -> Result<(), Failure> {
    let workspace = match workspace {
        Some(named) => Some(engine.find_workspace(named).await.map_err(failure)?),
        None => None,
    };
    let mut after = Some(String::new());
    while let Some(place) = after {
        let (keys, next) = engine.keys(workspace.as_ref(), &place).await.map_err(failure)?;
        for key in &keys {
            print_line(&if as_json { object(key) } else { line(key) })?;
        }
        after = next;
    }
    Ok(())
}

fn time_of(at: Timestamp) -> String {
    time::format(at.ms())
}

fn object(key: &ListedKey) -> String {
    json!({
        "id": key.id, "workspace_id": key.workspace_id, "name": key.name, "hint": key.hint,
        "created_at": time_of(key.created_at), "last_used_at": key.last_used_at.map(time_of),
    })
    .to_string()
}

/// A key of the settings has no hint: only its hash is known.
fn line(key: &ListedKey) -> String {
    let hint = if key.hint.is_empty() { "(of the settings)" } else { &key.hint };
    let used = key.last_used_at.map_or_else(|| "never used".to_owned(), |at| format!("used {}", time_of(at)));
    format!("{}  {hint:<17}  {}  {used}  {}", key.id, key.workspace_id, key.name)
}

async fn revoke(engine: &Engine, named: &str) -> Result<(), Failure> {
    // A key that has leaked can be given as it is. It is not repeated.
    let hash = ApiKey::parse(named).map(|key| key.sha256_hex());
    let named = hash.as_deref().unwrap_or(named);
    let found = engine.find_keys(named).await.map_err(failure)?;
    let [key] = found.as_slice() else {
        return Err(match found.as_slice() {
            [] => "no key that is not revoked has this id or these last four characters; `sidetone key list` lists them"
                .to_owned(),
            many => {
                let ids: Vec<&str> = many.iter().map(|key| &*key.id).collect();
                format!("several keys end like this; name one of them by its id: {}", ids.join(", "))
            }
        }
        .into());
    };
    engine
        .operate(&key.workspace_id, "revoke_api_key", vec![key.id.to_string()], None)
        .await
        .map_err(failure)?;
    Ok(print_line(&format!("Revoked {} ({}) of {}.", key.id, key.name, key.workspace_id))?)
}
