//! The Worker in workerd, with local D1 and Queues. `tests/worker/serve.sh` runs it and stops it with this process, or
//! earlier.
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::fakes;
use crate::fakes::carrier::{Carriers, default_account};
use crate::host::shards;
use crate::native::WORKSPACES_MAX;
use crate::process::{bootstrap_key, is_a_setting};

/// A running Worker.
pub struct Edge {
    /// The address it listens on.
    pub address: SocketAddr,
    keys_used: AtomicU32,
    log: PathBuf,
    /// The script ends when its standard input, which this handle owns, is closed.
    script: Mutex<Child>,
}

impl Edge {
    /// The Worker of this process, with direct access to its storage.
    pub fn shared() -> Arc<Self> {
        static SHARED: OnceLock<Arc<Edge>> = OnceLock::new();
        let start = || {
            let account = default_account();
            let mut options = vec![("WORKER_ENTRY", "direct_access.mjs")];
            options.extend(account.iter().map(|(name, value)| (*name, value.as_str())));
            Arc::new(Self::start(&options))
        };
        SHARED.get_or_init(start).clone()
    }

    /// The Worker of this process, configured with the fakes.
    pub fn shared_with_fakes() -> Arc<Self> {
        static SHARED: OnceLock<Arc<Edge>> = OnceLock::new();
        let start = || {
            let settings = fakes::settings();
            let settings: Vec<_> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
            Arc::new(Self::start(&settings))
        };
        SHARED.get_or_init(start).clone()
    }

    /// The Worker of this process with an account at each carrier's fake, and with direct access to its storage.
    pub fn shared_with_phones() -> Arc<Self> {
        static SHARED: OnceLock<Arc<Edge>> = OnceLock::new();
        let start = || {
            let carriers = Carriers::shared();
            let settings = carriers.settings();
            let mut settings: Vec<_> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
            settings.push(("WORKER_ENTRY", "direct_access.mjs"));
            let edge = Self::start(&settings);
            carriers.serve(edge.address);
            Arc::new(edge)
        };
        SHARED.get_or_init(start).clone()
    }

    /// Another Worker, with these settings, which ends with this process.
    pub fn of_its_own(settings: &[(&str, &str)]) -> Arc<Self> {
        Arc::new(Self::start(settings))
    }

    /// The Worker of this process over bindings with planned faults.
    pub fn shared_faulty() -> Arc<Self> {
        static SHARED: OnceLock<Arc<Edge>> = OnceLock::new();
        SHARED.get_or_init(|| Arc::new(Self::start(FAULTY))).clone()
    }

    /// A Worker over bindings with planned faults, with its state in a folder that outlives it.
    pub fn faulty_on(state: &Path) -> Arc<Self> {
        let state = state.to_str().expect("the folder's name is UTF-8");
        Arc::new(Self::start(&[FAULTY, &[("WORKER_STATE", state)]].concat()))
    }

    /// The key of an unused workspace.
    pub fn fresh_key(&self) -> String {
        let n = self.keys_used.fetch_add(1, Ordering::Relaxed);
        assert!(n < WORKSPACES_MAX, "raise WORKSPACES_MAX: every test creates workspaces");
        bootstrap_key(n)
    }

    /// The content of its log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Kills its processes, like a power failure.
    pub fn kill(&self) {
        let mut script = self.script.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        script.stdin.as_mut().expect("a pipe").write_all(b"kill\n").expect("the script reads");
        assert!(script.wait().expect("the script ends").success(), "{}", self.log());
    }

    fn start(options: &[(&str, &str)]) -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let nth = STARTED.fetch_add(1, Ordering::Relaxed);
        let log = std::env::temp_dir().join(format!("sidetone-edge-{}-{nth}.log", std::process::id()));
        let keys: Vec<String> = (0..WORKSPACES_MAX).map(bootstrap_key).collect();
        let mut command = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/worker/serve.sh"));
        for (name, _) in std::env::vars().filter(|(name, _)| is_a_setting(name)) {
            command.env_remove(name);
        }
        let mut script = command
            .env("SIDETONE_BASE_URL", crate::world::BASE_URL)
            // The other tests take the processor.
            .env("SIDETONE_LATE_PERCENT", "100")
            .env("SIDETONE_BOOTSTRAP_KEYS", keys.join(","))
            // Tests share one isolate, and half of what it has holds about thirty recorded calls.
            .env("SIDETONE_MEMORY_MB", "512")
            .envs(options.iter().copied())
            .envs((shards() > 1).then(|| ("SIDETONE_SHARDS", further_shards(shards()))))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&log).expect("a log file"))
            .spawn()
            .expect("the script starts");
        let mut url = String::new();
        let _ = BufReader::new(script.stdout.take().expect("a pipe")).read_line(&mut url);
        let address = url.trim().strip_prefix("http://").and_then(|address| address.parse().ok());
        let Some(address) = address else {
            let _ = script.wait();
            panic!("the Worker did not start:\n{}", std::fs::read_to_string(&log).unwrap_or_default());
        };
        Self { address, keys_used: AtomicU32::new(0), log, script: Mutex::new(script) }
    }
}

/// The names of the databases beside the first one.
fn further_shards(count: usize) -> String {
    (2..=count).map(|n| format!("DB_{n}")).collect::<Vec<_>>().join(",")
}

/// The entry with planned faults. Tools may be on this machine.
const FAULTY: &[(&str, &str)] = &[("WORKER_ENTRY", "faulty.mjs"), ("SIDETONE_ALLOW_PRIVATE_TARGETS", "1")];
