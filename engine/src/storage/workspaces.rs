//! Workspaces and API keys that the operator creates, outside any workspace.
use crate::base::api_key::ApiKey;
use crate::base::error::Error;
use crate::base::ids::{KeyId, WorkspaceId};
use crate::base::limits::NAME_CHARS_MAX;
use crate::base::text::{UNFIT_NAME, is_unfit_for_names};
use crate::carriers::grants;
use crate::ports::statement::Statement;
use crate::services::Services;
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::service_facts;

/// The name of a workspace's first key.
const FIRST_KEY: &str = "first key";

/// A workspace that was just created. It has no `Debug`, which would show the key.
#[derive(Clone, PartialEq, Eq)]
pub struct NewWorkspace {
    /// `ws_…`
    pub workspace_id: WorkspaceId,
    /// Its first API key, shown only this once.
    pub key: String,
}

impl Services {
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
        self.write(statements).await?;
        Ok(new)
    }

    /// Creates an API key for the workspace with this id, or with this name if only one has it.
    pub async fn create_key(&self, workspace: &str) -> Result<String, Fault> {
        let find = sql!(
            "SELECT id FROM workspaces WHERE id = :workspace OR name = :workspace ORDER BY id LIMIT 2",
            workspace = workspace
        );
        let [found] = self.read([find]).await?;
        let found: Vec<WorkspaceId> = found.iter().map(|row| row.id("id")).collect::<Result<_, _>>()?;
        match found.as_slice() {
            [id] => {
                let (_, key, insert) = self.new_key(id, "command line");
                self.write([insert]).await?;
                Ok(key)
            }
            [] => {
                Err(Error::field("workspace", format!("no workspace has the id or name `{workspace}`"))
                    .into())
            }
            _ => {
                Err(Error::field("workspace", format!("several are named `{workspace}`; give the id")).into())
            }
        }
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
        if let Some(unseen) = self.fact(service_facts::UNSEEN_KEY).await? {
            return self.replace_unseen_key(&unseen).await;
        }
        let any = sql!("SELECT id FROM workspaces LIMIT 1");
        let [any] = self.read([any]).await?;
        if !any.is_empty() {
            return Ok(None);
        }
        let (new, [workspace, key], key_id) = self.new_workspace("default");
        self.write([workspace, key, service_facts::set(service_facts::UNSEEN_KEY, &key_id)]).await?;
        Ok(Some(new.key))
    }

    /// The key of [`Services::first_workspace`] was shown: it stays.
    pub async fn first_key_shown(&self) -> Result<(), Fault> {
        self.write([service_facts::remove(service_facts::UNSEEN_KEY)]).await?;
        Ok(())
    }

    async fn replace_unseen_key(&self, unseen: &str) -> Result<Option<String>, Fault> {
        let find =
            sql!("SELECT workspace_id FROM api_keys WHERE id = :id AND revoked_at IS NULL", id = unseen);
        let [found] = self.read([find]).await?;
        let Some(row) = found.first() else {
            self.first_key_shown().await?;
            return Ok(None);
        };
        let (key_id, key, insert) = self.new_key(&row.id("workspace_id")?, FIRST_KEY);
        let delete = sql!("DELETE FROM api_keys WHERE id = :id", id = unseen);
        self.write([delete, insert, service_facts::set(service_facts::UNSEEN_KEY, &key_id)]).await?;
        Ok(Some(key))
    }

    /// A workspace with one key, the statements that write them, and the key's id.
    fn new_workspace(&self, name: &str) -> (NewWorkspace, [Statement; 2], KeyId) {
        let workspace_id = self.new_id();
        let insert = sql!(
            "INSERT INTO workspaces (id, name, created_at) VALUES (:id, :name, :now)",
            id = &workspace_id,
            name = name,
            now = self.now()
        );
        let (key_id, key, insert_key) = self.new_key(&workspace_id, FIRST_KEY);
        (NewWorkspace { workspace_id, key }, [insert, insert_key], key_id)
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
