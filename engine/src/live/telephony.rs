//! Telephone calls. `carriers` has each carrier's wire format; this module acts on it:
//!
//! - `begin_call` writes a call that begins, `live::end_call` one that ends.
//! - `operations::calls::place` is `POST /calls/outbound`: it stores the call, then sends one request to the carrier.
//! - `callbacks` receives what carriers send: `incoming` routes a call to an assistant, `status` moves a call forward.
//! - `media` opens the media socket, `live::line_socket` connects it to `live::audio_line`, `live::drive` drives the
//!   conversation.
//! - [`leg`] is the carrier's side of a call. Changing it requires its latest version, so a call ends once.
//! - `transfer` hands a call over to another number; from then on, its line is the carrier's, for a time. `returned` takes the caller
//!   back whom nobody has taken. `late_price` is what
//!   the carrier reports of a line whose call has ended.
//! - `client` sends requests to carriers; `hang_up` ends a call at its carrier.
//!
//! `jobs::live_call` ends calls without a running conversation.
pub(crate) mod begin_call;
pub(crate) mod callbacks;
pub(crate) mod client;
pub(crate) mod hang_up;
pub(crate) mod incoming;
pub(crate) mod late_price;
pub mod leg;
pub(crate) mod media;
pub(crate) mod returned;
pub(crate) mod status;
pub mod token;
pub(crate) mod transfer;

use std::borrow::Cow;

use crate::base::ids::{CallId, WorkspaceId};
use crate::carriers::CarrierName;

/// Path prefix of carriers' requests: `/carriers/{provider}/…`.
pub const PATH: &str = "/carriers/";

/// The route of a path below [`PATH`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route<'a> {
    /// Incoming calls, and the documents that answer calls.
    Voice(CarrierName),
    /// Status callbacks.
    Status(CarrierName),
    /// The media socket, with its token.
    Media(CarrierName, &'a str),
}

impl<'a> Route<'a> {
    /// The route of a path; `None` for an unknown path.
    pub fn of(path: &'a str) -> Option<Self> {
        let (provider, rest) = path.strip_prefix(PATH)?.split_once('/')?;
        let provider = CarrierName::parse(provider)?;
        match rest.split_once('/') {
            None if rest == "voice" => Some(Self::Voice(provider)),
            None if rest == "status" => Some(Self::Status(provider)),
            Some(("media", token)) if !token.is_empty() && !token.contains('/') => {
                Some(Self::Media(provider, token))
            }
            _ => None,
        }
    }
}

/// A path for logs, without the token of a media socket: readers of the log could use it.
pub fn without_token(path: &str) -> Cow<'_, str> {
    let token = path.starts_with(PATH).then(|| path.split_once("/media/")).flatten();
    token.map_or(path.into(), |(before, _)| format!("{before}/media/…").into())
}

/// The URLs of one call for its carrier.
pub(crate) struct CallUrls {
    pub(crate) media: String,
    pub(crate) status: String,
    pub(crate) answer: String,
}

impl CallUrls {
    /// Creates the URLs of a call; each contains a signed token that identifies the call.
    pub(crate) fn new(
        services: &crate::services::Services,
        provider: CarrierName,
        workspace_id: &WorkspaceId,
        call_id: &CallId,
    ) -> Result<Self, crate::storage::fault::Fault> {
        let config = services.config();
        let sign = |purpose| token::CallToken::new(workspace_id, call_id).sign(&config.secret, purpose);
        let (about, media) = (sign(token::Purpose::Callback)?, sign(token::Purpose::Media)?);
        let base = format!("{}{PATH}{}", config.base_url, provider.as_str());
        Ok(Self {
            media: format!("{}/media/{media}", crate::live::socket_origin(&base)),
            status: format!("{base}/status?call={about}"),
            answer: format!("{base}/voice?call={about}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_tokens_are_not_logged() {
        for (path, logged) in [
            ("/carriers/telnyx/media/t0", "/carriers/telnyx/media/…"),
            ("/carriers/telnyx/media/t0/", "/carriers/telnyx/media/…"),
            ("/carriers/nobody/media/t0/x", "/carriers/nobody/media/…"),
            ("/carriers/telnyx/media", "/carriers/telnyx/media"),
            ("/carriers/telnyx/status", "/carriers/telnyx/status"),
            ("/calls/media/t0", "/calls/media/t0"),
        ] {
            assert_eq!(without_token(path), logged);
        }
    }

    #[test]
    fn only_known_paths_have_a_route() {
        assert_eq!(Route::of("/carriers/twilio/voice"), Some(Route::Voice(CarrierName::Twilio)));
        assert_eq!(Route::of("/carriers/vonage/status"), Some(Route::Status(CarrierName::Vonage)));
        assert_eq!(Route::of("/carriers/plivo/media/t0"), Some(Route::Media(CarrierName::Plivo, "t0")));
        for path in [
            "/carriers/",
            "/carriers/twilio",
            "/carriers/nobody/voice",
            "/carriers/twilio/voice/",
            "/carriers/twilio/",
            "/carriers/twilio/media",
            "/carriers/twilio/media/",
            "/carriers/twilio/media/a/b",
            "/carriers/Twilio/voice",
        ] {
            assert_eq!(Route::of(path), None, "{path}");
        }
    }
}
