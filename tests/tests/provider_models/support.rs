//! The fixture: an assistant on the fake's models, a tool, a webhook.
use serde_json::{Value, json};
use sidetone_tests::receiver::{Received, Receiver, ReceiverBehaviour};
use sidetone_tests::{Created, World};
use std::time::{Duration, Instant};

/// How long to wait for events. The local platform has one consumer of deliveries at a time, which may be waiting for a
/// receiver of another test.
const EVENTS_MS: u64 = 180_000;

/// The fixture of a scenario.
pub struct Fixture {
    pub world: World,
    pub tool: Receiver,
    pub tool_made: Created,
    pub webhook: Receiver,
    pub webhook_made: Created,
    pub assistant: Created,
}

impl Fixture {
    /// An assistant with this model of the fake, a tool, a document and a webhook for all events.
    pub fn new(model: &str) -> Self {
        let world = World::with_fakes();
        let tool = Receiver::start(ReceiverBehaviour::Status(200));
        let webhook = Receiver::start(ReceiverBehaviour::Status(204));
        let parameters = json!({"type": "object", "properties": {"order": {"type": "string"}}});
        let tool_made = world.create(
            "/tools",
            json!({"name": "lookup", "url": tool.url(), "description": "Finds an order.",
                   "parameters": parameters, "timeout_ms": 20_000}),
        );
        let webhook_made = world.create("/webhooks", json!({"url": webhook.url(), "events": ["*"]}));
        let document =
            world.create("/knowledge", json!({"name": "Hours", "content": "We open at ten. Grüße!"}));
        let assistant = world.create(
            "/assistants",
            json!({"name": "Shop", "instructions": "Help the shop's customers.", "first_message": "Shop, hello!",
                   "model": format!("fake/{model}")}),
        );
        world.put(format!("/assistants/{}/tools", assistant.id), json!({"tool_ids": [tool_made.id]})).ok();
        world
            .put(format!("/assistants/{}/knowledge", assistant.id), json!({"knowledge_ids": [document.id]}))
            .ok();
        Self { world, tool, tool_made, webhook, webhook_made, assistant }
    }

    /// A simulation with a caller that says these lines, and with these evaluations.
    pub fn simulation(&self, lines: &[&str], evaluations: Value) -> Created {
        let quoted: Vec<String> = lines.iter().map(|line| format!("\"{line}\"")).collect();
        let persona = self.world.create(
            "/simulations/personas",
            json!({"name": "Ada", "system_prompt": "You are in a hurry.", "model": "fake/caller"}),
        );
        let scenario = self.world.create(
            "/simulations/scenarios",
            json!({"name": "Order", "instructions": format!("Say {}.", quoted.join(", then ")),
                   "evaluations": evaluations, "judge_model": "fake/judge"}),
        );
        self.world.create(
            "/simulations",
            json!({"assistant_id": self.assistant.id, "persona_id": persona.id, "scenario_id": scenario.id}),
        )
    }

    /// Runs a simulation with these lines; returns the completed run.
    pub fn run(&self, lines: &[&str]) -> Value {
        let simulation = self.simulation(lines, json!([]));
        let run = self.world.create(&format!("/simulations/{}/runs", simulation.id), json!({"seed": 7}));
        self.world.settle(&run.id)
    }

    /// Waits for this number of events; returns them as `(type, body, request)`.
    pub fn events(&self, count: usize) -> Vec<(String, Value, Received)> {
        let deadline = Instant::now() + Duration::from_millis(EVENTS_MS);
        while self.webhook.count() < count {
            if let Some(sandbox) = self.world.sandbox() {
                sandbox.run_jobs();
            }
            assert!(Instant::now() < deadline, "{} of {count} events arrived", self.webhook.count());
            std::thread::sleep(Duration::from_millis(5));
        }
        let read = |received: Received| {
            let body: Value = serde_json::from_slice(&received.body).unwrap();
            (body["type"].as_str().unwrap().to_owned(), body, received)
        };
        self.webhook.received().into_iter().map(read).collect()
    }
}

/// The rows of a transcript with this role.
pub fn rows<'a>(transcript: &'a Value, role: &str) -> Vec<&'a Value> {
    transcript.as_array().unwrap().iter().filter(|row| row["role"] == role).collect()
}
