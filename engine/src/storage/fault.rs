//! Why an operation did not finish: an error for the client, or a private detail for the log.
use bytes::Bytes;
use http::Response;

use crate::base::error::{Code, Error};
use crate::base::ids::RequestId;
use crate::base::limits::{LONG_READ_MS, STALE_ATTEMPTS_MAX};
use crate::ports::{BlobError, DatabaseError};
use crate::storage::moves::lock;

/// Why an operation failed.
#[derive(Debug)]
pub enum Fault {
    /// An error for the client.
    Refused(Error),
    /// The state changed between reading and writing: run the operation again.
    Stale,
    /// The stored response of an earlier request with the same Idempotency-Key.
    Replay(Box<crate::storage::idempotency::Stored>),
    /// Private: logged, answered as [`Code::Internal`] or [`Code::Unavailable`].
    Storage(DatabaseError),
    /// Private: a defect of our own code.
    Bug(String),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<DatabaseError> for Fault {
    fn from(error: DatabaseError) -> Self {
        match error {
            error if error.is_constraint(lock::REFUSED) => Self::Refused(lock::refused()),
            // A guard failed, or a referenced row was deleted after it was read.
            error if error.is_constraint("stale") || error.is_constraint("FOREIGN KEY") => Self::Stale,
            other => Self::Storage(other),
        }
    }
}

impl From<BlobError> for Fault {
    fn from(BlobError(detail): BlobError) -> Self {
        Self::Storage(DatabaseError::Unavailable(detail))
    }
}

impl Fault {
    /// The response to a request that ended in this fault, with the private detail for the log.
    pub(crate) fn into_response(self, request_id: &RequestId) -> Response<Bytes> {
        use crate::base::response::{error_response, with_incident};
        let (error, incident) = self.split();
        with_incident(error_response(&error, request_id), incident)
    }

    /// For the operator: the private detail if there is one; otherwise every problem that the error names.
    pub fn told(self) -> String {
        let (error, incident) = self.split();
        let fields = error.details.as_ref().and_then(|details| details["fields"].as_array());
        let problems: Vec<String> = fields
            .into_iter()
            .flatten()
            .filter_map(|one| Some(format!("{}: {}", one["field"].as_str()?, one["message"].as_str()?)))
            .collect();
        let told = if problems.is_empty() { error.message.into_owned() } else { problems.join("; ") };
        incident.unwrap_or(told)
    }

    /// The public error, and the private detail for the log if there is one.
    pub fn split(self) -> (Error, Option<String>) {
        match self {
            Self::Refused(error) => (error, None),
            Self::Stale => {
                let message = "Too many changes to the same thing at once. Try again.";
                (Error::unavailable(message, 1), Some("an operation stayed stale".to_owned()))
            }
            Self::Replay(_) => (internal(), Some("a replay outside of the pipeline".to_owned())),
            Self::Storage(DatabaseError::Unavailable(detail)) => {
                let (message, retry_after_s) = match detail.contains("is full") {
                    true => (
                        "The disk of this service is full: until there is room again, it takes nothing but deletions.",
                        60,
                    ),
                    false => {
                        ("Storage is not available. Try again; a repeat is safe with an Idempotency-Key.", 1)
                    }
                };
                (Error::unavailable(message, retry_after_s), Some(detail))
            }
            Self::Storage(DatabaseError::TooManyWait) => {
                let message = "Too many searches, lists or statistics of this workspace wait already. Wait for their answers, then \
                    try again.";
                (Error::unavailable(message, 1), None)
            }
            Self::Storage(DatabaseError::TooLong) => {
                let message = format!(
                    "This took longer than {} s. Narrow it: search for longer or rarer words, or limit the time with \
                     `date_from` and `date_to`.",
                    LONG_READ_MS / 1000
                );
                (Error::unavailable(message, 1), None)
            }
            Self::Storage(other) => (internal(), Some(format!("{other:?}"))),
            Self::Bug(detail) => (internal(), Some(detail)),
        }
    }
}

/// Repeats `attempt` as long as a concurrent change makes it [`Fault::Stale`], up to [`STALE_ATTEMPTS_MAX`] times.
pub async fn retry_stale<T, F>(attempt: impl FnMut() -> F) -> Result<T, Fault>
where
    F: Future<Output = Result<T, Fault>>,
{
    retry_stale_within(STALE_ATTEMPTS_MAX, attempt).await
}

/// [`retry_stale`] with fewer attempts, for the holder of a lease: after losing the lease, every attempt is stale.
pub async fn retry_stale_within<T, F>(attempts_max: u32, mut attempt: impl FnMut() -> F) -> Result<T, Fault>
where
    F: Future<Output = Result<T, Fault>>,
{
    for _ in 1..attempts_max {
        match attempt().await {
            Err(Fault::Stale) => {}
            outcome => return outcome,
        }
    }
    attempt().await
}

fn internal() -> Error {
    Error::new(
        Code::Internal,
        "An internal error. Give the request id to the operator: the log has the details under it.",
    )
}
