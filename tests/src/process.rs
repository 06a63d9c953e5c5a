//! The real binary in its own process: started, called over TCP, stopped or killed.
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;
use sidetone_engine::base::api_key::ApiKey;

use crate::wire;

/// How long to wait for the start.
const START_MS: u64 = 60_000;
/// How long to wait for a response.
const ANSWER_MS: u64 = 30_000;

/// The binary: `SIDETONE_BIN`, or the one next to this test, built once with the same profile.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match std::env::var_os("SIDETONE_BIN") {
        Some(path) => path.into(),
        None => build(),
    })
}

fn build() -> PathBuf {
    // …/target/debug/deps/crash-0123 → …/target/debug
    let test = std::env::current_exe().expect("this program has a path");
    let folder = test.ancestors().nth(2).expect("tests are in target/<profile>/deps");
    let target = folder.parent().expect("the profile is in the target folder");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // With a test, and without a package, cargo chooses the same features of the dependencies as for all tests, and builds
    // nothing twice.
    cargo
        .args(["build", "--quiet", "--bin", "sidetone", "--test", "readme_sandbox", "--target-dir"])
        .arg(target);
    cargo.arg("--manifest-path").arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"));
    // Cargo tells a test which package it is of. Told the same, another cargo would build ring and all that needs it again,
    // and the next one, which is not told, a second time.
    for (name, _) in std::env::vars_os() {
        if ["CARGO_MANIFEST_", "CARGO_PKG_"].iter().any(|begins| name.to_string_lossy().starts_with(begins)) {
            cargo.env_remove(name);
        }
    }
    if folder.file_name() == Some(OsStr::new("release")) {
        cargo.arg("--release");
    }
    let status = cargo.status().expect("cargo runs");
    assert!(status.success(), "the binary does not build");
    folder.join(format!("sidetone{}", std::env::consts::EXE_SUFFIX))
}

/// A valid, deterministic key for this number.
pub fn bootstrap_key(n: u32) -> String {
    let mut bytes = [7; 32];
    bytes[..4].copy_from_slice(&n.to_be_bytes());
    ApiKey::from_bytes(bytes).as_str().to_owned()
}

/// A temporary folder, removed on drop.
pub struct Folder(tempfile::TempDir);

impl Folder {
    /// Creates one.
    #[expect(clippy::new_without_default, reason = "it touches the disk")]
    pub fn new() -> Self {
        Self(tempfile::Builder::new().prefix("sidetone-test-").tempdir().expect("a temporary folder"))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Whether a service reads this variable.
pub fn is_a_setting(name: &str) -> bool {
    ["SIDETONE_", "OTEL_"].iter().any(|begins| name.starts_with(begins))
}

/// The binary with exactly these settings.
pub fn command(data: &Path, settings: &[(&str, &str)]) -> Command {
    let mut command = Command::new(binary());
    for (name, _) in std::env::vars_os() {
        if is_a_setting(&name.to_string_lossy()) || name == "RUST_LOG" {
            command.env_remove(name);
        }
    }
    command.env("SIDETONE_LISTEN", "127.0.0.1:0").env("SIDETONE_DATA", data);
    command.envs(settings.iter().copied()).stdin(Stdio::null());
    command
}

/// Runs the binary until it exits.
pub fn run(data: &Path, settings: &[(&str, &str)], arguments: &[&str]) -> Output {
    command(data, settings).args(arguments).output().expect("the binary runs")
}

/// A serving process. Dropping it kills it.
pub struct Server {
    child: Child,
    address: SocketAddr,
    welcome: String,
    log: PathBuf,
}

impl Server {
    /// Starts it on `data` and waits until it listens. Its log goes to `data` with `.log` appended.
    pub fn start(data: &Path, settings: &[(&str, &str)]) -> Self {
        let log = data.with_extension("log");
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&log).expect("a log file");
        let mut command = command(data, settings);
        Self::spawn(command.stderr(file), log)
    }

    /// Starts any program that prints `listening on <address>`.
    pub fn spawn(command: &mut Command, log: PathBuf) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the server starts");
        let stdout = child.stdout.take().expect("standard output is a pipe");
        let (sender, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let mut welcome = String::new();
        let mut address = None;
        let deadline = Instant::now() + Duration::from_millis(START_MS);
        // The banner is one write, so the rest of it is available as soon as the address is.
        while let Ok(line) = lines.recv_timeout(match address {
            None => deadline.saturating_duration_since(Instant::now()),
            Some(_) => Duration::from_millis(50),
        }) {
            if let Some((_, rest)) = line.split_once("listening on ") {
                address = rest.trim_end_matches(')').parse().ok();
            }
            welcome.push_str(&line);
            welcome.push('\n');
        }
        let Some(address) = address else {
            let _ = child.kill();
            let log = std::fs::read_to_string(&log).unwrap_or_default();
            panic!("the server did not start: {welcome}\n{log}");
        };
        Self { child, address, welcome, log }
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its standard output so far.
    pub fn welcome(&self) -> &str {
        &self.welcome
    }

    /// The log of this process and earlier ones on the same folder.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until the log has this text.
    #[track_caller]
    pub fn logs(&self, text: &str) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !self.log().contains(text) {
            assert!(Instant::now() < deadline, "{text}: {}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A connection that sends `key`.
    pub fn connect(&self, key: &str) -> Client {
        Client::new(self.address, key)
    }

    /// Kills it, like a power failure.
    pub fn kill(mut self) {
        self.child.kill().expect("the process can be killed");
        self.child.wait().expect("the process ends");
    }

    /// Requests a graceful stop (SIGTERM).
    pub fn terminate(&self) {
        // The standard library can only send SIGKILL.
        let script = format!("kill -TERM {}", self.child.id());
        let status = Command::new("sh").args(["-c", &script]).status().expect("a shell runs");
        assert!(status.success(), "the signal is sent");
    }

    /// Waits until it exits.
    pub fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + Duration::from_millis(START_MS);
        loop {
            if let Some(status) = self.child.try_wait().expect("the process can be waited for") {
                return status;
            }
            assert!(Instant::now() < deadline, "the server does not stop");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Stops it gracefully.
    pub fn stop(mut self) -> ExitStatus {
        self.terminate();
        self.wait()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A response.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The head as received.
    pub head: String,
    /// The body as JSON; null when it is empty.
    pub json: Value,
}

impl std::ops::Index<&str> for Answer {
    type Output = Value;

    fn index(&self, name: &str) -> &Value {
        &self.json[name]
    }
}

/// A keep-alive connection with one request at a time.
pub struct Client {
    address: SocketAddr,
    source: Option<Ipv4Addr>,
    key: String,
    stream: Option<BufReader<TcpStream>>,
}

impl Client {
    /// Connects on first use.
    pub fn new(address: SocketAddr, key: &str) -> Self {
        Self { address, source: None, key: key.to_owned(), stream: None }
    }

    /// The same from this address of this machine.
    #[must_use]
    pub fn from(self, source: Ipv4Addr) -> Self {
        Self { source: Some(source), ..self }
    }

    /// Sends a request; `Err` when the connection breaks before the response is complete.
    pub fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> std::io::Result<Answer> {
        let answer = self.exchange(method, path, headers, body);
        if answer.is_err() {
            self.stream = None;
        }
        answer
    }

    /// Sends a request and expects `status`.
    pub fn expect(&mut self, status: u16, method: &str, path: &str, body: Option<&Value>) -> Value {
        let answer = self.send(method, path, &[], body).expect("the server answers");
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.json);
        answer.json
    }

    fn exchange(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> std::io::Result<Answer> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            empty => empty.insert(connect(self.source, self.address)?),
        };
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut request = request_head(method, path, &self.key, headers, body.len());
        request.push_str(&body);
        stream.get_mut().write_all(request.as_bytes())?;
        read_answer(stream)
    }
}

/// The head of a request, including the empty line.
pub fn request_head(
    method: &str,
    path: &str,
    key: &str,
    headers: &[(&str, &str)],
    body_bytes: usize,
) -> String {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n");
    if body_bytes > 0 || method != "GET" {
        head.push_str(&format!("content-type: application/json\r\ncontent-length: {body_bytes}\r\n"));
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    head
}

fn connect(source: Option<Ipv4Addr>, address: SocketAddr) -> std::io::Result<BufReader<TcpStream>> {
    let stream = match source {
        Some(source) => wire::connect_from(source, address)?,
        None => TcpStream::connect(address)?,
    };
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_millis(ANSWER_MS)))?;
    Ok(BufReader::new(stream))
}

/// Reads one response with a Content-Length.
pub fn read_answer(stream: &mut impl BufRead) -> std::io::Result<Answer> {
    let broken = |what: &str| std::io::Error::other(what.to_owned());
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head)? == 0 {
            return Err(broken("the connection ended"));
        }
    }
    let status =
        head.split(' ').nth(1).and_then(|word| word.parse().ok()).ok_or_else(|| broken("no status"))?;
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let json = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body)? };
    Ok(Answer { status, head, json })
}
