//! `sidetone export`: the source of a move.
use std::path::Path;
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use sidetone_engine::base::ids::WorkspaceId;
use sidetone_engine::storage::moves::part::Head;
use sidetone_engine::storage::moves::requests::{Closing, Releasing};

use super::asking::{Found, ask, encoded, find, get, strange, text};
use super::file::{Begun, Place, Reader, Resumed, Totals, check_target, checked, head_of};
use super::host::MoveHost;
use super::{Say, Stop, told};
use crate::text::{counted, size};

/// What is exported, and how.
#[derive(Debug, Clone, Copy)]
pub struct Export<'a> {
    /// The workspace's id or name.
    pub workspace: &'a str,
    /// The file, which must not exist unless it is of this export.
    pub file: &'a Path,
    /// Prices that carriers report after a call are not waited for.
    pub without_late_prices: bool,
    /// How long to wait for what is under way.
    pub wait: Duration,
    /// How often to ask whether it is over.
    pub pause: Duration,
}

/// Where progress is told: not too often.
pub(super) const TOLD_EVERY: Duration = Duration::from_secs(5);

/// Closes and freezes the workspace, and writes the file. Returns what to tell at last.
pub async fn export(host: &dyn MoveHost, wish: &Export<'_>, say: Say<'_>) -> Result<String, Stop> {
    check_target(wish.file)?;
    let found = find(host, wish.workspace).await?;
    let id = &found.id;
    if wish.file.try_exists().map_err(|error| Stop::of_file(wish.file, &error))? {
        return exported_before(host, id, wish.file).await;
    }
    // Before anything changes there, it is sure that the file can be written.
    let begun = Begun::at(wish.file)?;
    let (head, owner) = match frozen(host, &found, wish, say).await {
        Ok(frozen) => frozen,
        Err(stop) => {
            begun.remove_if_empty();
            return Err(stop);
        }
    };
    let (mut writer, resumed) = begun.resume(&head)?;
    match resumed {
        Resumed::New | Resumed::After(0) => {}
        Resumed::After(parts) => say(&format!("going on after {}", counted(parts, "part"))),
        Resumed::Replaced => say("the file was begun for another export, and begins anew"),
    }
    let mut told_at = Instant::now();
    loop {
        let path = match writer.place() {
            Place::Start => format!("{}/parts", path_of(id)),
            Place::After(place) => format!("{}/parts?after={}", path_of(id), encoded(place)),
            Place::End => break,
        };
        let part = get(host, &path).await??;
        writer.add(&part)?;
        if told_at.elapsed() >= TOLD_EVERY {
            told_at = Instant::now();
            say(&format!("{} …", told::progress(writer.totals())));
        }
    }
    let totals = writer.finish()?;
    Ok(exported(host, wish.file, &head, &totals, owner))
}

/// Where an exported workspace belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// To its source: it is frozen.
    Source,
    /// To the host that it was handed over to.
    Other,
}

impl Owner {
    /// By the state of the export; `None`: it has no file yet, or none any more.
    fn of(state: &str) -> Option<Self> {
        match state {
            "frozen" => Some(Self::Source),
            "released" => Some(Self::Other),
            _ => None,
        }
    }
}

fn path_of(id: &WorkspaceId) -> String {
    format!("/operator/exports/{id}")
}

/// Asks until the workspace is frozen.
async fn frozen(
    host: &dyn MoveHost,
    found: &Found,
    wish: &Export<'_>,
    say: Say<'_>,
) -> Result<(Head, Owner), Stop> {
    let Found { id, name } = found;
    let body = json!(Closing { without_late_prices: wish.without_late_prices });
    let begun_at = Instant::now();
    let mut waited_for: Option<String> = None;
    loop {
        let answer = match ask(host, Method::POST, &path_of(id), Some(&body)).await? {
            Ok(answer) => answer,
            // Its file may have to be made again for the host that it was handed over to.
            Err(refusal) if refusal.reason == "moved" => {
                let answer = ask(host, Method::GET, &path_of(id), None).await??;
                if Owner::of(text(&answer, "state")).is_none() {
                    return Err(Stop::from(refusal).and(&where_it_is(&answer)));
                }
                answer
            }
            Err(refusal) => return Err(refusal.into()),
        };
        let state = text(&answer, "state");
        if let Some(owner) = Owner::of(state) {
            let head = Head::from_line(&answer["head"].to_string()).and_then(checked);
            let head = head.map_err(|_| strange(host))?;
            say(&match owner {
                Owner::Source => {
                    format!(
                        "{name} is frozen: it can be read; changes are answered with 503 workspace_moving"
                    )
                }
                Owner::Other => {
                    let to = text(&answer, "moved_to");
                    format!("{name} was handed over to {to} already; its file is made again")
                }
            });
            return Ok((head, owner));
        }
        if state != "closing" {
            return Err(strange(host));
        }
        let waits = told::waiting(&answer["waiting_for"]);
        if waited_for.is_none() {
            say(&format!("At {}: no call and no run begins in {name} ({id}) any more", host.place()));
        }
        if waited_for.as_ref() != Some(&waits) {
            say(&format!("waiting for {waits} …"));
        }
        if begun_at.elapsed() >= wish.wait {
            return Err(Stop::Waits(format!(
                "{name} is not frozen yet: it waits for {waits}. Nothing new begins in it until this command is run again and \
                 comes to its end, or it is canceled: {}",
                cancel_command(host, id)
            )));
        }
        waited_for = Some(waits);
        tokio::time::sleep(wish.pause).await;
    }
}

/// The file is there. It is what was asked for if it is of the export that the workspace is frozen for.
async fn exported_before(host: &dyn MoveHost, id: &WorkspaceId, file: &Path) -> Result<String, Stop> {
    let other = || Stop::failed(format!("{} exists; choose another file", file.display()));
    let head = head_of(file).map_err(|_| other())?;
    if head.workspace_id != *id {
        return Err(other());
    }
    let now = ask(host, Method::GET, &path_of(id), None).await?.map_err(|_| other())?;
    match Owner::of(text(&now, "state")) {
        Some(owner) if text(&now, "export_id") == head.export_id => {
            Ok(exported(host, file, &head, Reader::open(file)?.totals(), owner))
        }
        _ => Err(other()),
    }
}

fn exported(host: &dyn MoveHost, file: &Path, head: &Head, totals: &Totals, owner: Owner) -> String {
    let name = &head.name;
    let bytes = std::fs::metadata(file).map(|file| format!(" ({})", size(file.len())));
    let (file, bytes) = (file.display(), bytes.unwrap_or_default());
    let whose = match owner {
        Owner::Source => format!("{name} still belongs to {}.", host.place()),
        Owner::Other => format!("{name} was handed over already."),
    };
    let mut text = format!("{file}{bytes}: {}. {whose}\n", told::contents(totals));
    if totals.tally.missing > 0 {
        text.push_str(&format!(
            "Not in it: {} of recordings and transcripts, lost there or of a very early version.\n",
            counted(totals.tally.missing, "file")
        ));
    }
    text.push_str(&format!("export:   {}\n", head.export_id));
    text.push_str(&format!("next:     sidetone import {file} --url https://THE-OTHER-HOST"));
    if owner == Owner::Source {
        text.push_str(&format!("\ncancel:   {}", cancel_command(host, &head.workspace_id)));
    }
    text
}

fn cancel_command(host: &dyn MoveHost, id: &WorkspaceId) -> String {
    format!("sidetone export --workspace {id} --cancel{}", host.option())
}

/// Gives up: the workspace runs here again.
pub async fn cancel(host: &dyn MoveHost, workspace: &str) -> Result<String, Stop> {
    let Found { id, name } = find(host, workspace).await?;
    if let Err(refusal) = ask(host, Method::DELETE, &path_of(&id), None).await? {
        let more = match refusal.reason == "moved" {
            true => where_it_is(&export_of(host, &id).await?.unwrap_or_default()),
            false => String::new(),
        };
        return Err(Stop::from(refusal).and(&more));
    }
    Ok(format!(
        "{name} runs at {}. A file of it that was made until now opens nowhere any more.",
        host.place()
    ))
}

/// Whom a workspace is handed over to.
#[derive(Debug, Clone, Copy)]
pub struct Release<'a> {
    /// The export whose file has arrived there.
    pub export_id: &'a str,
    /// The import that is complete there.
    pub import_id: &'a str,
    /// The address that clients are told.
    pub to: &'a str,
    /// An earlier one, which is lost for good.
    pub instead_of: Option<&'a str>,
}

/// Hands the workspace over, for good. Returns the code that opens the import.
pub async fn release(host: &dyn MoveHost, workspace: &str, to: &Release<'_>) -> Result<String, Stop> {
    let found = find(host, workspace).await?;
    released(host, &found.id, to).await
}

/// The same with the workspace's id.
pub(super) async fn released(
    host: &dyn MoveHost,
    id: &WorkspaceId,
    to: &Release<'_>,
) -> Result<String, Stop> {
    let body = Releasing {
        export_id: to.export_id.to_owned(),
        import_id: to.import_id.to_owned(),
        moved_to: to.to.to_owned(),
        instead_of: to.instead_of.map(str::to_owned),
    };
    let path = format!("{}/release", path_of(id));
    let answer = match ask(host, Method::POST, &path, Some(&json!(body))).await? {
        Ok(answer) => answer,
        Err(refusal) if refusal.reason == "released_elsewhere" => {
            let now = export_of(host, id).await?.unwrap_or_default();
            let instead = format!(
                " If that is lost for good, and never runs again, add to this command: --instead-of {}",
                text(&now, "import_id")
            );
            return Err(Stop::from(refusal).and(&(where_it_is(&now) + &instead)));
        }
        Err(refusal) => return Err(refusal.into()),
    };
    match text(&answer, "code") {
        "" => Err(strange(host)),
        code => Ok(code.to_owned()),
    }
}

/// Where a workspace is that was handed over, after what refuses something for that.
fn where_it_is(export: &Value) -> String {
    match (text(export, "import_id"), text(export, "moved_to")) {
        ("", _) | (_, "") => String::new(),
        (import_id, moved_to) => format!(" It was handed over to {import_id} at {moved_to}."),
    }
}

/// The import that a workspace was handed over to, where that is, and when it was, if something of it is left here.
async fn given(host: &dyn MoveHost, id: &WorkspaceId) -> Result<Option<String>, Stop> {
    let Some(now) = export_of(host, id).await? else { return Ok(None) };
    if !["released", "erasing"].contains(&text(&now, "state")) {
        return Ok(None);
    }
    let at = text(&now, "released_at");
    let when = match (at.get(..10), at.get(11..16)) {
        (Some(day), Some(time)) => format!(" on {day} at {time} UTC"),
        _ => String::new(),
    };
    Ok(Some(format!("{} at {}{when}", text(&now, "import_id"), text(&now, "moved_to"))))
}

/// How far the export of a workspace is; `None`: it does not move.
pub(super) async fn export_of(host: &dyn MoveHost, id: &WorkspaceId) -> Result<Option<Value>, Stop> {
    match ask(host, Method::GET, &path_of(id), None).await? {
        Ok(answer) => Ok(Some(answer)),
        Err(refusal) if refusal.is_of_nothing() => Ok(None),
        Err(refusal) => Err(refusal.into()),
    }
}

/// Removes what has moved, step by step, if whoever typed the command is sure of it: this host cannot know whether the workspace
/// runs at the other one.
pub async fn erase(
    host: &dyn MoveHost,
    workspace: &str,
    is_sure: bool,
    say: Say<'_>,
) -> Result<String, Stop> {
    let Found { id, name } = find(host, workspace).await?;
    if !is_sure && let Some(given) = given(host, &id).await? {
        return Err(Stop::Waits(format!(
            "{name} was handed over to {given}. What {} still has of it would be erased for good: make sure first that it runs \
             there, with all that it had. Then: sidetone export --workspace {id} --erase --yes{}",
            host.place(),
            host.option()
        )));
    }
    let path = format!("{}/erase", path_of(&id));
    let mut told_at = Instant::now();
    loop {
        let answer = ask(host, Method::POST, &path, None).await??;
        match text(&answer, "state") {
            "gone" => break,
            "erasing" => {}
            _ => return Err(strange(host)),
        }
        if told_at.elapsed() >= TOLD_EVERY {
            told_at = Instant::now();
            let rows = answer["rows_erased"].as_u64().unwrap_or_default();
            say(&format!("{} erased …", counted(rows, "row")));
        }
    }
    Ok(format!(
        "The rows and files of {name} are erased at {}. Whoever sends one of its keys there is told where it is now.",
        host.place()
    ))
}
