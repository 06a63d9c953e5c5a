//! The target of a move: what arrives is received, compared and opened, or canceled.
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};

use super::PATH;
use super::replies::{self, Answer, Asked, Offered};
use crate::base::email;
use crate::base::error::Error;
use crate::base::ids::WorkspaceId;
use crate::base::limits::MOVE_HEAD_BYTES_MAX;
use crate::base::response::{empty_response, method_not_allowed, with_note};
use crate::interfaces::mounted::join_link;
use crate::services::Services;
use crate::storage::fault::Fault;
use crate::storage::moves::admin::Admin;
use crate::storage::moves::arrive::{self, Begun};
use crate::storage::moves::cancel_import::{self, Canceling};
use crate::storage::moves::code::Code;
use crate::storage::moves::declined::Declined;
use crate::storage::moves::import::{self, Status};
use crate::storage::moves::open::{self, Opened};
use crate::storage::moves::part::Head;
use crate::storage::moves::requests::Opening;
use crate::storage::moves::{State, receive, verify};

/// What can be asked of a workspace that arrives, beside receiving a part.
#[derive(Clone, Copy)]
enum Step {
    Read,
    Verify,
    Open,
    Cancel,
}

const STEPS: &[Offered<Step>] = &[
    ("", "GET", "import_read", Step::Read),
    ("", "DELETE", "import_cancel", Step::Cancel),
    ("verify", "POST", "import_verify", Step::Verify),
    ("open", "POST", "import_open", Step::Open),
];

/// Whether a request brings a part of a file, which may be larger than other bodies.
pub(super) fn is_part(method: &Method, path: &str) -> bool {
    let rest = path.strip_prefix(PATH).and_then(|rest| rest.strip_prefix("imports/"));
    let place = rest.and_then(|rest| rest.split_once('/')).map(|(_, place)| place);
    *method == Method::PUT && place.and_then(|place| place.strip_prefix("parts/")).is_some()
}

/// Answers the requests below `/operator/imports`.
pub(super) async fn answer(services: &Services, request: &Request<Bytes>, rest: &[&str]) -> Answer {
    match rest {
        [] => begin(services, request).await,
        [workspace, "parts", n] => part(services, request, workspace, n).await,
        [workspace, rest @ ..] => step(services, request, workspace, rest).await,
    }
}

/// `POST /operator/imports`, with the head of the file.
async fn begin(services: &Services, request: &Request<Bytes>) -> Answer {
    if *request.method() != Method::POST {
        return Answer::refused(method_not_allowed("POST"));
    }
    let head = match read_head(request.body()) {
        Ok(head) => head,
        Err(declined) => return Answer::refused(declined.error()),
    };
    let outcome = match arrive::begin(services, &head).await {
        Ok(Begun { status, is_new, warnings }) => {
            let mut told = told(services, &status);
            told["workspace_id"] = json!(head.workspace_id);
            told["warnings"] = json!(warnings);
            let before = if is_new { None } else { Some(status.state) };
            Ok(noted(replies::ok(&told), before, &status, &head.workspace_id))
        }
        Err(fault) => Err(fault),
    };
    Answer { operation: Some("import_begin"), workspace_id: Some(head.workspace_id), outcome }
}

fn read_head(body: &[u8]) -> Result<Head, Declined> {
    if body.len() > MOVE_HEAD_BYTES_MAX {
        return Err(Declined::Form(format!("its head has more than {MOVE_HEAD_BYTES_MAX} bytes")));
    }
    let text = std::str::from_utf8(body).map_err(|_| Declined::Form("its head is not UTF-8".to_owned()))?;
    Head::from_line(text).map_err(|wrong| Declined::Form(wrong.0))
}

/// `PUT /operator/imports/{workspace}/parts/{n}`, with a part as it stands in the file.
async fn part(services: &Services, request: &Request<Bytes>, workspace: &str, n: &str) -> Answer {
    if *request.method() != Method::PUT {
        return Answer::refused(method_not_allowed("PUT"));
    }
    let n = n.parse::<u64>().ok().filter(|n| *n >= 1);
    let Some(n) = n else {
        return Answer::refused(Error::field("n", "must be the number of a part, from 1"));
    };
    let workspace_id = match replies::workspace(workspace) {
        Ok(workspace_id) => workspace_id,
        Err(error) => return Answer::refused(error),
    };
    let outcome = receive_part(services, &workspace_id, n, request.body()).await;
    Answer { operation: Some("import_part"), workspace_id: Some(workspace_id), outcome }
}

async fn receive_part(
    services: &Services,
    workspace_id: &WorkspaceId,
    n: u64,
    bytes: &Bytes,
) -> Result<Response<Bytes>, Fault> {
    let home = services.at_only_home_of(workspace_id).await?;
    let next = receive::receive(&home, workspace_id, n, bytes).await?;
    Ok(replies::ok(&json!({"next_part": next})))
}

async fn step(services: &Services, request: &Request<Bytes>, workspace: &str, rest: &[&str]) -> Answer {
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
        Step::Read => Ok(replies::ok(&told(services, &import::status(services, workspace_id).await?))),
        Step::Verify => {
            let before = import::status(services, workspace_id).await?.state;
            let status = verify::verify(services, workspace_id).await?;
            Ok(noted(replies::ok(&told(services, &status)), Some(before), &status, workspace_id))
        }
        Step::Open => open(services, request, workspace_id).await,
        Step::Cancel => Ok(match cancel_import::cancel_import(services, workspace_id).await? {
            Canceling::Rows => replies::ok(&json!({"state": State::Canceling.as_str()})),
            Canceling::Gone(now) => {
                let response = empty_response(StatusCode::NO_CONTENT);
                let note = || format!("nothing is left of an import of {workspace_id}");
                if now { with_note(response, note()) } else { response }
            }
        }),
    }
}

/// Opens the import, and invites an admin with its last step: people do not move.
async fn open(
    services: &Services,
    request: &Request<Bytes>,
    workspace_id: &WorkspaceId,
) -> Result<Response<Bytes>, Fault> {
    let Opening { code, admin } = replies::body(request)?;
    let code = Code::parse(&code).ok_or(Declined::WrongCode)?;
    let admin = admin.map(|typed| invitee(services, &typed)).transpose()?;
    let admin = admin.map(|email| Admin::new(services, &code, email));
    let before = import::status(services, workspace_id).await?.state;
    let opened = open::open_for(services, workspace_id, &code, admin.as_ref()).await?;
    let Opened { status, without_secrets } = opened;
    let mut told = told(services, &status);
    if !without_secrets.is_empty() {
        told["without_secrets"] = json!(without_secrets);
    }
    if let (State::Running, Some(admin)) = (status.state, &admin)
        && let Some(token) = admin.token(services, workspace_id).await?
    {
        told["invitation_url"] = json!(join_link(&services.config().base_url, &token));
    }
    Ok(noted(replies::ok(&told), Some(before), &status, workspace_id))
}

/// The address of whoever is to be an admin.
fn invitee(services: &Services, typed: &str) -> Result<String, Error> {
    // The dashboard has one database.
    if services.shard().is_some_and(|shard| shard != 0) {
        let message =
            "must be left out: the dashboard does not show the database that this workspace has come to";
        return Err(Error::field("admin", message));
    }
    let wrong = || Error::field("admin", "must be an e-mail address, such as anna@example.com");
    email::address(typed).ok_or_else(wrong)
}

/// How far the import is.
fn told(services: &Services, status: &Status) -> Value {
    let Status { state, export_id, next_part, chain, comparing, import_id } = status;
    // The address that clients of the workspace use here: the source is told it.
    let base_url = &services.config().base_url;
    let mut told = json!({"state": state.as_str(), "export_id": export_id, "base_url": base_url});
    for (name, value) in [
        ("next_part", next_part.map(Value::from)),
        ("chain", chain.as_ref().map(|chain| Value::from(chain.as_str()))),
        ("table", comparing.clone().map(Value::from)),
        ("import_id", import_id.clone().map(Value::from)),
    ] {
        if let Some(value) = value {
            told[name] = value;
        }
    }
    told
}

/// What the log says if the state was another one before; `None`: there was no import.
fn noted(
    response: Response<Bytes>,
    before: Option<State>,
    status: &Status,
    workspace_id: &WorkspaceId,
) -> Response<Bytes> {
    let Status { state, export_id, import_id, .. } = status;
    let import_id = import_id.as_deref().unwrap_or_default();
    let note = match state {
        _ if before == Some(*state) => return response,
        State::Arriving => format!("{workspace_id} arrives ({export_id})"),
        State::Arrived => format!("{workspace_id} has arrived ({import_id})"),
        State::Running => format!("{workspace_id} runs here ({import_id})"),
        _ => return response,
    };
    with_note(response, note)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_part_may_be_large() {
        let workspace = "ws_01aryz6s41tsv4rrffq69g5faw";
        assert!(is_part(&Method::PUT, &format!("/operator/imports/{workspace}/parts/1")));
        for (method, path) in [
            (Method::POST, format!("/operator/imports/{workspace}/parts/1")),
            (Method::PUT, format!("/operator/imports/{workspace}/verify")),
            (Method::PUT, format!("/operator/imports/{workspace}")),
            (Method::PUT, "/operator/imports/parts/1".to_owned()),
            (Method::PUT, "/operator/exports/x/parts/1".to_owned()),
            (Method::PUT, "/numbers/imports/x/parts/1".to_owned()),
        ] {
            assert!(!is_part(&method, &path), "{method} {path}");
        }
    }
}
