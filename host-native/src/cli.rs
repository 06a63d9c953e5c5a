//! The command line: serves by default, and has a few commands for operators.
use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, Subcommand};
use sidetone_engine::base::api_key::ApiKey;
use sidetone_engine::base::hash::sha256_hex;
use sidetone_engine::config::{Config, OPERATOR_KEY};
use sidetone_engine::engine::{Engine, Started};
use sidetone_engine::ports::{Homes, Mailer, Ports};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::blobs::Files;
use crate::data::DataFolder;
use crate::database::Sqlite;
use crate::http_client::HttpClient;
use crate::keys::RingKeys;
use crate::lateness;
use crate::memory;
use crate::open_files::{OpenFiles, Outgoing};
use crate::runner::{Runner, Wakes};
use crate::server;
use crate::settings::{self, HOST_SETTINGS, Settings};
use crate::smtp::SmtpMailer;
use crate::system::{SystemClock, SystemRandom};
use crate::web_socket_client::WebSocketClient;

/// Recordings leave this many times the database's reserve of the disk to it.
const BLOBS_LEAVE_RESERVES: u64 = 4;

/// Voice assistants as one engine: REST, MCP and a job runner in one binary.
///
/// Settings come from the environment: SIDETONE_LISTEN (127.0.0.1:8787), SIDETONE_DATA
/// (./sidetone-data), SIDETONE_BASE_URL and others; docs/settings-and-limits.md lists them.
#[derive(Parser)]
#[command(name = "sidetone", version)]
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
    Workspace(WorkspaceCommand),
    /// API keys.
    #[command(subcommand)]
    Key(KeyCommand),
    /// Print a link that signs the operator in to the dashboard, once, within ten minutes; works while the service runs.
    SignInLink,
    /// Print a new server secret, API key and operator's key as settings of a Worker.
    Secrets {
        #[command(subcommand)]
        command: Option<SecretsCommand>,
    },
    /// Copy the database to FILE; works while the service runs. The copy contains no recordings. They are files that
    /// never change: copy the folder `recordings` afterwards, with any tool.
    Backup {
        /// The target file; must not exist.
        file: PathBuf,
    },
}

#[derive(Subcommand)]
enum SecretsCommand {
    /// Continue with the current server secret, or a new one, after the one of the database was lost or changed. The
    /// signing secrets of all tools and webhooks change.
    Accept,
}

#[derive(Subcommand)]
enum WorkspaceCommand {
    /// Create a workspace and print its first API key once.
    Create {
        /// The name of the workspace.
        name: String,
    },
}

#[derive(Subcommand)]
enum KeyCommand {
    /// Create an API key and print it once.
    Create {
        /// The workspace's id or name.
        #[arg(long)]
        workspace: String,
    },
}

type Failure = Box<dyn std::error::Error>;

/// Runs the command line. The caller prints an error as one line on standard error.
pub fn main() -> Result<(), Failure> {
    memory::use_small_pages();
    let arguments = Arguments::parse();
    // Sockets are looked at after every 8 tasks at most, instead of 61: some tasks take 10 ms, and others wait for them.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(server::threads())
        .enable_all()
        .event_interval(8)
        .build()?;
    if matches!(arguments.command, Some(Command::Secrets { command: None })) {
        print_line(&secrets()?)?;
        return Ok(());
    }
    let lookup = |name: &str| std::env::var(name).ok();
    let settings = Settings::read(lookup)?;
    if matches!(arguments.command, Some(Command::SignInLink)) && !settings.data.try_exists()? {
        let folder = settings.data.display();
        return Err(
            format!("{folder} does not exist; set SIDETONE_DATA to the data folder of the service").into()
        );
    }
    let data = DataFolder::open(&settings.data)
        .map_err(|error| format!("SIDETONE_DATA: {} cannot be used: {error}", settings.data.display()))?;
    match arguments.command.unwrap_or(Command::Serve) {
        Command::Serve | Command::Secrets { command: None } => {
            let served = runtime.block_on(serve(&settings, &data));
            // A look-up of a name that hangs must not keep the process.
            runtime.shutdown_background();
            served
        }
        Command::Secrets { command: Some(SecretsCommand::Accept) } => {
            let _lock = data.lock()?;
            if !settings.has_secret {
                data.secret_or_new()?;
            }
            let Service { engine, .. } = service(&settings, &data, settings.listen)?;
            runtime.block_on(engine.accept_secret()).map_err(failure)?;
            Ok(print_line(
                "The database now belongs to the current server secret. Tools and webhooks have new signing secrets: read \
                 them with POST /tools/{id}/rotate-secret and POST /webhooks/{id}/rotate-secret.",
            )?)
        }
        Command::Backup { file } => {
            if file.exists() {
                return Err(format!("{} exists; choose another file", file.display()).into());
            }
            Sqlite::backup(&data.database(), &file)?;
            Ok(print_line(&format!(
                "The database is in {}. Keep {folder}/secret with it, and a copy of {folder}/recordings made after it.",
                file.display(),
                folder = data.path().display()
            ))?)
        }
        Command::SignInLink => {
            let Service { engine, .. } = service(&settings, &data, settings.listen)?;
            Ok(print_line(&runtime.block_on(engine.sign_in_link()).map_err(failure)?)?)
        }
        Command::Workspace(WorkspaceCommand::Create { name }) => {
            let Service { engine, .. } = service(&settings, &data, settings.listen)?;
            let created = runtime.block_on(engine.create_workspace(&name)).map_err(failure)?;
            print_line(&format!(
                "Workspace {} ({name})\nAPI key (shown only once): {}",
                created.workspace_id, created.key
            ))
            .map_err(|error| key_lost(&error, &created.workspace_id).into())
        }
        Command::Key(KeyCommand::Create { workspace }) => {
            let Service { engine, .. } = service(&settings, &data, settings.listen)?;
            let key = runtime.block_on(engine.create_key(&workspace)).map_err(failure)?;
            print_line(&format!("API key (shown only once): {key}"))
                .map_err(|error| key_lost(&error, &workspace).into())
        }
    }
}

/// The secrets that a Worker requires as settings; the native host creates its own.
fn secrets() -> Result<String, getrandom::Error> {
    let random = || {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map(|()| bytes)
    };
    let (secret, key, operator) = (random()?, ApiKey::from_bytes(random()?), ApiKey::from_bytes(random()?));
    Ok(format!(
        "SIDETONE_SECRET={}\nSIDETONE_BOOTSTRAP_KEYS={}\n{OPERATOR_KEY}={}",
        sha256_hex(&secret),
        key.as_str(),
        operator.as_str()
    ))
}

/// The detail for the operator: the private one if there is one.
fn failure(fault: sidetone_engine::storage::fault::Fault) -> Failure {
    let (error, incident) = fault.split();
    incident.unwrap_or_else(|| error.message.into_owned()).into()
}

fn key_lost(error: &io::Error, workspace: &str) -> String {
    format!(
        "an API key was created but could not be printed: {error}; create another one with \
         `sidetone key create --workspace {workspace}`"
    )
}

/// The engine with this machine's ports.
struct Service {
    engine: Engine,
    wakes: Arc<Wakes>,
    files: OpenFiles,
    /// Warnings to log at startup.
    warnings: Vec<String>,
}

/// Creates the service. Without SIDETONE_BASE_URL, the base URL follows from `listen`.
fn service(settings: &Settings, data: &DataFolder, listen: SocketAddr) -> Result<Service, Failure> {
    let secret = if settings.has_secret { String::new() } else { data.secret()? };
    let base_url = settings::base_url(listen);
    let private_key =
        settings::text_or_file(settings::PRIVATE_KEY, std::env::var(settings::PRIVATE_KEY).ok())?;
    let lookup = |name: &str| match name {
        settings::PRIVATE_KEY => private_key.clone(),
        "SIDETONE_MEMORY_MB" => std::env::var(name).ok().or_else(memory::default_mb),
        name => std::env::var(name).ok(),
    };
    let config = Config::from_settings(lookup, &base_url, &secret)?;
    let files = OpenFiles::of_process();
    let mut warnings =
        config.warnings(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()), HOST_SETTINGS);
    warnings.extend(files.warning());
    let outgoing = Outgoing::new(&files);
    let wakes = Arc::new(Wakes::default());
    let mailer =
        SmtpMailer::from_settings(config.mail.as_ref())?.map(|mailer| Arc::new(mailer) as Arc<dyn Mailer>);
    let ports = Ports {
        database: Arc::new(Sqlite::open(&data.database(), settings.reserve_bytes)?),
        blobs: Arc::new(Files::new(data.path(), settings.reserve_bytes.saturating_mul(BLOBS_LEAVE_RESERVES))),
        clock: Arc::new(SystemClock),
        random: Arc::new(SystemRandom),
        queue: wakes.clone(),
        http: Arc::new(HttpClient::new(outgoing.clone())?),
        web_sockets: Arc::new(WebSocketClient::new(outgoing)?),
        keys: Arc::new(RingKeys),
        live: Arc::new(Homes::new(Arc::new(SystemClock))),
        mailer,
    };
    Ok(Service { engine: Engine::new(config, ports).map_err(failure)?, wakes, files, warnings })
}

async fn serve(settings: &Settings, data: &DataFolder) -> Result<(), Failure> {
    start_log();
    let _lock = data.lock()?;
    // Listen before creating anything: the first key is shown only once, so a failed startup must not create it.
    let listener = TcpListener::bind(settings.listen)
        .await
        .map_err(|error| format!("SIDETONE_LISTEN: cannot listen on {}: {error}", settings.listen))?;
    let address = listener.local_addr()?;
    let Service { engine, wakes, files, warnings } = service(settings, data, address)?;
    warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    // The lock guarantees that no other server uses this folder.
    let Started { first_key, sign_in_link, warnings, workers } =
        engine.start(&owner()).await.map_err(failure)?;
    warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    match (print_line(&welcome(&engine, address, first_key.as_deref(), sign_in_link.as_deref())), first_key) {
        (Ok(()), Some(_)) => engine.first_key_shown().await.map_err(failure)?,
        (Ok(()), None) => {}
        (Err(error), Some(_)) => {
            tracing::error!(%error, "the first API key could not be printed; the next start prints another one");
        }
        (Err(error), None) => tracing::warn!(%error, "the welcome could not be printed"),
    }

    let (stop, stopped) = watch::channel(false);
    let start = |worker| Runner::start(worker, wakes.clone(), stopped.clone());
    let jobs = workers.into_iter().map(start).collect::<Vec<_>>();
    tokio::spawn(lateness::watch(engine.services().clone()));
    let server = tokio::spawn(server::serve(listener, engine.clone(), stopped, files.connections));
    signal().await;
    tracing::info!("stopping: no new requests, finishing the open ones");
    let deadline = tokio::time::Instant::now() + settings.stop;
    let _ = stop.send(true);
    match tokio::time::timeout_at(deadline, server).await {
        Ok(served) => served?,
        Err(_) => tracing::warn!("some requests or conversations did not finish in time and were cut off"),
    }
    match tokio::time::timeout_at(deadline, engine.hang_up_lines(&owner())).await {
        Ok(incidents) => incidents.iter().for_each(|incident| tracing::error!("{incident}")),
        Err(_) => tracing::warn!("some lines were not hung up in time; they are at the next start"),
    }
    while !jobs.iter().all(Runner::is_finished) {
        if tokio::time::Instant::now() > deadline {
            tracing::warn!("some jobs did not finish in time; they run again at the next start");
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

fn owner() -> String {
    format!("native-{}", std::process::id())
}

async fn signal() {
    let interrupt = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => {
                tokio::select! {
                    _ = interrupt => {}
                    _ = terminate.recv() => {}
                }
            }
            Err(_) => {
                let _ = interrupt.await;
            }
        }
    }
    #[cfg(not(unix))]
    {
        let _ = interrupt.await;
    }
}

/// Logs go to standard error; `RUST_LOG=sidetone=debug` shows every request.
fn start_log() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        // On a full disk the log cannot be written either; saying so on standard error would panic.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal())
        .init();
}

/// The message at startup: the addresses, the next steps, on the first start the API key, and until somebody has signed in
/// the link that does.
fn welcome(
    engine: &Engine,
    address: SocketAddr,
    first_key: Option<&str>,
    sign_in_link: Option<&str>,
) -> String {
    let base_url = engine.base_url();
    let mut text = format!(
        "Sidetone {} is serving {base_url} (listening on {address})\n  Dashboard  {base_url}/dashboard\n  API docs   {base_url}/docs\n  MCP        {base_url}/mcp\n",
        env!("CARGO_PKG_VERSION")
    );
    if let Some(link) = sign_in_link {
        text.push_str(&format!("\nOpen the dashboard (the link works once):\n\n  {link}\n"));
    }
    let key = first_key.unwrap_or("YOUR_API_KEY");
    if let Some(key) = first_key {
        text.push_str(&format!(
            "\nFirst start: created a workspace. Its API key (shown only once):\n\n  {key}\n\nTry it:\n\n  curl -H 'Authorization: Bearer {key}' {base_url}/assistants\n"
        ));
    }
    let client = serde_json::json!({"mcpServers": {"sidetone": {
        "type": "http", "url": format!("{base_url}/mcp"), "headers": {"Authorization": format!("Bearer {key}")},
    }}});
    let client = serde_json::to_string_pretty(&client).unwrap_or_default();
    text.push_str(&format!("\nMCP clients (mcp.json):\n\n{client}\n"));
    text
}

fn print_line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}
