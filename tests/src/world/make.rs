//! Creates resources on demand.
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use sidetone_engine::base::api_key::ApiKey;
use sidetone_engine::base::ids::{CallId, Id as _, WorkspaceId};
use sidetone_engine::base::limits::TOOL_TIMEOUT_MS_MAX;
use sidetone_engine::ports::statement::Statement;
use sidetone_engine::services::Services;
use sidetone_engine::speech::audio::Rate;
use sidetone_engine::speech::recorder::Segment;
use sidetone_engine::sql;
use sidetone_engine::storage::calls::write as calls;
use sidetone_engine::storage::fault::Fault;
use sidetone_engine::storage::recordings::{self, Recording};

use super::{Created, Service, World};
use crate::direct_access::{self, wait};
use crate::example;

impl World {
    /// A number that is unique in this workspace, counted from 1.
    pub fn count(&self) -> u32 {
        self.made.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Creates a resource and returns its id.
    #[track_caller]
    pub fn create(&self, path: &str, body: Value) -> Created {
        let json = self.post(path, body).created().json;
        Created { id: json["id"].as_str().expect("an id").to_owned(), json }
    }

    /// An assistant.
    #[track_caller]
    pub fn assistant(&self) -> Created {
        self.create("/assistants", json!({"name": "Front desk", "instructions": "Be kind."}))
    }

    /// A tool.
    #[track_caller]
    pub fn a_tool(&self) -> Created {
        let name = format!("tool_{}", self.count());
        self.create("/tools", json!({"name": name, "url": "https://example.com/hook"}))
    }

    /// A tool whose host name does not resolve, because it is reserved (RFC 2606). It waits as long as a tool can, so that a
    /// busy host learns that before it gives up.
    #[track_caller]
    pub fn unreachable_tool(&self) -> Created {
        let name = format!("tool_{}", self.count());
        let url = "https://tools.example/hook";
        self.create("/tools", json!({"name": name, "url": url, "timeout_ms": TOOL_TIMEOUT_MS_MAX}))
    }

    /// A knowledge document of this size.
    #[track_caller]
    pub fn document(&self, size_bytes: usize) -> Created {
        let name = format!("Document {}", self.count());
        self.create("/knowledge", json!({"name": name, "content": "x".repeat(size_bytes)}))
    }

    /// A webhook whose host name does not resolve, because it is reserved (RFC 2606).
    #[track_caller]
    pub fn webhook(&self) -> Created {
        self.create("/webhooks", json!({"url": "https://receiver.example/", "events": ["call.ended"]}))
    }

    /// A persona.
    #[track_caller]
    pub fn persona(&self) -> Created {
        self.create("/simulations/personas", json!({"name": "Ada", "system_prompt": "You are in a hurry."}))
    }

    /// A scenario without evaluations.
    #[track_caller]
    pub fn scenario(&self) -> Created {
        self.create("/simulations/scenarios", json!({"name": "Booking", "instructions": "Book a table."}))
    }

    /// A simulation of this assistant.
    #[track_caller]
    pub fn simulation_of(&self, assistant_id: &str) -> Created {
        let (persona, scenario) = (self.persona(), self.scenario());
        self.create(
            "/simulations",
            json!({"assistant_id": assistant_id, "persona_id": persona.id, "scenario_id": scenario.id}),
        )
    }

    /// A simulation, with the resources that it needs.
    #[track_caller]
    pub fn simulation(&self) -> Created {
        self.simulation_of(&self.assistant().id)
    }

    /// A queued run.
    #[track_caller]
    pub fn run(&self) -> Created {
        let simulation = self.simulation();
        self.create(&format!("/simulations/{}/runs", simulation.id), json!({"seed": 7}))
    }

    /// A batch of one run.
    #[track_caller]
    pub fn batch(&self) -> Created {
        let body = json!({"assistant_id": self.simulation()["assistant_id"], "seed": 7});
        let json = self.post("/simulations/runs/batch", body).created().json;
        Created { id: json["batch_id"].as_str().expect("an id").to_owned(), json }
    }

    /// Direct access to the service's storage, for effects that no request has: of several databases, to that of this
    /// workspace. At the edge only with
    /// [`crate::edge::Edge::shared`].
    pub fn direct_access(&self) -> Services {
        match &self.service {
            Service::Sandbox(sandbox) => sandbox.services_of(&self.key),
            Service::Native(native) => native.direct_access(),
            Service::Edge(edge) => direct_access::at_edge(edge.address, &self.key),
        }
    }

    /// The workspace's id.
    pub fn workspace_id(&self) -> WorkspaceId {
        if self.sandbox().is_none() {
            // A bootstrap key creates its workspace on first use.
            self.get("/keys").ok();
        }
        let hash = ApiKey::parse(&self.key).expect("a key").sha256_hex();
        let select = sql!("SELECT workspace_id FROM api_keys WHERE hash = :hash", hash = hash);
        let rows = wait(self.direct_access().ports().database.read(vec![select])).expect("a read");
        rows[0].first().expect("the key is known").id("workspace_id").expect("an id")
    }

    /// Writes to the database like a job.
    pub fn write(&self, statements: Vec<Statement>) {
        wait(self.direct_access().ports().database.write(statements)).expect("a write");
    }

    /// Stores [`example::recording`] of an ended call, as if it had been recorded while the call ran. What an earlier
    /// attempt has begun is given up.
    pub fn store(&self, call_id: &str, file: &[u8]) -> Result<(), Fault> {
        self.store_trying(call_id, file, 1)
    }

    /// The same, where each segment is tried so many times.
    pub fn store_trying(&self, call_id: &str, file: &[u8], tries: usize) -> Result<(), Fault> {
        let (engine, workspace_id) = (self.direct_access(), self.workspace_id());
        let (call_id, now_ms) = (CallId::from_stored(call_id), engine.ports().clock.now_ms());
        let set =
            |status| sql!("UPDATE calls SET status = :status WHERE id = :id", status = status, id = &call_id);
        self.write(vec![set("in_progress"), recordings::abandon(&workspace_id, &call_id, now_ms)]);
        let sample = |bytes: &[u8]| i16::from_le_bytes([bytes[0], bytes[1]]);
        let frames: Vec<_> = file[44..].chunks(4).map(|pair| [sample(pair), sample(&pair[2..])]).collect();
        let (rate, duration_ms) = (Rate::Khz8, Rate::Khz8.ms_of(frames.len()));
        let segment = usize::try_from(recordings::segment_ms(&engine) * 8).expect("a length");
        let stored = wait(async {
            let mut recording = Recording::new(&engine, &workspace_id, &call_id, rate);
            for frames in frames.chunks(segment) {
                let segment = Segment { rate, frames: frames.to_vec(), missing_ms: 0 };
                let mut left = tries;
                recording = loop {
                    left -= 1;
                    match recording.clone().write(&engine, &segment).await {
                        Err(_) if left > 0 => {}
                        stored => break stored?,
                    }
                };
            }
            let end = recordings::end(&workspace_id, &call_id, Some(duration_ms), now_ms);
            engine.ports().database.write(end.to_vec()).await?;
            Ok::<_, Fault>(())
        });
        self.write(vec![set("ended")]);
        stored
    }

    /// An ended call with a recording of two seconds.
    pub fn a_recorded_call(&self) -> Created {
        let call = self.a_call();
        self.store(&call.id, &example::recording(16_000)).expect("a recording can be stored");
        let json = self.get(format!("/calls/{}", call.id)).ok().json;
        Created { id: call.id, json }
    }

    /// The call of an ended run.
    #[track_caller]
    pub fn runs_call(&self) -> Created {
        let run = self.settle(&self.run().id);
        let json = run["call"].clone();
        Created { id: json["id"].as_str().expect("a run has a call").to_owned(), json }
    }

    /// A call that a carrier has accepted.
    pub fn placed_call(&self) -> Created {
        let from = self.binding();
        let body = json!({"assistant_id": from["assistant_id"], "to": "+14155557777", "from": from.id});
        self.create("/calls/outbound", body)
    }

    /// An ended call with all optional fields.
    pub fn a_call(&self) -> Created {
        let (new, ended) = (example::new_call(self), example::ended_call());
        self.write(calls::record(&new, Some(&ended), Some(&example::analysis())));
        let json = self.get(format!("/calls/{}", new.id)).ok().json;
        Created { id: new.id.to_string(), json }
    }

    /// An API key of this workspace.
    #[track_caller]
    pub fn api_key(&self) -> Created {
        self.create("/keys", json!({"name": "CI"}))
    }

    /// A phone number that is unique in this test process.
    pub fn phone_number(&self) -> String {
        static NUMBERS: AtomicU32 = AtomicU32::new(0);
        format!("+1415{:07}", NUMBERS.fetch_add(1, Ordering::Relaxed))
    }

    /// A number bound to an assistant.
    #[track_caller]
    pub fn binding(&self) -> Created {
        let number = self.phone_number();
        let body = json!({"assistant_id": self.assistant().id, "provider": "twilio"});
        let json = self.put(format!("/numbers/{number}"), body).ok().json;
        Created { id: number, json }
    }
}
