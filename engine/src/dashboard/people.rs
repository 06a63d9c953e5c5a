//! The people of a workspace: who they are, who is invited, and what admins change about them. Each change is written with
//! the check of the session and its entry in the audit log, as those of operations are.
use serde_json::{Value, json};

use super::visit::Visit;
use super::{mail, paths, show};
use crate::base::email;
use crate::base::error::{Code, Error};
use crate::base::hash::sha256_hex;
use crate::base::ids::{AccountId, Id, InvitationId, WorkspaceId, lower_bound, prefix};
use crate::base::limits::{
    INVITATION_MS, INVITATIONS_MAX, INVITATIONS_SENT_MAX, INVITATIONS_SENT_WINDOW_MS, MEMBERSHIPS_MAX,
    PEOPLE_MAX,
};
use crate::interfaces::mounted::join_link;
use crate::operations::auth;
use crate::operations::context::Context;
use crate::ports::DatabaseError;
use crate::ports::statement::{Row, Rows, Statement};
use crate::services::Services;
use crate::sql;
use crate::storage::accounts::{Role, Session};
use crate::storage::fault::Fault;

/// What comes of a change besides the change.
#[derive(Default)]
pub(super) struct Shown {
    /// Shown once: the link of an invitation.
    pub once: Option<Value>,
    /// For the log.
    pub note: Option<String>,
}

type Fields = [(String, String)];

fn context(visit: &Visit<'_>, session: &Session, operation: &'static str, subject: Option<&str>) -> Context {
    let mut context = Context::new(visit.services().clone(), visit.now_ms, show::principal(session));
    context.audit_as(operation, subject.map(str::to_owned));
    context
}

fn rows<T>(rows: &Rows, entry: T) -> Result<Value, Fault>
where
    T: Fn(Row<'_>) -> Result<Value, DatabaseError>,
{
    Ok(Value::Array(rows.iter().map(entry).collect::<Result<_, _>>()?))
}

/// The people of the workspace, admins first.
pub(super) async fn list(visit: &Visit<'_>, session: &Session) -> Result<Value, Fault> {
    let list = sql!(
        "SELECT a.id, a.email, a.issuer, m.role, m.created_at FROM memberships AS m JOIN accounts AS a ON a.id = m.account_id
         WHERE m.workspace_id = :workspace ORDER BY m.role, a.email, a.id LIMIT CAST(:most AS INTEGER)",
        workspace = &session.workspace_id,
        most = PEOPLE_MAX
    );
    let [found] = visit.services().read([list]).await?;
    rows(&found, |row| {
        let id: AccountId = row.id("id")?;
        Ok(
            json!({"id": id, "email": row.text("email")?, "issuer": row.text("issuer")?, "role": row.text("role")?,
            "created_at": row.timestamp("created_at")?, "current": id == session.account_id}),
        )
    })
}

/// The open invitations, newest first.
pub(super) async fn invitations(visit: &Visit<'_>, session: &Session) -> Result<Value, Fault> {
    let list = sql!(
        "SELECT id, email, role, created_at, expires_at FROM invitations WHERE workspace_id = :workspace
         AND expires_at > :now ORDER BY id DESC LIMIT CAST(:most AS INTEGER)",
        workspace = &session.workspace_id,
        now = visit.now_ms,
        most = INVITATIONS_MAX
    );
    let [found] = visit.services().read([list]).await?;
    rows(&found, |row| {
        Ok(json!({"id": row.text("id")?, "email": row.text("email")?, "role": row.text("role")?,
            "created_at": row.timestamp("created_at")?, "expires_at": row.timestamp("expires_at")?}))
    })
}

/// The invitation of the page where it is accepted. Somebody else who has the link is told only that it is not theirs.
pub(super) async fn invitation(visit: &Visit<'_>, session: &Session, query: &Fields) -> Result<Value, Fault> {
    let token = paths::value(query, "token").unwrap_or_default();
    let found = open_invitation(visit, token).await?;
    Ok(match found.email == session.email {
        true => {
            json!({"is_yours": true, "workspace": found.workspace, "role": found.role.as_str(), "token": token})
        }
        false => json!({"is_yours": false}),
    })
}

struct Open {
    id: InvitationId,
    workspace_id: WorkspaceId,
    workspace: String,
    email: String,
    role: Role,
}

async fn open_invitation(visit: &Visit<'_>, token: &str) -> Result<Open, Fault> {
    let find = sql!(
        "SELECT i.id, i.workspace_id, i.email, i.role, w.name FROM invitations AS i JOIN workspaces AS w ON w.id = i.workspace_id
         WHERE i.hash = :hash AND i.expires_at > :now",
        hash = sha256_hex(token.as_bytes()),
        now = visit.now_ms
    );
    let [found] = visit.services().read([find]).await?;
    let gone = || {
        Error::new(Code::NotFound, "This invitation was used, withdrawn, or has expired. Ask for a new one.")
    };
    let row = found.first().ok_or_else(gone)?;
    Ok(Open {
        id: row.id("id")?,
        workspace_id: row.id("workspace_id")?,
        workspace: row.text("name")?,
        email: row.text("email")?,
        role: row.word("role")?,
    })
}

fn role(fields: &Fields) -> Result<Role, Error> {
    let typed = paths::value(fields, "role").unwrap_or_default();
    Role::parse(typed).ok_or_else(|| Error::field("role", "must be one of: admin, member"))
}

/// Invites somebody by e-mail. The link is also shown, for a service without mail; it is good only for that address.
pub(super) async fn invite(visit: &Visit<'_>, session: &Session, fields: &Fields) -> Result<Shown, Fault> {
    let services = visit.services();
    let id: InvitationId = services.new_id();
    let mut context = context(visit, session, "invite_person", None);
    context.audit_subject(id.as_str());
    context.check_role(true)?;
    let wrong = || Error::field("email", "must be an e-mail address, such as anna@example.com");
    let email = email::address(paths::value(fields, "email").unwrap_or_default()).ok_or_else(wrong)?;
    let role = role(fields)?;
    let (token, hash) = services.new_token();
    let earlier = sql!(
        "SELECT id FROM invitations WHERE workspace_id = :workspace AND email = :email AND expires_at > :now",
        workspace = &session.workspace_id,
        email = &email,
        now = visit.now_ms
    );
    // An account is known by its issuer: the same address at another one is somebody else.
    let member = sql!(
        "SELECT a.id FROM memberships AS m JOIN accounts AS a ON a.id = m.account_id
         WHERE m.workspace_id = :workspace AND a.issuer = :issuer AND a.subject = :email",
        workspace = &session.workspace_id,
        issuer = crate::storage::accounts::BY_EMAIL,
        email = &email
    );
    let admins = sql!(
        "SELECT a.issuer, a.email FROM memberships AS m JOIN accounts AS a ON a.id = m.account_id
         WHERE m.workspace_id = :workspace AND m.role = 'admin'",
        workspace = &session.workspace_id
    );
    let [earlier, member, admins] = services.read([earlier, member, admins]).await?;
    check_admits(services, &admins)?;
    if !member.is_empty() {
        return Err(Error::field("email", "is the address of a member of this workspace").into());
    }
    // One invitation for an address: the last. Each is a mail, so they are counted when they are sent, too: otherwise a
    // stranger could have one person sent any number of them.
    let replace = sql!(
        "DELETE FROM invitations WHERE workspace_id = :ws AND (email = :email OR expires_at <= :now)",
        email = &email,
        now = visit.now_ms
    );
    let room = sql!(
        "INSERT INTO batch_guard (room) SELECT 0 WHERE (SELECT COUNT(*) FROM invitations WHERE workspace_id = :ws) >= :most
         OR (SELECT COUNT(*) FROM audit_entries INDEXED BY audit_entries_of_invitations
               WHERE workspace_id = :ws AND id >= :since AND operation = 'invite_person') >= :sent",
        most = INVITATIONS_MAX,
        since = lower_bound(prefix::AUDIT_ENTRY, visit.now_ms - INVITATIONS_SENT_WINDOW_MS),
        sent = INVITATIONS_SENT_MAX
    );
    let insert = sql!(
        "INSERT INTO invitations (id, workspace_id, email, role, hash, invited_by, created_at, expires_at)
         VALUES (:id, :ws, :email, :role, :hash, :by, :now, :end)",
        id = &id,
        email = &email,
        role = role.as_str(),
        hash = hash,
        by = &session.account_id,
        now = visit.now_ms,
        end = visit.now_ms + INVITATION_MS
    );
    write(&mut context, vec![replace, room, insert], true).await?;
    let url = join_link(&services.config().base_url, &token);
    let invitation = mail::invitation(&email, session.name(), &session.workspace_name, &url);
    // The invitation stands without its mail: the page shows the link.
    let has_mail = services.config().mail.is_some();
    let sent = if has_mail && !services.may_mail_invitation(&email, visit.now_ms).await? {
        mail::Sent::Failed("this address was invited too often lately".to_owned())
    } else {
        mail::send(services, &invitation).await
    };
    let (is_mailed, note) = match sent {
        mail::Sent::Delivered => (true, None),
        mail::Sent::NotConfigured => (false, None),
        mail::Sent::Failed(detail) => {
            (false, Some(format!("the mail of invitation {id} was not sent: {detail}")))
        }
    };
    let once = json!({"invitation": {"id": id, "email": email, "role": role.as_str()}, "url": url, "mailed": is_mailed,
        "replaces": !earlier.is_empty()});
    Ok(Shown { once: Some(once), note })
}

/// Whether invitations of a workspace with these admins let people in who have no account. Whoever is invited has a
/// workspace of their own, and could let in anybody from there: not where the operator decides who gets an account.
fn check_admits(services: &Services, admins: &Rows) -> Result<(), Fault> {
    for admin in admins.iter() {
        if services.needs_no_invitation(admin.str("issuer")?, admin.str("email")?, true) {
            return Ok(());
        }
    }
    let message = "This service is not open to everybody, and no admin of this workspace is on its operator's list \
        (SIDETONE_SIGN_UP), so it cannot invite. Invite from a workspace that can, or ask the operator.";
    Err(Error::new(Code::SignUpClosed, message).into())
}

/// Withdraws an invitation.
pub(super) async fn withdraw(visit: &Visit<'_>, session: &Session, fields: &Fields) -> Result<Shown, Fault> {
    let id = paths::value(fields, "id").unwrap_or_default();
    let mut context = context(visit, session, "withdraw_invitation", Some(id));
    context.check_role(true)?;
    let delete = sql!("DELETE FROM invitations WHERE workspace_id = :ws AND id = :id RETURNING id", id = id);
    one(write(&mut context, vec![delete], true).await?, "invitation")
}

/// Accepts an invitation. It is good only for the address that it was sent to, and that address was proven.
pub(super) async fn join(visit: &Visit<'_>, session: &Session, fields: &Fields) -> Result<Shown, Fault> {
    let open = open_invitation(visit, paths::value(fields, "token").unwrap_or_default()).await?;
    if open.email != session.email {
        let message = "This invitation is for another e-mail address. Sign in with the address that it was sent to, or ask \
            for a new invitation to yours.";
        return Err(Error::new(Code::OtherInvitee, message).into());
    }
    let account = &session.account_id;
    let uses = sql!(
        "INSERT INTO batch_guard (proof) SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM invitations WHERE id = :id)",
        id = &open.id
    );
    let signed_in = sql!(
        "INSERT INTO batch_guard (key_ok) SELECT 0 WHERE NOT EXISTS
         (SELECT 1 FROM sessions WHERE hash = :hash AND account_id = :account)",
        hash = &session.hash,
        account = account
    );
    let room = sql!(
        "INSERT INTO batch_guard (room) SELECT 0 WHERE NOT EXISTS
           (SELECT 1 FROM memberships WHERE workspace_id = :workspace AND account_id = :account)
         AND ((SELECT COUNT(*) FROM memberships WHERE workspace_id = :workspace) >= :people
           OR (SELECT COUNT(*) FROM memberships WHERE account_id = :account) >= :workspaces)",
        workspace = &open.workspace_id,
        account = account,
        people = PEOPLE_MAX,
        workspaces = MEMBERSHIPS_MAX
    );
    let delete = sql!("DELETE FROM invitations WHERE id = :id", id = &open.id);
    let join = crate::storage::accounts::membership(&open.workspace_id, account, open.role, visit.now_ms);
    let show = sql!(
        "UPDATE sessions SET workspace_id = :workspace WHERE hash = :hash",
        workspace = &open.workspace_id,
        hash = &session.hash
    );
    let told = crate::storage::audit::entry_of_person(
        visit.services(),
        &open.workspace_id,
        account,
        "join_workspace",
        account.as_str(),
    );
    let written = visit.services().write([signed_in, uses, room, delete, join, show, told]).await;
    written.map_err(explained)?;
    Ok(Shown::default())
}

/// Changes what somebody may do.
pub(super) async fn set_role(visit: &Visit<'_>, session: &Session, fields: &Fields) -> Result<Shown, Fault> {
    let id = paths::value(fields, "id").unwrap_or_default();
    let mut context = context(visit, session, "set_role", Some(id));
    context.check_role(true)?;
    let role = role(fields)?;
    // The guard goes before: the last statement says whether there is such a person.
    let mut statements = keep_an_admin(id, role == Role::Admin);
    if role != Role::Admin {
        statements.push(withdraw_of(id));
    }
    statements.push(sql!(
        "UPDATE memberships SET role = :role WHERE workspace_id = :ws AND account_id = :id RETURNING account_id",
        role = role.as_str(),
        id = id
    ));
    one(write(&mut context, statements, true).await?, "person")
}

/// Removes somebody, or the person themselves.
pub(super) async fn remove(visit: &Visit<'_>, session: &Session, fields: &Fields) -> Result<Shown, Fault> {
    let id = paths::value(fields, "id").unwrap_or_default();
    let is_self = id == &*session.account_id;
    let operation = if is_self { "leave_workspace" } else { "remove_person" };
    let mut context = context(visit, session, operation, Some(id));
    context.check_role(!is_self)?;
    let mut statements = keep_an_admin(id, false);
    statements.push(withdraw_of(id));
    statements.push(sql!(
        "DELETE FROM memberships WHERE workspace_id = :ws AND account_id = :id RETURNING account_id",
        id = id
    ));
    one(write(&mut context, statements, !is_self).await?, "person")
}

/// Withdraws the invitations that a member made and those to their address: who is removed, made a member or has left could
/// otherwise come back by one, as what they were.
fn withdraw_of(id: &str) -> Statement {
    sql!(
        "DELETE FROM invitations WHERE workspace_id = :ws AND (invited_by = :id
           OR email = (SELECT email FROM accounts WHERE id = :id))
         AND EXISTS (SELECT 1 FROM memberships WHERE workspace_id = :ws AND account_id = :id)",
        id = id
    )
}

/// Refuses a change after which the workspace would have no admin.
fn keep_an_admin(id: &str, stays_admin: bool) -> Vec<Statement> {
    if stays_admin {
        return Vec::new();
    }
    vec![sql!(
        "INSERT INTO batch_guard (admins) SELECT 0 WHERE NOT EXISTS
         (SELECT 1 FROM memberships WHERE workspace_id = :ws AND role = 'admin' AND account_id <> :id)
         AND EXISTS (SELECT 1 FROM memberships WHERE workspace_id = :ws AND account_id = :id)",
        id = id
    )]
}

async fn write(context: &mut Context, statements: Vec<Statement>, for_admins: bool) -> Result<bool, Fault> {
    let written = match context.write(statements.clone()).await {
        // The role of the person may be what has changed.
        Err(Fault::Stale) => {
            context.check_role(for_admins)?;
            context.write(statements).await
        }
        written => written,
    };
    match written {
        Ok(rows) => Ok(rows.last().is_some_and(|rows| !rows.is_empty())),
        Err(Fault::Storage(error)) => Err(explained(error)),
        Err(fault) => Err(fault),
    }
}

fn explained(error: DatabaseError) -> Fault {
    if error.is_constraint("last_admin") {
        return Error::new(Code::LimitReached, "A workspace needs an admin. Make somebody else one first.")
            .into();
    }
    if error.is_constraint("limit_reached") {
        return Error::new(
            Code::LimitReached,
            "There is no room for more people or invitations: remove one first. If many were invited lately, wait for an hour.",
        )
        .into();
    }
    if error.is_constraint("proof_used") {
        return crate::storage::accounts::used_proof().into();
    }
    if error.is_constraint("unknown_key") {
        return auth::session_over().into();
    }
    error.into()
}

fn one(found: bool, noun: &str) -> Result<Shown, Fault> {
    if found { Ok(Shown::default()) } else { Err(Error::not_found(noun).into()) }
}
