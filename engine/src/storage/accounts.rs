//! People of the dashboard: their accounts, the workspaces they belong to, their sessions.
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::base::error::{Code, Error};
use crate::base::hash::sha256_hex;
use crate::base::ids::{AccountId, Id as _, InvitationId, SessionId, WorkspaceId};
use crate::base::limits::{
    INVITATION_MS, MEMBERSHIPS_MAX, NAME_CHARS_MAX, SESSION_CLIENT_CHARS_MAX, SESSION_MS, SESSION_SEEN_MS,
    SESSIONS_MAX,
};
use crate::base::time::Timestamp;
use crate::ports::DatabaseError;
use crate::ports::statement::Statement;
use crate::services::Services;
use crate::sql;
use crate::storage::audit;
use crate::storage::batch::Batch;
use crate::storage::fault::{Fault, retry_stale};
use crate::storage::moves::lock::stays;
use crate::storage::workspaces::first_workspace_id;

crate::words! {
    /// What a person may do in a workspace.
    json Role {
        /// Everything.
        Admin = "admin",
        /// Everything but people, API keys and the settings of the workspace.
        Member = "member",
    }
}

/// Who somebody is, as vouched for by `issuer`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Person {
    /// `email`, `operator`, or the URL of an OpenID issuer.
    pub issuer: String,
    /// The issuer's name for the person.
    pub subject: String,
    /// The person's address, proven; empty for the operator.
    pub email: String,
    /// Whether the domain of the address vouches for the person.
    pub is_vouched_for: bool,
}

/// The issuer of those who proved an address with a code or a link.
pub(crate) const BY_EMAIL: &str = "email";
/// The issuer of whoever used an operator's link.
pub(crate) const OPERATOR: &str = "operator";
/// What the audit log calls a sign-in by the operator's one-time link: no person of the workspace invited them.
const LINK_USED: &str = "use_operator_link";

/// An open session.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub id: SessionId,
    /// SHA-256 of the cookie's value.
    pub hash: String,
    pub account_id: AccountId,
    pub email: String,
    pub workspace_id: WorkspaceId,
    pub workspace_name: String,
    pub role: Role,
    seen_at: i64,
}

impl Session {
    /// How the person is called in the audit log and on pages.
    pub fn name(&self) -> &str {
        if self.email.is_empty() { "operator" } else { &self.email }
    }
}

impl Services {
    /// 32 random bytes as a text, and its SHA-256: one is given away, the other stored.
    pub(crate) fn new_token(&self) -> (String, String) {
        let mut bytes = [0; 32];
        self.ports().random.fill(&mut bytes);
        let token = URL_SAFE_NO_PAD.encode(bytes);
        let hash = sha256_hex(token.as_bytes());
        (token, hash)
    }

    /// The session of a cookie. A person who was removed from its workspace continues in another one.
    pub(crate) async fn session(&self, token: &str, now_ms: i64) -> Result<Option<Session>, Fault> {
        let hash = sha256_hex(token.as_bytes());
        for _ in 0..2 {
            let find = sql!(
                "SELECT s.id, s.hash, s.account_id, s.workspace_id, s.seen_at, a.email, w.name, m.role
                 FROM sessions AS s JOIN accounts AS a ON a.id = s.account_id JOIN workspaces AS w ON w.id = s.workspace_id
                 LEFT JOIN memberships AS m ON m.account_id = s.account_id AND m.workspace_id = s.workspace_id
                 WHERE s.hash = :hash AND s.expires_at > :now",
                hash = &hash,
                now = now_ms
            );
            let [found] = self.read([find]).await?;
            let Some(row) = found.first() else { return Ok(None) };
            let (account_id, email): (AccountId, String) = (row.id("account_id")?, row.text("email")?);
            if row.is_null("role")? {
                self.move_session(&hash, &account_id, &email, now_ms).await?;
                continue;
            }
            return Ok(Some(Session {
                id: row.id("id")?,
                hash,
                account_id,
                email,
                workspace_id: row.id("workspace_id")?,
                workspace_name: row.text("name")?,
                role: row.word("role")?,
                seen_at: row.integer("seen_at")?,
            }));
        }
        Ok(None)
    }

    /// Extends a session that is used; not at every request, to save writes. Returns whether it did.
    pub(crate) async fn keep_session(&self, session: &Session, now_ms: i64) -> Result<bool, Fault> {
        if now_ms - session.seen_at < SESSION_SEEN_MS {
            return Ok(false);
        }
        let keep = sql!(
            "UPDATE sessions SET seen_at = :now, expires_at = :end WHERE hash = :hash",
            hash = &session.hash,
            now = now_ms,
            end = now_ms + SESSION_MS
        );
        self.write([keep]).await?;
        Ok(true)
    }

    /// Signs a person in: `batch` holds what the sign-in uses up. Returns the cookie's value. The first sign-in creates a
    /// workspace, or joins `joins`. `before` is the cookie that the browser had: its session ends.
    pub(crate) async fn sign_in(
        &self,
        person: &Person,
        joins: Option<&WorkspaceId>,
        client: &str,
        before: Option<&str>,
        uses: &Batch,
    ) -> Result<String, Fault> {
        retry_stale(|| self.try_sign_in(person, joins, client, before, uses)).await
    }

    async fn try_sign_in(
        &self,
        person: &Person,
        joins: Option<&WorkspaceId>,
        client: &str,
        before: Option<&str>,
        uses: &Batch,
    ) -> Result<String, Fault> {
        let now_ms = self.ports().clock.now_ms();
        let find = sql!(
            "SELECT id FROM accounts WHERE issuer = :issuer AND subject = :subject",
            issuer = &person.issuer,
            subject = &person.subject
        );
        // Where the person was last, and something can be done.
        let last = sql!(
            "SELECT m.workspace_id FROM accounts AS a JOIN memberships AS m ON m.account_id = a.id
             WHERE a.issuer = :issuer AND a.subject = :subject
             ORDER BY m.workspace_id IN (SELECT workspace_id FROM moves WHERE lock = 2), MAX(m.used_at, (SELECT COALESCE(MAX(s.seen_at), 0) FROM sessions AS s
               WHERE s.account_id = a.id AND s.workspace_id = m.workspace_id)) DESC,
             m.created_at LIMIT 1",
            issuer = &person.issuer,
            subject = &person.subject
        );
        let [found, last] = self.read([find, last]).await?;
        let mut batch = uses.clone();
        let account_id: AccountId = match found.first() {
            Some(row) => {
                let id = row.id("id")?;
                batch.push(sql!(
                    "UPDATE accounts SET email = :email WHERE id = :id",
                    id = &id,
                    email = &person.email
                ));
                id
            }
            None => {
                if !self.may_sign_up(person, now_ms).await? {
                    return Err(sign_up_closed().into());
                }
                let id: AccountId = self.new_id();
                batch.push(sql!(
                    "INSERT INTO accounts (id, issuer, subject, email, created_at) VALUES (:id, :issuer, :subject, :email, :now)",
                    id = &id,
                    issuer = &person.issuer,
                    subject = &person.subject,
                    email = &person.email,
                    now = now_ms
                ));
                id
            }
        };
        let workspace_id = match (last.first(), joins) {
            (Some(row), _) => row.id("workspace_id")?,
            (None, Some(joins)) => {
                batch.push(membership(joins, &account_id, Role::Admin, now_ms));
                joins.clone()
            }
            (None, None) => {
                let id: WorkspaceId = self.new_id();
                batch.push(sql!(
                    "INSERT INTO batch_guard (ok) SELECT 0 WHERE EXISTS
                     (SELECT 1 FROM memberships WHERE account_id = :account)",
                    account = &account_id
                ));
                batch.extend(own_workspace(&id, &account_id, &person.email, now_ms));
                id
            }
        };
        if person.issuer == OPERATOR {
            let told = audit::entry_of_person(self, &workspace_id, &account_id, LINK_USED, &account_id);
            batch.push(told);
        }
        if let Some(before) = before {
            batch.push(sql!("DELETE FROM sessions WHERE hash = :hash", hash = sha256_hex(before.as_bytes())));
        }
        let (token, hash) = self.new_token();
        let client: String = client.chars().take(SESSION_CLIENT_CHARS_MAX).collect();
        let id: SessionId = self.new_id();
        batch.push(sql!(
            "INSERT INTO sessions (id, hash, account_id, workspace_id, client, created_at, seen_at, expires_at)
             VALUES (:id, :hash, :account, :workspace, :client, :now, :now, :end)",
            id = &id,
            hash = &hash,
            account = &account_id,
            workspace = &workspace_id,
            client = client,
            now = now_ms,
            end = now_ms + SESSION_MS
        ));
        batch.push(sql!(
            "DELETE FROM sessions WHERE account_id = :account AND id NOT IN
             (SELECT id FROM sessions WHERE account_id = :account ORDER BY seen_at DESC, id DESC LIMIT CAST(:most AS INTEGER))",
            account = &account_id,
            most = SESSIONS_MAX
        ));
        match batch.write(self).await {
            Ok(_) => Ok(token),
            // The same person signed in for the first time in two browsers at once.
            Err(error) if error.is_constraint("accounts") => Err(Fault::Stale),
            Err(error) if error.is_constraint("proof_used") => Err(used_proof().into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a code for this address can sign anybody in: its person has an account or may get one.
    pub(crate) async fn admits_address(&self, email: &str, now_ms: i64) -> Result<bool, Fault> {
        let person = Person {
            issuer: BY_EMAIL.to_owned(),
            subject: email.to_owned(),
            email: email.to_owned(),
            is_vouched_for: true,
        };
        if self.may_sign_up(&person, now_ms).await? {
            return Ok(true);
        }
        let find = sql!(
            "SELECT 1 AS known FROM accounts WHERE issuer = :issuer AND subject = :subject",
            issuer = BY_EMAIL,
            subject = email
        );
        let [found] = self.read([find]).await?;
        Ok(!found.is_empty())
    }

    /// Whether somebody gets an account without an invitation: the operator, and whom the operator lets sign up.
    pub(crate) fn needs_no_invitation(&self, issuer: &str, email: &str, is_vouched_for: bool) -> bool {
        issuer == OPERATOR || self.config().sign_up.is_open_to(email, is_vouched_for)
    }

    /// Whether a person without an account may get one.
    async fn may_sign_up(&self, person: &Person, now_ms: i64) -> Result<bool, Fault> {
        if self.needs_no_invitation(&person.issuer, &person.email, person.is_vouched_for) {
            return Ok(true);
        }
        let find = sql!(
            "SELECT 1 AS known FROM invitations WHERE email = :email AND expires_at > :now LIMIT 1",
            email = &person.email,
            now = now_ms
        );
        let [found] = self.read([find]).await?;
        Ok(!found.is_empty())
    }

    /// Ends the session of a cookie. Its workspace is where the next sign-in leads.
    pub(crate) async fn sign_out(&self, hash: &str) -> Result<(), Fault> {
        let used = sql!(
            "UPDATE memberships SET used_at = :now WHERE (workspace_id, account_id) =
             (SELECT workspace_id, account_id FROM sessions WHERE hash = :hash)",
            hash = hash,
            now = self.ports().clock.now_ms()
        );
        self.write([used, sql!("DELETE FROM sessions WHERE hash = :hash", hash = hash)]).await?;
        Ok(())
    }

    /// Lets a session show another workspace of its person: the oldest one, or a new one if there is none.
    async fn move_session(
        &self,
        hash: &str,
        account_id: &AccountId,
        email: &str,
        now_ms: i64,
    ) -> Result<(), Fault> {
        let show = sql!(
            "UPDATE sessions SET workspace_id = (SELECT workspace_id FROM memberships WHERE account_id = :account
               ORDER BY created_at, workspace_id LIMIT 1) WHERE hash = :hash",
            account = account_id,
            hash = hash
        );
        let [insert, join] = own_workspace(&self.new_id(), account_id, email, now_ms);
        self.write([insert, join, show]).await?;
        Ok(())
    }

    /// Lets a session show `workspace_id`, of which its person is a member. Returns whether it is one.
    pub(crate) async fn switch_workspace(
        &self,
        session: &Session,
        workspace_id: &str,
    ) -> Result<bool, Fault> {
        let switch = sql!(
            "UPDATE sessions SET workspace_id = :workspace WHERE hash = :hash AND EXISTS
             (SELECT 1 FROM memberships WHERE account_id = :account AND workspace_id = :workspace) RETURNING id",
            workspace = workspace_id,
            hash = &session.hash,
            account = &session.account_id
        );
        let [switched] = self.write([switch]).await?;
        Ok(!switched.is_empty())
    }

    /// Ends another session of the same person. Returns whether there was one.
    pub(crate) async fn revoke_session(&self, session: &Session, id: &str) -> Result<bool, Fault> {
        let revoke = sql!(
            "DELETE FROM sessions WHERE id = :id AND account_id = :account RETURNING id",
            id = id,
            account = &session.account_id
        );
        let [gone] = self.write([revoke]).await?;
        Ok(!gone.is_empty())
    }

    /// The person's sessions, those used last first.
    pub(crate) async fn sessions_of(&self, session: &Session, now_ms: i64) -> Result<Value, Fault> {
        let list = sql!(
            "SELECT id, client, created_at, seen_at FROM sessions WHERE account_id = :account AND expires_at > :now
             ORDER BY seen_at DESC, id DESC",
            account = &session.account_id,
            now = now_ms
        );
        let [rows] = self.read([list]).await?;
        let entry = |row: crate::ports::statement::Row<'_>| -> Result<Value, DatabaseError> {
            let id: SessionId = row.id("id")?;
            Ok(json!({"id": id, "client": row.text("client")?, "created_at": row.timestamp("created_at")?,
                "seen_at": row.timestamp("seen_at")?, "current": id == session.id}))
        };
        Ok(Value::Array(rows.iter().map(entry).collect::<Result<_, _>>()?))
    }

    /// The workspaces of the person, by name.
    pub(crate) async fn workspaces_of(&self, session: &Session) -> Result<Value, Fault> {
        let list = sql!(
            "SELECT w.id, w.name, m.role FROM memberships AS m JOIN workspaces AS w ON w.id = m.workspace_id
             WHERE m.account_id = :account ORDER BY w.name, w.id LIMIT CAST(:most AS INTEGER)",
            account = &session.account_id,
            most = MEMBERSHIPS_MAX
        );
        let [rows] = self.read([list]).await?;
        let entry = |row: crate::ports::statement::Row<'_>| -> Result<Value, DatabaseError> {
            let id: WorkspaceId = row.id("id")?;
            Ok(json!({"id": id, "name": row.text("name")?, "role": row.text("role")?,
                "current": id == session.workspace_id}))
        };
        Ok(Value::Array(rows.iter().map(entry).collect::<Result<_, _>>()?))
    }

    /// The workspace that the operator joins; see [`unclaimed`].
    pub(crate) async fn workspace_of_the_operator(&self) -> Result<Option<WorkspaceId>, Fault> {
        let [found] = self.read([unclaimed()]).await?;
        Ok(found.first().map(|row| row.id("id")).transpose()?)
    }

    /// Whether that workspace waits for the operator, who has never signed in.
    pub(crate) async fn awaits_the_operator(&self) -> Result<bool, Fault> {
        let known = sql!("SELECT 1 AS known FROM accounts WHERE issuer = :issuer LIMIT 1", issuer = OPERATOR);
        let [known, workspace] = self.read([known, unclaimed()]).await?;
        Ok(known.is_empty() && !workspace.is_empty())
    }

    /// The invitation of an admin into workspace `:ws`, for the operator: of the operator's, the last one counts. `hash` is the
    /// SHA-256 of what its link has.
    pub(crate) fn invite_admin(&self, email: &str, hash: &str) -> [Statement; 3] {
        let id: InvitationId = self.new_id();
        let now_ms = self.now().ms();
        let replace = sql!(
            "DELETE FROM invitations WHERE workspace_id = :ws AND (email = :email OR invited_by = :by OR expires_at <= :now)",
            email = email,
            by = OPERATOR,
            now = now_ms
        );
        let insert = sql!(
            "INSERT INTO invitations (id, workspace_id, email, role, hash, invited_by, created_at, expires_at)
             VALUES (:id, :ws, :email, :role, :hash, :by, :now, :end)",
            id = &id,
            email = email,
            role = Role::Admin.as_str(),
            hash = hash,
            by = OPERATOR,
            now = now_ms,
            end = now_ms + INVITATION_MS
        );
        let entry_id = self.new_id();
        let change = audit::Change { id: &entry_id, operation: "invite_person", subject: Some(id.as_str()) };
        [replace, insert, change.entry_of_operator(self)]
    }
}

/// Selects the first workspace of the service, as long as nobody is a member of it. Once it belongs to somebody, they say who
/// joins it, the operator included. If it has moved away, or came back from another host, the operator joins none: the next one
/// may be that of somebody who only uses keys.
fn unclaimed() -> Statement {
    sql!(format!(
        "SELECT w.id FROM workspaces AS w WHERE w.id = {} AND w.secret_salt IS NULL AND {}
         AND NOT EXISTS (SELECT 1 FROM memberships AS m WHERE m.workspace_id = w.id)",
        first_workspace_id(),
        stays("w.id")
    ))
}

/// The error for a code or a link that is no longer good.
pub(crate) fn used_proof() -> Error {
    Error::new(Code::InvalidToken, "This code or link was used already or has expired. Ask for a new one.")
}

/// The error for somebody who is not invited.
fn sign_up_closed() -> Error {
    let message = "Only invited people get an account here. Ask somebody who has one for an invitation to this address.";
    Error::new(Code::SignUpClosed, message)
}

/// Makes somebody a member. Who is one already becomes an admin where admins are invited, and loses nothing.
pub(crate) fn membership(
    workspace_id: &WorkspaceId,
    account_id: &AccountId,
    role: Role,
    now_ms: i64,
) -> Statement {
    sql!(
        "INSERT INTO memberships (workspace_id, account_id, role, created_at) VALUES (:workspace, :account, :role, :now)
         ON CONFLICT (workspace_id, account_id) DO UPDATE SET role = excluded.role WHERE excluded.role = 'admin'",
        workspace = workspace_id,
        account = account_id,
        role = role.as_str(),
        now = now_ms
    )
}

/// A workspace with one admin, named like them, for somebody who has none: of two requests at once, one makes it.
fn own_workspace(id: &WorkspaceId, account_id: &AccountId, email: &str, now_ms: i64) -> [Statement; 2] {
    let name = match email.split_once('@') {
        Some((name, _)) => name.chars().take(NAME_CHARS_MAX as usize).collect(),
        None => "default".to_owned(),
    };
    let insert = sql!(
        "INSERT INTO workspaces (id, name, created_at) SELECT :id, :name, :now
         WHERE NOT EXISTS (SELECT 1 FROM memberships WHERE account_id = :account)",
        id = id,
        name = name,
        account = account_id,
        now = Timestamp::from_ms(now_ms)
    );
    let join = sql!(
        "INSERT INTO memberships (workspace_id, account_id, role, created_at) SELECT :id, :account, :role, :now
         WHERE NOT EXISTS (SELECT 1 FROM memberships WHERE account_id = :account)",
        id = id,
        account = account_id,
        role = Role::Admin.as_str(),
        now = now_ms
    );
    [insert, join]
}
