//! The Worker in workerd, with local D1 and Queues: started once for a test process by
//! `tests/worker/serve.sh` and stopped with it.
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::native::WORKSPACES_MAX;
use crate::process::bootstrap_key;

/// A running Worker.
pub struct Edge {
    /// Where it listens.
    pub address: SocketAddr,
    keys_used: AtomicU32,
    log: PathBuf,
    /// The script ends when its standard input, which this holds, is closed.
    _script: Child,
}

impl Edge {
    /// The Worker of this process.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Edge> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// The key of a workspace that nobody has used.
    pub fn fresh_key(&self) -> String {
        let n = self.keys_used.fetch_add(1, Ordering::Relaxed);
        assert!(n < WORKSPACES_MAX, "raise WORKSPACES_MAX: every scenario opens workspaces of its own");
        bootstrap_key(n)
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn start() -> Self {
        let log = std::env::temp_dir().join(format!("sidetone-edge-{}.log", std::process::id()));
        let keys: Vec<String> = (0..WORKSPACES_MAX).map(bootstrap_key).collect();
        let mut command = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/worker/serve.sh"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("SIDETONE_")) {
            command.env_remove(name);
        }
        let mut script = command
            .env("SIDETONE_BASE_URL", crate::world::BASE_URL)
            .env("SIDETONE_BOOTSTRAP_KEYS", keys.join(","))
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
        Self { address, keys_used: AtomicU32::new(0), log, _script: script }
    }
}
