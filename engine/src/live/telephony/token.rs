//! The signed token in the URLs that a carrier receives: it identifies the call.
//!
//! Tokens for callbacks can be used any number of times; a token for the media socket opens it once, which the call's
//! row records, or, for a caller who comes back, the conversation that waits. The carrier's own signature is checked as well, but not every carrier signs every request.
use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq;

use crate::base::ids::{CallId, Id, WorkspaceId};
use crate::base::limits::TRANSFER_RETURNS_MAX;
use crate::storage::fault::Fault;
use crate::storage::signing::call_token_signature;

/// The purpose of a token. A token is valid for one purpose only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Callbacks about the call.
    Callback,
    /// Its media socket.
    Media,
    /// The media socket of a caller who has come back from a transfer so many times.
    MediaAgain(u32),
}

impl Purpose {
    /// The word that enters the signature.
    fn as_word(self) -> Cow<'static, str> {
        match self {
            Self::Callback => "callback".into(),
            Self::Media => "media".into(),
            Self::MediaAgain(visit) => format!("media:{visit}").into(),
        }
    }
}

/// The call that a token identifies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallToken {
    /// The workspace of the call.
    pub workspace_id: WorkspaceId,
    /// The call.
    pub call_id: CallId,
}

const ID_BYTES: usize = 16;
const CLAIMS_BYTES: usize = 2 * ID_BYTES;
const SIGNATURE_BYTES: usize = 32;
/// The length of a token, in characters of base64url.
const TOKEN_CHARS: usize = (CLAIMS_BYTES + SIGNATURE_BYTES).div_ceil(3) * 4 - 2;

impl CallToken {
    /// The token of a call.
    pub fn new(workspace_id: &WorkspaceId, call_id: &CallId) -> Self {
        Self { workspace_id: workspace_id.clone(), call_id: call_id.clone() }
    }

    /// The encoded token.
    pub fn sign(&self, server_secret: &str, purpose: Purpose) -> Result<String, Fault> {
        let claims = self.claims().ok_or_else(|| Fault::Bug(format!("{} cannot be packed", self.call_id)))?;
        let mut bytes = claims.to_vec();
        bytes.extend_from_slice(&call_token_signature(server_secret, &purpose.as_word(), &claims));
        Ok(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Decodes a token that this server has signed for the purpose.
    pub fn read(server_secret: &str, purpose: Purpose, text: &str) -> Option<Self> {
        if text.len() != TOKEN_CHARS {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (claims, signature) = bytes.split_at_checked(CLAIMS_BYTES)?;
        let genuine = call_token_signature(server_secret, &purpose.as_word(), claims);
        if !bool::from(genuine.ct_eq(signature)) {
            return None;
        }
        let (workspace, rest) = claims.split_first_chunk::<ID_BYTES>()?;
        let (call, _) = rest.split_first_chunk::<ID_BYTES>()?;
        Some(Self { workspace_id: WorkspaceId::from_bytes(*workspace), call_id: CallId::from_bytes(*call) })
    }

    /// Decodes the token of a media socket: the first one of a call, or that of a caller who has come back so many times.
    pub fn read_media(server_secret: &str, text: &str) -> Option<(Self, u32)> {
        if let Some(token) = Self::read(server_secret, Purpose::Media, text) {
            return Some((token, 0));
        }
        let again = |visit| Some((Self::read(server_secret, Purpose::MediaAgain(visit), text)?, visit));
        (1..=TRANSFER_RETURNS_MAX).find_map(again)
    }

    fn claims(&self) -> Option<[u8; CLAIMS_BYTES]> {
        let parts: [&[u8]; 2] = [&self.workspace_id.to_bytes()?, &self.call_id.to_bytes()?];
        parts.concat().try_into().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token_of(workspace_id: &str, call_id: &str) -> CallToken {
        CallToken {
            workspace_id: WorkspaceId::from_stored(workspace_id),
            call_id: CallId::from_stored(call_id),
        }
    }

    fn token() -> CallToken {
        token_of("ws_01aryz6s41tsv4rrffq69g5faw", "call_01aryz6s41tsv4rrffq69g5fax")
    }

    #[test]
    fn a_token_is_valid_for_its_purpose_only() {
        let text = token().sign("a server secret", Purpose::Media).unwrap();
        assert_eq!(text.len(), TOKEN_CHARS);
        assert_eq!(CallToken::read("a server secret", Purpose::Media, &text), Some(token()));
        assert_eq!(CallToken::read("a server secret", Purpose::Callback, &text), None);
        assert_eq!(CallToken::read("another secret", Purpose::Media, &text), None);
    }

    #[test]
    fn a_token_of_a_media_socket_is_for_one_visit() {
        for visit in 0..=TRANSFER_RETURNS_MAX + 1 {
            let purpose = if visit == 0 { Purpose::Media } else { Purpose::MediaAgain(visit) };
            let text = token().sign("a server secret", purpose).unwrap();
            let known = (visit <= TRANSFER_RETURNS_MAX).then(|| (token(), visit));
            assert_eq!(CallToken::read_media("a server secret", &text), known);
        }
        let callback = token().sign("a server secret", Purpose::Callback).unwrap();
        assert_eq!(CallToken::read_media("a server secret", &callback), None);
    }

    #[test]
    fn changed_tokens_are_rejected() {
        let text = token().sign("a server secret", Purpose::Media).unwrap();
        for place in 0..text.len() {
            let mut altered = text.clone().into_bytes();
            altered[place] = if altered[place] == b'A' { b'B' } else { b'A' };
            let altered = String::from_utf8(altered).unwrap();
            assert_eq!(CallToken::read("a server secret", Purpose::Media, &altered), None, "{altered}");
        }
        for wrong in ["", "A", &text[1..], &format!("{text}A")] {
            assert_eq!(CallToken::read("a server secret", Purpose::Media, wrong), None);
        }
        assert!(token_of("ws_1", "call_1").sign("a server secret", Purpose::Media).is_err());
    }
}
