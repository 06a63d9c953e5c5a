//! Signing in at an OpenID provider, such as Google: the code flow with PKCE, state and nonce (OpenID Connect Core 3.1,
//! RFC 7636, RFC 9207). What a sign-in began with is kept here for one use, and only in the browser that began it.
mod id_token;
mod provider;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::Response;
use sha2::{Digest, Sha256};
use url::Url;

use self::id_token::Expected;
use self::provider::{Failure, Provider};
use super::visit::Visit;
use super::{paths, reply, sign_in};
use crate::base::email;
use crate::base::error::{Code, Error};
use crate::base::hash::sha256_hex;
use crate::base::limits::{
    OPENID_KEPT_MS, OPENID_REFRESH_MS, OPENID_SOURCE_MAX, SIGN_IN_MS, SIGN_IN_WINDOW_MS,
};
use crate::base::response::with_incident;
use crate::config::OpenIdSettings;
use crate::sql;
use crate::storage::accounts::Person;
use crate::storage::batch::Batch;
use crate::storage::fault::Fault;

/// The address that the provider sends people back to.
pub(super) const CALLBACK_PATH: &str = "/dashboard/sign-in/google/callback";

fn redirect_uri(visit: &Visit<'_>) -> String {
    format!("{}{CALLBACK_PATH}", visit.services().config().base_url)
}

/// Sends the browser to the provider, if a person has pressed the button: a page elsewhere begins nothing.
pub(super) async fn begin(visit: &Visit<'_>) -> Result<Response<Bytes>, Fault> {
    let settings = settings(visit)?;
    let query = visit.query();
    let next = paths::value(&query, "next").and_then(paths::safe).unwrap_or(sign_in::HOME);
    if visit.is_from_elsewhere() {
        return Ok(sign_in::ask_address(visit, "", next, None));
    }
    let services = visit.services();
    let new = visit.token().is_none().then(|| services.new_token().0);
    let visit_token = new.as_deref().or(visit.token()).unwrap_or_default();
    let ((state, state_hash), (nonce, _), (verifier, _)) =
        (services.new_token(), services.new_token(), services.new_token());
    let insert = sql!(
        "INSERT INTO oidc_sign_ins (state_hash, visit_hash, source, issuer, nonce, verifier, next, created_at)
         SELECT :state, :visit, :source, :issuer, :nonce, :verifier, :next, :now
         WHERE (SELECT COUNT(*) FROM oidc_sign_ins WHERE source = :source AND created_at > :since) < :most
         RETURNING state_hash",
        state = state_hash,
        visit = sha256_hex(visit_token.as_bytes()),
        source = visit.source(),
        issuer = &settings.issuer,
        nonce = &nonce,
        verifier = &verifier,
        next = next,
        now = visit.now_ms,
        since = visit.now_ms - SIGN_IN_WINDOW_MS,
        most = OPENID_SOURCE_MAX
    );
    let [begun] = services.write([insert]).await?;
    if begun.is_empty() {
        let error = Error::new(
            Code::TooManyCodes,
            "Too many sign-ins were begun and not finished. Wait for an hour.",
        );
        return Ok(sign_in::ask_address(visit, "", next, Some(&error)));
    }
    // Asked after the sign-in was counted: while the provider is down, each costs a request of some seconds.
    let provider = match Provider::discover(services, settings).await {
        Ok(provider) => provider,
        Err(failure) => return Ok(failed(visit, failure)),
    };
    let Ok(mut to) = Url::parse(&provider.authorization_endpoint) else {
        return Ok(failed(visit, Failure::Ours("its authorization endpoint is no URL".to_owned())));
    };
    to.query_pairs_mut()
        .append_pair("response_type", "code")
        .append_pair("client_id", &settings.client_id)
        .append_pair("redirect_uri", &redirect_uri(visit))
        .append_pair("scope", "openid email profile")
        .append_pair("state", &state)
        .append_pair("nonce", &nonce)
        .append_pair("code_challenge", &URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes())))
        .append_pair("code_challenge_method", "S256");
    let response = reply::redirect(to.as_str());
    Ok(match new {
        Some(token) => reply::with_cookie(response, &visit.set_visit(&token)),
        None => response,
    })
}

/// The browser comes back from the provider.
pub(super) async fn callback(visit: &Visit<'_>) -> Result<Response<Bytes>, Fault> {
    let settings = settings(visit)?;
    let query = visit.query();
    let value = |name: &str| paths::value(&query, name).unwrap_or_default();
    let Some(begun) = take(visit, value("state")).await? else {
        let message = "This sign-in was not begun in this browser, or it was used already. Begin again.";
        return Ok(again(visit, message));
    };
    if begun.issuer != settings.issuer || paths::value(&query, "iss").is_some_and(|iss| iss != begun.issuer) {
        return Ok(again(
            visit,
            "The answer is of another provider than the one that was asked. Begin again.",
        ));
    }
    if !value("error").is_empty() {
        return Ok(again(visit, "The provider did not sign you in. Try again, or use a code by e-mail."));
    }
    let person = async {
        let provider = Provider::discover(visit.services(), settings).await?;
        if provider.says_issuer && paths::value(&query, "iss").is_none() {
            return Err(Failure::Theirs(
                "the answer lacks `iss`, which the provider always sends".to_owned(),
            ));
        }
        let tokens = provider
            .redeem(visit.services(), settings, value("code"), &begun.verifier, &redirect_uri(visit))
            .await?;
        let mut keys = provider.keys(visit.services(), OPENID_KEPT_MS).await?;
        // The provider has new keys; somebody who makes ids up does not make us ask all the time.
        if id_token::names_unknown_key(&tokens.id_token, &keys) {
            keys = provider.keys(visit.services(), OPENID_REFRESH_MS).await?;
        }
        let expected = Expected {
            issuer: &settings.issuer,
            client_id: &settings.client_id,
            nonce: &begun.nonce,
            now_ms: visit.now_ms,
        };
        let claims = id_token::verify(visit.services(), &tokens.id_token, &keys, &expected)
            .await
            .map_err(|why| Failure::Theirs(why.to_owned()))?;
        let (subject, claims) = match claims.email {
            Some(_) => (claims.sub.clone(), claims),
            None => (claims.sub.clone(), provider.person(visit.services(), &tokens, &claims.sub).await?),
        };
        let email = claims.email.as_deref().filter(|_| claims.email_verified);
        let email = email.and_then(email::address);
        let unknown = || Failure::Theirs("the provider names no verified e-mail address".to_owned());
        let email = email.ok_or_else(unknown)?;
        let is_vouched_for = claims.vouches_for_domain(&settings.issuer, &email);
        Ok(Person { issuer: settings.issuer.clone(), subject, email, is_vouched_for })
    };
    let person = match person.await {
        Ok(person) => person,
        Err(failure) => return Ok(failed(visit, failure)),
    };
    let services = visit.services();
    let before = visit.session_token();
    match services.sign_in(&person, None, &visit.client(), before, &Batch::default()).await {
        Ok(token) => Ok(sign_in::enter(visit, &token, &begun.next)),
        Err(Fault::Refused(error)) => Ok(sign_in::ask_address(visit, "", &begun.next, Some(&error))),
        Err(fault) => Err(fault),
    }
}

/// What a sign-in began with.
struct Begun {
    issuer: String,
    nonce: String,
    verifier: String,
    next: String,
}

/// Takes what the sign-in with this state began with, once, and only in its browser.
async fn take(visit: &Visit<'_>, state: &str) -> Result<Option<Begun>, Fault> {
    let Some(token) = visit.token() else { return Ok(None) };
    let take = sql!(
        "DELETE FROM oidc_sign_ins WHERE state_hash = :state AND visit_hash = :visit AND created_at > :since
         RETURNING issuer, nonce, verifier, next",
        state = sha256_hex(state.as_bytes()),
        visit = sha256_hex(token.as_bytes()),
        since = visit.now_ms - SIGN_IN_MS
    );
    let [taken] = visit.services().write([take]).await?;
    let begun = |row: crate::ports::statement::Row<'_>| -> Result<Begun, Fault> {
        let (issuer, nonce) = (row.text("issuer")?, row.text("nonce")?);
        Ok(Begun { issuer, nonce, verifier: row.text("verifier")?, next: row.text("next")? })
    };
    taken.first().map(begun).transpose()
}

fn settings<'a>(visit: &Visit<'a>) -> Result<&'a OpenIdSettings, Error> {
    let missing =
        || Error::new(Code::NotFound, "Sign-in with Google is not set up here. Use a code by e-mail.");
    visit.services().config().google.as_ref().ok_or_else(missing)
}

fn again(visit: &Visit<'_>, message: &'static str) -> Response<Bytes> {
    sign_in::ask_address(visit, "", sign_in::HOME, Some(&Error::new(Code::InvalidToken, message)))
}

fn failed(visit: &Visit<'_>, failure: Failure) -> Response<Bytes> {
    match failure {
        // Nothing of it is shown: it may be what an attacker has made up.
        Failure::Theirs(detail) => {
            let message = "The provider's answer was not accepted. Try again, or use a code by e-mail.";
            crate::base::response::with_note(
                again(visit, message),
                format!("a sign-in was refused: {detail}"),
            )
        }
        Failure::Ours(detail) => {
            let error = Error::new(Code::Unavailable, "The provider cannot be asked. Use a code by e-mail.");
            let shown = sign_in::ask_address(visit, "", sign_in::HOME, Some(&error));
            with_incident(shown, Some(format!("the OpenID provider: {detail}")))
        }
    }
}
