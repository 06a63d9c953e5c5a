//! `sidetone export` and `sidetone import`: a workspace moves to another host.
use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use sidetone_engine::config::OPERATOR_KEY;
use tokio::runtime::Runtime;

use super::place::Place;
use super::print_line;
use crate::moving::database::{self, Moving};
use crate::moving::export::{self, Export, Release};
use crate::moving::host::{Folder, MoveHost, Remote};
use crate::moving::import::{self, Canceled, Import};
use crate::moving::{Say, Stop};
use crate::service_client::given_url;
use crate::settings;
use crate::text::clean;

/// The key of the host that `--from` names.
const FROM_OPERATOR_KEY: &str = "SIDETONE_FROM_OPERATOR_KEY";
/// The code of a hand-over, where standard input is used for something else.
const MOVE_CODE: &str = "SIDETONE_MOVE_CODE";
/// How often a workspace that closes is asked for.
const PAUSE: Duration = Duration::from_secs(5);

/// The forms of `sidetone export`. One line with all options would not say which of them go together.
const EXPORT_USAGE: &str = "\
    sidetone export --workspace <WORKSPACE> [OPTIONS] <FILE>\n       \
    sidetone export --workspace <WORKSPACE> --cancel [--url <URL>]\n       \
    sidetone export --workspace <WORKSPACE> --release <IMPORT> --export-id <EXPORT> --to <URL> \
    [--instead-of <IMPORT>] [--url <URL>]\n       \
    sidetone export --workspace <WORKSPACE> --erase [--yes] [--url <URL>]";
/// Those of `sidetone import`.
const IMPORT_USAGE: &str = "\
    sidetone import [OPTIONS] <FILE>\n       \
    sidetone import <FILE> --cancel [--url <URL>]\n       \
    sidetone import --workspace <WORKSPACE> --cancel [--url <URL>]";

#[derive(Subcommand)]
pub enum Command {
    /// Write a workspace into a file, for another host. Nothing new begins in it then, and it is frozen once nothing is under
    /// way; it stays here until it is handed over. Exits with 0 when done, 1 if it is not yet or needs you, 2 if it failed.
    #[command(override_usage = EXPORT_USAGE)]
    Export(ExportOptions),
    /// Send such a file to another host and have it compared; with --from, the workspace runs there then. Exits with 0 when done,
    /// 1 if it is not yet or needs you, 2 if it failed.
    #[command(override_usage = IMPORT_USAGE)]
    Import(ImportOptions),
}

/// `sidetone export`
#[derive(Args)]
pub struct ExportOptions {
    /// The workspace's id or name.
    #[arg(long)]
    workspace: String,
    /// The file. Again the same one, after an interruption: what is there already stays.
    #[arg(
        required_unless_present_any = ["cancel", "release", "erase"],
        conflicts_with_all = ["cancel", "release", "erase"]
    )]
    file: Option<PathBuf>,
    /// The host's URL, or SIDETONE_URL; SIDETONE_OPERATOR_KEY has the operator's key of it. Without one, the data folder of this
    /// machine, also while the service runs.
    #[arg(long)]
    url: Option<String>,
    /// How long to wait for conversations, simulations and lines that are under way.
    #[arg(long, value_name = "MINUTES", default_value_t = 30)]
    wait: u32,
    /// Do not wait for the prices that carriers report within minutes after a call.
    #[arg(long)]
    without_late_prices: bool,
    /// Cancel the move, without a file: the workspace runs here again. Not once it was handed over.
    #[arg(long, conflicts_with_all = ["release", "erase"])]
    cancel: bool,
    /// Hand the workspace over to this import, for good, and print the code that opens it.
    #[arg(long, value_name = "IMPORT", requires_all = ["export_id", "to"], conflicts_with = "erase")]
    release: Option<String>,
    /// The export that the import is of: `sidetone import` shows it. A file of one that was canceled is not handed over.
    #[arg(long, value_name = "EXPORT", requires = "release")]
    export_id: Option<String>,
    /// The address that clients of the workspace are told.
    #[arg(long, value_name = "URL", requires = "release")]
    to: Option<String>,
    /// The import that it was handed over to before, and that is lost for good.
    #[arg(long, value_name = "IMPORT", requires = "release")]
    instead_of: Option<String>,
    /// Erase here what has moved. It says where that should run, and does nothing without --yes.
    #[arg(long)]
    erase: bool,
    /// The workspace runs at the other host: erase it here.
    #[arg(long, requires = "erase", conflicts_with_all = ["cancel", "release"])]
    yes: bool,
}

/// `sidetone import`
#[derive(Args)]
pub struct ImportOptions {
    /// What `sidetone export` has made.
    #[arg(required_unless_present = "workspace", conflicts_with = "workspace")]
    file: Option<PathBuf>,
    /// The host's URL, or SIDETONE_URL; SIDETONE_OPERATOR_KEY has the operator's key of it. Without one, the data folder of this
    /// machine, also while the service runs.
    #[arg(long)]
    url: Option<String>,
    /// The URL of the host that it comes from, which hands it over as soon as everything has arrived;
    /// SIDETONE_FROM_OPERATOR_KEY has the operator's key of it.
    #[arg(long, value_name = "URL", conflicts_with_all = ["code", "cancel"])]
    from: Option<String>,
    /// Invite somebody with this e-mail address as an admin.
    #[arg(long, value_name = "EMAIL", conflicts_with = "cancel")]
    admin: Option<String>,
    /// Open what has arrived. Standard input has the code of the host that it comes from, or SIDETONE_MOVE_CODE.
    #[arg(long, conflicts_with = "cancel")]
    code: bool,
    /// Cancel the import: remove what has arrived, unless it runs. May be repeated.
    #[arg(long)]
    cancel: bool,
    /// With --cancel, instead of the file: the id or name of the workspace that has arrived, with whatever file.
    #[arg(long, requires = "cancel")]
    workspace: Option<String>,
}

/// `sidetone workspace move`
#[derive(Args)]
pub struct MoveOptions {
    /// The workspace's id or name.
    workspace: String,
    /// The name of the database: DB, or one that the service's SIDETONE_SHARDS has.
    #[arg(required_unless_present = "cancel", conflicts_with = "cancel")]
    database: Option<String>,
    /// The Worker's URL, or SIDETONE_URL; SIDETONE_OPERATOR_KEY has its operator's key. A service on a box has one database.
    #[arg(long)]
    url: Option<String>,
    /// How long to wait for conversations, simulations and lines that are under way.
    #[arg(long, value_name = "MINUTES", default_value_t = 30)]
    wait: u32,
    /// Do not wait for the prices that carriers report within minutes after a call.
    #[arg(long)]
    without_late_prices: bool,
    /// Cancel the move: the workspace stays in the database that it is in.
    #[arg(long)]
    cancel: bool,
}

/// Moves a workspace between two databases, and returns the exit code of the process.
pub fn run_move(options: &MoveOptions, runtime: &Runtime) -> u8 {
    let mut say = |line: &str| eprintln!("{}", clean(line));
    let wish = Moving {
        workspace: &options.workspace,
        database: options.database.as_deref(),
        without_late_prices: options.without_late_prices,
        wait: Duration::from_secs(60 * u64::from(options.wait)),
        pause: PAUSE,
    };
    ended(runtime.block_on(async {
        let host = remote(options.url.as_deref())?
            .ok_or_else(|| Stop::Failed("name the Worker: --url, or SIDETONE_URL".to_owned()))?;
        database::to_database(&host, &wish, &mut say).await
    }))
}

/// Runs a command and returns the exit code of the process.
pub fn run(command: &Command, runtime: &Runtime) -> u8 {
    let mut say = |line: &str| eprintln!("{}", clean(line));
    let done = runtime.block_on(async {
        match command {
            Command::Export(options) => run_export(options, &mut say).await,
            Command::Import(options) => run_import(options, &mut say).await,
        }
    });
    ended(done)
}

/// Tells what has come of a command; the exit code of the process.
fn ended(done: Result<String, Stop>) -> u8 {
    let printed = done.and_then(|text| {
        print_line(&clean(&text))
            .map_err(|error| Stop::Failed(format!("it is done, but not printed: {error}")))
    });
    match printed {
        Ok(()) => 0,
        Err(stop) => {
            eprintln!("{}", clean(&format!("sidetone: {stop}")));
            stop.exit_code()
        }
    }
}

async fn run_export(options: &ExportOptions, say: Say<'_>) -> Result<String, Stop> {
    let host = host(options.url.as_deref())?;
    let host = host.as_ref();
    let workspace = options.workspace.as_str();
    if options.cancel {
        return export::cancel(host, workspace).await;
    }
    if options.erase {
        return export::erase(host, workspace, options.yes, say).await;
    }
    if let (Some(import_id), Some(export_id), Some(to)) = (&options.release, &options.export_id, &options.to)
    {
        let release = Release { export_id, import_id, to, instead_of: options.instead_of.as_deref() };
        let code = export::release(host, workspace, &release).await?;
        say(&format!(
            "{workspace} is handed over to {import_id} at {to}. It runs nowhere until that is opened with this code:"
        ));
        return Ok(code);
    }
    let Some(file) = &options.file else {
        return Err(Stop::Failed("name the file".to_owned()));
    };
    let wish = Export {
        workspace,
        file,
        without_late_prices: options.without_late_prices,
        wait: Duration::from_secs(60 * u64::from(options.wait)),
        pause: PAUSE,
    };
    export::export(host, &wish, say).await
}

async fn run_import(options: &ImportOptions, say: Say<'_>) -> Result<String, Stop> {
    let host = host(options.url.as_deref())?;
    let host = host.as_ref();
    let admin = options.admin.as_deref();
    if let Some(workspace) = &options.workspace {
        return import::cancel(host, Canceled::Of(workspace), say).await;
    }
    let Some(file) = &options.file else {
        return Err(Stop::Failed("name the file".to_owned()));
    };
    if options.cancel {
        return import::cancel(host, Canceled::OfFile(file), say).await;
    }
    if given_url(options.url.as_deref()).is_none() && settings::text("SIDETONE_BASE_URL").is_none() {
        say(&format!(
            "warning: SIDETONE_BASE_URL is not set, as it is for the service: clients of the workspace would be told {}, and links \
             would begin with that",
            host.place()
        ));
    }
    if options.code {
        return import::open_with(host, file, &code()?, admin).await;
    }
    let from = match &options.from {
        Some(url) => Some(with_key("--from", url, FROM_OPERATOR_KEY)?),
        None => None,
    };
    let from = from.as_ref().map(|from| from as &dyn MoveHost);
    import::import(host, &Import { file, from, admin }, say).await
}

/// The host with the URL that a command names, or the environment.
fn remote(url: Option<&str>) -> Result<Option<Remote>, Stop> {
    given_url(url).map(|(option, url)| with_key(option, &url, OPERATOR_KEY)).transpose()
}

/// The host that a command asks.
fn host(url: Option<&str>) -> Result<Box<dyn MoveHost>, Stop> {
    match remote(url)? {
        Some(remote) => Ok(Box::new(remote)),
        None => {
            let place = Place::of_service().map_err(failed)?;
            Ok(Box::new(Folder::new(place.engine().map_err(failed)?)))
        }
    }
}

fn failed(failure: super::Failure) -> Stop {
    Stop::Failed(failure.to_string())
}

/// A host with its key, which no option has, since other people of this machine can read command lines.
fn with_key(option: &str, url: &str, key_name: &'static str) -> Result<Remote, Stop> {
    let key = settings::text(key_name);
    // The URL is checked before an error shows it.
    let remote = Remote::new(option, url, key_name, key.as_deref().unwrap_or_default())?;
    match key {
        Some(_) => Ok(remote),
        None => Err(Stop::Failed(format!(
            "{key_name} is not set: this command needs the operator's key of {} there",
            remote.place()
        ))),
    }
}

/// The code, from the environment or the first line of standard input.
fn code() -> Result<String, Stop> {
    if let Some(code) = settings::text(MOVE_CODE) {
        return Ok(code);
    }
    let input = io::stdin();
    if input.is_terminal() {
        eprintln!("The code that `sidetone export --release` has printed:");
    }
    let mut line = String::new();
    let read = input.lock().read_line(&mut line);
    read.map_err(|error| Stop::Failed(format!("standard input: {error}")))?;
    match line.trim() {
        "" => Err(Stop::Waits(format!("no code: write it to standard input, or set {MOVE_CODE}"))),
        code => Ok(code.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<(), String> {
        let commands = Command::augment_subcommands(clap::Command::new("sidetone"));
        let read = commands.try_get_matches_from([&["sidetone"][..], arguments].concat());
        read.map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn each_form_in_a_usage_is_taken() {
        for usage in [EXPORT_USAGE, IMPORT_USAGE] {
            for line in usage.lines() {
                let typed = line.replace("[OPTIONS] ", "").replace(['[', ']', '<', '>'], "");
                let words: Vec<&str> = typed.split_whitespace().collect();
                assert_eq!(read(&words[1..]), Ok(()), "{line}");
            }
        }
    }

    #[test]
    fn whoever_cancels_in_another_way_is_told_how() {
        let of_export = "\n       sidetone export --workspace <WORKSPACE> --cancel [--url <URL>]\n";
        let of_import = "\n       sidetone import <FILE> --cancel [--url <URL>]\n       \
                         sidetone import --workspace <WORKSPACE> --cancel [--url <URL>]\n";
        for (arguments, told) in [
            (&["export", "--cancel"][..], of_export),
            (&["export", "--cancel", "acme.move"], of_export),
            (&["export", "--workspace", "Acme", "--cancel", "acme.move"], of_export),
            (&["export", "--help"], of_export),
            (&["import", "--cancel"], of_import),
            (&["import", "--workspace", "Acme"], of_import),
            (&["import", "--workspace", "Acme", "--cancel", "acme.move"], of_import),
            (&["import", "--help"], of_import),
        ] {
            let said = read(arguments).unwrap_err();
            assert!(said.contains(told), "{arguments:?}: {said}");
        }
    }
}
