//! The real binary, started once per test process and stopped with it.
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use sidetone_engine::services::Services;

use crate::direct_access;
use crate::fakes;
use crate::fakes::carrier::{Carriers, default_account};
use crate::process::{binary, bootstrap_key, is_a_setting};

/// The maximum number of workspaces in one test process.
pub(crate) const WORKSPACES_MAX: u32 = 2_000;

/// Runs the server until standard input closes, which also happens when the test process is killed.
const SUPERVISOR: &str = r#"
    data=$1; shift
    "$@" </dev/null & server=$!
    cat >/dev/null
    kill "$server" 2>/dev/null; wait "$server"
    rm -rf "$data"
"#;

/// A running server.
pub struct Native {
    /// The address it listens on.
    pub address: SocketAddr,
    data: PathBuf,
    direct_access: OnceLock<Services>,
    keys_used: AtomicU32,
    log: PathBuf,
    _keeper: Child,
    _stdout: BufReader<ChildStdout>,
}

impl Native {
    /// The server of this process.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Native> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(&default_account()))
    }

    /// The server of this process , configured with the fakes.
    pub fn shared_with_fakes() -> &'static Self {
        static SHARED: OnceLock<Native> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(&fakes::settings()))
    }

    /// The server of this process with an account at each carrier's fake.
    pub fn shared_with_phones() -> &'static Self {
        static SHARED: OnceLock<Native> = OnceLock::new();
        SHARED.get_or_init(|| {
            let carriers = Carriers::shared();
            let native = Self::start(&carriers.settings());
            carriers.serve(native.address);
            native
        })
    }

    /// Another server, with these settings, which ends with this process.
    pub fn of_its_own(settings: &[(&str, &str)]) -> &'static Self {
        let settings: Vec<_> = settings.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Box::leak(Box::new(Self::start(&settings)))
    }

    /// The key of an unused workspace.
    pub fn fresh_key(&self) -> String {
        let n = self.keys_used.fetch_add(1, Ordering::Relaxed);
        assert!(n < WORKSPACES_MAX, "raise WORKSPACES_MAX: every test creates workspaces");
        bootstrap_key(n)
    }

    /// Its data folder.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Direct access to its data folder.
    pub fn direct_access(&self) -> Services {
        self.direct_access.get_or_init(|| direct_access::in_folder(&self.data)).clone()
    }

    /// The content of its log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn start(settings: &[(&str, String)]) -> Self {
        let folder = tempfile::Builder::new().prefix("sidetone-contract-").tempdir().unwrap().keep();
        let log = folder.join("log");
        let keys: Vec<String> = (0..WORKSPACES_MAX).map(bootstrap_key).collect();
        let mut command = Command::new("sh");
        for (name, _) in std::env::vars().filter(|(name, _)| is_a_setting(name)) {
            command.env_remove(name);
        }
        let mut keeper = command
            .args(["-c", SUPERVISOR, "supervisor"])
            .arg(&folder)
            .arg(binary())
            .env("SIDETONE_LISTEN", "127.0.0.1:0")
            .env("SIDETONE_DATA", folder.join("data"))
            .env("SIDETONE_BASE_URL", crate::world::BASE_URL)
            .env("SIDETONE_BOOTSTRAP_KEYS", keys.join(","))
            .env("SIDETONE_TRUSTED_PROXIES", "127.0.0.1")
            // The other tests take the processor.
            .env("SIDETONE_LATE_PERCENT", "100")
            .envs(settings.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn()
            .expect("sh starts");
        let mut stdout = BufReader::new(keeper.stdout.take().unwrap());
        let mut welcome = String::new();
        while !welcome.contains("listening on ") {
            let read = stdout.read_line(&mut welcome).unwrap_or(0);
            assert!(
                read > 0,
                "sidetone did not start: {}",
                std::fs::read_to_string(&log).unwrap_or_default()
            );
        }
        let address = welcome.split("listening on ").nth(1).and_then(|rest| rest.split(')').next());
        let address = address.and_then(|text| text.parse().ok()).expect("the welcome names the address");
        let (direct_access, keys_used) = (OnceLock::new(), AtomicU32::new(0));
        Self {
            address,
            data: folder.join("data"),
            direct_access,
            keys_used,
            log,
            _keeper: keeper,
            _stdout: stdout,
        }
    }
}
