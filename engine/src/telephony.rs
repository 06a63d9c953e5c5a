//! Telephone calls: placed, taken, carried and settled.
//!
//! `carriers` knows how each carrier speaks; here is what is done about it:
//!
//! - `operations::calls::place` is behind `POST /calls/outbound`: what is meant is on disk before the carrier is asked, and it is
//!   asked once.
//! - [`callbacks`] takes what carriers send: `incoming` routes a call to an assistant, [`status`] moves a call
//!   forward.
//! - [`media`] opens the socket over which a call is heard, [`phone_peer`] talks over it, `live::drive` carries the
//!   conversation.
//! - [`leg`] is the row that all of them agree on; whoever changes it has seen its last version, so a call ends once.
//! - `client` speaks to carriers; `operations::calls::hang_up` ends a call from our side.
//!
//! `jobs::live_call` settles what nobody carries on any more.
pub mod callbacks;
pub(crate) mod client;
pub(crate) mod incoming;
pub mod leg;
pub mod media;
pub mod phone_peer;
pub mod status;
pub mod token;

use std::borrow::Cow;

use crate::operations::numbers::Provider;

/// Where carriers' callbacks go; the provider's name follows.
pub const PATH: &str = "/carriers/";

/// What a path below [`PATH`] leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route<'a> {
    /// Incoming calls, and documents of answered ones.
    Voice(Provider),
    /// What becomes of calls.
    Status(Provider),
    /// The media socket; with its token.
    Media(Provider, &'a str),
}

impl<'a> Route<'a> {
    /// The route of a path; `None` when it leads nowhere.
    pub fn of(path: &'a str) -> Option<Self> {
        let (provider, rest) = path.strip_prefix(PATH)?.split_once('/')?;
        let provider = Provider::parse(provider)?;
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

/// A path as it may stand in a log: without the token of a media socket, which at some carriers is all that says who
/// may listen to a call.
pub fn path_for_logs(path: &str) -> Cow<'_, str> {
    match Route::of(path) {
        Some(Route::Media(provider, _)) => format!("{PATH}{}/media/…", provider.as_str()).into(),
        _ => path.into(),
    }
}

/// The URLs that a carrier is given for one call.
pub(crate) struct CallUrls {
    pub(crate) media: String,
    pub(crate) status: String,
    pub(crate) answer: String,
}

impl CallUrls {
    /// The URLs of a call; each says by a token which call it is about.
    pub(crate) fn new(
        engine: &crate::engine::Engine,
        provider: Provider,
        workspace_id: &str,
        call_id: &str,
    ) -> Result<Self, crate::error::Fault> {
        let config = engine.config();
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
    fn a_path_leads_where_it_says_or_nowhere() {
        assert_eq!(Route::of("/carriers/twilio/voice"), Some(Route::Voice(Provider::Twilio)));
        assert_eq!(Route::of("/carriers/vonage/status"), Some(Route::Status(Provider::Vonage)));
        assert_eq!(Route::of("/carriers/plivo/media/t0"), Some(Route::Media(Provider::Plivo, "t0")));
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

    #[test]
    fn a_token_is_not_logged() {
        assert_eq!(path_for_logs("/carriers/telnyx/media/t0"), "/carriers/telnyx/media/…");
        for path in ["/carriers/telnyx/status", "/calls/call_1", "/"] {
            assert_eq!(path_for_logs(path), path);
        }
    }
}
