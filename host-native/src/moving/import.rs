//! `sidetone import`: the target of a move.
use std::path::Path;
use std::time::Instant;

use http::Method;
use serde_json::{Value, json};
use sidetone_engine::storage::moves::part::Head;
use sidetone_engine::storage::moves::requests::Opening;

use super::asking::{Refusal, ask, put, strange, text};
use super::desk::Desk;
use super::export::{Release, TOLD_EVERY, export_of, released};
use super::file::{Reader, head_of};
use super::{Say, Stop, told};

/// What is imported, and how.
#[derive(Clone, Copy)]
pub struct Import<'a> {
    /// The file.
    pub file: &'a Path,
    /// The source, which hands the workspace over as soon as everything is here.
    pub from: Option<&'a dyn Desk>,
    /// The e-mail address of somebody who is invited as an admin.
    pub admin: Option<&'a str>,
}

/// An import of a file, as the target tells of it.
#[derive(Debug)]
struct Known {
    state: State,
    /// Once everything is there.
    import_id: Option<String>,
    /// The address that clients of the workspace use, if the target tells it.
    base_url: Option<String>,
}

/// How far an import is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It takes parts.
    Arriving,
    /// Everything is there.
    Arrived,
    /// The code was right.
    Opening,
    /// The workspace runs.
    Running,
}

/// Sends the file and has it compared. With a source that hands over, the workspace runs here then. Returns what to tell at last.
pub async fn import(desk: &dyn Desk, wish: &Import<'_>, say: Say<'_>) -> Result<String, Stop> {
    say(&format!("checking {} …", wish.file.display()));
    let reader = Reader::open(wish.file)?;
    let head = reader.head();
    // Also if it is open there already: whoever runs the command again has not seen its end.
    if known(desk, head).await?.is_none_or(|known| known.state == State::Arriving) {
        let next = begin(desk, &reader, wish.file, say).await?;
        send(desk, &reader, next, say).await?;
        verify(desk, head, say).await?;
        say(&format!("Every row and file is as in {}.", wish.file.display()));
    }
    let Some(Known { state, import_id, base_url }) = known(desk, head).await? else {
        return Err(strange(desk));
    };
    let import_id = import_id.ok_or_else(|| strange(desk))?;
    // A tunnel, or an address within a network, is none that clients of the workspace can use.
    let moved_to = base_url.unwrap_or_else(|| desk.place().to_owned());
    let release =
        Release { export_id: &head.export_id, import_id: &import_id, to: &moved_to, instead_of: None };
    if state == State::Running {
        // Whoever runs the command again may not have seen the link of the invitation. The code says that they may.
        let code = match (wish.from, wish.admin) {
            (Some(source), Some(_)) => released(source, &head.workspace_id, &release).await.ok(),
            _ => None,
        };
        let opened = match code {
            Some(code) => open(desk, head, &code, wish.admin).await?,
            None => Opened::default(),
        };
        return Ok(runs(desk, wish.from, head, &opened));
    }
    let Some(source) = wish.from else {
        return Err(Stop::Waits(format!(
            "{} waits at {} to be handed over. At the host that it comes from, run:\n  \
             sidetone export --workspace {} --release {import_id} --export-id {} --to {moved_to}\n\
             and give the code that it prints to: sidetone import {} --code{}",
            head.name,
            desk.place(),
            head.workspace_id,
            head.export_id,
            wish.file.display(),
            desk.option()
        )));
    };
    // It would refuse to hand the workspace over for a file of another export, but not say what to do here.
    match export_of(source, &head.workspace_id).await? {
        Some(export_id) if export_id == head.export_id => {}
        _ => {
            return Err(Stop::Waits(format!(
                "{}: {} is not frozen for this file any more. Export it again, and drop what has arrived: sidetone import {} \
                 --drop{}",
                source.place(),
                head.name,
                wish.file.display(),
                desk.option()
            )));
        }
    }
    let code = released(source, &head.workspace_id, &release).await?;
    say(&format!("handed over by {}", source.place()));
    let opened = open(desk, head, &code, wish.admin).await?;
    Ok(runs(desk, wish.from, head, &opened))
}

/// Opens what has arrived with the code of the source.
pub async fn open_with(
    desk: &dyn Desk,
    file: &Path,
    code: &str,
    admin: Option<&str>,
) -> Result<String, Stop> {
    let head = head_of(file)?;
    match known(desk, &head).await?.map(|known| known.state) {
        Some(State::Running) if admin.is_none() => Ok(runs(desk, None, &head, &Opened::default())),
        // The link of the invitation may not have been seen.
        Some(State::Arrived | State::Opening | State::Running) => {
            let opened = open(desk, &head, code, admin).await?;
            Ok(runs(desk, None, &head, &opened))
        }
        Some(State::Arriving) | None => Err(Stop::Waits(format!(
            "not everything of {} is at {} yet; run first: sidetone import {}{}",
            head.name,
            desk.place(),
            file.display(),
            desk.option()
        ))),
    }
}

/// Removes an import that does not run.
pub async fn discard(desk: &dyn Desk, file: &Path) -> Result<String, Stop> {
    let head = head_of(file)?;
    // A workspace that runs here may have come with another file.
    if known(desk, &head).await?.is_none_or(|known| known.state == State::Running) {
        return Err(Stop::Waits(format!(
            "nothing of {} waits at {} to be opened",
            file.display(),
            desk.place()
        )));
    }
    loop {
        let answer = ask(desk, Method::DELETE, &path_of(&head), None).await??;
        match text(&answer, "state") {
            "" if answer.is_null() => break,
            "dropping" => {}
            _ => return Err(strange(desk)),
        }
    }
    Ok(format!(
        "What had arrived of {} at {} is removed. The file can be imported again.",
        head.name,
        desk.place()
    ))
}

fn path_of(head: &Head) -> String {
    format!("/operator/imports/{}", head.workspace_id)
}

/// The import of this file; `None`: there is none.
async fn known(desk: &dyn Desk, head: &Head) -> Result<Option<Known>, Stop> {
    let answer = match ask(desk, Method::GET, &path_of(head), None).await? {
        Ok(answer) => answer,
        Err(refusal) if refusal.is_of_nothing() => return Ok(None),
        Err(refusal) => return Err(refusal.into()),
    };
    if text(&answer, "export_id") != head.export_id {
        return Ok(None);
    }
    let state = match text(&answer, "state") {
        // What is being dropped takes no parts; beginning says so.
        "arriving" | "dropping" => State::Arriving,
        "arrived" => State::Arrived,
        "opening" => State::Opening,
        "running" => State::Running,
        _ => return Err(strange(desk)),
    };
    let text = |name: &str| answer[name].as_str().map(str::to_owned);
    Ok(Some(Known { state, import_id: text("import_id"), base_url: text("base_url") }))
}

/// Begins, or goes on: says what the target does not know. Returns the next part, from 1.
async fn begin(desk: &dyn Desk, reader: &Reader, file: &Path, say: Say<'_>) -> Result<u64, Stop> {
    let head = reader.head();
    let body: Value = serde_json::from_str(&head.to_line()).map_err(|_| strange(desk))?;
    let answer = ask(desk, Method::POST, "/operator/imports", Some(&body)).await??;
    say(&format!("At {}: {} ({}) arrives", desk.place(), head.name, head.workspace_id));
    for warning in answer["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        say(&format!("warning: {warning}"));
    }
    let next = answer["next_part"].as_u64().filter(|next| *next >= 1).ok_or_else(|| strange(desk))?;
    // A file that was made again has the same rows, but its parts may end elsewhere.
    if reader.chain_before(next).is_none_or(|chain| chain.as_str() != text(&answer, "chain")) {
        return Err(Stop::Waits(format!(
            "What has arrived at {} is of another file of the same export, which is cut elsewhere. Go on with that file; or, if \
             it is lost, drop what has arrived, and import again: sidetone import {} --drop{}",
            desk.place(),
            file.display(),
            desk.option()
        )));
    }
    Ok(next)
}

/// Sends the parts from `next` on, with the end.
async fn send(desk: &dyn Desk, reader: &Reader, mut next: u64, say: Say<'_>) -> Result<(), Stop> {
    let parts = reader.parts();
    let mut told_at: Option<Instant> = None;
    while let Some(part) = reader.part(next)? {
        if next == parts || told_at.is_none_or(|at| at.elapsed() >= TOLD_EVERY) {
            told_at = Some(Instant::now());
            say(&format!("part {} of {}", told::count(next), told::count(parts)));
        }
        let path = format!("{}/parts/{next}", path_of(reader.head()));
        let answered = match put(desk, &path, part).await? {
            Ok(answer) => answer["next_part"].as_u64().filter(|after| *after > next),
            // Another command has sent the rest, and had it compared.
            Err(refusal) if refusal.reason == "complete" => return Ok(()),
            // Another command sends the same file, or has begun it anew.
            Err(Refusal { reason, details, .. }) if reason == "out_of_order" => {
                details["next_part"].as_u64().filter(|after| *after != next && *after >= 1)
            }
            Err(refusal) => return Err(refusal.into()),
        };
        next = answered.ok_or_else(|| strange(desk))?;
    }
    Ok(())
}

/// Has everything compared with what the file says at its end.
async fn verify(desk: &dyn Desk, head: &Head, say: Say<'_>) -> Result<(), Stop> {
    let path = format!("{}/verify", path_of(head));
    let mut told_at = Instant::now();
    loop {
        let answer = ask(desk, Method::POST, &path, None).await??;
        match text(&answer, "state") {
            "arrived" | "opening" | "running" => return Ok(()),
            "arriving" => {}
            _ => return Err(strange(desk)),
        }
        if told_at.elapsed() >= TOLD_EVERY {
            told_at = Instant::now();
            say(&format!("comparing {} …", text(&answer, "table")));
        }
    }
}

/// What opening an import has told.
#[derive(Default)]
struct Opened {
    /// The link of the invitation, if somebody was invited.
    invitation: Option<String>,
    /// Tools and webhooks that have new signing secrets.
    without_secrets: Vec<String>,
}

/// Opens the import.
async fn open(desk: &dyn Desk, head: &Head, code: &str, admin: Option<&str>) -> Result<Opened, Stop> {
    let body = json!(Opening { code: code.to_owned(), admin: admin.map(str::to_owned) });
    let path = format!("{}/open", path_of(head));
    let mut opened = Opened::default();
    loop {
        let answer = ask(desk, Method::POST, &path, Some(&body)).await??;
        let lost = answer["without_secrets"].as_array().into_iter().flatten();
        opened.without_secrets.extend(lost.filter_map(Value::as_str).map(str::to_owned));
        match text(&answer, "state") {
            "running" => {
                opened.invitation = answer["invitation_url"].as_str().map(str::to_owned);
                return Ok(opened);
            }
            "opening" => {}
            _ => return Err(strange(desk)),
        }
    }
}

/// The workspace runs: what is left to do.
fn runs(desk: &dyn Desk, from: Option<&dyn Desk>, head: &Head, opened: &Opened) -> String {
    let Opened { invitation, without_secrets } = opened;
    let mut text = format!("{} runs at {}\n", head.name, desk.place());
    if let Some(url) = invitation {
        text.push_str(&format!("The invitation, which works once: {url}\n"));
    }
    if !without_secrets.is_empty() {
        text.push_str(&format!(
            "Their signing secrets could not be opened, so they have new ones: {}\n",
            without_secrets.join(", ")
        ));
    }
    let numbers = match head.numbers.len() as u64 {
        0 => String::new(),
        some => format!("point the carriers' addresses of {} here; ", told::counted(some, "number")),
    };
    let people = if invitation.is_some() { "" } else { "invite people (--admin); " };
    text.push_str(&format!(
        "Now: {numbers}{people}change the address in clients (keys stay the same).\n\
         Then, at the host that it comes from: sidetone export --workspace {} --erase{}",
        head.workspace_id,
        from.map(|from| from.option()).unwrap_or_default()
    ));
    text
}
