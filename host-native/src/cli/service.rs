//! The engine with this machine's ports.
use std::net::SocketAddr;
use std::sync::Arc;

use sidetone_engine::engine::Engine;
use sidetone_engine::ports::{self, Homes, Mailer, Ports};

use super::{Failure, failure};
use crate::blobs::Files;
use crate::data::DataFolder;
use crate::database::{FileIdentity, Reserved, Sqlite};
use crate::http_client::HttpClient;
use crate::keys::RingKeys;
use crate::metrics::{Metrics, Page};
use crate::open_files::{OpenFiles, Outgoing};
use crate::runner::Wakes;
use crate::settings::{HOST_SETTINGS, Settings, variable};
use crate::smtp::SmtpMailer;
use crate::system::{SystemClock, SystemRandom};
use crate::web_socket_client::WebSocketClient;

/// Recordings leave this many times the database's reserve of the disk to it.
const BLOBS_LEAVE_RESERVES: u64 = 4;

/// The engine with this machine's ports.
pub struct Service {
    pub engine: Engine,
    pub wakes: Arc<Wakes>,
    pub files: OpenFiles,
    pub metrics: Arc<Metrics>,
    /// The database's.
    pub database_file: FileIdentity,
    /// Warnings to log at startup.
    pub warnings: Vec<String>,
}

/// Creates the service, which keeps the reserve of the disk unless another one runs, and listens on `listen`.
pub fn service(
    settings: &Settings,
    data: &DataFolder,
    listen: SocketAddr,
    reserved: Reserved,
    traces: Option<Arc<dyn ports::Traces>>,
) -> Result<Service, Failure> {
    let secret = if settings.has_secret { String::new() } else { data.secret()? };
    let config = settings.config(variable, listen, &secret)?;
    let files = OpenFiles::of_process();
    let mut warnings =
        config.warnings(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()), HOST_SETTINGS);
    warnings.extend(files.warning());
    let outgoing = Outgoing::new(&files);
    let wakes = Arc::new(Wakes::default());
    let metrics = Arc::new(Metrics::default());
    let mailer = SmtpMailer::from_settings(config.mail.as_ref())?
        .map(|mailer| Arc::new(mailer.measured(metrics.clone())) as Arc<dyn Mailer>);
    let database = Sqlite::open_measured(&data.database(), reserved, metrics.clone())
        .map_err(|error| format!("SIDETONE_DATA: {}: {error}", data.database().display()))?;
    let database_file = database.file().clone();
    let ports = Ports {
        database: Arc::new(database),
        blobs: Arc::new(Files::new(data.path(), settings.reserve_bytes.saturating_mul(BLOBS_LEAVE_RESERVES))),
        shards: None,
        clock: Arc::new(SystemClock),
        random: Arc::new(SystemRandom),
        queue: wakes.clone(),
        http: Arc::new(HttpClient::new(outgoing.clone())?.measured(metrics.clone())),
        web_sockets: Arc::new(WebSocketClient::new(outgoing)?.measured(metrics.clone())),
        keys: Arc::new(RingKeys),
        live: Arc::new(Homes::new(Arc::new(SystemClock))),
        mailer,
        metrics: Some(Arc::new(Page::new(metrics.clone(), data.database()))),
        traces,
    };
    let engine = Engine::new(config, ports).map_err(failure)?;
    Ok(Service { engine, wakes, files, metrics, database_file, warnings })
}
