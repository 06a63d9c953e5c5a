//! The command line: serves by default, and has commands for operators. Each names the folder that it works on.
mod doctor;
mod folder;
mod keys;
mod moving;
mod place;
mod secrets;
mod serve;
mod service;
mod version;
mod workspaces;

use std::fmt::Display;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Parser, Subcommand};
use sidetone_engine::storage::fault::Fault;
use tokio::runtime::Runtime;

use crate::as_code;
use crate::log;
use crate::memory;
use crate::server;
use crate::text::clean;
use folder::UnnamedFiles;
use place::Place;

/// Voice assistants as one engine: REST, MCP and a job runner in one binary.
///
/// Settings come from the environment: SIDETONE_LISTEN (127.0.0.1:8787), SIDETONE_DATA
/// (./sidetone-data), SIDETONE_BASE_URL and others; docs/settings-and-limits.md lists them.
#[derive(Parser)]
#[command(name = "sidetone", version = version::text())]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Serve (the default).
    Serve,
    /// Workspaces.
    #[command(subcommand)]
    Workspace(workspaces::Command),
    /// API keys.
    #[command(subcommand)]
    Key(keys::Command),
    /// Print a link that signs the operator in to the dashboard, once, within ten minutes; works while the service runs.
    SignInLink,
    /// Print a new server secret, API key and operator's key as settings of a Worker.
    Secrets {
        #[command(subcommand)]
        command: Option<secrets::Command>,
    },
    /// Copy the database, the server secret, recordings and archived transcripts; works while the service runs.
    Backup {
        /// A folder (again into the same one: only what is new is copied), a new archive `NAME.tar`, or a new file
        /// `NAME.db` for the database alone.
        target: PathBuf,
    },
    /// Make a data folder of a backup. Everything is checked first, and nothing is ever overwritten.
    Restore {
        /// What `sidetone backup` has made.
        source: PathBuf,
    },
    /// Check the database, the server secret, recordings and archived transcripts; works while the service runs, and changes
    /// nothing by itself.
    Check {
        /// First remove the files of recordings and transcripts that no row of the database names, for good: a copy from before
        /// they were deleted brings them back. Works only while no service runs. It shows which they are, and does nothing
        /// without --yes.
        #[arg(long)]
        remove_unnamed: bool,
        /// There is no newer database: remove them.
        #[arg(long, requires = "remove_unnamed")]
        yes: bool,
    },
    /// Look for what keeps the service from working: settings, base URL, clock, disk, permissions, database, accounts, mail,
    /// moves of workspaces that have not come to their end. Changes nothing, and asks each account something harmless.
    Doctor {
        /// One JSON object a line.
        #[arg(long)]
        json: bool,
    },
    /// A workspace moves to another host.
    #[command(flatten)]
    Moving(moving::Command),
    /// Assistants as code: a folder of files.
    #[command(flatten)]
    AsCode(as_code::Command),
}

type Failure = Box<dyn std::error::Error>;

/// Runs the command line. An error is the line that the caller prints on standard error.
pub fn main() -> Result<(), String> {
    memory::use_small_pages();
    let command = Arguments::parse().command.unwrap_or(Command::Serve);
    let is_log = matches!(command, Command::Serve);
    work(command).map_err(|error| {
        // It may name what stands in a backup or a database that somebody else made, and a terminal would obey that.
        let error = clean(&error.to_string());
        if is_log { log::last_line(&error) } else { log::last_line_of_command(&error) }
    })
}

fn work(command: Command) -> Result<(), Failure> {
    if let Command::AsCode(command) = &command {
        // Their exit codes say more than that something failed.
        std::process::exit(i32::from(as_code::run(command)));
    }
    // Sockets are looked at after every 8 tasks at most, instead of 61: some tasks take 10 ms, and others wait for them.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(server::threads())
        .enable_all()
        .event_interval(8)
        .build()?;
    run(command, runtime)
}

fn run(command: Command, runtime: Runtime) -> Result<(), Failure> {
    match command {
        Command::Serve => serve::run(&Place::made()?, runtime),
        Command::Workspace(command) => workspaces::run(command, &runtime),
        Command::Key(command) => keys::run(command, &Place::of_service()?, &runtime),
        Command::SignInLink => {
            let place = Place::of_service()?;
            let engine = place.engine()?;
            Ok(print_line(&runtime.block_on(engine.sign_in_link()).map_err(failure)?)?)
        }
        Command::Secrets { command } => secrets::run(command, &runtime),
        Command::Backup { target } => folder::backup(&Place::of_service()?, &target),
        Command::Restore { source } => folder::restore(&source),
        Command::Check { remove_unnamed, yes } => {
            let unnamed = match (remove_unnamed, yes) {
                (false, _) => UnnamedFiles::Report,
                (true, false) => UnnamedFiles::Show,
                (true, true) => UnnamedFiles::Remove,
            };
            folder::check(&Place::of_service()?, unnamed, &runtime)
        }
        Command::Doctor { json } => doctor::run(json, runtime),
        Command::Moving(command) => std::process::exit(i32::from(moving::run(&command, &runtime))),
        // It has ended the process.
        Command::AsCode(_) => Ok(()),
    }
}

fn failure(fault: Fault) -> Failure {
    fault.told().into()
}

/// A key is shown only once, and this one was not.
fn key_lost(error: &io::Error, workspace: &str) -> Failure {
    format!(
        "an API key was created but could not be printed: {error}; create another one with \
         `sidetone key create --workspace {workspace}`"
    )
    .into()
}

fn print_line(text: &(impl Display + ?Sized)) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}
