//! The state of one request: the caller's workspace, the time, and access to storage.
//!
//! The first statement of the operation's first batch looks up the API key; there is no extra batch for it. Until that
//! batch returns, `:ws` in a statement is a subquery that finds the workspace by the key's hash: with a wrong key every
//! read is empty and a guard rejects every write, so nothing leaks before the 401. Afterwards `:ws` is a plain value.
use subtle::ConstantTimeEq;

use crate::base::error::{Code, Error};
use crate::base::ids::{AccountId, KeyId, WorkspaceId};
use crate::base::limits;
use crate::base::time::{self, Timestamp};
use crate::operations::auth;
use crate::operations::operation::Output;
use crate::ports::DatabaseError;
use crate::ports::statement::{Rows, Statement, Value};
use crate::services::Services;
use crate::sql;
use crate::storage::accounts::Role;
use crate::storage::archives;
use crate::storage::audit::Change;
use crate::storage::batch::Batch;
use crate::storage::fault::Fault;
use crate::storage::idempotency::{Idempotency, OneTimeSecret, Stored};
use crate::storage::moves::told;
use crate::storage::workspaces::note_first;

/// Who is asking, and the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// `:ws` of every statement.
    pub workspace_id: WorkspaceId,
    /// The key that was used, or the person whose session it is.
    pub actor: Actor,
}

/// Who is asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// An API key: permits everything in its workspace.
    Key(KeyId),
    /// A person in the dashboard.
    Person {
        /// The account.
        account_id: AccountId,
        /// What the person may do.
        role: Role,
    },
    /// Whoever runs the service, at its command line.
    Operator,
}

/// What a request shows to be let in.
#[derive(Clone)]
pub enum Principal {
    /// Something that cannot be an API key.
    Nobody,
    /// An API key with this hash, looked up with the first batch.
    Key(String),
    /// A session of the dashboard with this hash, looked up before. Each write checks again that it is open and that its
    /// person has the same role.
    Session(String, Identity),
    /// The operator at the command line, who can read the database anyway, in this workspace.
    Operator(WorkspaceId),
}

/// One request's state.
pub struct Context {
    /// Settings and ports.
    pub services: Services,
    /// The time of the request; it does not move while the request runs.
    pub now_ms: i64,
    /// What is run, for the log.
    operation: Option<&'static str>,
    /// What else [`Context::take_incident`] tells.
    pub incident: Option<String>,
    /// What is lost of archived transcripts.
    lost: Vec<String>,
    principal: Principal,
    idempotency: Option<Idempotency>,
    identity: Option<Identity>,
    /// Whether the request may take its time: the messages of a JSON-RPC batch may not, since its answers are held meanwhile.
    pub may_wait: bool,
    /// Whether the next batch is the first of this attempt.
    fresh: bool,
    provisioned: bool,
    has_written: bool,
    /// What the next write is recorded as in the audit log.
    audit: Option<Audit>,
    /// When the resource that is to be changed had last changed, as whoever changes it has read it.
    read_updated_at: Option<String>,
    /// Whether the key's last use was so long ago that this one is to be noted.
    is_use_due: bool,
}

/// A change that is to be recorded.
#[derive(Clone)]
struct Audit {
    operation: &'static str,
    subject: Option<String>,
    /// Whether the change creates the subject.
    is_made: bool,
}

/// The part of a response that says what was created.
#[derive(serde::Deserialize)]
struct Made {
    #[serde(alias = "batch_id")]
    id: Option<String>,
}

enum Access {
    Read,
    Write,
}

impl Context {
    /// The state of a request.
    pub fn new(services: Services, now_ms: i64, principal: Principal) -> Self {
        let identity = match &principal {
            Principal::Session(_, identity) => Some(identity.clone()),
            Principal::Operator(workspace_id) => {
                Some(Identity { workspace_id: workspace_id.clone(), actor: Actor::Operator })
            }
            Principal::Nobody | Principal::Key(_) => None,
        };
        Self {
            services,
            now_ms,
            operation: None,
            incident: None,
            lost: Vec::new(),
            principal,
            idempotency: None,
            identity,
            may_wait: true,
            fresh: true,
            provisioned: false,
            has_written: false,
            audit: None,
            read_updated_at: None,
            is_use_due: false,
        }
    }

    /// Refuses a change of a resource that has changed since it was read with this `updated_at`. Resources with a public
    /// revision have If-Match for that.
    pub(crate) fn expect_unchanged(&mut self, updated_at: &str) {
        self.read_updated_at = Some(updated_at.to_owned());
    }

    /// See [`Context::expect_unchanged`].
    pub(crate) fn check_unchanged(&self, updated_at: Timestamp) -> Result<(), Error> {
        match &self.read_updated_at {
            Some(read) if *read != time::format(updated_at.ms()) => {
                Err(Error::new(Code::RevisionConflict, "It was changed since the page was read."))
            }
            _ => Ok(()),
        }
    }

    /// Sets the Idempotency-Key. Call it before the first batch.
    pub fn set_idempotency(&mut self, idempotency: Option<Idempotency>) {
        self.idempotency = idempotency;
    }

    /// Whether the response is stored for a repetition.
    pub(crate) const fn stores_response(&self) -> bool {
        self.idempotency.is_some()
    }

    /// Starts over after [`Fault::Stale`]: the API key is looked up again.
    pub fn restart(&mut self) {
        self.fresh = true;
        if let Principal::Key(_) = self.principal {
            self.identity = None;
        }
    }

    /// The state for the next message of a JSON-RPC batch, as if it were a request of its own. What
    /// concerns the response stays: all messages share one, and its entry in the log.
    pub fn next_message(&mut self) {
        let principal = std::mem::replace(&mut self.principal, Principal::Nobody);
        let next = Self::new(self.services.clone(), self.now_ms, principal);
        *self = Self {
            incident: self.incident.take(),
            lost: std::mem::take(&mut self.lost),
            has_written: self.has_written,
            may_wait: false,
            ..next
        };
    }

    /// Says which operation is run, for the log.
    pub fn running(&mut self, operation: &'static str) {
        self.operation = Some(operation);
    }

    /// The operation that was run last.
    pub fn operation(&self) -> Option<&'static str> {
        self.operation
    }

    /// Whether anything was written.
    pub fn has_written(&self) -> bool {
        self.has_written
    }

    /// Looks up the API key with a batch of its own, for responses that need no other batch.
    pub async fn authenticate(&mut self) -> Result<Identity, Fault> {
        if self.identity.is_none() {
            self.read(Vec::new()).await?;
        }
        self.identity.clone().ok_or_else(|| auth::wrong_key().into())
    }

    /// Notes that the API key was used, at most once an hour: a round trip that other requests do not have. Nothing
    /// depends on it, so a storage that takes no writes is no reason to fail.
    pub async fn note_key_use(&mut self) {
        let Some(Identity { actor: Actor::Key(id), workspace_id }) = &self.identity else { return };
        if !std::mem::take(&mut self.is_use_due) {
            return;
        }
        let note = sql!(
            "UPDATE api_keys SET last_used_at = :now WHERE workspace_id = :workspace_id AND id = :id",
            workspace_id = workspace_id,
            id = id,
            now = self.now_ms
        );
        let _ = self.services.write([note]).await;
    }

    /// The first write that changes something is recorded in the audit log, as this operation on this thing.
    pub fn audit_as(&mut self, operation: &'static str, subject: Option<String>) {
        self.audit = Some(Audit { operation, subject, is_made: false });
    }

    /// Says what the operation creates, where its response does not.
    pub fn audit_subject(&mut self, id: &str) {
        if let Some(audit) = &mut self.audit {
            audit.subject = Some(id.to_owned());
            audit.is_made = true;
        }
    }

    /// Refuses what only admins may do to a person who is none.
    pub fn check_role(&self, is_for_admins: bool) -> Result<(), Error> {
        match &self.identity {
            Some(Identity { actor: Actor::Person { role: Role::Member, .. }, .. }) if is_for_admins => {
                Err(auth::admins_only())
            }
            _ => Ok(()),
        }
    }

    /// What the request shows to be let in.
    pub(crate) fn principal(&self) -> &Principal {
        &self.principal
    }

    /// The caller's workspace, once a batch has answered.
    pub fn workspace_id(&self) -> Result<&WorkspaceId, Fault> {
        match &self.identity {
            Some(identity) => Ok(&identity.workspace_id),
            None => Err(Fault::Bug("the workspace is known after the first batch".to_owned())),
        }
    }

    /// Reads at one moment. Every statement names `:ws`.
    pub async fn read(&mut self, statements: Vec<Statement>) -> Result<Vec<Rows>, Fault> {
        self.batch(statements, Access::Read).await
    }

    /// [`Context::read`] that returns the rows of each statement, in order.
    pub async fn read_each<const N: usize>(
        &mut self,
        statements: [Statement; N],
    ) -> Result<[Rows; N], Fault> {
        let rows = self.read(Vec::from(statements)).await?;
        rows.try_into().map_err(|_| Fault::Bug("a batch lacks rows of a statement".to_owned()))
    }

    /// Puts archived transcripts back into rows of calls that were read.
    pub(crate) async fn unarchive(&self, rows: &mut Rows) -> Result<(), Fault> {
        self.services.unarchive(self.workspace_id()?, rows).await
    }

    /// The same for rows of several calls: what is lost of one is NULL, and told to the operator.
    pub(crate) async fn unarchive_list(&mut self, rows: &mut Rows) -> Result<(), Fault> {
        let lost = self.services.unarchive_list(self.workspace_id()?, rows).await?;
        self.lost.extend(lost);
        Ok(())
    }

    /// What went wrong on our side although the client got an ordinary response; for the log.
    pub fn take_incident(&mut self) -> Option<String> {
        let lost = archives::lost_in_words(&std::mem::take(&mut self.lost));
        let told: Vec<String> = self.incident.take().into_iter().chain(lost).collect();
        (!told.is_empty()).then(|| told.join("; "))
    }

    /// Writes all or nothing, then wakes the jobs; returns when it is durable. Every statement names `:ws`.
    pub fn write(&mut self, batch: impl Into<Batch>) -> impl Future<Output = Result<Vec<Rows>, Fault>> {
        // What is written without a response may have found nothing to change.
        self.write_batch(batch.into(), true)
    }

    async fn write_batch(&mut self, batch: Batch, if_changed: bool) -> Result<Vec<Rows>, Fault> {
        if self.idempotency.is_some() && self.fresh {
            self.read(Vec::new()).await?;
        }
        let (mut statements, followup) = batch.into_parts();
        let (before, after) = self.audit_statements(if_changed);
        let extra = (usize::from(before.is_some()), usize::from(after.is_some()));
        statements.splice(0..0, before);
        statements.extend(after);
        let mut rows = self.batch(statements, Access::Write).await?;
        if extra != (0, 0) {
            let after = rows.split_off(rows.len().saturating_sub(extra.1));
            rows.drain(..extra.0);
            // An entry that was taken back comes with a later batch.
            if after.iter().all(Rows::is_empty) {
                self.audit = None;
            }
        }
        self.has_written = true;
        followup.tell(&self.services).await;
        Ok(rows)
    }

    /// Writes the change and, under an Idempotency-Key, the response to it, in one batch.
    pub fn commit(
        &mut self,
        change: impl Into<Batch>,
        output: Output,
    ) -> impl Future<Output = Result<Output, Fault>> {
        self.commit_batch(change.into(), output)
    }

    /// What the audit log needs before and after the next write, if it is the first. The name of a subject is read where it
    /// exists: a deletion removes it, and a creation makes it.
    fn audit_statements(&self, if_changed: bool) -> (Option<Statement>, Option<Statement>) {
        let Some(Audit { operation, subject, is_made }) = &self.audit else { return (None, None) };
        let change = Change { id: &self.services.new_id(), operation, subject: subject.as_deref() };
        let entry = match (&self.principal, &self.identity) {
            (_, Some(Identity { actor: Actor::Person { account_id, .. }, .. })) => {
                change.entry_in_session(&self.services, account_id)
            }
            (Principal::Key(hash), _) => change.entry_of_key(&self.services, hash),
            (Principal::Operator(_), _) => change.entry_of_operator(&self.services),
            _ => return (None, None),
        };
        if *is_made {
            (None, Some(entry))
        } else {
            (Some(entry), if_changed.then(|| change.unless_changed()))
        }
    }

    // Not generic, so it is compiled once.
    async fn commit_batch(&mut self, mut batch: Batch, mut output: Output) -> Result<Output, Fault> {
        if batch.is_empty() && self.idempotency.is_none() {
            return Ok(output);
        }
        match &mut self.audit {
            // Nothing changes but what is remembered of the request.
            Some(_) if batch.is_empty() => self.audit = None,
            Some(audit) if audit.subject.is_none() => {
                let made = output.body.as_deref().and_then(|body| serde_json::from_str::<Made>(body).ok());
                audit.subject = made.and_then(|made| made.id);
                audit.is_made = true;
            }
            _ => {}
        }
        if let Some(idempotency) = &self.idempotency {
            let stored = Stored {
                status: output.status,
                body: output.body.clone(),
                etag: output.etag,
                reveal: output.reveal.clone(),
            };
            // First, so that the slower of two equal requests finds the other's response and not, say, that its name is
            // taken.
            batch.prepend(idempotency.store(&stored, self.now_ms));
        }
        let origin = output.reveal.as_ref().and_then(OneTimeSecret::select);
        let is_made_of_more = origin.is_some();
        batch.extend(origin);
        match self.write_batch(batch, false).await {
            Ok(rows) => {
                if let (true, Some(row)) = (is_made_of_more, rows.last().and_then(Rows::first)) {
                    output.reveal = output.reveal.map(|reveal| reveal.made_of(row)).transpose()?;
                }
                Ok(output)
            }
            // An equal request was faster: start over and find its response.
            Err(Fault::Storage(error)) if error.is_constraint("idempotency_keys") => Err(Fault::Stale),
            Err(fault) => Err(fault),
        }
    }

    /// Commits the change that precedes an external effect. Until [`Context::replace_stored_response`] stores the
    /// result, a repeat with the same Idempotency-Key gets `until`.
    pub async fn commit_intent(&mut self, change: Batch, until: &Error) -> Result<(), Fault> {
        self.commit(change, Output::failure(until)).await.map(|_| ())
    }

    /// Writes the result of the external effect and the response that a repeat gets; with `None` the Idempotency-Key
    /// may be used again. The effect has happened, so this works even when the API key was revoked meanwhile.
    pub async fn replace_stored_response(
        &self,
        mut batch: Batch,
        output: Option<&Output>,
    ) -> Result<(), Fault> {
        if let Some(idempotency) = &self.idempotency {
            let told = match output {
                Some(output) => idempotency.replace_stored_response(output.status, output.body.clone()),
                None => idempotency.forget(),
            };
            batch.push(told.in_workspace(self.workspace_id()?));
        }
        batch.write(&self.services).await?;
        Ok(())
    }

    async fn batch(&mut self, statements: Vec<Statement>, access: Access) -> Result<Vec<Rows>, Fault> {
        let (hash, is_key) = match &self.principal {
            Principal::Nobody => return Err(auth::wrong_key().into()),
            Principal::Key(hash) => (hash.clone(), true),
            Principal::Session(hash, _) => (hash.clone(), false),
            Principal::Operator(_) => (String::new(), false),
        };
        let mut batch = Vec::with_capacity(statements.len() + 3);
        let mut lead = 0;
        if self.identity.is_none() {
            // The last condition always holds: it says for whom the batch is, whichever of its keys a workspace sends.
            let mut known = self.services.workspace_of_key(&hash);
            if known.is_none() && self.services.ports().database.takes_turns() {
                // Otherwise each of a thousand keys would have turns of its own until its first batch is answered.
                known = auth::workspace_of(&self.services, &hash).await;
            }
            batch.push(sql!(
                "SELECT id, workspace_id, hash, last_used_at FROM api_keys WHERE hash = :hash AND revoked_at IS NULL
                 AND COALESCE(:workspace, '') IS NOT NULL",
                hash = &hash,
                workspace = known.as_ref().map_or(Value::Null, Value::from)
            ));
            lead += 1;
        }
        if matches!(access, Access::Write) {
            // Also after the lookup: the key may have been revoked since.
            batch.push(match &self.identity {
                Some(Identity { workspace_id, actor: Actor::Person { account_id, role } }) => sql!(
                    "INSERT INTO batch_guard (key_ok) SELECT 0 WHERE NOT EXISTS
                     (SELECT 1 FROM sessions AS s JOIN memberships AS m ON m.account_id = s.account_id
                      WHERE s.hash = :hash AND m.account_id = :account AND m.workspace_id = :workspace AND m.role = :role)",
                    hash = &hash,
                    account = account_id,
                    workspace = workspace_id,
                    role = role.as_str()
                ),
                Some(Identity { workspace_id, actor: Actor::Operator }) => sql!(
                    "INSERT INTO batch_guard (key_ok) SELECT 0 WHERE NOT EXISTS
                     (SELECT 1 FROM workspaces WHERE id = :workspace)",
                    workspace = workspace_id
                ),
                _ => sql!(
                    "INSERT INTO batch_guard (key_ok) SELECT 0 WHERE NOT EXISTS
                     (SELECT 1 FROM api_keys WHERE hash = :hash AND revoked_at IS NULL)",
                    hash = &hash
                ),
            });
            lead += 1;
        }
        let looks_up = self.fresh && self.idempotency.is_some();
        if let (true, Some(idempotency)) = (looks_up, &self.idempotency) {
            batch.push(self.render(idempotency.lookup(self.now_ms), &hash)?);
            lead += 1;
        }
        for statement in statements {
            batch.push(self.render(statement, &hash)?);
        }
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let database = &self.services.ports().database;
        let answer = match access {
            Access::Read => database.read(batch).await,
            Access::Write => database.write(batch).await,
        };
        let mut rows = match answer {
            Ok(rows) => rows,
            Err(DatabaseError::Constraint(sentence)) if sentence.contains("unknown_key") => {
                return Err(match is_key {
                    true => self.unknown_key(&hash).await,
                    false => self.changed_session(&hash).await,
                });
            }
            Err(error) => return Err(error.into()),
        };
        let led: Vec<Rows> = rows.drain(..lead.min(rows.len())).collect();
        if self.identity.is_none() {
            match led.first().and_then(Rows::first) {
                Some(row) if bool::from(row.str("hash")?.as_bytes().ct_eq(hash.as_bytes())) => {
                    let workspace_id = row.id("workspace_id")?;
                    self.services.key_opens(&hash, &workspace_id);
                    self.identity = Some(Identity { workspace_id, actor: Actor::Key(row.id("id")?) });
                    let last_used_ms = row.optional_integer("last_used_at")?;
                    self.is_use_due =
                        last_used_ms.is_none_or(|last| self.now_ms - last >= limits::KEY_USED_MS);
                }
                _ => return Err(self.unknown_key(&hash).await),
            }
        }
        self.fresh = false;
        if let (true, Some(idempotency)) = (looks_up, &self.idempotency)
            && let Some(row) = led.last().and_then(Rows::first)
        {
            return Err(Fault::Replay(Box::new(idempotency.stored(row)?)));
        }
        Ok(rows)
    }

    /// Replaces `:ws` with the workspace, or with a subquery that finds it. Rejects a statement that names no workspace:
    /// this is the tenant boundary.
    fn render(&self, statement: Statement, hash: &str) -> Result<Statement, Fault> {
        if !self.names_workspace(&statement) {
            return Err(Fault::Bug(format!("a statement names no workspace: {}", statement.sql)));
        }
        Ok(match &self.identity {
            Some(_) if !statement.sql.contains(":ws") => statement,
            Some(identity) => statement.in_workspace(&identity.workspace_id),
            None => statement.with_workspace(
                "(SELECT workspace_id FROM api_keys WHERE hash = ?",
                hash,
                " AND revoked_at IS NULL)",
            ),
        })
    }

    /// Whether the statement has `:ws` or, once the workspace is known, its id as a parameter.
    fn names_workspace(&self, statement: &Statement) -> bool {
        let is_known = |identity: &Identity| {
            statement
                .params
                .iter()
                .any(|value| matches!(value, Value::Text(text) | Value::Asker(text) if **text == *identity.workspace_id))
        };
        statement.sql.contains(":ws") || self.identity.as_ref().is_some_and(is_known)
    }

    /// A session that has ended is a 401. That of a person whose role has changed goes on in that role: the operation starts
    /// over, with the check of the role.
    async fn changed_session(&mut self, hash: &str) -> Fault {
        let Some(Identity { workspace_id, actor: Actor::Person { account_id, role } }) = &mut self.identity
        else {
            return auth::session_over().into();
        };
        let now = sql!(
            "SELECT m.role FROM sessions AS s JOIN memberships AS m ON m.account_id = s.account_id
             WHERE s.hash = :hash AND m.account_id = :account AND m.workspace_id = :workspace",
            hash = hash,
            account = &*account_id,
            workspace = &*workspace_id
        );
        let rows = match self.services.read([now]).await {
            Ok([rows]) => rows,
            Err(error) => return error.into(),
        };
        match rows.first().map(|row| row.word("role")) {
            Some(Ok(current)) => *role = current,
            Some(Err(error)) => return error.into(),
            None => return auth::session_over().into(),
        }
        Fault::Stale
    }

    /// A bootstrap key creates a workspace of its own on first use, and the key of a workspace that has moved to another host
    /// is told so; any other unknown key is a 401.
    async fn unknown_key(&mut self, hash: &str) -> Fault {
        match told::moved_key(&self.services, hash).await {
            Ok(Some(error)) => return error.into(),
            Ok(None) => {}
            Err(error) => return error.into(),
        }
        self.services.key_opens_nothing(hash);
        let known = self.services.config().bootstrap_hashes.iter().any(|known| known == hash);
        if !known || self.provisioned {
            return auth::wrong_key().into();
        }
        self.provisioned = true;
        // A revoked key stays unknown: it must not cost a write each time.
        let revoked = sql!(
            "SELECT 1 AS known FROM api_keys WHERE hash = :hash AND revoked_at IS NOT NULL",
            hash = hash
        );
        match self.services.read([revoked]).await {
            Ok([rows]) if !rows.is_empty() => return auth::wrong_key().into(),
            Ok(_) => {}
            Err(error) => return error.into(),
        }
        let workspace: WorkspaceId = self.services.new_id();
        let statements = [
            sql!(
                "INSERT INTO workspaces (id, name, created_at) SELECT :id, 'bootstrap', :now
                 WHERE NOT EXISTS (SELECT 1 FROM api_keys WHERE hash = :hash)",
                id = &workspace,
                now = self.now_ms,
                hash = hash
            ),
            sql!(
                "INSERT INTO api_keys (id, workspace_id, name, hash, hint, created_at, last_used_at)
                 SELECT :id, :workspace, 'bootstrap', :hash, '', :now, :now
                 WHERE NOT EXISTS (SELECT 1 FROM api_keys WHERE hash = :hash)",
                id = &self.services.new_id::<KeyId>(),
                workspace = &workspace,
                hash = hash,
                now = self.now_ms
            ),
            note_first(&workspace),
        ];
        match self.services.write(statements).await {
            Ok(_) => Fault::Stale,
            Err(error) => error.into(),
        }
    }
}
