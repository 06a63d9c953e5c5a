//! `sidetone serve`: from the first line on standard output to the last in the log.
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sidetone_engine::engine::{Engine, Started};
use sidetone_engine::ports;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::place::Place;
use super::service::{Service, service};
use super::{Failure, failure, print_line};
use crate::data::DataFolder;
use crate::database::{FileIdentity, Reserved};
use crate::lateness;
use crate::log;
use crate::runner::Runner;
use crate::server::tls::Tls;
use crate::server::{self, Listening};
use crate::settings::{Settings, variable};
use crate::traces::Traces;

/// Of the time that stopping takes, what is kept for hanging up telephone lines: requests that take long do not use it up.
const HANG_UP_TIME: Duration = Duration::from_secs(1);

/// The least time that a service which stops has for the traces that wait.
const TRACES_SENT: Duration = Duration::from_millis(500);

/// Serves until it is told to stop.
pub fn run(place: &Place, runtime: Runtime) -> Result<(), Failure> {
    let served = runtime.block_on(serve(&place.settings, &place.data));
    // A look-up of a name that hangs must not keep the process.
    runtime.shutdown_background();
    served
}

async fn serve(settings: &Settings, data: &DataFolder) -> Result<(), Failure> {
    let _log = log::start(settings.log_format)?;
    let _lock = data.lock()?;
    let tls = settings.tls.clone().map(Tls::load).transpose()?.map(Arc::new);
    // Listen before creating anything: the first key is shown only once, so a failed startup must not create it.
    let listener =
        TcpListener::bind(settings.listen).await.map_err(|error| cannot_listen(settings.listen, &error))?;
    let address = listener.local_addr()?;
    let traces = Traces::from_settings(variable)?.map(Arc::new);
    let shared = traces.clone().map(|traces| traces as Arc<dyn ports::Traces>);
    let Service { engine, wakes, files, metrics, database_file, warnings } = {
        let reserved = Reserved::Kept(settings.reserve_bytes);
        service(settings, data, address, reserved, shared)?
    };
    warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    // The lock guarantees that no other server uses this folder.
    let Started { first_key, sign_in_link, warnings, workers } =
        engine.start(&owner()).await.map_err(failure)?;
    warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    match (
        print_line(&welcome(&engine, data, address, first_key.as_deref(), sign_in_link.as_deref())),
        first_key,
    ) {
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
    tokio::spawn(lateness::watch(engine.services().clone(), metrics.clone()));
    // The end of the time is for the traces that wait, and before that for lines that are hung up.
    let for_traces = traces.as_ref().map_or(Duration::ZERO, |_| TRACES_SENT.min(settings.stop / 4));
    let others = settings.stop.saturating_sub(for_traces);
    let grace = others.saturating_sub(HANG_UP_TIME.min(others / 4));
    let listening = Listening { listener, connections_max: files.connections, grace, tls: tls.clone() };
    tls.map(|tls| tokio::spawn(tls.follow()));
    let server = tokio::spawn(server::serve(listening, engine.clone(), stopped, metrics));
    tokio::select! {
        () = signal() => {}
        () = database_file.lost() => return Err(lost(&database_file)),
    }
    tracing::info!("stopping: no new requests, finishing the open ones");
    let deadline = tokio::time::Instant::now() + others;
    let _ = stop.send(true);
    server.await?;
    match tokio::time::timeout_at(deadline, engine.hang_up_lines(&owner())).await {
        Ok(incidents) => incidents.iter().for_each(|incident| tracing::error!("{incident}")),
        Err(_) => tracing::warn!("some lines were not hung up in time; they are at the next start"),
    }
    while !jobs.iter().all(Runner::is_finished) {
        if tokio::time::Instant::now() > deadline {
            let queues = jobs.iter().filter(|runner| !runner.is_finished()).count();
            tracing::warn!(queues, "some jobs did not finish in time; they run again at the next start");
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    if let Some(traces) = traces {
        let within = (deadline + for_traces).saturating_duration_since(tokio::time::Instant::now());
        // It waits for the collector on a thread of its own.
        let _ = tokio::task::spawn_blocking(move || traces.stop(within)).await;
    }
    Ok(())
}

/// The process ends at once then: whatever finished meanwhile could not be stored.
fn lost(file: &FileIdentity) -> Failure {
    let path = std::path::absolute(file.path()).unwrap_or_else(|_| file.path().to_owned());
    tracing::error!(
        "the database file {} was removed or replaced while the service runs: what was written since then is in a file that \
         nobody can open any more. The service stops; start it again",
        path.display()
    );
    "the service has stopped: its database file was removed or replaced".into()
}

/// Why there, and what to do.
fn cannot_listen(address: SocketAddr, error: &io::Error) -> String {
    let port = address.port();
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "another program has the port: `ss -ltnp 'sport = :{port}'` shows which, as root of all users; stop it, or choose \
             another port"
        ),
        io::ErrorKind::AddrNotAvailable => format!(
            "this machine has no such address; write 0.0.0.0:{port} for all that it has, or 127.0.0.1:{port} for itself alone"
        ),
        io::ErrorKind::PermissionDenied => {
            "ports below 1024 need a right (CAP_NET_BIND_SERVICE); choose a higher one, or give it to the service".to_owned()
        }
        _ => "choose another address".to_owned(),
    };
    format!("SIDETONE_LISTEN: cannot listen on {address} ({error}): {advice}")
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

/// The message at startup: the addresses, the next steps, on the first start the API key, and as long as the first workspace
/// waits for the operator the link that opens it.
fn welcome(
    engine: &Engine,
    data: &DataFolder,
    address: SocketAddr,
    first_key: Option<&str>,
    sign_in_link: Option<&str>,
) -> String {
    let base_url = engine.base_url();
    let mut text = format!(
        "Sidetone {} is serving {base_url} (listening on {address})\n  Dashboard  {base_url}/dashboard\n  API docs   {base_url}/docs\n  MCP        {base_url}/mcp\n  Data       {}\n",
        env!("CARGO_PKG_VERSION"),
        std::path::absolute(data.path()).unwrap_or_else(|_| data.path().to_owned()).display()
    );
    if let Some(link) = sign_in_link {
        text.push_str(&format!(
            "\nOpen your workspace in the dashboard (the link works once):\n\n  {link}\n"
        ));
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
