//! Live conversations: a user talks to an assistant over a browser's WebSocket, written or aloud, or a telephone.
//!
//! `handshake` opens the call of a WebSocket request, `session` runs the conversation, `message` has the wire
//! format, `call_journal` stores the progress in case the process dies. `end_call` ends every call; `jobs::live_call` ends
//! the calls of dead processes, and analyzes every call after its end. Simulation runs share `asking` and `tool_calls`.
//! The host only provides the socket ([`LiveSocket`]), also that of a caller who comes back to a conversation under way:
//!
//! ```text
//! if engine.wants_socket(&head) {
//!     match engine.accept(incoming).await {
//!         Accept::Refused(response) => …,                   // before the upgrade
//!         Accept::Session(session) => { upgrade; session.run(&mut socket).await }
//!     }
//! }
//! ```
mod accepted;
pub(crate) mod admission;
pub(crate) mod asking;
pub(crate) mod assistants;
pub(crate) mod audio_line;
mod browser_line;
pub mod call_inputs;
pub(crate) mod call_journal;
mod client_rules;
mod drive;
pub(crate) mod end_call;
pub(crate) mod handshake;
pub(crate) mod lease;
mod line;
pub(crate) mod line_socket;
mod link_starts;
pub(crate) mod message;
mod message_rate;
pub(crate) mod page;
pub(crate) mod peer;
pub(crate) mod restart;
pub(crate) mod session;
pub(crate) mod simulated;
mod speech_exchanges;
pub mod telephony;
mod text_peer;
pub(crate) mod tool_calls;
pub(crate) mod tool_request;
mod voice_of_call;

pub use accepted::LiveSocket;
pub use session::LiveSession;

/// The page for talking to an assistant.
pub const PAGE_PATH: &str = "/voice-test";
/// The script of the page's audio.
pub const WORKLETS_PATH: &str = "/voice-test/audio.js";
/// Where the page gets the token of a further conversation.
pub const RESTART_PATH: &str = "/voice-test/restart";
/// The WebSocket of the page.
pub const SOCKET_PATH: &str = "/voice-test/socket";

/// The page's URL.
pub fn page_url(base_url: &str, token: &str) -> String {
    format!("{base_url}{PAGE_PATH}?token={token}")
}

/// The socket's URL: `ws` for `http`, `wss` for `https`.
pub fn socket_url(base_url: &str, token: &str) -> String {
    format!("{}{SOCKET_PATH}?token={token}", socket_origin(base_url))
}

/// The same address for WebSockets: `ws` for `http`, `wss` for `https`.
pub(crate) fn socket_origin(base_url: &str) -> String {
    match base_url.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => format!("ws://{rest}"),
        Some((_, rest)) => format!("wss://{rest}"),
        None => base_url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_uses_the_pages_scheme() {
        assert_eq!(socket_url("http://a:1", "t"), "ws://a:1/voice-test/socket?token=t");
        assert_eq!(socket_url("https://a/b", "t"), "wss://a/b/voice-test/socket?token=t");
        assert_eq!(page_url("https://a", "t"), "https://a/voice-test?token=t");
    }
}
