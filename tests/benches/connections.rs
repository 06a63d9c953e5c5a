//! What connections cost that do nothing: the memory of the binary with 10,000 idle connections and 1,000 unfinished
//! heads, and how long another client then waits. Run with `cargo bench -p sidetone-tests --bench connections`.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a benchmark")]
#![allow(missing_docs, reason = "a program, not a library")]
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use sidetone_tests::process::{self, Folder, Server, bootstrap_key};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

const IDLE: usize = 10_000;
const UNFINISHED: usize = 1_000;
/// Just below the limit of a head.
const HEAD_BYTES: usize = 32_000;
/// Connections from one address.
const PER_ADDRESS: usize = 2_000;
const MEMORY_MB_MAX: u64 = 200;
const REQUESTS: usize = 200;

fn main() {
    if !std::env::args().any(|word| word == "--bench") {
        println!("a benchmark: run it with `cargo bench -p sidetone-tests --bench connections`");
        return;
    }
    let folder = Folder::new();
    let key = bootstrap_key(1);
    let data = folder.path().join("data");
    let mut command = process::command(&data, &[("SIDETONE_BOOTSTRAP_KEYS", &key)]);
    let server = Server::spawn(command.stderr(std::process::Stdio::null()), data.with_extension("log"));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    println!("no connection: {} MB; {}", memory_mb(&server), waits(&server, &key));
    runtime.block_on(async {
        let (mut idle, mut unfinished) = (Vec::new(), Vec::new());
        for n in 0..IDLE {
            let mut stream = connect(server.address(), n).await;
            // Every second one is silent from the start.
            if n % 2 == 0 {
                ask(&mut stream).await;
            }
            idle.push(stream);
        }
        let idle_mb = memory_mb(&server);
        println!("{IDLE} idle connections: {idle_mb} MB; {}", waits(&server, &key));
        let head = format!("GET /healthz HTTP/1.1\r\nhost: a\r\nx-long: {}", "x".repeat(HEAD_BYTES));
        for n in 0..UNFINISHED {
            let mut stream = connect(server.address(), IDLE + n).await;
            stream.write_all(head.as_bytes()).await.expect("the server reads");
            unfinished.push(stream);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        let memory_mb = memory_mb(&server);
        println!("and {UNFINISHED} unfinished heads: {memory_mb} MB; {}", waits(&server, &key));
        assert!(memory_mb < MEMORY_MB_MAX, "more than {MEMORY_MB_MAX} MB");
    });
}

/// A connection from one of several addresses of this machine.
async fn connect(server: SocketAddr, n: usize) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    let host = u8::try_from(2 + n / PER_ADDRESS).expect("few addresses");
    socket.bind(SocketAddr::from((Ipv4Addr::new(127, 0, 0, host), 0))).expect("an address");
    socket.connect(server).await.expect("the server listens; is `ulimit -n` above 12,000?")
}

async fn ask(stream: &mut TcpStream) {
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n").await.expect("the server reads");
    let mut answer = Vec::new();
    while !answer.ends_with(b"}") {
        assert!(stream.read_buf(&mut answer).await.expect("an answer") > 0, "the connection ended");
    }
}

/// How long new connections of another client wait for their answers.
fn waits(server: &Server, key: &str) -> String {
    let mut took: Vec<Duration> = (0..REQUESTS)
        .map(|_| {
            let started = Instant::now();
            server.connect(key).expect(200, "GET", "/assistants", None);
            started.elapsed()
        })
        .collect();
    took.sort_unstable();
    let at = |part: usize| took[(took.len() * part / 100).min(took.len() - 1)].as_micros();
    format!("a new client waits p50 {} µs, p99 {} µs, worst {} µs", at(50), at(99), at(100))
}

fn memory_mb(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the memory is listed");
    let kb: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kb / 1024
}
