//! `sidetone doctor`: looks at everything that keeps a service from working, all at once, and changes nothing. No finding
//! contains a secret: of what others answer, only the status is told.
mod accounts;
mod clock;
mod machine;
mod moves;
mod reach;
mod settings;

use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};

use crate::data::{DataFolder, Server};
use crate::settings::Settings;
use clock::Dates;

/// The time of each look.
const LOOK: Duration = Duration::from_secs(10);
/// Of that, the time for others to answer.
const ANSWER_MS: u64 = 9_000;

/// How a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// As it should be.
    Good,
    /// It works, and may not go on to, or it could not be looked at.
    Warning,
    /// Something does not work.
    Problem,
}

/// What was looked at, and what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at: a part of the machine, or the name of an account.
    pub check: String,
    /// How it is.
    pub state: State,
    /// What is so and, unless it is good, what to do.
    pub detail: String,
}

impl Finding {
    fn new(check: &str, state: State, detail: impl Into<String>) -> Self {
        Self { check: check.to_owned(), state, detail: detail.into() }
    }

    fn good(check: &str, detail: impl Into<String>) -> Self {
        Self::new(check, State::Good, detail)
    }

    fn warning(check: &str, detail: impl Into<String>) -> Self {
        Self::new(check, State::Warning, detail)
    }

    fn problem(check: &str, detail: impl Into<String>) -> Self {
        Self::new(check, State::Problem, detail)
    }
}

/// A look at something.
type Look<'a> = (&'a str, BoxFuture<'a, Vec<Finding>>);

/// Looks at everything at once, for `LOOK` at most.
pub async fn examine(settings: &Settings) -> Vec<Finding> {
    let (found, config) = settings::examine(settings);
    let server: Option<Server> = DataFolder::server_of(&settings.data);
    let dates = Dates::default();
    let asker = config.as_ref().map(|config| reach::Asker::new(config, &dates));
    let mut looks: Vec<Look<'_>> = machine::looks(settings);
    let mut findings = found;
    match &asker {
        Some(Ok(asker)) => {
            looks.push(("base URL", Box::pin(reach::base_url(asker, server.is_some()))));
            looks.extend(accounts::looks(asker));
        }
        Some(Err(error)) => findings.push(Finding::problem("network", error.as_str())),
        None => {}
    }
    let within = looks.into_iter().map(|(check, look)| async move {
        tokio::time::timeout(LOOK, look).await.unwrap_or_else(|_| {
            vec![Finding::warning(check, format!("nothing is known after {} s; try again", LOOK.as_secs()))]
        })
    });
    findings.extend(join_all(within).await.into_iter().flatten());
    findings.push(dates.finding());
    findings
}
