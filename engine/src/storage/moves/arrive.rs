//! The beginning of an import: what refuses it before anything is written, and the row that its parts refer to.
use serde_json::json;

use crate::base::hash::hex;
use crate::base::ids::{Id as _, WorkspaceId, is_ulid, prefix};
use crate::base::limits::MOVES_AT_ONCE_MAX;
use crate::carriers::CarrierName;
use crate::config::Config;
use crate::models::settings::provider_of;
use crate::ports::statement::Statement;
use crate::services::Services;
use crate::speech::settings::{BROWSER, TONE};
use crate::sql;
use crate::storage::calls::search::workspace_mark;
use crate::storage::fault::{Fault, retry_stale};
use crate::storage::migrations::MIGRATIONS;
use crate::storage::moves::declined::Declined;
use crate::storage::moves::head::named;
use crate::storage::moves::import::{Arriving, Status, is_import, progress};
use crate::storage::moves::part::{Chain, Head, Needs, Tally};
use crate::storage::moves::{Move, State, lock};
use crate::storage::workspace_rows::SCHEMA;

/// Warnings of one answer.
const WARNINGS_MAX: usize = 50;
const SALT_BYTES: usize = 32;

/// An import that was begun, or goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// How far it is.
    pub status: Status,
    /// Whether this request has begun it.
    pub is_new: bool,
    /// What the operator has to configure here, so that calls go on as before.
    pub warnings: Vec<String>,
}

/// Begins the import of a file, or goes on with it. May be repeated.
pub async fn begin(services: &Services, head: &Head) -> Result<Begun, Fault> {
    check_form(head)?;
    check_schema(&head.schema)?;
    let Tried { home, import, is_new } = retry_stale(|| try_begin(services, head)).await?;
    if import.state == State::Arriving {
        // There are no rows before the first part, so nothing escapes the triggers that are not there yet.
        lock::arm(&home, &head.workspace_id).await?;
    }
    let warnings = warnings(services.config(), head);
    Ok(Begun { status: Status::of(&import)?, is_new, warnings })
}

fn check_form(head: &Head) -> Result<(), Declined> {
    let is_export =
        head.export_id.split_once('_').is_some_and(|(kind, ulid)| kind == prefix::EXPORT && is_ulid(ulid));
    let is_hash = |text: &String| {
        text.len() == 64 && text.bytes().all(|digit| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit))
    };
    let problems = [
        (head.workspace_id.to_bytes().is_none(), "`workspace_id` is no id of a workspace"),
        (!is_export, "`export_id` is no id of an export"),
        (!is_hash(&head.key_sha256), "`key_sha256` is no SHA-256"),
        (!head.key_hashes.iter().all(is_hash), "`key_hashes` has something else than SHA-256s"),
        (!head.is_fit(), "`name`, `numbers` or `needs` has what is no name"),
    ];
    match problems.into_iter().find(|(is_so, _)| *is_so) {
        Some((_, problem)) => Err(Declined::Form(problem.to_owned())),
        None => Ok(()),
    }
}

/// Rows pass only between hosts with the same tables. The name of the last migration says which one is to be upgraded.
fn check_schema(schema: &str) -> Result<(), Declined> {
    if schema == SCHEMA {
        return Ok(());
    }
    let step = |schema: &str| {
        let name = schema.split(' ').next().unwrap_or_default().to_owned();
        MIGRATIONS.iter().position(|migration| migration.name == name)
    };
    match (step(schema), step(SCHEMA)) {
        (Some(theirs), Some(ours)) if theirs < ours => Err(Declined::SchemaOlder),
        (Some(theirs), Some(ours)) if theirs == ours => Err(Declined::SchemaChanged),
        _ => Err(Declined::SchemaNewer),
    }
}

/// The row of the import, and the services with its database.
struct Tried {
    home: Services,
    import: Move,
    is_new: bool,
}

async fn try_begin(services: &Services, head: &Head) -> Result<Tried, Fault> {
    let workspace_id = &head.workspace_id;
    let own = |statement: Statement| statement.in_workspace(workspace_id);
    let here = services.at_only_home_of(workspace_id).await?;
    let exists = sql!("SELECT 1 AS found FROM workspaces WHERE id = :ws");
    let [found, exists] = here.read([own(Move::select()), own(exists)]).await?;
    let found = found.first().map(Move::read).transpose()?;
    match found {
        Some(import) if import.state != State::Gone => {
            return Ok(Tried { home: here, import: same(import, head)?, is_new: false });
        }
        // What is left of a workspace that has moved away, or whose import was canceled.
        Some(_) => {}
        None if exists.is_empty() => {}
        None => return Err(Declined::WorkspaceExists.into()),
    }
    check_numbers(services, workspace_id, &head.numbers).await?;
    check_keys(services, workspace_id, &head.key_hashes).await?;
    check_mark(services, workspace_id).await?;
    let home = services.for_an_arriving_workspace(workspace_id).await?;
    check_room(&home, workspace_id).await?;
    let import = write(&home, head).await?;
    Ok(Tried { home, import, is_new: true })
}

/// Refuses what would be too much for this database now.
pub(super) async fn check_room(home: &Services, workspace_id: &WorkspaceId) -> Result<(), Fault> {
    let others = sql!(
        "SELECT COUNT(*) AS others FROM moves WHERE lock > 0 AND state <> :gone AND workspace_id <> :ws",
        gone = State::Gone.as_str()
    );
    let upgrade = sql!("SELECT 1 AS found FROM search_upgrade LIMIT 1");
    let [others, upgrade] = home.read([others.in_workspace(workspace_id), upgrade]).await?;
    if !upgrade.is_empty() {
        return Err(Declined::NotUpgraded.into());
    }
    if others.first().map_or(Ok(0), |row| row.integer("others"))? >= MOVES_AT_ONCE_MAX {
        return Err(Declined::TooManyMoves.into());
    }
    Ok(())
}

/// The import that is under way, if it is of this file.
fn same(import: Move, head: &Head) -> Result<Move, Fault> {
    if !is_import(&import) {
        let is_left = matches!(import.state, State::Released | State::Erasing);
        return Err(if is_left { Declined::NotErased } else { Declined::WorkspaceExists }.into());
    }
    let is_same_export = import.other_id.as_ref() == Some(&head.export_id);
    match import.state {
        State::Canceling => Err(Declined::Canceling.into()),
        State::Running if !is_same_export => Err(Declined::WorkspaceExists.into()),
        // Another file of the same export: its parts may end elsewhere.
        State::Arriving if is_same_export && progress::<Arriving>(&import)?.head != Chain::of(head) => {
            Err(Declined::OtherExport.into())
        }
        _ if is_same_export => Ok(import),
        _ => Err(Declined::OtherExport.into()),
    }
}

/// Refuses numbers that the operator has given to other workspaces: as long as this one arrives, they could not be bound there.
pub(super) fn check_given(
    config: &Config,
    workspace_id: &WorkspaceId,
    numbers: &[String],
) -> Result<(), Declined> {
    let grants = config.carriers.grants();
    let given = numbers.iter().filter(|number| grants.give_to_another(workspace_id, number));
    let given: Vec<String> = given.cloned().collect();
    if given.is_empty() { Ok(()) } else { Err(Declined::NumbersTaken(given)) }
}

/// Refuses numbers that other workspaces of this host have.
pub(super) async fn check_numbers(
    services: &Services,
    workspace_id: &WorkspaceId,
    numbers: &[String],
) -> Result<(), Fault> {
    check_given(services.config(), workspace_id, numbers)?;
    let list = json!(numbers).to_string();
    let ask = || {
        sql!(
            "SELECT value AS number FROM json_each(:numbers) WHERE EXISTS (
               SELECT 1 FROM numbers AS n WHERE n.number = value AND n.workspace_id <> :ws)",
            numbers = &list
        )
        .in_workspace(workspace_id)
    };
    let mut taken = Vec::new();
    for (_, rows) in services.search(ask).await? {
        for row in rows.iter() {
            taken.push(row.text("number")?);
        }
    }
    if taken.is_empty() { Ok(()) } else { Err(Declined::NumbersTaken(taken).into()) }
}

async fn check_keys(services: &Services, workspace_id: &WorkspaceId, hashes: &[String]) -> Result<(), Fault> {
    let list = json!(hashes).to_string();
    let ask = || {
        sql!(
            "SELECT value AS hash FROM json_each(:hashes) WHERE EXISTS (
               SELECT 1 FROM api_keys AS k WHERE k.hash = value AND k.workspace_id <> :ws)",
            hashes = &list
        )
        .in_workspace(workspace_id)
    };
    let taken: usize = services.search(ask).await?.iter().map(|(_, rows)| rows.values.len()).sum();
    if taken == 0 { Ok(()) } else { Err(Declined::KeysTaken(taken).into()) }
}

/// Refuses an id whose end marks the words of another workspace of this host in the text index. No two ids that were generated
/// are like that; each workspace would read the other's entries in every search.
async fn check_mark(services: &Services, workspace_id: &WorkspaceId) -> Result<(), Fault> {
    let ask = || {
        sql!(format!(
            "SELECT 1 AS found FROM workspaces WHERE id <> :ws AND {} = {} LIMIT 1",
            workspace_mark("id"),
            workspace_mark(":ws")
        ))
        .in_workspace(workspace_id)
    };
    let is_taken = services.search(ask).await?.iter().any(|(_, rows)| !rows.is_empty());
    if is_taken { Err(Declined::IdTaken.into()) } else { Ok(()) }
}

/// The import of a file.
async fn write(home: &Services, head: &Head) -> Result<Move, Fault> {
    let arriving = Arriving {
        head: Chain::of(head),
        named: named(&head.numbers, &head.key_hashes),
        tally: Tally::of(head),
        compared: None,
    };
    // Numbers, texts, and lists and maps of them can always be written.
    let progress = serde_json::to_string(&arriving).unwrap_or_default();
    let mut salt = [0; SALT_BYTES];
    home.ports().random.fill(&mut salt);
    let arrival = Arrival {
        workspace_id: &head.workspace_id,
        id: &home.id(prefix::IMPORT),
        name: &head.name,
        salt: Some(hex(&salt)),
        file_key: &head.key_sha256,
        other_id: Some(&head.export_id),
        progress: &progress,
    };
    insert(home, &arrival).await
}

/// What begins to arrive.
pub(super) struct Arrival<'a> {
    pub workspace_id: &'a WorkspaceId,
    /// Of the move.
    pub id: &'a str,
    /// Of the workspace, until its page has come.
    pub name: &'a str,
    /// Of the workspace's secrets; `None`: its page has it, if there is one.
    pub salt: Option<String>,
    pub file_key: &'a str,
    pub other_id: Option<&'a str>,
    pub progress: &'a str,
}

/// Writes the row of the move, and that of the workspace, which its first page replaces.
pub(super) async fn insert(home: &Services, arrival: &Arrival<'_>) -> Result<Move, Fault> {
    let own = |statement: Statement| statement.in_workspace(arrival.workspace_id);
    let gone = State::Gone.as_str();
    // What was read, in the batch that writes: another one may begin at the same moment.
    let only = sql!(
        "INSERT INTO batch_guard (ok) SELECT 0 WHERE EXISTS (
           SELECT 1 FROM moves WHERE workspace_id = :ws AND state <> :gone)
         OR EXISTS (SELECT 1 FROM workspaces WHERE id = :ws)
           AND NOT EXISTS (SELECT 1 FROM moves WHERE workspace_id = :ws AND state = :gone)
         OR (SELECT COUNT(*) FROM moves WHERE lock > 0 AND state <> :gone) >= :most",
        gone = gone,
        most = MOVES_AT_ONCE_MAX
    );
    // The triggers of a tombstone are still there. The last statement locks again.
    let unlock = sql!("UPDATE moves SET lock = 0 WHERE workspace_id = :ws AND state = :gone", gone = gone);
    // Its index may not be merged yet. The last step of the import asks for that again.
    let merged = sql!("DELETE FROM search_erasures WHERE workspace_id = :ws");
    let workspace = sql!(
        "INSERT INTO workspaces (id, name, created_at, secret_salt) VALUES (:ws, :name, :now, :salt)
         ON CONFLICT (id) DO UPDATE SET secret_salt = excluded.secret_salt",
        name = arrival.name,
        now = home.now(),
        salt = arrival.salt.clone()
    );
    let import = sql!(
        "INSERT INTO moves (workspace_id, id, state, lock, schema, file_key, other_id, progress, began_at, changed_at)
         VALUES (:ws, :id, :state, 2, :schema, :file_key, :export, :progress, :now, :now)
         ON CONFLICT (workspace_id) DO UPDATE SET id = excluded.id, state = excluded.state, lock = excluded.lock,
           schema = excluded.schema, file_key = excluded.file_key, other_id = excluded.other_id,
           progress = excluded.progress, began_at = excluded.began_at, changed_at = excluded.changed_at",
        id = arrival.id,
        state = State::Arriving.as_str(),
        schema = SCHEMA,
        file_key = arrival.file_key,
        export = arrival.other_id,
        progress = arrival.progress,
        now = home.now()
    );
    let batch = [only, unlock, merged, workspace, import, Move::select()].map(own);
    let [_, _, _, _, _, rows] = home.write(batch).await?;
    let row = rows.first().ok_or_else(|| Fault::Bug("an import that was written".to_owned()))?;
    Ok(Move::read(row)?)
}

/// What the workspace uses and this host does not have. It is no reason to refuse it: it can be configured later.
fn warnings(config: &Config, head: &Head) -> Vec<String> {
    let Needs { carriers, models, voices, transcribers } = &head.needs;
    let has_carrier =
        |name: &&String| CarrierName::parse(name).is_some_and(|name| config.carriers.get(name).is_some());
    let has_model = |name: &&String| {
        name.is_empty()
            || provider_of(name).is_some_and(|provider| config.catalog.providers.contains_key(provider))
    };
    let is_builtin = |name: &str| ["", TONE, BROWSER].contains(&name);
    let has_voice = |name: &&String| is_builtin(name) || config.speech.speaker(name).is_some();
    let has_transcriber = |name: &&String| is_builtin(name) || config.speech.hearer(name).is_some();
    let grants = config.carriers.grants();
    let is_permitted = |number: &&String| grants.permit(&head.workspace_id, number);
    let unknown =
        |what: &'static str| move |name: &String| format!("this host does not know the {what} `{name}`");
    let not_granted =
        |number: &String| format!("this host does not give {number} to this workspace (SIDETONE_NUMBERS)");
    let carriers = carriers.iter().filter(|name| !has_carrier(name)).map(unknown("carrier"));
    let models = models.iter().filter(|name| !has_model(name)).map(unknown("model"));
    let voices = voices.iter().filter(|name| !has_voice(name)).map(unknown("voice"));
    let transcribers = transcribers.iter().filter(|name| !has_transcriber(name)).map(unknown("transcriber"));
    let numbers = head.numbers.iter().filter(|number| !is_permitted(number)).map(not_granted);
    carriers.chain(models).chain(voices).chain(transcribers).chain(numbers).take(WARNINGS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_schemas_the_older_one_is_told() {
        let (before, last) = (MIGRATIONS[MIGRATIONS.len() - 2].name, MIGRATIONS[MIGRATIONS.len() - 1].name);
        assert_eq!(check_schema(SCHEMA), Ok(()));
        assert_eq!(check_schema(&format!("{before} 00")), Err(Declined::SchemaOlder));
        assert_eq!(check_schema(&format!("{last} 00")), Err(Declined::SchemaChanged));
        for later in ["9999_later.sql 00", "", "nonsense"] {
            assert_eq!(check_schema(later), Err(Declined::SchemaNewer), "{later}");
        }
    }
}
