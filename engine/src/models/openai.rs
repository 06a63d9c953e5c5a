//! The wire format of chat completions, as defined by OpenAI and implemented by many servers: requests (`request`),
//! whole or streamed completions ([`completion`]). Everything here is pure.
//!
//! Source: OpenAI's API reference, "Chat Completions", and the observed behaviour of servers; comments mark the
//! differences.
mod calls;
pub mod completion;
pub(crate) mod messages;
pub(crate) mod request;
pub(crate) mod sse;
