//! The source of a move: a workspace is closed, frozen, and handed over or canceled.
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use serde_json::{Value, json};
use url::Url;

use super::replies::{self, Answer, Asked, Offered};
use crate::base::error::{Code, Error};
use crate::base::ids::{WorkspaceId, is_ulid, prefix};
use crate::base::response::{empty_response, method_not_allowed, with_note};
use crate::services::Services;
use crate::storage::fault::Fault;
use crate::storage::moves::cancel_export::cancel_export;
use crate::storage::moves::erase::{self, Erasing};
use crate::storage::moves::freeze::{self, Freeze};
use crate::storage::moves::release::{self, Outcome, Receiver};
use crate::storage::moves::requests::{Closing, Releasing};
use crate::storage::moves::{Erased, Move, Progress, Refusal, State, Wait, head, parts};

/// The longest address of a host.
const BASE_URL_BYTES_MAX: usize = 2_048;

/// What can be asked of a workspace that moves away.
#[derive(Clone, Copy)]
enum Step {
    Close,
    Read,
    Cancel,
    Part,
    Release,
    Erase,
}

const STEPS: &[Offered<Step>] = &[
    ("", "POST", "export_close", Step::Close),
    ("", "GET", "export_read", Step::Read),
    ("", "DELETE", "export_cancel", Step::Cancel),
    ("parts", "GET", "export_part", Step::Part),
    ("release", "POST", "export_release", Step::Release),
    ("erase", "POST", "export_erase", Step::Erase),
];

/// Answers the requests below `/operator/exports/{workspace}`.
pub(super) async fn answer(
    services: &Services,
    request: &Request<Bytes>,
    workspace: &str,
    rest: &[&str],
) -> Answer {
    match Asked::read(STEPS, request, workspace, rest) {
        Err(error) => Answer::refused(error),
        Ok(asked) => {
            let outcome = run(services, request, asked.step, &asked.workspace_id).await;
            asked.answer(outcome)
        }
    }
}

async fn run(
    services: &Services,
    request: &Request<Bytes>,
    step: Step,
    workspace_id: &WorkspaceId,
) -> Result<Response<Bytes>, Fault> {
    let services = &services.at_only_home_of(workspace_id).await?;
    match step {
        Step::Close => close(services, request, workspace_id).await,
        Step::Read => Ok(replies::ok(&told(services, &found(services, workspace_id).await?).await?)),
        Step::Cancel => {
            let was_moving = cancel_export(services, workspace_id).await?.map_err(replies::refused)?;
            let response = empty_response(StatusCode::NO_CONTENT);
            Ok(match was_moving {
                true => with_note(response, format!("{workspace_id} does not move: its export was canceled")),
                false => response,
            })
        }
        Step::Part => {
            let after = replies::parameter(request, "after");
            let part = parts::next_part(services, workspace_id, after.as_deref()).await?;
            let part = part.map_err(replies::refused)?.to_bytes();
            let mut response = Response::new(part);
            let kind = HeaderValue::from_static("application/octet-stream");
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
            Ok(response)
        }
        Step::Release => release(services, request, workspace_id).await,
        Step::Erase => erase(services, workspace_id).await,
    }
}

/// Closes the workspace, and freezes it if nothing is under way any more. To be asked until it is frozen.
async fn close(
    services: &Services,
    request: &Request<Bytes>,
    workspace_id: &WorkspaceId,
) -> Result<Response<Bytes>, Fault> {
    let Closing { without_late_prices } = replies::body(request)?;
    let asked_at = services.now();
    let begun = freeze::close(services, workspace_id).await?.map_err(replies::refused)?;
    match begun.state {
        State::Closing => {}
        State::Frozen => return Ok(replies::ok(&told(services, &begun).await?)),
        _ => return Err(replies::refused(Refusal::Moved)),
    }
    match freeze::freeze(services, workspace_id, without_late_prices).await?.map_err(replies::refused)? {
        Freeze::Waits(waits) => {
            let mut reply = told(services, &begun).await?;
            reply["waiting_for"] = waits.iter().map(wait).collect();
            let response = replies::ok(&reply);
            // Once, however often it is asked.
            Ok(match begun.began_at >= asked_at {
                true => with_note(response, format!("{workspace_id} is closed for a move ({})", begun.id)),
                false => response,
            })
        }
        Freeze::Frozen => {
            let frozen = found(services, workspace_id).await?;
            let note = format!("{workspace_id} is frozen for a move ({})", frozen.id);
            Ok(with_note(replies::ok(&told(services, &frozen).await?), note))
        }
    }
}

/// Hands the workspace over, and tells what opens it on the other host.
async fn release(
    services: &Services,
    request: &Request<Bytes>,
    workspace_id: &WorkspaceId,
) -> Result<Response<Bytes>, Fault> {
    let Releasing { export_id, import_id, moved_to, instead_of } = replies::body(request)?;
    if !is_import(&import_id) {
        let message = "must be the id of an import, imp_…, as `sidetone import` shows it";
        return Err(Error::field("import_id", message).into());
    }
    let base_url = base_url(&moved_to)?;
    let receiver = Receiver {
        export_id: &export_id,
        import_id: &import_id,
        base_url: &base_url,
        instead_of: instead_of.as_deref(),
    };
    let released = release::release(services, workspace_id, receiver).await?.map_err(replies::refused)?;
    // The code is for whoever asks, and for no log.
    let response = replies::ok(&json!({"code": released.code.to_text()}));
    Ok(match released.outcome {
        Outcome::Over => {
            with_note(response, format!("{workspace_id} was handed over to {import_id} at {base_url}"))
        }
        Outcome::Again => response,
        Outcome::Instead => {
            let before = instead_of.unwrap_or_default();
            let note =
                format!("{workspace_id} was handed over to {import_id} at {base_url} instead of {before}");
            with_note(response, note)
        }
    })
}

fn is_import(id: &str) -> bool {
    id.strip_prefix(prefix::IMPORT).and_then(|rest| rest.strip_prefix('_')).is_some_and(is_ulid)
}

/// The address of a host, which clients are told: without a slash at its end, as a setting has it.
fn base_url(text: &str) -> Result<String, Error> {
    let url = Url::parse(text).ok().filter(|url| {
        let is_plain = url.username().is_empty() && url.password().is_none();
        let has_more = url.query().is_some() || url.fragment().is_some();
        matches!(url.scheme(), "http" | "https") && url.has_host() && is_plain && !has_more
    });
    match url.filter(|_| text.len() <= BASE_URL_BYTES_MAX) {
        Some(_) => Ok(text.trim_end_matches('/').to_owned()),
        None => Err(Error::field("moved_to", "must be a URL such as https://voice.example.com")),
    }
}

/// Deletes the next rows of a workspace that was handed over.
async fn erase(services: &Services, workspace_id: &WorkspaceId) -> Result<Response<Bytes>, Fault> {
    let step = erase::erase(services, workspace_id).await?.map_err(replies::refused)?;
    Ok(match step {
        Erasing::Rows(erased) => {
            let mut told = json!({"state": State::Erasing.as_str()});
            tell_erased(&mut told, &erased);
            replies::ok(&told)
        }
        Erasing::Gone(now) => {
            let response = replies::ok(&json!({"state": State::Gone.as_str()}));
            if now { with_note(response, format!("{workspace_id} was erased")) } else { response }
        }
    })
}

fn tell_erased(told: &mut Value, erased: &Erased) {
    told["table"] = json!(erased.table);
    told["rows_erased"] = json!(erased.rows);
}

pub(super) fn wait(wait: &Wait) -> Value {
    let mut told = json!({"what": wait.what.as_str(), "count": wait.count});
    if let Some(until) = wait.until {
        told["until"] = json!(until);
    }
    told
}

/// The export of this workspace.
async fn found(services: &Services, workspace_id: &WorkspaceId) -> Result<Move, Fault> {
    let found = Move::of(services, workspace_id).await?.filter(|found| found.is_export());
    found.ok_or_else(|| Error::new(Code::NotFound, "This workspace does not move away from here.").into())
}

/// How far the export is.
async fn told(services: &Services, found: &Move) -> Result<Value, Fault> {
    let mut told = json!({"state": found.state.as_str(), "export_id": found.id});
    if let State::Frozen | State::Released = found.state {
        told["head"] = json!(head::head(services, found).await?);
    }
    if let Some(import_id) = &found.other_id {
        told["import_id"] = json!(import_id);
        told["moved_to"] = json!(found.moved_to);
    }
    if found.state == State::Released {
        told["released_at"] = json!(found.changed_at);
    }
    if let State::Erasing = found.state
        && let Some(erased) = Progress::of(found)?.erased
    {
        tell_erased(&mut told, &erased);
    }
    Ok(told)
}

/// Finds a workspace by its id or name: `GET /operator/workspaces?named=…`.
pub(super) async fn find(services: &Services, request: &Request<Bytes>) -> Answer {
    if *request.method() != Method::GET {
        return Answer::refused(method_not_allowed("GET"));
    }
    let named = replies::parameter(request, "named").unwrap_or_default();
    let outcome = find_named(services, &named).await;
    Answer { operation: Some("find_workspace"), workspace_id: None, outcome }
}

async fn find_named(services: &Services, named: &str) -> Result<Response<Bytes>, Fault> {
    let (services, id) = match services.find_workspace_anywhere(named).await {
        Err(Fault::Refused(error)) => return Err(Error { code: Code::NotFound, ..error }.into()),
        found => found?,
    };
    let found = Move::of(&services, &id).await?;
    let state = found.map(|found| found.state.as_str());
    let name = head::name(&services, &id).await?;
    Ok(replies::ok(&json!({"id": id, "name": name, "state": state})))
}
