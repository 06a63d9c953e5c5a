//! Signing in: an address, then the code that was sent to it; or Google. Works without script.
use maud::{Markup, html};

use crate::dashboard::layout;
use crate::dashboard::paths::with_parameter;
use crate::interfaces::mounted::JOIN_PATH;

/// Where somebody is on the way in.
pub enum SignIn<'a> {
    /// Asks for an address. Sends `email` and `next` to `/dashboard/sign-in`.
    Email {
        /// What was typed.
        email: &'a str,
        /// Whether codes go to the server's log, because no mail is set up.
        logged: bool,
        /// Whether Google is offered: a link to `/dashboard/sign-in/google`.
        google: bool,
        /// Where to go afterwards.
        next: &'a str,
        /// What went wrong, in a sentence.
        problem: Option<&'a str>,
        /// The token of the form.
        csrf: &'a str,
    },
    /// Asks for the code. Sends `email`, `code` and `next` to `/dashboard/sign-in/code`.
    Code {
        /// Where the code was sent to.
        email: &'a str,
        /// Whether it went to the server's log, because no mail is set up.
        logged: bool,
        /// Where to go afterwards.
        next: &'a str,
        /// What went wrong, in a sentence.
        problem: Option<&'a str>,
        /// The token of the form.
        csrf: &'a str,
    },
    /// Confirms a link from a mail, so that a program that follows links signs nobody in. Sends `token` to
    /// `/dashboard/sign-in/link`.
    Link {
        /// The link's token.
        token: &'a str,
        /// Whom it signs in; empty: the operator.
        email: &'a str,
        /// What went wrong, in a sentence.
        problem: Option<&'a str>,
        /// The token of the form.
        csrf: &'a str,
    },
}

/// The page.
pub fn sign_in(state: &SignIn<'_>) -> Markup {
    match state {
        SignIn::Email { email, logged, google, next, problem, csrf } => layout::plain(
            "Sign in",
            html! {
                (told(*problem))
                @if next.starts_with(JOIN_PATH) { p { "You are invited. Sign in with the address that the invitation was sent to; if you have no account, this makes one." } }
                @if *logged { p { "No mail is set up here: your code will be in the server's log. Ask whoever runs this server for it." } }
                @if *logged && !next.starts_with(JOIN_PATH) {
                    p {
                        "A newcomer gets a new workspace. If you run this server from a command line, its first workspace opens with the long link that it printed at its start; "
                        code { "sidetone sign-in-link" } " makes another."
                    }
                }
                @if *google {
                    a.button href=(with_parameter("/dashboard/sign-in/google", "next", next)) {
                        "Continue with Google"
                    }
                    p.or { "or" }
                }
                form method="post" action="/dashboard/sign-in" {
                    (hidden(csrf, next))
                    div.field {
                        label for="email" { "E-mail address" }
                        input #email type="email" name="email" value=(email) required autocomplete="email" autofocus
                            maxlength="254" placeholder="you@example.com";
                    }
                    button.primary { "Send code" }
                }
                p.help { "You get a code of six digits. There is no password." }
            },
        ),
        SignIn::Code { email, logged, next, problem, csrf } => layout::plain(
            "Enter the code",
            html! {
                p {
                    @if *logged { "No mail is set up here, so the code for " strong { (email) } " is in the server's log. Whoever runs this server can read it to you; it holds for 10 minutes." }
                    @else { "We sent a code of six digits to " strong { (email) } ". It holds for 10 minutes." }
                }
                (told(*problem))
                form method="post" action="/dashboard/sign-in/code" {
                    (hidden(csrf, next))
                    input type="hidden" name="email" value=(email);
                    div.field {
                        label for="code" { "Code" }
                        input.code #code name="code" required inputmode="numeric" autocomplete="one-time-code" autofocus
                            pattern="[0-9 ]*" maxlength="7" spellcheck="false";
                    }
                    button.primary { "Sign in" }
                }
                p.help { @if *logged { "The log" } @else { "The mail" } " also has a link that does the same. " a href=(with_parameter("/dashboard/sign-in", "next", next)) { "Use another address" } }
            },
        ),
        SignIn::Link { token, email, problem, csrf } => layout::plain(
            "Sign in",
            html! {
                (told(*problem))
                @if email.is_empty() { p { "This link signs you in as the operator of this Sidetone. It works once." } }
                @else { p { "Sign in as " strong { (email) } "?" } }
                form method="post" action="/dashboard/sign-in/link" {
                    input type="hidden" name="_csrf" value=(csrf);
                    input type="hidden" name="token" value=(token);
                    button.primary autofocus { "Sign in" }
                }
                p.help { a href="/dashboard/sign-in" { "Sign in another way" } }
            },
        ),
    }
}

fn hidden(csrf: &str, next: &str) -> Markup {
    html! {
        input type="hidden" name="_csrf" value=(csrf);
        input type="hidden" name="next" value=(next);
    }
}

fn told(problem: Option<&str>) -> Markup {
    html! { @if let Some(problem) = problem { p.problem role="alert" { (problem) } } }
}
