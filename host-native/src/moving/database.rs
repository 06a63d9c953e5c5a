//! `sidetone workspace move`: between the databases of one service.
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use sidetone_engine::storage::moves::requests;

use super::asking::{Found, ask, find, strange, text};
use super::export::TOLD_EVERY;
use super::host::MoveHost;
use super::{Say, Stop, told};
use crate::text::counted;

/// What moves, and how.
#[derive(Debug, Clone, Copy)]
pub struct Moving<'a> {
    /// The workspace's id or name.
    pub workspace: &'a str,
    /// The name of the database, as `SIDETONE_SHARDS` has it, or `DB`; `None`: a move that is under way is canceled.
    pub database: Option<&'a str>,
    /// Prices that carriers report after a call are not waited for.
    pub without_late_prices: bool,
    /// How long to wait for what is under way.
    pub wait: Duration,
    /// How often to ask whether it is over.
    pub pause: Duration,
}

/// Asks for one step after the other until the workspace is in one database.
pub async fn to_database(host: &dyn MoveHost, wish: &Moving<'_>, say: Say<'_>) -> Result<String, Stop> {
    let found = find(host, wish.workspace).await?;
    let mut has_begun = false;
    let done = steps(host, wish, &found, &mut has_begun, say).await;
    let Found { id, name } = found;
    done.map_err(|stop| match has_begun {
        true => stop.and(&format!(
            "\n{name} may be closed or frozen: run this again, or `sidetone workspace move {id} --cancel{}`.",
            host.option()
        )),
        false => stop,
    })
}

/// The same of this workspace. Whether the service has made a step.
async fn steps(
    host: &dyn MoveHost,
    wish: &Moving<'_>,
    Found { id, name }: &Found,
    has_begun: &mut bool,
    say: Say<'_>,
) -> Result<String, Stop> {
    let path = format!("/operator/workspaces/{id}/database");
    let without_late_prices = wish.without_late_prices;
    let body =
        |database: &str| json!(requests::Moving { database: database.to_owned(), without_late_prices });
    let body = wish.database.map(body);
    let method = if body.is_some() { Method::POST } else { Method::DELETE };
    let begun_at = Instant::now();
    let (mut said_at, mut said) = (Instant::now(), String::new());
    loop {
        let answer = ask(host, method.clone(), &path, body.as_ref()).await??;
        *has_begun = true;
        let state = text(&answer, "state");
        let line = match state {
            "at" => {
                return Ok(format!("{name} ({id}) is in {} at {}", text(&answer, "database"), host.place()));
            }
            "closing" if answer["waiting_for"].is_null() => {
                format!("no call and no run begins in {name} any more")
            }
            "closing" => {
                let waits = told::waiting(&answer["waiting_for"]);
                if begun_at.elapsed() >= wish.wait {
                    return Err(Stop::Waits(format!("{name} is not frozen yet: it waits for {waits}.")));
                }
                format!("waiting for {waits} …")
            }
            "copying" | "comparing" | "settling" => progress(state, name, &answer),
            _ => return Err(strange(host)),
        };
        // How many rows there are changes with each step.
        let what = if state == "closing" { line.clone() } else { state.to_owned() };
        if what != said || said_at.elapsed() >= TOLD_EVERY {
            (said_at, said) = (Instant::now(), what);
            say(&line);
        }
        if !answer["waiting_for"].is_null() {
            tokio::time::sleep(wish.pause).await;
        }
    }
}

fn progress(state: &str, name: &str, answer: &Value) -> String {
    let rows = counted(answer["rows"].as_u64().unwrap_or_default(), "row");
    match state {
        "copying" => format!("{name} is frozen: it can be read, and takes no changes; {rows} copied …"),
        "comparing" => format!("{rows} copied; comparing …"),
        _ => format!(
            "{name} belongs to {}; what {} has of it is erased ({rows}) …",
            text(answer, "database"),
            text(answer, "other_database")
        ),
    }
}
