//! The wire format of chat completions, as OpenAI defines it and many servers speak it: requests
//! ([`request`]), answers whole or streamed ([`answer`]), errors ([`error`]). All of it is pure.
//!
//! Source: OpenAI's API reference, "Chat Completions", and what servers were seen to make of it;
//! where the two differ, a comment says so.
pub mod answer;
mod calls;
pub mod error;
pub mod messages;
pub mod request;
pub mod sse;
