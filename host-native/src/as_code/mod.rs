//! Assistants as code: a folder of plain files against any server, and its simulations in this process.
//!
//! [`folder`] reads the files, [`workspace`] what a server has, [`lock`] what was last seen there; [`matching`] says which file
//! is which resource, [`compare`] who changed what since, [`plan`] what follows, and [`apply`] and [`pull`] do it. [`test`]
//! needs no server.
mod api;
mod apply;
mod compare;
mod failure;
mod folder;
mod kind;
mod lock;
mod matching;
mod plan;
mod pull;
mod show;
mod test;
mod toml;
mod workspace;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use self::api::Api;
use self::failure::Failure;
use self::folder::Folder;
use self::show::Paint;
use crate::service_client::given_url;
use crate::settings;
use crate::text::clean;

/// All is well, and nothing differs.
const DONE: u8 = 0;
/// The work was done, and found something. `diff`: something differs. `apply` and `pull`: somebody else changed something, which
/// stays. `test`: a run failed.
const FINDINGS: u8 = 1;
/// The command could not do its work.
const FAILED: u8 = 2;

/// The server when neither `--url` nor SIDETONE_URL names one.
const DEFAULT_URL: &str = "http://127.0.0.1:8787";

/// The commands.
#[derive(Subcommand)]
pub enum Command {
    /// Write a workspace's assistants, tools, knowledge and simulations into a folder of files.
    Pull {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        wishes: Wishes,
    },
    /// Show what differs between a folder and a workspace. Exits with 0 if nothing does, 1 if something does, 2 if it failed.
    Diff {
        #[command(flatten)]
        target: Target,
    },
    /// Make a workspace as a folder says. Exits with 0 when done, 1 if somebody else changed something, which stays, 2 if it
    /// failed or you answered no.
    Apply {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        wishes: Wishes,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
    /// Run the simulations of a folder in this process: no server, no network, no costs. Exits with 0 if no run failed, 1
    /// if one did or was not decided, 2 if the command failed.
    Test(test::Options),
}

impl Command {
    fn folder(&self) -> &Path {
        match self {
            Self::Pull { target, .. } | Self::Diff { target } | Self::Apply { target, .. } => &target.folder,
            Self::Test(options) => &options.folder,
        }
    }
}

/// The folder and the server.
#[derive(Args)]
pub struct Target {
    /// The folder.
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// The server's URL; SIDETONE_URL, or http://127.0.0.1:8787.
    #[arg(long)]
    url: Option<String>,
    /// An API key of the workspace. SIDETONE_API_KEY is better: other people of this machine can read command lines.
    #[arg(long)]
    key: Option<String>,
}

/// What else may be done to the side that is written: files by `pull`, resources by `apply`.
#[derive(Args, Debug, Clone, Copy)]
pub struct Wishes {
    /// Delete there what was deleted here: files of deleted resources (pull), resources of deleted files (apply).
    #[arg(long)]
    prune: bool,
    /// Write over what was changed there: in the folder (pull), by somebody else in the workspace (apply).
    #[arg(long)]
    force: bool,
}

impl Target {
    fn api(&self) -> Result<Api, Failure> {
        let given = given_url(self.url.as_deref());
        let (option, url) = given.unwrap_or_else(|| ("SIDETONE_URL", DEFAULT_URL.to_owned()));
        // A blank variable is an unset one, but who gives a blank option means another server than the default.
        let url = settings::filled(&url).ok_or_else(no_url)?;
        let key = match &self.key {
            Some(given) => settings::filled(given),
            None => settings::text("SIDETONE_API_KEY"),
        };
        let key = key.ok_or_else(|| {
            Failure::new("an API key of the workspace is missing: set SIDETONE_API_KEY, or give --key")
        })?;
        Api::new(option, &url, &key)
    }
}

fn no_url() -> Failure {
    Failure(format!("--url is empty: give a URL such as {DEFAULT_URL}, or leave --url out"))
}

/// Runs a command and returns the exit code of the process.
pub fn run(command: &Command) -> u8 {
    match work(command) {
        Ok(code) => code,
        Err(failure) => {
            let paint = Paint::of(&io::stderr());
            eprintln!("{}", paint.red(&clean(&format!("sidetone: {failure}"))));
            FAILED
        }
    }
}

fn work(command: &Command) -> Result<u8, Failure> {
    let path = command.folder();
    if fs::metadata(path).is_ok_and(|found| !found.is_dir()) {
        return Err(Failure(format!("{} is a file; name a folder", path.display())));
    }
    let (Command::Pull { target, .. } | Command::Diff { target } | Command::Apply { target, .. }) = command
    else {
        let Command::Test(options) = command else { return Ok(DONE) };
        return test::run(options);
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let api = target.api()?;
    match command {
        Command::Pull { wishes, .. } => runtime.block_on(pull::pull(&api, &target.folder, *wishes)),
        Command::Apply { wishes, yes, .. } => {
            // Before the files are read: another command may write them.
            let _held = lock::hold(&target.folder)?;
            let folder = existing(&target.folder)?;
            runtime.block_on(apply::apply(&api, &folder, *wishes, *yes))
        }
        _ => {
            let folder = existing(&target.folder)?;
            let (plan, _) = runtime.block_on(plan::plan(&api, &folder, false))?;
            let paint = Paint::of(&io::stdout());
            say(&show::heading(&plan, api.place(), paint))?;
            say(&show::plan(&plan, false, paint))?;
            say(&format!("{}\n", show::summary(&plan, false)))?;
            Ok(if plan.is_empty() { DONE } else { FINDINGS })
        }
    }
}

/// A folder that has files: a wrong path must not look like an empty workspace.
fn existing(path: &Path) -> Result<Folder, Failure> {
    let folder = Folder::read(path)?;
    match folder.len() {
        0 => Err(Failure(format!(
            "{} has no files such as assistants/front-desk.toml; `sidetone pull` writes those of a workspace",
            path.display()
        ))),
        _ => Ok(folder),
    }
}

/// Prints to standard output. A reader that went away, such as `head`, is no failure.
fn say(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Writes a file whole or not at all, if its bytes change; returns whether they did.
fn write_file(path: &Path, text: &str) -> Result<bool, Failure> {
    if fs::read(path).is_ok_and(|old| old == text.as_bytes()) {
        return Ok(false);
    }
    let failed = |error: io::Error| Failure(format!("{}: {error}", path.display()));
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    // What has this name already, such as a link that somebody left, is not written through.
    if let Err(error) = fs::remove_file(&new)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(failed(error));
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&new).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    if let Ok(old) = fs::metadata(path) {
        file.set_permissions(old.permissions()).map_err(failed)?;
    }
    // After a power cut it must not be empty: the lock says that it was seen, and an empty lock would protect nothing.
    file.sync_all().map_err(failed)?;
    drop(file);
    fs::rename(&new, path).map_err(failed)?;
    Ok(true)
}
