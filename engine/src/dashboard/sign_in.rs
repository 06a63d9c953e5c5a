//! Signing in with a code or a link that was sent to an address.
use bytes::Bytes;
use http::Response;

use super::frame::{SignIn, SignInStep};
use super::visit::Visit;
use super::{forms, mail, paths, reply, starter as pages};
use crate::base::error::{Code, Error};
use crate::base::hash::sha256_hex;
use crate::base::limits::EMAIL_CHARS_MAX;
use crate::base::response::with_note;
use crate::interfaces::mounted::SIGN_IN_PATH;
use crate::storage::accounts::{BY_EMAIL, OPERATOR, Person, used_proof};
use crate::storage::fault::Fault;
use crate::storage::sign_ins::{Asker, Proven, Refused};

/// Answers what belongs to signing in; `None`: it does not.
pub(super) async fn route(
    visit: &Visit<'_>,
    path: &str,
    reads: bool,
) -> Result<Option<Response<Bytes>>, Fault> {
    let Some(rest) = path.strip_prefix(SIGN_IN_PATH) else { return Ok(None) };
    Ok(Some(match (rest, reads) {
        ("", true) => begin(visit).await?,
        ("", false) => send(visit).await?,
        ("/code", false) => code(visit).await?,
        ("/link", true) => show_link(visit).await?,
        ("/link", false) => link(visit).await?,
        ("/code", true) => reply::redirect(SIGN_IN_PATH),
        _ => {
            return Err(
                Error::new(Code::NotFound, "There is no such page. Sign in at /dashboard/sign-in.").into()
            );
        }
    }))
}

/// Sends somebody without a session to the page to sign in, and back afterwards.
pub(super) fn ask(visit: &Visit<'_>) -> Response<Bytes> {
    let uri = &visit.incoming.request.uri();
    let next = uri.path_and_query().map(http::uri::PathAndQuery::as_str).and_then(paths::safe);
    let to = match next {
        Some(next) if next != "/dashboard" && visit.incoming.request.method().is_safe() => {
            paths::with_parameter(SIGN_IN_PATH, "next", next)
        }
        _ => SIGN_IN_PATH.to_owned(),
    };
    let response = reply::redirect(&to);
    match visit.session_token() {
        Some(_) => reply::with_cookie(response, &visit.drop_session()),
        None => response,
    }
}

/// A form before there is a session: its fields, and the token of the visit that it belongs to.
fn form<'a>(visit: &Visit<'a>) -> Result<(Vec<(String, String)>, &'a str), Error> {
    let fields = forms::read(visit)?;
    let Some(token) = visit.token() else {
        let message = "Your browser did not send the cookie of this page. Allow cookies for this address, load the page \
            to sign in again, and repeat.";
        return Err(Error::new(Code::ForbiddenOrigin, message));
    };
    forms::check(visit, &fields, &visit.csrf_of_visit(token))?;
    Ok((fields, token))
}

async fn begin(visit: &Visit<'_>) -> Result<Response<Bytes>, Fault> {
    let query = visit.query();
    let next = paths::value(&query, "next").and_then(paths::safe).unwrap_or("/dashboard").to_owned();
    if visit.session().await?.is_some() {
        return Ok(reply::redirect(&next));
    }
    let again = paths::value(&query, "again").is_some();
    let awaited = match visit.token() {
        Some(token) if !again => {
            visit.services().awaited_address(&sha256_hex(token.as_bytes()), visit.now_ms).await?
        }
        _ => None,
    };
    let step = match awaited {
        Some(email) => SignInStep::Code { email },
        None => SignInStep::Address { email: String::new() },
    };
    Ok(page(visit, step, next, None))
}

/// Sends a code and a link to an address. The answer is the same for every address.
async fn send(visit: &Visit<'_>) -> Result<Response<Bytes>, Fault> {
    let (fields, token) = form(visit)?;
    let typed = paths::value(&fields, "email").unwrap_or_default();
    let next = paths::value(&fields, "next").and_then(paths::safe).unwrap_or("/dashboard");
    let again = |error| {
        Ok(page(visit, SignInStep::Address { email: typed.to_owned() }, next.to_owned(), Some(error)))
    };
    let Some(email) = address(typed) else {
        return again(Error::field("email", "must be an e-mail address, such as anna@example.com"));
    };
    let source = visit.source();
    let asker = Asker { email: &email, source: &source, visit_hash: &sha256_hex(token.as_bytes()), next };
    let Some(proof) = visit.services().prove_address(&asker, visit.now_ms).await? else {
        let message = "Too many codes were asked for. Use the last one, or wait for an hour.";
        let mut error = Error::new(Code::TooManyCodes, message);
        error.retry_after_s = Some(3600);
        return again(error);
    };
    let base_url = &visit.services().config().base_url;
    let link = format!("{base_url}{SIGN_IN_PATH}/link?token={}", proof.token);
    let response = reply::redirect(SIGN_IN_PATH);
    match mail::send(visit.services(), &mail::code(&email, &proof.code, &link)).await {
        mail::Sent::Delivered => Ok(response),
        mail::Sent::NotConfigured => {
            let note = format!("the sign-in code for {email} is {} (or open {link})", proof.code);
            Ok(with_note(response, note))
        }
        mail::Sent::Failed(detail) => {
            let message = "The mail could not be sent. Try again in a minute.";
            let error = Error::new(Code::Unavailable, message);
            let shown = again(error)?;
            Ok(crate::base::response::with_incident(shown, Some(detail)))
        }
    }
}

async fn code(visit: &Visit<'_>) -> Result<Response<Bytes>, Fault> {
    let (fields, token) = form(visit)?;
    let visit_hash = sha256_hex(token.as_bytes());
    let typed: String = paths::value(&fields, "code")
        .unwrap_or_default()
        .chars()
        .filter(|c| !c.is_whitespace() && *c != '-')
        .collect();
    let Some(email) = visit.services().awaited_address(&visit_hash, visit.now_ms).await? else {
        let step = SignInStep::Address { email: String::new() };
        return Ok(page(visit, step, "/dashboard".to_owned(), Some(used_proof())));
    };
    match visit.services().try_code(&visit_hash, &typed, visit.now_ms).await? {
        Ok(proven) => signed_in(visit, &proven).await,
        Err(Refused::Wrong) => {
            let error = Error::field("code", "is not the code of the last mail; check its six digits");
            Ok(page(visit, SignInStep::Code { email }, "/dashboard".to_owned(), Some(error)))
        }
        Err(Refused::Gone) => {
            let message = "This code was tried too often. Ask for a new one.";
            let error = Error::new(Code::TooManyCodes, message);
            Ok(page(visit, SignInStep::Address { email }, "/dashboard".to_owned(), Some(error)))
        }
    }
}

async fn show_link(visit: &Visit<'_>) -> Result<Response<Bytes>, Fault> {
    let query = visit.query();
    let token = paths::value(&query, "token").unwrap_or_default();
    match visit.services().read_link(token, visit.now_ms).await? {
        Some(proven) => {
            let step = SignInStep::Link { token: token.to_owned(), email: proven.email };
            Ok(page(visit, step, proven.next, None))
        }
        None => {
            let step = SignInStep::Address { email: String::new() };
            Ok(page(visit, step, "/dashboard".to_owned(), Some(used_proof())))
        }
    }
}

async fn link(visit: &Visit<'_>) -> Result<Response<Bytes>, Fault> {
    let (fields, _) = form(visit)?;
    let token = paths::value(&fields, "token").unwrap_or_default();
    match visit.services().read_link(token, visit.now_ms).await? {
        Some(proven) => signed_in(visit, &proven).await,
        None => {
            let step = SignInStep::Address { email: String::new() };
            Ok(page(visit, step, "/dashboard".to_owned(), Some(used_proof())))
        }
    }
}

async fn signed_in(visit: &Visit<'_>, proven: &Proven) -> Result<Response<Bytes>, Fault> {
    let services = visit.services();
    let (person, joins) = if proven.is_first {
        let person =
            Person { issuer: OPERATOR.to_owned(), subject: OPERATOR.to_owned(), email: String::new() };
        (person, services.oldest_workspace().await?)
    } else {
        let email = proven.email.clone();
        (Person { issuer: BY_EMAIL.to_owned(), subject: email.clone(), email }, None)
    };
    let before = visit.session_token();
    let session = services.sign_in(&person, joins.as_ref(), &visit.client(), before, &proven.uses).await;
    let token = match session {
        Ok(token) => token,
        Err(Fault::Refused(error)) => {
            let step = SignInStep::Address { email: proven.email.clone() };
            return Ok(page(visit, step, proven.next.clone(), Some(error)));
        }
        Err(fault) => return Err(fault),
    };
    let next = paths::safe(&proven.next).unwrap_or("/dashboard");
    let response = reply::with_cookie(reply::redirect(next), &visit.set_session(&token));
    // The visit ends, and with it the forms that it has sent.
    Ok(reply::with_cookie(response, &visit.drop_visit()))
}

fn page(visit: &Visit<'_>, step: SignInStep, next: String, problem: Option<Error>) -> Response<Bytes> {
    let new = visit.token().is_none().then(|| visit.services().new_token().0);
    let token = new.as_deref().or(visit.token()).unwrap_or_default();
    let shown = SignIn {
        csrf: visit.csrf_of_visit(token),
        step,
        next,
        google: false,
        to_log: visit.services().config().mail.is_none(),
        problem: problem.as_ref().map(|error| error.to_json(visit.request_id)["error"].take()),
    };
    let status = problem.as_ref().map_or(200, |error| error.code.status());
    let response = reply::page(status, pages::sign_in(&shown));
    match new {
        Some(token) => reply::with_cookie(response, &visit.set_visit(&token)),
        None => response,
    }
}

/// The address in lower case; `None` if it is none.
pub(super) fn address(typed: &str) -> Option<String> {
    let address = typed.trim().to_ascii_lowercase();
    let (name, host) = address.rsplit_once('@')?;
    let is_plain = |c: char| c.is_ascii_graphic() && !"\"(),:;<>[\\]@".contains(c);
    let fits = !name.is_empty() && host.len() >= 3 && host.contains('.') && address.len() <= EMAIL_CHARS_MAX;
    let is_host = !host.starts_with('.') && !host.ends_with('.') && !host.contains("..");
    (fits && is_host && name.chars().chain(host.chars()).all(is_plain)).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_in_lower_case() {
        assert_eq!(address(" Anna@Example.COM ").as_deref(), Some("anna@example.com"));
        for bad in [
            "",
            "anna",
            "@a.example",
            "a@b",
            "a@.b.c",
            "a b@c.example",
            "a@b.example\nbcc: x@y.example",
            "a@b@c.example",
        ] {
            assert_eq!(address(bad), None, "{bad}");
        }
    }
}
