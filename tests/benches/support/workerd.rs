//! The Worker, and a bare one beside it, in one workerd. Build it with `.ci/worker`.
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// Whether there is a Worker to run.
#[allow(dead_code, reason = "for benchmarks that are not about the Worker alone")]
pub fn is_built() -> bool {
    std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../host-worker/build/index.js")).exists()
}

/// Ours, and the bare one.
pub struct Workerd {
    pub ours: SocketAddr,
    #[allow(dead_code, reason = "for the benchmark that compares them")]
    pub bare: SocketAddr,
    pub pid: u32,
    script: Child,
}

impl Workerd {
    pub fn start(settings: &[(&str, &str)]) -> Self {
        let mut script = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/worker/bench/serve.sh"))
            .envs(settings.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the script starts");
        let mut line = String::new();
        let stdout = script.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("the script prints its URLs");
        let said: Value = serde_json::from_str(&line).expect("both Workers start");
        let address =
            |name: &str| said[name].as_str().and_then(|text| text.parse().ok()).expect("an address");
        let pid = said["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("a process id");
        Self { ours: address("ours"), bare: address("bare"), pid, script }
    }
}

impl Drop for Workerd {
    fn drop(&mut self) {
        // The script ends when its standard input closes.
        drop(self.script.stdin.take());
        let _ = self.script.wait();
    }
}
