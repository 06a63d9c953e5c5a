//! The release binary with two workspaces, A and B.
use serde_json::{Value, json};
use sidetone_tests::process::{Client, Folder, Server, bootstrap_key};

pub struct Scene {
    server: Server,
    keys: [String; 2],
    _folder: Folder,
}

impl Scene {
    pub fn start() -> Self {
        let folder = Folder::new();
        let keys = [bootstrap_key(1), bootstrap_key(2)];
        let both = keys.join(",");
        let settings = [("SIDETONE_BOOTSTRAP_KEYS", both.as_str()), ("SIDETONE_ALLOW_PRIVATE_TARGETS", "1")];
        Self { server: Server::start(&folder.path().join("data"), &settings), keys, _folder: folder }
    }

    /// A connection of the one that does its worst.
    pub fn a(&self) -> Client {
        self.server.connect(&self.keys[0])
    }

    /// A connection of its neighbour.
    pub fn b(&self) -> Client {
        self.server.connect(&self.keys[1])
    }

    /// The most memory that the process has had.
    fn peak_mb(&self) -> f64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.server.pid())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or(f64::NAN) / 1024.0
    }
}

/// Creates something and returns its id.
pub fn create(client: &mut Client, path: &str, body: &Value) -> String {
    client.expect(201, "POST", path, Some(body))["id"].as_str().expect("an id").to_owned()
}

/// A simulation of an assistant with these tools. Its caller asks for an order, which a tool knows.
pub fn simulation(client: &mut Client, tool_ids: &[String]) -> String {
    let assistant = create(client, "/assistants", &json!({"name": "Desk", "instructions": "Be brief."}));
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
}

impl Felt {
    pub fn of(mut delays_ms: Vec<f64>, scene: &Scene) -> Self {
        delays_ms.sort_by(f64::total_cmp);
        let at = |share: f64| delays_ms[((delays_ms.len() - 1) as f64 * share) as usize];
        Self { p50_ms: at(0.5), p99_ms: at(0.99), worst_ms: at(1.0), peak_mb: scene.peak_mb() }
    }

    pub fn print(&self, name: &str, when: &str) {
        let Self { p50_ms, p99_ms, worst_ms, peak_mb } = self;
        println!("{name:<34} {when:<12} {p50_ms:>9.1} {p99_ms:>9.1} {worst_ms:>9.1} {peak_mb:>9.0}");
    }
}
