//! Shows a page: runs its reads in the name of the session and renders what they answer.
use bytes::Bytes;
use http::Response;
use serde_json::{Map, Value};

use super::frame::{Frame, Page, Provided, Read};
use super::visit::Visit;
use super::{answers, pages, paths, people, reply, sign_in};
use crate::base::error::{Code, Error};
use crate::base::response::with_incident;
use crate::config::Config;
use crate::interfaces::dispatch::{self, Raw};
use crate::operations;
use crate::operations::context::{Actor, Context, Identity, Principal};
use crate::operations::listing;
use crate::operations::validate::Strictness;
use crate::storage::accounts::Session;
use crate::storage::fault::Fault;

/// What a form adds to the page that it returns to.
#[derive(Default)]
pub(super) struct Outcome {
    pub problem: Option<Error>,
    pub typed: Vec<(String, String)>,
    pub secret_once: Option<Value>,
    /// The operation that was done.
    pub done: Option<String>,
}

/// What reads say beside what the page shows.
#[derive(Default)]
struct Beside {
    /// The rest of lists: the parameter that continues each, and its value.
    continues: Vec<(String, String)>,
    /// What went wrong on our side although the read has an answer; for the log.
    incident: Option<String>,
}

/// Who asks, in the words of operations.
pub(super) fn principal(session: &Session) -> Principal {
    let actor = Actor::Person { account_id: session.account_id.clone(), role: session.role };
    Principal::Session(session.hash.clone(), Identity { workspace_id: session.workspace_id.clone(), actor })
}

/// The page at the address of the request.
pub(super) async fn address(visit: &Visit<'_>, session: &Session) -> Result<Response<Bytes>, Fault> {
    let query = visit.query();
    let done = paths::value(&query, "done").map(str::to_owned);
    page(visit, session, visit.path(), query, Outcome { done, ..Outcome::default() }).await
}

/// The page at an address, with the outcome of a form.
pub(super) async fn page(
    visit: &Visit<'_>,
    session: &Session,
    path: &str,
    query: Vec<(String, String)>,
    outcome: Outcome,
) -> Result<Response<Bytes>, Fault> {
    let status = outcome.problem.as_ref().map_or(200, |error| error.code.status());
    let problem = outcome.problem.as_ref().map(|error| error.to_json(visit.request_id)["error"].take());
    let found = paths::find(pages::PAGES, path);
    let forms = found.as_ref().map_or(&[][..], |(page, _)| page.forms);
    let base = match &found {
        Some((page, values)) if problem_code(&outcome) == Some(Code::RevisionConflict) => {
            base(visit, session, page, values, &outcome.typed).await?
        }
        _ => Value::Null,
    };
    let frame = Frame {
        workspace_name: session.workspace_name.clone(),
        workspace_id: session.workspace_id.to_string(),
        person_email: session.name().to_owned(),
        role: session.role,
        path: path.to_owned(),
        query,
        csrf: visit.csrf_of_session(session),
        once: visit.request_id.to_string(),
        now_ms: visit.now_ms,
        origin: visit.services().config().base_url.clone(),
        problem,
        base,
        typed: outcome.typed,
        notice: outcome.done.as_deref().and_then(notice),
        carriers: visit.services().config().carriers.names().collect(),
        provided: provided(visit.services().config()),
        has_mail: visit.services().config().mail.is_some(),
        has_style: visit.has_style(),
        secret_once: outcome.secret_once,
        continues: Vec::new(),
        schemas: forms.iter().map(|id| Ok((*id, schema(visit, id)?))).collect::<Result<_, Fault>>()?,
    };
    let Some((page, values)) = found else {
        let error = Error::new(Code::NotFound, "There is no such page. The menu lists all of them.");
        return Ok(failure(visit, &frame, error, None, &Value::Null));
    };
    let mut beside = Beside::default();
    let read = read_all(visit, session, page, &values, &frame.query, &mut beside).await;
    let Beside { continues, incident } = beside;
    match read {
        Ok(read) => {
            let shown = reply::page(status, (page.render)(&Frame { continues, ..frame }, &read));
            Ok(with_incident(shown, incident))
        }
        Err(fault) => {
            let (error, why) = fault.split();
            let incident = why.or(incident);
            if error.code == Code::Unauthorized {
                return Ok(sign_in::ask(visit));
            }
            let workspaces = match error.code {
                Code::NotFound => visit.services().workspaces_of(session).await?,
                _ => Value::Null,
            };
            Ok(failure(visit, &frame, error, incident, &workspaces))
        }
    }
}

fn provided(config: &Config) -> Provided {
    let transcriber = config.speech.default_transcriber.clone().unwrap_or_default();
    Provided {
        defaults: vec![
            ("model", config.default_model.clone()),
            ("voice", config.default_voice.clone()),
            ("transcriber", transcriber),
        ],
        models: config.catalog.providers.keys().cloned().collect(),
        speech: config.speech.providers.keys().cloned().collect(),
    }
}

fn problem_code(outcome: &Outcome) -> Option<Code> {
    outcome.problem.as_ref().map(|error| error.code)
}

/// The revision that a form named which met another: what its person had read. Null where it is kept no more.
async fn base(
    visit: &Visit<'_>,
    session: &Session,
    page: &Page,
    values: &[(&'static str, String)],
    typed: &[(String, String)],
) -> Result<Value, Fault> {
    const REVISIONS: Read =
        Read { operation: "list_assistant_revisions", query: &["after", "limit"], fixed: &[], after: "" };
    let revision = paths::value(typed, "_revision").and_then(|text| text.parse::<i64>().ok());
    let Some(next) = revision.and_then(|revision| revision.checked_add(1)) else { return Ok(Value::Null) };
    if page.reads.iter().all(|read| read.operation != "get_assistant") {
        return Ok(Value::Null);
    }
    // The list is newest first: the one after the next newer one.
    let after = listing::cursor(&next.to_string());
    let query = [("after".to_owned(), after), ("limit".to_owned(), "1".to_owned())];
    match run_read(visit, session, &REVISIONS, values, &query, &mut Beside::default()).await {
        Ok(mut found) => Ok(found.get_mut(0).map(Value::take).unwrap_or_default()),
        Err(Fault::Refused(_)) => Ok(Value::Null),
        Err(fault) => Err(fault),
    }
}

fn failure(
    visit: &Visit<'_>,
    frame: &Frame,
    error: Error,
    incident: Option<String>,
    workspaces: &Value,
) -> Response<Bytes> {
    let told = error.to_json(visit.request_id)["error"].take();
    with_incident(reply::page(error.code.status(), pages::failure(frame, &told, workspaces)), incident)
}

/// The page for a failure before there is a session.
pub(super) fn fault(visit: &Visit<'_>, fault: Fault) -> Response<Bytes> {
    let (error, incident) = fault.split();
    with_incident(message(visit, &error), incident)
}

/// A page with one message, for somebody without a session or a form that is not ours.
pub(super) fn message(visit: &Visit<'_>, error: &Error) -> Response<Bytes> {
    let told = error.to_json(visit.request_id)["error"].take();
    reply::page(error.code.status(), pages::message(&told))
}

async fn read_all(
    visit: &Visit<'_>,
    session: &Session,
    page: &Page,
    values: &[(&'static str, String)],
    query: &[(String, String)],
    beside: &mut Beside,
) -> Result<Vec<Value>, Fault> {
    let mut all = Vec::with_capacity(page.reads.len());
    for read in page.reads {
        all.push(run_read(visit, session, read, values, query, beside).await?);
    }
    Ok(all)
}

async fn run_read(
    visit: &Visit<'_>,
    session: &Session,
    read: &Read,
    values: &[(&'static str, String)],
    query: &[(String, String)],
    beside: &mut Beside,
) -> Result<Value, Fault> {
    match read.operation {
        "list_sessions" => return visit.services().sessions_of(session, visit.now_ms).await,
        "list_workspaces" => return visit.services().workspaces_of(session).await,
        "list_people" => return people::list(visit, session).await,
        "list_invitations" => return people::invitations(visit, session).await,
        "get_invitation" => return people::invitation(visit, session, query).await,
        _ => {}
    }
    let operation = operations::by_id(read.operation)
        .ok_or_else(|| Fault::Bug(format!("a page reads {}, which is no operation", read.operation)))?;
    let value = |name: &str| values.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
    let fixed = |text: &str| {
        let filled = text.strip_prefix('{').and_then(|rest| value(rest.strip_suffix('}')?));
        filled.unwrap_or_else(|| text.to_owned())
    };
    let in_path = |name: &str| {
        let own = read.fixed.iter().find(|(known, _)| *known == name).map(|(_, text)| fixed(text));
        own.or_else(|| value(name)).unwrap_or_default()
    };
    let path = operation.path_names().map(in_path).collect();
    let mut sent = Map::new();
    for (name, text) in
        read.fixed.iter().filter(|(name, _)| operation.path_names().all(|known| known != *name))
    {
        sent.insert((*name).to_owned(), fixed(text).into());
    }
    for name in read.query {
        // A filter that was left empty is none.
        if let Some(text) = paths::value(query, name).filter(|text| !text.is_empty()) {
            sent.insert((*name).to_owned(), text.into());
        }
    }
    let after = paths::value(query, read.after).filter(|text| !text.is_empty());
    if let Some(text) = after.filter(|_| !read.after.is_empty()) {
        sent.insert("after".to_owned(), text.into());
    }
    let raw = Raw {
        after_event: 0,
        path,
        query: sent,
        body: None,
        if_revision: None,
        idempotency_key: None,
        strictness: Strictness::Strict,
        problems: Vec::new(),
    };
    let mut context = Context::new(visit.services().clone(), visit.now_ms, principal(session));
    let answer = dispatch::dispatch(visit.api, &mut context, operation, raw).await?;
    beside.incident = beside.incident.take().or(context.take_incident());
    if let Some(next) = answer.next.filter(|_| !read.after.is_empty()) {
        beside.continues.push((read.after.to_owned(), next.value));
    }
    match read.operation {
        "list_calls" => answers::calls(answer.body.as_deref()),
        _ => answers::whole(answer.body.as_deref()),
    }
}

/// What an operation takes: the schema of its body, or of a read's query.
fn schema(visit: &Visit<'_>, id: &str) -> Result<Value, Fault> {
    let operation = operations::by_id(id)
        .ok_or_else(|| Fault::Bug(format!("a page has a form of {id}, which is no operation")))?;
    let schemas = visit.api.interfaces().schemas(operation)?;
    Ok(schemas.body.as_ref().or(schemas.query.as_ref()).cloned().unwrap_or(Value::Null))
}

/// What a form has done, in a word. The address names the operation, so that nobody can write words of their own there.
fn notice(done: &str) -> Option<String> {
    let known = operations::by_id(done).is_some() || super::forms::OWN.contains(&done);
    let word = match done.split('_').next()? {
        "test" | "redeliver" => "The delivery was queued.",
        "bind" => "The number is bound.",
        "restore" => "Restored, as a new revision. What was deleted since is not attached.",
        "invite" => "Invited.",
        "join" => "You have joined this workspace.",
        "create" => "Created.",
        "update" | "set" => "Saved.",
        "delete" | "unbind" => "Deleted.",
        "revoke" => "Revoked.",
        "start" | "place" => "Started.",
        "switch" => "You are now in this workspace.",
        _ => "Done.",
    };
    known.then(|| word.to_owned())
}
