//! Workspaces and API keys that the operator creates, outside any workspace.
use crate::base::api_key::ApiKey;
use crate::base::error::Error;
use crate::base::ids::{KeyId, WorkspaceId};
use crate::base::limits::NAME_CHARS_MAX;
use crate::ports::statement::Statement;
use crate::services::Services;
use crate::sql;
use crate::storage::fault::Fault;

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
        if !(1..=NAME_CHARS_MAX).contains(&length) || name.contains('\0') {
            let message = format!("must have 1 to {NAME_CHARS_MAX} characters");
            return Err(Error::field("name", message).into());
        }
        let workspace_id = self.new_id();
        let insert = sql!(
            "INSERT INTO workspaces (id, name, created_at) VALUES (:id, :name, :now)",
            id = &workspace_id,
            name = name,
            now = self.now()
        );
        let (key, insert_key) = self.new_key(&workspace_id, "first key");
        self.write([insert, insert_key]).await?;
        Ok(NewWorkspace { workspace_id, key })
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
                let (key, insert) = self.new_key(id, "command line");
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

    /// On the first start, creates a workspace and returns its API key; later `None`.
    pub async fn first_workspace(&self) -> Result<Option<String>, Fault> {
        let any = sql!("SELECT id FROM workspaces LIMIT 1");
        let [any] = self.read([any]).await?;
        if !any.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.create_workspace("default").await?.key))
    }

    fn new_key(&self, workspace_id: &WorkspaceId, name: &str) -> (String, Statement) {
        let mut bytes = [0; 32];
        self.ports().random.fill(&mut bytes);
        let key = ApiKey::from_bytes(bytes);
        let insert = sql!(
            "INSERT INTO api_keys (id, workspace_id, name, hash, hint, created_at) VALUES (:id, :workspace_id, :name, :hash, :hint, :now)",
            id = &self.new_id::<KeyId>(),
            workspace_id = workspace_id,
            name = name,
            hash = key.sha256_hex(),
            hint = key.hint(),
            now = self.now()
        );
        (key.as_str().to_owned(), insert)
    }
}
