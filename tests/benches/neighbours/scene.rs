//! The release binary with two workspaces, A and B. Each has several addresses, because one address does not get all
//! connections.
use std::any::Any;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidetone_engine::base::limits::{BODIES_BYTES_MAX, RESPONSES_BYTES_MAX, UNKNOWN_BODIES_BYTES_MAX};
use sidetone_engine::services::Services;
use sidetone_tests::direct_access;
use sidetone_tests::process::{Client, Folder, Server, bootstrap_key};
use sidetone_tests::wire::connect_from;

/// `SIDETONE_MEMORY_MB`: for conversations.
const MEMORY_MB: u64 = 512;
const MB: u64 = 1024 * 1024;
/// `HEADS_BYTES_MAX` of the binary's connections.
const HEADS_MB: u64 = 36;
/// Whatever else a process needs: its code, threads, connections, the caches of its database connections, and what the
/// allocator keeps.
const REST_MB: u64 = 128;
/// What the process may need beside the memory for conversations: what is limited elsewhere, and the rest.
pub const BASE_MB: u64 =
    (BODIES_BYTES_MAX + UNKNOWN_BODIES_BYTES_MAX + RESPONSES_BYTES_MAX) / MB + HEADS_MB + REST_MB;
/// All of it.
pub const PEAK_MB_MAX: u64 = MEMORY_MB + BASE_MB;
const ADDRESS_OF_B: Ipv4Addr = Ipv4Addr::new(127, 2, 0, 1);
/// How long work that failed rests before it is repeated.
const REST_MS: u64 = 5;

pub struct Scene {
    server: Server,
    keys: [String; 2],
    folder: Folder,
    stop: Arc<AtomicBool>,
    working: Mutex<Vec<JoinHandle<()>>>,
    refused: Mutex<Vec<String>>,
    addresses: AtomicUsize,
    kept: Mutex<Vec<Box<dyn Any + Send>>>,
}

impl Scene {
    pub fn start() -> Self {
        let folder = Folder::new();
        let keys = [bootstrap_key(1), bootstrap_key(2)];
        let (both, memory_mb) = (keys.join(","), MEMORY_MB.to_string());
        let settings = [
            ("SIDETONE_BOOTSTRAP_KEYS", both.as_str()),
            ("SIDETONE_ALLOW_PRIVATE_TARGETS", "1"),
            ("SIDETONE_MEMORY_MB", memory_mb.as_str()),
        ];
        Self {
            server: Server::start(&folder.path().join("data"), &settings),
            keys,
            folder,
            stop: Arc::default(),
            working: Mutex::default(),
            refused: Mutex::default(),
            addresses: AtomicUsize::new(0),
            kept: Mutex::default(),
        }
    }

    /// A connection of the one that does its worst, from the next of its addresses.
    pub fn a(&self) -> Client {
        self.server.connect(&self.keys[0]).from(self.address_of_a())
    }

    /// A connection of its neighbour.
    pub fn b(&self) -> Client {
        self.server.connect(&self.keys[1]).from(ADDRESS_OF_B)
    }

    pub fn key_of_a(&self) -> &str {
        &self.keys[0]
    }

    pub fn key_of_b(&self) -> &str {
        &self.keys[1]
    }

    pub fn server(&self) -> SocketAddr {
        self.server.address()
    }

    /// One of A's addresses: eight take turns.
    pub fn address_of_a(&self) -> Ipv4Addr {
        let nth = self.addresses.fetch_add(1, Ordering::Relaxed) % 8;
        Ipv4Addr::new(127, 1, 0, u8::try_from(nth + 1).unwrap_or(1))
    }

    /// A raw connection of A.
    pub fn socket_of_a(&self) -> TcpStream {
        connect_from(self.address_of_a(), self.server()).expect("the server listens")
    }

    /// A raw connection of B.
    pub fn socket_of_b(&self) -> TcpStream {
        connect_from(ADDRESS_OF_B, self.server()).expect("the server listens")
    }

    /// Keeps something of A's until the scene is over.
    pub fn keep(&self, what: impl Any + Send) {
        self.kept.lock().expect("no thread panics with it").push(Box::new(what));
    }

    /// Repeats A's work until the scene is over. After an error it rests for a moment.
    pub fn repeat<E>(&self, mut work: impl FnMut() -> Result<(), E> + Send + 'static) {
        let stop = self.stop.clone();
        let working = std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                if work().is_err() {
                    std::thread::sleep(Duration::from_millis(REST_MS));
                }
            }
        });
        self.working.lock().expect("no thread panics with it").push(working);
    }

    /// Direct access to the storage.
    pub fn storage(&self) -> Services {
        direct_access::in_folder(&self.folder.path().join("data"))
    }

    /// B asks for something; its delay in milliseconds. Another status than this one is noted.
    pub fn ask(
        &self,
        client: &mut Client,
        status: u16,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> f64 {
        let asked = Instant::now();
        let answer = client.send(method, path, &[], body);
        let took = ms(asked);
        match answer {
            Ok(answer) if answer.status == status => {}
            Ok(answer) => self.refuse(format!("{method} {path}: {}", answer.json)),
            Err(error) => self.refuse(format!("{method} {path}: {error}")),
        }
        took
    }

    /// B was refused something.
    pub fn refuse(&self, what: String) {
        self.refused.lock().expect("no thread panics with it").push(what);
    }

    /// What B was refused since the last look.
    fn refused(&self) -> Vec<String> {
        std::mem::take(&mut *self.refused.lock().expect("no thread panics with it"))
    }

    /// The most memory that the process has had.
    fn peak_mb(&self) -> f64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.server.pid())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or(f64::NAN) / 1024.0
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Work that waits for an answer ends with the server.
        self.server.terminate();
        for working in self.working.get_mut().expect("no thread panics with it").drain(..) {
            let _ = working.join();
        }
    }
}

/// A's load is only its worst when it got this much.
pub fn at_least(what: &str, got: usize, wanted: usize) {
    assert!(got >= wanted, "{got} {what}: fewer than {wanted}");
}

/// Milliseconds since then.
pub fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

/// Creates something and returns its id.
pub fn create(client: &mut Client, path: &str, body: &Value) -> String {
    client.expect(201, "POST", path, Some(body))["id"].as_str().expect("an id").to_owned()
}

/// An assistant with these instructions.
pub fn assistant(client: &mut Client, instructions: &str) -> String {
    create(
        client,
        "/assistants",
        &json!({"name": "Desk", "instructions": instructions, "first_message": "Hello!"}),
    )
}

/// A simulation of an assistant with these tools. Its caller asks for an order, which a tool knows.
pub fn simulation(client: &mut Client, tool_ids: &[String]) -> String {
    let assistant = assistant(client, "Be brief.");
    let tools = json!({"tool_ids": tool_ids});
    client.expect(200, "PUT", &format!("/assistants/{assistant}/tools"), Some(&tools));
    let persona =
        create(client, "/simulations/personas", &json!({"name": "Ada", "system_prompt": "Be kind."}));
    let instructions = "Ask \"What is the status of my order?\"";
    let scenario = json!({"name": "Question", "instructions": instructions});
    let scenario = create(client, "/simulations/scenarios", &scenario);
    let body = json!({"assistant_id": assistant, "persona_id": persona, "scenario_id": scenario});
    create(client, "/simulations", &body)
}

/// What somebody feels.
pub struct Felt {
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub worst_ms: f64,
    pub peak_mb: f64,
    pub refused: Vec<String>,
}

impl Felt {
    pub fn of(mut delays_ms: Vec<f64>, scene: &Scene) -> Self {
        delays_ms.sort_by(f64::total_cmp);
        let at = |share: f64| delays_ms[((delays_ms.len() - 1) as f64 * share) as usize];
        Self {
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            worst_ms: at(1.0),
            peak_mb: scene.peak_mb(),
            refused: scene.refused(),
        }
    }

    pub fn print(&self, name: &str, when: &str) {
        let Self { p50_ms, p99_ms, worst_ms, peak_mb, refused } = self;
        let refused = refused.len();
        println!(
            "{name:<38} {when:<9} {p50_ms:>8.1} {p99_ms:>8.1} {worst_ms:>8.1} {refused:>8} {peak_mb:>8.0}"
        );
    }
}
