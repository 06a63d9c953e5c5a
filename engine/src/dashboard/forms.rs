//! Forms: each runs one operation, and returns to a page.
use bytes::Bytes;
use http::Response;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

use super::people::Shown;
use super::show::{self, Outcome};
use super::visit::Visit;
use super::{answers, attached, fields, pages, paths, people, reply, simulate, templates};
use crate::base::error::{Code, Error};
use crate::base::hash::sha256_hex;
use crate::base::limits::FORM_FIELDS_MAX;
use crate::base::phone::E164;
use crate::base::response::with_note;
use crate::base::whole_number;
use crate::interfaces::dispatch::{self, Answer, Raw};
use crate::operations;
use crate::operations::context::Context;
use crate::operations::operation::Operation;
use crate::operations::validate::Strictness;
use crate::storage::accounts::Session;
use crate::storage::fault::Fault;

/// What forms can do besides operations.
pub const OWN: &[&str] = &[
    "revoke_session",
    "switch_workspace",
    "invite_person",
    "withdraw_invitation",
    "join_workspace",
    "set_role",
    "remove_person",
    simulate::FORM,
    templates::CHOOSE,
];

/// Those of them that are about the person: the same in every workspace.
const OF_PERSON: &[&str] = &["revoke_session", "switch_workspace", "join_workspace"];

/// Operations whose answer the page shows although it contains no secret.
const SHOWN: &[&str] = &["test_tool"];

/// The field that tells one rendered form from another.
pub(super) const ONCE: &str = "_once";

/// When what the form changes was last changed, as the page was read.
pub(super) const READ: &str = "_read";

/// Names of the choices after a conflict begin with this: `_use.first_message`.
pub(super) const USE: &str = "_use.";
/// The revision that was read before a conflict.
pub(super) const MET: &str = "_met";
/// The choice for what is saved: the field is not sent.
pub(super) const THEIRS: &str = "theirs";

pub(super) type Fields = Vec<(String, String)>;

/// The fields of a form.
pub(super) fn read(visit: &Visit<'_>) -> Result<Fields, Error> {
    let request = &visit.incoming.request;
    let kind = request.headers().get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let is_form = kind.is_some_and(|kind| {
        kind.split(';').next().is_some_and(|kind| kind.trim() == "application/x-www-form-urlencoded")
    });
    if !is_form {
        let message = "Send the form as `application/x-www-form-urlencoded`.";
        return Err(Error::new(Code::UnsupportedMediaType, message));
    }
    let fields: Fields = form_urlencoded::parse(request.body())
        .take(FORM_FIELDS_MAX + 1)
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    if fields.len() > FORM_FIELDS_MAX {
        return Err(Error::field("form", format!("must have at most {FORM_FIELDS_MAX} fields")));
    }
    Ok(fields::folded(fields))
}

/// Refuses a form that no page of ours has sent: `known` recognizes its proof, and says what it is of.
pub(super) fn check<'f, T>(
    visit: &Visit<'_>,
    fields: &'f Fields,
    known: impl FnOnce(&'f str) -> Option<T>,
) -> Result<T, Error> {
    let sent = paths::value(fields, "_csrf").filter(|_| !visit.is_from_elsewhere());
    sent.and_then(known).ok_or_else(|| {
        let message = "This form is out of date, or it is not ours. Go back, load the page again, and send it once more.";
        Error::new(Code::ForbiddenOrigin, message)
    })
}

/// A form of somebody who is signed in.
pub(super) async fn route(
    visit: &Visit<'_>,
    session: &Session,
    path: &str,
) -> Result<Response<Bytes>, Fault> {
    let mut fields = read(visit)?;
    let made_for = check(visit, &fields, |sent| visit.workspace_of_form(session, sent))?;
    if path == "/dashboard/sign-out" {
        visit.services().sign_out(&session.hash).await?;
        return Ok(reply::with_cookie(reply::redirect("/dashboard/sign-in"), &visit.drop_session()));
    }
    let Some(id) = path.strip_prefix("/dashboard/do/") else {
        return Err(Error::new(Code::NotFound, "There is no such form.").into());
    };
    let back = address(&fields, "_back")?.unwrap_or_else(|| "/dashboard".to_owned());
    if made_for != &*session.workspace_id && !OF_PERSON.contains(&id) {
        return other_workspace(visit, session, made_for, &back).await;
    }
    let then = address(&fields, "_then")?;
    if id == simulate::FORM {
        return match simulate::caller(visit, session, &fields).await {
            Ok(run) => {
                let to = format!("/dashboard/simulations/runs/{run}");
                Ok(reply::redirect(&paths::with_parameter(&to, "done", "start_simulation_run")))
            }
            Err(fault) => failed(visit, session, &back, fields, fault).await,
        };
    }
    if id == templates::CHOOSE {
        return templates::choose(visit, session, &fields).await;
    }
    if OWN.contains(&id) {
        return match own(visit, session, id, &fields).await {
            Ok(Shown { once: None, .. }) => {
                Ok(reply::redirect(&paths::with_parameter(then.as_ref().unwrap_or(&back), "done", id)))
            }
            Ok(Shown { once, note }) => {
                let outcome = Outcome { secret_once: once, done: Some(id.to_owned()), ..Outcome::default() };
                let response = page(visit, session, &back, outcome).await?;
                Ok(match note {
                    Some(note) => with_note(response, note),
                    None => response,
                })
            }
            Err(Fault::Refused(error)) if error.code != Code::Unauthorized => {
                returned(visit, session, &back, fields, error).await
            }
            Err(Fault::Refused(_)) => Ok(super::sign_in::ask(visit)),
            Err(fault) => Err(fault),
        };
    }
    let operation = operations::by_id(id).filter(|operation| operation.method != http::Method::GET);
    let Some(operation) = operation else {
        return Err(Error::new(Code::NotFound, "There is no such form.").into());
    };
    let ran = match id {
        attached::UPDATE => attached::save(visit, session, operation, &mut fields).await,
        _ => run(visit, session, operation, &fields).await,
    };
    match ran {
        Ok(answer) => {
            let body = answers::whole(answer.body.as_deref())?;
            let to = then.map_or_else(|| Some(back.clone()), |then| fill(&then, &body)).unwrap_or(back);
            // What was made is made, and its page says what is missing: the form would make a second one.
            if let Err(fault) = templates::attach(visit, session, &fields, &body).await {
                let fault = after("The assistant is saved, without its example document.", fault);
                return failed(visit, session, &to, Fields::new(), fault).await;
            }
            let problem = match attached::attach(visit, session, id, &fields, &body).await {
                Err(Fault::Refused(error)) if error.code != Code::Unauthorized => Some(error),
                attached => attached.map(|()| None)?,
            };
            // A test is sent again with other values, and its result says whether it worked.
            let is_test = SHOWN.contains(&id);
            if answer.reveals || is_test {
                let outcome = Outcome {
                    problem,
                    secret_once: Some(body),
                    done: (!is_test && !answer.replayed).then(|| id.to_owned()),
                    typed: if is_test { typed(&fields) } else { Fields::new() },
                };
                return page(visit, session, &to, outcome).await;
            }
            match problem {
                Some(error) => returned(visit, session, &to, Fields::new(), error).await,
                None => Ok(reply::redirect(&paths::with_parameter(&to, "done", id))),
            }
        }
        Err(fault) => failed(visit, session, &back, fields, fault).await,
    }
}

/// Says which workspace a form was made for, and offers to open it.
async fn other_workspace(
    visit: &Visit<'_>,
    session: &Session,
    made_for: &str,
    back: &str,
) -> Result<Response<Bytes>, Fault> {
    let own = visit.services().workspaces_of(session).await?;
    let name = own.as_array().into_iter().flatten().find(|one| one["id"] == made_for);
    let page = pages::OtherWorkspace {
        made_for: name.map(|one| (made_for, one["name"].as_str().unwrap_or_default())),
        open: &session.workspace_name,
        back,
        csrf: &visit.csrf_of_session(session),
        request_id: visit.request_id,
    };
    Ok(reply::page(Code::OtherWorkspace.status(), pages::other_workspace(&page)))
}

/// What follows a form that failed.
async fn failed(
    visit: &Visit<'_>,
    session: &Session,
    back: &str,
    fields: Fields,
    fault: Fault,
) -> Result<Response<Bytes>, Fault> {
    match fault {
        Fault::Refused(error) if error.code != Code::Unauthorized => {
            returned(visit, session, back, fields, error).await
        }
        Fault::Refused(_) => Ok(super::sign_in::ask(visit)),
        fault => Err(fault),
    }
}

/// A refusal of what follows after something was `saved`, which says so first.
pub(super) fn after(saved: &str, fault: Fault) -> Fault {
    match fault {
        Fault::Refused(error) if error.code != Code::Unauthorized => {
            Error::new(error.code, format!("{saved} {}", error.message)).into()
        }
        fault => fault,
    }
}

/// A page with what came of a form. What it shows once, such as a secret, is in no address and in no storage: this response
/// is the only place for it.
async fn page(
    visit: &Visit<'_>,
    session: &Session,
    to: &str,
    outcome: Outcome,
) -> Result<Response<Bytes>, Fault> {
    let (path, query) = paths::split(to);
    show::page(visit, session, path, paths::query(query), outcome).await
}

/// The page that the form came from, with what was typed and what is wrong with it.
async fn returned(
    visit: &Visit<'_>,
    session: &Session,
    back: &str,
    fields: Fields,
    error: Error,
) -> Result<Response<Bytes>, Fault> {
    let outcome = Outcome { problem: Some(error), typed: typed(&fields), ..Outcome::default() };
    page(visit, session, back, outcome).await
}

/// What the person typed.
pub(super) fn typed(fields: &Fields) -> Fields {
    let is_kept = |name: &str| {
        (!name.starts_with('_') || ["_revision", READ].contains(&name)) && !gives_way(fields, name)
    };
    fields.iter().filter(|(name, _)| is_kept(name)).cloned().collect()
}

/// Whether a field is left as it is saved, because the person chose so after a conflict.
fn gives_way(fields: &Fields, name: &str) -> bool {
    fields.iter().any(|(choice, value)| choice.strip_prefix(USE) == Some(name) && value == THEIRS)
}

pub(super) async fn run(
    visit: &Visit<'_>,
    session: &Session,
    operation: &'static Operation,
    fields: &Fields,
) -> Result<Answer, Fault> {
    let value = |name: &str| paths::value(fields, name).unwrap_or_default();
    let in_path = |name: &str| match name {
        "number" => E164::without_separators(value(name)),
        _ => value(name).to_owned(),
    };
    let path: Vec<String> = operation.path_names().map(in_path).collect();
    let if_revision =
        match value("_revision") {
            "" => None,
            text if operation.revision => Some(whole_number::revision(&text.into()).ok_or_else(|| {
                Error::new(Code::InvalidIfMatch, "`_revision` is the revision that was read.")
            })?),
            _ => None,
        };
    let mut problems = Vec::new();
    let body = match &visit.api.interfaces().schemas(operation)?.body {
        Some(schema) => {
            let is_body =
                |name: &str| !name.starts_with('_') && !operation.path_names().any(|known| known == name);
            let given: Vec<(&str, &str)> = fields
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .filter(|(name, _)| is_body(name) && !gives_way(fields, name))
                .collect();
            let (body, not_json) = fields::body(schema, &given);
            problems = not_json;
            Some(Value::Object(body))
        }
        None => None,
    };
    let raw = Raw {
        after_event: 0,
        path,
        query: Map::new(),
        body,
        if_revision,
        idempotency_key: once(operation, fields),
        strictness: Strictness::Strict,
        problems,
    };
    let mut context = Context::new(visit.services().clone(), visit.now_ms, show::principal(session));
    // Refuses to change what somebody else has changed since the page was read, unless it is as this form has it.
    if let Some(read) = paths::value(fields, READ).filter(|read| !read.is_empty()) {
        context.expect_unchanged(read);
    }
    dispatch::dispatch(visit.api, &mut context, operation, raw).await
}

/// Runs an operation by its id, for a form that runs several.
pub(super) async fn run_by_id(
    visit: &Visit<'_>,
    session: &Session,
    id: &str,
    fields: &[(&str, &str)],
) -> Result<Value, Fault> {
    let operation = operations::by_id(id)
        .ok_or_else(|| Fault::Bug(format!("a form runs {id}, which is no operation")))?;
    let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let answer = run(visit, session, operation, &fields).await?;
    answers::whole(answer.body.as_deref())
}

/// The Idempotency-Key of a form: one that is sent again as it was, by a reload or a second click, does nothing twice.
fn once(operation: &Operation, fields: &Fields) -> Option<String> {
    let rendered = paths::value(fields, ONCE).filter(|value| !value.is_empty())?;
    operation.takes_idempotency_key().then(|| {
        let fields = fields.iter().filter(|(name, _)| name != "_csrf");
        let sent = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        sha256_hex(format!("{rendered}:{sent}").as_bytes())
    })
}

/// The forms in [`OWN`], and what they show once.
async fn own(visit: &Visit<'_>, session: &Session, id: &str, fields: &Fields) -> Result<Shown, Fault> {
    let value = |name: &str| paths::value(fields, name).unwrap_or_default();
    let (done, noun) = match id {
        "revoke_session" => (visit.services().revoke_session(session, value("id")).await?, "session"),
        "switch_workspace" => (visit.services().switch_workspace(session, value("id")).await?, "workspace"),
        "invite_person" => return people::invite(visit, session, fields).await,
        "withdraw_invitation" => return people::withdraw(visit, session, fields).await,
        "join_workspace" => return people::join(visit, session, fields).await,
        "set_role" => return people::set_role(visit, session, fields).await,
        _ => return people::remove(visit, session, fields).await,
    };
    let missing = || Error::new(Code::NotFound, format!("You have no such {noun}. Load the page again."));
    if done { Ok(Shown::default()) } else { Err(missing().into()) }
}

/// An address that the form names.
fn address(fields: &Fields, name: &str) -> Result<Option<String>, Error> {
    match paths::value(fields, name).filter(|address| !address.is_empty()) {
        None => Ok(None),
        Some(address) => match paths::safe(&address.replace(['{', '}'], "")) {
            Some(_) => Ok(Some(address.to_owned())),
            None => Err(Error::field(name, "must be the path of a page below /dashboard")),
        },
    }
}

/// The address with `{name}` filled from the answer. `None`: the answer has no such text.
fn fill(address: &str, answer: &Value) -> Option<String> {
    let mut filled = String::with_capacity(address.len() + 32);
    let mut rest = address;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}')?;
        filled.push_str(before);
        filled.extend(utf8_percent_encode(answer.get(name)?.as_str()?, NON_ALPHANUMERIC));
        rest = after;
    }
    filled.push_str(rest);
    // An id has underscores, which need no encoding.
    let filled = filled.replace("%5F", "_");
    paths::safe(&filled).is_some().then_some(filled)
}
