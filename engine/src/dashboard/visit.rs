//! One request to the dashboard: its cookies, the session that they open, and the proof that a form is ours.
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::{Response, header};
use subtle::ConstantTimeEq;

use super::mask::{self, Proof};
use super::{assets, reply};
use crate::base::hash::{hmac_sha256, sha256_hex};
use crate::base::ids::RequestId;
use crate::interfaces::api::Api;
use crate::interfaces::mounted::{SESSION_COOKIE, SESSION_COOKIE_TLS, cookie};
use crate::ports::Incoming;
use crate::services::Services;
use crate::storage::accounts::Session;
use crate::storage::fault::Fault;

/// The cookie of a browser without a session: its forms, and the codes that it asked for, are good only there.
const VISIT_COOKIE: &str = "sidetone_visit";
const VISIT_COOKIE_TLS: &str = "__Host-sidetone_visit";
/// Characters that tell the sessions of a browser apart.
const MARK_CHARS: usize = 12;
/// How long a visit lasts.
const VISIT_S: i64 = 86_400;

/// A request to the dashboard.
pub(super) struct Visit<'a> {
    pub api: &'a Api,
    pub incoming: &'a Incoming,
    pub now_ms: i64,
    pub request_id: &'a RequestId,
    has_tls: bool,
    /// Whether this request has extended its session.
    is_extended: AtomicBool,
}

impl<'a> Visit<'a> {
    pub fn new(api: &'a Api, incoming: &'a Incoming, now_ms: i64, request_id: &'a RequestId) -> Self {
        let has_tls = api.services().config().base_url.starts_with("https://");
        Self { api, incoming, now_ms, request_id, has_tls, is_extended: AtomicBool::new(false) }
    }

    pub fn services(&self) -> &'a Services {
        self.api.services()
    }

    pub fn path(&self) -> &'a str {
        self.incoming.request.uri().path()
    }

    /// The query, decoded.
    pub fn query(&self) -> Vec<(String, String)> {
        super::paths::query(self.incoming.request.uri().query().unwrap_or_default())
    }

    /// Whether the browser has this version's stylesheet.
    pub fn has_style(&self) -> bool {
        cookie(self.incoming.request.headers(), assets::STYLE_COOKIE) == Some(assets::hash())
    }

    /// The address that requests are counted under.
    pub fn source(&self) -> String {
        self.api.client_address(self.incoming).to_string()
    }

    /// What the browser says about itself.
    pub fn client(&self) -> String {
        let value = self.incoming.request.headers().get(header::USER_AGENT);
        value.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).unwrap_or_default()
    }

    /// The value of the session's cookie.
    pub fn session_token(&self) -> Option<&'a str> {
        cookie(self.incoming.request.headers(), self.session_cookie())
    }

    /// The open session, extended.
    pub async fn session(&self) -> Result<Option<Session>, Fault> {
        let Some(token) = self.session_token() else { return Ok(None) };
        let session = self.services().session(token, self.now_ms).await?;
        if let Some(session) = &session {
            // Without room for the write, people can still read and delete; a later request extends the session.
            if self.services().keep_session(session, self.now_ms).await.unwrap_or(false) {
                self.is_extended.store(true, Ordering::Relaxed);
            }
        }
        Ok(session)
    }

    /// The response with the session's cookie, if the session was extended: the browser keeps it as long as the storage.
    /// A response that opens or ends a session has its own.
    pub fn renewed(&self, response: Response<Bytes>) -> Response<Bytes> {
        let name = self.session_cookie().as_bytes();
        let is_set = |response: &Response<Bytes>| {
            response.headers().get_all(header::SET_COOKIE).iter().any(|one| one.as_bytes().starts_with(name))
        };
        match self.session_token() {
            Some(token) if self.is_extended.load(Ordering::Relaxed) && !is_set(&response) => {
                reply::with_cookie(response, &self.set_session(token))
            }
            _ => response,
        }
    }

    /// The value of the visit's cookie.
    pub fn token(&self) -> Option<&'a str> {
        let name = if self.has_tls { VISIT_COOKIE_TLS } else { VISIT_COOKIE };
        cookie(self.incoming.request.headers(), name).filter(|token| token.len() >= 32)
    }

    /// What proves that a form of this session is ours. It begins with the workspace that the form is made for, since another
    /// tab may have opened another one by the time it is sent, and with a mark of the session, since the proof is other
    /// bytes on each page and a page that is read again has to know whether it is still the same person's.
    pub fn csrf_of_session(&self, session: &Session) -> String {
        let proof = self.proof_in(session, &session.workspace_id);
        let mark = sha256_hex(session.id.as_bytes());
        let (mark, _) = mark.split_at(MARK_CHARS);
        format!("{}.{mark}.{}", session.workspace_id, mask::masked(&proof, &*self.services().ports().random))
    }

    /// The workspace that a form of this session was made for; `None`: it is not ours.
    pub fn workspace_of_form<'t>(&self, session: &Session, csrf: &'t str) -> Option<&'t str> {
        let (workspace_id, rest) = csrf.split_once('.')?;
        let (_, masked) = rest.split_once('.')?;
        mask::is_of(masked, &self.proof_in(session, workspace_id)).then_some(workspace_id)
    }

    fn proof_in(&self, session: &Session, workspace_id: &str) -> Proof {
        self.proof("session", &format!("{} in {workspace_id}", session.hash))
    }

    /// What proves that a form of this visit is ours.
    pub fn csrf_of_visit(&self, token: &str) -> String {
        mask::masked(&self.proof_of_visit(token), &*self.services().ports().random)
    }

    /// Whether it does.
    pub fn is_form_of_visit(&self, token: &str, csrf: &str) -> bool {
        mask::is_of(csrf, &self.proof_of_visit(token))
    }

    fn proof_of_visit(&self, token: &str) -> Proof {
        self.proof("visit", &sha256_hex(token.as_bytes()))
    }

    fn proof(&self, kind: &str, hash: &str) -> Proof {
        let message = format!("forms of the {kind} {hash}");
        hmac_sha256(self.services().config().secret.as_bytes(), message.as_bytes())
    }

    /// Whether a page of another origin sent the request. Browsers say so; others send no cookies of a person.
    pub fn is_from_elsewhere(&self) -> bool {
        let site = self.incoming.request.headers().get("sec-fetch-site");
        site.is_some_and(|site| site != "same-origin" && site != "none")
    }

    /// The cookie that opens a session, as a header.
    pub fn set_session(&self, token: &str) -> String {
        self.cookie(self.session_cookie(), token, Some(crate::base::limits::SESSION_MS / 1000))
    }

    /// Removes it.
    pub fn drop_session(&self) -> String {
        self.cookie(self.session_cookie(), "", Some(0))
    }

    /// The cookie of a visit, as a header.
    pub fn set_visit(&self, token: &str) -> String {
        self.cookie(if self.has_tls { VISIT_COOKIE_TLS } else { VISIT_COOKIE }, token, Some(VISIT_S))
    }

    /// Removes it.
    pub fn drop_visit(&self) -> String {
        self.cookie(if self.has_tls { VISIT_COOKIE_TLS } else { VISIT_COOKIE }, "", Some(0))
    }

    fn session_cookie(&self) -> &'static str {
        if self.has_tls { SESSION_COOKIE_TLS } else { SESSION_COOKIE }
    }

    /// `Lax`, not `Strict`: a link in a mail, and the way back from a sign-in provider, have to find the cookie. `Secure`
    /// only with TLS: without it Safari keeps no such cookie, not even of this machine.
    fn cookie(&self, name: &str, value: &str, max_age_s: Option<i64>) -> String {
        let mut text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax");
        if let Some(seconds) = max_age_s {
            let _ = write!(text, "; Max-Age={seconds}");
        }
        if self.has_tls {
            text.push_str("; Secure");
        }
        text
    }
}

/// Compares two secrets in constant time.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}
