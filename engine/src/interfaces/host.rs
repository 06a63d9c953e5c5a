//! The path of a host's request through the engine: admitted by its head, routed, and answered with a response that is
//! ready to send. The engine re-exports these types for hosts.
mod admission;
mod bodies;
mod log_record;
mod metrics;
mod placing;
mod prepared_response;
pub(crate) mod probes;
pub(crate) mod response_budget;
mod routes;

pub use admission::{Admission, BodyFailure, BodyTooLarge, PendingRequest, PendingSocket, SocketAdmission};
pub(crate) use admission::{answer_operator, begin};
pub(crate) use bodies::Bodies;
pub use bodies::Room;
pub(crate) use log_record::Answered;
pub use log_record::LogRecord;
pub use prepared_response::{BlobResponse, EventsResponse, FinalResponse, PreparedResponse, RequestTrace};
pub use response_budget::BodyMemory;
