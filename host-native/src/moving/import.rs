//! `sidetone import`: the target of a move.
use std::path::Path;
use std::time::Instant;

use http::Method;
use serde_json::{Value, json};
use sidetone_engine::base::ids::WorkspaceId;
use sidetone_engine::storage::moves::part::Head;
use sidetone_engine::storage::moves::requests::Opening;

use super::asking::{Found, Refusal, ask, find, put, strange, text};
use super::export::{Release, TOLD_EVERY, export_of, released};
use super::file::{Reader, head_of};
use super::host::MoveHost;
use super::{Say, Stop};
use crate::text::{count, counted};

/// What is imported, and how.
#[derive(Clone, Copy)]
pub struct Import<'a> {
    /// The file.
    pub file: &'a Path,
    /// The source, which hands the workspace over as soon as everything is here.
    pub from: Option<&'a dyn MoveHost>,
    /// The e-mail address of somebody who is invited as an admin.
    pub admin: Option<&'a str>,
}

/// An import, as the target tells of it.
#[derive(Debug)]
struct Known {
    state: State,
    /// The export that it is of.
    export_id: String,
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
pub async fn import(host: &dyn MoveHost, wish: &Import<'_>, say: Say<'_>) -> Result<String, Stop> {
    say(&format!("checking {} …", wish.file.display()));
    let reader = Reader::open(wish.file)?;
    let head = reader.head();
    let before = known(host, head).await?;
    // A wrong URL or key of the source, or a file that it gives nothing for, shows before an hour of sending.
    if let Some(source) = wish.from
        && before.as_ref().is_none_or(|known| known.state != State::Running)
    {
        let import_id = before.as_ref().and_then(|known| known.import_id.as_deref());
        check_source(host, source, head, wish.file, import_id).await?;
    }
    // Also if it is open there already: whoever runs the command again has not seen its end.
    if before.is_none_or(|known| known.state == State::Arriving) {
        let next = begin(host, &reader, wish.file, say).await?;
        send(host, &reader, next, say).await?;
        verify(host, head, say).await?;
        say(&format!("Every row and file is as in {}.", wish.file.display()));
    }
    let Some(Known { state, import_id, base_url, .. }) = known(host, head).await? else {
        return Err(strange(host));
    };
    let import_id = import_id.ok_or_else(|| strange(host))?;
    // A tunnel, or an address within a network, is none that clients of the workspace can use.
    let moved_to = base_url.unwrap_or_else(|| host.place().to_owned());
    let release =
        Release { export_id: &head.export_id, import_id: &import_id, to: &moved_to, instead_of: None };
    if state == State::Running {
        // Whoever runs the command again may not have seen the link of the invitation. The code says that they may.
        let code = match (wish.from, wish.admin) {
            (Some(source), Some(_)) => released(source, &head.workspace_id, &release).await.ok(),
            _ => None,
        };
        let opened = match code {
            Some(code) => open(host, head, &code, wish.admin).await?,
            None => Opened::default(),
        };
        return Ok(runs(host, wish.from, head, &import_id, &opened));
    }
    let Some(source) = wish.from else {
        return Err(Stop::Waits(format!(
            "{} waits at {} to be handed over. At the host that it comes from, run:\n  {}\n\
             and give the code that it prints to: sidetone import {} --code{}",
            head.name,
            host.place(),
            release_command(head, &import_id, &moved_to),
            wish.file.display(),
            host.option()
        )));
    };
    // It would refuse to hand the workspace over for a file of another export, but not say what to do here.
    check_source(host, source, head, wish.file, Some(&import_id)).await?;
    let code = released(source, &head.workspace_id, &release).await?;
    say(&format!("handed over by {}", source.place()));
    let opened = open(host, head, &code, wish.admin).await?;
    Ok(runs(host, wish.from, head, &import_id, &opened))
}

/// Makes sure that the source can hand the workspace over for this file, or has, to this import.
async fn check_source(
    host: &dyn MoveHost,
    source: &dyn MoveHost,
    head: &Head,
    file: &Path,
    import_id: Option<&str>,
) -> Result<(), Stop> {
    let Head { export_id, workspace_id, name, .. } = head;
    let (place, file, option) = (source.place(), file.display(), host.option());
    let now = export_of(source, workspace_id).await?.filter(|now| text(now, "export_id") == *export_id);
    let now = now.unwrap_or_default();
    let given = text(&now, "import_id");
    match text(&now, "state") {
        "frozen" => Ok(()),
        "released" | "erasing" | "gone" if import_id == Some(given) => Ok(()),
        "released" | "erasing" | "gone" => Err(Stop::Waits(format!(
            "{place}: {name} was handed over to another import, {given} at {}. If that is lost for good, import this file without \
             --from, and add to the command that it prints: --instead-of {given}",
            text(&now, "moved_to")
        ))),
        _ => Err(Stop::Waits(format!(
            "{place}: {name} is not frozen for this file any more. Export it again, and cancel the import of this one: \
             sidetone import {file} --cancel{option}"
        ))),
    }
}

/// Opens what has arrived with the code of the source.
pub async fn open_with(
    host: &dyn MoveHost,
    file: &Path,
    code: &str,
    admin: Option<&str>,
) -> Result<String, Stop> {
    let head = head_of(file)?;
    let found = known(host, &head).await?.map(|known| (known.state, known.import_id.unwrap_or_default()));
    match found {
        Some((State::Running, import_id)) if admin.is_none() => {
            Ok(runs(host, None, &head, &import_id, &Opened::default()))
        }
        // The link of the invitation may not have been seen.
        Some((State::Arrived | State::Opening | State::Running, import_id)) => {
            let opened = open(host, &head, code, admin).await?;
            Ok(runs(host, None, &head, &import_id, &opened))
        }
        Some((State::Arriving, _)) | None => Err(Stop::Waits(format!(
            "not everything of {} is at {} yet; run first: sidetone import {}{}",
            head.name,
            host.place(),
            file.display(),
            host.option()
        ))),
    }
}

/// What is removed of an import that does not run.
#[derive(Debug, Clone, Copy)]
pub enum Canceled<'a> {
    /// What has arrived of this file.
    OfFile(&'a Path),
    /// What has arrived of the workspace with this id or name, of whatever file.
    Of(&'a str),
}

/// Removes an import that does not run. May be repeated.
pub async fn cancel(host: &dyn MoveHost, what: Canceled<'_>, say: Say<'_>) -> Result<String, Stop> {
    let (id, name, export_id) = match what {
        Canceled::OfFile(file) => {
            let Head { workspace_id, name, export_id, .. } = head_of(file)?;
            (workspace_id, name, Some(export_id))
        }
        Canceled::Of(named) => {
            let Found { id, name } = find(host, named).await?;
            (id, name, None)
        }
    };
    let place = host.place();
    let whole = match arrival(host, &id).await? {
        // The answer to an earlier command may have been lost.
        None => {
            return Ok(format!("Nothing of an import of {name} is at {place}: there is nothing to remove."));
        }
        Some(known) if known.state == State::Running => {
            return Err(Stop::Waits(format!("{name} runs at {place}: nothing of it waits to be opened")));
        }
        Some(known) if export_id.as_ref().is_some_and(|asked| *asked != known.export_id) => {
            return Err(Stop::Waits(format!(
                "What has arrived of {name} at {place} is of another file, that of {}. To remove it: {}",
                known.export_id,
                cancel_command(host, &id)
            )));
        }
        Some(Known { state: State::Arrived, import_id, .. }) => import_id,
        Some(_) => None,
    };
    if let Some(import_id) = &whole {
        // Before it is done: a command that dies in between is run again, and does not know any more.
        say(&format!(
            "warning: all of {name} had arrived at {place} ({import_id}), and is removed there: it is whole then only in its \
             file, and at the host that it comes from until it is erased there"
        ));
    }
    loop {
        let answer = ask(host, Method::DELETE, &path_of(&id), None).await??;
        match text(&answer, "state") {
            "" if answer.is_null() => break,
            "canceling" => {}
            _ => return Err(strange(host)),
        }
    }
    let back = whole.map(|import_id| way_back(&id, &import_id)).unwrap_or_default();
    Ok(format!("What had arrived of {name} at {place} is removed. It can be imported there again.{back}"))
}

/// What lets a workspace run again whose import was complete when it was canceled. Only its source knows whether it was handed
/// over, and does not take that back.
fn way_back(id: &WorkspaceId, import_id: &str) -> String {
    format!(
        "\nKeep its file. If the host that it comes from has not handed it over, it runs there again with: sidetone export \
         --workspace {id} --cancel\n\
         If it has, that is for good: import the file again, and add to the command that this prints for that host: \
         --instead-of {import_id}"
    )
}

/// For the host that the workspace comes from.
fn release_command(head: &Head, import_id: &str, moved_to: &str) -> String {
    let Head { workspace_id, export_id, .. } = head;
    format!(
        "sidetone export --workspace {workspace_id} --release {import_id} --export-id {export_id} --to {moved_to}"
    )
}

fn cancel_command(host: &dyn MoveHost, id: &WorkspaceId) -> String {
    format!("sidetone import --workspace {id} --cancel{}", host.option())
}

fn path_of(id: &WorkspaceId) -> String {
    format!("/operator/imports/{id}")
}

/// The import of this file; `None`: there is none.
async fn known(host: &dyn MoveHost, head: &Head) -> Result<Option<Known>, Stop> {
    let known = arrival(host, &head.workspace_id).await?;
    Ok(known.filter(|known| known.export_id == head.export_id))
}

/// The import into this workspace, of whatever file.
async fn arrival(host: &dyn MoveHost, id: &WorkspaceId) -> Result<Option<Known>, Stop> {
    let answer = match ask(host, Method::GET, &path_of(id), None).await? {
        Ok(answer) => answer,
        Err(refusal) if refusal.is_of_nothing() => return Ok(None),
        Err(refusal) => return Err(refusal.into()),
    };
    let state = match text(&answer, "state") {
        // What is being canceled takes no parts; beginning says so.
        "arriving" | "canceling" => State::Arriving,
        "arrived" => State::Arrived,
        "opening" => State::Opening,
        "running" => State::Running,
        _ => return Err(strange(host)),
    };
    let export_id = text(&answer, "export_id").to_owned();
    let text = |name: &str| answer[name].as_str().map(str::to_owned);
    Ok(Some(Known { state, export_id, import_id: text("import_id"), base_url: text("base_url") }))
}

/// Begins, or goes on: says what the target does not know. Returns the next part, from 1.
async fn begin(host: &dyn MoveHost, reader: &Reader, file: &Path, say: Say<'_>) -> Result<u64, Stop> {
    let head = reader.head();
    let body: Value = serde_json::from_str(&head.to_line()).map_err(|_| strange(host))?;
    let answer = match ask(host, Method::POST, "/operator/imports", Some(&body)).await? {
        Ok(answer) => answer,
        Err(refusal) => {
            let more = next_step(host, head, &refusal).await?;
            return Err(Stop::from(refusal).and(&more));
        }
    };
    say(&format!("At {}: {} ({}) arrives", host.place(), head.name, head.workspace_id));
    for warning in answer["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        say(&format!("warning: {warning}"));
    }
    let next = answer["next_part"].as_u64().filter(|next| *next >= 1).ok_or_else(|| strange(host))?;
    // A file that was made again has the same rows, but its parts may end elsewhere.
    if reader.chain_before(next).is_none_or(|chain| chain.as_str() != text(&answer, "chain")) {
        return Err(Stop::Waits(format!(
            "What has arrived at {} is of another file of the same export, which is cut elsewhere. Go on with that file; or, if \
             it is lost, cancel the import, and import again: sidetone import {} --cancel{}",
            host.place(),
            file.display(),
            host.option()
        )));
    }
    Ok(next)
}

/// What to do about a refusal to begin, after its message.
async fn next_step(host: &dyn MoveHost, head: &Head, refusal: &Refusal) -> Result<String, Stop> {
    let id = &head.workspace_id;
    Ok(match refusal.reason.as_str() {
        "other_export" => {
            let other = arrival(host, id).await?.map(|known| known.export_id).unwrap_or_default();
            format!(" It is the file of {other}. To cancel that import: {}", cancel_command(host, id))
        }
        "canceling" => format!(" To do so: {}", cancel_command(host, id)),
        "not_erased" => format!(" To do so: sidetone export --workspace {id} --erase{}", host.option()),
        "workspace_exists" => match export_of(host, id).await? {
            Some(now) if text(&now, "export_id") == head.export_id => {
                " It is the one that the file is from. Import it at the other host (--url).".to_owned()
            }
            _ => " It is not replaced.".to_owned(),
        },
        _ => String::new(),
    })
}

/// Sends the parts from `next` on, with the end.
async fn send(host: &dyn MoveHost, reader: &Reader, mut next: u64, say: Say<'_>) -> Result<(), Stop> {
    let parts = reader.parts();
    let mut told_at: Option<Instant> = None;
    while let Some(part) = reader.part(next)? {
        if next == parts || told_at.is_none_or(|at| at.elapsed() >= TOLD_EVERY) {
            told_at = Some(Instant::now());
            say(&format!("part {} of {}", count(next), count(parts)));
        }
        let path = format!("{}/parts/{next}", path_of(&reader.head().workspace_id));
        let answered = match put(host, &path, part).await? {
            Ok(answer) => answer["next_part"].as_u64().filter(|after| *after > next),
            // Another command has sent the rest, and had it compared.
            Err(refusal) if refusal.reason == "complete" => return Ok(()),
            // Another command sends the same file, or has begun it anew.
            Err(Refusal { reason, details, .. }) if reason == "out_of_order" => {
                details["next_part"].as_u64().filter(|after| *after != next && *after >= 1)
            }
            Err(refusal) => return Err(refusal.into()),
        };
        next = answered.ok_or_else(|| strange(host))?;
    }
    Ok(())
}

/// Has everything compared with what the file says at its end.
async fn verify(host: &dyn MoveHost, head: &Head, say: Say<'_>) -> Result<(), Stop> {
    let path = format!("{}/verify", path_of(&head.workspace_id));
    let mut told_at = Instant::now();
    loop {
        let answer = ask(host, Method::POST, &path, None).await??;
        match text(&answer, "state") {
            "arrived" | "opening" | "running" => return Ok(()),
            "arriving" => {}
            _ => return Err(strange(host)),
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
async fn open(host: &dyn MoveHost, head: &Head, code: &str, admin: Option<&str>) -> Result<Opened, Stop> {
    let body = json!(Opening { code: code.to_owned(), admin: admin.map(str::to_owned) });
    let path = format!("{}/open", path_of(&head.workspace_id));
    let mut opened = Opened::default();
    loop {
        let answer = match ask(host, Method::POST, &path, Some(&body)).await? {
            Ok(answer) => answer,
            Err(refusal) if refusal.reason == "wrong_code" => {
                let known = known(host, head).await?;
                let import_id =
                    known.as_ref().and_then(|known| known.import_id.as_deref()).unwrap_or_default();
                let base_url = known.as_ref().and_then(|known| known.base_url.as_deref());
                let command = release_command(head, import_id, base_url.unwrap_or(host.place()));
                let more =
                    format!(" The host that it comes from tells it, however often it is asked: {command}");
                return Err(Stop::from(refusal).and(&more));
            }
            Err(refusal) => return Err(refusal.into()),
        };
        let lost = answer["without_secrets"].as_array().into_iter().flatten();
        opened.without_secrets.extend(lost.filter_map(Value::as_str).map(str::to_owned));
        match text(&answer, "state") {
            "running" => {
                opened.invitation = answer["invitation_url"].as_str().map(str::to_owned);
                return Ok(opened);
            }
            "opening" => {}
            _ => return Err(strange(host)),
        }
    }
}

/// The workspace runs: what is left to do.
fn runs(
    host: &dyn MoveHost,
    from: Option<&dyn MoveHost>,
    head: &Head,
    import_id: &str,
    opened: &Opened,
) -> String {
    let Opened { invitation, without_secrets } = opened;
    // A host that is put back to a backup from before has to be told the id, and may not have it in its log.
    let mut text = format!("{} runs at {}\nimport:   {import_id}\n", head.name, host.place());
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
        some => format!("point the carriers' addresses of {} here; ", counted(some, "number")),
    };
    let people = if invitation.is_some() { "" } else { "invite people (--admin); " };
    text.push_str(&format!(
        "Now: {numbers}{people}change the address in clients (keys stay the same).\n\
         Then, at the host that it comes from: sidetone export --workspace {} --erase --yes{}",
        head.workspace_id,
        from.map(|from| from.option()).unwrap_or_default()
    ));
    text
}
