//! The admin who is invited into a workspace when it opens: people do not move, so nobody is a member of it.
//!
//! What the link has follows from the code of the hand-over. Whoever repeats the request with the same code, since its answer was
//! lost, is told the same link.
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::base::hash::{hmac_sha256, sha256_hex};
use crate::base::ids::WorkspaceId;
use crate::ports::statement::Statement;
use crate::services::Services;
use crate::sql;
use crate::storage::fault::{Fault, retry_stale};
use crate::storage::moves::code::Code;

/// Somebody who is to be an admin. It has no `Debug`, which would show the token.
#[derive(Clone)]
pub struct Admin {
    email: String,
    token: String,
}

impl Admin {
    /// Whoever has this address, in the workspace that this code opens.
    pub fn new(services: &Services, code: &Code, email: String) -> Self {
        let label = format!("admin:1:{}:{email}", code.to_text());
        let secret = services.config().secret.as_bytes();
        let token = URL_SAFE_NO_PAD.encode(hmac_sha256(secret, label.as_bytes()));
        Self { email, token }
    }

    fn hash(&self) -> String {
        sha256_hex(self.token.as_bytes())
    }

    /// Invites them into workspace `:ws`.
    pub(super) fn invite(&self, services: &Services) -> [Statement; 3] {
        services.invite_admin(&self.email, &self.hash())
    }

    /// What the link of their invitation has, into a workspace that runs; `None`: it was used. Whoever has named nobody in time,
    /// or the wrong one, can invite as long as nobody is a member.
    pub async fn token(
        &self,
        services: &Services,
        workspace_id: &WorkspaceId,
    ) -> Result<Option<String>, Fault> {
        retry_stale(|| self.try_token(services, workspace_id)).await
    }

    async fn try_token(
        &self,
        services: &Services,
        workspace_id: &WorkspaceId,
    ) -> Result<Option<String>, Fault> {
        let own = |statement: Statement| statement.in_workspace(workspace_id);
        let members = sql!("SELECT 1 AS found FROM memberships WHERE workspace_id = :ws LIMIT 1");
        let invited = sql!(
            "SELECT 1 AS found FROM invitations WHERE workspace_id = :ws AND hash = :hash AND expires_at > :now",
            hash = self.hash(),
            now = services.now()
        );
        let [members, invited] = services.read([members, invited].map(own)).await?;
        if invited.is_empty() {
            if !members.is_empty() {
                return Ok(None);
            }
            let nobody = sql!(
                "INSERT INTO batch_guard (ok) SELECT 0 WHERE EXISTS (SELECT 1 FROM memberships WHERE workspace_id = :ws)"
            );
            let [replace, insert, entry] = self.invite(services);
            services.write([nobody, replace, insert, entry].map(own)).await?;
        }
        Ok(Some(self.token.clone()))
    }
}
