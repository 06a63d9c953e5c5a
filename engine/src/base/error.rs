//! The error envelope of every interface. It never contains private detail.
use crate::base::ids::RequestId;
use std::borrow::Cow;

use serde_json::{Value, json};

pub use crate::base::field::FieldProblem;

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $name:ident = $status:literal $text:literal;)*) => {
        /// Every code an error can carry, with its HTTP status.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code { $($(#[doc = $doc])* $name,)* }

        impl Code {
            /// Every code, for the documentation.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];
            /// The HTTP status that is sent with the code.
            pub const fn status(self) -> u16 { match self { $(Code::$name => $status,)* } }
            /// The code as clients see it.
            pub const fn as_str(self) -> &'static str { match self { $(Code::$name => $text,)* } }
            /// When the code is sent, for the documentation.
            pub fn meaning(self) -> &'static str { match self { $(Code::$name => concat!($($doc),*).trim_ascii(),)* } }
        }
    };
}

codes! {
    /// The body is not valid JSON.
    InvalidJson = 400 "invalid_json";
    /// A path or query value has the wrong form.
    InvalidParameter = 400 "invalid_parameter";
    /// If-Match is neither `3` nor `"3"`.
    InvalidIfMatch = 400 "invalid_if_match";
    /// The key is missing, unknown or revoked.
    Unauthorized = 401 "unauthorized";
    /// The test token is missing or was not signed by this server.
    InvalidToken = 401 "invalid_token";
    /// The test token has expired; request a new one.
    TokenExpired = 401 "token_expired";
    /// The monthly spend limit is reached, or conversations in progress have reserved the rest.
    SpendLimitReached = 402 "spend_limit_reached";
    /// The request comes from a browser page of another origin; MCP accepts only its own and local origins.
    ForbiddenOrigin = 403 "forbidden_origin";
    /// Only an admin of the workspace can do this; API keys can.
    AdminsOnly = 403 "admins_only";
    /// The operator lets only invited people sign in for the first time.
    SignUpClosed = 403 "sign_up_closed";
    /// The invitation is for another e-mail address than that of the person who is signed in.
    OtherInvitee = 403 "other_invitee";
    /// The carrier's callback does not carry a valid signature.
    InvalidSignature = 403 "invalid_signature";
    /// The id or route is unknown, or the id belongs to another workspace.
    NotFound = 404 "not_found";
    /// The route does not accept this method; `Allow` lists the methods it accepts.
    MethodNotAllowed = 405 "method_not_allowed";
    /// The request did not arrive in time.
    RequestTimeout = 408 "request_timeout";
    /// If-Match does not name the current revision.
    RevisionConflict = 409 "revision_conflict";
    /// The workspace already has a resource with this name.
    NameTaken = 409 "name_taken";
    /// Another workspace owns the number, or the operator has not given it to this one.
    NumberInUse = 409 "number_in_use";
    /// A form of the dashboard was made in another workspace than the one that is open by now.
    OtherWorkspace = 409 "other_workspace";
    /// A run in progress cannot be deleted.
    RunInProgress = 409 "run_in_progress";
    /// A call that has not ended cannot be deleted.
    CallInProgress = 409 "call_in_progress";
    /// The recording is still being written.
    RecordingNotReady = 409 "recording_not_ready";
    /// The webhook is disabled and receives nothing.
    WebhookDisabled = 409 "webhook_disabled";
    /// The workspace reached its limit for this resource.
    LimitReached = 409 "limit_reached";
    /// The test token was already used, or its link does not start again; it opens one conversation.
    TokenUsed = 409 "token_used";
    /// The operator has not configured this carrier.
    CarrierNotConfigured = 409 "carrier_not_configured";
    /// The same request, with the same Idempotency-Key, is still running or its outcome is unknown.
    RequestInProgress = 409 "request_in_progress";
    /// The Idempotency-Key was already used with a different request.
    IdempotencyKeyReused = 409 "idempotency_key_reused";
    /// The operator's move of a workspace cannot go on like this; `details.reason` says why.
    MoveRefused = 409 "move_refused";
    /// The workspace has moved to another host; `details.base_url` says where to.
    WorkspaceMoved = 410 "workspace_moved";
    /// The body is larger than 1 MiB.
    BodyTooLarge = 413 "body_too_large";
    /// The body's content type is not application/json.
    UnsupportedMediaType = 415 "unsupported_media_type";
    /// The range starts after the end of the recording; `Content-Range` gives its length.
    RangeNotSatisfiable = 416 "range_not_satisfiable";
    /// The route is a WebSocket; the request must ask for an upgrade.
    UpgradeRequired = 426 "upgrade_required";
    /// The request breaks rules; `details.fields` lists each field with its problem.
    ValidationFailed = 422 "validation_failed";
    /// A paid MCP action was called without `confirm: true`.
    ConfirmationRequired = 422 "confirmation_required";
    /// The assistant's texts use variables that have no value; `details.names` lists them.
    MissingVariables = 422 "missing_variables";
    /// A tool or webhook URL does not lead to a public server, or has credentials in it.
    PrivateTarget = 422 "private_target";
    /// A tool or webhook URL starts with `http://`.
    InsecureTarget = 422 "insecure_target";
    /// Too many invalid keys from one address; `Retry-After` gives the time to wait.
    TooManyInvalidCredentials = 429 "too_many_invalid_credentials";
    /// Too many sign-in codes were asked for or tried.
    TooManyCodes = 429 "too_many_codes";
    /// The workspace reached its limit of concurrent telephone calls.
    TooManyCalls = 429 "too_many_calls";
    /// The test link has begun several conversations within a minute; `Retry-After` gives the time to wait.
    TooManyStarts = 429 "too_many_starts";
    /// The head of the request is too large.
    HeadTooLarge = 431 "head_too_large";
    /// An internal error; the request id identifies it in the log.
    Internal = 500 "internal";
    /// The carrier rejected the request; `details` has its own code and message.
    CarrierRejected = 502 "carrier_rejected";
    /// The service is temporarily unavailable; try again.
    Unavailable = 503 "unavailable";
    /// The workspace is being moved to another host or database, or arrives from one; repeat the request when that is over.
    WorkspaceMoving = 503 "workspace_moving";
    /// The carrier did not confirm whether it accepted the call. The call is in the call log; check it before you place the call again.
    CarrierTimeout = 504 "carrier_timeout";
}

/// Most problems in one error: enough to correct a request, few enough to keep the response small.
pub const PROBLEMS_MAX: usize = 32;

/// An error as the client sees it. It contains nothing private.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    /// Selects the status and the machine-readable code.
    pub code: Code,
    /// What is wrong and how to correct it.
    pub message: Cow<'static, str>,
    /// Machine-readable details, always an object.
    pub details: Option<Box<Value>>,
    /// Seconds for the `Retry-After` header.
    pub retry_after_s: Option<i64>,
    /// Methods for the `Allow` header.
    pub allow: Option<String>,
    /// Whether this repeats the stored response of an Idempotency-Key.
    pub replayed: bool,
}

impl Error {
    /// An error without details.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            details: None,
            retry_after_s: None,
            allow: None,
            replayed: false,
        }
    }

    /// What is not possible now and will be: after about so many seconds.
    pub fn unavailable(message: impl Into<Cow<'static, str>>, retry_after_s: i64) -> Self {
        Self { retry_after_s: Some(retry_after_s), ..Self::new(Code::Unavailable, message) }
    }

    /// Adds machine-readable details.
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// Names the problems in the message and in `details.fields`; beyond [`PROBLEMS_MAX`] only the first are named.
    pub fn fields(code: Code, problems: &[FieldProblem]) -> Self {
        let shown = &problems[..problems.len().min(PROBLEMS_MAX)];
        let message = match problems {
            [one] => format!("{}: {}", one.field, one.message),
            many => {
                let names: Vec<&str> = shown.iter().map(|problem| problem.field.as_str()).collect();
                let more = if shown.len() < many.len() { ", …" } else { "" };
                format!("{} problems: {}{more}", many.len(), names.join(", "))
            }
        };
        let fields: Vec<Value> =
            shown.iter().map(|problem| json!({"field": problem.field, "message": problem.message})).collect();
        Self::new(code, message).with_details(json!({ "fields": fields }))
    }

    /// The problems in `details.fields`.
    pub(crate) fn problems(&self) -> Vec<FieldProblem> {
        let fields = self.details.as_ref().and_then(|details| details["fields"].as_array());
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let problem = |field: &Value| FieldProblem::new(text(&field["field"]), text(&field["message"]));
        fields.into_iter().flatten().map(problem).collect()
    }

    /// 422 `validation_failed` for one field.
    pub fn field(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::fields(Code::ValidationFailed, &[FieldProblem::new(field, message)])
    }

    /// 404 `not_found`. The same for an unknown id and for one of another workspace, so that ids do not leak.
    pub fn not_found(noun: &str) -> Self {
        Self::new(
            Code::NotFound,
            format!("No such {noun} in this workspace. Check the id; deleted ones are gone."),
        )
    }

    /// The JSON envelope.
    pub fn to_json(&self, request_id: &RequestId) -> Value {
        let mut error = json!({"code": self.code.as_str(), "message": self.message});
        if let Some(details) = &self.details {
            error["details"] = (**details).clone();
        }
        error["request_id"] = json!(request_id);
        json!({ "error": error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../docs/rest-api.md");

    /// `[text](address)` → `text`.
    fn without_links(text: &str) -> String {
        let mut pieces = text.split("](");
        let first = pieces.next().unwrap().to_owned();
        let rest = pieces.map(|piece| piece.split_once(')').unwrap().1);
        rest.fold(first, |text, piece| text + piece).replace('[', "")
    }

    #[test]
    fn the_table_of_the_documentation_has_every_code_as_it_is_defined() {
        let (_, table) = PAGE.split_once("| status | code | meaning |\n| --- | --- | --- |\n").unwrap();
        let shown: Vec<String> =
            table.lines().take_while(|line| line.starts_with('|')).map(without_links).collect();
        let mut codes = Code::ALL.to_vec();
        codes.sort_by_key(|code| code.status());
        assert_eq!(shown.len(), codes.len());
        // A row may say more than the definition.
        for (row, code) in shown.iter().zip(codes) {
            let defined = format!("| {} | `{}` | {}", code.status(), code.as_str(), code.meaning());
            assert!(row.starts_with(&defined), "{row}\nis defined as\n{defined}");
        }
    }
}
