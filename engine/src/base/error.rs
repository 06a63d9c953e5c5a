//! The one error envelope, and the private detail that never enters it.
use std::borrow::Cow;

use serde_json::{Value, json};

pub use crate::base::field::FieldProblem;

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $name:ident = $status:literal $text:literal;)*) => {
        /// Every code an error can carry, with its HTTP status.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code { $($(#[doc = $doc])* $name,)* }

        impl Code {
            /// All codes, for documentation.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];
            /// The HTTP status it travels with.
            pub const fn status(self) -> u16 { match self { $(Code::$name => $status,)* } }
            /// The code as clients see it.
            pub const fn as_str(self) -> &'static str { match self { $(Code::$name => $text,)* } }
            /// When it is sent.
            pub fn meaning(self) -> &'static str { match self { $(Code::$name => concat!($($doc),*).trim_ascii(),)* } }
        }
    };
}

codes! {
    /// The body is not readable JSON.
    InvalidJson = 400 "invalid_json";
    /// A path or query value has the wrong form.
    InvalidParameter = 400 "invalid_parameter";
    /// If-Match is neither `3` nor `"3"`.
    InvalidIfMatch = 400 "invalid_if_match";
    /// No key, an unknown one, or a revoked one.
    Unauthorized = 401 "unauthorized";
    /// No test token, or one that this server has not signed.
    InvalidToken = 401 "invalid_token";
    /// The test token's time is over; ask for a new one.
    TokenExpired = 401 "token_expired";
    /// The workspace's own ceiling for this month is reached.
    SpendLimitReached = 402 "spend_limit_reached";
    /// A browser page of another origin; MCP answers only its own and local ones.
    ForbiddenOrigin = 403 "forbidden_origin";
    /// A carrier's callback that is not signed as that carrier signs.
    InvalidSignature = 403 "invalid_signature";
    /// An unknown id, one of another workspace, or an unknown route.
    NotFound = 404 "not_found";
    /// The route exists, the method does not; `Allow` names those that do.
    MethodNotAllowed = 405 "method_not_allowed";
    /// The request did not arrive in time.
    RequestTimeout = 408 "request_timeout";
    /// If-Match names another revision than the current one.
    RevisionConflict = 409 "revision_conflict";
    /// The workspace has another one of that name.
    NameTaken = 409 "name_taken";
    /// Another workspace holds the number.
    NumberInUse = 409 "number_in_use";
    /// A running run cannot be deleted.
    RunInProgress = 409 "run_in_progress";
    /// The recording is still being written.
    RecordingNotReady = 409 "recording_not_ready";
    /// The webhook is disabled: nothing is sent to it.
    WebhookDisabled = 409 "webhook_disabled";
    /// The workspace has as many of these as it may.
    LimitReached = 409 "limit_reached";
    /// The test token has opened its one conversation.
    TokenUsed = 409 "token_used";
    /// The operator has no account with this carrier.
    CarrierNotConfigured = 409 "carrier_not_configured";
    /// The same request, with the same Idempotency-Key, has begun and its outcome is not known yet.
    RequestInProgress = 409 "request_in_progress";
    /// The Idempotency-Key was used with another request.
    IdempotencyKeyReused = 409 "idempotency_key_reused";
    /// The body is larger than 1 MiB.
    BodyTooLarge = 413 "body_too_large";
    /// The body is not sent as application/json.
    UnsupportedMediaType = 415 "unsupported_media_type";
    /// The recording ends before the range begins; `Content-Range` says how long it is.
    RangeNotSatisfiable = 416 "range_not_satisfiable";
    /// The route is a WebSocket: the request has to ask for one.
    UpgradeRequired = 426 "upgrade_required";
    /// A field breaks a rule; `details.fields` names it.
    ValidationFailed = 422 "validation_failed";
    /// A paid MCP action without `confirm: true`.
    ConfirmationRequired = 422 "confirmation_required";
    /// A tool or webhook URL that is not public HTTPS.
    PrivateTarget = 422 "private_target";
    /// Too many wrong keys from one address; `Retry-After` says how long to wait.
    TooManyInvalidCredentials = 429 "too_many_invalid_credentials";
    /// The workspace has as many telephone calls under way as it allows itself.
    TooManyCalls = 429 "too_many_calls";
    /// Our fault; the request id helps us find it.
    Internal = 500 "internal";
    /// The carrier did not take the call; `details` has its own code and words.
    CarrierRejected = 502 "carrier_rejected";
    /// The service cannot answer now; try again.
    Unavailable = 503 "unavailable";
    /// The carrier did not say whether it took the call. It is in the log; do not place it again before looking there.
    CarrierTimeout = 504 "carrier_timeout";
}

/// Problems told at once: enough to mend a request, too few to make a large answer.
pub const PROBLEMS_MAX: usize = 32;

/// An error as the client sees it. It holds nothing private.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    /// What kind.
    pub code: Code,
    /// What is wrong and what to do.
    pub message: Cow<'static, str>,
    /// Machine-readable details, an object or nothing.
    pub details: Option<Box<Value>>,
    /// Seconds for `Retry-After`.
    pub retry_after_s: Option<i64>,
    /// Methods for `Allow`.
    pub allow: Option<String>,
    /// Whether an earlier answer is repeated, as an Idempotency-Key asks for.
    pub replayed: bool,
}

impl Error {
    /// An error with a message.
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

    /// The same with details.
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// `code` with the problems named in the message and in `details.fields`: of very many the
    /// first [`PROBLEMS_MAX`].
    pub fn fields(code: Code, problems: &[FieldProblem]) -> Self {
        let shown = &problems[..problems.len().min(PROBLEMS_MAX)];
        let message = match problems {
            [one] => format!("{}: {}", one.field, one.message),
            many => {
                let names: Vec<&str> = shown.iter().map(|problem| problem.field.as_str()).collect();
                let more = if shown.len() < many.len() { ", …" } else { "" };
                format!("{} fields are wrong: {}{more}", many.len(), names.join(", "))
            }
        };
        let fields: Vec<Value> =
            shown.iter().map(|problem| json!({"field": problem.field, "message": problem.message})).collect();
        Self::new(code, message).with_details(json!({ "fields": fields }))
    }

    /// 422 for one field.
    pub fn field(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::fields(Code::ValidationFailed, &[FieldProblem::new(field, message)])
    }

    /// 404 for a thing, told alike whether it never was or is another workspace's.
    pub fn not_found(noun: &str) -> Self {
        Self::new(
            Code::NotFound,
            format!("No such {noun} in this workspace. Check the id; deleted ones are gone."),
        )
    }

    /// The envelope.
    pub fn to_json(&self, request_id: &str) -> Value {
        let mut error = json!({"code": self.code.as_str(), "message": self.message});
        if let Some(details) = &self.details {
            error["details"] = (**details).clone();
        }
        error["request_id"] = request_id.into();
        json!({ "error": error })
    }
}
