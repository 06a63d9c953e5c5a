//! Signing in with a code or a link that was sent to an address.
use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{Response, Uri, header};
use serde_json::{Value, json};

use super::pages::{SignIn, sign_in};
use super::visit::Visit;
use super::{forms, mail, oidc, paths, reply};
use crate::base::email;
use crate::base::error::{Code, Error};
use crate::base::hash::sha256_hex;
use crate::base::limits::SIGN_IN_MS;
use crate::base::response::{json_response, with_incident, with_note};
use crate::base::time::Timestamp;
use crate::interfaces::mounted::{SIGN_IN_PATH, sign_in_link};
use crate::interfaces::operator_key;
use crate::storage::accounts::{BY_EMAIL, OPERATOR, Person, used_proof};
use crate::storage::fault::Fault;
use crate::storage::sign_ins::{Asker, Lately, Proven, Refused, Withheld};

/// Where the code is typed.
const CODE_PATH: &str = "/dashboard/sign-in/code";
/// Where people land.
pub(super) const HOME: &str = "/dashboard";

/// The forms of somebody without a session, below `SIGN_IN_PATH`. No other one is answered, so whoever checks these checks
/// them all.
pub const FORMS: &[&str] = &["", "/code", "/link"];
/// What the operator's key is sent to: no form, and no cookie counts.
const OPERATOR_CALL: &str = "/operator";

/// Answers what belongs to signing in; `None`: it does not.
pub(super) async fn route(
    visit: &Visit<'_>,
    path: &str,
    reads: bool,
) -> Result<Option<Response<Bytes>>, Fault> {
    let Some(rest) = path.strip_prefix(SIGN_IN_PATH) else { return Ok(None) };
    if !reads && rest != OPERATOR_CALL && !FORMS.contains(&rest) {
        return Err(no_page().into());
    }
    Ok(Some(match (rest, reads) {
        ("", true) => begin(visit).await?,
        ("", false) => send(visit).await?,
        ("/code", true) => await_code(visit).await?,
        ("/code", false) => code(visit).await?,
        ("/link", true) => show_link(visit).await?,
        ("/link", false) => link(visit).await?,
        (OPERATOR_CALL, false) => operator(visit).await,
        ("/google", true) => oidc::begin(visit).await?,
        ("/google/callback", true) => oidc::callback(visit).await?,
        _ => return Err(no_page().into()),
    }))
}

fn no_page() -> Error {
    Error::new(Code::NotFound, "There is no such page. Sign in at /dashboard/sign-in.")
}

/// Sends somebody without a session to the page to sign in, and back afterwards: to the page, or to that of the form.
pub(super) fn ask(visit: &Visit<'_>) -> Response<Bytes> {
    let request = &visit.incoming.request;
    let page = match request.method().is_safe() {
        true => Some(request.uri().clone()),
        false => request.headers().get(header::REFERER).and_then(|page| page.to_str().ok()?.parse().ok()),
    };
    let next = page.as_ref().and_then(Uri::path_and_query).map(PathAndQuery::as_str).and_then(paths::safe);
    let to = match next {
        Some(next) if next != HOME => paths::with_parameter(SIGN_IN_PATH, "next", next),
        _ => SIGN_IN_PATH.to_owned(),
    };
    let response = reply::redirect(&to);
    match visit.session_token() {
        Some(_) => reply::with_cookie(response, &visit.drop_session()),
        None => response,
    }
}

/// A form before there is a session.
struct Form<'a> {
    fields: Vec<(String, String)>,
    visit_hash: String,
    visit: &'a Visit<'a>,
}

impl<'a> Form<'a> {
    fn read(visit: &'a Visit<'a>) -> Result<Self, Error> {
        let fields = forms::read(visit)?;
        let Some(token) = visit.token() else {
            let message = "Your browser did not send the cookie of this page. Allow cookies for this address, load the \
                page to sign in again, and repeat.";
            return Err(Error::new(Code::ForbiddenOrigin, message));
        };
        forms::check(visit, &fields, |sent| visit.is_form_of_visit(token, sent).then_some(()))?;
        Ok(Self { fields, visit_hash: sha256_hex(token.as_bytes()), visit })
    }

    fn value(&self, name: &str) -> &str {
        paths::value(&self.fields, name).unwrap_or_default()
    }

    fn next(&self) -> &str {
        paths::safe(self.value("next")).unwrap_or(HOME)
    }

    /// The first step again, with what went wrong.
    fn again(&self, email: &str, error: &Error) -> Response<Bytes> {
        ask_address(self.visit, email, self.next(), Some(error))
    }
}

async fn begin(visit: &Visit<'_>) -> Result<Response<Bytes>, Fault> {
    let query = visit.query();
    let next = paths::value(&query, "next").and_then(paths::safe).unwrap_or(HOME);
    match visit.session().await? {
        Some(_) => Ok(reply::redirect(next)),
        None => Ok(ask_address(visit, "", next, None)),
    }
}

/// Sends a code and a link to an address. The answer is the same for every address.
async fn send(visit: &Visit<'_>) -> Result<Response<Bytes>, Fault> {
    let form = Form::read(visit)?;
    let typed = form.value("email");
    let Some(email) = email::address(typed) else {
        let message = "This is no e-mail address. Type one such as anna@example.com.";
        return Ok(form.again(typed, &Error::new(Code::ValidationFailed, message)));
    };
    let source = visit.source();
    let asker = Asker { email: &email, source: &source, visit_hash: &form.visit_hash, next: form.next() };
    let proof = match visit.services().prove_address(&asker, visit.now_ms).await? {
        Ok(proof) => proof,
        Err(withheld) => return no_code(&form, &email, &withheld).await,
    };
    let base_url = &visit.services().config().base_url;
    let link = sign_in_link(base_url, &proof.token);
    let response = reply::redirect(&paths::with_parameter(CODE_PATH, "next", form.next()));
    // Somebody who may not sign in gets a mail, too: neither the answer nor its time tells who has an account.
    let (mail, note) = if visit.services().admits_address(&email, visit.now_ms).await? {
        let note =
            format!("the sign-in code for {email} is {} (or open {link}); no mail is set up", proof.code);
        (mail::code(&email, &proof.code, &link), note)
    } else {
        let note = format!("no code was made for {email}: nobody invited this address (SIDETONE_SIGN_UP)");
        (mail::not_invited(&email, base_url), note)
    };
    match mail::send(visit.services(), &mail).await {
        mail::Sent::Delivered => Ok(response),
        mail::Sent::NotConfigured => Ok(with_note(response, note)),
        mail::Sent::Failed(detail) => {
            let error = Error::new(Code::Unavailable, "The mail could not be sent. Try again in a minute.");
            Ok(with_incident(form.again(typed, &error), Some(detail)))
        }
    }
}

/// Says why no further mail is sent, and what signs in instead. A browser that waits for a code of this address can type it.
async fn no_code(form: &Form<'_>, email: &str, withheld: &Withheld) -> Result<Response<Bytes>, Fault> {
    let message = match withheld {
        Withheld::Network => {
            "Too many codes were asked for from your network, so none was sent. Use the last one or its link, which are \
             good for ten minutes, or ask again in an hour."
        }
        Withheld::Address => {
            "Many codes were sent to this address just now, so no other one was. Open the link in the latest of those \
             mails: it signs you in, whoever asked for it."
        }
    };
    let error = Error::new(Code::TooManyCodes, message);
    let awaited = form.visit.services().awaited_address(&form.visit_hash, form.visit.now_ms).await?;
    Ok(match awaited.is_some_and(|awaited| awaited == email) {
        true => ask_code(form.visit, email, form.next(), Some(&error)),
        false => form.again(email, &error),
    })
}

async fn await_code(visit: &Visit<'_>) -> Result<Response<Bytes>, Fault> {
    let query = visit.query();
    let next = paths::value(&query, "next").and_then(paths::safe).unwrap_or(HOME);
    let awaited = match visit.token() {
        Some(token) => visit.services().awaited_address(&sha256_hex(token.as_bytes()), visit.now_ms).await?,
        None => None,
    };
    Ok(match awaited {
        Some(email) => ask_code(visit, &email, next, None),
        None => reply::redirect(SIGN_IN_PATH),
    })
}

async fn code(visit: &Visit<'_>) -> Result<Response<Bytes>, Fault> {
    let form = Form::read(visit)?;
    let typed: String = form.value("code").chars().filter(|c| !c.is_whitespace() && *c != '-').collect();
    let Some(email) = visit.services().awaited_address(&form.visit_hash, visit.now_ms).await? else {
        return Ok(form.again("", &used_proof()));
    };
    match visit.services().try_code(&form.visit_hash, &typed, visit.now_ms).await? {
        Ok(proven) => signed_in(&form, &proven).await,
        Err(Refused::Wrong(left)) => {
            let tries = if left == 1 { "1 try is".to_owned() } else { format!("{left} tries are") };
            let message = format!(
                "This is not the last code for {email}. Check its six digits: {tries} left, then ask for a new one."
            );
            Ok(ask_code(visit, &email, form.next(), Some(&Error::new(Code::ValidationFailed, message))))
        }
        Err(Refused::Gone) => {
            let message = "This code was tried too often. Ask for a new one.";
            Ok(form.again(&email, &Error::new(Code::TooManyCodes, message)))
        }
        Err(Refused::Address(lately)) => {
            let time = match lately {
                Lately::Hour => "tried too often in the last hour",
                Lately::Day => "typed wrong too often in the last 24 hours",
            };
            let message = format!(
                "Codes for this address were {time}. Open the link in the mail instead: it signs you in."
            );
            Ok(form.again(&email, &Error::new(Code::TooManyCodes, message)))
        }
    }
}

/// Opening a link signs nobody in: programs that check mails open links.
async fn show_link(visit: &Visit<'_>) -> Result<Response<Bytes>, Fault> {
    let query = visit.query();
    let token = paths::value(&query, "token").unwrap_or_default();
    Ok(match visit.services().read_link(token, visit.now_ms).await? {
        Some(proven) => page(visit, None, |csrf, problem| {
            sign_in(&SignIn::Link { token, email: &proven.email, problem, csrf })
        }),
        None => ask_address(visit, "", HOME, Some(&used_link())),
    })
}

/// A link of the operator is made anew by a command, not on this page.
fn used_link() -> Error {
    let mut error = used_proof();
    error.message.to_mut().push_str(" Whoever runs the service makes one with `sidetone sign-in-link`.");
    error
}

async fn link(visit: &Visit<'_>) -> Result<Response<Bytes>, Fault> {
    let form = Form::read(visit)?;
    match visit.services().read_link(form.value("token"), visit.now_ms).await? {
        Some(proven) => signed_in(&form, &proven).await,
        None => Ok(form.again("", &used_proof())),
    }
}

async fn signed_in(form: &Form<'_>, proven: &Proven) -> Result<Response<Bytes>, Fault> {
    let visit = form.visit;
    let services = visit.services();
    let (person, joins) = if proven.is_operator {
        let operator = OPERATOR.to_owned();
        let person = Person {
            issuer: operator.clone(),
            subject: operator,
            email: String::new(),
            is_vouched_for: true,
        };
        (person, services.workspace_of_the_operator().await?)
    } else {
        let email = proven.email.clone();
        (Person { issuer: BY_EMAIL.to_owned(), subject: email.clone(), email, is_vouched_for: true }, None)
    };
    let before = visit.session_token();
    match services.sign_in(&person, joins.as_ref(), &visit.client(), before, &proven.uses).await {
        Ok(token) => Ok(enter(visit, &token, &proven.next)),
        Err(Fault::Refused(error)) => Ok(form.again(&proven.email, &error)),
        Err(fault) => Err(fault),
    }
}

/// Makes a link that signs the operator in, for whoever has the operator's key: the command line of a host without one.
async fn operator(visit: &Visit<'_>) -> Response<Bytes> {
    match operator_link(visit).await {
        Ok(link) => with_note(json_response(201, link.to_string().into()), "made a sign-in link".to_owned()),
        // Wrong keys count as those of the API do.
        Err(fault) => visit.api.refuse(fault, visit.incoming, visit.now_ms, visit.request_id),
    }
}

async fn operator_link(visit: &Visit<'_>) -> Result<Value, Fault> {
    let config = visit.services().config();
    let otherwise = "`sidetone sign-in-link` makes a link, too.";
    operator_key::check(config, visit.incoming.request.headers(), otherwise)?;
    let token = visit.services().operator_link(SIGN_IN_MS).await?;
    let end = Timestamp::from_ms(visit.now_ms + SIGN_IN_MS);
    Ok(json!({"url": sign_in_link(&config.base_url, &token), "expires_at": end}))
}

/// Opens the session. The visit ends, and with it the forms that it was sent.
pub(super) fn enter(visit: &Visit<'_>, token: &str, next: &str) -> Response<Bytes> {
    let response = reply::redirect(paths::safe(next).unwrap_or(HOME));
    reply::with_cookie(reply::with_cookie(response, &visit.set_session(token)), &visit.drop_visit())
}

pub(super) fn ask_address(
    visit: &Visit<'_>,
    email: &str,
    next: &str,
    error: Option<&Error>,
) -> Response<Bytes> {
    let config = visit.services().config();
    let (google, logged) = (config.google.is_some(), config.mail.is_none());
    page(visit, error, |csrf, problem| sign_in(&SignIn::Email { email, logged, google, next, problem, csrf }))
}

fn ask_code(visit: &Visit<'_>, email: &str, next: &str, error: Option<&Error>) -> Response<Bytes> {
    let logged = visit.services().config().mail.is_none();
    page(visit, error, |csrf, problem| sign_in(&SignIn::Code { email, logged, next, problem, csrf }))
}

/// A page with a form of the visit, which begins with it if need be.
fn page(
    visit: &Visit<'_>,
    error: Option<&Error>,
    render: impl FnOnce(&str, Option<&str>) -> maud::Markup,
) -> Response<Bytes> {
    let new = visit.token().is_none().then(|| visit.services().new_token().0);
    let csrf = visit.csrf_of_visit(new.as_deref().or(visit.token()).unwrap_or_default());
    let markup = render(&csrf, error.map(|error| &*error.message));
    let response = reply::page(error.map_or(200, |error| error.code.status()), markup);
    match new {
        Some(token) => reply::with_cookie(response, &visit.set_visit(&token)),
        None => response,
    }
}
