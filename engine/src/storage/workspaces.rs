//! Workspaces and API keys that the operator creates, outside any workspace.
use std::collections::BTreeSet;

use crate::base::api_key::ApiKey;
use crate::base::error::Error;
use crate::base::ids::{Id as _, KeyId, WorkspaceId};
use crate::base::limits::NAME_CHARS_MAX;
use crate::base::text::{UNFIT_NAME, is_unfit_for_names};
use crate::base::time::Timestamp;
use crate::carriers::grants;
use crate::ports::statement::{Rows, Statement};
use crate::services::Services;
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::moves::State;
use crate::storage::moves::lock::STAYS;
use crate::storage::service_facts;

/// The name of a workspace's first key.
const FIRST_KEY: &str = "first key";
/// The fact that holds the id of a key that nobody has seen yet.
const UNSEEN_KEY: &str = "unseen_key";
/// The fact that holds the id of the first workspace of the service.
const FIRST_WORKSPACE: &str = "first_workspace";

/// Workspaces of one database with the same name, among which the one is looked for that has it still.
const NAMED_ALIKE_MAX: i64 = 20;

/// A workspace that was just created. It has no `Debug`, which would show the key.
#[derive(Clone, PartialEq, Eq)]
pub struct NewWorkspace {
    /// `ws_…`
    pub workspace_id: WorkspaceId,
    /// Its first API key, shown only this once.
    pub key: String,
}

/// A workspace, as the operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedWorkspace {
    /// `ws_…`
    pub id: WorkspaceId,
    /// Its name; several may have the same.
    pub name: String,
    /// API keys that are not revoked.
    pub keys: i64,
    /// When it was created.
    pub created_at: Timestamp,
    /// How far its move is, if one is under way or it has moved away.
    pub moves: Option<State>,
    /// Where it has moved to.
    pub moved_to: Option<String>,
}

/// An API key, as the operator sees it; the key itself is not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedKey {
    /// `key_…`
    pub id: KeyId,
    /// Its workspace.
    pub workspace_id: WorkspaceId,
    /// What the key is for.
    pub name: String,
    /// `sidetone_…` and the last 4 characters; empty for keys of the settings.
    pub hint: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last used, to the hour.
    pub last_used_at: Option<Timestamp>,
}

/// Rows that the operator reads at a time.
const PART_ROWS: usize = 500;

/// A part of a list, and where to continue.
pub type Part<T> = (Vec<T>, Option<String>);

fn part<T>(rows: Vec<T>, id: impl Fn(&T) -> String) -> Part<T> {
    let next = rows.last().filter(|_| rows.len() == PART_ROWS).map(id);
    (rows, next)
}

impl Services {
    /// The next workspaces, oldest first, `after` this id; `""` at first.
    pub(crate) async fn list_workspaces(&self, after: &str) -> Result<Part<ListedWorkspace>, Fault> {
        let select = sql!(
            format!(
                "SELECT w.id, w.name, w.created_at, (SELECT COUNT(*) FROM api_keys
                 WHERE workspace_id = w.id AND revoked_at IS NULL) AS keys, m.state, m.moved_to
                 FROM workspaces AS w LEFT JOIN moves AS m ON m.workspace_id = w.id AND m.lock > 0
                 WHERE w.id > :after ORDER BY w.id LIMIT {PART_ROWS}"
            ),
            after = after
        );
        let [rows] = self.read([select]).await?;
        let read = rows.iter().map(|row| {
            Ok(ListedWorkspace {
                id: row.id("id")?,
                name: row.text("name")?,
                keys: row.integer("keys")?,
                created_at: row.timestamp("created_at")?,
                moves: row.optional_word("state")?,
                moved_to: row.optional_text("moved_to")?,
            })
        });
        Ok(part(read.collect::<Result<_, Fault>>()?, |one| one.id.to_string()))
    }

    /// The next keys that are not revoked, oldest first, of one workspace or of all.
    pub(crate) async fn list_keys(
        &self,
        workspace: Option<&WorkspaceId>,
        after: &str,
    ) -> Result<Part<ListedKey>, Fault> {
        let all = format!(
            "SELECT id, workspace_id, name, hint, created_at, last_used_at FROM api_keys
             WHERE revoked_at IS NULL AND id > :after ORDER BY id LIMIT {PART_ROWS}"
        );
        let select = match workspace {
            Some(id) => sql!(
                all.replace("WHERE", "WHERE workspace_id = :workspace AND"),
                after = after,
                workspace = id
            ),
            None => sql!(all, after = after),
        };
        let [rows] = self.read([select]).await?;
        Ok(part(read_keys(&rows)?, |one| one.id.to_string()))
    }

    /// The keys that are not revoked with this id, this SHA-256 or these last four characters; of many, the first.
    pub(crate) async fn find_keys(&self, named: &str) -> Result<Vec<ListedKey>, Fault> {
        let find = sql!(
            "SELECT id, workspace_id, name, hint, created_at, last_used_at FROM api_keys
             WHERE revoked_at IS NULL AND (id = :named OR hash = :named OR (length(:named) = 4 AND substr(hint, -4) = :named))
             ORDER BY id LIMIT 20",
            named = named
        );
        let [rows] = self.read([find]).await?;
        read_keys(&rows)
    }

    /// The workspace with this id, or with this name if only one has it.
    pub(crate) async fn find_workspace(&self, workspace: &str) -> Result<WorkspaceId, Fault> {
        // Whoever names their workspace like the id of another one is in nobody's way, also if that one is in another database.
        let find = sql!(
            "SELECT id FROM workspaces WHERE id = :workspace OR (name = :workspace AND :is_id = 0)
             ORDER BY id = :workspace DESC, id LIMIT 2",
            workspace = workspace,
            is_id = WorkspaceId::from_stored(workspace).to_bytes().is_some()
        );
        let [found] = self.read([find]).await?;
        let mut found: Vec<WorkspaceId> = found.iter().map(|row| row.id("id")).collect::<Result<_, _>>()?;
        if found.first().is_some_and(|id| **id == *workspace) {
            return Ok(found.swap_remove(0));
        }
        only(found, workspace, |id| id)
    }

    /// The same among all databases of this host, with the services that have its own.
    pub(crate) async fn find_workspace_anywhere(
        &self,
        workspace: &str,
    ) -> Result<(Self, WorkspaceId), Fault> {
        let id = WorkspaceId::from_stored(workspace);
        if self.sharding().is_none() || id.to_bytes().is_some() {
            let home = self.at_home_of(&id).await?;
            let id = home.find_workspace(workspace).await?;
            return Ok((home, id));
        }
        let named = || {
            sql!(
                format!("SELECT id FROM workspaces WHERE name = :name ORDER BY id LIMIT {NAMED_ALIKE_MAX}"),
                name = workspace
            )
        };
        let mut ids = BTreeSet::new();
        for (_, rows) in self.search(named).await? {
            for row in rows.iter() {
                ids.insert(row.id::<WorkspaceId>("id")?);
            }
        }
        let mut found = Vec::new();
        for id in ids {
            let home = self.at_home_of(&id).await?;
            let is_named =
                sql!("SELECT 1 AS is_so FROM workspaces WHERE id = :ws AND name = :name", name = workspace);
            let [is_named] = home.read([is_named.in_workspace(&id)]).await?;
            // What is left of it in another database has the name that it had there.
            if !is_named.is_empty() {
                found.push((home, id));
            }
        }
        only(found, workspace, |(_, id)| id)
    }

    /// Creates a workspace with one API key.
    pub async fn create_workspace(&self, name: &str) -> Result<NewWorkspace, Fault> {
        let length = name.chars().count() as u64;
        if name.chars().any(is_unfit_for_names) {
            return Err(Error::field("name", UNFIT_NAME).into());
        }
        if !(1..=NAME_CHARS_MAX).contains(&length) {
            let message = format!("must have 1 to {NAME_CHARS_MAX} characters");
            return Err(Error::field("name", message).into());
        }
        let (new, statements, _) = self.new_workspace(name);
        let home = self.for_a_new_workspace().await?;
        home.write(statements).await?;
        if let Some(key) = ApiKey::parse(&new.key) {
            home.tell_key(&key.sha256_hex(), &new.workspace_id).await;
        }
        Ok(new)
    }

    /// A warning when several workspaces compete for the operator's numbers.
    pub(crate) async fn ungranted_numbers_warning(&self) -> Result<Option<String>, Fault> {
        if !self.config().carriers.has_ungranted_numbers() {
            return Ok(None);
        }
        let [workspaces] = self.read([sql!("SELECT id FROM workspaces LIMIT 2")]).await?;
        Ok((workspaces.iter().count() > 1).then(|| {
            format!(
                "{} is not set: any workspace can bind any number of your carriers' accounts that no other has bound, \
                 answer its calls and place calls from it",
                grants::SETTING
            )
        }))
    }

    /// On the first start, creates a workspace and returns its API key; later `None`. A key that was created and not
    /// shown, because the process died in between, is replaced by one that is returned.
    pub async fn first_workspace(&self) -> Result<Option<String>, Fault> {
        if let Some(unseen) = self.fact(UNSEEN_KEY).await? {
            return self.replace_unseen_key(&unseen).await;
        }
        let any = sql!("SELECT id FROM workspaces LIMIT 1");
        let [any] = self.read([any]).await?;
        if !any.is_empty() {
            return Ok(None);
        }
        let (new, [workspace, key, first], key_id) = self.new_workspace("default");
        self.write([workspace, key, first, service_facts::set(UNSEEN_KEY, &key_id)]).await?;
        Ok(Some(new.key))
    }

    /// The key of [`Services::first_workspace`] was shown: it stays.
    pub async fn first_key_shown(&self) -> Result<(), Fault> {
        self.write([service_facts::remove(UNSEEN_KEY)]).await?;
        Ok(())
    }

    async fn replace_unseen_key(&self, unseen: &str) -> Result<Option<String>, Fault> {
        let find = sql!(
            format!(
                "SELECT workspace_id, {STAYS} AS stays FROM api_keys WHERE id = :id AND revoked_at IS NULL"
            ),
            id = unseen
        );
        let [found] = self.read([find]).await?;
        let Some(row) = found.first() else {
            self.first_key_shown().await?;
            return Ok(None);
        };
        // Its keys change no more, and the service has to start.
        if !row.flag("stays")? {
            return Ok(None);
        }
        let (key_id, key, insert) = self.new_key(&row.id("workspace_id")?, FIRST_KEY);
        let delete = sql!("DELETE FROM api_keys WHERE id = :id", id = unseen);
        self.write([delete, insert, service_facts::set(UNSEEN_KEY, &key_id)]).await?;
        Ok(Some(key))
    }

    /// A workspace with one key, the statements that write them, and the key's id.
    fn new_workspace(&self, name: &str) -> (NewWorkspace, [Statement; 3], KeyId) {
        let workspace_id = self.new_id();
        let insert = sql!(
            "INSERT INTO workspaces (id, name, created_at) VALUES (:id, :name, :now)",
            id = &workspace_id,
            name = name,
            now = self.now()
        );
        let (key_id, key, insert_key) = self.new_key(&workspace_id, FIRST_KEY);
        let first = note_first(&workspace_id);
        (NewWorkspace { workspace_id, key }, [insert, insert_key, first], key_id)
    }

    fn new_key(&self, workspace_id: &WorkspaceId, name: &str) -> (KeyId, String, Statement) {
        let key_id = self.new_id::<KeyId>();
        let mut bytes = [0; 32];
        self.ports().random.fill(&mut bytes);
        let key = ApiKey::from_bytes(bytes);
        let insert = sql!(
            "INSERT INTO api_keys (id, workspace_id, name, hash, hint, created_at) VALUES (:id, :workspace_id, :name, :hash, :hint, :now)",
            id = &key_id,
            workspace_id = workspace_id,
            name = name,
            hash = key.sha256_hex(),
            hint = key.hint(),
            now = self.now()
        );
        (key_id, key.as_str().to_owned(), insert)
    }
}

/// Notes that this workspace, which was just created, is the first of the service, if it is: the rows of others do not tell it
/// when that one has moved away, or has come back.
pub(crate) fn note_first(id: &WorkspaceId) -> Statement {
    sql!(
        "INSERT INTO service_facts (name, value) SELECT :name, w.id FROM workspaces AS w WHERE w.id = :id
         AND NOT EXISTS (SELECT 1 FROM workspaces AS o WHERE o.id <> :id AND o.secret_salt IS NULL)
         AND NOT EXISTS (SELECT 1 FROM service_facts WHERE name = :name)",
        name = FIRST_WORKSPACE,
        id = id
    )
}

/// The id of the first workspace of the service, as an expression. Data that an earlier version began has no note of it: there it
/// is the oldest one that did not come from another host, whatever age such a one says it has.
pub(crate) fn first_workspace_id() -> String {
    format!(
        "COALESCE((SELECT value FROM service_facts WHERE name = '{FIRST_WORKSPACE}'),
           (SELECT o.id FROM workspaces AS o WHERE o.secret_salt IS NULL ORDER BY o.created_at, o.id LIMIT 1))"
    )
}

/// The one that has the id or name, if there is one.
fn only<T>(mut found: Vec<T>, named: &str, id: impl Fn(&T) -> &WorkspaceId) -> Result<T, Fault> {
    let problem = match (found.pop(), found.first()) {
        (Some(one), None) => return Ok(one),
        (None, _) => format!("no workspace has the id or name `{named}`"),
        (Some(last), Some(first)) => {
            format!("several are named `{named}`, such as {} and {}; give the id", id(first), id(&last))
        }
    };
    Err(Error::field("workspace", problem).into())
}

fn read_keys(rows: &Rows) -> Result<Vec<ListedKey>, Fault> {
    let read = |row: crate::ports::statement::Row<'_>| {
        Ok(ListedKey {
            id: row.id("id")?,
            workspace_id: row.id("workspace_id")?,
            name: row.text("name")?,
            hint: row.text("hint")?,
            created_at: row.timestamp("created_at")?,
            last_used_at: row.optional_timestamp("last_used_at")?,
        })
    };
    rows.iter().map(read).collect()
}
